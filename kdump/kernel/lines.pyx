# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""Records as lines of text: classic text of magic 2 and of older messages, JSON, CSV, format strings, tables.

A line is a list of literals, which are copied, and slots, which are replaced by values. :class:`Lines` writes numbers.
The method ``field`` of each class writes the other slots, which have numbers from ``NUMBERS`` on:

- :class:`Lines`: keys, values and header keys of classic text.
- :class:`Messages`: messages of magic 0 and 1 (:mod:`kdump.records.magic_0_1`). A message is well-formed if its fields
  fill it and its checksum is right.
- :class:`RowLines`: rows. It writes valid UTF-8 without non-ASCII characters that need an escape, and calls the general
  path for any other text.
"""

from __future__ import annotations

from array import array
from itertools import chain
from typing import NamedTuple

from kdump.errors import DamageError
from kdump.formats.record import Header
from kdump.formats.record_layout import CODEC_MASK, LOG_OVERHEAD, MESSAGE_HEADER_0, MESSAGE_HEADER_1, SMALLEST_MESSAGE
from kdump.kernel.records import FAR, NUMBERS, RECORD_NUMBERS, slots as slots_of_numbers
from kdump.kernel.texts import escapes
from kdump.primitives.crc import CRC32
from kdump.primitives.encodings import java_text

cimport cython
from cpython.bytearray cimport PyByteArray_Resize
from libc.string cimport memcmp, memcpy, memmove, memset
from kdump.kernel.calendar cimport Date, date_of
from kdump.kernel.digests cimport KeyedHash
from kdump.kernel.records cimport Cursor
from kdump.kernel.texts cimport BEYOND, base64, cell, escaped, hex_digits, is_utf8, json_value, plain
from kdump.kernel.vectors cimport copied_ascii, short_plain
from kdump.kernel.words cimport big

_TEXTS = (
    *("header_keys", "decoded", "key", "value", "raw_key", "raw_value", "hex_key", "hex_value"),
    *("base64_key", "base64_value", "hash_key", "hash_value"),
)
SLOTS_OF_TEXTS = {name: NUMBERS + slot for slot, name in enumerate(_TEXTS)}
"""Name of a text of a record -> the slot of the text. The slots of numbers come first."""


cdef int _KEY_SIZE = RECORD_NUMBERS.index("key_size")
cdef int _VALUE_SIZE = RECORD_NUMBERS.index("value_size")
cdef int _OFFSET = RECORD_NUMBERS.index("offset")
cdef int _OF_BATCH = len(RECORD_NUMBERS)
cdef int _NUMBERS = NUMBERS
cdef int _HEADER_KEYS = NUMBERS + _TEXTS.index("header_keys")
cdef int _KEY = NUMBERS + _TEXTS.index("key")
cdef int _VALUE = NUMBERS + _TEXTS.index("value")
cdef int _RAW = (_TEXTS.index("raw_key") - _TEXTS.index("key")) // 2
cdef int _HEX = (_TEXTS.index("hex_key") - _TEXTS.index("key")) // 2
cdef int _BASE64 = (_TEXTS.index("base64_key") - _TEXTS.index("key")) // 2
cdef Py_ssize_t _DIGITS = 64  # hex digits of a keyed hash
cdef int _END = 1 << 16  # after all slots
cdef int _LINES = 4  # of a shape: one for each combination of a null key and value
cdef Py_ssize_t _MOST = 1 << 23  # maximum number of bytes that are reserved for lines of unknown size
cdef unsigned long long _HIGH_BITS = 0x8080808080808080
cdef unsigned long long _TOO_HIGH = 10**18  # digits of larger numbers are not kept
cdef char[2 * 100] _PAIRS  # of digits
cdef char[4 * 1000] _SHORT  # the digits of numbers up to 999, with their count in the fourth byte
cdef unsigned char[256] _FIRST_BYTES  # whether payloads with a schema may begin with this byte
_FIRST_BYTES[0] = _FIRST_BYTES[0xC3] = _FIRST_BYTES[0x4F] = True
cdef const unsigned char* _NOTHING = b""


cdef void _fill_tables() noexcept:
    cdef int value
    cdef char* entry
    for value in range(100):
        _PAIRS[2 * value] = <char> (48 + value // 10)
        _PAIRS[2 * value + 1] = <char> (48 + value % 10)
    for value in range(1000):
        entry = _SHORT + 4 * value
        entry[3] = 1 + (value >= 10) + (value >= 100)
        if value >= 100:
            entry[0] = <char> (48 + value // 100)
        if value >= 10:
            entry[<int> entry[3] - 2] = <char> (48 + value // 10 % 10)
        entry[<int> entry[3] - 1] = <char> (48 + value % 10)


_fill_tables()


def slots(others):
    """Return name -> slot for the fields of a record and of its batch's header, and for ``others``."""
    return {**slots_of_numbers(others), **SLOTS_OF_TEXTS}


class Shape:
    """The form of an output line: four or eight lists of literals and slots, one for each kind of record.

    List ``n`` is for a null key if ``n & 1``, and for a null value if ``n & 2``. Lists 4 to 7, if given, are for
    records whose payload may name its schema.
    """

    def __init__(self, lines):
        self.pool, self.ops = _ops(lines)
        self.finds_frames = len(lines) > _LINES
        self.of_batch = any(isinstance(part, int) and _OF_BATCH <= part < _NUMBERS for part in chain(*lines))


def _ops(lines):
    """Return the joined literals, and numbers: the index at which each line begins, then the slots of the lines.

    A slot has three numbers: start and size of the literal before it, and the slot. A line ends with the slot _END.
    Literals are copied 16 bytes at a time, so 16 more bytes follow the last literal.
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


cdef class Lines(Cursor):
    """Converts the records of consecutive batches to lines of classic text.

    ``last_offset`` is the offset of the last record, -1 before the first. ``gaps`` lists the pairs of offsets that do
    not follow each other; the caller empties it. If ``armed`` is true, a first offset other than 0 is a gap too. With
    ``whole_batches`` the offset and the gaps may include records that :meth:`run` has dropped.

    If ``stops_at_frames`` is true, lines end before a record whose payloads may name a schema: the caller decodes it.

    ``memory`` is None, or a function that takes a size in bytes and returns a buffer for the lines, or None. Without a
    buffer, and for lines that do not fit, the kernel uses its own memory.
    """

    def __init__(self, key_decoder=None, value_decoder=None, keyed_hash=None):
        """``key_decoder`` and ``value_decoder`` convert bytes to text; None: as Java decodes UTF-8.

        ``keyed_hash`` computes the hashes.
        """
        self.keyed_hash = KeyedHash(b"") if keyed_hash is None else keyed_hash
        self.key_decoder = key_decoder
        self.value_decoder = value_decoder
        self.decoded = key_decoder is not None or value_decoder is not None
        self.gaps = []
        self.last_offset = -1
        self.armed = self.stops_at_frames = self.finds_frames = self.has_frame = False
        self.room = -1  # the buffer is created with the first line
        self.need = 0
        self.memory = None
        self.buffer = self.own = bytearray()
        for slot in range(NUMBERS):
            keep(&self.upper[slot], 10000)  # any number with kept digits

    def lines(self, head, shape, limit):
        """Return the line of the batch, then the lines of its next records, until ``limit`` bytes are filled.

        Lines end early if :meth:`next_record` does not accept the next record. The result is valid until the next call.
        """
        cdef Py_ssize_t fixed
        cdef Py_ssize_t whole = 0
        cdef Py_ssize_t most = limit
        cdef Py_ssize_t start
        self.begin_lines(limit)
        if head is not None:
            self.take(head)
            self.line()
            whole = self.used
        if shape is not None:
            self.take(shape)
            if shape.of_batch:
                self.make_room(shape)
                self.bind()
            fixed = self.need
            try:
                with nogil:
                    while self.left > 0 and self.used < most:
                        start = self.at
                        if not self.next_record():
                            break
                        self.need = fixed + self.at - start
                        self.line()
                        self.follow()
                        whole = self.used
            except DamageError:
                pass
        self.settle()
        return memoryview(self.buffer)[:whole] if whole else memoryview(b"")  # without a line there may be no buffer

    @cython.final
    cdef bint begin_lines(self, object limit) except -1:
        """Choose the buffer for the next lines."""
        self.most = min(limit, _MOST)
        place = None if self.memory is None else self.memory(limit)
        if place is not None:
            self.buffer = self.out = place
            self.room = self.out.shape[0]
        elif self.buffer is not self.own:
            self.buffer = self.own
            self.room = len(self.own) or -1  # the buffer is created with the first line
            if self.room > 0:
                self.out = self.own
        self.used = 0
        self.keyed_hash.count = 0
        self.has_frame = False
        return True

    cdef void take(self, object shape):
        """Set the compiled form of the next lines."""
        self.ops = shape.ops
        self.pool = shape.pool
        self.finds_frames = shape.finds_frames
        self.need = len(shape.pool) + 12 * len(shape.ops) + 64  # a number or a date takes at most 32 bytes
        self.literals = &self.pool[0]
        self.steps = &self.ops[0]

    cdef void make_room(self, object shape):
        """Reserve memory for :meth:`bind`."""
        self.bound_pool = bytearray(self.need)  # need is enough for any numbers
        self.bound_ops = array("i", shape.ops)

    @cython.boundscheck(False)
    cdef void bind(self) noexcept nogil:
        """Convert the slots of the batch's numbers to literals, once for all records of the batch."""
        cdef const unsigned char* pool = &self.pool[0]
        cdef const int* ops = &self.ops[0]
        cdef unsigned char* out = &self.bound_pool[0]
        cdef const int* op
        cdef Py_ssize_t start = 0
        cdef Py_ssize_t at = 0
        cdef int next_op = ops[0]
        for line in range(_LINES):
            op = ops + ops[line]
            self.bound_ops[line] = next_op
            while True:
                memcpy(out + at, pool + op[0], op[1])
                at += op[1]
                if _OF_BATCH <= op[2] < _NUMBERS:
                    at = number(out + at, self.values[op[2]]) - out
                else:
                    self.bound_ops[next_op] = <int> start
                    self.bound_ops[next_op + 1] = <int> (at - start)
                    self.bound_ops[next_op + 2] = op[2]
                    next_op += 3
                    start = at
                if op[2] == _END:
                    break
                op += 3
        self.literals = &self.bound_pool[0]
        self.steps = &self.bound_ops[0]

    def run(self, head, shape, limit):
        """Return the lines of the next batches of :meth:`stack`: ``head`` for a batch, then ``shape`` for each record.

        Lines end when ``limit`` bytes are filled, and the next call continues. ``row`` is the row after the last batch
        with printed lines, ``left`` the number of remaining records of that batch. ``stuck`` is true if the kernel
        cannot print the next record. The result has the lines before this record; with ``whole_batches`` it has no
        lines of this record's batch. It is valid until the next call.
        """
        cdef Py_ssize_t whole = 0
        cdef Py_ssize_t begun = -1  # start of the batch's lines; -1 if an earlier call started them
        cdef Py_ssize_t most = limit
        cdef Py_ssize_t start
        cdef bint first = False
        cdef bint has_head = head is not None
        cdef bint has_shape = shape is not None
        cdef bint bound = shape is not None and shape.of_batch
        self.begin_lines(limit)
        self.stuck = False
        self.data = self.block
        if head is not None:
            self.take(head)
        cdef const unsigned char* head_literals = self.literals
        cdef const int* head_steps = self.steps
        cdef Py_ssize_t head_need = self.need
        if shape is not None:
            self.take(shape)
            if shape.of_batch:
                self.make_room(shape)
                if self.left > 0:
                    self.bind()
        cdef const unsigned char* literals = self.literals
        cdef const int* steps = self.steps
        cdef Py_ssize_t need = self.need
        try:
            with nogil:
                while self.used < most:
                    if self.left == 0:
                        if self.row == self.rows:
                            break
                        if not self.next_batch():
                            self.row -= 1
                            self.stuck = True
                            break
                        begun = self.used
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
                        if not self.next_record():
                            self.stuck = True
                            break
                        self.need = need + self.at - start
                        self.line()
                        self.follow()
                        whole = self.used
                        first = False
                    if self.stuck:
                        break
        except DamageError:
            self.stuck = True
        self.settle()
        if self.left > 0 and self.whole_batches and begun >= 0 and (self.stuck or not self.sound()):
            whole = begun
            first = self.stuck = True
        if self.stuck and self.left > 0 and first:  # a batch's line is not printed without a record
            self.row -= 1
            self.left = 0
        return memoryview(self.buffer)[:whole] if whole else memoryview(b"")

    def sound(self):
        """Return whether :meth:`next_record` accepts all remaining records. The position does not change."""
        at, left = self.at, self.left
        with nogil:
            while self.left > 0 and self.next_record():
                self.left -= 1
        is_sound = self.left == 0
        self.at, self.left = at, left
        return is_sound

    @cython.final
    cdef inline bint next_record(self) noexcept nogil:
        """Read the next record. Return whether it is well-formed and, with ``stops_at_frames``, names no schema."""
        if not self.read():
            return False
        if self.stops_at_frames:
            return not (_may_have_schema(self) and self.has_schema())
        if self.finds_frames:
            self.has_frame = _may_have_schema(self) and self.has_schema()
        return True

    @cython.final
    cdef bint has_schema(self) noexcept nogil:
        """Return whether the key or the value may name its schema (:mod:`kdump.schemas.framing`)."""
        cdef Py_ssize_t at = self.headers_at
        cdef const unsigned char* name
        if _is_framed(self, self.key_at, self.values[_KEY_SIZE]):
            return True
        if _is_framed(self, self.value_at, self.values[_VALUE_SIZE]):
            return True
        for _ in range(self.header_count):
            if self.header_count > 1:  # read() has parsed a single header already
                at = self.header(at)
            if self.name_size != 15 and self.name_size != 17:
                continue
            name = self.text_at(self.name_at, self.name_size)
            if self.name_size == 15 and memcmp(name, <char*> b"__key_schema_id", 15) == 0:
                return True
            if self.name_size == 17 and memcmp(name, <char*> b"__value_schema_id", 17) == 0:
                return True
        return False

    @cython.final
    @cython.boundscheck(False)
    cdef const unsigned char* text_at(self, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
        """Return the address of ``size`` bytes of the record; _NOTHING for no bytes, which may be after the data."""
        return &self.data[at] if size > 0 else _NOTHING

    @cython.final
    @cython.boundscheck(False)
    cdef bint settle(self) except -1 nogil:
        """Write the collected hashes. This is needed before the buffer is read or moved."""
        if self.keyed_hash.count:
            self.keyed_hash.settle(&self.out[0])
        return True

    @cython.final
    cdef bint follow(self) except -1 nogil:
        """Count the record, and add a gap if its offset is not the next one."""
        self.left -= 1
        cdef unsigned long long following = <unsigned long long>self.last_offset + 1  # wraps as in Java
        if <unsigned long long>self.values[_OFFSET] != following and (self.last_offset != -1 or self.armed):
            self.gap()
        self.last_offset = self.values[_OFFSET]
        return True

    @cython.final
    cdef bint gap(self) except -1 with gil:
        self.gaps.append((self.last_offset, self.values[_OFFSET]))
        return True

    @cython.final
    @cython.boundscheck(False)
    cdef bint line(self) except -1 nogil:
        cdef const unsigned char* literal
        cdef int slot
        if self.used + self.need > self.room:
            self.grow(0)
        cdef unsigned char* out = &self.out[self.used]
        cdef const unsigned char* pool = self.literals
        cdef const int* op = self.steps
        cdef int which = (self.values[_KEY_SIZE] < 0) + 2 * (self.values[_VALUE_SIZE] < 0)
        if self.has_frame:  # few records have a frame, so bind() leaves out their lines
            which += _LINES
            op = &self.ops[0]
            pool = &self.pool[0]
        op += op[which]
        cdef Py_ssize_t done
        cdef Py_ssize_t size
        while True:
            literal = pool + op[0]
            size = op[1]
            if size > 64:
                memcpy(out, literal, size)
            else:
                done = 0
                while done < size:  # there are 16 more bytes in pool and buffer
                    memcpy(out + done, literal + done, 16)
                    done += 16
            out += size
            slot = op[2]
            if slot < _NUMBERS:
                out = near(out, self.values[slot], &self.upper[slot])
            elif slot == _END:
                break
            else:
                self.used = out - &self.out[0]
                self.field(slot)
                out = &self.out[self.used]
            op += 3
        self.used = out - &self.out[0]
        return True

    cdef bint field(self, int slot) except -1 nogil:
        if slot == _KEY:
            self.text(_KEY, self.key_at, self.values[_KEY_SIZE])
        elif slot == _VALUE:
            self.text(_VALUE, self.value_at, self.values[_VALUE_SIZE])
        elif slot > _VALUE:
            if (slot - _KEY) & 1:
                self.spell((slot - _KEY) >> 1, self.value_at, self.values[_VALUE_SIZE])
            else:
                self.spell((slot - _KEY) >> 1, self.key_at, self.values[_KEY_SIZE])
        elif self.header_count > 0:
            self.header_keys()
        return True

    @cython.final
    @cython.boundscheck(False)
    cdef bint spell(self, int way, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write ``size`` bytes of the record unchanged, as hex, as base64, or as a hash."""
        cdef unsigned char* out
        cdef const unsigned char* text = _NOTHING
        if size > 0:  # empty bytes may be at the end of the data, which has no address
            text = &self.data[at]
        reserve(self, 2 * size + _DIGITS)
        out = &self.out[self.used]
        if way == _RAW:
            memcpy(out, text, size)
            self.used += size
        elif way == _HEX:
            hex_digits(out, text, size)
            self.used += 2 * size
        elif way == _BASE64:
            self.used = base64(out, text, size) - &self.out[0]
        else:
            self.keyed_hash.digits(&self.out[0], self.used, text, size)
            self.used += _DIGITS
        return True

    @cython.final
    cdef bint header_keys(self) except -1 nogil:
        cdef Py_ssize_t at = self.headers_at
        for number in range(self.header_count):
            at = self.header(at)
            if number:
                self.out[self.used] = 44
                self.used += 1
            self.text(_HEADER_KEYS, self.name_at, self.name_size)
        return True

    @cython.final
    @cython.boundscheck(False)
    cdef bint text(self, int slot, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write ``size`` bytes of the record as text: unchanged if they are valid UTF-8 and have no decoder."""
        if self.decoded and slot != _HEADER_KEYS:
            return self.decode(slot, at, size)
        if size <= 0:  # empty bytes may be at the end of the data, which has no address
            return True
        cdef const unsigned char* text = &self.data[at]
        if size > self.need:  # need covers a whole record
            self.grow(size)
        if not copied_ascii(&self.out[self.used], text, size, self.data.shape[0] - at) and not is_utf8(text, size):
            return self.decode(slot, at, size)
        self.used += size
        return True

    cdef bint decode(self, int slot, Py_ssize_t at, Py_ssize_t size) except -1 with gil:
        """Write ``size`` bytes of the record as the decoder prints them. Raises DamageError if it cannot."""
        data = bytes(self.data[at : at + size])
        decoder = self.key_decoder if slot == _KEY else self.value_decoder if slot == _VALUE else None
        cdef bytes shown = decoder(data) if decoder else java_text(data)
        self.grow(len(shown))
        self.buffer[self.used : self.used + len(shown)] = shown
        self.used += len(shown)
        return True

    @cython.final
    cdef bint grow(self, Py_ssize_t more) except -1 with gil:
        cdef Py_ssize_t needed = self.used + self.need + more
        if needed <= self.room:
            return True
        begun = memoryview(self.buffer)[: self.used]
        if self.buffer is self.own or len(self.own) < needed:
            self.own = bytearray()  # free the old buffer first, unless ``begun`` is in it
            PyByteArray_Resize(self.own, max(2 * needed, self.most + 2 * self.need, 1 << 16))  # does not clear bytes
        if self.used:
            self.own[: self.used] = begun
        self.out = self.buffer = self.own
        self.room = len(self.own)
        return True


@cython.boundscheck(False)
cdef inline bint _may_have_schema(Lines self) noexcept nogil:
    """Return whether a record may name a schema. This quick test reads two first bytes and a header key's size.

    The first byte can be read even if a payload is empty, because another field of the record follows.
    """
    if _FIRST_BYTES[self.data[self.key_at]] | _FIRST_BYTES[self.data[self.value_at]]:
        return True
    return self.header_count > 0 and (self.header_count > 1 or self.name_size == 15 or self.name_size == 17)


@cython.boundscheck(False)
cdef bint _is_framed(Lines self, Py_ssize_t at, long long size) noexcept nogil:
    """Return whether a payload starts with a schema id, Avro's fingerprint, or the magic of an Avro file."""
    if size < 4:
        return False
    if self.data[at] == 0:
        return size > 4
    if self.data[at] == 0xC3:
        return self.data[at + 1] == 1
    return memcmp(&self.data[at], <char*> b"Obj\x01", 4) == 0


cdef inline unsigned char* near(unsigned char* out, long long value, Upper* upper) noexcept nogil:
    """Write a number like number(), and return the position after it. ``upper`` keeps its digits except the last four.

    Consecutive offsets and timestamps mostly differ only in the last four digits.
    """
    cdef unsigned long long lower = <unsigned long long> value - upper.value
    if lower >= 10000:
        if <unsigned long long> value < 10000 or <unsigned long long> value >= _TOO_HIGH:
            return number(out, value)
        keep(upper, value)
        lower = <unsigned long long> value - upper.value
    memcpy(out, upper.digits, 16)
    out += upper.size
    four(out, <unsigned int> lower)
    return out + 4


cdef void keep(Upper* upper, unsigned long long value) noexcept nogil:
    """Store in ``upper`` the digits of a number except the last four. The number is from 10,000 to _TOO_HIGH."""
    upper.value = value - value % 10000
    upper.size = number(upper.digits, <long long> (value // 10000)) - upper.digits


cdef unsigned char* number(unsigned char* out, long long value) noexcept nogil:
    """Write a decimal number, and return the position after it. Up to 22 bytes may be overwritten."""
    cdef unsigned long long rest = value
    if rest < 1000:
        return up_to_four(out, <unsigned int> rest)
    if value < 0:
        out[0] = 45
        out += 1
        rest = 0 - rest
    if rest < 100000000:
        return up_to_eight(out, <unsigned int> rest)
    cdef unsigned long long upper = rest // 100000000
    if upper < 100000000:
        out = up_to_eight(out, <unsigned int> upper)
    else:
        out = up_to_eight(out, <unsigned int> (upper // 100000000))
        eight(out, <unsigned int> (upper % 100000000))
        out += 8
    eight(out, <unsigned int> (rest % 100000000))
    return out + 8


cdef inline unsigned char* up_to_eight(unsigned char* out, unsigned int value) noexcept nogil:
    """Write a number of at most eight digits, and return the position after it."""
    cdef unsigned int upper
    if value < 10000:
        return up_to_four(out, value)
    upper = value // 10000
    out = up_to_four(out, upper)
    four(out, value - upper * 10000)
    return out + 4


cdef inline unsigned char* up_to_four(unsigned char* out, unsigned int value) noexcept nogil:
    """Write a number of at most four digits, and return the position after it."""
    if value < 1000:
        memcpy(out, _SHORT + 4 * value, 4)
        return out + <int> _SHORT[4 * value + 3]
    four(out, value)
    return out + 4


cdef inline void eight(unsigned char* out, unsigned int value) noexcept nogil:
    cdef unsigned int upper = value // 10000
    four(out, upper)
    four(out + 4, value - upper * 10000)


cdef inline void four(unsigned char* out, unsigned int value) noexcept nogil:
    cdef unsigned int upper = value // 100
    memcpy(out, _PAIRS + 2 * upper, 2)
    memcpy(out + 2, _PAIRS + 2 * (value - upper * 100), 2)


MESSAGE_SLOTS = {name: slot for slot, name in enumerate((*RECORD_NUMBERS, "crc", "position", "size"))}
"""Name -> slot, for the numbers of a message. "position" is the position of the message's log entry."""


cdef int _CRC = MESSAGE_SLOTS["crc"]
cdef int _POSITION = MESSAGE_SLOTS["position"]
cdef int _SIZE = MESSAGE_SLOTS["size"]

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
    """Converts messages to lines. ``done`` is the number of messages since ``turn_to()``."""

    cdef public Py_ssize_t done
    cdef Py_ssize_t stop
    cdef long long place
    cdef long long base
    cdef int magic
    cdef int kind
    cdef long long appended_at
    cdef bint deep

    def turn_to(self, data, at, end, *, place=0, base=0, timestamp=-1):
        """Start with the messages from ``at`` to ``end`` in ``data``. The data begins at byte ``place`` of the file.

        ``base`` is added to their offsets. A ``timestamp`` (ms) of 0 or more replaces the timestamps of magic 1.
        """
        self.data = data
        self.at, self.end = at, min(end, len(data))
        self.place = place
        self.base = base
        self.appended_at = timestamp
        self.left = self.done = 0

    def position(self):
        """Return the start of the next message in the data."""
        return self.at

    def skip(self, size):
        self.at += size

    def last_offset_stored(self):
        """Return the stored offset of the last message; None without one, or if the size of any is wrong."""
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

        Lines end when ``limit`` bytes are filled, or before a message that is not well-formed. With ``deep`` the gaps
        between offsets are added to ``gaps``. The result is valid until the next call.
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
            pass  # a decoder raised it; the messages before it are printed
        # There is no settle() here, because DumpLogSegments prints no hashes.
        return memoryview(self.buffer)[:whole] if whole else memoryview(b"")

    cdef bint message(self) except -1 nogil:
        """Read the fields of the next message. Return whether it is well-formed and has the wanted attributes."""
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


def end_of_messages(data, at, most):
    """Return the end of the consecutive complete, uncompressed messages of magic 0 and 1 from ``at`` on.

    A message of more than ``most`` bytes ends them.
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
    """Return the CRC-32 of ``size`` bytes, computed eight bytes at a time ("slicing by 8")."""
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
    """Compute the effect of each byte on a checksum, with zero to seven bytes after it."""
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


WAYS = ("string", "json", "cell", "marked_cell", "hex_cell", "base64_cell", "mark", "shown", "general")
"""The ways to write a key or a value, in addition to those of :class:`Lines`:

- string: a JSON string; json: a payload that is JSON, with a member that marks it as JSON, or else a string;
- cell, hex_cell, base64_cell: a CSV cell; mark: the cell with the encoding, empty for UTF-8; marked_cell: both cells,
  with a comma between them;
- shown: a table's cell if the text is printable ASCII; the general path writes other cells, with the right width;
- general: the text of the general path.
"""
FIELDS = (
    *("attributes", "iso", "iso_cell", "headers", "headers_cell", "pairs", "size_bytes"),
    *("row", "width", "iso_shown", "decoded", "end_of_row"),
)
"""The other slots that are not numbers of ``values``.

- attributes; iso, iso_cell: the timestamp in ISO 8601 as JSON or as a cell; headers, headers_cell, pairs: the headers
  as JSON, as a cell or for a format string.
- size_bytes: the size of the value in four bytes.
- decoded: the decoded payloads.
- For tables, row: the text before a row; width: the start of a cell with a width; iso_shown: the timestamp in such a
  cell; end_of_row: the text after a row.
"""
WIDEST = 1 << 12
"""Maximum number of characters of a cell with a known width."""
_FIRST = NUMBERS + len(SLOTS_OF_TEXTS)
ROW_SLOTS = {
    **{f"{way}_key": _FIRST + 2 * at for at, way in enumerate(WAYS)},
    **{f"{way}_value": _FIRST + 2 * at + 1 for at, way in enumerate(WAYS)},
    **{name: _FIRST + 2 * len(WAYS) + at for at, name in enumerate(FIELDS)},
}


def left(width):
    """Return the slot that pads the previous cell to ``width``, with its text on the left."""
    return _LEFT + min(width, WIDEST - 1)


def right(width):
    """Return the slot that pads the previous cell, a number, on the left. The kernel stops at a wider number."""
    return _RIGHT + min(width, WIDEST - 1)


HEADER_WAYS = ("string", "json", "hex", "base64", "hash", "general")
"""The ways to write the values of headers."""

cdef int _TIMESTAMP = RECORD_NUMBERS.index("timestamp")
cdef int _PAYLOADS = _FIRST
cdef int _OTHERS = ROW_SLOTS[FIELDS[0]]
cdef int _STRING = WAYS.index("string")
cdef int _JSON = WAYS.index("json")
cdef int _CELL = WAYS.index("cell")
cdef int _MARKED_CELL = WAYS.index("marked_cell")
cdef int _HEX_CELL = WAYS.index("hex_cell")
cdef int _BASE64_CELL = WAYS.index("base64_cell")
cdef int _MARK = WAYS.index("mark")
cdef int _SHOWN = WAYS.index("shown")
cdef int _ATTRIBUTES = ROW_SLOTS["attributes"]
cdef int _ISO = ROW_SLOTS["iso"]
cdef int _ISO_CELL = ROW_SLOTS["iso_cell"]
cdef int _HEADERS = ROW_SLOTS["headers"]
cdef int _HEADERS_CELL = ROW_SLOTS["headers_cell"]
cdef int _HEADER_PAIRS = ROW_SLOTS["pairs"]
cdef int _SIZE_BYTES = ROW_SLOTS["size_bytes"]
cdef int _ROW = ROW_SLOTS["row"]
cdef int _WIDTH = ROW_SLOTS["width"]
cdef int _ISO_SHOWN = ROW_SLOTS["iso_shown"]
cdef int _DECODED = ROW_SLOTS["decoded"]
cdef int _LEFT = WIDEST  # the slots of widths follow all other slots
cdef int _RIGHT = 2 * WIDEST
cdef int _WIDEST = WIDEST
cdef int _STRINGS = HEADER_WAYS.index("string")
cdef int _JSONS = HEADER_WAYS.index("json")
cdef int _HEXES = HEADER_WAYS.index("hex")
cdef int _BASE64S = HEADER_WAYS.index("base64")
cdef int _HASHES = HEADER_WAYS.index("hash")
cdef long long _DAY = 86_400_000
cdef int _AROUND = 48  # bytes around the texts of a header, including a null and a mark
cdef int _ESCAPE = 8  # size of an entry in the table of escaped()
cdef Py_ssize_t _BLOCK = 1024  # bytes of a text that are reserved at a time


class General(NamedTuple):
    """Functions and texts of the general path for values that the kernel does not write."""

    quote: Callable[[str], str]
    """Returns a string as JSON."""
    key: Callable[[bytes], bytes]
    """Returns the text of a key; in JSON also the mark, a member that names the encoding."""
    value: Callable[[bytes], bytes]
    """Returns the text of a value; in JSON also the mark, a member that names the encoding."""
    mark: Callable[[bytes], bytes]
    """Returns the cell with the encoding of a payload."""
    headers: Callable[[Sequence[Header]], bytes]
    marks: tuple[bytes, bytes]
    """The mark of a key and the mark of a value for the encoding JSON."""
    prefix: bytes
    """The text before a keyed hash."""
    first: int
    """The first millisecond of the year 1."""
    last: int
    """The first millisecond after the year 9999."""
    decoded: Callable[[bytes | None, bytes | None, Sequence[Header]], bytes]
    """Returns the JSON member with the decoded key and value; empty if neither has a schema."""


@cython.final
cdef class RowLines(Lines):
    """Converts the records of consecutive batches to rows. ``headers`` is one of HEADER_WAYS."""

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
        self.second = self.last  # a second without timestamps

    def frame(self, above, below, *, group, longest):
        """Write the next rows as a table: ``above`` before each group of ``group`` rows, ``below`` after it.

        ``count`` is the number of rows in the current group. ``is_open`` is true if the group has begun. Cells show up
        to ``longest`` characters.
        """
        self.above = above
        self.below = below
        self.group = group
        self.longest = longest

    @cython.boundscheck(False)
    cdef bint field(self, int slot) except -1 nogil:
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
        elif slot == _HEADER_PAIRS:
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
        elif slot == _DECODED:
            self.by_decoder()
        elif slot == _ROW:
            if not self.is_open:
                self.constant(self.above)
        else:
            self.end_row()
        return True

    cdef bint payload(self, int way, bint is_value, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write a key or a value in one of the WAYS."""
        if way == _MARKED_CELL:
            return self.marked_cell(is_value, at, size)
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
        return self.by_general(is_value)

    cdef bint marked_cell(self, bint is_value, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write a key or a value as a cell, and the cell with its encoding."""
        cdef bint is_text = self.cell(at, size)
        if not is_text:
            self.by_general(is_value)
        reserve(self, 1)
        self.out[self.used] = 44
        self.used += 1
        return (is_text and self.headers_way != _JSONS) or self.mark(at, size)

    @cython.boundscheck(False)
    cdef bint printable(self, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write the first bytes of a text if the text is printable ASCII. Return whether it is.

        Otherwise the general path writes the text with the right width.
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
        cdef Py_ssize_t begin = self.used
        self.iso(self.values[_TIMESTAMP], False)
        if self.used == begin:
            memcpy(&self.out[begin], <char*> b"null", 4)
            self.used += 4
        return True

    @cython.boundscheck(False)
    cdef bint fit_left(self, Py_ssize_t width) except -1 nogil:
        """Pad the cell to the width of its column, or replace its end by an ellipsis."""
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
        """Put spaces before a number. Raises DamageError if it is wider than its column."""
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
        """Count a row, and end its group after the last row."""
        self.is_open = True
        self.count += 1
        if self.count == self.group:
            self.constant(self.below)
            self.is_open = False
            self.count = 0
        return True

    @cython.boundscheck(False)
    cdef bint constant(self, const unsigned char[::1] text) except -1 nogil:
        reserve(self, text.shape[0])
        memcpy(&self.out[self.used], &text[0], text.shape[0])
        self.used += text.shape[0]
        return True

    @cython.boundscheck(False)
    cdef bint json(self, bint is_value, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write JSON with a member that marks it as JSON, other bytes as a string. False: the kernel cannot do it."""
        cdef const unsigned char* text = self.text_at(at, size)
        cdef int found = self.json_at(text, size)
        if found < 0:
            return False
        if found == 0:
            return self.string(at, size)
        return self.constant(self.value_mark if is_value else self.key_mark)

    @cython.boundscheck(False)
    cdef int json_at(self, const unsigned char* text, Py_ssize_t size) except -2 nogil:
        """Write a JSON value in one line and return 1. Return 0 if it is not JSON, -1 for the general path."""
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
        """Write bytes of the record as a cell. Return whether they are UTF-8."""
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
        """Write the encoding of a payload. It is empty for UTF-8, unless the payload is marked as JSON."""
        cdef const unsigned char* text = self.text_at(at, size)
        if is_utf8(text, size) and (self.headers_way != _JSONS or json_value(text, size) == 0):
            return True
        return self.other_mark(at, size)

    cdef bint other_mark(self, Py_ssize_t at, Py_ssize_t size) except -1 with gil:
        return self.write(self.general.mark(bytes(self.data[at : at + size])))

    @cython.boundscheck(False)
    cdef bint string(self, Py_ssize_t at, Py_ssize_t size) except -1 nogil:
        """Write ``size`` bytes of the record as a JSON string. Return whether the kernel could do it."""
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
        """Call plain() for one or more bytes of the record, or a faster function if they are at most 16."""
        if size <= 16 and at + 16 <= self.data.shape[0] and short_plain(out, &self.data[at], <int> size, also):
            return True
        return plain(out, &self.data[at], size, also)

    @cython.boundscheck(False)
    cdef inline unsigned long long escaped(self, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
        """Write ``size`` bytes of the record with escapes. The result has bits of _HIGH_BITS if a byte is not ASCII."""
        cdef unsigned long long bits = 0
        if size == 0:  # empty bytes may be at the end of the data, which has no address
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
        """Write a timestamp in ms as ISO 8601 in UTC, with or without quotes.

        For -1 (no timestamp) and outside of the years 1 to 9999, write null if ``quoted``, else nothing.
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
        cdef int byte
        for byte in range(4):
            self.out[self.used + byte] = <unsigned char> (size >> (24 - 8 * byte))
        self.used += 4
        return True

    cdef void write_date(self) noexcept nogil:
        """Convert ``second`` (ms since 1970) to a text with quotes in ``date``: ``"2026-11-21T09:30:00.   Z"``."""
        cdef long long day = self.second // _DAY
        cdef long long rest = self.second % _DAY
        if rest < 0:
            rest += _DAY
            day -= 1
        rest //= 1000
        cdef Date found = date_of(day)
        cdef unsigned char* date = self.date
        memcpy(date, <char*> b'"....-..-..T..:..:......Z"      ', 32)
        _two(date + 1, found.year // 100)
        _two(date + 3, found.year % 100)
        date[5] = 45
        _two(date + 6, found.month)
        date[8] = 45
        _two(date + 9, found.day)
        date[11] = 84
        _two(date + 12, rest // 3600)
        date[14] = 58
        _two(date + 15, rest // 60 % 60)
        date[17] = 58
        _two(date + 18, rest % 60)
        date[20] = 46

    @cython.boundscheck(False)
    cdef bint header_list(self) except -1 nogil:
        cdef Py_ssize_t start = self.used
        self.need += _AROUND * self.header_count  # until the next record
        reserve(self, 0)
        self.out[self.used] = 91
        self.used += 1
        cdef Py_ssize_t at = self.headers_at
        cdef Py_ssize_t done
        for done in range(self.header_count):
            if self.header_count > 1:  # read() has parsed a single header already
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
        """Write the value of a header with the mark of its encoding. Return whether the kernel could do it."""
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
        self.out[self.used] = 34
        self.used += 1
        self.prefixed(text, size)
        self.out[self.used] = 34
        self.used += 1
        return True

    @cython.boundscheck(False)
    cdef bint prefixed(self, const unsigned char* text, Py_ssize_t size) except -1 nogil:
        self.constant(self.prefix)
        reserve(self, _DIGITS)
        self.keyed_hash.digits(&self.out[0], self.used, text, size)
        self.used += _DIGITS
        return True

    @cython.boundscheck(False)
    cdef bint headers_cell(self) except -1 nogil:
        cdef Py_ssize_t begin = self.used
        cdef Py_ssize_t size
        cdef unsigned long long bits = 0
        if self.header_count == 0:
            reserve(self, 2)
            memcpy(&self.out[begin], <char*> b"[]", 2)
            self.used += 2
            return True
        if self.headers_way == _STRINGS and self.easy_headers():
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
        """Write the headers as a cell in one pass. Return whether all texts are ASCII without escapes."""
        cdef Py_ssize_t at = self.headers_at
        cdef Py_ssize_t done
        self.need += _AROUND * self.header_count  # until the next record
        reserve(self, 0)
        memcpy(&self.out[self.used], <char*> b'"[', 2)
        self.used += 2
        for done in range(self.header_count):
            if self.header_count > 1:  # read() has parsed a single header already
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
        """Write bytes of the record. Return whether they are ASCII and need no escapes in JSON."""
        cdef Py_ssize_t begin = self.used
        reserve(self, _ESCAPE * size + BEYOND)
        if size > 0 and self.plain(&self.out[begin], at, size, 34):
            self.used += size
            return True
        return not self.escaped(at, size) & _HIGH_BITS and self.used == begin + size

    @cython.boundscheck(False)
    cdef bint pairs(self) except -1 nogil:
        """Write the headers for a format string: keys and values unchanged, NULL for null."""
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

    cdef bint by_decoder(self) except -1 with gil:
        """Write the JSON member with the decoded payloads. The general path decodes them."""
        key = None
        value = None
        if self.values[_KEY_SIZE] >= 0:
            key = bytes(self.data[self.key_at : self.key_at + self.values[_KEY_SIZE]])
        if self.values[_VALUE_SIZE] >= 0:
            value = bytes(self.data[self.value_at : self.value_at + self.values[_VALUE_SIZE]])
        self.settle()
        return self.write(self.general.decoded(key, value, self.header_pairs()))

    cdef list header_pairs(self):
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
        if not is_value:
            return self.write(self.general.key(bytes(self.data[self.key_at : self.key_at + self.values[_KEY_SIZE]])))
        return self.write(
            self.general.value(bytes(self.data[self.value_at : self.value_at + self.values[_VALUE_SIZE]]))
        )

    cdef bint write(self, bytes shown):
        self.grow(len(shown))
        self.buffer[self.used : self.used + len(shown)] = shown
        self.used += len(shown)
        return True


cdef void _two(unsigned char* out, long long value) noexcept nogil:
    out[0] = <unsigned char> (48 + value // 10)
    out[1] = <unsigned char> (48 + value % 10)


cdef inline bint _is_mark(unsigned char last) noexcept nogil:
    """Return whether the character from U+2000 to U+203F with this last byte may control a terminal."""
    return last >= 0xA8 or last == 0x8E or last == 0x8F


cdef bint _is_harmless(const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Return whether valid UTF-8 certainly has no non-ASCII characters that control a terminal.

    Such characters are U+0080 to U+009F, U+061C and some of U+200E to U+206F. The general path has the exact list.
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
