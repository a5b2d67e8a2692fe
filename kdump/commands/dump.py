"""``kdump dump``: the records, batches and damage of segments, filtered, in many formats."""

from __future__ import annotations

import sys
from itertools import chain, dropwhile, islice
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from kdump.command_line import options as shared
from kdump.command_line import session
from kdump.command_line.command_help import Command
from kdump.command_line.dump_options import COLUMN_FILES, DumpOptions
from kdump.command_line.dump_run import Dump, write_columns
from kdump.command_line.limit_options import JOBS, RAW_OUTPUT, AtLeast
from kdump.errors import ExitStatus
from kdump.log_dirs.finder import Finder
from kdump.output.stdout import open_output, paged
from kdump.parallel import costs
from kdump.primitives.encodings import ENCODINGS
from kdump.printers.output_formats import PRINTERS
from kdump.rows.columns import BATCH, RECORD
from kdump.segments.regions import OnError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.log_dirs.partition import Partition

FORMATS: Final = (*(name for name in PRINTERS if name != "format"), *COLUMN_FILES)
"""The values of -o. The printer named ``format`` is left out, because --format selects it."""

SECTIONS: Final = {
    "Which files": ("topics", "partitions", "leftovers", "every_replica", "remote", "remote_keys"),
    "Which records": ("limit", "head", "tail", *shared.FILTERS, "fails_without_match"),
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
"""The sections of the help: title -> names of the options' parameters."""


@click.command(cls=Command, sections=SECTIONS, rest="How")
@shared.add(shared.INPUTS)
@shared.EVERY_REPLICA
@shared.add(shared.REMOTE)
@click.option("-o", "--output", type=click.Choice(FORMATS), default="text", show_default=True, help="The format.")
@click.option("--out", metavar="FILE", help="The output file of -o parquet and arrow. Only a complete file appears.")
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@click.option("-f", "--format", "template", metavar="FORMAT", help="A line per record as in kcat: '%t %p %o %k %s\\n'.")
@click.option("--batches", is_flag=True, help="One line per batch. --count, --limit, --head and --tail count batches.")
@shared.add([*shared.FILTERS.values()])
@click.option("--limit", type=AtLeast(0), metavar="N", help="Stop after N records.")
@click.option("--head", type=AtLeast(0), metavar="N", help="The first N records of each partition.")
@click.option("--tail", type=AtLeast(0), metavar="N", help="The last N records of each partition.")
@click.option(
    "--fail-without-match",
    "fails_without_match",
    is_flag=True,
    help="Exit with status 1 if a complete search finds no record.",
)
@click.option("--count", is_flag=True, help="Print only the number of records.")
@click.option(
    "--encoding", type=click.Choice(ENCODINGS), default="auto", show_default=True, help="How to print keys and values."
)
@shared.add(shared.DECODE)
@click.option(
    "--subject",
    "--schema",
    "subject",
    metavar="SUBJECT[:VERSION]",
    help="With -o parquet or arrow, add columns with the types of this subject, such as orders-value; implies "
    "--decode auto.",
)
@click.option("--delimiter", metavar="TEXT", help="The text that -o raw prints after each value.  [default: \\n]")
@click.option(
    "--fields",
    multiple=True,
    metavar="A,B,...",
    help="Only these columns, in this order.",
    shell_complete=shared.in_list(
        lambda ctx: [column.name for column in (BATCH if ctx.params.get("batches") else RECORD)]
    ),
)
@click.option("--keys-only", is_flag=True, help="Leave out values and headers. -o text still prints header names.")
@shared.add(shared.PRIVACY)
@click.option(
    "--on-error",
    type=click.Choice(get_args(OnError)),
    default="resync",
    show_default=True,
    help="After damage: stop reading the file, skip by the length field, or search for the next valid batch.",
)
@click.option("--include-damaged", is_flag=True, help="Also print batches with a wrong checksum, marked as damaged.")
@JOBS
@click.option("--follow", is_flag=True, help="At the end of the log, wait for new records until Ctrl-C.")
@shared.add(shared.LIMITS)
@click.option(
    "--color",
    type=click.Choice(("auto", "always", "never")),
    default="auto",
    show_default=True,
    help="Colour field names, damage and matches of --grep; auto: on a terminal without NO_COLOR.",
)
@RAW_OUTPUT
@click.option(
    "--stats",
    is_flag=True,
    help="Print the numbers of segments, bytes, batches and records read, as JSON on standard error.",
)
@click.option("--begin", hidden=True, help="Begin at this byte of a segment: FILE@BYTE, with FILE as in the output.")
@click.option(
    "--header-names",
    is_flag=True,
    hidden=True,
    help="With --no-payload: keep headers, with their names and values.",
)
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

    PATH is a segment of any name, a glob, a partition folder, a log dir, an archive (tar, zip), or a
    folder in one (bundle.zip:d1). - is standard input. Segments are read in offset order. Of several replicas kdump
    reads the one with the newest leader epoch and log end, and a note names others; --follow reads all.

    Exit status: 0 printed; 1 something cannot be read; 2 wrong usage; 3 damage was found; 4 only an index is wrong.
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
    if (begin := options.begin) is not None:
        partitions = dropwhile(lambda one: not begin.is_in(one), partitions)
    if options.is_column_file:
        if not options.stops_early:  # report a missing input before the others are read
            partitions = list(run.watched(partitions))
        dump.counted = write_columns(dump, partitions, paths)
    else:
        _print(dump, partitions, paths)
    if decoder is not None:
        shared.hint_at_schemas(decoder, run)
        shared.warn_of_absent_fields(dump.redactor, run)
    for text in options.wanted.missing(finder.found_names, paths):
        run.insist(text)
    if dump.stats is not None:
        _print_stats(dump)
    if options.fails_without_match and not dump.counted and run.status in {0, ExitStatus.DERIVED}:
        return 1
    return run.status


def _print(dump: Dump, partitions: Iterable[Partition], paths: Sequence[str]) -> None:
    options, run = dump.options, dump.session
    if not (sys.stdout.isatty() or options.follow or options.stops_early):
        partitions = run.watched(partitions)
    in_pages = options.format_name == "table" and not options.follow and not options.count
    with paged(wanted=in_pages), open_output(escape=not options.raw_output, paint=options.paint) as out:
        if options.follow:
            dump.follow(list(partitions), paths, out)
        elif not options.may_be_parallel:
            dump.run(partitions, out)
        else:
            found = list(partitions)
            jobs = costs.processes_of_dump(found, options.jobs, options.effort, options.per_partition)
            if jobs > 1:
                from kdump.command_line.dump_pieces import print_pieces

                print_pieces(dump, found, jobs, out)
            else:
                dump.run(found, out)


def _print_stats(dump: Dump) -> None:
    import json

    from kdump.primitives.terminal import print_line

    line = {"kind": "dumpStats", **dump.stats_line()}
    print_line(f"stats {json.dumps(line, separators=(',', ':'))}")


def _each_once(partitions: Iterable[Partition], paths: Iterable[str], run: session.Session) -> Iterator[Partition]:
    found = iter(partitions)
    some = [*islice(found, 2)]
    if len(some) < 2:
        yield from some
        return
    from kdump.log_reader import replicas

    yield from replicas.each_once_in_turn(chain(some, found), paths, run.note, "--every-replica")
