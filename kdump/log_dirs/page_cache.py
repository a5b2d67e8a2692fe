"""``--cache drop``: evicts the pages that kdump has loaded into the page cache, and leaves the broker's pages there.

A broker serves consumers from the page cache, and kdump's reads would replace its pages. Linux reports the cached pages
of a mapping (mincore), and evicts pages on request (posix_fadvise). The mapping is never read, because a read of
truncated pages would kill the process (SIGBUS).
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
"""If a page of a read is cached, the state of this many later pages is noted too: the system may read them ahead."""
FOLIO: Final = (2 << 20) // PAGE
"""Number of pages of the largest folio of Linux. Linux does not evict a part of a folio."""
_BEYOND: Final = (64 << 20) // PAGE
"""At this number of pages past the end of the file no page is cached, even if the file grows."""
_MISSING: Final = re.compile(rb"\0+")


class Guard:
    """Notes which pages of an open file are cached before a read, and evicts the others at a later read or close.

    Raises OSError if the system does not report the cached pages.
    """

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
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # turn read-ahead off
        except OSError:
            self.close()
            raise

    def before(self, position: int, size: int) -> None:
        """Note which pages of a read are cached. Evict what earlier reads loaded, except what this read may need."""
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
        self._leave(len(self._was))
        self._libc.munmap(ctypes.c_void_p(self._start), self._length)

    def _look(self, last: int) -> None:
        """Note which pages before ``last`` are cached. Each page is noted once, before kdump can load it."""
        known = self._first + len(self._was)
        if known < last:
            self._was += self._cached(known, last)

    def _leave(self, count: int) -> None:
        """Forget the first ``count`` noted pages. Evict those that were not cached before the read."""
        for run in _MISSING.finditer(self._was, 0, count):
            start, size = (self._first + run.start()) * PAGE, (run.end() - run.start()) * PAGE
            os.posix_fadvise(self._fd, start, size, os.POSIX_FADV_DONTNEED)
        del self._was[:count]
        self._first += count

    def _cached(self, first: int, last: int) -> bytearray:
        found = bytearray(last - first)
        if found:
            room = (ctypes.c_char * len(found)).from_buffer(found)
            start = ctypes.c_void_p(self._start + first * PAGE)
            if self._libc.mincore(start, ctypes.c_size_t(len(found) * PAGE), room):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return found


class Watch:
    """Makes a :class:`Guard` for a file, or None if this fails. This process and its forks call ``note`` only once."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._noted = mmap.mmap(-1, 1)

    def __call__(self, name: str, fd: int, size: int) -> Guard | None:
        try:
            return Guard(fd, size)
        except OSError as reason:
            if not self._noted[0]:
                self._noted[0] = 1
                self._note(f"{name}: --cache drop cannot evict pages: {reason.strerror or reason}")
            return None
