import json

import pytest

from kdump.formats.record import Header
from kdump.log_reader.filter import DecodedSearch
from testing import forge
from testing.processes import kdump
from tests.helpers import log_dirs
from tests.schemas.test_store import schema


class Decoder:
    """A decoder of JSON texts."""

    def side(self, topic, _side, payload, _headers):
        assert topic == "t"
        return None if payload is None or payload[:1] != b"\0" else {"data": json.loads(payload[1:])}


class One:
    headers: tuple[Header, ...] = ()

    def __init__(self, key, value=None):
        self.key, self.value = key, value


@pytest.mark.parametrize(
    ("key", "names"),
    [
        (b'\0"a"', {b'"a"', b"a"}),
        (b"\x0017", {b"17"}),
        (b'\0{"a": 1}', {b'{"a":1}'}),
        (b'\0"\xc3\xbc"', {'"ü"'.encode(), "ü".encode()}),
        (b"a", set()),
        (None, set()),
    ],
)
def test_keys(key, names):
    assert DecodedSearch(Decoder(), "t").keys(One(key)) == names


def test_texts_are_those_of_both_sides():
    search = DecodedSearch(Decoder(), "t")
    assert search.texts(One(b"\x001", b'\0{"b": [1, 2]}')) == (b"1", b'{"b":[1,2]}')
    assert search.texts(One(b"x", b'\0"\\ud800"')) == (b'"\xed\xa0\x80"',)
    assert search.texts(One(None, None)) == ()


@pytest.fixture
def logs(tmp_path):
    """A topic of Avro values, and a topic with their schemas; every third value is not Avro."""
    text = '{"type":"record","name":"R","fields":[{"name":"name","type":"string"},{"name":"n","type":"int"}]}'
    log_dirs.write(tmp_path, "_schemas-0", {0: forge.batch([forge.record(*schema("t-value", 1, 1, text))])})
    values = [b"\0\0\0\0\1\x08" + b"nam%d" % n + bytes([2 * n]) for n in range(8)]
    values[3] = b"nam3 as text"
    records = [forge.record(b"k%d" % n, value, offset=n) for n, value in enumerate(values)]
    log_dirs.write(tmp_path, "t-0", {0: forge.batch(records)})
    return tmp_path


def found(logs, *arguments):
    done = kdump("dump", logs, "--topic", "t", "-o", "jsonl", *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line)["offset"] for line in done.stdout.splitlines()]


def test_grep_finds_decoded_fields_and_bytes(logs):
    assert found(logs, "--grep", '"n":5') == []
    assert found(logs, "--grep", '"n":5', "--decode", "auto") == [5]
    assert found(logs, "--grep", "nam3", "--decode", "auto") == [3]
    assert found(logs, "--grep", '"name":"nam[12]","n":[12]}', "--decode", "auto") == [1, 2]


def test_it_goes_with_other_filters_and_forms(logs):
    assert found(logs, "--grep", '"n":', "--decode", "auto", "--key", "k5") == [5]
    assert found(logs, "--grep", '"n":', "--decode", "avro", "--offset", "2..4") == [2, 4]
    done = kdump("dump", logs, "--topic", "t", "--grep", '"n":[67]', "--decode", "auto", "--count")
    assert done.stdout == b"2\n"
    assert kdump("dump", logs, "--topic", "t", "--decode", "auto", "--count").returncode == 2
