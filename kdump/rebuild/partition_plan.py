"""The plan of a partition's new log: ``one_partition`` makes it, ``copying`` writes it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from kdump.errors import UnreadableError

if TYPE_CHECKING:
    from kdump.formats.leader_epoch import EpochEntry
    from kdump.log_salvage.chains import LeftOutRange

State = Literal["whole", "merged", "partial", "lost"]


@dataclass(frozen=True)
class SourceRange:
    """The offsets ``first_offset`` to ``end_offset`` - 1 of the folder ``path``, and their last leader epoch."""

    path: str
    first_offset: int
    end_offset: int
    leader_epoch: int


@dataclass(frozen=True)
class LostOffsets:
    """The offsets ``from_offset`` to ``until_offset`` - 1, not in the new log. Compaction may have removed some."""

    from_offset: int
    until_offset: int
    why: str


class PlannedPiece(NamedTuple):
    """Bytes of a source file that become part of a segment.

    ``corrected``: the right base offset and leader epoch if one of them is wrong (no checksum covers them); else None.
    """

    path: str
    position: int
    size: int
    corrected: tuple[int, int] | None = None


class SeenFile(NamedTuple):
    """The size in bytes and the modification time in ns of a file before its batches were verified."""

    path: str
    size: int
    changed_ns: int

    @classmethod
    def of(cls, path: str) -> SeenFile:
        """Return the file's current size and modification time. Raises UnreadableError."""
        try:
            status = os.stat(path)  # noqa: PTH116  of each segment
        except OSError as reason:
            raise UnreadableError.of(path, reason) from reason
        return cls(path, status.st_size, status.st_mtime_ns)

    def make_sure(self) -> None:
        """Raise UnreadableError if the size or the modification time of the file has changed."""
        if SeenFile.of(self.path) != self:
            raise UnreadableError(
                self.path,
                "the file has changed since kdump verified it",
                "stop the process that writes to it, and run the command again",
            )


class PlannedSegment(NamedTuple):
    """A segment to write: its base offset, and its pieces in order.

    ``modified_ms`` is the last write time of an empty segment, in ms. The copy keeps this time, because a broker uses
    it as the segment's timestamp. With a new time, a lookup of an offset by time would find nothing.
    """

    base_offset: int
    pieces: tuple[PlannedPiece, ...]
    modified_ms: int | None = None

    @property
    def size(self) -> int:
        return sum([piece.size for piece in self.pieces])


@dataclass(frozen=True, kw_only=True)
class PartitionPlan:
    """The plan of one partition.

    - ``state``: ``lost`` (no copy), ``partial`` (offsets are lost), ``merged`` (from several copies) or ``whole``.
    - ``log_start`` and ``end``: the log start offset and the log end offset of the new log.
    - ``leader_epoch``: the highest leader epoch of all copies, or -1. The epoch of the new leader must be higher.
    - ``uncommitted``: the number of offsets from the highest known high watermark (if any) on. If they are left out,
      the number of offsets of the left-out batches. The first of these may begin below the high watermark.
    - ``repaired``: whether a copy that was read is damaged, or a copy is left out. Offsets may still be lost.
    - ``notes``: sentences for the user. ``unreadable``: sentences about unreadable files.
    """

    topic: str
    topic_id: bytes | None
    partition: int
    state: State
    sources: tuple[SourceRange, ...] = ()
    segments: tuple[PlannedSegment, ...] = ()
    seen: tuple[SeenFile, ...] = ()
    """The source files of the pieces, with size and modification time before their batches were verified."""
    log_start: int = 0
    end: int = 0
    leader_epoch: int = -1
    epochs: tuple[EpochEntry, ...] = ()
    lost: tuple[LostOffsets, ...] = ()
    uncommitted: int = 0
    left_out: tuple[LeftOutRange, ...] = ()
    """Bytes of the copies that are not in the new log: damage, or some of the valid batches that were not taken.

    ``kind`` of valid batches: ``diverged`` (another history), ``conflict`` (they overlap taken batches),
    ``uncommitted`` (they reach the high watermark) or ``misplaced`` (a wrong base offset). ``other topic``: a segment
    of another topic of the same name. Otherwise it is the kind of damage, and the new log lacks some of its offsets.
    """
    producer_snapshot: SeenFile | None = None
    """The producer snapshot at the base offset of the first segment, before it was verified, or None."""
    highest_producer_id: int = -1
    newest_ms: tuple[tuple[str, int], ...] = ()
    """For each copy that was read: the path of its last segment, and the newest timestamp in it, in ms."""
    has_transactions: bool = False
    """Whether a copy that was read has a batch that is transactional or control, or has a delete horizon (KIP-534)."""
    is_tiered: bool = False
    repaired: bool = False
    notes: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def size(self) -> int:
        return sum([segment.size for segment in self.segments])
