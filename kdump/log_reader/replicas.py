"""Chooses the replica from which each offset of a partition is read (:func:`choose`).

After an unclean election replicas may hold different records at one offset. The replica with the newest leader epoch
is read, because the cluster kept its records (KIP-101). If the epochs are equal, the first replica is read.
:func:`each_once` returns only the best one of overlapping replicas.
"""

from __future__ import annotations

import os
import posixpath
from collections import Counter, defaultdict
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump.errors import Reporter, StoreError, UnreadableError, discard, first_of, many_are
from kdump.log_dirs.file_names import Name, folder_name, folder_name_in, leftover_state
from kdump.primitives.wire import INT64_END
from kdump.segments.log_end import LogEnd, end_of_log

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from kdump.log_dirs.partition import Partition
    from kdump.records.record_batch import RecordBatch

Ranges = tuple[tuple[int, int], ...]
_AreCopies: TypeAlias = "Callable[[Partition, LogEnd, Partition, LogEnd], bool]"


NAMED = 3
"""Maximum number of folders in the note on replicas that are left out."""


class EpochRange(NamedTuple):
    """The offsets from ``start`` to ``end`` (exclusive), in consecutive batches of one leader epoch."""

    start: int
    end: int
    epoch: int


def extend(runs: list[EpochRange], batch: RecordBatch) -> None:
    """Add a batch to the ranges of a segment. Batches of magic 0 and 1 have no leader epoch: -1."""
    epoch = batch.leader_epoch
    start, end = batch.base_offset, batch.last_offset + 1
    if runs and runs[-1].epoch == epoch and runs[-1].end == start:
        runs[-1] = runs[-1]._replace(end=end)
    else:
        runs.append(EpochRange(start, end, epoch))


def common(one: Ranges | None, other: Ranges | None) -> Ranges | None:
    """Return the offsets that both arguments have. None means all offsets."""
    if one is None or other is None:
        return other if one is None else one
    pairs = ((max(first, start), min(last, end)) for first, last in one for start, end in other)
    return tuple((start, end) for start, end in pairs if start < end)


def choose(partitions: Sequence[Partition], held: Sequence[list[EpochRange]]) -> list[Ranges | None]:
    """Return the offsets to read from each partition, None for all. ``held``: the offsets that each partition has."""
    same: defaultdict[Hashable, list[int]] = defaultdict(list)
    for number, log in enumerate(_logs_of(partitions)):
        same[log].append(number)
    chosen: list[Ranges | None] = [None] * len(partitions)
    for numbers in same.values():
        if len(numbers) > 1:
            ranges: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
            runs = ((number, run) for number in numbers for run in held[number])
            for winner, start, end in _winners(runs):
                own = ranges[winner]
                if own and own[-1][1] == start:
                    own[-1] = (own[-1][0], end)
                else:
                    own.append((start, end))
            for number in numbers:
                chosen[number] = tuple(ranges[number])
    return chosen


def _logs_of(partitions: Sequence[Partition]) -> list[Hashable]:
    """Return a key for the log of each partition; replicas and copies have equal keys.

    The key of a log includes the topic id if folders of one partition have several, because a topic that was created
    again has a new log.
    """
    keys: list[Hashable] = [(one.topic, one.partition, None) for one in partitions]
    named: defaultdict[Name, list[int]] = defaultdict(list)
    unnamed = []
    for number, one in enumerate(partitions):
        if one.topic is None:
            unnamed.append(number)
        else:
            named[Name(one.topic, one.partition)].append(number)
    for name, numbers in named.items():
        ids = [_local_id(partitions[number]) for number in numbers] if len(numbers) > 1 else []
        if len({*ids} - {None}) > 1:
            for number, local_id in zip(numbers, ids, strict=True):
                keys[number] = (*name, local_id)
    for number, copy in zip(unnamed, _copy_numbers([partitions[number] for number in unnamed]), strict=True):
        keys[number] = copy
    return keys


def _local_id(partition: Partition) -> str | None:
    from kdump.log_dirs.tiered_storage import local_id

    return local_id(partition, Reporter(fail=_raise_of_store))


def _copy_numbers(logs: Sequence[Partition]) -> list[int]:
    if len(logs) < 2:
        return [0] * len(logs)
    from kdump.log_reader.unnamed_logs import LogCopies

    copies = LogCopies()
    return [copies.number(one) for one in logs]


def _winners(runs: Iterable[tuple[int, EpochRange]]) -> Iterator[tuple[int, int, int]]:
    """Yield (number of the replica to read, start, end) in offset order. ``runs`` are pairs (number, range)."""
    ordered = sorted(runs, key=lambda pair: pair[1].start)
    edges = sorted({edge for _, run in ordered for edge in (run.start, run.end)})
    waiting: list[tuple[int, int, int]] = []  # the highest epoch first, then the first replica
    following = 0
    for start, end in pairwise(edges):
        while following < len(ordered) and ordered[following][1].start <= start:
            number, run = ordered[following]
            heappush(waiting, (-run.epoch, number, run.end))
            following += 1
        while waiting and waiting[0][2] <= start:
            heappop(waiting)
        if waiting:
            yield waiting[0][1], start, end


UNKNOWN: Final = LogEnd(INT64_END, INT64_END)
"""The end of an unreadable replica. It is above every other end, so the replica is read and its error is reported."""


def each_once(partitions: Sequence[Partition], note: Callable[[str], None], option: str) -> list[Partition]:
    """Return the partitions without the :func:`spares`: older replicas and copies. ``note`` gets messages on these.

    The messages name ``option``, with which a command reads all.
    """
    hint = f" ({option} reads all)" if option else ""
    left_out = spares(partitions, lambda text: note(f"{text}{hint}"))
    gone = set(map(id, left_out))
    return [one for one in partitions if id(one) not in gone]


def spares(partitions: Sequence[Partition], note: Callable[[str], None], what: str = "") -> list[Partition]:
    """Return the replicas and copies of logs that are not the best of those with offsets in common.

    ``note`` gets a message on the replicas, and a message on the copies. ``what`` is inserted after "left out".
    """
    left_out = _spare_replicas(partitions)
    if left_out:
        names = first_of([one.files.shown(one.folder) for one in left_out], NAMED)
        reason = "because another replica of the partition has the newest leader epoch and log end offset"
        note(f"{many_are(len(left_out), 'folder')} left out{what}, {reason}: {names}")
    gone = set(map(id, left_out))
    copies = _spare_copies([one for one in partitions if id(one) not in gone])
    if copies:
        names = first_of([_shown(one) for one in copies], NAMED)
        reason = "because another log has the same batches, and is as long or longer"
        note(f"{many_are(len(copies), 'log')} left out{what}, {reason}: {names}")
    return [*left_out, *copies]


def _spare_replicas(partitions: Iterable[Partition]) -> list[Partition]:
    """Return all replicas except the best replica of each partition.

    The best replica has the newest leader epoch, then the highest log end offset, then the lowest first offset, then
    the first place in the list. Folders with the name of one partition are replicas if their topic ids do not differ,
    and if they have common offsets or one is empty. Leftover folders (deleted, stray, future) do not count.
    """
    same: defaultdict[tuple[str, int], list[Partition]] = defaultdict(list)
    for one in partitions:
        if one.topic is not None and one.partition is not None and one.segments and leftover_state(one.folder) is None:
            same[one.topic, one.partition].append(one)
    return [one for found in same.values() if len(found) > 1 for one in _others(found, _are_replicas)]


def _spare_copies(partitions: Iterable[Partition]) -> list[Partition]:
    """Return all copies of logs except the best copy of each log (see :func:`_spare_replicas`).

    Only logs without a topic, or in one folder, are compared; :func:`_spare_replicas` compares others. They are copies
    if they have offsets in common, and :class:`kdump.log_reader.unnamed_logs.LogCopies` finds a common batch.
    """
    pools: defaultdict[Hashable, list[Partition]] = defaultdict(list)
    for one in partitions:
        if one.segments and leftover_state(one.folder) is None:
            pools[None if one.topic is None else (one.files, one.folder)].append(one)
    same: defaultdict[Hashable, list[Partition]] = defaultdict(list)
    for key, logs in pools.items():
        for number, one in zip(_copy_numbers(logs), logs, strict=True):
            same[key, number].append(one)
    return [one for found in same.values() if len(found) > 1 for one in _others(found, _overlap)]


def _shown(partition: Partition) -> str:
    """Return the folder of a log, or the path of its only file."""
    alone = len(partition.segments) == 1 and not partition.is_listed
    return partition.segments[0].name if alone else partition.files.shown(partition.folder)


def each_once_in_turn(
    partitions: Iterable[Partition], paths: Iterable[str], note: Callable[[str], None], option: str
) -> Iterator[Partition]:
    """Yield the partitions that :func:`each_once` returns, if possible before the finder has found all.

    ``partitions`` are the result of a finder for ``paths``. This function first lists the names of all folders. It
    yields partitions at once while exactly one folder has their name. Then it waits for the rest.
    """
    names = _names_below(paths)
    left = iter(partitions)
    for one in left:
        if names[Name(one.topic, one.partition)] != 1:
            yield from each_once([one, *left], note, option)
            return
        yield one


def _names_below(paths: Iterable[str]) -> Counter[Name]:
    """Return name of a partition -> the number of folders with this name below ``paths``, at any depth.

    The result is empty if a path is not a local folder, or if there are symbolic links. Unreadable folders are skipped.
    The link count of a folder shows whether it has subfolders. Most partition folders have none, and are not searched.
    """
    names: Counter[Name] = Counter()
    left: list[str] = []
    for path in paths:
        if not os.path.isdir(path):  # noqa: PTH112  it may be a glob, an archive or a URI; pathlib is slow
            return Counter()
        names[folder_name(os.path.abspath(path))] += 1  # noqa: PTH100  pathlib is slow to import
        left.append(path)
    while left:
        path = left.pop()
        above = posixpath.basename(path)
        found: list[tuple[str, str]] = []
        try:
            with os.scandir(path) as inside:
                for entry in inside:
                    if entry.is_symlink():
                        return Counter()
                    if entry.is_dir():
                        found.append((entry.name, entry.path))
        except OSError:  # the finder reports it
            continue
        counts_links = bool(found) and _links(path) in {1, len(found) + 2}
        for name, below in found:
            names[folder_name_in(above, name)] += 1
            if not (counts_links and _links(below) == 2):
                left.append(below)
    return names


def _links(folder: str) -> int:
    """Return the links of a folder: 2 + subfolders; 1 on btrfs, and on ext4 from 65,000 subfolders on; 0: unknown."""
    try:
        return os.stat(folder).st_nlink  # noqa: PTH116  pathlib is slow to import
    except OSError:  # listing the folder fails too
        return 0


def _others(found: list[Partition], are_copies: _AreCopies) -> Iterator[Partition]:
    ends = [(_end(one), one) for one in found]
    ranked = sorted(ends, key=lambda pair: (*pair[0].rank, -_first(pair[1])), reverse=True)
    kept: list[tuple[LogEnd, Partition]] = []
    for end, one in ranked:
        if any(are_copies(one, end, other, best) for best, other in kept):
            yield one
        else:
            kept.append((end, one))


def _are_replicas(one: Partition, one_end: LogEnd, other: Partition, other_end: LogEnd) -> bool:
    """Return whether two folders are replicas: no different topic ids, and ``one`` is empty or they share offsets."""
    if (one.files, one.folder) == (other.files, other.folder):  # several files of a folder may be copies
        return False
    ids = {_local_id(one), _local_id(other)} - {None}
    return len(ids) < 2 and (_overlap(one, one_end, other, other_end) or one_end.offset <= _first(one))


def _overlap(one: Partition, one_end: LogEnd, other: Partition, other_end: LogEnd) -> bool:
    return _first(one) < other_end.offset and _first(other) < one_end.offset


def _raise_of_store(error: UnreadableError) -> None:
    """Raise an error of a store. Ignore other errors, because an unreadable file means only: no topic id is known."""
    if isinstance(error, StoreError):
        raise error


def _first(partition: Partition) -> int:
    return partition.segments[0].base_offset or 0


def _end(partition: Partition) -> LogEnd:
    """Return the end of a log, or UNKNOWN if a segment is unreadable. The reader of the replica reports it."""
    try:
        end = end_of_log(partition)
    except UnreadableError:
        return UNKNOWN
    try:
        return end.with_epochs(partition.leader_epochs(discard) or ())
    except UnreadableError as error:
        _raise_of_store(error)
        return end
