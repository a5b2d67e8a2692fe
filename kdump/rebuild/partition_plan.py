"""The plan of a partition."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from kdump.errors import UnreadableError

if TYPE_CHECKING:
    from kdump.formats.leader_epoch import EpochEntry

State = Literal["whole", "merged", "partial", "lost"]
WHOLE: Final = "whole"
MERGED: Final = "merged"
PARTIAL: Final = "partial"
LOST: Final = "lost"


class SourceRange(NamedTuple):
    """Offsets from ``first_offset`` to before ``end_offset`` that are taken from the folder ``path``.

    ``leader_epoch`` is that of the last batch, -1 below magic 2.
    """

    path: str
    first_offset: int
    end_offset: int
    leader_epoch: int


class LostOffsets(NamedTuple):
    """Offsets from ``from_offset`` to before ``until_offset`` that no copy holds; compaction may have removed some."""

    from_offset: int
    until_offset: int
    why: str


class PlannedPiece(NamedTuple):
    """Bytes of a source file that become part of a segment.

    ``corrected`` is the right base offset and leader epoch if those in the file are wrong, else None: no checksum
    covers them.
    """

    path: str
    position: int
    size: int
    corrected: tuple[int, int] | None = None


class SeenFile(NamedTuple):
    """A file as it was when its batches were verified: size in bytes, and time of the last change in ns."""

    path: str
    size: int
    changed_ns: int

    @classmethod
    def of(cls, path: str) -> SeenFile:
        """Return the file's current size and change time. Raises UnreadableError."""
        try:
            status = os.stat(path)  # noqa: PTH116  of each segment
        except OSError as reason:
            raise UnreadableError.of(path, reason) from reason
        return cls(path, status.st_size, status.st_mtime_ns)

    def make_sure(self) -> None:
        """Raise UnreadableError if the file has changed."""
        if SeenFile.of(self.path) != self:
            raise UnreadableError(
                self.path, "it has changed since kdump verified it", "stop what writes to it, and run the command again"
            )


class PlannedSegment(NamedTuple):
    """A segment to write: its base offset, and its pieces in order.

    An empty segment has no pieces and keeps its time of the last write, in ms. A broker uses it as the time of its
    records; with a new time, a lookup of an offset by time would find nothing.
    """

    base_offset: int
    pieces: tuple[PlannedPiece, ...]
    modified_ms: int | None = None

    @property
    def size(self) -> int:
        return sum([piece.size for piece in self.pieces])


class LeftOutBytes(NamedTuple):
    """Bytes of a copy that are not taken: valid batches of another history, or a damaged range that no copy repairs.

    ``kind`` is ``diverged``, ``conflict``, ``uncommitted`` or ``misplaced`` for valid batches, ``other topic`` for a
    segment of another topic of the same name, else the kind of damage.
    """

    path: str
    position: int
    size: int
    kind: str
    reason: str
    first_offset: int | None
    end_offset: int | None


@dataclass(frozen=True, kw_only=True)
class PartitionPlan:
    """The plan of one partition.

    - ``log_start`` and ``end``: the first offset and the end offset of the new log.
    - ``leader_epoch``: the highest one of all copies, -1 for none. The new leader's must be above it.
    - ``uncommitted``: the number of offsets above the highest high watermark in a checkpoint.
    - ``repaired``: a copy was damaged, and another copy or its own bytes replaced the damaged range.
    - ``notes``: sentences for the user; ``unreadable``: those about unreadable files.
    """

    topic: str
    topic_id: bytes | None
    partition: int
    state: State
    sources: tuple[SourceRange, ...] = ()
    segments: tuple[PlannedSegment, ...] = ()
    seen: tuple[SeenFile, ...] = ()
    """The source files of the pieces, as they were before their batches were verified."""
    log_start: int = 0
    end: int = 0
    leader_epoch: int = -1
    epochs: tuple[EpochEntry, ...] = ()
    lost: tuple[LostOffsets, ...] = ()
    uncommitted: int = 0
    left_out: tuple[LeftOutBytes, ...] = ()
    producer_snapshot: str | None = None
    """The path of the producer snapshot at the base offset of the first segment, or None if not needed."""
    highest_producer_id: int = -1
    newest_ms: tuple[tuple[str, int], ...] = ()
    """The path of the last segment of each copy that was read, and the newest time of a record in it, in ms."""
    has_transactions: bool = False
    """Whether a copy has a batch of a transaction."""
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
