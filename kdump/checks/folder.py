"""Checks a partition folder: its state, the states of its segments, and its files other than logs and indexes."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from kdump.checks import log_dir
from kdump.checks.log_dir import HALF_WRITTEN, Effect, IfBroken, broken
from kdump.errors import DamageError, UnreadableError, many, raise_it
from kdump.findings import TAKE_SEGMENT, Finding, Level, remark
from kdump.findings.codes import Code
from kdump.formats import leader_epoch, partition_metadata, producer_snapshot, quorum_state
from kdump.internal_topics import CLUSTER_METADATA
from kdump.log_dirs import file_names
from kdump.log_dirs.file_names import INDEX_NAME, SEGMENT_NAME, ignored_base, is_sibling, leftover_state
from kdump.log_dirs.files import read_file
from kdump.log_dirs.partition import index_swaps, least_cleaned, stem_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kdump.checks.log_dir import LogDirs
    from kdump.formats.leader_epoch import EpochEntry
    from kdump.log_dirs.files import Entry
    from kdump.log_dirs.partition import Partition
    from kdump.primitives.wire import Bytes

T = TypeVar("T")
UNFINISHED: Final = {
    file_names.DELETED: "a file that is marked for deletion: a broker removes it when it starts",
    file_names.CLEANED: "a file of an unfinished compaction: a broker removes it when it starts",
    file_names.SWAP: "a new segment of an interrupted swap: a broker finishes the swap when it starts",
    file_names.PART: "an unfinished snapshot: a node removes it when it starts",
    file_names.TMP: HALF_WRITTEN,
}
DISCARDED: Final = (
    "a file of an interrupted swap. A broker removes it when it starts, because the name of a .cleaned file has the "
    "same or a lower offset (LogLoader.removeTempFilesAndCollectSwapFiles)"
)
LEFTOVERS: Final = {
    file_names.DELETE_FOLDER: "a replica that is marked for deletion: a broker removes it when it starts",
    file_names.FUTURE_FOLDER: "a replica that a broker is moving from another log dir",
    file_names.STRAY_FOLDER: "a replica that was not assigned to this broker: no broker serves or removes it",
}
NO_SNAPSHOT: Final = "A broker removes a broken producer snapshot, and reads the log instead."
READERS: Final[dict[str, tuple[Callable[[Bytes], object], IfBroken]]] = {
    file_names.LEADER_EPOCHS: (
        leader_epoch.read,
        IfBroken(
            "Move the file away: no record is lost, and a broker writes a new file.", of_number=Effect.STOPS_A_READER
        ),
    ),
    file_names.PARTITION_METADATA: (
        partition_metadata.read,
        IfBroken("Write the file again with the topic id that kdump metadata prints.", of_number=Effect.STOPS_A_READER),
    ),
    file_names.QUORUM_STATE: (
        quorum_state.read,
        IfBroken("Without the file a node starts, but has forgotten its vote.", Effect.STOPS_A_NODE),
    ),
}
"""File name -> the reader of the file, and the effect on a start if the file is invalid."""
SMALL: Final = 1 << 8
"""The parsed content of files below this size, in bytes, is cached."""
KNOWN_BY_NAME: Final = frozenset(each.name for each in file_names.FILES if each.format is None)


def leftover_of(partition: Partition) -> str | None:
    """Return a text that describes a -delete, -future or -stray folder; None for a folder in use."""
    state = leftover_state(partition.folder)
    return None if state is None else LEFTOVERS[state]


def check(
    partition: Partition,
    dirs: LogDirs,
    fail: Callable[[UnreadableError], None] = raise_it,
    parsed: dict[str, Any] | None = None,
) -> Iterator[Finding]:
    """Yield the findings on the files beside the segments, except indexes, and on the states of folder and segments.

    ``dirs`` checks the files of the log dir. ``fail`` receives unreadable files; by default it raises. ``parsed``
    receives the content of files that can be parsed, by name: producer snapshots, and those in :data:`READERS`.
    """
    parsed = {} if parsed is None else parsed
    if (leftover := leftover_of(partition)) is not None:
        yield remark(partition.files.shown(partition.folder), Code.LEFTOVER, leftover)
    for each in partition.segments:
        state = each.path.rpartition(".")[2]
        if state in UNFINISHED:
            yield remark(each.name, Code.LEFTOVER, UNFINISHED[state])
    is_log_dir = partition.topic is None and partition.is_listed
    if is_log_dir:
        for error in dirs.inside(partition).failed:
            fail(error)
    yield from _no_files(partition, dirs)
    for entry in partition.others:
        if INDEX_NAME.fullmatch(entry.name) or ignored_base(entry.name) is not None:
            continue  # whole_partition checks it
        try:
            if not (is_log_dir and entry.name in log_dir.READERS):
                yield from _beside(partition, entry, dirs, parsed)
        except UnreadableError as error:
            fail(error)


def _no_files(partition: Partition, dirs: LogDirs) -> Iterator[Finding]:
    """Yield the findings on folders, pipes, sockets and devices with the names of segments or indexes.

    If there is an index, the segment had records. They count as missing unless they are below the log start offset.
    """
    special = [segment.entry for segment in partition.segments if segment.special]
    for entry in sorted((*special, *partition.folders)) if partition.topic is not None else ():
        stem, _, suffix = entry.name.rpartition(".")
        if not file_names.is_padded(stem) or suffix not in {file_names.LOG, *file_names.INDEXES}:
            continue
        what = entry.special or "folder"
        index = file_names.beside_log(entry.name, file_names.INDEX)
        is_lost = suffix == file_names.LOG and any(each.name == index for each in partition.others)
        if is_lost:
            later = [each.base_offset or 0 for each in partition.segments if (each.base_offset or 0) > int(stem)]
            is_lost = not later or min(later) > (dirs.facts(partition, lambda _: None).log_start or 0)
        text = f"this is a {what} with the name of an index: a broker cannot open it"
        if suffix == file_names.LOG:
            text = f"this is a {what} with the name of a segment: a broker does not read it"
            text += ", and the records of the segment are missing" if is_lost else ""
        yield Finding(
            level=Level.LOG if is_lost else Level.REMARK,
            file=partition.files.shown(entry.path),
            kind=Code.NO_FILE,
            text=text,
            expected="a file",
            found=f"a {what}",
            missing=0 if is_lost else None,
            advice=TAKE_SEGMENT
            if is_lost
            else "With the broker stopped, move it away: a start writes a missing index again.",
        )


def _beside(partition: Partition, entry: Entry, dirs: LogDirs, parsed: dict[str, Any]) -> Iterator[Finding]:
    path = partition.files.shown(entry.path)
    state = entry.name.rpartition(".")[2]
    if state in UNFINISHED:
        yield from (
            _swap(partition, entry, path)
            if state == file_names.SWAP
            else (remark(path, Code.LEFTOVER, UNFINISHED[state]),)
        )
    elif entry.name.endswith(f".{file_names.PRODUCER_SNAPSHOT}"):
        yield from _producers(partition, entry, parsed)
    elif entry.name in READERS:
        yield from _judge(partition, entry, dirs, parsed)
        if entry.name == file_names.LEADER_EPOCHS:
            yield from _order(path, parsed.get(entry.name, ()))
    elif entry.name in log_dir.READERS:
        dirs.judge(entry.name, path, read_file(partition.files, entry.path))
    elif not _is_known(entry.name):
        yield remark(path, Code.UNKNOWN_FILE, "no broker writes a file of this name here")


def _swap(partition: Partition, entry: Entry, path: str) -> Iterator[Finding]:
    from kdump.checks.repair_commands import aside

    target = entry.name.removesuffix(f".{file_names.SWAP}")
    if _is_discarded(partition, entry.name):
        yield remark(path, Code.LEFTOVER, DISCARDED)
    elif index_swaps(partition).get(target) != entry.path:
        yield remark(
            path, Code.LEFTOVER, f"when a broker starts, it renames this file to {target}, and also renames its segment"
        )
    else:
        live = next((each for each in partition.others if each.name == target), None)
        if live is None or entry.size or not live.size:
            text = f"when a broker starts, it renames this file to {target}, so kdump has checked it like {target}"
            yield remark(path, Code.LEFTOVER, text)
            return
        yield Finding(
            level=Level.DERIVED,
            file=path,
            kind=Code.INDEX_SWAPPED,
            text=f"when a broker starts, this file, which has no entries, replaces {target}",
            expected=f"{live.size} bytes",
            found="0 bytes",
            advice="Move the .swap file away before a broker starts: look-ups in an empty index are slow. No record is "
            "lost.",
            commands=(aside(path),),
        )


def _is_discarded(partition: Partition, swap: str) -> bool:
    """Return whether a start removes a ``.swap`` file, because a ``.cleaned`` file has a lower or equal base offset."""
    least = least_cleaned(partition)
    return least is not None and stem_offset(swap) >= least


def _is_known(name: str) -> bool:
    is_of_log = is_sibling(name) or SEGMENT_NAME.fullmatch(name) is not None
    return is_of_log or file_names.is_kraft_snapshot(name) or name in KNOWN_BY_NAME


def _judge(partition: Partition, entry: Entry, dirs: LogDirs, parsed: dict[str, Any]) -> Iterator[Finding]:
    read, if_broken = READERS[entry.name]
    try:
        data = read_file(partition.files, entry.path)
        parsed[entry.name] = _read_small(read, data)
    except DamageError as damage:
        place = partition.files.shown(partition.state_dir)
        served = leftover_of(partition) is None and (partition.topic == CLUSTER_METADATA or dirs.is_loaded(place))
        dispensable = dirs.is_dispensable(place)
        shown = partition.files.shown(entry.path)
        yield broken(shown, damage, if_broken, dispensable=dispensable, served=served)


def _read_small(read: Callable[[bytes], T], data: bytes) -> T:
    """Return the parsed content of a file. Small ones are cached: many partitions have equal topic ids or epochs."""
    return cast("T", _kept(read, data)) if len(data) < SMALL else read(data)


@lru_cache(1 << 8)
def _kept(read: Callable[[bytes], object], data: bytes) -> object:
    return read(data)


def _producers(partition: Partition, entry: Entry, parsed: dict[str, Any]) -> Iterator[Finding]:
    """Check a producer snapshot. All its offsets must be below the offset in its name."""
    data, path = read_file(partition.files, entry.path), partition.files.shown(entry.path)
    try:
        entries = parsed[entry.name] = _read_small(producer_snapshot.read, data)
    except DamageError as damage:
        yield broken(path, damage, IfBroken(NO_SNAPSHOT, Effect.NONE))
        return
    size = producer_snapshot.HEADER.size + len(entries) * producer_snapshot.ENTRY.size
    if len(data) > size:
        yield Finding(
            level=Level.DERIVED,
            file=path,
            kind=Code.COUNT,
            text=f"the snapshot counts {many(len(entries), 'producer')}, but "
            f"{many(len(data) - size, 'byte follows', 'bytes follow')} the entry of the last producer",
            position=size,
            expected=f"{size} bytes",
            found=f"{len(data)} bytes",
            advice="A broker does not read these bytes: it loses the producers and open transactions in them.",
        )
    limit = file_names.offset_of(entry.name)
    for slot, one in enumerate(entries):
        if limit is not None and max(one.last_offset, one.current_txn_first_offset) >= limit:
            yield Finding(
                level=Level.DERIVED,
                file=path,
                kind=Code.OFFSET,
                text=f"producer {one.producer_id} has an offset at or above the offset in the snapshot's name",
                entry=slot,
                position=producer_snapshot.HEADER.size + slot * producer_snapshot.ENTRY.size,
                offset=one.last_offset,
                expected=f"below {limit}",
                found=max(one.last_offset, one.current_txn_first_offset),
                advice=NO_SNAPSHOT,
            )


def _order(path: str, entries: Sequence[EpochEntry]) -> Iterator[Finding]:
    for number, (one, other) in enumerate(pairwise(entries), 1):
        if other.epoch <= one.epoch or other.start_offset < one.start_offset:
            yield Finding(
                level=Level.DERIVED,
                file=path,
                kind=Code.ORDER,
                text="leader epochs and their start offsets are not in rising order",
                entry=number,
                expected=f"after epoch {one.epoch} at offset {one.start_offset}",
                found=f"epoch {other.epoch} at offset {other.start_offset}",
            )
