"""The files beside the segments, and those of the log dir: each is read, and what is odd or broken is told."""

from __future__ import annotations

import posixpath
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import DamageError
from kdump.findings import Finding, Level
from kdump.formats import (
    checkpoints,
    clean_shutdown,
    leader_epoch,
    meta_properties,
    partition_metadata,
    producer_snapshot,
)
from kdump.formats.checkpoints import PartitionOffset
from kdump.inputs import LEFTOVER_FOLDER, SEGMENT_NAME, SIBLING_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.files import Entry
    from kdump.formats.leader_epoch import EpochEntry
    from kdump.inputs import Partition
    from kdump.wire import Bytes

LOG_DIR_FILES: Final[dict[str, Callable[[Bytes], object]]] = {
    meta_properties.NAME: meta_properties.read,
    clean_shutdown.NAME: clean_shutdown.read,
    checkpoints.RECOVERY_POINTS: checkpoints.read,
    checkpoints.HIGH_WATERMARKS: checkpoints.read,
    checkpoints.LOG_STARTS: checkpoints.read,
    checkpoints.CLEANED: checkpoints.read,
}
UNFINISHED: Final = {
    ".deleted": "a segment that is to be deleted: a broker removes it when it starts",
    ".cleaned": "what a compaction had not finished: a broker removes it when it starts",
    ".swap": "a segment that was to take the place of others: a broker finishes that when it starts",
}
LEFTOVERS: Final = {
    "delete": "a replica that is to be deleted: a broker removes it when it starts",
    "future": "a replica on its way from another log dir",
    "stray": "a replica that the cluster did not know: nobody removes it",
}


class LogDir(NamedTuple):
    """What the files of a log dir say of one partition; None where a file is not there or does not name it.

    ``known`` tells whether the folder above is a log dir at all, ``clean`` whether its broker stopped in good order.
    """

    known: bool = False
    clean: bool = False
    recovery_point: int | None = None
    high_watermark: int | None = None
    log_start: int | None = None
    cleaned: bool | None = None


def log_dir(partition: Partition, found: dict[str, list[Finding]]) -> LogDir:
    """Return what the log dir says; put what is wrong with its files into ``found``, once per file."""
    folder = posixpath.dirname(posixpath.abspath(partition.folder))
    readable: set[str] = set()
    offsets: dict[str, int] = {}
    for name, read in LOG_DIR_FILES.items():
        data = partition.beside(name)
        if data is None:
            continue
        path = partition.files.shown(posixpath.join(folder, name))
        try:
            content = read(data)
        except DamageError as damage:
            found.setdefault(path, [_broken(path, damage, "A broker that cannot read it does not start.")])
            continue
        found.setdefault(path, [])
        readable.add(name)
        for entry in content if isinstance(content, tuple) else ():
            if isinstance(entry, PartitionOffset) and entry[:2] == (partition.topic, partition.partition):
                offsets[name] = entry.offset
    if not readable:
        return LogDir()
    return LogDir(
        True,
        clean_shutdown.NAME in readable,
        offsets.get(checkpoints.RECOVERY_POINTS),
        offsets.get(checkpoints.HIGH_WATERMARKS),
        offsets.get(checkpoints.LOG_STARTS),
        checkpoints.CLEANED in offsets if checkpoints.CLEANED in readable else None,
    )


def epochs(partition: Partition) -> tuple[EpochEntry, ...] | None:
    """Return the leader epoch checkpoint, None where it is absent or broken."""
    data = _content(partition, leader_epoch.NAME)
    try:
        return None if data is None else leader_epoch.read(data)
    except DamageError:
        return None


def check(partition: Partition) -> Iterator[Finding]:
    """Yield what is wrong or odd among the files beside the segments, and with the folder itself."""
    name = posixpath.basename(partition.folder.rstrip("/"))
    if LEFTOVER_FOLDER.fullmatch(name):
        yield _remark(partition.files.shown(partition.folder), "leftover", LEFTOVERS[name.rpartition("-")[2]])
    for each in partition.segments:
        state = "." + each.path.rpartition(".")[2]
        if state in UNFINISHED:
            yield _remark(each.name, "leftover", UNFINISHED[state])
    for entry in partition.others:
        path = partition.files.shown(entry.path)
        segment = SEGMENT_NAME.fullmatch(entry.name)
        state = "." + entry.name.rpartition(".")[2]
        if state in UNFINISHED:
            yield _remark(path, "leftover", UNFINISHED[state])
        elif entry.name.endswith(".snapshot"):
            yield from _judge(partition, entry, producer_snapshot.read)
        elif entry.name == leader_epoch.NAME:
            yield from _judge(partition, entry, leader_epoch.read)
            yield from _order(path, epochs(partition) or ())
        elif entry.name == partition_metadata.NAME:
            yield from _judge(partition, entry, partition_metadata.read)
        elif segment is None and not SIBLING_NAME.fullmatch(entry.name) and not entry.name.endswith(".checkpoint"):
            yield _remark(path, "unknown file", "no broker writes a file of this name here")


def _judge(partition: Partition, entry: Entry, read: Callable[[Bytes], object]) -> Iterator[Finding]:
    with partition.files.open(entry.path) as source:
        data = source.read(0, source.size)
    try:
        read(data)
    except DamageError as damage:
        advice = "A broker removes a broken producer snapshot, and reads the log instead."
        if not entry.name.endswith(".snapshot"):
            advice = "With the broker stopped, take it from another replica of the partition."
        yield _broken(partition.files.shown(entry.path), damage, advice)


def _order(path: str, entries: tuple[EpochEntry, ...]) -> Iterator[Finding]:
    for number, (one, other) in enumerate(pairwise(entries), 1):
        if other.epoch <= one.epoch or other.start_offset < one.start_offset:
            yield Finding(
                level=Level.DERIVED,
                file=path,
                kind="order",
                text="epochs and their start offsets do not rise",
                entry=number,
                expected=f"behind epoch {one.epoch} at offset {one.start_offset}",
                found=f"epoch {other.epoch} at offset {other.start_offset}",
            )


def _content(partition: Partition, name: str) -> bytes | None:
    entry = next((entry for entry in partition.others if entry.name == name), None)
    if entry is None:
        return None
    with partition.files.open(entry.path) as source:
        return source.read(0, source.size)


def _remark(path: str, kind: str, text: str) -> Finding:
    return Finding(level=Level.REMARK, file=path, kind=kind, text=text)


def _broken(path: str, damage: DamageError, advice: str) -> Finding:
    return Finding(
        level=Level.DERIVED,
        file=path,
        kind=damage.kind,
        text=f"it cannot be read: {damage.reason}",
        position=damage.position,
        expected=None if damage.expected is None else str(damage.expected),
        found=None if damage.found is None else str(damage.found),
        advice=advice,
    )
