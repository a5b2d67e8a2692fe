# The C interface of texts.

from libc.string cimport memcpy

cdef enum:
    BEYOND = 64  # number of bytes after their output that escaped() and cell() may overwrite

cdef bint plain(unsigned char* out, const unsigned char* text, Py_ssize_t size, unsigned char also) noexcept nogil
cdef unsigned char* escaped(unsigned char* out, const unsigned char* text, Py_ssize_t size, const unsigned char* shown, unsigned long long* bits) noexcept nogil
cdef bint is_utf8(const unsigned char* text, Py_ssize_t size) noexcept nogil
cdef unsigned char* cell(unsigned char* out, const unsigned char* text, Py_ssize_t size, unsigned long long* bits) noexcept nogil
cdef void hex_digits(unsigned char* out, const unsigned char* text, Py_ssize_t size) noexcept nogil
cdef unsigned char* base64(unsigned char* out, const unsigned char* text, Py_ssize_t size) noexcept nogil
cdef int json_value(const unsigned char* text, Py_ssize_t size) noexcept nogil

# Return the high bits of the bytes of ``word`` that are control characters, quotes, backslashes or DEL. The bytes are
# added without their high bits, so that the sums do not carry.
cdef inline unsigned long long odd_of(unsigned long long word) noexcept nogil:
    cdef unsigned long long low = word & <unsigned long long> 0x7F7F7F7F7F7F7F7F
    cdef unsigned long long quote = low ^ <unsigned long long> 0x2222222222222222
    cdef unsigned long long backslash = low ^ <unsigned long long> 0x5C5C5C5C5C5C5C5C
    cdef unsigned long long fine = low + <unsigned long long> 0x6060606060606060
    fine &= quote + <unsigned long long> 0x7F7F7F7F7F7F7F7F
    fine &= backslash + <unsigned long long> 0x7F7F7F7F7F7F7F7F
    fine &= ~(low + <unsigned long long> 0x0101010101010101)
    return ~(fine | word) & <unsigned long long> 0x8080808080808080

# Copy a text of 4 to 16 bytes, such as most names. Return whether it is ASCII and needs no escapes in JSON.
cdef inline bint copied(unsigned char* out, const unsigned char* text, Py_ssize_t size) noexcept nogil:
    cdef unsigned long long first = 0
    cdef unsigned long long last = 0
    if size >= 8:
        memcpy(&first, text, 8)
        memcpy(&last, text + size - 8, 8)
        memcpy(out, &first, 8)
        memcpy(out + size - 8, &last, 8)
    else:
        memcpy(&first, text, 4)
        memcpy(&last, text + size - 4, 4)
        memcpy(out, &first, 4)
        memcpy(out + size - 4, &last, 4)
        first |= last << 32
        last = first
    return not (odd_of(first) | odd_of(last) | ((first | last) & <unsigned long long> 0x8080808080808080))
