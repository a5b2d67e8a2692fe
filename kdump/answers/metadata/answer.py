"""The questions ``metadata`` (the topics of an image) and ``events``, and two kinds of lines of ``kdump metadata``.

These lines, which only the command makes, are records of an image and differences between two images.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from kdump.answers.metadata import cluster_image
from kdump.answers.metadata.events import Event, without_secrets
from kdump.answers.question import LineTable, LogQuestion, option
from kdump.internal_topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE, cluster_metadata
from kdump.internal_topics.secrets import fields
from kdump.primitives.terminal import is_selected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.answers.collector import AnswerLine
    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.metadata.records import SnapshotRecord
    from kdump.answers.metadata.topics import Topic
    from kdump.answers.question import Asking


@dataclass(frozen=True, slots=True)
class ImageDifference:
    """A record in which two images differ. ``was``: the earlier of two records. ``topic``: its topic's name, if any."""

    type: str
    version: int
    data: dict[str, Any]
    was: dict[str, Any] | None
    topic: str | None


class AddedRecord(ImageDifference):
    """A record that only the later image has."""

    kind: ClassVar[str] = "added"


class RemovedRecord(ImageDifference):
    """A record that only the earlier image has."""

    kind: ClassVar[str] = "removed"


class ChangedRecord(ImageDifference):
    """A record that both images have, with other values."""

    kind: ClassVar[str] = "changed"


Difference: TypeAlias = AddedRecord | RemovedRecord | ChangedRecord


def differences(earlier: ClusterImage, later: ClusterImage) -> Iterator[Difference]:
    """Yield added and changed records in the order of the later image, then removed records."""
    before = {record.key: record for record in earlier.records()}
    for record in later.records():
        was = before.pop(record.key, None)
        if was is None:
            yield AddedRecord(**record.plain, was=None, topic=_topic(record, later))
        elif was.fields is not record.fields and was.text != record.text:
            yield ChangedRecord(**record.plain, was=was.plain, topic=_topic(record, later))
    for record in before.values():
        yield RemovedRecord(**record.plain, was=None, topic=_topic(record, earlier))


def difference_without_secrets(line: Difference) -> Difference:
    """Return a difference without SCRAM salts and keys, and without the values of secret configs."""
    was = None if line.was is None else {**line.was, "data": cluster_image.hidden_record(line.was["data"])}
    data = cluster_image.hidden_record(line.data, None if line.was is None else line.was["data"])
    return replace(line, data=data, was=was)


def _topic(record: SnapshotRecord, image: ClusterImage) -> str | None:
    if record.name == "ConfigRecord" and record.fields["resourceType"] == cluster_image.TOPIC_RESOURCE:
        name: str = record.fields["resourceName"]
        return name
    topic = image.topics.by_id.get(record.fields.get("topicId", b""))
    return None if topic is None else topic.name


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """A partition in the line of its topic; leader -1 means none."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    elr: list[int]
    partition_epoch: int
    adding: list[int]
    removing: list[int]


_OF_STATE: Final = attrgetter(*(field.name for field in dataclass_fields(PartitionLine)[1:]))


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A topic with its partitions and its own configs."""

    kind: ClassVar[str] = "topic"
    topic: str
    topic_id: str
    internal: bool
    partitions: list[PartitionLine]
    configs: dict[str, str]


INTERNAL = (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)
"""The topics that brokers call internal (``org.apache.kafka.common.internals.Topic``)."""


def takes(wanted: Sequence[str], topic: str | None) -> bool:
    """Return whether the names and globs ``wanted`` select a topic. Without any, everything is selected."""
    return not wanted or (topic is not None and any(is_selected(topic, pattern) for pattern in wanted))


def topic_lines(image: ClusterImage, wanted: Sequence[str], *, show_secrets: bool = False) -> Iterator[TopicLine]:
    for name, topic in sorted(image.topics.by_name.items()):
        if takes(wanted, name):
            yield _line(topic, image, show_secrets=show_secrets)


def _line(topic: Topic, image: ClusterImage, *, show_secrets: bool) -> TopicLine:
    lines = [PartitionLine(number, *_OF_STATE(state)) for number, state in sorted(topic.partitions.items())]
    own = cluster_image.hidden_configs(cluster_image.TOPIC_RESOURCE, image.configs.topic(topic.name), show=show_secrets)
    return TopicLine(topic.name, topic.id_text, topic.name in INTERNAL, lines, own)


@dataclass(frozen=True, slots=True)
class RecordLine:
    kind: ClassVar[str] = "record"
    type: str
    version: int
    data: dict[str, Any]


def record_line(record: SnapshotRecord, *, show_secrets: bool = False) -> RecordLine:
    plain = record.plain
    data = plain["data"] if show_secrets else cluster_image.hidden_record(plain["data"])
    return RecordLine(plain["type"], plain["version"], data)


def record_text(record: SnapshotRecord, *, show_secrets: bool = False) -> str:
    """Return a record as the JSON of ``--cluster-metadata-decoder``. Secrets are hidden unless ``show_secrets``."""
    if show_secrets:
        return record.text
    return record._replace(fields=fields(record.name, record.fields)).text


def image_records(image: ClusterImage, wanted: Sequence[str]) -> Iterator[SnapshotRecord]:
    """Yield the records of an image; if topics are ``wanted``, only their records."""
    ids = {topic.id for name, topic in image.topics.by_name.items() if takes(wanted, name)}
    for record in image.records():
        fields = record.fields
        is_config = record.name == "ConfigRecord" and fields["resourceType"] == cluster_image.TOPIC_RESOURCE
        if not wanted or fields.get("topicId") in ids or (is_config and takes(wanted, fields["resourceName"])):
            yield record


@dataclass(frozen=True)
class MetadataOptions:
    offset: int | None = option(None, "count", "--offset", "Use only records below this offset.", metavar="N", least=0)
    until: int | None = option(None, "moment", "--until", "Use only records up to this time.", metavar="TIME")
    show_secrets: bool = option(False, "switch", "--show-secrets", "Show the values of secret and unknown configs.")


def _topics(asking: Asking, options: MetadataOptions) -> Iterator[AnswerLine]:
    image = asking.metadata_log().known_image(asking.where, offset=options.offset, at=options.until)
    yield from topic_lines(image, asking.asked.topics, show_secrets=options.show_secrets)


def _events(asking: Asking, options: MetadataOptions) -> Iterator[AnswerLine]:
    for event in asking.metadata_log().history(offset=options.offset, at=options.until):
        if takes(asking.asked.topics, event.topic):
            yield event if options.show_secrets else without_secrets(event)


TOPICS: Final = LogQuestion(
    "metadata",
    "Show the contents of the KRaft metadata log.",
    MetadataOptions,
    (TopicLine,),
    answer=_topics,
    tables=(LineTable("topics", TopicLine, "--topics"),),
    only=(cluster_metadata.TOPIC,),
    unit="everything",
)
EVENTS: Final = LogQuestion(
    "events",
    "List changes of the cluster, such as new topics and failed brokers.",
    MetadataOptions,
    (Event,),
    answer=_events,
    tables=(LineTable("events", Event, "--events"),),
    command="metadata",
    only=(cluster_metadata.TOPIC,),
    unit="everything",
)
