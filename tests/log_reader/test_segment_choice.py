"""A range of times reads only segments that may contain it, with the same result as reading all segments."""

import shutil

import pytest

from kdump.errors import Reporter
from kdump.formats import time_index
from kdump.formats.record_layout import TIMESTAMP_TYPE_FLAG
from kdump.formats.time_index import TimestampOffset
from kdump.log_dirs.finder import Finder
from kdump.log_reader.filter import Filter
from kdump.log_reader.reader import PartitionReader
from kdump.rows.selection import SelectedBatch
from testing import forge
from testing.processes import kdump

TIME = 1_700_000_000_000
MINUTE = 60_000
PER_SEGMENT = 8
SEGMENTS = 50


def one(offset, at, **rest):
    """A batch of one record."""
    return forge.batch([forge.record(b"k", b"v" * 40)], base_offset=offset, base_timestamp=at, max_timestamp=at, **rest)


def write(folder, base, times, *, index=True, tail=0, **rest):
    """Write a segment of batches of one record at ``times``, with the time index of a closed one."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base:020}.log"
    path.write_bytes(b"".join(one(base + n, at, **rest) for n, at in enumerate(times)))
    path.with_suffix(".index").write_bytes(bytes(tail))
    if index:
        largest = max(times)
        entry = TimestampOffset(largest, base + list(times).index(largest))
        path.with_suffix(".timeindex").write_bytes(time_index.encode([entry], base) + bytes(tail))
    return path


def minutes(number):
    """Return the times of a segment: one record every few seconds, from a minute on."""
    return [TIME + number * MINUTE + n * 5000 for n in range(PER_SEGMENT)]


@pytest.fixture
def folder(tmp_path):
    """A log of 50 segments, a minute each; the last one is active, with indexes of zeros."""
    place = tmp_path / "t-0"
    for number in range(SEGMENTS - 1):
        write(place, number * PER_SEGMENT, minutes(number))
    write(place, (SEGMENTS - 1) * PER_SEGMENT, minutes(SEGMENTS - 1), index=False, tail=120)
    return place


def read(folder, **wanted):
    """Return the offsets that a filter selects, the numbers of the segments read, and the notes."""
    notes, files = [], []
    (partition,) = Finder().find([str(folder)])
    reader = PartitionReader(filter=Filter(**wanted), report=Reporter(note=notes.append))
    pairs = reader._pairs
    reader._pairs = lambda one, *rest: files.append(one.base_offset // PER_SEGMENT) or pairs(one, *rest)
    found = [
        record.offset for item in reader.read(partition) if isinstance(item, SelectedBatch) for record in item.records
    ]
    return found, files, notes


def every(folder, since, until):
    """Return the offsets within times, from reading all segments."""
    (partition,) = Finder().find([str(folder)])
    items = PartitionReader().read(partition)
    records = [record for item in items if isinstance(item, SelectedBatch) for record in item.records]
    return [record.offset for record in records if since <= record.timestamp < until]


@pytest.mark.parametrize("number", [0, 1, 30, 48, 49])
def test_a_minute_reads_few_segments_whatever_the_others_hold(folder, number):
    since, until = TIME + number * MINUTE, TIME + (number + 1) * MINUTE
    found, files, notes = read(folder, since=since, until=until)
    assert found == list(range(number * PER_SEGMENT, (number + 1) * PER_SEGMENT)) == every(folder, since, until)
    assert files in ([number], [number, 49])
    for path in folder.glob("*.log"):
        if int(path.stem) // PER_SEGMENT not in files:
            data = path.read_bytes()
            later = int(path.stem) // PER_SEGMENT > number
            kept = len(one(0, 0)) if later else 0  # of those before it nothing is read
            path.write_bytes(data[:kept] + bytes(7 * n % 251 for n in range(len(data) - kept)))
    assert read(folder, since=since, until=until) == (found, files, notes)
    done = kdump("dump", folder, "--since", since, "--until", until, "-o", "jsonl")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"\n") == PER_SEGMENT
    assert (b"--out-of-order reads them too" in done.stderr) == (number < 49)


def test_an_offset_reads_one_segment(folder):
    assert read(folder, first_offset=100, last_offset=100)[:2] == ([100], [12])
    assert read(folder, first_offset=95, last_offset=96)[:2] == ([95, 96], [11, 12])


def test_ranges_without_an_end_and_without_a_begin(folder):
    _, files, notes = read(folder, since=TIME + 40 * MINUTE)
    assert (files, notes) == (list(range(40, 50)), [])
    found, files, notes = read(folder, until=TIME + 3 * MINUTE)
    assert (found, files) == (list(range(3 * PER_SEGMENT)), [0, 1, 2])
    assert notes == [
        "t-0: 47 segments after --until were skipped. Later segments may have records with older timestamps: "
        "--out-of-order reads them too"
    ]


def test_an_old_record_in_a_later_segment_is_found_where_it_shows(folder):
    """It is the first record of its segment, or the segment begins before the largest time of the previous one."""
    late = TIME + 30 * MINUTE + 1
    write(folder, 40 * PER_SEGMENT, [late, *minutes(40)[1:]])
    found, _, notes = read(folder, since=TIME + 30 * MINUTE, until=TIME + 31 * MINUTE)
    assert found == [*range(30 * PER_SEGMENT, 31 * PER_SEGMENT), 40 * PER_SEGMENT]
    assert notes == []


def test_times_that_are_out_of_order_anywhere_leave_no_later_segment_out(folder):
    write(folder, 5 * PER_SEGMENT, [*minutes(5)[:-1], TIME + 20 * MINUTE])
    write(folder, 40 * PER_SEGMENT, [minutes(40)[0], TIME + 30 * MINUTE + 1, *minutes(40)[2:]])
    since, until = TIME + 30 * MINUTE, TIME + 31 * MINUTE
    found, files, _ = read(folder, since=since, until=until)
    assert found == every(folder, since, until)
    assert files == list(range(30, 50))


def test_the_option_reads_what_nothing_shows_to_be_there(folder):
    write(folder, 40 * PER_SEGMENT, [minutes(40)[0], TIME + 30 * MINUTE + 1, *minutes(40)[2:]])
    since, until = TIME + 30 * MINUTE, TIME + 31 * MINUTE
    found, files, notes = read(folder, since=since, until=until, out_of_order=True)
    assert found == every(folder, since, until)
    assert (files, notes) == (list(range(30, 50)), [])
    assert kdump("dump", folder, "--out-of-order").returncode == 2
    done = kdump("dump", folder, "--since", since, "--until", until, "--out-of-order", "--count")
    assert done.stdout == b"9\n"
    query = f'select count(*) as n from records where "timestampMs" >= {since} and "timestampMs" < {until}'
    for words, count in (((), b"8"), (("--out-of-order",), b"9")):
        done = kdump("sql", query, folder, "-o", "csv", *words)
        assert done.stdout.split() == [b"n", count]
        assert (b"--out-of-order reads them too" in done.stderr) == (not words)


def test_a_query_with_an_upper_bound_alone_returns_old_records_of_later_segments(folder):
    write(folder, 40 * PER_SEGMENT, [minutes(40)[0], TIME + 1, *minutes(40)[2:]])
    for bound in (f'"timestampMs" <= {TIME + 4}', f"timestamp < ts({TIME + 5})"):
        done = kdump("sql", f"select count(*) as n from records where {bound}", folder, "-o", "csv")
        assert done.stdout.split() == [b"n", b"2"]


def test_a_future_time_in_an_early_segment_keeps_it_in_the_range(folder):
    write(folder, 5 * PER_SEGMENT, [*minutes(5)[:-1], TIME + 45 * MINUTE])
    found, files, _ = read(folder, since=TIME + 45 * MINUTE)
    assert found[0] == 6 * PER_SEGMENT - 1
    assert files == [5, *range(45, 50)]


LAST = TIME + 10 * MINUTE + 35_000


@pytest.mark.parametrize(
    ("index", "why"),
    [
        (None, "none is there"),
        (b"", "it is empty"),
        (bytes(12), "it is of zeros"),
        (time_index.encode([(LAST, 87)], 80) + bytes(12), "zeros follow"),
        (time_index.encode([(LAST, 87)], 80)[:-1], "it is ragged"),
        (time_index.encode([(LAST, 81), (LAST - 5, 87)], 80), "its entries are not in order"),
        (time_index.encode([(TIME, 87)], 80), "it ends below the first batch"),
        (time_index.encode([(LAST, 88)], 80), "it names an offset of the next segment"),
        (time_index.encode([(LAST - 5000, 86)], 80), "it lacks the entry of the last batch"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_segment_whose_index_is_not_that_of_the_log_is_read(folder, index, why):
    """Segment 10: an index that shows no largest time excludes nothing."""
    path = folder / f"{80:020}.timeindex"
    path.unlink()
    if index is not None:
        path.write_bytes(index)
    _, files, _ = read(folder, since=TIME + 20 * MINUTE, until=TIME + 21 * MINUTE)
    assert files == [10, 20], why
    _, files, _ = read(folder, since=TIME + 5 * MINUTE, until=TIME + 6 * MINUTE)
    assert files == list(range(5, 50)), why  # whether what follows segment 10 is in order is not known


@pytest.mark.parametrize("at", [86, 85])
def test_records_after_the_last_entry_of_a_time_index_are_found(folder, at):
    """A broker finds no record in this segment: it writes the last entry when it rolls the segment."""
    (folder / f"{80:020}.timeindex").write_bytes(time_index.encode([(LAST - 5000 * (87 - at), at)], 80))
    found, _, _ = read(folder, since=LAST - 5000 * (86 - at), until=TIME + 11 * MINUTE)
    assert found == [*range(at + 1, 88)]


def test_log_append_time_is_the_time_of_the_broker(tmp_path):
    """Records keep the producer's times, which are then ignored."""
    folder = tmp_path / "t-0"
    for number in range(5):
        path = write(folder, number * PER_SEGMENT, minutes(number), attributes=TIMESTAMP_TYPE_FLAG)
    assert path.exists()
    found, files, _ = read(folder, since=TIME + MINUTE, until=TIME + 2 * MINUTE)
    assert (found, files) == (list(range(8, 16)), [1])


def test_a_file_alone_may_be_active_whatever_its_index_says(folder, tmp_path):
    place = tmp_path / "loose"
    place.mkdir()
    for path in folder.glob(f"{80:020}.*"):
        shutil.copy(path, place)
    assert read(place / f"{80:020}.log", since=TIME + 20 * MINUTE)[1] == [10]
