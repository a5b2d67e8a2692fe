"""Dry starts with the findings that they make, and the verdict on each broker."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from kdump.answers.metadata.image import image_of
from kdump.answers.metadata.topics import id_text
from kdump.answers.topic_configs import compacted_topics, tiered_topics
from kdump.broker_start.shortfall import committed_offsets, of_groups
from kdump.broker_start.start_findings import Context, Everything, LogEvidence, findings
from kdump.checks.folder import leftover_of
from kdump.errors import Reporter, UnreadableError
from kdump.findings import of_a_copy
from kdump.findings.codes import Code
from kdump.findings.verdict import NOT_KNOWN, OPEN, StartVerdict, verdict
from kdump.internal_topics import CLUSTER_METADATA, consumer_offsets
from kdump.log_dirs import file_names
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.local import LOCAL
from kdump.primitives.terminal import path_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.broker_start.outcome import BrokerStart
    from kdump.checks.everything import CheckedPartition
    from kdump.findings import Finding
    from kdump.log_dirs.finder import Wanted
    from kdump.log_dirs.partition import Partition


def metadata_image(
    partitions: Sequence[Partition],
    fail: Callable[[UnreadableError], None] = lambda _: None,
    damage: Callable[[str], None] = lambda _: None,
) -> ClusterImage | None:
    """Return the image of the metadata log among partitions; the dry start reports what does not replay.

    ``fail`` takes what cannot be read, ``damage`` what does not replay.
    """
    copies = [part for part in partitions if part.topic == CLUSTER_METADATA]
    if not copies:
        return None
    if len(copies) > 1:
        damage("there are several copies")
    return image_of(copies, Reporter(damage=damage, fail=fail))


def known(results: Sequence[CheckedPartition]) -> dict[str, int]:
    """Return the next offsets of logs that the check found valid: a dry start does not read them again."""
    return {result.folder: result.sound_end for result in results if result.sound_end is not None}


class Started:
    """A dry start of one broker: what it comes to, and the findings that it makes."""

    def __init__(self, result: BrokerStart, found: Sequence[Finding]) -> None:
        self.result, self.findings = result, found
        self.known = self.name

    def join(self, found: list[Finding]) -> list[Finding]:
        """Return the findings that are new to those of the check, ``found``; one of the same file gets the commands."""
        new = []
        for one in self.findings:
            same = (at for at, held in enumerate(found) if one.fatal and held.fatal and held.file == one.file)
            at = next(same, None)
            if at is None:
                new.append(one)
            else:
                found[at] = replace(found[at], commands=one.commands)
        self.findings = new
        return new

    def verdict(self, others: Sequence[Finding]) -> StartVerdict:
        """Return the verdict; ``others`` are the findings of the check in all log dirs."""
        own = set(self.findings)
        if any(one.code == OPEN and one.is_remark for one in self.findings):
            self.known = f"{self.name} (no metadata log is among the paths)"
        mine = [*self.findings, *(one for one in others if one not in own and self._is_here(one.file))]
        return verdict(
            mine, self.known, starts=self.starts, why=next((f": {cause.text}" for cause in self.result.unknown), "")
        )

    @property
    def starts(self) -> bool | None:
        """Whether the broker comes up; None also where a missing meta.properties may be that of an old broker."""
        starts = self.result.starts
        return None if starts is False and not any(one.fatal for one in self.findings) else starts

    @property
    def name(self) -> str:
        """The broker in words."""
        node = self.result.node_id
        return "the broker" if node is None else f"broker {node}"

    def _is_here(self, file: str) -> bool:
        path = posixpath.normpath(file)
        dirs = [posixpath.normpath(each) for each in self.result.log_dirs]
        return any(each in {".", path} or path.startswith(f"{each}/") for each in dirs)


def started(
    found: Iterable[BrokerStart],
    partitions: Sequence[Partition],
    results: Sequence[CheckedPartition],
    image: ClusterImage | None,
    configs: Mapping[str, str],
    wanted: Wanted,
) -> Iterator[Started]:
    """Yield dry starts with the findings that they make, compared with the files of their log dirs."""
    groups = _Groups(partitions)
    facts = dict(_facts(partitions, {result.folder: result for result in results}, groups))
    for result in found:
        dirs = set(result.log_dirs)
        of_broker = [part for part in partitions if part.files.shown(part.log_dir or ".") in dirs]
        marks = _marks(of_broker)
        context = Context(
            facts,
            lambda topic, number, marks=marks: {  # type: ignore[misc]  # bound now
                **marks.get((topic, number), {}),
                **groups.of(topic, number),
            },
            {}
            if image is None
            else {
                (topic.name, number): tuple(state.replicas)
                for topic in image.topics.by_name.values()
                for number, state in topic.partitions.items()
            },
            {} if image is None else {name: topic.id for name, topic in image.topics.by_name.items()},
            {} if image is None else _registered(image),
            _directories(of_broker),
            any(entry.name == file_names.PARTITION_METADATA for part in of_broker for entry in part.others),
            Everything() if image is None else compacted_topics(image),
            bool(configs.get("node.id", configs.get("broker.id"))),
            lambda topic, number: wanted.takes(Name(topic, number)),
            None if image is None else tiered_topics(image),
        )
        made = findings(result, context)
        is_here = all(part.files is LOCAL for part in of_broker)
        yield Started(result, list(made if is_here else map(of_a_copy, made)))


def verdicts(started: Sequence[Started], found: Sequence[Finding], *, unreadable: bool = False) -> list[StartVerdict]:
    """Return a verdict on each broker; with several brokers, first a line that says so.

    ``found`` are all findings; ``unreadable``: something could not be read.
    """
    if not started:
        return [verdict(found, "a broker")] if any(one.is_grave for one in found) else []
    made = [each.verdict(found) for each in started]
    if unreadable:
        text = f"something could not be read, so {NOT_KNOWN}"
        of_each = zip(started, made, strict=True)
        made = [StartVerdict(f"{each.name}: {text}", (), False) if one.is_safe else one for each, one in of_each]
    if len(made) == 1:
        return made
    clusters = [each.result.cluster_id for each in started]
    is_one = len({*clusters} - {None}) < 2
    of = [
        each.name if is_one or cluster is None else f"{each.name} of cluster {cluster}"
        for each, cluster in zip(started, clusters, strict=True)
    ]
    dirs = "; ".join(
        f"{name}: {', '.join(map(path_text, each.result.log_dirs))}" for name, each in zip(of, started, strict=True)
    )
    text = (
        f"log dirs of {len(made)} brokers ({dirs}): a broker with all of them in log.dirs does not start. Check the "
        "log dirs of one broker at a time, or say whose they are: --config node.id=N"
    )
    return [StartVerdict(text, (), is_safe=True), *made]


class _Groups:
    """The offsets that groups have committed, read where a log is empty or has no folder."""

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self._partitions = partitions

    def of(self, topic: str, number: int) -> dict[str, int]:
        """Return the greatest one of a partition, in words."""
        return of_groups(self._offsets, topic, number)

    @cached_property
    def _offsets(self) -> dict[tuple[str, int], int]:
        return committed_offsets(part for part in self._partitions if part.topic == consumer_offsets.TOPIC)


def _facts(
    partitions: Sequence[Partition], checked: Mapping[str, CheckedPartition], groups: _Groups
) -> Iterator[tuple[str, LogEvidence]]:
    for part in partitions:
        shown = part.files.shown(part.folder)
        result = checked.get(shown)
        if result is None or part.topic is None:
            continue
        is_reported = any(one.code in {Code.HIGH_WATERMARK, Code.RECOVERY} and one.is_grave for one in result.findings)
        recovers = any(one.code == Code.CLEAN_MARKER for one in result.findings)
        evidence = dict(result.reaches)
        if not result.size and part.partition is not None and not leftover_of(part):
            evidence |= groups.of(part.topic, part.partition)
        base = min((each.base_offset or 0 for each in part.segments), default=0)
        yield (
            shown,
            LogEvidence(result.start, result.end, result.size, evidence, result.begins, base, is_reported, recovers),
        )


def _registered(image: ClusterImage) -> dict[int, tuple[str, ...]]:
    """Return the brokers of the metadata log, with the directory ids that they registered."""
    return {
        node: tuple(id_text(each) for each in fields.get("logDirs") or ())
        for node, fields in sorted(image.cluster.brokers.items())
    }


def _directories(partitions: Sequence[Partition]) -> dict[str, str]:
    """Return the directory.id of log dirs, by path as shown."""
    from kdump.errors import DamageError
    from kdump.formats import meta_properties

    found: dict[str, str] = {}
    for part in partitions:
        shown = part.files.shown(part.log_dir or ".")
        if shown in found:
            continue
        try:
            data = part.beside(file_names.META_PROPERTIES)
            text = None if data is None else meta_properties.read(data).directory_id
        except (DamageError, UnreadableError):  # the check of the log dir reports it
            continue
        if text is not None:
            found[shown] = text
    return found


def _marks(partitions: Sequence[Partition]) -> dict[tuple[str, int], dict[str, int]]:
    """Return the offsets of the checkpoints of log dirs, by partition."""
    from kdump.errors import DamageError
    from kdump.formats import checkpoints

    found: dict[tuple[str, int], dict[str, int]] = {}
    seen: set[str] = set()
    for part in partitions:
        if part.log_dir in seen:
            continue
        seen.add(part.log_dir)
        for what, name in (
            ("high watermark", file_names.HIGH_WATERMARKS),
            ("recovery point", file_names.RECOVERY_POINTS),
        ):
            try:
                data = part.beside(name)
                for entry in () if data is None else checkpoints.read(data):
                    key = (str(entry[0]), int(entry[1] or 0))
                    of_part = found.setdefault(key, {})
                    of_part[what] = max(of_part.get(what, 0), entry.offset)
            except (DamageError, UnreadableError):  # the check of the log dir reports it
                continue
    return found
