# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The JSON text of Avro payloads, written straight from their bytes.

A schema is a list of nodes (:mod:`kdump.schemas.kernel_avro`). A payload that is broken, or that holds what is rare, is left
to the general path: :meth:`AvroText.text` returns None then.
"""

from __future__ import annotations

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.string cimport memcmp, memcpy
from kdump.kernel.json_text cimport AROUND, JsonText, Text

KINDS = (
    *("null", "boolean", "int", "long", "float", "double", "string", "bytes", "fixed", "enum", "record", "array", "map"),
    *("union", "decimal", "fixed_decimal", "date", "time", "timestamp", "uuid", "duration"),
)
"""The kinds of nodes."""

cdef enum:
    NULL_, BOOLEAN, INT, LONG, FLOAT, DOUBLE, STRING, BYTES, FIXED, ENUM, RECORD, ARRAY, MAP
    UNION, DECIMAL, FIXED_DECIMAL, DATE, TIME, TIMESTAMP, UUID, DURATION

cdef struct Node:
    int kind
    long long number  # bytes of a fixed; scale of a decimal; digits of a time, with 16 for a local timestamp
    int first  # in links and texts
    int count
    long long size  # of a fixed decimal

cdef int _MAX_LEVEL = 200  # of records, arrays and maps, as the general path
cdef int _MAX_KEYS = 32  # of a map whose keys are compared with each other


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
        """Return the value from ``position`` up to the end of the payload as JSON; None leaves it to the general path."""
        self.begin(payload, position)
        if not self.write(0, 0) or self.at != self.end:
            return None
        return self.made()

    cdef bint varint(self, long long* value) noexcept:
        """Read a zigzag varint of at most 64 bits; return whether there is one."""
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
        """Read the length of bytes that are there."""
        cdef long long value
        if not self.varint(&value) or value < 0 or value > self.end - self.at:
            return False
        size[0] = value
        return True

    cdef int write(self, int index, int level) except -1:
        """Write the value of a node; return whether it could be written here."""
        cdef Node* node = &self.nodes[index]
        cdef long long value = 0
        cdef Py_ssize_t size = 0
        cdef int field
        if node.kind == RECORD:
            if level > _MAX_LEVEL:
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
        if node.kind == ARRAY or node.kind == MAP:
            return self.items(node, level)
        if node.kind == STRING:
            return self.length(&size) and self.string(size)
        self.reserve(AROUND)
        if node.kind == NULL_:
            memcpy(&self.out[self.used], <char*> b"null", 4)
            self.used += 4
            return True
        if node.kind == BOOLEAN:
            return self.boolean()
        if node.kind == INT or node.kind == LONG or DATE <= node.kind <= TIMESTAMP:
            return self.varint(&value) and self.whole(node, value)
        if node.kind == FLOAT or node.kind == DOUBLE:
            return self.real(4 if node.kind == FLOAT else 8, False)
        if node.kind == ENUM:
            if not self.varint(&value) or value < 0 or value >= node.count:
                return False
            return self.literal(self.texts[node.first + value])
        if node.kind == BYTES or node.kind == DECIMAL:
            if not self.length(&size):
                return False
        else:
            size = node.size
            if size > self.end - self.at:
                return False
        return self.binary(node, size)

    cdef int items(self, Node* node, int level) except -1:
        """Write an array or a map."""
        cdef long long count
        cdef long long size
        cdef Py_ssize_t done = 0
        cdef Py_ssize_t length
        cdef Py_ssize_t other
        cdef Py_ssize_t[32] keys
        cdef Py_ssize_t[32] sizes
        cdef bint is_map = node.kind == MAP
        if level > _MAX_LEVEL:
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
        """Write a whole number, as what it means."""
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
        """Write a time of day, or one since 1970."""
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
        if not (self.moment(value) if node.kind == TIMESTAMP else self.clock(value)):
            return False
        self.fraction(fraction, digits)
        if node.kind == TIMESTAMP and not node.number & 16:
            self.out[self.used] = 90
            self.used += 1
        return True

    cdef int binary(self, Node* node, Py_ssize_t size) except -1:
        """Write bytes of the payload, which are there: in base64, or as what they mean."""
        cdef const unsigned char* data = &self.data[self.at]
        cdef int place
        cdef unsigned int part
        if node.kind == BYTES or node.kind == FIXED:
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
