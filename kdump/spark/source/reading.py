"""Reads splits (parts of segments) in a Spark task: yields records, damaged ranges, accounts or batch headers as Arrow.

The driver has planned the splits. In mode FAILFAST damage raises UnreadableError. In other modes the records around it
are read, and for ``records`` the task prints it. The output ``batches`` has only headers, and skips damage in each
mode. Unreadable bytes raise UnreadableError. With ``skipUnreadable``, except in FAILFAST, those of a failing disk count
as damage.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump.arrow import header_rows
from kdump.arrow import schema as arrow_schema
from kdump.arrow.columns import Rows
from kdump.errors import (
    DamageError,
    FailingDiskError,
    PartlyUnreadableError,
    UnreadableError,
    many_are,
    offsets_are,
    offsets_text,
)
from kdump.log_dirs.file_names import DELETED
from kdump.log_reader import header_scan
from kdump.log_reader.batch_selection import BatchSelection
from kdump.log_reader.filter import Filter
from kdump.primitives.terminal import print_line
from kdump.primitives.wire import INT64_END
from kdump.records import magic_2
from kdump.records.record_batch import Batches, RecordBatch
from kdump.rows.selection import DamagedRange, SelectedBatch
from kdump.segments import log_end
from kdump.segments import resync as segments_read
from kdump.segments.lazy_records import in_chunks
from kdump.segments.regions import ENDS_INSIDE, TRAILING, Damage, Padding, Trailing
from kdump.spark.source import options as words
from kdump.spark.source import schema
from kdump.spark.source.marks import lose
from kdump.spark.source.subject_rows import SubjectRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from kdump.formats.record import RecordType
    from kdump.log_dirs import files
    from kdump.log_dirs.files import OpenSource
    from kdump.log_reader.replicas import Ranges
    from kdump.rows.selection import SegmentFacts
    from kdump.spark.source.options import SourceOptions
    from kdump.spark.source.planning import Split
    from kdump.transaction_replay.outcomes import Outcomes

GROWING: Final = "a broker was writing this batch when the file was listed"
"""The reason of a truncated batch that a broker was writing during the listing. It is not an error."""
UNREADABLE: Final = "unreadable"
"""The kind of damage for bytes that a failing disk does not return, with ``skipUnreadable``."""
DAMAGED_BYTES: Final = 8 << 20
"""The maximum number of bytes in a row of the output ``damaged``. A longer readable range has several rows."""


_FAILFAST_HINT: Final = (
    'mode FAILFAST stops here. PERMISSIVE continues, and .option("output", "damaged") lists the damaged bytes'
)


def refuse(error: UnreadableError, *, skip: bool) -> None:
    """Raise a read error of findings or answers. Spark retries a task that raises it, and at last ends the job.

    Two errors are not raised, because they become rows: damage of a tiered segment and, if ``skip`` is true (the option
    ``skipUnreadable``), bytes that a failing disk does not return. If another error became rows, an outage of a store
    would look like an answer.
    """
    if not (isinstance(error, PartlyUnreadableError) or (skip and isinstance(error, FailingDiskError))):
        raise error


class BatchContent(NamedTuple):
    """A readable batch: its selected records, and the damaged ranges among them."""

    batch: RecordBatch
    items: list[SelectedBatch | DamagedRange]


Content: TypeAlias = BatchContent | DamagedRange | Padding


def contents(
    split: Split, source: files.Source, options: SourceOptions, rows: Rows | SubjectRows | None = None
) -> Iterator[Content]:
    """Yield the batches, damaged ranges and padding of ``split``.

    Compiled code adds the records of the batches that it supports to ``rows``; these batches are then yielded without
    records. Raises UnreadableError at the first damage in mode FAILFAST, and in every mode for unreadable bytes or a
    file that has become shorter; Spark then retries the task. An exception is ``skip_unreadable`` in another mode: if a
    failing disk does not return bytes, the rest of the split after the last content is one damaged range.
    """
    at = split.start
    try:
        if split.live is not None:
            check_live(split, source)
        for content in _contents(split, source, options, rows):
            yield content
            at = content.batch.end if isinstance(content, BatchContent) else _end(content)
        if split.live is not None:
            entry = split.files.look(split.path)
            at = at if entry is None else min(at, entry.size)
        if at < split.end:
            raise _cut_back(split, at)
    except FailingDiskError as error:
        if options.mode == words.FAILFAST or not options.skip_unreadable:
            raise
        if options.output == words.RECORDS:
            print_line(f"{error}; skipped, as skipUnreadable allows")
        yield DamagedRange(split.file, Damage(at, split.end - at, UNREADABLE, error.reason, at))


def check_live(split: Split, source: files.Source) -> None:
    """Raise UnreadableError if an open file is shorter than planned, or the split begins with other bytes."""
    if source.size < split.end:
        raise _cut_back(split, source.size)
    if source.read(split.start, len(split.head)) != split.head:
        raise UnreadableError(
            split.name,
            f"the bytes from byte {split.start} on have changed since the listing: the file has been replaced",
        )


def _cut_back(split: Split, at: int) -> UnreadableError:
    was = f"it had at least {split.end} bytes when it was listed"
    return UnreadableError(split.name, f"the file ends at byte {at}; {was}")


def _end(content: DamagedRange | Padding) -> int:
    region = content.damage if isinstance(content, DamagedRange) else content
    return region.position + region.size


def _contents(
    split: Split, source: files.Source, options: SourceOptions, rows: Rows | SubjectRows | None
) -> Iterator[Content]:
    inside = split.end < source.size
    selection = BatchSelection(wanted(options), for_columns=True)
    content: Content
    for region in segments_read.read(source, split.start, split.end, on_error="resync"):
        if rows is not None and isinstance(region, magic_2.Batch) and _read(region, rows, split, options):
            content, lost = BatchContent(region, []), []
        elif isinstance(region, Batches):
            items = list(selection.select(region.first, split.file))
            content = BatchContent(region.first, [kept for item in items if (kept := _kept(item, split, options))])
            lost = [item for item in items if isinstance(item, DamagedRange)]
        elif isinstance(region, Trailing) and not inside and log_end.is_written_at(split.files, split.path):
            content = DamagedRange(split.file, region.damage()._replace(reason=GROWING))
            lost = []
        elif isinstance(region, Padding) and not inside:
            content, lost = region, []
        elif inside and region.position + region.size == split.end and _is_whole_now(source, region.position):
            growing = Damage(region.position, region.size, TRAILING, GROWING, region.position, found=region.size)
            content, lost = DamagedRange(split.file, growing), []
        else:  # a truncated batch or padding is damage unless it is the end of the file
            content = DamagedRange(split.file, region if isinstance(region, Damage) else _cut(region, inside))
            lost = [content]
        if lost and options.mode == words.FAILFAST:
            raise UnreadableError(split.name, damage_text(lost[0].damage), _FAILFAST_HINT)
        if options.output == words.RECORDS:
            for item in lost:
                print_line(f"{split.name}: {damage_text(item.damage)}")
        yield content


def _is_whole_now(source: files.Source, position: int) -> bool:
    """Return whether a valid batch begins at byte ``position``. The file may have grown since the listing."""
    first = next(segments_read.read(source, position, on_error="resync"), None)
    return isinstance(first, RecordBatch) and first.position == position


def _read(batch: magic_2.Batch, rows: Rows | SubjectRows, split: Split, options: SourceOptions) -> bool:
    """Add a batch's selected records to ``rows``, or return False if only plain Python can read them."""
    if not rows.wanted.may_hold(batch):
        return True
    state = _state(batch, split.outcomes)
    inside = split.offsets is None or _wholly(split.offsets, batch)
    if inside is None:
        return False
    return rows.read(batch, state, drop=not inside or _is_dropped(batch, state, options))


def wanted(options: SourceOptions) -> Filter:
    """Return the record filter of the options. It does not select by outcomes of transactions."""
    types: frozenset[RecordType] = frozenset() if options.include_control else frozenset({"data", "tombstone"})
    return Filter(
        first_offset=options.starting_offset,
        last_offset=None if options.ending_offset is None else options.ending_offset - 1,
        since=options.starting_timestamp,
        until=options.ending_timestamp,
        types=types,
    )


def _kept(
    item: SelectedBatch | DamagedRange, split: Split, options: SourceOptions
) -> SelectedBatch | DamagedRange | None:
    if isinstance(item, DamagedRange):
        return item
    state = _state(item.batch, split.outcomes)
    if _is_dropped(item.batch, state, options):
        return None
    records = item.records
    if split.stable is not None:
        records = [record for record in records if record.offset < split.stable]
    if split.offsets is not None:
        records = [record for record in records if _inside(split.offsets, record.offset)]
    return item._replace(records=records, transaction=state) if records else None


def _is_dropped(batch: RecordBatch, state: str | None, options: SourceOptions) -> bool:
    """Return whether read_committed leaves out this data batch: its transaction is aborted, open or unknown."""
    return options.committed and state in {"aborted", "open", None} and not batch.is_control


def _cut(region: Padding | Trailing, inside: bool) -> Damage:
    kind, reason = ("record size", "no batch can be read here") if inside else (TRAILING, ENDS_INSIDE)
    return Damage(region.position, region.size, kind, reason, region.position, found=region.size)


def damage_text(damage: Damage) -> str:
    text = DamageError(damage.kind, damage.reason, position=damage.at, expected=damage.expected, found=damage.found)
    return f"{text}; {many_are(damage.size, 'byte')} lost, from byte {damage.position} on"


def read(split: Split, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``split`` for an output in ``_OUTPUTS``; :func:`read_all` also has the output ``batches``."""
    source = _open(split, options)
    if source is not None:
        with source:
            yield from _OUTPUTS[options.output](split, source, options)


def _open(split: Split, options: SourceOptions) -> OpenSource | None:
    """Open a split's file. If a stream's file was deleted: return None, or with failOnDataLoss raise DataLossError."""
    gone: UnreadableError | None = None
    for path in _names(split):
        try:
            source = split.files.open(path)
        except UnreadableError as error:
            gone = error if gone is None else gone
            if split.files.look(path) is not None:
                raise
        else:
            source.limit = options.max_batch_bytes
            return source
    if split.live is None and gone is not None:
        raise gone
    folder = split.files.shown(posixpath.dirname(split.path))
    first, end = split.live  # type: ignore[misc]  # else it was raised
    lose(f"{folder}: {offsets_are(first, max(first, end - 1))} gone", options, print_line)
    return None


def _names(split: Split) -> tuple[str, str]:
    return split.path, f"{split.path}.{DELETED}"


def vanished(splits: Iterable[Split]) -> Iterator[str]:
    """Yield a message for each file of a stream that was deleted after a trigger was planned."""
    offsets: dict[str, tuple[int, int]] = {}
    for split in splits:
        if split.live is not None and not any(split.files.look(path) for path in _names(split)):
            offsets[split.name] = split.live
    for name, (first, end) in offsets.items():
        missing = offsets_text(first, max(first, end - 1))
        yield f"{name} was deleted before it was read completely: {missing} may be missing"


class Tally:
    """The counts of a split while it is read. ``lost`` has the damaged ranges. ``rows`` counts returned rows."""

    def __init__(self) -> None:
        self.batches = self.rows = self.batch_bytes = self.padding = 0
        self.lost: list[Damage] = []

    def add(self, content: Content) -> None:
        """Count padding, damage, or a batch without damage, but not its records."""
        lost = _lost(content)
        self.lost += lost
        if isinstance(content, Padding):
            self.padding += content.size
        elif isinstance(content, BatchContent) and not lost:
            self.batches += 1
            self.batch_bytes += content.batch.size

    @property
    def counts(self) -> tuple[int, ...]:
        """The counts in the order of :data:`kdump.spark.source.schema.ACCOUNT`, beginning with ``batches``."""
        sizes = {"": 0, TRAILING: 0, UNREADABLE: 0}
        ranges = 0
        for damage in self.lost:
            kind = damage.kind if damage.kind in sizes else ""
            sizes[kind] += damage.size
            ranges += not kind
        lost = (ranges, sizes[""], self.padding, sizes[TRAILING], sizes[UNREADABLE])
        return (self.batches, self.rows, self.batch_bytes, *lost)


def counted(split: Split, options: SourceOptions, report: Callable[[int, Tally], None]) -> Iterator[pa.RecordBatch]:
    """Yield the records of ``split``, then call ``report`` with the number and the counts of the split."""
    tally = Tally()
    source = _open(split, options)
    if source is not None:
        with source:
            yield from _records(split, source, options, tally)
    report(split.number, tally)


def damaged(split: Split, lost: Iterable[Damage], options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the output ``damaged`` for the damaged ranges ``lost`` of ``split``."""
    source = _open(split, options)
    if source is not None:
        with source:
            for damage in lost:
                yield from _damaged_rows(split, source, damage, skip=options.skip_unreadable)


def _records(
    split: Split, source: files.Source, options: SourceOptions, tally: Tally | None = None
) -> Iterator[pa.RecordBatch]:
    below = min((end for end in (options.ending_offset, split.stable) if end is not None), default=None)
    bounded = wanted(replace(options, ending_offset=below))
    file = split.file._replace(decoder=schema.decoder(options))
    rows: Rows | SubjectRows
    if options.by_subject and file.decoder is not None:
        rows = SubjectRows(file, options.names, bounded, file.decoder)
    else:
        typed = schema.typed_columns(options)
        rows = Rows(file, options.names, bounded, null_headers=options.kafka is not None, typed=typed)
    for content in contents(split, source, options, rows):
        for item in content.items if isinstance(content, BatchContent) else ():
            if isinstance(item, SelectedBatch):
                for some in in_chunks(item.records):
                    rows.add(item._replace(file=file, records=some))
                    if rows.is_full:
                        yield from _taken(rows, tally)
        if tally is not None:
            tally.add(content)
        if rows.is_full:
            yield from _taken(rows, tally)
    yield from _taken(rows, tally)


def _taken(rows: Rows | SubjectRows, tally: Tally | None) -> list[pa.RecordBatch]:
    taken = rows.take()
    if tally is not None:
        tally.rows += sum(len(batch) for batch in taken)
    return taken


def _state(batch: RecordBatch, outcomes: Outcomes | None) -> str | None:
    if outcomes is None:  # unknown, because no option needs them
        return None if batch.is_transactional else "none"
    return outcomes.of(batch)


def _inside(ranges: Ranges, offset: int) -> bool:
    at = bisect_right(ranges, (offset, INT64_END)) - 1
    return at >= 0 and offset < ranges[at][1]


def _wholly(ranges: Ranges, batch: RecordBatch) -> bool | None:
    """Return True if all offsets of a batch are inside the ranges, False if none is, None if only some are."""
    at = bisect_right(ranges, (batch.last_offset, INT64_END)) - 1
    if at < 0 or ranges[at][1] <= batch.base_offset:
        return False
    start, end = ranges[at]
    return True if start <= batch.base_offset and batch.last_offset < end else None


def _lost(content: Content) -> list[Damage]:
    if isinstance(content, BatchContent):
        return [item.damage for item in content.items if isinstance(item, DamagedRange)]
    return [content.damage] if isinstance(content, DamagedRange) else []


def _damaged(split: Split, source: files.Source, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    for content in contents(split, source, options):
        for damage in _lost(content):
            if is_reported(damage, options):
                yield from _damaged_rows(split, source, damage, skip=options.skip_unreadable)


def is_reported(damage: Damage, options: SourceOptions) -> bool:
    """Return whether a damaged range becomes rows of the output ``damaged``."""
    return options.mode != words.DROPMALFORMED or damage.kind == UNREADABLE


def chunks(damage: Damage) -> Iterator[tuple[int, int]]:
    """Yield the position and length (bytes) of each row of a damaged range."""
    if damage.kind == UNREADABLE:
        yield damage.position, damage.size
        return
    for start in range(damage.position, damage.end, DAMAGED_BYTES):
        yield start, min(DAMAGED_BYTES, damage.end - start)


def _damaged_rows(split: Split, source: files.Source, lost: Damage, *, skip: bool) -> Iterator[pa.RecordBatch]:
    where = (split.file.topic, split.partition, split.name)
    facts = (lost.kind, lost.reason, lost.at, lost.missing_from, lost.missing_until)
    if lost.kind == UNREADABLE:
        yield _row(schema.DAMAGED, *where, lost.position, lost.size, *facts, None)
        return
    for start, size in chunks(lost):
        try:
            data = source.read(start, size)
        except FailingDiskError:  # the bytes were readable before, so the disk is failing; the row shows where
            if not skip:
                raise
            data = None
        yield _row(schema.DAMAGED, *where, start, size if data is None else len(data), *facts, data)


def _account(split: Split, source: files.Source, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    tally = Tally()
    for content in contents(split, source, options):
        tally.add(content)
        if isinstance(content, BatchContent):
            tally.rows += sum(len(item.records) for item in content.items if isinstance(item, SelectedBatch))
    where = (split.file.topic, split.partition, split.name, split.start, split.end)
    yield _row(schema.ACCOUNT, *where, *tally.counts)


def read_all(splits: Iterable[Split], options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of splits in order. For the output ``batches``, a block may have the rows of several splits."""
    if options.output == words.BATCHES:
        yield from header_rows.record_batches(found for split in splits for found in _found(split, options))
        return
    for split in splits:
        yield from read(split, options)


def _found(split: Split, options: SourceOptions) -> Iterator[tuple[SegmentFacts, RecordBatch]]:
    """Yield the headers of batches. Checksums are verified only after an invalid header."""
    kept, file = wanted(replace(options, include_control=True)), split.file
    try:
        source = _open(split, options)
        if source is None:
            return
        with source:
            for batch in header_scan.batches(source, split.start, split.end):
                if kept.may_hold(batch) and _begins(batch, options) and _may_be_inside(split, batch):
                    yield file, batch
    except FailingDiskError as error:
        if options.mode == words.FAILFAST or not options.skip_unreadable:
            raise
        print_line(f"{error}; skipped, as skipUnreadable allows")


def _begins(batch: RecordBatch, options: SourceOptions) -> bool:
    """Return whether a batch begins before the end offset; False for a wrapper that cannot be decompressed."""
    try:
        return options.ending_offset is None or batch.base_offset < options.ending_offset
    except DamageError:
        return False


def _may_be_inside(split: Split, batch: RecordBatch) -> bool:
    try:
        return split.offsets is None or _wholly(split.offsets, batch) is not False
    except DamageError:
        return True


def _row(fields: tuple[arrow_schema.ArrowField, ...], *values: object) -> pa.RecordBatch:
    import pyarrow as pa

    shape = arrow_schema.arrow(fields)
    columns = [pa.array([value], field.type) for value, field in zip(values, shape, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=shape)


_OUTPUTS: Final = {
    words.RECORDS: _records,
    words.DAMAGED: _damaged,
    words.ACCOUNT: _account,
}
