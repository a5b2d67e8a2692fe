# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The escapes of strings of JSON, cells of CSV, and what is valid UTF-8.

What C needs stands in ``quoting.pxd``.
"""

from libc.string cimport memcpy, memmove
from kdump.kernel.words cimport best_stride, copied_plain, inserted, lowest, ordered

cdef int _ESCAPE = 8  # bytes of an entry of a table of escapes


def _orders():
    """Return 16 bytes for each set of eight bytes, a bit for each: which of the eight stands where, when a backslash is
    put in front of those of the set. Bytes with the high bit stand for backslashes, and for nothing behind the text.
    """


    made = b""
    for odd in range(256):
        order = [place for byte in range(8) for place in ([0x80, byte] if odd >> byte & 1 else [byte])]
        made += bytes(order).ljust(16, b"\x80")
    return made


cdef bytes _ORDERS_OF_BYTES = _orders()
cdef char* _ORDERS = _ORDERS_OF_BYTES
cdef int _STRIDE = best_stride()


def look_at(most):
    """Look at 64, 16 or no bytes at once when some are inserted, at most as many as the processor can; return how many.

    What is written is the same.
    """
    global _STRIDE
    _STRIDE = min(most, best_stride())
    return _STRIDE


def escapes(quote):
    """Return eight bytes for each byte of a text: what stands for it in a string of JSON, its size in the last one."""
    table = b""
    for byte in range(256):
        text = quote(chr(byte))
        shown = text[1 : len(text) - 1].encode() if byte < 128 else bytes([byte])
        table += shown.ljust(7, b"\0") + bytes([len(shown)])
    return table


cdef bint plain(unsigned char* out, const unsigned char* text, Py_ssize_t size, unsigned char also) noexcept nogil:
    """Copy a short text if it stands as it is in a string of JSON, is ASCII and without ``also``; say if that is done.

    BEYOND bytes are touched. A longer text is never copied, an empty one neither.
    """
    if _STRIDE == 64:
        return 0 < size <= 64 and copied_plain(out, text, <int> size, also)
    return also == 34 and 4 <= size <= 16 and copied(out, text, size)


cdef unsigned char* escaped(
    unsigned char* out,
    const unsigned char* text,
    Py_ssize_t size,
    const unsigned char* shown,
    unsigned long long* bits,
) noexcept nogil:
    """Write ``text`` with the escapes of JSON; return the position behind it. The high bits of ``bits`` tell of bytes
    beyond ASCII. Up to 8 * size + BEYOND bytes are touched.

    ``shown`` holds eight bytes for each byte: what stands for it, its size in the last one.
    """
    cdef const unsigned char* stop = text + size
    cdef unsigned long long word = 0
    cdef unsigned long long odd
    cdef unsigned long long seen = 0
    cdef int rest
    while True:
        if _STRIDE:
            text = inserted(_STRIDE, &out, text, stop, _ORDERS, &seen, NULL)
        if stop - text < 8:
            break
        memcpy(&word, text, 8)
        memcpy(out, &word, 8)
        seen |= word
        text += 8
        odd = odd_of(word)
        out += 8
        if odd:
            out = _spelt(out - 8, ordered(word), ordered(odd), 8, shown)
    rest = <int> (stop - text)
    if rest > 0:
        if size >= 8:  # the last eight bytes, without those that are written already
            memcpy(&word, stop - 8, 8)
            word = ordered(word) >> (8 * (8 - rest))
        else:
            word = 0
            while stop > text:
                stop -= 1
                word = (word << 8) | stop[0]
        seen |= word
        odd = odd_of(word) & (~<unsigned long long> 0 >> (8 * (8 - rest)))
        out = _spelt(out, word, odd, rest, shown)
    bits[0] |= seen
    return out


cdef inline unsigned char* _spelt(
    unsigned char* out, unsigned long long word, unsigned long long odd, int size, const unsigned char* shown
) noexcept nogil:
    """Write the first ``size`` bytes of a word, at most eight, in which those of ``odd`` are spelt out.

    The first byte stands lowest in both. What follows a byte is written behind it as if it were easy, until the next.
    """
    cdef const unsigned char* entry
    cdef int at
    cdef unsigned long long little = ordered(word)
    memcpy(out, &little, 8)
    while odd:
        at = lowest(odd) & 0x38  # bits in front of the byte
        entry = shown + _ESCAPE * ((word >> at) & 0xFF)
        out += at >> 3
        memcpy(out, entry, 8)
        out += entry[7]
        word = word >> at >> 8
        odd = odd >> at >> 8
        little = ordered(word)
        memcpy(out, &little, 8)
        size -= (at >> 3) + 1
    return out + size


cdef unsigned char* cell(
    unsigned char* out, const unsigned char* text, Py_ssize_t size, unsigned long long* bits
) noexcept nogil:
    """Write a cell of CSV, in quotes where it needs them; return the position behind it.

    The high bits of ``bits`` tell of bytes beyond ASCII. Up to 2 * size + BEYOND bytes are touched.
    """
    cdef unsigned char* end = out + 1
    cdef Py_ssize_t at
    cdef unsigned long long[4] words
    cdef unsigned char seen = 0
    cdef int awkward = size == 0 or text[0] == 32 or text[size - 1] == 32
    if not awkward and plain(out, text, size, 44):
        return out + size
    out[0] = 34
    if _STRIDE:
        inserted(_STRIDE, &end, text, text + size, _ORDERS, bits, &awkward)
    else:
        for at in range(size):
            seen |= text[at]
            awkward |= (text[at] == 34) | (text[at] == 44) | (text[at] == 10) | (text[at] == 13)
            end[0] = text[at]
            end[1] = 34
            end += 1 + (text[at] == 34)
        bits[0] |= seen
    if awkward:
        end[0] = 34
        return end + 1
    if size <= 32:
        memcpy(words, out + 1, 32)
        memcpy(out, words, 32)
    else:
        memmove(out, out + 1, size)
    return out + size


cdef bint is_utf8(const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Tell whether ``text`` is valid: nothing is cut off, overlong, a surrogate or beyond the last character."""
    cdef Py_ssize_t at = 0
    cdef unsigned long long word = 0
    cdef unsigned long long[4] words
    cdef unsigned int lead
    cdef unsigned int second
    cdef int more
    while at < size:
        if size - at >= 32:
            memcpy(words, text + at, 32)
            if not (words[0] | words[1] | words[2] | words[3]) & <unsigned long long> 0x8080808080808080:
                at += 32
                continue
        if size - at >= 8:
            memcpy(&word, text + at, 8)
            if not word & <unsigned long long> 0x8080808080808080:
                at += 8
                continue
        lead = text[at]
        at += 1
        if lead < 0x80:
            continue
        more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        if lead < 0xC2 or lead > 0xF4 or at + more > size:
            return False
        second = text[at]
        if (
            (lead == 0xE0 and second < 0xA0)
            or (lead == 0xED and second > 0x9F)
            or (lead == 0xF0 and second < 0x90)
            or (lead == 0xF4 and second > 0x8F)
        ):
            return False
        while more > 0:
            if text[at] & 0xC0 != 0x80:
                return False
            at += 1
            more -= 1
    return True
