import os

import pytest

from kdump.errors import Reporter
from kdump.formats.partition_metadata import ZERO_ID, PartitionMetadata, encode
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_reader.registry_topic import read_store
from kdump.log_reader.topic_ids import newest_ids, of_present_topics
from testing import forge
from testing.processes import kdump
from tests.helpers.asking import ask
from tests.helpers.log_dirs import replica
from tests.helpers.segments import data
from tests.log_reader.test_registry_topic import segment

OLD, NEW = bytes(range(16)), bytes(range(1, 17))


def folder(path, topic_id, log, *, name="orders-0", written=0):
    made = replica(path, {0: log}, name=name)
    if topic_id is not None:
        (made / "partition.metadata").write_bytes(encode(PartitionMetadata(0, topic_id)))
    os.utime(made / f"{0:020}.log", (written, written))
    return made


def found(*log_dirs):
    return list(Finder(Wanted(siblings=True)).find([str(one) for one in log_dirs]))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (data(0, 9, timestamp=1000, leader_epoch=9), data(0, 5, timestamp=2000, leader_epoch=0), "records"),
        (b"", data(0), "records"),
        (data(0, 9, timestamp=2000), data(0, 5, timestamp=2000), "files"),
        (b"", b"", "files"),
    ],
)
def test_the_newest_topic_has_the_newest_records_then_files(tmp_path, old, new, why):
    files = why == "files"
    stale = folder(tmp_path / "1", OLD, old, written=1 if files else 3)
    present = folder(tmp_path / "2", NEW, new, written=2)
    unknown, zero = folder(tmp_path / "3", None, old), folder(tmp_path / "4", ZERO_ID, old)
    notes = []
    left = of_present_topics(found(*sorted(tmp_path.iterdir())), notes.append)
    assert [one.folder for one in left] == [str(present), str(unknown), str(zero)]
    [text] = notes
    assert text.startswith(f"{stale}: left out, because its topic id is AAECAwQFBgcICQoLDA0ODw, but orders has")
    assert text.endswith(f" in {present}, whose {why} are newer")


def test_folders_of_one_log_dir_are_not_read(tmp_path):
    folder(tmp_path, OLD, data(0), name="orders-0")
    folder(tmp_path, NEW, data(0), name="orders-1")
    assert newest_ids(found(tmp_path)) == {}


@pytest.mark.parametrize("jobs", [(), ("--jobs", "2")])
@pytest.mark.parametrize(
    ("command", "options", "expected"),
    [
        ("offsets", (), {"offsets": [5]}),
        ("producers", (), {}),
        ("transactions", (), {}),
        ("retention", (), {"topic": [None], "segment": [5]}),
        ("compaction", ("--config", "orders:cleanup.policy=compact"), {"partition": [0]}),
        ("stats", (), {"stats": [10, 5], "producer": [5]}),
    ],
)
def test_questions_are_about_the_newest_topic(tmp_path, command, options, expected, jobs):
    log = data(0, 9, leader_epoch=9) + data(9, producer=7, leader_epoch=9)
    stale = folder(tmp_path / "1", OLD, log)
    folder(tmp_path / "2", NEW, data(0, 5, timestamp=2000, leader_epoch=0))
    lines, said = ask(command, tmp_path / "1", tmp_path / "2", *options, *jobs)
    numbers = {}
    for line in lines:
        count = next((line[name] for name in ("latest", "nextOffset", "records") if name in line), None)
        numbers.setdefault(line["kind"], []).append(count)
    assert numbers == expected
    assert said.count(f"note: {stale}: left out") == 1


def test_schemas_of_a_deleted_registry_topic_are_left_out(tmp_path):
    folder(tmp_path / "1", OLD, segment(1, 2, base=0), name="_schemas-0", written=1)
    folder(tmp_path / "2", NEW, segment(3, base=0), name="_schemas-0", written=2)
    notes = []
    store = read_store([str(tmp_path / "1"), str(tmp_path / "2")], report=Reporter(note=notes.append))
    assert [one.version for one in store.versions()] == [3]
    assert len(notes) == 1


def test_connectors_of_a_deleted_configs_topic_are_left_out(tmp_path):
    def configs(name, timestamp):
        record = forge.record(f"connector-{name}".encode(), b'{"properties":{"connector.class":"X"}}')
        return forge.batch([record], base_timestamp=timestamp)

    folder(tmp_path / "1", OLD, configs("old", 1000), name="connect-configs-0")
    folder(tmp_path / "2", NEW, configs("new", 2000), name="connect-configs-0")
    done = kdump("connect", tmp_path / "1", tmp_path / "2", "-o", "csv")
    assert b"new" in done.stdout
    assert b"old" not in done.stdout
    assert b"connect-configs-0: left out" in done.stderr
