"""Checksums: the only place that knows a backend.

CRC-32C (Castagnoli) guards magic 2 batches and producer snapshots, CRC-32 (zlib's) messages of magic 0 and 1.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.wire import Bytes

try:
    from crc32c import crc32c as _crc32c
except ImportError:  # no wheel for this platform: crcmod is slower, and the same
    import crcmod.predefined

    _crc32c = crcmod.predefined.mkPredefinedCrcFun("crc-32c")


def crc32c(data: Bytes) -> int:
    """Return the CRC-32C of ``data`` as an unsigned 32-bit integer."""
    return _crc32c(data)


def crc32(data: Bytes) -> int:
    """Return the CRC-32 of ``data`` as an unsigned 32-bit integer."""
    return zlib.crc32(data)


class Kind(NamedTuple):
    """A checksum: the function, and its polynomial with the bits in reverse order."""

    of: Callable[[Bytes], int]
    polynomial: int


CRC32C: Final = Kind(crc32c, 0x82F63B78)
CRC32: Final = Kind(crc32, 0xEDB88320)


def combine(kind: Kind, first: int, second: int, size: int) -> int:
    """Return the checksum of two stretches from that of each; ``size`` is that of the second, in bytes.

    Behind ``size`` more bytes the first counts as its remainder times x to the power of 8 * size.
    """
    power, square, left = 1 << 31, _X8, size
    while left:
        if left & 1:
            power = _times(power, square, kind.polynomial)
        square = _times(square, square, kind.polynomial)
        left >>= 1
    return _times(power, first, kind.polynomial) ^ second


_X8: Final = 1 << 23
"""x to the power of 8, the bits in reverse order."""


@lru_cache(maxsize=1 << 12)
def _times(one: int, other: int, polynomial: int) -> int:
    """Multiply two remainders modulo the polynomial, all with the bits in reverse order."""
    product = 0
    while one:
        if one & 1 << 31:
            product ^= other
        one = one << 1 & 0xFFFFFFFF
        other = other >> 1 ^ polynomial if other & 1 else other >> 1
    return product
