"""Records that log dirs should hold and do not: partitions that have no folder, and logs that are empty.

All evidence in the files counts: the assignment in the metadata log, high watermarks and recovery points, producer
snapshots, indexes, leader epochs, and offsets that groups have committed. No log is read: ``kdump check`` finds records
that are missing at the end of a log which holds others.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kdump.answers.metadata.image import image_of
from kdump.broker_start import ids, log_folder, metadata_log
from kdump.broker_start.start import NO_DIRECTORIES, StartOptions, brokers
from kdump.checks.evidence import committed, epochs_of, evidence_of
from kdump.errors import SILENT, DamageError, UnreadableError, many_are
from kdump.formats import checkpoints
from kdump.internal_topics import consumer_offsets
from kdump.log_dirs import file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.broker_start.log_dir_files import LogDirFiles
    from kdump.broker_start.start import BrokerDirs
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition


class Shortfall(NamedTuple):
    """A partition that lacks all its records. ``missing`` is their number, 0 where no file has it."""

    topic: str
    partition: int
    file: str
    """The folder, or where it should be."""
    text: str
    missing: int
    strays: str
    """The -stray folder that holds records of it, empty for none."""


def in_words(reached: Mapping[str, int]) -> str:
    """Return the offsets that files have a log reach to, by the file in words, for a sentence."""
    return ", ".join(f"{what}: {offset}" for what, offset in reached.items() if offset)


def absent_text(name: str, broker: str, where: str, reached: Mapping[str, int]) -> str:
    """Return the sentence on a partition that is assigned to this broker and has no folder."""
    most = max(reached.values(), default=0)
    gone = f"{many_are(most, 'record')} missing ({in_words(reached)})" if most else "a start begins an empty log"
    if reached and not most:
        gone = "it was empty"
    return f"{name} is assigned to {broker}{where}, and no folder holds it: {gone}"


def missing_text(end: int, reached: Mapping[str, int]) -> str:
    """Return the sentence on a log that ends before offsets that were written."""
    most = max(reached.values())
    return (
        f"{many_are(most - end, 'record')} missing: the log ends at offset {end}, and offsets up to {most} were "
        f"written ({in_words(reached)})"
    )


def committed_offsets(partitions: Iterable[Partition]) -> dict[tuple[str, int], int]:
    """Return the highest offset that a group has committed, by topic and partition.

    ``partitions`` are those of ``__consumer_offsets``.
    """
    found: dict[tuple[str, int], int] = {}
    for part in partitions:
        for key, offset in committed(consumer_offsets.TOPIC, part, {}):
            found[key] = max(offset, found.get(key, 0))
    return found


def of_groups(offsets: Mapping[tuple[str, int], int], topic: str, number: int) -> dict[str, int]:
    """Return the offsets that groups committed, as evidence of the partition's end."""
    offset = offsets.get((topic, number), 0)
    return {"committed by a group": offset} if offset > 0 else {}


def shortfalls(
    places: Iterable[tuple[Files, str]],
    partitions: Sequence[Partition],
    takes: Callable[[str, int], bool],
    fail: Callable[[UnreadableError], None] = lambda _: None,
) -> Iterator[Shortfall]:
    """Yield the partitions that lack all their records, of those that ``takes`` wants.

    ``places`` are log dirs, ``partitions`` the folders that were found there. ``fail`` takes what cannot be read.
    """
    known = {part.files.shown(part.folder): part for part in partitions}
    for broker in brokers(places, StartOptions()):
        try:
            yield from _BrokerShortfalls(broker, known, takes).all()
        except UnreadableError as error:
            fail(error)


class _BrokerShortfalls:
    """The shortfalls in the log dirs of one broker."""

    def __init__(self, broker: BrokerDirs, known: Mapping[str, Partition], takes: Callable[[str, int], bool]) -> None:
        self.dirs = broker.log_dirs
        self._known, self._takes = known, takes
        self._ids = {each: found for each in self.dirs if (found := ids.read(each).ids) is not None}
        self._node = next((each.node_id for each in self._ids.values()), None)
        self._folders: dict[tuple[str, int], list[log_folder.LogFolder]] = {}
        for each in self.dirs:
            for entry in each.entries.values():
                parsed = file_names.parse_folder(entry.name) if entry.is_folder else None
                if parsed is not None:
                    folder = log_folder.LogFolder.of(each, entry, StartOptions().limit)
                    self._folders.setdefault((parsed.topic, parsed.partition), []).append(folder)

    def all(self) -> Iterator[Shortfall]:
        for (topic, number), folders in sorted(self._folders.items()):
            if topic != metadata_log.TOPIC and self._takes(topic, number):
                yield from self._empty(topic, number, folders)
        if self._image is not None and self._node is not None:
            yield from self._absent(self._image, self._node)

    def _empty(self, topic: str, number: int, folders: list[log_folder.LogFolder]) -> Iterator[Shortfall]:
        """Yield that the folder in use of a partition holds no batch, though offsets were written."""
        in_use = [folder for folder in folders if not folder.parsed.state]
        for folder in in_use if len(in_use) == 1 else ():
            part = self._known.get(folder.name) or folder.partition
            logs = [each for each in part.segments if each.path.endswith(f".{file_names.LOG}")]
            if any(each.size for each in logs) or any(each.path.endswith(file_names.SWAP) for each in part.segments):
                continue
            end = max(
                [each.base_offset or 0 for each in logs]
                + [self._marks(folder.log_dir, file_names.LOG_STARTS).get((topic, number), 0)]
            )
            reached = evidence_of(folder.partition, epochs_of(folder.partition)) | self._reached(topic, number)
            if max(reached.values(), default=0) > end:
                yield self._of(topic, number, folder.name, missing_text(end, reached), max(reached.values()) - end)

    def _absent(self, image: ClusterImage, node: int) -> Iterator[Shortfall]:
        """Yield the partitions that the metadata log assigns to these log dirs, and that no folder in use holds."""
        here = {found.directory_id: each for each, found in self._ids.items() if found.directory_id is not None}
        for name, topic in sorted(image.topics.by_name.items()):
            for number, state in sorted(topic.partitions.items()):
                folders = self._folders.get((name, number), [])
                if node not in state.replicas or not self._takes(name, number):
                    continue
                if any(
                    not folder.parsed.state or folder.parsed.state == file_names.FUTURE_FOLDER for folder in folders
                ):
                    continue
                directory = state.directories[state.replicas.index(node)]
                reached = self._reached(name, number)
                log_dir = here.get(directory)
                if log_dir is None and (
                    int.from_bytes(directory, "big") >= NO_DIRECTORIES or not any(reached.values())
                ):
                    continue  # it lies in a log dir that was not given, or may do
                if reached and not any(reached.values()):
                    continue  # it was empty
                where = "" if log_dir is None else f" in {log_dir.name}"
                text = absent_text(f"{name}-{number}", f"broker {node}", where, reached)
                file = (log_dir or self.dirs[0]).shown(f"{name}-{number}")
                yield self._of(name, number, file, text, max(reached.values(), default=0))

    def _of(self, topic: str, number: int, file: str, text: str, missing: int) -> Shortfall:
        """Return a shortfall, with the -stray folder that holds records of the partition."""
        held = [
            folder.name
            for folder in self._folders.get((topic, number), ())
            if folder.parsed.state == file_names.STRAY_FOLDER and any(each.size for each in folder.partition.segments)
        ]
        stray = held[0] if held else ""
        return Shortfall(
            topic, number, file, text + (f"; {stray} holds records of it" if stray else ""), missing, stray
        )

    def _reached(self, topic: str, number: int) -> dict[str, int]:
        """Return the offsets that checkpoints and groups have of a partition, by the file in words."""
        reached: dict[str, int] = {}
        for what, name in (
            ("high watermark", file_names.HIGH_WATERMARKS),
            ("recovery point", file_names.RECOVERY_POINTS),
        ):
            for each in self.dirs:
                offset = self._marks(each, name).get((topic, number))
                if offset is not None:
                    reached[what] = max(offset, reached.get(what, 0))
        return reached | of_groups(self._committed, topic, number)

    def _marks(self, log_dir: LogDirFiles, name: str) -> dict[tuple[str, int], int]:
        """Return the offsets of a checkpoint of a log dir; or none if the file is absent or broken."""
        found = self._read.get((log_dir, name))
        if found is None:
            try:
                data = log_dir.read(name) if name in log_dir.entries else None
                entries = () if data is None else checkpoints.read(data)
                found = {(str(entry[0]), int(entry[1] or 0)): entry.offset for entry in entries}
            except DamageError:  # a check of the log dir reports it
                found = {}
            self._read[log_dir, name] = found
        return found

    @cached_property
    def _read(self) -> dict[tuple[LogDirFiles, str], dict[tuple[str, int], int]]:
        return {}

    @cached_property
    def _committed(self) -> dict[tuple[str, int], int]:
        """The highest offset that a group has committed, by topic and partition. Few log dirs need it."""
        return committed_offsets(
            folder.partition
            for (topic, _), folders in self._folders.items()
            for folder in folders
            if topic == consumer_offsets.TOPIC
        )

    @cached_property
    def _image(self) -> ClusterImage | None:
        copies = [folder.partition for folder in self._folders.get((metadata_log.TOPIC, 0), ())]
        return image_of(copies, SILENT) if copies else None
