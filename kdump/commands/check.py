"""``kdump check``: prints findings on partitions, log dirs and remote storage, and predicts the start of brokers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kdump import checking
from kdump.checks import whole_partition
from kdump.command_line import options, session
from kdump.command_line.findings_output import FINDINGS, findings_output
from kdump.command_line.limit_options import PATHS, index_interval
from kdump.command_line.options import AT, WORKERS, WhoReads
from kdump.errors import Reporter, UnreadableError, many
from kdump.findings.codes import Code
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.partition import task_groups
from kdump.parallel import costs
from kdump.primitives import timestamps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.checking import CheckStep
    from kdump.checks.log_dir import LogDirs
    from kdump.checks.whole_partition import CheckedPartition
    from kdump.command_line.findings_output import FindingsOutput
    from kdump.findings import Finding
    from kdump.log_dirs.partition import Partition
    from kdump.primitives.processes import Workers


@click.command("check")
@PATHS
@click.option(
    "--headers-only",
    is_flag=True,
    help="Check headers, checksums, continuity and indexes. Read no records but control records.",
)
@options.add(FINDINGS)
@options.add(options.REMOTE)
@options.add(options.START)
@index_interval("it decides where a broker truncates a log with offsets out of order")
@AT
@options.add(WORKERS)
@options.add(options.LIMITS)
@click.option("-q", "--quiet", is_flag=True, help="Print findings only, and nothing if there are none.")
def command(
    paths: tuple[str, ...],
    *,
    headers_only: bool,
    interval: int,
    at: int | None,
    quiet: bool,
    release: str | None,
    configs: dict[str, str],
    **given: Any,
) -> int:
    """Check partitions: their logs, indexes and checkpoints. Files are opened read-only.

    \b
    Examples:
      kdump check /var/kafka
      kdump check -q /var/kafka || echo "something is wrong"
      kdump check /var/kafka --headers-only --jobs 8
      kdump check /var/kafka --remote /var/tiered
      kdump check /backup/orders-0 -o jsonl | jq 'select(.check == "recovery")'

    PATH is a segment, a partition folder, a log dir, a glob, an archive (tar, zip) or a folder in one
    (bundle.zip:d1). If a log is damaged, kdump reports the bytes that a broker would truncate when it starts. After an
    unclean stop it reads the segments from the one with the recovery point on, and truncates the log at the first bad
    batch in them. After a clean stop it does so only in segments without .index. With --remote kdump also checks the
    remote segments, and compares them with __remote_log_metadata.

    Exit status: 0 all is well; 1 something cannot be read, or a requested topic or partition is absent;
    2 wrong usage; 3 a log is damaged, a broker would not start, or records are missing or would be lost; 4 only derived
    files are wrong (indexes, snapshots, checkpoints): they can be rebuilt.
    """
    run = session.Session(quiet=quiet)
    who = WhoReads.taken(given)
    wanted = options.wanted(given, siblings=True, leftovers=True, log_dirs=True)
    finder = Finder(wanted._replace(remote=None), run.report)
    partitions = list(run.watched(finder.find(checking.searchable(paths, configs))))
    how = whole_partition.CheckOptions(
        records=not headers_only, interval=interval, at=timestamps.now() if at is None else at
    )
    of, how = checking.prepared(paths, partitions, wanted, how, run.fail, release=release, configs=configs)
    much = costs.READING_HEADERS if headers_only else costs.enough_records(partitions)
    if who.master is None:
        how = how._replace(jobs=costs.processes_within(partitions, much, who.jobs))
    workers = None if how.jobs > 1 else who.workers(partitions, much, run)
    closed: list[UnreadableError] = []
    with findings_output(run, given) as output:
        output.summary.is_of_starts = True
        dirs = how.log_dirs()
        report(of.steps(_checked(partitions, how, dirs, workers, run), dirs, run.fail), run, output)
        if wanted.remote is not None:
            closed = _remote(wanted, paths, partitions, how, run, output, finder.found_names)
        run.absent(wanted.missing(finder.found_names, paths))
    if closed:
        first, segments = closed[0], many(len(closed), "segment")
        reason = (
            f"{first.reason}. The records of {segments} in remote storage were not checked: kdump checked only that "
            "the objects exist and have the right sizes"
        )
        run.fail(UnreadableError(first.path, reason, first.hint))
    return run.status


def _remote(
    wanted: Wanted,
    paths: tuple[str, ...],
    local: list[Partition],
    how: whole_partition.CheckOptions,
    run: session.Session,
    output: FindingsOutput,
    found_names: set[Name],
) -> list[UnreadableError]:
    """Check remote storage, add its partitions to ``found_names``. Return errors of segments that no key decrypts."""
    from dataclasses import replace

    from kdump.checks import remote_storage
    from kdump.internal_topics import remote_log_metadata
    from kdump.log_dirs.tiered_storage import each_offset_once, locked
    from kdump.log_reader import remote_segments

    of_topic = Wanted(topics=(remote_log_metadata.TOPIC,), max_batch_bytes=wanted.max_batch_bytes)
    unlisted: list[UnreadableError] = []
    unread: list[UnreadableError] = []
    report = Reporter(run.damage, fail=unlisted.append)
    listing = Finder(of_topic, Reporter(fail=report.fail)).find(paths)
    listed = remote_segments.of_partitions(listing, report)
    for each in unlisted:
        run.fail(each)
    listed.only(lambda key: wanted.takes(Name(key.topic, key.partition)))
    storage = None if wanted.remote is None else replace(wanted.remote, list_locked=True)

    def fail(error: UnreadableError) -> None:
        unread.append(error)
        run.fail(error)

    finder = Finder(wanted._replace(remote=storage), run.report._replace(fail=fail))
    remote = list(finder.remote())
    found_names |= finder.found_names
    closed = [error for part in remote for one in part.segments if (error := locked(one)) is not None]
    for part in (one._replace(segments=tuple(each for each in one.segments if locked(each) is None)) for one in remote):
        if not part.segments:
            continue
        checked = whole_partition.check(
            each_offset_once(part), how._replace(starts=False), how.log_dirs(), run.progress
        )
        # segments not found here may have the offsets that seem missing
        has_all = not (listed.known or closed or unread or unlisted)
        kept = (finding for finding in checked.findings if finding.code != Code.GAP or has_all)
        _partition(checked._replace(findings=tuple(kept)), run, output)
    if unlisted:  # unread records may list segments that exist, or delete absent ones
        run.note(
            f"remote storage was not compared with {remote_log_metadata.TOPIC}, because parts of this topic "
            "cannot be read"
        )
    else:
        found = remote_storage.check(local, remote, listed, how.at, remote_storage.UnreadCopies.of(unread), run.fail)
        output.add(list(found))
    return closed


def report(steps: Iterable[CheckStep], run: session.Session, output: FindingsOutput) -> None:
    """Report the steps of a check: findings of partitions, findings of log dirs, starts of brokers."""
    for step in steps:
        if isinstance(step, whole_partition.CheckedPartition):
            _partition(step, run, output)
        elif isinstance(step, list):
            output.add(step)
        else:
            output.start(step)


def _partition(checked: CheckedPartition, run: session.Session, output: FindingsOutput) -> None:
    for error in checked.failed:
        run.fail(error)
    output.add(
        checked.findings,
        segments=checked.segments,
        batches=checked.batches,
        size=checked.size,
        folder=checked.folder,
    )


def _checked(
    partitions: list[Partition],
    how: whole_partition.CheckOptions,
    dirs: LogDirs,
    workers: Workers | None,
    run: session.Session,
) -> Iterator[CheckedPartition]:
    if workers is None:
        for part in partitions:
            yield whole_partition.check(part, how, dirs, run.progress)
        return
    reported: set[Finding] = set()  # several chunks of a log dir may report the same finding
    for results in workers.results(partial(_chunk, how), task_groups(partitions, workers.count)):
        for result in results:
            run.progress(result.size)
            new = tuple(finding for finding in result.findings if finding not in reported)
            reported.update(new)
            yield result._replace(findings=new)


def _chunk(how: whole_partition.CheckOptions, partitions: list[Partition]) -> list[CheckedPartition]:
    dirs = how.log_dirs()
    return [whole_partition.check(part, how, dirs) for part in partitions]
