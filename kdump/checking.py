"""The complete check of paths, from the finder to the dry starts of brokers. Nothing is printed.

:func:`found` yields the findings of paths. Callers that check partitions in workers call :func:`prepared` before, and
pass the results to :meth:`CheckedPaths.steps`, which adds the findings across log dirs, single folders and dry starts.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump.checks import across_log_dirs, whole_partition
from kdump.errors import Reporter, StoreError, UnreadableError, UsageError
from kdump.formats.sparse_index import BROKER_INDEX_SIZE, INDEX_INTERVAL
from kdump.internal_topics import CLUSTER_METADATA
from kdump.log_dirs import archive_formats, file_names
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.local import LOCAL, folder_identity
from kdump.log_dirs.log_dir_state import READERS
from kdump.log_dirs.partition import listed_log_dirs
from kdump.primitives.encodings import java_config_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.broker_start.broker_dirs import BrokerDirs, StartOptions
    from kdump.broker_start.outcome import BrokerStart
    from kdump.broker_start.started import Started
    from kdump.checks.log_dir import LogDirs
    from kdump.checks.whole_partition import CheckedPartition, CheckOptions
    from kdump.findings import Finding
    from kdump.log_dirs.files import Entry, Files
    from kdump.log_dirs.finder import Wanted
    from kdump.log_dirs.partition import Partition

    CheckStep: TypeAlias = CheckedPartition | list[Finding] | Started


class CheckedPaths(NamedTuple):
    """The input of a check: partitions, options, the metadata image, and the brokers that get a dry start."""

    partitions: list[Partition]
    wanted: Wanted
    image: ClusterImage | None
    """The metadata image; None if the paths hold no metadata log, or log dirs of several clusters."""
    configs: Mapping[str, str]
    options: Callable[[], StartOptions]
    whole: ClusterImage | None = None
    """``image`` if it is complete: the paths have one metadata log, and all its records were replayed. Else None."""
    brokers: Sequence[BrokerDirs] = ()

    def steps(
        self, checked: Iterable[CheckedPartition], dirs: LogDirs, fail: Callable[[UnreadableError], None]
    ) -> Iterator[CheckStep]:
        """Yield the results in order: partitions, findings across log dirs and on single folders, dry starts.

        ``checked`` yields the results of partitions, ``dirs`` has the facts of their log dirs. ``fail`` receives a
        StoreError, which ends the findings on single folders or the dry starts.
        """
        results = []
        for one in checked:
            results.append(one)
            yield one
        is_one = node_id(self.configs) is not None
        yield list(across_log_dirs.check(self.partitions, dirs, is_one_broker=is_one))
        yield list(self.alone(results, dirs, fail))
        yield from self.starts(results, dirs, fail)

    def alone(
        self, results: Sequence[CheckedPartition], dirs: LogDirs, fail: Callable[[UnreadableError], None]
    ) -> Iterator[Finding]:
        """Yield the findings on the loading of folders that may be invalid, and whose log dir gets no dry start."""
        started = {folder_identity(each.files, each.path) for one in self.brokers for each in one.log_dirs}
        if dirs.found and dirs.found <= started:
            return
        checked = {each.folder: each for each in results}
        # a broker does not read the folders inside these folders
        outer = {(part.files, part.folder) for part in self.partitions if part.topic is not None and part.segments}
        single = []
        for part in self.partitions:
            if not part.is_listed or part.foreign or part.topic in {None, CLUSTER_METADATA}:
                continue
            if (part.files, part.log_dir) in outer:
                continue
            result = checked.get(part.files.shown(part.folder))
            if result is not None and dirs.identity(part) not in started:
                place = dirs.facts(part, lambda _: None)  # the check of the partition has reported unreadable files
                is_valid = result.is_plain and result.has_sound_files and result.has_sound_indexes
                end, first = (result.sound_end if is_valid else None), result.start or 0
                begins_late = any(offset < first for offset in result.begins.values())
                if begins_late or end is None or max((place.log_start or 0, *result.reaches.values())) > end:
                    single.append((part, place))
        if not single:
            return
        from kdump.broker_start import started as dry_starts

        try:
            yield from dry_starts.alone(single, results, self.options(), self.image)
        except StoreError as error:
            fail(error)

    def starts(
        self, results: Sequence[CheckedPartition], dirs: LogDirs, fail: Callable[[UnreadableError], None]
    ) -> Iterator[Started]:
        if not self.brokers:
            return
        from kdump.broker_start import started
        from kdump.broker_start.start import dry_start

        try:
            known = started.known(results, self.partitions)
            states = dirs.read_so_far()
            options = self.options()
            found = (dry_start(each, options, known, self.whole, states) for each in self.brokers)
            yield from started.started(
                map(self._selected, found),
                self.partitions,
                results,
                self.image,
                self.configs,
                self.wanted,
                {each.name for one in self.brokers for each in one.log_dirs},
            )
        except StoreError as error:  # a disk error becomes a part of the result
            fail(error)

    def _selected(self, found: BrokerStart) -> BrokerStart:
        if not self.wanted.is_choosy:
            return found
        return found._replace(
            logs=tuple(log for log in found.logs if self.wanted.takes(Name(log.topic, log.partition)))
        )


def prepared(
    paths: tuple[str, ...],
    partitions: list[Partition],
    wanted: Wanted,
    how: CheckOptions,
    fail: Callable[[UnreadableError], None],
    *,
    release: str | None = None,
    configs: Mapping[str, str] | None = None,
) -> tuple[CheckedPaths, CheckOptions]:
    """Return the input of a check, and ``how`` with all facts. ``fail`` gets StoreErrors. Raises UsageError."""
    given = configs or {}
    options = partial(_options, release, given, wanted, how.interval)
    brokers: Sequence[BrokerDirs] = ()
    try:
        places = log_dirs(paths, partitions, given)
        if places or release or given:
            made = options()
            how = how._replace(release=made.release.number, interval=made.interval)
            if places:
                from kdump.broker_start import broker_dirs

                brokers = broker_dirs.brokers(places, made, partitions)
    except StoreError as error:
        fail(error)
    image = None
    wrong: list[str] = []
    clusters = {each.ids.cluster_id for one in brokers for each in one.ids if each.ids is not None} - {None}
    is_one_cluster = len(clusters) < 2  # topics of several clusters have the same names and other ids
    if is_one_cluster and any(part.topic == CLUSTER_METADATA for part in partitions):
        from kdump.answers.topic_configs import compacted_topics, index_intervals
        from kdump.broker_start.started import SEVERAL_COPIES, metadata_image

        def unread(error: UnreadableError) -> None:
            wrong.append(str(error))
            if isinstance(error, StoreError):
                fail(error)

        image = metadata_image(partitions, unread, wrong.append)
        how = how._replace(
            compacted=compacted_topics(image),
            alone=_alone(image),
            ids=_ids(image),
            intervals=index_intervals(image),
        )
        if image is not None and set(wrong) <= {SEVERAL_COPIES}:
            for each in brokers:
                each.with_roles(image)
    how = how._replace(
        dispensable=frozenset(each.name for one in brokers for each in one.dispensable),
        not_loaded=frozenset(each.name for one in brokers for each in one.not_loaded),
    )
    whole = None if wrong else image
    return CheckedPaths(partitions, wanted, image, given, options, whole, brokers), how


def found(
    paths: tuple[str, ...],
    wanted: Wanted,
    how: CheckOptions,
    *,
    note: Callable[[str], None],
    fail: Callable[[UnreadableError], None],
    progress: Callable[[int], None] = lambda _: None,
    absent: Callable[[str], None] = lambda _: None,
) -> Iterator[Finding]:
    """Yield the findings of a check of paths, without remote storage.

    ``note`` receives notes, and ``fail`` receives unreadable files. ``progress`` receives numbers of bytes of log.
    ``absent`` receives a sentence on each requested topic without a requested partition in the paths.
    """
    from kdump.log_dirs.finder import Finder

    wanted = wanted._replace(remote=None, leftovers=True, log_dirs=True, siblings=True)
    finder = Finder(wanted, Reporter(note=note, fail=fail))
    partitions = list(finder.find(paths))
    for text in wanted.missing(finder.found_names, paths):
        absent(text)
    of, how = prepared(paths, partitions, wanted, how, fail)
    dirs = how.log_dirs()
    grave: list[Finding] = []
    for step in of.steps((whole_partition.check(one, how, dirs, progress) for one in partitions), dirs, fail):
        if isinstance(step, whole_partition.CheckedPartition):
            for error in step.failed:
                fail(error)
            new = list(step.findings)
        else:
            new = step if isinstance(step, list) else step.join(grave)
        grave += (one for one in new if one.is_grave)
        yield from new


def _ids(image: ClusterImage | None) -> dict[str, str]:
    from kdump.formats.partition_metadata import id_text

    return {} if image is None else {name: id_text(topic.id) for name, topic in image.topics.by_name.items()}


def _alone(image: ClusterImage | None) -> frozenset[str]:
    topics = {} if image is None else image.topics.by_name
    return frozenset(
        name for name, topic in topics.items() if all(len(state.replicas) == 1 for state in topic.partitions.values())
    )


LOG_DIR_FILES: Final = frozenset({*READERS, file_names.BOOTSTRAP_SNAPSHOT})
"""Names of files that show that their folder is a log dir."""


def log_dirs(
    paths: tuple[str, ...], partitions: Iterable[Partition], configs: Mapping[str, str]
) -> list[tuple[Files, str]]:
    """Return log dirs for dry starts: PATHs if a node.id is given, else those of ``partitions`` with LOG_DIR_FILES."""
    if node_id(configs) is not None:
        return _each_once((place for path in paths for place in _place(path)), _place_and_path)
    given = [_place_and_path(*place) for path in paths for place in _place(path)]
    found = []
    partitions = list(partitions)
    listed = listed_log_dirs(partitions)
    folders = ((one.files, one.state_dir) for one in partitions)
    for files_here, path in dict.fromkeys(folders):
        place, shown = _place_and_path(files_here, path)
        if not any(files == place and _holds(each, shown) for files, each in given):
            continue
        try:
            known = listed.get((files_here, path))
            entries = (
                files_here.entries(path or ("." if files_here is LOCAL else "")) if known is None else known.entries
            )
            names = {entry.name for entry in entries}
        except StoreError:
            raise
        except UnreadableError:
            continue
        if names & LOG_DIR_FILES:
            found.append((files_here, path))
    return _each_once(found, folder_identity)


def _each_once(places: Iterable[tuple[Files, str]], key: Callable[[Files, str], object]) -> list[tuple[Files, str]]:
    found: dict[object, tuple[Files, str]] = {}
    for place in places:
        found.setdefault(key(*place), place)
    return list(found.values())


def _place_and_path(files: Files, path: str) -> tuple[object, str]:
    """Return a key of a folder: its storage and path. It is the same if an archive was opened twice."""
    return (LOCAL, os.path.abspath(path or ".")) if files is LOCAL else (files.shown(""), path)  # noqa: PTH100  pathlib is slow to import


def _place(path: str) -> Iterator[tuple[Files, str]]:
    """Yield the storage (file system, archive or store) and path of a PATH, or of each match of a glob."""
    from kdump.log_dirs.remote import as_written, places

    for files, inside in places([path], as_written):
        for each in inside:
            if files is LOCAL:
                yield from _local_place(each)
            else:
                yield files, each


def _local_place(path: str) -> Iterator[tuple[Files, str]]:
    entry = place = None
    try:
        entry = LOCAL.look(path)
        place = None if entry is not None and entry.is_folder else _archive(path, entry)
    except UnreadableError:  # the finder reports it
        if entry is None:
            yield LOCAL, path
        return
    matches = [] if entry or place else [each for each in LOCAL.glob(path) if each != path]  # itself: a broken link
    for each in matches:
        yield from _local_place(each)
    if not matches:
        yield place or (LOCAL, path if entry is None else entry.path)


def _archive(path: str, entry: Entry | None) -> tuple[Files, str] | None:
    """Return the archive at the start of a path, and the path inside it; None for others. Raises UnreadableError."""
    if entry is None and ":" not in path:
        return None
    if entry is not None:
        with LOCAL.open(path) as source:
            if archive_formats.format_of(source.read(0, archive_formats.HEAD)) is None:
                return None
    from kdump.log_dirs import archives

    if entry is None:
        return archives.within(path)
    place = archives.opened(LOCAL, entry)
    return (place, "") if isinstance(place, archives.Archive) else None


def _holds(folder: str, path: str) -> bool:
    return path == folder or not folder or path.startswith(folder.rstrip("/") + "/")


def searchable(paths: tuple[str, ...], configs: Mapping[str, str]) -> tuple[str, ...]:
    """Return the PATHs to search; with a node.id, without absent local paths and files that are not archives."""
    if node_id(configs) is None:
        return paths
    from kdump.broker_start.log_folder import LogDirFiles

    def is_searched(path: str) -> bool:
        found = list(_place(path))
        return not found or any(files is not LOCAL or LogDirFiles(files, each).is_folder for files, each in found)

    return tuple(filter(is_searched, paths))


def _options(name: str | None, configs: Mapping[str, str], wanted: Wanted, interval: int) -> StartOptions:
    from kdump.broker_start import release
    from kdump.broker_start.broker_dirs import StartOptions

    known = release.of(name or release.NEWEST)
    given = configs.get(f"log.{INDEX_INTERVAL}", configs.get(INDEX_INTERVAL))
    number = None if given is None else java_config_integer(given, 32)
    size = configs.get(BROKER_INDEX_SIZE)
    return StartOptions(
        known,
        configs,
        node_id(configs),
        wanted.max_batch_bytes,
        is_release_known=name is not None,
        interval=interval if number is None or number < 0 else number,
        index_size=None if size is None else java_config_integer(size, 32),
    )


def node_id(configs: Mapping[str, str]) -> int | None:
    """Return the node.id or broker.id in configs, or None. Raises UsageError unless it is a whole number from 0 on."""
    given = configs.get("node.id", configs.get("broker.id"))
    if given is None:
        return None
    number = java_config_integer(given, 32)
    if number is None or number < 0:
        raise UsageError(f"--config node.id={given}: a whole number is expected")
    return number
