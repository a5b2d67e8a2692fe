"""``kdump dump``: the records, batches and damage of segments, filtered, in many formats."""

from __future__ import annotations

import os
import sys
import time
from contextlib import closing
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

import click

from kdump.command_line import options as shared
from kdump.command_line import session
from kdump.command_line.command_help import Command
from kdump.command_line.dump_options import COLUMN_FILES, DumpOptions
from kdump.command_line.limit_options import JOBS, RAW_OUTPUT, AtLeast
from kdump.command_line.session import SaidSoFar
from kdump.errors import ExitStatus, Reporter, UnreadableError, UsageError
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.local import LOCAL
from kdump.log_reader.reader import PartitionReader
from kdump.output.stdout import open_output, paged
from kdump.parallel import costs
from kdump.parallel.costs import BUDGET, SegmentPart
from kdump.primitives.encodings import ENCODINGS
from kdump.printers.output_formats import PRINTERS, HidingPrinter, Printer
from kdump.rows.columns import BATCH, RECORD
from kdump.rows.selection import (
    DamagedRange,
    SelectedBatch,
    first_of,
    may_hold_secrets,
)
from kdump.segments import read_ahead, resync

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.command_line.parallel import Piece
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.log_reader.region_stream import ReadStats
    from kdump.parallel.turns import OutputTurn
    from kdump.rows.selection import SegmentFacts
    from kdump.schemas.decoder import PayloadDecoder
    from kdump.segments.read_ahead import MadeLines
    from kdump.transaction_replay.outcomes import Scan

FORMATS: Final = (*(name for name in PRINTERS if name != "format"), *COLUMN_FILES)
"""The words of -o; --format chooses the printer of that name."""
POLL: Final = 0.2
"""Seconds between two looks at a live log."""
LOOK: Final = 1.0
"""Seconds between two looks for new partitions."""


SECTIONS: Final = {
    "Which files": ("topics", "partitions", "leftovers", "every_replica", "remote", "remote_keys"),
    "Which records": (
        *("offset", "since", "until", "keys", "greps", "limit", "head", "tail", "headers", "types", "isolation"),
        *("tz", "grep_in", "producer_ids", "epochs", "transactional", "out_of_order", "fails_without_match"),
    ),
    "What to print": (
        "output",
        "batches",
        "count",
        "fields",
        "template",
        "encoding",
        "out",
        "overwrite",
        "decode",
        "schemas",
        "schemas_topic",
        "subject",
        "delimiter",
        "keys_only",
        "no_payload",
        "redact",
        "redact_key",
        "show_secrets",
        "include_damaged",
    ),
}
"""The options as help lists them, by the names of their parameters."""


@click.command(cls=Command, sections=SECTIONS, rest="How")
@shared.add(shared.INPUTS)
@shared.EVERY_REPLICA
@shared.add(shared.REMOTE)
@click.option("-o", "--output", type=click.Choice(FORMATS), default="text", show_default=True, help="The format.")
@click.option("--out", metavar="FILE", help="The file for -o parquet and arrow. It appears when it is complete.")
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@click.option("-f", "--format", "template", metavar="FORMAT", help="A line per record as in kcat: '%t %p %o %k %s\\n'.")
@click.option("--batches", is_flag=True, help="One line per batch, not per record.")
@shared.add(shared.FILTERS)
@click.option("--limit", type=AtLeast(0), metavar="N", help="Stop after N records.")
@click.option("--head", type=AtLeast(0), metavar="N", help="The first N records of each partition.")
@click.option("--tail", type=AtLeast(0), metavar="N", help="The last N records of each partition.")
@click.option(
    "--fail-without-match",
    "fails_without_match",
    is_flag=True,
    help="Exit status 1 if all was read and no record matches.",
)
@click.option("--count", is_flag=True, help="Print only how many records there are.")
@click.option(
    "--encoding", type=click.Choice(ENCODINGS), default="auto", show_default=True, help="How bytes are written."
)
@shared.add(shared.DECODE)
@click.option(
    "--subject",
    "--schema",
    "subject",
    metavar="SUBJECT[:VERSION]",
    help="Columns of this subject's types in -o parquet and arrow, such as orders-value; implies --decode auto.",
)
@click.option("--delimiter", metavar="TEXT", help="The text after each value of -o raw.  [default: \\n]")
@click.option(
    "--fields",
    multiple=True,
    metavar="A,B,...",
    help="Only these columns, in this order.",
    shell_complete=shared.in_list(
        lambda ctx: [column.name for column in (BATCH if ctx.params.get("batches") else RECORD)]
    ),
)
@click.option("--keys-only", is_flag=True, help="Leave out values and headers.")
@shared.add(shared.PRIVACY)
@click.option(
    "--on-error",
    type=click.Choice(("stop", "skip", "resync")),
    default="resync",
    show_default=True,
    help="After damage: stop reading the file, skip by the length field, or search for the next valid batch.",
)
@click.option("--include-damaged", is_flag=True, help="Also print batches with a wrong checksum, marked as such.")
@JOBS
@click.option("--follow", is_flag=True, help="Wait for more at the end of a live log, until Ctrl-C.")
@shared.add(shared.LIMITS)
@click.option(
    "--color",
    type=click.Choice(("auto", "always", "never")),
    default="auto",
    show_default=True,
    help="Colour field names, damage and matches of --grep; auto: on a terminal without NO_COLOR.",
)
@RAW_OUTPUT
@click.option("--stats", is_flag=True, help="Print what was read, as one line of JSON on standard error.")
@shared.add([shared.NO_PAGER])
@click.option("-q", "--quiet", is_flag=True, help="Print errors and damage only, without notes.")
def command(paths: tuple[str, ...], *, quiet: bool, **given: Any) -> int:
    """Print the records of Kafka's log segments. Files are opened read-only.

    \b
    Examples:
      kdump dump /var/kafka/orders-0
      kdump dump /var/kafka --topic orders -o jsonl | jq .value
      kdump dump orders-0 --since 2026-11-21T09:00 --until 2026-11-21T09:05
      kdump dump bundle.tar.gz --key customer-17 -o table
      kdump dump *.log --offset 1000..1010 -o jsonl --batches
      kdump dump /var/kafka --topic orders --remote /var/tiered
      kdump dump orders-0 -f '%o %T %k %s\\n'

    PATH is a segment of any name, a glob, a partition's folder, a log dir, an archive (tar, zip), or a
    folder in one (bundle.zip:d1). - is standard input. Segments are read in offset order. kdump reads the replica with
    the newest leader epoch and log end; a note names the others.

    Exit status: 0 fine, 1 something cannot be read, 2 wrong usage, 3 damage was met, 4 only an index is wrong.
    """
    run = session.Session(quiet=quiet)
    options = DumpOptions(given)
    decoder = None
    if options.decode != "none":
        decoder = shared.payload_decoder({**given, "decode": options.decode}, paths, run, options.wanted)
    dump = Dump(run, options, decoder)
    finder = Finder(options.wanted, run.report)
    partitions: Iterable[Partition] = finder.find(paths)
    if not (options.every_replica or options.follow):
        partitions = _each_once(partitions, paths, run)
    if options.is_column_file:
        from kdump.command_line import dump_columns  # for such files alone

        dump.counted = dump_columns.write(dump, partitions if options.stops_early else run.watched(partitions), paths)
    else:
        _print(dump, partitions, paths)
    if decoder is not None:
        shared.hint_at_schemas(decoder, run)
        shared.warn_of_absent_fields(dump.redactor, run)
    for text in options.wanted.missing(finder.met, paths):
        run.insist(text)
    if dump.stats is not None:
        _print_stats(dump)
    if options.fails_without_match and not dump.counted and run.status in {0, ExitStatus.DERIVED}:
        return 1
    return run.status


def _print(dump: Dump, partitions: Iterable[Partition], paths: Sequence[str]) -> None:
    """Print partitions on standard output, in one process or several."""
    options, run = dump.options, dump.session
    if not (sys.stdout.isatty() or options.follow or options.stops_early):
        partitions = run.watched(partitions)
    in_pages = options.ending == "table" and not options.follow and not options.count
    with paged(wanted=in_pages), open_output(escape=not options.raw_output, paint=options.paint) as out:
        if options.follow:
            dump.follow(list(partitions), paths, out)
        elif not options.may_be_parallel:
            dump.run(partitions, out)
        else:
            found = list(partitions)
            jobs = costs.processes_of_dump(found, options.jobs, options.effort)
            if jobs > 1:
                dump.parallel(found, jobs, out)
            else:
                dump.run(found, out)


def _print_stats(dump: Dump) -> None:
    """Print the counts of the read, and whether it was complete."""
    import json

    from kdump.primitives.terminal import say

    line = {"kind": "dumpStats", **dump.stats_line()}
    say(f"stats {json.dumps(line, separators=(',', ':'))}")


def _each_once(partitions: Iterable[Partition], paths: Iterable[str], run: session.Session) -> Iterator[Partition]:
    """Yield each partition once: of several replicas the best one."""
    found = iter(partitions)
    some = [*islice(found, 2)]
    if len(some) < 2:
        yield from some
        return
    from kdump.log_reader import replicas  # a dump of one partition does without

    yield from replicas.each_once_in_turn(chain(some, found), paths, run.note, "--every-replica")


class ChunkStart(NamedTuple):
    """The start of a part of a segment: see :class:`kdump.parallel.costs.SegmentPart`."""

    reached: int = 0
    hops: int = BUDGET
    is_over: bool = False


class PrintedSoFar(NamedTuple):
    """The state after a piece: the messages printed, whether there was anything, and how many records were counted.

    Within a segment that is read in parts also where the next one starts, whether any part has printed anything, and
    whether it was reported that the segment became shorter.
    """

    said: SaidSoFar
    found: bool = False
    records: int = 0
    start: ChunkStart = ChunkStart()
    has_printed: bool = False
    has_reported: bool = False


class PrintedPiece(NamedTuple):
    """The result of a piece; ``said`` is None if it had nothing to print on standard error."""

    said: SaidSoFar | None
    found: bool
    records: int
    size: int
    start: ChunkStart = ChunkStart()
    has_printed: bool = False
    has_reported: bool = False
    ends_segment: bool = True


class Dump:
    """One run: prints a stream as the options say."""

    def __init__(self, run: session.Session, options: DumpOptions, decoder: PayloadDecoder | None = None) -> None:
        self.session, self.options, self.decoder = run, options, decoder
        self.redactor = shared.redactor(redact=options.redact, file=options.redact_key, fields=options.redact_fields)
        self.counted = 0
        """Records that were found; with --batches batches."""
        self.damaged_ranges = self.damaged_bytes = self.segments = self.bytes = 0
        self.stats: ReadStats | None = None
        if options.stats:
            from kdump.log_reader.region_stream import ReadStats  # few runs count

            self.stats = ReadStats()

    def stats_line(self) -> dict[str, object]:
        """Return the counts of the segments that were read and of those that could not be read."""
        read = self.stats
        unread = len(self.session.said.failed)
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
        """Return the reader of the partitions."""
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
        reader.stats = self.stats
        return reader

    def printer(self, out: BinaryIO) -> Printer:
        """Return the printer that the options choose."""
        printer = PRINTERS[self.options.ending](out, self.options.printing(self.redactor))
        return printer if self.options.show_secrets or self.options.batches else HidingPrinter(printer)

    def run(self, partitions: Iterable[Partition], out: BinaryIO) -> None:
        """Print the selected records of all partitions."""
        reader = self.reader()
        printer = None if self.options.count else self.printer(out)
        if printer is not None:
            printer.begin()
        if printer is not None and not (self.options.stops_early or self.options.batches):
            pairs = (reader.read_making(partition, printer.make) for partition in map(self.met, partitions))
            found, counted = self.print_made(chain.from_iterable(pairs), printer)
        else:
            items = (item for partition in map(self.met, partitions) for item in self.stream(reader, partition))
            found, counted = self.print_items(self.first(items, self.options.limit), printer)
        if printer is not None:
            printer.end()
        self.finish(out, counted, found=found)

    def met(self, partition: Partition) -> Partition:
        self.segments += len(partition.segments)
        self.bytes += partition.size
        return partition

    def stream(self, reader: PartitionReader, partition: Partition) -> Iterator[SelectedBatch | DamagedRange]:
        if self.options.tail is not None:
            return reader.tail(partition, self.options.tail)
        return self.first(reader.read(partition), self.options.head)

    def print_items(self, items: Iterable[SelectedBatch | DamagedRange], printer: Printer | None) -> tuple[bool, int]:
        """Print items, or count records without a printer; return whether there were any, and the count."""
        return self.print_made(((item, None) for item in items), printer)

    def print_made(
        self, pairs: Iterable[tuple[SelectedBatch | DamagedRange, MadeLines | None]], printer: Printer | None
    ) -> tuple[bool, int]:
        """Print items, some with lines that a thread has made; see :meth:`print_items`."""
        found, counted = False, 0
        for item, made in pairs:
            found = True
            if isinstance(item, DamagedRange):
                self.lost(item, printer)
                continue
            if printer is not None:
                printer.found(item, made)  # it may end a run before a batch that is not well-formed
            counted += self._count(item)
        return found, counted

    def finish(self, out: BinaryIO, counted: int, *, found: bool) -> None:
        self.session.progress.clear()
        self.session.sum_up()
        self.counted = counted
        if self.options.count:
            out.write(b"%d\n" % counted)
        if not found and not self.session.met:
            why = " that the options ask for" if self.options.asks_for_some else ": no record is there"
            self.session.note(f"nothing was found{why}")

    def parallel(self, partitions: Sequence[Partition], jobs: int, out: BinaryIO) -> None:
        """Print the same with several processes."""
        from kdump.command_line import parallel  # needed for several processes alone, as is the other
        from kdump.parallel.turns import Forks

        progress, self.session.progress = self.session.progress, session.Progress()
        reader = self.reader()
        self._prepare(reader, partitions, jobs)
        unpacks = self.options.effort is not costs.Effort.HEADERS
        pieces = parallel.pieces(partitions, cut=not self.options.filter.is_bounded, unpacks=unpacks)
        if not self.options.count:
            self.printer(out).begin()
        out.flush()
        last = PrintedSoFar(self.session.said)
        with closing(Forks(jobs).run(pieces, PieceWork(self, reader), last)) as results:
            for made, last in results:  # noqa: B007  the last one counts
                progress(made.size)
        self.session.progress = progress
        self.session.said = last.said
        self.finish(out, last.records, found=last.found)

    def _prepare(self, reader: PartitionReader, partitions: Sequence[Partition], jobs: int) -> None:
        """Read the data that processes share: schemas, checkpoints, and the transactions of large partitions."""
        if self.decoder is not None:
            self.decoder.store  # noqa: B018  read once, and reported once
        committed = self.options.filter.committed
        shared: list[Partition] = []
        for partition in partitions:
            reader.checkpoints.facts(partition)
            if partition.size > costs.TRANSACTIONS and (
                committed or (reader.outcomes and costs.is_transactional(partition))
            ):
                shared.append(partition)
        if shared:
            _follow_ahead(reader, shared, jobs)

    def follow(self, partitions: list[Partition], paths: Sequence[str], out: BinaryIO) -> None:
        """Print present, appended and new partitions' records until Ctrl-C or the limit.

        ``partitions`` are those in ``paths`` now.
        """
        if any(partition.files is not LOCAL for partition in partitions):
            raise UsageError("--follow needs files and folders: archives and standard input do not grow")
        printer = self.printer(out)
        printer.begin()
        left = self.options.limit
        for item in self._live(partitions, paths):
            if item is None:
                self.session.sum_up()
                out.flush()
                time.sleep(POLL)
            elif left is None or isinstance(item, DamagedRange):
                self.print_items([item], printer)
            else:
                self.print_items(self.first(iter([item]), left), printer)
                left -= self._count(item)
                if left <= 0:
                    break

    def _live(self, partitions: list[Partition], paths: Sequence[str]) -> Iterator[SelectedBatch | DamagedRange | None]:
        """Yield present records, then appended ones; None after each pass over all partitions."""
        from kdump.log_reader.live import LiveReader
        from kdump.segments.log_end import end_of_log

        reader, tail = self.reader(), self.options.tail
        live: dict[str, LiveReader] = {}
        for partition in partitions:
            after = None if tail is None else end_of_log(partition).offset - 1
            if tail:
                for item in reader.tail(partition, tail):
                    after = max(after or -1, item.last_offset) if isinstance(item, SelectedBatch) else after
                    yield item
            live[partition.folder] = LiveReader(reader, partition, after)
        looked = time.monotonic()
        while live or any(map(os.path.isdir, paths)):
            for each in live.values():
                yield from each.poll()
            if time.monotonic() - looked >= LOOK:
                finder = Finder(self.options.wanted, Reporter(fail=self.session.fail))
                new = [partition for partition in finder.find(paths) if partition.folder not in live]
                live |= {partition.folder: LiveReader(reader, partition) for partition in new}
                looked = time.monotonic()
            yield None

    def first(
        self, items: Iterator[SelectedBatch | DamagedRange], count: int | None
    ) -> Iterator[SelectedBatch | DamagedRange]:
        """Yield the first ``count`` records (batches where these are counted) and the damage among them."""
        if count is None:
            yield from items
            return
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
        if self.redactor is not None or self.options.no_payload or self._may_be_secret(item.file, printer):
            from kdump.rows.redaction import bare

            item = item._replace(damage=bare(item.damage))
        if printer is not None:
            printer.lost(item)
        if printer is None or not printer.shows_damage or not (self.session.quiet or sys.stdout.isatty()):
            self.session.damaged_range(item.file.name, item.damage)

    def _may_be_secret(self, file: SegmentFacts, printer: Printer | None) -> bool:
        """Return whether values in damaged ranges of a segment may be secrets to hide."""
        if isinstance(printer, HidingPrinter):
            return printer.hides_in(file)
        return not self.options.show_secrets and file.topic is not None and may_hold_secrets(file.topic)


def _follow_ahead(reader: PartitionReader, partitions: Sequence[Partition], jobs: int) -> None:
    """Follow the transactions of partitions, in several processes where there are several segments."""
    from kdump.primitives.processes import Processes  # both for transactions of large partitions alone
    from kdump.transaction_replay.outcomes import scan

    def one_of_several(segment: Segment) -> Scan:
        read_ahead.start_no_threads()
        return scan(segment)

    segments = [segment for partition in partitions for segment in partition.segments]
    in_processes = len(segments) > 1 and all(segment.files is LOCAL for segment in segments)
    scans = Processes(jobs).results(one_of_several, segments) if in_processes else map(scan, segments)
    for partition in partitions:
        reader.follow_ahead(partition, islice(scans, len(partition.segments)))


class PieceWork:
    """The work of several processes: each prints its pieces."""

    def __init__(self, dump: Dump, reader: PartitionReader) -> None:
        self._dump, self._reader, self._session = dump, reader, dump.session
        self._printer: Printer | None = None

    def assume(self, piece: Piece) -> ChunkStart | None:
        """Assume that a part begins with the first credible batch in it, if there is one."""
        part = piece.part
        if part is None or not part.start:
            return ChunkStart()
        (_, (segment,)), *_ = piece.runs
        try:
            with segment.open() as source:
                reached = resync.guess(source, part)
        except UnreadableError:  # reported where the segment is read
            return None
        return None if reached is None else ChunkStart(reached)

    def make(self, piece: Piece, start: ChunkStart, turn: OutputTurn[PrintedSoFar]) -> PrintedPiece:
        """Print a piece."""
        read_ahead.start_no_threads()
        self._session.before, self._session.said = turn.take, SaidSoFar()
        if self._printer is None and not self._dump.options.count:
            self._printer = self._dump.printer(turn.file)
        if piece.part is not None:
            return self._part(piece, SegmentPart(piece.part.start, piece.part.stop), start, turn)
        turn.when_come(self._hear)
        items = (item for run in piece.runs for item in self._reader.read(*run))
        found, records = self._dump.print_items(items, self._printer)
        return PrintedPiece(self._said(turn), found, records, piece.size)

    def _hear(self, before: PrintedSoFar) -> None:
        self._session.said = before.said

    def _said(self, turn: OutputTurn[PrintedSoFar]) -> SaidSoFar | None:
        return None if turn.state is None else self._session.said

    def _part(self, piece: Piece, part: SegmentPart, start: ChunkStart, turn: OutputTurn[PrintedSoFar]) -> PrintedPiece:
        """Print a part of a segment."""
        (partition, (segment,)), *_ = piece.runs
        is_first = part.start == 0
        lead = b"" if is_first or self._printer is None else self._printer.go_on(segment.name)

        def hear(before: PrintedSoFar) -> None:
            turn.lead = b"" if before.has_printed else lead
            self._hear(before)

        turn.when_come(hear)
        found, records, has_reported = False, 0, False
        part.start, part.hops, part.is_over = (0, part.hops, False) if is_first else start
        if part.is_over or part.start >= part.stop:
            part.reached = part.start
        else:
            found, records = self._dump.print_items(self._reader.read_part(partition, segment, part), self._printer)
        if part.lost:
            before = turn.take()
            has_reported = is_first or not before.has_reported
            if has_reported:
                self._reader.note_lost(segment, part.lost)
        after = ChunkStart(part.reached, part.hops, part.is_over)
        said = self._said(turn)
        return PrintedPiece(
            said, found, records, piece.size, after, turn.has_written, has_reported, ends_segment=piece.ends_segment
        )

    def carry(self, before: PrintedSoFar, made: PrintedPiece) -> PrintedSoFar:
        """Return the state after a piece."""
        after = PrintedSoFar(
            before.said if made.said is None else made.said, before.found or made.found, before.records + made.records
        )
        if made.ends_segment:
            return after
        return after._replace(
            start=made.start,
            has_printed=made.has_printed or before.has_printed,
            has_reported=made.has_reported or before.has_reported,
        )
