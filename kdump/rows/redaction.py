"""Keys, values and header values replaced by a keyed hash: equal payloads get equal hashes.

HMAC-SHA256 (RFC 2104); without the secret even short payloads cannot be guessed. Null stays null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.formats.record import Header
from kdump.segments.lazy_records import ChangedRecords

if TYPE_CHECKING:
    from kdump.formats.record import Record
    from kdump.rows.selection import SelectedBatch
    from kdump.segments.regions import Damage

PREFIX: Final = "hmac-sha256:"
HASHED: Final = len(PREFIX) + 64
"""Bytes of what stands for a payload."""


class Redactor:
    """Redacts records with one secret. Control records hold no payload of users, and stay."""

    def __init__(self, key: bytes) -> None:
        from hmac import digest  # which takes longer to load than much else

        self.key = key
        self._digest = digest

    def __call__(self, item: SelectedBatch) -> SelectedBatch:
        if item.batch.is_control:
            return item
        return item._replace(records=ChangedRecords(item.records, self.record))

    def record(self, record: Record) -> Record:
        """Return a record with hashes in place of its payloads; the sizes stay those that are stored."""
        headers = tuple(Header(header.key, self._of(header.value)) for header in record.headers)
        return record._replace(key=self._of(record.key), value=self._of(record.value), headers=headers)

    def hash(self, data: bytes) -> str:
        """Return what stands for a payload."""
        return PREFIX + self._digest(self.key, data, "sha256").hex()

    def _of(self, data: bytes | None) -> bytes | None:
        return None if data is None else self.hash(data).encode()


def bare(damage: Damage) -> Damage:
    """Return damage without the values of its fields: a field that is wrong may be a region of a payload."""
    return damage._replace(reason=told(damage.kind), expected=None, found=None)


def told(kind: str) -> str:
    """Return the reason of such damage without values."""
    return f"its {kind} is wrong"
