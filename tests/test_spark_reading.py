"""Splits to Arrow batches, without a Spark session: every record of every golden segment, however it is cut."""

from itertools import groupby, pairwise
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kdump[spark]'")

from kdump import segment as log  # noqa: E402  after the skip
from kdump.errors import DamageError, UnreadableError  # noqa: E402
from kdump.pieces import RecordBatch  # noqa: E402
from kdump.spark_source import options as words  # noqa: E402
from kdump.spark_source import planning, reading, schema  # noqa: E402
from tests import forge  # noqa: E402
from tests.support import GOLDEN  # noqa: E402

FOLDERS = sorted({path.parent for path in (GOLDEN / "brokers").rglob("*.log")})
DAMAGED = sorted({path.parent for path in (GOLDEN / "damaged").rglob("*.log")})


def plan(path, **given):
    options = words.parse({"path": str(path), **{name: str(value) for name, value in given.items()}})
    return planning.plan(options), options


def read(path, **given):
    splits, options = plan(path, **given)
    return [row for split in splits for batch in reading.read(split, options) for row in batch.to_pylist()]


def straight(path):
    """Every record of a folder's segments as kdump's own stream tells it, whole batches only."""
    for file in sorted(path.glob("[0-9]*.log")):
        with log.LocalFile(file) as source:
            for batch in log.read(source, on_error="resync"):
                if isinstance(batch, RecordBatch):
                    try:
                        records = list(batch.records())
                    except DamageError:
                        continue
                    yield from ((batch, record, str(file)) for record in records)


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
        told = row["batchBytes"] + row["damagedBytes"] + row["paddingBytes"] + row["trailingBytes"]
        assert told == row["end"] - row["start"]
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
        made = forge.batch(records, base_offset=number * 10, base_timestamp=1_700_000_000_000 + number * 1000)
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
def test_splits_of_a_damaged_segment_tell_what_the_whole_tells(tmp_path, damage, index):
    data = bytearray(large(tmp_path / "t-0", index=index))
    path = tmp_path / "t-0" / "00000000000000000000.log"
    for position in range(0, len(data) - len(damage), len(data) // 7):
        broken = bytes(data[:position]) + damage + bytes(data[position + len(damage) :])
        path.write_bytes(broken)
        assert read(tmp_path, splitBytes=6000) == read(tmp_path)
        ranges = [(row["position"], row["length"]) for row in read(tmp_path, output="damaged", splitBytes=6000)]
        assert merged(ranges) == merged([(row["position"], row["length"]) for row in read(tmp_path, output="damaged")])


def merged(ranges):
    """Ranges that touch are one: a split may end inside a damaged stretch."""
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
    splits, _ = plan(folder, startingTimestamp=latest + 1)
    assert len(splits) == 1, "the active segment's time index does not tell the end"


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


def test_a_huge_damaged_stretch_is_several_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "DAMAGED_BYTES", 1000)
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "00000000000000000000.log").write_bytes(b"\xff" * 2500)
    rows = read(tmp_path, output="damaged")
    assert [(row["position"], row["length"]) for row in rows] == [(0, 1000), (1000, 1000), (2000, 500)]
    assert len({key for key, _ in groupby(rows, lambda row: row["reason"])}) == 1
