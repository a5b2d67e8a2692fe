"""Where segments are damaged: each range, or a summary if there are many."""

import pytest

from kdump.answers.log_dir_pass import LogDirPass
from kdump.answers.log_events import MOST_RANGES, PARTS, DamagedBytes, DamagedFile, DamagedRanges
from kdump.errors import Reporter
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.log_dir_state import LogDirStates
from testing.forge import batch, record
from tests.helpers import log_dirs


def gathered(folder):
    collector = DamagedRanges()
    partitions = Finder(Wanted(siblings=True, log_dirs=True)).find([str(folder)])
    LogDirPass(
        [collector], Reporter(damage=str, fail=pytest.fail), LogDirStates(Reporter(pytest.fail, fail=pytest.fail))
    ).run(partitions)
    lines = list(collector.answer(0))
    files = [line for line in lines if isinstance(line, DamagedFile)]
    return files, [line for line in lines if isinstance(line, DamagedBytes)]


def rotten(batches, is_bad):
    content = bytearray()
    for number in range(batches):
        one = bytearray(batch([record(b"k", b"v" * 20)], base_offset=number))
        one[-1] ^= is_bad(number)
        content += one
    return bytes(content)


def test_each_of_few_ranges_is_named(tmp_path):
    content = rotten(9, lambda number: number in {2, 3, 6})
    log_dirs.write(tmp_path, "orders-0", {0: content})
    ((file,), ranges) = gathered(tmp_path)
    size = len(content) // 9
    assert [line.position for line in ranges] == [2 * size, 6 * size]
    assert (file.ranges, file.damaged_bytes, file.parts) == (len(ranges), 3 * size, None)


@pytest.mark.parametrize("batches", [2 * MOST_RANGES + 3, 5 * MOST_RANGES])
def test_of_many_ranges_it_is_known_where_they_lie(tmp_path, batches):
    content = rotten(batches, lambda number: number % 2)
    log_dirs.write(tmp_path, "orders-0", {0: content})
    ((file,), ranges) = gathered(tmp_path)
    size = len(content) // batches
    wanted = [0] * PARTS
    for number in range(1, batches, 2):
        for byte in range(number * size, (number + 1) * size):
            wanted[byte * PARTS // len(content)] += 1
    assert len(ranges) == MOST_RANGES
    assert file.ranges == batches // 2
    assert list(file.parts) == wanted
    assert file.damaged_bytes == sum(wanted)
