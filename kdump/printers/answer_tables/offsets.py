"""The tables of ``kdump offsets``: partitions (most held back offsets first), then first offsets at given times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.offsets import PartitionOffsets
from kdump.errors import many
from kdump.primitives.timestamps import for_people
from kdump.printers.answer_lines import AnswerTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.answers.collector import AnswerLine

_SPARE: Final = ("at offset", "epoch", "newest timestamp", "high watermark", "earliest")
_RIGHT: Final = ("earliest", "latest", "high watermark", "last stable", "held back", "epoch", "at offset")


def tables(lines: Iterable[AnswerLine]) -> Iterator[AnswerTable]:
    found = [line for line in lines if isinstance(line, PartitionOffsets)]
    stopped = sum(line.last_stable < line.latest for line in found)
    title = f"{many(len(found), 'partition')}, {stopped or 'none'} with offsets held back from read_committed consumers"
    found.sort(key=lambda line: line.last_stable - line.latest)
    yield AnswerTable.of(title, map(_row, found), _RIGHT, spare=_SPARE)
    looked_up = [
        (f"{line.topic}-{line.partition}", for_people(one.time_ms), one.offset, for_people(one.timestamp_ms))
        for line in found
        for one in line.by_time
    ]
    if looked_up:
        yield AnswerTable(
            "First offset at or after a time",
            ("partition", "time", "offset", "timestamp"),
            looked_up,
            frozenset({"offset"}),
        )


def _row(line: PartitionOffsets) -> dict[str, object]:
    return {
        "partition": f"{line.topic}-{line.partition}",
        "earliest": line.earliest,
        "latest": line.latest,
        "high watermark": line.high_watermark,
        "last stable": line.last_stable,
        "held back": line.latest - line.last_stable,
        "epoch": line.leader_epoch,
        "newest timestamp": for_people(line.max_timestamp_ms),
        "at offset": line.max_timestamp_offset,
    }
