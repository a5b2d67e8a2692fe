import threading
import time

import pytest

from kdump import ahead, codecs
from kdump.errors import DamageError, UnreadableError
from kdump.formats.batch import Batch
from kdump.pieces import Damage, Trailing
from kdump.segment import LocalFile, walk
from tests import forge

COUNT = 400


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Threads from the second compressed batch on, whatever the machine has."""
    monkeypatch.setattr(ahead, "WORTH_IT", 0)
    monkeypatch.setattr(ahead, "processors", lambda: 3)


def packed(number, codec=codecs.ZSTD, payload=None):
    records = [forge.record(b"k%d" % number, b"v" * 100, offset=delta) for delta in range(3)]
    payload = codecs.compress(codec, b"".join(records)) if payload is None else payload
    return forge.batch(records, base_offset=number * 3, attributes=codec, payload=payload)


def told(pieces):
    """What each piece holds, or how it is broken."""
    for piece in pieces:
        try:
            yield (piece.position, piece.size, list(piece.records()) if isinstance(piece, Batch) else type(piece))
        except DamageError as damage:
            yield (piece.position, piece.size, str(damage))


def unpackers():
    return [thread for thread in threading.enumerate() if thread.name == "unpacker"]


@pytest.mark.parametrize("codec", range(5), ids=codecs.NAMES.__getitem__)
def test_the_same_pieces_in_the_same_order(tmp_path, codec):
    path = tmp_path / "0.log"
    batches = [packed(number, codec if number % 7 else codecs.NONE) for number in range(COUNT)]
    batches[50] = packed(50, codec, payload=b"no such stream")
    batches[60] = packed(60, codecs.GZIP, payload=b"")
    batches[COUNT - 1] = batches[COUNT - 1][:-1]
    path.write_bytes(b"".join(batches))
    with LocalFile(path) as source:
        plain = list(told(walk(source)))
        assert list(told(ahead.unpacked(walk(source)))) == plain
    assert plain[-1][2] is Trailing
    assert "zstd" in plain[50][2] or codec != codecs.ZSTD


def test_what_ends_the_stream_is_raised_behind_what_stands_before_it():
    def pieces():
        data = packed(0)
        for number in range(COUNT):
            yield Batch(memoryview(data), number * len(data), len(data))
        raise UnreadableError("0.log", "byte 7: Input/output error")

    stream = ahead.unpacked(pieces())
    for _ in range(COUNT):
        assert isinstance(next(stream), Batch)
    with pytest.raises(UnreadableError):
        next(stream)


def test_threads_end_with_the_stream():
    data = packed(0)
    stream = ahead.unpacked(Batch(memoryview(data), 0, len(data)) for _ in range(COUNT))
    for _ in range(10):
        next(stream)
    assert len(unpackers()) == 2
    stream.close()
    for _ in range(500):
        if not unpackers():
            break
        time.sleep(0.01)
    assert unpackers() == []


def test_one_processor_has_no_threads(monkeypatch):
    monkeypatch.setattr(ahead, "processors", lambda: 1)
    data = packed(0)
    for _ in ahead.unpacked(Batch(memoryview(data), 0, len(data)) for _ in range(COUNT)):
        assert unpackers() == []


def test_what_waits_unpacked_is_bounded(monkeypatch):
    monkeypatch.setattr(ahead, "HELD", 1 << 20)
    payload = codecs.compress(codecs.ZSTD, bytes(1 << 20))
    data = packed(0, payload=payload)
    batches = [Batch(memoryview(data), 0, len(data)) for _ in range(COUNT)]
    for number, _ in enumerate(ahead.unpacked(iter(batches))):
        assert sum(batch.unpacked_size for batch in batches[number + 1 :]) <= 4 << 20
    assert number == COUNT - 1


def test_a_bomb_is_left_to_the_reader():
    data = packed(0, payload=codecs.compress(codecs.ZSTD, bytes(8 << 20)))
    for batch in ahead.unpacked(Batch(memoryview(data), 0, len(data), 1 << 20) for _ in range(COUNT)):
        assert batch.unpacked_size == 0
    with pytest.raises(DamageError, match="more than the limit"):
        batch.payload()


def test_damage_passes_through():
    damage = Damage(0, 5, "crc", "the checksum is wrong", 0)
    assert list(ahead.unpacked(iter([damage]))) == [damage]


@pytest.mark.parametrize("given", [0, 1])
def test_a_system_that_gives_no_more_threads(monkeypatch, given):
    started = []
    start = threading.Thread.start

    def sparing(thread):
        if len(started) == given:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    data = packed(0)
    monkeypatch.setattr(threading.Thread, "start", sparing)
    pieces = list(ahead.unpacked(Batch(memoryview(data), 0, len(data)) for _ in range(COUNT)))
    assert len(pieces) == COUNT
    assert len(started) == given


def test_threads_that_die_leave_nobody_waiting(monkeypatch):
    def fail(_):
        raise SystemError("a codec's own")

    died = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    monkeypatch.setattr(Batch, "unpack", fail)
    data = packed(0)
    pieces = list(ahead.unpacked(Batch(memoryview(data), 0, len(data)) for _ in range(COUNT)))
    assert len(pieces) == COUNT
    for thread in unpackers():
        thread.join(10)
    assert [each.exc_type for each in died] == [SystemError] * 2
