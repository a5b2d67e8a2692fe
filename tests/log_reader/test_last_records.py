"""The positions of the last records are noted, and the records are then read again in order."""

import re
import tracemalloc

import pytest

from kdump.errors import Reporter, UnreadableError
from kdump.log_dirs.finder import Finder
from kdump.log_reader.batch_selection import Take
from kdump.log_reader.filter import Filter
from kdump.log_reader.last_records import TailRange, TailRanges, joined
from kdump.log_reader.reader import PartitionReader
from kdump.primitives import threads
from kdump.rows.selection import SelectedBatch
from kdump.segments import read_ahead, walk
from testing import forge

BATCH = 4
"""Records of a batch."""


def partition(folder, batches):
    """Return a partition of ``batches`` batches of about 500 bytes."""
    folder.mkdir()
    records = [forge.record(b"k%d" % n, b"v" * 100, offset=n) for n in range(BATCH)]
    made = (forge.batch(records, base_offset=n * BATCH) for n in range(batches))
    (folder / f"{0:020}.log").write_bytes(b"".join(made))
    (found,) = Finder().find([str(folder)])
    return found


def peak(found, count, wanted, take):
    """Return the peak of memory while the last records are read."""
    reader = PartitionReader(filter=wanted, take=take)
    tracemalloc.start()
    try:
        assert sum(len(item.records) for item in reader.tail(found, count)) == count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("take", [Take.RECORDS, Take.RUNS])
@pytest.mark.parametrize(
    "wanted",
    [Filter(), Filter(greps=(re.compile(b"v+"),)), Filter(last_offset=1 << 40)],
    ids=["all", "grep", "bounded"],
)
def test_memory_does_not_grow_with_the_number_of_records(tmp_path, monkeypatch, wanted, take):
    for name in ("FIRST_BLOCK", "BLOCK"):
        monkeypatch.setattr(walk, name, 1 << 14)
    monkeypatch.setattr(threads, "_allowed", False)  # what threads hold has a bound of its own
    monkeypatch.setattr(read_ahead, "FIRST", 1 << 14)
    monkeypatch.setattr(read_ahead, "CHUNK_BYTES", 1 << 14)
    few, many = partition(tmp_path / "few-0", 400), partition(tmp_path / "many-0", 1600)
    taken = {found.topic: peak(found, count, wanted, take) for found, count in ((few, 1500), (many, 6300))}
    assert taken["many"] < 1.5 * taken["few"], taken


def test_changes_during_the_comparison_are_reported(tmp_path):
    found = partition(tmp_path / "t-0", 300)
    fails = []
    items = PartitionReader(report=Reporter(fail=fails.append), take=Take.RECORDS).tail(found, 1000)
    next(items)
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(b"")
    list(items)
    assert [type(error) for error in fails] == [UnreadableError]
    assert "the file has changed since kdump first read it" in str(fails[0])


def test_ranges_that_touch_each_other_are_one(tmp_path):
    found = partition(tmp_path / "t-0", 8)
    items = list(PartitionReader().read(found))
    size = items[0].batch.size

    def ranges(*parts):
        return list(joined([TailRanges(part, 100, lambda item: len(item.records)) for part in parts]))

    assert ranges(items[:3], items[3:5]) == [TailRange(0, 5 * size, 5 * BATCH, crc_valid=True)]
    wrong = items[6]._replace(crc_valid=False)
    assert ranges(items[:3], [*items[3:5], wrong])[1:] == [TailRange(6 * size, 7 * size, BATCH, crc_valid=False)]


def test_what_is_too_far_from_the_end_is_forgotten(tmp_path):
    found = partition(tmp_path / "t-0", 1000)
    items = (item for item in PartitionReader().read(found) if isinstance(item, SelectedBatch))
    kept = TailRanges(items, BATCH, lambda _: BATCH)
    (last,) = kept.ranges()
    assert last.held == kept.held >= BATCH
    assert last.end == (tmp_path / "t-0" / f"{0:020}.log").stat().st_size
