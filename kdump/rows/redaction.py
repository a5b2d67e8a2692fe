"""Keys, values and header values replaced by a keyed hash: equal payloads get equal hashes.

HMAC-SHA256 (RFC 2104); without the secret even short payloads cannot be guessed. Null stays null.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kdump.errors import DamageError
from kdump.formats.record import Header
from kdump.records import control
from kdump.rows.selection import may_hold_secrets
from kdump.segments.lazy_records import ChangedRecords

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.formats.record import Record
    from kdump.internal_topics.secrets import Mask
    from kdump.records.field_map import FieldBytes
    from kdump.rows.selection import SegmentFacts, SelectedBatch
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
        """Return the replacement of a payload."""
        return PREFIX + self._digest(self.key, data, "sha256").hex()

    def _of(self, data: bytes | None) -> bytes | None:
        return None if data is None else self.hash(data).encode()


def bare(damage: Damage) -> Damage:
    """Return damage without the values of its fields: a field that is wrong may be a region of a payload."""
    return damage._replace(reason=redacted_reason(damage.kind), expected=None, found=None)


def redacted_reason(kind: str) -> str:
    """Return the reason of a damage of this kind, without values."""
    return f"its {kind} is wrong"


_FIRST_BYTES: Final = (0, 1)
"""The first byte of a record of the metadata log: the version of its frame."""


class Secrets:
    """Hides the secrets of records, segment by segment."""

    def __init__(self) -> None:
        self._file: str | None = None
        self._known: Mask | None = None

    def mask(self, item: SelectedBatch) -> Mask | None:
        """Return the function that hides secrets in values of a segment; None if there are none."""
        if item.file.name != self._file:
            self._file, self._known = item.file.name, _mask_of(item)
        return self._known

    def without(self, item: SelectedBatch) -> Iterator[SelectedBatch]:
        """Yield the records of a batch, or of a run of batches, as they may be shown."""
        mask = self.mask(item)
        if mask is None or item.batch.is_control:
            yield item
        else:
            for one in item.each(batches=False):
                yield _masked(one, mask)

    def may_be_in(self, file: SegmentFacts) -> bool:
        """Return whether the fields of damaged bytes in a segment may be secrets."""
        if file.topic is None:
            return file.name == self._file and self._known is not None
        return _of_topic(file.topic) is not None

    def parts(self, item: SelectedBatch, parts: Iterator[FieldBytes]) -> Iterator[FieldBytes]:
        """Return the fields of a batch as they may be shown."""
        from kdump.records import field_map

        mask = self.mask(item)
        return parts if mask is None or item.batch.is_control else field_map.masked(parts, mask)


def _masked(item: SelectedBatch, mask: Mask) -> SelectedBatch:
    def masked(record: Record) -> Record:
        return record._replace(value=mask(record.key, record.value))

    return item._replace(records=ChangedRecords(item.records, masked))


def _of_topic(topic: str) -> Mask | None:
    if not may_hold_secrets(topic):
        return None
    from kdump.internal_topics.secrets import mask_of  # few topics hold secrets

    return mask_of(topic)


def _mask_of(item: SelectedBatch) -> Mask | None:
    if item.file.topic is not None:
        return _of_topic(item.file.topic)
    with suppress(DamageError):
        for record in item.batch.records():
            return _if_metadata(record, is_control=item.batch.is_control)
    return None


def _if_metadata(record: Record, *, is_control: bool) -> Mask | None:
    if is_control:
        if record.key is None or control.read_key(record.key).type in control.MARKERS:
            return None
    elif record.key is not None or not record.value or record.value[0] not in _FIRST_BYTES:
        return None
    from kdump.internal_topics import secrets

    return secrets.metadata_value if is_control or secrets.is_metadata(record.key, record.value) else None
