# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The records of one magic 2 batch as lines of JSON.

The columns of the lines are data, as in :mod:`kdump.kernel.lines`. Strings of valid UTF-8 without characters beyond
ASCII that need an escape are written here, each other string by the function of the general path that it belongs to.
"""

from __future__ import annotations

from typing import NamedTuple

from kdump.formats.record import Header
from kdump.kernel.cursor import NUMBERS, RECORD_NUMBERS
from kdump.kernel.quoting import escapes

cimport cython
from libc.string cimport memcpy
from kdump.kernel.lines cimport Lines, number, reserve
from kdump.kernel.quoting cimport escaped, is_utf8

FIELDS = ("record.attributes", "record.timestamp", "record.headers", "record.key", "record.value")
"""The fields that stand in lines as something else than a number of ``values``, by their source in the row."""


SLOTS = {name: NUMBERS + slot for slot, name in enumerate(FIELDS)}

cdef int _TIMESTAMP = RECORD_NUMBERS.index("timestamp")
cdef int _KEY_SIZE = RECORD_NUMBERS.index("key_size")
cdef int _VALUE_SIZE = RECORD_NUMBERS.index("value_size")
cdef int _ATTRIBUTES = SLOTS["record.attributes"]
cdef int _ISO = SLOTS["record.timestamp"]
cdef int _HEADERS = SLOTS["record.headers"]
cdef int _KEY = SLOTS["record.key"]
cdef int _VALUE = SLOTS["record.value"]
cdef long long _DAY = 86_400_000
cdef long long _LEAP_CYCLE = 146_097  # days of 400 years
cdef long long _TO_MARCH = 719_468  # days from the 1st of March of the year 0 to 1970
cdef long long _NO_SECOND = 1  # no second begins there, in ms
cdef int _AROUND = 24  # bytes around the texts of a header, a null in them
cdef int _ESCAPE = 8  # bytes of an entry of the table of escapes, see escaped()
cdef Py_ssize_t _BLOCK = 1024  # bytes of a text for which room is made at once
cdef unsigned long long _HIGH_BITS = 0x8080808080808080


class General(NamedTuple):
    """What the general path makes of values that the kernel leaves to it."""

    quote: Callable[[str], str]
    """A string as JSON."""
    key: Callable[[bytes], bytes]
    """A key as the JSON behind its name, with the mark of its encoding."""
    value: Callable[[bytes], bytes]
    """A value likewise."""
    headers: Callable[[Sequence[Header]], bytes]
    first: int
    """The first timestamp that has a year, in ms."""
    last: int
    """The first behind it that has none."""


@cython.final
cdef class ObjectLines(Lines):
    """Turns the records of one batch after the other into lines of JSON.

    With ``plain`` strings that are easy are written as they are; without, keys and values go to the general path.
    """

    cdef object general
    cdef bint plain
    cdef bytes table
    cdef const unsigned char* shown
    cdef long long first
    cdef long long last
    cdef long long second
    cdef unsigned char[32] date

    def __init__(self, general, *, plain):
        super().__init__()
        self.general = general
        self.plain = plain
        self.table = escapes(general.quote)
        self.first = general.first
        self.last = general.last
        self.shown = self.table
        self.second = _NO_SECOND

    @cython.boundscheck(False)
    cdef bint field(self, int slot) except -1 nogil:
        """Write what is no number of ``values``."""
        if slot == _VALUE:
            if not (self.plain and self.string(self.value_at, self.values[_VALUE_SIZE])):
                self.payload(False)
        elif slot == _KEY:
            if not (self.plain and self.string(self.key_at, self.values[_KEY_SIZE])):
                self.payload(True)
        elif slot == _ISO:
            self.iso(self.values[_TIMESTAMP])
        elif slot == _HEADERS:
            self.header_list()
        else:
            self.used = number(&self.out[self.used], self.attributes) - &self.out[0]
        return True

    @cython.boundscheck(False)
    cdef bint string(self, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write ``size`` bytes of the record as a string of JSON; return whether that could be done here."""
        cdef const unsigned char* text
        cdef Py_ssize_t begin = self.used
        cdef unsigned long long bits = 0
        cdef Py_ssize_t left = size
        self.out[self.used] = 34
        self.used += 1
        while left > _BLOCK:
            reserve(self, _ESCAPE * (_BLOCK + 2))
            bits |= self.escaped(at, _BLOCK)
            at += _BLOCK
            left -= _BLOCK
        reserve(self, _ESCAPE * (left + 2))
        bits |= self.escaped(at, left)
        at += left - size
        self.out[self.used] = 34
        self.used += 1
        if bits & _HIGH_BITS:
            text = &self.data[at]
            if not (is_utf8(text, size) and _is_harmless(text, size)):
                self.used = begin
                return False
        return True

    @cython.boundscheck(False)
    cdef inline unsigned long long escaped(self, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
        """Write ``size`` bytes of the record with escapes; return a word whose high bits tell whether all are ASCII."""
        cdef unsigned long long bits = 0
        if size == 0:  # it may stand at the end of the data, where there is no byte to point to
            return bits
        self.used = escaped(
            &self.out[self.used],
            &self.data[at],
            size,
            self.shown,
            &bits,
        ) - &self.out[0]
        return bits

    @cython.boundscheck(False)
    cdef bint iso(self, long long timestamp) except -1 nogil:
        """Write a timestamp in ms as ISO 8601 in UTC; null for -1, which is none, and where there is no year for it."""
        cdef unsigned char* out = &self.out[self.used]
        if timestamp == -1 or timestamp < self.first or timestamp >= self.last:
            memcpy(out, <char*> b"null", 4)
            self.used += 4
            return True
        cdef long long ms = timestamp % 1000
        if ms < 0:
            ms += 1000
        if timestamp - ms != self.second:
            self.second = timestamp - ms
            self.write_date()
        memcpy(out, &self.date[0], 32)
        out[21] = <unsigned char> (48 + ms // 100)
        out[22] = <unsigned char> (48 + ms // 10 % 10)
        out[23] = <unsigned char> (48 + ms % 10)
        self.used += 26
        return True

    cdef void write_date(self) noexcept nogil:
        """Keep the text of a whole second, by the Gregorian calendar: ``"2026-11-21T09:30:00.000Z"``, in quotes.

        Years begin in March here, so that the day that not each year has is its last one.
        """
        cdef long long day = self.second // _DAY
        cdef long long rest = self.second % _DAY
        if rest < 0:
            rest += _DAY
            day -= 1
        rest //= 1000
        day += _TO_MARCH  # of year 0: never negative from the year 1 on
        cdef long long cycle = day // _LEAP_CYCLE
        day %= _LEAP_CYCLE
        cdef long long year = (day - day // 1460 + day // 36524 - day // 146096) // 365
        day -= 365 * year + year // 4 - year // 100
        cdef long long month = (5 * day + 2) // 153  # 0 is March; five months have 153 days
        day -= (153 * month + 2) // 5
        month += 3
        year += 400 * cycle
        if month > 12:
            month -= 12
            year += 1
        cdef unsigned char* date = self.date
        memcpy(date, <char*> b'"....-..-..T..:..:......Z"      ', 32)
        _two(date + 1, year // 100)
        _two(date + 3, year % 100)
        date[5] = 45
        _two(date + 6, month)
        date[8] = 45
        _two(date + 9, day + 1)
        date[11] = 84
        _two(date + 12, rest // 3600)
        date[14] = 58
        _two(date + 15, rest // 60 % 60)
        date[17] = 58
        _two(date + 18, rest % 60)
        date[20] = 46

    @cython.boundscheck(False)
    cdef bint header_list(self) except -1 nogil:
        """Write the headers as an array of objects."""
        cdef Py_ssize_t start = self.used
        self.need += _AROUND * self.header_count  # until the next record
        reserve(self, 0)
        self.out[self.used] = 91
        self.used += 1
        cdef Py_ssize_t at = self.headers_at
        cdef Py_ssize_t done
        for done in range(self.header_count):
            at = self.header(at)
            if done:
                self.out[self.used] = 44
                self.used += 1
            memcpy(&self.out[self.used], <char*> b'{"key":', 7)
            self.used += 7
            if not self.string(self.name_at, self.name_size):
                return self.other_headers(start)
            memcpy(&self.out[self.used], <char*> b',"value":', 9)
            self.used += 9
            if self.content_size < 0:
                memcpy(&self.out[self.used], <char*> b"null", 4)
                self.used += 4
            elif not (self.plain and self.string(self.content_at, self.content_size)):
                return self.other_headers(start)
            self.out[self.used] = 125
            self.used += 1
        self.out[self.used] = 93
        self.used += 1
        return True

    cdef bint other_headers(self, Py_ssize_t start) except -1 with gil:
        """Write the headers by the general path, from ``start`` on."""
        pairs = []
        cdef Py_ssize_t at = self.headers_at
        for _ in range(self.header_count):
            at = self.header(at)
            name = bytes(self.data[self.name_at : self.name_at + self.name_size])
            value = None
            if self.content_size >= 0:
                value = bytes(self.data[self.content_at : self.content_at + self.content_size])
            pairs.append(Header(name, value))
        self.used = start
        return self.write(self.general.headers(pairs))

    cdef bint payload(self, bint key) except -1 with gil:
        """Write the key or the value by the general path."""
        if key:
            return self.write(self.general.key(bytes(self.data[self.key_at : self.key_at + self.values[_KEY_SIZE]])))
        return self.write(
            self.general.value(bytes(self.data[self.value_at : self.value_at + self.values[_VALUE_SIZE]]))
        )

    cdef bint write(self, bytes shown):
        """Write what the general path made."""
        self.grow(len(shown))
        self.buffer[self.used : self.used + len(shown)] = shown
        self.used += len(shown)
        return True


cdef void _two(unsigned char* out, long long value) noexcept nogil:
    """Write two digits."""
    out[0] = <unsigned char> (48 + value // 10)
    out[1] = <unsigned char> (48 + value % 10)


cdef bint _is_harmless(const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Tell whether valid UTF-8 surely holds none of the characters beyond ASCII that a terminal obeys.

    These are U+0080 to U+009F and some of U+2028 to U+2069; the general path knows which.
    """
    cdef Py_ssize_t at
    for at in range(size - 1):
        if text[at] == 0xC2 and text[at + 1] < 0xA0:
            return False
        if text[at] == 0xE2 and (text[at + 1] == 0x81 or (text[at + 1] == 0x80 and text[at + 2] >= 0xA8)):
            return False
    return True
