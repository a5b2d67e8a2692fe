"""Chooses the reader of a schema: Avro, Protobuf, or JSON (in this module)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias

from kdump.schemas import MissingReferenceError, SchemaError, UndecodableError, avro_schema
from kdump.schemas.avro import AvroReader, number
from kdump.schemas.proto_descriptor import parse_file
from kdump.schemas.protobuf import ProtobufReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.schemas.store import SchemaStore, SchemaVersion


Format: TypeAlias = Literal["avro", "protobuf", "json"]
FORMATS: Final[dict[str, Format]] = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json"}


class PayloadReader:
    """Reads payloads, unless ``problem`` is ``reference-missing`` or ``schema-invalid`` (``why``): callers check it."""

    def __init__(self, version: SchemaVersion, store: SchemaStore) -> None:
        self.version = version
        self.format = FORMATS.get(version.schema_type)
        self.problem, self.why = "", ""
        self.reader: AvroReader | ProtobufReader | None = None
        """None for a JSON schema, and for a schema with a problem."""
        try:
            if self.format == "avro":
                self.reader = AvroReader(avro_type(version, store))
            elif self.format == "protobuf":
                files = {name: each.text for name, each in referenced(version, store).items()}
                self.reader = ProtobufReader(version.text, files, parse_file)
            elif self.format is None:
                raise SchemaError(f"the schemaType {version.schema_type!r} is unknown")
        except MissingReferenceError as reason:
            self.problem, self.why = "reference-missing", str(reason)
        except SchemaError as reason:
            self.problem, self.why = "schema-invalid", str(reason)

    def data(self, payload: bytes, position: int, indexes: Sequence[int]) -> dict[str, Any]:
        """Return ``name``, ``data``, and perhaps ``unknownFields`` or (Avro) ``problem``. Raises UndecodableError."""
        reader = self.reader
        if isinstance(reader, AvroReader):
            value, end = reader.read(payload, position)
            made: dict[str, Any] = {"name": reader.name, "data": value}
            left = len(payload) - end
            if left:
                made |= {"problem": "trailing-bytes", "why": f"{left} bytes are left after the value"}
            return made
        if isinstance(reader, ProtobufReader):
            found = reader.read(payload, position, indexes)
            made = {"name": found.name, "data": found.value}
            if found.unknown_fields:
                made["unknownFields"] = sorted(set(found.unknown_fields))
            return made
        return {"name": None, "data": read_json(payload, position)}

    def name(self, indexes: Sequence[int]) -> str | None:
        """Return the name of the type, or of the first possible message; None if there is none, or for a bad schema."""
        if isinstance(self.reader, ProtobufReader):
            return self.reader.name(indexes)
        return self.reader.name if isinstance(self.reader, AvroReader) else None


def avro_type(version: SchemaVersion, store: SchemaStore) -> avro_schema.AvroType:
    """Return the type of an Avro schema. Raises SchemaError, and MissingReferenceError for its references."""
    names: avro_schema.Names = {}
    for each in referenced(version, store).values():
        avro_schema.parse(each.text, names)
    return avro_schema.parse(version.text, names)


def referenced(version: SchemaVersion, store: SchemaStore) -> dict[str, SchemaVersion]:
    """Return all direct and indirect references of a schema, the innermost first: name in the reference -> schema.

    If references have the same name, the first is used, as in ``AbstractSchemaProvider.resolveReferences`` of
    Confluent's schema-registry. Raises MissingReferenceError, and SchemaError for too many levels of references.
    """
    found: dict[str, SchemaVersion] = {}
    seen: set[str] = set()

    def visit(each: SchemaVersion) -> None:
        for reference in each.references:
            if reference.name in seen:
                continue
            seen.add(reference.name)
            needed = store.referenced(each, reference)
            if needed is None:
                raise MissingReferenceError(
                    f"{reference.name!r} refers to version {reference.version} of {reference.subject!r}, "
                    "which is not in the log"
                )
            visit(needed)
            found[reference.name] = needed

    try:
        visit(version)
    except RecursionError:
        raise SchemaError("schemas refer to each other too deep") from None
    return found


def fingerprints(store: SchemaStore) -> dict[bytes, list[SchemaVersion]]:
    """Return the valid Avro schemas of a store by CRC-64-AVRO, which leaves out logical types, defaults and docs."""
    found: dict[bytes, list[SchemaVersion]] = {}
    for version in store.versions():
        if version.schema_type == "AVRO":
            try:
                found.setdefault(avro_schema.fingerprint(avro_type(version, store)), []).append(version)
            except SchemaError:
                continue  # payloads of this schema cannot be decoded anyway
    return found


MAX_DEPTH: Final = 200
"""Maximum number of levels of a JSON value, because the JSON encoder is recursive."""


def read_json(payload: bytes, position: int) -> Any:
    """Return the JSON value from a position on, without validation against a schema. Raises UndecodableError.

    Its encoding is UTF-8, 16 or 32, by the byte order mark or the first bytes (Jackson's ByteSourceJsonBootstrapper).
    """
    data = payload[position:]
    encoding = json.detect_encoding(data)
    try:
        text = data.decode(encoding)
        if text.count("[") + text.count("{") > MAX_DEPTH:
            _check_depth(text)
        return json.loads(text, parse_constant=_refuse, parse_float=lambda digits: number(float(digits)))
    except UndecodableError:
        raise
    except UnicodeDecodeError as reason:
        raise UndecodableError(f"the JSON is not {encoding.removesuffix('-sig').upper()} ({reason.reason})") from None
    except json.JSONDecodeError as reason:
        raise UndecodableError(f"it is not JSON: {reason.msg} at character {reason.pos}") from None
    except ValueError as reason:
        raise UndecodableError(f"it is not JSON: {reason}") from None
    except RecursionError:
        raise UndecodableError("the JSON is nested too deep") from None


def _refuse(constant: str) -> NoReturn:
    raise UndecodableError(f"{constant} is not JSON")


def _check_depth(text: str) -> None:
    level, in_text, escaped = 0, False, False
    for character in text:
        if in_text:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_text = False
        elif character == '"':
            in_text = True
        elif character in "[{":
            level += 1
            if level > MAX_DEPTH:
                raise UndecodableError("the JSON is nested too deep")
        elif character in "]}":
            level -= 1
