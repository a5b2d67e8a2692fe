"""The lines of ``kdump schemas``: the versions, the subjects and the history of a registry's topic."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from kdump.answers.question import LineTable
from kdump.schemas.store import STATES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.answers.collector import AnswerLine
    from kdump.schemas.store import HistoryRecord, SchemaStore, SchemaVersion


@dataclass(frozen=True)
class SchemaReference:
    """A schema that another schema refers to by ``name``."""

    name: str
    subject: str
    version: int


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
    """AVRO, PROTOBUF or JSON."""
    references: tuple[SchemaReference, ...]
    """The schemas to which this schema refers."""
    metadata: dict[str, Any] | None
    rule_set: dict[str, Any] | None
    schema: str
    """The text of the schema."""
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


@dataclass(frozen=True)
class SubjectLine:
    """A subject. ``state`` is the state of its least deleted version, ``versions`` are the versions in this state.

    ``config`` and ``mode`` are those of the subject itself, or None.
    """

    kind: ClassVar[str] = "subject"
    subject: str
    state: str
    versions: tuple[int, ...]
    config: dict[str, Any] | None
    mode: str | None


@dataclass(frozen=True)
class HistoryLine:
    """A record of the topic. ``keytype`` is null if the key is not one of a registry; ``why`` is then the reason."""

    kind: ClassVar[str] = "history"
    offset: int
    timestamp_ms: int
    keytype: str | None
    subject: str | None
    version: int | None
    id: int | None
    tombstone: bool
    schema_deleted: bool | None
    why: str


class SchemaQuery(NamedTuple):
    """Selects current versions, and with ``deleted`` the deleted versions too. A field of None selects all."""

    deleted: bool = False
    id: int | None = None
    guid: str | None = None
    subject: str | None = None
    """A name or a glob."""
    schema_type: str | None = None

    def versions(self, store: SchemaStore) -> Iterator[SchemaVersion]:
        """Yield the selected versions in log order."""
        return (version for version in store.versions(STATES if self.deleted else STATES[:1]) if self._takes(version))

    def _takes(self, version: SchemaVersion) -> bool:
        return (
            self.id in (None, version.id)
            and self.guid in (None, version.guid)
            and self.schema_type in (None, version.schema_type.lower())
            and (self.subject is None or fnmatchcase(version.subject, self.subject))
        )


def schema_line(version: SchemaVersion) -> SchemaLine:
    references = tuple(SchemaReference(*one) for one in version.references)
    return SchemaLine(
        subject=version.subject,
        version=version.version,
        id=version.id,
        guid=version.guid,
        schema_type=version.schema_type,
        references=references,
        metadata=version.metadata,
        rule_set=version.rule_set,
        schema=version.text,
        state=version.state,
        context=version.context,
        topic=version.topic,
        first_offset=version.first_offset,
        last_offset=version.last_offset,
        timestamp_ms=version.timestamp_ms,
    )


TABLES: Final = (
    LineTable("schemas", SchemaLine),
    LineTable("subjects", SubjectLine, "--subjects"),
    LineTable("schema_history", HistoryLine, "--history"),
)
"""The tables of SQL. They have the same lines as the command without ``--all``."""


def table_lines(table: LineTable, store: SchemaStore) -> Iterator[AnswerLine]:
    """Yield the lines of a table of :data:`TABLES`."""
    if table.line is HistoryLine:
        yield from map(history_line, store.history)
    elif table.line is SubjectLine:
        yield from subject_lines(store, SchemaQuery())
    else:
        yield from map(schema_line, SchemaQuery().versions(store))


def subject_lines(store: SchemaStore, query: SchemaQuery) -> Iterator[SubjectLine]:
    """Yield the subjects with a selected version, in log order."""
    names = {version.subject for version in query.versions(store)}
    for one in store.subjects():
        if one.subject in names:
            yield SubjectLine(one.subject, one.state, one.versions, one.config, one.mode)


def history_line(record: HistoryRecord) -> HistoryLine:
    return HistoryLine(
        record.offset,
        record.timestamp_ms,
        record.key_type,
        record.subject,
        record.version,
        record.id,
        record.tombstone,
        record.schema_deleted,
        record.why,
    )
