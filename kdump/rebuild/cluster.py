"""Plans the whole rebuilt cluster."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kdump.answers.metadata.cluster_image import TOPIC_RESOURCE
from kdump.answers.metadata.records import SCRAM_SINCE
from kdump.answers.metadata.topics import id_text
from kdump.errors import Reporter, UsageError, discard, many
from kdump.primitives.messages import did_you_mean
from kdump.rebuild import coordinators, first_start, metadata, plan
from kdump.rebuild.account import (
    DroppedLine,
    PartitionSource,
    RebuildAccount,
    RebuildLoss,
    RebuiltMetadata,
    RebuiltNode,
    RebuiltPartition,
)
from kdump.rebuild.metadata import ClusterChange, NewCluster
from kdump.rebuild.nodes import CLUSTER_ID, address, assign

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.broker_start.release import StartRelease
    from kdump.rebuild.metadata import LostCluster
    from kdump.rebuild.nodes import Listeners, NewNode, Replicas
    from kdump.rebuild.partition_plan import PartitionPlan
    from kdump.rebuild.volumes import VolumeFolder, Volumes


class RebuildWish(NamedTuple):
    """The options of the user. A value of None is taken from the volumes."""

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
    """The contents of each log dir, and the account."""

    to: NewCluster
    lost: LostCluster
    image: ClusterImage
    plans: tuple[PartitionPlan, ...]
    unknown: tuple[VolumeFolder, ...]
    """The folders that are not copies of a partition of the cluster."""
    account: RebuildAccount
    retention_minutes: int
    """The offsets.retention.minutes that keeps all committed offsets."""
    delays_retention: bool
    """Whether the first retention check would delete segments."""

    def replicas(self, of: PartitionPlan) -> tuple[int, ...]:
        """Return the nodes that have a partition, the leader first."""
        return self.to.replicas[of.topic_id or b"", of.partition]


class PlanWriter(Protocol):
    """Writes partitions as soon as they are planned."""

    def begin(self, replicas: Replicas) -> None:
        """Set the nodes of each partition."""

    def write(self, plan: PartitionPlan) -> None:
        """Write a partition, in the process that planned it."""

    def written(self, plan: PartitionPlan) -> None:
        """Finish a partition that another process may have written."""


def prepare(
    volumes: Volumes,
    wish: RebuildWish,
    said: Reporter,
    *,
    jobs: int = 1,
    writer: PlanWriter | None = None,
    done: Callable[[PartitionPlan], None] = discard,
) -> RebuiltCluster:
    """Read the volumes, and plan the new cluster. ``done`` is called after each partition.

    ``writer`` writes each partition as soon as it is planned. Raises UsageError for an option that the volumes
    contradict.
    """
    cluster_id = _cluster_id(volumes, wish.cluster_id)
    lost = metadata.found(volumes, wish.release, said)
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
    plans = plan.choose(
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
    unknown = () if wish.topics else tuple(plan.unknown_folders(volumes, lost.image))
    at_start = first_start.look(volumes, plans, lost.image, to_release.number, wish.at, said.fail)
    found = coordinators.read(plans, at_start.open, wish.at, said.damage)
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
        first_start.of_retention(at_start.deleted),
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
        to, lost, image, tuple(plans), unknown, account, minutes, delays_retention=bool(at_start.deleted)
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
    """Remove topics that ``--topic`` does not select, except Kafka's own topics, from an image.

    Raises UsageError if a value of ``--topic`` selects no topic.
    """
    if not topics:
        return
    names = list(image.topics.by_name)
    for glob in topics:
        if not any(fnmatchcase(name, glob) for name in names):
            raise UsageError(f"--topic {glob}: no such topic in these volumes{did_you_mean(glob, names)}")
    for name in names:
        if not name.startswith("__") and not any(fnmatchcase(name, glob) for glob in topics):
            image.handlers["RemoveTopicRecord"]({"topicId": image.topics.by_name[name].id})
            yield ClusterChange("topic", name, None, None, "--topic does not name it")


def _keep_tiers(image: ClusterImage, plans: Sequence[PartitionPlan]) -> None:
    """Set the config of tiered topics: their configs are lost, and their first records are in remote storage."""
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
        acls=len(image.acls.by_id),
        scram_users=len({name for _, name in image.scram.credentials}) if level >= SCRAM_SINCE else 0,
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
        from_=tuple(PartitionSource(*one) for one in each.sources),
        log_start_offset=each.log_start,
        end_offset=each.end,
        leader_epoch=image.topics.by_id[number].partitions[each.partition].leader_epoch,
        replicas=to.replicas[number, each.partition],
        lost=tuple(RebuildLoss(*one) for one in each.lost),
        uncommitted=each.uncommitted,
        bytes=each.size,
    )


def _dropped(
    changes: Sequence[ClusterChange], unknown: Sequence[VolumeFolder], plans: Sequence[PartitionPlan]
) -> Iterator[DroppedLine]:
    for one in changes:
        yield DroppedLine(*one)
    for folder in unknown:
        known = None if folder.topic_id is None else id_text(folder.topic_id)
        yield DroppedLine("folder", folder.path, "topicId", known, "no partition of the cluster has this name and id")
    for each in plans:
        for left in each.left_out:
            where = f"byte {left.position}: {left.size} bytes"
            if left.first_offset is not None and left.end_offset is not None:
                where += f", offsets {left.first_offset} to {left.end_offset - 1}"
            yield DroppedLine("batches", left.path, left.kind, where, left.reason)
