"""Compares decoded payloads with those of the libraries: fastavro, and protobuf with descriptors of protoc.

Logical types are left out of Avro's schemas: fastavro has no JSON for them, and raises for some. The comparison covers
the wire format: both readers must find the same numbers, texts, bytes and branches.
"""

from __future__ import annotations

import io
import json
import math
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from kdump.schemas import avro_schema
from kdump.schemas.avro import AvroReader
from kdump.schemas.export import ExportedSchemas
from kdump.schemas.protobuf import read_indexes
from kdump.schemas.readers import referenced

if TYPE_CHECKING:
    from kdump.schemas.store import SchemaStore, SchemaVersion

PREFIX = 5
"""The number of bytes before the payload: the frame with the schema id."""


class Libraries:
    """The libraries' readers of the schemas of a store."""

    def __init__(self, store: SchemaStore) -> None:
        self._store = store
        self._avro: dict[tuple[str, int], tuple[Any, AvroReader]] = {}
        self._pools: dict[tuple[str, int], descriptor_pool.DescriptorPool | None] = {}
        self._folder = tempfile.TemporaryDirectory()
        for name, data in ExportedSchemas(store.versions(), store).files.items():
            path = Path(self._folder.name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def difference(self, payload: bytes, side: dict[str, Any]) -> str | None:
        """Return how the library's value differs from a decoded side; empty if equal, None if it has no such value."""
        version = self._store.version(side["subject"], side["version"])
        if version is None or "data" not in side or side["framing"] != "prefix":
            return None
        if side["format"] == "avro":
            return self._of_avro(version, payload)
        return self._of_protobuf(version, payload, side) if side["format"] == "protobuf" else None

    def _of_avro(self, version: SchemaVersion, payload: bytes) -> str | None:
        schema, reader = self._readers(version)
        if schema == "bytes":
            return None  # Confluent's serializer writes no length there
        own, _ = reader.read(payload, PREFIX)
        found = plain(fastavro.schemaless_reader(io.BytesIO(payload[PREFIX:]), schema, None))
        return "" if same(own, found) else f"{own!r}, and fastavro {found!r}"

    def _readers(self, version: SchemaVersion) -> tuple[Any, AvroReader]:
        """Return the schema for fastavro and kdump's own reader, both without logical types."""
        key = (version.subject, version.version)
        made = self._avro.get(key)
        if made is None:
            names: dict[str, Any] = {}
            own: avro_schema.Names = {}
            for each in referenced(version, self._store).values():
                fastavro.parse_schema(without_logical_types(each.text), named_schemas=names)
                avro_schema.parse(json.dumps(without_logical_types(each.text)), own)
            text = without_logical_types(version.text)
            parsed = fastavro.parse_schema(text, named_schemas=names)
            made = self._avro[key] = parsed, AvroReader(avro_schema.parse(json.dumps(text), own))
        return made

    def _of_protobuf(self, version: SchemaVersion, payload: bytes, side: dict[str, Any]) -> str | None:
        pool = self._pool(version)
        if pool is None:
            return None
        _, start = read_indexes(payload, PREFIX)
        kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(side["name"]))
        message = kind.FromString(payload[start:])
        try:
            found = json_format.MessageToDict(
                message,
                preserving_proto_field_name=True,
                always_print_fields_with_no_presence=True,
                descriptor_pool=pool,
            )
        except (json_format.Error, TypeError, ValueError):  # it has no JSON for this value, such as a year 0
            return None
        return "" if same(side["data"], found) else f"{side['data']!r}, and protobuf {found!r}"

    def _pool(self, version: SchemaVersion) -> descriptor_pool.DescriptorPool | None:
        """Return the descriptor pool of a schema; None for a schema that protoc refuses."""
        key = (version.subject, version.version)
        if key not in self._pools:
            self._pools[key] = self._compiled(version)
        return self._pools[key]

    def _compiled(self, version: SchemaVersion) -> descriptor_pool.DescriptorPool | None:
        import grpc_tools
        from grpc_tools import protoc

        from kdump.schemas.export import file_name

        folder = Path(self._folder.name, file_name(version.subject))
        out = folder / "out"
        own = Path(grpc_tools.__file__).parent / "_proto"
        command = ["protoc", f"-I{folder}", f"-I{own}", f"--descriptor_set_out={out}", "--include_imports"]
        if protoc.main([*command, str(folder / f"{version.version}.proto")]):
            return None
        pool = descriptor_pool.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
            pool.Add(file)  # type: ignore[no-untyped-call]  # protobuf's stubs lack it
        return pool


def without_logical_types(text: str) -> Any:
    """Return a schema's JSON without logical types."""

    def changed(found: dict[str, Any]) -> dict[str, Any]:
        found.pop("logicalType", None)
        return found

    return json.loads(text, object_hook=changed)


def plain(value: Any) -> Any:
    """Return a value of fastavro in kdump's JSON form."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return value


def same(first: Any, second: Any) -> bool:
    """Return whether two values are equal as JSON; floats of 32 bits may have other digits."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(each, second[name]) for name, each in first.items())
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, float) or isinstance(second, float):
        numbers = isinstance(first, int | float) and isinstance(second, int | float)
        return numbers and (first == second or math.isclose(first, second, rel_tol=1e-6))
    return type(first) is type(second) and bool(first == second)
