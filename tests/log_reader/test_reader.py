"""Filters, the last records, and how little of a segment is read for them."""

import random
import re
from dataclasses import dataclass

import pytest

from kdump.errors import Reporter, UnreadableError
from kdump.formats import offset_index, time_index
from kdump.log_dirs import local
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_reader import last_records
from kdump.log_reader.batch_selection import Take
from kdump.log_reader.filter import Filter
from kdump.log_reader.reader import PartitionReader, ReadStart
from kdump.rows.selection import DamagedRange, SelectedBatch
from kdump.segments import index_lookup
from testing import damages, forge

PER_BATCH = 16
TIME = 1_700_000_000_000


def records(first, count, *, value=b"v", step=1000):
    return [
        forge.record(b"k%d" % (first + n), value, offset=n, timestamp=n * step, headers=[(b"n", b"%d" % (first + n))])
        for n in range(count)
    ]


def write(folder, base=0, batches=10, *, value=b"v", interval=None):
    """Write a segment of batches of 16 records one second apart, with indexes as a broker writes them."""
    folder.mkdir(exist_ok=True)
    data, offsets, times, since = bytearray(), [], [], 0
    for n in range(batches):
        first = base + n * PER_BATCH
        last, start, latest = first + PER_BATCH - 1, TIME + first * 1000, TIME + (first + PER_BATCH - 1) * 1000
        new = forge.batch(
            records(first, PER_BATCH, value=value), base_offset=first, base_timestamp=start, max_timestamp=latest
        )
        if interval is not None and since > interval:
            offsets.append(offset_index.OffsetPosition(last, len(data)))
            times.append(time_index.TimestampOffset(latest, last))
            since = 0
        data += new
        since += len(new)
    if interval is not None and times[-1].timestamp < latest:
        times.append(time_index.TimestampOffset(latest, last))
    path = folder / f"{base:020}.log"
    path.write_bytes(data)
    if interval is not None:
        path.with_suffix(".index").write_bytes(offset_index.encode(offsets, base))
        path.with_suffix(".timeindex").write_bytes(time_index.encode(times, base))
    return path


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "t-0"


@dataclass
class Taken:
    offsets: list
    lost: list
    notes: list
    read: int = 0


def take(path, *, tail=None, batches=False, reader=None, **wanted):
    taken = Taken([], [], [])
    reader = reader or PartitionReader(
        filter=Filter(**wanted),
        take=Take.BATCHES if batches else Take.RECORDS,
        report=Reporter(damage=taken.notes.append, wrong=taken.notes.append),
    )
    for partition in Finder().find([str(path)]):
        for item in reader.read(partition) if tail is None else reader.tail(partition, tail):
            if isinstance(item, DamagedRange):
                taken.lost.append(item.damage)
            elif batches:
                taken.offsets.append(item.base_offset)
            else:
                taken.offsets += [record.offset for record in item.records]
    return taken


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, range(160)),
        ({"first_offset": 20, "last_offset": 40}, range(20, 41)),
        ({"first_offset": 150}, range(150, 160)),
        ({"last_offset": 3}, range(4)),
        ({"first_offset": 1000}, []),
        ({"since": TIME + 20_000, "until": TIME + 40_000}, range(20, 40)),
        ({"since": TIME + 19_001}, range(20, 160)),
        ({"keys": frozenset({b"k77"})}, [77]),
        ({"greps": (re.compile(b"^k7.$"),)}, range(70, 80)),
        ({"greps": (re.compile(b"^v"),)}, range(160)),
        ({"headers": ((b"n", b"5"),)}, [5]),
        ({"headers": ((b"n", None),), "last_offset": 1}, [0, 1]),
        ({"headers": ((b"n", b"5"), (b"m", None))}, []),
        ({"producer_ids": frozenset({1})}, []),
        ({"leader_epochs": frozenset({0})}, range(160)),
        ({"transactional": True}, []),
        ({"transactional": False, "keys": frozenset({b"k1"})}, [1]),
        ({"types": frozenset({"control"})}, []),
        ({"types": frozenset({"data"}), "keys": frozenset({b"k1"})}, [1]),
        ({"types": frozenset({"tombstone"})}, []),
    ],
)
@pytest.mark.parametrize("interval", [None, 100], ids=["bare", "indexed"])
def test_filters(folder, wanted, expected, interval):
    write(folder, 0, 5, interval=interval)
    write(folder, 80, 5, interval=interval)
    assert take(folder, **wanted).offsets == list(expected)


def test_wrappers_do_not_give_their_latest_record(folder):
    folder.mkdir()
    inner = [(0, forge.message(1, b"a", None, timestamp=5)), (1, forge.message(1, b"b", None, timestamp=9))]
    (folder / "0.log").write_bytes(forge.wrapper(1, 1, inner, timestamp=-1))
    assert take(folder, since=9).offsets == [1]


def test_types_of_records(folder):
    folder.mkdir()
    plain = forge.batch(
        [forge.record(b"k", b"v"), forge.record(b"k", None, offset=1), forge.record(b"k", b"", offset=2)]
    )
    marker = forge.batch([forge.record(b"\0\0\0\1", bytes(6))], base_offset=3, attributes=0x30, producer_id=1)
    (folder / "0.log").write_bytes(plain + marker)
    for types, expected in [("data", [0, 2]), ("tombstone", [1]), ("control", [3]), ("data control", [0, 2, 3])]:
        assert take(folder, types=frozenset(types.split())).offsets == expected


def test_batches_with_any_such_record(folder):
    write(folder)
    assert take(folder, batches=True).offsets == list(range(0, 160, 16))
    assert take(folder, batches=True, first_offset=20, last_offset=40).offsets == [16, 32]
    assert take(folder, batches=True, keys=frozenset({b"k77"})).offsets == [64]


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("count", [0, 1, 5, 16, 17, 40, 100, 1000])
def test_the_last_ones(folder, count, batches):
    for base in (0, 48, 96):
        write(folder, base, 3)
    everything = take(folder, batches=batches).offsets
    assert take(folder, tail=count, batches=batches).offsets == (everything[-count:] if count else [])


def test_the_last_ones_with_a_filter_and_damage(folder):
    write(folder, 0, 3)
    path = write(folder, 48, 3)
    path.write_bytes(path.read_bytes() + b"rest")
    taken = take(folder, tail=3, greps=(re.compile(b"k.0$"),))
    assert taken.offsets == [60, 70, 80] or taken.offsets == [70, 80, 90]
    assert [damage.size for damage in taken.lost] == [4]


@pytest.fixture
def many_parts(monkeypatch):
    """Read the end of small segments in many parts, as for large ones."""
    for where, name in ((last_records, "SMALL"), (index_lookup, "SMALL"), (last_records, "FIRST")):
        monkeypatch.setattr(where, name, 300)


def tails_fit(folder, *, lost=True, **wanted):
    """Compare the last records with the end of all records; damage is reported if it was read."""
    for batches in (False, True):
        whole = take(folder, batches=batches, **wanted)
        for count in (1, 2, 7, 30, len(whole.offsets) + 1):
            taken = take(folder, tail=count, batches=batches, **wanted)
            assert taken.offsets == whole.offsets[-count:], count
            assert taken.lost == whole.lost[len(whole.lost) - len(taken.lost) :]
        assert not lost or taken.lost == whole.lost  # all was asked for


FILTERS = (
    {},
    {"keys": frozenset({b"k7", b"k70", b"k77"})},
    {"greps": (re.compile(rb"k.?3"),)},
    {"types": frozenset({"data"})},
    {"types": frozenset({"control"})},
    {"committed": True},
    {"first_offset": 20, "last_offset": 90},
    {"since": TIME + 30_000},
)


def shapes():
    """Return possible contents of a segment, by name."""
    plain = [forge.batch(records(n * 4, 4), base_offset=n * 4, base_timestamp=TIME + n * 4000) for n in range(40)]
    marker = forge.batch([forge.record(b"\0\0\0\1", bytes(6))], base_offset=50, attributes=0x30, producer_id=1)
    of_transaction = forge.batch(records(49, 1), base_offset=49, attributes=0x10, producer_id=1)
    old = [forge.entry(n, forge.message(n % 2, b"k%d" % n, b"v" * 40, timestamp=TIME)) for n in range(60)]
    packed = [
        forge.wrapper(1, 2 * n + 1, [(0, forge.message(1, b"k%d" % n, b"a")), (1, forge.message(1, b"k", b"b"))])
        for n in range(40)
    ]
    nested = [forge.batch(records(n * 4, 4, value=plain[0]), base_offset=n * 4) for n in range(20)]
    return {
        "sound": plain,
        "compacted": plain[::3],
        "transactions": [*plain[:12], of_transaction, marker, *plain[13:]],
        "magic 0 and 1": old,
        "wrappers": packed,
        "batches in values": nested,
        "zeros behind": [*plain, bytes(5000)],
        "truncated": [*plain, plain[0][:-9]],
        "garbage between": [*plain[:35], b"garbage" * 60, *plain[35:]],
        "nothing": [],
        "only garbage": [b"garbage" * 100],
    }


@pytest.mark.parametrize("wanted", FILTERS, ids=" ".join)
@pytest.mark.parametrize("shape", shapes())
@pytest.mark.usefixtures("many_parts")
def test_the_last_ones_of_many_parts(folder, shape, wanted):
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"".join(shapes()[shape]))
    tails_fit(folder, **wanted)


@pytest.mark.parametrize("shape", [*shapes(), "open", "open among older offsets", "open before offsets that go back"])
def test_committed_records_in_runs_are_those_of_one_batch_after_the_other(folder, shape):
    plain = shapes()["sound"]
    begun = forge.batch(records(49, 1), base_offset=49, attributes=0x10, producer_id=1)
    opened = {
        "open": [*plain[:12], begun, *plain[13:]],
        "open among older offsets": [begun, *plain],
        "open before offsets that go back": [*plain[:12], begun, *plain[13:16], *plain[:3]],
    }
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"".join((shapes() | opened)[shape]))
    (partition,) = Finder().find([str(folder)])
    taken = {}
    for take in (Take.RECORDS, Take.RUNS):
        reader = PartitionReader(Filter(committed=True), take)
        items = list(reader.read(partition))
        taken[take] = (
            [record.offset for item in items if isinstance(item, SelectedBatch) for record in item.records],
            [item.damage for item in items if isinstance(item, DamagedRange)],
        )
    assert taken[Take.RUNS] == taken[Take.RECORDS]
    if shape in opened:
        assert max(taken[Take.RUNS][0]) == 47


@pytest.mark.usefixtures("many_parts")
@pytest.mark.parametrize("interval", [None, 100], ids=["bare", "indexed"])
def test_the_last_ones_of_damaged_segments(folder, interval):
    write(folder, 0, 5, interval=interval)
    path = write(folder, 80, 12, value=b"v" * 20, interval=interval)
    sound = path.read_bytes()
    rng = random.Random(27)
    size = len(sound) // 12
    for number in range(30):
        data = bytearray(sound)
        for _ in range(rng.randint(1, 3)):
            damages.damage(data, rng, range(0, len(sound) + 1, size))
        path.write_bytes(data)
        tails_fit(folder, **FILTERS[number % 3])


@pytest.mark.usefixtures("many_parts")
def test_the_last_ones_where_an_index_is_wrong(folder):
    path = write(folder, 0, 30, interval=100)
    for wrong in (b"\0\0\0\5", bytes(80), b"\0\0\0\7\0\0\0\7" * 9, random.Random(1).randbytes(160)):
        path.with_suffix(".index").write_bytes(wrong)
        tails_fit(folder)


@pytest.mark.parametrize("interval", [None, 100], ids=["bare", "indexed"])
@pytest.mark.usefixtures("many_parts")
def test_the_last_ones_in_front_of_what_cannot_be_read(folder, monkeypatch, interval):
    path = write(folder, 0, 80, value=b"v" * 2000, interval=interval)
    bad = path.read_bytes().index((960).to_bytes(8, "big"))  # where a batch begins
    whole = local.LocalFile.read

    def read(self, position, size):
        if self.name == str(path) and position <= bad < position + size:
            raise UnreadableError(self.name, "Input/output error")
        return whole(self, position, size)

    monkeypatch.setattr(local.LocalFile, "read", read)
    fails = []
    last = take(folder, tail=3, reader=PartitionReader(report=Reporter(fail=fails.append))).offsets
    assert last == list(range(last[0], last[0] + 3))
    assert last[-1] == 1279 if interval else 300 < last[-1] < 960
    if interval is None:
        assert {error.path for error in fails} == {str(path)}


@pytest.mark.parametrize("wanted", [Filter(), Filter(first_offset=0)], ids=["from the end", "whole"])
def test_the_last_records_without_an_unreadable_file_that_is_reported_once(folder, wanted):
    write(folder, 0, 2)
    path = write(folder, 32, 2)
    fails = []
    reader = PartitionReader(filter=wanted, report=Reporter(fail=fails.append))
    (partition,) = Finder().find([str(folder)])
    path.unlink()
    assert [record.offset for item in reader.tail(partition, 3) for record in item.records] == [29, 30, 31]
    assert [error.path for error in fails] == [str(path)]


@pytest.mark.usefixtures("many_parts")
def test_the_log_is_read_without_an_unreadable_index(folder):
    path = write(folder, 0, 30, interval=100)
    (partition,) = Finder(Wanted(siblings=True)).find([str(folder)])
    path.with_suffix(".index").unlink()
    path.with_suffix(".timeindex").unlink()
    for wanted, names in (
        (Filter(), []),
        (Filter(first_offset=470), ["index"]),
        (Filter(since=TIME), ["index", "timeindex"]),
    ):
        wrong = []
        found = PartitionReader(filter=wanted, report=Reporter(wrong=wrong.append)).tail(partition, 2)
        assert [record.offset for item in found for record in item.records] == [478, 479]
        assert [text.split(":")[0].rpartition(".")[2] for text in wrong] == names, wrong


@pytest.mark.parametrize("interval", [None, 4096], ids=["bare", "indexed"])
def test_the_last_ones_are_read_from_the_end(folder, monkeypatch, interval):
    path = write(folder, 0, 400, value=b"v" * 400, interval=interval)
    read = 0

    def counted(self, position, size):
        nonlocal read
        data = whole(self, position, size)
        read += len(data) * (self.name == str(path))
        return data

    whole = local.LocalFile.read
    monkeypatch.setattr(local.LocalFile, "read", counted)
    assert take(folder, tail=3).offsets == [6397, 6398, 6399]
    assert read < path.stat().st_size // 4


def test_a_folder_without_segments(folder):
    folder.mkdir()
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n")
    assert take(folder, first_offset=1).offsets == take(folder, tail=1).offsets == []


def test_renamed_files_hide_nothing(folder):
    """If the content of files contradicts their names, offsets are searched in the content."""
    write(folder, 0, 2).rename(folder / "00000000000000000050.log")
    write(folder, 160, 2).rename(folder / "00000000000000000000.log")
    write(folder, 64, 2)
    for offset in (0, 31, 64, 95, 160, 191):
        assert take(folder, first_offset=offset, last_offset=offset).offsets == [offset]
    assert take(folder, first_offset=32, last_offset=63).offsets == []


def test_segments_that_cannot_hold_it_are_hardly_read(folder, counted):
    for base in range(0, 1600, 160):
        write(folder, base, 10, value=bytes(1000))
    assert take(folder, first_offset=700, last_offset=700).offsets == [700]
    size = (folder / "00000000000000000640.log").stat().st_size
    assert counted[0] < size * 1.2


def test_reading_begins_in_a_segment_that_the_filter_skips(folder):
    for base in (0, 160, 320):
        write(folder, base)
    reader = PartitionReader(filter=Filter(first_offset=330))
    reader.begin = ReadStart(str(folder / f"{0:020}.log"), 0)
    assert take(folder, reader=reader).offsets == [*range(330, 480)]
    reader.begin = ReadStart(str(folder / f"{160:020}.log"), 0)
    assert take(folder, reader=reader).offsets == [*range(330, 480)]
    reader.filter = Filter()
    assert take(folder, reader=reader).offsets == [*range(160, 480)]


def test_damaged_batches_are_shown_when_asked_for(folder):
    path = write(folder, 0, 3)
    data = bytearray(path.read_bytes())
    data[len(data) // 3 + 100] ^= 1
    path.write_bytes(data)
    assert take(folder).offsets == [*range(16), *range(32, 48)]
    (partition,) = Finder().find([str(folder)])
    for on_error, expected in (("resync", [True, False, True]), ("stop", [True, False])):
        reader = PartitionReader(include_damaged=True, on_error=on_error)
        items = list(reader.read(partition))
        assert [item.crc_valid for item in items if isinstance(item, SelectedBatch)] == expected
        assert [item.damage.kind for item in items if isinstance(item, DamagedRange)] == ["crc"]


def test_damaged_batches_that_say_nothing_sound_are_only_damage(folder):
    folder.mkdir()
    for attributes, payload in ((6, b"x"), (1, b"no gzip"), (0, b"\x7f")):
        (folder / "0.log").write_bytes(forge.batch([], payload=payload, count=1, attributes=attributes, crc=1))
        (partition,) = Finder().find([str(folder)])
        items = list(PartitionReader(include_damaged=True).read(partition))
        assert isinstance(items[0], DamagedRange)
        assert not any(isinstance(item, DamagedRange) or item.records for item in items[1:])


def test_damaged_batches_are_found_after_other_damage(folder):
    """A batch of an earlier offset, and a valid batch inside one, are not shown."""

    def one(offset, value=b"v", **rest):
        return forge.batch([forge.record(b"k", value)], base_offset=offset, **rest)

    def found(*parts, on_error="resync", tail=None):
        (folder / f"{0:020}.log").write_bytes(b"".join(parts))
        (partition,) = Finder().find([str(folder)])
        reader = PartitionReader(include_damaged=True, on_error=on_error)
        items = reader.read(partition) if tail is None else reader.tail(partition, tail)
        return [(item.base_offset, item.crc_valid) for item in items if isinstance(item, SelectedBatch)]

    folder.mkdir()
    garbage = b"\xff" * 30
    between = one(0), garbage, one(1, crc=7), one(2)
    assert found(*between) == [(0, True), (1, False), (2, True)]
    assert found(*between, tail=2) == [(1, False), (2, True)]
    assert found(*between, on_error="stop") == [(0, True)]
    twice = one(0, crc=7), garbage, one(1, crc=7), one(2, crc=7), garbage, one(3)
    assert found(*twice) == [(0, False), (1, False), (2, False), (3, True)]
    assert found(*twice, tail=3) == [(1, False), (2, False), (3, True)]
    assert found(*twice, on_error="stop") == [(0, False)]
    assert found(one(1, crc=7), garbage, one(0, crc=7), one(2)) == [(1, False), (2, True)]
    assert found(one(0), one(1, one(5), crc=7), one(2)) == [(0, True), (1, False), (2, True)]


def test_an_empty_batch_is_a_batch(folder):
    folder.mkdir()
    (folder / "0.log").write_bytes(forge.batch([], last_offset_delta=4))
    (item,) = PartitionReader().read(next(Finder().find([str(folder)])))
    assert isinstance(item, SelectedBatch)
    assert item.records == []


def test_a_file_that_cannot_be_read_does_not_end_the_others(folder):
    write(folder, 0, 2)
    path = write(folder, 32, 2)
    fails = []
    reader = PartitionReader(report=Reporter(fail=fails.append))
    (partition,) = Finder().find([str(folder)])
    path.unlink()
    assert sum(len(item.records) for item in reader.read(partition)) == 32
    assert [error.path for error in fails] == [str(path)]
    with pytest.raises(UnreadableError):
        list(PartitionReader().read(partition))


def test_a_checkpoint_that_is_not_one_is_said(folder):
    write(folder, 0, 1)
    (folder.parent / "replication-offset-checkpoint").write_text("0\nmany\n")
    taken = take(folder)
    assert len(taken.offsets) == 16
    assert "replication-offset-checkpoint" in taken.notes[0]


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """A segment of 64 MiB with indexes."""
    folder = tmp_path_factory.mktemp("big") / "t-0"
    return write(folder, 0, 4096, value=bytes(1000), interval=4096)


@pytest.fixture
def counted(monkeypatch):
    """Count the bytes that are read of files."""
    read = local.LocalFile.read
    count = [0]

    def counting(self, position, size):
        data = read(self, position, size)
        count[0] += len(data)
        return data

    monkeypatch.setattr(local.LocalFile, "read", counting)
    return count


@pytest.mark.parametrize("first", [0, 1, 30_000, 65_000, 65_436])
def test_seeking_reads_little(big, counted, first):
    size = big.stat().st_size
    assert size > 64 << 20
    assert take(big, first_offset=first, last_offset=first + 99).offsets == list(range(first, first + 100))
    assert counted[0] < size / 100
    counted[0] = 0
    reader = PartitionReader(filter=Filter(since=TIME + first * 1000))
    (partition,) = Finder().find([str(big)])
    offsets = []
    for item in reader.read(partition):
        offsets += [record.offset for record in item.records]
        if len(offsets) >= 100:
            break
    assert offsets[:100] == list(range(first, first + 100))
    assert counted[0] < size / 100


def test_nothing_that_late_reads_little(big, counted):
    assert take(big, since=TIME + 65_536_000).offsets == []
    assert counted[0] < big.stat().st_size / 100


def damage_index(path, entry, layout, change):
    data = bytearray(path.read_bytes())
    fields = layout.read(data, entry * layout.size)
    data[entry * layout.size : (entry + 1) * layout.size] = layout.write(change(fields))
    path.write_bytes(data)


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry._replace(position=entry.position + 1),
        lambda entry: entry._replace(position=0x7FFFFFF0),
        lambda entry: entry._replace(position=-5),
        lambda entry: entry._replace(position=entry.position * 2),
    ],
)
def test_a_wrong_offset_index_is_said_and_not_believed(folder, change):
    path = write(folder, 0, 300, value=bytes(100), interval=4096)
    entries = path.stat().st_size // 4096
    for entry in (10, entries // 2):
        write(folder, 0, 300, value=bytes(100), interval=4096)
        index = path.with_suffix(".index")
        layout = offset_index.OffsetIndex.layout
        offset = layout.read(index.read_bytes(), entry * layout.size).relative_offset
        damage_index(index, entry, layout, change)
        taken = take(folder, first_offset=offset, last_offset=offset + 2)
        assert taken.offsets == [offset, offset + 1, offset + 2]
        assert taken.notes
        assert f"{index}: entry {entry}" in taken.notes[0]


def test_an_offset_index_that_leads_too_far_is_noticed(folder):
    path = write(folder, 0, 300, value=bytes(100), interval=4096)
    layout = offset_index.OffsetIndex.layout
    damage_index(path.with_suffix(".index"), 10, layout, lambda entry: entry._replace(relative_offset=500))
    taken = take(folder, first_offset=510, last_offset=511)
    assert taken.offsets == [510, 511]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_ragged_index_is_said(folder, suffix):
    path = write(folder, 0, 300, value=bytes(100), interval=4096)
    index = path.with_suffix(suffix)
    index.write_bytes(index.read_bytes() + b"x")
    taken = take(folder, since=TIME + 3_000_000, first_offset=10)
    assert taken.offsets[0] == 3000
    assert str(index) in taken.notes[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry._replace(timestamp=entry.timestamp + 10_000_000),
        lambda entry: entry._replace(timestamp=entry.timestamp + 1),
        lambda entry: entry._replace(relative_offset=entry.relative_offset + 40),
        lambda entry: entry._replace(relative_offset=0),
    ],
)
def test_a_wrong_time_index_is_said_and_not_believed(folder, change):
    path = write(folder, 0, 300, value=bytes(100), interval=4096)
    index = path.with_suffix(".timeindex")
    layout = time_index.TimeIndex.layout
    stored = layout.read(index.read_bytes(), 20 * layout.size)
    damage_index(index, 20, layout, change)
    taken = take(folder, since=stored.timestamp + 2000)
    assert taken.offsets == list(range(stored.relative_offset + 2, 4800))
    assert str(index) in taken.notes[0]


def test_a_zero_tail_of_a_live_index_is_no_entry(folder):
    path = write(folder, 0, 300, value=bytes(100), interval=4096)
    for suffix, size in ((".index", 4096), (".timeindex", 4092)):
        index = path.with_suffix(suffix)
        index.write_bytes(index.read_bytes().ljust(size, b"\0"))
    taken = take(folder, since=TIME + 4_799_000, first_offset=4700)
    assert (taken.offsets, taken.notes) == ([4799], [])


def test_timestamps_that_go_back_are_found(folder):
    """A time index has rising entries only: records after its last one may still be late enough."""
    folder.mkdir()
    data, late = bytearray(), TIME + 50
    for n in range(400):
        stamp = late if n == 3 else TIME + n % 7
        data += forge.batch([forge.record(b"k", bytes(900))], base_offset=n, base_timestamp=stamp)
    path = folder / "00000000000000000000.log"
    path.write_bytes(data)
    path.with_suffix(".index").write_bytes(
        offset_index.encode([offset_index.OffsetPosition(5, 5 * len(data) // 400)], 0)
    )
    path.with_suffix(".timeindex").write_bytes(time_index.encode([time_index.TimestampOffset(late, 3)], 0))
    assert take(folder, since=late).offsets == [3]
    assert take(folder, since=late + 1).offsets == []
    assert take(folder, since=TIME + 6).offsets == [n for n in range(400) if n == 3 or n % 7 == 6]
