# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""Where the fields of a struct lie in a message, by the finding steps of a program.

A struct is gone through before anything of it is written (:mod:`kdump.kernel.payloads`): every length and count is held
against the bytes that are left, and what is not perfectly well-formed is left to the general path
(:mod:`kdump.internal_topics.interpreter`, which also tells the layout). What C needs stands in ``fields.pxd``.
"""

cimport cython
from kdump.kernel.lines cimport Lines

PLACES = 32
"""How many fields of a struct can be found."""

FINDS = ("end", "run", "string", "bytes", "struct", "array", "tags")
"""How fields are found, and what follows in a step: place, then

- run: bytes that are always there;
- string, bytes: flags;
- struct: flags, index of the struct;
- array: flags, how an element is found, its bytes or the index of the struct;
- tags: instead of a place the number of tagged fields; behind the step, for each, its tag and the step that finds it.
"""
FIND = 5
COMPACT, NULLABLE, TAGGED = (1 << bit for bit in range(3))
"""Flags: lengths are varints, one more than the length; it may be null; it stands among the tagged fields."""


cdef int _END = FINDS.index("end")
cdef int _RUN = FINDS.index("run")
cdef int _STRING = FINDS.index("string")
cdef int _BYTES = FINDS.index("bytes")
cdef int _STRUCT = FINDS.index("struct")
cdef int _ARRAY = FINDS.index("array")
cdef int _TAGS = FINDS.index("tags")
cdef int _COMPACT = COMPACT
cdef int _NULLABLE = NULLABLE
cdef int _TAGGED = TAGGED
cdef int _FIND = FIND
cdef long long _LONGEST = 0x7FFF  # bytes of a string
cdef unsigned long long _MOST = 0x7FFFFFFF
cdef Py_ssize_t _NULL = -1  # instead of a size or a count
cdef Py_ssize_t _NOT_THERE = -2  # likewise, of a tagged field
cdef Py_ssize_t _LEFT = -1  # instead of a position: the general path writes it


cdef class Fields(Lines):
    """Goes through structs. Methods return a position, or -1 for what is left to the general path.

    ``code`` holds, from the index of a struct on, the index of its writing steps, then its finding steps. ``found`` is
    the number that was found last.
    """

    def __init__(self, code):
        super().__init__()
        self.code = code
        self.found = 0

    cdef Py_ssize_t skip(self, int index, Py_ssize_t at, Py_ssize_t end) except -2 nogil:
        """Go through the struct at ``at``; return the position behind it."""
        cdef Py_ssize_t[32] starts
        cdef Py_ssize_t[32] sizes
        return self.find(index + 1, at, end, starts, sizes)

    @cython.boundscheck(False)
    cdef Py_ssize_t find(
            self, Py_ssize_t step, Py_ssize_t at, Py_ssize_t end, Py_ssize_t* starts, Py_ssize_t* sizes
    ) except -2 nogil:
        """Note where the fields of a struct lie; return the position behind it."""
        while at >= 0:
            if self.code[step] == _END:
                return at
            if self.code[step] == _TAGS:
                return self.find_tags(step, at, end, starts, sizes)
            at = self.find_field(step, at, end, starts, sizes)
            step += _FIND
        return _LEFT

    @cython.boundscheck(False)
    cdef Py_ssize_t find_field(
            self, Py_ssize_t step, Py_ssize_t at, Py_ssize_t end, Py_ssize_t* starts, Py_ssize_t* sizes
    ) except -2 nogil:
        """Note where the field of one step lies; return the position behind it."""
        cdef int kind = self.code[step]
        cdef int place = self.code[step + 1]
        cdef int flags = self.code[step + 2]
        if kind == _RUN:
            starts[place] = at
            sizes[place] = flags  # here the bytes
            return at + flags if flags <= end - at else _LEFT
        if kind == _STRUCT:
            return self.find_struct(step, at, end, starts, sizes)
        at = self.length(at, end, 2 if kind == _STRING else 4, flags)
        if at < 0:
            return _LEFT
        starts[place] = at
        sizes[place] = self.found
        if self.found < 0:
            return at
        if self.found > end - at or (kind == _STRING and self.found > _LONGEST):
            return _LEFT
        return self.find_elements(step, at, end) if kind == _ARRAY else at + self.found

    @cython.boundscheck(False)
    cdef Py_ssize_t find_struct(
            self, Py_ssize_t step, Py_ssize_t at, Py_ssize_t end, Py_ssize_t* starts, Py_ssize_t* sizes
    ) except -2 nogil:
        """Note where a struct inside a struct lies; return the position behind it."""
        cdef int place = self.code[step + 1]
        cdef int flags = self.code[step + 2]
        sizes[place] = 0
        if flags & _NULLABLE:
            if flags & _TAGGED:
                at = self.varint(at, end)
                if at < 0:
                    return _LEFT
                if self.found == 0:
                    sizes[place] = _NULL
            else:
                if at >= end:
                    return _LEFT
                if self.data[at] > 127:
                    sizes[place] = _NULL
                at += 1
        starts[place] = at
        return at if sizes[place] < 0 else self.skip(self.code[step + 3], at, end)

    @cython.boundscheck(False)
    cdef Py_ssize_t find_elements(self, Py_ssize_t step, Py_ssize_t at, Py_ssize_t end) except -2 nogil:
        """Go through as many elements of an array as were found, none of them null; return the position behind them."""
        cdef int kind = self.code[step + 3]
        cdef long long count = self.found
        if kind == _RUN:
            return at + count * self.code[step + 4] if count * self.code[step + 4] <= end - at else _LEFT
        cdef int flags = self.code[step + 2] & _COMPACT
        while count > 0 and at >= 0:
            count -= 1
            if kind == _STRUCT:
                at = self.skip(self.code[step + 4], at, end)
                continue
            at = self.length(at, end, 2 if kind == _STRING else 4, flags)
            if at < 0 or self.found > end - at or (kind == _STRING and self.found > _LONGEST):
                return _LEFT
            at += self.found
        return at

    @cython.boundscheck(False)
    cdef Py_ssize_t find_tags(
            self, Py_ssize_t step, Py_ssize_t at, Py_ssize_t end, Py_ssize_t* starts, Py_ssize_t* sizes
    ) except -2 nogil:
        """Note where the tagged fields lie; return the position behind them. Unknown tags are passed over."""
        cdef int known = self.code[step + 1]
        cdef Py_ssize_t first = step + _FIND
        cdef Py_ssize_t one
        cdef long long left
        for one in range(known):
            sizes[self.code[first + one * (_FIND + 1) + 2]] = _NOT_THERE
        at = self.varint(at, end)
        if at < 0 or self.found > end - at:
            return _LEFT
        left = self.found
        while left > 0:
            left -= 1
            at = self.varint(at, end)
            if at < 0:
                return _LEFT
            one = 0
            while one < known and self.code[first + one * (_FIND + 1)] != self.found:
                one += 1
            at = self.varint(at, end)
            if at < 0:
                return _LEFT
            if one < known:  # nobody looks at the size of what is known
                at = self.find_field(first + one * (_FIND + 1) + 1, at, end, starts, sizes)
                if at < 0:
                    return _LEFT
            elif self.found > end - at:
                return _LEFT
            else:
                at += self.found
        return at

    cdef Py_ssize_t length(self, Py_ssize_t at, Py_ssize_t end, int size, int flags) except -2 nogil:
        """Find a length, of ``size`` bytes where it is not compact; -1 is null, where that may be."""
        if flags & _COMPACT:
            at = self.varint(at, end)
            if at < 0:
                return _LEFT
            self.found -= 1
        else:
            if size > end - at:
                return _LEFT
            self.found = self.integer(at, size)
            at += size
        if self.found < 0:
            if not flags & _NULLABLE:
                return _LEFT
            self.found = _NULL
        return at

    @cython.boundscheck(False)
    cdef Py_ssize_t varint(self, Py_ssize_t at, Py_ssize_t end) except -2 nogil:
        """Find an unsigned varint that fits an int of Java; return the position behind it."""
        cdef unsigned long long value = 0
        cdef int shift = 0
        cdef unsigned long long byte
        while at < end and shift < 35:
            byte = self.data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                self.found = value
                return at if value <= _MOST else _LEFT
            shift += 7
        return _LEFT

    @cython.boundscheck(False)
    cdef long long integer(self, Py_ssize_t at, int size) noexcept nogil:
        """Return the number of ``size`` bytes at ``at``, which are there; without a sign where the size is negative."""
        cdef unsigned long long value = 0
        cdef int last = size if size > 0 else -size
        cdef int byte
        for byte in range(last):
            value = value << 8 | self.data[at + byte]
        if 0 < size < 8 and value >> (8 * size - 1):
            value -= <unsigned long long> 1 << (8 * size)
        return <long long> value
