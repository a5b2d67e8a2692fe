# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The hot loop: the records of one magic 2 batch, as objects or as lines of text.

This file is one source for two builds. Cython compiles it ("pure Python mode") where a C compiler is there; elsewhere
the same file runs as Python. What only C needs, or only Python, stands under ``cython.compiled``.

The kernel knows well-formed records alone. At anything else it stops in front of the record, and whoever called it
hands the rest of the batch to the general reader (:mod:`kdump.formats.batch`, which also tells the layout), so that
there is one place that says what is wrong.
"""

from __future__ import annotations

from array import array
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kdump.crc import crc32
from kdump.errors import DamageError
from kdump.formats.batch import TIMESTAMP_TYPE_FLAG, BatchHeader
from kdump.pieces import Header, Record
from kdump.text import java_text

if TYPE_CHECKING:
    import cython
else:
    from kdump import _shadow as cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.wire import Bytes

    Part: TypeAlias = bytes | int
    Decoder: TypeAlias = Callable[[bytes], bytes]

COMPILED: Final[bool] = cython.compiled
STAMP: Final = "0b85a68d"

_RECORD_NUMBERS: Final = ("offset", "timestamp", "key_size", "value_size", "sequence")
_RECORD_TEXTS: Final = ("header_keys", "key", "value")
# Slots: the numbers of the record, then those of its batch, at 32 the texts of the record.
_OFFSET = cython.declare(cython.int, 0)
_TIMESTAMP = cython.declare(cython.int, 1)
_KEY_SIZE = cython.declare(cython.int, 2)
_VALUE_SIZE = cython.declare(cython.int, 3)
_SEQUENCE = cython.declare(cython.int, 4)
_OF_BATCH = cython.declare(cython.int, 5)
_NUMBERS = cython.declare(cython.int, 32)
_HEADER_KEYS = cython.declare(cython.int, 32)
_KEY = cython.declare(cython.int, 33)
_VALUE = cython.declare(cython.int, 34)
_END = cython.declare(cython.int, 35)
_new: Final[Any] = tuple.__new__  # what the constructor of a NamedTuple comes down to
_HIGH_BITS = cython.declare(cython.ulonglong, 0x8080808080808080)
_PAIRS_OF_DIGITS: Final = b"".join(b"%02d" % number for number in range(100))
_PAIRS = cython.declare(cython.p_char, _PAIRS_OF_DIGITS)
_FAR = cython.declare(cython.longlong, 1 << 62)  # numbers below this add up within 64 bits


def slots(others: Sequence[str]) -> dict[str, int]:
    """Return the slots of the fields of a record and of its batch's header, and of ``others``, by name."""
    named = {name: slot for slot, name in enumerate((*_RECORD_NUMBERS, *BatchHeader._fields, *others))}
    return {**named, **{name: _NUMBERS + slot for slot, name in enumerate(_RECORD_TEXTS)}}


class Shape:
    """A line of output, compiled to literals and slots: once for each way in which key and value can be null.

    Line ``n`` stands for a null key if ``n & 1`` and for a null value if ``n & 2``. A part is a literal or a slot.
    """

    def __init__(self, lines: Sequence[Sequence[Part]]) -> None:
        if cython.compiled:
            self.pool, self.ops = _ops(lines)
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


@cython.final
@cython.cclass
class Kernel:
    """Turns the records of one batch after the other into lines.

    ``left`` counts the records still to come, ``last_offset`` is the offset of the last one, and ``gaps`` lists the
    pairs of offsets that do not follow each other since the caller last emptied it.
    """

    left = cython.declare(cython.Py_ssize_t, visibility="public")
    last_offset = cython.declare(cython.longlong, visibility="public")
    gaps = cython.declare(list, visibility="public")
    data: cython.const[cython.uchar][::1]
    at: cython.Py_ssize_t
    start: cython.Py_ssize_t
    end: cython.Py_ssize_t
    attributes: cython.int
    values: cython.longlong[32]
    base_offset: cython.longlong
    base_timestamp: cython.longlong
    base_sequence: cython.longlong
    appended: cython.bint
    armed: cython.bint
    key_at: cython.Py_ssize_t
    value_at: cython.Py_ssize_t
    headers_at: cython.Py_ssize_t
    header_count: cython.Py_ssize_t
    key_decoder: Decoder | None
    value_decoder: Decoder | None
    buffer: bytearray
    out: cython.uchar[::1]
    used: cython.Py_ssize_t
    room: cython.Py_ssize_t
    need: cython.Py_ssize_t
    ops: cython.const[cython.int][::1]
    pool: cython.const[cython.uchar][::1]
    decoded: cython.bint

    def __init__(self, key_decoder: Decoder | None = None, value_decoder: Decoder | None = None) -> None:
        """A decoder turns a key or a value into text; None stands for Java's reading of UTF-8."""
        self.key_decoder = key_decoder
        self.value_decoder = value_decoder
        self.decoded = key_decoder is not None or value_decoder is not None
        self.gaps = []
        self.last_offset = -1
        self.left = 0
        if cython.compiled:
            self.room = -1  # the buffer is made with the first line
        else:
            self.values = [0] * _END

    def begin(self, data: Bytes, at: int, header: BatchHeader, others: Sequence[int], armed: bool) -> bool:
        """Turn to the records of a batch, from ``at`` on in ``data``; return whether the kernel can.

        The numbers of ``header`` go to the slots behind the record's own, ``others`` behind them. ``armed`` says
        whether an offset other than 0 counts as a gap while ``last_offset`` is -1.
        """
        base_offset, base_timestamp = header.base_offset, header.base_timestamp
        self.left = 0
        if not (header.records_count >= 0 and -_FAR < base_offset < _FAR and -_FAR < base_timestamp < _FAR):
            return False
        self.data = data if cython.compiled or isinstance(data, bytes) else bytes(data)
        self.at = at
        self.end = len(data)
        self.left = header.records_count
        self.base_offset = base_offset
        self.base_timestamp = base_timestamp
        self.base_sequence = header.base_sequence
        self.appended = header.attributes & TIMESTAMP_TYPE_FLAG != 0
        self.values[_TIMESTAMP] = header.max_timestamp  # under LogAppendTime it is that of all records
        self.values[_SEQUENCE] = -1
        self.armed = armed
        slot: cython.int = _OF_BATCH
        for number in header:
            self.values[slot] = number
            slot += 1
        for number in others:
            self.values[slot] = number
            slot += 1
        return True

    def sound(self) -> bool:
        """Tell whether all records to come are well-formed; nothing moves."""
        at, left = self.at, self.left
        try:
            with cython.nogil:
                while self.left > 0 and self.read():
                    self.left -= 1
            return self.left == 0
        except IndexError:
            return False
        finally:
            self.at, self.left = at, left

    def facts(self) -> tuple[int, int, int] | None:
        """Read all records to come: the last offset, the greatest timestamp in ms (-1 or more), and how many have
        attributes or an offset that does not rise. None where one is not well-formed or bytes are left behind them.
        """
        odd: cython.longlong = 0
        last: cython.longlong = self.base_offset - 1
        highest: cython.longlong = -1
        try:
            with cython.nogil:
                while self.left > 0 and self.read():
                    self.left -= 1
                    if self.attributes != 0 or self.values[_OFFSET] <= last:
                        odd += 1
                    last = self.values[_OFFSET]
                    if self.values[_TIMESTAMP] > highest:  # noqa: PLR1730  max() needs the GIL
                        highest = self.values[_TIMESTAMP]
            return (last, highest, odd) if self.left == 0 and self.at == self.end else None
        except IndexError:
            return None

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def read(self) -> cython.bint:
        """Read the next record's fields; return whether it is well-formed. Raises IndexError where the data end."""
        at: cython.Py_ssize_t = self.at
        self.start = at
        size: cython.longlong = self.data[at]
        at += 1
        if size > 127:
            size = self.longer(size, at, 28)
            at = self.at
        stop: cython.Py_ssize_t = at + (size >> 1)
        if size & 1 or stop > self.end:
            return False
        self.attributes = self.data[at]
        at += 1
        delta: cython.longlong = self.data[at]
        at += 1
        if delta > 127:
            delta = self.longer(delta, at, 56)
            at = self.at
        if not self.appended:
            self.values[_TIMESTAMP] = self.base_timestamp + ((delta >> 1) ^ -(delta & 1))
        delta = self.data[at]
        at += 1
        if delta > 127:
            delta = self.longer(delta, at, 28)
            at = self.at
        delta = (delta >> 1) ^ -(delta & 1)
        self.values[_OFFSET] = self.base_offset + delta
        if self.base_sequence >= 0:
            if delta < 0 or self.base_sequence + delta > 0x7FFFFFFF:  # it wraps around
                return False
            self.values[_SEQUENCE] = self.base_sequence + delta
        size = self.data[at]
        at += 1
        if size > 127:
            size = self.longer(size, at, 28)
            at = self.at
        self.key_at = at
        if size & 1:
            self.values[_KEY_SIZE] = -1
        else:
            self.values[_KEY_SIZE] = size >> 1
            at += size >> 1
        size = self.data[at]
        at += 1
        if size > 127:
            size = self.longer(size, at, 28)
            at = self.at
        self.value_at = at
        if size & 1:
            self.values[_VALUE_SIZE] = -1
        else:
            self.values[_VALUE_SIZE] = size >> 1
            at += size >> 1
        size = self.data[at]
        at += 1
        if size > 127:
            size = self.longer(size, at, 28)
            at = self.at
        if size & 1 or size >> 1 > stop - at:
            return False
        self.headers_at = at
        self.header_count = size >> 1
        if size:
            at = self.skip_headers(at, size >> 1)
        if at != stop or (self.left == 1 and stop != self.end):
            return False
        self.at = at
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def longer(self, value: cython.longlong, at: cython.Py_ssize_t, last: cython.int) -> cython.longlong:
        """Read on in a varint whose first byte was ``value``; leave ``at`` behind it.

        ``last`` is the shift of the last byte that the type has. What the general reader would refuse, or cut to the
        size of the type, is given back as a size of null at the end of the data: that fits nowhere.
        """
        byte: cython.longlong = self.data[at]
        at += 1
        value += (byte - 1) << 7
        shift: cython.int = 14
        while byte > 127 and shift <= last:
            byte = self.data[at]
            at += 1
            value += (byte - 1) << shift
            shift += 7
        if byte > 127 or (last == 28 and value >> 32):
            self.at = self.end
            return 1
        self.at = at
        return value

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def skip_headers(self, at: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Return the position behind ``count`` headers, or -2 when a key among them is null."""
        if not cython.compiled:
            keys = []
        while count > 0:
            size: cython.longlong = self.data[at]
            at += 1
            if size > 127:
                size = self.longer(size, at, 28)
                at = self.at
            if size & 1:
                return -2
            if not cython.compiled:
                key = self.data[at : at + (size >> 1)]
                keys.append(key if key.isascii() else java_text(key))
            at += size >> 1
            size = self.data[at]
            at += 1
            if size > 127:
                size = self.longer(size, at, 28)
                at = self.at
            if not size & 1:
                at += size >> 1
            count -= 1
        if not cython.compiled:
            self.values[_HEADER_KEYS] = b",".join(keys)
        return at

    def records(self, most: int) -> list[Record]:
        """Return the next records, ``most`` of them; with fewer, the one behind them is not well-formed, or none is."""
        made: list[Record] = []
        left: cython.Py_ssize_t = most
        try:
            while left > 0 and self.left > 0 and self.read():
                made.append(self.record())
                self.left -= 1
                left -= 1
        except IndexError:
            pass  # its data end too early
        return made

    @cython.cfunc
    def record(self) -> Record:
        """Return the record that was just read."""
        key_size, value_size = self.values[_KEY_SIZE], self.values[_VALUE_SIZE]
        return _new(
            Record,
            (
                self.values[_OFFSET],
                self.values[_TIMESTAMP],
                None if key_size < 0 else self.bytes_at(self.key_at, key_size),
                None if value_size < 0 else self.bytes_at(self.value_at, value_size),
                self.headers() if self.header_count else (),
                self.values[_SEQUENCE],
                self.attributes,
                key_size,
                value_size,
                self.at - self.start,
                None,
                None,
            ),
        )

    @cython.cfunc
    def headers(self) -> tuple[Header, ...]:
        """Return the headers of the record that was just read."""
        made = []
        at: cython.Py_ssize_t = self.headers_at
        behind: cython.Py_ssize_t = self.at
        for _ in range(self.header_count):
            size: cython.longlong = self.data[at]
            at += 1
            if size > 127:
                size = self.longer(size, at, 28)
                at = self.at
            key = self.bytes_at(at, size >> 1)
            at += size >> 1
            size = self.data[at]
            at += 1
            if size > 127:
                size = self.longer(size, at, 28)
                at = self.at
            value = None
            if not size & 1:
                value = self.bytes_at(at, size >> 1)
                at += size >> 1
            made.append(_new(Header, (key, value)))
        self.at = behind
        return tuple(made)

    @cython.cfunc
    @cython.boundscheck(False)
    def bytes_at(self, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> bytes:
        """Return ``size`` bytes of the record."""
        if cython.compiled:
            return cython.cast(cython.p_char, cython.address(self.data[at]))[:size]
        return self.data[at : at + size]

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

    @cython.cfunc
    def take(self, shape: Shape) -> cython.void:
        """Write lines of this shape from now on."""
        self.ops = shape.ops
        self.pool = shape.pool
        self.need = len(shape.pool) + 7 * len(shape.ops) + 16  # a number takes 20 bytes at most

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def follow(self) -> cython.bint:
        """Count the record, and note when its offset does not follow the last one."""
        self.left -= 1
        if self.values[_OFFSET] != self.last_offset + 1 and (self.last_offset != -1 or self.armed):
            self.gap()
        self.last_offset = self.values[_OFFSET]
        return True

    @cython.cfunc
    @cython.with_gil
    @cython.exceptval(-1)
    def gap(self) -> cython.bint:
        """Note that the record's offset does not follow the last one."""
        self.gaps.append((self.last_offset, self.values[_OFFSET]))
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
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
                out = _number(out, self.values[slot])
            elif slot == _END:
                break
            else:
                self.used = out - cython.address(self.out[0])
                if slot == _KEY:
                    self.text(_KEY, self.key_at, self.values[_KEY_SIZE])
                elif slot == _VALUE:
                    self.text(_VALUE, self.value_at, self.values[_VALUE_SIZE])
                elif self.header_count > 0:
                    self.header_keys()
                out = cython.address(self.out[self.used])
            op += 3
        self.used = out - cython.address(self.out[0])
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def header_keys(self) -> cython.bint:
        """Write the keys of the headers, commas between them."""
        at: cython.Py_ssize_t = self.headers_at
        behind: cython.Py_ssize_t = self.at
        for number in range(self.header_count):
            size: cython.longlong = self.data[at]
            at += 1
            if size > 127:
                size = self.longer(size, at, 28)
                at = self.at
            if number:
                self.out[self.used] = 44
                self.used += 1
            self.text(_HEADER_KEYS, at, size >> 1)
            at += size >> 1
            size = self.data[at]
            at += 1
            if size > 127:
                size = self.longer(size, at, 28)
                at = self.at
            if not size & 1:
                at += size >> 1
        self.at = behind
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    @cython.boundscheck(False)
    def text(self, slot: cython.int, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.bint:
        """Write ``size`` bytes of the record as text: as they are when they are valid UTF-8 and nobody decodes them."""
        text: cython.pointer[cython.const[cython.uchar]] = cython.address(self.data[at])
        if not (self.decoded and slot != _HEADER_KEYS) and (
            _copy(cython.address(self.out[self.used]), text, size) or _is_utf8(text, size)
        ):
            self.used += size
        else:
            self.decode(slot, at, size)
        return True

    @cython.cfunc
    @cython.with_gil
    @cython.exceptval(-1)
    def decode(self, slot: cython.int, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.bint:
        """Write what a decoder makes of ``size`` bytes of the record. Raises DamageError when it cannot."""
        data = bytes(self.data[at : at + size])
        decoder: Decoder | None = self.key_decoder if slot == _KEY else self.value_decoder if slot == _VALUE else None
        shown: bytes = decoder(data) if decoder else java_text(data)
        self.grow(len(shown))
        self.buffer[self.used : self.used + len(shown)] = shown
        self.used += len(shown)
        return True

    @cython.cfunc
    @cython.with_gil
    @cython.exceptval(-1)
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


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _number(out: cython.p_uchar, value: cython.longlong) -> cython.p_uchar:
    """Write a decimal number; return the position behind it."""
    rest: cython.ulonglong = value
    if value < 0:
        out[0] = 45
        out += 1
        rest = 0 - rest
    if rest < 10:
        out[0] = cython.cast(cython.uchar, 48 + rest)
        return out + 1
    digits = cython.declare(cython.uchar[20])
    at: cython.int = 20
    while rest >= 100:
        at -= 2
        memcpy(cython.address(digits[at]), _PAIRS + 2 * (rest % 100), 2)
        rest //= 100
    at -= 2
    memcpy(cython.address(digits[at]), _PAIRS + 2 * rest, 2)
    if rest < 10:
        at += 1
    memcpy(out, cython.address(digits[at]), 20 - at)
    return out + (20 - at)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _copy(
    out: cython.p_uchar, text: cython.pointer[cython.const[cython.uchar]], size: cython.Py_ssize_t
) -> cython.bint:
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


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_utf8(text: cython.pointer[cython.const[cython.uchar]], size: cython.Py_ssize_t) -> cython.bint:
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
            if not kernel.header_count:
                values[_HEADER_KEYS] = b""
            template, take = shape.templates[variant]
            line = template % take(values)
            lines.append(line)
            used += len(line)
            kernel.follow()
    except (IndexError, DamageError):
        pass
    return b"".join(lines)


def stamp(source: str) -> str:
    """Return the stamp that the source of a kernel should bear: a checksum of its other lines."""
    lines = (line for line in source.splitlines(keepends=True) if not line.startswith("STAMP"))
    return f"{crc32(''.join(lines).encode()):08x}"


def build() -> str:
    """Tell which build of the kernel is at work, for people."""
    if not cython.compiled:
        return "Python"
    source = Path(__file__).with_name("kernel.py")
    if source.exists() and stamp(source.read_text("utf-8")) != STAMP:
        return "compiled from another kernel.py (pip install -e . makes it anew)"
    return "compiled"
