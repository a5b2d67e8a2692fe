"""Every commit of one group, in the order of the log."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from kdump.internal_topics import consumer_offsets
from kdump.internal_topics.decode import decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.segments.batch_runs import BriefRecord

COMMITTED, ABORTED, PENDING = range(3)
OUTCOMES = ("committed", "aborted", "pending")
"""What became of a commit; one outside of transactions is committed at once."""
_UNKNOWN = -(1 << 63)
_WIDTH = 6


class KeptCommit(NamedTuple):
    """A commit record. ``committed`` is None in a tombstone, and where the value cannot be read."""

    key: bytes
    offset: int
    timestamp: int
    committed: int | None
    tombstone: bool
    producer: int
    outcome: str
    rewind: bool


class History:
    """Keeps 48 bytes for each commit."""

    def __init__(self) -> None:
        self._rows = array("q")
        self._keys: dict[bytes, int] = {}
        self._open: dict[int, list[int]] = {}

    def add(self, key: bytes, record: BriefRecord, producer: int) -> None:
        """Take the next commit of the group, or tombstone. ``key`` is that of an OffsetCommit record."""
        offset, timestamp, _, value, _ = record
        number = self._keys.setdefault(key, len(self._keys))
        committed = _UNKNOWN if value is None else committed_offset(key, value)
        outcome = COMMITTED
        if producer >= 0:
            outcome = PENDING
            self._open.setdefault(producer, []).append(len(self._rows))
        self._rows.extend((offset, timestamp, committed, number << 1 | (value is None), producer, outcome))

    def end(self, producer: int, *, committed: bool) -> None:
        """Take the marker of a transaction."""
        for row in self._open.pop(producer, ()):
            self._rows[row + _WIDTH - 1] = COMMITTED if committed else ABORTED

    def commits(self) -> Iterator[KeptCommit]:
        """Yield the commits; a rewind is one to an offset before that of the last commit that counts."""
        keys = list(self._keys)
        last: dict[int, int] = {}
        for row in range(0, len(self._rows), _WIDTH):
            offset, timestamp, committed, mixed, producer, outcome = self._rows[row : row + _WIDTH]
            number, tombstone = mixed >> 1, bool(mixed & 1)
            known = committed != _UNKNOWN
            rewind = known and number in last and committed < last[number]
            if tombstone:
                last.pop(number, None)
            elif known and outcome == COMMITTED:
                last[number] = committed
            yield KeptCommit(
                keys[number],
                offset,
                timestamp,
                committed if known else None,
                tombstone,
                producer,
                OUTCOMES[outcome],
                rewind,
            )


def committed_offset(key: bytes, value: bytes) -> int:
    """Return the offset that a commit record holds, _UNKNOWN where it cannot be read."""
    decoded = decode(consumer_offsets.TOPIC, key, value)
    values = None if decoded is None or decoded.value is None else decoded.value.values
    offset = None if values is None else values.get("offset")
    return offset if isinstance(offset, int) else _UNKNOWN
