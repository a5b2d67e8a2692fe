"""What other answers ask of the metadata log: the image of the cluster at an offset or time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.metadata.cluster_image import ClusterImage
from kdump.answers.metadata.copies import Copies, Said, SnapshotFile
from kdump.answers.metadata.records import MetadataRecord, Undecoded, appended, read_batch
from kdump.answers.metadata.replay import Break, MetadataReplay
from kdump.errors import UsageError
from kdump.log_dirs.finder import raise_it
from kdump.primitives.timestamps import iso

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.answers.metadata.events import Event
    from kdump.errors import UnreadableError
    from kdump.log_dirs.partition import Partition

MOST_BREAKS: Final = 20
"""Breaks that are named one by one; of more their number."""


def image_of(
    partitions: Iterable[Partition],
    *,
    offset: int | None = None,
    at: int | None = None,
    damage: Callable[[str], None],
    fail: Callable[[UnreadableError], None] = raise_it,
) -> ClusterImage | None:
    """Return the image of the records below ``offset``, or appended up to ``at`` (ms); by default of all there are.

    ``partitions`` are those of the given paths, of which ``__cluster_metadata`` is taken; None when it is not among
    them. Several copies of it, of several controllers, are merged. ``damage`` is called with each sentence on damage
    and on records that do not replay; ``fail`` with each file that cannot be read.

        image = image_of(partitions, damage=session.damage, fail=session.fail)
        topic = image.topics.by_name["orders"]           # .id, .id_text, .partitions
        topic.partitions[0]                              # .leader, .leader_epoch, .replicas, .isr
        image.topics.by_id[topic.id].name
        image.configs.topic("orders").get("retention.ms")
        image.configs.broker_defaults.get("log.retention.ms")
    """
    copies = Copies(
        (partition for partition in partitions if partition.topic is not None),
        Said(damage, lambda _: None, fail),
    )
    return MetadataLog(copies, damage).image(offset=offset, at=at) if copies else None


def topic_names(image: ClusterImage | None) -> dict[bytes, str]:
    """Return the names of topics by their ids; none where there is no metadata log."""
    return {} if image is None else {number: topic.name for number, topic in image.topics.by_id.items()}


def partition_count(image: ClusterImage | None, topic: str) -> int | None:
    """Return how many partitions a topic has, None where the metadata log is not there or does not know it."""
    found = None if image is None else image.topics.by_name.get(topic)
    return None if found is None else len(found.partitions)


class MetadataLog:
    """The metadata log of the copies that are given. ``damage`` is called with what does not replay, as sentences."""

    def __init__(self, copies: Copies, damage: Callable[[str], None]) -> None:
        self.copies = copies
        self._damage = damage
        self.breaks = 0
        """At how many places the last image did not replay."""

    def image(self, *, offset: int | None = None, at: int | None = None) -> ClusterImage:
        """Return the image of the records below ``offset``, or appended up to ``at`` (ms).

        Raises UsageError when the files do not reach back so far.
        """
        breaks = Breaks(self._damage)
        image = self._begin(offset, at, breaks)
        replay = MetadataReplay(image, breaks, to=offset, at=at)
        for batch in self.copies.batches(image.end_offset):
            if not replay.add(batch):
                break
        breaks.finish()
        self.breaks = breaks.count
        return image

    def begins_at(self) -> int | None:
        """Return when the first batch of the log was appended, in ms; None where there is no batch."""
        first = next(iter(self.copies.batches(self.copies.first_offset() or 0)), None)
        return None if first is None else next(iter(appended(first))).timestamp

    def history(self, *, offset: int | None = None, at: int | None = None) -> Iterator[Event]:
        """Yield what happened from the beginning of the log on, below ``offset``, or up to ``at`` (ms).

        It begins with the snapshot that the log goes on from: what was before is lost.
        """
        breaks, snapshots = Breaks(self._damage), self.copies.snapshots
        image = self._oldest(breaks)
        from kdump.answers.metadata.events import Events  # an image needs none

        events = Events(snapshots[-1].end_offset if snapshots else 0)
        replay = MetadataReplay(image, breaks, to=offset, at=at, observer=events)
        for batch in self.copies.batches(image.end_offset):
            wanted = replay.add(batch)
            yield from events.take()
            if not wanted:
                break
        breaks.finish()

    def _begin(self, offset: int | None, at: int | None, breaks: Breaks) -> ClusterImage:
        """Return the image of the newest sound snapshot that holds nothing too new, or an empty one."""
        for snapshot in reversed(self.copies.snapshots):
            if offset is not None and snapshot.end_offset > offset:
                continue
            if self.copies.sound(snapshot) and (at is None or last_time(snapshot) <= at):
                return load(snapshot, breaks)
        first = self.copies.first_offset()
        if first != 0 and (offset is not None or at is not None) and self.copies.snapshots:
            oldest = self.copies.snapshots[0]
            time = iso(last_time(oldest))
            raise UsageError(f"the oldest image that can be made is at offset {oldest.end_offset}, {time}")
        return ClusterImage()

    def _oldest(self, breaks: Breaks) -> ClusterImage:
        """Return the image that the log goes on from: an empty one for a log that begins at offset 0."""
        first = self.copies.first_offset() or 0
        there = self.copies.snapshots
        below = [snapshot for snapshot in there if snapshot.end_offset <= first]
        above = [snapshot for snapshot in there if snapshot.end_offset > first and first]
        for snapshot in [*reversed(below), *above]:
            if self.copies.sound(snapshot):
                return load(snapshot, breaks)
        return ClusterImage()


class Breaks:
    """Says the first breaks of a replay, and how many more there are."""

    def __init__(self, damage: Callable[[str], None]) -> None:
        self._damage = damage
        self.count = 0

    def __call__(self, found: Break) -> None:
        self.count += 1
        if self.count <= MOST_BREAKS:
            self._damage(found.text)

    def finish(self) -> None:
        """Say how many were not named."""
        if self.count > MOST_BREAKS:
            self._damage(f"the replay breaks at {self.count - MOST_BREAKS} more records")


def load(snapshot: SnapshotFile, broken: Callable[[Break], None]) -> ClusterImage:
    """Return the image that a snapshot holds. Raises UnreadableError."""
    image = ClusterImage()
    replay = MetadataReplay(image, broken)
    for batch in snapshot.batches():
        replay.add(batch)
    image.end_offset, image.epoch, image.timestamp = snapshot.end_offset, snapshot.epoch, last_time(snapshot)
    return image


def last_time(snapshot: SnapshotFile) -> int:
    """Return when the last record that a snapshot holds was appended, in ms; -1 where it does not say."""
    for batch in snapshot.batches():
        for record in read_batch(batch):
            if isinstance(record, Undecoded) or record.name != "SnapshotHeaderRecord":
                return -1
            return _time_of(record)
    return -1


def _time_of(header: MetadataRecord) -> int:
    return int(header.fields["lastContainedLogTimestamp"])
