"""The regions of a segment for a reader: a range of bytes, or all of a file with batches in runs, read ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.formats import record_layout
from kdump.log_dirs import local
from kdump.primitives import compression
from kdump.records.magic_2 import Batch
from kdump.records.record_batch import Batches, RecordBatch
from kdump.segments import read as segments_read
from kdump.segments import read_ahead, resync, walk
from kdump.segments.regions import Range

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Segment
    from kdump.segments.parts import SegmentPart
    from kdump.segments.regions import Damage, OnError, Region


def stream(
    segment: Segment,
    source: Source,
    span: Range | None,
    on_error: OnError,
    *,
    runs: bool,
    packed: bool = True,
    check: bool = True,
    make: Callable[[Region], int] | None = None,
) -> Generator[Region, None, None]:
    """Yield the regions of a range of bytes; None is an empty one.

    With ``runs`` batches that are alike may come as one Run, with ``packed`` no compressed ones. Where all of a local
    file is wanted so, threads read ahead; with ``check`` they look whether records are well-formed. Some regions are
    handed to ``make``, in any thread, as :func:`kdump.segments.read_ahead.read` does. Without ``packed`` only headers
    are wanted, and threads would bring nothing. Raises UnreadableError.
    """
    if span is None:
        return
    runs = runs and source.limit >= compression.DEFAULT_LIMIT
    if not (runs and isinstance(source, local.LocalFile) and span == Range()):
        yield from _range(segment, source, span, on_error, runs=runs, packed=packed)
        return
    leash = read_ahead.Leash(source)
    regions = segments_read.read_runs(leash, on_error=on_error, first_offset=segment.base_offset, packed=packed)
    yield from read_ahead.read(regions, leash, source.size, unpack=True, check=check, make=make) if packed else regions


def part_of(
    segment: Segment, source: Source, part: SegmentPart, on_error: OnError, *, runs: bool, packed: bool
) -> Generator[Region, None, None]:
    """Yield the regions of a part of a segment as :func:`stream` would; then complete ``part``."""
    first = segment.base_offset if part.start == 0 else None
    runs = runs and source.limit >= compression.DEFAULT_LIMIT
    reader = resync.ResyncReader(source, part.start, source.size, on_error, first, limit=None, runs=runs, packed=packed)
    yield from reader.read_part(part.stop, part.hops)
    part.reached, part.hops = reader.reached, reader.hops


def stretch(source: Source, start: int, end: int, *, runs: bool, packed: bool) -> Generator[Region, None, None]:
    """Yield the batches of bytes that held nothing else when they were read before."""
    runs = runs and source.limit >= compression.DEFAULT_LIMIT
    if runs and isinstance(source, local.LocalFile):
        leash = read_ahead.Leash(source)
        regions = segments_read.read_runs(leash, start, end, on_error="stop", packed=packed)
        yield from read_ahead.read(regions, leash, end - start, unpack=True, check=True) if packed else regions
    elif runs:
        yield from segments_read.read_runs(source, start, end, on_error="stop", packed=packed)
    else:
        yield from segments_read.read(source, start, end, on_error="stop")


def _range(
    segment: Segment, source: Source, span: Range, on_error: OnError, *, runs: bool, packed: bool
) -> Iterator[Region]:
    """Yield the regions of a range; where its end, given by an index, is not the end of a batch, go on."""

    def read(start: int, end: int | None = None, first_offset: int | None = None) -> Iterator[Region]:
        if runs:
            return segments_read.read_runs(
                source, start, end, on_error=on_error, first_offset=first_offset, packed=packed
            )
        return segments_read.read(source, start, end, on_error=on_error, first_offset=first_offset)

    start = span.start
    for region in read(start, span.end, segment.base_offset if start == 0 else None):
        if span.end is not None and not isinstance(region, Batches):
            start = region.position
            break
        yield region
    else:
        return
    yield from read(start)


def wrong_crc(source: Source, damage: Damage) -> Iterator[RecordBatch]:
    """Yield the batches with a wrong crc that a damaged stretch begins with, as far as they are plausible."""
    last = -1
    for region in walk.walk(source, damage.position, damage.end):
        if (
            not isinstance(region, RecordBatch)
            or region.crc_valid
            or region.attributes & record_layout.CODEC_MASK >= len(compression.NAMES)
            or (region.position > damage.position and not _is_plausible(region, last))
        ):
            return
        yield region
        last = region.last_offset


def _is_plausible(batch: RecordBatch, last: int) -> bool:
    """Tell whether bytes that only the length of the batch before leads to are a batch: its offsets go on."""
    if not last < batch.last_offset or not 0 <= batch.magic <= record_layout.MAGIC_2:
        return False
    if not isinstance(batch, Batch):
        return True
    header = batch.header
    return last < header.base_offset and 0 <= header.records_count <= header.last_offset_delta + 1
