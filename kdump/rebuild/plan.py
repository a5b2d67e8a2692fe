"""Plans all partitions: the batches of the new logs, and the copies that have them.

The leading copy has the newest leader epoch, and the highest end offset if several have this epoch. Its valid batches
are taken. For its damaged or missing ranges, batches of other copies are taken if they belong to the same history
(:func:`kdump.rebuild.copy_scan.history`). Other copies are read completely only if they are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.answers.topic_configs import compacted_topics
from kdump.checks.evidence import committed
from kdump.errors import discard
from kdump.internal_topics import consumer_offsets, remote_log_metadata, share_group_state, transaction_state
from kdump.primitives.processes import Processes
from kdump.rebuild import one_partition
from kdump.rebuild.one_partition import WantedPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.rebuild.partition_plan import PartitionPlan
    from kdump.rebuild.volumes import VolumeFolder, Volumes


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

    ``has_configs`` is False for an image without topic configs: topics in the cleaner's checkpoint then count as
    compacted. ``write`` receives each plan in the worker process that made it, because the pages of the copies are
    cached there. ``done`` receives it in this process. Raises KdumpError if a worker ends without a result, and the
    errors of ``write``.
    """
    wanted = list(_wanted(volumes, image, committed_only=committed_only, has_configs=has_configs))
    lost = {(one.topic, one.partition) for one in wanted if not one.folders}
    if lost:
        known = known_ends(volumes, lost, {topic.id: name for name, topic in image.topics.by_name.items()})
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
    found = []
    for folder in volumes.folders:
        topic = image.topics.by_name.get(folder.topic)
        is_known = topic is not None and folder.number in topic.partitions
        if folder.state in {"", "stray"} and not (
            is_known and topic is not None and folder in volumes.of(folder.topic, topic.id, folder.number)
        ):
            found.append(folder)
    return found


def _wanted(
    volumes: Volumes, image: ClusterImage, *, committed_only: bool, has_configs: bool
) -> Iterator[WantedPartition]:
    compacted = compacted_topics(image) | {consumer_offsets.TOPIC, transaction_state.TOPIC}
    has_tiers = any(folder.topic == remote_log_metadata.TOPIC for folder in volumes.folders)
    for name, topic in sorted(image.topics.by_name.items()):
        for number in sorted(topic.partitions):
            folders = tuple(volumes.of(name, topic.id, number))
            yield WantedPartition(
                topic=name,
                topic_id=topic.id,
                partition=number,
                folders=folders,
                is_compacted=name in compacted
                or (not has_configs and any(one.key in one.log_dir.cleaned for one in folders)),
                is_tiered=image.configs.topic(name).get("remote.storage.enable") == "true"
                or (not has_configs and has_tiers and any(map(_begins_elsewhere, folders))),
                committed_only=committed_only,
            )


def _begins_elsewhere(folder: VolumeFolder) -> bool:
    """Return whether a log starts before its first segment: its first records are in remote storage."""
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


def known_ends(
    volumes: Volumes, wanted: AbstractSet[tuple[str, int]], names: Mapping[bytes, str]
) -> dict[tuple[str, int], int]:
    """Return the highest offset in committed offsets and checkpoints for each partition of ``wanted``.

    No volume has these partitions. Their new logs start at this offset, so consumers continue with the next record, and
    no offset is used twice. ``names``: topic id -> name. Unreadable files are skipped.
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
