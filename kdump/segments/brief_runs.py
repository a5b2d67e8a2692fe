"""Runs of which only the headers are in memory: what is found out about a part of a segment, without its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kdump import kernel
from kdump.formats.record_layout import BATCH_HEADER, BatchHeader
from kdump.records.magic_2 import Batch
from kdump.records.record_batch import Batches
from kdump.segments import batch_runs
from kdump.segments.batch_runs import Run
from kdump.segments.walk import Window, walk

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterator

    from kdump.log_dirs.files import Source
    from kdump.primitives.wire import Bytes
    from kdump.segments.regions import Damage, Padding, Region, Trailing
if kernel.COMPILED:
    from kdump.kernel.batches import OTHERS, WIDTH


class BriefBatch(Batch):
    """A sound batch of magic 2 of which the header is in memory; the records are read when somebody asks for them."""

    __slots__ = ("_source",)

    def __init__(self, head: memoryview, position: int, size: int, source: Source) -> None:
        super().__init__(head, position, size, source.limit, crc_valid=True)
        self._source = source

    @property
    def raw(self) -> memoryview:
        if len(self._data) < self.size:
            self._data = memoryview(self._source.read(self.position, self.size))
        return self._data

    def payload(self, limit: int | None = None, *, in_chunks: bool = True) -> tuple[Bytes, int]:
        _ = self.raw
        return super().payload(limit, in_chunks=in_chunks)


class Brief(NamedTuple):
    """A run without its records, which stay in the file: its rows, and what somebody found out, a byte for each."""

    rows: array[int]
    found: bytearray


class BriefRun(Run):
    """Batches of which the headers are in memory, and what was found out about each (a byte)."""

    __slots__ = ("_source", "found")
    found: bytearray

    def __init__(self, made: Brief, source: Source) -> None:
        self.rows, self.found = made
        self._source = source
        first = self.batch(0)
        super().__init__(first, memoryview(b""), first.position, self.rows, sum(self.rows[WIDTH - 1 :: WIDTH]))

    def batch(self, row: int) -> BriefBatch:
        fields = self.rows[row * WIDTH + 2 : (row + 1) * WIDTH - len(OTHERS)]
        position, size = self.rows[(row + 1) * WIDTH - 2 : (row + 1) * WIDTH]
        head = BATCH_HEADER.write(BatchHeader(*fields))
        return BriefBatch(memoryview(head), position, size, self._source)


class Old(NamedTuple):
    """A sound entry of magic 0 or 1, by its position."""

    position: int


Headers: TypeAlias = "list[Brief | Old | Damage | Padding | Trailing]"
"""Regions without the records."""


def brief(regions: Iterator[Region], look: Callable[[Run], bytearray]) -> Headers:
    """Return regions without the records; ``look`` finds out about the batches of a run."""
    made: Headers = []
    for region in regions:
        run = batch_runs.alone(region) if isinstance(region, Batch) else region
        if isinstance(run, Run):
            made.append(Brief(run.rows, look(run)))
        else:
            made.append(Old(run.position) if isinstance(run, Batches) else run)
    return made


def whole(made: Headers, source: Source) -> Iterator[Region]:
    """Yield the regions that :func:`brief` took, all data of magic 2 in runs."""
    window = Window(source, source.size)
    for each in made:
        if isinstance(each, Brief):
            run = BriefRun(each, source)
            yield run.first if run.first.is_control else run
        elif isinstance(each, Old):
            yield next(walk(source, each.position, window=window))
        else:
            yield each
