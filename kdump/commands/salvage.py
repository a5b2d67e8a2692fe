"""``kdump salvage``: sound batches of damaged copies to fresh segments that a broker can open."""

from __future__ import annotations

import os
import posixpath
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from kdump.command_line import options, session
from kdump.command_line.limit_options import JOBS, PATHS, AtLeast, index_interval
from kdump.errors import StoreError, UnreadableError, many
from kdump.formats.checkpoints import PartitionOffset
from kdump.log_dirs.absent import absent
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.remote import RemoteFiles
from kdump.log_reader.segment_choice import CheckpointMarks
from kdump.output import files
from kdump.output.access import of_sources
from kdump.parallel import costs
from kdump.primitives.processes import Processes
from kdump.salvage import writer
from kdump.salvage.chains import END_OF_LOG
from kdump.salvage.sound_batches import UNREADABLE
from kdump.segments import read_ahead
from kdump.segments.log_end import is_being_written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import TypeAlias

    from kdump.broker_start.shortfall import Shortfall
    from kdump.log_dirs.partition import Partition
    from kdump.salvage.sound_batches import Account

    _Salvaged: TypeAlias = tuple[str, writer.WrittenLog, Account, list[str], list[UnreadableError]]
    _Progress: TypeAlias = Callable[[int], None]

TOPIC_BYTES: Final = 249
"""Bytes of a topic's name at most (``Topic.MAX_NAME_LENGTH``): the name of its folder then fits, too."""
HASH_DIGITS: Final = 16


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
    """Get sound batches out of damaged logs. Inputs are opened read-only.

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
    fail = _raising_of_stores(run)
    finder = Finder(wanted._replace(remote=None), note=run.note, fail=fail)
    elsewhere = Finder(wanted, note=run.note, fail=fail)
    copies: dict[str, _Copies] = {}
    marks = CheckpointMarks(run.damage, fail)
    local = list(finder.find(paths, None))
    for part in local:
        if part.segments:
            copies.setdefault(_name(part), _Copies()).add(part, marks.facts(part).log_start)
    for part in elsewhere.remote():
        if part.segments:
            copies.setdefault(_name(part), _Copies()).add(part)
    run.absent(absent(wanted, finder.met | elsewhere.met, paths))
    if not copies:
        if not run.met:
            run.fail(UnreadableError(", ".join(paths), "there is no segment to salvage"))
        return run.status
    found = [part for one in copies.values() for part in one.parts]
    files.outside([*paths, *(() if wanted.remote is None else wanted.remote.paths)], out, found)
    access = of_sources(found)
    limits = writer.SegmentLimits(segment_bytes, interval)
    all_written: list[writer.WrittenLog] = []
    missing = 0
    log_starts: list[PartitionOffset] = []
    with files.new_folder(out, last=writer.LOGS, access=access, note=run.note) as folder:
        writer.begin(folder, access)
        if wanted.remote is not None or any(isinstance(part.files, RemoteFiles) for part in found):
            jobs = 1  # keys stay in this process, and connections do not live in forks
        elif jobs is None:
            jobs = min(len(copies), costs.processes_beside(found, costs.enough_records(found)))
        run.watched(found)
        done = 0
        for name, written, account, refused, errors in _salvaged(jobs, folder, limits, copies, run.progress):
            done += copies[name].size
            run.progress(done - run.progress.done)  # of what is there twice only one is written
            _report(run, refused, errors)
            all_written.append(written)
            missing += sum(map(len, account.gaps))
            where = many(written.segments, "segment")
            run.note(
                f"{name}: {many(written.batches, 'sound batch', 'sound batches')}, {written.size} bytes in {where}"
            )
            if written.below_log_start is not None:
                below, start = written.below_log_start.batches, copies[name].log_start
                what = f"{many(below, 'batch', 'batches')} {'is' if below == 1 else 'are'} below the log start offset"
                run.note(f"{name}: {what} {start} (DeleteRecords or retention)")
            _tell(name, account, run)
            log_starts += copies[name].log_start_entries(written)
        writer.write_log_starts(folder, log_starts, access)
    run.progress.clear()
    lacking = session.report_shortfalls(run, paths, local, lambda topic, number: wanted.takes(Name(topic, number)))
    run.note(_conclusion(all_written, missing, lacking, out, run, _back(copies.values(), all_written)))
    return run.status


def _raising_of_stores(run: session.Session) -> Callable[[UnreadableError], None]:
    """Return what takes an error: a store that did not answer ends the run before anything is written.

    Another run may get all of it. A failing disk may never give more, so the rest is salvaged.
    """

    def fail(error: UnreadableError) -> None:
        if isinstance(error, StoreError):
            raise error
        run.fail(error)

    return fail


class _Copies:
    """The copies of a partition, and the greatest log start offset that a checkpoint beside them has."""

    def __init__(self) -> None:
        self.parts: list[Partition] = []
        self.log_start: int | None = None

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def add(self, part: Partition, log_start: int | None = None) -> None:
        self.parts.append(part)
        if log_start is not None:
            self.log_start = max(log_start, self.log_start or 0)

    def log_start_entries(self, written: writer.WrittenLog) -> list[PartitionOffset]:
        """Return the log start offset as a broker notes it, unless the first segment's name or the end tells another.

        A broker deletes a log that ends below its log start offset.
        """
        topic, partition = self.parts[0].topic, self.parts[0].partition
        if topic is None or partition is None or self.log_start in {None, written.begin}:
            return []
        start = self.log_start or 0
        return [PartitionOffset(topic, partition, start)] if start <= written.end else []


def _salvaged(
    jobs: int, folder: Path, limits: writer.SegmentLimits, copies: dict[str, _Copies], progress: _Progress
) -> Iterator[_Salvaged]:
    """Yield what comes of each partition, in order. One process shows the bytes that are done within a partition."""
    tasks = list(copies.items())
    if 1 in (jobs, len(tasks)):
        return map(partial(_salvage, folder, limits, progress), tasks)
    return Processes(jobs).results(partial(_one_of_several, folder, limits), tasks)


def _salvage(folder: Path, limits: writer.SegmentLimits, progress: _Progress, named: tuple[str, _Copies]) -> _Salvaged:
    """Write one partition; return the log, the account of the copies, refused files, and errors of reading."""
    name, copies = named
    refused: list[str] = []
    errors: list[UnreadableError] = []
    written, account = writer.write(
        name,
        copies.parts,
        folder,
        limits,
        log_start=copies.log_start,
        damage=refused.append,
        fail=errors.append,
        progress=progress,
    )
    return name, written, account, refused, errors


def _one_of_several(folder: Path, limits: writer.SegmentLimits, named: tuple[str, _Copies]) -> _Salvaged:
    """Do the same in one of several processes, without threads."""
    read_ahead.alone()
    return _salvage(folder, limits, lambda _: None, named)


def _back(copies: Iterable[_Copies], all_written: list[writer.WrittenLog]) -> str:
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


def _name(part: Partition) -> str:
    """Return the name of the folder that gets a partition: a topic that a broker takes, and its number.

    Names in archives and stores may be longer: such a topic is cut, and ends in a hash of its whole name.
    """
    if part.topic is not None:
        topic, number = part.topic, part.partition or 0
    else:
        topic, number = posixpath.basename(posixpath.abspath(part.folder or "segment")).strip("."), 0
    raw = os.fsencode(topic)
    if len(raw) > TOPIC_BYTES:
        end = f".{sha256(raw).hexdigest()[:HASH_DIGITS]}"
        topic = raw[: TOPIC_BYTES - len(end)].decode("utf-8", "ignore") + end
    return f"{topic}-{number}"


def _report(run: session.Session, refused: Iterable[str], errors: Iterable[UnreadableError]) -> None:
    """Report files beside the logs that a broker refuses, and files that cannot be read."""
    for text in refused:
        run.damage(text)
    for error in errors:
        run.fail(error)


def _tell(name: str, account: Account, run: session.Session) -> None:
    if account.duplicates:
        run.note(f"{name}: {many(account.duplicates, 'batch was', 'batches were')} there twice")
    for lost in account.lost:
        if lost.kind == UNREADABLE:
            before = f" (the {many(lost.position, 'byte')} before that could)" if lost.position else ""
            size = many(lost.size, "byte")
            run.fail(UnreadableError(lost.segment.name, f"{size} could not be read{before}: {lost.reason}"))
        else:
            size = many(lost.size, "byte is", "bytes are")
            say = run.note if lost.kind == END_OF_LOG and is_being_written(lost.segment) else run.damage
            say(f"{lost.segment.name}: byte {lost.position}: {size} not placed: {lost.reason}")
    for gap in islice(account.gaps, 20):
        only = f"offset {gap.start} is" if len(gap) == 1 else f"offsets {gap.start} to {gap.stop - 1} are"
        run.note(f"{name}: {only} not there")
    if len(account.gaps) > 20:
        run.note(f"{name}: {many(len(account.gaps) - 20, 'more gap')}: account.json has them")
