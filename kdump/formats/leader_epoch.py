"""``leader-epoch-checkpoint``: the start offset of each leader epoch (KIP-101, 0.11, LeaderEpochCheckpointFile)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.formats import checkpoint_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.primitives.wire import Bytes

SHAPE = "leader epoch and start offset"


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


def read(data: Bytes) -> tuple[EpochEntry, ...]:
    """Return the entries in the file's order. Raises DamageError like :func:`kdump.formats.checkpoint_text.read`.

    A negative number in an entry is a NumberDamageError: ``LeaderEpochFileCache.assign`` does not throw an IOException.
    """
    entries = checkpoint_text.read(data, _parse)
    for number, entry in enumerate(entries):
        if min(entry) < 0:
            line = list(checkpoint_text.lines(data))[number + 2]
            checkpoint_text.malformed(line, f"{SHAPE}, both 0 or more", checkpoint_text.NumberDamageError)
    return entries


def encode(entries: Iterable[EpochEntry]) -> bytes:
    return checkpoint_text.encode(f"{entry.epoch} {entry.start_offset}" for entry in entries)


def _parse(line: checkpoint_text.TextLine) -> EpochEntry:
    epoch, offset = checkpoint_text.parts(line, 2, SHAPE)
    return EpochEntry(checkpoint_text.integer(epoch, line, SHAPE), checkpoint_text.integer(offset, line, SHAPE, 64))
