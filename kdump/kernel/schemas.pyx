# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The JSON text of Avro and Protobuf payloads, written directly from their bytes.

An Avro schema is a list of nodes, a Protobuf schema a list of messages with their fields. Both are tables that
:mod:`kdump.schemas.kernel_tables` makes. One pass over a Protobuf message finds its fields. They are written in the
order of the general path: fields without presence, lists, maps, then fields with presence in the order of the payload.

The methods ``text`` return None for a malformed payload and for rare cases, and the general path reads the payload.
Rare cases in Protobuf are for example unknown fields, and several occurrences of a field that is not repeated.
"""

from __future__ import annotations

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.string cimport memcmp, memcpy, memset
from kdump.kernel.calendar cimport Date, date_of
from kdump.kernel.texts cimport base64

cdef extern from "Python.h":
    char* PyOS_double_to_string(double value, char format_code, int precision, int flags, int* kind) except NULL
    double PyOS_string_to_double(const char* text, char** end, object overflow) except? -1.0
    int Py_DTSF_ADD_DOT_0

cdef enum:
    AROUND = 64  # maximum number of bytes of a number or a time

cdef struct Text:
    char* data
    Py_ssize_t size

cdef double _ENDLESS = 2.0**128 - 2.0**103  # the smallest number that rounds to infinity in 4 bytes
cdef long long _DAY = 86_400
cdef long long _FIRST_DAY = -719_162  # 0001-01-01
cdef long long _LAST_DAY = 2_932_896  # 9999-12-31


cdef class JsonText:
    """Writes values of a payload to one buffer. ``quote`` is called for texts that need escapes or are not ASCII.

    The methods that read increase ``at``, and return False if the general path must read the value.
    """

    cdef object quote
    cdef unsigned char* out
    cdef Py_ssize_t used
    cdef Py_ssize_t room
    cdef const unsigned char* data
    cdef Py_ssize_t at
    cdef Py_ssize_t end

    def __cinit__(self, *_, **__):
        self.room = 1024
        self.out = <unsigned char*> PyMem_Malloc(self.room)
        if not self.out:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.out)

    cdef void begin(self, bytes payload, Py_ssize_t position):
        """Start at a position in a payload, with an empty buffer."""
        self.data = <const unsigned char*> PyBytes_AS_STRING(payload)
        self.at, self.end, self.used = position, len(payload), 0

    cdef object made(self):
        return PyBytes_FromStringAndSize(<char*> self.out, self.used)

    cdef bint reserve(self, Py_ssize_t size) except False:
        cdef unsigned char* grown
        if self.used + size > self.room:
            grown = <unsigned char*> PyMem_Realloc(self.out, 2 * (self.used + size))
            if grown == NULL:
                raise MemoryError
            self.out = grown
            self.room = 2 * (self.used + size)
        return True

    cdef bint literal(self, Text text) except False:
        self.reserve(text.size)
        memcpy(&self.out[self.used], text.data, text.size)
        self.used += text.size
        return True

    cdef bint character(self, unsigned char one) except False:
        self.reserve(1)
        self.out[self.used] = one
        self.used += 1
        return True

    cdef int string(self, Py_ssize_t size) except -1:
        """Write the next ``size`` bytes of the payload as a string. They must exist."""
        cdef const unsigned char* text = &self.data[self.at]
        cdef unsigned char* out
        cdef unsigned char byte
        cdef unsigned char odd = 0
        cdef Py_ssize_t place
        self.reserve(size + 2)
        out = &self.out[self.used]
        out[0] = 34
        for place in range(size):
            byte = text[place]
            odd |= (<unsigned char> (byte - 32) > 94) | (byte == 34) | (byte == 92)
            out[place + 1] = byte
        out[size + 1] = 34
        self.at += size
        if not odd:
            self.used += size + 2
            return True
        try:
            shown = self.quote(PyBytes_FromStringAndSize(<char*> text, size).decode()).encode()
        except UnicodeError:
            return False
        return self.literal(Text(PyBytes_AS_STRING(shown), len(shown)))

    cdef int binary_text(self, Py_ssize_t size) except -1:
        """Write the next ``size`` bytes of the payload in base64. They must exist."""
        self.reserve(2 * size + 8)
        self.out[self.used] = 34
        self.used = base64(&self.out[self.used + 1], &self.data[self.at], size) - self.out
        self.out[self.used] = 34
        self.used += 1
        self.at += size
        return True

    cdef int real(self, int size, bint is_short) except -1:
        """Write a floating-point number of 4 or 8 bytes. ``is_short``: the fewest of 6 to 9 digits."""
        cdef float single
        cdef double value
        cdef double rounded
        cdef char* shown
        cdef int digits
        if size > self.end - self.at:
            return False
        if size == 4:
            memcpy(&single, &self.data[self.at], 4)
            value = single
        else:
            memcpy(&value, &self.data[self.at], 8)
        if value - value != 0:
            return False
        self.at += size
        if is_short:
            for digits in range(6, 10):
                shown = PyOS_double_to_string(value, b"g", digits, 0, NULL)
                try:
                    rounded = PyOS_string_to_double(shown, NULL, None)
                finally:
                    PyMem_Free(shown)
                if -_ENDLESS < rounded < _ENDLESS and <float> rounded == single:
                    value = rounded
                    break
        shown = PyOS_double_to_string(value, b"r", 0, Py_DTSF_ADD_DOT_0, NULL)
        digits = 0
        self.reserve(AROUND)
        while shown[digits]:
            self.out[self.used] = shown[digits]
            self.used += 1
            digits += 1
        PyMem_Free(shown)
        return True

    cdef int moment(self, long long seconds) noexcept:
        """Write seconds since 1970 as date and time of day, without fraction and time zone."""
        cdef long long day = seconds // _DAY
        seconds %= _DAY
        if seconds < 0:
            seconds += _DAY
            day -= 1
        if not self.date(day):
            return False
        self.out[self.used] = 84
        self.used += 1
        return self.clock(seconds)

    cdef int clock(self, long long second) noexcept:
        if not 0 <= second < _DAY:
            return False
        self.two(second // 3600, 58)
        self.two(second // 60 % 60, 58)
        self.two(second % 60, 0)
        self.used -= 1
        return True

    cdef void fraction(self, long long value, int digits) noexcept:
        """Write a decimal point, and ``value`` as the ``digits`` digits after it."""
        cdef int place
        self.out[self.used] = 46
        self.used += 1
        for place in range(digits):
            self.out[self.used + digits - 1 - place] = <unsigned char> (48 + value % 10)
            value //= 10
        self.used += digits

    cdef void two(self, long long value, unsigned char after) noexcept:
        self.out[self.used] = <unsigned char> (48 + value // 10)
        self.out[self.used + 1] = <unsigned char> (48 + value % 10)
        self.out[self.used + 2] = after
        self.used += 3

    cdef int date(self, long long day) noexcept:
        if not _FIRST_DAY <= day <= _LAST_DAY:
            return False
        cdef Date date = date_of(day)
        self.two(date.year // 100, 0)
        self.used -= 1
        self.two(date.year % 100, 45)
        self.two(date.month, 45)
        self.two(date.day, 0)
        self.used -= 1
        return True

    cdef void digits(self, long long value) noexcept:
        cdef unsigned char[24] reverse
        cdef int count = 0
        cdef unsigned long long left = <unsigned long long> value
        if value < 0:
            self.out[self.used] = 45
            self.used += 1
            left = 0 - left
        while True:
            reverse[count] = <unsigned char> (48 + left % 10)
            count += 1
            left //= 10
            if left == 0:
                break
        while count:
            count -= 1
            self.out[self.used] = reverse[count]
            self.used += 1


AVRO_KINDS = (
    *("null", "boolean", "int", "long", "float", "double", "string", "bytes", "fixed", "enum", "record", "array", "map"),
    *("union", "decimal", "fixed_decimal", "date", "time", "timestamp", "uuid", "duration"),
)
"""The kinds of nodes of an Avro schema."""

cdef enum:
    NULL_, BOOLEAN, INT, LONG, AVRO_FLOAT, AVRO_DOUBLE, AVRO_STRING, AVRO_BYTES, FIXED, AVRO_ENUM, RECORD, ARRAY, AVRO_MAP
    UNION, DECIMAL, FIXED_DECIMAL, DATE, TIME, AVRO_TIMESTAMP, UUID, AVRO_DURATION

cdef struct Node:
    int kind
    long long number  # first text of a record; scale of a decimal; digits of a time, plus 16 for a local timestamp
    int first  # first index in links and texts
    int count
    long long size  # bytes of a fixed type; 4 for a time in an int

cdef int _AVRO_LEVELS = 200  # maximum depth of records, arrays and maps, as in the general path
cdef int _MAX_KEYS = 32  # maximum number of keys of a map, because each is compared with all others


@cython.final
cdef class AvroText(JsonText):
    """Writes payloads of one schema."""

    cdef Node* nodes
    cdef int* links
    cdef Text* texts
    cdef list kept

    def __cinit__(self, nodes, links, texts, quote):
        cdef int index
        self.quote = quote
        self.kept = list(texts)
        self.nodes = <Node*> PyMem_Malloc(max(1, len(nodes)) * sizeof(Node))
        self.links = <int*> PyMem_Malloc(max(1, len(links)) * sizeof(int))
        self.texts = <Text*> PyMem_Malloc(max(1, len(texts)) * sizeof(Text))
        if not (self.nodes and self.links and self.texts):
            raise MemoryError
        for index, (kind, number, first, count, size) in enumerate(nodes):
            self.nodes[index] = Node(kind, number, first, count, size)
        for index, link in enumerate(links):
            self.links[index] = link
        for index, text in enumerate(self.kept):
            self.texts[index] = Text(PyBytes_AS_STRING(text), len(text))

    def __dealloc__(self):
        PyMem_Free(self.nodes)
        PyMem_Free(self.links)
        PyMem_Free(self.texts)

    def text(self, bytes payload, Py_ssize_t position):
        """Return the value from ``position`` to the end of the payload as JSON, or None for the general path."""
        self.begin(payload, position)
        if not self.write(0, 0) or self.at != self.end:
            return None
        return self.made()

    cdef bint varint(self, long long* value) noexcept:
        """Read a zigzag varint of at most 64 bits. Return whether it is valid."""
        cdef unsigned long long bits = 0
        cdef int shift = 0
        cdef unsigned char byte
        while self.at < self.end:
            byte = self.data[self.at]
            self.at += 1
            if shift == 63 and byte > 1:
                return False
            bits |= <unsigned long long> (byte & 127) << shift
            if byte < 128:
                value[0] = <long long> (bits >> 1) ^ -<long long> (bits & 1)
                return True
            shift += 7
            if shift > 63:
                return False
        return False

    cdef bint length(self, Py_ssize_t* size) noexcept:
        """Read a length. Return whether the payload has as many bytes left."""
        cdef long long value
        if not self.varint(&value) or value < 0 or value > self.end - self.at:
            return False
        size[0] = value
        return True

    cdef int write(self, int index, int level) except -1:
        """Write the value of a node. Return whether the kernel could do it."""
        cdef Node* node = &self.nodes[index]
        cdef long long value = 0
        cdef Py_ssize_t size = 0
        cdef int field
        if node.kind == RECORD:
            if level > _AVRO_LEVELS:
                return False
            for field in range(node.count):
                self.literal(self.texts[node.number + field])
                if not self.write(self.links[node.first + field], level + 1):
                    return False
            return self.literal(self.texts[node.number + node.count])
        if node.kind == UNION:
            if not self.varint(&value) or value < 0 or value >= node.count:
                return False
            return self.write(self.links[node.first + value], level)
        if node.kind == ARRAY or node.kind == AVRO_MAP:
            return self.items(node, level)
        if node.kind == AVRO_STRING:
            return self.length(&size) and self.string(size)
        self.reserve(AROUND)
        if node.kind == NULL_:
            memcpy(&self.out[self.used], <char*> b"null", 4)
            self.used += 4
            return True
        if node.kind == BOOLEAN:
            return self.boolean()
        if node.kind == INT or node.kind == LONG or DATE <= node.kind <= AVRO_TIMESTAMP:
            return self.varint(&value) and self.whole(node, value)
        if node.kind == AVRO_FLOAT or node.kind == AVRO_DOUBLE:
            return self.real(4 if node.kind == AVRO_FLOAT else 8, False)
        if node.kind == AVRO_ENUM:
            if not self.varint(&value) or value < 0 or value >= node.count:
                return False
            return self.literal(self.texts[node.first + value])
        if node.kind == AVRO_BYTES or node.kind == DECIMAL:
            if not self.length(&size):
                return False
        else:
            size = node.size
            if size > self.end - self.at:
                return False
        return self.binary(node, size)

    cdef int items(self, Node* node, int level) except -1:
        cdef long long count
        cdef long long size
        cdef Py_ssize_t done = 0
        cdef Py_ssize_t length
        cdef Py_ssize_t other
        cdef Py_ssize_t[32] keys
        cdef Py_ssize_t[32] sizes
        cdef bint is_map = node.kind == AVRO_MAP
        if level > _AVRO_LEVELS:
            return False
        self.character(123 if is_map else 91)
        while True:
            if not self.varint(&count):
                return False
            if count == 0:
                break
            if count < 0:
                if not self.varint(&size) or size < 0 or size > self.end - self.at or count == -count:
                    return False
                count = -count
            if count > self.end - self.at or (is_map and done + count > _MAX_KEYS):
                return False
            for _ in range(count):
                if done:
                    self.character(44)
                if is_map:
                    if not self.length(&length):
                        return False
                    for other in range(done):
                        if sizes[other] == length and not memcmp(&self.data[keys[other]], &self.data[self.at], length):
                            return False
                    keys[done], sizes[done] = self.at, length
                    if not self.string(length):
                        return False
                    self.character(58)
                if not self.write(self.links[node.first], level + 1):
                    return False
                done += 1
        self.character(125 if is_map else 93)
        return True

    cdef int boolean(self) noexcept:
        if self.at >= self.end or self.data[self.at] > 1:
            return False
        if self.data[self.at]:
            memcpy(&self.out[self.used], <char*> b"true", 4)
            self.used += 4
        else:
            memcpy(&self.out[self.used], <char*> b"false", 5)
            self.used += 5
        self.at += 1
        return True

    cdef int whole(self, Node* node, long long value) noexcept:
        """Write a whole number as its logical type requires."""
        if (node.kind == INT or node.kind == DATE or node.size == 4) and not -(1LL << 31) <= value < 1LL << 31:
            return False
        if node.kind == INT or node.kind == LONG:
            self.digits(value)
            return True
        self.out[self.used] = 34
        self.used += 1
        if node.kind == DATE:
            if not self.date(value):
                return False
        elif not self.time(node, value):
            return False
        self.out[self.used] = 34
        self.used += 1
        return True

    cdef int time(self, Node* node, long long value) noexcept:
        """Write a time of day or a timestamp."""
        cdef int digits = node.number & 15
        cdef long long unit = 1
        cdef long long fraction
        for _ in range(digits):
            unit *= 10
        fraction = value % unit
        value //= unit
        if fraction < 0:
            fraction += unit
            value -= 1
        if not (self.moment(value) if node.kind == AVRO_TIMESTAMP else self.clock(value)):
            return False
        self.fraction(fraction, digits)
        if node.kind == AVRO_TIMESTAMP and not node.number & 16:
            self.out[self.used] = 90
            self.used += 1
        return True

    cdef int binary(self, Node* node, Py_ssize_t size) except -1:
        """Write the next ``size`` bytes in base64, or as their logical type requires. They must exist."""
        cdef const unsigned char* data = &self.data[self.at]
        cdef int place
        cdef unsigned int part
        if node.kind == AVRO_BYTES or node.kind == FIXED:
            return self.binary_text(size)
        self.at += size
        if node.kind == DECIMAL or node.kind == FIXED_DECIMAL:
            return self.decimal(node.number, data, size)
        self.reserve(2 * size + AROUND)
        self.out[self.used] = 34
        self.used += 1
        if node.kind == UUID:
            for place in range(16):
                if place in (4, 6, 8, 10):
                    self.out[self.used] = 45
                    self.used += 1
                self.out[self.used] = <unsigned char> b"0123456789abcdef"[data[place] >> 4]
                self.out[self.used + 1] = <unsigned char> b"0123456789abcdef"[data[place] & 15]
                self.used += 2
        else:
            self.used -= 1
            for place in range(3):
                self.literal(self.texts[node.first + place])
                part = data[4 * place] | data[4 * place + 1] << 8 | data[4 * place + 2] << 16
                self.reserve(AROUND)
                self.digits(<long long> part + (<long long> data[4 * place + 3] << 24))
            return self.literal(self.texts[node.first + 3])
        self.out[self.used] = 34
        self.used += 1
        return True

    cdef int decimal(self, long long scale, const unsigned char* data, Py_ssize_t size) except -1:
        """Write a decimal of at most 8 bytes with all digits of its scale."""
        cdef long long value = 0
        cdef unsigned long long left
        cdef unsigned char[24] reverse
        cdef int count = 0
        cdef Py_ssize_t place
        if size > 8 or scale > 18:
            return False
        if size and data[0] & 128:
            value = -1
        for place in range(size):
            value = <long long> (<unsigned long long> value << 8 | data[place])
        self.out[self.used] = 34
        self.used += 1
        left = <unsigned long long> value
        if value < 0:
            self.out[self.used] = 45
            self.used += 1
            left = 0 - left
        while left or count <= scale:
            reverse[count] = <unsigned char> (48 + left % 10)
            count += 1
            left //= 10
        while count:
            if count == scale:
                self.out[self.used] = 46
                self.used += 1
            count -= 1
            self.out[self.used] = reverse[count]
            self.used += 1
        self.out[self.used] = 34
        self.used += 1
        return True


PROTOBUF_KINDS = (
    *("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum", "double", "float"),
    *("fixed32", "sfixed32", "fixed64", "sfixed64", "string", "bytes", "message"),
)
"""The types of fields."""
LABELS = ("implicit", "repeated", "map", "present")
"""The labels of fields: without presence, repeated, entries of a map, with presence."""
MESSAGES = ("object", "wrapper", "timestamp", "duration", "other")
"""The kinds of messages. The general path reads the kind \"other\"."""
MAX_FIELDS = 64
"""Maximum number of fields of a message that the kernel reads."""

cdef enum:
    INT32, INT64, UINT32, UINT64, SINT32, SINT64, BOOL, PROTOBUF_ENUM, PROTOBUF_DOUBLE, PROTOBUF_FLOAT
    FIXED32, SFIXED32, FIXED64, SFIXED64, PROTOBUF_STRING, PROTOBUF_BYTES, MESSAGE

cdef enum:
    IMPLICIT, REPEATED, PROTOBUF_MAP, PRESENT

cdef enum:
    OBJECT, WRAPPER, PROTOBUF_TIMESTAMP, PROTOBUF_DURATION, OTHER

cdef struct Field:
    unsigned int number
    int kind
    int label
    int target  # index of a message, or of the first name of an enum
    int count  # number of names of an enum
    bint closed  # whether it is a closed enum
    int oneof  # number of its oneof, from 1 on; 0 without one
    Text name  # with quotes and a colon
    Text default

cdef struct Message:
    int kind
    int first
    int count

cdef struct Name:
    int number
    Text text

# The position of a field's first occurrence in a message, after its tag, and its number of occurrences.
cdef struct Found:
    Py_ssize_t at
    int times
    unsigned int wire

cdef int _PROTOBUF_LEVELS = 60
cdef int _MAX_LISTS = 16  # maximum number of lists and maps, because each needs another pass over the message


@cython.final
cdef class ProtobufText(JsonText):
    """Writes payloads of one type of message. ``indexes`` are the message indexes, the bytes before the message."""

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
        """Return the message after ``position`` as JSON, or None for the general path."""
        cdef Py_ssize_t size = len(self.indexes)
        self.begin(payload, position)
        if size > self.end - position or memcmp(&self.data[position], PyBytes_AS_STRING(self.indexes), size):
            return None
        self.at += size
        return self.made() if self.message(0, self.end, 0) else None

    cdef bint varint(self, unsigned long long* value, Py_ssize_t end) noexcept:
        """Read a varint of up to 64 bits before ``end``. Return whether it is valid."""
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
        """Read a length, and set ``after`` to the end of the bytes that follow. Return whether they exist."""
        cdef unsigned long long size = 0
        if not self.varint(&size, end) or size > <unsigned long long> (end - self.at):
            return False
        after[0] = self.at + <Py_ssize_t> size
        return True

    cdef bint skip(self, unsigned int wire, Py_ssize_t end) noexcept:
        """Skip a value. Return whether its wire type is known and not a group, and whether it is complete."""
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
        """Return the index of a field in its message, or -1 for an unknown field. ``after`` is the probable index."""
        cdef int place = after
        for _ in range(message.count):
            if place >= message.count:
                place = 0
            if self.fields[message.first + place].number == number:
                return place
            place += 1
        return -1

    cdef bint walk(self, Message* message, Py_ssize_t end, Found* found, int* order, int* present) noexcept:
        """Find the fields of a message up to ``end``. Return whether all are known and complete."""
        cdef unsigned long long tag = 0
        cdef int place = -1
        cdef int other
        cdef unsigned int wire
        cdef Field* field
        cdef Py_ssize_t start
        while self.at < end:
            start = self.at
            if not self.varint(&tag, end) or tag >> 32 or self.at - start > 5:
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
        """Write the message from ``at`` to ``end``. Return whether the kernel could do it."""
        cdef Message* message = &self.messages[index]
        cdef Found[64] found
        cdef int[64] order
        cdef int present = 0
        cdef int lists = 0
        cdef int done = 0
        cdef int place
        cdef int turn
        cdef Field* field
        if level > _PROTOBUF_LEVELS or message.kind == OTHER:
            return False
        memset(found, 0, message.count * sizeof(Found))
        if not self.walk(message, end, found, order, &present):
            return False
        if message.kind == PROTOBUF_TIMESTAMP or message.kind == PROTOBUF_DURATION:
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
        """Write the elements of a list or a map, from the first one in the message on."""
        cdef unsigned long long tag = 0
        cdef Py_ssize_t after = 0
        cdef Py_ssize_t[32] keys
        cdef Py_ssize_t[32] sizes
        cdef int done = 0
        cdef int left = found.times
        cdef unsigned int wire = found.wire
        cdef bint is_first = True
        self.character(123 if field.label == PROTOBUF_MAP else 91)
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
            if field.label == PROTOBUF_MAP:
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
        self.character(125 if field.label == PROTOBUF_MAP else 93)
        return True

    cdef int entry(
        self, Field* field, Py_ssize_t end, Py_ssize_t* keys, Py_ssize_t* sizes, int done, int level
    ) except -1:
        """Write an entry of a map. ``keys`` and ``sizes`` are the positions and sizes of earlier keys in the buffer."""
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
        if level >= _PROTOBUF_LEVELS or not self.walk(message, end, found, order, &present):
            return False
        if not found[0].times:
            self.literal(key.default)
        else:
            bare = key.kind != PROTOBUF_STRING and _is_bare(key.kind)
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
        cdef unsigned long long bits = 0
        cdef Py_ssize_t after = 0
        cdef unsigned int word
        if field.kind == PROTOBUF_STRING or field.kind == PROTOBUF_BYTES or field.kind == MESSAGE:
            if not self.span(&after, end):
                return False
            if field.kind == MESSAGE:
                return self.message(field.target, after, level + 1)
            return self.string(after - self.at) if field.kind == PROTOBUF_STRING else self.binary_text(after - self.at)
        if field.kind == PROTOBUF_DOUBLE or field.kind == PROTOBUF_FLOAT:
            if end - self.at < (8 if field.kind == PROTOBUF_DOUBLE else 4):
                return False
            return self.real(8 if field.kind == PROTOBUF_DOUBLE else 4, field.kind == PROTOBUF_FLOAT)
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
        cdef int index
        for index in range(field.count):
            if self.names[field.target + index].number == number:
                return self.literal(self.names[field.target + index].text)
        if field.closed:
            return False
        self.digits(number)
        return True

    cdef void wide(self, unsigned long long value, bint signed_) noexcept:
        """Write a number of 64 bits as a JSON string."""
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
        """Write a Timestamp or a Duration. Index 0 of ``found`` is the seconds, index 1 the nanoseconds."""
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
        if kind == PROTOBUF_TIMESTAMP:
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
        self.out[self.used] = 90 if kind == PROTOBUF_TIMESTAMP else 115
        self.out[self.used + 1] = 34
        self.used += 2
        return True


cdef Text _text(bytes text):
    return Text(PyBytes_AS_STRING(text), len(text))


cdef unsigned int _wire(int kind) noexcept:
    if kind <= PROTOBUF_ENUM:
        return 0
    if kind == PROTOBUF_DOUBLE or kind == FIXED64 or kind == SFIXED64:
        return 1
    return 2 if kind >= PROTOBUF_STRING else 5


cdef bint _is_bare(int kind) noexcept:
    """Return whether values of a kind have no quotes in JSON."""
    return not (kind == INT64 or kind == UINT64 or kind == SINT64 or kind == FIXED64 or kind == SFIXED64)
