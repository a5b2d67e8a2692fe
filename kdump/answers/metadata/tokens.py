"""Delegation tokens (KIP-48, in KRaft since 3.6); their HMACs are in no file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.answers.metadata.snapshot_record import SnapshotRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.answers.metadata.records import Fields


class Tokens:
    """The tokens by id, in the fields of DelegationTokenRecord."""

    def __init__(self) -> None:
        self.by_id: dict[str, Fields] = {}

    def handlers(self) -> dict[str, Callable[[Fields], None]]:
        """Return what applies each record. Removing a token that is not there changes nothing, as in Kafka."""
        return {"DelegationTokenRecord": self._set, "RemoveDelegationTokenRecord": self._remove}

    def _set(self, fields: Fields) -> None:
        self.by_id[fields["tokenId"]] = fields

    def _remove(self, fields: Fields) -> None:
        self.by_id.pop(fields["tokenId"], None)

    def records(self) -> Iterator[SnapshotRecord]:
        """Yield the records of a snapshot."""
        for _, fields in sorted(self.by_id.items()):
            yield SnapshotRecord("DelegationTokenRecord", 0, fields)
