# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The JSON text of Protobuf payloads, written straight from their bytes.

A schema is a list of messages with their fields (:mod:`kdump.schemas.kernel_protobuf`). A message is walked once to find
its fields, and they are written in the order of the general path: those without presence, lists, maps, then those with
presence as they lie in the payload. A payload that is broken, has unknown fields, repeats what comes once, or holds what
is rare, is left to the general path: :meth:`ProtobufText.text` returns None then.
"""

from __future__ import annotations

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.string cimport memcmp, memcpy, memset
from kdump.kernel.json_text cimport AROUND, JsonText, Text

KINDS = (
    *("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum", "double", "float"),
    *("fixed32", "sfixed32", "fixed64", "sfixed64", "string", "bytes", "message"),
)
"""The kinds of fields."""
LABELS = ("implicit", "repeated", "map", "present")
"""How a field comes: without presence, several times, as entries of a map, with presence."""
MESSAGES = ("object", "wrapper", "timestamp", "duration", "other")
"""How a message is written: \"other\" is left to the general path."""
MAX_FIELDS = 64
"""How many fields a message may have here."""

cdef enum:
    INT32, INT64, UINT32, UINT64, SINT32, SINT64, BOOL, ENUM, DOUBLE, FLOAT
    FIXED32, SFIXED32, FIXED64, SFIXED64, STRING, BYTES, MESSAGE

cdef enum:
    IMPLICIT, REPEATED, MAP, PRESENT

cdef enum:
    OBJECT, WRAPPER, TIMESTAMP, DURATION, OTHER

cdef struct Field:
    unsigned int number
    int kind
    int label
    int target  # a message, or the first name of an enum
    int count  # names of an enum
    bint closed  # an enum that knows its numbers alone
    int oneof  # from 1; 0 for none
    Text name  # quoted, with a colon
    Text default

cdef struct Message:
    int kind
    int first
    int count

cdef struct Name:
    int number
    Text text

# Where a field lies first in a message, after its tag; how often it is there.
cdef struct Found:
    Py_ssize_t at
    int times
    unsigned int wire

cdef int _MAX_LEVEL = 60
cdef int _MAX_KEYS = 32  # of a map, whose keys are compared with each other
cdef int _MAX_LISTS = 16  # a message is walked again for each


@cython.final
cdef class ProtobufText(JsonText):
    """Writes payloads of one message. ``indexes`` are the bytes before it that name it."""

    cdef Message* messages
    cdef Field* fields
    cdef Name* names
    cdef list kept
    cdef bytes indexes

    def __cinit__(self, messages, fields, names, indexes, quote):
        cdef int index
        self.quote = quote
        self.indexes = indexes
        self.kept = [fields, names]
        self.messages = <Message*> PyMem_Malloc(max(1, len(messages)) * sizeof(Message))
        self.fields = <Field*> PyMem_Malloc(max(1, len(fields)) * sizeof(Field))
        self.names = <Name*> PyMem_Malloc(max(1, len(names)) * sizeof(Name))
        if not (self.messages and self.fields and self.names):
            raise MemoryError
        for index, (kind, first, count) in enumerate(messages):
            self.messages[index] = Message(kind, first, count)
        for index, (number, kind, label, target, count, closed, oneof, name, default) in enumerate(fields):
            self.fields[index] = Field(
                number, kind, label, target, count, closed, oneof, _text(name), _text(default)
            )
        for index, (number, name) in enumerate(names):
            self.names[index] = Name(number, _text(name))

    def __dealloc__(self):
        PyMem_Free(self.messages)
        PyMem_Free(self.fields)
        PyMem_Free(self.names)

    def text(self, bytes payload, Py_ssize_t position):
        """Return the message after ``position`` as JSON; None leaves it to the general path."""
        cdef Py_ssize_t size = len(self.indexes)
        self.begin(payload, position)
        if size > self.end - position or memcmp(&self.data[position], PyBytes_AS_STRING(self.indexes), size):
            return None
        self.at += size
        return self.made() if self.message(0, self.end, 0) else None

    cdef bint varint(self, unsigned long long* value, Py_ssize_t end) noexcept:
        """Read a varint of 64 bits before ``end``; return whether there is one."""
        cdef unsigned long long bits = 0
        cdef int shift = 0
        cdef unsigned char byte
        while self.at < end and shift <= 63:
            byte = self.data[self.at]
            self.at += 1
            bits |= <unsigned long long> (byte & 127) << shift
            if byte < 128:
                value[0] = bits
                return True
            shift += 7
        return False

    cdef bint span(self, Py_ssize_t* after, Py_ssize_t end) noexcept:
        """Read a length, and tell where the bytes after it end."""
        cdef unsigned long long size = 0
        if not self.varint(&size, end) or size > <unsigned long long> (end - self.at):
            return False
        after[0] = self.at + <Py_ssize_t> size
        return True

    cdef bint skip(self, unsigned int wire, Py_ssize_t end) noexcept:
        """Pass a value of a wire type that is no group."""
        cdef unsigned long long value = 0
        cdef Py_ssize_t after = 0
        if wire == 0:
            return self.varint(&value, end)
        if wire == 2:
            if not self.span(&after, end):
                return False
            self.at = after
            return True
        after = self.at + (8 if wire == 1 else 4)
        if (wire != 1 and wire != 5) or after > end:
            return False
        self.at = after
        return True

    cdef int find(self, Message* message, unsigned int number, int after) noexcept:
        """Return the place of a field among those of its message, -1 for one that is not there.

        ``after`` is the place where it probably is.
        """
        cdef int place = after
        for _ in range(message.count):
            if place >= message.count:
                place = 0
            if self.fields[message.first + place].number == number:
                return place
            place += 1
        return -1

    cdef bint walk(self, Message* message, Py_ssize_t end, Found* found, int* order, int* present) noexcept:
        """Find the fields of a message up to ``end``; return whether all of them are known, and sound as far as seen."""
        cdef unsigned long long tag = 0
        cdef int place = -1
        cdef int other
        cdef unsigned int wire
        cdef Field* field
        while self.at < end:
            if not self.varint(&tag, end) or tag >> 32:
                return False
            place = self.find(message, <unsigned int> (tag >> 3), place + 1)
            if place < 0:
                return False
            field = &self.fields[message.first + place]
            wire = tag & 7
            if wire != _wire(field.kind) and not (field.label == REPEATED and wire == 2):
                return False
            if found[place].times and (field.label == IMPLICIT or field.label == PRESENT):
                return False
            if field.label == PRESENT:
                if field.oneof:
                    for other in range(present[0]):
                        if self.fields[message.first + order[other]].oneof == field.oneof:
                            return False
                order[present[0]] = place
                present[0] += 1
            if not found[place].times:
                found[place].at, found[place].wire = self.at, wire
            found[place].times += 1
            if not self.skip(wire, end):
                return False
        return True

    cdef int message(self, int index, Py_ssize_t end, int level) except -1:
        """Write the message that lies before ``end``; return whether it could be written here."""
        cdef Message* message = &self.messages[index]
        cdef Found[64] found
        cdef int[64] order
        cdef int present = 0
        cdef int lists = 0
        cdef int done = 0
        cdef int place
        cdef int turn
        cdef Field* field
        if level > _MAX_LEVEL or message.kind == OTHER:
            return False
        memset(found, 0, message.count * sizeof(Found))
        if not self.walk(message, end, found, order, &present):
            return False
        if message.kind == TIMESTAMP or message.kind == DURATION:
            if not self.time(message.kind, found, end):
                return False
            self.at = end
            return True
        if message.kind == OBJECT:
            self.character(123)
        for place in range(message.count):
            field = &self.fields[message.first + place]
            if field.label == PRESENT:
                continue
            if message.kind == OBJECT:
                if done:
                    self.character(44)
                self.literal(field.name)
            done += 1
            if not found[place].times:
                self.literal(field.default)
            elif field.label == IMPLICIT:
                self.at = found[place].at
                if not self.value(field, end, level):
                    return False
            else:
                lists += 1
                if lists > _MAX_LISTS or not self.items(field, message, found[place], end, level):
                    return False
        for turn in range(present):
            field = &self.fields[message.first + order[turn]]
            if done:
                self.character(44)
            done += 1
            self.literal(field.name)
            self.at = found[order[turn]].at
            if not self.value(field, end, level):
                return False
        if message.kind == OBJECT:
            self.character(125)
        self.at = end
        return True

    cdef int items(self, Field* field, Message* message, Found found, Py_ssize_t end, int level) except -1:
        """Write what a list or a map holds, from its first place in the message on."""
        cdef unsigned long long tag = 0
        cdef Py_ssize_t after = 0
        cdef Py_ssize_t[32] keys
        cdef Py_ssize_t[32] sizes
        cdef int done = 0
        cdef int left = found.times
        cdef unsigned int wire = found.wire
        cdef bint is_first = True
        self.character(123 if field.label == MAP else 91)
        self.at = found.at
        while left:
            if is_first:
                is_first = False
            else:
                if not self.varint(&tag, end):
                    return False
                wire = tag & 7
                if tag >> 3 != field.number:
                    if not self.skip(wire, end):
                        return False
                    continue
            left -= 1
            if field.label == MAP:
                if done >= _MAX_KEYS or not self.span(&after, end):
                    return False
                if done:
                    self.character(44)
                if not self.entry(field, after, keys, sizes, done, level):
                    return False
                self.at = after
                done += 1
                continue
            if wire == 2 and _wire(field.kind) != 2:
                if not self.span(&after, end):
                    return False
                while self.at < after:
                    if done:
                        self.character(44)
                    done = 1
                    if not self.value(field, after, level):
                        return False
                continue
            if done:
                self.character(44)
            done = 1
            if not self.value(field, end, level):
                return False
        self.character(125 if field.label == MAP else 93)
        return True

    cdef int entry(
        self, Field* field, Py_ssize_t end, Py_ssize_t* keys, Py_ssize_t* sizes, int done, int level
    ) except -1:
        """Write an entry of a map. ``keys`` and ``sizes`` say where the keys before it were written."""
        cdef Message* message = &self.messages[field.target]
        cdef Field* key = &self.fields[message.first]
        cdef Field* value = &self.fields[message.first + 1]
        cdef Found[2] found
        cdef int[2] order
        cdef int present = 0
        cdef int other
        cdef Py_ssize_t begin = self.used
        cdef bint bare
        memset(found, 0, sizeof(found))
        if level >= _MAX_LEVEL or not self.walk(message, end, found, order, &present):
            return False
        if not found[0].times:
            self.literal(key.default)
        else:
            bare = key.kind != STRING and _is_bare(key.kind)
            if bare:
                self.character(34)
            self.at = found[0].at
            if not self.value(key, end, level):
                return False
            if bare:
                self.character(34)
        for other in range(done):
            if sizes[other] == self.used - begin and not memcmp(
                &self.out[keys[other]], &self.out[begin], self.used - begin
            ):
                return False
        keys[done], sizes[done] = begin, self.used - begin
        self.character(58)
        if not found[1].times:
            if value.kind != MESSAGE:
                return self.literal(value.default)
            self.at = end
            return self.message(value.target, end, level + 1)
        self.at = found[1].at
        return self.value(value, end, level + 1)

    cdef int value(self, Field* field, Py_ssize_t end, int level) except -1:
        """Write the value of a field that begins at ``at``."""
        cdef unsigned long long bits = 0
        cdef Py_ssize_t after = 0
        cdef unsigned int word
        if field.kind == STRING or field.kind == BYTES or field.kind == MESSAGE:
            if not self.span(&after, end):
                return False
            if field.kind == MESSAGE:
                return self.message(field.target, after, level + 1)
            return self.string(after - self.at) if field.kind == STRING else self.binary_text(after - self.at)
        if field.kind == DOUBLE or field.kind == FLOAT:
            if end - self.at < (8 if field.kind == DOUBLE else 4):
                return False
            return self.real(8 if field.kind == DOUBLE else 4, field.kind == FLOAT)
        self.reserve(AROUND)
        if field.kind == FIXED32 or field.kind == SFIXED32:
            if end - self.at < 4:
                return False
            memcpy(&word, &self.data[self.at], 4)
            self.at += 4
            self.digits(<long long> <int> word if field.kind == SFIXED32 else <long long> word)
            return True
        if field.kind == FIXED64 or field.kind == SFIXED64:
            if end - self.at < 8:
                return False
            memcpy(&bits, &self.data[self.at], 8)
            self.at += 8
            self.wide(bits, field.kind == SFIXED64)
            return True
        if not self.varint(&bits, end):
            return False
        if field.kind == INT32:
            self.digits(<int> <unsigned int> bits)
        elif field.kind == UINT32:
            self.digits(<long long> (bits & 0xFFFFFFFF))
        elif field.kind == SINT32:
            word = <unsigned int> bits
            self.digits(<int> (word >> 1 ^ -(word & 1)))
        elif field.kind == INT64:
            self.wide(bits, True)
        elif field.kind == UINT64:
            self.wide(bits, False)
        elif field.kind == SINT64:
            self.wide(bits >> 1 ^ -(bits & 1), True)
        elif field.kind == BOOL:
            if bits:
                memcpy(&self.out[self.used], <char*> b"true", 4)
                self.used += 4
            else:
                memcpy(&self.out[self.used], <char*> b"false", 5)
                self.used += 5
        else:
            return self.enumerated(field, <int> <unsigned int> bits)
        return True

    cdef int enumerated(self, Field* field, int number) except -1:
        """Write the name of a number of an enum."""
        cdef int index
        for index in range(field.count):
            if self.names[field.target + index].number == number:
                return self.literal(self.names[field.target + index].text)
        if field.closed:
            return False
        self.digits(number)
        return True

    cdef void wide(self, unsigned long long value, bint signed_) noexcept:
        """Write a number of 64 bits, which JSON has as a text."""
        self.out[self.used] = 34
        self.used += 1
        if signed_ or not value >> 63:
            self.digits(<long long> value)
        else:
            self.digits(<long long> (value // 10))
            self.out[self.used] = <unsigned char> (48 + value % 10)
            self.used += 1
        self.out[self.used] = 34
        self.used += 1

    cdef int time(self, int kind, Found* found, Py_ssize_t end) except -1:
        """Write a Timestamp or a Duration: its seconds are field 0, its nanoseconds field 1."""
        cdef unsigned long long bits = 0
        cdef long long seconds = 0
        cdef long long nanos = 0
        if found[0].times:
            self.at = found[0].at
            if not self.varint(&bits, end):
                return False
            seconds = <long long> bits
        if found[1].times:
            self.at = found[1].at
            if not self.varint(&bits, end):
                return False
            nanos = <int> <unsigned int> bits
        self.reserve(2 * AROUND)
        self.out[self.used] = 34
        self.used += 1
        if kind == TIMESTAMP:
            if not 0 <= nanos < 1_000_000_000 or not self.moment(seconds):
                return False
        else:
            if not -315_576_000_000 <= seconds <= 315_576_000_000 or not -1_000_000_000 < nanos < 1_000_000_000:
                return False
            if (seconds < 0 and nanos > 0) or (nanos < 0 and seconds > 0):
                return False
            if seconds < 0 or nanos < 0:
                self.out[self.used] = 45
                self.used += 1
                seconds, nanos = -seconds, -nanos
            self.digits(seconds)
        if nanos:
            if nanos % 1_000_000 == 0:
                self.fraction(nanos // 1_000_000, 3)
            elif nanos % 1000 == 0:
                self.fraction(nanos // 1000, 6)
            else:
                self.fraction(nanos, 9)
        self.out[self.used] = 90 if kind == TIMESTAMP else 115
        self.out[self.used + 1] = 34
        self.used += 2
        return True


cdef Text _text(bytes text):
    return Text(PyBytes_AS_STRING(text), len(text))


cdef unsigned int _wire(int kind) noexcept:
    """Return the wire type of a kind."""
    if kind <= ENUM:
        return 0
    if kind == DOUBLE or kind == FIXED64 or kind == SFIXED64:
        return 1
    return 2 if kind >= STRING else 5


cdef bint _is_bare(int kind) noexcept:
    """Tell whether JSON has values of a kind without quotes."""
    return not (kind == INT64 or kind == UINT64 or kind == SINT64 or kind == FIXED64 or kind == SFIXED64)
