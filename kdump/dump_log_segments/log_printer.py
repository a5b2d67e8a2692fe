"""Prints a segment as releases from 0.11 on do: batches, records, trailing bytes. Several processes may print parts.

Compiled code (:mod:`.kernel_lines`) prints most lines. This module prints the others, in the same way.
"""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, cast

from kdump import kernel
from kdump.dump_log_segments.java_files import absolute
from kdump.dump_log_segments.lines import LineValues
from kdump.errors import DamageError
from kdump.formats import record_layout
from kdump.formats.record import LARGE, Record
from kdump.formats.record_layout import BATCH_HEADER, CODEC_MASK
from kdump.log_dirs.local import LocalFile
from kdump.output.stdout import is_terminal
from kdump.parallel import costs
from kdump.parallel.costs import UNKNOWN, SegmentPart
from kdump.primitives.compression import NONE
from kdump.primitives.encodings import java_text, java_text_in_pieces
from kdump.primitives.wire import INT32_MAX, to_int64
from kdump.records import log_entry
from kdump.records.magic_0_1 import Message
from kdump.records.magic_2 import Batch
from kdump.records.record_batch import RecordBatch
from kdump.segments import read_ahead, walk
from kdump.segments.batch_runs import Entries, Run
from kdump.segments.regions import Damage, RunKinds, Trailing
from kdump.segments.walk import Window

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from kdump.dump_log_segments import Options
    from kdump.dump_log_segments.decoder_classes import Decoders
    from kdump.dump_log_segments.run import DumpRun
    from kdump.log_dirs.files import Source
    from kdump.parallel.turns import OutputTurn
    from kdump.segments.read_ahead import MadeLines
    from kdump.segments.regions import Region
if kernel.COMPILED:
    from kdump.dump_log_segments.kernel_lines import KernelEntries, KernelLines


def print_part(printer: LogPrinter, source: LocalFile, part: SegmentPart) -> None:
    """Print a part of a segment, then set ``part.reached``. Raises an error where DumpLogSegments stops."""
    run, path = printer.run, printer.path
    options = run.options
    deep = is_deep(run)
    with closing(_regions(read_ahead.RevocableSource(source), printer, part, deep=deep)) as regions:
        for region, made in regions:
            if isinstance(region, Run):
                printer.batches(region, 0, region.batch_count, made, deep=deep)
            elif isinstance(region, Entries):
                printer.messages(region, deep=deep)
            elif isinstance(region, RecordBatch):
                printer.batch(region, deep=deep)
            elif isinstance(region, Trailing) and options.max_bytes == INT32_MAX:
                if run.dialect.sizes_overflow:
                    printer.overflow(source, region.position, deep=deep)
                run.trailing(source, region.size)
            elif isinstance(region, Damage):
                raise region.error(path)


def _regions(
    revocable: read_ahead.RevocableSource, printer: LogPrinter, part: SegmentPart, *, deep: bool
) -> Generator[tuple[Region, MadeLines | None], None, None]:
    """Yield the regions of a part, each with the lines that a thread has made ahead (None if it has not)."""
    options = printer.run.options
    end = end_of(revocable.size, options)
    window = Window(revocable, end)
    if part.start or part.stop < end:
        window.narrow(part.start, part.stop)
    limit = options.max_batch_bytes
    runs = RunKinds(CODEC_MASK if deep else 0, messages=True)
    regions = walk.walk(revocable, part.start, end, window, limit=limit, runs=runs, stop=part.stop)
    if not deep:
        for region in part.cut(regions, end):
            yield region, None
        return
    make = printer.make if kernel.COMPILED and printer.run.parser is None else None
    yield from read_ahead.read_making(part.cut(regions, end), revocable, end, make, unpack=True)


def is_deep(run: DumpRun) -> bool:
    options = run.options
    return options.deep_iteration or (options.print_data_log and run.dialect.print_is_deep)


def end_of(size: int, options: Options) -> int:
    """Return the position (bytes) up to which a segment is printed. A --max-bytes of INT32_MAX means no limit."""
    return size if options.max_bytes == INT32_MAX else min(size, options.max_bytes)


class LogPrinter(LineValues):
    def __init__(self, run: DumpRun, path: str, decoders: Decoders) -> None:
        super().__init__(run, path, decoders)
        if kernel.COMPILED:
            self.fast = KernelLines(self)
        self._entries: KernelEntries | None = None

    @property
    def entries(self) -> KernelEntries:
        if self._entries is None:
            self._entries = KernelEntries(self)
        return self._entries

    def end(self) -> None:
        """Free the memory of compiled code at once. Reference cycles would keep it until a garbage collection."""
        if kernel.COMPILED:
            self.fast.end()
        if self._entries is not None:
            self._entries.end()

    def batches(self, batches: Run, row: int, stop: int, made: MadeLines | None = None, *, deep: bool) -> None:
        """Print the batches ``row`` to ``stop`` (exclusive), with records if ``deep``. ``made``: lines made ahead."""
        head = not deep or self.run.dialect.batches_beside_records
        while row < stop:
            row, done = self.fast.print_batches(batches, row, stop, made, head=head, deep=deep)
            made = None
            if row < stop:
                if done:
                    self.rest(batches.batch(row), done, head=head, deep=deep)
                else:
                    self.batch(batches.batch(row), deep=deep)
                row += 1

    def make(self, run: Run) -> MadeLines | None:
        return self.fast.make(run, head=self.run.dialect.batches_beside_records)

    def messages(self, messages: Entries, *, deep: bool) -> None:
        head = not deep or self.run.dialect.batches_beside_records
        for message in self.entries.print_messages(messages, head=head, deep=deep):
            self.batch(message, deep=deep)

    def batch(self, batch: RecordBatch, *, deep: bool) -> None:
        head = not deep or self.run.dialect.batches_beside_records
        if not head and isinstance(batch, Message) and batch.magic < 0 and batch.codec == NONE:
            batch = batch.read_as(1)  # no batch line is printed here, and nothing else depends on the magic
        done = self.fast.batch(batch, head=head, deep=deep) if kernel.COMPILED and isinstance(batch, Batch) else 0
        if done is not None:
            self.rest(batch, done, head=head, deep=deep)

    def rest(self, batch: RecordBatch, done: int, *, head: bool, deep: bool) -> None:
        """Print the records of a batch (if ``deep``) without the first ``done``, which compiled code has printed.

        The line of the batch comes first if ``head`` is true and ``done`` is 0. DamageError has path and position.
        """
        try:
            if head and not done:
                self.header(batch)
            if not deep:
                return
            limit, in_chunks = self.run.options.max_batch_bytes, self.run.dialect.reads_lz4_in_chunks
            entries: Iterable[Record | Message]
            if isinstance(batch, Message):
                printed = self.entries.wrapper(batch) if kernel.COMPILED else 0
                messages = batch.messages(limit, in_chunks=in_chunks)
                entries = () if printed is None else islice(messages, printed, None)
            else:
                entries = islice(cast("Batch", batch).records(limit, in_chunks=in_chunks), done, None)
            for entry in entries:
                self.record(batch, entry)
        except DamageError as damage:
            raise walk.in_batch(damage, batch).error(f"{self.path}: batch at {batch.position}") from damage

    def overflow(self, source: Source, position: int, *, deep: bool) -> None:
        """If a truncated batch ends past 2 GiB, print the start of its line (unless ``deep``) and raise DamageError."""
        head = source.read(position, BATCH_HEADER.size)
        if len(head) < record_layout.UP_TO_MAGIC:
            return
        overhead = record_layout.LOG_OVERHEAD.read(head)
        end = position + record_layout.LOG_OVERHEAD.size + overhead.size
        if end <= INT32_MAX:
            return
        magic = int.from_bytes(head[record_layout.MAGIC_POSITION : record_layout.UP_TO_MAGIC], "big", signed=True)
        if not deep:
            batch = log_entry.read(memoryview(head), overhead.offset, overhead.size, magic, position)
            parts = self.legacy_batch_line if isinstance(batch, Message) else self.batch_line
            self.out.write(parts[0].render(self.fields(batch)).encode())
        raise DamageError(
            "record size",
            f"{self.path}: a batch ends past 2 GiB: this release computes a negative position for its end",
            position=position + record_layout.LOG_OVERHEAD.offsets["size"],
            expected=f"an end at {source.size} or before",
            found=end,
        )

    def header(self, batch: RecordBatch) -> None:
        value = self.fields(batch)
        for part in self.legacy_batch_line if isinstance(batch, Message) else self.batch_line:
            self.out.write(part.render(value).encode())
        self.out.write(b"\n")

    def record(self, batch: RecordBatch, entry: Record | Message) -> None:
        options = self.run.options
        offset = entry.offset
        if (self.last_offset != -1 or self.armed) and offset != self.last_offset + 1:
            self.gap(self.last_offset, offset)
        self.last_offset = offset
        write = self.out.write
        if not options.skip_record_metadata:
            value = self.record_fields(batch, entry)
            for part in self.legacy_record_line if isinstance(batch, Message) else self.record_line:
                write(part.render(value).encode())
            if batch.is_control:
                write(self.control_content(entry))
        if options.print_data_log and not batch.is_control:
            if entry.size >= LARGE and self.run.parser is None:
                self._write_large(entry)
            else:
                write(b"".join(self.content(entry)))
        write(b"\n")

    def control_content(self, entry: Record | Message) -> bytes:
        from kdump.dump_log_segments.decoders.texts import control_text

        return control_text(entry.key, entry.value, self.run.payloads).encode()

    def _write_large(self, entry: Record | Message) -> None:
        """Print key and value of a large record in pieces, unless a decoder class needs the whole value."""
        from kdump.rows.pieces import PIECE, parts

        found: list[tuple[bytes, Iterable[bytes]]] = []
        for text, name in self.contents[(entry.key_size < 0) + 2 * (entry.value_size < 0)]:
            data, decoder = (entry.key if name == "key" else entry.value), getattr(self.decoders, name)
            if data is None:
                continue
            if decoder is java_text:
                pieces: Iterable[bytes] = java_text_in_pieces(data, PIECE)
            elif self.decoders.spelling:
                pieces = map(decoder, parts(data))
            else:  # it may raise
                pieces = (decoder(data),)
            found.append((text, pieces))
        for text, pieces in found:
            self.out.write(text)
            for piece in pieces:
                self.out.write(piece)

    def content(self, entry: Record | Message) -> Iterator[bytes]:
        """Yield the texts of key and value. The caller must get both before it prints one: the second may raise."""
        if self.run.parser is not None:
            from kdump.dump_log_segments.decoders.texts import parsed

            yield from parsed(self.run.parser, entry).parts(*self.run.fronts)
            return
        for text, name in self.contents[(entry.key_size < 0) + 2 * (entry.value_size < 0)]:
            data = entry.key if name == "key" else entry.value
            if data is not None:
                yield text + getattr(self.decoders, name)(data)


class LinesSoFar(NamedTuple):
    """The state after a part: the position at which the next part starts, and the last printed offset, or -1."""

    start: int = 0
    last_offset: int = -1


class PartLines(NamedTuple):
    """The result of printing a part. UNKNOWN in a gap stands for the last offset before the part: it may be no gap."""

    reached: int
    """The start of the next part."""
    last_offset: int
    """The last printed offset; UNKNOWN if no record is printed."""
    gaps: list[tuple[int, int]]


def dump(run: DumpRun, path: str, decoders: Decoders) -> None:
    """Print one segment. Where DumpLogSegments stops, raise an error after the same output."""
    with LocalFile(path) as source:
        end = end_of(source.size, run.options)
        jobs = costs.processes_of_segment(run.jobs, end, lambda: costs.is_packed(source))
        may_share = jobs > 1 and not costs.is_watched() and not is_terminal()
        pieces = costs.segment_parts(source, end) if may_share else []
        printer = LogPrinter(run, path, decoders)
        if pieces:
            _share(run, printer, source, pieces, jobs)
        else:
            print_part(printer, source, SegmentPart(0, end))
        printer.end()
        run.close(source)


def _share(run: DumpRun, printer: LogPrinter, source: LocalFile, pieces: list[SegmentPart], jobs: int) -> None:
    from kdump.parallel.turns import Forks

    run.out.flush()
    found: list[tuple[int, int]] = []
    before = LinesSoFar()
    with closing(Forks(jobs).run(pieces, PartPrinting(printer, source), before)) as results:
        for made, after in results:
            found += _gaps(printer, before.last_offset, made)
            before = after
    if found:
        run.gaps.setdefault(absolute(printer.path), []).extend(found)


class PartPrinting:
    """Prints one part at a time in a worker process; see :mod:`kdump.parallel.turns`."""

    def __init__(self, printer: LogPrinter, source: LocalFile) -> None:
        self._printer, self._source = printer, source

    def assume(self, part: SegmentPart) -> int | None:
        from kdump.segments import resync

        return resync.guess(self._source, part) if part.start else 0

    def make(self, part: SegmentPart, start: int, turn: OutputTurn[LinesSoFar]) -> PartLines:
        printer, run = self._printer, self._printer.run
        printer.out = run.out = turn.file
        printer.last_offset = UNKNOWN
        run.gaps.clear()
        rest = SegmentPart(start, part.stop)
        if start < part.stop:
            print_part(printer, self._source, rest)
        else:
            rest.reached = start
        return PartLines(rest.reached, printer.last_offset, run.gaps.get(absolute(printer.path), []))

    def carry(self, before: LinesSoFar, made: PartLines) -> LinesSoFar:
        last = before.last_offset if made.last_offset == UNKNOWN else made.last_offset
        return LinesSoFar(made.reached, last)


def _gaps(printer: LogPrinter, last: int, made: PartLines) -> list[tuple[int, int]]:
    """Return the gaps of a part, first that from ``last`` (the offset before it, or -1) to its first offset, if any."""
    if made.last_offset == UNKNOWN:
        return []
    gaps, first = made.gaps, UNKNOWN + 1  # the offset that would follow UNKNOWN
    if gaps and gaps[0][0] == UNKNOWN:
        first, gaps = gaps[0][1], gaps[1:]
    is_gap = (last != -1 or printer.armed) and first != to_int64(last + 1)
    return [(last, first), *gaps] if is_gap else gaps
