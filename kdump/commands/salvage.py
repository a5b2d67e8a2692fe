"""``kdump salvage``: valid batches of damaged copies to fresh segments that a broker can open."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

import click

from kdump.command_line import options, session
from kdump.command_line.limit_options import JOBS, PATHS, AtLeast, index_interval
from kdump.errors import UnreadableError, many
from kdump.log_dirs.absent import absent
from kdump.log_dirs.file_names import Name
from kdump.log_salvage import partitions, writer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.broker_start.shortfall import Shortfall
    from kdump.log_salvage.partitions import Salvaged


@click.command("salvage")
@PATHS
@click.option("--out", required=True, metavar="DIR", help="Where to write; it must not be there yet, or be empty.")
@options.add(options.PARTITIONS)
@options.add(options.REMOTE)
@click.option("--leftovers", is_flag=True, help="Read .deleted, .cleaned and .swap files and leftover folders too.")
@click.option(
    "--segment-bytes",
    type=AtLeast(1 << 10),
    default=1 << 30,
    show_default=True,
    metavar="BYTES",
    help="The most that a segment of the output may hold (the topic's segment.bytes); 1024 or more.",
)
@index_interval("how much log may pass without an index entry")
@JOBS
@options.add(options.LIMITS)
@click.option("-q", "--quiet", is_flag=True, help="Say only what was lost.")
def command(
    paths: tuple[str, ...],
    *,
    out: str,
    segment_bytes: int,
    interval: int,
    jobs: int | None,
    quiet: bool,
    **given: Any,
) -> int:
    """Get valid batches out of damaged logs. Inputs are opened read-only.

    \b
    Examples:
      kdump salvage /var/kafka/orders-0 --out /mnt/rescue
      kdump salvage /broker1 /broker2 /broker3 --topic orders --out /mnt/rescue
      kdump salvage /var/kafka --remote /var/tiered --out /mnt/rescue

    Batches are written unchanged, with fresh indexes, to DIR/logs: the broker's log.dirs. What could not be placed goes
    to DIR/lost+found, with an account of every lost range in account.json. Several copies of a partition are merged
    by offset, with what is in remote storage; where they contradict each other the higher leader epoch wins, and the
    account names the conflict. What lies below the log start offset of log-start-offset-checkpoint, as DeleteRecords
    leaves it in a segment, is written too, and told apart (belowLogStart). A checkpoint in DIR/logs hides it again. The
    log keeps its begin and end offsets and its old leader epochs, also where batches are gone.

    Exit status: 0 all copies were sound, 1 something cannot be read, 2 wrong usage, 3 damage was met.
    """
    run = session.Session(quiet=quiet)
    wanted = options.wanted(given, siblings=True)
    found = partitions.find(paths, wanted, damage=run.damage, note=run.note, fail=run.fail)
    run.absent(absent(wanted, found.names, paths))
    if not found.replicas:
        if not run.met:
            run.fail(UnreadableError(", ".join(paths), "there is no segment to salvage"))
        return run.status
    run.watched(found.parts)
    how = partitions.How(writer.SegmentLimits(segment_bytes, interval), jobs)
    inputs = [*paths, *(() if wanted.remote is None else wanted.remote.paths)]
    all_done: list[Salvaged] = []
    done = 0
    for one in partitions.write(found, inputs, out, how, note=run.note, progress=run.progress):
        done += found.replicas[one.name].size
        run.progress(done - run.progress.done)  # of what is there twice only one is written
        one.report(damage=run.damage, note=run.note, fail=run.fail)
        all_done.append(one)
    run.progress.clear()
    lacking = session.report_shortfalls(
        run, paths, found.local, lambda topic, number: wanted.takes(Name(topic, number))
    )
    all_written = [one.written for one in all_done]
    missing = sum(len(gap) for one in all_done for gap in one.account.gaps)
    back = _back(found.replicas.values(), all_written)
    run.note(_conclusion(all_written, missing, lacking, out, run, back))
    return run.status


def _back(copies: Iterable[partitions.Replicas], all_written: list[writer.WrittenLog]) -> str:
    """Return what a broker may serve again where no copy has a log start offset; empty for nothing."""
    if any(written.below_log_start is not None for written in all_written):
        return " but that of log start offsets, which hides the records below them"
    return ": records that DeleteRecords removed may be back" if any(one.log_start is None for one in copies) else ""


def _conclusion(
    all_written: list[writer.WrittenLog],
    missing: int,
    lacking: list[Shortfall],
    out: str,
    run: session.Session,
    back: str,
) -> str:
    batches = sum(written.batches for written in all_written)
    counts = [written.records for written in all_written if written.records is not None]
    held = many(batches, "batch", "batches")
    if len(counts) == len(all_written):
        held = f"{many(sum(counts), 'record')} in {held}"
    where = posixpath.join(out, "logs")
    told = f"{held} of {many(len(all_written), 'partition')} {'is' if batches == 1 else 'are'} in {where}"
    gone = f", {many(missing, 'offset')} missing in between" if missing else ""
    if lacking:
        lack = "lacks" if len(lacking) == 1 else "lack"
        gone += f"; {many(len(lacking), 'partition')} of these log dirs {lack} all records"
    if not run.met:
        if lacking and not missing:
            return f"{told}{gone}: all that these copies hold"
        if missing:
            return f"{told}{gone} (as compaction leaves them, and lost segments too): all that these copies hold"
        return f"nothing is missing: {told}" if batches else f"{told}: there was none in what was read"
    lost = posixpath.join(out, "lost+found")
    rest = "the rest" if session.UNREADABLE not in run.met else "the rest of what could be read"
    return (
        f"{told}{gone}; {lost} holds {rest}, and an account in account.json. What to do next: look at the "
        "account, add other replicas if there are any, then copy the broker's meta.properties into a copy of the "
        f"folder logs, and let log.dirs name that. No checkpoint is written{back}"
    )
