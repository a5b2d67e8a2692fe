"""Little log dirs of brokers, written file by file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def replica(
    broker: Path, segments: dict[int | str, bytes], *, name: str = "orders-0", epochs: dict[int, int] | None = None
) -> Path:
    """Write a partition's folder into a log dir: content by base offset or file name, start offsets by leader epoch."""
    folder = broker / name
    folder.mkdir(parents=True)
    for base, content in segments.items():
        (folder / (f"{base:020}.log" if isinstance(base, int) else base)).write_bytes(content)
    if epochs is not None:
        lines = "".join(f"{epoch} {start}\n" for epoch, start in epochs.items())
        (folder / "leader-epoch-checkpoint").write_text(f"0\n{len(epochs)}\n{lines}")
    return folder


def checkpoint(broker: Path, name: str, offset: int, *, partition: str = "orders-0") -> None:
    """Write an offset checkpoint of one partition."""
    topic, _, number = partition.rpartition("-")
    (broker / name).write_text(f"0\n1\n{topic} {number} {offset}\n")


def node(broker: Path, number: int) -> None:
    """Say which broker owns a log dir."""
    (broker / "meta.properties").write_text(f"version=1\nnode.id={number}\ncluster.id=c\n")
