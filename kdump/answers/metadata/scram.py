"""SCRAM credentials (KIP-900)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.metadata.records import Fields, ReplayError
from kdump.answers.metadata.snapshot_record import SnapshotRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


class Scram:
    """The credentials by mechanism and user, in the fields of UserScramCredentialRecord: salts and keys are secret."""

    def __init__(self) -> None:
        self.credentials: dict[tuple[int, str], Fields] = {}

    def handlers(self) -> dict[str, Callable[[Fields], None]]:
        """Return what applies each record."""
        return {"UserScramCredentialRecord": self._set, "RemoveUserScramCredentialRecord": self._remove}

    def _set(self, fields: Fields) -> None:
        self.credentials[fields["mechanism"], fields["name"]] = fields

    def _remove(self, fields: Fields) -> None:
        if self.credentials.pop((fields["mechanism"], fields["name"]), None) is None:
            raise ReplayError(f"user {fields['name']} has no credential of {mechanism(fields)}")

    def records(self) -> Iterator[SnapshotRecord]:
        """Yield the records of a snapshot."""
        for _, fields in sorted(self.credentials.items()):
            yield SnapshotRecord("UserScramCredentialRecord", 0, fields)


def mechanism(fields: Fields) -> str:
    """Return the mechanism of a credential by Kafka's name."""
    return MECHANISMS.get(fields["mechanism"], f"mechanism {fields['mechanism']}")
