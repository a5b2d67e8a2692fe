# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""Messages of Kafka's own topics, read as their schema says.

What is cut off, has a string that is too long or not UTF-8, has tags that the schema does not know, or is followed by
other bytes, is given up on: :mod:`kdump.internal_topics.interpreter` says what is wrong with it.
"""

from kdump.kernel.cursor import RECORD_NUMBERS

cimport cython
from cpython.dict cimport PyDict_Copy, PyDict_SetItem
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memcpy

from kdump.kernel.records cimport Records
from kdump.kernel.words cimport big

cdef int _OFFSET = RECORD_NUMBERS.index("offset")
cdef int _TIMESTAMP = RECORD_NUMBERS.index("timestamp")
cdef int _VALUE_SIZE = RECORD_NUMBERS.index("value_size")
cdef Py_ssize_t _FRAME = 3  # bytes of a frame: its version, the message's type and version, each of one byte
cdef Py_ssize_t _MOST_ELEMENTS = 1_000_000, _MOST_TAGGED = 10_000  # more is left to the interpreter: releases refuse it
_new = tuple.__new__  # what the constructor of a NamedTuple comes down to
cdef int _STRUCT = 0, _STRING = 1, _BYTES = 2, _BOOL = 3, _FLOAT = 4, _UUID = 5, _SIGNED = 6, _UNSIGNED = 7
_KINDS = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), _SIGNED),
    **dict.fromkeys(("uint16", "uint32"), _UNSIGNED),
    **{"string": _STRING, "bytes": _BYTES, "records": _BYTES, "bool": _BOOL, "float64": _FLOAT, "uuid": _UUID},
}


cdef const unsigned char* take(View* view, Py_ssize_t size) except NULL:
    """Return where the next bytes stand, and move on. Raises ValueError when they are not all there."""
    if size < 0 or size > view.end - view.at:
        raise ValueError
    view.at += size
    return view.data + view.at - size


cdef long long number(View* view, Py_ssize_t size) except? -1:
    """Return a signed number. Raises ValueError."""
    return big(take(view, size), <int> size)


cdef Py_ssize_t varint(View* view) except -1:
    """Return an unsigned varint of up to three bytes. Raises ValueError."""
    cdef Py_ssize_t value = 0
    cdef unsigned char byte
    cdef int shift
    for shift in (0, 7, 14):
        byte = take(view, 1)[0]
        value |= <Py_ssize_t> (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise ValueError


@cython.final
cdef class _Field:
    """A field in one version of a message: a ``Slot``."""

    cdef str name
    cdef int kind
    cdef bint array, compact, nullable, tagged
    cdef Py_ssize_t size, tag, longest
    cdef SchemaReader inner

    def __init__(self, slot, sizes, longest):
        self.name = slot.name
        self.kind = _STRUCT if slot.struct is not None else _KINDS[slot.type]
        self.array, self.compact, self.nullable = slot.array, slot.compact, slot.nullable
        self.tagged = slot.tag is not None
        self.tag = -1 if slot.tag is None else slot.tag
        self.size = sizes.get(slot.type, 0)
        self.longest = longest
        self.inner = None if slot.struct is None else SchemaReader(slot.struct, sizes, longest)

    cdef object read(self, View* view):
        """Read the field. Raises ValueError."""
        if self.array:
            return self.elements(view)
        if self.kind == _STRUCT and self.nullable:
            if varint(view) == 0 if self.tagged else number(view, 1) < 0:
                return None
        return self.one(view, self.nullable)

    cdef object one(self, View* view, bint nullable):
        """Read a value, or an element of an array. Raises ValueError."""
        cdef Py_ssize_t size
        cdef const unsigned char* at
        cdef unsigned long long bits
        cdef double value
        if self.kind == _SIGNED:
            return number(view, self.size)
        if self.kind == _STRUCT:
            return self.inner.fields(view)
        if self.kind == _UUID:
            return (<const char*> take(view, 16))[:16]
        if self.kind == _BOOL:
            return take(view, 1)[0] != 0
        if self.kind == _UNSIGNED:
            return number(view, self.size) & ((<long long> 1 << 8 * self.size) - 1)
        if self.kind == _FLOAT:
            bits = <unsigned long long> number(view, 8)
            memcpy(&value, &bits, 8)
            return value
        size = self.length(view, 2 if self.kind == _STRING else 4)
        if size < 0 and nullable:
            return None
        if self.kind == _BYTES:
            return (<const char*> take(view, size))[:size]
        if size > self.longest:
            raise ValueError
        return PyUnicode_DecodeUTF8(<const char*> take(view, size), size, NULL)

    cdef list elements(self, View* view):
        """Read an array. Each element takes one byte at least. Raises ValueError."""
        cdef Py_ssize_t count = self.length(view, 4)
        if count < 0 and self.nullable:
            return None
        if count < 0 or count > view.end - view.at or count > _MOST_ELEMENTS:
            raise ValueError
        return [self.one(view, False) for _ in range(count)]

    cdef Py_ssize_t length(self, View* view, Py_ssize_t size) except? -1:
        """Read a length: -1, or below it, is null."""
        return varint(view) - 1 if self.compact else number(view, size)


@cython.final
cdef class SchemaReader:
    """Reads one version of a message, or of a struct inside it."""

    def __init__(self, schema, sizes, longest):
        """``schema`` is a ``Struct`` of :mod:`kdump.internal_topics.schema`.

        ``sizes`` has the types of a fixed size, in bytes; no string has more than ``longest``.
        """
        self.plain = [_Field(slot, sizes, longest) for slot in schema.plain]
        self.tagged = [_Field(slot, sizes, longest) for slot in schema.tagged.values()]
        self.flexible = schema.flexible
        self.blank = {slot.name: slot.default() for slot in schema.slots}
        self.fresh = [
            (slot.name, slot.default)
            for slot in schema.tagged.values()
            if isinstance(self.blank[slot.name], (list, dict))
        ]

    def read(self, bytes data, Py_ssize_t at):
        """Return the values of a message that fills ``data`` from ``at`` on, None where it is not well-formed."""
        cdef View view
        view.data, view.at, view.end = data, at, len(data)
        return self.whole(&view) if at >= 0 else None

    cdef dict whole(self, View* view):
        """Read the fields up to the end, None where they are not well-formed or end elsewhere."""
        try:
            values = self.fields(view)
        except ValueError:
            return None
        return values if view.at == view.end else None

    cdef dict fields(self, View* view):
        """Read the fields. Raises ValueError."""
        cdef dict values = PyDict_Copy(self.blank)
        cdef Py_ssize_t count
        cdef _Field field
        for field in self.plain:
            PyDict_SetItem(values, field.name, field.read(view))
        for name, default in self.fresh:  # a caller may change it: each message has its own
            values[name] = default()
        if self.flexible:
            count = varint(view)
            if count > _MOST_TAGGED:
                raise ValueError
            for _ in range(count):
                field = <_Field> self.known(varint(view))
                varint(view)  # its size
                PyDict_SetItem(values, field.name, field.read(view))
        return values

    cdef object known(self, Py_ssize_t tag):
        """Return the field of a tag. Raises ValueError."""
        cdef _Field field
        for field in self.tagged:
            if field.tag == tag:
                return field
        raise ValueError


@cython.final
cdef class FramedMessages(Records):
    """Turns the records of batches into messages with a frame in front, decoded."""

    cdef object known, made, other

    def decoded(self, known, made, other):
        """Return the messages of the stacked batches, each as ``made``: offset, timestamp in ms, name, values.

        ``known`` returns the name and the SchemaReader that three bytes of a frame mean, None for none. What is
        not read so is what ``other`` returns for offset, timestamp, key and value. They end as ``stacked`` does.
        """
        self.known, self.made, self.other = known, made, other
        return self.briefs()

    cdef brief(self):
        cdef Py_ssize_t size = self.values[_VALUE_SIZE]
        cdef View view
        if size >= _FRAME:
            found = self.known(self.bytes_at(self.value_at, _FRAME))
            if found is not None:
                view.data, view.at, view.end = &self.data[0], self.value_at + _FRAME, self.value_at + size
                values = (<SchemaReader?> found[1]).whole(&view)
                if values is not None:
                    return _new(self.made, (self.values[_OFFSET], self.values[_TIMESTAMP], found[0], values))
        offset, timestamp, key, value, _ = Records.brief(self)
        return self.other(offset, timestamp, key, value)
