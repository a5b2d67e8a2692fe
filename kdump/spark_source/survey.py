"""What the headers of a segment tell: where it can be cut, how many records it holds, which transactions it ends.

One pass over the headers of each segment, which can run anywhere; what the segments of a partition tell is then put
together on the driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kdump import segment as log
from kdump.errors import DamageError, UnreadableError
from kdump.formats.batch import MAGIC
from kdump.outcomes import MARKER_BYTES, Follower
from kdump.pieces import Damage, Padding, RecordBatch
from kdump.spark_source.replicas import Run, extend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.inputs import Segment
    from kdump.outcomes import Told
    from kdump.pieces import Piece


@dataclass(slots=True)
class Stretch:
    """A part of a segment, from ``start`` to ``end`` (bytes), which is read by one task, and what its bytes are.

    ``told`` says whether the counts hold: an entry of magic 0 or 1 that cannot be unpacked does not tell how many
    records it has. Offsets are None where there is no batch. What no header tells is not in it: a wrong checksum, a
    bad record.
    """

    start: int
    end: int
    batches: int = 0
    records: int = 0
    control_records: int = 0
    batch_bytes: int = 0
    damaged_ranges: int = 0
    damaged_bytes: int = 0
    padding_bytes: int = 0
    trailing_bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    max_timestamp: int = -1
    told: bool = True

    @property
    def offsets(self) -> tuple[int, int] | None:
        """The first and the last offset; None where there may be any."""
        if not self.told or self.first_offset is None or self.last_offset is None:
            return None
        return self.first_offset, self.last_offset

    def add(self, piece: Piece) -> None:
        """Count a piece."""
        self.end = piece.position + piece.size
        if isinstance(piece, RecordBatch):
            self.batches += 1
            self.batch_bytes += piece.size
            self._add_records(piece)
        elif isinstance(piece, Damage):
            self.damaged_ranges += 1
            self.damaged_bytes += piece.size
        elif isinstance(piece, Padding):
            self.padding_bytes += piece.size
        else:
            self.trailing_bytes += piece.size

    def _add_records(self, batch: RecordBatch) -> None:
        try:
            count, first, last = _count(batch), batch.base_offset, batch.last_offset
        except DamageError:
            self.told = False
            return
        self.records += count
        self.control_records += count if batch.is_control else 0
        self.first_offset = first if self.first_offset is None else min(self.first_offset, first)
        self.last_offset = last if self.last_offset is None else max(self.last_offset, last)
        self.max_timestamp = max(self.max_timestamp, batch.max_timestamp)


def _count(batch: RecordBatch) -> int:
    """Return the number of records; only a wrapper of magic 0 or 1 must be unpacked for it. Raises DamageError."""
    if batch.count is not None:
        return batch.count
    return sum(1 for _ in batch.records()) if batch.codec else 1


class Survey(NamedTuple):
    """What one segment tells. ``told`` is of its transactions.

    ``runs`` are the offsets it holds without a gap, by leader epoch; told only where checksums were looked at.
    """

    stretches: list[Stretch]
    told: Told
    runs: list[Run]


class _AstrayError(Exception):
    """The headers do not make sense."""


def survey(segment: Segment, split_bytes: int, *, checked: bool = False) -> Survey:
    """Walk the headers of a segment. It is cut at sound batches, about ``split_bytes`` apart.

    Where the headers stop making sense, or when ``checked``, every checksum is looked at, and what lies behind damage
    is found as a reader finds it. Raises UnreadableError.
    """
    with segment.open() as source:
        if not checked:
            try:
                return _survey(_headers(source), source, Follower(segment), split_bytes, with_runs=False)
            except _AstrayError:
                pass
        pieces = log.read(source, on_error="resync")
        return _survey(pieces, source, Follower(segment), split_bytes, with_runs=checked)


def attempt(segment: Segment, split_bytes: int, *, checked: bool = False) -> Survey:
    """Survey a segment; one that cannot be read is one stretch of which nothing is told: whoever reads it says so.

    What became of transactions is then told by its ``.txnindex`` alone.
    """
    try:
        return survey(segment, split_bytes, checked=checked)
    except UnreadableError:
        return Survey([Stretch(0, segment.size, told=False)], Follower(segment).unread(), [])


def _headers(source: log.Source) -> Iterator[Piece]:
    """Yield the batches that the headers tell, and zeros at the end. Raises _AstrayError."""
    for piece in log.walk(source):
        if isinstance(piece, RecordBatch):
            if not 0 <= piece.magic <= MAGIC:
                raise _AstrayError
            may_be_marker = piece.is_transactional or piece.is_control or piece.size <= MARKER_BYTES
            if may_be_marker and not is_sound(piece):
                raise _AstrayError  # what a damaged marker says would change the fate of other batches
            yield piece
        elif log.zero_tail(source, piece.position, source.size) == piece.position:
            yield Padding(piece.position, piece.size)
        else:
            raise _AstrayError


def _survey(
    pieces: Iterator[Piece], source: log.Source, follower: Follower, split_bytes: int, *, with_runs: bool
) -> Survey:
    stretches = [Stretch(0, 0)]
    runs: list[Run] = []
    for piece in pieces:
        if isinstance(piece, RecordBatch):
            if piece.position - stretches[-1].start >= split_bytes and is_sound(piece):
                stretches.append(Stretch(piece.position, piece.position))
            follower.add(piece)
            if with_runs:
                extend(runs, piece)
        else:
            follower.lose(source, piece)
        stretches[-1].add(piece)
    return Survey(stretches, follower.told(), runs)


def is_sound(batch: RecordBatch) -> bool:
    """Tell whether a batch can be believed."""
    try:
        log.check(batch)
    except DamageError:
        return False
    return True
