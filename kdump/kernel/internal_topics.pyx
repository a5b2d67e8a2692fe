# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""Reads messages of Kafka's own topics by their schema, and writes them as DumpLogSegments' decoders print them.

:class:`SchemaReader` refuses a message that is truncated or is followed by other bytes. It also refuses strings that
are too long or not UTF-8, and tags that the schema does not have. :mod:`kdump.internal_topics.interpreter` then reads
the message and reports the error. The general path prints such records, and records of unknown types.
"""

from kdump.errors import DamageError
from kdump.kernel.lines import slots
from kdump.kernel.records import RECORD_NUMBERS

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Copy, PyDict_GetItem, PyDict_SetItem
from cpython.object cimport PyObject, PyObject_RichCompareBool, Py_EQ
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.string cimport memcpy
from kdump.kernel.lines cimport Lines, number, reserve
from kdump.kernel.records cimport Records
from kdump.kernel.texts cimport BEYOND, base64, escaped
from kdump.kernel.words cimport big

cdef int _OFFSET = RECORD_NUMBERS.index("offset")
cdef int _TIMESTAMP = RECORD_NUMBERS.index("timestamp")
cdef int _VALUE_SIZE = RECORD_NUMBERS.index("value_size")
cdef Py_ssize_t _FRAME = 3  # bytes of a frame: its version, and the message's type and version
cdef Py_ssize_t _MOST_ELEMENTS = 1_000_000, _MOST_TAGGED = 10_000  # the interpreter reads messages above these limits
_new = tuple.__new__  # faster than the constructor of a NamedTuple
cdef int _STRUCT_KIND = 0, _STRING_KIND = 1, _BYTES_KIND = 2, _BOOL = 3, _FLOAT = 4, _UUID_KIND = 5, _SIGNED = 6, _UNSIGNED = 7
_KINDS = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), _SIGNED),
    **dict.fromkeys(("uint16", "uint32"), _UNSIGNED),
    **{"string": _STRING_KIND, "bytes": _BYTES_KIND, "records": _BYTES_KIND, "bool": _BOOL, "float64": _FLOAT, "uuid": _UUID_KIND},
}


cdef struct View:
    const unsigned char* data
    Py_ssize_t at
    Py_ssize_t end


cdef const unsigned char* take(View* view, Py_ssize_t size) except NULL:
    """Return the address of the next ``size`` bytes, and move past them. Raises ValueError if some are missing."""
    if size < 0 or size > view.end - view.at:
        raise ValueError
    view.at += size
    return view.data + view.at - size


cdef long long integer(View* view, Py_ssize_t size) except? -1:
    """Return a signed integer. Raises ValueError."""
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

    cdef str name
    cdef int kind
    cdef bint array, compact, nullable, tagged
    cdef Py_ssize_t size, tag, longest
    cdef SchemaReader inner

    def __init__(self, slot, sizes, longest):
        self.name = slot.name
        self.kind = _STRUCT_KIND if slot.struct is not None else _KINDS[slot.type]
        self.array, self.compact, self.nullable = slot.array, slot.compact, slot.nullable
        self.tagged = slot.tag is not None
        self.tag = -1 if slot.tag is None else slot.tag
        self.size = sizes.get(slot.type, 0)
        self.longest = longest
        self.inner = None if slot.struct is None else SchemaReader(slot.struct, sizes, longest)

    cdef object read(self, View* view):
        if self.array:
            return self.elements(view)
        if self.kind == _STRUCT_KIND and self.nullable:
            if varint(view) == 0 if self.tagged else integer(view, 1) < 0:
                return None
        return self.one(view, self.nullable)

    cdef object one(self, View* view, bint nullable):
        """Read one value, or one element of an array. Raises ValueError."""
        cdef Py_ssize_t size
        cdef const unsigned char* at
        cdef unsigned long long bits
        cdef double value
        if self.kind == _SIGNED:
            return integer(view, self.size)
        if self.kind == _STRUCT_KIND:
            return self.inner.fields(view)
        if self.kind == _UUID_KIND:
            return (<const char*> take(view, 16))[:16]
        if self.kind == _BOOL:
            return take(view, 1)[0] != 0
        if self.kind == _UNSIGNED:
            return integer(view, self.size) & ((<long long> 1 << 8 * self.size) - 1)
        if self.kind == _FLOAT:
            bits = <unsigned long long> integer(view, 8)
            memcpy(&value, &bits, 8)
            return value
        size = self.length(view, 2 if self.kind == _STRING_KIND else 4)
        if size < 0 and nullable:
            return None
        if self.kind == _BYTES_KIND:
            return (<const char*> take(view, size))[:size]
        if size > self.longest:
            raise ValueError
        return PyUnicode_DecodeUTF8(<const char*> take(view, size), size, NULL)

    cdef list elements(self, View* view):
        """Read an array. Each element has at least one byte. Raises ValueError."""
        cdef Py_ssize_t count = self.length(view, 4)
        if count < 0 and self.nullable:
            return None
        if count < 0 or count > view.end - view.at or count > _MOST_ELEMENTS:
            raise ValueError
        return [self.one(view, False) for _ in range(count)]

    cdef Py_ssize_t length(self, View* view, Py_ssize_t size) except? -1:
        """Read a length. A negative length means null."""
        return varint(view) - 1 if self.compact else integer(view, size)


@cython.final
cdef class SchemaReader:
    """Reads one version of a message, or of a struct inside it."""

    cdef list plain, tagged, fresh
    cdef dict blank
    cdef bint flexible

    def __init__(self, schema, sizes, longest):
        """``schema`` is a ``Struct`` of :mod:`kdump.internal_topics.schema`.

        ``sizes``: type of a fixed size -> size in bytes. ``longest`` is the maximum size of a string in bytes.
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
        """Return the values of the message from ``at`` to the end of ``data``, or None if it is not well-formed."""
        cdef View view
        view.data, view.at, view.end = data, at, len(data)
        return self.whole(&view) if at >= 0 else None

    cdef dict whole(self, View* view):
        """Read the fields. Return None if they are not well-formed or do not end at the end of ``view``."""
        try:
            values = self.fields(view)
        except ValueError:
            return None
        return values if view.at == view.end else None

    cdef dict fields(self, View* view):
        cdef dict values = PyDict_Copy(self.blank)
        cdef Py_ssize_t count
        cdef _Field field
        for field in self.plain:
            PyDict_SetItem(values, field.name, field.read(view))
        for name, default in self.fresh:  # a caller may change a list, so each message needs its own
            values[name] = default()
        if self.flexible:
            count = varint(view)
            if count > _MOST_TAGGED:
                raise ValueError
            for _ in range(count):
                field = <_Field> self.known(varint(view))
                varint(view)  # the size of the field
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
    """Decodes the values of records: a frame of three bytes (see the glossary), then a message."""

    cdef object known, made, other

    def decoded(self, known, made, other):
        """Return ``made(offset, timestamp in ms, name, values)`` for each record of the batches of :meth:`stack`.

        ``known`` returns the name and the SchemaReader for the three bytes of a frame, or None. For any other
        value the item is ``other(offset, timestamp, key, value)``. Reading ends as in :meth:`stacked`.
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


WAYS = (
    *("number", "string", "uuid", "bytes", "size", "name", "struct", "embedded", "plain_string", "plain_uuid"),
    *("map", "end", "optional_size", "call"),
)
"""The ways to write a value. Some need an argument.

- string, uuid, bytes (as base64): in quotes, unless the way is plain.
- size: the number of bytes. optional_size: the same, or a text for null. The argument has three texts: for null,
  before the size, and after the size.
- name: one of a tuple of bytes. The argument is the tuple, the value the index.
- struct: the argument is the StructText.
- embedded: bytes with an int16 and a struct. The argument maps the int16 to the struct's reader and StructText.
- map: an array of structs, written as "{key=value, ...}". The argument has the names of two number fields. The array
  is not empty, and the keys increase.
- end: a number. The argument names another field, which must be from 0 to this number.
- call: the argument is a function that returns the text of the whole value, also for null or an array.
"""
ALWAYS = object()
"""Given as ``default`` of a FieldText whose value is always written."""

cdef int _NUMBER = WAYS.index("number")
cdef int _STRING = WAYS.index("string")
cdef int _UUID = WAYS.index("uuid")
cdef int _BYTES = WAYS.index("bytes")
cdef int _SIZE = WAYS.index("size")
cdef int _NAME = WAYS.index("name")
cdef int _STRUCT = WAYS.index("struct")
cdef int _EMBEDDED = WAYS.index("embedded")
cdef int _PLAIN_STRING = WAYS.index("plain_string")
cdef int _MAP = WAYS.index("map")
cdef int _END = WAYS.index("end")
cdef int _OPTIONAL_SIZE = WAYS.index("optional_size")
cdef int _CALL = WAYS.index("call")

cdef int _KEY_SIZE = RECORD_NUMBERS.index("key_size")
cdef int _SLOT = slots(())["decoded"]
cdef Py_ssize_t _ROOM = 32  # bytes of a number, and bytes that base64 may write after its text
cdef object _ALWAYS = ALWAYS


class Left(Exception):
    """The general path must write the message."""


@cython.final
cdef class FieldText:
    """The text of one field: ``literal``, then the value, written in the way ``way`` (one of WAYS)."""

    cdef bytes literal
    cdef str name
    cdef int way
    cdef bint array
    cdef object argument, default

    def __init__(self, literal, name, way, argument=None, array=False, default=ALWAYS):
        """``argument``: see WAYS. A field whose value equals ``default`` is left out."""
        self.literal, self.name, self.way = literal, name, WAYS.index(way)
        self.argument, self.array, self.default = argument, array, default


@cython.final
cdef class StructText:
    """Writes the values of a struct: fields between ``opening`` and ``closing``, with ``separator`` between them."""

    cdef list fields
    cdef bytes opening, closing, separator, escapes

    def __init__(self, fields, opening, closing, separator, escapes):
        """``escapes`` has eight bytes for each byte of a string: its replacement, whose size is in the last byte."""
        self.fields, self.opening, self.closing, self.separator = list(fields), opening, closing, separator
        self.escapes = escapes

    cdef int write(self, dict values, Lines out) except -1:
        """Write the struct. Raises Left, and the errors of the functions that FieldTexts call."""
        cdef FieldText field
        cdef PyObject* found
        cdef bint first = True
        literal(self.opening, out)
        for field in self.fields:
            found = PyDict_GetItem(values, field.name)
            if found is NULL:
                raise KeyError(field.name)
            value = <object> found
            if field.default is not _ALWAYS and PyObject_RichCompareBool(value, field.default, Py_EQ):
                continue
            if not first:
                literal(self.separator, out)
            first = False
            literal(field.literal, out)
            if field.way == _CALL:
                string(field.argument(value), out)
            elif field.way == _OPTIONAL_SIZE:
                optional_size(field.argument, value, out)
            elif value is None:
                literal(b"null", out)
            elif field.way == _MAP:
                entries(field.argument, value, out)
            elif field.way == _END:
                if not 0 <= <long long> values[field.argument] <= <long long> value:
                    raise Left
                decimal(value, out)
            elif field.array:
                self.elements(field, value, out)
            else:
                self.one(field, value, out)
        return literal(self.closing, out)

    cdef int elements(self, FieldText field, list values, Lines out) except -1:
        cdef bint first = True
        byte(91, out)
        for value in values:
            if not first:
                byte(44, out)
            first = False
            self.one(field, value, out)
        return byte(93, out)

    cdef int one(self, FieldText field, object value, Lines out) except -1:
        """Write one value, or one element of an array. It is not null."""
        if field.way == _NUMBER:
            return decimal(value, out)
        elif field.way == _STRUCT:
            return (<StructText?> field.argument).write(value, out)
        elif field.way == _STRING:
            return self.quoted(value, out)
        elif field.way == _NAME:
            return literal(name(field.argument, value), out)
        elif field.way == _EMBEDDED:
            return embedded(field.argument, value, out)
        elif field.way == _PLAIN_STRING:
            return string(value, out)
        elif field.way == _SIZE:
            return decimal(PyBytes_GET_SIZE(value), out)
        elif field.way == _BYTES:
            byte(34, out)
            encoded(value, False, out)
            return byte(34, out)
        elif field.way == _UUID:
            byte(34, out)
            encoded(value, True, out)
            return byte(34, out)
        return encoded(value, True, out)

    cdef int quoted(self, str value, Lines out) except -1:
        cdef Py_ssize_t size = 0
        cdef unsigned long long bits = 0
        cdef const char* text = PyUnicode_AsUTF8AndSize(value, &size)
        reserve(out, 8 * size + BEYOND)
        out.out[out.used] = 34
        cdef unsigned char* end = escaped(
            &out.out[out.used + 1], <const unsigned char*> text, size, <const unsigned char*> PyBytes_AS_STRING(self.escapes), &bits
        )
        end[0] = 34
        out.used = end + 1 - &out.out[0]
        return 0


cdef inline int literal(bytes text, Lines out) except -1:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(text)
    reserve(out, size)
    memcpy(&out.out[out.used], PyBytes_AS_STRING(text), size)
    out.used += size
    return 0


cdef inline int byte(unsigned char value, Lines out) except -1:
    reserve(out, 1)
    out.out[out.used] = value
    out.used += 1
    return 0


cdef inline int decimal(long long value, Lines out) except -1:
    reserve(out, _ROOM)
    out.used = number(&out.out[out.used], value) - &out.out[0]
    return 0


cdef int entries(tuple names, list structs, Lines out) except -1:
    cdef long long key, last = 0
    cdef bint first = True
    if not structs:
        raise Left
    for struct in structs:
        key = struct[names[0]]
        if not first and key <= last:
            raise Left
        literal(b"{" if first else b", ", out)
        decimal(key, out)
        byte(61, out)
        decimal(struct[names[1]], out)
        last, first = key, False
    return byte(125, out)


cdef int optional_size(tuple texts, bytes value, Lines out) except -1:
    """Write the size of ``value`` between its texts, or the text for null."""
    if value is None:
        return literal(texts[0], out)
    literal(texts[1], out)
    decimal(PyBytes_GET_SIZE(value), out)
    return literal(texts[2], out)


cdef int string(str value, Lines out) except -1:
    cdef Py_ssize_t size = 0
    cdef const char* text = PyUnicode_AsUTF8AndSize(value, &size)
    reserve(out, size)
    memcpy(&out.out[out.used], text, size)
    out.used += size
    return 0


cdef bytes name(tuple names, Py_ssize_t value):
    """Return the name with the number ``value``. Raises Left."""
    if not 0 <= value < len(names):
        raise Left
    return names[value]


cdef int embedded(list messages, bytes value, Lines out) except -1:
    """Write the struct that follows an int16, its version, in ``value``. Raises Left."""
    cdef View view
    cdef long long version
    view.data, view.at, view.end = <const unsigned char*> PyBytes_AS_STRING(value), 2, PyBytes_GET_SIZE(value)
    version = big(view.data, 2) if view.end >= 2 else -1
    if not 0 <= version < len(messages):
        raise Left
    reader, text = messages[version]
    values = (<SchemaReader?> reader).whole(&view)
    if values is None:
        raise Left
    return (<StructText?> text).write(values, out)


cdef int encoded(bytes value, bint url, Lines out) except -1:
    """Write bytes as base64 with padding, or (``url``) as URL-safe base64 without padding."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(value)
    cdef unsigned char* start
    cdef unsigned char* end
    reserve(out, size // 3 * 4 + _ROOM)
    start = &out.out[out.used]
    end = base64(start, <const unsigned char*> PyBytes_AS_STRING(value), size)
    if url:
        while end > start and (end - 1)[0] == 61:
            end -= 1
        while start < end:
            if start[0] == 43:
                start[0] = 45
            elif start[0] == 47:
                start[0] = 95
            start += 1
    out.used = end - &out.out[0]
    return 0


@cython.final
cdef class Payloads(Lines):
    """Converts the records of batches to lines. The slot "decoded" is replaced by the decoded key and value."""

    cdef object general, find, key
    cdef bytes deleted
    cdef int frame
    cdef dict known

    def __init__(self, general, find, frame=-1, key=None, deleted=b""):
        """Set the functions for keys and values.

        - ``general`` returns the text for offset, key and value of a record that the kernel cannot write. If it raises
          DamageError, the lines end before this record.
        - ``find`` returns the reader for a message type and version, and the StructText or a function that returns the
          StructText for the values. It returns None for an unknown message.
        - ``frame`` is the first byte of each value, before the type and the version. If it is negative, a value has no
          frame and starts with the version.
        - ``key`` returns type and text of a key, for values without a frame; the text is None for an unknown type.
          ``deleted`` is the text of a null value.
        """
        super().__init__()
        self.general, self.find, self.key = general, find, key
        self.frame, self.deleted = frame, deleted
        self.known = {}

    cdef bint field(self, int slot) except -1 nogil:
        if slot == _SLOT:
            return self.record()
        if self.header_count > 0:
            self.header_keys()
        return True

    cdef bint record(self) except -1 with gil:
        cdef Py_ssize_t start = self.used
        try:
            if self.framed() if self.frame >= 0 else self.keyed():
                return True
        except (DamageError, Left):
            pass
        self.used = start
        key = value = None
        if self.values[_KEY_SIZE] >= 0:
            key = bytes(self.data[self.key_at : self.key_at + self.values[_KEY_SIZE]])
        if self.values[_VALUE_SIZE] >= 0:
            value = bytes(self.data[self.value_at : self.value_at + self.values[_VALUE_SIZE]])
        literal(self.general(self.values[_OFFSET], key, value), self)
        return True

    cdef bint framed(self) except -1:
        """Write a record with a framed value. Return whether the kernel could write it."""
        cdef const unsigned char* at
        if self.values[_VALUE_SIZE] < _FRAME:
            return False
        at = &self.data[self.value_at]
        if at[0] != self.frame or (at[0] | at[1] | at[2]) > 0x7F:
            return False
        return self.message(at[1], at[2], _FRAME)

    cdef bint keyed(self) except -1:
        """Write a record whose key has the type of the value. Return whether the kernel could write it."""
        cdef Py_ssize_t size = self.values[_KEY_SIZE]
        if size < 0 or self.key is None:
            return False
        kind, text = self.key((<const char*> &self.data[self.key_at])[:size] if size else b"")
        if text is None:
            return False
        literal(text, self)
        if self.values[_VALUE_SIZE] < 0:
            literal(self.deleted, self)
            return True
        if self.values[_VALUE_SIZE] < 2:
            return False
        return self.message(kind, <int> big(&self.data[self.value_at], 2), 2)

    cdef bint message(self, int kind, int version, Py_ssize_t skipped) except -1:
        """Write the message after ``skipped`` bytes of the value. Return whether it is known and well-formed."""
        cdef View view
        cdef long long numbers = (<long long> kind << 16) + version
        found = self.known.get(numbers, self)
        if found is self:
            found = self.find(kind, version)
            if found is None:
                return False
            self.known[numbers] = found
        reader, text = found
        view.data = &self.data[self.value_at]
        view.at, view.end = skipped, self.values[_VALUE_SIZE]
        values = (<SchemaReader?> reader).whole(&view)
        if values is None:
            return False
        if not isinstance(text, StructText):
            text = text(values)
        (<StructText?> text).write(values, self)
        return True
