# What the modules of the kernel know of strings of JSON in C.

cdef unsigned char* escaped(unsigned char* out, const unsigned char* text, Py_ssize_t size, const unsigned char* shown, unsigned long long* bits) noexcept nogil
