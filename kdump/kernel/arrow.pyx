# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The records of consecutive magic 2 batches as the buffers of Arrow columns.

The buffers have Arrow's columnar format: consecutive numbers of a fixed width; consecutive bytes with their 32-bit
start offsets; a bit for each value that is not null, the lowest bit of a byte first. The kernel does not link to Arrow;
the caller makes arrays of the buffers.
"""

from __future__ import annotations

from typing import NamedTuple

from kdump.kernel.records import RECORD_NUMBERS
from kdump.primitives.encodings import java_text

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize
from libc.string cimport memcpy
from kdump.kernel.records cimport Cursor

COLUMNS = ("offset", "timestamp", "sequence", "attributes", "key", "value", "headers")
"""The possible columns: fields of :class:`kdump.formats.record.Record`."""
ALL = (-(1 << 63), (1 << 63) - 1)
"""Lowest and highest value of 64 bits: the bounds that exclude no offset and no timestamp."""


_MOST = 0x7FFFFFFF // 3  # offsets have 32 bits, and valid UTF-8 may have three times the bytes of its source
cdef Py_ssize_t _FIRST_ROOM = 1 << 12
cdef Py_ssize_t _MOST_ROOM = 4 << 20

cdef int _OFFSET = RECORD_NUMBERS.index("offset")
cdef int _TIMESTAMP = RECORD_NUMBERS.index("timestamp")
cdef int _KEY_SIZE = RECORD_NUMBERS.index("key_size")
cdef int _VALUE_SIZE = RECORD_NUMBERS.index("value_size")
cdef int _SEQUENCE = RECORD_NUMBERS.index("sequence")


class Buffers(NamedTuple):
    """A column for Arrow: the number of values and of nulls, and the buffers in the order of its type.

    ``children`` are the columns of a nested type.
    """

    length: int
    nulls: int
    buffers: tuple[bytearray | None, ...]
    children: tuple[Buffers, ...] = ()


@cython.final
cdef class Memory:
    """Bytes that grow at their end."""

    cdef bytearray memory
    cdef unsigned char* start
    cdef Py_ssize_t used
    cdef Py_ssize_t room
    cdef Py_ssize_t least

    def __init__(self):
        self.used = self.room = 0
        self.least = _FIRST_ROOM

    cdef bint reserve(self, Py_ssize_t more) except -1 nogil:
        if self.used + more > self.room:
            self.grow(more)
        return True

    cdef bint grow(self, Py_ssize_t more) except -1 with gil:
        cdef Py_ssize_t room = max(self.least, 2 * self.room, self.used + more)
        if self.room:
            PyByteArray_Resize(self.memory, room)
        else:
            self.memory = PyByteArray_FromStringAndSize(NULL, room)
        self.room = room
        self.start = <unsigned char*> PyByteArray_AS_STRING(self.memory)
        return True

    cdef bint add_long(self, long long value) except -1 nogil:
        self.reserve(8)
        memcpy(self.start + self.used, &value, 8)
        self.used += 8
        return True

    cdef bint add_int(self, int value) except -1 nogil:
        self.reserve(4)
        memcpy(self.start + self.used, &value, 4)
        self.used += 4
        return True

    cdef bytearray take(self):
        """Return the bytes, and become empty. The next buffer begins with slightly more room, at most _MOST_ROOM."""
        if not self.room:
            self.grow(1)
        taken = self.memory
        PyByteArray_Resize(taken, self.used)
        self.least = max(_FIRST_ROOM, min(_MOST_ROOM, self.used + self.used // 16))
        self.used = self.room = 0
        return taken


@cython.final
cdef class Binary:
    """Consecutive values of any size; values may be null."""

    cdef Memory offsets
    cdef Memory content
    cdef Memory valid
    cdef Py_ssize_t length
    cdef Py_ssize_t nulls
    cdef Py_ssize_t kept_length
    cdef Py_ssize_t kept_nulls
    cdef Py_ssize_t kept_size

    def __init__(self):
        self.offsets, self.content, self.valid = Memory(), Memory(), Memory()
        self.begin()

    cdef bint begin(self) except -1:
        self.length = self.nulls = 0
        return self.offsets.add_int(0)

    cdef bint add(self, const unsigned char* value, Py_ssize_t size) except -1 nogil:
        """Add a value. A negative size means null."""
        cdef int bit = 1 << (self.length & 7)
        self.valid.used = self.length >> 3
        self.valid.reserve(1)
        cdef unsigned char* byte = self.valid.start + self.valid.used
        if bit == 1:
            byte[0] = 0
        if size < 0:
            self.nulls += 1
        else:
            byte[0] |= bit
            self.content.reserve(size)
            if size:  # without bytes the pointer may be invalid
                memcpy(self.content.start + self.content.used, value, size)
            self.content.used += size
        self.length += 1
        return self.offsets.add_int(<int> self.content.used)

    cdef void mark(self) noexcept:
        self.kept_length, self.kept_nulls, self.kept_size = self.length, self.nulls, self.content.used

    cdef void back(self) noexcept:
        self.length, self.nulls, self.content.used = self.kept_length, self.kept_nulls, self.kept_size
        self.offsets.used = 4 * (self.length + 1)
        if self.length & 7:
            self.valid.start[self.length >> 3] &= (1 << (self.length & 7)) - 1

    cdef take(self):
        """Return the values, and start again."""
        self.valid.used = (self.length + 7) >> 3
        valid = self.valid.take() if self.nulls else None
        taken = Buffers(self.length, self.nulls, (valid, self.offsets.take(), self.content.take()))
        self.begin()
        return taken


@cython.final
cdef class ArrowColumns(Cursor):
    """Converts the records of consecutive batches to columns.

    ``rows`` is the number of records since the last :meth:`take`. ``size`` is the number of bytes of their batches.
    """

    cdef public Py_ssize_t rows
    cdef public Py_ssize_t size
    cdef long long first_offset
    cdef long long last_offset
    cdef long long since
    cdef long long until
    cdef bint with_offset
    cdef bint with_timestamp
    cdef bint with_sequence
    cdef bint with_attributes
    cdef bint with_key
    cdef bint with_value
    cdef bint with_headers
    cdef Memory offset
    cdef Memory timestamp
    cdef Memory sequence
    cdef Memory attribute
    cdef Binary key
    cdef Binary value
    cdef Memory header_ends
    cdef Binary header_key
    cdef Binary header_value

    def __init__(self, wanted, offsets=ALL, times=ALL):
        """``wanted`` are names of COLUMNS; records outside ``offsets`` or ``times`` (lowest, highest) are skipped."""
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

    def add(self, data, at, header):
        """Add the records of a batch, from ``at`` on in ``data``.

        Return False, and add none, if a record is not well-formed or the columns would become too large.
        """
        if self.size + len(data) > _MOST or not self.begin(data, at, header, ()):
            return False
        cdef Py_ssize_t rows = self.rows
        self.key.mark()
        self.value.mark()
        self.header_key.mark()
        self.header_value.mark()
        with nogil:
            while self.left > 0 and self.read():
                self.left -= 1
                self.record()
        self.data = None  # the columns have copies
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

    @cython.boundscheck(False)
    cdef bint record(self) except -1 nogil:
        """Add the record that was just read, if it is within the bounds."""
        cdef long long offset = self.values[_OFFSET]
        cdef long long timestamp = self.values[_TIMESTAMP]
        if offset < self.first_offset or offset > self.last_offset or timestamp < self.since or timestamp > self.until:
            return True
        self.rows += 1
        if self.with_offset:
            self.offset.add_long(offset)
        if self.with_timestamp:
            self.timestamp.add_long(timestamp)
        if self.with_sequence:
            self.sequence.add_int(<int> self.values[_SEQUENCE])
        if self.with_attributes:
            self.attribute.add_int(self.attributes)
        if self.with_key:
            self.key.add(&self.data[self.key_at], self.values[_KEY_SIZE])
        if self.with_value:
            self.value.add(&self.data[self.value_at], self.values[_VALUE_SIZE])
        return self.headers() if self.with_headers else True

    @cython.boundscheck(False)
    cdef bint headers(self) except -1 nogil:
        cdef Py_ssize_t at = self.headers_at
        cdef Py_ssize_t left = self.header_count
        self.header_key.offsets.reserve(4 * left)  # growing step by step takes more memory for millions of headers
        self.header_value.offsets.reserve(4 * left)
        while left > 0:
            at = self.header(at)
            left -= 1
            if not self.is_ascii(self.name_at, self.name_size):
                self.header_text()
            else:
                self.header_key.add(&self.data[self.name_at], self.name_size)
            self.header_value.add(&self.data[self.content_at], self.content_size)
        return self.header_ends.add_int(<int> self.header_key.length)

    @cython.boundscheck(False)
    cdef bint is_ascii(self, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
        cdef unsigned char bits = 0
        cdef Py_ssize_t end = at + size
        while at < end:
            bits |= self.data[at]
            at += 1
        return bits < 128

    cdef bint header_text(self) except -1 with gil:
        """Convert the key of the last read header to valid UTF-8, and add it."""
        cdef bytes text = java_text(bytes(self.data[self.name_at : self.name_at + self.name_size]))
        return self.header_key.add(<const unsigned char*> text, len(text))

    def take(self):
        """Return the wanted columns by name, and start again."""
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
