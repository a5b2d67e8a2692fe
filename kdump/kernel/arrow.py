# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The records of one magic 2 batch after the other as the buffers of Arrow columns.

The buffers are those of Arrow's columnar format: numbers of a fixed width one behind the other; bytes one behind the
other, with the 32-bit offsets at which they start; a bit for each value that is not null, the lowest bit of a byte
first. Nothing of Arrow is linked: whoever takes the buffers makes arrays of them.

This module is for the compiled build alone: plain Python is faster with objects, which the general path turns around.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.kernel.cursor import RECORD_NUMBERS
from kdump.primitives.java_text import java_text

if TYPE_CHECKING:
    import cython
else:
    from kdump.kernel import _shadow as cython

if not cython.compiled:
    from kdump.kernel.cursor import Cursor
else:
    from cython.cimports.cpython.bytearray import (
        PyByteArray_AS_STRING,
        PyByteArray_FromStringAndSize,
        PyByteArray_Resize,
    )
    from cython.cimports.kdump.kernel.cursor import Cursor  # type: ignore[no-redef]  # the same in C
    from cython.cimports.libc.string import memcpy
if TYPE_CHECKING:
    from collections.abc import Collection

    from kdump.formats.record_layout import BatchHeader
    from kdump.primitives.wire import Bytes

STAMP: Final = "ba329bfa"

COLUMNS: Final = ("offset", "timestamp", "sequence", "attributes", "key", "value", "headers")
"""What can be made of each record: fields of :class:`kdump.formats.record.Record`."""
ALL: Final = (-(1 << 63), (1 << 63) - 1)
"""Bounds that take any offset, and any timestamp."""
_MOST: Final = 0x7FFFFFFF // 3  # offsets have 32 bits, and text may take three times the bytes that it was made of
_FIRST_ROOM = cython.declare(cython.Py_ssize_t, 1 << 12)

_OFFSET = cython.declare(cython.int, RECORD_NUMBERS.index("offset"))
_TIMESTAMP = cython.declare(cython.int, RECORD_NUMBERS.index("timestamp"))
_KEY_SIZE = cython.declare(cython.int, RECORD_NUMBERS.index("key_size"))
_VALUE_SIZE = cython.declare(cython.int, RECORD_NUMBERS.index("value_size"))
_SEQUENCE = cython.declare(cython.int, RECORD_NUMBERS.index("sequence"))


class Buffers(NamedTuple):
    """A column as Arrow wants it: how many values, how many of them null, and the buffers in the order of its type.

    ``children`` are the columns of a nested type.
    """

    length: int
    nulls: int
    buffers: tuple[bytearray | None, ...]
    children: tuple[Buffers, ...] = ()


@cython.final
@cython.cclass
class Memory:
    """Bytes that grow at their end."""

    memory: bytearray
    start: cython.p_uchar
    used: cython.Py_ssize_t
    room: cython.Py_ssize_t
    least: cython.Py_ssize_t

    def __init__(self) -> None:
        self.used = self.room = 0
        self.least = _FIRST_ROOM

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def reserve(self, more: cython.Py_ssize_t) -> cython.bint:
        """Make room for so many bytes."""
        if self.used + more > self.room:
            self.grow(more)
        return True

    @cython.cfunc
    @cython.with_gil
    @cython.exceptval(-1)
    def grow(self, more: cython.Py_ssize_t) -> cython.bint:
        """Make room for so many bytes, and for what will follow."""
        room: cython.Py_ssize_t = max(self.least, 2 * self.room, self.used + more)
        if self.room:
            PyByteArray_Resize(self.memory, room)
        else:
            self.memory = PyByteArray_FromStringAndSize(cython.NULL, room)
        self.room = room
        self.start = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(self.memory))
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def add_long(self, value: cython.longlong) -> cython.bint:
        """Add a number of 64 bits."""
        self.reserve(8)
        memcpy(self.start + self.used, cython.address(value), 8)
        self.used += 8
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def add_int(self, value: cython.int) -> cython.bint:
        """Add a number of 32 bits."""
        self.reserve(4)
        memcpy(self.start + self.used, cython.address(value), 4)
        self.used += 4
        return True

    @cython.cfunc
    def take(self) -> bytearray:
        """Return what was added, and begin anew, at once with a little more room than it took."""
        self.reserve(1)
        taken = self.memory
        PyByteArray_Resize(taken, self.used)
        self.least = max(_FIRST_ROOM, self.used + self.used // 16)
        self.used = self.room = 0
        return taken


@cython.final
@cython.cclass
class Binary:
    """Bytes of any size, or null, one value behind the other."""

    offsets: Memory
    content: Memory
    valid: Memory
    length: cython.Py_ssize_t
    nulls: cython.Py_ssize_t
    kept_length: cython.Py_ssize_t
    kept_nulls: cython.Py_ssize_t
    kept_size: cython.Py_ssize_t

    def __init__(self) -> None:
        self.offsets, self.content, self.valid = Memory(), Memory(), Memory()
        self.begin()

    @cython.cfunc
    @cython.exceptval(-1)
    def begin(self) -> cython.bint:
        """Begin with no value."""
        self.length = self.nulls = 0
        return self.offsets.add_int(0)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def add(self, value: cython.pointer[cython.const[cython.uchar]], size: cython.Py_ssize_t) -> cython.bint:
        """Add a value; one of negative size is null."""
        bit: cython.int = 1 << (self.length & 7)
        self.valid.used = self.length >> 3
        self.valid.reserve(1)
        byte: cython.p_uchar = self.valid.start + self.valid.used
        if bit == 1:
            byte[0] = 0
        if size < 0:
            self.nulls += 1
        else:
            byte[0] |= bit
            self.content.reserve(size)
            memcpy(self.content.start + self.content.used, value, size)
            self.content.used += size
        self.length += 1
        return self.offsets.add_int(cython.cast(cython.int, self.content.used))

    @cython.cfunc
    @cython.exceptval(check=False)
    def mark(self) -> cython.void:
        """Remember what was added so far."""
        self.kept_length, self.kept_nulls, self.kept_size = self.length, self.nulls, self.content.used

    @cython.cfunc
    @cython.exceptval(check=False)
    def back(self) -> cython.void:
        """Drop what was added since it was last marked."""
        self.length, self.nulls, self.content.used = self.kept_length, self.kept_nulls, self.kept_size
        self.offsets.used = 4 * (self.length + 1)
        if self.length & 7:
            self.valid.start[self.length >> 3] &= (1 << (self.length & 7)) - 1

    @cython.cfunc
    def take(self) -> Buffers:
        """Return what was added, and begin anew."""
        self.valid.used = (self.length + 7) >> 3
        valid = self.valid.take() if self.nulls else None
        taken = Buffers(self.length, self.nulls, (valid, self.offsets.take(), self.content.take()))
        self.begin()
        return taken


@cython.final
@cython.cclass
class Columns(Cursor):
    """Turns the records of one batch after the other into columns.

    ``rows`` counts the records since the columns were last taken, ``size`` the bytes of their batches.
    """

    rows = cython.declare(cython.Py_ssize_t, visibility="public")
    size = cython.declare(cython.Py_ssize_t, visibility="public")
    first_offset: cython.longlong
    last_offset: cython.longlong
    since: cython.longlong
    until: cython.longlong
    with_offset: cython.bint
    with_timestamp: cython.bint
    with_sequence: cython.bint
    with_attributes: cython.bint
    with_key: cython.bint
    with_value: cython.bint
    with_headers: cython.bint
    offset: Memory
    timestamp: Memory
    sequence: Memory
    attribute: Memory
    key: Binary
    value: Binary
    header_ends: Memory
    header_key: Binary
    header_value: Binary

    def __init__(self, wanted: Collection[str], offsets: tuple[int, int] = ALL, times: tuple[int, int] = ALL) -> None:
        """``wanted`` are names out of COLUMNS. Only records within the two bounds, ends included, are taken."""
        self.first_offset, self.last_offset = offsets
        self.since, self.until = times
        self.with_offset = "offset" in wanted
        self.with_timestamp = "timestamp" in wanted
        self.with_sequence = "sequence" in wanted
        self.with_attributes = "attributes" in wanted
        self.with_key = "key" in wanted
        self.with_value = "value" in wanted
        self.with_headers = "headers" in wanted
        self.offset, self.timestamp, self.sequence, self.attribute = Memory(), Memory(), Memory(), Memory()
        self.key, self.value = Binary(), Binary()
        self.header_ends, self.header_key, self.header_value = Memory(), Binary(), Binary()
        self.header_ends.add_int(0)
        self.rows = self.size = 0

    def add(self, data: Bytes, at: int, header: BatchHeader) -> bool:
        """Add the records of a batch, from ``at`` on in ``data``.

        Return False when one of them is not well-formed, or when the columns would grow too large: then none is added.
        """
        if self.size + len(data) > _MOST or not self.begin(data, at, header, ()):
            return False
        rows: cython.Py_ssize_t = self.rows
        self.key.mark()
        self.value.mark()
        self.header_key.mark()
        self.header_value.mark()
        try:
            with cython.nogil:
                while self.left > 0 and self.read():
                    self.left -= 1
                    self.record()
        except IndexError:
            pass  # the data end too early: some are left
        if self.left == 0:
            self.size += len(data)
            return True
        self.key.back()
        self.value.back()
        self.header_key.back()
        self.header_value.back()
        self.header_ends.used = 4 * (rows + 1)
        self.offset.used = self.timestamp.used = 8 * rows
        self.sequence.used = self.attribute.used = 4 * rows
        self.rows = rows
        return False

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    @cython.boundscheck(False)
    def record(self) -> cython.bint:
        """Add the record that was just read, if it is within the bounds."""
        offset: cython.longlong = self.values[_OFFSET]
        timestamp: cython.longlong = self.values[_TIMESTAMP]
        if offset < self.first_offset or offset > self.last_offset or timestamp < self.since or timestamp > self.until:
            return True
        self.rows += 1
        if self.with_offset:
            self.offset.add_long(offset)
        if self.with_timestamp:
            self.timestamp.add_long(timestamp)
        if self.with_sequence:
            self.sequence.add_int(cython.cast(cython.int, self.values[_SEQUENCE]))
        if self.with_attributes:
            self.attribute.add_int(self.attributes)
        if self.with_key:
            self.key.add(cython.address(self.data[self.key_at]), self.values[_KEY_SIZE])
        if self.with_value:
            self.value.add(cython.address(self.data[self.value_at]), self.values[_VALUE_SIZE])
        return self.headers() if self.with_headers else True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    @cython.boundscheck(False)
    def headers(self) -> cython.bint:
        """Add the headers of the record that was just read."""
        at: cython.Py_ssize_t = self.headers_at
        left: cython.Py_ssize_t = self.header_count
        while left > 0:
            at = self.header(at)
            left -= 1
            if not self.is_ascii(self.name_at, self.name_size):
                self.header_text()
            else:
                self.header_key.add(cython.address(self.data[self.name_at]), self.name_size)
            self.header_value.add(cython.address(self.data[self.content_at]), self.content_size)
        return self.header_ends.add_int(cython.cast(cython.int, self.header_key.length))

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.boundscheck(False)
    def is_ascii(self, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.bint:
        """Tell whether so many bytes are ASCII."""
        bits: cython.uchar = 0
        end: cython.Py_ssize_t = at + size
        while at < end:
            bits |= self.data[at]
            at += 1
        return bits < 128

    @cython.cfunc
    @cython.with_gil
    @cython.exceptval(-1)
    def header_text(self) -> cython.bint:
        """Add the key of the header that was just read as valid UTF-8."""
        text: bytes = java_text(bytes(self.data[self.name_at : self.name_at + self.name_size]))
        return self.header_key.add(cython.cast(cython.pointer[cython.const[cython.uchar]], text), len(text))

    def take(self) -> dict[str, Buffers]:
        """Return the columns that were wanted, by name, and begin anew."""
        rows = self.rows
        taken = {}
        if self.with_offset:
            taken["offset"] = Buffers(rows, 0, (None, self.offset.take()))
        if self.with_timestamp:
            taken["timestamp"] = Buffers(rows, 0, (None, self.timestamp.take()))
        if self.with_sequence:
            taken["sequence"] = Buffers(rows, 0, (None, self.sequence.take()))
        if self.with_attributes:
            taken["attributes"] = Buffers(rows, 0, (None, self.attribute.take()))
        if self.with_key:
            taken["key"] = self.key.take()
        if self.with_value:
            taken["value"] = self.value.take()
        if self.with_headers:
            entries = Buffers(self.header_key.length, 0, (None,), (self.header_key.take(), self.header_value.take()))
            taken["headers"] = Buffers(rows, 0, (None, self.header_ends.take()), (entries,))
            self.header_ends.add_int(0)
        self.rows = self.size = 0
        return taken
