"""Remarks on a valid log: transactions that are open at its end, and timestamps in the future."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import many
from kdump.findings import Finding, remark
from kdump.findings.codes import Code
from kdump.formats.record_layout import BATCH_HEADER
from kdump.primitives.wire import INT64_END

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.records.magic_2 import Batch

TOLERANCE: Final = 3_600_000
"""Allowed difference between clocks in ms: the default of ``message.timestamp.after.max.ms`` (KIP-937, 3.6)."""


class _FirstBatch(NamedTuple):
    file: str
    position: int
    offset: int
    value: int
    """A producer id, or a timestamp in ms."""


class LogRemarks:
    """Follows the transactions and timestamps of batches. ``at``: the current time in ms; None accepts any time."""

    def __init__(self, at: int | None) -> None:
        self.latest = INT64_END if at is None else at + TOLERANCE
        """The largest timestamp in ms that is not in the future."""
        self._open: dict[int, _FirstBatch] = {}
        self._future: _FirstBatch | None = None
        self._batches_of_future = 0

    def batch(self, file: str, batch: Batch) -> None:
        """Add a batch. Callers may skip batches without a producer whose timestamps are not above ``latest``."""
        header = batch.header
        if header.max_timestamp > self.latest:
            position = batch.position + BATCH_HEADER.offsets["max_timestamp"]
            self._future = self._future or _FirstBatch(file, position, batch.base_offset, header.max_timestamp)
            self._batches_of_future += 1
        if batch.is_control:
            self._open.pop(header.producer_id, None)
        elif batch.is_transactional:
            place = _FirstBatch(file, batch.position, batch.base_offset, header.producer_id)
            self._open.setdefault(header.producer_id, place)

    def is_open(self, producer_id: int) -> bool:
        return producer_id in self._open

    def forget(self) -> None:
        """Drop the open transactions, because bytes that were not read may contain their markers."""
        self._open.clear()

    def finish(self) -> Iterator[Finding]:
        """Yield a remark on open transactions and one on future timestamps, each with its first batch."""
        if self._open:
            first = min(self._open.values(), key=lambda place: place.offset)
            text = (
                f"{many(len(self._open), 'transaction')} without an end marker: read_committed consumers wait at the "
                f"first one, which producer {first.value} began at offset {first.offset}"
            )
            advice = "'kdump transactions' shows which ones hang."
            yield remark(
                first.file, Code.OPEN_TRANSACTION, text, position=first.position, offset=first.offset, advice=advice
            )
        if self._future is not None:
            from kdump.primitives.timestamps import iso_or_ms

            time = iso_or_ms(self._future.value)
            text = (
                f"{many(self._batches_of_future, 'batch', 'batches')} with a timestamp in the future (first: {time}): "
                "retention by time keeps them until that time"
            )
            yield remark(
                self._future.file,
                Code.FUTURE_TIMESTAMP,
                text,
                position=self._future.position,
                offset=self._future.offset,
                expected=f"{iso_or_ms(self.latest)} or earlier",
                found=time,
                advice="'kdump retention' shows the segments that are kept.",
            )
