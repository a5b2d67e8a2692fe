"""Finds empty logs that had records, and missing folders of partitions in the metadata log.

Files prove earlier records: checkpoints, producer snapshots, indexes, leader epochs, and committed offsets of groups. A
missing folder is also reported if only the metadata log assigns it to an existing log dir. Only ``kdump check`` finds
missing folders without a metadata log, and logs that lack just their last records.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kdump.broker_start import log_folder
from kdump.broker_start.broker_dirs import RESERVED, StartOptions, brokers
from kdump.checks.evidence import committed, epochs_of, evidence_of, is_credible
from kdump.errors import SILENT, DamageError, UnreadableError, discard, many_are
from kdump.formats import checkpoints
from kdump.internal_topics import CLUSTER_METADATA, CONSUMER_OFFSETS
from kdump.log_dirs import file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.broker_start.broker_dirs import BrokerDirs
    from kdump.broker_start.log_folder import LogDirFiles
    from kdump.broker_start.outcome import Checkpointed
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.log_dir_state import Offsets
    from kdump.log_dirs.partition import Partition


Place = TypeVar("Place")
"""A log dir, or its path."""
EVIDENCE: Final = frozenset({CLUSTER_METADATA, CONSUMER_OFFSETS})
"""The topics whose records have facts about partitions of other topics."""


class Shortfall(NamedTuple):
    """A partition that lacks all its records. ``missing``: their number; 0 if unknown, or if there may be none."""

    topic: str
    partition: int
    file: str
    """The path of the partition folder, even if it is missing."""
    text: str
    missing: int
    strays: str
    """The path of a -stray folder with records of the partition, but of no other known topic id; "" without one."""


def evidence_text(reached: Mapping[str, int]) -> str:
    """Return the end offsets that files prove, as a list for a message. ``reached``: kind of file -> end offset."""
    return ", ".join(f"{what}: {offset}" for what, offset in reached.items() if offset)


def absent_text(name: str, broker: str, where: str, reached: Mapping[str, int]) -> str:
    """Return the message on a partition without a folder on the broker to which it is assigned."""
    most = max(reached.values(), default=0)
    gone = f"{many_are(most, 'record')} missing ({evidence_text(reached)})" if most else "a start creates an empty log"
    if reached and not most:
        gone = "the partition was empty"
    return f"{name} is assigned to {broker}{where}, but has no folder: {gone}"


def missing_text(end: int, reached: Mapping[str, int]) -> str:
    """Return the message on a log that ends at ``end``, but had higher offsets. ``reached``: kind of file -> end."""
    most = max(reached.values())
    return (
        f"{many_are(most - end, 'record')} missing: the log ends at offset {end}, but offsets below {most} were "
        f"written ({evidence_text(reached)})"
    )


class CommittedOffsets:
    """The highest offset that any group has committed for each partition. The offsets are read at first use."""

    def __init__(self, partitions: Iterable[Partition]) -> None:
        self._partitions = partitions

    @cached_property
    def _offsets(self) -> dict[tuple[str, int], int]:
        found: dict[tuple[str, int], int] = {}
        for part in self._partitions:
            if part.topic == CONSUMER_OFFSETS:
                for key, offset in committed(CONSUMER_OFFSETS, part, {}):
                    found[key] = max(offset if is_credible(offset) else 0, found.get(key, 0))
        return found

    def of(self, topic: str, number: int) -> dict[str, int]:
        """Return "committed by a group" -> the partition's highest committed offset, or {} without such an offset."""
        offset = self._offsets.get((topic, number), 0)
        return {"committed by a group": offset} if offset > 0 else {}


def _offsets(log_dir: LogDirFiles, name: str) -> Offsets:
    """Return partition -> offset of a checkpoint; empty if it is absent or broken (a check reports a broken one)."""
    data = log_dir.read_if_present(name)
    try:
        entries = () if data is None else checkpoints.read(data)
    except DamageError:
        return {}
    return {(topic, number): offset for topic, number, offset in entries}


def checkpointed(offsets: Callable[[str], Offsets]) -> Checkpointed:
    """Return high watermarks and recovery points of a log dir. ``offsets``: file name -> offsets.

    An incredible offset is left out, and so is 0 beside it: the partition may have had records.
    """
    found: Checkpointed = {}
    for what, name in (
        ("high watermark", file_names.HIGH_WATERMARKS),
        ("recovery point", file_names.RECOVERY_POINTS),
    ):
        for key, offset in offsets(name).items():
            found.setdefault(key, {})[what] = offset
    for key, marks in found.items():
        if any(marks.values()):
            found[key] = {what: offset for what, offset in marks.items() if is_credible(offset)}
    return found


def highest(dirs: Mapping[Place, Checkpointed], topic: str, number: int) -> dict[str, int]:
    """Return kind of checkpoint -> the highest end offset of a partition in the checkpoints of all log dirs."""
    found: dict[str, int] = {}
    for each in dirs.values():
        for what, offset in each.get((topic, number), {}).items():
            found[what] = max(offset, found.get(what, 0))
    return found


def named_in(dirs: Mapping[Place, Checkpointed], topic: str, number: int) -> Place | None:
    """Return the log dir whose checkpoints have the highest end offset of a partition; None if it is in none."""
    marks = {place: each[topic, number] for place, each in dirs.items() if (topic, number) in each}
    found = {place: max(each.values(), default=0) for place, each in marks.items()}
    return max(found, key=found.__getitem__, default=None)


def shortfalls(
    places: Iterable[tuple[Files, str]],
    partitions: Sequence[Partition],
    takes: Callable[[str, int], bool],
    fail: Callable[[UnreadableError], None] = lambda _: None,
) -> Iterator[Shortfall]:
    """Yield the partitions that lack all their records. ``takes`` returns whether a partition is requested.

    ``places`` are log dirs. ``partitions`` are the folders found in them. ``fail`` receives an unreadable file, which
    ends the search in the log dirs of its broker. Grouping the log dirs may raise StoreError.
    """
    known = {part.files.shown(part.folder): part for part in partitions}
    for broker in brokers(places, StartOptions()):
        try:
            yield from _BrokerShortfalls(broker, known, takes).all()
        except UnreadableError as error:
            fail(error)


class _BrokerShortfalls:
    def __init__(self, broker: BrokerDirs, known: Mapping[str, Partition], takes: Callable[[str, int], bool]) -> None:
        self.dirs = broker.log_dirs
        self._known, self._takes = known, takes
        self._ids = {each.log_dir: each.ids for each in broker.ids if each.ids is not None}
        self._node = next((each.node_id for each in self._ids.values() if each.node_id is not None), None)
        self._folders: dict[tuple[str, int], list[log_folder.LogFolder]] = {}
        for each in self.dirs:
            for entry in each.entries.values():
                parsed = file_names.parse_folder(entry.name) if entry.is_folder else None
                if parsed is not None and (parsed.topic in EVIDENCE or takes(parsed.topic, parsed.partition)):
                    folder = log_folder.LogFolder.of(each, entry, StartOptions().limit)
                    self._folders.setdefault((parsed.topic, parsed.partition), []).append(folder)
        commits = [held for (topic, _), held in self._folders.items() if topic == CONSUMER_OFFSETS]
        self._committed = CommittedOffsets(folder.partition for held in commits for folder in held)
        self._log_starts: dict[LogDirFiles, Offsets] = {}

    def all(self) -> Iterator[Shortfall]:
        for (topic, number), folders in sorted(self._folders.items()):
            if topic != CLUSTER_METADATA and self._takes(topic, number):
                yield from self._empty(topic, number, folders)
        if self._image is not None and self._node is not None:
            yield from self._absent(self._image, self._node)

    def _empty(self, topic: str, number: int, folders: list[log_folder.LogFolder]) -> Iterator[Shortfall]:
        in_use = [folder for folder in folders if not folder.parsed.state]
        for folder in in_use if len(in_use) == 1 else ():
            part = self._known.get(folder.name) or folder.partition
            logs = part.logs
            if any(each.size for each in logs) or any(each.path.endswith(file_names.SWAP) for each in part.segments):
                continue
            end = max([each.base_offset or 0 for each in logs] + [self._log_start(folder.log_dir, topic, number)])
            reached = evidence_of(folder.partition, epochs_of(folder.partition)) | self._reached(topic, number)
            if max(reached.values(), default=0) > end:
                yield self._of(topic, number, folder.name, missing_text(end, reached), max(reached.values()) - end)

    def _absent(self, image: ClusterImage, node: int) -> Iterator[Shortfall]:
        here = {found.directory_id: each for each, found in self._ids.items() if found.directory_id is not None}
        for name, topic in sorted(image.topics.by_name.items()):
            for number, state in sorted(topic.partitions.items()):
                folders = self._folders.get((name, number), [])
                directory = state.directory_of(node)
                if directory is None or not self._takes(name, number):
                    continue
                if any(
                    not folder.parsed.state or folder.parsed.state == file_names.FUTURE_FOLDER for folder in folders
                ):
                    continue
                reached = self._reached(name, number)
                log_dir = here.get(directory)
                if log_dir is None and (int.from_bytes(directory, "big") >= RESERVED or not any(reached.values())):
                    continue  # the partition may be in a log dir that was not given
                if reached and not any(reached.values()):
                    continue  # the partition was empty
                where = "" if log_dir is None else f" in {log_dir.name}"
                text = absent_text(f"{name}-{number}", f"broker {node}", where, reached)
                place = log_dir or named_in(self._checkpointed, name, number) or self.dirs[0]
                file = place.shown(f"{name}-{number}")
                yield self._of(name, number, file, text, max(reached.values(), default=0))

    def _of(self, topic: str, number: int, file: str, text: str, missing: int) -> Shortfall:
        found = None if self._image is None else self._image.topics.by_name.get(topic)
        held = [
            folder.name
            for folder in self._folders.get((topic, number), ())
            if folder.parsed.state == file_names.STRAY_FOLDER
            and any(each.size for each in folder.partition.segments)
            and (found is None or folder.partition.topic_id(discard) in {None, found.id})
        ]
        stray = held[0] if held else ""
        return Shortfall(
            topic, number, file, text + (f"; {stray} has records of the partition" if stray else ""), missing, stray
        )

    def _reached(self, topic: str, number: int) -> dict[str, int]:
        return highest(self._checkpointed, topic, number) | self._committed.of(topic, number)

    def _log_start(self, log_dir: LogDirFiles, topic: str, number: int) -> int:
        found = self._log_starts.get(log_dir)
        if found is None:
            found = self._log_starts[log_dir] = _offsets(log_dir, file_names.LOG_STARTS)
        return found.get((topic, number), 0)

    @cached_property
    def _checkpointed(self) -> dict[LogDirFiles, Checkpointed]:
        return {each: checkpointed(partial(_offsets, each)) for each in self.dirs}

    @cached_property
    def _image(self) -> ClusterImage | None:
        copies = [folder.partition for folder in self._folders.get((CLUSTER_METADATA, 0), ())]
        if not copies:
            return None
        from kdump.answers.metadata.image import image_of

        return image_of(copies, SILENT)
