"""Splits to Arrow batches, without a Spark session: every record of every golden segment, for any splits."""

import errno
import json
import os
from contextlib import suppress
from itertools import groupby, pairwise
from pathlib import Path
from unittest.mock import Mock

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kdump[spark]'")

from kdump.arrow import schema
from kdump.errors import SILENT, DamageError, FailingDiskError, UnreadableError
from kdump.formats import partition_metadata, txn_index
from kdump.log_dirs import local
from kdump.log_dirs.finder import Finder
from kdump.log_reader import header_scan
from kdump.log_reader.filter import Filter
from kdump.log_reader.reader import PartitionReader
from kdump.records.record_batch import RecordBatch
from kdump.rows.selection import SelectedBatch
from kdump.segments import resync as segments_read
from kdump.segments import walk as log
from kdump.spark.source import options as words
from kdump.spark.source import planning, reading
from testing import GOLDEN, forge
from testing.processes import kdump

FOLDERS = sorted({path.parent for path in (GOLDEN / "brokers").rglob("*.log")})
DAMAGED = sorted({path.parent for path in (GOLDEN / "damaged").rglob("*.log")})


def plan(path, **given):
    given = {"mode": "PERMISSIVE", **given}
    options = words.parse({"path": str(path), **{name: str(value) for name, value in given.items()}})
    return [split for planned in planning.plan(options) for split in planned.splits], options


def read(path, **given):
    splits, options = plan(path, **given)
    return [row for batch in reading.read_all(splits, options) for row in batch.to_pylist()]


def straight(path):
    """Return every record of a folder's segments, read by kdump's own stream."""
    for file in sorted(path.glob("[0-9]*.log")):
        with local.LocalFile(file) as source:
            for batch in segments_read.read(source, on_error="resync"):
                if isinstance(batch, RecordBatch):
                    with suppress(DamageError):
                        for record in batch.records():
                            yield batch, record, str(file)


def test_names_that_are_no_text_are_escaped_in_rows(tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/t\xff-0"))
    folder.mkdir()
    sound = forge.batch([forge.record(b"k", b"v")])
    (folder / "00000000000000000000.log").write_bytes(sound + forge.batch([forge.record(b"k", b"v")], crc=1) + sound)
    name = f"{tmp_path}/t\\xff-0/00000000000000000000.log"
    for output in ("records", "damaged", "account"):
        rows = read(tmp_path, output=output)
        assert {(row["topic"], row["partition"], row["file"]) for row in rows} == {("t\\xff", 0, name)}
    (planned,) = planning.plan(words.parse({"path": str(tmp_path)}))
    assert (planned.name, planned.topic) == (name, "t\\xff")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_rows_hold_what_the_records_hold(folder):
    rows = read(folder, includeControl=True)
    expected = list(straight(folder))
    assert len(rows) == len(expected)
    for row, (batch, record, file) in zip(rows, expected, strict=True):
        assert (row["key"], row["value"], row["offset"]) == (record.key, record.value, record.offset)
        assert [(item["key"].encode(), item["value"]) for item in row["headers"]] == list(record.headers)
        assert (row["timestampMs"], row["timestampType"]) == (record.timestamp, batch.timestamp_type)
        assert (row["file"], row["position"], row["magic"]) == (file, batch.position, batch.magic)
        assert (row["sequence"], row["leaderEpoch"]) == (record.sequence, batch.partition_leader_epoch)
        assert row["isControl"] is batch.is_control
        assert (row["controlType"] is not None) is batch.is_control
        shown = row["timestamp"]
        assert (None if shown is None else round(shown.timestamp() * 1000)) == (
            None if record.timestamp == -1 else record.timestamp
        )


@pytest.mark.parametrize("folder", DAMAGED, ids=lambda path: path.name)
def test_every_byte_of_a_damaged_segment_is_in_one_row_of_the_account(folder):
    for row in read(folder, output="account"):
        reported = row["batchBytes"] + row["damagedBytes"] + row["paddingBytes"] + row["trailingBytes"]
        assert reported == row["end"] - row["start"]
    lost = read(folder, output="damaged")
    assert sum(row["length"] for row in lost) == sum(
        row["damagedBytes"] + row["trailingBytes"] for row in read(folder, output="account")
    )
    for row in lost:
        with Path(row["file"]).open("rb") as file:
            file.seek(row["position"])
            assert file.read(row["length"]) == row["bytes"]
        assert row["reason"]
    assert len(read(folder, includeControl=True)) == len(list(straight(folder)))


def large(folder, *, batches=60, index=True):
    """A segment of many small batches, and its index."""
    folder.mkdir(parents=True)
    position, data, entries = 0, b"", b""
    for number in range(batches):
        records = [forge.record(b"k%d" % n, b"v" * 50, offset=n, timestamp=n) for n in range(10)]
        time = 1_700_000_000_000 + number * 1000
        made = forge.batch(records, base_offset=number * 10, base_timestamp=time, max_timestamp=time + 9)
        if number % 4 == 3:
            entries += (number * 10 + 9).to_bytes(4, "big") + position.to_bytes(4, "big")
        data += made
        position += len(made)
    (folder / "00000000000000000000.log").write_bytes(data)
    if index:
        (folder / "00000000000000000000.index").write_bytes(entries)
    return data


@pytest.mark.parametrize("index", [True, False])
def test_a_large_segment_is_split_at_batches_and_each_batch_is_in_one_split(tmp_path, index):
    data = large(tmp_path / "t-0", index=index)
    splits, _ = plan(tmp_path, splitBytes=6000)
    assert len(splits) > 4
    assert splits[0].start == 0
    assert splits[-1].end == len(data)
    assert all(one.end == other.start for one, other in pairwise(splits))
    rows = read(tmp_path, splitBytes=6000)
    assert [row["offset"] for row in rows] == list(range(600))
    assert rows == read(tmp_path)


def test_a_wrong_index_is_not_believed(tmp_path):
    large(tmp_path / "t-0")
    index = tmp_path / "t-0" / "00000000000000000000.index"
    index.write_bytes(b"".join(n.to_bytes(4, "big") + (n * 77).to_bytes(4, "big") for n in range(1, 400)))
    assert [row["offset"] for row in read(tmp_path, splitBytes=6000)] == list(range(600))


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("damage", [b"\0" * 4000, b"\xff" * 4000, b"\0" * 8 + b"\x7f\xff\xff\xff", b"\1" * 30])
def test_splits_of_a_damaged_segment_report_the_same_as_the_whole(tmp_path, damage, index):
    data = bytearray(large(tmp_path / "t-0", index=index))
    path = tmp_path / "t-0" / "00000000000000000000.log"
    for position in range(0, len(data) - len(damage), len(data) // 7):
        broken = bytes(data[:position]) + damage + bytes(data[position + len(damage) :])
        path.write_bytes(broken)
        assert read(tmp_path, splitBytes=6000) == read(tmp_path)
        ranges = [(row["position"], row["length"]) for row in read(tmp_path, output="damaged", splitBytes=6000)]
        assert merged(ranges) == merged([(row["position"], row["length"]) for row in read(tmp_path, output="damaged")])


def merged(ranges):
    """Ranges that touch are one: a split may end inside a damaged range."""
    return sorted({byte for start, length in ranges for byte in range(start, start + length)})


def test_ends_are_exclusive_and_prune(tmp_path):
    large(tmp_path / "t-0")
    rows = read(tmp_path, startingOffset=15, endingOffset=25)
    assert [row["offset"] for row in rows] == list(range(15, 25))
    rows = read(tmp_path, startingTimestamp=1_700_000_001_003, endingTimestamp="2023-11-14T22:13:22.001")
    assert [row["timestampMs"] - 1_700_000_000_000 for row in rows] == [*range(1003, 1010), 2000]


def test_segments_outside_the_range_are_not_opened(tmp_path):
    folder = GOLDEN / "brokers" / "4.2.2" / "txn-0"
    bases = [int(path.stem) for path in sorted(folder.glob("*.log"))]
    assert len(bases) > 3
    splits, _ = plan(folder, startingOffset=bases[2], endingOffset=bases[3])
    assert [split.name[-24:-4] for split in splits] == [f"{bases[2]:020}"]
    latest = max(row["timestampMs"] for row in read(folder, includeControl=True))
    splits, _ = plan(folder, startingTimestamp=latest + 1, columns="offset")
    assert len(splits) == 1, "the active segment's time index does not give the end"
    splits, _ = plan(folder, startingTimestamp=latest + 1)
    assert splits == [], "its headers do"


def test_failfast_names_file_and_position(tmp_path):
    data = bytearray(large(tmp_path / "t-0"))
    data[5000] ^= 1
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.write_bytes(data)
    with pytest.raises(UnreadableError) as error:
        read(tmp_path, mode="FAILFAST")
    (lost,) = read(tmp_path, output="damaged")
    assert str(error.value).startswith(f"{path}: byte {lost['at']}: the checksum is wrong")
    assert read(tmp_path, output="damaged", mode="DROPMALFORMED") == []
    assert (lost["missingFrom"], lost["missingUntil"]) == (lost["missingFrom"], lost["missingFrom"] + 10)


def closed(folder):
    """A log dir with one readable segment and one that is a broken link."""
    (folder / "t-0").mkdir()
    good = folder / "t-0" / f"{0:020}.log"
    good.write_bytes(forge.batch([forge.record(b"k", b"v")]))
    (folder / "t-0" / f"{1:020}.log").symlink_to(folder / "nowhere")
    return good, str(folder / "t-0" / f"{1:020}.log")


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED", "FAILFAST"])
@pytest.mark.parametrize("given", [{}, {"columns": "offset"}, {"output": "damaged"}, {"output": "account"}])
def test_a_file_that_cannot_be_opened_is_no_damage(tmp_path, given, mode):
    _, path = closed(tmp_path)
    for more in ({}, {"skipUnreadable": "true"}):
        with pytest.raises(UnreadableError, match=f"{path}: No such file"):
            read(tmp_path, mode=mode, **given, **more)


def test_a_file_that_vanishes_or_shrinks_after_planning_is_no_damage(tmp_path):
    path = tmp_path / "t-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(forge.batch([forge.record(b"k", b"v")]))
    size = path.stat().st_size
    splits, options = plan(tmp_path, output="account", skipUnreadable="true")
    path.write_bytes(path.read_bytes()[: size // 2])
    with pytest.raises(UnreadableError, match=f"the file ends at byte {size // 2}; it had at least {size} bytes"):
        list(reading.read(splits[0], options))
    path.unlink()
    with pytest.raises(UnreadableError, match=f"{path}: No such file"):
        list(reading.read(splits[0], options))


def test_only_a_failing_disk_may_be_skipped_and_only_where_that_is_asked_for(tmp_path, monkeypatch):
    large(tmp_path / "t-0")
    real = local.LocalFile.read
    kind = FailingDiskError

    def fails(self, position, size):
        if position + size > 20_000:
            raise kind(self.name, "Input/output error")
        return real(self, position, size)

    monkeypatch.setattr(log, "FIRST_BLOCK", 1 << 12)
    monkeypatch.setattr(log, "BLOCK", 1 << 12)
    monkeypatch.setattr(local.LocalFile, "read", fails)
    for mode in ("PERMISSIVE", "DROPMALFORMED", "FAILFAST"):
        for given in ({}, {"columns": "offset"}, {"output": "damaged"}, {"output": "account"}, {"output": "batches"}):
            with pytest.raises(UnreadableError, match="Input/output error"):
                read(tmp_path, mode=mode, **given)
    rows = read(tmp_path, skipUnreadable="true")
    assert [row["offset"] for row in rows] == list(range(len(rows)))
    assert 100 < len(rows) < 600
    (account,) = read(tmp_path, output="account", skipUnreadable="true")
    (lost,) = read(tmp_path, output="damaged", skipUnreadable="true")
    assert (lost["position"], lost["length"]) == (account["batchBytes"], account["unreadableBytes"])
    assert account["batchBytes"] + account["unreadableBytes"] == account["end"]
    kind = UnreadableError
    with pytest.raises(UnreadableError, match="Input/output error"):
        read(tmp_path, skipUnreadable="true")


def test_errors_of_a_failing_disk_are_distinguished_from_others(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"x")
    with local.LocalFile(tmp_path / "file") as source:
        for number, kind in ((errno.EIO, FailingDiskError), (errno.EACCES, UnreadableError)):
            monkeypatch.setattr(local.os, "pread", Mock(side_effect=OSError(number, os.strerror(number))))
            with pytest.raises(UnreadableError) as error:
                source.read(0, 1)
            assert type(error.value) is kind


def test_a_batch_that_was_half_written_when_its_file_was_listed_ends_no_job(tmp_path, capsys):
    path = tmp_path / "t-0" / f"{0:020}.log"
    path.parent.mkdir()
    batch = [forge.batch([forge.record(b"k", b"v")], base_offset=offset) for offset in range(3)]
    for cut in (9, 20, len(batch[1]) - 1):
        path.write_bytes(batch[0] + batch[1][:cut])
        planned = plan(tmp_path, mode="FAILFAST", columns="offset")
        with pytest.raises(UnreadableError, match="the file ends inside a batch"):
            list(reading.read_all(*planned))
        path.write_bytes(b"".join(batch))
        rows = [row for one in reading.read_all(*planned) for row in one.to_pylist()]
        assert (rows, capsys.readouterr().err) == ([{"offset": 0}], "")
        path.write_bytes(batch[0] + batch[1][:cut] + bytes([9]) * 500)
        with pytest.raises(UnreadableError, match="mode FAILFAST"):
            list(reading.read_all(*planned))


@pytest.mark.parametrize(("given", "mode"), [({}, "FAILFAST"), ({"output": "damaged"}, "PERMISSIVE")])
def test_damage_ends_a_read_of_records_by_default(given, mode):
    assert words.parse({"path": "x", **given}).mode == mode


def test_each_damaged_range_that_records_leave_out_is_reported(tmp_path, capsys):
    data = bytearray(large(tmp_path / "t-0"))
    data[5000] ^= 1
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.write_bytes(data)
    for mode in ("PERMISSIVE", "DROPMALFORMED"):
        read(tmp_path, mode=mode)
        said = capsys.readouterr().err
        assert said.startswith(f"kdump: {path}: byte ")
        assert "the checksum is wrong (found " in said
        assert said.count("\n") == 1


def test_a_path_that_was_named_must_be_there(tmp_path):
    closed(tmp_path)
    with pytest.raises(UnreadableError, match="nowhere: No such file or directory"):
        planning.plan(words.SourceOptions(paths=(str(tmp_path), str(tmp_path / "nowhere"))))


def test_chosen_columns_come_in_the_order_asked_for():
    splits, options = plan(GOLDEN / "brokers" / "4.2.2" / "c-lz4-0", columns="Offset,codec")
    (batch,) = [batch for split in splits[:1] for batch in reading.read(split, options)]
    assert batch.schema.names == ["offset", "codec"]
    assert set(batch.column("codec").to_pylist()) == {"lz4"}


@pytest.mark.parametrize("name", schema.RECORD_NAMES)
def test_each_column_alone_is_the_same_as_among_all(name):
    for folder in (GOLDEN / "brokers" / "4.2.2" / "txn-0", GOLDEN / "brokers" / "2.8.2" / "fmtmix-0"):
        alone = read(folder, columns=name, includeControl=True)
        assert alone == [{name: row[name]} for row in read(folder, includeControl=True)]


INTERNAL = sorted({path.parent for path in (GOLDEN / "brokers").rglob("__*/*.log") if path.stat().st_size})


@pytest.mark.parametrize("folder", INTERNAL, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_records_of_kafkas_own_topics_are_decoded_as_in_the_json_lines(folder):
    done = kdump("dump", "-o", "jsonl", "--decode", "auto", "--show-secrets", "--fields", "offset,decoded", folder)
    assert done.returncode == 0, done.stderr.decode()
    expected = [(line["offset"], line.get("decoded")) for line in map(json.loads, done.stdout.splitlines())]
    rows = read(folder, includeControl=True, decode="auto")
    assert list(rows[0]) == [*schema.RECORD_NAMES, "decoded"]
    found = [(row["offset"], row["decoded"] and json.loads(row["decoded"])) for row in rows]
    assert found == expected
    assert any(decoded for _, decoded in found)
    alone = read(folder, includeControl=True, decode="auto", columns="decoded")
    assert alone == [{"decoded": row["decoded"]} for row in rows]
    for row in rows:
        del row["decoded"]
    assert read(folder, includeControl=True) == rows


def test_topics_of_users_are_not_decoded():
    rows = read(GOLDEN / "brokers" / "4.2.2" / "txn-0", decode="auto")
    assert {row["decoded"] for row in rows} == {None}


def test_timestamps_outside_sparks_range_are_null_and_the_stored_number_stays(tmp_path):
    folder = tmp_path / "t-0"
    folder.mkdir()
    times = [-1, 0, 253_402_300_799_999, 253_402_300_800_000, -62_135_596_800_000, -62_135_596_800_001, 2**63 - 1]
    (folder / "00000000000000000000.log").write_bytes(
        b"".join(
            forge.batch([forge.record(None, b"")], base_offset=n, base_timestamp=time, max_timestamp=time)
            for n, time in enumerate(times)
        )
    )
    rows = read(tmp_path)
    assert [row["timestampMs"] for row in rows] == times
    assert [row["timestamp"] is not None for row in rows] == [False, True, True, False, True, False, False]
    assert {(row["key"], row["value"]) for row in rows} == {(None, b"")}


def test_checkpoints_of_the_log_dir_mark_records(tmp_path):
    large(tmp_path / "t-0")
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nt 0 595\n")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 5\n")
    rows = read(tmp_path / "t-0")
    assert [row["offset"] for row in rows if row["aboveHighWatermark"]] == list(range(595, 600))
    assert [row["offset"] for row in rows if row["belowLogStart"]] == list(range(5))


def test_a_huge_damaged_range_is_several_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "DAMAGED_BYTES", 1000)
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "00000000000000000000.log").write_bytes(b"\xff" * 2500)
    rows = read(tmp_path, output="damaged")
    assert [(row["position"], row["length"]) for row in rows] == [(0, 1000), (1000, 1000), (2000, 500)]
    assert len({key for key, _ in groupby(rows, lambda row: row["reason"])}) == 1


def replica(folder, *epochs):
    """A partition folder whose batches of ten offsets were written under these leader epochs; None is a hole."""
    (folder / "t-0").mkdir(parents=True)
    data = b""
    for number, epoch in enumerate(epochs):
        if epoch is not None:
            records = [forge.record(None, b"%s:%d" % (folder.name.encode(), epoch), offset=n) for n in range(10)]
            data += forge.batch(records, base_offset=number * 10, leader_epoch=epoch)
    (folder / "t-0" / "00000000000000000000.log").write_bytes(data)
    return folder


def test_of_replicas_the_highest_leader_epoch_wins_offset_by_offset(tmp_path):
    replica(tmp_path / "a", 0, 0, 2, None, 2)
    replica(tmp_path / "b", 0, 1, 1, 1, 1, 1)
    replica(tmp_path / "c", 0)
    rows = read(tmp_path, dedupe="true")
    assert sorted(row["offset"] for row in rows) == list(range(60))
    won = {row["offset"] // 10: row["value"].decode() for row in rows}
    assert won == {0: "a:0", 1: "b:1", 2: "a:2", 3: "b:1", 4: "a:2", 5: "b:1"}
    assert len(read(tmp_path)) == 110


def test_a_damaged_batch_is_taken_from_another_replica(tmp_path):
    replica(tmp_path / "a", 3, 3, 3)
    replica(tmp_path / "b", 3, 3, 3)
    path = tmp_path / "a" / "t-0" / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    rows = read(tmp_path, dedupe="true")
    assert sorted(row["offset"] for row in rows) == list(range(30))
    assert {row["offset"] for row in rows if row["value"] == b"b:3"} == set(range(10, 20))
    assert len(read(tmp_path, dedupe="true", output="damaged")) == 1


def segment(path, *values):
    """Write a segment with one batch for each value, from offset 0."""
    path.parent.mkdir(parents=True, exist_ok=True)
    batches = [forge.batch([forge.record(None, value)], base_offset=offset) for offset, value in enumerate(values)]
    path.write_bytes(b"".join(batches))
    return str(path)


def test_copies_of_a_log_without_a_name_are_read_once_and_other_logs_whole(tmp_path):
    name = f"{0:020}.log"
    segment(tmp_path / "some" / name, b"0", b"1")
    segment(tmp_path / "copy" / name, b"0", b"1", b"2")
    segment(tmp_path / "other" / name, b"3", b"4", b"5")
    assert sorted(row["value"] for row in read(tmp_path, dedupe="true")) == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert len(read(tmp_path)) == 8


def test_unnamed_logs_of_one_folder_are_not_replicas_by_their_offsets(tmp_path):
    paths = [segment(tmp_path / "a.log", b"0"), segment(tmp_path / "b.log", b"1"), segment(tmp_path / "c.log", b"0")]
    rows = read(paths[0], paths=json.dumps(paths[1:]), dedupe="true")
    assert sorted(row["value"] for row in rows) == [b"0", b"1"]


def test_folders_of_a_topic_and_its_namesake_are_not_replicas(tmp_path):
    """The topic was deleted and created again while a broker was away. Which one has no id is not known."""
    for number, name in enumerate("abc"):
        segment(tmp_path / name / "t-0" / f"{0:020}.log", b"%d" % number)
        if name != "c":
            topic_id = bytes(15) + bytes([number + 1])
            (tmp_path / name / "t-0" / "partition.metadata").write_bytes(
                partition_metadata.encode(partition_metadata.PartitionMetadata(0, topic_id))
            )
    assert sorted(row["value"] for row in read(tmp_path, dedupe="true")) == [b"0", b"1", b"2"]


def transactions(folder, *batches, roll=()):
    """A partition of batches ("data"|"commit"|"abort", producer id), one offset each; a new segment at ``roll``."""
    folder.mkdir(parents=True)
    for start, end in pairwise([0, *roll, len(batches)]):
        data = b""
        for offset, (what, producer) in enumerate(batches[start:end], start):
            control = what in ("commit", "abort")
            key = b"\0\0\0" + bytes([what == "commit"]) if control else b"k"
            value = b"\0\0\0\0\0\7" if control else b"v"
            data += forge.batch(
                [forge.record(key, value)],
                base_offset=offset,
                attributes=(0x10 if producer >= 0 else 0) | (0x20 if control else 0),
                producer_id=producer,
                producer_epoch=0 if producer >= 0 else -1,
            )
        (folder / f"{start:020}.log").write_bytes(data)


def test_the_state_of_a_transaction_is_known_wherever_its_marker_stands(tmp_path):
    batches = [("data", 1), ("data", 2), ("data", -1), ("abort", 1), ("data", 1), ("commit", 2), ("data", 3)]
    transactions(tmp_path / "t-0", *batches, ("commit", 1), ("data", -1), roll=(2, 4, 6))
    states = {row["offset"]: row["transactionState"] for row in read(tmp_path, splitBytes=80, includeControl=True)}
    assert list(states.values()) == [
        *("aborted", "committed", "none", "aborted", "committed", "committed", "open", "committed", "none"),
    ]
    committed = [row["offset"] for row in read(tmp_path, isolation="read_committed", splitBytes=80)]
    assert committed == [1, 2, 4], "nothing from the last stable offset, 6, on"
    assert [row["offset"] for row in read(tmp_path, splitBytes=80)] == [0, 1, 2, 4, 6, 8]


def test_an_index_stands_in_for_a_marker_that_cannot_be_read(tmp_path):
    transactions(tmp_path / "t-0", ("data", 1), ("abort", 1), ("data", 2), ("data", -1))
    path = tmp_path / "t-0" / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[len(data) // 4 + 60] ^= 1  # in the second batch, the marker
    path.write_bytes(data)
    assert [row["transactionState"] for row in read(tmp_path)] == [None, "open", "none"]
    assert read(tmp_path, isolation="read_committed") == []
    entry = txn_index.AbortedTxn(0, 1, 0, 1, 2)
    path.with_suffix(".txnindex").write_bytes(txn_index.encode([entry]))
    assert [row["transactionState"] for row in read(tmp_path)] == ["aborted", "open", "none"]
    path.with_suffix(".txnindex").write_bytes(txn_index.encode([entry._replace(producer_id=2, last_offset=3)]))
    notes = []
    options = words.parse({"path": str(tmp_path), "isolation": "read_committed"})
    planning.plan(options, notes.append)
    assert [note.partition(": ")[2] for note in notes] == [
        "an entry is wrong: the log has no abort marker of producer 2 at offset 3; kdump does not use this file",
        "1 transaction is open; read_committed ends at the last stable offset, 2",
        "kdump did not read the bytes that show whether transactions at offsets 0 to 0 were committed; "
        "read_committed leaves out their records at these offsets",
    ]


def test_what_may_have_ended_in_a_segment_that_cannot_be_read_is_not_given_as_committed(tmp_path, monkeypatch):
    transactions(tmp_path / "t-0", ("data", 1), ("data", 2), ("abort", 1), ("data", 1), ("commit", 1), roll=(2, 3))
    real = local.LocalFile.read
    kind = UnreadableError

    def reads(self, position, size):
        if self.name.endswith(f"{2:020}.log"):
            raise kind(self.name, "Input/output error")
        return real(self, position, size)

    monkeypatch.setattr(local.LocalFile, "read", reads)
    with pytest.raises(UnreadableError, match="Input/output error"):  # a task might be able to read it again
        plan(tmp_path)
    kind = FailingDiskError
    for given in ({}, {"isolation": "read_committed"}):
        with pytest.raises(UnreadableError, match="Input/output error"):
            read(tmp_path, **given)
    rows = read(tmp_path, skipUnreadable="true")
    assert [(row["offset"], row["transactionState"]) for row in rows] == [(0, None), (1, None), (3, "committed")]
    assert [row["offset"] for row in read(tmp_path, isolation="read_committed", skipUnreadable="true")] == [3]
    (partition,) = Finder().find([str(tmp_path)])
    found = PartitionReader(filter=Filter(committed=True), report=SILENT).read(partition)
    assert [record.offset for item in found if isinstance(item, SelectedBatch) for record in item.records] == [3]
    index = tmp_path / "t-0" / f"{2:020}.txnindex"
    index.write_bytes(txn_index.encode([txn_index.AbortedTxn(0, 1, 0, 2, 3)]))
    rows = read(tmp_path, skipUnreadable="true")
    assert [row["transactionState"] for row in rows] == ["aborted", None, "committed"]


def test_what_ends_in_a_segment_that_was_not_named_is_not_known(tmp_path):
    transactions(tmp_path / "t-0", ("data", 1), ("abort", 1), roll=(1,))
    assert [row["transactionState"] for row in read(tmp_path / "t-0" / f"{0:020}.log")] == [None]


def test_outcomes_are_those_of_the_whole_partition_however_it_is_pruned(tmp_path):
    transactions(tmp_path / "t-0", ("data", 1), ("data", 1), ("data", -1), ("abort", 1), ("data", -1), roll=(1, 2, 3))
    rows = read(tmp_path, startingOffset=1, endingOffset=2)
    assert [(row["offset"], row["transactionState"]) for row in rows] == [(1, "aborted")]


def test_the_survey_gives_the_rows_that_are_read():
    for folder in FOLDERS:
        splits, options = plan(folder)
        for split in splits:
            reported = split.summary
            rows = sum(batch.num_rows for batch in reading.read(split, options))
            assert reported.counts_known
            assert rows == reported.records - reported.control_records, split.name
            assert (
                reported.batch_bytes + reported.padding_bytes + reported.trailing_bytes + reported.damaged_bytes
                == split.size
            )


def test_a_batch_beyond_the_limit_is_damage(tmp_path):
    folder = tmp_path / "t-0"
    folder.mkdir()
    small, large = (forge.batch([forge.record(None, b"v" * size)], base_offset=size) for size in (10, 500))
    (folder / f"{0:020}.log").write_bytes(small + large)
    assert len(read(tmp_path)) == 2
    assert [row["offset"] for row in read(tmp_path, maxBatchBytes=400)] == [10]
    (lost,) = read(tmp_path, maxBatchBytes=400, output="damaged")
    assert lost["position"] == len(small)


@pytest.mark.parametrize("split_bytes", [1, 300, 1 << 20])
def test_batches_in_no_transaction_are_counted_at_once_as_one_by_one(tmp_path, monkeypatch, split_bytes):
    def batch(offset, size=200, **given):
        return forge.batch([forge.record(None, b"v" * size)] * 2, base_offset=offset, max_timestamp=offset, **given)

    plain = [batch(0), batch(2, 9000), batch(40), batch(20, 5000), batch(50, crc=1), batch(60, 1)]
    logs = {
        0: [],
        1: plain,
        2: [*plain, batch(70, attributes=0x10, producer_id=1, producer_epoch=0), batch(72)],
        3: [*plain, batch(70, magic=7)],
        4: [*plain[:4], bytes(100)],
        5: [*plain[:4], b"\xff" * 100, batch(70)],
        6: [*plain[:4], batch(70)[:-1]],
        7: [*plain[:4], batch((1 << 63) - 1)],
        8: [batch(0, 10), *plain],
    }
    for base, batches in logs.items():
        (tmp_path / f"{base:020}.log").write_bytes(b"".join(batches))
    found = list(Finder().find([str(tmp_path), *map(str, FOLDERS)]))
    segments = [segment for partition in found for segment in partition.segments]
    assert len(segments) > 100
    fast = [header_scan.survey(segment, split_bytes) for segment in segments]
    assert any(len(reported.chunks) > 1 for reported in fast) == (split_bytes < 1 << 20)
    monkeypatch.setattr(header_scan, "_plain", lambda *_: 0)
    assert [header_scan.survey(segment, split_bytes) for segment in segments] == fast


def test_of_large_batches_only_headers_are_read_to_plan(tmp_path, monkeypatch):
    batches = [forge.batch([forge.record(None, b"v" * 50_000)], base_offset=offset) for offset in range(40)]
    (tmp_path / f"{0:020}.log").write_bytes(b"".join(batches))
    sizes, real = [], local.LocalFile.read

    def pread(self, position, size):
        data = real(self, position, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(local.LocalFile, "read", pread)
    (planned,) = planning.plan(words.parse({"path": str(tmp_path)}))
    assert planned.splits[0].summary.batches == 40
    assert sum(sizes) < len(b"".join(batches)) // 10
