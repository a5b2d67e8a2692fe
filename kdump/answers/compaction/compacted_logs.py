"""The question ``compaction``: compacted partitions, the records that the next cleaning removes, and the largest keys.

This module finds the dirty section, which the next cleaning cleans; :mod:`~kdump.answers.compaction.cleaning` simulates
the cleaning. Source: Kafka's classes LogCleanerManager (``cleanableOffsets``, ``maxCompactionDelay``) and LogToClean.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, TypeAlias

from kdump.answers.collector import Collector, Needs
from kdump.answers.compaction.cleaning import MAP_ENTRIES, Cleaned, Cleaning, CleaningLimits
from kdump.answers.compaction.key_tables import REASONS
from kdump.answers.producer_state import ProducerReplay
from kdump.answers.question import EXIT_STATUS, LineTable, LogQuestion, option
from kdump.answers.retention_rules import log_facts
from kdump.answers.topic_configs import UNKNOWN, TopicConfigs, config_option
from kdump.errors import UnreadableError
from kdump.internal_topics import cluster_metadata
from kdump.primitives.terminal import shell_word
from kdump.segments.log_end import first_batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.answers.collector import AnswerLine, Place
    from kdump.answers.question import Asking
    from kdump.answers.retention_rules import AgedSegment, LogFacts
    from kdump.answers.topic_configs import GivenConfig, Setting, TopicConfig
    from kdump.log_dirs.partition import Segment


Holder: TypeAlias = Literal["activeSegment", "openTransaction", "highWatermark", "minCompactionLag"]


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A reason why segments from ``from_offset`` on are not cleaned, and the bytes to the next reason or log end."""

    by: Holder
    why: str
    from_offset: int
    bytes: int


class _Limit(NamedTuple):
    offset: int
    by: Holder
    why: str


class DirtySection(NamedTuple):
    """The offsets from ``first_dirty`` up to, but not including, ``first_uncleanable``. Sizes are of whole segments.

    ``held_back`` has the reasons why the cleaner does not reach the log end. The first of them ends the section.
    """

    first_dirty: int
    first_uncleanable: int
    clean_bytes: int
    dirty_bytes: int
    held_back: tuple[HeldBack, ...]
    is_due: bool
    why: str

    @property
    def ratio(self) -> float:
        """Dirty bytes / (clean bytes + dirty bytes): 0.0 to 1.0; 0.0 if both are 0."""
        whole = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / whole if whole else 0.0


def dirty_section(place: Place, facts: LogFacts, config: TopicConfig, at: int) -> DirtySection:
    """Return the dirty section of a partition with segments, at the time ``at`` (ms). Raises UnreadableError."""
    segments = facts.segments
    end = segments[-1].next_offset
    first_dirty, begins = _first_dirty(place, facts, end)
    limits = [_Limit(segments[-1].base_offset, "activeSegment", "the active segment"), _last_stable(place, end)]
    lag = config.number("min.compaction.lag.ms")
    for segment in segments[:-1]:
        if lag > 0 and segment.next_offset > first_dirty and (segment.largest or 0) > at - lag:
            limits.append(_Limit(segment.base_offset, "minCompactionLag", f"min.compaction.lag.ms = {lag}"))
            break
    limits.sort(key=lambda limit: limit.offset)
    uncleanable = _holding(segments, limits[0].offset)
    clean = sum(segment.size for segment in segments if segment.base_offset < first_dirty)
    start = max((s.base_offset for s in segments if s.base_offset <= min(first_dirty, uncleanable)), default=0)
    dirty = sum(segment.size for segment in segments if start <= segment.base_offset < uncleanable)
    held_back = tuple(_held_back(segments, limits))
    found = DirtySection(first_dirty, max(uncleanable, first_dirty), clean, dirty, held_back, False, begins)
    is_due, why = _due(place.partition.segments, segments, found, config, at)
    return found._replace(is_due=is_due, why=f"{begins} and ends at {limits[0].why}; {why}")


def _holding(segments: Sequence[AgedSegment], offset: int) -> int:
    return max(
        (segment.base_offset for segment in segments if segment.base_offset <= offset), default=segments[0].base_offset
    )


def _held_back(segments: Sequence[AgedSegment], limits: Sequence[_Limit]) -> Iterator[HeldBack]:
    """Yield each segment's first limit with the bytes up to the next segment with a limit, unless these are 0."""
    bounds: dict[int, _Limit] = {}
    for limit in limits:
        bounds.setdefault(_holding(segments, limit.offset), limit)
    for (start, limit), following in zip(bounds.items(), [*list(bounds)[1:], None], strict=False):
        blocked_bytes = sum(
            segment.size
            for segment in segments
            if segment.base_offset >= start and (following is None or segment.base_offset < following)
        )
        if blocked_bytes:
            yield HeldBack(limit.by, limit.why, start, blocked_bytes)


def _first_dirty(place: Place, facts: LogFacts, end: int) -> tuple[int, str]:
    known = None if place.key is None else place.log_dir.cleaned.get(place.key)
    if known is None:
        return facts.log_start, "the cleaner has no checkpoint: the dirty part begins at the log start"
    if not facts.log_start <= known <= end:
        why = f"the cleaner's checkpoint {known} is outside the log: the dirty part begins at the log start"
        return facts.log_start, why
    return known, f"the dirty part begins at the cleaner's checkpoint {known}"


def _last_stable(place: Place, end: int) -> _Limit:
    """Return the last stable offset with its cause: an open transaction, or the high watermark (else the log end)."""
    replay = ProducerReplay(place)
    replay.read(place.partition.segments, place.report.damage)
    first_open, watermark = replay.first_open_offset, place.high_watermark
    if first_open is not None and (watermark is None or first_open < watermark):
        return _Limit(first_open, "openTransaction", f"the open transaction that begins at offset {first_open}")
    return _Limit(end if watermark is None else min(watermark, end), "highWatermark", "the high watermark")


def _due(
    files: Sequence[Segment], segments: Sequence[AgedSegment], found: DirtySection, config: TopicConfig, at: int
) -> tuple[bool, str]:
    ratio, least = found.ratio, config.real("min.cleanable.dirty.ratio")
    if ratio > least:
        return True, f"the dirty ratio {ratio:.3f} is above min.cleanable.dirty.ratio = {least}"
    lag = max(0, config.number("max.compaction.lag.ms"))
    if found.dirty_bytes:
        dirty = (
            file
            for file, segment in zip(files, segments, strict=True)
            if not segment.is_last and segment.next_offset > found.first_dirty
        )
        firsts = filter(None, (first_batch([file]) for file in dirty))
        oldest = min((first.max_timestamp for first in firsts if first.max_timestamp > 0), default=at)
        if oldest < at - lag:
            return True, f"the oldest dirty segment is {at - oldest} ms old, above max.compaction.lag.ms = {lag}"
    return False, f"the dirty ratio {ratio:.3f} is not above min.cleanable.dirty.ratio = {least}"


@dataclass(frozen=True, slots=True)
class PartitionCompaction:
    """A compacted partition.

    ``held_back`` has the reasons for ``uncleanable_bytes``. ``keys`` is the number of keys in the map of the next
    cleaning, ``map_entries`` the capacity of the map. ``records`` and ``tombstones`` include the removed ones.
    """

    kind: ClassVar[str] = "partition"
    topic: str
    partition: int
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int
    dirty_ratio: float
    uncleanable_bytes: int
    held_back: tuple[HeldBack, ...]
    due: bool
    keys: int
    records: int
    superseded: int
    tombstones: int
    removable_tombstones: int
    keyless: int
    superseded_bytes: int
    map_entries: int
    map_fits: bool
    why: str
    aborted: int
    markers: int
    cleaned_up_to: int
    damage: str | None
    log_dir: str


@dataclass(frozen=True, slots=True)
class CleanedRecord:
    """A record that the next cleaning removes."""

    kind: ClassVar[str] = "removed"
    topic: str
    partition: int
    offset: int
    why: str


@dataclass(frozen=True, slots=True)
class KeyUsage:
    """A key, its records and their bytes in the segments that the cleaning rewrites. ``key``: base64 if not UTF-8."""

    kind: ClassVar[str] = "key"
    topic: str
    partition: int
    key: str
    records: int
    bytes: int
    is_base64: bool


class Compaction(Collector):
    """Collects compacted partitions and their next cleaning at the time ``at`` (ms)."""

    def __init__(
        self,
        configs: TopicConfigs,
        at: int,
        limits: CleaningLimits | None = None,
        *,
        listed: bool = False,
        top: int = 0,
    ) -> None:
        self._configs, self._at, self._limits = configs, at, limits or CleaningLimits()
        self._listed, self._top = listed, top
        self._found: list[tuple[tuple[str, int], str, DirtySection, Cleaned]] = []
        self.left_out: dict[str, Setting] = {}
        """The topics that are not compacted, or for which this is unknown, each with its cleanup.policy."""

    def begin(self, place: Place) -> Needs:
        """Simulate the cleaning of a compacted partition. This reads the log several times, apart from the pass."""
        key = place.key
        if key is None or key[0] == cluster_metadata.TOPIC or not place.partition.segments:
            return Needs.FILES
        config = self._configs.of(key[0], place.log_dir.broker_id)
        if "compact" not in config.policies:
            self.left_out[key[0]] = config.settings["cleanup.policy"]
            return Needs.FILES
        try:
            section = dirty_section(place, log_facts(place), config, self._at)
            retention = config.number("delete.retention.ms")
            cleaning = Cleaning(
                place,
                range(section.first_dirty, section.first_uncleanable),
                self._limits,
                at=self._at,
                delete_retention=retention,
                listed=self._listed,
                top=self._top,
            )
            self._found.append((key, place.log_dir.path, section, cleaning.run()))
        except UnreadableError as error:
            place.report.fail(error)
        return Needs.FILES

    def merge(self, other: Compaction) -> None:
        self._found += other._found
        self.left_out |= other.left_out

    def __len__(self) -> int:
        return len(self._found)

    def answer(self, at: int) -> Iterator[AnswerLine]:  # noqa: ARG002  the time is known when the log is read
        order = sorted(self._found, key=lambda one: (not one[2].is_due, one[0], one[1]))
        for key, log_dir, section, done in order:
            yield _line(key, log_dir, section, done, self._limits.map_entries)
        for (topic, partition), _, _, done in order:
            for offset, why in zip(done.offsets, done.reasons, strict=True):
                yield CleanedRecord(topic, partition, offset, REASONS[why])
        yield from self._keys()

    def _keys(self) -> Iterator[KeyUsage]:
        topics: dict[str, list[tuple[int, bytes, int, int]]] = {}
        for (topic, partition), _, _, done in self._found:
            topics.setdefault(topic, []).extend((-size, key, partition, records) for key, records, size in done.top)
        for topic, keys in sorted(topics.items()):
            for size, key, partition, records in sorted(keys)[: self._top]:
                text, is_base64 = _text(key)
                yield KeyUsage(topic, partition, text, records, -size, is_base64)


def _line(
    key: tuple[str, int], log_dir: str, section: DirtySection, done: Cleaned, map_entries: int
) -> PartitionCompaction:
    why = section.why
    if not done.map_fits:
        why += f"; the cleaner's key map is full before offset {done.end}: this cleaning ends at that offset"
    if done.damage is not None:
        why = f"the cleaner stops at damage, and skips the log until the broker restarts; {why}"
    return PartitionCompaction(
        topic=key[0],
        partition=key[1],
        first_dirty_offset=section.first_dirty,
        first_uncleanable_offset=section.first_uncleanable,
        clean_bytes=section.clean_bytes,
        dirty_bytes=section.dirty_bytes,
        dirty_ratio=round(section.ratio, 6),
        uncleanable_bytes=sum(one.bytes for one in section.held_back),
        held_back=section.held_back,
        due=section.is_due,
        keys=done.keys,
        records=done.records,
        superseded=done.removed["superseded"],
        tombstones=done.tombstones,
        removable_tombstones=done.removed["tombstone"],
        keyless=done.removed["keyless"],
        superseded_bytes=done.superseded_bytes,
        map_entries=map_entries,
        map_fits=done.map_fits,
        why=why,
        aborted=done.removed["aborted"],
        markers=done.removed["marker"],
        cleaned_up_to=done.end,
        damage=done.damage,
        log_dir=log_dir,
    )


def _text(key: bytes) -> tuple[str, bool]:
    try:
        return key.decode(), False
    except UnicodeDecodeError:
        return base64.b64encode(key).decode(), True


HELP: Final = f"""Show what the log cleaner does next.

\b
Examples:
  kdump compaction /var/kafka
  kdump compaction /var/kafka --topic __consumer_offsets --top 20
  kdump compaction /var/kafka --topic prices --records -o jsonl

A log is due if the share of its dirty part is above min.cleanable.dirty.ratio, or if the part is older than
max.compaction.lag.ms. The dirty part begins at the cleaner's checkpoint, and consists of whole segments. It ends before
the active segment, before the last stable offset (an open transaction or the high watermark), and before a segment
younger than min.compaction.lag.ms. The cleaner cannot reach the bytes after the dirty part (uncleanableBytes).
heldBack counts these bytes by reason.

A cleaning removes superseded records (the key has a newer record), tombstones whose delete horizon has passed, data of
aborted transactions, markers whose data is gone and whose horizon has passed, and records without a key. The first
cleaning of a tombstone sets its delete horizon, and a later cleaning removes the tombstone. Configs come from the same
places as in kdump retention.
Without __cluster_metadata in the paths, name compacted topics: --config 'prices:cleanup.policy=compact'. Only the
broker's memory records that a partition is uncleanable. Damage that would make a partition uncleanable is reported.
{EXIT_STATUS}"""


@dataclass(frozen=True)
class CompactionOptions:
    config: tuple[GivenConfig, ...] = config_option()
    records: bool = option(False, "switch", "--records", "List each record that the next cleaning removes.")
    top: int = option(0, "count", "--top", "List the N keys with the most bytes per topic.", metavar="N", least=0)
    map_entries: int = option(
        MAP_ENTRIES,
        "count",
        "--map-entries",
        "Number of keys that fit into the cleaner's map: log.cleaner.dedupe.buffer.size / threads / 24 * 0.9.",
        metavar="N",
        shown=True,
    )
    max_keys: int = option(
        MAP_ENTRIES,
        "count",
        "--max-keys",
        "Number of keys that kdump keeps in memory. A log with more keys is read several times. 50 million keys take "
        "up to 2.8 GiB (8 GiB without the compiled kernel).",
        metavar="N",
        shown=True,
    )


def _collector(asking: Asking, options: CompactionOptions) -> Compaction:
    return Compaction(
        TopicConfigs(asking.image, options.config),
        asking.at,
        CleaningLimits(options.map_entries, options.max_keys),
        listed=options.records,
        top=options.top,
    )


def _notes(asking: Asking, collector: Compaction) -> Iterator[str]:
    """Yield notes on topics that are not compacted. Without selected topics, only if none of them is compacted."""
    if asking.asked.topics or not len(collector):
        for topic, policy in sorted(collector.left_out.items())[:_NAMED]:
            yield _not_compacted(topic, policy)


def _not_compacted(topic: str, policy: Setting) -> str:
    if policy.source == "unknown":
        sets = f"if the topic is compacted, add --config {shell_word(f'{topic}:cleanup.policy=compact')}"
        return f"{topic}: {UNKNOWN}; {sets}"
    by = " by default" if policy.source == "default" else ""
    return f"{topic} is not compacted: its cleanup.policy is {policy.value!r}{by}"


_NAMED: Final = 5
"""The largest number of notes on topics that are not compacted."""
QUESTION: Final = LogQuestion(
    "compaction",
    HELP,
    CompactionOptions,
    (PartitionCompaction, CleanedRecord, KeyUsage),
    _collector,
    notes=_notes,
    tables=(
        LineTable("compaction", PartitionCompaction),
        LineTable("removed_records", CleanedRecord, "--records", {"records": True}),
    ),
    also=(cluster_metadata.TOPIC,),
)
