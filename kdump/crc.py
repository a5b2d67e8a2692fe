"""Checksums: the only place that knows a backend.

CRC-32C (Castagnoli) guards magic 2 batches and producer snapshots, CRC-32 (zlib's) messages of magic 0 and 1.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
