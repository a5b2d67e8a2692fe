"""Segments whose retention is over, and open transactions, at the first start of the new brokers.

For each partition this reads time indexes, producer snapshots and the batches after them, of the copy with the newest
records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.answers.log_dir_pass import LogDirPass
from kdump.answers.producers import ActiveProducer, Producers
from kdump.answers.retention.deletions import Retention, SegmentRetention
from kdump.answers.retention.rules import rules_of
from kdump.answers.topic_configs import TopicConfigs
from kdump.errors import Reporter
from kdump.log_dirs.log_dir_state import LogDirStates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.errors import UnreadableError
    from kdump.rebuild.planned import PartitionPlan
    from kdump.rebuild.volumes import VolumeFolder, Volumes


class OpenProducer(NamedTuple):
    """A producer whose transaction is open in a partition."""

    producer_id: int
    topic: str
    partition: int


class LogsAtStart(NamedTuple):
    """Bytes by topic that the first retention check deletes, and open transactions."""

    deleted: dict[str, int]
    open: tuple[OpenProducer, ...]


def look(
    volumes: Volumes,
    plans: Iterable[PartitionPlan],
    image: ClusterImage,
    release: tuple[int, ...],
    at: int,
    fail: Callable[[UnreadableError], None],
) -> LogsAtStart:
    """Read the logs; ``image`` has the configs of the new cluster, ``at`` is now in ms."""
    folders = _leading(volumes, plans)
    states = {(one.partition.files, one.partition.log_dir): one.log_dir for one in folders}
    retention, producers = Retention(TopicConfigs(image), rules_of(release)), Producers()
    report = Reporter(fail=fail)
    reader = LogDirPass([retention, producers], report, LogDirStates(report, known=states))  # the plan names the damage
    reader.run(one.partition for one in folders)
    deleted: dict[str, int] = {}
    for line in retention.answer(at):
        if isinstance(line, SegmentRetention) and line.deletable and line.bytes:
            deleted[line.topic] = deleted.get(line.topic, 0) + line.bytes
    still_open = (
        OpenProducer(one.producer_id, one.topic, one.partition)
        for one in producers.answer(at)
        if isinstance(one, ActiveProducer) and one.current_transaction_start_offset is not None
    )
    return LogsAtStart(deleted, tuple(still_open))


def _leading(volumes: Volumes, plans: Iterable[PartitionPlan]) -> Sequence[VolumeFolder]:
    """Return the folder with the newest records of each partition."""
    by_path = {folder.path: folder for folder in volumes.folders}
    last = (plan.sources[-1].path for plan in plans if plan.sources)
    return [by_path[path] for path in last if path in by_path]
