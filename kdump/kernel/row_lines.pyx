# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The records of one magic 2 batch as rows: lines of JSON, of CSV, or of a format string.

The columns of the lines are data, as in :mod:`kdump.kernel.lines`. Texts of valid UTF-8 without characters beyond ASCII
that need an escape are written here, each other text by the function of the general path that it belongs to.
"""

from __future__ import annotations

from typing import NamedTuple

from kdump.errors import DamageError
from kdump.formats.record import Header
from kdump.kernel.cursor import NUMBERS, RECORD_NUMBERS
from kdump.kernel.lines import SLOTS_OF_TEXTS
from kdump.kernel.quoting import escapes

cimport cython
from libc.string cimport memcmp, memcpy, memmove, memset
from kdump.kernel.lines cimport Lines, number, reserve
from kdump.kernel.quoting cimport BEYOND, cell, escaped, is_utf8, plain
from kdump.kernel.spelling cimport base64, hex_digits, json_value
from kdump.kernel.words cimport short_plain

WAYS = ("string", "json", "cell", "marked_cell", "hex_cell", "base64_cell", "mark", "shown", "general")
"""How a key or a value is written that is not spelt as :mod:`kdump.kernel.lines` does it:

- string: as a string of JSON, json: as a value of JSON if it is one, with the mark that says so;
- cell, hex_cell, base64_cell: as a cell of CSV; mark: as the cell that says how it is encoded, empty for UTF-8;
  marked_cell: as both, a comma between them;
- shown: as a cell of a table, where all of it is printable ASCII; what the general path writes has the width it needs;
- general: by the general path.
"""
FIELDS = (
    *("attributes", "iso", "iso_cell", "headers", "headers_cell", "pairs", "size_bytes"),
    *("row", "width", "iso_shown", "decoded", "decoded_if_framed", "end_of_row"),
)
"""What else is no number of ``values``: attributes, the timestamp in ISO 8601 as JSON or as a cell, the headers as JSON,
as a cell or after a format string, the size of the value in four bytes, and the decoded payloads, of all
records or of those whose payloads may name a schema. Of tables: what stands before a row, where
a cell begins whose width follows it, the timestamp in such a cell, and what stands behind a row.
"""
WIDEST = 1 << 12
"""Characters of a cell whose width can be told."""
_FIRST = NUMBERS + len(SLOTS_OF_TEXTS)
SLOTS = {
    **{f"{way}_key": _FIRST + 2 * at for at, way in enumerate(WAYS)},
    **{f"{way}_value": _FIRST + 2 * at + 1 for at, way in enumerate(WAYS)},
    **{name: _FIRST + 2 * len(WAYS) + at for at, name in enumerate(FIELDS)},
}


def left(width):
    """Return the slot that makes the cell before it as wide as its column, its text on the left."""
    return _LEFT + min(width, WIDEST - 1)


def right(width):
    """Return the slot that does the same with a number on the right; one that is wider ends the lines before its row."""
    return _RIGHT + min(width, WIDEST - 1)


HEADER_WAYS = ("string", "json", "hex", "base64", "hash", "general")
"""How the values of headers are written."""

cdef int _TIMESTAMP = RECORD_NUMBERS.index("timestamp")
cdef int _KEY_SIZE = RECORD_NUMBERS.index("key_size")
cdef int _VALUE_SIZE = RECORD_NUMBERS.index("value_size")
cdef int _PAYLOADS = _FIRST
cdef int _OTHERS = SLOTS[FIELDS[0]]
cdef int _STRING = WAYS.index("string")
cdef int _JSON = WAYS.index("json")
cdef int _CELL = WAYS.index("cell")
cdef int _MARKED_CELL = WAYS.index("marked_cell")
cdef int _HEX_CELL = WAYS.index("hex_cell")
cdef int _BASE64_CELL = WAYS.index("base64_cell")
cdef int _HEX = (SLOTS_OF_TEXTS["hex_key"] - SLOTS_OF_TEXTS["key"]) // 2
cdef int _BASE64 = (SLOTS_OF_TEXTS["base64_key"] - SLOTS_OF_TEXTS["key"]) // 2
cdef int _MARK = WAYS.index("mark")
cdef int _SHOWN = WAYS.index("shown")
cdef int _ATTRIBUTES = SLOTS["attributes"]
cdef int _ISO = SLOTS["iso"]
cdef int _ISO_CELL = SLOTS["iso_cell"]
cdef int _HEADERS = SLOTS["headers"]
cdef int _HEADERS_CELL = SLOTS["headers_cell"]
cdef int _PAIRS = SLOTS["pairs"]
cdef int _SIZE_BYTES = SLOTS["size_bytes"]
cdef int _ROW = SLOTS["row"]
cdef int _WIDTH = SLOTS["width"]
cdef int _ISO_SHOWN = SLOTS["iso_shown"]
cdef int _DECODED = SLOTS["decoded"]
cdef int _DECODED_IF_FRAMED = SLOTS["decoded_if_framed"]
cdef int _LEFT = WIDEST  # slots of widths, behind all others
cdef int _RIGHT = 2 * WIDEST
cdef int _WIDEST = WIDEST
cdef int _STRINGS = HEADER_WAYS.index("string")
cdef int _JSONS = HEADER_WAYS.index("json")
cdef int _HEXES = HEADER_WAYS.index("hex")
cdef int _BASE64S = HEADER_WAYS.index("base64")
cdef int _HASHES = HEADER_WAYS.index("hash")
cdef Py_ssize_t _DIGITS = 64  # of a keyed hash
cdef long long _DAY = 86_400_000
cdef long long _LEAP_CYCLE = 146_097  # days of 400 years
cdef long long _TO_MARCH = 719_468  # days from the 1st of March of the year 0 to 1970
cdef int _AROUND = 48  # bytes around the texts of a header, a null and a mark in them
cdef int _ESCAPE = 8  # bytes of an entry of the table of escapes, see escaped()
cdef Py_ssize_t _BLOCK = 1024  # bytes of a text for which room is made at once
cdef unsigned long long _HIGH_BITS = 0x8080808080808080
cdef const unsigned char* _NOTHING = b""


class General(NamedTuple):
    """What the general path makes of values that the kernel leaves to it."""

    quote: Callable[[str], str]
    """A string as JSON."""
    key: Callable[[bytes], bytes]
    """A key as what stands behind its name, with the mark of its encoding in JSON."""
    value: Callable[[bytes], bytes]
    """A value likewise."""
    mark: Callable[[bytes], bytes]
    """The cell that says how a payload is encoded."""
    headers: Callable[[Sequence[Header]], bytes]
    marks: tuple[bytes, bytes]
    """What follows a key and a value that are JSON."""
    prefix: bytes
    """What stands before a keyed hash."""
    first: int
    """The first timestamp that has a year, in ms."""
    last: int
    """The first behind it that has none."""
    decoded: Callable[[bytes | None, bytes | None, Sequence[Header]], bytes]
    """The member that says what a key and a value with a schema mean; empty for none."""


@cython.final
cdef class RowLines(Lines):
    """Turns the records of one batch after the other into rows. ``headers`` is one of HEADER_WAYS."""

    cdef object general
    cdef int headers_way
    cdef bytes table
    cdef const unsigned char[::1] key_mark
    cdef const unsigned char[::1] value_mark
    cdef const unsigned char[::1] prefix
    cdef const unsigned char* shown
    cdef long long first
    cdef long long last
    cdef long long second
    cdef unsigned char[33] date
    cdef Py_ssize_t cell_at
    cdef bint fits
    cdef public bint is_open
    cdef public Py_ssize_t count
    cdef Py_ssize_t group
    cdef Py_ssize_t longest
    cdef const unsigned char[::1] above
    cdef const unsigned char[::1] below

    def __init__(self, general, *, headers, keyed_hash=None):
        super().__init__(keyed_hash=keyed_hash)
        self.general = general
        self.headers_way = HEADER_WAYS.index(headers)
        self.table = escapes(general.quote)
        self.key_mark, self.value_mark = general.marks
        self.prefix = general.prefix
        self.first = general.first
        self.last = general.last
        self.shown = self.table
        self.second = self.last  # no timestamp that is written is in it

    def frame(self, above, below, *, group, longest):
        """Write rows of a table from now on: ``above`` before each ``group`` of them, ``below`` behind it.

        ``count`` says how many rows the group has, ``is_open`` whether it has begun. Of a cell ``longest`` characters
        are shown at most.
        """
        self.above = above
        self.below = below
        self.group = group
        self.longest = longest

    @cython.boundscheck(False)
    cdef bint field(self, int slot) except -1 nogil:
        """Write what is no number of ``values``."""
        if slot < _PAYLOADS:
            return Lines.field(self, slot)
        if slot >= _LEFT:
            return self.fit_left(slot - _LEFT) if slot < _RIGHT else self.fit_right(slot - _RIGHT)
        if slot < _OTHERS:
            if (slot - _PAYLOADS) & 1:
                return self.payload((slot - _PAYLOADS) >> 1, True, self.value_at, self.values[_VALUE_SIZE])
            return self.payload((slot - _PAYLOADS) >> 1, False, self.key_at, self.values[_KEY_SIZE])
        if slot == _ISO:
            self.iso(self.values[_TIMESTAMP], True)
        elif slot == _ISO_CELL:
            self.iso(self.values[_TIMESTAMP], False)
        elif slot == _HEADERS:
            self.header_list()
        elif slot == _HEADERS_CELL:
            self.headers_cell()
        elif slot == _PAIRS:
            self.pairs()
        elif slot == _ATTRIBUTES:
            self.used = number(&self.out[self.used], self.attributes) - &self.out[0]
        elif slot == _SIZE_BYTES:
            self.size_bytes(self.values[_VALUE_SIZE])
        elif slot == _WIDTH:
            self.cell_at = self.used
            self.fits = False
        elif slot == _ISO_SHOWN:
            self.iso_shown()
        elif slot == _DECODED or slot == _DECODED_IF_FRAMED:
            if slot == _DECODED or self.has_schema():
                self.by_decoder()
        elif slot == _ROW:
            if not self.is_open:
                self.constant(self.above)
        else:
            self.end_row()
        return True

    cdef bint payload(self, int way, bint is_value, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write a key or a value in a way of WAYS."""
        if way == _STRING and self.string(at, size):
            return True
        if way == _JSON and self.json(is_value, at, size):
            return True
        if way == _CELL and self.cell(at, size):
            return True
        if way == _HEX_CELL or way == _BASE64_CELL:
            if size == 0:
                return self.cell(at, size)
            return self.spell(_HEX if way == _HEX_CELL else _BASE64, at, size)
        if way == _SHOWN and self.printable(at, size):
            return True
        if way == _MARK:
            return self.mark(at, size)
        if way == _MARKED_CELL:
            return self.marked_cell(is_value, at, size)
        return self.by_general(is_value)

    cdef bint marked_cell(self, bint is_value, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write a key or a value as a cell, and the one that says how it is encoded."""
        cdef bint is_text = self.cell(at, size)
        if not is_text:
            self.by_general(is_value)
        reserve(self, 1)
        self.out[self.used] = 44
        self.used += 1
        return (is_text and self.headers_way != _JSONS) or self.mark(at, size)

    @cython.boundscheck(False)
    cdef bint printable(self, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write bytes of the record, the first of many, if all are printable ASCII; return whether they are.

        What is written in their place is as wide as it is to be.
        """
        cdef const unsigned char* text = self.text_at(at, size)
        cdef unsigned char odd = 0
        cdef Py_ssize_t place
        for place in range(size):
            odd |= <unsigned char> (text[place] - 32) > 94
        if odd:
            self.fits = True
            return False
        size = min(size, self.longest + 1)
        reserve(self, size)
        memcpy(&self.out[self.used], text, size)
        self.used += size
        return True

    @cython.boundscheck(False)
    cdef bint iso_shown(self) except -1 nogil:
        """Write the timestamp as a cell of a table."""
        cdef Py_ssize_t begin = self.used
        self.iso(self.values[_TIMESTAMP], False)
        if self.used == begin:
            memcpy(&self.out[begin], <char*> b"null", 4)
            self.used += 4
        return True

    @cython.boundscheck(False)
    cdef bint fit_left(self, Py_ssize_t width) except -1 nogil:
        """Make the cell as wide as its column: spaces behind it, or an ellipsis in place of its end."""
        cdef Py_ssize_t size = self.used - self.cell_at
        cdef Py_ssize_t most = min(width, self.longest)
        if self.fits:
            return True
        reserve(self, width + 4)
        if size > most:
            self.used = self.cell_at + most - 1
            memcpy(&self.out[self.used], <char*> b"\xe2\x80\xa6", 3)
            self.used += 3
            size = most
        if size < width:
            memset(&self.out[self.used], 32, width - size)
            self.used += width - size
        return True

    @cython.boundscheck(False)
    cdef bint fit_right(self, Py_ssize_t width) except -1 nogil:
        """Put spaces in front of a number; one that is wider than its column is not written."""
        cdef Py_ssize_t size = self.used - self.cell_at
        if size > width:
            return self.too_wide()
        reserve(self, width)
        memmove(&self.out[self.cell_at + width - size], &self.out[self.cell_at], size)
        memset(&self.out[self.cell_at], 32, width - size)
        self.used = self.cell_at + width
        return True

    cdef bint too_wide(self) except -1 with gil:
        raise DamageError("width", "a number is wider than its column")

    cdef bint end_row(self) except -1 nogil:
        """Count a row, and end its group with it."""
        self.is_open = True
        self.count += 1
        if self.count == self.group:
            self.constant(self.below)
            self.is_open = False
            self.count = 0
        return True

    @cython.boundscheck(False)
    cdef bint constant(self, const unsigned char[::1] text) except -1 nogil:
        """Write a text that is the same in all rows."""
        reserve(self, text.shape[0])
        memcpy(&self.out[self.used], &text[0], text.shape[0])
        self.used += text.shape[0]
        return True

    @cython.boundscheck(False)
    cdef const unsigned char* text_at(self, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
        """Return where bytes of the record lie; none may stand at the end of the data, where is nothing to point to."""
        return &self.data[at] if size > 0 else _NOTHING

    @cython.boundscheck(False)
    cdef bint json(self, bint is_value, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write bytes of the record as a value of JSON with its mark, else as a string; return whether it could."""
        cdef const unsigned char* text = self.text_at(at, size)
        cdef int found = self.json_at(text, size)
        if found < 0:
            return False
        if found == 0:
            return self.string(at, size)
        return self.constant(self.value_mark if is_value else self.key_mark)

    @cython.boundscheck(False)
    cdef int json_at(self, const unsigned char* text, Py_ssize_t size) except -2 nogil:
        """Write a text if it is a value of JSON, on one line; return 1 then, else as json_value() does."""
        cdef int found = json_value(text, size)
        cdef unsigned char byte
        cdef unsigned char seen = 0
        cdef unsigned char* out
        cdef Py_ssize_t place
        if found <= 0:
            return found
        reserve(self, size)
        out = &self.out[self.used]
        for place in range(size):
            byte = text[place]
            seen |= byte
            if byte == 127:
                return -1
            out[place] = 32 if byte == 10 or byte == 13 else byte
        if seen & 0x80 and not (is_utf8(text, size) and _is_harmless(text, size)):
            return -1
        self.used += size
        return 1

    @cython.boundscheck(False)
    cdef bint cell(self, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write bytes of the record as a cell; return whether they are UTF-8."""
        cdef unsigned long long bits = 0
        cdef const unsigned char* text = self.text_at(at, size)
        cdef Py_ssize_t begin = self.used
        reserve(self, 2 * size + BEYOND)
        if 0 < size <= 16 and text[0] != 32 and text[size - 1] != 32 and self.plain(&self.out[begin], at, size, 44):
            self.used += size
            return True
        self.used = cell(&self.out[self.used], text, size, &bits) - &self.out[0]
        if bits & _HIGH_BITS and not is_utf8(text, size):
            self.used = begin
            return False
        return True

    @cython.boundscheck(False)
    cdef bint mark(self, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write how a payload is encoded: nothing where it is UTF-8, and no value of JSON if these are marked."""
        cdef const unsigned char* text = self.text_at(at, size)
        if is_utf8(text, size) and (self.headers_way != _JSONS or json_value(text, size) == 0):
            return True
        return self.other_mark(at, size)

    cdef bint other_mark(self, Py_ssize_t at, Py_ssize_t size) except -1 with gil:
        """Write how a payload is encoded by the general path."""
        return self.write(self.general.mark(bytes(self.data[at : at + size])))

    @cython.boundscheck(False)
    cdef bint string(self, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write ``size`` bytes of the record as a string of JSON; return whether that could be done here."""
        cdef const unsigned char* text
        cdef Py_ssize_t begin = self.used
        cdef unsigned long long bits = 0
        cdef Py_ssize_t left = size
        if 0 < size <= BEYOND:
            reserve(self, BEYOND + 2)
            if self.plain(&self.out[begin + 1], at, size, 34):
                self.out[begin] = self.out[begin + 1 + size] = 34
                self.used += size + 2
                return True
        self.out[self.used] = 34
        self.used += 1
        while left > _BLOCK:
            reserve(self, _ESCAPE * _BLOCK + BEYOND)
            bits |= self.escaped(at, _BLOCK)
            at += _BLOCK
            left -= _BLOCK
        reserve(self, _ESCAPE * left + BEYOND)
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
    cdef inline bint plain(self, unsigned char* out, Py_ssize_t at, Py_ssize_t size, char also) noexcept nogil:
        """Do what plain() does with bytes of the record, one or more; most names and keys are short."""
        if size <= 16 and at + 16 <= self.data.shape[0] and short_plain(out, &self.data[at], <int> size, also):
            return True
        return plain(out, &self.data[at], size, also)

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
    cdef bint iso(self, long long timestamp, bint quoted) except -1 nogil:
        """Write a timestamp in ms as ISO 8601 in UTC, in quotes or not.

        For -1, which is none, and where there is no year for it, null is written in the place of quotes, else nothing.
        """
        cdef unsigned char* out = &self.out[self.used]
        if timestamp == -1 or timestamp < self.first or timestamp >= self.last:
            memcpy(out, <char*> b"null", 4)
            self.used += 4 if quoted else 0
            return True
        if not 0 <= timestamp - self.second < 1000:
            self.second = timestamp - (timestamp % 1000 + 1000) % 1000
            self.write_date()
        cdef unsigned int ms = <unsigned int> (timestamp - self.second)
        memcpy(out, &self.date[not quoted], 32)
        out += 20 + quoted
        out[0] = <unsigned char> (48 + ms // 100)
        out[1] = <unsigned char> (48 + ms // 10 % 10)
        out[2] = <unsigned char> (48 + ms % 10)
        self.used += 26 if quoted else 24
        return True

    @cython.boundscheck(False)
    cdef bint size_bytes(self, long long size) except -1 nogil:
        """Write a size, -1 for null, in four bytes."""
        cdef int byte
        for byte in range(4):
            self.out[self.used + byte] = <unsigned char> (size >> (24 - 8 * byte))
        self.used += 4
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
            if self.header_count > 1:  # read() left where the last one lies
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
            elif not self.content(self.text_at(self.content_at, self.content_size), self.content_size):
                return self.other_headers(start)
            self.out[self.used] = 125
            self.used += 1
        self.out[self.used] = 93
        self.used += 1
        return True

    @cython.boundscheck(False)
    cdef bint content(self, const unsigned char* text, Py_ssize_t size) except -1 nogil:
        """Write the value of a header with the mark of its encoding; return whether that could be done here."""
        cdef int found
        if self.headers_way == _STRINGS:
            return self.string(self.content_at, size)
        if self.headers_way == _JSONS:
            found = self.json_at(text, size)
            if found <= 0:
                return found == 0 and self.string(self.content_at, size)
            memcpy(&self.out[self.used], <char*> b',"encoding":"json"', 18)
            self.used += 18
            return True
        reserve(self, 2 * size + _DIGITS)
        if self.headers_way == _HASHES:
            return self.hashed(text, size)
        self.out[self.used] = 34
        self.used += 1
        if self.headers_way == _HEXES:
            hex_digits(&self.out[self.used], text, size)
            self.used += 2 * size
            memcpy(&self.out[self.used], <char*> b'","encoding":"hex"', 18)
            self.used += 18
            return True
        if self.headers_way == _BASE64S:
            self.used = base64(&self.out[self.used], text, size) - &self.out[0]
            memcpy(&self.out[self.used], <char*> b'","encoding":"base64"', 21)
            self.used += 21
            return True
        return False

    @cython.boundscheck(False)
    cdef bint hashed(self, const unsigned char* text, Py_ssize_t size) except -1 nogil:
        """Write a keyed hash as a string."""
        self.out[self.used] = 34
        self.used += 1
        self.prefixed(text, size)
        self.out[self.used] = 34
        self.used += 1
        return True

    @cython.boundscheck(False)
    cdef bint prefixed(self, const unsigned char* text, Py_ssize_t size) except -1 nogil:
        """Write a keyed hash with what stands before each."""
        self.constant(self.prefix)
        reserve(self, _DIGITS)
        self.keyed_hash.digits(&self.out[0], self.used, text, size)
        self.used += _DIGITS
        return True

    @cython.boundscheck(False)
    cdef bint headers_cell(self) except -1 nogil:
        """Write the headers as a cell that holds JSON."""
        cdef Py_ssize_t begin = self.used
        cdef Py_ssize_t size
        cdef unsigned long long bits = 0
        if self.header_count > 0 and self.headers_way == _STRINGS and self.easy_headers():
            return True
        self.used = begin
        self.header_list()
        self.settle()
        size = self.used - begin
        reserve(self, 2 * size + BEYOND)
        size = cell(&self.out[self.used], &self.out[begin], size, &bits) - &self.out[self.used]
        memmove(&self.out[begin], &self.out[self.used], size)
        self.used = begin + size
        return True

    @cython.boundscheck(False)
    cdef bint easy_headers(self) except -1 nogil:
        """Write the headers as a cell in one go; return whether none of their texts needs an escape."""
        cdef Py_ssize_t at = self.headers_at
        cdef Py_ssize_t done
        self.need += _AROUND * self.header_count  # until the next record
        reserve(self, 0)
        memcpy(&self.out[self.used], <char*> b'"[', 2)
        self.used += 2
        for done in range(self.header_count):
            if self.header_count > 1:  # read() left where the last one lies
                at = self.header(at)
            memcpy(&self.out[self.used], <char*> b',{""key"":""' + (done == 0), 12)
            self.used += 12 - (done == 0)
            if not self.easy(self.name_at, self.name_size):
                return False
            if self.content_size < 0:
                memcpy(&self.out[self.used], <char*> b'"",""value"":null}', 18)
                self.used += 18
                continue
            memcpy(&self.out[self.used], <char*> b'"",""value"":""', 15)
            self.used += 15
            if not self.easy(self.content_at, self.content_size):
                return False
            memcpy(&self.out[self.used], <char*> b'""}', 3)
            self.used += 3
        memcpy(&self.out[self.used], <char*> b']"', 2)
        self.used += 2
        return True

    @cython.boundscheck(False)
    cdef bint easy(self, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write bytes of the record as they are; return whether they are ASCII that stands so in a string of JSON."""
        cdef Py_ssize_t begin = self.used
        reserve(self, _ESCAPE * size + BEYOND)
        if size > 0 and self.plain(&self.out[begin], at, size, 34):
            self.used += size
            return True
        return not self.escaped(at, size) & _HIGH_BITS and self.used == begin + size

    @cython.boundscheck(False)
    cdef bint pairs(self) except -1 nogil:
        """Write the headers as a format string does: names and values as they are, NULL for null."""
        cdef Py_ssize_t at = self.headers_at
        cdef Py_ssize_t done
        for done in range(self.header_count):
            at = self.header(at)
            reserve(self, self.name_size + max(self.content_size, 4) + 2)
            if done:
                self.out[self.used] = 44
                self.used += 1
            memcpy(&self.out[self.used], self.text_at(self.name_at, self.name_size), self.name_size)
            self.used += self.name_size
            self.out[self.used] = 61
            self.used += 1
            if self.content_size < 0:
                memcpy(&self.out[self.used], <char*> b"NULL", 4)
                self.used += 4
            elif self.headers_way == _HASHES:
                self.prefixed(self.text_at(self.content_at, self.content_size), self.content_size)
            else:
                memcpy(&self.out[self.used], self.text_at(self.content_at, self.content_size), self.content_size)
                self.used += self.content_size
        return True

    @cython.boundscheck(False)
    cdef bint has_schema(self) noexcept nogil:
        """Tell whether the key or the value may name its schema (:mod:`kdump.schemas.framing`)."""
        cdef Py_ssize_t at = self.headers_at
        cdef const unsigned char* name
        if _is_framed(self.text_at(self.key_at, self.values[_KEY_SIZE]), self.values[_KEY_SIZE]):
            return True
        if _is_framed(self.text_at(self.value_at, self.values[_VALUE_SIZE]), self.values[_VALUE_SIZE]):
            return True
        for _ in range(self.header_count):
            at = self.header(at)
            name = self.text_at(self.name_at, self.name_size)
            if self.name_size == 15 and memcmp(name, <char*> b"__key_schema_id", 15) == 0:
                return True
            if self.name_size == 17 and memcmp(name, <char*> b"__value_schema_id", 17) == 0:
                return True
        return False

    cdef bint by_decoder(self) except -1 with gil:
        """Write the member that the general path makes of payloads with a schema."""
        key = None
        value = None
        if self.values[_KEY_SIZE] >= 0:
            key = bytes(self.data[self.key_at : self.key_at + self.values[_KEY_SIZE]])
        if self.values[_VALUE_SIZE] >= 0:
            value = bytes(self.data[self.value_at : self.value_at + self.values[_VALUE_SIZE]])
        self.settle()
        return self.write(self.general.decoded(key, value, self.header_pairs()))

    cdef list header_pairs(self):
        """Return the headers as the general path knows them."""
        pairs = []
        cdef Py_ssize_t at = self.headers_at
        for _ in range(self.header_count):
            at = self.header(at)
            name = bytes(self.data[self.name_at : self.name_at + self.name_size])
            value = None
            if self.content_size >= 0:
                value = bytes(self.data[self.content_at : self.content_at + self.content_size])
            pairs.append(Header(name, value))
        return pairs

    cdef bint other_headers(self, Py_ssize_t start) except -1 with gil:
        """Write the headers by the general path, from ``start`` on."""
        pairs = self.header_pairs()
        self.settle()
        self.used = start
        return self.write(self.general.headers(pairs))

    cdef bint by_general(self, bint is_value) except -1 with gil:
        """Write the key or the value by the general path."""
        if not is_value:
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


cdef bint _is_framed(const unsigned char* payload, Py_ssize_t size) noexcept nogil:
    """Tell whether a payload begins with a schema id, Avro's fingerprint, or as an Avro file."""
    if size < 4:
        return False
    if payload[0] == 0:
        return size > 4
    if payload[0] == 0xC3:
        return payload[1] == 1
    return memcmp(payload, <char*> b"Obj\x01", 4) == 0


cdef void _two(unsigned char* out, long long value) noexcept nogil:
    """Write two digits."""
    out[0] = <unsigned char> (48 + value // 10)
    out[1] = <unsigned char> (48 + value % 10)


cdef inline bint _is_mark(unsigned char last) noexcept nogil:
    """Tell by its last byte whether a character from U+2000 to U+203F may be one that a terminal obeys."""
    return last >= 0xA8 or last == 0x8E or last == 0x8F


cdef bint _is_harmless(const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Tell whether valid UTF-8 surely holds none of the characters beyond ASCII that a terminal obeys.

    These are U+0080 to U+009F, U+061C and some of U+200E to U+206F; the general path knows which.
    """
    cdef Py_ssize_t at
    for at in range(size - 1):
        if text[at] == 0xC2 and text[at + 1] < 0xA0:
            return False
        if text[at] == 0xD8 and text[at + 1] == 0x9C:
            return False
        if text[at] == 0xE2 and (text[at + 1] == 0x81 or (text[at + 1] == 0x80 and _is_mark(text[at + 2]))):
            return False
    return True
