# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The records of one magic 2 batch as lines of text, and the machine that writes lines of any kind.

A line is data: literals, which are copied, and slots, which are written. Numbers are written here; the other slots
(from ``NUMBERS`` on) by :meth:`Lines.field`, here as the keys, values and header keys of classic text.
"""

from array import array
from itertools import chain

from kdump.errors import DamageError
from kdump.kernel.cursor import NUMBERS, RECORD_NUMBERS
from kdump.kernel.cursor import slots as slots_of_numbers
from kdump.primitives.java_text import java_text

cimport cython
from cpython.bytearray cimport PyByteArray_Resize
from libc.string cimport memcpy
from kdump.kernel.cursor cimport Cursor
from kdump.kernel.quoting cimport is_utf8
from kdump.kernel.spelling cimport KeyedHash, base64, hex_digits
from kdump.kernel.words cimport copied_ascii

_TEXTS = (
    *("header_keys", "decoded", "key", "value", "raw_key", "raw_value", "hex_key", "hex_value"),
    *("base64_key", "base64_value", "hash_key", "hash_value"),
)
SLOTS_OF_TEXTS = {name: NUMBERS + slot for slot, name in enumerate(_TEXTS)}
"""The slots of what is no number."""


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
cdef Py_ssize_t _DIGITS = 64  # of a keyed hash
cdef int _END = 1 << 16  # behind all slots
cdef Py_ssize_t _MOST = 1 << 23  # bytes of memory that is made for lines which may be fewer
cdef unsigned long long _HIGH_BITS = 0x8080808080808080
cdef unsigned long long _TOO_HIGH = 10**18  # from here on the digits of a number are not kept
cdef char[2 * 100] _PAIRS  # of digits
cdef char[4 * 1000] _SHORT  # the digits of numbers up to 999, how many they are in the fourth byte
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
    """Return the slots of the fields of a record and of its batch's header, and of ``others``, by name."""
    return {**slots_of_numbers(others), **SLOTS_OF_TEXTS}


class Shape:
    """A line of output, compiled to literals and slots: once for each way in which key and value can be null.

    Line ``n`` stands for a null key if ``n & 1`` and for a null value if ``n & 2``. A part is a literal or a slot.
    """

    def __init__(self, lines):
        self.pool, self.ops = _ops(lines)
        self.of_batch = any(isinstance(part, int) and _OF_BATCH <= part < _NUMBERS for part in chain(*lines))


def _ops(lines):
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


cdef class Lines(Cursor):
    """Turns the records of one batch after the other into lines of classic text.

    ``last_offset`` is the offset of the last one, and ``gaps`` lists the pairs of offsets that do not follow each other
    since the caller last emptied it. ``armed`` says whether an offset other than 0 counts as a gap while
    ``last_offset`` is -1. With ``whole_batches`` both may tell of records that :meth:`run` has taken back.

    ``memory``, where there is any, is called with the limit of each call. It returns where to write the lines as far as
    there is room, or None: then the kernel does so in memory of its own, as it does with what has no room.
    """

    def __init__(self, key_decoder=None, value_decoder=None, keyed_hash=None):
        """A decoder turns a key or a value into text; None stands for Java's reading of UTF-8.

        ``keyed_hash`` writes the slots of hashes.
        """
        self.keyed_hash = KeyedHash(b"") if keyed_hash is None else keyed_hash
        self.key_decoder = key_decoder
        self.value_decoder = value_decoder
        self.decoded = key_decoder is not None or value_decoder is not None
        self.gaps = []
        self.last_offset = -1
        self.armed = False
        self.room = -1  # the buffer is made with the first line
        self.need = 0
        self.memory = None
        self.buffer = self.own = bytearray()
        for slot in range(NUMBERS):
            keep(&self.upper[slot], 10000)  # any number: what is kept must be of one

    def lines(self, head, shape, limit):
        """Return the line of the batch, then those of its next records: of all, or of enough to fill ``limit`` bytes.

        When less comes, the record in front of which they stop is not well-formed. What is returned is good until the
        next call.
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
                        if not self.read():
                            break
                        self.need = fixed + self.at - start
                        self.line()
                        self.follow()
                        whole = self.used
            except DamageError:
                pass
        self.settle()
        return memoryview(self.buffer)[:whole] if whole else memoryview(b"")  # no line, no buffer yet

    @cython.final
    cdef bint begin_lines(self, object limit) except -1:
        """Write what comes now where it belongs."""
        self.most = min(limit, _MOST)
        place = None if self.memory is None else self.memory(limit)
        if place is not None:
            self.buffer = self.out = place
            self.room = self.out.shape[0]
        elif self.buffer is not self.own:
            self.buffer = self.own
            self.room = len(self.own) or -1  # it is made with the first line
            if self.room > 0:
                self.out = self.own
        self.used = 0
        self.keyed_hash.count = 0
        return True

    cdef void take(self, object shape):
        """Write lines of this shape from now on."""
        self.ops = shape.ops
        self.pool = shape.pool
        self.need = len(shape.pool) + 12 * len(shape.ops) + 64  # a number or a date takes 32 bytes at most
        self.literals = &self.pool[0]
        self.steps = &self.ops[0]

    cdef void make_room(self, object shape):
        """Make room for a shape whose numbers of the batch are literals."""
        self.bound_pool = bytearray(self.need)  # no number is longer than what is needed for it
        self.bound_ops = array("i", shape.ops)

    @cython.boundscheck(False)
    cdef void bind(self) noexcept nogil:
        """Make literals of the batch's numbers, which are the same in all lines to come."""
        cdef const unsigned char* pool = &self.pool[0]
        cdef const int* ops = &self.ops[0]
        cdef unsigned char* out = &self.bound_pool[0]
        cdef const int* op
        cdef Py_ssize_t start = 0
        cdef Py_ssize_t at = 0
        cdef int next_op = ops[0]
        for line in range(next_op):
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
        """Return the lines of the next batches of the table, ``head`` for each, then ``shape`` for each of its records.

        They are all, or enough to fill ``limit`` bytes; then the next call goes on. ``row`` counts the batches of which
        something is printed, ``left`` the records that are still to come of the last of these. ``stuck`` says that the
        kernel cannot print what comes next: then a batch of which something is printed is printed up to there, or with
        ``whole_batches`` taken back. What is returned is good until the next call.
        """
        cdef Py_ssize_t whole = 0
        cdef Py_ssize_t begun = -1  # where the lines of the batch begin, if they do in this call
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
        except DamageError:
            self.stuck = True
        self.settle()
        if self.left > 0 and self.whole_batches and begun >= 0 and (self.stuck or not self.sound()):
            whole = begun
            first = self.stuck = True
        if self.stuck and self.left > 0 and first:  # its line does not stand without one of its records
            self.row -= 1
            self.left = 0
        return memoryview(self.buffer)[:whole] if whole else memoryview(b"")

    @cython.final
    @cython.boundscheck(False)
    cdef bint settle(self) except -1 nogil:
        """Write the hashes that wait: before what is written is read or moved."""
        if self.keyed_hash.count:
            self.keyed_hash.settle(&self.out[0])
        return True

    @cython.final
    cdef bint follow(self) except -1 nogil:
        """Count the record, and note when its offset does not follow the last one."""
        self.left -= 1
        if self.values[_OFFSET] != self.last_offset + 1 and (self.last_offset != -1 or self.armed):
            self.gap()
        self.last_offset = self.values[_OFFSET]
        return True

    @cython.final
    cdef bint gap(self) except -1 with gil:
        """Note that the record's offset does not follow the last one."""
        self.gaps.append((self.last_offset, self.values[_OFFSET]))
        return True

    @cython.final
    @cython.boundscheck(False)
    cdef bint line(self) except -1 nogil:
        """Write one line: that of the record, or of its batch."""
        cdef const unsigned char* literal
        cdef int slot
        if self.used + self.need > self.room:
            self.grow(0)
        cdef unsigned char* out = &self.out[self.used]
        cdef const unsigned char* pool = self.literals
        cdef const int* op = self.steps
        op += op[(self.values[_KEY_SIZE] < 0) + 2 * (self.values[_VALUE_SIZE] < 0)]
        cdef Py_ssize_t done
        cdef Py_ssize_t size
        while True:
            literal = pool + op[0]
            size = op[1]
            if size > 64:
                memcpy(out, literal, size)
            else:
                done = 0
                while done < size:  # the pool has room behind it, and so has the buffer
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
        """Write what is no number."""
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
        """Write ``size`` bytes of the record as they are, as hex, as base64, or their hash."""
        cdef unsigned char* out
        cdef const unsigned char* text = _NOTHING
        if size > 0:  # it may stand at the end of the data, where there is no byte to point to
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
        """Write the keys of the headers, commas between them."""
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
        """Write ``size`` bytes of the record as text: as they are when they are valid UTF-8 and nobody decodes them."""
        if self.decoded and slot != _HEADER_KEYS:
            return self.decode(slot, at, size)
        if size <= 0:  # it may stand at the end of the data, where there is no byte to point to
            return True
        cdef const unsigned char* text = &self.data[at]
        if size > self.need:  # no record holds more than itself: there is room for that
            self.grow(size)
        if not copied_ascii(&self.out[self.used], text, size, self.data.shape[0] - at) and not is_utf8(text, size):
            return self.decode(slot, at, size)
        self.used += size
        return True

    cdef bint decode(self, int slot, Py_ssize_t at, Py_ssize_t size) except -1 with gil:
        """Write what a decoder makes of ``size`` bytes of the record. Raises DamageError when it cannot."""
        data = bytes(self.data[at : at + size])
        decoder = self.key_decoder if slot == _KEY else self.value_decoder if slot == _VALUE else None
        cdef bytes shown = decoder(data) if decoder else java_text(data)
        self.grow(len(shown))
        self.buffer[self.used : self.used + len(shown)] = shown
        self.used += len(shown)
        return True

    @cython.final
    cdef bint grow(self, Py_ssize_t more) except -1 with gil:
        """Make room for what the record needs and ``more`` bytes."""
        cdef Py_ssize_t needed = self.used + self.need + more
        if needed <= self.room:
            return True
        begun = memoryview(self.buffer)[: self.used]
        if self.buffer is self.own or len(self.own) < needed:
            self.own = bytearray()  # first: there need not be both at a time, unless that is where the lines begin
            PyByteArray_Resize(self.own, max(2 * needed, self.most + 2 * self.need, 1 << 16))  # sets nothing to zero
        if self.used:
            self.own[: self.used] = begun
        self.out = self.buffer = self.own
        self.room = len(self.own)
        return True


cdef inline unsigned char* near(unsigned char* out, long long value, Upper* upper) noexcept nogil:
    """Write a number of which ``upper`` may keep all digits but four; return the position behind it, as number() does.

    Offsets and timestamps differ from record to record in the last ones alone.
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
    """Keep the digits of a number but for the last four: it has five or more, and is less than _TOO_HIGH."""
    upper.value = value - value % 10000
    upper.size = number(upper.digits, <long long> (value // 10000)) - upper.digits


cdef unsigned char* number(unsigned char* out, long long value) noexcept nogil:
    """Write a decimal number; return the position behind it. Up to 22 bytes are touched."""
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
    """Write a number of at most eight digits; return the position behind it."""
    cdef unsigned int upper
    if value < 10000:
        return up_to_four(out, value)
    upper = value // 10000
    out = up_to_four(out, upper)
    four(out, value - upper * 10000)
    return out + 4


cdef inline unsigned char* up_to_four(unsigned char* out, unsigned int value) noexcept nogil:
    """Write a number of at most four digits; return the position behind it."""
    if value < 1000:
        memcpy(out, _SHORT + 4 * value, 4)
        return out + <int> _SHORT[4 * value + 3]
    four(out, value)
    return out + 4


cdef inline void eight(unsigned char* out, unsigned int value) noexcept nogil:
    """Write eight digits."""
    cdef unsigned int upper = value // 10000
    four(out, upper)
    four(out + 4, value - upper * 10000)


cdef inline void four(unsigned char* out, unsigned int value) noexcept nogil:
    """Write four digits."""
    cdef unsigned int upper = value // 100
    memcpy(out, _PAIRS + 2 * upper, 2)
    memcpy(out + 2, _PAIRS + 2 * (value - upper * 100), 2)
