# The C interface of digests.

cdef enum:
    WAITING = 64  # maximum number of collected texts

# A text, and the position ``at`` for the digits of its hash.
cdef struct Waiting:
    const unsigned char* text
    Py_ssize_t size
    Py_ssize_t at

# Two hashes take less time in parallel than one after the other, so texts are collected until settle().
cdef class KeyedHash:
    cdef unsigned int[8] inner
    cdef unsigned int[8] outer
    cdef Waiting[WAITING] waiting
    cdef int count

    cdef void digits(self, unsigned char* out, Py_ssize_t at, const unsigned char* text, Py_ssize_t size) noexcept nogil
    cdef void settle(self, unsigned char* out) noexcept nogil
