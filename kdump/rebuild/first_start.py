"""Warnings before the first start: data that the new brokers delete or hide, and changed or lost configs.

Retention times continue while a cluster is down. Seconds after its start a broker deletes expired segments and
committed offsets, so the user needs the warnings before the start. For each partition with records :func:`look` reads
the copy with the last records of the new log: its time indexes and, if it may have transactions, its producer snapshots
and the batches after the snapshots. If the new log has other batches than this copy, its own batches are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.answers.log_dir_pass import LogDirPass
from kdump.answers.producers import ActiveProducer, Producers
from kdump.answers.retention import Retention, SegmentRetention
from kdump.answers.retention_rules import rules_of
from kdump.answers.topic_configs import TopicConfigs, tiered_topics
from kdump.errors import Reporter, discard, first_of, many
from kdump.internal_topics import consumer_offsets, transaction_state
from kdump.log_dirs.log_dir_state import LogDirStates
from kdump.primitives.timestamps import iso
from kdump.rebuild.coordinators import OpenProducer, feed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.errors import UnreadableError
    from kdump.rebuild.coordinators import Coordinators, RebuiltTransaction
    from kdump.rebuild.metadata import ClusterChange, LostCluster, NewCluster
    from kdump.rebuild.partition_plan import PartitionPlan
    from kdump.rebuild.volumes import VolumeFolder, Volumes


class LogsAtStart(NamedTuple):
    """``deleted``: topic -> bytes that the first retention check deletes. ``open``: the open transactions."""

    deleted: dict[str, int]
    open: tuple[OpenProducer, ...]


def look(
    volumes: Volumes,
    plans: Sequence[PartitionPlan],
    image: ClusterImage,
    release: tuple[int, ...],
    at: int,
    fail: Callable[[UnreadableError], None],
) -> LogsAtStart:
    """Return what brokers of ``release`` delete or find open at ``at`` (ms). ``image`` has the configs of topics."""
    folders = _leading(volumes, plans)
    states = {(one.partition.files, one.partition.log_dir): one.log_dir for one in folders}
    newest = dict(one for plan in plans for one in plan.newest_ms)
    retention, producers = Retention(TopicConfigs(image), rules_of(release), newest=newest), Producers()
    report = Reporter(fail=fail)
    known = LogDirStates(report, known=states)  # the plan reports the damage
    LogDirPass([retention], report, known).run(one.partition for one in folders)
    with_transactions = [plan for plan in plans if plan.has_transactions]
    as_copied = _leading(volumes, (plan for plan in with_transactions if not _is_changed(plan)))
    LogDirPass([producers], report, known).run(one.partition for one in as_copied)
    for plan in filter(_is_changed, with_transactions):
        feed(producers, plan, discard)  # the plan reports the damage
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


def _is_changed(plan: PartitionPlan) -> bool:
    """Return whether the new log has other batches than the copy with its last records."""
    return plan.state != "whole" or bool(plan.left_out)


def _leading(volumes: Volumes, plans: Iterable[PartitionPlan]) -> Sequence[VolumeFolder]:
    by_path = {folder.path: folder for folder in volumes.folders}
    last = (plan.sources[-1].path for plan in plans if plan.sources)
    return [by_path[path] for path in last if path in by_path]


SHOWN: Final = 5
"""Maximum number of names in a warning. The warning also has the number of the other names."""
DELAY: Final = "log.initial.task.delay.ms"
"""The config that postpones the first retention check. Releases before 3.8 ignore it (KAFKA-16552)."""
DELAY_SINCE: Final = (3, 8)


def listed(names: Sequence[str]) -> str:
    return first_of(names, SHOWN)


def of_groups(coordinators: Coordinators, minutes: int) -> Iterator[str]:
    gone = [one for one in coordinators.groups if one.expired]
    if gone:
        count = many(len(gone), "group")
        oldest = min(one.oldest_commit_ms or 0 for one in gone)
        yield (
            f"{count} ({listed([one.group_id for one in gone])}) would lose committed offsets seconds after the first "
            f"start: the oldest offset was committed at {iso(oldest)}, and the default retention is 7 days. Set "
            f"offsets.retention.minutes={minutes} on every broker BEFORE the first start. The files node-*.properties "
            "have this line"
        )


def of_transactions(transactions: Sequence[RebuiltTransaction]) -> Iterator[str]:
    """Yield the warnings about open transactions: one about transactions with a coordinator, one about hanging ones."""
    ends = [one for one in transactions if not one.hangs]
    if ends:
        names = listed([one.transactional_id or str(one.producer_id) for one in ends])
        yield (
            f"these transactional ids have open transactions: {names}. The coordinator ends these "
            "transactions: after the start it aborts those in state Ongoing, and read_committed consumers never "
            "receive their records"
        )
    hanging = [one for one in transactions if one.hangs]
    if hanging:
        where = listed([partition for one in hanging for partition in one.partitions])
        yield (
            f"{many(len(hanging), 'open transaction')} will hang in {where}: no coordinator ends them, and "
            "read_committed consumers stop there. After the start `kdump transactions DIR` prints the "
            "kafka-transactions.sh commands that abort them"
        )


def of_retention(deleted: Mapping[str, int], *, can_wait: bool) -> Iterator[str]:
    """Yield the warning about segments that retention deletes. ``can_wait``: the release has the config DELAY."""
    if deleted:
        names = listed([f"{name}: {size:,} bytes" for name, size in sorted(deleted.items())])
        keep = "Kafka before 3.8 has no config to delay it: to keep them, rebuild for a later release (--release)"
        if can_wait:
            keep = (
                f"To keep them, start with {DELAY}=3600000: node-*.properties have this line. Raise retention.ms with "
                "kafka-configs.sh within an hour. Then remove the line and restart"
            )
        yield (
            "the first retention check, 30 seconds after the start, deletes segments whose retention is over "
            f"({names}). {keep}. A topic without its own retention uses the retention in server.properties, and no "
            "volume has this file"
        )


def of_metadata(lost: LostCluster, to: NewCluster, changes: Sequence[ClusterChange]) -> Iterator[str]:
    """Yield warnings about changed configs and features, lost or damaged metadata, tiered topics, a quorum of two."""
    for one in changes:
        if one.what in {"topic config", "broker config"}:
            yield f"{one.what} {one.name or '<default>'} {one.key}={one.value}: {one.why}"
        elif one.what == "feature":
            yield f"{one.name} was {one.value}: {one.why}"
    if not lost.from_log:
        yield (
            "no volume has a metadata log: the configs of topics, ACLs, SCRAM users, quotas and client metrics are "
            "lost. User topics get retention.ms=-1 and retention.bytes=-1, so that nothing is deleted. Set their "
            "configs again before applications start, such as cleanup.policy=compact of _schemas or connect-offsets"
        )
        yield from _of_counts(lost.image)
    elif lost.breaks:
        yield (
            f"the metadata log is damaged at {many(len(lost.breaks), 'place')} (see account.json): topics, configs or "
            "ACLs may be missing"
        )
    tiered = sorted(tiered_topics(lost.image))
    if tiered:
        yield (
            f"tiered topics ({listed(tiered)}): copy the remote.log.* lines of the old server.properties into "
            "node-*.properties BEFORE the first start, and do not change the remote storage. Otherwise brokers do not "
            "find the older records"
        )
    voters = sum(node.controller_port is not None for node in to.nodes)
    if voters == 2:
        yield "a quorum of two controllers stops when one of them is down: add a third controller later"


def _of_counts(image: ClusterImage) -> Iterator[str]:
    """Yield the warning about inferred numbers of partitions of ``__consumer_offsets`` and ``__transaction_state``."""
    names = (consumer_offsets.TOPIC, transaction_state.TOPIC)
    known = [image.topics.by_name[name] for name in names if name in image.topics.by_name]
    if known:
        counts = " and ".join(f"{topic.name} {len(topic.partitions)}" for topic in known)
        yield (
            f"kdump has inferred numbers of partitions from folders and ids: {counts}. If a topic had more, brokers "
            "search groups and transactional ids in the wrong partitions. Compare offsets.topic.num.partitions and "
            "transaction.state.log.num.partitions in the old server.properties (the default is 50)"
        )
