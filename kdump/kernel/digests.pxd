# The interface of digests in C.

cdef enum:
    WAITING = 64  # texts whose hashes may wait

# A text whose digits go to ``at``.
cdef struct Waiting:
    const unsigned char* text
    Py_ssize_t size
    Py_ssize_t at

# Two hashes side by side take less time than one after the other, so texts wait until their hashes are settled.
cdef class KeyedHash:
    cdef unsigned int[8] inner
    cdef unsigned int[8] outer
    cdef Waiting[WAITING] waiting
    cdef int count

    cdef void digits(self, unsigned char* out, Py_ssize_t at, const unsigned char* text, Py_ssize_t size) noexcept nogil
    cdef void settle(self, unsigned char* out) noexcept nogil
