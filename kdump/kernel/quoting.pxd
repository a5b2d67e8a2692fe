# What the modules of the kernel know of texts in C.

cdef unsigned char* escaped(unsigned char* out, const unsigned char* text, Py_ssize_t size, const unsigned char* shown, unsigned long long* bits) noexcept nogil
cdef bint is_utf8(const unsigned char* text, Py_ssize_t size) noexcept nogil
cdef unsigned char* cell(unsigned char* out, const unsigned char* text, Py_ssize_t size, unsigned long long* bits) noexcept nogil
