"""Keep the page cache as it is: with ``--cache drop``, the pages that kdump loads are evicted after they are read.

A broker serves its consumers from the page cache, and reading its log dir would evict those pages. Linux reports which
pages of a mapping are cached (mincore), and evicts pages (posix_fadvise). The mapping here is never read, so that a
file that shrinks does no harm.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE: Final = mmap.PAGESIZE
AHEAD: Final = (16 << 20) // PAGE
"""Pages after cached ones that are watched too: reading those may start the read-ahead of the operating system."""
FOLIO: Final = (2 << 20) // PAGE
"""Pages that the kernel may hold as one folio: a part of one is never evicted."""
_BEYOND: Final = (64 << 20) // PAGE
"""Pages from the end of a file to one that cannot be cached, however fast the file grows."""
_MISSING: Final = re.compile(rb"\0+")


class Guard:
    """Watches one open file of ``size`` bytes. Raises OSError if the system does not report which pages are cached."""

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self._pages = -(-size // PAGE)
        self._first = 0
        self._was = bytearray()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self._length = ctypes.c_size_t((self._pages + _BEYOND) * PAGE)
        no_access, shared = 0, mmap.MAP_SHARED
        start = self._libc.mmap(None, self._length, no_access, shared, fd, ctypes.c_long(0))
        if start == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._start: int = start
        try:
            last = self._pages + _BEYOND
            if self._cached(last - 1, last) != b"\0":  # without permission mincore reports all pages as cached
                raise OSError(
                    "only the owner of a file, or a user who may write to it, can see which of its pages are cached"
                )
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # nothing is read beyond what is asked for
        except OSError:
            self.close()
            raise

    def before(self, position: int, size: int) -> None:
        """Prepare a read: evict the pages that earlier reads loaded and this one does not need."""
        first = min(position // PAGE, self._pages)
        last = max(first, min(-(-(position + size) // PAGE), self._pages))
        if 0 <= first - self._first <= len(self._was):
            self._leave(max(0, first - first % FOLIO - self._first))
        else:
            self._leave(len(self._was))
            self._first = first
        self._look(last)
        if self._was.find(1, first - self._first, last - self._first) >= 0:
            self._look(min(last + AHEAD, self._pages))

    def close(self) -> None:
        """Evict the rest."""
        self._leave(len(self._was))
        self._libc.munmap(ctypes.c_void_p(self._start), self._length)

    def _look(self, last: int) -> None:
        """Note which pages are cached, up to ``last``. Pages are noted once, as kdump itself may load them later."""
        known = self._first + len(self._was)
        if known < last:
            self._was += self._cached(known, last)

    def _leave(self, count: int) -> None:
        """Evict those of the first ``count`` noted pages that were not cached, and forget all of them."""
        for run in _MISSING.finditer(self._was, 0, count):
            start, size = (self._first + run.start()) * PAGE, (run.end() - run.start()) * PAGE
            os.posix_fadvise(self._fd, start, size, os.POSIX_FADV_DONTNEED)
        del self._was[:count]
        self._first += count

    def _cached(self, first: int, last: int) -> bytearray:
        """Return a byte for each page, zero where it is not cached."""
        found = bytearray(last - first)
        if found:
            room = (ctypes.c_char * len(found)).from_buffer(found)
            start = ctypes.c_void_p(self._start + first * PAGE)
            if self._libc.mincore(start, ctypes.c_size_t(len(found) * PAGE), room):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return found


class Watch:
    """Makes the guards of files. If none can be made, ``note`` is called once in this process and its forks."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._noted = mmap.mmap(-1, 1)

    def __call__(self, name: str, fd: int, size: int) -> Guard | None:
        try:
            return Guard(fd, size)
        except OSError as reason:
            if not self._noted[0]:
                self._noted[0] = 1
                self._note(f"{name}: --cache drop evicts nothing: {reason.strerror or reason}")
            return None
