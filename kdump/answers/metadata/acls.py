"""Access control entries (KIP-801)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.metadata.records import Fields, ReplayError
from kdump.answers.metadata.snapshot_record import SnapshotRecord
from kdump.answers.metadata.topics import id_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "resourceType": (
        *("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER"),
        *("TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"),
    ),
    "patternType": ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED"),
    "operation": (
        *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE"),
        *("CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"),
        *("CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
    ),
    "permissionType": ("UNKNOWN", "ANY", "DENY", "ALLOW"),
}
"""Field -> the names of its codes (``org.apache.kafka.common.acl``)."""


class Acls:
    """The entries by id, in the fields of AccessControlEntryRecord."""

    def __init__(self) -> None:
        self.by_id: dict[bytes, Fields] = {}

    def handlers(self) -> dict[str, Callable[[Fields], None]]:
        """Return what applies each record."""
        return {"AccessControlEntryRecord": self._add, "RemoveAccessControlEntryRecord": self._remove}

    def _add(self, fields: Fields) -> None:
        self.by_id[fields["id"]] = fields

    def _remove(self, fields: Fields) -> None:
        if self.by_id.pop(fields["id"], None) is None:
            raise ReplayError(f"there is no ACL with id {id_text(fields['id'])}")

    def records(self) -> Iterator[SnapshotRecord]:
        """Yield the records of a snapshot."""
        for _, fields in sorted(self.by_id.items()):
            yield SnapshotRecord("AccessControlEntryRecord", 0, fields)


def in_words(fields: Fields) -> dict[str, str]:
    """Return an entry with Kafka's names for its codes."""
    return {
        name: _word(name, value) if name in _NAMES else str(value) for name, value in fields.items() if name != "id"
    }


def _word(field: str, code: int) -> str:
    names = _NAMES[field]
    return names[code] if 0 <= code < len(names) else f"UNKNOWN({code})"
