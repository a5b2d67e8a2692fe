"""What the headers of a segment tell: where it can be cut, how many records it holds, which transactions it ends.

One pass over the headers of each segment, which can run anywhere; what the segments of a partition tell is then put
together on the driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump import segment as log
from kdump.errors import DamageError, UnreadableError
from kdump.formats import batch as magic_2
from kdump.formats.batch import CONTROL_FLAG, MAGIC, TRANSACTIONAL_FLAG
from kdump.formats.log import OVERHEAD
from kdump.outcomes import MARKER_BYTES, Follower
from kdump.pieces import Damage, Padding, RecordBatch
from kdump.spark_source.replicas import Run, extend
from kdump.wire import INT64_END

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.inputs import Segment
    from kdump.outcomes import Told
    from kdump.pieces import Piece


IN_TRANSACTIONS: Final = TRANSACTIONAL_FLAG | CONTROL_FLAG
FAR: Final = 4096
"""Bytes of a batch from which on it is cheaper to read the next header alone than all that lies before it."""


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
            self._add_batch(piece)
        elif isinstance(piece, Damage):
            self.damaged_ranges += 1
            self.damaged_bytes += piece.size
        elif isinstance(piece, Padding):
            self.padding_bytes += piece.size
        else:
            self.trailing_bytes += piece.size

    def _add_batch(self, batch: RecordBatch) -> None:
        try:
            count, first, last = _count(batch), batch.base_offset, batch.last_offset
        except DamageError:
            self.batches += 1
            self.batch_bytes += batch.size
            self.told = False
            return
        self.count(batch.size, first, last, count, batch.max_timestamp)
        self.control_records += count if batch.is_control else 0

    def count(self, size: int, first: int, last: int, records: int, max_timestamp: int) -> None:
        """Count a batch of so many bytes and records, of the offsets from ``first`` to ``last``."""
        self.batches += 1
        self.batch_bytes += size
        self.records += records
        if self.first_offset is None or first < self.first_offset:
            self.first_offset = first
        if self.last_offset is None or last > self.last_offset:
            self.last_offset = last
        self.max_timestamp = max(self.max_timestamp, max_timestamp)


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
                follower, stretches = Follower(segment), [Stretch(0, 0)]
                start = 0 if follower.has_index else _plain(source, stretches, follower, split_bytes)
                return _survey(_headers(source, start), source, follower, split_bytes, stretches)
            except _AstrayError:
                pass
        pieces = log.read(source, on_error="resync")
        return _survey(pieces, source, Follower(segment), split_bytes, [Stretch(0, 0)], with_runs=checked)


def attempt(segment: Segment, split_bytes: int, *, checked: bool = False) -> Survey:
    """Survey a segment; one that cannot be read is one stretch of which nothing is told: whoever reads it says so.

    What became of transactions is then told by its ``.txnindex`` alone.
    """
    try:
        return survey(segment, split_bytes, checked=checked)
    except UnreadableError:
        return Survey([Stretch(0, segment.size, told=False)], Follower(segment).unread(), [])


def _plain(source: log.Source, stretches: list[Stretch], follower: Follower, split_bytes: int) -> int:
    """Count batches of magic 2 in no transaction, which are nearly all there are, in as few steps as can be.

    Return the position of the first piece that is anything else. Where batches of a local file are large, only their
    headers are read.
    """
    unpack, header = magic_2.HEADER.struct.unpack_from, magic_2.HEADER.size
    is_local = isinstance(source, log.LocalFile)
    block_size = log.FIRST_BLOCK if is_local else log.BLOCK
    position = loaded = size = last = 0
    block = b""
    stretch = stretches[-1]
    while True:
        at = position - loaded
        if at + header > len(block):
            ahead = header if is_local and size >= FAR else block_size
            block, loaded, at = source.read(position, ahead), position, 0
            if len(block) < header:
                break
        base, size, _, magic, _, flags, delta, _, latest, _, _, _, count = unpack(block, at)
        end = position + OVERHEAD.size + size
        is_plain = magic == MAGIC and not flags & IN_TRANSACTIONS and MARKER_BYTES < size <= source.limit
        if not is_plain or end > source.size or not -INT64_END <= base + delta < INT64_END:
            break
        if position - stretch.start >= split_bytes and is_sound_at(source, position):
            stretch = Stretch(position, position)
            stretches.append(stretch)
        last = base + delta
        stretch.end = end
        stretch.count(end - position, base, last, count, latest)
        position = end
    if position:
        follower.skip(last + 1)
    return position


def is_sound_at(source: log.Source, position: int) -> bool:
    """Tell whether a batch begins at a position (bytes) whose checksum is right."""
    piece = next(log.walk(source, position), None)
    return isinstance(piece, RecordBatch) and is_sound(piece)


def _headers(source: log.Source, start: int) -> Iterator[Piece]:
    """Yield the batches that the headers tell, and zeros at the end. Raises _AstrayError."""
    for piece in log.walk(source, start):
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
    pieces: Iterator[Piece],
    source: log.Source,
    follower: Follower,
    split_bytes: int,
    stretches: list[Stretch],
    *,
    with_runs: bool = False,
) -> Survey:
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
