"""Compares the ids and partitions of log dirs, and reports missing ``meta.properties``.

The log dirs of one node must have the same cluster id. They must not share a directory.id or a partition. Sources:
Kafka's classes MetaPropertiesEnsemble (3.7, KIP-858) and LogManager.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from kdump.checks import folder
from kdump.errors import UnreadableError, discard
from kdump.findings import Finding, Level
from kdump.findings.codes import Code
from kdump.internal_topics import CLUSTER_METADATA
from kdump.log_dirs import file_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.checks.log_dir import LogDirs
    from kdump.formats.meta_properties import MetaProperties
    from kdump.log_dirs.log_dir_state import LogDirState
    from kdump.log_dirs.partition import Partition


def check(parts: Iterable[Partition], dirs: LogDirs, *, is_one_broker: bool = False) -> Iterator[Finding]:
    """Yield the findings on the log dirs of ``parts``. With ``is_one_broker`` the dry start compares cluster ids.

    Log dirs with the same directory.id and a common partition are copies. Log dirs without an id (before 3.7) may be
    copies: a common partition is only a remark. In KRaft, two folders with different topic ids give no finding. A
    broker makes one of them stray (``isStrayKraftReplica``); the dry start reports this.
    """
    found = [(part, dirs.inside(part) if part.topic is None else dirs.of(part)) for part in parts]
    yield from _contradicting_ids(found, dirs, is_one_broker=is_one_broker)
    of_topics = [(part, state) for part, state in found if part.topic is not None]
    earlier: dict[tuple[str | None, str, str | None, int | None], tuple[Partition, str | None]] = {}
    for part, state in of_topics:
        properties = state.properties
        if properties is None or properties.broker_id is None or folder.leftover_of(part):
            continue
        if part.topic != CLUSTER_METADATA and not dirs.is_loaded(part.files.shown(part.state_dir)):
            continue
        key = (properties.cluster_id, properties.broker_id, part.topic, part.partition)
        other, directory = earlier.setdefault(key, (part, properties.directory_id))
        if other is part or (directory is not None and directory == properties.directory_id):
            continue
        if properties.version == 1 and _topic_id(part) != _topic_id(other):
            continue
        certain = directory is not None and properties.directory_id is not None
        both_dirs = other.files.shown(other.log_dir), part.files.shown(part.log_dir)
        both = f"another log dir of the same broker, {both_dirs[0]}, has {part.name} too"
        rest = "If neither lacks any, move one of the two away. If both lack some, kdump salvage merges them."
        if part.topic == CLUSTER_METADATA:
            rest = "The folder that stays must be in metadata.log.dir (by default the first of log.dirs)."
        from kdump.checks.repair_commands import compared

        compare = compared(both_dirs, part.topic or "")
        advice = (
            f"Keep a copy of both folders. {compare} shows which folder lacks records: move that folder away. {rest}"
        )
        yield Finding(
            level=Level.DERIVED if certain else Level.REMARK,
            file=part.files.shown(part.folder),
            kind=Code.TWICE,
            text=f"{both}: the broker does not start"
            if certain
            else f"{both}: a broker does not start with both log dirs",
            advice=advice if certain else "",
            fatal=certain,
        )


def _topic_id(part: Partition) -> bytes | None:
    """Return the topic id of a folder; None without a valid ``partition.metadata``. Another check reports a bad one."""
    try:
        return part.topic_id(discard)
    except UnreadableError:
        return None


class _Ids(NamedTuple):
    path: str
    file: str
    properties: MetaProperties
    partitions: set[str]


def _contradicting_ids(
    parts: Iterable[tuple[Partition, LogDirState]], dirs: LogDirs, *, is_one_broker: bool
) -> Iterator[Finding]:
    """Yield the findings on log dirs of one node with contradicting ids, and on missing ``meta.properties``."""
    found: dict[object, _Ids] = {}
    missing: set[object] = set()
    for part, state in parts:
        log_dir, of_topic = dirs.identity(part), [part.name] * (part.topic is not None)
        if log_dir in found:
            found[log_dir].partitions.update(of_topic)
            continue
        path = part.state_dir
        shown = part.files.shown(posixpath.join(path, file_names.META_PROPERTIES))
        if state.properties is not None:
            found[log_dir] = _Ids(path, shown, state.properties, set(of_topic))
        elif (
            of_topic
            and state.is_log_dir
            and log_dir not in missing
            and part.files.look(part.path_beside(file_names.META_PROPERTIES)) is None
        ):
            missing.add(log_dir)
            yield _missing(part, shown)
    brokers: dict[str, list[_Ids]] = defaultdict(list)
    for ids in found.values():
        if ids.properties.broker_id is not None:
            brokers[ids.properties.broker_id].append(ids)
    for of_one in brokers.values():
        yield from () if is_one_broker else _clusters(of_one)
        yield from _directories(of_one)


def _missing(part: Partition, shown: str) -> Finding:
    """Return the finding on a missing ``meta.properties``: only a remark if ``partition.metadata`` is missing, too.

    A broker of 0.8 needs neither file, and a later broker with ZooKeeper creates ``meta.properties``.
    """
    modern = any(entry.name == file_names.PARTITION_METADATA for entry in part.others)
    text = "the file is missing: a KRaft broker does not start without it"
    return Finding(
        level=Level.DERIVED if modern else Level.REMARK,
        file=shown,
        kind=Code.ABSENT,
        text=text,
        advice="Write the file with the ids of the cluster and of this broker (kafka-storage.sh format "
        "--ignore-formatted)."
        if modern
        else "",
        fatal=modern,
    )


def _clusters(of_one: list[_Ids]) -> Iterator[Finding]:
    """Yield the findings on log dirs of another cluster than the first one.

    The level is LOG even if each log dir is the only one of its broker: the exit status is then 3. One node id in two
    clusters is most likely one broker with a foreign log dir in log.dirs, which does not start.
    """
    first, *others = of_one
    for other in others:
        if other.properties.cluster_id != first.properties.cluster_id:
            yield Finding(
                level=Level.LOG,
                file=other.file,
                kind=Code.CLUSTER_ID,
                text=f"the cluster id differs from that in {first.file}: a broker does not start with both log dirs",
                expected=first.properties.cluster_id,
                found=other.properties.cluster_id,
                advice="Find out which of the two log dirs belongs to this broker, and remove the other log dir "
                "from log.dirs.",
            )


def _directories(of_one: list[_Ids]) -> Iterator[Finding]:
    """Yield the findings on log dirs with the same directory.id. Log dirs with a common partition count as copies."""
    earlier: dict[str, _Ids] = {}
    for ids in of_one:
        directory = ids.properties.directory_id
        if directory is None or not ids.partitions:  # the dry start reports a log dir without partitions
            continue
        first = earlier.setdefault(directory, ids)
        if first is not ids and not first.partitions & ids.partitions:
            yield Finding(
                level=Level.DERIVED,
                file=ids.file,
                kind=Code.DIRECTORY_ID,
                text=f"{first.file} has the same directory.id: a broker does not start with both log dirs",
                found=directory,
                advice="Remove the line directory.id from one of the two files: a broker assigns a new id, and no "
                "record is lost.",
                fatal=True,
            )
