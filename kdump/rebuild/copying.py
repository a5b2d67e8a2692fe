"""Writes the partition folders into the log dirs of new nodes, and ``lost+found``.

A log dir gets segments, ``leader-epoch-checkpoint``, ``partition.metadata`` and ``log-start-offset-checkpoint``.
Without a clean shutdown marker a broker reads every segment, and rebuilds indexes and producer snapshots. One producer
snapshot is copied, if a copy has it: the one at the base offset of the first segment. No batch has its contents.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from kdump.errors import UnreadableError
from kdump.formats import checkpoints, leader_epoch, partition_metadata
from kdump.formats.checkpoints import PartitionOffset
from kdump.formats.partition_metadata import PartitionMetadata
from kdump.formats.record_layout import BATCH_HEADER
from kdump.log_dirs import file_names
from kdump.log_dirs.files import read_whole
from kdump.log_dirs.local import LocalFile
from kdump.output import files, parts
from kdump.primitives.processes import Processes
from kdump.segments import resync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from kdump.log_dirs.partition import Partition
    from kdump.log_salvage.chains import LeftOutRange
    from kdump.output.access import Access
    from kdump.rebuild.partition_plan import PartitionPlan, PlannedPiece, PlannedSegment, SeenFile
    from kdump.rebuild.volumes import VolumeFolder

UNKNOWN: Final = "unknown-topics"
"""The folder in ``lost+found`` for folders that are not copies of a partition in the metadata."""
BLOCK: Final = 4096
SMALL_BYTES: Final = 16 * BLOCK
"""An upper estimate of the bytes on disk of a partition's small files, in addition to those of its copies."""
SMALL_FILES: Final = 3
EPOCH_AT: Final = BATCH_HEADER.offsets["partition_leader_epoch"]


class PlacedPartition(NamedTuple):
    """A partition, and the log dirs in the output that get a copy of it (folder names such as ``node-1``)."""

    plan: PartitionPlan
    nodes: tuple[str, ...]


class CopiedFile(NamedTuple):
    """A segment to write: its path in the output, its pieces, and their source files."""

    path: str
    segment: PlannedSegment
    seen: tuple[SeenFile, ...]

    @property
    def sum(self) -> str:
        """A checksum of the path, the pieces, and the sizes and modification times of the source files."""
        plan = json.dumps([self.path, self.segment, self.seen])
        return hashlib.sha256(plan.encode()).hexdigest()[:32]


def room(placed: Iterable[PlacedPartition]) -> int:
    """Return an upper estimate of the disk space for the partition folders, in bytes."""
    needed = 0
    for one in placed:
        plan = one.plan
        small = len(leader_epoch.encode(plan.epochs))
        if plan.producer_snapshot is not None:
            small += plan.producer_snapshot.size
        count = len(plan.segments) + SMALL_FILES
        needed += (plan.size + small + count * BLOCK) * len(one.nodes)
    return needed


def small_size(partition: Partition) -> int:
    """Return the bytes of a copy's leader epochs and producer snapshots, which may become part of the new log."""
    ends = (file_names.LEADER_EPOCHS, f".{file_names.PRODUCER_SNAPSHOT}")
    return sum(entry.size for entry in partition.others if entry.name.endswith(ends))


def copied_before(out: str) -> int:
    """Return the number of bytes that killed runs have written for an output. ``--resume`` may use them again."""
    target = Path(out).absolute()
    places = [place for place in (target, target.parent) if place.is_dir()]
    found = [part for place in places for part in place.iterdir() if Journal.is_of(part, out)]
    return sum(path.stat().st_size for part in found for path in part.rglob("*") if path.is_file())


def free_bytes(out: str) -> int:
    """Return the free bytes of the file system of an output. The output need not exist."""
    folder = Path(out).absolute()
    while not folder.exists():
        folder = folder.parent
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def make_sure_of_room(out: str, needed: int) -> None:
    """Raise UnreadableError if the file system of an output has fewer than ``needed`` free bytes."""
    free = free_bytes(out)
    if needed > free:
        raise UnreadableError(
            out,
            f"the file system has {free} free bytes, but {needed} are needed",
            "name a folder on a larger disk, or select fewer topics with --topic",
        )


def write(
    root: Path,
    placed: Sequence[PlacedPartition],
    access: Access,
    journal: Journal,
    *,
    jobs: int = 1,
    early: AbstractSet[str] = frozenset(),
    done: Callable[[int], None] = lambda _: None,
) -> None:
    """Write the partition folders to ``root``, and the log start offset checkpoint of each log dir that has partitions.

    ``root`` is the folder of :func:`kdump.output.files.new_folder`. Segments in ``journal`` are not written again.
    ``early`` has the names of partitions that :func:`write_partition` has written. ``done`` receives the size of each
    segment. Raises OSError, and UnreadableError if a source is unreadable, or has changed since it was verified.
    """
    tasks = [task for one in placed for task in _files_of(one)]
    journal.begin(tasks)
    nodes = list(dict.fromkeys(node for one in placed for node in one.nodes))
    for node in nodes:
        files.make_folders(root, node, access=access)
    for one in placed:
        if one.plan.name not in early:
            _write_folders(root, one, access)
    left = []
    for task in tasks:
        if journal.has(task):
            done(task.segment.size)
        else:
            left.append(task)
    for task in _copied(root, left, access, jobs):
        journal.add(task)
        done(task.segment.size)
    for node in nodes:
        starts = checkpoints.encode(_starts(node, placed))
        files.fill(root / node / file_names.LOG_STARTS, starts, access)


def write_partition(root: Path, one: PlacedPartition, access: Access, journal: Journal) -> None:
    """Write the folders of a partition without flushing its segments. Raises the errors of :func:`write`."""
    _write_folders(root, one, access)
    for task in _files_of(one):
        if not journal.has(task):
            journal.drop(task)
            _copy(root, access, task, flushes=False)


def flush_partition(root: Path, one: PlacedPartition, journal: Journal) -> None:
    """Flush the segments of a partition to the disk, and add them to the journal. Raises OSError."""
    for task in _files_of(one):
        if not journal.has(task):
            parts.flush(root / task.path)
            journal.add(task)


def _write_folders(root: Path, one: PlacedPartition, access: Access) -> None:
    for node in one.nodes:
        _write_small(files.make_folders(root, node, one.plan.name, access=access), one.plan, access)


def _starts(node: str, placed: Iterable[PlacedPartition]) -> Iterator[PartitionOffset]:
    for one in placed:
        plan = one.plan
        if node in one.nodes and (plan.is_tiered or plan.log_start > plan.segments[0].base_offset):
            yield PartitionOffset(plan.topic, plan.partition, plan.log_start)


def _files_of(one: PlacedPartition) -> Iterator[CopiedFile]:
    """Yield the segments of all replicas. Equal segments are consecutive, so the page cache may have the later ones."""
    for segment in one.plan.segments:
        paths = {piece.path for piece in segment.pieces}
        seen = tuple(file for file in one.plan.seen if file.path in paths)
        for node in one.nodes:
            name = f"{segment.base_offset:020}.{file_names.LOG}"
            yield CopiedFile(f"{node}/{one.plan.name}/{name}", segment, seen)


def _write_small(folder: Path, plan: PartitionPlan, access: Access) -> None:
    small = {file_names.LEADER_EPOCHS: leader_epoch.encode(plan.epochs)}
    if plan.topic_id is not None:
        small[file_names.PARTITION_METADATA] = partition_metadata.encode(PartitionMetadata(0, plan.topic_id))
    if plan.producer_snapshot is not None:
        with LocalFile(plan.producer_snapshot.path) as source:
            small[f"{plan.segments[0].base_offset:020}.{file_names.PRODUCER_SNAPSHOT}"] = read_whole(source)
        plan.producer_snapshot.make_sure()
    for name, data in small.items():
        files.fill(folder / name, data, access)


def _copied(root: Path, tasks: Sequence[CopiedFile], access: Access, jobs: int) -> Iterator[CopiedFile]:
    work = partial(_copy, root, access)
    results: Iterable[None]
    results = map(work, tasks) if 1 in (jobs, len(tasks)) or not tasks else Processes(jobs).results(work, tasks)
    for task, _ in zip(tasks, results, strict=True):
        yield task


def _copy(root: Path, access: Access, task: CopiedFile, *, flushes: bool = True) -> None:
    target = root / task.path
    with files.create(target, access) as file:
        for path, group in groupby(task.segment.pieces, lambda piece: piece.path):
            seen = next(one for one in task.seen if one.path == path)
            with LocalFile(path) as source:
                seen.make_sure()
                for piece in group:
                    if piece.corrected is None:
                        files.copy_range(source, piece.position, piece.size, file)
                    else:
                        file.write(_corrected(source, piece))
                seen.make_sure()
        if flushes:
            files.flush(file)
        if task.segment.modified_ms is not None:
            files.set_time(file, task.segment.modified_ms)


def _corrected(source: LocalFile, piece: PlannedPiece) -> bytes:
    base_offset, epoch = piece.corrected or (0, 0)
    data = source.read(piece.position, piece.size)
    return base_offset.to_bytes(8, "big") + data[8:EPOCH_AT] + epoch.to_bytes(4, "big") + data[EPOCH_AT + 4 :]


class Journal:
    """A file in the unfinished output that lists the written segments, so that a later run can continue.

    The first line has the path of the output. Each other line has the checksum and the path of a :class:`CopiedFile`. A
    truncated last line is removed.
    """

    NAME: Final = "rebuild-journal"

    def __init__(self, root: Path, out: str, access: Access) -> None:
        """Use the files of a killed run in ``root``. Files that are not in its journal are deleted."""
        self._root, self._path = root, root / self.NAME
        self._known: dict[str, str] = {}
        data = self._path.read_bytes() if self._path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        for line in whole.split(b"\n")[1:-1]:
            number, _, path = os.fsdecode(line).partition(" ")
            self._known[path] = number
        self._keep_only(set(self._known))
        self._file = files.append(self._path, access)
        self._file.truncate(len(whole))
        if not whole:
            self._file.write(_head(out) + b"\n")
            self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @classmethod
    def is_of(cls, folder: Path, out: str) -> bool:
        """Return whether a folder has the journal of a run for ``out``: it is the output of an unfinished run."""
        try:
            with (folder / cls.NAME).open("rb") as file:
                return file.readline() == _head(out) + b"\n"
        except OSError:  # the folder has no journal
            return False

    def begin(self, tasks: Iterable[CopiedFile]) -> None:
        """Delete the segments of an earlier run that this run does not write, or whose pieces or files have changed."""
        kept = {task.path: task.sum for task in tasks if self._known.get(task.path) == task.sum}
        for path in self._known.keys() - kept.keys():
            target = self._root / path
            files.drop(target)
            for above in target.relative_to(self._root).parents[:-1]:
                with suppress(OSError):  # the folder has files that are kept
                    files.drop(self._root / above)
        self._known = kept

    def has(self, task: CopiedFile) -> bool:
        """Return whether the journal has the segment of ``task``, with the same pieces and unchanged source files."""
        return self._known.get(task.path) == task.sum

    def drop(self, task: CopiedFile) -> None:
        """Delete the file at the path of ``task`` if a killed run wrote it."""
        if self._known.pop(task.path, None) is not None:
            files.drop(self._root / task.path)

    def add(self, task: CopiedFile) -> None:
        self._known[task.path] = task.sum
        self._file.write(os.fsencode(f"{task.sum} {task.path}\n"))
        self._file.flush()

    def end(self) -> None:
        self._file.close()
        files.drop(self._path)

    def _keep_only(self, kept: set[str]) -> None:
        for above, folders, names in os.walk(self._root, topdown=False):
            for name in names:
                path = Path(above, name)
                if path != self._path and str(path.relative_to(self._root)) not in kept:
                    files.drop(path)
            for name in folders:
                with suppress(OSError):  # the folder has files that are kept
                    files.drop(Path(above, name))


def _head(out: str) -> bytes:
    return os.fsencode(f"kdump rebuild-cluster {os.path.abspath(out)!r}")  # noqa: PTH100  it may not exist


def write_lost(root: Path, plans: Iterable[PartitionPlan], unknown: Iterable[VolumeFolder], access: Access) -> int:
    """Write left-out bytes and ``unknown`` folders to ``lost+found``. Return the number of written bytes.

    The bytes in ``left_out`` of a plan, unless all are zeros, become files ``NUMBER-SEGMENT@POSITION``. Segments, topic
    ids and leader epochs of ``unknown`` folders go to ``unknown-topics``. Raises UnreadableError and OSError.
    """
    written = 0
    for plan in plans:
        for number, left in enumerate(plan.left_out):
            written += _save(root, plan, number, left, access)
    for number, folder in enumerate(unknown):
        name = os.fsdecode(os.fsencode(f"{number:04}-{Path(folder.path).name}")[: files.NAME_BYTES])
        paths = [segment.path for segment in folder.partition.segments]
        paths += [entry.path for entry in folder.partition.others if entry.name in _KEPT]
        if not paths:
            continue
        target = files.make_folders(root, file_names.LOST_AND_FOUND, UNKNOWN, name, access=access)
        for path in paths:
            with LocalFile(path) as source, files.create(target / Path(path).name, access) as file:
                files.copy_range(source, 0, source.size, file)
                written += source.size
    return written


_KEPT: Final = {file_names.PARTITION_METADATA, file_names.LEADER_EPOCHS}


def _save(root: Path, plan: PartitionPlan, number: int, left: LeftOutRange, access: Access) -> int:
    """Copy left-out bytes to ``lost+found``, unless all are zeros. Return the number of copied bytes."""
    path = left.segment.path
    with LocalFile(path) as source:
        if resync.zero_tail(source, left.position, left.end) == left.position:
            return 0
        folder = files.make_folders(root, file_names.LOST_AND_FOUND, plan.name, access=access)
        with files.create(folder / files.left_out_name(number, path, left.position), access) as file:
            files.copy_range(source, left.position, left.size, file)
    return left.size
