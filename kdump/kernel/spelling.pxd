# What the modules of the kernel know of the spelling of bytes in C.

cdef class KeyedHash:
    cdef unsigned int[8] inner
    cdef unsigned int[8] outer

    cdef void digits(self, unsigned char* out, const unsigned char* text, Py_ssize_t size) noexcept nogil

cdef void hex_digits(unsigned char* out, const unsigned char* text, Py_ssize_t size) noexcept nogil
cdef unsigned char* base64(unsigned char* out, const unsigned char* text, Py_ssize_t size) noexcept nogil
cdef int json_value(const unsigned char* text, Py_ssize_t size) noexcept nogil
