"""Partitions and segments as the finder returns them: paths, sizes and offsets of files. No batch is decoded here.

Also finds index ``.swap`` files that a start renames, and batches by offset; divides partitions among workers.
"""

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kdump.errors import DamageError, refused
from kdump.formats.record_layout import LOG_OVERHEAD, SMALLEST_ENTRY
from kdump.log_dirs import file_names
from kdump.log_dirs.files import Entry, Files, OpenSource, Source, read_file, read_index
from kdump.log_dirs.local import LOCAL
from kdump.primitives.compression import DEFAULT_LIMIT
from kdump.primitives.wire import INT32_MAX, Bytes

if TYPE_CHECKING:
    from kdump.formats.leader_epoch import EpochEntry

T = TypeVar("T")

TURN_COST: Final = 1 << 16
"""Opening a partition costs as much time as reading this number of bytes."""


class Segment(NamedTuple):
    """A file such as a ``.log``. ``base_offset`` is the offset in its name or, without one, of its first batch.

    It is None for a file of less than 8 bytes without it, for standard input, and for a compressed file.
    ``siblings``: suffix (``index``, ``timeindex``, ...) -> path of the segment's file with this suffix, if it exists.
    """

    files: Files
    path: str
    size: int
    base_offset: int | None
    siblings: dict[str, str]
    limit: int = DEFAULT_LIMIT
    """Largest batch accepted, compressed or decompressed, in bytes."""
    modified: int | None = None
    """The time of the last write in ms; None if unknown."""
    disk_size: int | None = None
    """The occupied disk space in bytes; None if unknown."""
    until: int | None = None
    """Batches at and above this offset are not read, because the next segment has them. None: all batches are read."""
    start: int = 0
    """The first byte of the file that belongs to the segment: 0, except for parts that a start of a broker makes."""
    special: str = ""

    @property
    def entry(self) -> Entry:
        """The file as an :class:`Entry`. Its ``identity`` is the path."""
        name = posixpath.basename(self.path)
        return Entry(name, self.path, False, self.size, self.path, self.modified, self.disk_size, self.special)

    @property
    def name(self) -> str:
        return self.files.shown(self.path)

    def open(self) -> OpenSource:
        """Open the file for reading. :attr:`until` limits only ``size``. Raises UnreadableError."""
        source = self.files.open(self.path)
        source.limit = self.limit
        if self.until is not None:
            source.size = start_of(source, self.until)
        return source

    def first_offset(self) -> int | None:
        """Return the first offset field (of a wrapper its last offset); None below 8 bytes. Raises UnreadableError."""
        return first_offset_of(self.files, self.path)

    def sibling(self, suffix: str) -> bytes | None:
        """Return the content of the segment's file with this suffix; None if it has none. Raises UnreadableError."""
        path = self.siblings.get(suffix)
        if path is None:
            return None
        return (read_index if suffix in file_names.PREALLOCATED else read_file)(self.files, path)


class Partition(NamedTuple):
    """The segments of one folder in offset order. ``others`` are the other files of the folder.

    ``whole`` is false if the log may have other segments after the first one: the user named single files, and the
    folder has such a segment or is unreadable.
    """

    files: Files
    folder: str
    topic: str | None
    partition: int | None
    segments: tuple[Segment, ...]
    others: tuple[Entry, ...] = ()
    whole: bool = True
    limit: int = DEFAULT_LIMIT
    foreign: bool = False
    """Whether the folder is inside a partition folder, or is in a log dir but has a name that no broker writes."""
    is_named: bool = False
    """Whether the user named the folder or its files. False if the user named a folder above it."""
    is_listed: bool = True
    """Whether ``segments``, ``others`` and ``folders`` are all entries of the folder. False if the user named files."""
    folders: tuple[Entry, ...] = ()
    """The subfolders, and the pipes, sockets and devices without the name of a segment."""
    unnamed: tuple[int, ...] = ()
    """The base offsets of the folder's other segments, if the user named single files of it."""

    @property
    def logs(self) -> list[Segment]:
        """The segments whose names end in ``.log``: no ``.log.swap``, ``.log.cleaned`` or ``.log.deleted``."""
        return [segment for segment in self.segments if segment.path.endswith(f".{file_names.LOG}")]

    @property
    def lacks_end(self) -> bool:
        """Whether the folder has a later segment, which the user did not name."""
        return bool(self.segments and self.unnamed) and max(self.unnamed) > (self.segments[-1].base_offset or 0)

    @property
    def name(self) -> str:
        """Topic and partition as ``orders-0``, or the path of the folder if it has no topic."""
        return self.files.shown(self.folder) if self.topic is None else f"{self.topic}-{self.partition}"

    @property
    def size(self) -> int:
        return sum([segment.size for segment in self.segments])

    @property
    def log_dir(self) -> str:
        """The path of the log dir. It is absolute only if the folder's path is absolute, or ends in ``.`` or ``..``."""
        folder, _, name = self.folder.rstrip("/").rpartition("/")
        if not folder or folder[-1] == "/":  # a check uses the log dir of a partition nine times, so this must be fast
            folder, name = posixpath.split(self.folder.rstrip("/"))
        return posixpath.dirname(self.path_beside("x")) if name in {"", ".", ".."} else folder

    @property
    def base(self) -> str:
        """The name of the folder, even if :attr:`folder` is a path such as ``.``."""
        return posixpath.basename(posixpath.abspath(self.folder) if self.files is LOCAL else self.folder.rstrip("/"))

    @property
    def entries(self) -> list[Entry]:
        """All entries of the folder, by name. The folder must be :attr:`is_listed`."""
        return sorted([*(each.entry for each in self.segments), *self.others, *self.folders])

    @property
    def is_plain(self) -> bool:
        """Whether the folder has only segments with an index, and PLAIN_NAME files, each below 2 GiB: no ``.swap``."""
        if self.folders or not self.is_listed:
            return False
        for each in self.segments:
            named = each.path.endswith(f"/{each.base_offset or 0:0{file_names.PADDED}}.{file_names.LOG}")
            if not named or each.special or each.size > INT32_MAX or file_names.INDEX not in each.siblings:
                return False
        return all(each.size <= INT32_MAX and file_names.PLAIN_NAME.fullmatch(each.name) for each in self.others)

    @property
    def state_dir(self) -> str:
        """The folder that may have checkpoints: the log dir, or this folder itself if its name has no topic."""
        return self.folder if self.topic is None else self.log_dir

    def file(self, name: str) -> bytes | None:
        """Return the content of a file of the folder, no segment; None if it is absent. Raises UnreadableError."""
        path = next((entry.path for entry in self.others if entry.name == name), None)
        if path is None:
            path = posixpath.join(self.folder, name)
            if self.is_listed or self.files.look(path) is None:
                return None
        return read_file(self.files, path)

    def topic_id(self, wrong: Callable[[str], None]) -> bytes | None:
        """Return the topic id of ``partition.metadata``, or None if the file is missing or invalid.

        ``wrong`` receives a sentence about an invalid file. Such a file stops a broker or takes its log dir offline, so
        every command must report it as damage. Raises UnreadableError.
        """
        from kdump.formats import partition_metadata

        found = self._sound(file_names.PARTITION_METADATA, partition_metadata.read, wrong)
        return None if found is None else found.topic_id

    def leader_epochs(self, wrong: Callable[[str], None]) -> "tuple[EpochEntry, ...] | None":
        """Return the entries of ``leader-epoch-checkpoint`` in file order. ``wrong`` and None: see :meth:`topic_id`."""
        from kdump.formats import leader_epoch

        return self._sound(file_names.LEADER_EPOCHS, leader_epoch.read, wrong)

    def _sound(self, name: str, read: Callable[[Bytes], T], wrong: Callable[[str], None]) -> T | None:
        data = self.file(name)
        try:
            return None if data is None else read(data)
        except DamageError as damage:
            wrong(refused(self.files.shown(posixpath.join(self.folder, name)), damage))
            return None

    def path_beside(self, name: str) -> str:
        """Return the path of a file in the log dir of the folder."""
        return posixpath.join(folder_above(self.files, self.folder), name)

    def beside(self, name: str) -> bytes | None:
        """Return the content of a file in the log dir, or None if it is absent. Raises UnreadableError."""
        path = self.path_beside(name)
        return None if self.files.look(path) is None else read_file(self.files, path)


def index_swaps(partition: Partition) -> dict[str, str]:
    """Return new name -> path of each index ``.swap`` file that a start renames, if it has no ``.log.swap`` beside it.

    A start renames each ``.swap`` file whose offset is below the offsets of all ``.cleaned`` files (LogLoader,
    ``removeTempFilesAndCollectSwapFiles`` and ``load``).
    """
    found = {each.name: each.path for each in partition.others if each.name.endswith(f".{file_names.SWAP}")}
    if not found:
        return {}
    logs = {posixpath.basename(each.path) for each in partition.segments}
    least = least_cleaned(partition)
    lone: dict[str, str] = {}
    for name, path in found.items():
        target = name.removesuffix(f".{file_names.SWAP}")
        named = file_names.INDEX_NAME.fullmatch(target)
        has_log = named is not None and f"{named['stem']}.{file_names.LOG}.{file_names.SWAP}" in logs
        if named is not None and not has_log and (least is None or stem_offset(name) < least):
            lone[target] = path
    return lone


def least_cleaned(partition: Partition) -> int | None:
    """Return the least base offset of ``.cleaned`` files, if any. A start deletes ``.swap`` files at or above it."""
    names = [posixpath.basename(each.path) for each in partition.segments] + [each.name for each in partition.others]
    return min((stem_offset(name) for name in names if name.endswith(f".{file_names.CLEANED}")), default=None)


def stem_offset(name: str) -> int:
    """Return the offset at the beginning of a file name; 0 if it has no offset."""
    return file_names.offset_of(name) or 0


def with_index_swaps(segments: Sequence[Segment], lone: Mapping[str, str]) -> list[Segment]:
    """Return segments with the index files that they have after a start. ``lone``: result of :func:`index_swaps`."""
    return [each._replace(siblings=each.siblings | _renamed(each, lone)) for each in segments] if lone else [*segments]


def _renamed(segment: Segment, lone: Mapping[str, str]) -> dict[str, str]:
    names = {suffix: file_names.beside_log(posixpath.basename(segment.path), suffix) for suffix in file_names.INDEXES}
    return {suffix: lone[name] for suffix, name in names.items() if name in lone}


def task_groups(
    partitions: Sequence[Partition], count: int, unit: Callable[[Partition], object] = id
) -> list[list[Partition]]:
    """Divide partitions, in order, into groups of about equal work: about four groups for each of ``count`` workers.

    Consecutive partitions of the same ``unit`` stay in one group. By default each partition is a unit.
    """
    room = max(1, sum(map(_cost, partitions)) // (4 * count))
    cut: list[list[Partition]] = []
    held = room
    for partition in partitions:
        if not cut or (held >= room and unit(partition) != unit(cut[-1][-1])):
            cut.append([])
            held = 0
        cut[-1].append(partition)
        held += _cost(partition)
    return cut


def _cost(partition: Partition) -> int:
    return TURN_COST + partition.size


def start_of(source: Source, offset: int) -> int:
    """Return the position of the first batch whose offset field is at least ``offset``.

    Return the size of the source if there is no such batch, or if the size field of this or an earlier one is invalid.
    """
    position = 0
    while position < source.size:
        data = source.read(position, LOG_OVERHEAD.size)
        if len(data) < LOG_OVERHEAD.size:
            return source.size
        overhead = LOG_OVERHEAD.read(data)
        if overhead.size < SMALLEST_ENTRY or position + LOG_OVERHEAD.size + overhead.size > source.size:
            return source.size
        if overhead.offset >= offset:
            return position
        position += LOG_OVERHEAD.size + overhead.size
    return position


def folder_above(files: Files, folder: str) -> str:
    return posixpath.dirname(posixpath.abspath(folder) if files is LOCAL else folder)


def first_offset_of(files: Files, path: str) -> int | None:
    with files.open(path) as source:
        data = source.read(0, LOG_OVERHEAD.offsets["size"])
    return int.from_bytes(data, "big", signed=True) if len(data) == LOG_OVERHEAD.offsets["size"] else None


def listed_log_dirs(partitions: Iterable[Partition]) -> dict[tuple[Files, str], Partition]:
    """Return the listed folders whose names have no topic, by place and path: they may be log dirs."""
    return {(one.files, one.folder): one for one in partitions if one.topic is None and one.is_listed}
