"""Remarks on a valid log: transactions open at its end, and timestamps in the future."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import many
from kdump.findings import Finding, Level
from kdump.findings.codes import Code
from kdump.formats.record_layout import BATCH_HEADER
from kdump.primitives.timestamps import iso_or_ms
from kdump.primitives.wire import INT64_END

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.records.magic_2 import Batch

TOLERANCE: Final = 3_600_000
"""Ms that clocks may differ: the default of ``message.timestamp.after.max.ms`` (KIP-937, 3.6)."""


class _Met(NamedTuple):
    file: str
    position: int
    offset: int
    value: int
    """A producer id, or a timestamp in ms."""


class LogRemarks:
    """Follows transactions and timestamps from batch to batch; ``at`` is now in ms (None: no check of future times)."""

    def __init__(self, at: int | None) -> None:
        self.latest = INT64_END if at is None else at + TOLERANCE
        """The last timestamp that is not in the future, in ms."""
        self._open: dict[int, _Met] = {}
        self._future: _Met | None = None
        self._batches_of_future = 0

    def batch(self, file: str, batch: Batch) -> None:
        """Take a batch. Those without a producer and without a timestamp past ``latest`` can be left out."""
        header = batch.header
        if header.max_timestamp > self.latest:
            position = batch.position + BATCH_HEADER.offsets["max_timestamp"]
            self._future = self._future or _Met(file, position, batch.base_offset, header.max_timestamp)
            self._batches_of_future += 1
        if batch.is_control:
            self._open.pop(header.producer_id, None)
        elif batch.is_transactional:
            place = _Met(file, batch.position, batch.base_offset, header.producer_id)
            self._open.setdefault(header.producer_id, place)

    def is_open(self, producer_id: int) -> bool:
        """Return whether a transaction of a producer is open."""
        return producer_id in self._open

    def forget(self) -> None:
        """Take bytes that cannot be read: the markers of all open transactions may be among them."""
        self._open.clear()

    def finish(self) -> Iterator[Finding]:
        """Yield a remark of each kind, with its first occurrence."""
        if self._open:
            first = min(self._open.values(), key=lambda place: place.offset)
            text = (
                f"{many(len(self._open), 'transaction')} without an end, the first of producer {first.value} from "
                f"offset {first.offset} on: read_committed consumers wait there"
            )
            yield _remark(first, Code.OPEN_TRANSACTION, text, "'kdump transactions' says which of them hang.")
        if self._future is not None:
            time = iso_or_ms(self._future.value)
            text = (
                f"{many(self._batches_of_future, 'batch', 'batches')} with a timestamp in the future, "
                f"the first with {time}: retention by time keeps them until then"
            )
            found = _remark(self._future, Code.FUTURE_TIMESTAMP, text, "'kdump retention' says what they keep.")
            yield replace(found, expected=f"{iso_or_ms(self.latest)} or before", found=time)


def _remark(first: _Met, kind: str, text: str, advice: str) -> Finding:
    return Finding(
        level=Level.REMARK,
        file=first.file,
        kind=kind,
        text=text,
        position=first.position,
        offset=first.offset,
        advice=advice,
    )
