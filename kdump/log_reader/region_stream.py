"""Yields all regions of a segment or byte range, and the readable batches with a wrong CRC in a damaged range."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from kdump.errors import DamageError
from kdump.formats import record_layout
from kdump.log_dirs import local
from kdump.primitives import compression
from kdump.records.magic_2 import Batch
from kdump.records.record_batch import Batches, RecordBatch
from kdump.segments import read_ahead, resync, walk
from kdump.segments.regions import DATA, PLAIN_DATA, Range, RunKinds

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Segment
    from kdump.parallel.costs import SegmentPart
    from kdump.segments.batch_runs import Run
    from kdump.segments.read_ahead import SizedResult
    from kdump.segments.regions import Damage, OnError, Region

M = TypeVar("M", bound="SizedResult")


def stream(
    segment: Segment,
    source: Source,
    span: Range | None,
    on_error: OnError,
    *,
    runs: bool,
    packed: bool = True,
    check: bool = True,
    make: Callable[[Run], M | None] | None = None,
) -> Generator[tuple[Region, M | None], None, None]:
    """Yield the regions of ``span`` (none if None), each with the result of ``make`` or None. Raises UnreadableError.

    After damage, or if ``span`` ends inside a batch, all later regions follow. With ``runs``, several batches may be
    one Run. ``packed``: the caller reads records, so a Run has no compressed batches. With ``runs`` and ``packed``,
    threads may read a whole local file ahead and call ``make``. With ``check`` they also check records.
    """
    if span is None:
        return
    kinds = _kinds(source, runs=runs, packed=packed)
    is_whole = isinstance(source, local.LocalFile) and span == Range()
    if kinds is None or not is_whole or not packed or source.size <= read_ahead.FIRST:  # threads would not read ahead
        for region in _range(segment, source, span, on_error, kinds):
            yield region, None
        return
    revocable = read_ahead.RevocableSource(source)
    regions = resync.read(revocable, on_error=on_error, first_offset=segment.base_offset, runs=kinds)
    yield from read_ahead.read_making(regions, revocable, source.size, make, unpack=True, check=check)


def part_of(
    segment: Segment, source: Source, part: SegmentPart, on_error: OnError, *, runs: bool, packed: bool
) -> Generator[tuple[Region, None], None, None]:
    """Like :func:`stream` for ``part``, without ``make``. Sets ``part.reached`` and ``part.skips_left`` at the end."""
    first = segment.base_offset if part.start == 0 else None
    kinds = _kinds(source, runs=runs, packed=packed)
    reader = resync.ResyncReader(source, part.start, source.size, on_error, first, runs=kinds)
    for region in reader.read_part(part.stop, part.skips_left):
        yield region, None
    part.reached, part.skips_left = reader.reached, reader.skips_left


def batches_of(source: Source, start: int, end: int, *, runs: bool, packed: bool) -> Generator[Region, None, None]:
    """Like :func:`stream` from ``start`` to ``end`` (bytes), where an earlier read found only valid batches."""
    kinds = _kinds(source, runs=runs, packed=packed)
    if kinds is not None and packed and isinstance(source, local.LocalFile):
        revocable = read_ahead.RevocableSource(source)
        regions = resync.read(revocable, start, end, runs=kinds)
        yield from read_ahead.read(regions, revocable, end - start, unpack=True, check=True)
    else:
        yield from resync.read(source, start, end, runs=kinds)


def _kinds(source: Source, *, runs: bool, packed: bool) -> RunKinds | None:
    if not runs or source.limit < compression.DEFAULT_LIMIT:  # the size of each batch must be checked
        return None
    return PLAIN_DATA if packed else DATA


def _range(
    segment: Segment, source: Source, span: Range, on_error: OnError, kinds: RunKinds | None
) -> Iterator[Region]:
    """Return the regions of a range. After damage, or if the range ends inside a batch, read to the end of the file."""
    start = span.start
    first_offset = segment.base_offset if start == 0 else None
    regions = resync.read(source, start, span.end, on_error=on_error, first_offset=first_offset, runs=kinds)
    return regions if span.end is None else _whole(regions, source, start, on_error, kinds)


def _whole(
    regions: Iterator[Region], source: Source, start: int, on_error: OnError, kinds: RunKinds | None
) -> Iterator[Region]:
    for region in regions:
        if not isinstance(region, Batches):
            start = region.position
            break
        yield region
    else:
        return
    yield from resync.read(source, start, on_error=on_error, runs=kinds)


def wrong_crc(source: Source, damage: Damage, *, searches: bool = False) -> Iterator[RecordBatch]:
    """Yield the batches with a wrong checksum at the start of a damaged range.

    The first one needs only a known magic and codec: the valid batch before it shows where it begins. Later ones need
    plausible counts and rising offsets. With ``searches``, also such batches after other bytes of the range.
    """
    last, end, window = -1, damage.position, walk.Window(source, damage.end)
    starts = [damage.position] if damage.kind == "crc" else []
    for start in chain(starts, resync.possible_batches(source, damage.position, damage.end) if searches else ()):
        if start < end or (end > damage.position and int.from_bytes(window.view(start, 8), "big") <= last):
            continue
        for region in walk.walk(source, start, damage.end, window):
            if (
                not isinstance(region, RecordBatch)
                or region.attributes & record_layout.CODEC_MASK >= len(compression.NAMES)
                or (region.position > damage.position and not _is_plausible(region, last))
            ):
                break
            end = region.end
            if region.crc_valid:  # a copy of a batch in damaged bytes
                break
            yield region
            last = region.last_offset


def _is_plausible(batch: RecordBatch, last: int) -> bool:
    """Return whether ``batch`` may come after a batch that has a wrong checksum and the last offset ``last``."""
    if not last < batch.last_offset or not 0 <= batch.magic <= record_layout.MAGIC_2:
        return False
    if not isinstance(batch, Batch):
        return True
    header = batch.header
    return last < header.base_offset and 0 <= header.records_count <= header.last_offset_delta + 1


class ReadStats:
    """The paths of the read segments, and the numbers of bytes (with damage and padding), batches and records."""

    def __init__(self) -> None:
        self.segments: set[str] = set()
        self.bytes = self.batches = self.records = 0

    def add(self, region: Region) -> None:
        self.bytes += region.size
        if isinstance(region, Batches):
            self.batches += region.batch_count
            self.records += _records(region)


def _records(batches: Batches) -> int:
    if batches.first.count is not None:
        return sum(batches.column("records_count"))
    try:
        return sum(1 for _ in batches.first.records())
    except DamageError:  # the selection of the records reports it
        return 0
