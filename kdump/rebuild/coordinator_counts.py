"""The number of partitions of the coordinators' topics, without a metadata log.

The partition of an id is its hash modulo that number. So the ids in the partitions determine the number, even if the
highest partition is lost. With a wrong number the new coordinators would read other partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.coordinator import TOPICS, coordinator_partition
from kdump.answers.groups.collector import ConsumerGroups, GroupsWanted
from kdump.answers.groups.coordinator_log import CoordinatorLog
from kdump.answers.groups.topic_log import ShareStateLog
from kdump.answers.log_dir_pass import LogDirPass
from kdump.answers.metadata.topics import id_text
from kdump.answers.transactional_ids import TransactionalIds
from kdump.errors import Reporter
from kdump.internal_topics import transaction_state
from kdump.log_dirs.log_dir_state import LogDirStates
from kdump.primitives.java_text import java_utf8

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.errors import UnreadableError
    from kdump.rebuild.volumes import VolumeFolder

MOST: Final = 1_000
"""Only smaller numbers of partitions are tried."""
CHANCE: Final = 1e-7
"""The highest accepted probability that a greater number fits by chance, with a thousand tries."""


def partition_counts(folders: Iterable[VolumeFolder], fail: Callable[[UnreadableError], None]) -> dict[str, int]:
    """Return the numbers of partitions by topic. ``fail`` is called with each file that cannot be read."""
    kept = [folder for folder in folders if folder.topic in TOPICS.values()]
    groups, ids = ConsumerGroups(GroupsWanted()), TransactionalIds()
    states = {(one.partition.files, one.partition.log_dir): one.log_dir for one in kept}
    report = Reporter(fail=fail)
    LogDirPass([groups, ids], report, LogDirStates(report, known=states)).run(folder.partition for folder in kept)
    found: dict[str, set[tuple[int, str]]] = {}
    for topic, partition, text in _ids(groups, ids):
        found.setdefault(topic, set()).add((partition, text))
    least: dict[str, int] = {}
    for folder in kept:
        least[folder.topic] = max(least.get(folder.topic, 0), folder.number + 1)
    return {topic: partition_count(found.get(topic, ()), number) for topic, number in least.items()}


def _ids(groups: ConsumerGroups, ids: TransactionalIds) -> Iterator[tuple[str, int, str]]:
    """Yield topic, partition and id of each group and transactional id."""
    for (topic, partition), log in groups.logs.items():
        if isinstance(log, CoordinatorLog):
            for held in log.held():
                yield topic, partition, java_utf8(held.name)
        elif isinstance(log, ShareStateLog):
            for key in log.held:
                yield topic, partition, f"{key.group_id}:{id_text(key.topic_id)}:{key.partition}"
    for one in ids.answer(0):
        yield transaction_state.TOPIC, one.coordinator_partition, one.transactional_id


def partition_count(ids: Iterable[tuple[int, str]], least: int) -> int:
    """Return the number of partitions that fits the partition of each id, ``least`` or more.

    That is the smallest fitting number, unless a greater one fits that is very unlikely to fit by chance: with twice
    the partitions half of the ids would be in another one.
    """
    known = tuple(ids)
    fits = [
        number
        for number in range(least, MOST)
        if all(coordinator_partition(text, number) == partition for partition, text in known)
    ]
    if not known or not fits:
        return least  # some ids are in a wrong partition for every number
    smallest = fits[0]
    return next((number for number in reversed(fits) if (smallest / number) ** len(known) < CHANCE), smallest)
