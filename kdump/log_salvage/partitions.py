"""Salvages log dirs: merges the replicas of each partition, and writes all partitions to one new folder.

:func:`find` groups the replicas by partition, :func:`write` writes them with :mod:`.writer` and yields the results.
"""

from __future__ import annotations

import os
import posixpath
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.errors import SILENT, Reporter, StoreError, UnreadableError, discard, many, many_are, offsets_are
from kdump.formats.checkpoints import PartitionOffset
from kdump.log_dirs.file_names import leftover_state
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.tiered_storage import folder_id, in_store, local_id
from kdump.log_reader.segment_choice import CheckpointOffsets
from kdump.log_salvage import writer
from kdump.log_salvage.chains import END_OF_LOG
from kdump.log_salvage.merge import UNREADABLE
from kdump.output import files
from kdump.output.access import of_sources
from kdump.parallel import costs
from kdump.primitives.processes import Processes
from kdump.segments.log_end import is_being_written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from kdump.log_dirs.finder import Wanted
    from kdump.log_dirs.partition import Partition
    from kdump.log_salvage.merge import Account

TOPIC_BYTES: Final = 249
"""The longest topic name in bytes (``Topic.MAX_NAME_LENGTH``). A folder name may have 255 bytes."""
HASH_DIGITS: Final = 16
SHOWN_GAPS: Final = 20
"""The largest number of gaps that are reported one by one for a partition."""


class Replicas:
    """The replicas of a partition, and the highest log start offset in their checkpoints."""

    def __init__(self) -> None:
        self._held: list[tuple[Partition, int | None]] = []

    @property
    def parts(self) -> list[Partition]:
        return [part for part, _ in self._held]

    @property
    def log_start(self) -> int | None:
        return max((start for _, start in self._held if start is not None), default=None)

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def add(self, part: Partition, log_start: int | None = None) -> None:
        self._held.append((part, log_start))

    def keep_one_topic(self, report: Reporter) -> int:
        """Remove the replicas of other topics of the same name. Report each as damage, and return their number.

        A topic that is deleted and created again has another topic id. The topic of a live folder is kept, then
        the one with the newest segment. A replica without a topic id is kept.
        """
        if len(self._held) < 2:
            return 0
        ids = [_topic_id(part) for part in self.parts]
        ranked = ((_rank(part), own) for part, own in zip(self.parts, ids, strict=True) if own is not None)
        _, kept = max(ranked, default=((), None))
        others = [number for number, own in enumerate(ids) if own not in (kept, None)]
        for number in reversed(others):
            part, _ = self._held.pop(number)
            report.damage(
                f"{part.files.shown(part.folder)} is not read: its topic id is {ids[number]}, but the topic id of the "
                f"written log is {kept}. Its records are those of another topic of the same name. To salvage them, "
                "name this folder alone"
            )
        return len(others)

    def log_start_entries(self, written: writer.WrittenLog) -> list[PartitionOffset]:
        """Return the entry for log-start-offset-checkpoint if needed, and if no broker would delete the log for it."""
        topic, partition = self.parts[0].topic, self.parts[0].partition
        if topic is None or partition is None or self.log_start in {None, written.begin}:
            return []
        start = self.log_start or 0
        return [PartitionOffset(topic, partition, start)] if start <= written.end else []


class Found(NamedTuple):
    replicas: dict[str, Replicas]
    """Name of the new partition folder -> the replicas."""
    local: list[Partition]
    """The partitions in the given paths, including those without a segment."""
    names: frozenset[Any]
    """The names of all partitions in the inputs, requested or not."""
    unread: tuple[UnreadableError, ...] = ()
    """The errors of inputs that are missing or cannot be read."""
    other_topics: int = 0
    """The number of folders of other topics of the same name. They are not in ``replicas``."""

    @property
    def parts(self) -> list[Partition]:
        return [part for one in self.replicas.values() for part in one.parts]


class Salvaged(NamedTuple):
    name: str
    written: writer.WrittenLog
    account: Account
    refused: tuple[str, ...]
    """Messages on invalid files beside the logs, which a broker would refuse, and on unreadable leader epochs."""
    unreadable: tuple[UnreadableError, ...]
    """The errors of ``partition.metadata`` files that could not be read."""
    log_start: int | None
    """The highest log start offset of the replicas, or None if no checkpoint has one."""
    log_start_entries: list[PartitionOffset]
    """The entry for log-start-offset-checkpoint, if it gets one."""

    def report(self, report: Reporter) -> None:
        """Report the result: problems with files, counts of batches, the bytes not recovered, and missing offsets."""
        for text in self.refused:
            report.damage(text)
        for error in self.unreadable:
            report.fail(error)
        written, name, note = self.written, self.name, report.note
        where = many(written.segments, "segment")
        note(f"{name}: {many(written.batches, 'valid batch', 'valid batches')}, {written.size} bytes in {where}")
        if written.below_log_start is not None:
            below = written.below_log_start.batches
            what = f"{many(below, 'batch', 'batches')} {'is' if below == 1 else 'are'} below the log start offset"
            note(f"{name}: {what} {self.log_start} (DeleteRecords or retention)")
        if self.account.duplicates:
            note(f"{name}: {many(self.account.duplicates, 'duplicate batch', 'duplicate batches')}")
        for lost in self.account.lost:
            if lost.kind == UNREADABLE:
                before = f" from byte {lost.position} on" if lost.position else ""
                size = many(lost.size, "byte")
                report.fail(UnreadableError(lost.segment.name, f"{size}{before} could not be read: {lost.reason}"))
            else:
                size = many_are(lost.size, "byte")
                receive = note if lost.kind == END_OF_LOG and is_being_written(lost.segment) else report.damage
                receive(f"{lost.segment.name}: byte {lost.position}: {size} not recovered: {lost.reason}")
        gaps = self.account.gaps
        for gap in islice(gaps, SHOWN_GAPS):
            note(f"{name}: {offsets_are(gap.start, gap.stop - 1)} missing")
        if len(gaps) > SHOWN_GAPS:
            note(f"{name}: {many(len(gaps) - SHOWN_GAPS, 'more gap')}: account.json lists them")


class How(NamedTuple):
    """The limits of the new segments, and the number of processes (None: kdump chooses it; for a store: 1)."""

    limits: writer.SegmentLimits = writer.SegmentLimits()
    jobs: int | None = 1


def find(paths: tuple[str, ...], wanted: Wanted, report: Reporter) -> Found:
    """Return the partitions of ``paths`` and of remote storage (``wanted.remote``).

    An unreadable file or folder is reported and listed in ``unread``. An object store that does not answer raises
    StoreError, because a later run may read everything.
    """

    unread: list[UnreadableError] = []

    def failed(error: UnreadableError) -> None:
        if isinstance(error, StoreError):
            raise error
        unread.append(error)
        report.fail(error)

    quiet = Reporter(note=report.note, fail=failed)
    finder, elsewhere = Finder(wanted._replace(remote=None), quiet), Finder(wanted, quiet)
    found: dict[str, Replicas] = {}
    checkpoints = CheckpointOffsets(report._replace(fail=failed))
    local = list(finder.find(paths))
    for part in local:
        if part.segments:
            found.setdefault(_name(part), Replicas()).add(part, checkpoints.facts(part).log_start)
    for part in elsewhere.remote():
        if part.segments:
            found.setdefault(_name(part), Replicas()).add(part)
    others = sum(one.keep_one_topic(report) for one in found.values())
    return Found(found, local, frozenset(finder.found_names | elsewhere.found_names), tuple(unread), others)


def write(
    found: Found,
    inputs: Iterable[str],
    out: str,
    how: How,
    *,
    note: Callable[[str], None] = discard,
    progress: Callable[[int], None] = discard,
) -> Iterator[Salvaged]:
    """Write the partitions to the new folder ``out``, and yield the result of each partition, in order.

    ``out`` must be outside of ``inputs``; it appears after the last partition. ``progress`` receives the number of
    bytes done, but not with several processes. Raises UsageError if ``out`` is refused, UnreadableError if it cannot be
    written or an input changed, and StoreError.
    """
    parts = found.parts
    files.outside(inputs, out, parts)
    access = of_sources(parts)
    jobs = how.jobs
    if in_store(parts):
        jobs = 1
    elif jobs is None:
        jobs = min(len(found.replicas), costs.processes_beside(parts, costs.enough_records(parts)))
    log_starts: list[PartitionOffset] = []
    unread = list(found.unread)
    with files.new_folder(out, last=writer.LOGS, access=access, note=note) as folder:
        writer.begin(folder, access)
        for one in _salvaged(jobs, folder, how.limits, found.replicas, progress):
            log_starts += one.log_start_entries
            unread += one.unreadable
            yield one
        writer.write_log_starts(folder, log_starts, access)
        writer.write_unread(folder, unread, access)


def _salvaged(
    jobs: int,
    folder: Path,
    limits: writer.SegmentLimits,
    replicas: dict[str, Replicas],
    progress: Callable[[int], None],
) -> Iterator[Salvaged]:
    tasks = list(replicas.items())
    if 1 in (jobs, len(tasks)):
        return map(partial(_salvage, folder, limits, progress), tasks)
    return Processes(jobs, threads=False).results(partial(_salvage, folder, limits, discard), tasks)


def _salvage(
    folder: Path, limits: writer.SegmentLimits, progress: Callable[[int], None], named: tuple[str, Replicas]
) -> Salvaged:
    name, replicas = named
    refused: list[str] = []
    errors: list[UnreadableError] = []
    written, account = writer.write(
        name,
        replicas.parts,
        folder,
        limits,
        log_start=replicas.log_start,
        report=Reporter(damage=refused.append, fail=errors.append, progress=progress),
    )
    entries = replicas.log_start_entries(written)
    return Salvaged(name, written, account, tuple(refused), tuple(errors), replicas.log_start, entries)


def _topic_id(part: Partition) -> str | None:
    if _is_remote(part):
        return folder_id(part)
    return local_id(part, SILENT)  # the writer reports an invalid partition.metadata


def _is_remote(part: Partition) -> bool:
    """Return whether the folder is one of remote storage: TOPIC-ID/PARTITION."""
    return part.base.isdecimal()


def _rank(part: Partition) -> tuple[bool, int]:
    is_live = not _is_remote(part) and not leftover_state(part.base)
    return is_live, max((segment.modified or 0 for segment in part.segments), default=0)


def _name(part: Partition) -> str:
    """Return the name of the new folder, ``TOPIC-PARTITION``. Without a topic it is the old folder's name and ``-0``.

    Topics in archives and stores may be longer than a folder's name. They are shortened, and then end in a hash.
    """
    if part.topic is not None:
        topic, number = part.topic, part.partition or 0
    else:
        topic, number = posixpath.basename(posixpath.abspath(part.folder or "segment")).strip("."), 0
    raw = os.fsencode(topic)
    most = min(TOPIC_BYTES, files.NAME_BYTES - len(f"-{number}"))
    if len(raw) > most:
        end = f".{sha256(raw).hexdigest()[:HASH_DIGITS]}"
        topic = raw[: most - len(end)].decode("utf-8", "ignore") + end
    return f"{topic}-{number}"
