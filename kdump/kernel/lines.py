# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The records of one magic 2 batch as lines of text, and the machine that writes lines of any kind.

A line is data: literals, which are copied, and slots, which are written. Numbers are written here; the other slots
(from ``NUMBERS`` on) by :meth:`Lines.field`, here as the keys, values and header keys of classic text.
"""

from __future__ import annotations

from array import array
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kdump.errors import DamageError
from kdump.kernel.cursor import NUMBERS, RECORD_NUMBERS
from kdump.kernel.cursor import slots as slots_of_numbers
from kdump.text import java_text

if TYPE_CHECKING:
    import cython
else:
    from kdump.kernel import _shadow as cython

if not cython.compiled:
    from kdump.kernel.cursor import Cursor
else:
    from cython.cimports.kdump.kernel.cursor import Cursor  # type: ignore[no-redef]  # the same in C
    from cython.cimports.libc.string import memcpy
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.wire import Bytes

    Part: TypeAlias = bytes | int
    Decoder: TypeAlias = Callable[[bytes], bytes]

STAMP: Final = "bf554fbe"

_TEXTS: Final = ("header_keys", "key", "value")
_KEY_SIZE = cython.declare(cython.int, RECORD_NUMBERS.index("key_size"))
_VALUE_SIZE = cython.declare(cython.int, RECORD_NUMBERS.index("value_size"))
_OFFSET = cython.declare(cython.int, RECORD_NUMBERS.index("offset"))
_OF_BATCH = cython.declare(cython.int, len(RECORD_NUMBERS))
_NUMBERS = cython.declare(cython.int, NUMBERS)
_HEADER_KEYS = cython.declare(cython.int, NUMBERS + _TEXTS.index("header_keys"))
_KEY = cython.declare(cython.int, NUMBERS + _TEXTS.index("key"))
_VALUE = cython.declare(cython.int, NUMBERS + _TEXTS.index("value"))
_END = cython.declare(cython.int, 1 << 16)  # behind all slots
_HIGH_BITS = cython.declare(cython.ulonglong, 0x8080808080808080)
_PAIRS_OF_DIGITS: Final = b"".join(b"%02d" % number for number in range(100))
_PAIRS = cython.declare(cython.p_char, _PAIRS_OF_DIGITS)


def slots(others: Sequence[str]) -> dict[str, int]:
    """Return the slots of the fields of a record and of its batch's header, and of ``others``, by name."""
    return {**slots_of_numbers(others), **{name: NUMBERS + slot for slot, name in enumerate(_TEXTS)}}


class Shape:
    """A line of output, compiled to literals and slots: once for each way in which key and value can be null.

    Line ``n`` stands for a null key if ``n & 1`` and for a null value if ``n & 2``. A part is a literal or a slot.
    """

    def __init__(self, lines: Sequence[Sequence[Part]]) -> None:
        if cython.compiled:
            self.pool, self.ops = _ops(lines)
            self.of_batch = any(isinstance(part, int) and _OF_BATCH <= part < _NUMBERS for part in chain(*lines))
        else:
            self.templates = [_template(line) for line in lines]


def _ops(lines: Sequence[Sequence[Part]]) -> tuple[bytes, array[int]]:
    """Return the literals one behind the other, and per line (start of literal, its size, slot) up to the end slot.

    Where a line starts stands at its number. Literals are copied 16 bytes at a time: so many follow the last.
    """
    pool = bytearray()
    ops = array("i", [0] * len(lines))
    for number, line in enumerate(lines):
        ops[number] = len(ops)
        start = len(pool)
        for part in [*line, _END]:
            if isinstance(part, bytes):
                pool += part
            else:
                ops.extend((start, len(pool) - start, part))
                start = len(pool)
    return bytes(pool) + bytes(16), ops


def _template(line: Sequence[Part]) -> tuple[bytes, Callable[[list[Any]], Any]]:
    """Return a line as a % template, and what takes its values from the slots."""
    text = b"".join(
        part.replace(b"%", b"%%") if isinstance(part, bytes) else b"%d" if part < _NUMBERS else b"%b" for part in line
    )
    slots = [part for part in line if isinstance(part, int)]
    return text, itemgetter(*slots) if slots else lambda _: ()


class Lines(Cursor):
    """Turns the records of one batch after the other into lines of classic text.

    ``last_offset`` is the offset of the last one, and ``gaps`` lists the pairs of offsets that do not follow each other
    since the caller last emptied it. ``armed`` says whether an offset other than 0 counts as a gap while
    ``last_offset`` is -1.
    """

    def __init__(self, key_decoder: Decoder | None = None, value_decoder: Decoder | None = None) -> None:
        """A decoder turns a key or a value into text; None stands for Java's reading of UTF-8."""
        self.key_decoder = key_decoder
        self.value_decoder = value_decoder
        self.decoded = key_decoder is not None or value_decoder is not None
        self.gaps: list[tuple[int, int]] = []
        self.last_offset = -1
        self.armed = False
        if cython.compiled:
            self.room = -1  # the buffer is made with the first line
            self.need = 0
            self.buffer = bytearray()

    def lines(self, head: Shape | None, shape: Shape | None, limit: int) -> Bytes:
        """Return the line of the batch, then those of its next records: of all, or of enough to fill ``limit`` bytes.

        When less comes, the record in front of which they stop is not well-formed. What is returned is good until the
        next call.
        """
        if not cython.compiled:
            return _lines(self, head, shape, limit)
        whole: cython.Py_ssize_t = 0
        most: cython.Py_ssize_t = limit
        start: cython.Py_ssize_t
        self.used = 0
        if head is not None:
            self.take(head)
            self.line()
            whole = self.used
        if shape is not None:
            self.take(shape)
            if shape.of_batch:
                self.bind(shape)
            fixed: cython.Py_ssize_t = self.need
            try:
                with cython.nogil:
                    while self.left > 0 and self.used < most:
                        start = self.at
                        if not self.read():
                            break
                        self.need = fixed + self.at - start
                        self.line()
                        self.follow()
                        whole = self.used
            except (IndexError, DamageError):
                pass
        return memoryview(self.buffer)[:whole] if whole else memoryview(b"")  # no line, no buffer yet

    def take(self, shape: Shape) -> cython.void:
        """Write lines of this shape from now on."""
        self.ops = shape.ops
        self.pool: Bytes = shape.pool
        self.need = len(shape.pool) + 12 * len(shape.ops) + 16  # a number or a date takes 32 bytes at most

    def bind(self, shape: Shape) -> cython.bint:
        """Make literals of the batch's numbers, which are the same in all lines to come."""
        pool = bytearray(self.need)  # no number is longer than what is needed for it
        ops = array("i", shape.ops)
        self.fill(pool, ops)
        self.pool = pool
        self.ops = ops
        return True

    @cython.boundscheck(False)
    def fill(self, bound_pool: cython.uchar[::1], bound_ops: cython.int[::1]) -> cython.void:
        """Write the parts of the lines into ``bound_pool`` and ``bound_ops``, the batch's numbers as texts."""
        pool: cython.pointer[cython.const[cython.uchar]] = cython.address(self.pool[0])
        ops: cython.pointer[cython.const[cython.int]] = cython.address(self.ops[0])
        out: cython.p_uchar = cython.address(bound_pool[0])
        op: cython.pointer[cython.const[cython.int]]
        start: cython.Py_ssize_t = 0
        at: cython.Py_ssize_t = 0
        next_op: cython.int = ops[0]
        for line in range(next_op):
            op = ops + ops[line]
            bound_ops[line] = next_op
            while True:
                memcpy(out + at, pool + op[0], op[1])
                at += op[1]
                if _OF_BATCH <= op[2] < _NUMBERS:
                    at = number(out + at, self.values[op[2]]) - out
                else:
                    bound_ops[next_op] = cython.cast(cython.int, start)
                    bound_ops[next_op + 1] = cython.cast(cython.int, at - start)
                    bound_ops[next_op + 2] = op[2]
                    next_op += 3
                    start = at
                if op[2] == _END:
                    break
                op += 3

    def follow(self) -> cython.bint:
        """Count the record, and note when its offset does not follow the last one."""
        self.left -= 1
        if self.values[_OFFSET] != self.last_offset + 1 and (self.last_offset != -1 or self.armed):
            self.gap()
        self.last_offset = self.values[_OFFSET]
        return True

    def gap(self) -> cython.bint:
        """Note that the record's offset does not follow the last one."""
        self.gaps.append((self.last_offset, self.values[_OFFSET]))
        return True

    @cython.boundscheck(False)
    def line(self) -> cython.bint:
        """Write one line: that of the record, or of its batch."""
        if self.used + self.need > self.room:
            self.grow(0)
        out: cython.p_uchar = cython.address(self.out[self.used])
        pool: cython.pointer[cython.const[cython.uchar]] = cython.address(self.pool[0])
        op: cython.pointer[cython.const[cython.int]] = cython.address(self.ops[0])
        op += op[(self.values[_KEY_SIZE] < 0) + 2 * (self.values[_VALUE_SIZE] < 0)]
        done: cython.Py_ssize_t
        while True:
            done = 0
            while done < op[1]:  # the pool has room behind it, and so has the buffer
                memcpy(out + done, pool + op[0] + done, 16)
                done += 16
            out += op[1]
            slot: cython.int = op[2]
            if slot < _NUMBERS:
                out = number(out, self.values[slot])
            elif slot == _END:
                break
            else:
                self.used = out - cython.address(self.out[0])
                self.field(slot)
                out = cython.address(self.out[self.used])
            op += 3
        self.used = out - cython.address(self.out[0])
        return True

    def field(self, slot: cython.int) -> cython.bint:
        """Write what is no number."""
        if slot == _KEY:
            self.text(_KEY, self.key_at, self.values[_KEY_SIZE])
        elif slot == _VALUE:
            self.text(_VALUE, self.value_at, self.values[_VALUE_SIZE])
        elif self.header_count > 0:
            self.header_keys()
        return True

    def header_keys(self) -> cython.bint:
        """Write the keys of the headers, commas between them."""
        at: cython.Py_ssize_t = self.headers_at
        for number in range(self.header_count):
            at = self.header(at)
            if number:
                self.out[self.used] = 44
                self.used += 1
            self.text(_HEADER_KEYS, self.name_at, self.name_size)
        return True

    @cython.boundscheck(False)
    def text(self, slot: cython.int, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.bint:
        """Write ``size`` bytes of the record as text: as they are when they are valid UTF-8 and nobody decodes them."""
        text: cython.pointer[cython.const[cython.uchar]] = cython.address(self.data[at])
        if not (self.decoded and slot != _HEADER_KEYS) and (
            copy(cython.address(self.out[self.used]), text, size) or is_utf8(text, size)
        ):
            self.used += size
        else:
            self.decode(slot, at, size)
        return True

    def decode(self, slot: cython.int, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.bint:
        """Write what a decoder makes of ``size`` bytes of the record. Raises DamageError when it cannot."""
        data = bytes(self.data[at : at + size])
        decoder: Decoder | None = self.key_decoder if slot == _KEY else self.value_decoder if slot == _VALUE else None
        shown: bytes = decoder(data) if decoder else java_text(data)
        self.grow(len(shown))
        self.buffer[self.used : self.used + len(shown)] = shown
        self.used += len(shown)
        return True

    def grow(self, more: cython.Py_ssize_t) -> cython.bint:
        """Make room for what the record needs and ``more`` bytes."""
        if self.used + self.need + more <= self.room:
            return True
        self.room = max(2 * (self.used + self.need + more), 1 << 16)
        buffer = bytearray(self.room)
        if self.used:
            buffer[: self.used] = memoryview(self.buffer)[: self.used]
        self.out = self.buffer = buffer
        return True


def number(out: cython.p_uchar, value: cython.longlong) -> cython.p_uchar:
    """Write a decimal number; return the position behind it."""
    rest: cython.ulonglong = value
    if value < 0:
        out[0] = 45
        out += 1
        rest = 0 - rest
    if rest < 10:
        out[0] = cython.cast(cython.uchar, 48 + rest)
        return out + 1
    digits = cython.declare(cython.uchar[40])  # 20 of them are copied, whatever stands behind the last
    at: cython.int = 20
    while rest >= 100:
        at -= 2
        memcpy(cython.address(digits[at]), _PAIRS + 2 * (rest % 100), 2)
        rest //= 100
    at -= 2
    memcpy(cython.address(digits[at]), _PAIRS + 2 * rest, 2)
    if rest < 10:
        at += 1
    memcpy(out, cython.address(digits[at]), 20)
    return out + (20 - at)


def copy(out: cython.p_uchar, text: cython.pointer[cython.const[cython.uchar]], size: cython.Py_ssize_t) -> cython.bint:
    """Copy ``text``; return whether it is ASCII."""
    word: cython.ulonglong = 0
    bits: cython.ulonglong = 0
    at: cython.Py_ssize_t = 0
    if size >= 8:
        while at + 8 < size:
            memcpy(cython.address(word), text + at, 8)
            memcpy(out + at, cython.address(word), 8)
            bits |= word
            at += 8
        at = size - 8
        memcpy(cython.address(word), text + at, 8)
        memcpy(out + at, cython.address(word), 8)
        bits |= word
    else:
        while at < size:
            out[at] = text[at]
            bits |= text[at]
            at += 1
    return not bits & _HIGH_BITS


def is_utf8(text: cython.pointer[cython.const[cython.uchar]], size: cython.Py_ssize_t) -> cython.bint:
    """Tell whether ``text`` is valid: nothing is cut off, overlong, a surrogate or beyond the last character."""
    at: cython.Py_ssize_t = 0
    lead: cython.uint
    second: cython.uint
    more: cython.int
    while at < size:
        lead = text[at]
        at += 1
        if lead < 0x80:
            continue
        more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        if lead < 0xC2 or lead > 0xF4 or at + more > size:
            return False
        second = text[at]
        if (
            (lead == 0xE0 and second < 0xA0)
            or (lead == 0xED and second > 0x9F)
            or (lead == 0xF0 and second < 0x90)
            or (lead == 0xF4 and second > 0x8F)
        ):
            return False
        while more > 0:
            if text[at] & 0xC0 != 0x80:
                return False
            at += 1
            more -= 1
    return True


def _lines(kernel: Any, head: Shape | None, shape: Shape | None, limit: int) -> bytes:
    """In plain Python: a % for each line."""
    values, data = kernel.values, kernel.data
    decode_key, decode_value = kernel.key_decoder, kernel.value_decoder
    lines = []
    used = 0
    if head is not None:
        template, take = head.templates[0]
        lines.append(template % take(values))
    try:
        while shape is not None and kernel.left > 0 and used < limit and kernel.read():
            variant = 0
            size = values[_KEY_SIZE]
            if size < 0:
                variant = 1
            else:
                text = data[kernel.key_at : kernel.key_at + size]
                values[_KEY] = decode_key(text) if decode_key else text if text.isascii() else java_text(text)
            size = values[_VALUE_SIZE]
            if size < 0:
                variant += 2
            else:
                text = data[kernel.value_at : kernel.value_at + size]
                values[_VALUE] = decode_value(text) if decode_value else text if text.isascii() else java_text(text)
            keys = b",".join(kernel.names) if kernel.header_count else b""
            values[_HEADER_KEYS] = keys if keys.isascii() else b",".join(map(java_text, kernel.names))
            template, take = shape.templates[variant]
            line = template % take(values)
            lines.append(line)
            used += len(line)
            kernel.follow()
    except (IndexError, DamageError):
        pass
    return b"".join(lines)
