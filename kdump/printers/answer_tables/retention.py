"""The tables of ``kdump retention``: a table of segments per outcome (deleted ones first), then configs of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.retention import SegmentRetention, TopicRetention
from kdump.answers.topic_configs import UNKNOWN
from kdump.errors import many
from kdump.printers.answer_lines import AnswerTable
from kdump.printers.quantities import size, time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kdump.answers.collector import AnswerLine

_RIGHT: Final = frozenset({"segment", "next offset", "bytes"})
_TOPIC_COLUMNS: Final = (
    "topic",
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "local ms",
    "local bytes",
    "set by",
)


def tables(lines: Sequence[AnswerLine]) -> Iterator[AnswerTable]:
    segments = [line for line in lines if isinstance(line, SegmentRetention)]
    going = [line for line in segments if line.deletable]
    blocking = [line for line in segments if line.blocks]
    blocked = [line for line in segments if line.blocked_by is not None]
    unknown = [line for line in segments if line.deletable is None]
    others = [line for line in segments if line.deletable is False and not line.blocks and line.blocked_by is None]
    after = many(sum(line.blocks for line in blocking), "segment")
    for found, title in (
        (going, ("is deleted at the next check", "are deleted at the next check")),
        (blocking, (f"stays and blocks {after} after it", f"stay and block {after} after them")),
        (blocked, ("is due but blocked", "are due but blocked")),
        (unknown, (f"may be deleted, because {UNKNOWN}",) * 2),
        (others, ("stays", "stay")),
    ):
        if not found and (found is blocking or found is unknown):
            continue
        total = size(sum(line.bytes for line in found))
        yield AnswerTable.of(
            f"{many(len(found), 'segment')} {title[len(found) != 1]}: {total}",
            map(_segment, found),
            _RIGHT,
            spare=("time source", "next offset", "due from", "reason", "largest time"),
        )
    topics = [_topic(line) for line in lines if isinstance(line, TopicRetention)]
    yield AnswerTable("Configs", _TOPIC_COLUMNS, topics, frozenset(_TOPIC_COLUMNS[2:6]))


def _segment(line: SegmentRetention) -> dict[str, object]:
    return {
        "partition": f"{line.topic}-{line.partition}",
        "segment": line.base_offset,
        "next offset": line.next_offset,
        "bytes": size(line.bytes),
        "largest time": time(line.largest_timestamp_ms),
        "time source": line.largest_from,
        "due from": time(line.deletable_at_ms),
        "reason": line.reason,
        "why": line.why,
    }


def _topic(line: TopicRetention) -> tuple[object, ...]:
    if not line.known:
        return line.topic, *["unknown"] * 3, None, None, "unknown: give the configs with --config"
    set_ones = [f"{key} by {source}" for key, source in line.from_.items() if source != "default"]
    local = (line.local_retention_ms, line.local_retention_bytes) if line.remote_storage_enable else (None, None)
    return line.topic, line.cleanup_policy, line.retention_ms, line.retention_bytes, *local, ", ".join(set_ones)
