"""Finds LZ4 blocks that copy from a distance of 0. The format forbids it, and releases of liblz4 differ there."""

from __future__ import annotations

from typing import Final

MAGIC: Final = b"\x04\x22\x4d\x18"
HEADER: Final = 7
"""The size of the header that Kafka writes before a frame, in bytes."""
_MORE: Final = 15
_LONGER: Final = 255
_SHORTEST: Final = 4


def has_distance_0(data: bytes) -> bool:
    """Return whether a block of one of the frames in ``data`` copies from a distance of 0."""
    at = data.find(MAGIC)
    while at >= 0:
        if any(0 in _distances(block) for block in _blocks(data[at + HEADER :])):
            return True
        at = data.find(MAGIC, at + 1)
    return False


def _blocks(data: bytes) -> list[bytes]:
    """Return the complete compressed blocks of a frame."""
    found, at = [], 0
    while len(data) - at > _SHORTEST:
        word = int.from_bytes(data[at : at + 4], "little")
        size = word & 0x7FFF_FFFF
        if not size or at + 4 + size > len(data):
            break
        if word == size:
            found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def _distances(block: bytes) -> set[int]:
    """Return the distances from which a block copies, up to its truncation."""
    found, at = set(), 0
    while at < len(block):
        token = block[at]
        literals, at = _length(block, at + 1, token >> 4)
        at += literals
        if at + 2 > len(block):
            break
        found.add(int.from_bytes(block[at : at + 2], "little"))
        _, at = _length(block, at + 2, token & 15)
    return found


def _length(block: bytes, at: int, nibble: int) -> tuple[int, int]:
    """Return a length that begins in half of a token, and the position after it."""
    if nibble < _MORE:
        return nibble, at
    while at < len(block):
        nibble += block[at]
        at += 1
        if block[at - 1] < _LONGER:
            break
    return nibble, at
