"""The tables of ``kdump groups``, and the file that sets the offsets of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

from kdump.answers.groups.lines import CommitLine, CommittedLine, GroupLine, MissingLine, UnreadLine, WriterLine
from kdump.primitives.timestamps import for_people
from kdump.printers.answer_lines import AnswerTable, csv_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sized

    from kdump.answers.collector import AnswerLine
    from kdump.answers.groups.lines import GroupMemberLine

_OFFSETS: Final = ("group", "topic", "partition", "offset", "log end", "lag", "committed", "remark")
_COMMITS: Final = ("group", "topic", "partition", "at", "time", "offset", "remark")
_WRITERS: Final = ("rank", "group", "coordinator", "bytes", "commits", "tombstones", "group records", "first", "last")
_MISSING: Final = ("topic", "partition", "from", "until", "reason")
_SPARE: Final = ("coordinator", "instance", "target", "epoch", "protocol", "committed", "host")
_NUMBERS: Final = frozenset(
    (
        *("members", "epoch", "coordinator", "partition", "offset", "log end", "lag", "at", "rank", "bytes", "commits"),
        *("tombstones", "group records", "from", "until"),
    )
)
NO_NAME: Final = '""'
"""The text for an empty group id, the default of consumers before 2.2."""
RESETTABLE: Final = frozenset({"Classic", "Consumer"})
"""The types of groups that kafka-consumer-groups.sh resets."""


def tables(lines: list[AnswerLine]) -> Iterator[AnswerTable]:
    """Yield the table of groups or, if --top gave lines, of their writes. Then yield other tables that have rows."""
    groups = [line for line in lines if isinstance(line, GroupLine)]
    writers = [_writer(line) for line in lines if isinstance(line, WriterLine)]
    if writers:
        yield AnswerTable(f"{_count(writers)} wrote into __consumer_offsets", _WRITERS, writers, _NUMBERS)
    else:
        yield AnswerTable.of(_count(groups), map(_group, groups), _NUMBERS, spare=_SPARE)
    members = (_member(group, member) for group in groups for member in group.members)
    if (table := AnswerTable.of("members", members, _NUMBERS, spare=_SPARE)).rows:
        yield table
    rest = (
        ("offsets", _OFFSETS, [_offset(line) for line in lines if isinstance(line, CommittedLine)]),
        (
            "commits of each group in the order of the log",
            _COMMITS,
            [_commit(line) for line in lines if isinstance(line, CommitLine)],
        ),
        ("missing and unreadable records", _MISSING, list(_missing(lines))),
    )
    for title, columns, rows in rest:
        if rows:
            yield AnswerTable(title, columns, rows, _NUMBERS, spare=_SPARE)


def _count(groups: Sized) -> str:
    return "1 group" if len(groups) == 1 else f"{len(groups)} groups"


def _group(line: GroupLine) -> dict[str, object]:
    kind = "simple" if line.is_simple else line.type
    protocol = " ".join(filter(None, (line.protocol_type, line.protocol))) or None
    state = line.state if line.problem is None else f"{line.state} ({line.problem})"
    return {
        "group": line.group_id or NO_NAME,
        "type": kind,
        "state": state,
        "members": len(line.members),
        "protocol": protocol,
        "epoch": line.group_epoch,
        "coordinator": line.coordinator_partition,
    }


def _member(group: GroupLine, member: GroupMemberLine) -> dict[str, object]:
    assigned, target = member.topic_partitions, member.target_topic_partitions
    if member.tasks is not None:
        held = {"active": member.tasks.active, "standby": member.tasks.standby, "warmup": member.tasks.warmup}
        assigned = tuple(f"{name} {' '.join(tasks)}" for name, tasks in held.items() if tasks)
    return {
        "group": group.group_id or NO_NAME,
        "member": member.member_id,
        "client": member.client_id,
        "host": member.client_host,
        "instance": member.instance_id,
        "epoch": member.member_epoch,
        "assigned": None if assigned is None else ", ".join(assigned),
        "target": None if target is None or target == assigned else ", ".join(target),
    }


def _offset(line: CommittedLine) -> tuple[object, ...]:
    stable = line.last_stable_offset
    remarks = (
        f"pending in a transaction of producer {line.pending_producer_id}"
        if line.pending_producer_id is not None
        else "",
        "expired" if line.expired else "",
        f"read_committed consumers stop at {stable}" if stable is not None and stable != line.log_end_offset else "",
        "beyond the log end" if line.lag is not None and line.lag < 0 else "",
        "the topic was created again" if line.recreated else "",
        line.problem or "",
        f"metadata {line.metadata!r}" if line.metadata else "",
    )
    time = for_people(line.commit_timestamp_ms)
    topic = line.topic if line.topic is not None else f"id {line.topic_id}"
    remark = "; ".join(filter(None, remarks))
    return line.group_id or NO_NAME, topic, line.partition, line.offset, line.log_end_offset, line.lag, time, remark


def _commit(line: CommitLine) -> tuple[object, ...]:
    remarks = (
        "deleted" if line.tombstone else "",
        "REWIND" if line.rewind else "",
        f"{line.outcome} (producer {line.producer_id})" if line.producer_id is not None else "",
    )
    time = for_people(line.timestamp_ms)
    remark = ", ".join(filter(None, remarks))
    return line.group_id or NO_NAME, line.topic, line.partition, line.at.offset, time, line.offset, remark


def _writer(line: WriterLine) -> tuple[object, ...]:
    first, last = map(for_people, (line.first_timestamp_ms, line.last_timestamp_ms))
    counts = (line.bytes, line.commits, line.tombstones, line.group_records)
    return (line.rank, line.group_id or NO_NAME, line.coordinator_partition, *counts, first, last)


def _missing(lines: Iterable[AnswerLine]) -> Iterator[tuple[object, ...]]:
    for line in lines:
        if isinstance(line, MissingLine):
            yield line.topic, line.partition, line.from_offset, line.until_offset, line.reason
        elif isinstance(line, UnreadLine):
            count = "1 record" if line.records == 1 else f"{line.records} records from this offset on"
            yield line.topic, line.partition, line.first_offset, None, f"{count}: {line.reason}"


def write_reset_csv(lines: Iterable[AnswerLine], out: BinaryIO) -> list[str]:
    """Write the committed offsets as input for ``kafka-consumer-groups.sh --reset-offsets --from-file``.

    The format is ``group,topic,partition,offset``, for several groups (since 2.4). Return sentences on the offsets that
    are left out: one for each group and reason. ``lines`` must have each group before its offsets.
    """
    left_out: dict[tuple[str, str], list[str]] = {}
    types: dict[str, str] = {}
    for line in lines:
        if isinstance(line, GroupLine):
            types[line.group_id] = line.type
        elif isinstance(line, CommittedLine):
            reason = _unfit(line, types.get(line.group_id))
            if reason:
                left_out.setdefault((line.group_id, reason), []).append(
                    f"{line.topic or line.topic_id}-{line.partition}"
                )
                continue
            out.write(csv_line((line.group_id, line.topic, line.partition, line.offset)))
    return [
        f"{group or NO_NAME}: {names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''} left out: {reason}"
        for (group, reason), names in left_out.items()
    ]


def _unfit(line: CommittedLine, group_type: str | None) -> str:
    """Return why kafka-consumer-groups.sh cannot set an offset; empty if it can. ``group_type`` None means Share."""
    if group_type not in RESETTABLE:
        return f"kafka-consumer-groups.sh cannot reset {(group_type or 'Share').lower()} groups"
    if line.pending_producer_id is not None:
        return f"the commit of offset {line.offset} is in an open transaction (producer {line.pending_producer_id})"
    if line.offset is None:
        return f"the record cannot be read: {line.problem}"
    if line.recreated:
        return "the topic was deleted and created again"
    if not line.group_id or "\n" in line.group_id or "\r" in line.group_id:
        return "kafka-consumer-groups.sh refuses a group id that is empty or has a line break"
    return ""
