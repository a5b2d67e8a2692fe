"""Finds the partitions, with their segments in offset order, in the paths that a user names.

Files, globs, partition folders, log dirs, archives, URIs and ``-`` become :class:`Partition` objects. Folders are
listed one at a time, and only archives stay open.

Names: ``<topic>-<partition>`` is a partition folder; ``<topic>-<partition>.<uuid>-delete``, ``-future`` and ``-stray``
are leftovers (``UnifiedLog``). ``<base offset>.log`` is a segment, ``<base offset>-<uuid>.log`` one of remote storage
(KIP-405). While a broker adds or removes a segment, ``.deleted``, ``.swap`` or ``.cleaned`` follows (``LogFileUtils``).
"""

from __future__ import annotations

import os
import posixpath
import sys
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import RAISING, DamageError, Reporter, StoreError, UnreadableError, discard, first_of, many
from kdump.formats import record_layout
from kdump.log_dirs import archive_formats, file_names
from kdump.log_dirs.file_names import (
    LOG_DIR_FILE,
    SEGMENT_NAME,
    SIBLINGS,
    Name,
    folder_name,
    folder_name_in,
    ignored_base,
    is_foreign,
    is_sibling,
    leftover_state,
    parse_folder,
)
from kdump.log_dirs.files import Entry, read_file
from kdump.log_dirs.local import LOCAL
from kdump.log_dirs.partition import Partition, Segment, first_offset_of
from kdump.primitives.compression import COPIES, DEFAULT_LIMIT
from kdump.primitives.messages import did_you_mean
from kdump.primitives.terminal import is_selected

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Self

    from kdump.formats.meta_properties import MetaProperties
    from kdump.log_dirs import archives
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.tiered_storage import RemoteStorage


NO_SEGMENT: Final = "no segment is in this folder or below it"
_MANY: Final = 3
_LOG: Final = f".{file_names.LOG}"
_MANIFEST: Final = "rsm-manifest"
"""The suffix of the files in which plugins for remote storage describe segments."""
_MADE: Final = {
    file_names.COPY: "a copy of",
    file_names.COPY_PART: "an incomplete copy of",
    file_names.ASIDE: "what was moved out of",
    file_names.REBUILT: "log dirs that kdump rebuild-cluster made from",
}
"""Suffix of a folder next to a log dir -> its content, for a note."""


class Wanted(NamedTuple):
    """The partitions and files that a command reads. ``topics`` are names or globs; empty means all topics."""

    topics: tuple[str, ...] = ()
    partitions: frozenset[int] = frozenset()
    test: Callable[[Name], bool] | None = None
    """A further condition on the name of a folder."""
    leftovers: bool = False
    """Whether ``.deleted``, ``.swap``, ``.cleaned`` files and -delete, -future, -stray folders in a path are read."""
    siblings: bool = False
    """Whether named files without records, such as indexes, are selected. They become ``Partition.others``."""
    max_batch_bytes: int = DEFAULT_LIMIT
    """Largest batch accepted, compressed or decompressed, in bytes. The limit does not select files."""
    log_dirs: bool = False
    """Whether folders without a log are selected if they have metadata snapshots or the files of a log dir."""
    every_folder: bool = False
    """Whether folders are selected regardless of their contents."""
    remote: RemoteStorage | None = None
    """Remote storage, whose segments are joined with the local segments of a partition."""

    def takes(self, name: Name) -> bool:
        if self.topics and (name.topic is None or not any(is_selected(name.topic, topic) for topic in self.topics)):
            return False
        if self.test is not None and not self.test(name):
            return False
        return not self.partitions or name.partition in self.partitions

    def for_form(self, form: str) -> Self:
        """Return a copy with a lower batch limit if the format or command ``form`` keeps several copies of a batch."""
        return self._replace(max_batch_bytes=self.max_batch_bytes // COPIES.get(form, 1))

    def missing(self, names: Collection[Name], paths: Sequence[str]) -> Iterator[str]:
        """Yield a sentence for each --topic that selects none of ``names``; without --topic, one for --partition."""
        numbers = " with a number in --partition" if self.partitions else ""
        for topic in self.topics or ([None] if self.partitions else []):
            one = self._replace(topics=() if topic is None else (topic,))
            if not any(one.takes(name) for name in names):
                where = _without_secret(paths[0]) if len(paths) == 1 else "these paths"
                of = "" if topic is None else f" of topic '{topic}'"
                yield f"no partition{of}{numbers} is in {where}{_hint(topic, names)}"

    @property
    def is_choosy(self) -> bool:
        """Whether only some topics or partitions are selected."""
        return bool(self.topics or self.partitions or self.test)


def _hint(topic: str | None, names: Collection[Name]) -> str:
    numbers = [
        name.partition for name in names if name.partition is not None and (topic is None or topic == name.topic)
    ]
    if numbers:
        low, high = min(numbers), max(numbers)
        return f"; found partition {low}" if low == high else f"; found partitions {low} to {high}"
    return "" if topic is None else did_you_mean(topic, {name.topic for name in names if name.topic is not None})


def _no_segment(head: bytes) -> str | None:
    """Return why a file with these first bytes is not a segment; None if it may be one (or is preallocated)."""
    at = record_layout.MAGIC_POSITION
    if not head.strip(b"\0"):
        return None
    if len(head) < record_layout.UP_TO_MAGIC:
        return f"it has only {many(len(head), 'byte')}" if _is_text(head) else None
    if head[at] > record_layout.MAGIC_2:
        return f"byte {at} holds {head[at]}, where the magic 0, 1 or 2 is expected"
    start, least = record_layout.ENTRY_START.read(head), record_layout.SMALLEST_ENTRY
    if start.size < least:
        at = record_layout.ENTRY_START.offsets["size"]
        return f"the size at byte {at} is {start.size}, where {least} or more is expected"
    return None if start.offset >= 0 else f"the offset at byte 0 is {start.offset}, which is below 0"


def _is_text(head: bytes) -> bool:
    text = head.decode("utf-8", "ignore")
    return len(text.encode()) > len(head) - 4 and all(letter.isprintable() or letter in "\t\r\n" for letter in text)


class Finder:
    """Finds partitions. Segments left out of selected folders become notes of ``report``, unreadable files failures.

    If ``brief``, only these have notes: members of archives and ``lost+found`` folders that cannot be read, and folders
    that kdump made.
    """

    def __init__(self, wanted: Wanted | None = None, report: Reporter = RAISING, *, brief: bool = False) -> None:
        self.wanted = wanted or Wanted()
        self.report, self.brief = report, brief
        self.note, self.fail = discard if brief else report.note, report.fail
        self.found_names: set[Name] = set()
        """The names of folders with a log or a named file, of unreadable ones, and of unselected partition folders."""
        self.unread: set[Name] = set()
        """The names of unreadable folders."""
        self.without_log: list[UnreadableError] = []
        """The errors on named folders without a log that are not reported because of :attr:`Wanted.every_folder`."""
        self._seen: set[object] = set()
        self._skipped: list[str] = []
        self._packed: list[Entry] = []
        """The archives in folders, which are not opened."""
        self._has_packed_segments = False
        self._is_read_before = False
        """Whether a folder below the last named folder was read before, in another path."""
        self._leftovers: list[Entry] = []
        """The leftover folders below the last named folder that were left out."""

    def find(self, paths: Iterable[str], files: Files | None = None) -> Iterator[Partition]:
        """Yield the partitions in ``paths``, in this order; in a folder they are in the order of topic and partition.

        If ``files`` is None, a path may be a URI (:mod:`kdump.log_dirs.remote`). Consecutive files of one folder become
        one partition, and renamed copies of its segments others. Partitions only in remote storage come last.
        """
        if self.wanted.remote is None:
            yield from self._everywhere(paths, files)
            return
        from kdump.log_dirs.tiered_storage import RemotePartitions

        remote = RemotePartitions(self.remote(), self.report)
        for partition in self._everywhere(paths, files):
            yield remote.join(partition)
        yield from remote.rest()

    def remote(self) -> Iterator[Partition]:
        """Yield the partitions in remote storage. Their segments may overlap."""
        wanted = self.wanted._replace(remote=None, leftovers=False, siblings=False, log_dirs=False, every_folder=False)
        finder = Finder(wanted, self.report, brief=self.brief)
        finder.found_names, finder.unread = self.found_names, self.unread
        storage = self.wanted.remote
        for files, paths in () if storage is None else storage.places(self.fail):
            yield from finder.find(paths, files)

    def _everywhere(self, paths: Iterable[str], files: Files | None) -> Iterator[Partition]:
        if files is not None:
            yield from self._find(paths, files)
            return
        from kdump.log_dirs.remote import as_written, places

        for place, inside in places(paths, as_written):
            yield from self._find(inside, place)

    def _find(self, paths: Iterable[str], files: Files) -> Iterator[Partition]:
        group: list[_Named] = []
        for named in self._named(paths, files):
            if group and (named.entry.is_folder or named.folder != group[0].folder):
                yield from self._group([one.entry for one in group], group[0].files)
                group = []
            if named.entry.is_folder:
                yield from self._below(named.entry, named.files)
            elif named.is_alone:
                yield from self._one_file(named.entry, named.files)
            else:
                group.append(named)
        if group:
            yield from self._group([one.entry for one in group], group[0].files)
        self._say_skipped()

    def _named(self, paths: Iterable[str], files: Files) -> Iterator[_Named]:
        """Yield the folders and files that ``paths`` name. For an archive, yield the root folder."""
        for path in paths:
            try:
                if path == "-" and files is LOCAL:
                    from kdump.log_dirs import archives

                    yield _root(archives.standard_input())
                    continue
                found, place = self._at(path, files)
                if len(found) > 1:
                    found = self._not_made_by_kdump(found, place)
            except UnreadableError as error:
                self.fail(error)
                continue
            for entry in found:
                if entry.is_folder:
                    yield _Named(entry, place)
                elif is_sibling(entry.name) and not self.wanted.siblings:
                    self._skipped.append(place.shown(entry.path))
                else:
                    yield from self._file(entry, place)

    def _at(self, path: str, files: Files) -> tuple[list[Entry], Files]:
        """Return the entries at a path or glob, and their place: ``files`` or an archive. Raises UnreadableError."""
        found = _entries(path, files)
        if found:
            return found, files
        if ":" in path:
            from kdump.log_dirs import archives

            inside = archives.within(path, files)
            if inside is not None:
                place, rest = inside
                found = _entries(rest, place)
                if found:
                    return found, place
                raise UnreadableError(path, f"it is not in the archive {place.name}{_held(place.entries(''))}")
        reason = "matches nothing" if _is_glob(path) else "No such file or directory"
        raise UnreadableError(_without_secret(files.shown(path)), reason)

    def _file(self, entry: Entry, files: Files) -> Iterator[_Named]:
        shown = files.shown(entry.path)
        try:
            with files.open(entry.path) as source:
                head = source.read(0, archive_formats.HEAD)
            is_segment = SEGMENT_NAME.fullmatch(entry.name) is not None or is_sibling(entry.name)
            if archive_formats.format_of(head) is not None:
                from kdump.log_dirs import archives

                place = archives.opened(files, entry)
                if place is not None:  # None if the file has changed since
                    yield _root(place)
                return
            foreign = None if is_segment else archive_formats.foreign(head)
            if foreign is not None:
                from kdump.primitives.terminal import shell_path

                what = f"it is {foreign.name}, which kdump does not read"
                raise UnreadableError(
                    shown, what, f"{foreign.extract} {shell_path(shown)}, then name the extracted folder"
                )
            if not is_segment:
                if entry.name.endswith(archive_formats.SUFFIXES):
                    raise self._no_archive(head, shown)
                self._doubt(head, shown, may_begin_damaged=entry.name.endswith(f".{file_names.LOG}"))
        except UnreadableError as error:
            self.fail(error)
            return
        yield _Named(entry, files)

    def _no_archive(self, head: bytes, shown: str) -> UnreadableError:
        if not head.strip(b"\0"):
            return UnreadableError(
                shown, "the archive is empty" if head else "the file is empty, so it is not an archive"
            )
        from kdump.primitives.terminal import shell_path

        hint = f"7z x {shell_path(shown)}, then name the folder"
        return UnreadableError(shown, "the file name is that of an archive, but the content is not an archive", hint)

    def _one_file(self, entry: Entry, place: Files) -> Iterator[Partition]:
        """Yield the partition of a file without a path: standard input, or a compressed file."""
        if not self._takes(Name(None, None), entry.name):
            return
        name = archive_formats.name_inside(entry.name)
        try:
            with place.open(entry.path) as source:
                head = source.read(0, archive_formats.HEAD)
            self._doubt(head, entry.name, may_begin_damaged=name == entry.name or name.endswith(f".{file_names.LOG}"))
        except UnreadableError as error:
            self.fail(error)
            return
        limit = self.wanted.max_batch_bytes
        segment = Segment(place, entry.path, entry.size, None, {}, limit)
        self._fail_if_broken(place)
        yield Partition(place, "", None, None, (segment,), limit=limit, is_named=True, is_listed=False)

    def _fail_if_broken(self, place: Files) -> bool:
        """Return whether a part of an archive or compressed file cannot be read. If so, report it as a failure."""
        archive = _archive(place)
        if archive is None or archive.broken is None:
            return False
        self.fail(UnreadableError(archive.name, archive.broken, archive.hint))
        return True

    def _doubt(self, head: bytes, shown: str, *, may_begin_damaged: bool) -> None:
        """Raise UnreadableError if a file does not begin like a segment; if it ``may_begin_damaged``, only for text."""
        wrong = _no_segment(head)
        if wrong is None:
            return
        is_text = _is_text(head)
        if is_text or not may_begin_damaged:
            what = "text, not a file of Kafka's" if is_text else "not a file of Kafka's"
            hint = "name a segment, a partition folder or a log dir; "
            hint += f"rename a damaged segment to its original name, such as {0:0{file_names.PADDED}}.{file_names.LOG}"
            if "." not in posixpath.basename(shown):
                hint += (
                    "; if log.dirs has this path, a broker starts without it: move the file away, and mount the disk"
                )
            raise UnreadableError(shown, f"it is {what}: {wrong}", hint)
        self.note(f"{shown} does not begin like a segment: {wrong}. kdump reads it as a segment")

    def _group(self, entries: list[Entry], files: Files) -> Iterator[Partition]:
        """Yield a partition of the named files of one folder, and others for renamed copies of its segments."""
        if not entries:
            return
        folder = _folder_of(files, entries[0])
        name = _name_of(files, folder)
        self.found_names.add(name)
        if not self._takes(name, files.shown(entries[0].path)):
            return
        is_listed = True
        try:
            inside = files.entries(folder)
            beside = {entry.name: entry.path for entry in inside}
            if self._is_packed(inside, folder, files):
                return
        except UnreadableError as error:  # the files in the unreadable folder may still be readable
            is_listed, beside = False, self._siblings(entries, files)
            if isinstance(error, StoreError):
                self.fail(error)
        segments, others = [], []
        for entry in entries:
            if entry.identity in self._seen:
                self.note(f"{files.shown(entry.path)} is named more than once, and read once")
                continue
            self._seen.add(entry.identity)
            if is_sibling(entry.name):
                others.append(entry)
                continue
            try:
                found = SEGMENT_NAME.fullmatch(entry.name)
                segments.append(_segment(files, entry, found, beside, self.wanted.max_batch_bytes))
            except UnreadableError as error:
                self.fail(error)
        self._fail_if_broken(files)  # a truncated archive may end in one of these members
        if segments or others:
            segments.sort(key=_order)
            unnamed = _unnamed(beside, segments)
            limit = self.wanted.max_batch_bytes
            for log in _apart(segments):
                first = log[0].base_offset if log else None
                whole = is_listed and (first is None or max(unnamed, default=first) <= first)
                named = Partition(files, folder, *name, tuple(log), tuple(others), whole, limit)
                yield named._replace(is_named=True, is_listed=False, unnamed=unnamed if log else ())
                others = []

    def _siblings(self, entries: list[Entry], files: Files) -> dict[str, str]:
        beside: dict[str, str] = {}
        for entry in entries:
            found = SEGMENT_NAME.fullmatch(entry.name)
            for suffix in SIBLINGS if found else ():
                name = f"{found['stem']}.{suffix}{found['state'] or ''}"  # type: ignore[index]  # it matches here
                path = posixpath.join(posixpath.dirname(entry.path), name)
                try:
                    if files.look(path) is not None:
                        beside[name] = path
                except UnreadableError as error:
                    self.fail(error)
        return beside

    def _below(self, folder: Entry, files: Files) -> Iterator[Partition]:
        """Yield the partitions in a folder that the user named. Without a log it is an error, unless ``is_choosy``."""
        archive = _archive(files)
        if archive is not None:
            for path, reason in archive.left_out:
                if path.startswith(f"{folder.path}/" if folder.path else ""):
                    self.report.note(f"{archive.shown(path)} is left out: it {reason}")
        found, self._is_read_before, self._leftovers = folder.identity in self._seen, False, []
        for partition in self._folder(folder, files, _name_of(files, folder.path)):
            found = found or bool(partition.segments) or holds_a_log(partition.others, log_dirs=self.wanted.log_dirs)
            yield partition._replace(is_named=True) if partition.folder == folder.path else partition
        found = self._fail_if_broken(files) or found or self._is_read_before
        if not found and not self.wanted.is_choosy and not self._has_packed_segments:
            error = self._without_segment(folder, files)
            if self.wanted.every_folder:
                self.without_log.append(error)
            else:
                self.fail(error)

    def _without_segment(self, folder: Entry, files: Files) -> UnreadableError:
        shown = files.shown(folder.path)
        reason = NO_SEGMENT if folder.path or files is LOCAL else "the archive holds no segment"
        packed = [entry for entry in self._packed if entry.path.startswith(folder.path)][:_MANY]
        from kdump.primitives.terminal import shell_path

        leftover = None if packed else next((one for one in self._leftovers if _has_segment(one, files)), None)
        if leftover is not None:
            hint = f"name the folder: {shell_path(files.shown(leftover.path))}"
            return UnreadableError(shown, f"{reason}, except in leftover folders", hint)
        if not packed:
            return UnreadableError(shown, reason)
        paths = " ".join(shell_path(files.shown(one.path)) for one in packed)
        return UnreadableError(shown, reason, f"name the archives inside as paths: {paths}")

    def _folder(self, folder: Entry, files: Files, name: Name) -> Iterator[Partition]:
        """Yield the partition of a folder, and those of the folders below it that :meth:`_enters` accepts."""
        top = folder
        left = [(name, folder, False, False)]
        while left:
            name, folder, in_log_dir, in_partition = left.pop()
            if folder.identity in self._seen:
                self.note(f"{files.shown(folder.path)} is in several of the paths, and read once")
                self._is_read_before = True
                continue
            self._seen.add(folder.identity)
            try:
                entries = files.entries(folder.path)
            except UnreadableError as error:
                if folder is not top and (text := closed_lost_and_found(error)):
                    self.report.note(text)
                    continue
                self.found_names.add(name)
                self.unread.add(name)
                self.fail(error)
                continue
            inside, others = _divided(entries)
            names = [entry.name for entry in inside]
            ends = {name.rpartition(".")[2] for name in names}
            if not ends.isdisjoint(archive_formats.ENDS):
                self._packed += [entry for entry in inside if entry.name.endswith(archive_formats.SUFFIXES)]
            is_log_dir = file_names.META_PROPERTIES in names
            if is_log_dir:
                name = Name(None, None)
            if self.wanted.every_folder or _has_name(names, log_dirs=self.wanted.log_dirs):
                self.found_names.add(name)
                if self._takes(name, None) and not (_MANIFEST in ends and self._is_packed(inside, folder.path, files)):
                    found = self.partition(folder.path, name, inside, files, tuple(others))
                    # a broker does not read folders inside partition folders
                    foreign = in_partition or (in_log_dir and is_foreign(folder.name))
                    yield found._replace(foreign=True) if foreign else found
            folders = [entry for entry in others if entry.is_folder]
            if folders:
                state = is_log_dir, not is_log_dir and (in_log_dir or in_partition)
                left += [(*below, *state) for below in self._entered(folder, folders, files, is_log_dir)]

    def _entered(
        self, above: Entry, folders: Sequence[Entry], files: Files, is_log_dir: bool
    ) -> Iterator[tuple[Name, Entry]]:
        """Yield the subfolders of ``above`` to read, with the names of their partitions, in reverse order."""
        if not is_log_dir:
            folders = self._not_made_by_kdump(folders, files)
        below = [(folder_name_in(above.name, entry.name), entry) for entry in folders]
        below.sort(key=_folder_order, reverse=True)
        for name, entry in below:
            if self._enters(name, entry, files, is_log_dir):
                yield name, entry

    def _not_made_by_kdump(self, entries: Sequence[Entry], files: Files) -> list[Entry]:
        """Return entries without the folders that the commands of ``kdump check`` made. Notes report these folders."""
        made = {}
        by_path = {entry.path: entry for entry in entries}
        for path, entry in by_path.items():
            for suffix, what in _MADE.items():
                origins = (each for each in _origins(path, suffix) if each in by_path)
                if log_dir := next((each for each in origins if is_made_from(path, each, files)), None):
                    made[path] = f"{what} {files.shown(log_dir)}"
            is_named = entry.name.rstrip("-0123456789") == file_names.SALVAGED
            if is_named and len(by_path) > 1 and _is_salvaged(path, files):
                made[path] = "the output of kdump salvage"
        for path, what in made.items():
            self.report.note(f"{files.shown(path)} is left out: it holds {what} (name the folder to read it)")
        return [entry for entry in entries if entry.path not in made]

    def _is_packed(self, inside: Iterable[Entry], folder: str, files: Files) -> bool:
        """Return whether a plugin has compressed or encrypted the segments of a folder. If so, report the folder."""
        if not [entry for entry in inside if entry.name.endswith(f".{_MANIFEST}")]:
            return False
        from kdump.log_dirs.tiered_storage import refuse_packed

        try:
            refuse_packed(files, inside, folder)
        except UnreadableError as error:
            self._has_packed_segments = True
            self.fail(error)
            return True
        return False

    def _enters(self, name: Name, folder: Entry, files: Files, in_log_dir: bool) -> bool:
        """Return whether to read a subfolder. Outside a log dir, a folder like ``broker-1`` may be a log dir."""
        if in_log_dir and folder.name == file_names.CLEAN_SHUTDOWN:  # it may be a link to any folder
            return False
        if not self.wanted.leftovers and leftover_state(folder.name):
            self._leftovers.append(folder)
            if self.wanted.takes(name):
                self.note(
                    f"{files.shown(folder.path)} is left out: its name ends with the suffix of a leftover folder "
                    "(--leftovers reads it)"
                )
            return False
        if name.topic is None or self.wanted.takes(name):
            return True
        try:
            if not in_log_dir and files.look(posixpath.join(folder.path, file_names.META_PROPERTIES)) is not None:
                return True
        except UnreadableError as error:  # only this folder is left out
            self.unread.add(name)
            self.fail(error)
        self.found_names.add(name)
        return False

    def partition(
        self, path: str, name: Name, inside: list[Entry], files: Files, folders: tuple[Entry, ...] = ()
    ) -> Partition:
        """Return the partition of a folder. ``inside``: files, and devices named like segments; ``folders``: others."""
        beside = {entry.name: entry.path for entry in inside}
        segments, others = [], []
        for entry in inside:
            if _LOG not in entry.name:
                others.append(entry)
                continue
            found = SEGMENT_NAME.fullmatch(entry.name)
            is_short = found is not None and len(found["stem"]) < file_names.PADDED
            is_unread = is_short and file_names.opened_name(entry.name) in beside
            if is_unread:
                found = None  # the broker reads only the file with the padded name
            if found and (found["state"] is None or self.wanted.leftovers):
                segments.append(_segment(files, entry, found, beside, self.wanted.max_batch_bytes))
                continue
            others.append(entry)
            if found:
                self.note(
                    f"{files.shown(entry.path)} is left out: its suffix is that of a leftover (--leftovers reads it)"
                )
            elif is_unread or entry.name.endswith(_LOG) or ignored_base(entry.name) is not None:
                is_number = file_names.offset_of(entry.name) is not None
                why = "a broker opens no file of this name" if is_number else "its name does not begin with an offset"
                self.note(f"{files.shown(entry.path)} is left out: {why} (give its path to read it)")
        limit = self.wanted.max_batch_bytes
        segments.sort(key=_order)
        return Partition(files, path, *name, tuple(segments), tuple(others), limit=limit, folders=folders)

    def _takes(self, name: Name, path: str | None) -> bool:
        """Return whether a folder is selected. If not, report a note about the named file ``path``, if it is given."""
        takes = self.wanted.takes(name)
        if not takes and path is not None:
            self.note(f"{path} is left out: its folder belongs to another topic or partition")
        return takes

    def _say_skipped(self) -> None:
        for path in self._skipped[:_MANY]:
            self.note(left_out_text(path))
        more = len(self._skipped) - _MANY
        if more > 0:
            what = many(more, "more file without records is", "more files without records are")
            self.note(f"{what} left out")
        self._skipped.clear()


class _Named(NamedTuple):
    """A folder or file that the user named, and its place. ``is_alone``: standard input or a compressed file."""

    entry: Entry
    files: Files
    is_alone: bool = False

    @property
    def folder(self) -> tuple[Files, str]:
        return self.files, _folder_of(self.files, self.entry)


def _root(place: archives.Archive | archives.OneFile) -> _Named:
    root = place.look("")
    return _Named(place.entries("")[0], place, is_alone=True) if root is None else _Named(root, place)


def _archive(files: Files) -> archives.Archive | archives.OneFile | None:
    """Return ``files`` if it is an archive or a compressed file, else None. :mod:`archives` is slow to import."""
    if files is LOCAL or "kdump.log_dirs.archives" not in sys.modules:
        return None
    from kdump.log_dirs import archives

    return files if isinstance(files, archives.Archive | archives.OneFile) else None


def _entries(path: str, files: Files) -> list[Entry]:
    found = files.look(path)
    return (
        [found] if found else [entry for name in files.glob(path) if (entry := files.look(name) or _link(name, files))]
    )


def _link(path: str, files: Files) -> Entry | None:
    """Return the entry of a broken link on the local disk, which only ``open`` reports; None for a deleted file."""
    is_broken = files is LOCAL and os.path.islink(path)  # noqa: PTH114  pathlib is slow to import
    return Entry(posixpath.basename(path), path, False, 0, path) if is_broken else None


def _without_secret(path: str) -> str:
    from kdump.log_dirs.remote import without_secret

    return without_secret(path)


def _is_glob(path: str) -> bool:
    return any(letter in path for letter in "*?[")


def _held(entries: list[Entry]) -> str:
    names = [entry.name for entry in entries]
    return f": it has {first_of(names, _MANY)}" if names else ", it is empty"


def left_out_text(path: str) -> str:
    """Return a sentence on a named file that has no records, with the command that reads it, if there is one."""
    return f"{path} is left out: it holds no records{_reader_of(path)}"


def _reader_of(path: str) -> str:
    name = posixpath.basename(path)
    if name.rpartition(".")[2] in SIBLINGS:
        return " (kdump --files prints it)"
    known = any(fnmatchcase(name, file.name) and file.format for file in file_names.FILES)
    return " (kdump check compares it with the log)" if known else ""


def holds_a_log(inside: Collection[Entry], *, log_dirs: bool) -> bool:
    """Return whether a folder with these files is a partition folder or, if ``log_dirs`` is true, a log dir."""
    return _has_name([entry.name for entry in inside], log_dirs=log_dirs)


def _has_name(names: Iterable[str], *, log_dirs: bool) -> bool:
    return any(map(_belongs, names)) or (log_dirs and any(map(LOG_DIR_FILE.fullmatch, names)))


def _has_segment(folder: Entry, files: Files) -> bool:
    with suppress(UnreadableError):
        return any(SEGMENT_NAME.fullmatch(entry.name) for entry in files.entries(folder.path))
    return False


def _origins(path: str, suffix: str) -> Iterator[str]:
    """Yield the log dirs from which a folder may be made. A number is before its suffix if a name was taken."""
    origin = path.removesuffix(suffix)
    if origin != path:
        yield origin
        stem, _, number = origin.rpartition(".")
        if number.isdecimal():
            yield stem


def is_made_from(path: str, log_dir: str, files: Files) -> bool:
    """Return whether a folder next to a log dir was made from it, and is not another log dir of a broker.

    Their ids may differ: a command that ``kdump check`` prints may have changed one after the copy. But two log dirs of
    a broker share no partition.
    """
    try:
        mine, others = ({entry.name for entry in files.entries(each)} for each in (path, log_dir))
    except UnreadableError:  # it is reported when it is read
        return False
    if not any(map(LOG_DIR_FILE.fullmatch, mine | others)):
        return False
    ids, other = (_properties(each, files) for each in (path, log_dir))
    if ids.node_id is None or (ids.directory_id is not None and ids.directory_id == other.directory_id):
        return True
    is_same = ids.node_id == other.node_id and ids.cluster_id == other.cluster_id
    return (is_same or other.node_id is None) and any(map(parse_folder, mine & others))


def _properties(log_dir: str, files: Files) -> MetaProperties:
    """Return the ids of a log dir. They are empty if it has none, or if they cannot be read."""
    from kdump.formats import meta_properties

    try:
        return meta_properties.read(read_file(files, posixpath.join(log_dir, file_names.META_PROPERTIES)))
    except (UnreadableError, DamageError):
        return meta_properties.MetaProperties({})


def closed_lost_and_found(error: UnreadableError) -> str:
    """Return the note on a ``lost+found`` that only another account, usually root, can list; "" for other errors."""
    shown = str(error.path)
    if not error.is_denied or posixpath.basename(shown) != file_names.LOST_AND_FOUND:
        return ""
    from kdump.primitives.terminal import shell_path

    what = f"fsck puts the files that it recovers there, usually none (sudo ls -A {shell_path(shown)} lists them)"
    return f"{shown} is left out: {error.reason}. {what}"


def _is_salvaged(folder: str, files: Files) -> bool:
    """Return whether a folder has the output of ``kdump salvage``, without a log dir that a broker can use."""
    try:
        names = {entry.name for entry in files.entries(folder)}
        logs = files.entries(posixpath.join(folder, "logs")) if {"logs", file_names.LOST_AND_FOUND} <= names else []
    except UnreadableError:  # it is reported when it is read
        return False
    return bool(logs) and file_names.META_PROPERTIES not in {entry.name for entry in logs}


def _belongs(name: str) -> bool:
    stem, _, suffix = name.partition(".")
    if (suffix in SIBLINGS and stem.isdecimal()) or name == file_names.PARTITION_METADATA:
        return True
    return _LOG in name and (SEGMENT_NAME.fullmatch(name) is not None or ignored_base(name) is not None)


def _folder_of(files: Files, entry: Entry) -> str:
    folder = posixpath.dirname(entry.path)
    return folder or ("." if files is LOCAL else "")


def _name_of(files: Files, folder: str) -> Name:
    return folder_name(posixpath.abspath(folder) if files is LOCAL else folder)


def _folder_order(below: tuple[Name, Entry]) -> tuple[str, int, str]:
    name, entry = below
    return (name.topic or entry.name, name.partition or 0, entry.name)


def _apart(segments: list[Segment]) -> list[list[Segment]]:
    """Divide the segments of a folder into logs. Renamed copies of segments are in further logs.

    The broker's segments come first, whatever the names of the copies, such as ``00000000000000000000 (copy).log``.
    """
    logs: list[list[Segment]] = [[]]
    for segment in sorted(segments, key=lambda each: not _is_brokers(each)):
        base = segment.base_offset
        free = (log for log in logs if _is_brokers(segment) or all(one.base_offset != base for one in log))
        found = next(free, None)
        if found is None:
            logs.append([segment])
        else:
            found.append(segment)
    return [sorted(log, key=_order) for log in logs]


def _is_brokers(segment: Segment) -> bool:
    return segment.base_offset is None or SEGMENT_NAME.fullmatch(posixpath.basename(segment.path)) is not None


def _order(segment: Segment) -> tuple[bool, int, str]:
    return (segment.base_offset is None, segment.base_offset or 0, segment.path)


def _divided(entries: list[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return the files of a folder, with devices that are named like segments, and its other entries."""
    others = [entry for entry in entries if (entry.is_folder or entry.special) and not _is_special_segment(entry)]
    if not others:
        return entries, others
    apart = set(map(id, others))
    return [entry for entry in entries if id(entry) not in apart], others


def _is_special_segment(entry: Entry) -> bool:
    """Return whether a pipe, socket or device has the name of a segment. It counts as an unreadable segment."""
    return bool(entry.special and SEGMENT_NAME.fullmatch(entry.name))


def _segment(files: Files, entry: Entry, found: re.Match[str] | None, beside: dict[str, str], limit: int) -> Segment:
    if found is None:
        base = first_offset_of(files, entry.path)
        return Segment(files, entry.path, entry.size, base, {}, limit, entry.modified, entry.disk_size)
    stem, state = found["stem"], found["state"] or ""
    siblings = {suffix: beside[name] for suffix in SIBLINGS if (name := f"{stem}.{suffix}{state}") in beside}
    base = int(found["offset"])
    known = entry.modified, entry.disk_size
    return Segment(files, entry.path, entry.size, base, siblings, limit, *known, special=entry.special)


def _unnamed(beside: Iterable[str], segments: Iterable[Segment]) -> tuple[int, ...]:
    """Return the base offsets of a folder's segments that the user did not name. Leftover files do not count."""
    named = {posixpath.basename(segment.path) for segment in segments}
    found = (SEGMENT_NAME.fullmatch(name) for name in beside if name not in named)
    return tuple(sorted(int(one["offset"]) for one in found if one and one["state"] is None))
