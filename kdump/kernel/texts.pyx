# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""Converts bytes to text: JSON strings, CSV cells, hex, base64. Checks for valid UTF-8 and for a JSON value.

The C interface is in ``texts.pxd``. The general path is :mod:`kdump.primitives.encodings`.
"""

from libc.string cimport memcpy, memmove
from kdump.kernel.vectors cimport best_stride, copied_plain, hex_in_sixteens, inserted
from kdump.kernel.words cimport lowest, ordered

cdef int _ESCAPE = 8  # size of an entry of a table of escapes


def _orders():
    """Return 256 byte shuffles. Shuffle ``n`` puts a backslash before each of eight bytes whose bit is set in ``n``.

    A shuffle has 16 bytes: indexes of the eight bytes, and 0x80 for a backslash and after the end.
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
    """Set how many bytes are escaped at once: ``most``, or fewer if the processor cannot. Return this number.

    It is 64, 16 or 0. The output does not depend on it.
    """
    global _STRIDE
    _STRIDE = min(most, best_stride())
    return _STRIDE


def escapes(quote):
    """Return eight bytes for each byte: its replacement in a JSON string. The last of the eight is the size."""
    table = b""
    for byte in range(256):
        text = quote(chr(byte))
        shown = text[1 : len(text) - 1].encode() if byte < 128 else bytes([byte])
        table += shown.ljust(7, b"\0") + bytes([len(shown)])
    return table


cdef bint plain(unsigned char* out, const unsigned char* text, Py_ssize_t size, unsigned char also) noexcept nogil:
    """Copy a short ASCII text without escapes in JSON and without the byte ``also``. Return whether it was copied.

    Up to BEYOND bytes are overwritten. Texts that are empty or have more than 64 bytes are not copied.
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
    """Write ``text`` with JSON escapes, and return the position after it. Non-ASCII bytes set high bits of ``bits``.

    Up to 8 * size + BEYOND bytes are overwritten. ``shown`` is the result of :func:`escapes`.
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
        if size >= 8:  # the last eight bytes, without those already written
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
    """Write the first ``size`` bytes (at most eight) of a word. Escape the bytes whose bits are set in ``odd``.

    In both numbers the first byte is the lowest.
    """
    cdef const unsigned char* entry
    cdef int at
    cdef unsigned long long little = ordered(word)
    memcpy(out, &little, 8)
    while odd:
        at = lowest(odd) & 0x38  # bits before the byte
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
    """Write a CSV cell, with quotes if it needs them. Return the position after it.

    Non-ASCII bytes set high bits of ``bits``. Up to 2 * size + BEYOND bytes are overwritten.
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
    """Return whether ``text`` is valid UTF-8: complete and shortest sequences up to U+10FFFF, no surrogates."""
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


cdef const char* _DIGITS = "0123456789abcdef"
cdef const char* _LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
cdef char[2 * 256] _HEX  # of each byte
cdef char[2 * 4096] _PAIRS  # of letters, for twelve bits
cdef unsigned long long _HIGH_BITS = 0x8080808080808080
cdef int _DEEPEST = 60  # maximum depth of arrays and objects
cdef Py_ssize_t _LONGEST = 4000  # maximum number of digits of a number


cdef void _pair(char* pairs, const char* each, int count) noexcept:
    cdef int number
    for number in range(count * count):
        pairs[2 * number] = each[number // count]
        pairs[2 * number + 1] = each[number % count]


_pair(_HEX, _DIGITS, 16)
_pair(_PAIRS, _LETTERS, 64)


cdef void hex_digits(unsigned char* out, const unsigned char* text, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t at
    for at in range(hex_in_sixteens(out, text, size), size):
        memcpy(out + 2 * at, _HEX + 2 * text[at], 2)


cdef unsigned char* base64(unsigned char* out, const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Write four letters for each three bytes (RFC 4648), with padding. Return the position after the letters."""
    cdef unsigned int three
    while size >= 3:
        three = text[0] << 16 | text[1] << 8 | text[2]
        memcpy(out, _PAIRS + 2 * (three >> 12), 2)
        memcpy(out + 2, _PAIRS + 2 * (three & 0xFFF), 2)
        out += 4
        text += 3
        size -= 3
    if size > 0:
        three = text[0] << 16 | (text[1] << 8 if size == 2 else 0)
        memcpy(out, _PAIRS + 2 * (three >> 12), 2)
        memcpy(out + 2, _PAIRS + 2 * (three & 0xFFF), 2)
        out[3] = 61
        if size == 1:
            out[2] = 61
        out += 4
    return out


def is_json(const unsigned char[::1] text):
    return json_value(&text[0], text.shape[0]) if text.shape[0] else 0


cdef int json_value(const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Return 1 for a JSON value (RFC 8259), 0 for any other text, -1 if the general path must decide.

    Non-ASCII bytes are accepted in strings only, where they count as valid UTF-8.
    """
    cdef unsigned long long objects = 0  # a bit for each open array or object, the innermost lowest
    cdef int depth = 0
    cdef Py_ssize_t at = 0
    cdef bint named
    while True:
        at = after_spaces(text, at, size)
        if at == size:
            return 0
        if text[at] == 123 or text[at] == 91:
            named = text[at] == 123
            if depth == _DEEPEST:
                return -1
            at = after_spaces(text, at + 1, size)
            if at < size and text[at] == (125 if named else 93):
                at += 1
            else:
                depth += 1
                objects = objects << 1 | named
                if named:
                    at = after_name(text, at, size)
                    if at < 0:
                        return <int> at + 1
                continue
        else:
            at = after_scalar(text, at, size)
            if at < 0:
                return <int> at + 1
        while True:  # a value ends; the arrays and objects around it may end too
            at = after_spaces(text, at, size)
            if depth == 0:
                return at == size
            if at == size:
                return 0
            if text[at] == 44:
                at += 1
                if objects & 1:
                    at = after_name(text, after_spaces(text, at, size), size)
                    if at < 0:
                        return <int> at + 1
                break
            if text[at] != (125 if objects & 1 else 93):
                return 0
            at += 1
            depth -= 1
            objects >>= 1


cdef inline Py_ssize_t after_spaces(const unsigned char* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Return the position after the white space between tokens."""
    while at < size and (text[at] == 32 or text[at] == 10 or text[at] == 13 or text[at] == 9):
        at += 1
    return at


cdef inline Py_ssize_t after_name(const unsigned char* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Return the position after a name and its colon; -1 if they are invalid, -2 if the general path must decide."""
    if at >= size or text[at] != 34:
        return -1
    at = after_string(text, at, size)
    if at < 0:
        return at
    at = after_spaces(text, at, size)
    return at + 1 if at < size and text[at] == 58 else -1


cdef inline Py_ssize_t after_string(const unsigned char* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Return the position after a string in quotes; -1 if it is invalid, -2 if the general path must decide."""
    cdef int digit
    at += 1
    while at < size and text[at] != 34:
        if text[at] < 32:
            return -1
        if text[at] != 92:
            at += 1
            continue
        at += 1
        if at >= size:
            return -1
        if text[at] == 117:
            if size - at < 5:
                return -1
            for digit in range(1, 5):
                if not is_hex(text[at + digit]):
                    return -1
            if text[at + 1] | 32 == 100 and text[at + 2] >= 56:  # a surrogate
                return -2
            at += 5
        elif is_escape(text[at]):
            at += 1
            if text[at - 1] == 92 and at < size and text[at] == 117:  # the general path reads \u here as an escape too
                return -2
        else:
            return -1
    return at + 1 if at < size else -1


cdef inline bint is_hex(unsigned char byte) noexcept nogil:
    return 48 <= byte <= 57 or 97 <= byte | 32 <= 102


cdef inline bint is_escape(unsigned char byte) noexcept nogil:
    """Return whether a byte may follow a backslash: quote, backslash, slash, b, f, n, r, t."""
    return byte in (34, 92, 47, 98, 102, 110, 114, 116)


cdef inline Py_ssize_t after_digits(const unsigned char* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    while at < size and 48 <= text[at] <= 57:
        at += 1
    return at


cdef Py_ssize_t after_scalar(const unsigned char* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Return the position after a string, number or word; -1 if it is invalid, -2 if the general path must decide."""
    cdef Py_ssize_t first = at
    cdef Py_ssize_t end
    if text[at] == 34:
        return after_string(text, at, size)
    if text[at] == 116:
        return at + 4 if size - at >= 4 and text[at + 1] == 114 and text[at + 2] == 117 and text[at + 3] == 101 else -1
    if text[at] == 110:
        return at + 4 if size - at >= 4 and text[at + 1] == 117 and text[at + 2] == 108 and text[at + 3] == 108 else -1
    if text[at] == 102:
        return at + 5 if (
            size - at >= 5
            and text[at + 1] == 97 and text[at + 2] == 108 and text[at + 3] == 115 and text[at + 4] == 101
        ) else -1
    if text[at] == 45:
        at += 1
    end = after_digits(text, at, size)
    if end == at or (text[at] == 48 and end > at + 1):
        return -1
    at = end
    if at < size and text[at] == 46:
        end = after_digits(text, at + 1, size)
        if end == at + 1:
            return -1
        at = end
    if at < size and text[at] | 32 == 101:
        at += 1
        if at < size and (text[at] == 43 or text[at] == 45):
            at += 1
        end = after_digits(text, at, size)
        if end == at:
            return -1
        at = end
    return at if at - first <= _LONGEST else -2
