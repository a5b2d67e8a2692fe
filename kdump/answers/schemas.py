"""The lines of ``kdump schemas``: versions, subjects, history. The caller reads the registry's topic into a store."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from kdump.answers.question import LineTable
from kdump.primitives.terminal import is_selected
from kdump.schemas.store import STATES, HistoryLine, Reference, SubjectLine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.collector import AnswerLine
    from kdump.schemas.store import SchemaStore, SchemaVersion


@dataclass(frozen=True)
class SchemaLine:
    """A version of a subject."""

    kind: ClassVar[str] = "schema"
    subject: str
    version: int
    id: int
    """The schema id in payloads."""
    guid: str
    """The schema identifier in record headers."""
    schema_type: str
    """AVRO, PROTOBUF, JSON, or any other word in the record."""
    references: tuple[Reference, ...]
    """The schemas to which this schema refers."""
    metadata: dict[str, Any] | None
    rule_set: dict[str, Any] | None
    schema: str
    state: str
    """``current``, ``soft-deleted`` or ``hard-deleted``."""
    context: str
    topic: str
    """The topic of the registry."""
    first_offset: int
    """The offset of the version's first record in the topic."""
    last_offset: int
    """The offset of the version's last record in the topic."""
    timestamp_ms: int
    """The timestamp of the version's last record with a value."""


class SchemaQuery(NamedTuple):
    """Selects current versions, with ``deleted`` also deleted ones. A field of None selects all."""

    deleted: bool = False
    id: int | None = None
    guid: str | None = None
    subject: str | None = None
    """A name or a glob."""
    schema_type: str | None = None
    """In lower case."""

    def versions(self, store: SchemaStore) -> Iterator[SchemaVersion]:
        """Yield the selected versions in log order."""
        return (version for version in store.versions(STATES if self.deleted else STATES[:1]) if self.takes(version))

    def history(self, store: SchemaStore) -> Iterator[HistoryLine]:
        """Yield the records of the selected schemas in log order, also of deleted ones. A null value has the last id.

        A DELETE_SUBJECT belongs to all versions that it deletes. Without ``id``, ``guid`` and ``schema_type`` the
        records of a subject's config and mode are yielded too, and without ``subject`` all records.
        """
        ids = self._ids(store)
        known: dict[str | None, dict[int, int]] = {}
        for line in store.history:
            if self.subject is not None and not (line.subject is not None and is_selected(line.subject, self.subject)):
                continue
            if ids is not None:
                of_subject = known.setdefault(line.subject, {})
                if line.version is not None and line.id is not None:
                    of_subject[line.version] = line.id
                deletes = line.keytype == "DELETE_SUBJECT"
                mine = (
                    each
                    for version, each in of_subject.items()
                    if version == line.version or (deletes and line.version is not None and version < line.version)
                )
                if ids.isdisjoint(mine):
                    continue
            yield line

    def _ids(self, store: SchemaStore) -> frozenset[int] | None:
        if self.guid is None and self.schema_type is None:
            return None if self.id is None else frozenset({self.id})
        selected = self._replace(subject=None)
        versions = chain(store.versions(), store.replaced)
        return frozenset(version.id for version in versions if selected.takes(version))

    def takes(self, version: SchemaVersion) -> bool:
        return (
            self.id in (None, version.id)
            and self.guid in (None, version.guid)
            and self.schema_type in (None, version.schema_type.lower())
            and (self.subject is None or is_selected(version.subject, self.subject))
        )


def schema_line(version: SchemaVersion) -> SchemaLine:
    return SchemaLine(schema=version.text, **{name: getattr(version, name) for name in _SAME})


_SAME: Final = [field.name for field in fields(SchemaLine) if field.name != "schema"]
TABLES: Final = (
    LineTable("schemas", SchemaLine),
    LineTable("subjects", SubjectLine, "--subjects"),
    LineTable("schema_history", HistoryLine, "--history"),
)
"""The tables of SQL. They have the same lines as the command without ``--all``."""


def table_lines(table: LineTable, store: SchemaStore) -> Iterator[AnswerLine]:
    if table.line is HistoryLine:
        yield from store.history
    elif table.line is SubjectLine:
        yield from subject_lines(store, SchemaQuery())
    else:
        yield from map(schema_line, SchemaQuery().versions(store))


def subject_lines(store: SchemaStore, query: SchemaQuery) -> Iterator[SubjectLine]:
    """Yield the subjects with a selected version, in log order."""
    names = {version.subject for version in query.versions(store)}
    return (one for one in store.subjects() if one.subject in names)
