"""Decodes keys and values with the schemas of a store. What cannot be decoded has a ``problem`` and a reason."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from kdump.primitives.compression import DEFAULT_LIMIT
from kdump.schemas import avro, avro_schema, json_payload, mirror_maker, protobuf
from kdump.schemas.errors import MissingReferenceError, SchemaError, UndecodableError
from kdump.schemas.framing import SchemaFrame, Side, frame_of
from kdump.schemas.proto_descriptor import parse_file
from kdump.schemas.store import DEFAULT_CONTEXT, STATES, split_context

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.schemas.store import SchemaStore, SchemaVersion

Format: TypeAlias = Literal["avro", "protobuf", "json"]
FORMATS: Final[dict[str, Format]] = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json"}
"""The format of each schemaType."""

Decoded: TypeAlias = dict[str, Any]
"""A decoded side, as JSON lines have it."""


class _Schema:
    """The reader of a schema, made at its first use; or why there is none."""

    def __init__(self, version: SchemaVersion, store: SchemaStore) -> None:
        self.version = version
        self.format = FORMATS.get(version.schema_type)
        self.problem, self.why = "", ""
        self.reader: avro.AvroReader | protobuf.ProtobufReader | None = None
        try:
            if self.format == "avro":
                self.reader = avro.AvroReader(avro_type(version, store))
            elif self.format == "protobuf":
                self.reader = protobuf.ProtobufReader(version.text, proto_files(version, store), parse_file)
            elif self.format is None:
                raise SchemaError(f"the schemaType {version.schema_type!r} is unknown")
        except MissingReferenceError as reason:
            self.problem, self.why = "reference-missing", str(reason)
        except SchemaError as reason:
            self.problem, self.why = "schema-invalid", str(reason)


def avro_type(version: SchemaVersion, store: SchemaStore) -> avro_schema.AvroType:
    """Return the type of an Avro schema. Raises SchemaError, and MissingReferenceError for what it refers to."""
    names: avro_schema.Names = {}
    for each in referenced(version, store):
        avro_schema.parse(each.text, names)
    return avro_schema.parse(version.text, names)


def proto_files(version: SchemaVersion, store: SchemaStore) -> dict[str, str]:
    """Return the texts that a Protobuf schema imports, by the names that they are imported by."""
    files: dict[str, str] = {}
    for each in (version, *referenced(version, store)):
        for reference in each.references:
            found = store.version(reference.subject, reference.version)
            if found is not None:
                files.setdefault(reference.name, found.text)
    return files


def referenced(version: SchemaVersion, store: SchemaStore) -> list[SchemaVersion]:
    """Return what a schema refers to, and what that refers to: each once, after all that it needs itself.

    Raises MissingReferenceError.
    """
    done: dict[tuple[str, int], SchemaVersion] = {}
    path: set[tuple[str, int]] = {(version.subject, version.version)}

    def visit(each: SchemaVersion) -> None:
        for reference in each.references:
            found = store.version(reference.subject, reference.version)
            if found is None:
                raise MissingReferenceError(
                    f"{reference.name!r} refers to version {reference.version} of {reference.subject!r}, "
                    "which is not in the log"
                )
            key = (found.subject, found.version)
            if key in done or key in path:
                continue
            path.add(key)
            visit(found)
            done[key] = found

    try:
        visit(version)
    except RecursionError:
        raise SchemaError("schemas refer to each other too deep") from None
    return list(done.values())


class PayloadDecoder:
    """Decodes payloads. ``formats`` are those to decode; what is framed for another one stays as it is."""

    def __init__(
        self, store: SchemaStore, formats: Iterable[Format] = ("avro", "protobuf", "json"), limit: int = DEFAULT_LIMIT
    ) -> None:
        self._store = store
        self._formats = frozenset(formats)
        self._every = len(self._formats) == len(FORMATS)
        self._limit = limit
        self._schemas: dict[str, _Schema] = {}
        self._choices: dict[tuple[object, ...], SchemaVersion] = {}
        self.missing = 0
        """How many payloads carried an id that no known schema has."""

    def decode(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[tuple[bytes, bytes | None]] = (),
    ) -> dict[str, Decoded | None] | None:
        """Return both sides of a record, None where neither carries a schema."""
        sides = {"key": self.side(topic, "key", key, headers), "value": self.side(topic, "value", value, headers)}
        return sides if sides["key"] or sides["value"] else None

    def side(
        self, topic: str, side: Side, payload: bytes | None, headers: Iterable[tuple[bytes, bytes | None]] = ()
    ) -> Decoded | None:
        """Return a key or value, None where it is null or carries no schema."""
        if payload is None:
            return None
        found = mirror_maker.read(topic, side, payload) if self._every else None
        if found is not None:
            return {"format": None, "framing": None, "data": found}
        frame = frame_of(side, payload, headers)
        if frame is None:
            return None
        if frame.framing == "file":
            return self._file(payload)
        if frame.framing == "single-object":
            version = self._by_fingerprint.get(frame.fingerprint)
            if version is None or "avro" not in self._formats:
                return None
            candidates = self._store.with_id(version.id)
        elif frame.guid is not None:
            candidates = self._store.with_guid(frame.guid)
        else:
            candidates = self._store.with_id(frame.schema_id or 0)
            if not candidates and frame.schema_id == 0:
                return None
        if not candidates:
            return self._missing(frame) if self._every else None
        return self._framed(topic, side, payload, frame, candidates)

    def _missing(self, frame: SchemaFrame) -> Decoded:
        made = _begun(frame)
        self.missing += 1
        name = f"the GUID {frame.guid}" if frame.guid is not None else f"the id {frame.schema_id}"
        where = (
            f"no schema of {self._store.topic} has" if self._store else f"no {self._store.topic} was found to look up"
        )
        return made | {"problem": "schema-missing", "why": f"{where} {name}"}

    def _framed(
        self, topic: str, side: Side, payload: bytes, frame: SchemaFrame, candidates: list[SchemaVersion]
    ) -> Decoded | None:
        indexes: list[int] = []
        position = frame.position
        broken: UndecodableError | None = None
        if any(each.schema_type == "PROTOBUF" for each in candidates):
            try:
                if frame.framing == "header":
                    indexes = protobuf.read_indexes(frame.indexes, 0)[0] if frame.indexes else [0]
                else:
                    indexes, position = protobuf.read_indexes(payload, frame.position)
            except UndecodableError as error:
                broken = error
        version = self._choose(topic, side, candidates, indexes)
        schema = self._schema(version)
        if schema.format != "protobuf":
            position, broken = frame.position, None
        if schema.format is not None and schema.format not in self._formats:
            return None
        made: Decoded = {"format": schema.format, **_begun(frame)}
        made |= {
            "schemaId": version.id,
            "subject": version.subject,
            "version": version.version,
            "schemaState": version.state,
        }
        if schema.problem:
            return made | {"name": None, "problem": schema.problem, "why": schema.why}
        try:
            if broken is not None:
                raise broken
            return made | self._data(schema, payload, position, indexes)
        except UndecodableError as error:
            return made | {"name": None, "problem": "payload-invalid", "why": str(error)}

    def _data(self, schema: _Schema, payload: bytes, position: int, indexes: list[int]) -> Decoded:
        reader = schema.reader
        if isinstance(reader, avro.AvroReader):
            value, end = reader.read(payload, position)
            made: Decoded = {"name": reader.name, "data": value}
            left = len(payload) - end
            if left:
                made |= {"problem": "trailing-bytes", "why": f"{left} bytes are left after the value"}
            return made
        if isinstance(reader, protobuf.ProtobufReader):
            found = reader.read(payload, position, indexes)
            made = {"name": found.name, "data": found.value}
            if found.unknown_fields:
                made["unknownFields"] = sorted(set(found.unknown_fields))
            return made
        return {"name": None, "data": json_payload.read(payload, position)}

    def _file(self, payload: bytes) -> Decoded | None:
        if "avro" not in self._formats:
            return None
        made: Decoded = {"format": "avro", "framing": "file", "schemaId": None}
        try:
            found = avro.read_file(payload, self._limit)
        except SchemaError as reason:
            return made | {"name": None, "problem": "schema-invalid", "why": str(reason)}
        except UndecodableError as reason:
            return made | {"name": None, "problem": "payload-invalid", "why": str(reason)}
        return made | {"name": found.name, "data": found.records}

    def _schema(self, version: SchemaVersion) -> _Schema:
        made = self._schemas.get(version.guid + version.schema_type)
        if made is None:
            made = self._schemas[version.guid + version.schema_type] = _Schema(version, self._store)
        return made

    def _choose(self, topic: str, side: Side, candidates: list[SchemaVersion], indexes: list[int]) -> SchemaVersion:
        """Return the version that a payload was most likely written with, of those with its id."""
        if len(candidates) == 1:
            return candidates[0]
        key = (topic, side, id(candidates), *indexes)
        chosen = self._choices.get(key)
        if chosen is None:
            chosen = self._choices[key] = self._chosen(topic, side, candidates, indexes)
        return chosen

    def _chosen(self, topic: str, side: Side, candidates: list[SchemaVersion], indexes: list[int]) -> SchemaVersion:
        first: dict[str, int] = {}
        for each in candidates:
            first[each.subject] = min(first.get(each.subject, each.first_offset), each.first_offset)

        def rank(each: SchemaVersion) -> tuple[int, bool, int]:
            context, bare = split_context(each.subject)
            match = 0
            if bare != f"{topic}-{side}":
                name = self._name(each, indexes)
                match = 3 if name is None else 1 if bare == f"{topic}-{name}" else 2 if bare == name else 3
            return match, context != DEFAULT_CONTEXT, first[each.subject]

        subject = min(candidates, key=rank).subject
        of_subject = [each for each in candidates if each.subject == subject]
        return min(of_subject, key=lambda each: (STATES.index(each.state), -each.version))

    def _name(self, version: SchemaVersion, indexes: list[int]) -> str | None:
        """Return the full name of a schema's record or message."""
        reader = self._schema(version).reader
        if isinstance(reader, avro.AvroReader):
            return reader.name
        return reader.name(indexes) if isinstance(reader, protobuf.ProtobufReader) else None

    @cached_property
    def _by_fingerprint(self) -> dict[bytes, SchemaVersion]:
        found: dict[bytes, SchemaVersion] = {}
        for version in self._store.versions():
            if version.schema_type == "AVRO":
                try:
                    found.setdefault(avro_schema.fingerprint(avro_type(version, self._store)), version)
                except SchemaError:
                    continue  # a payload of it could not be decoded either
        return found


def _begun(frame: SchemaFrame) -> Decoded:
    made: Decoded = {"framing": frame.framing, "schemaId": frame.schema_id}
    if frame.guid is not None:
        made["guid"] = frame.guid
    return made
