# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The escapes of strings of JSON, and what is valid UTF-8. Of use where it is compiled alone.

What C needs stands in ``quoting.pxd``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import cython
else:
    from kdump.kernel import _shadow as cython

if cython.compiled:
    from cython.cimports.kdump.kernel.words import has_shuffles, lowest, ordered, quoted
    from cython.cimports.libc.string import memcpy
if TYPE_CHECKING:
    from collections.abc import Callable

STAMP: Final = "0a31eae3"

_ESCAPE = cython.declare(cython.int, 8)  # bytes of an entry of a table of escapes


def _orders() -> bytes:
    """Return 16 bytes for each set of eight bytes, a bit for each: which of the eight stands where, when a backslash is
    put in front of those of the set. Bytes with the high bit stand for backslashes, and for nothing behind the text.
    """
    made = b""
    for odd in range(256):
        order = [place for byte in range(8) for place in ([0x80, byte] if odd >> byte & 1 else [byte])]
        made += bytes(order).ljust(16, b"\x80")
    return made


_ORDERS_OF_BYTES: Final = _orders() if cython.compiled else b""
_ORDERS = cython.declare(cython.p_char, _ORDERS_OF_BYTES)
_WIDE = cython.declare(cython.bint, cython.compiled and has_shuffles())


def move_words(alone: bool) -> None:
    """Do without what moves sixteen bytes at once, or with it where the processor can: what is written is the same."""
    global _WIDE  # noqa: PLW0603  a variable of C, which tests set
    _WIDE = cython.compiled and not alone and has_shuffles()


def escapes(quote: Callable[[str], str]) -> bytes:
    """Return eight bytes for each byte of a text: what stands for it in a string of JSON, its size in the last one."""
    table = b""
    for byte in range(256):
        text = quote(chr(byte))
        shown = text[1 : len(text) - 1].encode() if byte < 128 else bytes([byte])
        table += shown.ljust(7, b"\0") + bytes([len(shown)])
    return table


def escaped(
    out: cython.p_uchar,
    text: cython.pointer[cython.const[cython.uchar]],
    size: cython.Py_ssize_t,
    shown: cython.pointer[cython.const[cython.uchar]],
    bits: cython.pointer[cython.ulonglong],
) -> cython.p_uchar:
    """Write ``text`` with the escapes of JSON; return the position behind it. The high bits of ``bits`` tell of bytes
    beyond ASCII.

    ``shown`` holds eight bytes for each byte: what stands for it, its size in the last one.
    """
    stop: cython.pointer[cython.const[cython.uchar]] = text + size
    word: cython.ulonglong = 0
    odd: cython.ulonglong
    seen: cython.ulonglong = 0
    rest: cython.int
    while True:
        if _WIDE:
            text = quoted(cython.address(out), text, stop, _ORDERS, cython.address(seen))
        if stop - text < 8:
            break
        memcpy(cython.address(word), text, 8)
        memcpy(out, cython.address(word), 8)
        seen |= word
        text += 8
        odd = _odd(word)
        out += 8
        if odd:
            out = _spelt(out - 8, ordered(word), ordered(odd), 8, shown)
    rest = cython.cast(cython.int, stop - text)
    if rest > 0:
        if size >= 8:  # the last eight bytes, without those that are written already
            memcpy(cython.address(word), stop - 8, 8)
            word = ordered(word) >> (8 * (8 - rest))
        else:
            word = 0
            while stop > text:
                stop -= 1
                word = (word << 8) | stop[0]
        seen |= word
        odd = _odd(word) & (~cython.cast(cython.ulonglong, 0) >> (8 * (8 - rest)))
        out = _spelt(out, word, odd, rest, shown)
    bits[0] |= seen
    return out


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _spelt(
    out: cython.p_uchar,
    word: cython.ulonglong,
    odd: cython.ulonglong,
    size: cython.int,
    shown: cython.pointer[cython.const[cython.uchar]],
) -> cython.p_uchar:
    """Write the first ``size`` bytes of a word, at most eight, in which those of ``odd`` are spelt out.

    The first byte stands lowest in both. What follows a byte is written behind it as if it were easy, until the next.
    """
    entry: cython.pointer[cython.const[cython.uchar]]
    at: cython.int
    little: cython.ulonglong = ordered(word)
    memcpy(out, cython.address(little), 8)
    while odd:
        at = lowest(odd) & 0x38  # bits in front of the byte
        entry = shown + _ESCAPE * ((word >> at) & 0xFF)
        out += at >> 3
        memcpy(out, entry, 8)
        out += entry[7]
        word = word >> at >> 8
        odd = odd >> at >> 8
        little = ordered(word)
        memcpy(out, cython.address(little), 8)
        size -= (at >> 3) + 1
    return out + size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _odd(word: cython.ulonglong) -> cython.ulonglong:
    """Return the high bits of those of eight bytes that are a control character, a quote, a backslash or DEL.

    Each byte is looked at without its high bit, so that no sum carries into the next: the high bits of the sums tell.
    """
    low: cython.ulonglong = word & cython.cast(cython.ulonglong, 0x7F7F7F7F7F7F7F7F)
    quote: cython.ulonglong = low ^ cython.cast(cython.ulonglong, 0x2222222222222222)
    backslash: cython.ulonglong = low ^ cython.cast(cython.ulonglong, 0x5C5C5C5C5C5C5C5C)
    fine: cython.ulonglong = low + cython.cast(cython.ulonglong, 0x6060606060606060)
    fine &= quote + cython.cast(cython.ulonglong, 0x7F7F7F7F7F7F7F7F)
    fine &= backslash + cython.cast(cython.ulonglong, 0x7F7F7F7F7F7F7F7F)
    fine &= ~(low + cython.cast(cython.ulonglong, 0x0101010101010101))
    return ~(fine | word) & cython.cast(cython.ulonglong, 0x8080808080808080)


def is_utf8(text: cython.pointer[cython.const[cython.uchar]], size: cython.Py_ssize_t) -> cython.bint:
    """Tell whether ``text`` is valid: nothing is cut off, overlong, a surrogate or beyond the last character."""
    at: cython.Py_ssize_t = 0
    lead: cython.uint
    second: cython.uint
    more: cython.int
    while at < size:
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
