"""What becomes of a partition: the decision before anything is written."""

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
    """Offsets from ``from_offset`` to before ``until_offset`` that no copy holds.

    In a compacted log only some of them had a record.
    """

    from_offset: int
    until_offset: int
    why: str


class PlannedPiece(NamedTuple):
    """Bytes of a source file that become part of a segment.

    ``corrected`` are the base offset and the leader epoch of the batch that they are, where the header in the file has
    wrong ones: no checksum guards these. Else None.
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
        """Look at a file. Raises UnreadableError."""
        try:
            status = os.stat(path)  # noqa: PTH116  of each segment
        except OSError as reason:
            raise UnreadableError(path, reason.strerror or str(reason)) from reason
        return cls(path, status.st_size, status.st_mtime_ns)

    def make_sure(self) -> None:
        """Raise UnreadableError where the file is not any more what it was."""
        if SeenFile.of(self.path) != self:
            raise UnreadableError(
                self.path, "it has changed since kdump verified it", "stop what writes to it, and run the command again"
            )


class PlannedSegment(NamedTuple):
    """A segment to write: its base offset, and its pieces in order; none for an empty one.

    Of an empty one a broker takes the time of the last write for the time of its records: where that is new, a look-up
    of an offset by time finds nothing. So it keeps the one that it had, in ms.
    """

    base_offset: int
    pieces: tuple[PlannedPiece, ...]
    modified_ms: int | None = None

    @property
    def size(self) -> int:
        """Bytes of all pieces."""
        return sum([piece.size for piece in self.pieces])


class LeftOutBytes(NamedTuple):
    """Bytes of a copy that have no place: valid batches of another history, or a damaged range that no copy repairs.

    ``kind`` is ``diverged``, ``conflict``, ``uncommitted`` or ``misplaced`` for valid batches, else that of the damage.
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
    """What becomes of one partition.

    ``log_start`` and ``end`` are the offsets at which the log will begin and end, ``leader_epoch`` the highest one of
    all copies (-1 for none): the new leader's must be above it. ``uncommitted`` counts offsets above the highest high
    watermark that a checkpoint has. ``repaired`` says that a copy was damaged and another one, or its own bytes, made
    up for it. ``notes`` are sentences for the user, ``unreadable`` those about files that the system does not give.
    """

    topic: str
    topic_id: bytes | None
    partition: int
    state: State
    sources: tuple[SourceRange, ...] = ()
    segments: tuple[PlannedSegment, ...] = ()
    seen: tuple[SeenFile, ...] = ()
    """The files that pieces are taken from, as they were before their batches were verified."""
    log_start: int = 0
    end: int = 0
    leader_epoch: int = -1
    epochs: tuple[EpochEntry, ...] = ()
    lost: tuple[LostOffsets, ...] = ()
    uncommitted: int = 0
    left_out: tuple[LeftOutBytes, ...] = ()
    producer_snapshot: str | None = None
    """The path of the producers' state at the base offset of the first segment, None where none is needed."""
    highest_producer_id: int = -1
    is_tiered: bool = False
    repaired: bool = False
    notes: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the folder."""
        return f"{self.topic}-{self.partition}"

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum([segment.size for segment in self.segments])
