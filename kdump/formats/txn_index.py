"""``.txnindex``, the transaction index: the aborted transactions whose markers are in a segment.

Source: KIP-98 and Kafka's classes AbortedTxn and TransactionIndex (0.11). The file has entries of 34 bytes in the order
of the markers. It is not preallocated, and may be missing if no transaction was aborted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.errors import DamageError
from kdump.primitives.wire import Int16, Int64, Layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.primitives.wire import Bytes

CURRENT_VERSION = 0


class AbortedTxn(NamedTuple):
    """An aborted transaction: ``last_offset`` is its marker's, ``last_stable_offset`` the log's after the marker."""

    version: Int16
    producer_id: Int64
    first_offset: Int64
    last_offset: Int64
    last_stable_offset: Int64

    @property
    def shown_version(self) -> int:
        """The version that DumpLogSegments prints: the high byte of the stored version."""
        return self.version >> 8


ABORTED_TXN = Layout(AbortedTxn)


def entries(data: Bytes) -> Iterator[AbortedTxn]:
    """Yield the complete entries of ``data``, of any version."""
    for position in range(0, len(data) - ABORTED_TXN.size + 1, ABORTED_TXN.size):
        yield ABORTED_TXN.read(data, position)


def read(data: Bytes) -> tuple[AbortedTxn, ...]:
    """Return all entries. Raises DamageError for an unknown version and for a truncated last entry."""
    found = tuple(entries(data))
    for number, entry in enumerate(found):
        if entry.version != CURRENT_VERSION:
            raise DamageError(
                "version",
                "an aborted transaction has an unknown version",
                position=number * ABORTED_TXN.size,
                expected=CURRENT_VERSION,
                found=entry.version,
            )
    left = len(data) % ABORTED_TXN.size
    if left:
        raise DamageError(
            "short",
            "the last entry is truncated",
            position=len(data) - left,
            expected=f"{ABORTED_TXN.size} bytes",
            found=f"{left} bytes",
        )
    return found


def encode(aborted: Iterable[AbortedTxn]) -> bytes:
    return b"".join(map(ABORTED_TXN.write, aborted))
