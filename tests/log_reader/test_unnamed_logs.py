"""Logs whose folders give no topic: those of Kafka's own topics are recognized by their records, in every command."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest

import kdump
from kdump.internal_topics.decode import TOPICS
from kdump.log_dirs.finder import Finder
from kdump.log_reader.unnamed_logs import may_be_of, own_topic
from kdump.questions import PartitionOffsets, PartitionStatistics, ProducerStatistics
from testing import GOLDEN, forge
from testing.processes import kdump as run

BROKERS = GOLDEN / "brokers"
OWN = sorted({folder.name.rpartition("-")[0] for folder in (BROKERS / "4.2.2").glob("__*-0")})
CONNECT_SECRET = b"sEcReT"


def loose(folder: Path, source: Path) -> Path:
    """Return a copy of a folder's largest segment, in a folder without a topic."""
    log = max(source.glob("*.log"), key=lambda path: path.stat().st_size)
    folder.mkdir(parents=True)
    return Path(shutil.copy(log, folder / "some.log"))


def forged(folder: Path, *records: bytes) -> Path:
    folder.mkdir(parents=True)
    log = folder / f"{0:020}.log"
    log.write_bytes(forge.batch(list(records)))
    return log


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    for name in ("connect", "registries"):
        with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
            archive.extractall(folder / name, filter="data")
    return folder


def test_the_logs_of_brokers_are_recognized_by_their_records():
    found = [one for one in Finder().find([str(BROKERS)]) if one.size and one.topic is not None]
    assert {one.topic for one in found} >= set(OWN) - {"__remote_log_metadata"}
    for one in found:
        assert own_topic(one) == (one.topic if one.topic in TOPICS else None), one.name
        assert may_be_of("__cluster_metadata", one) == (one.topic == "__cluster_metadata"), one.name


@pytest.mark.parametrize("damage", ["first batch", "garbage before", "cut"])
def test_damage_at_the_start_hides_no_topic(tmp_path, damage):
    log = loose(tmp_path / "some", BROKERS / "4.2.2" / "__consumer_offsets-0")
    data = bytearray(log.read_bytes())
    if damage == "first batch":
        data[70] ^= 1
    log.write_bytes({"garbage before": b"\7" * 100 + data, "cut": data[: len(data) // 2]}.get(damage, bytes(data)))
    (found,) = Finder().find([str(log)])
    assert own_topic(found) == "__consumer_offsets"


def test_without_a_readable_record_nothing_is_known(tmp_path):
    log = tmp_path / "some.log"
    for data in (b"", bytes(500), b"\7" * 60, forge.batch([forge.record(b"k", b"v")])[:-3]):
        log.write_bytes(data)
        for found in Finder().find([str(log)]):
            assert own_topic(found) is None
            assert may_be_of("__cluster_metadata", found)


def test_each_command_reads_a_loose_segment_of_its_topic(tmp_path, unpacked):
    logs = {topic: loose(tmp_path / topic[2:5], BROKERS / "4.2.2" / f"{topic}-0") for topic in OWN}
    done = run("groups", logs["__consumer_offsets"], "-o", "jsonl")
    assert done.returncode == 0
    assert b'"groupId":"classic-1"' in done.stdout
    assert b"some.log is read as __consumer_offsets-0: its folder is not named TOPIC-PARTITION" in done.stderr
    assert b"share-1" in run("groups", logs["__share_group_state"], "-o", "jsonl").stdout
    assert b"ctx-0" in run("transactions", logs["__transaction_state"], "-o", "jsonl").stdout
    assert run("metadata", logs["__cluster_metadata"]).stdout.startswith(b"Image of the records below offset 390")
    schemas = loose(tmp_path / "schemas", next(unpacked.glob("registries/**/_schemas-0")))
    assert run("schemas", schemas, "-o", "jsonl").stdout.count(b"\n") > 3
    connect = loose(tmp_path / "connect", unpacked / "connect" / "connect" / "logs" / "connect-configs-0")
    assert b'"sink-2"' in run("connect", connect, "-o", "jsonl").stdout
    groups = [line.group_id for line in kdump.groups(logs["__consumer_offsets"]) if type(line).__name__ == "GroupLine"]
    assert groups == ["classic-1", "newproto"]


@pytest.mark.parametrize(
    "topic", [topic for topic in OWN if topic not in {"__cluster_metadata", "__remote_log_metadata"}]
)
def test_another_log_is_no_metadata_log(tmp_path, topic):
    done = run("metadata", loose(tmp_path / "some", BROKERS / "4.2.2" / f"{topic}-0"))
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"no metadata log is here" in done.stderr


def test_two_loose_segments_are_two_partitions(tmp_path):
    for number in (0, 1):
        loose(tmp_path / f"some{number}", BROKERS / "4.2.2" / f"__consumer_offsets-{number}")
    paths = sorted(tmp_path.glob("*/some.log"))
    both = run("groups", *paths, "-o", "jsonl").stdout
    each = [run("groups", path, "-o", "jsonl").stdout for path in paths]
    assert both.count(b'"kind":"GROUP"') == sum(one.count(b'"kind":"GROUP"') for one in each)


def test_two_copies_of_a_loose_segment_are_one_partition(tmp_path):
    """A replica may lack the end, and another partition is still another one."""
    whole = loose(tmp_path / "a", BROKERS / "4.2.2" / "__consumer_offsets-0")
    shorter = loose(tmp_path / "b", BROKERS / "4.2.2" / "__consumer_offsets-0")
    shorter.write_bytes(shorter.read_bytes()[: whole.stat().st_size * 2 // 3])
    other = loose(tmp_path / "c", BROKERS / "4.2.2" / "__consumer_offsets-1")
    alone = run("groups", whole, other, "-o", "jsonl").stdout
    for paths in ([whole, shorter, other], [shorter, whole, other], [whole, whole.parent, other]):
        assert run("groups", *paths, "-o", "jsonl").stdout == alone
    assert kdump.groups([whole, shorter]).lines == kdump.groups(whole).lines


@pytest.mark.parametrize("name", ["copy.log", f"{0:020} (copy).log"])
@pytest.mark.parametrize(("folder", "second"), [("t-0", "t-0"), ("some", "some"), ("some", "other")])
def test_an_answer_counts_copies_of_a_log_once(tmp_path, folder, second, name):
    """Copies in one folder, or in several without a name: a copy has the same batches."""
    one = forged(tmp_path / folder, *(forge.record(b"k", b"v", offset=number) for number in range(2)))
    other = tmp_path / second / name
    other.parent.mkdir(exist_ok=True)
    shutil.copy(one, other)
    found = kdump.stats([one, other])
    assert [line.records for line in found.of(PartitionStatistics)] == [2, 2]
    assert [line.records for line in found.of(ProducerStatistics)] == [2]
    assert len(kdump.offsets([one, other]).of(PartitionOffsets)) == 1
    assert len(list(kdump.open([one, other]))) == 2
    assert len(list(kdump.open([one, other], every_replica=True))) == 4


def test_different_logs_of_one_folder_are_different_partitions(tmp_path):
    one = forged(tmp_path / "some", forge.record(b"k", b"0"))
    other = one.with_name("other.log")
    other.write_bytes(forge.batch([forge.record(b"k", b"1", offset=number) for number in range(2)]))
    found = kdump.offsets([one, other]).of(PartitionOffsets)
    assert sorted((line.partition, line.latest) for line in found) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "__cluster_metadata"])
def test_a_loose_segment_is_decoded_as_in_its_folder(tmp_path, topic):
    folder = BROKERS / "4.2.2" / f"{topic}-0"
    log = loose(tmp_path / "some", folder)
    outputs = [run("dump", path, "-o", "jsonl", "--decode", "auto").stdout for path in (log, folder)]
    first, second = ([json.loads(line).get("decoded") for line in output.splitlines()] for output in outputs)
    assert first == second[: len(first)]
    assert any(first)
    table = tmp_path / "table.parquet"
    run("dump", log, "-o", "parquet", "--out", table, "--decode", "auto", "--show-secrets")
    found = pytest.importorskip("pyarrow.parquet").read_table(table).column("decoded").to_pylist()
    assert [made is None for made in found] == [made is None for made in first]
    text = run("dump", log, "--decode", "auto", "--tail", "1").stdout
    assert b"decoded value (" in text
    assert b"schema-missing" not in text


@pytest.mark.parametrize(
    "options", [(), ("-o", "jsonl"), ("-o", "csv"), ("-o", "raw"), ("-f", "%s"), ("--decode", "auto")]
)
def test_a_loose_segment_of_connect_keeps_its_passwords(tmp_path, unpacked, options):
    log = loose(tmp_path / "some", unpacked / "connect" / "connect" / "logs" / "connect-configs-0")
    assert CONNECT_SECRET in log.read_bytes()
    done = run("dump", log, *options)
    assert done.returncode == 0
    assert CONNECT_SECRET not in done.stdout
    assert CONNECT_SECRET in run("dump", log, *options, "--show-secrets").stdout


def test_get_keeps_them_too(tmp_path, unpacked):
    log = loose(tmp_path / "some", unpacked / "connect" / "connect" / "logs" / "connect-configs-0")
    for words in (
        ("get", "@4", "--in", log),
        ("get", "@4", "--in", log, "-o", "jsonl"),
        ("get", "@4", "--in", log, "--hexdump"),
    ):
        done = run(*words)
        assert done.returncode == 0
        assert CONNECT_SECRET not in done.stdout


@pytest.mark.parametrize("value", [b'{"a": 1}', b"plain", b'{"payload": [1]}', b"{", None])
def test_values_of_other_topics_with_such_keys_stay(tmp_path, value):
    log = forged(tmp_path / "some", forge.record(b"task-1", value))
    (record,) = (json.loads(line) for line in run("dump", log, "-o", "jsonl").stdout.splitlines())
    assert record["value"] == (None if value is None else value.decode())


@pytest.mark.parametrize("name", [f"{0:020}.index", "leader-epoch-checkpoint"])
def test_a_named_file_without_records_is_no_empty_log(name):
    path = BROKERS / "4.2.2" / "c-none-0" / name
    for command in ("offsets", "stats", "transactions", "ls"):
        done = run(command, path, "-o", "jsonl")
        assert done.stdout == b"", command
        assert f"note: {path} is left out: it holds no records (kdump".encode() in done.stderr
    assert kdump.offsets(path).notes[0].startswith(f"{path} is left out: it holds no records")
    assert run("report", path).stderr.count(b"is left out") == 1
