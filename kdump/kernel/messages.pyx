# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""Messages of magic 0 and 1 as lines of text, one behind the other: entries of a log, or what a wrapper holds.

The layout is told by :mod:`kdump.records.magic_0_1`. A message is well-formed when its fields fill it and its checksum
is right.
"""

from kdump.errors import DamageError
from kdump.formats.record_layout import CODEC_MASK, LOG_OVERHEAD, MESSAGE_HEADER_0, MESSAGE_HEADER_1, SMALLEST_MESSAGE
from kdump.kernel.cursor import FAR, RECORD_NUMBERS
from kdump.primitives.crc import CRC32

cimport cython
from kdump.kernel.lines cimport Lines
from kdump.kernel.words cimport big

SLOTS = {name: slot for slot, name in enumerate((*RECORD_NUMBERS, "crc", "position", "size"))}
"""Where the numbers of a message stand. The position is that of an entry of the log."""


cdef int _OFFSET = SLOTS["offset"]
cdef int _TIMESTAMP = SLOTS["timestamp"]
cdef int _KEY_SIZE = SLOTS["key_size"]
cdef int _VALUE_SIZE = SLOTS["value_size"]
cdef int _CRC = SLOTS["crc"]
cdef int _POSITION = SLOTS["position"]
cdef int _SIZE = SLOTS["size"]

cdef Py_ssize_t _OVERHEAD = LOG_OVERHEAD.size
cdef Py_ssize_t _AT_SIZE = LOG_OVERHEAD.offsets["size"]
cdef Py_ssize_t _AT_CRC = LOG_OVERHEAD.size
cdef Py_ssize_t _AT_MAGIC = LOG_OVERHEAD.size + MESSAGE_HEADER_0.offsets["magic"]
cdef Py_ssize_t _AT_ATTRIBUTES = LOG_OVERHEAD.size + MESSAGE_HEADER_0.offsets["attributes"]
cdef Py_ssize_t _AT_TIMESTAMP = LOG_OVERHEAD.size + MESSAGE_HEADER_1.offsets["timestamp"]
cdef Py_ssize_t _AT_KEY_0 = LOG_OVERHEAD.size + MESSAGE_HEADER_0.size
cdef Py_ssize_t _AT_KEY_1 = LOG_OVERHEAD.size + MESSAGE_HEADER_1.size
cdef Py_ssize_t _SMALLEST = SMALLEST_MESSAGE[0]
cdef int _CODEC_MASK = CODEC_MASK
cdef long long _FAR = FAR
cdef unsigned int _POLYNOMIAL = CRC32.polynomial
cdef unsigned int[2048] _TABLE


@cython.final
cdef class Messages(Lines):
    """Turns messages into lines. ``done`` counts them since they were turned to."""

    cdef public Py_ssize_t done
    cdef Py_ssize_t stop
    cdef long long place
    cdef long long base
    cdef int magic
    cdef int kind
    cdef long long appended_at
    cdef bint deep

    def turn_to(self, data, at, end, *, place=0, base=0, timestamp=-1):
        """Turn to the messages from ``at`` to ``end`` in ``data``, which stands at byte ``place`` of the file.

        ``base`` is added to their offsets. A ``timestamp`` (ms) of 0 or more goes before those of magic 1.
        """
        self.data = data
        self.at, self.end = at, min(end, len(data))
        self.place = place
        self.base = base
        self.appended_at = timestamp
        self.left = self.done = 0

    def position(self):
        """Return where in the data the next message begins."""
        return self.at

    def skip(self, size):
        """Pass over a message of so many bytes."""
        self.at += size

    def last_offset_stored(self):
        """Return the offset of the last message as stored; None where bytes are left behind it, or one cannot be."""
        cdef Py_ssize_t at = self.at
        cdef long long size
        cdef long long last = 0
        if at == self.end:
            return None
        while at < self.end:
            if self.end - at < _OVERHEAD + _SMALLEST:
                return None
            size = big(&self.data[at + _AT_SIZE], 4)
            if size < _SMALLEST or size > self.end - at - _OVERHEAD:
                return None
            last = big(&self.data[at], 8)
            at += _OVERHEAD + size
        return last

    def lines_like(self, shape, magic, attributes, limit, *, deep):
        """Return the lines of the next messages that have this magic and these attributes (as an unsigned byte).

        They stop when they fill ``limit`` bytes, or in front of a message that is not well-formed. ``deep`` says that
        offsets which do not follow each other count as gaps. What is returned is good until the next call.
        """
        cdef Py_ssize_t whole = 0
        cdef Py_ssize_t most = limit
        self.magic, self.kind, self.deep = magic, attributes, deep
        self.used = 0
        self.take(shape)
        cdef Py_ssize_t fixed = self.need
        try:
            with nogil:
                while self.used < most and self.message():
                    self.need = fixed + self.stop - self.at
                    self.line()
                    if self.deep:
                        self.follow()
                    self.at = self.stop
                    self.done += 1
                    whole = self.used
        except DamageError:
            pass  # of a decoder: the general path prints what stands in front of it
        # No hash waits to be settled: DumpLogSegments, whose lines these are, has none.
        return memoryview(self.buffer)[:whole] if whole else memoryview(b"")

    cdef bint message(self) except -1 nogil:
        """Read the fields of the next message; return whether it is well-formed, and of the kind that is asked for."""
        cdef Py_ssize_t at = self.at
        if self.end - at < _OVERHEAD + _SMALLEST:
            return False
        cdef long long size = big(&self.data[at + _AT_SIZE], 4)
        if size < _SMALLEST or size > self.end - at - _OVERHEAD:
            return False
        self.stop = at + _OVERHEAD + size
        if self.data[at + _AT_MAGIC] != self.magic or self.data[at + _AT_ATTRIBUTES] != self.kind:
            return False
        cdef long long offset = big(&self.data[at], 8)
        if not (-_FAR < offset < _FAR and -_FAR < self.base < _FAR):
            return False
        self.values[_OFFSET] = offset + self.base
        self.values[_CRC] = <unsigned int> big(&self.data[at + _AT_CRC], 4)
        self.values[_POSITION] = self.place + at
        self.values[_SIZE] = _OVERHEAD + size
        self.values[_TIMESTAMP] = -1
        cdef Py_ssize_t field = at + _AT_KEY_0
        if self.magic == 1:
            field = at + _AT_KEY_1
            if self.stop - field < 8:
                return False
            self.values[_TIMESTAMP] = self.appended_at
            if self.appended_at < 0:
                self.values[_TIMESTAMP] = big(&self.data[at + _AT_TIMESTAMP], 8)
        size = big(&self.data[field], 4)
        field += 4
        if size < -1 or size > self.stop - field - 4:
            return False
        self.values[_KEY_SIZE] = size
        self.key_at = field
        if size > 0:
            field += size
        if self.stop - field < 4:
            return False
        size = big(&self.data[field], 4)
        field += 4
        self.values[_VALUE_SIZE] = size
        self.value_at = field
        if size < -1 or (size if size > 0 else 0) != self.stop - field:
            return False
        at += _AT_MAGIC
        return checksum(&self.data[at], self.stop - at) == self.values[_CRC]


def stretch(data, at, most):
    """Return where in ``data`` the messages end that begin ``at`` a place: whole ones, not compressed, of magic 0 or 1.

    ``most`` bytes is the greatest size that such a message may name.
    """
    cdef const unsigned char[::1] text = data
    cdef Py_ssize_t start = at
    cdef Py_ssize_t end = text.shape[0]
    cdef long long limit = most
    cdef long long size
    while end - start >= _OVERHEAD + _SMALLEST:
        size = big(&text[start + _AT_SIZE], 4)
        if size < _SMALLEST or size > limit or size > end - start - _OVERHEAD:
            break
        if text[start + _AT_MAGIC] > 1 or text[start + _AT_ATTRIBUTES] & _CODEC_MASK:
            break
        start += _OVERHEAD + size
    return start


cdef unsigned int checksum(const unsigned char* data, Py_ssize_t size) noexcept nogil:
    """Return the CRC-32 of ``size`` bytes, eight of them at a time ("slicing by 8")."""
    cdef unsigned int crc = 0xFFFFFFFF
    cdef unsigned int low
    cdef unsigned int* table = &_TABLE[0]
    while size >= 8:
        low = data[0] | data[1] << 8 | data[2] << 16 | <unsigned int> data[3] << 24
        crc ^= low
        crc = (
            table[1792 + (crc & 255)]
            ^ table[1536 + (crc >> 8 & 255)]
            ^ table[1280 + (crc >> 16 & 255)]
            ^ table[1024 + (crc >> 24)]
            ^ table[768 + data[4]]
            ^ table[512 + data[5]]
            ^ table[256 + data[6]]
            ^ table[data[7]]
        )
        data += 8
        size -= 8
    while size > 0:
        crc = table[(crc ^ data[0]) & 255] ^ crc >> 8
        data += 1
        size -= 1
    return ~crc


cdef void fill_table() noexcept:
    """Reckon what each byte does to a checksum, with none to seven bytes behind it."""
    cdef int row
    cdef unsigned int value
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        _TABLE[byte] = value
    for row in range(256, 2048):
        value = _TABLE[row - 256]
        _TABLE[row] = _TABLE[value & 255] ^ value >> 8


fill_table()
