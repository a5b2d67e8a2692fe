# The writer that writers of payloads extend.

cdef enum:
    AROUND = 64  # bytes of any number, time or name of an infinity

cdef struct Text:
    char* data
    Py_ssize_t size

cdef class JsonText:
    cdef object quote
    cdef unsigned char* out
    cdef Py_ssize_t used
    cdef Py_ssize_t room
    cdef const unsigned char* data
    cdef Py_ssize_t at
    cdef Py_ssize_t end

    cdef void begin(self, bytes payload, Py_ssize_t position)
    cdef object made(self)
    cdef bint reserve(self, Py_ssize_t size) except False
    cdef bint literal(self, Text text) except False
    cdef bint character(self, unsigned char one) except False
    cdef int string(self, Py_ssize_t size) except -1
    cdef int binary_text(self, Py_ssize_t size) except -1
    cdef int real(self, int size, bint is_short) except -1
    cdef int moment(self, long long seconds) noexcept
    cdef int clock(self, long long second) noexcept
    cdef void fraction(self, long long value, int digits) noexcept
    cdef void two(self, long long value, unsigned char after) noexcept
    cdef int date(self, long long day) noexcept
    cdef void digits(self, long long value) noexcept
