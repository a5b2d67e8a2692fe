"""The account of a rebuilt cluster, made at the end of planning: ``account.json``, and the lines of the command."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Final

from kdump.answers.collector import as_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.collector import AnswerLine
    from kdump.rebuild.coordinators import RebuiltGroup, RebuiltTransaction
    from kdump.rebuild.metadata import ClusterChange
    from kdump.rebuild.partition_plan import LostOffsets, SourceRange

VERSION: Final = 1
FILE: Final = "account.json"


@dataclass(frozen=True)
class RebuiltNode:
    """A node of the new cluster. ``log_dir`` is relative to the output folder."""

    kind: ClassVar[str] = "node"

    id: int
    log_dir: str
    directory_id: str
    roles: str
    address: str
    partitions: int
    leads: int
    bytes: int


@dataclass(frozen=True)
class RebuiltMetadata:
    """The sources of the old metadata, and the new snapshot."""

    kind: ClassVar[str] = "metadata"

    cluster_id: str
    release: str
    from_: tuple[str, ...]
    """The paths of the copies of the metadata log; empty if no volume has one."""
    end_offset: int
    epoch: int
    breaks: tuple[str, ...]
    features: dict[str, int]
    next_producer_id: int | None
    topics: int
    configs: int
    acls: int
    scram_users: int
    quotas: int


@dataclass(frozen=True)
class RebuiltPartition:
    kind: ClassVar[str] = "partition"

    topic: str
    topic_id: str
    partition: int
    state: str
    """``lost``: no copy; else ``partial``: offsets are lost; else ``merged``: from several copies; else ``whole``."""
    from_: tuple[SourceRange, ...]
    log_start_offset: int
    end_offset: int
    leader_epoch: int
    """The first leader epoch of the new leader."""
    replicas: tuple[int, ...]
    lost: tuple[LostOffsets, ...]
    uncommitted: int
    """The number of offsets from the highest known high watermark on; with ``--committed-only`` those left out."""
    bytes: int


@dataclass(frozen=True)
class RebuildWarning:
    """A warning that the user must read before the first start."""

    kind: ClassVar[str] = "warning"

    text: str


@dataclass(frozen=True)
class RebuildAccount:
    """The content of ``account.json``. ``dropped``: the changes, left-out folders, and left-out bytes."""

    metadata: RebuiltMetadata
    nodes: tuple[RebuiltNode, ...]
    partitions: tuple[RebuiltPartition, ...]
    dropped: tuple[ClusterChange, ...]
    transactions: tuple[RebuiltTransaction, ...]
    groups: tuple[RebuiltGroup, ...]
    warnings: tuple[str, ...]

    def lines(self) -> Iterator[AnswerLine]:
        warnings = map(RebuildWarning, self.warnings)
        return chain(
            [self.metadata], self.nodes, self.partitions, self.dropped, self.transactions, self.groups, warnings
        )

    def encode(self) -> bytes:
        metadata = _plain(self.metadata)
        made = {
            "version": VERSION,
            "clusterId": metadata.pop("clusterId"),
            "release": metadata.pop("release"),
            "nodes": list(map(_plain, self.nodes)),
            "metadata": metadata,
            "partitions": list(map(_plain, self.partitions)),
            "dropped": list(map(_plain, self.dropped)),
            "transactions": list(map(_plain, self.transactions)),
            "groups": {each.group_id: _plain(each) for each in self.groups},
            "warnings": list(self.warnings),
        }
        return json.dumps(made, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def _plain(line: AnswerLine) -> dict[str, object]:
    found = as_json(line)
    del found["kind"]
    return found
