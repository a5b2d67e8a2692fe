"""Batches of one kind that follow each other, as a table of numbers: what can be printed in one go needs no objects.

The walk (:func:`kdump.segments.walk.walk`) says what stands in a file. After a batch that it found, this finds those
that are like it; anything else ends the run and is left to the walk. Without the kernel there are no runs.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar, overload

from kdump import kernel
from kdump.formats.record_layout import BATCH_HEADER, CODEC_MASK, LOG_OVERHEAD
from kdump.records.magic_0_1 import Message
from kdump.records.magic_2 import Batch
from kdump.segments import walk as segment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.kernel.lines import Lines
    from kdump.log_dirs.files import Source
    from kdump.primitives.wire import Bytes
    from kdump.segments.regions import Region
    from kdump.segments.walk import Window
if kernel.COMPILED:
    from kdump.kernel import batches
    from kdump.kernel.batches import COLUMNS, WIDTH
    from kdump.kernel.cursor import FAR, Cursor
    from kdump.kernel.records import Records

    C = TypeVar("C", bound=Cursor)
BriefRecord: TypeAlias = tuple[int, int, bytes | None, bytes | None, int]
"""Offset, timestamp in ms, key, value, and size in bytes of a record."""
LARGE: Final = 1 << 20
"""Bytes of a batch from which on it is no part of a run."""


class Run:
    """Batches of magic 2 that follow each other, all with the attributes and the delete horizon of ``first``.

    Their checksums are right. ``rows`` holds a row of numbers for each: where its records start and end in ``block``,
    its header, and OTHERS.
    """

    __slots__ = ("_sound", "block", "count", "first", "made", "rows", "size", "start")
    found: bytearray | None = None
    """What was found out about each batch, a byte, where somebody has looked: see BriefRun."""

    def __init__(self, first: Batch, block: memoryview, start: int, rows: array[int], size: int) -> None:
        self.first = first
        self.block = block
        self.start = start
        """Where the block stands in the file."""
        self.rows = rows
        self.count = len(rows) // WIDTH
        self.size = size
        """Bytes of all batches."""
        self._sound: int | None = None
        self.made: tuple[Lines, Bytes] | None = None
        """Its first lines, and what goes on with them, where they are made already: see LinesAhead."""

    @property
    def position(self) -> int:
        """Where the first batch stands in the file."""
        return self.first.position

    @property
    def last_offset(self) -> int:
        """The last offset of the last batch."""
        return self.field("last_offset", self.count - 1)

    @property
    def end(self) -> int:
        """The position behind the last batch."""
        return self.first.position + self.size

    @property
    def raw(self) -> memoryview:
        """The bytes of all batches."""
        return self.block[self.position - self.start :][: self.size]

    def position_of_batch_at(self, position: int) -> int:
        """Return where the batch begins that holds a byte of the run."""
        starts = self.column("position")
        return starts[bisect_right(starts, position) - 1]

    def batch(self, row: int) -> Batch:
        """Return a batch as an object."""
        position, size = self.rows[(row + 1) * WIDTH - 2 : (row + 1) * WIDTH]
        at = position - self.start
        return Batch(self.block[at : at + size], position, size, self.first.limit, crc_valid=True)

    def part(self, row: int, behind: int) -> Run:
        """Return the batches from ``row`` on and before the row ``behind`` as a run."""
        first = self.batch(row)
        rows = self.rows[row * WIDTH : behind * WIDTH]
        return Run(first, self.block, self.start, rows, sum(self.column("size", row, behind)))

    def batches(self, row: int = 0) -> Iterator[Batch]:
        """Yield the batches from ``row`` on as objects."""
        return map(self.batch, range(row, self.count))

    @property
    def sound(self) -> int:
        """How many batches there are before the first that has a record which is not well-formed, or is compressed."""
        if self._sound is None:
            self._sound = self.stack(Cursor()).sound_rows()
        return self._sound

    @property
    def has_usual_numbers(self) -> bool:
        """Whether the kernel can write all headers: no count is negative, and no base timestamp out of its reach."""
        is_near = -FAR < self.least("base_timestamp") <= self.greatest("base_timestamp") < FAR
        return is_near and self.least("records_count") >= 0

    def stack(self, cursor: C, row: int = 0, behind: int | None = None) -> C:
        """Hand some batches to a cursor, by default all, none where they are compressed; return it."""
        packed = self.first.attributes & CODEC_MASK
        behind = self.count if behind is None else behind
        cursor.stack(self.block, self.rows, WIDTH, row, row if packed else behind)
        return cursor

    def unpack(self) -> tuple[list[BriefRecord], int]:
        """Return the records of the sound batches, and how many batches these are (see ``sound``)."""
        reader = self.stack(Records())
        return reader.stacked(), reader.row

    def column(self, name: str, row: int = 0, behind: int | None = None) -> array[int]:
        """Return a field of the headers of some batches, by default of all, or a number out of OTHERS."""
        behind = self.count if behind is None else behind
        return self.rows[row * WIDTH + COLUMNS[name] : behind * WIDTH : WIDTH]

    def field(self, name: str, row: int) -> int:
        """Return a field of the header of a batch, or a number out of OTHERS."""
        return self.rows[row * WIDTH + COLUMNS[name]]

    def least(self, name: str, row: int = 0, behind: int | None = None) -> int:
        """Return the least number of a column. Raises ValueError where it is empty."""
        return batches.least(self.rows, COLUMNS[name], row, self.count if behind is None else behind)

    def greatest(self, name: str, row: int = 0, behind: int | None = None) -> int:
        """Return the greatest number of a column. Raises ValueError where it is empty."""
        return batches.greatest(self.rows, COLUMNS[name], row, self.count if behind is None else behind)

    @property
    def rises(self) -> bool:
        """Whether a segment can hold the batches: offsets from 0 on that fit into it, each above those before it."""
        return batches.rises(self.rows)

    def follows(self, offset: int) -> bool:
        """Tell whether the batches have all offsets from ``offset`` on, and their headers count a record for each."""
        return -FAR < offset < FAR and batches.follows(self.rows, offset)

    def records(self, row: int, behind: int) -> int:
        """Return how many records the headers of some batches claim."""
        return sum(self.column("records_count", row, behind))


def alone(batch: Batch) -> Run:
    """Return a run of one batch, which is sound."""
    others = (batch.last_offset, batch.last_sequence, batch.position, batch.size)
    rows = array("q", (BATCH_HEADER.size, batch.size, *batch.header, *others))
    return Run(batch, batch.raw, batch.position, rows, batch.size)


class Entries:
    """Messages of magic 0 and 1 that follow each other in a log from ``first`` on, whole and not compressed."""

    __slots__ = ("at", "block", "limit", "size", "start", "stop")

    def __init__(self, first: Message, block: memoryview, start: int, stop: int) -> None:
        """They end at ``stop`` in ``block``."""
        self.block = block
        self.start = start
        """Where the block stands in the file."""
        self.at = first.position - start
        self.stop = stop
        self.size = stop - self.at
        """Bytes of all messages."""
        self.limit = first.limit

    @property
    def position(self) -> int:
        """The position of the first message."""
        return self.start + self.at

    @property
    def end(self) -> int:
        """The position behind the last message."""
        return self.start + self.stop

    def entry(self, at: int) -> Message:
        """Return the message that stands in the block from ``at`` on."""
        offset, size = LOG_OVERHEAD.read(self.block, at)
        data = self.block[at + LOG_OVERHEAD.size : at + LOG_OVERHEAD.size + size]
        return Message(data, offset, self.start + at, limit=self.limit)


def entries(first: Message, window: Window, stop: int | None = None) -> Entries | None:
    """Return the entries, up to ``stop``, that follow each other from ``first`` on in the block of ``window``.

    None without a second one.
    """
    at = first.position - window.start
    block = window.block if stop is None else window.block[: max(0, stop - window.start)]
    if first.magic not in (0, 1) or first.attributes & CODEC_MASK or not 0 <= at < len(block):
        return None
    from kdump.kernel.messages import stretch  # for the logs of old brokers alone

    end = stretch(block, at, first.limit)
    return Entries(first, block, window.start, end) if end > at + first.size else None


@overload
def walk(
    source: Source,
    start: int,
    end: int,
    window: Window,
    *,
    limit: int,
    packed: bool,
    stop: int | None = None,
) -> Iterator[Region | Run]: ...


@overload
def walk(
    source: Source,
    start: int,
    end: int,
    window: Window,
    *,
    limit: int,
    packed: bool,
    old: Literal[True],
    stop: int | None = None,
) -> Iterator[Region | Run | Entries]: ...


def walk(
    source: Source,
    start: int,
    end: int,
    window: Window,
    *,
    limit: int,
    packed: bool,
    old: bool = False,
    stop: int | None = None,
) -> Iterator[Region | Run | Entries]:
    """Yield what :func:`kdump.segments.walk.walk` does; batches that are sound and like each other come as one run.

    With ``packed``, compressed batches stand alone. With ``old``, messages in a row come as one too. The batches of a
    run begin before ``stop``, and messages in a row end there: whoever reads up to there needs no more.
    """
    if not kernel.COMPILED:
        yield from segment.walk(source, start, end, window, limit=limit)
        return
    more = True
    while more:
        more = False
        for region in segment.walk(source, start, end, window, limit=limit):
            found: Run | Entries | None = None
            if isinstance(region, Batch) and not (packed and region.header.attributes & CODEC_MASK):
                found = run(region, window, stop)
            elif old and isinstance(region, Message):
                found = entries(region, window, stop)
            if found is not None:
                yield found
                start, more = found.end, found.end < end
                break
            yield region


def of_data(regions: Iterable[Region | Run]) -> Iterator[Region | Run]:
    """Yield regions, control batches one by one: a run is of data."""
    for region in regions:
        if isinstance(region, Run) and region.first.is_control:
            yield from region.batches()
        else:
            yield region


def run(first: Batch, window: Window, stop: int | None = None) -> Run | None:
    """Return the run that a batch in the block of ``window`` begins; None without a second one before ``stop``."""
    block, start = window.block, window.start
    behind = start + len(block) if stop is None else stop
    rows = batches.rows(first, block, start, min(first.limit, LARGE), behind)
    if not rows:
        return None
    return Run(first, block, start, rows, start + rows[len(rows) - WIDTH + 1] - first.position)
