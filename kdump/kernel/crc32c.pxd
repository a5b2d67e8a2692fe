# CRC-32C with the processor's instructions.

cdef extern from *:
    """
    #if defined(__GNUC__) && defined(__x86_64__)
    #include <immintrin.h>
    #include <string.h>

    /* x to the power of 8 * size - 33, modulo the polynomial of CRC-32C, all with the bits in reverse order. */
    static unsigned int kdump_power(int size) {
        unsigned int power = 0x80000000;
        for (int bit = 33; bit < 8 * size; bit++)
            power = power >> 1 ^ (power & 1 ? 0x82f63b78 : 0);
        return power;
    }

    /* Return the checksum after more zero bytes; power is kdump_power() of their number. The product multiplies by x,
       the instruction by x to the power of 32. */
    __attribute__((target("sse4.2,pclmul"))) static inline unsigned int kdump_moved(unsigned int crc, unsigned int power) {
        __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int) crc), _mm_cvtsi32_si128((int) power), 0);
        return (unsigned int) _mm_crc32_u64(0, (unsigned long long) _mm_cvtsi128_si64(product));
    }

    static const int kdump_lane_sizes[] = {1024, 128};
    static unsigned int kdump_powers[2][2];

    static int kdump_has_crc32c(void) {
        for (int way = 0; way < 2; way++)
            for (int lane = 1; lane <= 2; lane++)
                kdump_powers[way][lane - 1] = kdump_power(lane * kdump_lane_sizes[way]);
        __builtin_cpu_init();
        return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
    }

    static inline unsigned long long kdump_word(const unsigned char *data) {
        unsigned long long word;
        memcpy(&word, data, 8);
        return word;
    }

    /* The instruction takes three cycles, but a new one can start in each, so three lanes are computed in parallel.
       The next bytes are prefetched, because a block is larger than the nearest cache. */
    __attribute__((target("sse4.2,pclmul"))) static unsigned int kdump_crc32c(const unsigned char *data, long long size) {
        unsigned long long crc = 0xffffffff, second, third;
        for (int way = 0; way < 2; way++) {
            const int lane = kdump_lane_sizes[way];
            for (; size >= 3 * lane; size -= 3 * lane, data += 3 * lane) {
                second = third = 0;
                for (int at = 0; at < lane; at += 64) {
                    for (int part = 0; part < 3; part++)
                        __builtin_prefetch(data + (3 + part) * lane + at);
                    for (int word = at; word < at + 64; word += 8) {
                        crc = _mm_crc32_u64(crc, kdump_word(data + word));
                        second = _mm_crc32_u64(second, kdump_word(data + lane + word));
                        third = _mm_crc32_u64(third, kdump_word(data + 2 * lane + word));
                    }
                }
                crc = kdump_moved((unsigned int) crc, kdump_powers[way][1])
                    ^ kdump_moved((unsigned int) second, kdump_powers[way][0]) ^ (unsigned int) third;
            }
        }
        for (; size >= 8; size -= 8, data += 8)
            crc = _mm_crc32_u64(crc, kdump_word(data));
        for (; size > 0; size--, data++)
            crc = _mm_crc32_u8((unsigned int) crc, *data);
        return ~(unsigned int) crc;
    }
    #else
    #define kdump_has_crc32c() 0
    #define kdump_crc32c(data, size) 0
    #endif
    """
    # Whether this processor has instructions for CRC-32C. This fills tables, so call it before the first checksum.
    bint has_crc32c "kdump_has_crc32c"() noexcept nogil

    # The CRC-32C of ``size`` bytes, computed with these instructions.
    unsigned int fast_crc32c "kdump_crc32c"(const unsigned char* data, long long size) noexcept nogil
