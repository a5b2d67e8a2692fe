import threading
import time
from contextlib import closing
from types import SimpleNamespace

import pytest

from kdump.errors import DamageError, UnreadableError
from kdump.log_dirs.local import LocalFile
from kdump.parallel import chunks, costs
from kdump.parallel.chunks import Turn
from kdump.primitives import compression
from kdump.primitives.compression import DEFAULT_LIMIT
from kdump.records.magic_2 import Batch
from kdump.segments import read_ahead, resync
from kdump.segments.batch_runs import Run
from kdump.segments.regions import DATA, PLAIN_DATA, Trailing
from kdump.segments.walk import walk
from testing import forge

COUNT = 400
PATIENCE = 60
"""Seconds after which a test stops waiting for other threads."""


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Threads start at the first regions, a few at a time, on any machine."""
    monkeypatch.setattr(read_ahead, "FIRST", 0)
    monkeypatch.setattr(costs, "READING_AHEAD", 0)
    monkeypatch.setattr(costs, "UNPACKED_AHEAD", 0)
    monkeypatch.setattr(read_ahead, "CHUNK_REGIONS", 10)
    monkeypatch.setattr(costs, "processors", lambda: 3)
    yield
    wait_for_their_end()


@pytest.fixture
def log(tmp_path):
    """Make a segment."""

    def make(*batches):
        path = tmp_path / "0.log"
        path.write_bytes(b"".join(batches))
        return path

    return make


def packed(number, codec=compression.ZSTD, payload=None):
    records = [forge.record(b"k%d" % number, b"v" * 100, offset=delta) for delta in range(3)]
    payload = compression.compress(codec, b"".join(records)) if payload is None else payload
    return forge.batch(records, base_offset=number * 3, attributes=codec, payload=payload)


def reported(regions):
    """Return the content of each region, or its damage."""
    for region in regions:
        for each in map(region.batch, range(region.batch_count)) if isinstance(region, Run) else [region]:
            try:
                yield (each.position, each.size, list(each.records()) if isinstance(each, Batch) else type(each))
            except DamageError as damage:
                yield (each.position, each.size, str(damage))


def read(source, limit=DEFAULT_LIMIT, *, unpack=True):
    revocable = read_ahead.RevocableSource(source)
    regions = walk(revocable, 0, source.size, limit=limit, runs=PLAIN_DATA if unpack else DATA)
    return read_ahead.read(regions, revocable, source.size, unpack=unpack)


def read_making(source, make):
    revocable = read_ahead.RevocableSource(source)
    regions = walk(revocable, 0, source.size, limit=DEFAULT_LIMIT, runs=PLAIN_DATA)
    return read_ahead.read_making(regions, revocable, source.size, make, unpack=False)


def readers():
    return [thread for thread in threading.enumerate() if thread.name == "chunks"]


def wait_for_their_end():
    for thread in readers():
        thread.join(PATIENCE)
        assert not thread.is_alive()


@pytest.mark.parametrize("unpack", [False, True])
@pytest.mark.parametrize("codec", range(5), ids=compression.NAMES.__getitem__)
def test_the_same_pieces_in_the_same_order(log, codec, unpack):
    batches = [packed(number, codec if number % 7 else compression.NONE) for number in range(COUNT)]
    batches[50] = packed(50, codec, payload=b"no such stream")
    batches[60] = packed(60, compression.GZIP, payload=b"")
    batches[COUNT - 1] = batches[COUNT - 1][:-1]
    with LocalFile(log(*batches)) as source:
        plain = list(reported(walk(source)))
        assert list(reported(read(source, unpack=unpack))) == plain
    assert plain[-1][2] is Trailing
    assert "zstd" in plain[50][2] or codec != compression.ZSTD


@pytest.mark.parametrize("unpack", [False, True])
def test_batches_to_be_unpacked_stand_alone(log, unpack):
    with LocalFile(log(*map(packed, range(COUNT)))) as source:
        assert {type(region) for region in read(source, unpack=unpack)} == {Batch if unpack else Run}


def test_an_error_that_ends_the_stream_is_raised_after_the_records_before_it(log):
    class Broken(LocalFile):
        def read(self, position, size):
            if position:
                raise UnreadableError(self.name, f"byte {position}: Input/output error")
            return super().read(position, size)

    with Broken(log(*map(packed, range(4 * COUNT)))) as source:
        stream = read(source)
        seen = []
        with pytest.raises(UnreadableError):
            seen.extend(iter(lambda: next(stream), None))
    assert (1 << 16) - 1000 < seen[-1].end <= 1 << 16 < source.size


def test_a_bug_in_a_thread_is_no_quiet_end(log, monkeypatch):
    plain, taken = read_ahead.RegionChunks.take, []

    def fail(regions, *most):
        taken.append(regions)
        if len(taken) > 1:
            raise SystemError("a bug")
        return plain(regions, *most)

    monkeypatch.setattr(read_ahead.RegionChunks, "take", fail)
    with LocalFile(log(*map(packed, range(COUNT)))) as source, pytest.raises(SystemError):
        list(read(source))


def test_threads_end_with_the_stream(log):
    with LocalFile(log(*map(packed, range(COUNT)))) as source:
        stream = read(source)
        for _ in range(50):
            next(stream)
        assert len(readers()) == 2
        stream.close()
        wait_for_their_end()


def test_no_thread_reads_a_file_that_its_reader_has_closed(log, monkeypatch):
    path = log(*(packed(number, compression.NONE) for number in range(20 * COUNT)))
    reads = []
    plain = LocalFile.read

    def slow(source, position, size):
        reads.append(position)
        time.sleep(0.01)
        return plain(source, position, size)

    monkeypatch.setattr(LocalFile, "read", slow)
    with LocalFile(path) as source, closing(read(source)) as stream:
        for _ in range(6):
            next(stream)
    seen = len(reads)
    wait_for_their_end()
    assert len(reads) == seen


class Endless:
    """Some batches, and then endless damage; the LAST read waits until no more reads are wanted."""

    name, limit, size = "endless", DEFAULT_LIMIT, 1 << 40
    LAST = 50

    def __init__(self):
        self._batches = b"".join(packed(number) for number in range(COUNT))
        self.reads = 0
        self.searching, self.called_back = threading.Event(), threading.Event()

    def read(self, position, size):
        self.reads += 1
        if self.reads == self.LAST:
            self.searching.set()
            assert self.called_back.wait(PATIENCE)
        data = self._batches[position : position + size]
        return data + b"\xff" * (size - len(data))


class Signalling(read_ahead.RevocableSource):
    """A revocable source that notifies its source when it is closed."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "is_over" and value:
            self._source.called_back.set()


def test_a_search_through_damage_ends_with_the_stream(monkeypatch):
    monkeypatch.setattr(chunks, "IN_FLIGHT", COUNT)  # the threads reach the damage though nothing is read
    source = Endless()
    revocable = Signalling(source)
    reader = resync.ResyncReader(revocable, 0, source.size, "resync", 0, runs=PLAIN_DATA)
    with closing(read_ahead.read(reader.read(), revocable, source.size, unpack=True)) as stream:
        next(stream)
        assert source.searching.wait(PATIENCE)
    assert source.reads == Endless.LAST


def test_an_interruption_while_threads_begin_leaves_none(log, monkeypatch):
    start = threading.Thread.start

    def interrupted(thread):
        start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with LocalFile(log(*map(packed, range(COUNT)))) as source:
        stream = read(source)
        with pytest.raises(KeyboardInterrupt):
            next(stream)
        wait_for_their_end()


def test_one_processor_has_no_threads(log, monkeypatch):
    monkeypatch.setattr(costs, "processors", lambda: 1)
    with LocalFile(log(*map(packed, range(COUNT)))) as source:
        for _ in read(source):
            assert readers() == []


@pytest.mark.parametrize(
    ("size", "codec", "begin"),
    [
        (10_000, compression.NONE, False),
        (200_000, compression.NONE, True),
        (10_000, compression.ZSTD, True),  # decompression is more work
        (5_000, compression.ZSTD, False),
    ],
)
def test_threads_start_where_much_is_left(log, monkeypatch, size, codec, begin):
    monkeypatch.setattr(read_ahead, "FIRST", 1000)
    monkeypatch.setattr(costs, "READING_AHEAD", 50_000)
    begun, threads = [], chunks.Threads
    monkeypatch.setattr(chunks, "Threads", lambda *given: begun.append(given) or threads(*given))
    data = packed(0, codec)
    with LocalFile(log(*[data] * (size // len(data)))) as source:
        assert sum(region.size for region in read(source)) == source.size
    assert bool(begun) is begin


def test_small_compressed_batches_have_no_threads(log, monkeypatch):
    """The lock would change hands for each small batch; larger batches after them get threads."""
    monkeypatch.setattr(read_ahead, "FIRST", 1)
    monkeypatch.setattr(costs, "UNPACKED_AHEAD", 1000)
    begun, threads = [], chunks.Threads
    monkeypatch.setattr(chunks, "Threads", lambda *given: begun.append(given) or threads(*given))
    small = [packed(number) for number in range(COUNT)]
    with LocalFile(log(*small)) as source:
        assert len(list(read(source))) == COUNT
    assert begun == []
    large = [packed(number, compression.NONE, payload=bytes(1000)) for number in range(COUNT, 2 * COUNT)]
    with LocalFile(log(*small, *large)) as source:
        list(read(source))
    assert len(begun) == 1


def test_what_waits_unpacked_is_bounded(log, monkeypatch):
    monkeypatch.setattr(read_ahead, "HELD", 1 << 20)
    made, begun = [], threading.Event()
    plain = Batch.unpack
    monkeypatch.setattr(Batch, "unpack", lambda batch: (made.append(batch), begun.set(), plain(batch))[2])
    data = packed(0, payload=compression.compress(compression.ZSTD, bytes(1 << 20)))
    with LocalFile(log(*[data] * COUNT)) as source:
        for region in read(source):
            assert begun.wait(PATIENCE)
            waiting = [batch for batch in tuple(made) if batch.position > region.position]
            assert sum(batch.unpacked_size for batch in waiting) <= 4 << 20
    assert region.end == source.size
    assert made


def test_a_bomb_is_left_to_the_reader(log):
    data = packed(0, payload=compression.compress(compression.ZSTD, bytes(8 << 20)))
    with LocalFile(log(*[data] * COUNT)) as source:
        for batch in read(source, 1 << 20):
            assert batch.unpacked_size == 0
    with pytest.raises(DamageError, match="more than the limit"):
        batch.payload()


def test_a_system_that_gives_no_more_threads(log, few_threads):
    given, started = few_threads
    with LocalFile(log(*map(packed, range(COUNT)))) as source:
        assert len(list(read(source))) == COUNT
    assert len(started) == given


def test_a_bug_in_a_codec_is_raised_after_the_regions_before_it(log, monkeypatch):
    plain = Batch.unpack

    def fail(batch):
        if batch.base_offset >= 600:
            raise SystemError("a codec's own")
        return plain(batch)

    monkeypatch.setattr(Batch, "unpack", fail)
    seen = []
    with LocalFile(log(*map(packed, range(COUNT)))) as source, closing(read(source)) as stream:
        try:
            seen.extend(stream)
        except SystemError:
            assert len(seen) <= 200
        else:  # the caller was faster than the threads, and decompresses batches when it reads them
            assert len(seen) == COUNT
    assert [batch.base_offset for batch in seen] == [3 * number for number in range(len(seen))]


def test_what_waits_is_made_once_and_then_read(log, monkeypatch):
    monkeypatch.setattr(read_ahead, "Run", Batch)
    made, order, begun = [], [], threading.Event()

    def make(region):
        made.append(region.position)
        order.append(("made", region.position))
        begun.set()
        return SimpleNamespace(size=1000)

    with LocalFile(log(*map(packed, range(COUNT)))) as source:
        with closing(read_making(source, make)) as stream:
            for region, _ in stream:
                assert begun.wait(PATIENCE)  # there is room for chunks that threads take
                order.append(("read", region.position))
        want = [region.position for region in walk(source)]
    assert [position for what, position in order if what == "read"] == want
    assert len(made) == len(set(made))
    assert all(order.index(("made", position)) < order.index(("read", position)) for position in made)


@pytest.mark.parametrize("failure", [MemoryError(), DamageError("codec", "unknown")])
def test_what_cannot_be_made_is_left_to_its_reader(log, failure, monkeypatch):
    monkeypatch.setattr(read_ahead, "Run", Batch)
    tried = threading.Event()

    def make(_):
        tried.set()
        raise failure

    seen = 0
    with LocalFile(log(*map(packed, range(COUNT)))) as source:
        for _ in read_making(source, make):
            assert tried.wait(PATIENCE)
            seen += 1
    assert seen == COUNT


def test_no_more_is_made_than_may_be_held(monkeypatch):
    monkeypatch.setattr(read_ahead, "Run", int)
    made = []

    def make(number):
        made.append(number)
        return SimpleNamespace(size=read_ahead.HELD + 1)

    work = read_ahead.Preparation(make, unpack=False, check=False)
    ahead = Turn()
    first, second = work.make([0, 1], True, ahead), work.make([2], True, ahead)
    assert made == [0]
    assert [number for number, result in first.pairs + second.pairs if result is None] == [1, 2]
    work.hold(-first.held)
    work.make([3], True, ahead)
    assert made == [0, 3]


def test_a_caller_makes_nothing_of_a_chunk_in_its_turn(monkeypatch):
    monkeypatch.setattr(read_ahead, "Run", int)
    work = read_ahead.Preparation(lambda _: pytest.fail("made although it is read at once"), unpack=True, check=True)
    turn = Turn()
    turn.state = object()
    assert work.make([0, 1], True, turn) == ([(0, None), (1, None)], 0)
