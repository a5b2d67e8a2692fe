"""The rules by which a broker's retention check deletes segments, and the reasons why other segments stay.

The largest timestamp of a segment is that of its last ``.timeindex`` entry, so a running broker reads no batches. A
starting broker reads the batches of a segment without an ``.index``, and of the active segment after an unclean stop.

Source: Kafka's classes UnifiedLog (``deleteOldSegments``; before 3.x Log) and LogSegment (``largestTimestamp``).
KIP-107 (log start, 0.11), KIP-405 (remote storage, 3.6), KAFKA-12177 (order, 3.0), KIP-33 (largest timestamps, 0.10.1).
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from kdump.answers.topic_configs import FOREVER, INHERIT, UNKNOWN
from kdump.errors import UnreadableError, many
from kdump.formats.time_index import TimeIndex
from kdump.primitives.timestamps import iso_or_ms, span
from kdump.records.record_batch import Batches
from kdump.segments import walk
from kdump.segments.regions import DATA

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.answers.collector import Place
    from kdump.answers.topic_configs import TopicConfig
    from kdump.log_dirs.partition import Segment


From: TypeAlias = Literal["timeindex", "mtime"]


class AgedSegment(NamedTuple):
    """A segment. ``next_offset`` is the base offset of the next segment, or the log end offset.

    Of an active segment that ``is_unreadable`` the end is unknown; ``next_offset`` is then its base offset.
    ``largest`` is its largest timestamp, else (if readable) ``modified``, the last write; in ms, None if unknown.
    ``largest_from`` is "timeindex" for any largest timestamp, also for one that was read from the batches.
    """

    base_offset: int
    next_offset: int
    size: int
    largest: int | None
    largest_from: From
    modified: int | None
    is_last: bool
    is_unreadable: bool

    @property
    def is_empty(self) -> bool:
        """Whether it is an empty active segment, which a broker never deletes."""
        return self.is_last and self.size == 0 and not self.is_unreadable


class LogFacts(NamedTuple):
    """The segments of a partition, and its offsets. The high watermark is None if no checkpoint has it."""

    segments: tuple[AgedSegment, ...]
    log_start: int
    high_watermark: int | None


def log_facts(place: Place, newest: int = -1) -> LogFacts:
    """Return the facts of a partition. ``place.report.fail`` receives unreadable files.

    ``newest``: the largest timestamp of the batches in the segment of :func:`unclean_end` in ms, below 0 if unknown.
    """
    segments = tuple(_facts(place, newest))
    first = segments[0].base_offset if segments else 0
    start = place.log_start
    return LogFacts(segments, first if start is None else max(first, start), place.high_watermark)


def unclean_end(place: Place) -> Segment | None:
    """Return the active segment after an unclean stop, or None after a clean stop or without segments."""
    segments = place.partition.segments
    return None if place.log_dir.clean or not segments else segments[-1]


def _facts(place: Place, newest: int) -> Iterator[AgedSegment]:
    segments = place.partition.segments
    for number, segment in enumerate(segments):
        base, size = segment.base_offset or 0, segment.size
        is_last = number == len(segments) - 1
        is_unreadable = is_last
        next_offset = base if is_last else segments[number + 1].base_offset or 0
        is_unclean = segment is unclean_end(place)
        largest = newest if is_unclean else -1
        modified = segment.modified
        try:
            if is_last:
                end = place.end_of(segment)
                size = end.position
                next_offset = end.offset
                is_unreadable = False
            if not is_unclean:
                largest = _largest(place, segment)
        except UnreadableError as error:
            place.report.fail(error)
            modified = None
        source: From = "mtime" if largest < 0 else "timeindex"
        known = modified if largest < 0 else largest
        yield AgedSegment(base, next_offset, size, known, source, segment.modified, is_last, is_unreadable)


def _largest(place: Place, segment: Segment) -> int:
    """Return the largest timestamp in ms; below 0 if a broker uses the last write time. Raises UnreadableError."""
    return _last_indexed(place, segment) if "index" in segment.siblings else largest_timestamp(segment)


def largest_timestamp(segment: Segment) -> int:
    """Return the largest timestamp of the batches before a malformed one in ms; -1 if there is none."""
    largest = -1
    with segment.open() as source:
        for region in walk.walk(source, limit=segment.limit, runs=DATA):
            if isinstance(region, Batches):
                largest = max(largest, region.greatest("max_timestamp"))
    return largest


def _last_indexed(place: Place, segment: Segment) -> int:
    """Return the timestamp in the last ``.timeindex`` entry in ms; -1 if there is no entry."""
    path = segment.siblings.get("timeindex")
    if path is None:
        return -1
    known: int | None = place.known(posixpath.basename(path))
    if known is not None:
        return known
    entry = TimeIndex.layout
    with segment.files.open(path) as index:
        count = index.size // entry.size
        data = index.read((count - 1) * entry.size, entry.size) if count else b""
    return entry.read(data).timestamp if len(data) == entry.size else -1


Reason: TypeAlias = Literal["logStart", "size", "time"]


@dataclass(frozen=True)
class RetentionRules:
    """The rules of releases from ``since`` on. ``order``: the reasons to delete a segment, in the order of checks.

    ``times_from_index``: age is counted from the largest timestamp, not from the last write of the file.
    ``waits_for_high_watermark``: a segment that ends above it stays. ``compact_goes_below_log_start``: segments below
    the log start are deleted also without the policy delete. ``remote``: tiered topics have local limits.
    """

    since: tuple[int, ...]
    order: tuple[Reason, ...] = ("time", "size")
    times_from_index: bool = False
    waits_for_high_watermark: bool = False
    compact_goes_below_log_start: bool = False
    remote: bool = False


_0_8 = RetentionRules((0, 8))
_0_10_1 = replace(_0_8, since=(0, 10, 1), times_from_index=True)
_0_11 = replace(_0_10_1, since=(0, 11), order=("time", "size", "logStart"))
_1_0 = replace(_0_11, since=(1, 0), waits_for_high_watermark=True)
_2_1 = replace(_1_0, since=(2, 1), compact_goes_below_log_start=True)
_3_0 = replace(_2_1, since=(3, 0), order=("logStart", "size", "time"))
_3_6 = replace(_3_0, since=(3, 6), remote=True)
RULES: Final = (_0_8, _0_10_1, _0_11, _1_0, _2_1, _3_0, _3_6)
"""The rules of all releases. A release uses the last rules whose ``since`` is not above it."""


def rules_of(release: tuple[int, ...] | None) -> RetentionRules:
    """Return the rules of a release; None is the newest one. A release before 0.8 has the rules of 0.8."""
    found = [rules for rules in RULES if release is None or rules.since <= release]
    return found[-1] if found else _0_8


FUTURE_OF_COPIED: Final = (
    " (brokers up to 4.4 keep the segment; later brokers use the last write time of the file: KAFKA-20609)"
)


class Limits(NamedTuple):
    """The limits of a partition: ``ms`` and ``size`` (bytes) are the retention; below 0 there is no limit.

    ``is_remote``: segments must be copied to remote storage before size or age deletes them. ``copied`` is then the
    last copied offset, or None if unknown. ``names`` are the configs that texts name for the limits.
    """

    ms: int
    size: int
    is_remote: bool
    copied: int | None
    names: tuple[str, str] = ("retention.ms", "retention.bytes")


def limits(config: TopicConfig, rules: RetentionRules, copied: int | None) -> Limits:
    ms, size = config.number("retention.ms"), config.number("retention.bytes")
    if not rules.remote or not config.is_on("remote.storage.enable") or config.is_on("remote.log.copy.disable"):
        return Limits(ms, size, False, None)
    local_ms, local_size = config.number("local.retention.ms"), config.number("local.retention.bytes")
    return Limits(
        ms if local_ms == INHERIT else local_ms,
        size if local_size == INHERIT else local_size,
        True,
        copied,
        ("local.retention.ms", "local.retention.bytes"),
    )


class Verdict(NamedTuple):
    """The outcome for a segment. ``reason`` is the reason of its deletion, or None if it stays.

    ``due_at`` is the first time in ms at which the segment is too old; None if age does not matter, or is unknown.
    ``blocked_by`` is the base offset of the earlier segment that blocks this due segment; None for other segments.
    ``blocks`` is the number of later due segments, if this is the first that stays; ``blocked_size`` is their size.
    """

    reason: Reason | None
    due_at: int | None
    blocked_by: int | None
    why: str
    blocks: int = 0
    blocked_size: int = 0


class RetentionCheck:
    """A retention check of a partition at the time ``at`` (ms)."""

    def __init__(
        self,
        facts: LogFacts,
        config: TopicConfig,
        rules: RetentionRules,
        copied: int | None,
        at: int,
        *,
        is_known: bool = True,
    ) -> None:
        """If not ``is_known``, the topic's configs are unknown: no segment is deleted because of size or time."""
        self.is_known = is_known
        self._facts, self._rules, self._at = facts, rules, at
        self._limits = limits(config, rules, copied)
        self._policies = config.policies
        deletes = "delete" in self._policies or (not self._policies and self._limits.is_remote)
        self._deletes = deletes and is_known

    def verdicts(self) -> list[Verdict]:
        reasons = self._reasons()
        segments = self._facts.segments
        found = [
            Verdict(reason, self._due_at(segment), None, self._says_why(segment, reason))
            for segment, reason in zip(segments, reasons, strict=False)
        ]
        if len(found) == len(segments):
            return found
        stays, *others = segments[len(found) :]
        too_large = self._too_large(stays, others)
        is_blocked = [
            (number < too_large or self._is_due(segment)) and not (segment.is_unreadable or segment.is_empty)
            for number, segment in enumerate(others)
        ]
        found.append(self._first_that_stays(stays, list(compress(others, is_blocked))))
        for segment, blocked in zip(others, is_blocked, strict=True):
            blocker = stays.base_offset if blocked else None
            found.append(Verdict(None, self._due_at(segment), blocker, self._keeps(segment, stays, blocker)))
        return found

    def _first_that_stays(self, segment: AgedSegment, blocked: Sequence[AgedSegment]) -> Verdict:
        why = self._keeps(segment, None, None)
        if blocked:
            are = "is" if len(blocked) == 1 else "are"
            due = f"{many(len(blocked), 'later segment')} that {are} due"
            why += f"; this segment blocks {due}, because a broker deletes the oldest segments first"
        size = sum(one.size for one in blocked)
        return Verdict(None, self._due_at(segment), None, why, len(blocked), size)

    def _too_large(self, stays: AgedSegment, others: Sequence[AgedSegment]) -> int:
        """Return the number of ``others`` that the size rule would delete if it could delete ``stays``."""
        if not self._deletes or self._may_go(stays, "size"):
            return 0
        excess = sum(segment.size for segment in (stays, *others)) - self._limits.size
        taken = -1
        for segment in (stays, *others):
            if not self._breaches(segment, "size", excess):
                break
            excess -= segment.size
            taken += 1
        return max(0, taken)

    @property
    def deletable(self) -> int:
        """The number of segments that are deleted, which are the oldest ones."""
        return len(self._reasons())

    def _reasons(self) -> list[Reason]:
        found: list[Reason] = []
        for rule in self._rules.order:
            if rule == "logStart" and not (self._deletes or self._rules.compact_goes_below_log_start):
                continue
            if rule != "logStart" and not self._deletes:
                continue
            excess = sum(segment.size for segment in self._facts.segments[len(found) :]) - self._limits.size
            for segment in self._facts.segments[len(found) :]:
                if not self._may_go(segment, rule) or not self._breaches(segment, rule, excess):
                    break
                excess -= segment.size
                found.append(rule)
        return found

    def _may_go(self, segment: AgedSegment, rule: Reason) -> bool:
        return not segment.is_empty and self._held_back(segment, rule) is None

    def _breaches(self, segment: AgedSegment, rule: Reason, excess: int) -> bool:
        """Return whether a rule applies to a segment. ``excess`` is the number of bytes above the size limit."""
        if rule == "logStart":
            return not segment.is_last and segment.next_offset <= self._facts.log_start
        if rule == "size":
            return self._limits.size > FOREVER and excess >= segment.size
        return self._is_due(segment)

    def _is_due(self, segment: AgedSegment) -> bool:
        due_at = self._due_at(segment)
        return due_at is not None and due_at <= self._at

    def _held_back(self, segment: AgedSegment, rule: Reason) -> str | None:
        """Return why a segment stays although a rule applies to it; None if nothing holds it back."""
        end, watermark = segment.next_offset, self._facts.high_watermark
        if segment.is_unreadable:
            return "the segment is unreadable, so its end offset is unknown"
        if self._rules.waits_for_high_watermark and watermark is not None and watermark < end:
            return (
                f"the high watermark is {watermark}, but the segment ends at offset {end}: not all replicas have "
                "the segment"
            )
        if rule == "logStart" or not self._limits.is_remote:
            return None
        if self._limits.copied is None:
            return "the segment must be copied to remote storage first, but the given paths list no copy"
        if end - 1 > self._limits.copied:
            return (
                f"the segment must be copied to remote storage first (the last copied offset is {self._limits.copied})"
            )
        return None

    def _largest(self, segment: AgedSegment) -> int | None:
        return segment.largest if self._rules.times_from_index else segment.modified

    def _due_at(self, segment: AgedSegment) -> int | None:
        largest = self._largest(segment)
        if largest is None or not self._deletes or self._limits.ms <= FOREVER:
            return None
        return self._after(largest)

    def _after(self, largest: int) -> int:
        return largest + self._limits.ms + 1

    def _says_why(self, segment: AgedSegment, reason: Reason) -> str:
        ms, size = self._limits.names
        if reason == "logStart":
            return f"the whole segment is below the log start offset {self._facts.log_start}"
        if reason == "size":
            return f"without the segment the log still has at least {size} = {self._limits.size} bytes"
        age = self._at - (self._largest(segment) or 0)
        return (
            f"{self._time_of(segment)} is {span(age)} old, more than {ms} = {self._limits.ms} ({span(self._limits.ms)})"
        )

    def _time_of(self, segment: AgedSegment) -> str:
        by_index = self._rules.times_from_index and segment.largest_from == "timeindex"
        return (
            "the largest timestamp"
            if by_index
            else "the last write of the file (no timestamp of the segment is usable)"
        )

    def _keeps(self, segment: AgedSegment, stays: AgedSegment | None, blocker: int | None) -> str:
        if not self.is_known:
            largest = self._largest(segment)
            due = (
                ""
                if largest is None
                else f"; with Kafka's defaults the segment is due at {iso_or_ms(self._after(largest))}"
            )
            return f"{UNKNOWN}{due}"
        if not self._deletes:
            policy = ",".join(sorted(self._policies)) or "empty"
            return f"cleanup.policy is {policy}: no segment is deleted because of age or size"
        if blocker is not None and stays is not None:
            return f"the segment is due, but segment {blocker} blocks it: {self._keeps(stays, None, None)}"
        due_at, is_due = self._due_at(segment), self._is_due(segment)
        if segment.is_empty:
            return "the active segment is empty"
        reason = self._held_back(segment, "time")
        if reason is not None and (is_due or due_at is None or segment.is_unreadable):
            return reason
        if due_at is None:
            name, ms = self._limits.names[0], self._limits.ms
            why = "the age of the segment is unknown" if ms > FOREVER else f"{name} is {ms}"
            return f"{why}, and the log is not too large"
        largest = self._largest(segment) or 0
        if largest > self._at:
            future = f"{self._time_of(segment)} is {span(largest - self._at)} in the future"
            return f"{future}{FUTURE_OF_COPIED}" if self._limits.is_remote else future
        return f"{self._time_of(segment)} expires in {span(due_at - self._at)}, and the log is not too large"
