"""The least end offsets of partitions that no volume has, from committed offsets and checkpoints.

A new log starts there, so that consumers continue with the next record and no offset is used twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.checks.evidence import committed
from kdump.internal_topics import consumer_offsets, share_group_state

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from kdump.rebuild.volumes import Volumes


def of(
    volumes: Volumes, wanted: AbstractSet[tuple[str, int]], names: Mapping[bytes, str]
) -> dict[tuple[str, int], int]:
    """Return the highest known offset of each wanted partition: the least possible end of its log.

    ``names`` are topic names by id. Unreadable files are skipped, so a partition may start lower.
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
