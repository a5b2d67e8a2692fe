"""The fastest possible ``salvage`` on a disk: a copy that reads, computes a checksum and writes, in 1 to 3 threads.

    python -m bench.bare_copy FILE DIR [--jobs N] [--disk]

With ``--jobs 2`` and more, one thread reads and computes, one writes, and one makes the disk start to write. This was
the fastest of the tried ways to share the work. With ``--disk`` the threads only write the same number of bytes, past
the page cache: the time of the disk. In both cases all bytes are on the disk at the end, as after ``salvage``.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from kdump import kernel
from kdump.log_salvage.writer import STEP
from kdump.output import files
from kdump.primitives.crc import crc32c
from tools import arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

BLOCK: Final = 1 << 20
AHEAD: Final = 4
"""Maximum number of blocks that are read but not yet written."""


def main() -> int:
    """Copy; return the exit status."""
    parser = arguments.parser(__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("dir", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--disk", action="store_true")
    args = parser.parse_args()
    args.dir.mkdir()
    if args.disk:
        _write_past_cache(args.dir / args.file.name, args.file.stat().st_size, args.jobs)
        return 0
    with args.file.open("rb", 0) as source, (args.dir / args.file.name).open("xb", 0) as copy:
        if args.jobs == 1:
            _write(copy, _blocks(source), lambda: files.begin_flush(copy))
        else:
            _by_threads(source, copy)
        os.fsync(copy.fileno())
    return 0


def _write_past_cache(path: Path, size: int, jobs: int) -> None:
    """Write ``size`` bytes, and at most a STEP more."""
    copy = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
    block = mmap.mmap(-1, STEP)  # on a border of pages, as the disk wants it
    block.write(bytes(range(256)) * (STEP >> 8))
    places = SimpleQueue[int]()
    for at in range(0, size, STEP):
        places.put(at)
    kernel.reserve(copy, size)

    def writer() -> None:
        with suppress(Empty):
            while True:
                os.pwrite(copy, block, places.get_nowait())

    threads = [threading.Thread(target=writer) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.fsync(copy)
    os.close(copy)


def _blocks(source: BinaryIO) -> Iterator[bytes]:
    while block := source.read(BLOCK):
        crc32c(block)
        yield block


def _write(copy: BinaryIO, blocks: Iterator[bytes], flush: Callable[[], object]) -> None:
    done = 0
    for block in blocks:
        if not done % STEP:
            kernel.reserve(copy.fileno(), done + STEP)
        copy.write(block)
        done += len(block)
        if not done % STEP:
            flush()
    copy.truncate()  # gives the rest back


def _by_threads(source: BinaryIO, copy: BinaryIO) -> None:
    read: SimpleQueue[bytes] = SimpleQueue()
    steps: SimpleQueue[bool] = SimpleQueue()
    room = threading.Semaphore(AHEAD)

    def reader() -> None:
        for block in _blocks(source):
            room.acquire()
            read.put(block)
        read.put(b"")

    def flusher() -> None:
        while steps.get():
            files.begin_flush(copy)

    def blocks() -> Iterator[bytes]:
        while block := read.get():
            room.release()
            yield block

    threads = [threading.Thread(target=run) for run in (reader, flusher)]
    for thread in threads:
        thread.start()
    _write(copy, blocks(), lambda: steps.put(item=True))
    steps.put(item=False)
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    sys.exit(main())
