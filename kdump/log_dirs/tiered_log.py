"""Local and remote segments of a partition as one log (KIP-405).

A broker deletes local segments that are copied, so the log begins in remote storage and ends on its disk; between
them some segments are in both. Local ones are taken where they are. Remote ones may overlap each other too: a new
leader copies its own segments, whose borders are others. Each offset is then taken once, from the later leader epoch.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kdump.errors import UnreadableError, UsageError
from kdump.formats import partition_metadata
from kdump.log_dirs import file_names
from kdump.log_dirs.files import read_whole
from kdump.log_dirs.local import LOCAL
from kdump.log_dirs.remote import places
from kdump.log_dirs.tiered_files import TieredFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.primitives.encryption import PrivateKey


@dataclass(frozen=True)
class RemoteStorage:
    """The location of remote storage: folders or URIs, and private keys by the names of their key pairs."""

    paths: tuple[str, ...]
    keys: Mapping[str, PrivateKey] = field(default_factory=dict)
    list_locked: bool = False
    """Whether segments are listed, too, whose key is not given."""

    @classmethod
    def of(cls, paths: tuple[str, ...], key_files: Mapping[str, str]) -> RemoteStorage | None:
        """Read the keys from files by their names; None if no path is given.

        Raises UsageError for what is no private key, or where there is no path for one, and UnreadableError.
        """
        if not paths:
            if key_files:
                raise UsageError(f"the key {next(iter(key_files))!r} is for remote storage, and none is named")
            return None
        from kdump.primitives.encryption import PrivateKey

        keys = {}
        for name, file in key_files.items():
            with LOCAL.open(file) as source:
                keys[name] = PrivateKey(read_whole(source), file)
        return cls(paths, keys)

    def places(self, fail: Callable[[UnreadableError], None]) -> Iterator[tuple[Files, list[str]]]:
        """Yield each place with the paths in it; segments in it look as those of a log dir do."""
        for files, paths in places(self.paths):
            yield TieredFiles(files, self.keys, fail, list_locked=self.list_locked), paths


class RemotePartitions:
    """The partitions of remote storage, each to be joined with the local one of its topic id."""

    def __init__(
        self,
        partitions: Iterable[Partition],
        fail: Callable[[UnreadableError], None],
        wrong: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._wrong = wrong
        self._left: dict[tuple[str | None, int | None], list[Partition]] = {}
        self._fail = fail
        for one in partitions:
            self._left.setdefault((one.topic, one.partition), []).append(one)

    def join(self, local: Partition) -> Partition:
        """Return a local partition with what of it is in remote storage: a topic of its name may have had other ids."""
        there = self._left.get((local.topic, local.partition), [])
        topic_id = local_id(local, self._fail, self._wrong) if there else None
        for one in there:
            if topic_id is None or topic_id == folder_id(one):
                there.remove(one)
                return joined(local, one)
        return local

    def rest(self) -> Iterator[Partition]:
        """Yield those that were not joined, each offset once."""
        for partitions in self._left.values():
            for one in partitions:
                yield each_offset_once(one)
        self._left.clear()


def local_id(
    local: Partition, fail: Callable[[UnreadableError], None], wrong: Callable[[str], None] = lambda _: None
) -> str | None:
    """Return the topic id that the folder of a local partition notes, as text; None if it notes none.

    ``fail`` takes a file that cannot be read, ``wrong`` one that is not what its format says.
    """
    try:
        found = local.topic_id(wrong)
    except UnreadableError as error:
        fail(error)
        return None
    return None if found is None else partition_metadata.id_text(found)


def folder_id(remote: Partition) -> str | None:
    """Return the topic id that the folder of a partition in remote storage names."""
    found = file_names.TIERED_FOLDER.fullmatch(posixpath.basename(posixpath.dirname(remote.folder.rstrip("/"))))
    return None if found is None else found["id"]


def joined(local: Partition, remote: Partition) -> Partition:
    """Return the partition that both hold."""
    live = [one for one in local.segments if one.path.endswith(f".{file_names.LOG}")]
    begins = min((one.base_offset for one in live if one.base_offset is not None), default=None)
    kept: list[Segment] = []
    for segment in sorted(remote.segments, key=_order):
        base = segment.base_offset
        if base is None or (begins is not None and base >= begins):
            continue
        while kept and kept[-1].base_offset == base:
            kept.pop()
        last = _end(kept[-1]) if kept else None
        end = _end(segment)
        if last is not None and end is not None and end <= last and _epoch(segment) <= _epoch(kept[-1]):
            continue
        if last is not None and last > base:
            kept[-1] = _ending(kept[-1], base)
        kept.append(segment)
    if kept and begins is not None:
        end = _end(kept[-1])
        if end is None or end > begins:
            kept[-1] = _ending(kept[-1], begins)
    segments = sorted((*kept, *local.segments), key=lambda one: (one.base_offset is None, one.base_offset or 0))
    return local._replace(segments=tuple(segments))


def each_offset_once(remote: Partition) -> Partition:
    """Return a partition of remote storage without what other segments of it hold."""
    return joined(remote._replace(segments=(), others=()), remote)


def locked(segment: Segment) -> UnreadableError | None:
    """Return why a listed segment cannot be decrypted, or None if it can be read."""
    return segment.files.locked.get(segment.path) if isinstance(segment.files, TieredFiles) else None


def _ending(segment: Segment, offset: int) -> Segment:
    """Return a segment that ends with an offset. Its indexes have more entries, and are left out."""
    return segment._replace(until=offset, siblings={})


def _order(segment: Segment) -> tuple[int, int, int]:
    """Sort segments so that of those that begin alike the best one is the last."""
    return segment.base_offset or 0, _epoch(segment), _end(segment) or 0


def _end(segment: Segment) -> int | None:
    """Return the offset after a remote segment, as its manifest shows."""
    manifest = segment.files.manifest(segment.path) if isinstance(segment.files, TieredFiles) else None
    return None if manifest is None or manifest.end_offset is None else manifest.end_offset + 1


def _epoch(segment: Segment) -> int:
    manifest = segment.files.manifest(segment.path) if isinstance(segment.files, TieredFiles) else None
    return -1 if manifest is None or manifest.last_epoch is None else manifest.last_epoch
