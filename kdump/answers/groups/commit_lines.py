"""The lines of committed offsets, of share partitions and of the history of a group."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, NamedTuple

from kdump.answers.groups.expiry import expires_at
from kdump.answers.groups.group_records import topic_id_text
from kdump.answers.groups.lines import CommitLine, CommittedLine, RecordPlace
from kdump.formats.partition_metadata import ZERO_ID
from kdump.internal_topics import consumer_offsets
from kdump.internal_topics.decode import decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kdump.answers.groups.coordinator_log import HeldOffset
    from kdump.answers.groups.group_records import KnownGroup
    from kdump.answers.groups.history import History
    from kdump.answers.groups.log_ends import LogEnds, StableEnd
    from kdump.answers.groups.share_state import ShareKey, SharePartition


class CommitRecord(NamedTuple):
    """A commit, decoded; ``values`` are None where the value cannot be read, and ``problem`` says why."""

    topic: str
    partition: int
    values: Mapping[str, Any] | None
    problem: str | None


def read_commit(key: bytes, value: bytes | None) -> CommitRecord:
    """Decode a commit whose key is known to be sound."""
    decoded = decode(consumer_offsets.TOPIC, key, value)
    names: Mapping[str, Any] = {}
    if decoded is not None and decoded.key is not None and decoded.key.values is not None:
        names = decoded.key.values
    held = None if decoded is None else decoded.value
    return CommitRecord(
        names["topic"],
        names["partition"],
        None if held is None else held.values,
        None if held is None else held.reason or None,
    )


class CommitReader:
    """Makes lines of offsets. ``at`` is now, in ms."""

    def __init__(self, ends: LogEnds, retention_ms: int, at: int) -> None:
        self._ends = ends
        self._retention_ms = retention_ms
        self._at = at

    def committed(self, group: KnownGroup, coordinator: int, held: HeldOffset, *, pending: bool) -> CommittedLine:
        """Return the line of an offset; ``pending`` says whether a transaction holds another for the partition."""
        value, offset = held.entry
        commit = read_commit(held.key, value)
        values: Mapping[str, Any] = commit.values or {}
        committed, epoch = values.get("offset"), values.get("leaderEpoch", -1)
        topic_id = values.get("topicId", ZERO_ID)
        end = self._ends.found.get((commit.topic, commit.partition))
        recreated = topic_id != ZERO_ID and end is not None and end.topic_id not in {None, topic_id}
        expires = None
        if not pending and commit.values is not None:
            explicit = values.get("expireTimestamp", -1)
            expires = expires_at(
                group, commit.topic, values["commitTimestamp"], None if explicit == -1 else explicit, self._retention_ms
            )
        return CommittedLine(
            group.line.group_id,
            commit.topic,
            commit.partition,
            committed,
            None if epoch == -1 else epoch,
            values.get("metadata"),
            values.get("commitTimestamp"),
            expires,
            *_lags(None if recreated else end, committed, 0),
            pending_producer_id=held.producer,
            expired=expires is not None and expires <= self._at,
            topic_id=None if topic_id == ZERO_ID else topic_id_text(topic_id),
            recreated=recreated,
            delivery_complete_count=None,
            at=RecordPlace(coordinator, offset),
            problem=commit.problem,
            raw=base64.b64encode(value).decode() if commit.problem else None,
        )

    def shared(self, group_id: str, key: ShareKey, held: SharePartition) -> CommittedLine:
        """Return the line of a share partition that has begun."""
        topic = self._ends.topic_ids.get(key.topic_id)
        done = None if held.delivery_complete_count < 0 else held.delivery_complete_count
        end = None if topic is None else self._ends.found.get((topic, key.partition))
        offset, lag, stable, lag_to_stable = _lags(end, held.start_offset, done)
        return CommittedLine(
            group_id,
            topic,
            key.partition,
            held.start_offset,
            None if held.leader_epoch < 0 else held.leader_epoch,
            None,
            None,
            None,
            offset,
            lag,
            stable,
            lag_to_stable,
            pending_producer_id=None,
            expired=False,
            topic_id=topic_id_text(key.topic_id),
            recreated=False,
            delivery_complete_count=done,
            at=RecordPlace(held.partition, held.offset),
        )


def history_lines(group_id: str, coordinator: int, history: History) -> Iterator[CommitLine]:
    """Yield the commits of a group in order."""
    names: dict[bytes, CommitRecord] = {}
    for commit in history.commits():
        known = names.get(commit.key)
        if known is None:
            known = names[commit.key] = read_commit(commit.key, None)
        yield CommitLine(
            group_id,
            known.topic,
            known.partition,
            RecordPlace(coordinator, commit.offset),
            None if commit.timestamp < 0 else commit.timestamp,
            commit.committed,
            commit.tombstone,
            commit.rewind,
            None if commit.producer < 0 else commit.producer,
            commit.outcome,
        )


def _lags(
    end: StableEnd | None, offset: int | None, done: int | None
) -> tuple[int | None, int | None, int | None, int | None]:
    """Return log end, lag, last stable offset, lag to that; ``done`` records after ``offset`` do not count."""
    if end is None:
        return None, None, None, None
    if offset is None or done is None:
        return end.offset, None, end.stable, None
    return (
        end.offset,
        end.offset - offset - done,
        end.stable,
        None if end.stable is None else end.stable - offset - done,
    )
