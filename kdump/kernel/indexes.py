# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""Entries of an index against the batches that they point at: which of them are right beyond doubt.

Beyond doubt is an entry at whose place a well-formed batch of magic 2 says what the entry says. All others are left to
whoever asked, who reads the log in the general way and knows what to say of it.

This module is for the compiled build alone: in plain Python it would be no faster than the general way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.formats.record_layout import BATCH_HEADER, CODEC_MASK, LOG_OVERHEAD, MAGIC_2, TIMESTAMP_TYPE_FLAG
from kdump.kernel.cursor import FAR, RECORD_NUMBERS

if TYPE_CHECKING:
    import cython
else:
    from kdump.kernel import _shadow as cython

if not cython.compiled:
    from kdump.kernel.cursor import Cursor
else:
    from cython.cimports.kdump.kernel.cursor import Cursor  # type: ignore[no-redef]  # the same in C
    from cython.cimports.kdump.kernel.words import big
    from cython.cimports.posix.unistd import pread
if TYPE_CHECKING:
    from kdump.primitives.wire import Bytes

STAMP: Final = "d351350f"

_WINDOW = cython.declare(cython.Py_ssize_t, 1 << 18)
"""Bytes of the log that are read at a time where records are looked at; larger batches are left to the general way."""
_NEAR = cython.declare(cython.Py_ssize_t, 1 << 12)
"""Bytes from one header to the next up to which several are read at a time."""
_SEVERAL = cython.declare(cython.Py_ssize_t, 1 << 14)
_STEPS = cython.declare(cython.int, 64)
"""Batches behind the entry of the ``.index`` that are looked at: nobody can interrupt this."""
_FAR = cython.declare(cython.longlong, FAR)
_TIMESTAMP = cython.declare(cython.int, RECORD_NUMBERS.index("timestamp"))
_OFFSET_ENTRY = cython.declare(cython.Py_ssize_t, 8)
_TIME_ENTRY = cython.declare(cython.Py_ssize_t, 12)

_HEADER = cython.declare(cython.Py_ssize_t, BATCH_HEADER.size)
_OVERHEAD = cython.declare(cython.Py_ssize_t, LOG_OVERHEAD.size)
_AT_LENGTH = cython.declare(cython.Py_ssize_t, BATCH_HEADER.offsets["length"])
_AT_MAGIC = cython.declare(cython.Py_ssize_t, BATCH_HEADER.offsets["magic"])
_AT_ATTRIBUTES = cython.declare(cython.Py_ssize_t, BATCH_HEADER.offsets["attributes"])
_AT_LAST_DELTA = cython.declare(cython.Py_ssize_t, BATCH_HEADER.offsets["last_offset_delta"])
_AT_BASE_TIMESTAMP = cython.declare(cython.Py_ssize_t, BATCH_HEADER.offsets["base_timestamp"])
_AT_MAX_TIMESTAMP = cython.declare(cython.Py_ssize_t, BATCH_HEADER.offsets["max_timestamp"])
_AT_BASE_SEQUENCE = cython.declare(cython.Py_ssize_t, BATCH_HEADER.offsets["base_sequence"])
_AT_COUNT = cython.declare(cython.Py_ssize_t, BATCH_HEADER.offsets["records_count"])
_MAGIC = cython.declare(cython.int, MAGIC_2)
_CODEC_MASK = cython.declare(cython.longlong, CODEC_MASK)
_APPENDED = cython.declare(cython.longlong, TIMESTAMP_TYPE_FLAG)


@cython.final
@cython.cclass
class Held(Cursor):
    """Holds entries of one segment's indexes against its log.

    Every answer is a byte for an entry, 0 where it is right beyond doubt and 1 elsewhere.
    """

    fd: cython.int
    log_end: cython.longlong
    most: cython.longlong
    base: cython.longlong
    sane: cython.bint
    window: cython.uchar[::1]
    window_at: cython.longlong
    held: cython.Py_ssize_t
    entries: cython.const[cython.uchar][::1]
    offsets: cython.const[cython.uchar][::1]
    flags: cython.uchar[::1]
    batch_size: cython.longlong
    last: cython.longlong

    def __init__(self, fd: int, log_end: int, most: int, base: int) -> None:
        """``fd`` is the open log, ``log_end`` and ``most`` are the bytes of it and of a batch that are believed.

        ``base`` is the base offset of the segment.
        """
        self.sane = -_FAR < base < _FAR
        self.fd, self.log_end, self.most = fd, log_end, most
        self.base = base if self.sane else 0
        self.window_at = self.held = 0
        window = bytearray(_WINDOW)
        self.window = self.data = window

    def by_offset(self, entries: Bytes, first: int, stop: int, flags: bytearray) -> None:
        """Hold entries of an ``.index``, from ``first`` up to ``stop``, against the last offsets of their batches."""
        self.entries, self.flags = entries, flags
        slot: cython.Py_ssize_t = first
        end: cython.Py_ssize_t = stop
        with cython.nogil:
            while slot < end:
                self.flags[slot] = not (self.sane and self.offset_entry(slot))
                slot += 1

    def by_time(self, entries: Bytes, offsets: Bytes, first: int, stop: int, flags: bytearray) -> None:
        """Hold entries of a ``.timeindex``, from ``first`` up to ``stop``, against the records of their batches.

        ``offsets`` are all entries of the ``.index``; they rise.
        """
        self.entries, self.offsets, self.flags = entries, offsets, flags
        slot: cython.Py_ssize_t = first
        end: cython.Py_ssize_t = stop
        while slot < end:
            try:
                with cython.nogil:
                    while slot < end:
                        self.flags[slot] = not (self.sane and self.time_entry(slot))
                        slot += 1
            except IndexError:  # the records of a batch end too early
                self.flags[slot] = 1
                slot += 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def offset_entry(self, slot: cython.Py_ssize_t) -> cython.bint:
        """Tell whether an entry names the last offset of the batch at its position."""
        relative: cython.longlong = big(cython.address(self.entries[slot * _OFFSET_ENTRY]), 4)
        position: cython.longlong = big(cython.address(self.entries[slot * _OFFSET_ENTRY + 4]), 4)
        following: cython.Py_ssize_t = (slot + 1) * _OFFSET_ENTRY
        if relative == 0 and slot > 0:
            return False
        near: cython.longlong = 0
        if following + _OFFSET_ENTRY <= self.entries.shape[0]:
            near = big(cython.address(self.entries[following + 4]), 4) - position
        at: cython.Py_ssize_t = self.load(position, _HEADER, _SEVERAL if 0 < near <= _NEAR else _HEADER)
        return at >= 0 and self.header_at(position, at) and self.last == self.base + relative

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def time_entry(self, slot: cython.Py_ssize_t) -> cython.bint:
        """Tell whether an entry names the last offset of a batch, and the largest timestamp of its records."""
        timestamp: cython.longlong = big(cython.address(self.entries[slot * _TIME_ENTRY]), 8)
        relative: cython.longlong = big(cython.address(self.entries[slot * _TIME_ENTRY + 8]), 4)
        if timestamp < 0:
            return False
        if slot > 0 and (relative == 0 or big(cython.address(self.entries[(slot - 1) * _TIME_ENTRY]), 8) >= timestamp):
            return False
        position: cython.longlong = self.look_up(relative)
        at: cython.Py_ssize_t = self.load(position, _HEADER, _WINDOW)
        steps: cython.int = 0
        while at >= 0 and self.header_at(position, at) and self.last < self.base + relative and steps < _STEPS:
            position += self.batch_size
            at = self.load(position, _HEADER, _WINDOW)
            steps += 1
        if at < 0 or not self.header_at(position, at):
            return False
        if self.last != self.base + relative or self.batch_size > _WINDOW:
            return False
        at = self.load(position, self.batch_size, _WINDOW)
        return at >= 0 and self.highest(at) == timestamp

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def look_up(self, relative: cython.longlong) -> cython.longlong:
        """Return the position of the greatest entry of the ``.index`` that is not above an offset; 0 without one."""
        low: cython.Py_ssize_t = 0
        high: cython.Py_ssize_t = self.offsets.shape[0] // _OFFSET_ENTRY
        middle: cython.Py_ssize_t
        while low < high:
            middle = (low + high) // 2
            if big(cython.address(self.offsets[middle * _OFFSET_ENTRY]), 4) <= relative:
                low = middle + 1
            else:
                high = middle
        return big(cython.address(self.offsets[(low - 1) * _OFFSET_ENTRY + 4]), 4) if low > 0 else 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def load(self, position: cython.longlong, size: cython.longlong, ahead: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Return where ``size`` bytes of the log stand in the window, -1 where they cannot be read.

        ``ahead`` bytes are read when they are not there; both are at most the size of the window.
        """
        at: cython.longlong = position - self.window_at
        if at >= 0 and at + size <= self.held:
            return at
        if position < 0 or position > self.log_end:
            return -1
        self.window_at = position
        self.held = pread(self.fd, cython.address(self.window[0]), ahead, position)
        return 0 if size <= self.held else -1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def header_at(self, position: cython.longlong, at: cython.Py_ssize_t) -> cython.bint:
        """Read size and last offset of the batch at ``position``; tell whether they can be believed."""
        base: cython.longlong = big(cython.address(self.window[at]), 8)
        self.batch_size = _OVERHEAD + big(cython.address(self.window[at + _AT_LENGTH]), 4)
        if not -_FAR < base < _FAR:
            return False
        self.last = base + big(cython.address(self.window[at + _AT_LAST_DELTA]), 4)
        return (
            self.window[at + _AT_MAGIC] == _MAGIC
            and _HEADER <= self.batch_size <= self.most
            and position + self.batch_size <= self.log_end
        )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def highest(self, at: cython.Py_ssize_t) -> cython.longlong:
        """Return the largest timestamp of the records of the batch in the window, -1 without one.

        -2 stands for records that are not well-formed, or that are compressed.
        """
        attributes: cython.longlong = big(cython.address(self.window[at + _AT_ATTRIBUTES]), 2)
        self.base_offset = big(cython.address(self.window[at]), 8)
        self.base_timestamp = big(cython.address(self.window[at + _AT_BASE_TIMESTAMP]), 8)
        self.base_sequence = big(cython.address(self.window[at + _AT_BASE_SEQUENCE]), 4)
        self.appended = attributes & _APPENDED != 0
        self.values[_TIMESTAMP] = big(cython.address(self.window[at + _AT_MAX_TIMESTAMP]), 8)
        self.left = big(cython.address(self.window[at + _AT_COUNT]), 4)
        if attributes & _CODEC_MASK or self.left < 0 or not -_FAR < self.base_timestamp < _FAR:
            return -2
        self.at = at + _HEADER
        self.end = at + self.batch_size
        found: cython.longlong = -1
        while self.left > 0:
            if not self.read():
                return -2
            self.left -= 1
            if self.values[_TIMESTAMP] > found:  # noqa: PLR1730  max() may need the GIL
                found = self.values[_TIMESTAMP]
        return found
