# The C interface of the writers of lines.

cimport cython
from kdump.kernel.records cimport Cursor
from kdump.kernel.digests cimport KeyedHash

# A number whose last four digits are replaced by zeros, and its digits without these four.
cdef struct Upper:
    unsigned long long value
    Py_ssize_t size
    unsigned char[24] digits

cdef class Lines(Cursor):
    cdef public long long last_offset
    cdef public list gaps
    cdef public bint armed
    cdef object key_decoder
    cdef object value_decoder
    cdef bint decoded
    cdef KeyedHash keyed_hash
    cdef public object memory
    cdef object buffer
    cdef bytearray own
    cdef unsigned char[::1] out
    cdef Py_ssize_t used
    cdef Py_ssize_t room
    cdef Py_ssize_t need
    cdef Py_ssize_t most
    cdef const int[::1] ops
    cdef const unsigned char[::1] pool
    cdef unsigned char[::1] bound_pool
    cdef int[::1] bound_ops
    cdef const unsigned char* literals
    cdef const int* steps
    cdef Upper[32] upper
    cdef public bint stuck
    cdef public bint whole_batches
    cdef public bint stops_at_frames
    cdef bint finds_frames
    cdef bint has_frame

    @cython.final
    cdef bint next_record(self) noexcept nogil
    @cython.final
    cdef bint has_schema(self) noexcept nogil
    @cython.final
    cdef const unsigned char* text_at(self, Py_ssize_t at, Py_ssize_t size) noexcept nogil
    @cython.final
    cdef bint begin_lines(self, object limit) except -1
    @cython.final
    cdef void take(self, object shape)
    @cython.final
    cdef void make_room(self, object shape)
    @cython.final
    cdef void bind(self) noexcept nogil
    @cython.final
    cdef bint settle(self) except -1 nogil
    @cython.final
    cdef bint follow(self) except -1 nogil
    @cython.final
    cdef bint gap(self) except -1 with gil
    @cython.final
    cdef bint line(self) except -1 nogil
    cdef bint field(self, int slot) except -1 nogil
    @cython.final
    cdef bint header_keys(self) except -1 nogil
    @cython.final
    cdef bint text(self, int slot, Py_ssize_t at, Py_ssize_t size) except -1 nogil
    @cython.final
    cdef bint spell(self, int way, Py_ssize_t at, Py_ssize_t size) except -1 nogil
    @cython.final
    cdef bint decode(self, int slot, Py_ssize_t at, Py_ssize_t size) except -1 with gil
    @cython.final
    cdef bint grow(self, Py_ssize_t more) except -1 with gil

# Reserve ``more`` bytes in addition to the bytes that the record needs.
cdef inline bint reserve(Lines lines, Py_ssize_t more) except -1 nogil:
    if lines.used + lines.need + more > lines.room:
        lines.grow(more)
    return True

cdef unsigned char* number(unsigned char* out, long long value) noexcept nogil
