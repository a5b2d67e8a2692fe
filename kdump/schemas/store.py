"""Reads the schemas of a registry from its topic ``_schemas``.

A record of the topic has a JSON key with a ``keytype``, and a JSON value or none. The records are replayed in offset
order by their parsed keys, like in ``KafkaStoreReaderThread`` of Confluent's schema-registry. A DELETE_SUBJECT record
(up to its version), or a SCHEMA value with ``"deleted": true``, soft-deletes versions. A tombstone hard-deletes one.
The text of a deleted version is kept as long as it is in the log, because payloads may still have its id.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

from kdump.schemas import TOPIC
from kdump.schemas.framing import guid_of_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

State: TypeAlias = Literal["current", "soft-deleted", "hard-deleted"]
STATES: Final[tuple[State, ...]] = ("current", "soft-deleted", "hard-deleted")
DEFAULT_CONTEXT: Final = "."
_KEY_TYPES: Final = frozenset(
    {"SCHEMA", "CONFIG", "MODE", "DELETE_SUBJECT", "CLEAR_SUBJECT", "NOOP", "CONTEXT", "ASSOC"}
)
_MAX_INT: Final = 2**31 - 1


@dataclass(frozen=True)
class Reference:
    """A reference of a schema to another schema: the name in the text, the subject, and the version (-1: newest)."""

    name: str
    subject: str
    version: int


class SchemaVersion(NamedTuple):
    """A version of a subject, the offsets of its first and last SCHEMA record, and the time (ms) of its last value."""

    subject: str
    version: int
    id: int
    schema_type: str
    """AVRO (also if the record names no type), PROTOBUF, JSON, or any other word in the record."""
    references: tuple[Reference, ...]
    metadata: dict[str, Any] | None
    rule_set: dict[str, Any] | None
    text: str
    state: State
    topic: str
    first_offset: int
    last_offset: int
    timestamp_ms: int
    stored: dict[str, Any]
    """The value of the version's newest record that has one, parsed from JSON."""

    @property
    def guid(self) -> str:
        """The GUID with which record headers refer to this schema."""
        return guid_of_value(self.stored, self.text, _references(self.stored))

    @property
    def context(self) -> str:
        return split_context(self.subject)[0]


@dataclass(frozen=True)
class HistoryLine:
    """A record of the topic. If it is not a valid record of a registry, ``keytype`` is None and ``why`` is the reason.

    ``tombstone``: the value is null or empty. ``schema_deleted``: whether a SCHEMA value is ``deleted``; else None.
    """

    kind: ClassVar[str] = "history"
    offset: int
    timestamp_ms: int
    keytype: str | None
    subject: str | None = None
    version: int | None = None
    id: int | None = None
    tombstone: bool = False
    schema_deleted: bool | None = None
    why: str = ""


@dataclass(frozen=True)
class SubjectLine:
    """A subject. ``state`` is the first of ``current``, ``soft-deleted`` and ``hard-deleted`` that a version has.

    ``versions`` are the versions in this state. ``config`` and ``mode`` are the subject's own settings, or None.
    """

    kind: ClassVar[str] = "subject"
    subject: str
    state: State
    versions: tuple[int, ...]
    config: dict[str, Any] | None
    mode: str | None


def split_context(subject: str) -> tuple[str, str]:
    """Return context (default: ``.``) and name of a subject: (``.site1``, ``orders``) for ``:.site1:orders``."""
    if subject.startswith(":."):
        context, colon, name = subject[1:].partition(":")
        if colon:
            return context, name
    return DEFAULT_CONTEXT, subject


class SchemaStore:
    """The versions of all subjects, in the order of their first records in the log."""

    def __init__(self, topic: str = TOPIC) -> None:
        self.topic = topic
        self.history: list[HistoryLine] = []
        self.replaced: list[SchemaVersion] = []
        """Versions whose id or schema a later record of the same version has replaced, in log order."""
        self._versions: dict[tuple[str, int], SchemaVersion] = {}
        self._configs: dict[str, dict[str, Any]] = {}
        self._modes: dict[str, str] = {}
        self._indexes: dict[str, dict[object, list[SchemaVersion]]] = {}

    def add(self, offset: int, timestamp_ms: int, key: bytes | None, value: bytes | None) -> None:
        """Replay a record, in offset order. Every record is added to ``history``, also an invalid one."""
        self._indexes.clear()
        value = value or None  # Karapace deletes with an empty value
        read, why = _read(key, value)
        if read is None:
            self.history.append(
                HistoryLine(offset=offset, timestamp_ms=timestamp_ms, keytype=None, tombstone=value is None, why=why)
            )
            return
        names, content = read
        record = HistoryLine(
            offset=offset,
            timestamp_ms=timestamp_ms,
            keytype=names["keytype"],
            subject=names.get("subject"),
            version=_int(names.get("version")) if content is None else _version(names, content),
            id=None if content is None else _int(content.get("id")),
            tombstone=content is None,
            schema_deleted=content.get("deleted") is True
            if names["keytype"] == "SCHEMA" and content is not None
            else None,
        )
        self.history.append(record)
        self._apply(record, content)

    def _apply(self, record: HistoryLine, content: dict[str, Any] | None) -> None:
        subject = record.subject or ""
        if record.keytype == "SCHEMA":
            self._apply_schema(record, content)
        elif record.keytype == "DELETE_SUBJECT" and content is not None:
            for key, version in self._versions.items():
                if key[0] == subject and version.state == "current" and key[1] <= (record.version or 0):
                    self._versions[key] = version._replace(state="soft-deleted")
        elif record.keytype == "CONFIG":
            _set(self._configs, subject, content)
        elif record.keytype == "MODE":
            mode = None if content is None else content.get("mode")
            _set(self._modes, subject, mode if isinstance(mode, str) else None)

    def _apply_schema(self, record: HistoryLine, content: dict[str, Any] | None) -> None:
        key = (record.subject or "", record.version or 0)
        before = self._versions.get(key)
        if content is None:
            if before is not None:
                self._versions[key] = before._replace(state="hard-deleted", last_offset=record.offset)
            return
        made = self._versions[key] = SchemaVersion(
            subject=key[0],
            version=key[1],
            id=content["id"],
            schema_type=_text(content.get("schemaType")) or "AVRO",
            references=tuple(map(_reference, _references(content))),
            metadata=_object(content.get("metadata")),
            rule_set=_object(content.get("ruleSet")),
            text=content["schema"],
            state="soft-deleted" if record.schema_deleted else "current",
            topic=self.topic,
            first_offset=record.offset if before is None else before.first_offset,
            last_offset=record.offset,
            timestamp_ms=record.timestamp_ms,
            stored=content,
        )
        if before is not None and (before.id, before.guid) != (made.id, made.guid):
            self.replaced.append(before)

    def versions(self, states: Iterable[State] = STATES) -> Iterator[SchemaVersion]:
        """Yield the versions in one of ``states``, in log order."""
        chosen = frozenset(states)
        return (version for version in self._versions.values() if version.state in chosen)

    def version(self, subject: str, version: int) -> SchemaVersion | None:
        """Return a version in any state, or None. -1: the newest current, else soft-, else hard-deleted version."""
        if version == -1:
            found = [each for each in self._versions.values() if each.subject == subject]
            return max(found, key=lambda each: (-STATES.index(each.state), each.version), default=None)
        return self._versions.get((subject, version))

    def referenced(self, version: SchemaVersion, reference: Reference) -> SchemaVersion | None:
        """Return the version that a schema refers to, in any state, or None.

        A subject without a context is first searched in that of ``version`` (Confluent: qualifySubjectWithParent).
        """
        subject, number = reference.subject, reference.version
        if version.context != DEFAULT_CONTEXT and split_context(subject)[0] == DEFAULT_CONTEXT:
            found = self.version(f":{version.context}:{subject}", number)
            if found is not None:
                return found
        return self.version(subject, number)

    def newest(self, subject: str) -> SchemaVersion | None:
        found = [each for each in self.versions(("current",)) if each.subject == subject]
        return max(found, key=lambda each: each.version, default=None)

    def config(self, subject: str) -> dict[str, Any] | None:
        """Return the config of a subject, a context (``:.site1:``) or the registry (""); None if it is not set."""
        return self._configs.get(subject)

    def mode(self, subject: str) -> str | None:
        """Return the mode of a subject, a context or the registry (""); None if it is not set."""
        return self._modes.get(subject)

    def subjects(self) -> Iterator[SubjectLine]:
        grouped: dict[str, list[SchemaVersion]] = {}
        for version in self._versions.values():
            grouped.setdefault(version.subject, []).append(version)
        for name, versions in grouped.items():
            state = min((each.state for each in versions), key=STATES.index)
            live = tuple(sorted(each.version for each in versions if each.state == state))
            yield SubjectLine(name, state, live, self._configs.get(name), self._modes.get(name))

    def with_id(self, number: int) -> list[SchemaVersion]:
        """Return the versions with this schema id, in any state and context, in log order; else the replaced ones."""
        return self._by("id").get(number, [])

    def with_guid(self, text: str) -> list[SchemaVersion]:
        """Return the versions with this GUID (in lower case), like :meth:`with_id`."""
        return self._by("guid").get(text, [])

    def _by(self, attribute: str) -> dict[object, list[SchemaVersion]]:
        if attribute not in self._indexes:
            replaced = _grouped(self.replaced, attribute)
            self._indexes[attribute] = replaced | _grouped(self._versions.values(), attribute)
        return self._indexes[attribute]

    def __bool__(self) -> bool:
        return bool(self._versions)


def _grouped(versions: Iterable[SchemaVersion], attribute: str) -> dict[object, list[SchemaVersion]]:
    found: dict[object, list[SchemaVersion]] = {}
    for version in versions:
        found.setdefault(getattr(version, attribute), []).append(version)
    return found


def _set(settings: dict[str, Any], subject: str, value: Any) -> None:
    if value is None:
        settings.pop(subject, None)
    else:
        settings[subject] = value


def has_registry_key(key: bytes | None) -> bool:
    """Return whether the key of a record is a schema registry's key."""
    names = _json(key)
    return isinstance(names, dict) and _text(names.get("keytype")) in _KEY_TYPES


def _read(
    key: bytes | None, value: bytes | None
) -> tuple[tuple[dict[str, Any], dict[str, Any] | None], str] | tuple[None, str]:
    """Return ((key, value or None), "") as JSON objects, or (None, reason) for an invalid record."""
    names = _json(key)
    if not isinstance(names, dict):
        return None, "the key is not a JSON object"
    if not has_registry_key(key):
        return None, "the key has no keytype of a schema registry"
    subject, version = names.get("subject"), names.get("version")
    if subject is not None and not isinstance(subject, str):
        return None, "the subject is not text"
    of_version = names["keytype"] == "SCHEMA"
    if of_version and (not isinstance(subject, str) or _int(version) is None):
        return None, "a SCHEMA key without subject or version"
    if value is None:
        return (names, None), ""
    content = _json(value)
    if not isinstance(content, dict):
        return None, "the value is not a JSON object"
    if of_version and (not isinstance(content.get("schema"), str) or _int(content.get("id")) is None):
        return None, "a SCHEMA value without schema or id"
    return (names, content), ""


def _json(text: bytes | None) -> object:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None


def _version(names: dict[str, Any], content: dict[str, Any]) -> int | None:
    """Return the version in a record's key. DELETE_SUBJECT records have it in the value."""
    return _int(names.get("version")) if "version" in names else _int(content.get("version"))


def _int(value: object) -> int | None:
    """Return an integer from -1 to 2^31-1 from JSON, or None for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) and -1 <= value <= _MAX_INT else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _object(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _references(value: dict[str, Any]) -> list[dict[str, Any]]:
    found = value.get("references")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _reference(found: dict[str, Any]) -> Reference:
    return Reference(
        _text(found.get("name")) or "", _text(found.get("subject")) or "", _int(found.get("version")) or -1
    )
