# Numbers in Kafka's byte order, and functions that differ between machines and compilers.

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static int kdump_lowest(unsigned long long word) { unsigned long at; _BitScanForward64(&at, word); return (int) at; }
    #else
    #define kdump_lowest(word) __builtin_ctzll(word)
    #endif

    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    #define kdump_ordered(word) __builtin_bswap64(word)
    #else
    #define kdump_ordered(word) (word)
    #endif
    """
    # The number of the lowest bit of a word that is not zero.
    int lowest "kdump_lowest"(unsigned long long word) noexcept nogil

    # Convert a word from the byte order of memory to one with the first byte lowest, or back.
    unsigned long long ordered "kdump_ordered"(unsigned long long word) noexcept nogil

# Return a signed number of ``size`` bytes, the highest byte first.
cdef inline long long big(const unsigned char* data, int size) noexcept nogil:
    cdef unsigned long long found = 0
    cdef int step
    for step in range(size):
        found = found << 8 | data[step]
    return (<long long> (found << (64 - 8 * size))) >> (64 - 8 * size)
