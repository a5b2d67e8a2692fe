"""Batch runs: consecutive batches of one kind that are read together, as a :class:`Run` or as :class:`Entries`.

The walk (:func:`kdump.segments.walk.walk`) finds a batch. :func:`run` and :func:`entries` then find the batches after
it that belong to the same run. Plain Python reads no runs.
"""

from __future__ import annotations

from array import array
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from kdump import kernel
from kdump.formats.record_layout import BATCH_HEADER, CODEC_MASK, LOG_OVERHEAD
from kdump.records.magic_0_1 import Message
from kdump.records.magic_2 import Batch
from kdump.records.record_batch import Batches, BriefRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

if kernel.COMPILED:
    from kdump.kernel import batches
    from kdump.kernel.batches import COLUMNS, WIDTH
    from kdump.kernel.records import FAR, Cursor, Records

    C = TypeVar("C", bound=Cursor)
LARGE: Final = 1 << 20
"""Maximum size in bytes of a batch in a :class:`Run` of several."""


class Run(Batches):
    """Batches of magic 2 with right checksums, equal attributes and equal delete horizons.

    ``rows`` is a table with WIDTH numbers for each batch: start and end of the records in ``block``, the header
    fields, last offset, last sequence, position and size.
    """

    __slots__ = ("_sound", "batch_count", "block", "first", "position", "rows", "size", "start")
    first: Batch
    rows: array[int]
    batch_count: int
    found: bytearray | None = None
    """The result of ``look`` of :func:`kdump.segments.shared_segment.brief`; None if ``look`` was not called."""

    def __init__(self, first: Batch, block: memoryview, start: int, rows: array[int], size: int) -> None:
        self.first = first
        self.position = first.position
        self.block = block
        self.start = start
        """The position of the block in the file."""
        self.rows = rows
        self.batch_count = len(rows) // WIDTH
        self.size = size
        self._sound: int | None = None

    @property
    def last_offset(self) -> int:
        return self.field("last_offset", self.batch_count - 1)

    @property
    def raw(self) -> memoryview:
        return self.block[self.position - self.start :][: self.size]

    def batch(self, row: int) -> Batch:
        position, size = self.rows[(row + 1) * WIDTH - 2 : (row + 1) * WIDTH]
        at = position - self.start
        return Batch(self.block[at : at + size], position, size, self.first.limit, crc_valid=True)

    def part(self, row: int, stop: int) -> Run:
        first = self.batch(row)
        rows = self.rows[row * WIDTH : stop * WIDTH]
        return Run(first, self.block, self.start, rows, sum(self.column("size", row, stop)))

    @property
    def sound(self) -> int:
        """The number of batches before the first one that is compressed or has a malformed record."""
        if self._sound is None:
            self._sound = self.stack(Cursor()).sound_rows()
        return self._sound

    @property
    def has_usual_numbers(self) -> bool:
        """Whether compiled code can print all headers: counts are 0 or more, base timestamps between -FAR and FAR."""
        is_near = -FAR < self.least("base_timestamp") <= self.greatest("base_timestamp") < FAR
        return is_near and self.least("records_count") >= 0

    def stack(self, cursor: C, row: int = 0, stop: int | None = None) -> C:
        """Return ``cursor``, set to read the batches ``row`` to ``stop`` (exclusive), or none if compressed."""
        packed = self.first.attributes & CODEC_MASK
        stop = self.batch_count if stop is None else stop
        cursor.stack(self.block, self.rows, WIDTH, row, row if packed else stop)
        return cursor

    def brief_records(self) -> tuple[list[BriefRecord], int]:
        reader = self.stack(Records())
        return reader.stacked(), reader.row

    def column(self, name: str, row: int = 0, stop: int | None = None) -> array[int]:
        stop = self.batch_count if stop is None else stop
        return self.rows[row * WIDTH + COLUMNS[name] : stop * WIDTH : WIDTH]

    def field(self, name: str, row: int) -> int:
        return self.rows[row * WIDTH + COLUMNS[name]]

    def least(self, name: str, row: int = 0, stop: int | None = None) -> int:
        return batches.least(self.rows, COLUMNS[name], row, self.batch_count if stop is None else stop)

    def greatest(self, name: str, row: int = 0, stop: int | None = None) -> int:
        return batches.greatest(self.rows, COLUMNS[name], row, self.batch_count if stop is None else stop)

    @property
    def rises(self) -> bool:
        """Whether the offsets are not negative and rise, and no batch spans more than 2**31 of them."""
        return batches.rises(self.rows)

    def follows(self, offset: int) -> bool:
        """Return whether the headers count one record for each offset, beginning with ``offset``."""
        return -FAR < offset < FAR and batches.follows(self.rows, offset)

    def records(self, row: int, stop: int) -> int:
        return sum(self.column("records_count", row, stop))


def alone(batch: Batch) -> Run:
    """Return a run of one batch, which the caller has found valid."""
    others = (batch.last_offset, batch.last_sequence, batch.position, batch.size)
    rows = array("q", (BATCH_HEADER.size, batch.size, *batch.header, *others))
    return Run(batch, batch.raw, batch.position, rows, batch.size)


class Entries(Batches):
    """Consecutive uncompressed messages of magic 0 and 1, unverified: bytes ``at`` to ``stop`` of ``block``."""

    __slots__ = ("at", "block", "limit", "position", "size", "start", "stop")
    rows = None

    def __init__(self, first: Message, block: memoryview, start: int, stop: int) -> None:
        self.block = block
        self.start = start
        self.position = first.position
        self.at = first.position - start
        self.stop = stop
        self.size = stop - self.at
        self.limit = first.limit

    @property
    def batch_count(self) -> int:
        return sum(1 for _ in self.batches())

    @property
    def first(self) -> Message:
        return self.entry(self.at)

    @property
    def last_offset(self) -> int:
        return self.last.last_offset

    @property
    def raw(self) -> memoryview:
        return self.block[self.at : self.stop]

    def batch(self, row: int) -> Message:
        return next(islice(self.batches(), row, None))

    def brief_records(self) -> tuple[list[BriefRecord], int]:
        return [], 0

    def batches(self, row: int = 0) -> Iterator[Message]:
        return islice(self._entries(), row, None)

    def column(self, name: str, row: int = 0, stop: int | None = None) -> list[int]:
        return [batch.field(name, 0) for batch in islice(self._entries(), row, stop)]

    def entry(self, at: int) -> Message:
        offset, size = LOG_OVERHEAD.read(self.block, at)
        data = self.block[at + LOG_OVERHEAD.size : at + LOG_OVERHEAD.size + size]
        return Message(data, offset, self.start + at, limit=self.limit)

    def _entries(self) -> Iterator[Message]:
        at = self.at
        while at < self.stop:
            entry = self.entry(at)
            yield entry
            at += entry.size


def entries(first: Message, block: memoryview, start: int, stop: int | None = None) -> Entries | None:
    """Return the consecutive uncompressed messages that begin with ``first``; None if there are fewer than two.

    ``block`` begins at byte ``start`` of the file; the messages end at its byte ``stop`` or before. No CRC is verified.
    """
    at = first.position - start
    block = block if stop is None else block[: max(0, stop - start)]
    if first.magic not in (0, 1) or first.attributes & CODEC_MASK or not 0 <= at < len(block):
        return None
    from kdump.kernel.lines import end_of_messages

    end = end_of_messages(block, at, first.limit)
    return Entries(first, block, start, end) if end > at + first.size else None


def run(first: Batch, block: memoryview, start: int, stop: int | None = None) -> Run | None:
    """Return the run that begins with ``first``; None if it has fewer than two valid batches up to LARGE bytes.

    ``block`` begins at position ``start`` of the file. All batches of the run start before its byte ``stop``.
    """
    limit = start + len(block) if stop is None else stop
    rows = batches.rows(first, block, start, min(first.limit, LARGE), limit)
    if not rows:
        return None
    return Run(first, block, start, rows, start + rows[len(rows) - WIDTH + 1] - first.position)
