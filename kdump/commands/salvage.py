"""``kdump salvage``: writes the valid batches of damaged logs as new segments that a broker can open."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

import click

from kdump.command_line import options, session
from kdump.command_line.limit_options import JOBS, PATHS, AtLeast, index_interval
from kdump.errors import ExitStatus, UnreadableError, many, many_are
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.remote import shown_paths
from kdump.log_salvage import partitions, writer
from kdump.primitives.terminal import shell_path

if TYPE_CHECKING:
    from kdump.broker_start.shortfall import Shortfall
    from kdump.log_salvage.partitions import Salvaged


@click.command("salvage")
@PATHS
@click.option("--out", required=True, metavar="DIR", help="The output folder, new or empty.")
@options.add(options.PARTITIONS)
@options.add(options.REMOTE)
@click.option("--leftovers", is_flag=True, help="Also read .deleted, .cleaned and .swap files, and leftover folders.")
@click.option(
    "--segment-bytes",
    type=AtLeast(1 << 10),
    default=1 << 30,
    show_default=True,
    metavar="BYTES",
    help="The largest segment of the output (the topic's segment.bytes); 1024 or more.",
)
@index_interval("the number of bytes of log between two index entries")
@JOBS
@options.add(options.LIMITS)
@click.option("-q", "--quiet", is_flag=True, help="Print losses and errors only.")
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
    """Write the valid batches of damaged logs as new segments. Inputs are opened read-only.

    \b
    Examples:
      kdump salvage /var/kafka/orders-0 --out /mnt/rescue
      kdump salvage /broker1 /broker2 /broker3 --topic orders --out /mnt/rescue
      kdump salvage /var/kafka --remote /var/tiered --out /mnt/rescue

    DIR/logs, for the broker's log.dirs, gets the batches unchanged, with new indexes. DIR/lost+found gets the damaged
    bytes, an account.json for each partition with every lost range, and unread.json if inputs could not be read.
    Several copies of a partition, and remote storage, are merged in offset order. If copies contradict each other, the
    higher leader epoch is kept, and the account lists the conflict. Folders of another topic id, from an earlier topic
    of the same name, are left out with an error. Batches that DeleteRecords removed are written too.
    If an input log dir has the log start offset, account.json counts them as belowLogStart, and
    log-start-offset-checkpoint in DIR/logs hides them from consumers. The log keeps its first offset, its leader epochs
    and, unless its last batches are damaged, its end offset.

    Exit status: 0 all headers and checksums were valid, but offsets may be missing, and records were not decompressed;
    1 something cannot be read; 2 wrong usage; 3 damage was found.
    """
    run = session.Session(quiet=quiet)
    wanted = options.wanted(given, siblings=True)
    found = partitions.find(paths, wanted, run.report)
    run.absent(wanted.missing(found.names, paths))
    if not found.replicas:
        if not run.statuses:
            run.fail(UnreadableError(shown_paths(paths), "there is no segment to salvage"))
        return run.status
    run.watched(found.parts)
    how = partitions.How(writer.SegmentLimits(segment_bytes, interval), jobs)
    inputs = [*paths, *(() if wanted.remote is None else wanted.remote.paths)]
    all_done: list[Salvaged] = []
    done = 0
    for one in partitions.write(found, inputs, out, how, note=run.note, progress=run.progress):
        done += found.replicas[one.name].size
        run.progress(done - run.progress.done)  # equal batches of several replicas are written once
        one.report(run.report)
        all_done.append(one)
    run.progress.clear()
    lacking = session.report_shortfalls(
        run, paths, found.local, lambda topic, number: wanted.takes(Name(topic, number))
    )
    all_written = [one.written for one in all_done]
    missing = sum(len(gap) for one in all_done for gap in one.account.gaps)
    run.note(_conclusion(all_written, missing, lacking, out, run, _back(all_done), found.other_topics) + run.pace)
    return run.status


def _back(done: list[Salvaged]) -> str:
    """Return the end of the last note: whether records that DeleteRecords removed may reappear on a broker."""
    reappear = any(
        not one.log_start_entries and (one.log_start is None or one.written.below_log_start is not None) for one in done
    )
    if not any(one.log_start_entries for one in done):
        return ": records that DeleteRecords removed may reappear" if reappear else ""
    others = "; those of other partitions may reappear" if reappear else ""
    return f" except log-start-offset-checkpoint, which hides records that DeleteRecords removed{others}"


def _conclusion(
    all_written: list[writer.WrittenLog],
    missing: int,
    lacking: list[Shortfall],
    out: str,
    run: session.Session,
    back: str,
    others: int,
) -> str:
    batches = sum(written.batches for written in all_written)
    counts = [written.records for written in all_written if written.records is not None]
    contents, number = many(batches, "batch", "batches"), batches
    if len(counts) == len(all_written):
        contents, number = f"{many(sum(counts), 'record')} in {contents}", sum(counts)
    where = posixpath.join(out, "logs")
    done = f"{contents} of {many(len(all_written), 'partition')} {'is' if number == 1 else 'are'} in {where}"
    gone = f"; {many_are(missing, 'offset')} missing between them" if missing else ""
    if missing and not run.statuses:
        gone += " (by compaction or lost segments)"
    if lacking:
        have = "has" if len(lacking) == 1 else "have"
        gone += f"; {many(len(lacking), 'partition')} of these log dirs {have} lost all records"
    if not run.statuses:
        if gone:
            return f"{done}{gone}; kdump wrote all batches of the input"
        if not batches:
            return f"{done}: no batch was found"
        return f"no batch and no offset is missing: {done}. To verify the records: kdump check {shell_path(where)}"
    lost = posixpath.join(out, "lost+found")
    rest = "all other bytes" if ExitStatus.UNREADABLE not in run.statuses else "all other bytes that could be read"
    if others:
        rest += f", except {many(others, 'folder')} of another topic"
    return (
        f"{done}{gone}; {lost} has {rest}, and its account.json files list the lost ranges. What to do next: read "
        "them. If there are other replicas, run salvage again with all of them. Then copy the folder logs, put the "
        f"broker's meta.properties into the copy, and name the copy in log.dirs. No checkpoint was written{back}"
    )
