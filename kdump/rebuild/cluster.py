"""Plans the whole rebuilt cluster: the metadata, the nodes, and the batches of each partition. Writes nothing itself.

The leading copy of a partition is the one with the newest leader epoch; of several, the one with the highest end
offset. The new log has its valid batches. Batches of other copies may replace its damaged or missing ranges if they
belong to the same history (:func:`kdump.rebuild.copy_scan.history`).
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kdump.answers.metadata.cluster_image import TOPIC_RESOURCE
from kdump.answers.metadata.image import Copies, MetadataLog, topic_names
from kdump.answers.metadata.records import SCRAM_SINCE
from kdump.answers.topic_configs import compacted_topics, tiered_topics
from kdump.checks.evidence import committed
from kdump.errors import SILENT, Reporter, UsageError, discard, many
from kdump.formats.partition_metadata import id_text
from kdump.internal_topics import (
    DECODER_SWITCHES,
    consumer_offsets,
    remote_log_metadata,
    share_group_state,
    transaction_state,
)
from kdump.log_reader import remote_segments
from kdump.log_salvage.epoch_history import EpochHistory
from kdump.primitives.messages import did_you_mean
from kdump.primitives.processes import Processes
from kdump.primitives.terminal import is_selected
from kdump.rebuild import coordinators, first_start, metadata, one_partition
from kdump.rebuild.account import (
    RebuildAccount,
    RebuiltMetadata,
    RebuiltNode,
    RebuiltPartition,
)
from kdump.rebuild.metadata import ClusterChange, NewCluster
from kdump.rebuild.nodes import CLUSTER_ID, address, assign
from kdump.rebuild.one_partition import RemoteLog, WantedPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.broker_start.release import StartRelease
    from kdump.log_reader.remote_segments import RemoteSegment
    from kdump.rebuild.metadata import LostCluster
    from kdump.rebuild.nodes import Listeners, NewNode, Replicas
    from kdump.rebuild.partition_plan import PartitionPlan
    from kdump.rebuild.volumes import VolumeFolder, Volumes


class RebuildWish(NamedTuple):
    """The options of the user. If an option is None, its value comes from the volumes. No ``topics`` means all."""

    nodes: Sequence[NewNode]
    listeners: Listeners
    cluster_id: str | None
    release: StartRelease | None
    replication: int | None
    committed_only: bool
    topics: Sequence[str]
    at: int
    """The current time in ms."""


class RebuiltCluster(NamedTuple):
    """The plan of the new cluster: nodes, image, partitions, and the content of ``account.json``."""

    to: NewCluster
    lost: LostCluster
    image: ClusterImage
    plans: tuple[PartitionPlan, ...]
    unknown: tuple[VolumeFolder, ...]
    """The live and stray folders that are not copies of any partition of the cluster; empty with ``--topic``."""
    at_risk: tuple[VolumeFolder, ...]
    """The live ones of ``unknown`` that have records, unless the metadata log shows that the topic was deleted."""
    account: RebuildAccount
    retention_minutes: int
    """The value for offsets.retention.minutes: the age of the oldest commit plus 30 days, in minutes."""
    delays_retention: bool
    """Whether node-N.properties has ``first_start.DELAY``, because the first retention check would delete segments."""


class PlanWriter(Protocol):
    """Receives partitions as soon as they are planned, and may write them."""

    def begin(self, replicas: Replicas) -> None:
        """Set the nodes of each partition."""

    def write(self, plan: PartitionPlan) -> None:
        """Write a partition. Called in the process that planned it."""

    def written(self, plan: PartitionPlan) -> None:
        """Finish a written partition. Called in the main process."""


def prepare(
    volumes: Volumes,
    wish: RebuildWish,
    report: Reporter,
    *,
    jobs: int = 1,
    writer: PlanWriter | None = None,
    done: Callable[[PartitionPlan], None] = discard,
) -> RebuiltCluster:
    """Read the volumes, and plan the new cluster. ``writer``, then ``done``, receives each partition when planned.

    Raises UsageError if an option is missing, invalid or contradicts the volumes, UnreadableError if a coordinator's
    partition is unreadable, and the errors of ``choose``.
    """
    cluster_id = _cluster_id(volumes, wish.cluster_id)
    lost = metadata.found(volumes, wish.release, report)
    to_release = metadata.release_for(lost, wish.release)
    if wish.replication is not None and wish.replication > len(wish.nodes):
        raise UsageError(
            f"--replication {wish.replication}: only {many(len(wish.nodes), 'node')}; add nodes with --node"
        )
    left_out = list(_leave_out(lost.image, wish.topics))
    replicas = assign(lost.image.topics, wish.nodes, wish.replication)

    def planned(each: PartitionPlan) -> None:
        if writer is not None:
            writer.written(each)
        done(each)

    if writer is not None:
        writer.begin(replicas)
    plans = choose(
        volumes,
        lost.image,
        committed_only=wish.committed_only,
        has_configs=lost.from_log,
        jobs=jobs,
        write=discard if writer is None else writer.write,
        done=planned,
    )
    changes = [*lost.changes, *left_out]
    if not lost.from_log:
        _keep_tiers(lost.image, plans)
    unknown = () if wish.topics else tuple(unknown_folders(volumes, lost.image))
    can_wait = to_release.number >= first_start.DELAY_SINCE
    at_start = first_start.look(volumes, plans, lost.image, to_release.number, wish.at, report.fail)
    found = coordinators.read(plans, at_start.open, wish.at, report.damage)
    used = max((each.highest_producer_id for each in plans), default=-1)
    to = NewCluster(
        release=to_release,
        nodes=wish.nodes,
        replicas=replicas,
        epochs={(each.topic_id or b"", each.partition): each.leader_epoch for each in plans},
        max_producer_id=max(used, found.max_producer_id),
        listeners=wish.listeners,
    )
    image, changed = metadata.rebuilt(lost, to)
    minutes = coordinators.retention_minutes(found.groups, wish.at)
    said_before = chain(
        first_start.of_groups(found, minutes),
        first_start.of_retention(at_start.deleted, can_wait=can_wait),
        first_start.of_transactions(found.transactions),
        first_start.of_metadata(lost, to, changed),
    )
    account = RebuildAccount(
        metadata=_metadata(cluster_id, lost, image, to),
        nodes=tuple(_nodes(to, plans)),
        partitions=tuple(_partition(each, to, image) for each in plans),
        dropped=tuple(_dropped([*changes, *changed], unknown, plans)),
        transactions=tuple(found.transactions),
        groups=tuple(found.groups),
        warnings=tuple(said_before),
    )
    return RebuiltCluster(
        to,
        lost,
        image,
        tuple(plans),
        unknown,
        tuple(_at_risk(volumes, unknown)),
        account,
        minutes,
        delays_retention=bool(at_start.deleted) and can_wait,
    )


def _cluster_id(volumes: Volumes, wanted: str | None) -> str:
    cluster_id = volumes.cluster_id if wanted is None else wanted
    if cluster_id is None:
        raise UsageError("no meta.properties in the volumes has a cluster.id: give one with --cluster-id")
    if not CLUSTER_ID.fullmatch(cluster_id):
        raise UsageError(
            f"--cluster-id {cluster_id!r} is not a cluster id of 22 base64 letters "
            "(`kafka-storage.sh random-uuid` prints one)"
        )
    return cluster_id


def _leave_out(image: ClusterImage, topics: Sequence[str]) -> Iterator[ClusterChange]:
    """With ``--topic``, remove other user topics. Raises UsageError if a ``--topic`` selects no topic."""
    if not topics:
        return
    names = list(image.topics.by_name)
    for glob in topics:
        if not any(is_selected(name, glob) for name in names):
            raise UsageError(f"--topic {glob}: no such topic in these volumes{did_you_mean(glob, names)}")
    for name in names:
        if name not in DECODER_SWITCHES and not any(is_selected(name, glob) for glob in topics):
            image.handlers["RemoveTopicRecord"]({"topicId": image.topics.by_name[name].id})
            yield ClusterChange("topic", name, None, None, "no --topic selects this topic")


def _keep_tiers(image: ClusterImage, plans: Sequence[PartitionPlan]) -> None:
    """Set ``remote.storage.enable`` for tiered topics. Called if no volume has a metadata log."""
    for each in plans:
        if each.is_tiered:
            image.configs.resources.setdefault((TOPIC_RESOURCE, each.topic), {})["remote.storage.enable"] = "true"


def _metadata(cluster_id: str, lost: LostCluster, image: ClusterImage, to: NewCluster) -> RebuiltMetadata:
    level = image.features.metadata_version
    return RebuiltMetadata(
        cluster_id=cluster_id,
        release=to.release.name,
        from_=lost.sources,
        end_offset=image.end_offset,
        epoch=image.epoch,
        breaks=lost.breaks,
        features=dict(sorted(image.features.levels.items())),
        next_producer_id=image.producer_ids.next,
        topics=len(image.topics.by_id),
        configs=sum(map(len, image.configs.resources.values())),
        acls=len(image.acls.by_key),
        scram_users=len({name for _, name in image.scram.by_key}) if level >= SCRAM_SINCE else 0,
        quotas=len(image.quotas.entities),
    )


def _nodes(to: NewCluster, plans: Sequence[PartitionPlan]) -> Iterator[RebuiltNode]:
    for node in to.nodes:
        held = [each for each in plans if node.id in to.replicas[each.topic_id or b"", each.partition]]
        leads = sum(to.replicas[each.topic_id or b"", each.partition][0] == node.id for each in held)
        yield RebuiltNode(
            id=node.id,
            log_dir=node.folder,
            directory_id=node.directory_text,
            roles=node.roles,
            address=address(node.host, node.port),
            partitions=len(held),
            leads=leads,
            bytes=sum(each.size for each in held),
        )


def _partition(each: PartitionPlan, to: NewCluster, image: ClusterImage) -> RebuiltPartition:
    number = each.topic_id or b""
    return RebuiltPartition(
        topic=each.topic,
        topic_id=id_text(number),
        partition=each.partition,
        state=each.state,
        from_=each.sources,
        log_start_offset=each.log_start,
        end_offset=each.end,
        leader_epoch=image.topics.by_id[number].partitions[each.partition].leader_epoch,
        replicas=to.replicas[number, each.partition],
        lost=each.lost,
        uncommitted=each.uncommitted,
        bytes=each.size,
    )


def _dropped(
    changes: Sequence[ClusterChange], unknown: Sequence[VolumeFolder], plans: Sequence[PartitionPlan]
) -> Iterator[ClusterChange]:
    yield from changes
    for folder in unknown:
        known = None if folder.topic_id is None else id_text(folder.topic_id)
        yield ClusterChange(
            "folder",
            folder.path,
            "topicId",
            known,
            "the cluster has no partition with the name and the topic id of this folder",
        )
    for each in plans:
        for left in each.left_out:
            where = f"byte {left.position}: {left.size} bytes"
            if left.missing_from is not None and left.missing_until is not None:
                where += f", offsets {left.missing_from} to {left.missing_until - 1}"
            yield ClusterChange("batches", left.segment.path, left.kind, where, left.reason)


def choose(
    volumes: Volumes,
    image: ClusterImage,
    *,
    committed_only: bool = False,
    has_configs: bool = True,
    jobs: int = 1,
    write: Callable[[PartitionPlan], None] = discard,
    done: Callable[[PartitionPlan], None] = discard,
) -> list[PartitionPlan]:
    """Return the plan of each partition of an image, by topic and partition.

    If no volume has a metadata log (``has_configs`` is False), a partition also counts as compacted if a
    cleaner's checkpoint has it. It also counts as tiered if ``__remote_log_metadata`` lists a segment of it, or if a
    volume has this topic and the log starts before its first local segment.

    ``write`` receives each plan in the process that made it, while the copies are in the page cache. ``done`` receives
    it in this process. Raises KdumpError if a worker ends without a result, and errors of ``plan`` and ``write``.
    """
    wanted = list(_wanted(volumes, image, committed_only=committed_only, has_configs=has_configs))
    lost = {(one.topic, one.partition) for one in wanted if not one.folders}
    if lost:
        known = known_ends(volumes, lost, topic_names(image))
        wanted = [
            one if one.folders else one._replace(known_end=known.get((one.topic, one.partition), 0)) for one in wanted
        ]
    plans: list[PartitionPlan] = []
    for plan in _planned(wanted, jobs, write):
        plans.append(plan)
        done(plan)
    return plans


def unknown_folders(volumes: Volumes, image: ClusterImage) -> list[VolumeFolder]:
    """Return the live and stray folders that are not copies of a partition of the image."""
    known = {
        folder.path
        for name, topic in image.topics.by_name.items()
        for number in topic.partitions
        for folder in volumes.of(name, topic.id, number)
    }
    return [each for each in volumes.folders if each.state in {"", "stray"} and each.path not in known]


def _at_risk(volumes: Volumes, unknown: Sequence[VolumeFolder]) -> list[VolumeFolder]:
    live = [each for each in unknown if not each.state and any(one.size for one in each.partition.segments)]
    if live and (copies := Copies(volumes.metadata_copies, SILENT)):
        deleted = {event.id for event in MetadataLog(copies).history() if event.what == "TopicDeleted"}
        live = [each for each in live if each.topic_id is None or id_text(each.topic_id) not in deleted]
    return live


def _wanted(
    volumes: Volumes, image: ClusterImage, *, committed_only: bool, has_configs: bool
) -> Iterator[WantedPartition]:
    compacted = compacted_topics(image) | {consumer_offsets.TOPIC, transaction_state.TOPIC}
    tiered = tiered_topics(image)
    remote = _remote_logs(volumes) if tiered or not has_configs else {}
    has_tiers = any(folder.topic == remote_log_metadata.TOPIC for folder in volumes.folders)
    for name, topic in sorted(image.topics.by_name.items()):
        for number in sorted(topic.partitions):
            folders, in_store = tuple(volumes.of(name, topic.id, number)), remote.get((topic.id, number))
            seems_tiered = in_store is not None or (has_tiers and any(map(_begins_elsewhere, folders)))
            is_tiered = name in tiered or (not has_configs and seems_tiered)
            yield WantedPartition(
                topic=name,
                topic_id=topic.id,
                partition=number,
                folders=folders,
                is_compacted=name in compacted
                or (not has_configs and any(one.key in one.log_dir.cleaned for one in folders)),
                is_tiered=is_tiered,
                committed_only=committed_only,
                remote=in_store if is_tiered else None,
            )


def _begins_elsewhere(folder: VolumeFolder) -> bool:
    """Return whether a log starts before its first local segment, because its first records are in remote storage."""
    first = min((each.base_offset or 0 for each in folder.partition.segments), default=0)
    return folder.log_start is not None and folder.log_start < first


def _planned(
    wanted: Sequence[WantedPartition], jobs: int, write: Callable[[PartitionPlan], None]
) -> Iterator[PartitionPlan]:
    def one(each: WantedPartition) -> PartitionPlan:
        plan = one_partition.plan(each)
        write(plan)
        return plan

    if jobs == 1 or len(wanted) < 2:
        return map(one, wanted)
    return Processes(jobs, threads=False).results(one, wanted)


def _remote_logs(volumes: Volumes) -> dict[tuple[bytes | None, int], RemoteLog]:
    """Return topic id and partition -> remote log. Unreadable files are skipped: the topic's plan reports them."""
    live = (folder.partition for folder in volumes.folders if not folder.state)
    found: dict[tuple[bytes | None, int], list[RemoteSegment]] = {}
    for one in remote_segments.of_partitions(live, SILENT).segments.values():
        if one.state == remote_segments.COPIED:
            found.setdefault((one.partition.topic_id, one.partition.partition), []).append(one)
    return {
        key: RemoteLog(
            min(one.start for one in segments),
            max(one.end for one in segments) + 1,
            tuple(EpochHistory(entry for one in segments for entry in one.epochs).entries),
        )
        for key, segments in found.items()
    }


def known_ends(
    volumes: Volumes, wanted: AbstractSet[tuple[str, int]], names: Mapping[bytes, str]
) -> dict[tuple[str, int], int]:
    """Return the highest offset in committed offsets and checkpoints for the partitions of ``wanted`` that have one.

    No log dir has these partitions. Their new logs start at this offset, else at 0, so that consumers can continue.
    ``names``: topic id -> name. Unreadable files are skipped.
    """
    found: dict[tuple[str, int], int] = {}

    def reached(key: tuple[str, int], offset: int) -> None:
        if key in wanted and offset > found.get(key, 0):
            found[key] = offset

    for each in volumes.log_dirs:
        state = each.state
        for marks in (state.high_watermarks, state.recovery_points, state.log_starts, state.cleaned):
            for (topic, partition), offset in marks.items():
                if topic is not None and partition is not None:
                    reached((topic, partition), offset)
    for folder in volumes.folders:
        if not folder.state and folder.topic in {consumer_offsets.TOPIC, share_group_state.TOPIC}:
            for key, offset in committed(folder.topic, folder.partition, names):
                reached(key, offset)
    return found
