"""CRC-32C (magic 2, producer snapshots) and CRC-32 (magic 0 and 1). Checksums of adjacent ranges can be combined."""

from __future__ import annotations

import zlib
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from kdump.primitives.wire import Bytes


class Checksum(Protocol):
    """Returns the unsigned 32-bit checksum of ``data``; ``before`` is the checksum of the bytes before ``data``."""

    def __call__(self, data: Bytes, before: int = 0, /) -> int: ...


def _fastest() -> Checksum:
    """Return the CRC-32C function of crc32c's compiled module, else of the package crc32c, else of crcmod."""
    if (
        (package := find_spec("crc32c"))
        and (part := PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations))
        and part.loader
    ):
        with suppress(ImportError, AttributeError):
            module = module_from_spec(part)
            part.loader.exec_module(module)
            found: Checksum = module.crc32c
            return found
    try:
        from crc32c import crc32c as packaged
    except ImportError:
        from crcmod.predefined import mkPredefinedCrcFun

        predefined: Checksum = mkPredefinedCrcFun("crc-32c")
        return predefined
    return packaged


crc32c: Final = _fastest()
crc32: Final[Checksum] = zlib.crc32


class Kind(NamedTuple):
    """A checksum function and its polynomial with reversed bits."""

    of: Checksum
    polynomial: int


CRC32C: Final = Kind(crc32c, 0x82F63B78)
CRC32: Final = Kind(crc32, 0xEDB88320)


def combine(kind: Kind, first: int, second: int, size: int) -> int:
    """Return the checksum of two adjacent ranges from both checksums; ``size`` is the second range's size in bytes."""
    power, place = _ONE, 0
    while size:
        size, byte = divmod(size, 256)
        if byte:
            factor = _power(kind.polynomial, place, byte)
            power = factor if power == _ONE else _times(power, factor, kind.polynomial)
        place += 1
    return _times(power, first, kind.polynomial) ^ second


_ONE: Final = 1 << 31
"""The polynomial 1 with reversed bits."""
_X8: Final = 1 << 23
"""x to the power of 8 with reversed bits."""


@cache
def _power(polynomial: int, place: int, byte: int) -> int:
    """Return x to the power of 8 * byte * 256 ** place, modulo the polynomial."""
    if byte == 1 and not place:
        return _X8
    if byte == 1:
        place, byte = place - 1, 256
    half = byte // 2
    return _times(_power(polynomial, place, byte - half), _power(polynomial, place, half), polynomial)


def _times(one: int, other: int, polynomial: int) -> int:
    """Return the product of two remainders modulo the polynomial, all with reversed bits."""
    product = 0
    while one:
        if one & _ONE:
            product ^= other
        one = one << 1 & 0xFFFFFFFF
        other = other >> 1 ^ polynomial if other & 1 else other >> 1
    return product
