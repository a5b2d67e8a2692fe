# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The escapes of strings of JSON, cells of CSV, and what is valid UTF-8.

What C needs stands in ``quoting.pxd``.
"""

from libc.string cimport memcpy, memmove
from kdump.kernel.words cimport doubled, has_shuffles, lowest, ordered, quoted

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
cdef bint _WIDE = has_shuffles()


def move_words(alone):
    """Do without what moves sixteen bytes at once, or with it where the processor can: what is written is the same."""
    global _WIDE
    _WIDE = not alone and has_shuffles()


def escapes(quote):
    """Return eight bytes for each byte of a text: what stands for it in a string of JSON, its size in the last one."""
    table = b""
    for byte in range(256):
        text = quote(chr(byte))
        shown = text[1 : len(text) - 1].encode() if byte < 128 else bytes([byte])
        table += shown.ljust(7, b"\0") + bytes([len(shown)])
    return table


cdef unsigned char* escaped(
    unsigned char* out,
    const unsigned char* text,
    Py_ssize_t size,
    const unsigned char* shown,
    unsigned long long* bits,
) noexcept nogil:
    """Write ``text`` with the escapes of JSON; return the position behind it. The high bits of ``bits`` tell of bytes
    beyond ASCII.

    ``shown`` holds eight bytes for each byte: what stands for it, its size in the last one.
    """
    cdef const unsigned char* stop = text + size
    cdef unsigned long long word = 0
    cdef unsigned long long odd
    cdef unsigned long long seen = 0
    cdef int rest
    while True:
        if _WIDE:
            text = quoted(&out, text, stop, _ORDERS, &seen)
        if stop - text < 8:
            break
        memcpy(&word, text, 8)
        memcpy(out, &word, 8)
        seen |= word
        text += 8
        odd = _odd(word)
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
        odd = _odd(word) & (~<unsigned long long> 0 >> (8 * (8 - rest)))
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


cdef inline unsigned long long _odd(unsigned long long word) noexcept nogil:
    """Return the high bits of those of eight bytes that are a control character, a quote, a backslash or DEL.

    Each byte is looked at without its high bit, so that no sum carries into the next: the high bits of the sums tell.
    """
    cdef unsigned long long low = word & <unsigned long long> 0x7F7F7F7F7F7F7F7F
    cdef unsigned long long quote = low ^ <unsigned long long> 0x2222222222222222
    cdef unsigned long long backslash = low ^ <unsigned long long> 0x5C5C5C5C5C5C5C5C
    cdef unsigned long long fine = low + <unsigned long long> 0x6060606060606060
    fine &= quote + <unsigned long long> 0x7F7F7F7F7F7F7F7F
    fine &= backslash + <unsigned long long> 0x7F7F7F7F7F7F7F7F
    fine &= ~(low + <unsigned long long> 0x0101010101010101)
    return ~(fine | word) & <unsigned long long> 0x8080808080808080


cdef unsigned char* cell(
    unsigned char* out, const unsigned char* text, Py_ssize_t size, unsigned long long* bits
) noexcept nogil:
    """Write a cell of CSV, in quotes where it needs them; return the position behind it.

    The high bits of ``bits`` tell of bytes beyond ASCII. Up to 2 * size + 32 bytes are touched.
    """
    cdef unsigned char* end = out + 1
    cdef Py_ssize_t at
    cdef unsigned char seen = 0
    cdef bint awkward = size == 0 or text[0] == 32 or text[size - 1] == 32
    out[0] = 34
    if _WIDE:
        awkward |= doubled(&end, text, text + size, _ORDERS, bits)
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
    memmove(out, out + 1, size)
    return out + size


cdef bint is_utf8(const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Tell whether ``text`` is valid: nothing is cut off, overlong, a surrogate or beyond the last character."""
    cdef Py_ssize_t at = 0
    cdef unsigned long long word = 0
    cdef unsigned int lead
    cdef unsigned int second
    cdef int more
    while at < size:
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
