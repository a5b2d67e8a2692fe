"""Batches unpacked by threads ahead of whoever reads them, in the same order and with the same outcome.

Codecs work without Python's global lock, so that one processor unpacks while another prints. What a thread cannot
unpack stays as it was: whoever asks for it meets the same damage as without threads.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

from kdump.errors import DamageError, KdumpError
from kdump.formats.batch import CODEC_MASK, Batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.pieces import Piece

WORTH_IT: Final = 1 << 17
"""Bytes of compressed batches from which on threads are started: below, they cost more than they bring."""
CHUNK: Final = 1 << 17
"""Bytes of the file that are handed to a thread at a time."""
PIECES: Final = 64
"""Pieces that are handed over at a time, at most: the smallest batches are the slowest."""
CHUNKS: Final = 4
"""Chunks that are under way."""
HELD: Final = 16 << 20
"""Unpacked bytes that wait to be read and keep a thread from unpacking more."""
THREADS: Final = 2


class _Chunk:
    """Pieces that follow each other. ``ready`` is locked until a thread is through with them."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = deque(pieces)
        self.ready = threading.Lock()
        self.ready.acquire()


class _Unpacker:
    """Threads that unpack chunks; they end when they are told to, or with the process."""

    def __init__(self, threads: int) -> None:
        self.held = 0
        """Bytes that are unpacked and not yet read."""
        self._lock = threading.Lock()
        self.ended = False
        self._todo: SimpleQueue[_Chunk | None] = SimpleQueue()
        self._threads = 0
        with suppress(RuntimeError):  # the system gives no more threads: those that it gave do, or none
            for _ in range(threads):
                thread = threading.Thread(target=self._run, name="unpacker", daemon=True)
                with self._lock:
                    thread.start()
                    self._threads += 1

    def hand(self, chunk: _Chunk) -> None:
        with self._lock:
            if self._threads:
                self._todo.put(chunk)
                return
        chunk.ready.release()

    def hold(self, size: int) -> None:
        """Count ``size`` more bytes as unpacked and not yet read."""
        with self._lock:
            self.held += size

    def end(self) -> None:
        self.ended = True
        for _ in range(self._threads):
            self._todo.put(None)

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._leave()

    def _leave(self) -> None:
        """With the last thread, let go of what nobody will unpack: its reader waits."""
        with self._lock:
            self._threads -= 1
            while not self._threads and not self._todo.empty():
                chunk = self._todo.get()
                if chunk is not None:
                    chunk.ready.release()

    def _work(self) -> None:
        while (chunk := self._todo.get()) is not None:
            try:
                for piece in tuple(chunk.pieces):
                    if self.ended or self.held > HELD:
                        break
                    if isinstance(piece, Batch):
                        self.hold(self._unpack(piece))
            finally:
                chunk.ready.release()

    def _unpack(self, batch: Batch) -> int:
        try:
            return batch.unpack()
        except (DamageError, MemoryError, ImportError):  # whoever reads the batch meets it too, in its place
            return 0


def unpacked(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield ``pieces``; compressed batches among them may be unpacked already.

    Pieces are taken ahead of time: what ends the stream is raised behind the last one before it.
    """
    stream = iter(pieces)
    threads = min(THREADS, processors() - 1)
    seen = 0
    for piece in stream:
        yield piece
        if isinstance(piece, Batch) and piece.attributes & CODEC_MASK:
            seen += piece.size
            if seen > WORTH_IT and threads > 0:
                break
    else:
        return
    unpacker = _Unpacker(threads)
    try:
        yield from _in_order(stream, unpacker)
    finally:
        unpacker.end()


def _in_order(stream: Iterator[Piece], unpacker: _Unpacker) -> Iterator[Piece]:
    waiting: deque[_Chunk] = deque()
    failure: KdumpError | MemoryError | None = None
    more = True
    while more or waiting:
        while more and len(waiting) < CHUNKS:
            pieces: list[Piece] = []
            try:
                more = _fill(pieces, stream)
            except (KdumpError, MemoryError) as error:
                failure, more = error, False
            if pieces:
                waiting.append(_Chunk(pieces))
                unpacker.hand(waiting[-1])
        if waiting:
            chunk = waiting.popleft()
            with chunk.ready:
                pass
            while chunk.pieces:
                piece = chunk.pieces.popleft()
                if isinstance(piece, Batch):
                    unpacker.hold(-piece.unpacked_size)
                yield piece
    if failure is not None:
        raise failure


def _fill(pieces: list[Piece], stream: Iterator[Piece]) -> bool:
    """Take a chunk off the stream; return whether there may be more."""
    size = 0
    while size < CHUNK and len(pieces) < PIECES:
        piece = next(stream, None)
        if piece is None:
            return False
        pieces.append(piece)
        size += piece.size
    return True


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
