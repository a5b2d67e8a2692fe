# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The records of Kafka's own topics as lines of text, by programs made of their schemas. For the compiled build alone.

A program knows structs. A struct is first gone through, which finds where its fields lie and that they lie within the
bytes that there are, then written: literals, and fields in whatever order the text has them. What a program does not
know, and what is not perfectly well-formed, is written by the general path, record by record.

``code`` holds, from the index of a struct on: the index of its writing steps; then its finding steps, of ``FIND``
numbers each. A writing step has ``WRITE`` numbers: start and size of a literal in ``texts``, then what follows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.kernel.cursor import RECORD_NUMBERS
from kdump.kernel.lines import slots

if TYPE_CHECKING:
    import cython
else:
    from kdump.kernel import _shadow as cython

if not cython.compiled:
    from kdump.kernel.fields import Fields
else:
    from cython.cimports.kdump.kernel.fields import Fields  # type: ignore[no-redef]  # the same in C
    from cython.cimports.kdump.kernel.lines import number, reserve
    from cython.cimports.kdump.kernel.quoting import escaped, is_utf8
    from cython.cimports.libc.string import memcmp, memcpy
if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable

STAMP: Final = "a5651310"

WRITES: Final = (
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
WRITE: Final = 6

_W_LITERAL = cython.declare(cython.int, WRITES.index("literal"))
_W_END = cython.declare(cython.int, WRITES.index("end"))
_W_CLOSE = cython.declare(cython.int, WRITES.index("close"))
_W_NUMBER = cython.declare(cython.int, WRITES.index("number"))
_W_BOOL = cython.declare(cython.int, WRITES.index("bool"))
_W_UUID = cython.declare(cython.int, WRITES.index("uuid"))
_W_STRING = cython.declare(cython.int, WRITES.index("string"))
_W_BYTES = cython.declare(cython.int, WRITES.index("bytes"))
_W_COUNT = cython.declare(cython.int, WRITES.index("count"))
_W_STRUCT = cython.declare(cython.int, WRITES.index("struct"))
_W_ARRAY = cython.declare(cython.int, WRITES.index("array"))
_W_MAP = cython.declare(cython.int, WRITES.index("map"))
_W_NAME = cython.declare(cython.int, WRITES.index("name"))
_W_EMBEDDED = cython.declare(cython.int, WRITES.index("embedded"))
_W_ORDERED = cython.declare(cython.int, WRITES.index("ordered"))
_W_ABSENT = cython.declare(cython.int, WRITES.index("absent"))
_W_DEFAULT = cython.declare(cython.int, WRITES.index("default"))
_W_NULL = cython.declare(cython.int, WRITES.index("null"))
_W_TEXT = cython.declare(cython.int, WRITES.index("text"))
_W_JUMP = cython.declare(cython.int, WRITES.index("jump"))

_OFFSET = cython.declare(cython.int, RECORD_NUMBERS.index("offset"))
_KEY_SIZE = cython.declare(cython.int, RECORD_NUMBERS.index("key_size"))
_VALUE_SIZE = cython.declare(cython.int, RECORD_NUMBERS.index("value_size"))
_SLOT = cython.declare(cython.int, slots(())["decoded"])
_WRITE = cython.declare(cython.int, WRITE)
_HIGH_BITS = cython.declare(cython.ulonglong, 0x8080808080808080)
_NULL = cython.declare(cython.Py_ssize_t, -1)  # instead of a size or a count
_NOT_THERE = cython.declare(cython.Py_ssize_t, -2)  # likewise, of a tagged field
_LEFT = cython.declare(cython.Py_ssize_t, -1)  # instead of a position: the general path writes it
_AROUND = cython.declare(cython.int, 64)  # bytes of a number, a uuid, null and so on, with what stands around it
_DIGITS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_BASE64_TEXT: Final = _DIGITS + b"+/"
_BASE64_URL_TEXT: Final = _DIGITS + b"-_"
_BASE64 = cython.declare(cython.p_char, _BASE64_TEXT)
_BASE64_URL = cython.declare(cython.p_char, _BASE64_URL_TEXT)


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
@cython.cclass
class Payloads(Fields):
    """Turns the records of one batch after the other into lines: what keys and values say is at the slot "decoded".

    ``general`` makes these texts of offset, key and value where the program does not. Raises what it raises: then the
    lines stop in front of the record.
    """

    general: Callable[[int, bytes | None, bytes | None], bytes]
    program: Program
    texts: cython.const[cython.uchar][::1]
    escapes: bytes
    shown: cython.pointer[cython.const[cython.uchar]]
    frame: cython.int
    types: cython.int
    versions: cython.int
    keys: cython.int
    values_at: cython.int
    deleted_at: cython.int
    deleted_size: cython.int

    def __init__(self, program: Program, general: Callable[[int, bytes | None, bytes | None], bytes]) -> None:
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
        if cython.compiled:
            self.texts = program.texts
            self.shown = self.escapes

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def field(self, slot: cython.int) -> cython.bint:
        """Write what is no number."""
        if slot != _SLOT:
            if self.header_count > 0:
                self.header_keys()
            return True
        start: cython.Py_ssize_t = self.used
        done: cython.Py_ssize_t = self.coordinated() if self.frame < 0 else self.framed()
        if done == _LEFT:
            self.used = start
            self.other()
        return True

    @cython.cfunc
    @cython.with_gil
    @cython.exceptval(-1)
    def other(self) -> cython.bint:
        """Write the record's texts by the general path."""
        key = value = None
        if self.values[_KEY_SIZE] >= 0:
            key = bytes(self.data[self.key_at : self.key_at + self.values[_KEY_SIZE]])
        if self.values[_VALUE_SIZE] >= 0:
            value = bytes(self.data[self.value_at : self.value_at + self.values[_VALUE_SIZE]])
        shown: bytes = self.general(self.values[_OFFSET], key, value)
        self.grow(len(shown))
        self.buffer[self.used : self.used + len(shown)] = shown
        self.used += len(shown)
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2)
    @cython.boundscheck(False)
    def coordinated(self) -> cython.Py_ssize_t:
        """Write a record of a coordinator."""
        if self.values[_KEY_SIZE] < 2:
            return _LEFT
        kind: cython.longlong = self.integer(self.key_at, 2)
        if not 0 <= kind < self.types:
            return _LEFT
        struct: cython.int = self.code[self.keys + kind]
        if struct < 0 or self.struct(struct, self.key_at + 2, self.key_at + self.values[_KEY_SIZE]) < 0:
            return _LEFT
        size: cython.Py_ssize_t = self.values[_VALUE_SIZE]
        if size < 0:
            self.literal(self.deleted_at, self.deleted_size)
            return 0
        if size < 2:
            return _LEFT
        version: cython.longlong = self.integer(self.value_at, 2)
        if not 0 <= version < self.versions:
            return _LEFT
        struct = self.code[self.values_at + kind * self.versions + version]
        return _LEFT if struct < 0 else self.struct(struct, self.value_at + 2, self.value_at + size)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2)
    @cython.boundscheck(False)
    def framed(self) -> cython.Py_ssize_t:
        """Write a record whose value is framed."""
        at: cython.Py_ssize_t = self.value_at
        end: cython.Py_ssize_t = at + self.values[_VALUE_SIZE]
        at = self.varint(at, end)
        if at < 0 or self.found != self.frame:
            return _LEFT
        at = self.varint(at, end)
        if at < 0 or self.found >= self.types:
            return _LEFT
        kind: cython.longlong = self.found
        at = self.varint(at, end)
        if at < 0 or self.found >= self.versions:
            return _LEFT
        struct: cython.int = self.code[self.values_at + kind * self.versions + self.found]
        return 0 if struct >= 0 and self.struct(struct, at, end) == end else _LEFT

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2)
    @cython.boundscheck(False)
    def struct(self, index: cython.int, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Write the struct at ``at``; return the position behind it."""
        starts = cython.declare(cython.Py_ssize_t[32])
        sizes = cython.declare(cython.Py_ssize_t[32])
        at = self.find(index + 1, at, end, starts, sizes)
        if at < 0 or self.write(self.code[index], starts, sizes, end) < 0:
            return _LEFT
        return at

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2)
    @cython.boundscheck(False)
    def write(
        self,
        step: cython.Py_ssize_t,
        starts: cython.pointer[cython.Py_ssize_t],
        sizes: cython.pointer[cython.Py_ssize_t],
        end: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """Write a struct whose fields were found; return a number that is not negative."""
        kind: cython.int
        place: cython.int
        mark: cython.Py_ssize_t = self.used
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

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2)
    @cython.boundscheck(False)
    def value(
        self, step: cython.Py_ssize_t, at: cython.Py_ssize_t, size: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Write a field that was found at ``at`` and is not null."""
        kind: cython.int = self.code[step + 2]
        argument: cython.int = self.code[step + 4]
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

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2)
    @cython.boundscheck(False)
    def fixed(self, kind: cython.int, at: cython.Py_ssize_t, size: cython.int) -> cython.Py_ssize_t:
        """Write a field of a fixed size."""
        if kind == _W_UUID:
            return self.base64(at, 16, _BASE64_URL, size)
        if kind == _W_BOOL:
            reserve(self, _AROUND)
            if self.data[at]:
                memcpy(cython.address(self.out[self.used]), cython.cast(cython.p_char, b"true"), 4)
                self.used += 4
            else:
                memcpy(cython.address(self.out[self.used]), cython.cast(cython.p_char, b"false"), 5)
                self.used += 5
            return 0
        self.decimal(self.integer(at, size))
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2)
    @cython.boundscheck(False)
    def elements(
        self, step: cython.Py_ssize_t, at: cython.Py_ssize_t, count: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Write an array as the next step says, or a map of structs."""
        is_map: cython.bint = self.code[step + 2] == _W_MAP
        flags: cython.int = self.code[step + 4]
        step += _WRITE
        kind: cython.int = self.code[step + 2]
        size: cython.int = self.code[step + 5]
        last: cython.longlong = -1 << 32
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
                size = cython.cast(cython.int, self.found)
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

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2)
    @cython.boundscheck(False)
    def embedded(self, step: cython.Py_ssize_t, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Write bytes that hold a struct."""
        if size < 2:  # so they cannot hold one
            return self.base64(at, size, _BASE64, 1)
        version: cython.longlong = self.integer(at, 2)
        if not 0 <= version < self.code[step + 5]:
            return _LEFT
        return self.struct(self.code[self.code[step + 4] + version], at + 2, at + size)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2)
    @cython.boundscheck(False)
    def name(self, at: cython.Py_ssize_t, table: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Write the name of an int8."""
        value: cython.longlong = self.integer(at, 1)
        if not 0 <= value < self.code[table]:
            return _LEFT
        table += 1 + 2 * value
        self.literal(self.code[table], self.code[table + 1])
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2)
    @cython.boundscheck(False)
    def string(self, at: cython.Py_ssize_t, size: cython.Py_ssize_t, quoted: cython.int) -> cython.Py_ssize_t:
        """Write a string of at most ``_LONGEST`` bytes, when it is valid UTF-8."""
        bits: cython.ulonglong = 0
        text: cython.pointer[cython.const[cython.uchar]]
        reserve(self, 6 * size + _AROUND)
        if size == 0:
            if quoted:
                memcpy(cython.address(self.out[self.used]), cython.cast(cython.p_char, b'""'), 2)
                self.used += 2
            return 0
        text = cython.address(self.data[at])
        if quoted:
            self.out[self.used] = 34
            self.used = escaped(
                cython.address(self.out[self.used + 1]), text, size, self.shown, cython.address(bits)
            ) - cython.address(self.out[0])
            self.out[self.used] = 34
            self.used += 1
        else:
            memcpy(cython.address(self.out[self.used]), text, size)
            self.used += size
            bits = _HIGH_BITS
        return 0 if not bits & _HIGH_BITS or is_utf8(text, size) else _LEFT

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2)
    @cython.boundscheck(False)
    def base64(
        self,
        at: cython.Py_ssize_t,
        size: cython.Py_ssize_t,
        digits: cython.pointer[cython.const[cython.char]],
        quoted: cython.int,
    ) -> cython.Py_ssize_t:
        """Write bytes as base64, with padding in its first alphabet alone."""
        reserve(self, size // 3 * 4 + _AROUND)
        out: cython.p_uchar = cython.address(self.out[self.used])
        word: cython.uint
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
        self.used = out - cython.address(self.out[0])
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    @cython.boundscheck(False)
    def unless_default(self, mark: cython.Py_ssize_t, start: cython.int, size: cython.int) -> cython.bint:
        """Write a comma, or take back what stands from ``mark`` on where it is this text of a default."""
        if self.used - mark == size and not memcmp(
            cython.address(self.out[mark]), cython.address(self.texts[start]), size
        ):
            self.used = mark
        else:
            self.byte(44)
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.boundscheck(False)
    def is_text(self, step: cython.Py_ssize_t, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.bint:
        """Tell whether a string is the literal of a step."""
        return size == self.code[step + 1] and not memcmp(
            cython.address(self.data[at]), cython.address(self.texts[self.code[step]]), size
        )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    @cython.boundscheck(False)
    def literal(self, start: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.bint:
        """Write a literal."""
        if size > 0:
            reserve(self, size)
            memcpy(cython.address(self.out[self.used]), cython.address(self.texts[start]), size)
            self.used += size
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    @cython.boundscheck(False)
    def close(self, byte: cython.uchar) -> cython.bint:
        """Write ``byte`` instead of a comma, if there is one, else behind what stands there."""
        if self.out[self.used - 1] == 44:
            self.used -= 1
        return self.byte(byte)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    @cython.boundscheck(False)
    def byte(self, byte: cython.uchar) -> cython.bint:
        """Write one byte."""
        reserve(self, 1)
        self.out[self.used] = byte
        self.used += 1
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    @cython.boundscheck(False)
    def decimal(self, value: cython.longlong) -> cython.bint:
        """Write a number."""
        reserve(self, _AROUND)
        self.used = number(cython.address(self.out[self.used]), value) - cython.address(self.out[0])
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    @cython.boundscheck(False)
    def null(self) -> cython.bint:
        """Write null."""
        reserve(self, _AROUND)
        memcpy(cython.address(self.out[self.used]), cython.cast(cython.p_char, b"null"), 4)
        self.used += 4
        return True
