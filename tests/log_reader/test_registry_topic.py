import json
import shutil

import pytest

from kdump.errors import UnreadableError
from kdump.log_dirs.finder import Wanted
from kdump.log_reader.registry_topic import payload_decoder, read_store
from testing import forge
from tests.helpers import log_dirs


def schema(version, text='"int"'):
    key = {"keytype": "SCHEMA", "subject": "s", "version": version, "magic": 1}
    value = {"subject": "s", "version": version, "id": version, "schema": text}
    return json.dumps(key).encode(), json.dumps(value).encode()


def segment(*versions, base):
    records = [forge.record(*schema(version), offset=number) for number, version in enumerate(versions)]
    return forge.batch(records, base_offset=base)


def test_replicas_count_once_and_complete_each_other(tmp_path):
    log_dirs.write(tmp_path / "b1", "_schemas-0", {0: segment(1, 2, base=0)})
    log_dirs.write(tmp_path / "b2", "_schemas-0", {0: segment(1, 2, base=0) + segment(3, base=2)})
    found = read_store([str(tmp_path / "b1"), str(tmp_path / "b2")])
    assert [one.version for one in found.versions()] == [1, 2, 3]
    assert [one.offset for one in found.history] == [0, 1, 2]


def test_damaged_ranges_are_reported_and_the_rest_is_read(tmp_path):
    broken = bytearray(segment(1, base=0))
    broken[-1] ^= 1
    log_dirs.write(tmp_path, "_schemas-0", {0: bytes(broken) + segment(2, base=1)})
    lost = []
    found = read_store([str(tmp_path)], lost=lost.append)
    assert [one.version for one in found.versions()] == [2]
    assert len(lost) == 1


def test_another_name_and_no_such_topic(tmp_path):
    log_dirs.write(tmp_path, "registry-0", {0: segment(1, base=0)})
    assert not read_store([str(tmp_path)])
    assert read_store([str(tmp_path)], topic="registry")
    shutil.rmtree(tmp_path)
    with pytest.raises(UnreadableError):
        read_store([str(tmp_path)])


def test_schemas_are_read_with_the_first_payload_that_may_have_one(tmp_path):
    log_dirs.write(tmp_path, "_schemas-0", {0: segment(1, base=0)})
    decoder = payload_decoder("auto", [str(tmp_path / "absent")], Wanted())
    for payload in (None, b"", b"text", b"1", b"\0\0\0\1", b"\xc3\x02" + bytes(10)):
        assert decoder.side("s", "value", payload) is None
    with pytest.raises(UnreadableError):
        decoder.side("s", "value", b"\0\0\0\0\1\2")
    decoder = payload_decoder("auto", [str(tmp_path), "-"], Wanted())
    assert decoder.side("s", "value", b"\0\0\0\0\1\2")["data"] == 1
