"""Runs ``kdump dump`` in one process: :func:`write_columns` for Parquet and Arrow, :class:`Dump` for other formats."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, Final

from kdump.command_line import options as shared
from kdump.command_line import session
from kdump.errors import Reporter, UsageError
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.local import LOCAL
from kdump.log_reader.reader import PartitionReader
from kdump.output.stdout import open_output
from kdump.printers.output_formats import HidingPrinter, printer_of
from kdump.rows.selection import (
    DamagedRange,
    SelectedBatch,
    first_of,
    may_hold_secrets,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from kdump.arrow.stream import RowStream
    from kdump.arrow.typed import TypedColumns
    from kdump.command_line.dump_options import DumpOptions
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.log_reader.region_stream import ReadStats
    from kdump.printers.output_formats import Printer
    from kdump.schemas.decoder import PayloadDecoder
    from kdump.segments.read_ahead import MadeLines

POLL: Final = 0.2
"""Seconds between two checks of a live log."""
LOOK: Final = 1.0
"""Minimum number of seconds between two searches for new partitions."""


class Dump:
    """Prints the selected records of partitions and the damaged ranges: once (:meth:`run`) or live (:meth:`follow`)."""

    def __init__(self, run: session.Session, options: DumpOptions, decoder: PayloadDecoder | None = None) -> None:
        self.session, self.options, self.decoder = run, options, decoder
        self.redactor = shared.redactor(redact=options.redact, file=options.redact_key, fields=options.redact_fields)
        self.counted = 0
        """The number of selected records (with --batches: of batches) after the run; 0 during it and with --follow."""
        self.damaged_ranges = self.damaged_bytes = self.segments = self.bytes = 0
        self.stats: ReadStats | None = None
        if options.stats:
            from kdump.log_reader.region_stream import ReadStats

            self.stats = ReadStats()

    def stats_line(self) -> dict[str, object]:
        read = self.stats
        unread = len(self.session.reported.failed)
        return {
            "segments": self.segments,
            "bytes": self.bytes,
            "segmentsRead": 0 if read is None else len(read.segments),
            "bytesRead": 0 if read is None else read.bytes,
            "batchesRead": 0 if read is None else read.batches,
            "recordsRead": 0 if read is None else read.records,
            "found": self.counted,
            "damagedRanges": self.damaged_ranges,
            "damagedBytes": self.damaged_bytes,
            "unreadable": unread,
            "complete": not (unread or self.damaged_ranges or self.options.stops_early),
        }

    def reader(self) -> PartitionReader:
        options, run = self.options, self.session
        reader = PartitionReader(
            filter=options.filter,
            take=options.take,
            outcomes=options.shows_outcomes and not options.follow,
            on_error=options.on_error,
            include_damaged=options.include_damaged,
            report=run.report._replace(progress=run.progress),
            decoder=self.decoder,
        )
        reader.stats, reader.begin = self.stats, options.begin
        return reader

    def printer(self, out: BinaryIO) -> Printer:
        printer = printer_of(self.options.format_name, out, self.options.printing(self.redactor))
        return printer if self.options.show_secrets or self.options.batches else HidingPrinter(printer)

    def run(self, partitions: Iterable[Partition], out: BinaryIO) -> None:
        """Print the records of partitions to ``out`` in the format of the options, or with --count their number."""
        reader = self.reader()
        printer = None if self.options.count else self.printer(out)
        if printer is not None:
            printer.begin()
        if self.stats is not None:
            partitions = map(self.count_in, partitions)
        if printer is not None and not (self.options.stops_early or self.options.batches):
            pairs = (reader.read_making(partition, printer.make) for partition in partitions)
            found, counted = self.print_made(chain.from_iterable(pairs), printer)
        else:
            items = (item for partition in partitions for item in self.stream(reader, partition))
            found, counted = self.print_items(self.first(items, self.options.limit), printer)
        if printer is not None:
            printer.end()
        self.finish(out, counted, found=found)

    def count_in(self, partition: Partition) -> Partition:
        self.segments += len(partition.segments)
        self.bytes += partition.size
        return partition

    def stream(
        self, reader: PartitionReader, partition: Partition, only: tuple[Segment, ...] | None = None
    ) -> Iterator[SelectedBatch | DamagedRange]:
        """Return the items of a partition up to --head, or from --tail on; without these of the segments ``only``."""
        if self.options.tail is not None:
            return reader.tail(partition, self.options.tail)
        return self.first(reader.read(partition, only), self.options.head)

    def print_items(self, items: Iterable[SelectedBatch | DamagedRange], printer: Printer | None) -> tuple[bool, int]:
        """Print items; report damage. Return whether there were any items, and the number of records (or batches)."""
        return self.print_made(((item, None) for item in items), printer)

    def print_made(
        self, pairs: Iterable[tuple[SelectedBatch | DamagedRange, MadeLines | None]], printer: Printer | None
    ) -> tuple[bool, int]:
        """Like :meth:`print_items`, for pairs of an item and the lines that a thread has formatted for it (or None)."""
        found, counted = False, 0
        for item, made in pairs:
            found = True
            if isinstance(item, DamagedRange):
                self.lost(item, printer)
                continue
            if printer is not None:
                printer.found(item, made)  # the printer may shorten a run
            counted += self._count(item)
        return found, counted

    def finish(self, out: BinaryIO, counted: int, *, found: bool) -> None:
        self.session.progress.clear()
        self.session.sum_up()
        self.counted = counted
        if self.options.count:
            out.write(b"%d\n" % counted)
        if not found and not self.session.statuses:
            self.session.note("nothing matches the options" if self.options.excludes_records else "there is no record")

    def follow(self, partitions: list[Partition], paths: Sequence[str], out: BinaryIO) -> None:
        """Print the records of ``partitions`` (with --tail the last), then appended ones, until Ctrl-C or --limit.

        Partitions that appear later in folders of ``paths`` are read too. Raises UsageError unless the files are local.
        """
        if any(partition.files is not LOCAL for partition in partitions):
            raise UsageError("--follow needs local files: archives, stores and standard input cannot be followed")
        if self.options.limit == 0:
            self.run(partitions, out)
            return
        printer = self.printer(out)
        printer.begin()
        remaining = self.options.limit
        for item in self._live(partitions, paths):
            if item is None:
                self.session.sum_up()
                out.flush()
                time.sleep(POLL)
            elif remaining is None or isinstance(item, DamagedRange):
                self.print_items([item], printer)
            else:
                self.print_items(self.first(iter([item]), remaining), printer)
                remaining -= self._count(item)
                if remaining <= 0:
                    break

    def _live(self, partitions: list[Partition], paths: Sequence[str]) -> Iterator[SelectedBatch | DamagedRange | None]:
        """Yield present records (with --tail the last), then appended ones; None after a pass over all partitions."""
        from kdump.log_reader.live import LiveReader
        from kdump.segments.log_end import end_of_log

        reader, tail = self.reader(), self.options.tail
        live: list[LiveReader] = []
        for partition in partitions:
            after = None if tail is None else end_of_log(partition).offset - 1
            if tail:
                for item in reader.tail(partition, tail):
                    after = max(after or -1, item.last_offset) if isinstance(item, SelectedBatch) else after
                    yield item
            live.append(LiveReader(reader, partition, after))
        folders, looked = {partition.folder for partition in partitions}, time.monotonic()
        while live or any(map(os.path.isdir, paths)):
            for each in live:
                yield from each.poll()
            if time.monotonic() - looked >= LOOK:
                finder = Finder(self.options.wanted, Reporter(fail=self.session.fail))
                new = [partition for partition in finder.find(paths) if partition.folder not in folders]
                live += [LiveReader(reader, partition) for partition in new]
                folders.update(partition.folder for partition in new)
                looked = time.monotonic()
            yield None

    def first(
        self, items: Iterator[SelectedBatch | DamagedRange], count: int | None
    ) -> Iterator[SelectedBatch | DamagedRange]:
        """Return the first ``count`` records (batches with --batches), and the damage before the last of these."""
        return items if count is None else self._first(items, count)

    def _first(
        self, items: Iterator[SelectedBatch | DamagedRange], count: int
    ) -> Iterator[SelectedBatch | DamagedRange]:
        if count == 0:
            return
        for item in items:
            if isinstance(item, SelectedBatch):
                held = self._count(item)
                if held >= count:
                    yield from first_of(item, count)
                    return
                count -= held
            yield item

    def _count(self, item: SelectedBatch) -> int:
        if self.options.batches:
            return item.batch_count
        return len(item.records) or (item.batch.count or 0 if self.options.counting else 0)

    def lost(self, item: DamagedRange, printer: Printer | None) -> None:
        self.session.damages()
        self.damaged_ranges += 1
        self.damaged_bytes += item.damage.size
        if self.redactor is not None or self.options.no_payload or self._may_be_secret(item, printer):
            from kdump.rows.redaction import bare

            item = item._replace(damage=bare(item.damage))
        if printer is not None:
            printer.lost(item)
        if printer is None or not printer.shows_damage or not (self.session.quiet or sys.stdout.isatty()):
            self.session.damaged_range(item.file.name, item.damage)

    def _may_be_secret(self, item: DamagedRange, printer: Printer | None) -> bool:
        if isinstance(printer, HidingPrinter):
            return printer.hides_in(item)
        if self.options.show_secrets or not may_hold_secrets(item.file.topic):
            return False
        from kdump.rows.redaction import Secrets

        return Secrets().may_be_in(*item)


def write_columns(dump: Dump, partitions: Iterable[Partition], paths: Sequence[str]) -> int:
    """Write the selected records to --out or standard output, as Parquet or Arrow; return the number.

    Raises UsageError before the first record is read if pyarrow is missing or --out is refused. With --out, raises
    UnreadableError, and writes no file, if an input is unreadable or writing fails.
    """
    options = dump.options
    if find_spec("pyarrow") is None:
        raise UsageError(f"-o {options.output} needs pyarrow: pip install 'kdump[arrow]'")
    from kdump.arrow import files as column_files
    from kdump.arrow import stream
    from kdump.arrow.columns import schema_of
    from kdump.primitives import signals

    column_files.small_arrow()
    with signals.at_once():
        import pyarrow.compute  # noqa: F401  here, so that Ctrl-C is safe
    typed = None
    if options.subject is not None and dump.decoder is not None:
        from kdump.arrow.typed import TypedColumns

        typed = TypedColumns.of_subject(dump.decoder, options.subject)
    names = options.arrow_names(typed)
    with _opened(dump, paths) as out:
        batches = stream.joined(_batches(dump, partitions, names, typed))
        rows = column_files.write(options.output, schema_of(names, typed), batches, out)
        dump.session.progress.clear()
    dump.finish(out, rows, found=bool(rows))
    return rows


@contextmanager
def _opened(dump: Dump, paths: Sequence[str]) -> Iterator[BinaryIO]:
    target = dump.options.out
    if target is None:
        with open_output(escape=False) as out:
            yield out
        return
    from kdump.output import files

    files.writable_file(target, overwrite=dump.options.overwrite)
    files.outside(paths, target)
    dump.session.must_be_whole(target)
    with files.new_file(target, force=dump.options.overwrite, note=dump.session.note) as part:
        yield part
        dump.session.must_be_whole(target)


def _batches(
    dump: Dump, partitions: Iterable[Partition], names: tuple[str, ...], typed: TypedColumns | None
) -> Iterator[pa.RecordBatch]:
    """Yield selected records as Arrow record batches, secrets hidden unless --show-secrets, and --redact applied."""
    from kdump.arrow.stream import RowStream
    from kdump.rows.redaction import Secrets

    reader, options, redactor = dump.reader(), dump.options, dump.redactor
    hides = not options.show_secrets
    secrets = Secrets()

    def shown(item: SelectedBatch) -> Iterator[SelectedBatch]:
        for one in secrets.without(item) if hides else [item]:
            yield one if redactor is None else redactor(one)

    rows = RowStream(
        reader,
        names,
        lambda item: dump.lost(item, None),
        change=shown if hides or redactor is not None else None,
        changes=lambda part: redactor is not None or (hides and may_hold_secrets(part.topic)),
        typed=typed,
    )
    counted = map(dump.count_in, partitions)
    if options.stops_early:
        yield from _first(dump, rows, counted)
    else:
        yield from rows.batches(counted)


def _first(dump: Dump, rows: RowStream, partitions: Iterable[Partition]) -> Iterator[pa.RecordBatch]:
    remaining = dump.options.limit
    for partition in partitions:
        if remaining is not None and remaining <= 0:
            return
        items = dump.first(dump.stream(rows.reader, partition), remaining)
        for batch in rows.of_items(partition, items):
            remaining = None if remaining is None else remaining - batch.num_rows
            yield batch
