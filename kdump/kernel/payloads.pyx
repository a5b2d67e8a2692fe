# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The records of Kafka's own topics as lines of text, by programs made of their schemas.

A program knows structs. A struct is first gone through, which finds where its fields lie and that they lie within the
bytes that there are, then written: literals, and fields in whatever order the text has them. What a program does not
know, and what is not perfectly well-formed, is written by the general path, record by record.

``code`` holds, from the index of a struct on: the index of its writing steps; then its finding steps, of ``FIND``
numbers each. A writing step has ``WRITE`` numbers: start and size of a literal in ``texts``, then what follows it.
"""

from __future__ import annotations

from typing import NamedTuple

from kdump.kernel.cursor import RECORD_NUMBERS
from kdump.kernel.lines import slots

cimport cython
from libc.string cimport memcmp, memcpy
from kdump.kernel.fields cimport Fields
from kdump.kernel.lines cimport number, reserve
from kdump.kernel.quoting cimport BEYOND, escaped, is_utf8

WRITES = (
    "literal",
    "end",
    "close",
    "number",
    "bool",
    "uuid",
    "string",
    "bytes",
    "count",
    "struct",
    "array",
    "map",
    "name",
    "embedded",
    "ordered",
    "absent",
    "default",
    "null",
    "text",
    "jump",
)
"""How fields are written, and what follows in a step: the place of the field, then

- literal: nothing but it; end: no more;
- close: ends an object of JSON, instead of the comma behind its last field;
- number: bytes from the place on, size (negative: without a sign); bool: bytes from the place on;
- uuid: bytes from the place on, whether in quotes; string: whether in quotes and escaped;
- bytes: base64, in quotes; count: how many bytes; struct: its index;
- array: of JSON, flags of its elements, how they are written in the next step;
- map: likewise, of structs that begin with an int32 that rises and have ", " behind them, in braces, never empty;
- name: bytes from the place on to an int8, index in ``code`` of: count, then start and size of each text;
- embedded: bytes that hold a struct behind an int16: index in ``code`` of the structs by that number, how many;
- ordered: no text; bytes from the place on to two int64, neither negative nor falling;
- absent: instead of the literal nothing; goes ahead by so many steps when the tagged field is not there;
- default: start and size of a text; takes back what stands since the last "absent" where it is the same;
- null, text, jump: go ahead by so many steps when it is not null, when it is not the literal (not written), always.
"""
WRITE = 6

cdef int _W_LITERAL = WRITES.index("literal")
cdef int _W_END = WRITES.index("end")
cdef int _W_CLOSE = WRITES.index("close")
cdef int _W_NUMBER = WRITES.index("number")
cdef int _W_BOOL = WRITES.index("bool")
cdef int _W_UUID = WRITES.index("uuid")
cdef int _W_STRING = WRITES.index("string")
cdef int _W_BYTES = WRITES.index("bytes")
cdef int _W_COUNT = WRITES.index("count")
cdef int _W_STRUCT = WRITES.index("struct")
cdef int _W_ARRAY = WRITES.index("array")
cdef int _W_MAP = WRITES.index("map")
cdef int _W_NAME = WRITES.index("name")
cdef int _W_EMBEDDED = WRITES.index("embedded")
cdef int _W_ORDERED = WRITES.index("ordered")
cdef int _W_ABSENT = WRITES.index("absent")
cdef int _W_DEFAULT = WRITES.index("default")
cdef int _W_NULL = WRITES.index("null")
cdef int _W_TEXT = WRITES.index("text")
cdef int _W_JUMP = WRITES.index("jump")

cdef int _OFFSET = RECORD_NUMBERS.index("offset")
cdef int _KEY_SIZE = RECORD_NUMBERS.index("key_size")
cdef int _VALUE_SIZE = RECORD_NUMBERS.index("value_size")
cdef int _SLOT = slots(())["decoded"]
cdef int _WRITE = WRITE
cdef unsigned long long _HIGH_BITS = 0x8080808080808080
cdef Py_ssize_t _NULL = -1  # instead of a size or a count
cdef Py_ssize_t _NOT_THERE = -2  # likewise, of a tagged field
cdef Py_ssize_t _LEFT = -1  # instead of a position: the general path writes it
cdef int _AROUND = 64  # bytes of a number, a uuid, null and so on, with what stands around it
_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
cdef bytes _BASE64_TEXT = _DIGITS + b"+/"
cdef bytes _BASE64_URL_TEXT = _DIGITS + b"-_"
cdef char* _BASE64 = _BASE64_TEXT
cdef char* _BASE64_URL = _BASE64_URL_TEXT


class Program(NamedTuple):
    """What is known of the records of a topic. A number of -1 in ``code`` stands for a struct that is not known.

    With a ``frame`` (not -1) a value begins with three varints: this number, the type, the version; there is no key,
    and nothing may follow the struct. Without, a key begins with the type, a value with the version, as int16.
    """


    texts: bytes
    code: array[int]
    escapes: bytes
    """Eight bytes for each byte of a string: what stands for it, its size in the last one."""
    frame: int
    types: int
    versions: int
    keys: int
    """Where the index of the struct of each type of key stands."""
    values: int
    """Where the index of the struct of each type and, one behind the other, of its versions stands."""
    deleted: tuple[int, int]
    """Start and size of the text of a null value."""


@cython.final
cdef class Payloads(Fields):
    """Turns the records of one batch after the other into lines: what keys and values say is at the slot "decoded".

    ``general`` makes these texts of offset, key and value where the program does not. Raises what it raises: then the
    lines stop in front of the record.
    """

    cdef object general
    cdef object program
    cdef const unsigned char[::1] texts
    cdef bytes escapes
    cdef const unsigned char* shown
    cdef int frame
    cdef int types
    cdef int versions
    cdef int keys
    cdef int values_at
    cdef int deleted_at
    cdef int deleted_size

    def __init__(self, program, general):
        super().__init__(program.code)
        self.general = general
        self.program = program
        self.escapes = program.escapes
        self.frame = program.frame
        self.types = program.types
        self.versions = program.versions
        self.keys = program.keys
        self.values_at = program.values
        self.deleted_at, self.deleted_size = program.deleted
        self.texts = program.texts
        self.shown = self.escapes

    cdef bint field(self, int slot) except -1 nogil:
        """Write what is no number."""
        if slot != _SLOT:
            if self.header_count > 0:
                self.header_keys()
            return True
        cdef Py_ssize_t start = self.used
        cdef Py_ssize_t done = self.coordinated() if self.frame < 0 else self.framed()
        if done == _LEFT:
            self.used = start
            self.other()
        return True

    cdef bint other(self) except -1 with gil:
        """Write the record's texts by the general path."""
        key = value = None
        if self.values[_KEY_SIZE] >= 0:
            key = bytes(self.data[self.key_at : self.key_at + self.values[_KEY_SIZE]])
        if self.values[_VALUE_SIZE] >= 0:
            value = bytes(self.data[self.value_at : self.value_at + self.values[_VALUE_SIZE]])
        cdef bytes shown = self.general(self.values[_OFFSET], key, value)
        self.grow(len(shown))
        self.buffer[self.used : self.used + len(shown)] = shown
        self.used += len(shown)
        return True

    @cython.boundscheck(False)
    cdef Py_ssize_t coordinated(self) except -2 nogil:
        """Write a record of a coordinator."""
        if self.values[_KEY_SIZE] < 2:
            return _LEFT
        cdef long long kind = self.integer(self.key_at, 2)
        if not 0 <= kind < self.types:
            return _LEFT
        cdef int struct = self.code[self.keys + kind]
        if struct < 0 or self.struct(struct, self.key_at + 2, self.key_at + self.values[_KEY_SIZE]) < 0:
            return _LEFT
        cdef Py_ssize_t size = self.values[_VALUE_SIZE]
        if size < 0:
            self.literal(self.deleted_at, self.deleted_size)
            return 0
        if size < 2:
            return _LEFT
        cdef long long version = self.integer(self.value_at, 2)
        if not 0 <= version < self.versions:
            return _LEFT
        struct = self.code[self.values_at + kind * self.versions + version]
        return _LEFT if struct < 0 else self.struct(struct, self.value_at + 2, self.value_at + size)

    @cython.boundscheck(False)
    cdef Py_ssize_t framed(self) except -2 nogil:
        """Write a record whose value is framed."""
        cdef Py_ssize_t at = self.value_at
        cdef Py_ssize_t end = at + self.values[_VALUE_SIZE]
        at = self.varint(at, end)
        if at < 0 or self.found != self.frame:
            return _LEFT
        at = self.varint(at, end)
        if at < 0 or self.found >= self.types:
            return _LEFT
        cdef long long kind = self.found
        at = self.varint(at, end)
        if at < 0 or self.found >= self.versions:
            return _LEFT
        cdef int struct = self.code[self.values_at + kind * self.versions + self.found]
        return 0 if struct >= 0 and self.struct(struct, at, end) == end else _LEFT

    @cython.boundscheck(False)
    cdef Py_ssize_t struct(self, int index, Py_ssize_t at, Py_ssize_t end) except -2 nogil:
        """Write the struct at ``at``; return the position behind it."""
        cdef Py_ssize_t[32] starts
        cdef Py_ssize_t[32] sizes
        at = self.find(index + 1, at, end, starts, sizes)
        if at < 0 or self.write(self.code[index], starts, sizes, end) < 0:
            return _LEFT
        return at

    @cython.boundscheck(False)
    cdef Py_ssize_t write(self, Py_ssize_t step, Py_ssize_t* starts, Py_ssize_t* sizes, Py_ssize_t end) except -2 nogil:
        """Write a struct whose fields were found; return a number that is not negative."""
        cdef int kind
        cdef int place
        cdef Py_ssize_t mark = self.used
        while True:
            kind = self.code[step + 2]
            place = self.code[step + 3]
            if kind == _W_TEXT:
                if self.is_text(step, starts[place], sizes[place]):
                    step += _WRITE
                else:
                    step += _WRITE * self.code[step + 4]
                continue
            self.literal(self.code[step], self.code[step + 1])
            if kind == _W_END:
                return 0
            if kind == _W_CLOSE:
                self.close(125)
                step += _WRITE
                continue
            if kind >= _W_ABSENT:
                if kind == _W_ABSENT:
                    mark = self.used
                    step += _WRITE * (self.code[step + 4] if sizes[place] == _NOT_THERE else 1)
                elif kind == _W_DEFAULT:
                    self.unless_default(mark, self.code[step + 4], self.code[step + 5])
                    step += _WRITE
                elif kind == _W_NULL:
                    step += _WRITE * (1 if sizes[place] == _NULL else self.code[step + 4])
                else:
                    step += _WRITE * self.code[step + 4]
                continue
            if kind != _W_LITERAL:
                if sizes[place] == _NULL:
                    self.null()
                elif self.value(step, starts[place], sizes[place], end) < 0:
                    return _LEFT
            step += _WRITE * (2 if kind in (_W_ARRAY, _W_MAP) else 1)

    @cython.boundscheck(False)
    cdef Py_ssize_t value(self, Py_ssize_t step, Py_ssize_t at, Py_ssize_t size, Py_ssize_t end) except -2 nogil:
        """Write a field that was found at ``at`` and is not null."""
        cdef int kind = self.code[step + 2]
        cdef int argument = self.code[step + 4]
        if kind == _W_STRING:
            return self.string(at, size, argument)
        if kind == _W_STRUCT:
            return self.struct(argument, at, end)
        if kind in (_W_ARRAY, _W_MAP):
            return self.elements(step, at, size, end)
        if kind == _W_BYTES:
            return self.base64(at, size, _BASE64, 1)
        if kind == _W_EMBEDDED:
            return self.embedded(step, at, size)
        if kind == _W_COUNT:
            self.decimal(size)
            return 0
        if kind == _W_NAME:
            return self.name(argument + at, self.code[step + 5])
        if kind == _W_ORDERED:
            return 0 if 0 <= self.integer(at + argument, 8) <= self.integer(at + argument + 8, 8) else _LEFT
        return self.fixed(kind, at + argument, self.code[step + 5])

    @cython.boundscheck(False)
    cdef Py_ssize_t fixed(self, int kind, Py_ssize_t at, int size) except -2 nogil:
        """Write a field of a fixed size."""
        if kind == _W_UUID:
            return self.base64(at, 16, _BASE64_URL, size)
        if kind == _W_BOOL:
            reserve(self, _AROUND)
            if self.data[at]:
                memcpy(&self.out[self.used], <char*> b"true", 4)
                self.used += 4
            else:
                memcpy(&self.out[self.used], <char*> b"false", 5)
                self.used += 5
            return 0
        self.decimal(self.integer(at, size))
        return 0

    @cython.boundscheck(False)
    cdef Py_ssize_t elements(self, Py_ssize_t step, Py_ssize_t at, Py_ssize_t count, Py_ssize_t end) except -2 nogil:
        """Write an array as the next step says, or a map of structs."""
        cdef bint is_map = self.code[step + 2] == _W_MAP
        cdef int flags = self.code[step + 4]
        step += _WRITE
        cdef int kind = self.code[step + 2]
        cdef int size = self.code[step + 5]
        cdef long long last = -1 << 32
        if is_map and count == 0:
            return _LEFT
        self.byte(123 if is_map else 91)
        while count > 0:
            count -= 1
            if kind == _W_STRUCT:
                if is_map:
                    if self.integer(at, 4) <= last:
                        return _LEFT
                    last = self.integer(at, 4)
                at = self.struct(self.code[step + 4], at, end)
                if at < 0:
                    return _LEFT
            elif kind in (_W_STRING, _W_BYTES):
                at = self.length(at, end, 2 if kind == _W_STRING else 4, flags)
                if at < 0:
                    return _LEFT
                size = <int> self.found
                if (self.string(at, size, 1) if kind == _W_STRING else self.base64(at, size, _BASE64, 1)) < 0:
                    return _LEFT
                at += size
            else:
                if self.fixed(kind, at, size) < 0:
                    return _LEFT
                at += 16 if kind == _W_UUID else 1 if kind == _W_BOOL else size if size > 0 else -size
            if not is_map:
                self.byte(44)
        if is_map:
            self.used -= 2
            self.byte(125)
        else:
            self.close(93)
        return 0

    @cython.boundscheck(False)
    cdef Py_ssize_t embedded(self, Py_ssize_t step, Py_ssize_t at, Py_ssize_t size) except -2 nogil:
        """Write bytes that hold a struct."""
        if size < 2:  # so they cannot hold one
            return self.base64(at, size, _BASE64, 1)
        cdef long long version = self.integer(at, 2)
        if not 0 <= version < self.code[step + 5]:
            return _LEFT
        return self.struct(self.code[self.code[step + 4] + version], at + 2, at + size)

    @cython.boundscheck(False)
    cdef Py_ssize_t name(self, Py_ssize_t at, Py_ssize_t table) except -2 nogil:
        """Write the name of an int8."""
        cdef long long value = self.integer(at, 1)
        if not 0 <= value < self.code[table]:
            return _LEFT
        table += 1 + 2 * value
        self.literal(self.code[table], self.code[table + 1])
        return 0

    @cython.boundscheck(False)
    cdef Py_ssize_t string(self, Py_ssize_t at, Py_ssize_t size, int quoted) except -2 nogil:
        """Write a string of at most ``_LONGEST`` bytes, when it is valid UTF-8."""
        cdef unsigned long long bits = 0
        cdef const unsigned char* text
        reserve(self, 6 * size + BEYOND)
        if size == 0:
            if quoted:
                memcpy(&self.out[self.used], <char*> b'""', 2)
                self.used += 2
            return 0
        text = &self.data[at]
        if quoted:
            self.out[self.used] = 34
            self.used = escaped(
                &self.out[self.used + 1], text, size, self.shown, &bits
            ) - &self.out[0]
            self.out[self.used] = 34
            self.used += 1
        else:
            memcpy(&self.out[self.used], text, size)
            self.used += size
            bits = _HIGH_BITS
        return 0 if not bits & _HIGH_BITS or is_utf8(text, size) else _LEFT

    @cython.boundscheck(False)
    cdef Py_ssize_t base64(self, Py_ssize_t at, Py_ssize_t size, const char* digits, int quoted) except -2 nogil:
        """Write bytes as base64, with padding in its first alphabet alone."""
        reserve(self, size // 3 * 4 + _AROUND)
        cdef unsigned char* out = &self.out[self.used]
        cdef unsigned int word
        if quoted:
            out[0] = 34
            out += 1
        while size > 0:
            word = self.data[at] << 16
            if size > 1:
                word |= self.data[at + 1] << 8
            if size > 2:
                word |= self.data[at + 2]
            out[0] = digits[word >> 18]
            out[1] = digits[word >> 12 & 63]
            out[2] = digits[word >> 6 & 63] if size > 1 else 61
            out[3] = digits[word & 63] if size > 2 else 61
            out += 4 if digits == _BASE64 or size > 2 else size + 1
            at += 3
            size -= 3
        if quoted:
            out[0] = 34
            out += 1
        self.used = out - &self.out[0]
        return 0

    @cython.boundscheck(False)
    cdef bint unless_default(self, Py_ssize_t mark, int start, int size) except -1 nogil:
        """Write a comma, or take back what stands from ``mark`` on where it is this text of a default."""
        if self.used - mark == size and not memcmp(
            &self.out[mark], &self.texts[start], size
        ):
            self.used = mark
        else:
            self.byte(44)
        return True

    @cython.boundscheck(False)
    cdef bint is_text(self, Py_ssize_t step, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
        """Tell whether a string is the literal of a step."""
        return size == self.code[step + 1] and not memcmp(
            &self.data[at], &self.texts[self.code[step]], size
        )

    @cython.boundscheck(False)
    cdef bint literal(self, Py_ssize_t start, Py_ssize_t size) except -1 nogil:
        """Write a literal."""
        if size > 0:
            reserve(self, size)
            memcpy(&self.out[self.used], &self.texts[start], size)
            self.used += size
        return True

    @cython.boundscheck(False)
    cdef bint close(self, unsigned char byte) except -1 nogil:
        """Write ``byte`` instead of a comma, if there is one, else behind what stands there."""
        if self.out[self.used - 1] == 44:
            self.used -= 1
        return self.byte(byte)

    @cython.boundscheck(False)
    cdef bint byte(self, unsigned char byte) except -1 nogil:
        """Write one byte."""
        reserve(self, 1)
        self.out[self.used] = byte
        self.used += 1
        return True

    @cython.boundscheck(False)
    cdef bint decimal(self, long long value) except -1 nogil:
        """Write a number."""
        reserve(self, _AROUND)
        self.used = number(&self.out[self.used], value) - &self.out[0]
        return True

    @cython.boundscheck(False)
    cdef bint null(self) except -1 nogil:
        """Write null."""
        reserve(self, _AROUND)
        memcpy(&self.out[self.used], <char*> b"null", 4)
        self.used += 4
        return True
