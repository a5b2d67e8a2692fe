"""Copies of a partition on volumes, and the plan for them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from kdump.formats import partition_metadata
from kdump.formats.partition_metadata import PartitionMetadata
from kdump.rebuild import one_partition
from kdump.rebuild.one_partition import WantedPartition
from kdump.rebuild.volumes import survey
from testing import forge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kdump.rebuild.partition_plan import PartitionPlan

TOPIC_ID = b"1" * 16


def batch(base: int, count: int = 1, *, epoch: int = 0, text: str = "v", **fields) -> bytes:
    """Return a batch of ``count`` records."""
    records = [forge.record(b"k", f"{text}{base + n}".encode(), offset=n) for n in range(count)]
    return forge.batch(records, base_offset=base, leader_epoch=epoch, **fields)


def batches(*starts: int, epoch: int = 0, text: str = "v") -> bytes:
    """Return batches from each offset to before the next; the last number is the end offset."""
    return b"".join(batch(base, end - base, epoch=epoch, text=text) for base, end in pairwise(starts))


def flipped(data: bytes, position: int, bit: int = 0) -> bytes:
    return data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :]


def copy(
    root: Path,
    node: int,
    segments: Mapping[int, bytes],
    *,
    epochs: Sequence[tuple[int, int]] | None = None,
    name: str = "orders-0",
    topic_id: bytes | None = TOPIC_ID,
    files: Mapping[str, bytes] | None = None,
    **checkpoints: int,
) -> Path:
    """Write a copy into the log dir of a node; ``checkpoints`` are offsets by the first words of a file's name."""
    log_dir = root / f"node-{node}"
    folder = log_dir / name
    folder.mkdir(parents=True)
    (log_dir / "meta.properties").write_text(f"version=1\nnode.id={node}\ncluster.id=c\n")
    for base, data in segments.items():
        (folder / f"{base:020}.log").write_bytes(data)
    if epochs is not None:
        lines = "".join(f"{epoch} {start}\n" for epoch, start in epochs)
        (folder / "leader-epoch-checkpoint").write_text(f"0\n{len(epochs)}\n{lines}")
    if topic_id is not None:
        (folder / "partition.metadata").write_bytes(partition_metadata.encode(PartitionMetadata(0, topic_id)))
    for file, data in (files or {}).items():
        (folder / file).write_bytes(data)
    topic, _, number = name.rpartition("-")
    for file, offset in checkpoints.items():
        (log_dir / f"{file.replace('_', '-')}-offset-checkpoint").write_text(f"0\n1\n{topic} {number} {offset}\n")
    return folder


def plan(root: Path, name: str = "orders-0", **wanted) -> PartitionPlan:
    """Return the plan of a partition whose copies lie below ``root``."""
    topic, _, number = name.rpartition("-")
    folders = tuple(survey([str(root)]).of(topic, TOPIC_ID, int(number)))
    return one_partition.plan(
        WantedPartition(topic=topic, topic_id=TOPIC_ID, partition=int(number), folders=folders, **wanted)
    )


def log_of(found: PartitionPlan) -> dict[int, bytes]:
    """Return the segments that a plan makes, by base offset."""
    made = {}
    for segment in found.segments:
        data = b""
        for piece in segment.pieces:
            part = Path(piece.path).read_bytes()[piece.position : piece.position + piece.size]
            if piece.corrected is not None:
                base, epoch = piece.corrected
                part = base.to_bytes(8, "big") + part[8:12] + epoch.to_bytes(4, "big") + part[16:]
            data += part
        made[segment.base_offset] = data
    return made
