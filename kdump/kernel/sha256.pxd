# SHA-256 with the processor's instructions.

cdef extern from *:
    """
    #if defined(__GNUC__) && defined(__x86_64__)
    #include <cpuid.h>
    #include <immintrin.h>

    static int kdump_has_sha(void) {
        unsigned int a, b = 0, c, d;
        __builtin_cpu_init();
        return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1) && __builtin_cpu_supports("sse4.1");
    }

    /* Do the next four rounds. The vectors hold the last sixteen words, the first word in the lowest lane. The state
       has the order of the instructions: a, b, e, f and c, d, g, h. */
    __attribute__((always_inline, target("sha,sse4.1"))) static inline void kdump_four_rounds(
            int t, __m128i *words, const unsigned char *block, __m128i *abef, __m128i *cdgh, const unsigned int *rounds) {
        const __m128i ordered = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
        __m128i last = words[(t + 3) & 3], sum;
        if (t < 4)
            words[t] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *) block + t), ordered);
        else
            words[t & 3] = _mm_sha256msg2_epu32(
                _mm_add_epi32(
                    _mm_sha256msg1_epu32(words[t & 3], words[(t + 1) & 3]), _mm_alignr_epi8(last, words[(t + 2) & 3], 4)),
                last);
        sum = _mm_add_epi32(words[t & 3], _mm_loadu_si128((const __m128i *) rounds + t));
        *cdgh = _mm_sha256rnds2_epu32(*cdgh, *abef, sum);
        *abef = _mm_sha256rnds2_epu32(*abef, *cdgh, _mm_shuffle_epi32(sum, 0x0e));
    }

    __attribute__((always_inline, target("sha,sse4.1"))) static inline void kdump_loaded(
            const unsigned int *state, __m128i *abef, __m128i *cdgh) {
        __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *) state), 0xb1);
        __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *) state + 1), 0x1b);
        *abef = _mm_alignr_epi8(badc, hgfe, 8);
        *cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
    }

    __attribute__((always_inline, target("sha,sse4.1"))) static inline void kdump_added(
            unsigned int *state, __m128i abef, __m128i cdgh) {
        __m128i *to = (__m128i *) state, feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
        _mm_storeu_si128(to, _mm_add_epi32(_mm_loadu_si128(to), _mm_blend_epi16(feba, dchg, 0xf0)));
        _mm_storeu_si128(to + 1, _mm_add_epi32(_mm_loadu_si128(to + 1), _mm_alignr_epi8(dchg, feba, 8)));
    }

    __attribute__((target("sha,sse4.1"))) static void kdump_mixed(
            unsigned int *state, const unsigned char *block, const unsigned int *rounds) {
        __m128i words[4] = {0}, abef, cdgh;
        kdump_loaded(state, &abef, &cdgh);
        #pragma GCC unroll 16
        for (int t = 0; t < 16; t++)
            kdump_four_rounds(t, words, block, &abef, &cdgh, rounds);
        kdump_added(state, abef, cdgh);
    }

    /* A round depends on the previous one, so rounds of two states alternate. */
    __attribute__((target("sha,sse4.1"))) static void kdump_mixed_two(
            unsigned int *state, const unsigned char *block, unsigned int *other, const unsigned char *its_block,
            const unsigned int *rounds) {
        __m128i words[4] = {0}, its_words[4] = {0}, abef, cdgh, its_abef, its_cdgh;
        kdump_loaded(state, &abef, &cdgh);
        kdump_loaded(other, &its_abef, &its_cdgh);
        #pragma GCC unroll 16
        for (int t = 0; t < 16; t++) {
            kdump_four_rounds(t, words, block, &abef, &cdgh, rounds);
            kdump_four_rounds(t, its_words, its_block, &its_abef, &its_cdgh, rounds);
        }
        kdump_added(state, abef, cdgh);
        kdump_added(other, its_abef, its_cdgh);
    }

    /* Store 16 bytes at a time, like the loads that follow. */
    static inline void kdump_digest(unsigned char *out, const unsigned int *state) {
        for (int half = 0; half < 2; half++) {
            __m128i words = _mm_loadu_si128((const __m128i *) state + half);
            words = _mm_or_si128(_mm_srli_epi16(words, 8), _mm_slli_epi16(words, 8));
            words = _mm_shufflehi_epi16(_mm_shufflelo_epi16(words, 0xb1), 0xb1);
            _mm_storeu_si128((__m128i *) out + half, words);
        }
    }
    #else
    static inline void kdump_digest(unsigned char *out, const unsigned int *state) {
        for (int at = 0; at < 32; at++)
            out[at] = (unsigned char) (state[at >> 2] >> (24 - 8 * (at & 3)));
    }
    #define kdump_has_sha() 0
    #define kdump_mixed(state, block, rounds) ((void) 0)
    #define kdump_mixed_two(state, block, other, its_block, rounds) ((void) 0)
    #endif
    """
    # Whether this processor has instructions for SHA-256.
    bint has_sha "kdump_has_sha"() noexcept nogil

    # Mix a block of 64 bytes into a state of SHA-256 with these instructions. ``rounds`` are the 64 constants.
    void mixed "kdump_mixed"(unsigned int* state, const unsigned char* block, const unsigned int* rounds) noexcept nogil

    # Write the 32 bytes of a state.
    void write_digest "kdump_digest"(unsigned char* out, const unsigned int* state) noexcept nogil

    # Mix a block into each of two states, faster than by two calls.
    void mixed_two "kdump_mixed_two"(unsigned int* state, const unsigned char* block, unsigned int* other, const unsigned char* its_block, const unsigned int* rounds) noexcept nogil
