"""Remote storage of tiered topics (KIP-405): lists its segments as files of a log dir, and joins them with local ones.

For each segment Aiven's remote storage manager writes a ``.log``, an ``.indexes`` and a ``.rsm-manifest``
(:mod:`kdump.formats.rsm_manifest`) below ``<prefix>/<topic>-<topic id>/<partition>``. :class:`TieredFiles` lists them
as a decrypted, decompressed ``.log`` with ``.index``, ``.timeindex`` and ``.txnindex``. It leaves out leader epochs,
and the producer snapshot, which has the state at the end of the segment; in a log dir it has the state at the start.
Files with other suffixes, and a ``.log`` with neither manifest nor ``.indexes`` (another manager's), stay unchanged.

A broker copies a segment to remote storage, and later deletes it from its disk. So the log begins in remote storage and
ends on the disk. A segment in both places is read from the disk. Remote segments overlap each other after a change of
leader, because the new leader's segments have other base offsets. If manifests have the end offsets, each offset is
read once (:func:`joined`).
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Final

from kdump.errors import (
    DamageError,
    IncompleteCopyError,
    PartlyUnreadableError,
    Reporter,
    UnreadableError,
    UsageError,
)
from kdump.formats import partition_metadata, rsm_manifest
from kdump.log_dirs import file_names
from kdump.log_dirs.file_names import INDEX, LOG, TIME_INDEX, TXN_INDEX
from kdump.log_dirs.files import read_file
from kdump.log_dirs.local import LOCAL
from kdump.log_dirs.remote import RemoteFiles, places
from kdump.primitives import compression, encryption
from kdump.primitives.compression import DEFAULT_LIMIT
from kdump.primitives.encryption import PrivateKey
from kdump.primitives.messages import message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from kdump.formats.rsm_manifest import Manifest
    from kdump.log_dirs.files import Entry, Files, OpenSource
    from kdump.log_dirs.partition import Partition, Segment

MANIFEST: Final = "rsm-manifest"
INDEXES: Final = "indexes"
INDEX_FILES: Final = {INDEX: "offset", TIME_INDEX: "timestamp", TXN_INDEX: "transaction"}
"""Suffix of an index file -> its name in a manifest."""
UNREADABLE: Final = b"\xff"
"""The byte that fills an unreadable chunk. No batch begins with it, so a reader continues after the chunk."""
KEPT: Final = 4
"""Maximum number of decompressed chunks of a segment in the cache. The oldest one is dropped first."""
KEPT_BYTES: Final = 64 << 20
"""Maximum size in bytes of all chunks of a segment in the cache. A larger chunk is kept alone."""


def refuse_packed(files: Files, entries: Iterable[Entry], folder: str) -> None:
    """Raise UnreadableError if the first valid manifest in a folder describes a compressed or encrypted segment."""
    for entry in entries:
        if entry.name.endswith(f".{MANIFEST}"):
            try:
                manifest = rsm_manifest.read(read_file(files, entry.path))
            except DamageError:
                continue
            if manifest.is_plain:
                return
            how = "encrypted" if manifest.encryption is not None else "compressed"
            raise UnreadableError(
                files.shown(folder),
                f"this is remote storage, and a plugin has {how} its segments",
                "name the log dirs of the brokers as PATH, and this store with --remote",
            )


class LockedError(UnreadableError):
    """A segment is encrypted, and the private key for it is not given."""


class TieredFiles:
    """Remote storage at ``place``, as a place of files. ``look`` and ``glob`` see the stored objects.

    ``keys``: name of a key pair -> private key. ``fail`` receives the errors of segments that are left out or partly
    read. ``list_locked``: list encrypted segments without a given key; ``open`` raises LockedError for these.
    """

    def __init__(
        self,
        place: Files,
        keys: Mapping[str, PrivateKey],
        fail: Callable[[UnreadableError], None],
        *,
        list_locked: bool = False,
    ) -> None:
        self.place, self._keys, self._fail, self._list_locked = place, keys, fail, list_locked
        self.locked: dict[str, UnreadableError] = {}
        """Path of a listed segment that cannot be decrypted -> its error."""
        self._manifests: dict[str, Manifest] = {}
        self._indexes: dict[str, tuple[str, str]] = {}
        self._data_keys: dict[rsm_manifest.Encryption, bytes] = {}

    def __getstate__(self) -> dict[str, object]:
        """Return the state to pickle. In another process ``fail`` prints on standard error."""
        return {**self.__dict__, "_fail": _print_error}

    def manifest(self, path: str) -> Manifest | None:
        """Return the manifest of a listed segment; None if the segment has no manifest."""
        return self._manifests.get(path)

    def look(self, path: str) -> Entry | None:
        return self.place.look(path)

    def glob(self, pattern: str) -> list[str]:
        return self.place.glob(pattern)

    def shown(self, path: str) -> str:
        return self.place.shown(path)

    def entries(self, folder: str) -> list[Entry]:
        entries = self.place.entries(folder)
        there = {entry.name: entry for entry in entries}
        found = []
        for entry in entries:
            stem, _, suffix = entry.name.rpartition(".")
            if entry.is_folder or suffix not in {LOG, INDEXES, MANIFEST} or f"{stem}.{LOG}" not in there:
                if suffix == MANIFEST and file_names.SEGMENT_NAME.fullmatch(f"{stem}.{LOG}"):
                    self._fail(
                        IncompleteCopyError(self.shown(entry.path), "the manifest exists, but its .log is missing")
                    )
                elif suffix != INDEXES:
                    found.append(entry)
            elif suffix == LOG:
                found += self._segment(stem, entry, there)
        return sorted(found)

    def _segment(self, stem: str, log: Entry, there: Mapping[str, Entry]) -> list[Entry]:
        """Return a segment's files as in a log dir, or nothing if it is unreadable."""
        manifest_entry, indexes = there.get(f"{stem}.{MANIFEST}"), there.get(f"{stem}.{INDEXES}")
        if manifest_entry is None and indexes is None:
            return [log]
        try:
            if manifest_entry is None:
                raise IncompleteCopyError(self.shown(log.path), f"it has no .{MANIFEST}: its copy is not complete")
            manifest = self._manifest(manifest_entry)
            try:
                self._data_key(manifest, manifest_entry)
            except LockedError as error:
                if not self._list_locked:
                    raise
                self.locked[log.path] = error
            stored = sum(manifest.chunks)
            if stored != log.size:
                reason = f"it has {log.size} bytes, but {stored} according to its manifest"
                self._fail(PartlyUnreadableError(self.shown(log.path), reason))
            if indexes is None:
                self._fail(PartlyUnreadableError(self.shown(log.path), f"its .{INDEXES} is missing"))
        except UnreadableError as error:
            self._fail(error)
            return []
        self._manifests[log.path] = manifest
        files = [log._replace(size=manifest.file_size)]
        if log.path in self.locked:
            return files
        for suffix, name in INDEX_FILES.items():
            part = manifest.indexes.get(name)
            if part is None or indexes is None:
                continue
            path = f"{log.path.removesuffix(LOG)}{suffix}"
            self._indexes[path] = log.path, name
            size = part.size - (encryption.IV + encryption.TAG if manifest.encryption and part.size else 0)
            files.append(log._replace(name=f"{stem}.{suffix}", path=path, size=size, identity=(log.identity, suffix)))
        return files

    def _manifest(self, entry: Entry) -> Manifest:
        try:
            return rsm_manifest.read(read_file(self.place, entry.path))
        except DamageError as damage:
            raise IncompleteCopyError(self.shown(entry.path), _without_position(damage)) from None

    def _data_key(self, manifest: Manifest, manifest_entry: Entry) -> None:
        """Decrypt and store the AES key of a segment. Raises UnreadableError."""
        sealed = manifest.encryption
        if sealed is None:
            return
        key = self._keys.get(sealed.key_name)
        if key is None:
            hint = f"--remote-key {sealed.key_name}=PRIVATE.pem"
            reason = f"it is encrypted with the key pair {sealed.key_name!r}, which is not given"
            raise LockedError(self.shown(manifest_entry.path), reason, hint)
        try:
            self._data_keys[sealed] = key.data_key(sealed.data_key)
        except DamageError as damage:
            raise IncompleteCopyError(
                self.shown(manifest_entry.path), f"dataKey: {_without_position(damage)}"
            ) from None

    def open(self, path: str) -> OpenSource:
        if path in self.locked:
            raise self.locked[path]
        if path in self._indexes:
            return self._index(path, *self._indexes[path])
        manifest = self._manifests.get(path)
        if manifest is None:
            return self.place.open(path)
        sealed = manifest.encryption
        key = None if sealed is None else self._data_keys[sealed]
        return ChunkedSource(self.place.open(path), manifest, key, self._fail)

    def _index(self, path: str, log: str, name: str) -> OpenSource:
        manifest = self._manifests[log]
        part, sealed = manifest.indexes[name], manifest.encryption
        with self.place.open(f"{log.removesuffix(LOG)}{INDEXES}") as source:
            data = source.read(part.position, part.size)
        try:
            if len(data) != part.size:
                raise DamageError(
                    "manifest",
                    f"{name} index: the .{INDEXES} object ends before its last byte",
                    expected=part.size,
                    found=len(data),
                )
            if sealed is not None and data:
                data = encryption.decrypt(data, self._data_keys[sealed], sealed.aad)
        except DamageError as damage:
            raise UnreadableError(self.shown(path), _without_position(damage)) from None
        return MemorySource(self.shown(path), data)


class MemorySource:
    def __init__(self, name: str, data: bytes) -> None:
        self.name, self._data, self.size, self.limit = name, data, len(data), DEFAULT_LIMIT

    def __enter__(self) -> MemorySource:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, position: int, size: int) -> bytes:
        return self._data[position : position + size]


class ChunkedSource:
    """A decrypted, decompressed segment. A damaged chunk is reported once, and filled with UNREADABLE."""

    def __init__(
        self, stored: OpenSource, manifest: Manifest, key: bytes | None, fail: Callable[[UnreadableError], None]
    ) -> None:
        self._stored, self._manifest, self._key, self._fail = stored, manifest, key, fail
        self._starts = (0, *accumulate(manifest.chunks))
        self._kept: dict[int, bytes] = {}
        self._failed: set[int] = set()
        self.name, self.size, self.limit = stored.name, manifest.file_size, DEFAULT_LIMIT

    def __enter__(self) -> ChunkedSource:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stored.__exit__(*raised)

    def read(self, position: int, size: int) -> bytes:
        end = min(position + size, self.size)
        if position >= end:
            return b""
        chunk_size = self._manifest.chunk_size
        first, last = position // chunk_size, (end - 1) // chunk_size
        data = b"".join(self._chunk(number) for number in range(first, last + 1))
        return data[position - first * chunk_size : end - first * chunk_size]

    def _chunk(self, number: int) -> bytes:
        data = self._kept.get(number)
        if data is None:
            most = min(KEPT, max(1, KEPT_BYTES // self._manifest.chunk_size))
            while len(self._kept) >= most:
                self._kept.pop(next(iter(self._kept)), None)
            data = self._kept[number] = self._read(number)
        return data

    def _read(self, number: int) -> bytes:
        size = self._manifest.original_size(number)
        start, stored = self._starts[number], self._manifest.chunks[number]
        try:
            if max(size, stored) > self.limit:
                raise DamageError("limit", f"it is larger than the limit ({compression.LIMIT_OPTION})", found=size)
            data = self._stored.read(start, stored)
            if len(data) != stored:
                raise DamageError("chunk", "it is truncated", expected=f"{stored} bytes", found=len(data))
            if self._manifest.encryption is not None and self._key is not None:
                data = encryption.decrypt(data, self._key, self._manifest.encryption.aad)
            if self._manifest.is_compressed:
                data = compression.decompress(compression.ZSTD, data, limit=size)
            if len(data) != size:
                raise DamageError("chunk", "its size differs from the manifest", expected=size, found=len(data))
        except DamageError as damage:
            if number not in self._failed:
                self._failed.add(number)
                where = f"chunk {number}, bytes {start} to {start + stored - 1} of the object"
                self._fail(PartlyUnreadableError(self.name, f"{where}: {_without_position(damage)}"))
            return UNREADABLE * size
        return data


def _print_error(error: UnreadableError) -> None:
    message("error", error)


def _without_position(damage: DamageError) -> str:
    return str(damage).partition(": ")[2]


@dataclass(frozen=True)
class RemoteStorage:
    """The location of remote storage: ``paths`` are folders or URIs; ``keys``: name of a key pair -> private key."""

    paths: tuple[str, ...]
    keys: Mapping[str, PrivateKey] = field(default_factory=dict)
    list_locked: bool = False
    """Whether encrypted segments without a given key are listed too."""

    @classmethod
    def of(cls, paths: tuple[str, ...], key_files: Mapping[str, str]) -> RemoteStorage | None:
        """Return the storage, with keys read from ``key_files``; None if there are no ``paths``.

        Raises UnreadableError, and UsageError for an invalid key or for keys without a path.
        """
        if not paths:
            if key_files:
                raise UsageError(f"--remote-key {next(iter(key_files))} needs --remote: name the remote storage")
            return None
        return cls(paths, {name: PrivateKey(read_file(LOCAL, file), file) for name, file in key_files.items()})

    def places(self, fail: Callable[[UnreadableError], None]) -> Iterator[tuple[Files, list[str]]]:
        """Yield each place with the paths in it. ``fail`` is that of :class:`TieredFiles`."""
        for files, paths in places(self.paths):
            yield TieredFiles(files, self.keys, fail, list_locked=self.list_locked), paths


class RemotePartitions:
    """The partitions of remote storage, to be joined with the local partitions of the same name and topic id."""

    def __init__(self, partitions: Iterable[Partition], report: Reporter) -> None:
        self._report = report
        self._found: dict[tuple[str | None, int | None], list[Partition]] = {}
        self._joined: set[tuple[Files, str]] = set()
        for one in partitions:
            self._found.setdefault((one.topic, one.partition), []).append(one)

    def join(self, local: Partition) -> Partition:
        """Return a replica on disk, joined with the remote partition of its name and (if known) topic id, if any."""
        there = self._found.get((local.topic, local.partition), [])
        topic_id = local_id(local, self._report) if there else None
        one = next((one for one in there if topic_id is None or topic_id == folder_id(one)), None)
        if one is None:
            return local
        self._joined.add((one.files, one.folder))
        return joined(local, one)

    def rest(self) -> Iterator[Partition]:
        """Yield the partitions that were not joined. Segments with known ends do not overlap."""
        for one in chain.from_iterable(self._found.values()):
            if (one.files, one.folder) not in self._joined:
                yield each_offset_once(one)


def local_id(local: Partition, report: Reporter) -> str | None:
    """Return the topic id in ``partition.metadata`` of a local partition, in base64; None without a valid file."""
    try:
        found = local.topic_id(report.damage)
    except UnreadableError as error:
        report.fail(error)
        return None
    return None if found is None else partition_metadata.id_text(found)


def folder_id(remote: Partition) -> str | None:
    """Return the topic id in the path of a partition in remote storage, in base64; None if the path has none."""
    found = re.fullmatch(file_names.TIERED_FOLDER, posixpath.basename(posixpath.dirname(remote.folder.rstrip("/"))))
    return None if found is None else found["id"]


def joined(local: Partition, remote: Partition) -> Partition:
    """Return a partition with local and remote segments, and each offset in one segment if end offsets are known.

    Remote segments that begin at or after the first local one are left out. Of the others, the last one and those with
    known end offsets are read up to the start of the next segment. One is left out if the segment before it has all its
    offsets and the same or a later epoch. If several have the same base offset, that of the latest epoch is kept.
    """
    begins = min((one.base_offset for one in local.logs if one.base_offset is not None), default=None)
    kept: list[Segment] = []
    for base, segment in {one.base_offset: one for one in sorted(remote.segments, key=_order)}.items():
        if base is None or (begins is not None and base >= begins):
            continue
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
    """Return a partition of remote storage without overlaps between segments whose end offsets are known."""
    return joined(remote._replace(segments=(), others=()), remote)


def in_store(partitions: Iterable[Partition]) -> bool:
    """Return whether files are in an object store or HDFS, whose connections do not work in forked processes."""
    found = (files for one in partitions for files in (one.files, *(segment.files for segment in one.segments)))
    return any(isinstance(files.place if isinstance(files, TieredFiles) else files, RemoteFiles) for files in found)


def locked(segment: Segment) -> UnreadableError | None:
    """Return the error of a listed segment that cannot be decrypted, or None if it can be read."""
    return segment.files.locked.get(segment.path) if isinstance(segment.files, TieredFiles) else None


def _ending(segment: Segment, offset: int) -> Segment:
    """Return a segment that ends before ``offset``, without indexes: they have entries after it."""
    return segment._replace(until=offset, siblings={})


def _order(segment: Segment) -> tuple[int, int, int]:
    return segment.base_offset or 0, _epoch(segment), _end(segment) or 0


def _end(segment: Segment) -> int | None:
    """Return the offset after a remote segment; None if its manifest does not have it."""
    manifest = segment.files.manifest(segment.path) if isinstance(segment.files, TieredFiles) else None
    return None if manifest is None or manifest.end_offset is None else manifest.end_offset + 1


def _epoch(segment: Segment) -> int:
    manifest = segment.files.manifest(segment.path) if isinstance(segment.files, TieredFiles) else None
    return -1 if manifest is None or manifest.last_epoch is None else manifest.last_epoch
