# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The records of one magic 2 batch as lines of JSON. Of use where it is compiled alone.

The columns of the lines are data, as in :mod:`kdump.kernel.lines`. Strings of valid UTF-8 without characters beyond
ASCII that need an escape are written here, each other string by the function of the general path that it belongs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.formats.record import Header
from kdump.kernel.cursor import NUMBERS, RECORD_NUMBERS
from kdump.kernel.quoting import escapes

if TYPE_CHECKING:
    import cython
else:
    from kdump.kernel import _shadow as cython

if not cython.compiled:
    from kdump.kernel.lines import Lines
else:
    from cython.cimports.kdump.kernel.lines import (  # type: ignore[no-redef]  # the same in C
        Lines,
        number,
        reserve,
    )
    from cython.cimports.kdump.kernel.quoting import escaped, is_utf8
    from cython.cimports.libc.string import memcpy
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STAMP: Final = "6a7c0622"

FIELDS: Final = ("record.attributes", "record.timestamp", "record.headers", "record.key", "record.value")
"""The fields that stand in lines as something else than a number of ``values``, by their source in the row."""
SLOTS: Final = {name: NUMBERS + slot for slot, name in enumerate(FIELDS)}

_TIMESTAMP = cython.declare(cython.int, RECORD_NUMBERS.index("timestamp"))
_KEY_SIZE = cython.declare(cython.int, RECORD_NUMBERS.index("key_size"))
_VALUE_SIZE = cython.declare(cython.int, RECORD_NUMBERS.index("value_size"))
_ATTRIBUTES = cython.declare(cython.int, SLOTS["record.attributes"])
_ISO = cython.declare(cython.int, SLOTS["record.timestamp"])
_HEADERS = cython.declare(cython.int, SLOTS["record.headers"])
_KEY = cython.declare(cython.int, SLOTS["record.key"])
_VALUE = cython.declare(cython.int, SLOTS["record.value"])
_DAY = cython.declare(cython.longlong, 86_400_000)
_LEAP_CYCLE = cython.declare(cython.longlong, 146_097)  # days of 400 years
_TO_MARCH = cython.declare(cython.longlong, 719_468)  # days from the 1st of March of the year 0 to 1970
_NO_SECOND = cython.declare(cython.longlong, 1)  # no second begins there, in ms
_AROUND = cython.declare(cython.int, 24)  # bytes around the texts of a header, a null in them
_ESCAPE = cython.declare(cython.int, 8)  # bytes of an entry of the table of escapes, see escaped()
_BLOCK = cython.declare(cython.Py_ssize_t, 1024)  # bytes of a text for which room is made at once
_HIGH_BITS = cython.declare(cython.ulonglong, 0x8080808080808080)


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
@cython.cclass
class JsonLines(Lines):
    """Turns the records of one batch after the other into lines of JSON.

    With ``plain`` strings that are easy are written as they are; without, keys and values go to the general path.
    """

    general: General
    plain: cython.bint
    table: bytes
    shown: cython.pointer[cython.const[cython.uchar]]
    first: cython.longlong
    last: cython.longlong
    second: cython.longlong
    date: cython.uchar[32]

    def __init__(self, general: General, *, plain: bool) -> None:
        super().__init__()
        self.general = general
        self.plain = plain
        self.table = escapes(general.quote)
        self.first = general.first
        self.last = general.last
        if cython.compiled:
            self.shown = self.table
            self.second = _NO_SECOND

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    @cython.boundscheck(False)
    def field(self, slot: cython.int) -> cython.bint:
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
            self.used = number(cython.address(self.out[self.used]), self.attributes) - cython.address(self.out[0])
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    @cython.boundscheck(False)
    def string(self, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.bint:
        """Write ``size`` bytes of the record as a string of JSON; return whether that could be done here."""
        begin: cython.Py_ssize_t = self.used
        bits: cython.ulonglong = 0
        left: cython.Py_ssize_t = size
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
            text: cython.pointer[cython.const[cython.uchar]] = cython.address(self.data[at])
            if not (is_utf8(text, size) and _is_harmless(text, size)):
                self.used = begin
                return False
        return True

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.boundscheck(False)
    def escaped(self, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.ulonglong:
        """Write ``size`` bytes of the record with escapes; return a word whose high bits tell whether all are ASCII."""
        bits: cython.ulonglong = 0
        if size == 0:  # it may stand at the end of the data, where there is no byte to point to
            return bits
        self.used = escaped(
            cython.address(self.out[self.used]),
            cython.address(self.data[at]),
            size,
            self.shown,
            cython.address(bits),
        ) - cython.address(self.out[0])
        return bits

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    @cython.boundscheck(False)
    def iso(self, timestamp: cython.longlong) -> cython.bint:
        """Write a timestamp in ms as ISO 8601 in UTC; null for -1, which is none, and where there is no year for it."""
        out: cython.p_uchar = cython.address(self.out[self.used])
        if timestamp == -1 or timestamp < self.first or timestamp >= self.last:
            memcpy(out, cython.cast(cython.p_char, b"null"), 4)
            self.used += 4
            return True
        ms: cython.longlong = timestamp % 1000
        if ms < 0:
            ms += 1000
        if timestamp - ms != self.second:
            self.second = timestamp - ms
            self.write_date()
        memcpy(out, cython.address(self.date[0]), 32)
        out[21] = cython.cast(cython.uchar, 48 + ms // 100)
        out[22] = cython.cast(cython.uchar, 48 + ms // 10 % 10)
        out[23] = cython.cast(cython.uchar, 48 + ms % 10)
        self.used += 26
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def write_date(self) -> cython.void:
        """Keep the text of a whole second, by the Gregorian calendar: ``"2026-11-21T09:30:00.000Z"``, in quotes.

        Years begin in March here, so that the day that not each year has is its last one.
        """
        day: cython.longlong = self.second // _DAY
        rest: cython.longlong = self.second % _DAY
        if rest < 0:
            rest += _DAY
            day -= 1
        rest //= 1000
        day += _TO_MARCH  # of year 0: never negative from the year 1 on
        cycle: cython.longlong = day // _LEAP_CYCLE
        day %= _LEAP_CYCLE
        year: cython.longlong = (day - day // 1460 + day // 36524 - day // 146096) // 365
        day -= 365 * year + year // 4 - year // 100
        month: cython.longlong = (5 * day + 2) // 153  # 0 is March; five months have 153 days
        day -= (153 * month + 2) // 5
        month += 3
        year += 400 * cycle
        if month > 12:
            month -= 12
            year += 1
        date: cython.p_uchar = self.date
        memcpy(date, cython.cast(cython.p_char, b'"....-..-..T..:..:......Z"      '), 32)
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

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    @cython.boundscheck(False)
    def header_list(self) -> cython.bint:
        """Write the headers as an array of objects."""
        start: cython.Py_ssize_t = self.used
        self.need += _AROUND * self.header_count  # until the next record
        reserve(self, 0)
        self.out[self.used] = 91
        self.used += 1
        at: cython.Py_ssize_t = self.headers_at
        done: cython.Py_ssize_t
        for done in range(self.header_count):
            at = self.header(at)
            if done:
                self.out[self.used] = 44
                self.used += 1
            memcpy(cython.address(self.out[self.used]), cython.cast(cython.p_char, b'{"key":'), 7)
            self.used += 7
            if not self.string(self.name_at, self.name_size):
                return self.other_headers(start)
            memcpy(cython.address(self.out[self.used]), cython.cast(cython.p_char, b',"value":'), 9)
            self.used += 9
            if self.content_size < 0:
                memcpy(cython.address(self.out[self.used]), cython.cast(cython.p_char, b"null"), 4)
                self.used += 4
            elif not (self.plain and self.string(self.content_at, self.content_size)):
                return self.other_headers(start)
            self.out[self.used] = 125
            self.used += 1
        self.out[self.used] = 93
        self.used += 1
        return True

    @cython.cfunc
    @cython.with_gil
    @cython.exceptval(-1)
    def other_headers(self, start: cython.Py_ssize_t) -> cython.bint:
        """Write the headers by the general path, from ``start`` on."""
        pairs = []
        at: cython.Py_ssize_t = self.headers_at
        for _ in range(self.header_count):
            at = self.header(at)
            name = bytes(self.data[self.name_at : self.name_at + self.name_size])
            value = None
            if self.content_size >= 0:
                value = bytes(self.data[self.content_at : self.content_at + self.content_size])
            pairs.append(Header(name, value))
        self.used = start
        return self.write(self.general.headers(pairs))

    @cython.cfunc
    @cython.with_gil
    @cython.exceptval(-1)
    def payload(self, key: cython.bint) -> cython.bint:
        """Write the key or the value by the general path."""
        if key:
            return self.write(self.general.key(bytes(self.data[self.key_at : self.key_at + self.values[_KEY_SIZE]])))
        return self.write(
            self.general.value(bytes(self.data[self.value_at : self.value_at + self.values[_VALUE_SIZE]]))
        )

    @cython.cfunc
    def write(self, shown: bytes) -> cython.bint:
        """Write what the general path made."""
        self.grow(len(shown))
        self.buffer[self.used : self.used + len(shown)] = shown
        self.used += len(shown)
        return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _two(out: cython.p_uchar, value: cython.longlong) -> cython.void:
    """Write two digits."""
    out[0] = cython.cast(cython.uchar, 48 + value // 10)
    out[1] = cython.cast(cython.uchar, 48 + value % 10)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_harmless(text: cython.pointer[cython.const[cython.uchar]], size: cython.Py_ssize_t) -> cython.bint:
    """Tell whether valid UTF-8 surely holds none of the characters beyond ASCII that a terminal obeys.

    These are U+0080 to U+009F and some of U+2028 to U+2069; the general path knows which.
    """
    at: cython.Py_ssize_t
    for at in range(size - 1):
        if text[at] == 0xC2 and text[at + 1] < 0xA0:
            return False
        if text[at] == 0xE2 and (text[at + 1] == 0x81 or (text[at + 1] == 0x80 and text[at + 2] >= 0xA8)):
            return False
    return True
