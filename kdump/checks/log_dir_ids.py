"""The ids in ``meta.properties`` of several log dirs, compared as a broker does when it starts.

Source: Kafka's class MetaPropertiesEnsemble (3.7, KIP-858).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from kdump.errors import discard
from kdump.findings import Finding, Level
from kdump.findings.codes import Code
from kdump.log_dirs import file_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.checks.log_dir import LogDirs
    from kdump.formats.meta_properties import MetaProperties
    from kdump.log_dirs.partition import Partition


class _Ids(NamedTuple):
    """A log dir: its path, the shown path and the content of its ``meta.properties``, and its folder names."""

    path: str
    file: str
    properties: MetaProperties
    partitions: set[str]


def check(parts: Iterable[Partition], dirs: LogDirs) -> Iterator[Finding]:
    """Yield the reasons why a broker does not start on these log dirs together, and log dirs without ids."""
    found: dict[str, _Ids] = {}
    missing: set[str] = set()
    for part in parts:
        if part.topic is None:
            continue
        state, path = dirs.facts(part, discard), part.log_dir
        shown = part.files.shown(part.path_beside(file_names.META_PROPERTIES))
        if state.properties is not None:
            found.setdefault(path, _Ids(path, shown, state.properties, set())).partitions.add(part.name)
        elif (
            state.known
            and path not in missing
            and part.files.look(part.path_beside(file_names.META_PROPERTIES)) is None
        ):
            missing.add(path)
            yield _missing(part, shown)
    brokers: dict[str, list[_Ids]] = defaultdict(list)
    for ids in found.values():
        if ids.properties.broker_id is not None:
            brokers[ids.properties.broker_id].append(ids)
    for of_one in brokers.values():
        yield from _clusters(of_one)
        yield from _directories(of_one)


def _missing(part: Partition, shown: str) -> Finding:
    """Return the finding of a log dir without the file: brokers of 0.8 had none, those of ZooKeeper wrote it again."""
    modern = any(entry.name == file_names.PARTITION_METADATA for entry in part.others)
    text = "it is missing: a broker of KRaft does not start without it"
    return Finding(
        level=Level.DERIVED if modern else Level.REMARK,
        file=shown,
        kind=Code.ABSENT,
        text=text,
        advice="Write it with the ids of the cluster and of this broker (kafka-storage.sh format --ignore-formatted)."
        if modern
        else "",
        fatal=modern,
    )


def _clusters(of_one: list[_Ids]) -> Iterator[Finding]:
    first, *others = of_one
    for other in others:
        if other.properties.cluster_id != first.properties.cluster_id:
            yield Finding(
                level=Level.DERIVED,
                file=other.file,
                kind=Code.CLUSTER_ID,
                text=f"it names another cluster than {first.file}: a broker does not start with both in log.dirs",
                expected=first.properties.cluster_id,
                found=other.properties.cluster_id,
                advice="Find out which of the two log dirs belongs to this broker, and take the other out of log.dirs.",
                fatal=True,
            )


def _directories(of_one: list[_Ids]) -> Iterator[Finding]:
    """Yield log dirs of one id. Those that share a partition are copies of one, and no broker has both."""
    met: dict[str, _Ids] = {}
    for ids in of_one:
        directory = ids.properties.directory_id
        if directory is None:
            continue
        first = met.setdefault(directory, ids)
        if first is not ids and not first.partitions & ids.partitions:
            yield Finding(
                level=Level.DERIVED,
                file=ids.file,
                kind=Code.DIRECTORY_ID,
                text=f"{first.file} has the same directory.id: a broker does not start with both in log.dirs",
                found=directory,
                advice="Give one of the two a directory.id of its own (kafka-storage.sh random-uuid makes one).",
                fatal=True,
            )
