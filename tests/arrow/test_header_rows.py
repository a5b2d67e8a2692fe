"""Batch headers as Arrow: the columns of ``kdump dump --batches``, without the records."""

import json

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kdump[spark]'")

from kdump.arrow import header_rows
from kdump.errors import UnreadableError
from kdump.log_dirs.local import LocalFile
from kdump.rows import columns
from kdump.spark.source import options as words
from kdump.spark.source import planning, reading
from testing import GOLDEN, forge
from testing.processes import kdump


def read(*paths, **given):
    options = words.SourceOptions(paths=tuple(map(str, paths)), output=words.BATCHES, **given)
    splits = [split for planned in planning.plan(options) for split in planned.splits]
    return [row for batch in reading.read_all(splits, options) for row in batch.to_pylist()]


def place(row):
    return row["file"], row["position"]


def shown(row):
    """Return a row as in the JSON line."""
    time = row["maxTimestamp"]
    words = {0: "CreateTime", 1: "LogAppendTime", None: None}
    at = None if time is None else time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return row | {"maxTimestamp": at, "timestampType": words[row["timestampType"]]}


@pytest.mark.parametrize("split_bytes", [128 << 20, 2048])
def test_they_are_the_lines_of_dump(split_bytes):
    done = kdump("dump", "-o", "jsonl", "--batches", "--every-replica", GOLDEN / "brokers")
    lines = list(map(json.loads, done.stdout.splitlines()))
    assert len(lines) > 2000
    rows = read(GOLDEN / "brokers", split_bytes=split_bytes)
    names = [field.name for field in header_rows.HEADER_FIELDS]
    assert [shown(row) for row in sorted(rows, key=place)] == [
        {name: line[name] for name in names} for line in sorted(lines, key=place)
    ]
    assert {column.name for column in columns.BATCH} - set(names) == {
        *("kind", "crcValid", "transactionState"),
        *("aboveHighWatermark", "belowLogStart"),
    }


def test_after_damage_they_are_what_a_reader_finds():
    folders = sorted({path.parent for path in (GOLDEN / "damaged").rglob("[0-9]*.log")})
    done = kdump("dump", "-o", "jsonl", "--batches", *folders)
    found = {place(line) for line in map(json.loads, done.stdout.splitlines()) if line["kind"] == "batch"}
    rows = {place(row) for row in read(*folders)}
    assert len(found) > 100
    assert found - rows == set(), "each valid batch has a row; headers alone do not show a wrong checksum"


def segment(folder, count, value=b"v"):
    folder.mkdir()
    data = b"".join(
        forge.batch([forge.record(b"k", value)], base_offset=at, base_timestamp=at, max_timestamp=at)
        for at in range(count)
    )
    (folder / f"{0:020}.log").write_bytes(data)
    return folder


def test_of_large_batches_the_records_are_not_read(tmp_path, monkeypatch):
    folder, taken = segment(tmp_path / "t-0", 10, bytes(100_000)), []
    real = LocalFile.read

    def counts(self, position, size):
        data = real(self, position, size)
        taken.append(len(data))
        return data

    monkeypatch.setattr(LocalFile, "read", counts)
    assert [row["baseOffset"] for row in read(folder)] == list(range(10))
    assert sum(taken) < (folder / f"{0:020}.log").stat().st_size / 8


def test_bounds_leave_out_batches_that_hold_nothing_within_them(tmp_path):
    folder = segment(tmp_path / "t-0", 10)
    assert [row["baseOffset"] for row in read(folder, starting_offset=3, ending_offset=6)] == [3, 4, 5]
    assert [row["baseOffset"] for row in read(folder, starting_timestamp=7)] == [7, 8, 9]


def test_a_file_that_is_gone_ends_the_read(tmp_path):
    folder = segment(tmp_path / "t-0", 3)
    (folder / f"{3:020}.log").symlink_to(tmp_path / "gone")
    with pytest.raises(UnreadableError, match="No such file or directory"):
        read(folder)
