"""How far partitions are copied to remote storage: what ``__remote_log_metadata`` of the given paths says (KIP-405)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.log_reader import remote_segments

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.errors import Reporter
    from kdump.log_dirs.partition import Partition


def copied_offsets(
    partitions: Iterable[Partition],
    image: ClusterImage | None,
    report: Reporter,
) -> dict[tuple[str, int], int]:
    """Return the last offset of each partition that is in remote storage, as its topic among ``partitions`` says.

    Where ``image`` knows the id of a topic, segments of others of its name do not count.
    """
    listed = remote_segments.of_partitions(partitions, damage=report.damage, fail=report.fail)
    ids = {} if image is None else {name: topic.id for name, topic in image.topics.by_name.items()}
    found: dict[tuple[str, int], int] = {}
    for (topic, topic_id, partition), end in listed.last_copied.items():
        if ids.get(topic, topic_id) == topic_id:
            found[topic, partition] = max(end, found.get((topic, partition), end))
    return found
