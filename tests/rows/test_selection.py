"""Records of batches and of runs of batches, limited to a number."""

import pytest

from kdump import kernel
from kdump.log_dirs.finder import Finder
from kdump.log_reader.batch_selection import Take
from kdump.log_reader.reader import PartitionReader
from kdump.rows.selection import first_of, last_batches_of, last_of
from kdump.segments.lazy_records import RunRecords, SomeRecords
from testing import forge

COUNTS = [(3, 0, 2, 1, 0, 0, 4), (0, 0), (1, 1, 1), (0, 5), (5, 0), (7,)]


def items(tmp_path, counts, take):
    """Return what a reader selects from batches with these numbers of records."""
    data, offset = b"", 0
    for count in counts:
        records = [forge.record(b"%d" % (offset + at), b"v", offset=at) for at in range(count)]
        data += forge.batch(records, base_offset=offset, last_offset_delta=max(0, count - 1))
        offset += max(1, count)
    (tmp_path / "00000000000000000000.log").write_bytes(data)
    (partition,) = Finder().find([str(tmp_path / "00000000000000000000.log")])
    return list(PartitionReader(take=take).read(partition))


def ends(item):
    """Return the end of the last batch."""
    return item.records.end if isinstance(item.records, RunRecords) else item.batch.end


@pytest.mark.parametrize("take", [Take.RUNS, Take.RECORDS])
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_the_first_and_the_last_records(tmp_path, counts, take):
    for item in items(tmp_path, counts, take):
        whole = list(item.records)
        for number in range(1, len(whole) + 1):
            for cut, expected in ((first_of, whole[:number]), (last_of, whole[-number:])):
                found = list(cut(item, number))
                assert [record for one in found for record in one.records] == expected
                assert all(one.base_offset == one.batch.base_offset for one in found)
                assert len(found[-1 if cut is first_of else 0].records), "batches without records stand at the cut"


@pytest.mark.skipif(not kernel.COMPILED, reason="without the kernel there are no runs")
def test_whole_batches_of_a_run_stay_unread(tmp_path):
    (item,) = items(tmp_path, COUNTS[0], Take.RUNS)
    assert [type(one.records) for one in first_of(item, 5)] == [RunRecords]
    assert [type(one.records) for one in first_of(item, 6)] == [RunRecords]
    assert [type(one.records) for one in first_of(item, 7)] == [RunRecords, SomeRecords]
    assert [type(one.records) for one in last_of(item, 4)] == [RunRecords]
    assert [type(one.records) for one in last_of(item, 6)] == [SomeRecords, RunRecords]


@pytest.mark.parametrize("take", [Take.BATCH_RUNS, Take.BATCHES])
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_the_last_batches(tmp_path, counts, take):
    found = items(tmp_path, counts, take)
    assert sum(item.batch_count for item in found) == len(counts)
    assert max(item.last_offset for item in found) == sum(max(1, count) for count in counts) - 1
    for item in found:
        for number in range(1, item.batch_count + 1):
            (last,) = last_batches_of(item, number)
            assert last.batch_count == number
            assert last.base_offset == last.batch.base_offset
            assert ends(last) == ends(item)
