# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""Messages of magic 0 and 1 as lines of text, one behind the other: entries of a log, or what a wrapper holds.

The layout is told by :mod:`kdump.records.magic_0_1`. A message is well-formed when its fields fill it and its checksum
is right.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from kdump.errors import DamageError
from kdump.formats.record_layout import CODEC_MASK, LOG_OVERHEAD, MESSAGE_HEADER_0, MESSAGE_HEADER_1, SMALLEST_MESSAGE
from kdump.kernel.cursor import FAR, NUMBERS, RECORD_NUMBERS
from kdump.kernel.lines import SLOTS_OF_TEXTS
from kdump.primitives.crc import CRC32, crc32
from kdump.primitives.java_text import java_text

if TYPE_CHECKING:
    import cython
else:
    from kdump.kernel import _shadow as cython

if not cython.compiled:
    from kdump.kernel.lines import Lines
else:
    from cython.cimports.kdump.kernel.lines import Lines  # type: ignore[no-redef]  # the same in C
    from cython.cimports.kdump.kernel.words import big
if TYPE_CHECKING:
    from kdump.kernel.lines import Shape
    from kdump.primitives.wire import Bytes

STAMP: Final = "f109b103"

SLOTS: Final = {name: slot for slot, name in enumerate((*RECORD_NUMBERS, "crc", "position", "size"))}
"""Where the numbers of a message stand. The position is that of an entry of the log."""

_OFFSET = cython.declare(cython.int, SLOTS["offset"])
_TIMESTAMP = cython.declare(cython.int, SLOTS["timestamp"])
_KEY_SIZE = cython.declare(cython.int, SLOTS["key_size"])
_VALUE_SIZE = cython.declare(cython.int, SLOTS["value_size"])
_CRC = cython.declare(cython.int, SLOTS["crc"])
_POSITION = cython.declare(cython.int, SLOTS["position"])
_SIZE = cython.declare(cython.int, SLOTS["size"])
_KEY: Final = SLOTS_OF_TEXTS["key"]
_VALUE: Final = SLOTS_OF_TEXTS["value"]

_OVERHEAD = cython.declare(cython.Py_ssize_t, LOG_OVERHEAD.size)
_AT_SIZE = cython.declare(cython.Py_ssize_t, LOG_OVERHEAD.offsets["size"])
_AT_CRC = cython.declare(cython.Py_ssize_t, LOG_OVERHEAD.size)
_AT_MAGIC = cython.declare(cython.Py_ssize_t, LOG_OVERHEAD.size + MESSAGE_HEADER_0.offsets["magic"])
_AT_ATTRIBUTES = cython.declare(cython.Py_ssize_t, LOG_OVERHEAD.size + MESSAGE_HEADER_0.offsets["attributes"])
_AT_TIMESTAMP = cython.declare(cython.Py_ssize_t, LOG_OVERHEAD.size + MESSAGE_HEADER_1.offsets["timestamp"])
_AT_KEY_0 = cython.declare(cython.Py_ssize_t, LOG_OVERHEAD.size + MESSAGE_HEADER_0.size)
_AT_KEY_1 = cython.declare(cython.Py_ssize_t, LOG_OVERHEAD.size + MESSAGE_HEADER_1.size)
_SMALLEST = cython.declare(cython.Py_ssize_t, SMALLEST_MESSAGE[0])
_CODEC_MASK = cython.declare(cython.int, CODEC_MASK)
_FAR = cython.declare(cython.longlong, FAR)
_FRAMES: Final = Struct(">qiIBB")  # up to the attributes
_STARTS: Final = (Struct(">qiIBBi"), Struct(">qiIBBqi"))  # up to the key's size
_INT32: Final = Struct(">i")
_POLYNOMIAL = cython.declare(cython.uint, CRC32.polynomial)
_TABLE = cython.declare(cython.uint[2048])


@cython.final
@cython.cclass
class Messages(Lines):
    """Turns messages into lines. ``done`` counts them since they were turned to."""

    done = cython.declare(cython.Py_ssize_t, visibility="public")
    stop: cython.Py_ssize_t
    place: cython.longlong
    base: cython.longlong
    magic: cython.int
    kind: cython.int
    appended_at: cython.longlong
    deep: cython.bint

    def turn_to(self, data: Bytes, at: int, end: int, *, place: int = 0, base: int = 0, timestamp: int = -1) -> None:
        """Turn to the messages from ``at`` to ``end`` in ``data``, which stands at byte ``place`` of the file.

        ``base`` is added to their offsets. A ``timestamp`` (ms) of 0 or more goes before those of magic 1.
        """
        if not cython.compiled:
            self.values = [0] * (2 * NUMBERS)
        self.data = data if cython.compiled or isinstance(data, bytes) else bytes(data)
        self.at, self.end = at, min(end, len(data))
        self.place = place
        self.base = base
        self.appended_at = timestamp
        self.left = self.done = 0

    def position(self) -> int:
        """Return where in the data the next message begins."""
        return self.at

    def skip(self, size: int) -> None:
        """Pass over a message of so many bytes."""
        self.at += size

    def last_offset_stored(self) -> int | None:
        """Return the offset of the last message as stored; None where bytes are left behind it, or one cannot be."""
        at: cython.Py_ssize_t = self.at
        size: cython.longlong
        last: cython.longlong = 0
        if not cython.compiled:
            return _last_offset(self.data, self.at, self.end)
        if at == self.end:
            return None
        while at < self.end:
            if self.end - at < _OVERHEAD + _SMALLEST:
                return None
            size = big(cython.address(self.data[at + _AT_SIZE]), 4)
            if size < _SMALLEST or size > self.end - at - _OVERHEAD:
                return None
            last = big(cython.address(self.data[at]), 8)
            at += _OVERHEAD + size
        return last

    def lines_like(self, shape: Shape, magic: int, attributes: int, limit: int, *, deep: bool) -> Bytes:
        """Return the lines of the next messages that have this magic and these attributes (as an unsigned byte).

        They stop when they fill ``limit`` bytes, or in front of a message that is not well-formed. ``deep`` says that
        offsets which do not follow each other count as gaps. What is returned is good until the next call.
        """
        if not cython.compiled:
            return _messages(self, shape, magic, attributes, limit, deep=deep)
        whole: cython.Py_ssize_t = 0
        most: cython.Py_ssize_t = limit
        self.magic, self.kind, self.deep = magic, attributes, deep
        self.used = 0
        self.take(shape)
        fixed: cython.Py_ssize_t = self.need
        try:
            with cython.nogil:
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
        return memoryview(self.buffer)[:whole] if whole else memoryview(b"")

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def message(self) -> cython.bint:
        """Read the fields of the next message; return whether it is well-formed, and of the kind that is asked for."""
        at: cython.Py_ssize_t = self.at
        if self.end - at < _OVERHEAD + _SMALLEST:
            return False
        size: cython.longlong = big(cython.address(self.data[at + _AT_SIZE]), 4)
        if size < _SMALLEST or size > self.end - at - _OVERHEAD:
            return False
        self.stop = at + _OVERHEAD + size
        if self.data[at + _AT_MAGIC] != self.magic or self.data[at + _AT_ATTRIBUTES] != self.kind:
            return False
        offset: cython.longlong = big(cython.address(self.data[at]), 8)
        if not (-_FAR < offset < _FAR and -_FAR < self.base < _FAR):
            return False
        self.values[_OFFSET] = offset + self.base
        self.values[_CRC] = cython.cast(cython.uint, big(cython.address(self.data[at + _AT_CRC]), 4))
        self.values[_POSITION] = self.place + at
        self.values[_SIZE] = _OVERHEAD + size
        self.values[_TIMESTAMP] = -1
        field: cython.Py_ssize_t = at + _AT_KEY_0
        if self.magic == 1:
            field = at + _AT_KEY_1
            if self.stop - field < 8:
                return False
            self.values[_TIMESTAMP] = self.appended_at
            if self.appended_at < 0:
                self.values[_TIMESTAMP] = big(cython.address(self.data[at + _AT_TIMESTAMP]), 8)
        size = big(cython.address(self.data[field]), 4)
        field += 4
        if size < -1 or size > self.stop - field - 4:
            return False
        self.values[_KEY_SIZE] = size
        self.key_at = field
        if size > 0:
            field += size
        if self.stop - field < 4:
            return False
        size = big(cython.address(self.data[field]), 4)
        field += 4
        self.values[_VALUE_SIZE] = size
        self.value_at = field
        if size < -1 or (size if size > 0 else 0) != self.stop - field:
            return False
        at += _AT_MAGIC
        return checksum(cython.address(self.data[at]), self.stop - at) == self.values[_CRC]


def stretch(data: Bytes, at: int, most: int) -> int:
    """Return where in ``data`` the messages end that begin ``at`` a place: whole ones, not compressed, of magic 0 or 1.

    ``most`` bytes is the greatest size that such a message may name.
    """
    if not cython.compiled:
        return _stretch(data, at, most)
    text: cython.const[cython.uchar][::1] = data
    start: cython.Py_ssize_t = at
    end: cython.Py_ssize_t = text.shape[0]
    limit: cython.longlong = most
    size: cython.longlong
    while end - start >= _OVERHEAD + _SMALLEST:
        size = big(cython.address(text[start + _AT_SIZE]), 4)
        if size < _SMALLEST or size > limit or size > end - start - _OVERHEAD:
            break
        if text[start + _AT_MAGIC] > 1 or text[start + _AT_ATTRIBUTES] & _CODEC_MASK:
            break
        start += _OVERHEAD + size
    return start


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def checksum(data: cython.pointer[cython.const[cython.uchar]], size: cython.Py_ssize_t) -> cython.uint:
    """Return the CRC-32 of ``size`` bytes, eight of them at a time ("slicing by 8")."""
    crc: cython.uint = 0xFFFFFFFF
    low: cython.uint
    table: cython.pointer[cython.uint] = cython.address(_TABLE[0])
    while size >= 8:
        low = data[0] | data[1] << 8 | data[2] << 16 | cython.cast(cython.uint, data[3]) << 24
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


@cython.cfunc
@cython.exceptval(check=False)
def fill_table() -> cython.void:
    """Reckon what each byte does to a checksum, with none to seven bytes behind it."""
    row: cython.int
    value: cython.uint
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        _TABLE[byte] = value
    for row in range(256, 2048):
        value = _TABLE[row - 256]
        _TABLE[row] = _TABLE[value & 255] ^ value >> 8


if cython.compiled:
    fill_table()


def _messages(kernel: Any, shape: Shape, magic: int, attributes: int, limit: int, *, deep: bool) -> bytes:
    """In plain Python: a % for each line."""
    values, data, place, end, base = kernel.values, kernel.data, kernel.place, kernel.end, kernel.base
    decode_key, decode_value = kernel.key_decoder, kernel.value_decoder
    start, int32 = _STARTS[magic].unpack_from, _INT32.unpack_from
    to_key = _AT_KEY_1 if magic else _AT_KEY_0
    appended = kernel.appended_at
    at = kernel.at
    lines: list[bytes] = []
    used = 0
    values[_TIMESTAMP] = -1
    try:
        while used < limit and end - at >= to_key + 8:
            if magic:
                offset, size, crc, found, kind, timestamp, key_size = start(data, at)
                values[_TIMESTAMP] = timestamp if appended < 0 else appended
            else:
                offset, size, crc, found, kind, key_size = start(data, at)
            stop = at + _OVERHEAD + size
            field = at + to_key + 4 + (key_size if key_size > 0 else 0)
            if found != magic or kind != attributes or key_size < -1 or not field + 4 <= stop <= end:
                break
            (value_size,) = int32(data, field)
            if value_size < -1 or field + 4 + (value_size if value_size > 0 else 0) != stop:
                break
            offset += base
            if crc != crc32(data[at + _AT_MAGIC : stop]) or not -_FAR < offset < _FAR:
                break
            values[_OFFSET], values[_CRC], values[_POSITION], values[_SIZE] = offset, crc, place + at, stop - at
            values[_KEY_SIZE], values[_VALUE_SIZE] = key_size, value_size
            variant = 0
            if key_size < 0:
                variant = 1
            else:
                text = data[field - key_size : field]
                values[_KEY] = decode_key(text) if decode_key else text if text.isascii() else java_text(text)
            if value_size < 0:
                variant += 2
            else:
                text = data[field + 4 : stop]
                values[_VALUE] = decode_value(text) if decode_value else text if text.isascii() else java_text(text)
            template, take = shape.templates[variant]
            line = template % take(values)
            lines.append(line)
            used += len(line)
            if deep:
                kernel.follow()
            kernel.done += 1
            at = stop
    except DamageError:
        pass
    kernel.at = at
    return b"".join(lines)


def _last_offset(data: Bytes, at: int, end: int) -> int | None:
    last = None
    unpack = LOG_OVERHEAD.struct.unpack_from
    while at < end:
        if end - at < LOG_OVERHEAD.size:
            return None
        last, size = unpack(data, at)
        at += LOG_OVERHEAD.size + size
        if size < SMALLEST_MESSAGE[0] or at > end:
            return None
    return last


def _stretch(data: Bytes, at: int, most: int) -> int:
    unpack, least, end = _FRAMES.unpack_from, LOG_OVERHEAD.size + SMALLEST_MESSAGE[0], len(data)
    while end - at >= least:
        _, size, _, magic, attributes = unpack(data, at)
        if (
            not SMALLEST_MESSAGE[0] <= size <= most
            or magic > 1
            or attributes & CODEC_MASK
            or end - at < LOG_OVERHEAD.size + size
        ):
            break
        at += LOG_OVERHEAD.size + size
    return at
