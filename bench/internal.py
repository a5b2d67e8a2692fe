"""Segments of Kafka's own topics: batches from brokers (golden/), repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.segments import repeated
from kdump.log_dirs.local import LocalFile
from kdump.records.magic_2 import Batch
from kdump.segments.walk import walk
from testing import GOLDEN

if TYPE_CHECKING:
    from pathlib import Path

RECORDS: Final = 200_000
"""Maximum. With fewer records, most time would be the JVM's start."""
SOURCES: Final = {
    "__consumer_offsets": "brokers/4.2.2/__consumer_offsets-1",
    "__transaction_state": "brokers/4.2.2/__transaction_state-1",
    "__cluster_metadata": "brokers/4.2.2/__cluster_metadata-0",
    "__share_group_state": "brokers/4.2.2/__share_group_state-1",
    "__remote_log_metadata": "brokers/4.2.2/__remote_log_metadata-1",
}
"""Topic -> a folder of golden/ that contains a part of it."""


def make(folder: Path, topic: str, records: int) -> Path:
    """Return the path of a segment of ``topic`` with about ``records`` records; write it if it does not exist."""
    target = folder / f"{topic}-{records}" / f"{0:020}.log"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        batches, held = _batches(topic)
        partial = target.with_suffix(".partial")
        with partial.open("wb") as out:
            for one in repeated(batches, held, records):
                out.write(one)
        partial.rename(target)
    return target


def _batches(topic: str) -> tuple[list[bytes], int]:
    """Return the batches with data records, from offset 0 on without gaps, and the number of their offsets."""
    held, made = 0, []
    for path in sorted((GOLDEN / SOURCES[topic]).glob("*.log")):
        with LocalFile(path) as source:
            for region in walk(source):
                if isinstance(region, Batch) and not region.is_control and region.count:
                    made.append(held.to_bytes(8, "big") + bytes(region.raw[8:]))
                    held += region.last_offset - region.base_offset + 1
    return made, held
