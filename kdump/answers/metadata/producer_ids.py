"""The next block of producer ids (KIP-730)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.answers.metadata.snapshot_record import SnapshotRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.answers.metadata.records import Fields


class ProducerIds:
    """``next`` is the first producer id that no broker has been given, None before the first block."""

    def __init__(self) -> None:
        self.next: int | None = None

    def handlers(self) -> dict[str, Callable[[Fields], None]]:
        """Return what applies each record."""
        return {"ProducerIdsRecord": self._set}

    def _set(self, fields: Fields) -> None:
        self.next = fields["nextProducerId"]

    def records(self) -> Iterator[SnapshotRecord]:
        """Yield the record of a snapshot, which names no broker."""
        if self.next is not None:
            fields = {"brokerId": -1, "brokerEpoch": -1, "nextProducerId": self.next}
            yield SnapshotRecord("ProducerIdsRecord", 0, fields)
