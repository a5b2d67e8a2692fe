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
    from cython.cimports.libc.string import memcpy
if TYPE_CHECKING:
    from collections.abc import Callable

STAMP: Final = "582dcfb2"

_ESCAPE = cython.declare(cython.int, 8)  # bytes of an entry of a table of escapes


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
    entry: cython.pointer[cython.const[cython.uchar]]
    word: cython.ulonglong = 0
    seen: cython.ulonglong = 0
    behind: cython.pointer[cython.const[cython.uchar]]
    while stop - text >= 8:
        memcpy(cython.address(word), text, 8)
        seen |= word
        if _is_easy(word):
            memcpy(out, cython.address(word), 8)
            out += 8
            text += 8
        else:
            behind = text + 8
            while text < behind:
                entry = shown + _ESCAPE * text[0]
                memcpy(out, entry, 8)
                out += entry[7]
                text += 1
    if size >= 8 and text < stop:
        memcpy(cython.address(word), stop - 8, 8)
        if _is_easy(word):  # so what precedes ``text`` in it stands in front of ``out`` as it is
            seen |= word
            memcpy(out + (stop - text) - 8, cython.address(word), 8)
            out += stop - text
            text = stop
    while text < stop:
        seen |= cython.cast(cython.ulonglong, text[0])
        entry = shown + _ESCAPE * text[0]
        memcpy(out, entry, 8)
        out += entry[7]
        text += 1
    bits[0] |= seen
    return out


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_easy(word: cython.ulonglong) -> cython.bint:
    """Tell whether none of eight bytes is a control character, a quote, a backslash or DEL.

    Each byte is looked at without its high bit, so that no sum carries into the next: the high bits of the sums tell.
    """
    low: cython.ulonglong = word & cython.cast(cython.ulonglong, 0x7F7F7F7F7F7F7F7F)
    quote: cython.ulonglong = low ^ cython.cast(cython.ulonglong, 0x2222222222222222)
    backslash: cython.ulonglong = low ^ cython.cast(cython.ulonglong, 0x5C5C5C5C5C5C5C5C)
    fine: cython.ulonglong = low + cython.cast(cython.ulonglong, 0x6060606060606060)
    fine &= quote + cython.cast(cython.ulonglong, 0x7F7F7F7F7F7F7F7F)
    fine &= backslash + cython.cast(cython.ulonglong, 0x7F7F7F7F7F7F7F7F)
    fine &= ~(low + cython.cast(cython.ulonglong, 0x0101010101010101))
    return ((fine | word) & cython.cast(cython.ulonglong, 0x8080808080808080)) == cython.cast(
        cython.ulonglong, 0x8080808080808080
    )


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
