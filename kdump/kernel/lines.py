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
from kdump.primitives.java_text import java_text

if TYPE_CHECKING:
    import cython
else:
    from kdump.kernel import _shadow as cython

if not cython.compiled:
    from kdump.kernel.cursor import Cursor
else:
    from cython.cimports.kdump.kernel.cursor import Cursor  # type: ignore[no-redef]  # the same in C
    from cython.cimports.kdump.kernel.quoting import is_utf8
    from cython.cimports.libc.string import memcpy
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.primitives.wire import Bytes

    Part: TypeAlias = bytes | int
    Decoder: TypeAlias = Callable[[bytes], bytes]
    Both: TypeAlias = Callable[[int, bytes | None, bytes | None], bytes]

STAMP: Final = "fdd4cea7"

_TEXTS: Final = ("header_keys", "key", "value", "decoded")
SLOTS_OF_TEXTS: Final = {name: NUMBERS + slot for slot, name in enumerate(_TEXTS)}
"""The slots of what is no number."""
_KEY_SIZE = cython.declare(cython.int, RECORD_NUMBERS.index("key_size"))
_VALUE_SIZE = cython.declare(cython.int, RECORD_NUMBERS.index("value_size"))
_OFFSET = cython.declare(cython.int, RECORD_NUMBERS.index("offset"))
_OF_BATCH = cython.declare(cython.int, len(RECORD_NUMBERS))
_NUMBERS = cython.declare(cython.int, NUMBERS)
_HEADER_KEYS = cython.declare(cython.int, NUMBERS + _TEXTS.index("header_keys"))
_KEY = cython.declare(cython.int, NUMBERS + _TEXTS.index("key"))
_VALUE = cython.declare(cython.int, NUMBERS + _TEXTS.index("value"))
_DECODED = cython.declare(cython.int, NUMBERS + _TEXTS.index("decoded"))
_END = cython.declare(cython.int, 1 << 16)  # behind all slots
_HIGH_BITS = cython.declare(cython.ulonglong, 0x8080808080808080)
_PAIRS_OF_DIGITS: Final = b"".join(b"%02d" % number for number in range(100))
_PAIRS = cython.declare(cython.p_char, _PAIRS_OF_DIGITS)


def slots(others: Sequence[str]) -> dict[str, int]:
    """Return the slots of the fields of a record and of its batch's header, and of ``others``, by name."""
    return {**slots_of_numbers(others), **SLOTS_OF_TEXTS}


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

    def __init__(
        self, key_decoder: Decoder | None = None, value_decoder: Decoder | None = None, both: Both | None = None
    ) -> None:
        """A decoder turns a key or a value into text; None stands for Java's reading of UTF-8.

        ``both`` makes, in plain Python, the text at the slot "decoded" of offset, key and value: what
        :mod:`kdump.kernel.payloads` does in C.
        """
        self.key_decoder = key_decoder
        self.value_decoder = value_decoder
        self.decoded = key_decoder is not None or value_decoder is not None
        self.gaps: list[tuple[int, int]] = []
        self.last_offset = -1
        self.armed = False
        if not cython.compiled:
            self.both = both
        else:
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
                self.make_room(shape)
                self.bind()
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
        self.literals = cython.address(self.pool[0])
        self.steps = cython.address(self.ops[0])

    def make_room(self, shape: Shape) -> cython.void:
        """Make room for a shape whose numbers of the batch are literals."""
        self.bound_pool = bytearray(self.need)  # no number is longer than what is needed for it
        self.bound_ops = array("i", shape.ops)

    @cython.boundscheck(False)
    def bind(self) -> cython.void:
        """Make literals of the batch's numbers, which are the same in all lines to come."""
        pool: cython.pointer[cython.const[cython.uchar]] = cython.address(self.pool[0])
        ops: cython.pointer[cython.const[cython.int]] = cython.address(self.ops[0])
        out: cython.p_uchar = cython.address(self.bound_pool[0])
        op: cython.pointer[cython.const[cython.int]]
        start: cython.Py_ssize_t = 0
        at: cython.Py_ssize_t = 0
        next_op: cython.int = ops[0]
        for line in range(next_op):
            op = ops + ops[line]
            self.bound_ops[line] = next_op
            while True:
                memcpy(out + at, pool + op[0], op[1])
                at += op[1]
                if _OF_BATCH <= op[2] < _NUMBERS:
                    at = number(out + at, self.values[op[2]]) - out
                else:
                    self.bound_ops[next_op] = cython.cast(cython.int, start)
                    self.bound_ops[next_op + 1] = cython.cast(cython.int, at - start)
                    self.bound_ops[next_op + 2] = op[2]
                    next_op += 3
                    start = at
                if op[2] == _END:
                    break
                op += 3
        self.literals = cython.address(self.bound_pool[0])
        self.steps = cython.address(self.bound_ops[0])

    def run(self, head: Shape | None, shape: Shape | None, limit: int) -> Bytes:
        """Return the lines of the next batches of the table, ``head`` for each, then ``shape`` for each of its records.

        They are all, or enough to fill ``limit`` bytes; then the next call goes on. ``row`` counts the batches of which
        something is printed, ``left`` the records that are still to come of the last of these. ``stuck`` says that the
        kernel cannot print what comes next. What is returned is good until the next call.
        """
        if not cython.compiled:
            return _run(self, head, shape, limit)
        whole: cython.Py_ssize_t = 0
        most: cython.Py_ssize_t = limit
        start: cython.Py_ssize_t
        first: cython.bint = False
        has_head: cython.bint = head is not None
        has_shape: cython.bint = shape is not None
        bound: cython.bint = shape is not None and shape.of_batch
        self.used = 0
        self.stuck = False
        self.data = self.block
        if head is not None:
            self.take(head)
        head_literals: cython.pointer[cython.const[cython.uchar]] = self.literals
        head_steps: cython.pointer[cython.const[cython.int]] = self.steps
        head_need: cython.Py_ssize_t = self.need
        if shape is not None:
            self.take(shape)
            if shape.of_batch:
                self.make_room(shape)
                if self.left > 0:
                    self.bind()
        literals: cython.pointer[cython.const[cython.uchar]] = self.literals
        steps: cython.pointer[cython.const[cython.int]] = self.steps
        need: cython.Py_ssize_t = self.need
        try:
            with cython.nogil:
                while self.used < most:
                    if self.left == 0:
                        if self.row == self.rows:
                            break
                        if not self.next_batch():
                            self.row -= 1
                            self.stuck = True
                            break
                        if has_head:
                            self.literals = head_literals
                            self.steps = head_steps
                            self.need = head_need
                            self.line()
                            self.literals = literals
                            self.steps = steps
                        if bound:
                            self.bind()
                        if not has_shape:
                            self.left = 0
                        if self.left == 0:
                            whole = self.used
                        first = True
                    while self.left > 0 and (first or self.used < most):
                        start = self.at
                        if not self.read():
                            self.stuck = True
                            break
                        self.need = need + self.at - start
                        self.line()
                        self.follow()
                        whole = self.used
                        first = False
                    if self.stuck:
                        break
        except (IndexError, DamageError):
            self.stuck = True
        if self.stuck and self.left > 0 and first:  # its line does not stand without one of its records
            self.row -= 1
            self.left = 0
        return memoryview(self.buffer)[:whole] if whole else memoryview(b"")

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
        pool: cython.pointer[cython.const[cython.uchar]] = self.literals
        op: cython.pointer[cython.const[cython.int]] = self.steps
        op += op[(self.values[_KEY_SIZE] < 0) + 2 * (self.values[_VALUE_SIZE] < 0)]
        done: cython.Py_ssize_t
        size: cython.Py_ssize_t
        while True:
            literal: cython.pointer[cython.const[cython.uchar]] = pool + op[0]
            size = op[1]
            if size > 64:
                memcpy(out, literal, size)
            else:
                done = 0
                while done < size:  # the pool has room behind it, and so has the buffer
                    memcpy(out + done, literal + done, 16)
                    done += 16
            out += size
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
        if self.decoded and slot != _HEADER_KEYS:
            return self.decode(slot, at, size)
        if size <= 0:  # it may stand at the end of the data, where there is no byte to point to
            return True
        text: cython.pointer[cython.const[cython.uchar]] = cython.address(self.data[at])
        if size > self.need:  # no record holds more than itself: there is room for that
            self.grow(size)
        if not copy(cython.address(self.out[self.used]), text, size) and not is_utf8(text, size):
            return self.decode(slot, at, size)
        self.used += size
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
    """Write a decimal number; return the position behind it. Up to 22 bytes are touched."""
    rest: cython.ulonglong = value
    if value < 0:
        out[0] = 45
        out += 1
        rest = 0 - rest
    if rest < 100000000:
        return up_to_eight(out, cython.cast(cython.uint, rest))
    upper: cython.ulonglong = rest // 100000000
    if upper < 100000000:
        out = up_to_eight(out, cython.cast(cython.uint, upper))
    else:
        out = up_to_eight(out, cython.cast(cython.uint, upper // 100000000))
        four(out, cython.cast(cython.uint, upper % 100000000 // 10000))
        four(out + 4, cython.cast(cython.uint, upper % 10000))
        out += 8
    lower: cython.uint = cython.cast(cython.uint, rest % 100000000)
    four(out, lower // 10000)
    four(out + 4, lower % 10000)
    return out + 8


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def up_to_eight(out: cython.p_uchar, value: cython.uint) -> cython.p_uchar:
    """Write a number of at most eight digits; return the position behind it."""
    upper: cython.uint
    if value < 10000:
        return up_to_four(out, value)
    upper = value // 10000
    out = up_to_four(out, upper)
    four(out, value - upper * 10000)
    return out + 4


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def up_to_four(out: cython.p_uchar, value: cython.uint) -> cython.p_uchar:
    """Write a number of at most four digits; return the position behind it."""
    upper: cython.uint
    if value < 10:
        out[0] = cython.cast(cython.uchar, 48 + value)
        return out + 1
    if value < 100:
        memcpy(out, _PAIRS + 2 * value, 2)
        return out + 2
    upper = value // 100
    if upper < 10:
        out[0] = cython.cast(cython.uchar, 48 + upper)
        out += 1
    else:
        memcpy(out, _PAIRS + 2 * upper, 2)
        out += 2
    memcpy(out, _PAIRS + 2 * (value - upper * 100), 2)
    return out + 2


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def four(out: cython.p_uchar, value: cython.uint) -> cython.void:
    """Write four digits."""
    upper: cython.uint = value // 100
    memcpy(out, _PAIRS + 2 * upper, 2)
    memcpy(out + 2, _PAIRS + 2 * (value - upper * 100), 2)


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
            if kernel.both is not None:
                values[_DECODED] = kernel.both(values[_OFFSET], *_pair(kernel))
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


def _pair(kernel: Any) -> tuple[bytes | None, bytes | None]:
    """Return key and value of the record."""
    key, value = kernel.values[_KEY_SIZE], kernel.values[_VALUE_SIZE]
    return (
        kernel.data[kernel.key_at : kernel.key_at + key] if key >= 0 else None,
        kernel.data[kernel.value_at : kernel.value_at + value] if value >= 0 else None,
    )


def _run(kernel: Any, head: Shape | None, shape: Shape | None, limit: int) -> bytes:
    """In plain Python: batch by batch."""
    made: list[bytes] = []
    used = 0
    kernel.stuck = False
    while used < limit and not kernel.stuck:
        begun = not kernel.left
        if begun:
            if kernel.row == kernel.rows:
                break
            if not kernel.next_batch():
                kernel.row -= 1
                kernel.stuck = True
                break
        before = kernel.left
        if shape is None:
            kernel.left = 0
        lines = _lines(kernel, head if begun else None, shape, limit - used)
        used += len(lines)
        kernel.stuck = kernel.left > 0 and (kernel.left == before or used < limit)
        if kernel.stuck and begun and kernel.left == before:  # its line does not stand without one of its records
            kernel.row -= 1
            kernel.left = 0
        else:
            made.append(lines)
    return b"".join(made)
