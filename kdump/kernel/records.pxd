# The C interface of a cursor: its fields, and the methods that do not need the GIL.

cimport cython

cdef class Cursor:
    cdef public Py_ssize_t left
    cdef const unsigned char[::1] data
    cdef long long[32] values
    cdef Py_ssize_t at
    cdef Py_ssize_t start
    cdef Py_ssize_t end
    cdef int attributes
    cdef long long base_offset
    cdef long long base_timestamp
    cdef long long base_sequence
    cdef bint appended
    cdef Py_ssize_t key_at
    cdef Py_ssize_t value_at
    cdef Py_ssize_t headers_at
    cdef Py_ssize_t header_count
    cdef Py_ssize_t name_at
    cdef Py_ssize_t name_size
    cdef Py_ssize_t content_at
    cdef Py_ssize_t content_size
    cdef const unsigned char[::1] block
    cdef const long long[::1] stacked
    cdef public Py_ssize_t row
    cdef public Py_ssize_t rows
    cdef Py_ssize_t width
    cdef Py_ssize_t size

    @cython.final
    cdef bint turn(self, Py_ssize_t at, Py_ssize_t end) noexcept nogil
    @cython.final
    cdef bint next_batch(self) except -1 nogil
    @cython.final
    cdef bint agree(self) except -1 nogil
    @cython.final
    cdef bint read(self) noexcept nogil
    @cython.final
    cdef Py_ssize_t header(self, Py_ssize_t at) noexcept nogil

cdef class Records(Cursor):
    cdef list briefs(self)
    cdef brief(self)
    cdef record(self)
    cdef headers(self)
    cdef bytes bytes_at(self, Py_ssize_t at, Py_ssize_t size)
