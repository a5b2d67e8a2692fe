"""The difference of two images, record by record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from kdump.answers.metadata import configs, secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.metadata.snapshot_record import SnapshotRecord


@dataclass(frozen=True, slots=True)
class ImageDifference:
    """A record of the later image, or of the earlier one where it is gone; ``was`` is what it replaces.

    ``topic`` is the name of the topic that it is of, None for any other thing.
    """

    type: str
    version: int
    data: dict[str, Any]
    was: dict[str, Any] | None
    topic: str | None


class AddedRecord(ImageDifference):
    """A record that the earlier image has not."""

    kind: ClassVar[str] = "added"


class RemovedRecord(ImageDifference):
    """A record that the later image has not."""

    kind: ClassVar[str] = "removed"


class ChangedRecord(ImageDifference):
    """A record that both have, with other values."""

    kind: ClassVar[str] = "changed"


Difference: TypeAlias = AddedRecord | RemovedRecord | ChangedRecord


def differences(earlier: ClusterImage, later: ClusterImage) -> Iterator[Difference]:
    """Yield what differs: what the later image has in its order, then what is gone."""
    before = {record.key: record for record in earlier.records()}
    for record in later.records():
        was = before.pop(record.key, None)
        if was is None:
            yield AddedRecord(**record.plain, was=None, topic=_topic(record, later))
        elif _differ(was, record):
            yield ChangedRecord(**record.plain, was=was.plain, topic=_topic(record, later))
    for record in before.values():
        yield RemovedRecord(**record.plain, was=None, topic=_topic(record, earlier))


def without_secrets(line: Difference) -> Difference:
    """Return a difference for people: without salts and keys of SCRAM, and secret configs."""
    was = None if line.was is None else {**line.was, "data": secrets.record(line.was["data"])}
    data = secrets.record(line.data, None if line.was is None else line.was["data"])
    return replace(line, data=data, was=was)


def _topic(record: SnapshotRecord, image: ClusterImage) -> str | None:
    if record.name == "ConfigRecord" and record.fields["resourceType"] == configs.TOPIC:
        name: str = record.fields["resourceName"]
        return name
    topic = image.topics.by_id.get(record.fields.get("topicId", b""))
    return None if topic is None else topic.name


def _differ(one: SnapshotRecord, other: SnapshotRecord) -> bool:
    return one.fields is not other.fields and one.text != other.text
