"""``kdump dump``: the records, batches and damage of segments, filtered, in many formats."""

from __future__ import annotations

import sys
import time
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final, Protocol, cast

import click

from kdump import kernel
from kdump.commands import options as shared
from kdump.commands import session, words
from kdump.commands.limits import AtLeast
from kdump.errors import UsageError
from kdump.log_dirs.finder import Finder
from kdump.log_reader.filter import Filter
from kdump.log_reader.reader import PartitionReader
from kdump.output.stdout import open_output
from kdump.printers.encodings import ENCODINGS, Encoding
from kdump.rows import columns as rows
from kdump.rows.selection import DamagedRange, SelectedBatch
from kdump.transactions.outcomes import is_transactional

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.log_dirs.partition import Partition
    from kdump.rows.columns import Column

FORMATS: Final = ("text", "jsonl", "json", "csv", "table", "raw")
TYPED: Final = {"jsonl", "json", "csv", "table"}
TABLE_RECORD: Final = ("topic", "partition", "offset", "timestamp", "key", "value")
TABLE_BATCH: Final = (
    "topic",
    "partition",
    "baseOffset",
    "lastOffset",
    "count",
    "maxTimestamp",
    "codec",
    "position",
    "batchSize",
    "producerId",
)
MARK: Final = "crcValid"


POLL: Final = 0.2
"""Seconds between two looks at a live log."""
SHARED: Final = 64 << 20
"""Bytes of a partition above which processes share what is known of its transactions."""
_BITS: Final = {session.UNREADABLE: 1, session.DAMAGED: 2, session.DERIVED: 4}
_SOME: Final = 8


class Printer(Protocol):
    """An ending of the stream. ``shows_damage`` says whether damaged stretches stand in the output itself."""

    shows_damage: bool

    def begin(self) -> None: ...
    def found(self, item: SelectedBatch) -> None: ...
    def lost(self, item: DamagedRange) -> None: ...
    def end(self) -> None: ...


@click.command()
@shared.add(shared.INPUTS)
@click.option("-o", "--output", type=click.Choice(FORMATS), default="text", show_default=True, help="The format.")
@click.option("-f", "--format", "template", metavar="FORMAT", help="A line per record as in kcat: '%t %p %o %k %s\\n'.")
@click.option("--batches", is_flag=True, help="One line per batch, not per record.")
@shared.add(shared.FILTERS)
@click.option("--limit", type=AtLeast(0), metavar="N", help="Stop after N records.")
@click.option("--head", type=AtLeast(0), metavar="N", help="The first N records of each partition.")
@click.option("--tail", type=AtLeast(0), metavar="N", help="The last N records of each partition.")
@click.option("--count", is_flag=True, help="Print only how many records there are.")
@click.option(
    "--encoding", type=click.Choice(ENCODINGS), default="auto", show_default=True, help="How bytes are written."
)
@click.option(
    "--decode",
    type=click.Choice(("none", "auto")),
    default="none",
    show_default=True,
    help="auto puts records of Kafka's own topics in words, in the column decoded.",
)
@click.option(
    "--delimiter", default="\\n", show_default=True, metavar="TEXT", help="What follows each value of -o raw."
)
@click.option("--fields", multiple=True, metavar="A,B,...", help="These columns alone, in this order.")
@click.option("--keys-only", is_flag=True, help="Leave out values and headers.")
@shared.add(shared.PRIVACY)
@click.option(
    "--on-error",
    type=click.Choice(("stop", "skip", "resync")),
    default="resync",
    show_default=True,
    help="After damage: give up the file, go where the bad length says, or find the next sound batch.",
)
@click.option("--include-damaged", is_flag=True, help="Show batches with a wrong crc too, marked as such.")
@click.option("--jobs", type=AtLeast(1), default=1, metavar="N", help="Read with N processes; output in order.")
@click.option("--follow", is_flag=True, help="Wait for more at the end of a live log, until Ctrl-C.")
@shared.add(shared.LIMITS)
@click.option("-q", "--quiet", is_flag=True, help="No remarks on standard error; errors and damage are told.")
def command(paths: tuple[str, ...], **options: Any) -> int:
    """Print the records of Kafka's log segments. Files are opened read-only.

    \b
    Examples:
      kdump dump /var/kafka/orders-0
      kdump dump /var/kafka --topic orders -o jsonl | jq .value
      kdump dump orders-0 --since 2026-11-21T09:00 --until 2026-11-21T09:05
      kdump dump bundle.tar.gz --key customer-17 -o table
      kdump dump *.log --offset 1000..1010 -o jsonl --batches
      kdump dump orders-0 -f '%o %T %k %s\\n'

    PATH is a segment of any name, a glob, a partition's folder, a log dir, a tar archive (also gzip or zstd), or -
    for standard input. Segments are read in the order of their offsets.

    Exit status: 0 fine, 1 something cannot be read, 2 wrong usage, 3 damage was met, 4 only an index is wrong.
    """
    run = session.Session(quiet=options.pop("quiet"))
    jobs, follow = options.pop("jobs"), options.pop("follow")
    dump = Dump(run, options)
    finder = Finder(dump.wanted, note=run.note, fail=run.fail)
    partitions: Iterable[Partition] = finder.find(paths)
    if not sys.stdout.isatty() and not follow:
        partitions = run.watched(partitions)
    with open_output(escape=True) as out:
        if follow:
            dump.follow(list(partitions), out)
        elif jobs > 1 and not dump.stops_early:
            dump.parallel(partitions, jobs, out)
        else:
            dump.run(partitions, out)
    return run.status


class Dump:
    """One run: the options, checked, and what they make of a stream."""

    def __init__(self, run: session.Session, options: dict[str, Any]) -> None:
        self.session = run
        self.wanted = shared.wanted(options)
        self.filter: Filter = shared.filter_of(options)
        self.options = options
        self.batches: bool = options["batches"]
        self.encoding: Encoding = options["encoding"]
        if options["template"] is not None and (self.batches or options["output"] != "text"):
            raise UsageError("--format has records in its own form: neither -o nor --batches go with it")
        if self.batches and options["output"] == "raw":
            raise UsageError("-o raw prints values, and batches have none")
        if options["head"] is not None and options["tail"] is not None:
            raise UsageError("--head and --tail exclude each other")
        if options["include_damaged"] and (options["template"] is not None or options["output"] == "raw"):
            raise UsageError("--include-damaged marks what is damaged, and -o raw and -f have no room for the mark")
        if options["fields"] and options["output"] in {"text", "raw"}:
            raise UsageError("--fields chooses columns of jsonl, json, csv and table: say which with -o")
        if (options["no_payload"] or options["keys_only"]) and (options["template"] or options["output"] == "raw"):
            raise UsageError("-o raw and -f say themselves what of payloads they print: --redact goes with them")
        self.columns = self._columns()
        self._redact = shared.redactor(options)

    def _columns(self) -> tuple[Column, ...]:
        """Return the columns that the options choose, and what marks damage where it is shown. Raises UsageError."""
        columns = self._chosen()
        if not self.options["include_damaged"] or any(column.name == MARK for column in columns):
            return columns
        known = rows.BATCH if self.batches else rows.RECORD
        return (*columns, *(column for column in known if column.name == MARK))

    def _chosen(self) -> tuple[Column, ...]:
        options = self.options
        known = rows.BATCH if self.batches else rows.RECORD
        if options["decode"] == "auto":
            if self.batches or options["redact"] or options["output"] not in TYPED:
                raise UsageError("--decode goes with records in jsonl, json, csv or table, and not with --redact")
            known = (*known, rows.DECODED)
        hidden = shared.VALUE_COLUMNS if options["keys_only"] or options["no_payload"] else frozenset()
        if options["no_payload"]:
            hidden |= shared.KEY_COLUMNS
        if options["fields"]:
            columns = tuple(words.one_of(options["fields"], known, lambda column: column.name, "column"))
            for column in columns:
                if column.name in hidden:
                    raise UsageError(f"--fields {column.name}: --keys-only and --no-payload leave that out")
            return columns
        names = {column.name for column in known}
        if options["output"] == "table":
            names = set(TABLE_BATCH if self.batches else TABLE_RECORD)
            if options["decode"] == "auto":
                names = names - {"key", "value"} | {"decoded"}
        return tuple(column for column in known if column.name in names - hidden)

    @property
    def counting(self) -> bool:
        """Whether nobody looks at the records."""
        return self.options["count"] and not self.batches and not self.stops_early

    def reader(self) -> PartitionReader:
        """Return what reads the partitions."""
        unread = kernel.COMPILED and self.options["output"] in {"jsonl", "json"} and self._redact is None
        return PartitionReader(
            filter=self.filter,
            batches=self.batches,
            counting=self.counting,
            outcomes=self.options["output"] in TYPED
            and any(column.name == "transactionState" for column in self.columns),
            on_error=self.options["on_error"],
            include_damaged=self.options["include_damaged"],
            note=self.session.note,
            wrong_index=self.session.wrong_index,
            fail=self.session.fail,
            progress=self.session.progress,
            unread=unread,
            runs=unread and not (self.batches or self.counting or self.stops_early),
        )

    @property
    def stops_early(self) -> bool:
        """Whether a number of records ends the work."""
        return any(self.options[name] is not None for name in ("limit", "head", "tail"))

    def run(self, partitions: Iterable[Partition], out: BinaryIO) -> None:
        """Print what is asked for of all partitions."""
        reader = self.reader()
        printer = None if self.options["count"] else self.printer(out)
        if printer is not None:
            printer.begin()
        found, counted = self._print(self._limited(self._stream(reader, part) for part in partitions), printer)
        if printer is not None:
            printer.end()
        self._finish(out, counted, found=found)

    def _print(self, items: Iterable[SelectedBatch | DamagedRange], printer: Printer | None) -> tuple[bool, int]:
        """Print items, or count records where there is no printer; return whether there were any, and how many."""
        found, counted = False, 0
        for item in items:
            found = True
            if isinstance(item, DamagedRange):
                self._lost(item, printer)
            elif printer is None:
                counted += self._count(item)
            else:
                printer.found(item if self._redact is None else self._redact(item))
        return found, counted

    def _finish(self, out: BinaryIO, counted: int, *, found: bool) -> None:
        self.session.progress.clear()
        if self.options["count"]:
            out.write(b"%d\n" % counted)
        if not found and not self.session.met:
            none = 0 in (self.options["limit"], self.options["head"], self.options["tail"])
            asked = none or self.filter != Filter() or self.wanted.topics or self.wanted.partitions
            self.session.note(f"nothing was found{' that the options ask for' if asked else ': no record is there'}")

    def parallel(self, partitions: Iterable[Partition], jobs: int, out: BinaryIO) -> None:
        """Do the same in several processes."""
        from kdump.commands import parallel

        if self.options["output"] in {"json", "table"}:
            raise UsageError(f"--jobs does not go with -o {self.options['output']}, which is one thing: try -o jsonl")
        counting = self.options["count"]
        progress, self.session.progress = self.session.progress, session.Progress()
        reader = self.reader()
        counted, found = 0, False

        def work(parts: list[parallel.Part], file: BinaryIO) -> int:
            self.session.met.clear()
            printer = None if counting else self.printer(file)
            some, count = self._print((item for part in parts for item in reader.read(*part)), printer)
            if counting:
                file.write(b"%d" % count)
            return sum(_BITS[status] for status in self.session.met) + _SOME * some

        def take(file: IO[bytes], result: int, task: parallel.Task) -> None:
            nonlocal counted, found
            self.session.met |= {status for status, bit in _BITS.items() if result & bit}
            found |= bool(result & _SOME)
            if counting:
                counted += int(file.read())
            else:
                parallel.copy(file, out)
            progress(task.size)

        def prepared() -> Iterator[parallel.Task]:
            for task in parallel.tasks(partitions):
                if reader.outcomes or self.filter.committed:
                    self._share_outcomes(reader, task.parts[0][0])
                yield task

        if not counting:
            self.printer(out).begin()
            out.flush()
        parallel.run(prepared(), jobs, work, take)
        self.session.progress = progress
        self._finish(out, counted, found=found)

    @staticmethod
    def _share_outcomes(reader: PartitionReader, partition: Partition) -> None:
        """Follow the transactions of a partition once, where each of many processes would do it again."""
        if sum(where.size for where in partition.segments) > SHARED and is_transactional(partition):
            reader.outcomes_of(partition)

    def follow(self, partitions: list[Partition], out: BinaryIO) -> None:
        """Print what there is and what is appended, until it is interrupted or the limit is reached."""
        from kdump.log_dirs.local import LOCAL
        from kdump.log_reader.live import LiveReader, end_offset

        if self.filter.committed or self.options["count"] or self.options["output"] in {"json", "table"}:
            raise UsageError(
                "--follow prints what has no end: no --count, -o json, -o table or --isolation read_committed"
            )
        if any(partition.files is not LOCAL for partition in partitions):
            raise UsageError("--follow goes with files and folders: archives and standard input do not grow")
        reader = self.reader()
        reader.outcomes = False
        printer = self.printer(out)
        printer.begin()

        def items() -> Iterator[SelectedBatch | DamagedRange | None]:
            followers = []
            for partition in partitions:
                tail = self.options["tail"]
                after = None if tail is None else end_offset(partition)
                if tail:
                    for item in reader.tail(partition, tail):
                        after = max(after or -1, item.batch.last_offset) if isinstance(item, SelectedBatch) else after
                        yield item
                followers.append(LiveReader(reader, partition, after))
            while followers:
                for follower in followers:
                    yield from follower.poll()
                yield None

        left: int | None = self.options["limit"]
        for item in items():
            if item is None:
                out.flush()
                time.sleep(POLL)
            elif left is None or isinstance(item, DamagedRange):
                self._print([item], printer)
            else:
                held = self._count(item)
                self._print(self._first(iter([item]), left), printer)
                left -= held
                if left <= 0:
                    break

    def _stream(self, reader: PartitionReader, partition: Partition) -> Iterator[SelectedBatch | DamagedRange]:
        if self.options["tail"] is not None:
            return reader.tail(partition, self.options["tail"])
        return self._first(reader.read(partition), self.options["head"])

    def _limited(
        self, streams: Iterable[Iterator[SelectedBatch | DamagedRange]]
    ) -> Iterator[SelectedBatch | DamagedRange]:
        return self._first((item for stream in streams for item in stream), self.options["limit"])

    def _first(
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
                    yield item if held == count or self.batches else item._replace(records=item.records[:count])
                    return
                count -= held
            yield item

    def _count(self, item: SelectedBatch) -> int:
        if self.batches:
            return 1
        return len(item.records) or (item.batch.count or 0 if self.counting else 0)

    def _lost(self, item: DamagedRange, printer: Printer | None) -> None:
        self.session.met.add(session.DAMAGED)
        if self._redact is not None or self.options["no_payload"]:
            from kdump.rows.redaction import bare

            item = item._replace(damage=bare(item.damage))
        damage = item.damage
        if printer is not None:
            printer.lost(item)
        if printer is None or not printer.shows_damage or not self.session.quiet:
            self.session.damage(
                f"{item.file.name}: byte {damage.position}: {damage.size} bytes cannot be read: {damage.reason}"
            )

    def printer(self, out: BinaryIO) -> Printer:
        """Return the ending that the options choose."""
        options, output = self.options, self.options["output"]
        if options["template"] is not None:
            from kdump.printers.format_string import Plain, formatted

            return Plain(out, formatted(options["template"]))
        if output == "raw":
            from kdump.printers.format_string import Plain, raw

            return Plain(out, raw(options["delimiter"]))
        if output in {"jsonl", "json"}:
            from kdump.printers.jsonl import JsonArray, JsonLines

            kind = JsonLines if output == "jsonl" else JsonArray
            return kind(out, self.columns, batches=self.batches, encoding=self.encoding)
        if output == "csv":
            from kdump.printers.csv_rows import Separated

            return Separated(out, self.columns, batches=self.batches, encoding=self.encoding)
        if output == "table":
            from kdump.printers.table import Tables

            return Tables(cast("IO[str]", sys.stdout), self.columns, batches=self.batches, encoding=self.encoding)
        from kdump.printers.classic_text import DumpText

        return DumpText(
            out,
            batches=self.batches,
            keys=not options["no_payload"],
            values=not (options["no_payload"] or options["keys_only"]),
            encoding=self.encoding,
        )
