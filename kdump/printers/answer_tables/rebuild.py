"""The tables of ``kdump rebuild-cluster``: topics, losses, changes, nodes, metadata, groups, transactions, warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.metadata.records import METADATA_VERSION, level_name
from kdump.errors import many
from kdump.primitives.timestamps import iso
from kdump.printers.answer_lines import AnswerTable
from kdump.printers.quantities import size
from kdump.rebuild.account import RebuildWarning, RebuiltMetadata, RebuiltNode, RebuiltPartition
from kdump.rebuild.coordinators import RebuiltGroup, RebuiltTransaction
from kdump.rebuild.metadata import ClusterChange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.collector import AnswerLine

STATES: Final = ("whole", "merged", "partial", "lost")
LISTED: Final = 50
"""Maximum number of rows in the table of changes; -o jsonl prints all."""


def tables(lines: list[AnswerLine]) -> Iterator[AnswerTable]:
    partitions = [line for line in lines if isinstance(line, RebuiltPartition)]
    yield _topics(partitions)
    yield from _lost(partitions)
    yield from _dropped([line for line in lines if isinstance(line, ClusterChange)])
    yield _nodes([line for line in lines if isinstance(line, RebuiltNode)])
    for line in lines:
        if isinstance(line, RebuiltMetadata):
            yield _metadata(line)
    yield from _groups([line for line in lines if isinstance(line, RebuiltGroup)])
    yield from _transactions([line for line in lines if isinstance(line, RebuiltTransaction)])
    texts = [line.text for line in lines if isinstance(line, RebuildWarning)]
    if texts:
        rows = [(number, text) for number, text in enumerate(texts, 1)]
        yield AnswerTable("Warnings: before the first start", ("", "warning"), rows, frozenset(("",)))


def _topics(partitions: list[RebuiltPartition]) -> AnswerTable:
    topics: dict[str, list[RebuiltPartition]] = {}
    for each in partitions:
        topics.setdefault(each.topic, []).append(each)
    rows = [
        (
            name,
            len(held),
            *(sum(each.state == state for each in held) or None for state in STATES),
            sum(one.until_offset - one.from_offset for each in held for one in each.lost) or None,
            sum(each.uncommitted for each in held) or None,
            max(len(each.replicas) for each in held),
            size(sum(each.bytes for each in held)),
        )
        for name, held in topics.items()
    ]
    names = ("topic", "partitions", *STATES, "offsets lost", "uncommitted", "replicas", "size")
    total = many(len(partitions), "partition")
    return AnswerTable(f"Topics: {len(rows)}, {total}", names, rows, frozenset(names[1:]))


def _lost(partitions: list[RebuiltPartition]) -> Iterator[AnswerTable]:
    rows: list[tuple[object, ...]] = []
    for each in partitions:
        name = f"{each.topic}-{each.partition}"
        rows += [(name, one.from_offset, one.until_offset, one.why) for one in each.lost]
        if each.state == "lost" and not each.lost:
            rows.append((name, None, each.end_offset, "no volume has a copy: the new partition is empty"))
    if rows:
        names = ("partition", "from offset", "until offset", "why")
        yield AnswerTable("Lost", names, rows, frozenset(names[1:3]))


def _dropped(lines: list[ClusterChange]) -> Iterator[AnswerTable]:
    if lines:
        rows = [(line.what, line.name or "<default>", line.key, line.value, line.why) for line in lines[:LISTED]]
        more = f", the first {LISTED} of them (-o jsonl has all)" if len(lines) > LISTED else ""
        yield AnswerTable(f"Changed or left out: {len(lines)}{more}", ("what", "name", "key", "value", "why"), rows)


def _nodes(lines: list[RebuiltNode]) -> AnswerTable:
    rows = [
        (line.id, line.roles, line.address, line.partitions, line.leads, size(line.bytes), line.log_dir)
        for line in lines
    ]
    names = ("node", "roles", "address", "partitions", "leads", "size", "log dir")
    needed = size(sum(line.bytes for line in lines))
    right = frozenset(("node", "partitions", "leads", "size"))
    return AnswerTable(f"Nodes: {len(rows)}, {needed} of disk space", names, rows, right)


def _metadata(line: RebuiltMetadata) -> AnswerTable:
    rows: list[tuple[object, ...]] = [
        ("cluster id", line.cluster_id),
        ("release", line.release),
        ("metadata.version", level_name(line.features.get(METADATA_VERSION, 0))),
        ("taken from", ", ".join(line.from_) or "partition folders, because no volume has a metadata log"),
        ("snapshot", f"end offset {line.end_offset}, epoch {line.epoch}"),
        ("topics", line.topics),
        ("configs", line.configs),
        ("ACLs", line.acls),
        ("SCRAM users", line.scram_users),
        ("quotas", line.quotas),
        ("next producer id", line.next_producer_id),
        *(("damage", text) for text in line.breaks),
    ]
    return AnswerTable("Metadata", ("", "value"), rows)


def _groups(lines: list[RebuiltGroup]) -> Iterator[AnswerTable]:
    """Yield a table with a row for each type of groups, because there may be thousands of groups."""
    kinds: dict[str, list[RebuiltGroup]] = {}
    for line in lines:
        kinds.setdefault(line.type, []).append(line)
    rows = [
        {
            "type": kind,
            "groups": len(held),
            "offsets": sum(line.offsets for line in held),
            "oldest commit": _oldest(held),
            "expire at the first start": sum(line.expired for line in held) or None,
        }
        for kind, held in sorted(kinds.items())
    ]
    if rows:
        yield AnswerTable.of(f"Groups: {len(lines)}", rows, ("groups", "offsets", "expire at the first start"))


def _oldest(groups: list[RebuiltGroup]) -> str | None:
    times = [line.oldest_commit_ms for line in groups if line.oldest_commit_ms is not None]
    return iso(min(times)) if times else None


def _transactions(lines: list[RebuiltTransaction]) -> Iterator[AnswerTable]:
    if lines:
        rows = [
            {
                "transactional id": line.transactional_id,
                "producer id": line.producer_id,
                "state": line.state,
                "after the start": "hangs" if line.hangs else "ended by its coordinator",
                "partitions": ", ".join(line.partitions),
            }
            for line in lines
        ]
        yield AnswerTable.of("Open transactions", rows, ("producer id",))
