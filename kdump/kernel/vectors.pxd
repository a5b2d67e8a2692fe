# Text processing with the processor's vector instructions: copying with checks, inserting escapes, hex digits.

cdef extern from *:
    """
    #if defined(__GNUC__) && defined(__x86_64__)
    #include <immintrin.h>
    #include <string.h>

    /* Copy 64 bytes at a time; "there" bytes are readable, at least "size". Return the number of copied bytes of the
       text, which may be less than size. "high" is set if these are not all ASCII. */
    static inline long long kdump_sixty_four(
            unsigned char *out, const unsigned char *text, long long size, long long there, int *high) {
        __m128i first, second, third, fourth, seen = _mm_setzero_si128();
        unsigned long long bits;
        long long at = 0;
        if (size <= 16 && there >= 16) {
            first = _mm_loadu_si128((const __m128i *) text);
            _mm_storeu_si128((__m128i *) out, first);
            *high = _mm_movemask_epi8(first) & ((1 << size) - 1);
            return size;
        }
        for (; there - at >= 64; at += 64) {
            const __m128i *from = (const __m128i *) (text + at);
            __m128i *to = (__m128i *) (out + at);
            first = _mm_loadu_si128(from), second = _mm_loadu_si128(from + 1);
            third = _mm_loadu_si128(from + 2), fourth = _mm_loadu_si128(from + 3);
            _mm_storeu_si128(to, first), _mm_storeu_si128(to + 1, second);
            _mm_storeu_si128(to + 2, third), _mm_storeu_si128(to + 3, fourth);
            if (size - at <= 64) {
                bits = (unsigned long long) _mm_movemask_epi8(first)
                    | (unsigned long long) _mm_movemask_epi8(second) << 16
                    | (unsigned long long) _mm_movemask_epi8(third) << 32
                    | (unsigned long long) _mm_movemask_epi8(fourth) << 48;
                *high = _mm_movemask_epi8(seen) || bits & ~0ULL >> (64 - (size - at));
                return size;
            }
            seen = _mm_or_si128(_mm_or_si128(seen, _mm_or_si128(first, second)), _mm_or_si128(third, fourth));
        }
        *high = _mm_movemask_epi8(seen);
        return at;
    }

    /* Copy a text of at most sixteen bytes, where sixteen are readable. Return whether no byte needs an escape. A byte
       plus one is less than 0x21 for control characters, and negative for DEL and above. */
    static inline int kdump_short_plain(unsigned char *out, const unsigned char *text, int size, char also) {
        __m128i bytes = _mm_loadu_si128((const __m128i *) text);
        __m128i odd = _mm_cmplt_epi8(_mm_add_epi8(bytes, _mm_set1_epi8(1)), _mm_set1_epi8(0x21));
        odd = _mm_or_si128(odd, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')));
        odd = _mm_or_si128(odd, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\\\')));
        odd = _mm_or_si128(odd, _mm_cmpeq_epi8(bytes, _mm_set1_epi8(also)));
        _mm_storeu_si128((__m128i *) out, bytes);
        return (_mm_movemask_epi8(odd) & ((1 << size) - 1)) == 0;
    }

    /* Load one to fifteen bytes, followed by zeros, and read no other bytes. */
    static inline __m128i kdump_up_to_fifteen(const unsigned char *text, int size) {
        unsigned long long low = 0, high = 0;
        if (size > 8) {
            memcpy(&low, text, 8);
            memcpy(&high, text + size - 8, 8);
            high >>= 8 * (16 - size);
        } else if (size == 8) {
            memcpy(&low, text, 8);
        } else if (size >= 4) {
            unsigned int first, last;
            memcpy(&first, text, 4);
            memcpy(&last, text + size - 4, 4);
            low = first | (unsigned long long) last << 8 * (size - 4);
        } else {
            low = text[0] | (unsigned long long) text[size >> 1] << 8 * (size >> 1)
                | (unsigned long long) text[size - 1] << 8 * (size - 1);
        }
        return _mm_set_epi64x((long long) high, (long long) low);
    }

    /* Write eight bytes, with "insert" before each byte whose bit is set in "odd". "orders" has the shuffle for each
       value of "odd". */
    __attribute__((always_inline, target("ssse3"))) static inline void kdump_spread(
            unsigned char *out, __m128i bytes, const char *orders, int odd, __m128i insert) {
        __m128i order = _mm_loadu_si128((const __m128i *) (orders + 16 * odd));
        __m128i inserted = _mm_and_si128(_mm_cmplt_epi8(order, _mm_setzero_si128()), insert);
        _mm_storeu_si128((__m128i *) out, _mm_or_si128(_mm_shuffle_epi8(bytes, order), inserted));
    }

    /* The next two loops process several bytes at a time. "odd" has a bit for each byte that needs "insert" before it.
       With "awkward" the output is CSV. Without it the output is JSON, and ends before control characters and DEL. */
    __attribute__((always_inline, target("ssse3,popcnt"))) static inline const unsigned char *kdump_shuffled(
            unsigned char **to, const unsigned char *text, const unsigned char *stop, const char *orders,
            unsigned long long *seen, int *awkward) {
        const __m128i quote = _mm_set1_epi8('"'), comma = _mm_set1_epi8(',');
        const __m128i newline = _mm_set1_epi8(10), cr = _mm_set1_epi8(13);
        const __m128i last_control = _mm_set1_epi8(0x1f), del = _mm_set1_epi8(0x7f);
        const __m128i backslash = _mm_set1_epi8('\\\\'), insert = awkward ? quote : backslash;
        __m128i all = _mm_setzero_si128();
        unsigned char *out = *to;
        int found_awkward = 0;
        while (text < stop) {
            int size = stop - text < 16 ? (int) (stop - text) : 16;
            __m128i bytes = size == 16 ? _mm_loadu_si128((const __m128i *) text) : kdump_up_to_fifteen(text, size);
            __m128i found = _mm_cmpeq_epi8(bytes, quote);
            if (awkward) {
                if (!found_awkward) {
                    __m128i lines = _mm_or_si128(_mm_cmpeq_epi8(bytes, newline), _mm_cmpeq_epi8(bytes, cr));
                    lines = _mm_or_si128(lines, _mm_cmpeq_epi8(bytes, comma));
                    found_awkward = _mm_movemask_epi8(_mm_or_si128(found, lines));
                }
            } else {
                __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes);
                if (_mm_movemask_epi8(_mm_or_si128(control, _mm_cmpeq_epi8(bytes, del))) & ((1 << size) - 1))
                    break;
                found = _mm_or_si128(found, _mm_cmpeq_epi8(bytes, backslash));
            }
            int odd = _mm_movemask_epi8(found);
            all = _mm_or_si128(all, bytes);
            text += size;
            if (odd == 0) {
                _mm_storeu_si128((__m128i *) out, bytes);
                out += size;
                continue;
            }
            kdump_spread(out, bytes, orders, odd & 0xff, insert);
            if (size > 8)
                kdump_spread(out + 8 + _mm_popcnt_u32(odd & 0xff), _mm_srli_si128(bytes, 8), orders, odd >> 8, insert);
            out += size + _mm_popcnt_u32(odd);
        }
        *to = out;
        if (found_awkward)
            *awkward = 1;
        if (_mm_movemask_epi8(all))
            *seen |= 0x8080808080808080ULL;
        return text;
    }

    /* Put the insert before each of 32 bytes, then remove the unwanted bytes from these 64. */
    __attribute__((always_inline, target("avx512vbmi2,avx512bw,avx512vl,bmi2,popcnt")))
    static inline unsigned char *kdump_squeezed(
            unsigned char *out, __m256i bytes, unsigned int there, unsigned int odd, __m512i insert) {
        __m512i pairs = _mm512_or_si512(_mm512_slli_epi16(_mm512_cvtepu8_epi16(bytes), 8), insert);
        unsigned long long wanted = _pdep_u64(odd, 0x5555555555555555ULL) | _pdep_u64(there, 0xaaaaaaaaaaaaaaaaULL);
        _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(wanted, pairs));
        return out + _mm_popcnt_u64(wanted);
    }

    __attribute__((always_inline, target("avx512vbmi2,avx512bw,avx512vl,bmi2,popcnt")))
    static inline const unsigned char *kdump_in_sixty_fours(
            unsigned char **to, const unsigned char *text, const unsigned char *stop, unsigned long long *seen,
            int *awkward) {
        const __m512i quote = _mm512_set1_epi8('"'), backslash = _mm512_set1_epi8('\\\\');
        const __m512i insert = _mm512_set1_epi16(awkward ? '"' : '\\\\');
        __m512i all = _mm512_setzero_si512();
        unsigned char *out = *to;
        int found_awkward = 0, ended = 0;
        while (text < stop && !ended) {
            int size = stop - text < 64 ? (int) (stop - text) : 64;
            unsigned long long there = _bzhi_u64(~0ULL, size);
            __m512i bytes = _mm512_maskz_loadu_epi8(there, text);
            unsigned long long odd = _mm512_cmpeq_epi8_mask(bytes, quote);
            if (awkward) {
                if (!found_awkward)
                    found_awkward = (odd | _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(','))
                        | _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(10))
                        | _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(13))) != 0;
            } else {
                unsigned long long end = _mm512_mask_cmple_epu8_mask(there, bytes, _mm512_set1_epi8(0x1f))
                    | _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(0x7f));
                odd |= _mm512_cmpeq_epi8_mask(bytes, backslash);
                if (end) {
                    size = __builtin_ctzll(end);
                    there = _bzhi_u64(~0ULL, size);
                    bytes = _mm512_maskz_mov_epi8(there, bytes);
                    odd &= there;
                    ended = 1;
                }
            }
            all = _mm512_or_si512(all, bytes);
            text += size;
            if (odd == 0) {
                _mm512_storeu_si512(out, bytes);
                out += size;
                continue;
            }
            out = kdump_squeezed(
                out, _mm512_castsi512_si256(bytes), (unsigned int) there, (unsigned int) odd, insert);
            if (size > 32)
                out = kdump_squeezed(
                    out, _mm512_extracti64x4_epi64(bytes, 1), (unsigned int) (there >> 32), (unsigned int) (odd >> 32),
                    insert);
        }
        *to = out;
        if (found_awkward)
            *awkward = 1;
        if (_mm512_movepi8_mask(all))
            *seen |= 0x8080808080808080ULL;
        return text;
    }

    /* Return the number of bytes (64 or 16) into which this processor inserts escapes at once; 0 if it cannot. */
    static int kdump_stride(void) {
        __builtin_cpu_init();
        if (!__builtin_cpu_supports("popcnt") || !__builtin_cpu_supports("ssse3"))
            return 0;
        return __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2") ? 64 : 16;
    }

    __attribute__((target("ssse3,popcnt"))) static const unsigned char *kdump_shuffled_either(
            unsigned char **to, const unsigned char *text, const unsigned char *stop, const char *orders,
            unsigned long long *seen, int *awkward) {
        return awkward ? kdump_shuffled(to, text, stop, orders, seen, awkward)
            : kdump_shuffled(to, text, stop, orders, seen, NULL);
    }

    __attribute__((target("avx512vbmi2,avx512bw,avx512vl,bmi2,popcnt")))
    static const unsigned char *kdump_squeezed_either(
            unsigned char **to, const unsigned char *text, const unsigned char *stop, unsigned long long *seen,
            int *awkward) {
        return awkward ? kdump_in_sixty_fours(to, text, stop, seen, awkward)
            : kdump_in_sixty_fours(to, text, stop, seen, NULL);
    }

    __attribute__((target("avx512vbmi2,avx512bw,avx512vl,bmi2,popcnt")))
    static int kdump_copied_plain(unsigned char *out, const unsigned char *text, int size, int also) {
        unsigned long long there = _bzhi_u64(~0ULL, size);
        __m512i bytes = _mm512_maskz_loadu_epi8(there, text);
        /* A byte plus one is less than this for control characters, and negative for DEL and above. */
        unsigned long long odd = _mm512_mask_cmple_epi8_mask(
            there, _mm512_add_epi8(bytes, _mm512_set1_epi8(1)), _mm512_set1_epi8(0x20));
        odd |= _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('"'));
        odd |= _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\\\\'));
        odd |= _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8((char) also));
        _mm512_storeu_si512(out, bytes);
        return odd == 0;
    }

    static inline const unsigned char *kdump_inserted(
            int stride, unsigned char **to, const unsigned char *text, const unsigned char *stop, const char *orders,
            unsigned long long *seen, int *awkward) {
        return stride == 64 ? kdump_squeezed_either(to, text, stop, seen, awkward)
            : kdump_shuffled_either(to, text, stop, orders, seen, awkward);
    }
    #else
    #define kdump_stride() 0
    #define kdump_inserted(stride, to, text, stop, orders, seen, awkward) (text)
    #define kdump_copied_plain(out, text, size, also) 0
    #define kdump_short_plain(out, text, size, also) 0
    #define kdump_sixty_four(out, text, size, there, high) 0
    #endif

    static inline long long kdump_hex_in_sixteens(unsigned char *out, const unsigned char *text, long long size) {
        long long at = 0;
    #if defined(__GNUC__) && defined(__x86_64__)
        const __m128i low = _mm_set1_epi8(0x0f), zero = _mm_set1_epi8('0'), nine = _mm_set1_epi8('9');
        const __m128i beyond = _mm_set1_epi8('a' - '9' - 1);
        for (; size - at >= 16; at += 16) {
            __m128i bytes = _mm_loadu_si128((const __m128i *) (text + at));
            __m128i first = _mm_add_epi8(_mm_and_si128(_mm_srli_epi16(bytes, 4), low), zero);
            __m128i second = _mm_add_epi8(_mm_and_si128(bytes, low), zero);
            first = _mm_add_epi8(first, _mm_and_si128(_mm_cmpgt_epi8(first, nine), beyond));
            second = _mm_add_epi8(second, _mm_and_si128(_mm_cmpgt_epi8(second, nine), beyond));
            _mm_storeu_si128((__m128i *) (out + 2 * at), _mm_unpacklo_epi8(first, second));
            _mm_storeu_si128((__m128i *) (out + 2 * at + 16), _mm_unpackhi_epi8(first, second));
        }
    #endif
        return at;
    }

    static inline int kdump_copied_ascii(
            unsigned char *out, const unsigned char *text, long long size, long long there) {
        int high = 0;
        unsigned char seen = 0;
        for (long long at = kdump_sixty_four(out, text, size, there, &high); at < size; at++)
            seen |= out[at] = text[at];
        return !high && seen < 128;
    }
    """
    # The number of bytes (64 or 16) into which this processor inserts escapes at once; 0 if it cannot.
    int best_stride "kdump_stride"() noexcept nogil

    # Write two hex digits for each byte, for the largest multiple of sixteen bytes. Return this multiple.
    Py_ssize_t hex_in_sixteens "kdump_hex_in_sixteens"(unsigned char* out, const unsigned char* text, Py_ssize_t size) noexcept nogil

    # Copy ``size`` (one or more) bytes of a text. Return whether all are ASCII. ``there`` bytes are readable, at least
    # ``size``. Up to 64 bytes more than ``size`` are written.
    bint copied_ascii "kdump_copied_ascii"(unsigned char* out, const unsigned char* text, Py_ssize_t size, Py_ssize_t there) noexcept nogil

    # Copy 1 to 64 bytes of a text. Return whether all are ASCII without control characters, DEL, quotes, backslashes and
    # ``also``. 64 bytes are overwritten. best_stride() must be 64.
    bint copied_plain "kdump_copied_plain"(unsigned char* out, const unsigned char* text, int size, int also) noexcept nogil

    # The same for 0 to 16 bytes, if 16 are readable, on any x86-64 processor. On other processors return 0.
    bint short_plain "kdump_short_plain"(unsigned char* out, const unsigned char* text, int size, char also) noexcept nogil

    # Copy text, ``stride`` bytes (64 or 16) at a time, and return the end of the copied text. If ``awkward`` is NULL,
    # write JSON: put a backslash before quotes and backslashes, and stop at a control character or DEL, or up to 16
    # bytes before it. Otherwise write CSV: copy all of it, put a quote before quotes, and set ``awkward`` if the cell
    # needs quotes. ``to`` becomes the end of the output, after which up to 64 bytes are overwritten. Non-ASCII bytes
    # set high bits of ``seen``. ``orders`` has the shuffle for each set of eight bytes.
    const unsigned char* inserted "kdump_inserted"(int stride, unsigned char** to, const unsigned char* text, const unsigned char* stop, const char* orders, unsigned long long* seen, int* awkward) noexcept nogil
