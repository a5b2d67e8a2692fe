"""Makes findings and verdicts from the results of dry starts, and from the checks of the same partitions.

:mod:`.start` makes the results, :mod:`.start_findings` the findings, :mod:`kdump.findings.verdict` the verdicts.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from contextlib import suppress
from functools import partial
from operator import itemgetter, ne
from typing import TYPE_CHECKING, Final

from kdump.broker_start.broker_dirs import cluster_differs, node_differs
from kdump.broker_start.log_folder import KnownLog, Loading, LogDirFiles, LogFolder
from kdump.broker_start.repairs import NO_IDS, normal
from kdump.broker_start.shortfall import CommittedOffsets, highest
from kdump.broker_start.start import start_alone
from kdump.broker_start.start_findings import Context, LogEvidence, SpareFolder, findings, findings_alone
from kdump.checks.folder import leftover_of
from kdump.checks.indexes import is_preallocated
from kdump.checks.repair_commands import beside, copied, replaced
from kdump.errors import DamageError, Reporter, UnreadableError, discard, first_of
from kdump.findings import Level, of_a_copy
from kdump.findings.codes import Code
from kdump.findings.verdict import SHOWN, StartVerdict, VerdictFacts, verdict
from kdump.formats import meta_properties
from kdump.formats.offset_index import OffsetIndex
from kdump.formats.partition_metadata import id_text
from kdump.internal_topics import CLUSTER_METADATA
from kdump.log_dirs import file_names
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.local import LOCAL
from kdump.primitives.terminal import path_text, shell_path
from kdump.recovery import SoundLog
from kdump.segments.log_end import is_locked

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.broker_start.broker_dirs import StartOptions
    from kdump.broker_start.outcome import BrokerStart, StartCause
    from kdump.checks.log_dir import LogDir
    from kdump.checks.whole_partition import CheckedPartition
    from kdump.findings import Finding
    from kdump.log_dirs.finder import Wanted
    from kdump.log_dirs.partition import Partition


SEVERAL_COPIES: Final = "the paths hold several copies of the metadata log"


def metadata_image(
    partitions: Sequence[Partition],
    fail: Callable[[UnreadableError], None] = lambda _: None,
    damage: Callable[[str], None] = lambda _: None,
) -> ClusterImage | None:
    """Return the image of the metadata log if it is among ``partitions``, else None.

    ``fail`` receives unreadable files. ``damage`` receives a text for damage, and one if there are several copies.
    """
    copies = [part for part in partitions if part.topic == CLUSTER_METADATA]
    if not copies:
        return None
    from kdump.answers.metadata.image import image_of

    if len(copies) > 1:
        damage(SEVERAL_COPIES)
    return image_of(copies, Reporter(damage=damage, fail=fail))


def known(results: Sequence[CheckedPartition], partitions: Sequence[Partition]) -> dict[str, KnownLog]:
    """Return folder -> the facts that its check has found. A dry start then need not read a valid log again."""
    listed = {part.files.shown(part.folder): part for part in partitions if part.is_listed}
    found = {}
    for one in results:
        sound = None if one.sound_end is None else SoundLog(one.sound_end, one.has_sound_indexes, one.is_plain)
        wrong = () if one.has_sound_indexes else tuple(_wrong_indexes(one))
        found[one.folder] = KnownLog(listed.get(one.folder), sound, one.has_sound_files, one.topic_id, wrong)
    return found


def _wrong_indexes(result: CheckedPartition) -> Iterator[str]:
    for one in result.findings:
        if one.level is Level.DERIVED and one.file.endswith(
            (f".{file_names.INDEX}", f".{file_names.INDEX}.{file_names.SWAP}")
        ):
            yield one.file


class Started:
    def __init__(self, result: BrokerStart, found: Sequence[Finding], log_dirs: VerdictFacts) -> None:
        self.result, self.findings = result, found
        is_named = result.node_id is not None or any(one.fatal and one.code in NO_IDS for one in found)
        self.log_dirs = log_dirs._replace(are_whole=is_named)
        self.label = self.name
        """The name of the broker in sentences. It has the cluster id if the paths have log dirs of several clusters."""

    def join(self, found: list[Finding]) -> list[Finding]:
        """Return the findings to add to ``found``: a second fatal one on a file only replaces the commands there."""
        new = []
        for one in self.findings:
            same = (at for at, held in enumerate(found) if one.fatal and held.fatal and held.file == one.file)
            at = next(same, None)
            if at is None:
                new.append(one)
            else:
                found[at] = found[at]._replace(commands=one.commands)
        self.findings = new
        return new

    def verdict(self, others: Sequence[Finding]) -> StartVerdict:
        """Return the verdict. ``others`` are the findings of the checks on all log dirs."""
        own = set(self.findings)
        mine = [*self.findings, *(one for one in others if one not in own and self._is_here(one.file))]
        return verdict(
            mine,
            self.label,
            starts=self.starts,
            why=next((f": {_why(cause)}" for cause in self.result.unknown), ""),
            log_dirs=self.log_dirs,
        )

    @property
    def starts(self) -> bool | None:
        """Whether the broker starts; None if this is unknown, or if it does not start but no finding is fatal.

        A missing meta.properties is not fatal if a broker of 0.8 may have written the log dirs: it has no such file.
        """
        starts = self.result.starts
        return None if starts is False and not any(one.fatal for one in self.findings) else starts

    @property
    def name(self) -> str:
        return self.result.name if self.result.node_id is not None else f"the {self.result.name}"

    @property
    def has_metadata_log(self) -> bool:
        return any(log.topic == CLUSTER_METADATA and log.folder is not None for log in self.result.logs)

    def _is_here(self, file: str) -> bool:
        path = posixpath.normpath(file)
        dirs = [posixpath.normpath(each) for each in self.result.log_dirs]
        return any(each in {".", path} or path.startswith(f"{each}/") for each in dirs)


def _why(cause: StartCause) -> str:
    return f"{cause.file}: {cause.text}" if cause.code is Code.FILE_UNREADABLE else cause.text


def started(
    found: Iterable[BrokerStart],
    partitions: Sequence[Partition],
    results: Sequence[CheckedPartition],
    image: ClusterImage | None,
    configs: Mapping[str, str],
    wanted: Wanted,
    log_dirs: Container[str] = (),
) -> Iterator[Started]:
    """Yield each dry start with findings. ``results`` are the checks of ``partitions``, ``log_dirs`` all log dirs.

    ``image`` is the metadata of all brokers. If it is None, each broker's own metadata log counts.
    """
    by_dir: dict[str, list[Partition]] = {}
    for part in partitions:
        by_dir.setdefault(part.files.shown(part.log_dir or "."), []).append(part)
    properties = _properties({log_dir: held[0] for log_dir, held in by_dir.items()})
    clusters = {path: each["cluster.id"] for path, each in properties.items() if "cluster.id" in each}
    directories = {path: each["directory.id"] for path, each in properties.items() if "directory.id" in each}
    groups = {each: CommittedOffsets(_of_cluster(each, by_dir, clusters)) for each in {None, *clusters.values()}}
    clusters_by_dir = normal(clusters)
    checked = {result.folder: result for result in results}
    spares = tuple(_spares(partitions, log_dirs))
    facts = dict(_facts(partitions, checked, lambda log_dir: groups[clusters.get(log_dir)]))
    for result in found:
        mine = {log_dir: by_dir[log_dir] for log_dir in result.log_dirs if log_dir in by_dir}
        of_broker = [part for held in mine.values() for part in held]
        committed = groups.get(result.cluster_id, groups[None])
        context = Context(
            facts,
            lambda topic, number, marks=result.checkpointed, of=committed: {  # type: ignore[misc]  # bound now
                **highest(marks, topic, number),
                **of.of(topic, number),
            },
            directories=normal({path: directories[path] for path in mine if path in directories}),
            clusters=clusters_by_dir,
            is_kraft=any(entry.name == file_names.PARTITION_METADATA for part in of_broker for entry in part.others),
            is_complete=bool(configs.get("node.id", configs.get("broker.id"))),
            takes=lambda topic, number: wanted.takes(Name(topic, number)),
            tiered=() if result.lacks_remote_storage else None,
            spares=spares,
        )
        metadata = result.image if image is None else image
        context = context if metadata is None else _with_metadata(context, metadata)
        made = findings(result, context)
        is_here = all(part.files is LOCAL for part in of_broker)
        yield Started(
            result,
            list(made if is_here else map(of_a_copy, made)),
            VerdictFacts(
                result.log_dirs,
                partial(_copied, mine, wanted),
                partial(_others, context.replicas, result.node_id),
                replaced if is_here else None,
                shell_path,
                is_partial=wanted.is_choosy,
            ),
        )


def alone(
    folders: Sequence[tuple[Partition, LogDir]],
    results: Sequence[CheckedPartition],
    options: StartOptions,
    image: ClusterImage | None,
) -> Iterator[Finding]:
    """Yield the findings on the loading of single folders, which are in no log dir with a dry start.

    ``folders`` have the facts of their log dirs, ``results`` are their checks. Raises StoreError.
    """
    from kdump.answers.topic_configs import index_intervals, index_sizes

    partitions = [part for part, _ in folders]
    intervals, sizes = index_intervals(image), index_sizes(image)
    facts = dict(_facts(partitions, {each.folder: each for each in results}, lambda _: CommittedOffsets([])))
    locked = set(filter(is_locked, {part.log_dir or "." for part in partitions if part.files is LOCAL}))
    for part in partitions:
        shown = part.files.shown(part.folder)
        if part.files is LOCAL and shown in facts and (part.log_dir or ".") in locked:  # the files may differ in age
            facts[shown] = facts[shown]._replace(first={}, is_reported=True)
    context = Context(facts, lambda _topic, _number: {})
    context = context if image is None else _with_metadata(context, image)
    of_folders = known(results, partitions)
    loads = []
    for part, place in folders:
        parsed = file_names.parse_folder(part.base)
        if parsed is None:
            continue
        how = Loading(
            place.clean,
            place.recovery_point or 0,
            place.log_start or 0,
            options.release,
            of_folders[part.files.shown(part.folder)],
            intervals.get(parsed.topic, options.interval),
            sizes.get(parsed.topic, options.index_size),
        )
        log_dir = LogDirFiles(part.files, part.log_dir)
        loads.append((LogFolder(log_dir, part.folder, parsed, options.limit, part), how))
    fatal = {one.file for each in results for one in each.findings if one.fatal}
    for is_here in (True, False):
        some = [load for load in loads if (load[0].files is LOCAL) == is_here]
        for one in findings_alone(start_alone(some, options.release.name), context) if some else ():
            if one.file not in fatal:
                yield one if is_here else of_a_copy(one)


def _spares(partitions: Sequence[Partition], log_dirs: Container[str]) -> Iterator[SpareFolder]:
    for part in partitions:
        if part.size and (part.foreign or part.files.shown(part.log_dir or ".") not in log_dirs):
            with suppress(UnreadableError):  # the note on a foreign folder
                if (topic_id := part.topic_id(discard)) is not None:
                    yield SpareFolder(part.files.shown(part.folder), topic_id, part.size)


def _of_cluster(
    cluster: str | None, by_dir: Mapping[str, Sequence[Partition]], clusters: Mapping[str, str]
) -> list[Partition]:
    """Return the partitions in log dirs of a cluster or of an unknown one; all if the paths name one cluster."""
    kept = {None, cluster} if len(set(clusters.values())) > 1 else {None, *clusters.values()}
    return [part for log_dir, held in by_dir.items() if clusters.get(log_dir) in kept for part in held]


def _with_metadata(context: Context, image: ClusterImage) -> Context:
    from kdump.answers.topic_configs import compacted_topics, tiered_topics

    topics = image.topics.by_name
    return context._replace(
        replicas={
            (name, number): tuple(state.replicas)
            for name, topic in topics.items()
            for number, state in topic.partitions.items()
        },
        ids={name: topic.id for name, topic in topics.items()},
        nodes=_registered(image),
        compacted=compacted_topics(image),
        tiered=tiered_topics(image),
    )


def _copied(partitions: Mapping[str, Sequence[Partition]], wanted: Wanted, log_dir: str, label: str) -> str:
    size = None if wanted.is_choosy else sum(part.size for part in partitions.get(log_dir, ()))
    return copied(log_dir, size, label)


def _others(replicas: Mapping[tuple[str, int], Sequence[int]], own: int | None, partition: str) -> list[int]:
    topic, _, number = partition.rpartition("-")
    return [node for node in replicas.get((topic, int(number)), ()) if node != own] if number.isdecimal() else []


def verdicts(started: Sequence[Started], found: Sequence[Finding], *, unreadable: bool = False) -> list[StartVerdict]:
    """Return a verdict on each broker. If there are several brokers, a verdict on all of them comes first.

    ``found``: all findings. ``unreadable``: a file could not be read. Without a dry start, there is a verdict only if a
    finding is grave.
    """
    if not started:
        known = VerdictFacts(quoted=shell_path, are_whole=False)
        return [verdict(found, "the broker", log_dirs=known)] if any(one.is_grave for one in found) else []
    if len({each.result.cluster_id for each in started} - {None}) > 1:
        for each in started:
            cluster = each.result.cluster_id
            each.label = each.name if cluster is None else f"{each.name} of cluster {cluster}"
            names = first_of(list(map(path_text, each.result.log_dirs)), SHOWN)
            each.log_dirs = each.log_dirs._replace(alone=f" with only {names} in its log.dirs")
    made = [each.verdict(found) for each in started]
    if unreadable:
        text = "a file or folder could not be read, so it is unknown what a start would lose"
        of_each = zip(started, made, strict=True)
        made = [
            StartVerdict(f"{each.label}: {text}", "unread") if one.outcome in {"safe", "rebuilt", "unknown"} else one
            for each, one in of_each
        ]
    if len(made) == 1:
        return made
    return [_of_several(started), *made]


def _of_several(started: Sequence[Started]) -> StartVerdict:
    """Return the sentence on log dirs of several brokers. With a node.id, add the command that checks them as one."""
    of_each = [(f"{each.label} ({', '.join(map(path_text, each.result.log_dirs))})") for each in started]
    text = (
        f"these are log dirs of {len(started)} brokers: {first_of(of_each, SHOWN)}. Each verdict below is for one "
        "broker alone. If the log.dirs of one broker name all of them, it does not start"
    )
    first = max(started, key=lambda each: (each.has_metadata_log, len(each.result.log_dirs)))
    dirs = sorted(((path, each.result) for each in started for path in each.result.log_dirs), key=itemgetter(0))
    cluster, node = dirs[0][1].cluster_id, first.result.node_id
    for path, result in dirs:
        shown = posixpath.join(path, file_names.META_PROPERTIES)
        if None not in {cluster, result.cluster_id} and result.cluster_id != cluster:
            text += f": {cluster_differs(shown, cluster, result.cluster_id)}"
            break
        if None not in {node, result.node_id} and result.node_id != node:
            text += f": {node_differs(shown, node, result.node_id)}"
            break
    if node is None:
        return StartVerdict(f"{text}. Name the broker with --config node.id=N", "several")
    others = [path_text(path) for each in started if each is not first for path in each.result.log_dirs]
    text += f". In that case remove {first_of(others, SHOWN)} from the log.dirs of {first.label}, or put its own log "
    text += "dir there. To check this:"
    words = [shell_path(path) for each in started for path in each.result.log_dirs]
    return StartVerdict(text, "several", (f"kdump check {' '.join(words)} --config node.id={node}",))


def _closed(partitions: Sequence[Partition]) -> set[str]:
    """Return the folders whose log was closed before the broker was killed (:attr:`LogEvidence.is_closed`).

    A broker preallocates both indexes of the newest segment (AbstractIndex), and trims them when it closes the log. If
    more than a fifth of the logs in a log dir are trimmed, none counts as closed. If one index of a log still has the
    preallocated size that is usual in the log dir, the log is not closed: another program changed the other index.
    Trimmed folders that replace a folder in ``LOG_DIR.aside`` do not count: kdump salvage writes trimmed indexes.
    """
    found: set[str] = set()
    by_dir: dict[str, dict[str, tuple[int, int]]] = {}
    replaced_in: dict[str, frozenset[str]] = {}
    for part in partitions:
        sizes = _index_sizes(part)
        if sizes is None:
            continue
        log_dir = part.log_dir
        if log_dir not in replaced_in:
            replaced_in[log_dir] = _moved_away(part)
        if posixpath.basename(part.folder) not in replaced_in[log_dir] or not _are_trimmed(*sizes):
            by_dir.setdefault(log_dir, {})[part.files.shown(part.folder)] = sizes
    for each in by_dir.values():
        trimmed = {folder for folder, sizes in each.items() if _are_trimmed(*sizes)}
        opened = Counter(sizes for folder, sizes in each.items() if folder not in trimmed)
        usual = max(opened, key=opened.__getitem__, default=(-1, -1))
        closed = {folder for folder in trimmed if all(map(ne, each[folder], usual))}
        found |= closed if 4 * len(trimmed) <= len(each) - len(trimmed) else set()
    return found


def _moved_away(part: Partition) -> frozenset[str]:
    """Return the names of the folders that printed commands have moved out of the partition's log dir."""
    if part.files is not LOCAL:
        return frozenset()
    try:
        return frozenset(entry.name for entry in LOCAL.entries(beside(part.log_dir, file_names.ASIDE)))
    except UnreadableError:
        return frozenset()


def _are_trimmed(index: int, times: int) -> bool:
    return index <= OffsetIndex.layout.size or not is_preallocated(index, times)


def _index_sizes(part: Partition) -> tuple[int, int] | None:
    """Return the sizes of the newest segment's indexes; None if one is missing, or without a topic's folder in use."""
    logs = part.logs
    if part.topic in {None, CLUSTER_METADATA} or not logs or leftover_of(part):
        return None
    sizes = {entry.path: entry.size for entry in part.others}
    index, times = (sizes.get(logs[-1].siblings.get(suffix, "")) for suffix in file_names.PREALLOCATED)
    return None if index is None or times is None else (index, times)


def _facts(
    partitions: Sequence[Partition],
    checked: Mapping[str, CheckedPartition],
    groups: Callable[[str], CommittedOffsets],
) -> Iterator[tuple[str, LogEvidence]]:
    closed = _closed(partitions)
    for part in partitions:
        shown = part.files.shown(part.folder)
        result = checked.get(shown)
        if result is None or part.topic is None:
            continue
        wrong = [one for one in result.findings if not one.is_remark or one.is_grave]
        grave = {one.code for one in wrong if one.is_grave}
        evidence = dict(result.reaches)
        if not result.size and part.partition is not None and not leftover_of(part):
            evidence |= groups(part.files.shown(part.log_dir or ".")).of(part.topic, part.partition)
        base = min([each.base_offset or 0 for each in part.segments], default=0)
        yield (
            shown,
            LogEvidence(
                result.start,
                result.end,
                result.size,
                evidence,
                result.begins,
                base,
                not grave.isdisjoint({Code.HIGH_WATERMARK, Code.RECOVERY}),
                Code.RECOVERY in grave,
                any(one.code == Code.CLEAN_MARKER for one in wrong),
                any(one.level is Level.LOG and not one.is_hole for one in wrong),
                shown in closed,
            ),
        )


def _registered(image: ClusterImage) -> dict[int, tuple[str, ...]]:
    return {
        node: tuple(id_text(each) for each in fields.get("logDirs") or ())
        for node, fields in sorted(image.cluster.brokers.items())
    }


def _properties(log_dirs: Mapping[str, Partition]) -> dict[str, Mapping[str, str]]:
    """Return shown path of a log dir -> the values in its ``meta.properties``, also if a broker cannot use the file."""
    found: dict[str, Mapping[str, str]] = {}
    for shown, part in log_dirs.items():
        with suppress(DamageError):  # the check of the log dir reports it
            data = _read(part, file_names.META_PROPERTIES)
            found[shown] = {} if data is None else meta_properties.read(data).values
    return found


def _read(part: Partition, name: str) -> bytes | None:
    """Return the content of a file in a partition's log dir, or None if the file is absent or unreadable."""
    try:
        return part.beside(name)
    except UnreadableError:  # the check of the log dir reports it
        return None
