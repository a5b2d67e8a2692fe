"""Translates the options of Spark's own Kafka source, so that a query usually changes only its format and path.

Names, precedence and errors follow Spark's documentation of ``format("kafka")``, release 4 (Structured Streaming +
Kafka Integration Guide): times override offsets, and most options need ``subscribe``, ``subscribePattern`` or
``assign``. This module reads no files; :mod:`kdump.spark.source.kafka_edges` finds the offsets.
"""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kdump.errors import UsageError
from kdump.internal_topics import cluster_metadata, consumer_offsets, share_group_state, transaction_state
from kdump.rows.columns import SPARK_FIRST, TYPED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kdump.log_dirs.file_names import Name

Key: TypeAlias = tuple[str, int]

LATEST: Final = -1
EARLIEST: Final = -2
_WORDS: Final = {"latest": LATEST, "earliest": EARLIEST}
_HEADERS: Final = "headers"
_HIDDEN: Final = frozenset(
    one.TOPIC for one in (cluster_metadata, consumer_offsets, share_group_state, transaction_state)
)
"""The internal topics that a pattern does not match."""
_OFFSETS: Final = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
_PARTITIONS: Final = '{"topicA":[0,1],"topicB":[2]}'
_BROKER: Final = "kafka."


class KafkaOption(NamedTuple):
    """An option of Spark's Kafka source: its name, whether it is used here, and an explanation."""

    name: str
    fate: str
    doc: str


TAKEN: Final = "used unchanged"
IGNORED: Final = "ignored, with a note"
REFUSED: Final = "refused"
_ASKED: Final = ("assign", "subscribe", "subscribePattern")
_START: Final = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
_END: Final = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
"""The options of each edge, in order of precedence."""
_STRATEGY: Final = "startingOffsetsByTimestampStrategy"
_INCLUDE: Final = "includeHeaders"
_OF_KEYS: Final = re.compile(r"-key(:\d+)?(#[\w.]+)?$")
_MAX: Final = "maxOffsetsPerTrigger"
_ISOLATION: Final = "kafka.isolation.level"

OPTIONS: Final = (
    KafkaOption(
        "subscribe",
        TAKEN,
        "Topics to read. With subscribe, subscribePattern or assign, all options are those of Spark's Kafka source.",
    ),
    KafkaOption(
        "subscribePattern",
        TAKEN,
        "The topic's name must contain a match. The syntax is Python's; the nested sets of Java are refused. "
        "A broker's internal topics do not match.",
    ),
    KafkaOption("assign", TAKEN, f"As in `{_PARTITIONS}`."),
    KafkaOption(
        "startingOffsets, endingOffsets",
        TAKEN,
        f"`earliest`, `latest`, or as in `{_OFFSETS}`. By default a batch begins at the earliest offset and a "
        "stream at the latest. failOnDataLoss decides what happens if the log does not have an offset.",
    ),
    KafkaOption(
        "startingOffsetsByTimestamp, endingOffsetsByTimestamp",
        TAKEN,
        "Times (ms), for which kdump looks up offsets as a broker does. They override the offsets above.",
    ),
    KafkaOption(
        "startingTimestamp, endingTimestamp",
        TAKEN,
        "A time for all partitions. It overrides the options above. Without subscribe, subscribePattern or assign "
        "these two options select records by their own times.",
    ),
    KafkaOption(
        _STRATEGY,
        TAKEN,
        "What to do if all records are before the start time: `error`, or `latest` (begin at the end).",
    ),
    KafkaOption(_INCLUDE, TAKEN, "Also the column headers; null for a record without headers."),
    KafkaOption("minPartitions", TAKEN, "The same as in kdump. One task reads a segment smaller than splitBytes."),
    KafkaOption(
        _MAX, TAKEN, "The same as maxRecordsPerTrigger: whole batches, at least one. A batch query ignores it."
    ),
    KafkaOption("failOnDataLoss", TAKEN, "The same as in kdump, for batch queries too."),
    KafkaOption(_ISOLATION, TAKEN, "The same as isolation."),
    KafkaOption("groupIdPrefix", IGNORED, "There is no consumer group."),
    KafkaOption("minOffsetsPerTrigger", IGNORED, "A trigger reads all available records."),
    KafkaOption("maxTriggerDelay", IGNORED, "A trigger reads all available records."),
    KafkaOption("maxRecordsPerPartition", IGNORED, "splitBytes divides the work."),
    KafkaOption("fetchOffset.numRetries", IGNORED, "No offset is fetched."),
    KafkaOption("fetchOffset.retryIntervalMs", IGNORED, "No offset is fetched."),
    KafkaOption("kafkaConsumer.pollTimeoutMs", IGNORED, "No consumer polls."),
    KafkaOption(
        "kafka.auto.offset.reset",
        REFUSED,
        "Also kafka.key.deserializer, kafka.value.deserializer, kafka.enable.auto.commit and "
        "kafka.interceptor.classes. Kafka's source refuses them too.",
    ),
    KafkaOption("kafka.*", IGNORED, "kdump contacts no broker."),
    KafkaOption("endingOffsets, endingOffsetsByTimestamp", f"{REFUSED} in a stream", "Kafka's source refuses it too."),
    KafkaOption("endingTimestamp", f"{IGNORED} in a stream", "Kafka's source ignores it too, without a note."),
)
"""The effect of each option of Kafka's source, for the docs."""

_REFUSED: Final = {
    f"{_BROKER}auto.offset.reset": "startingOffsets sets the start",
    f"{_BROKER}key.deserializer": "keys are returned as bytes",
    f"{_BROKER}value.deserializer": "values are returned as bytes",
    f"{_BROKER}enable.auto.commit": "nothing is committed",
    f"{_BROKER}interceptor.classes": "no interceptor runs",
}
_IGNORED: Final = {option.name.lower(): option.name for option in OPTIONS if option.fate == IGNORED}
_OF_ASKED: Final = (*_START[1:], *_END[1:], _STRATEGY, _INCLUDE)
"""Options of Kafka's source that need ``subscribe``, ``subscribePattern`` or ``assign``."""
NAMES: Final = (*_ASKED, *_OF_ASKED, _MAX)
"""Options of Kafka's source that have another name in kdump, or no equivalent."""


@dataclass(frozen=True, kw_only=True)
class Edge:
    """The start or end of partitions. One field is set. Offsets may be LATEST or EARLIEST, times are in ms."""

    offset: int | None = None
    offsets: Mapping[Key, int] | None = None
    time: int | None = None
    times: Mapping[Key, int] | None = None

    @property
    def named(self) -> Mapping[Key, int] | None:
        """Partition -> its offset or time; None if all partitions have the same."""
        return self.times if self.offsets is None else self.offsets


@dataclass(frozen=True, kw_only=True)
class KafkaQuery:
    """A query with the options of Kafka's source. It selects ``topics``, a ``pattern``, or ``assigned`` partitions.

    ``strays``: read a partition from its end if all its records are before the start time. ``asked`` is the name of the
    option that selects topics. ``unused`` has notes on options that are not used.
    """

    asked: str
    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    assigned: frozenset[Key] = frozenset()
    start: Edge | None = None
    end: Edge | None = None
    strays: bool = False
    unused: tuple[str, ...] = ()

    def takes(self, name: Name) -> bool:
        if name.topic is None:
            return False
        if self.pattern is not None:
            return name.topic not in _HIDDEN and self.pattern.search(name.topic) is not None
        return name in self.assigned if self.assigned else name.topic in self.topics

    def at_times(self, start: int | None, end: int | None) -> KafkaQuery:
        """Return the query with other times (ms) as start and end, if they are given."""
        begin = self.start if start is None else Edge(time=start)
        return replace(self, start=begin, end=self.end if end is None else Edge(time=end))

    def for_batch(self) -> KafkaQuery:
        """Return the query of a batch, whose default start is EARLIEST. Raises UsageError for the start LATEST."""
        start = self.start or Edge(offset=EARLIEST)
        offsets = {None: start.offset} if start.offsets is None else start.offsets
        if LATEST in offsets.values():
            raise UsageError("option startingOffsets: a batch query cannot start at latest")
        return replace(self, start=start)

    def for_stream(self) -> KafkaQuery:
        """Return the query of a stream, by default from LATEST. Raises UsageError for ends but ``endingTimestamp``."""
        if self.end is not None and self.end.time is None:
            option = "endingOffsets" if self.end.times is None else "endingOffsetsByTimestamp"
            raise UsageError(f"option {option}: a stream has no end")
        unused = (*self.unused, "endingTimestamp is not used: a stream has no end") if self.end else self.unused
        return replace(self, start=self.start or Edge(offset=LATEST), end=None, unused=unused)


def translate(given: Mapping[str, str]) -> tuple[dict[str, str], KafkaQuery | None, tuple[str, ...]]:
    """Return the options of kdump's source, the query, and the names of ignored options.

    The names in ``given`` and of the returned options are in lower case. Raises UsageError for options that Kafka's
    source refuses, and for options of both sources with the same effect.
    """
    ignored = []
    rest = dict(given)
    for name in given:
        if name in _REFUSED:
            raise UsageError(f"option {name}: not supported, as in Spark's Kafka source: {_REFUSED[name]}")
        if name != _ISOLATION and (name in _IGNORED or name.startswith(_BROKER)):
            ignored.append(_IGNORED.get(name, name))
            del rest[name]
    _rename(rest, _MAX, "maxRecordsPerTrigger")
    _rename(rest, _ISOLATION, "isolation")
    return rest, _query(rest), tuple(sorted(ignored))


def _rename(rest: dict[str, str], name: str, other: str) -> None:
    text = rest.pop(name.lower(), None)
    if text is not None:
        _once(rest, name, other)
        rest[other.lower()] = text


def _once(rest: Mapping[str, str], name: str, *others: str) -> None:
    """Raise UsageError if an option of kdump's source has the same effect as ``name``."""
    for other in others:
        if other.lower() in rest:
            raise UsageError(f"option {other}: {name} sets it already")


def _query(rest: dict[str, str]) -> KafkaQuery | None:
    """Remove the query from the options and return it; add the columns that it needs."""
    names = {name.lower(): name for name in (*_ASKED, *_OF_ASKED)}
    taken = {names[name]: rest.pop(name).strip() for name in list(rest) if name in names}
    asked = [name for name in _ASKED if name in taken]
    if not asked:
        for name in taken:
            raise UsageError(f"option {name}: add subscribe, subscribePattern or assign")
        return None
    if len(asked) > 1:
        raise UsageError(f"only one of subscribe, subscribePattern and assign can be given, found {', '.join(asked)}")
    _once(rest, asked[0], "topic", *(("partition",) if asked[0] == "assign" else ()))
    _once(rest, "startingOffsets", "startingOffset")
    _once(rest, "endingOffsets", "endingOffset")
    _choose_columns(rest, taken)
    start, not_first = _edge(_START, rest, taken)
    end, not_last = _edge(_END, rest, taken)
    _agree(start, end)
    query = KafkaQuery(asked=asked[0], start=start, end=end, strays=_strategy(taken), unused=(*not_first, *not_last))
    text = taken[asked[0]]
    if asked[0] == "subscribePattern":
        return replace(query, pattern=_pattern(text))
    if asked[0] == "subscribe":
        query = replace(query, topics=_topics(text))
    else:
        assigned = _assigned(text)
        query = replace(query, topics=tuple(sorted({topic for topic, _ in assigned})), assigned=assigned)
    return query


def _choose_columns(rest: dict[str, str], taken: Mapping[str, str]) -> None:
    """Select the columns of Kafka's source, unless the option ``columns`` is given."""
    text = taken.get(_INCLUDE, "false").lower()
    if text not in ("true", "false"):
        raise UsageError(f"option {_INCLUDE}: expected true or false, found {text!r}")
    if "columns" in rest or rest.get("output", "records").lower() != "records":
        return
    names = [name for name in SPARK_FIRST if name != _HEADERS or text == "true"]
    if rest.get("decode", "none").lower() != "none":
        names.append("decoded")
    if "schema" in rest:
        other = "valueDecoded" if _OF_KEYS.search(rest["schema"]) else "keyDecoded"
        names += [column.name for column in TYPED if column.name != other]
    rest["columns"] = ",".join(names)


def _topics(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            raise UsageError(f"option subscribe: {name!r} is not a topic name (subscribePattern takes a pattern)")
    if not names:
        raise UsageError("option subscribe: no topic is named")
    return names


def _pattern(text: str) -> re.Pattern[str]:
    if not text:
        raise UsageError("option subscribePattern: the pattern is empty")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # nested sets, as in [a&&[b]], are only in Java
            return re.compile(text, re.ASCII)
    except (re.error, ValueError, OverflowError, FutureWarning, RecursionError) as error:
        raise UsageError(f"option subscribePattern: {text!r} cannot be used: {error}") from None


def _assigned(text: str) -> frozenset[Key]:
    named = _json("assign", text, _PARTITIONS, list).items()
    found = [(topic, number) for topic, numbers in named for number in numbers]
    if not found or not all(type(number) is int and number >= 0 for _, number in found):
        raise UsageError(f"option assign: expected JSON such as {_PARTITIONS}, found {text!r}")
    return frozenset(found)


def _json(name: str, text: str, like: str, kind: type) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(each, kind) for each in found.values()):
        raise UsageError(f"option {name}: expected JSON such as {like}, found {text!r}")
    return found


def _by_partition(name: str, text: str, least: int) -> dict[Key, int]:
    """Parse a whole number of at least ``least`` for each partition. Raises UsageError."""
    found = {}
    for topic, numbers in _json(name, text, _OFFSETS, dict).items():
        for number, value in numbers.items():
            if not re.fullmatch(r"\d{1,10}", number, re.ASCII) or type(value) is not int or value < least:
                raise UsageError(f"option {name}: expected JSON such as {_OFFSETS}, found {number!r}: {value!r}")
            found[topic, int(number)] = value
    return found


def _edge(names: tuple[str, ...], rest: Mapping[str, str], taken: Mapping[str, str]) -> tuple[Edge | None, list[str]]:
    """Return the edge of the option that is used, and notes on the given options that it overrides.

    ``names`` are in order of precedence. The edge is None if no option is given. It is also None if the first is used
    (one time for all partitions), because kdump's source has the same option.
    """
    by_time, by_offset = names[1:]
    used = [name for name in names if name in taken or name.lower() in rest]
    notes = [f"{name} is not used: {used[0]} overrides it" for name in used[1:]]
    if used[:1] == [by_time]:
        return Edge(times=_by_partition(by_time, taken[by_time], 0)), notes
    if used[:1] == [by_offset]:
        text = taken[by_offset]
        word = _WORDS.get(text.lower())
        edge = Edge(offsets=_by_partition(by_offset, text, EARLIEST)) if word is None else Edge(offset=word)
        if by_offset == _END[2] and EARLIEST in (edge.offset, *(edge.offsets or {}).values()):
            raise UsageError(f"option {by_offset}: the end cannot be the earliest offset")
        return edge, notes
    return None, notes


def _agree(start: Edge | None, end: Edge | None) -> None:
    """Raise UsageError if both edges have offsets, or times, of different partitions, or an end is before its start."""
    if start is None or end is None or start.named is None or end.named is None:
        return
    if (start.times is None) != (end.times is None):
        return
    if start.named.keys() != end.named.keys():
        names = ", ".join(f"{topic}-{number}" for topic, number in sorted(start.named.keys() ^ end.named.keys()))
        raise UsageError(f"the options for the start and the end name different partitions: {names}")
    for (topic, number), first in start.named.items():
        if 0 <= end.named[topic, number] < first:
            raise UsageError(f"{topic}-{number}: the end {end.named[topic, number]} is before the start {first}")


def _strategy(taken: Mapping[str, str]) -> bool:
    text = taken.get(_STRATEGY, "error").lower()
    if text not in ("error", "latest"):
        raise UsageError(f"option {_STRATEGY}: expected error or latest, found {text!r}")
    return text == "latest"
