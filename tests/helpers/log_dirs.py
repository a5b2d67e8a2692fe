"""Small log dirs of brokers, written file by file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write(log_dir: Path, partition: str, segments: Mapping[int | str, bytes], **beside: str | bytes) -> Path:
    """Write a partition folder: segments by base offset or file name, other files by name (``__`` is a dot)."""
    folder = log_dir / partition
    folder.mkdir(parents=True, exist_ok=True)
    for base, content in segments.items():
        (folder / (f"{base:020}.log" if isinstance(base, int) else base)).write_bytes(content)
    for name, content in beside.items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name.replace("__", ".").replace("_", "-")).write_bytes(data)
    return folder


def replica(
    broker: Path,
    segments: Mapping[int | str, bytes],
    *,
    name: str = "orders-0",
    epochs: Mapping[int, int] | None = None,
) -> Path:
    """Write a partition folder with the start offsets of leader epochs."""
    if epochs is None:
        return write(broker, name, segments)
    lines = "".join(f"{epoch} {start}\n" for epoch, start in epochs.items())
    return write(broker, name, segments, leader_epoch_checkpoint=f"0\n{len(epochs)}\n{lines}")


def checkpoint(path: Path, *entries: tuple[str, int, int]) -> None:
    """Write an offset checkpoint of ``(topic, partition, offset)``."""
    path.write_text("\n".join(["0", str(len(entries)), *(" ".join(map(str, entry)) for entry in entries)]) + "\n")


def node(broker: Path, number: int) -> None:
    """Set the broker that owns a log dir."""
    (broker / "meta.properties").write_text(f"version=1\nnode.id={number}\ncluster.id=c\n")
