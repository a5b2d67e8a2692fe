"""Client quotas (KIP-546)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from kdump.answers.metadata.snapshot_record import SnapshotRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.answers.metadata.records import Fields

Entity: TypeAlias = tuple[tuple[str, str | None], ...]
"""Type and name of each part, by type; None is the default entity: ``(("client-id", None), ("user", "alice"))``."""


class Quotas:
    """The quotas of each entity by key."""

    def __init__(self) -> None:
        self.entities: dict[Entity, dict[str, float]] = {}

    def handlers(self) -> dict[str, Callable[[Fields], None]]:
        """Return what applies each record."""
        return {"ClientQuotaRecord": self._set}

    def _set(self, fields: Fields) -> None:
        entity = entity_of(fields)
        if not fields["remove"]:
            self.entities.setdefault(entity, {})[fields["key"]] = fields["value"]
        elif entity in self.entities:
            self.entities[entity].pop(fields["key"], None)
            if not self.entities[entity]:
                del self.entities[entity]

    def records(self) -> Iterator[SnapshotRecord]:
        """Yield the records of a snapshot."""
        for entity in sorted(self.entities, key=entity_text):
            parts = [{"entityType": kind, "entityName": name} for kind, name in entity]
            for key, value in sorted(self.entities[entity].items()):
                fields = {"entity": parts, "key": key, "value": value, "remove": False}
                yield SnapshotRecord("ClientQuotaRecord", 0, fields)


def entity_of(fields: Fields) -> Entity:
    """Return the entity of a ClientQuotaRecord."""
    return tuple(sorted({part["entityType"]: part["entityName"] for part in fields["entity"]}.items()))


def entity_text(entity: Entity) -> str:
    """Return "client-id=app,user=<default>"."""
    return ",".join(f"{kind}={'<default>' if name is None else name}" for kind, name in entity)
