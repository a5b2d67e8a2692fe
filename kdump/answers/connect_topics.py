"""Finds and reads the topics of Kafka Connect, whose names are settings of the workers."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.answers.connect import ConnectCluster, role_of
from kdump.log_dirs.finder import Finder, Wanted, raise_it
from kdump.log_reader import replicas
from kdump.log_reader.reader import PartitionReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.answers.connect import Role
    from kdump.errors import UnreadableError
    from kdump.log_dirs.partition import Partition
    from kdump.rows.selection import DamagedRange

_NAMES: Final = re.compile(r".*(?:connect|config|status|offset|storage).*", re.IGNORECASE | re.DOTALL)
"""Topics whose keys are looked at where no option names them."""
_SAMPLE: Final = 32
"""Records whose keys say what a topic holds."""


class ConnectNames(NamedTuple):
    """The topics of one Connect cluster; empty for one that is not in the paths."""

    configs: str = ""
    status: str = ""
    offsets: str = ""


class ConnectTopics:
    """Reads the topics of Connect clusters in some paths."""

    def __init__(
        self,
        paths: Sequence[str],
        wanted: Wanted,
        *,
        note: Callable[[str], None],
        fail: Callable[[UnreadableError], None] = raise_it,
        lost: Callable[[DamagedRange], None] = lambda _: None,
    ) -> None:
        """``fail`` takes what cannot be read, ``lost`` damaged ranges; topics of ``wanted`` are not looked at."""
        self._reader = PartitionReader(outcomes=False, fail=fail)
        self._lost = lost
        found = list(Finder(wanted, fail=fail).find(paths))
        self._partitions: dict[str, list[Partition]] = {}
        for partition in replicas.each_once(found, note, "--topic"):
            if partition.topic is not None and not partition.topic.startswith("__"):
                self._partitions.setdefault(partition.topic, []).append(partition)

    def clusters(self, named: ConnectNames) -> list[ConnectNames]:
        """Return the topics of each cluster: those that are named, else those whose keys say so."""
        roles: dict[Role, list[str]] = {"configs": [], "status": [], "offsets": []}
        for topic in sorted(self._partitions):
            role = self._role(topic) if _NAMES.fullmatch(topic) else None
            if role is not None:
                roles[role].append(topic)
        configs = [named.configs] if named.configs else roles["configs"]
        return [
            ConnectNames(
                topic,
                named.status or _nearest(topic, roles["status"]),
                named.offsets or _nearest(topic, roles["offsets"]),
            )
            for topic in configs
        ]

    def _role(self, topic: str) -> Role | None:
        keys = []
        for record in self._reader.records(self._partitions[topic]):
            keys.append(record.key)
            if len(keys) == _SAMPLE:
                break
        return role_of(keys) if keys else None

    def read(self, names: ConnectNames, *, show_secrets: bool = False) -> ConnectCluster:
        """Return a cluster whose topics have been replayed."""
        cluster = ConnectCluster(names.configs, show_secrets=show_secrets)
        roles: tuple[tuple[Role, str], ...] = (
            ("configs", names.configs),
            ("status", names.status),
            ("offsets", names.offsets),
        )
        for role, topic in roles:
            for record in self._reader.records(self._partitions.get(topic, ()), self._lost):
                cluster.add(role, record.timestamp, record.key, record.value)
        return cluster


def _nearest(topic: str, others: list[str]) -> str:
    """Return the topic whose name is most like that of the configs topic, empty where there is none."""
    return max(others, key=lambda other: SequenceMatcher(None, topic, other).ratio(), default="")
