"""The question ``retention``: the configs of each topic, and for each segment whether retention deletes it, and why.

:mod:`.retention_rules` decides about segments; :mod:`.topic_configs` finds the configs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from kdump.answers.collector import Collector, Needs, Reading
from kdump.answers.metadata.image import topic_ids
from kdump.answers.question import EXIT_STATUS, LineTable, LogQuestion, option
from kdump.answers.retention_rules import (
    From,
    LogFacts,
    Reason,
    RetentionCheck,
    RetentionRules,
    log_facts,
    rules_of,
    unclean_end,
)
from kdump.answers.topic_configs import TopicConfigs, config_option
from kdump.internal_topics import cluster_metadata, remote_log_metadata
from kdump.log_reader import remote_segments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kdump.answers.collector import AnswerLine, Place
    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.question import Asking
    from kdump.answers.topic_configs import GivenConfig
    from kdump.errors import Reporter
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.records.record_batch import Batches
    from kdump.segments.regions import Damage, Trailing


def copied_offsets(
    partitions: Iterable[Partition],
    image: ClusterImage | None,
    report: Reporter,
) -> dict[tuple[str, int], int]:
    """Return (topic, partition) -> last offset copied to remote storage, of the topic's id in ``image`` if any."""
    listed = remote_segments.of_partitions(partitions, report)
    ids = topic_ids(image)
    found: dict[tuple[str, int], int] = {}
    for (topic, topic_id, partition), end in listed.last_copied.items():
        if ids.get(topic, topic_id) == topic_id:
            found[topic, partition] = max(end, found.get((topic, partition), end))
    return found


_KEYS: Final = (
    *("cleanup.policy", "retention.ms", "retention.bytes", "local.retention.ms", "local.retention.bytes"),
    "remote.storage.enable",
)


@dataclass(frozen=True, slots=True)
class TopicRetention:
    """The configs of a topic on one broker that determine deletion. ``from_`` has the source of each config.

    If ``known`` is false, the topic's configs are unknown. kdump then applies none of the fields, which
    have defaults of Kafka or the broker.
    """

    kind: ClassVar[str] = "topic"
    topic: str
    retention_ms: int
    retention_bytes: int
    local_retention_ms: int
    local_retention_bytes: int
    remote_storage_enable: bool
    cleanup_policy: str
    from_: dict[str, str]
    broker_id: str | None
    known: bool


@dataclass(frozen=True, slots=True)
class SegmentRetention:
    """A segment: whether a retention check at the given time deletes it, and why. Times are in ms.

    ``deletable`` is None if it depends on unknown configs. ``blocked_by``: base offset of the segment that blocks this.
    ``blocks`` is the number of later due segments, if this is the first that stays; ``blocks_bytes`` is their size.
    """

    kind: ClassVar[str] = "segment"
    topic: str
    partition: int
    base_offset: int
    next_offset: int | None
    bytes: int
    largest_timestamp_ms: int | None
    largest_from: From
    deletable: bool | None
    reason: Reason | None
    deletable_at_ms: int | None
    blocked_by: int | None
    blocks: int
    blocks_bytes: int
    why: str
    log_dir: str


class Retention(Collector):
    """Gathers the segments of logs except the metadata log. ``copied``: partition -> last offset in remote storage.

    After an unclean stop the batches of the active segment are read up to the first damage, as by a starting broker.
    ``newest``: path of an active segment -> its largest timestamp in ms, if an earlier pass has read the segment.
    """

    def __init__(
        self,
        configs: TopicConfigs,
        rules: RetentionRules | None = None,
        copied: Mapping[tuple[str, int], int] | None = None,
        newest: Mapping[str, int] | None = None,
    ) -> None:
        self._configs = configs
        self._rules = rules or rules_of(None)
        self._copied = copied or {}
        self._newest = newest or {}
        self._found: list[tuple[tuple[str, int], str, str | None, LogFacts]] = []
        self._place: Place | None = None
        self._active: Segment | None = None
        self._takes, self._largest = False, -1

    def begin(self, place: Place) -> Needs | Reading:
        self._place, self._active, self._takes, self._largest = None, None, False, -1
        key = place.key
        if key is None or key[0] == cluster_metadata.TOPIC:
            return Needs.FILES
        self._place, self._active = place, unclean_end(place)
        if self._active is None:
            return Needs.FILES
        self._largest = self._newest.get(self._active.path, -1)
        return Needs.FILES if self._largest >= 0 else Reading(Needs.HEADERS, self._active.base_offset or 0)

    def turn_to(self, segment: Segment) -> None:
        self._takes = self._active is not None and segment.path == self._active.path

    def add(self, batches: Batches) -> None:
        if self._takes:
            self._largest = max(self._largest, batches.greatest("max_timestamp"))

    def lose(self, region: Damage | Trailing) -> None:  # noqa: ARG002  the log ends at any damage
        self._takes = False

    def end(self) -> None:
        place, self._place, self._active = self._place, None, None
        if place is not None and (key := place.key) is not None:
            facts = log_facts(place, self._largest)
            self._found.append((key, place.log_dir.path, place.log_dir.broker_id, facts))

    def merge(self, other: Retention) -> None:
        self._found += other._found

    def answer(self, at: int) -> Iterator[AnswerLine]:
        for topic, broker in sorted({(key[0], broker_id or "") for key, _, broker_id, _ in self._found}):
            yield self._topic(topic, broker or None)
        for (topic, partition), log_dir, broker_id, facts in sorted(self._found, key=lambda found: found[:2]):
            check = self._check((topic, partition), broker_id, facts, at)
            for segment, verdict in zip(facts.segments, check.verdicts(), strict=True):
                yield SegmentRetention(
                    topic=topic,
                    partition=partition,
                    base_offset=segment.base_offset,
                    next_offset=None if segment.is_unreadable else segment.next_offset,
                    bytes=segment.size,
                    largest_timestamp_ms=segment.largest if self._rules.times_from_index else segment.modified,
                    largest_from=segment.largest_from if self._rules.times_from_index else "mtime",
                    deletable=True if verdict.reason is not None else False if check.is_known else None,
                    reason=verdict.reason,
                    deletable_at_ms=verdict.due_at,
                    blocked_by=verdict.blocked_by,
                    blocks=verdict.blocks,
                    blocks_bytes=verdict.blocked_size,
                    why=verdict.why,
                    log_dir=log_dir,
                )

    def bytes_at(self, times: Sequence[int]) -> Iterator[tuple[int, str, int, int]]:
        """Yield (time, topic, bytes kept, bytes deleted) of each replica with known configs, for each time in ms."""
        for key, _, broker_id, facts in self._found:
            sizes = [segment.size for segment in facts.segments]
            for at in times if self._configs.knows(key[0]) else ():
                goes = self._check(key, broker_id, facts, at).deletable
                yield at, key[0], sum(sizes[goes:]), sum(sizes[:goes])

    def _check(self, key: tuple[str, int], broker_id: str | None, facts: LogFacts, at: int) -> RetentionCheck:
        config, known = self._configs.of(key[0], broker_id), self._configs.knows(key[0])
        return RetentionCheck(facts, config, self._rules, self._copied.get(key), at, is_known=known)

    def _topic(self, topic: str, broker_id: str | None) -> TopicRetention:
        config = self._configs.of(topic, broker_id)
        return TopicRetention(
            topic=topic,
            retention_ms=config.number("retention.ms"),
            retention_bytes=config.number("retention.bytes"),
            local_retention_ms=config.number("local.retention.ms"),
            local_retention_bytes=config.number("local.retention.bytes"),
            remote_storage_enable=config.is_on("remote.storage.enable"),
            cleanup_policy=config.cleanup_policy,
            from_=config.sources(_KEYS),
            broker_id=broker_id,
            known=self._configs.knows(topic),
        )


HELP: Final = f"""List the segments that a broker deletes, when and why.

\b
Examples:
  kdump retention /var/kafka --topic orders
  kdump retention /var/kafka --at 2026-12-01T00:00Z
  kdump retention /var/kafka --config 'orders:retention.ms=3600000'
  kdump retention /var/kafka -o jsonl | jq 'select(.blocks > 0)'

A broker's check starts at the oldest segment and ends at the first segment that stays, for example because of a
timestamp in the future. This segment blocks later segments that are due. Its fields blocks and blocksBytes count them;
their field blockedBy names it. A broker tests three reasons in this order (before 3.0 in reverse): the segment is below
the log start offset, the log is too large, the segment is too old. The age of a segment begins at the timestamp of its
last .timeindex entry. If there is none, or it is below 0, the age begins at the last write of the .log file, which may
differ in a copy. Segments above the high watermark of the checkpoint stay. Without a checkpoint, the log end offset
counts as the high watermark.

Configs come from --config, then from the dynamic configs of the topic, the broker and all brokers in
__cluster_metadata of the paths, then from Kafka's defaults. The broker's properties file is not in a log dir: give its
settings with --config. If neither __cluster_metadata nor --config has a topic, the result is unknown (deletable: null,
known: false), except for Kafka's own compacted topics and segments below the log start offset. Other segments of a
tiered topic are deleted only if __remote_log_metadata in the paths lists them as copied.
{EXIT_STATUS}"""


@dataclass(frozen=True)
class RetentionOptions:
    config: tuple[GivenConfig, ...] = config_option()
    release: tuple[int, ...] | None = option(
        None, "release", "--release", "The broker's release. Default: the newest known.", metavar="RELEASE"
    )


def _collector(asking: Asking, options: RetentionOptions) -> Retention:
    copied = copied_offsets(asking.found, asking.image, asking.report)
    return Retention(TopicConfigs(asking.image, options.config), rules_of(options.release), copied)


QUESTION: Final = LogQuestion(
    "retention",
    HELP,
    RetentionOptions,
    (TopicRetention, SegmentRetention),
    _collector,
    tables=(
        LineTable("retention", SegmentRetention),
        LineTable("topic_configs", TopicRetention, omits=frozenset({"known"})),
        LineTable("topic_config_details", TopicRetention),
    ),
    also=(cluster_metadata.TOPIC, remote_log_metadata.TOPIC),
)
