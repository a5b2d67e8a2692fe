"""The rules by which values of a writer's Avro type become values of a reader's type (Avro 1.12, Schema Resolution)."""

from __future__ import annotations

from typing import Final

from kdump.schemas.avro_schema import AvroRecord, AvroType, Enum, Fixed, Logical, Primitive, Union

_PROMOTIONS: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


def is_match(writer: AvroType, reader: AvroType, *, promoted: bool) -> bool:
    """Return whether types and logical types match, not inner types or namespaces. ``promoted``: int matches long."""
    if isinstance(writer, Primitive) and isinstance(reader, Primitive):
        if reader.kind != writer.kind and not (promoted and reader.kind in _PROMOTIONS.get(writer.kind, ())):
            return False
        return _same_unit(writer.logical, reader.logical)
    if type(writer) is not type(reader):
        return False
    if isinstance(writer, (AvroRecord, Enum, Fixed)) and isinstance(reader, (AvroRecord, Enum, Fixed)):
        names = {name.rpartition(".")[2] for name in (reader.name, *reader.aliases)}
        if writer.name.rpartition(".")[2] not in names:
            return False
    if isinstance(writer, Fixed) and isinstance(reader, Fixed):
        return writer.size == reader.size and _same_unit(writer.logical, reader.logical)
    return True


def _same_unit(writer: Logical | None, reader: Logical | None) -> bool:
    if writer is None or reader is None:
        return True
    return (writer.name, writer.scale) == (reader.name, reader.scale)


def branch_for(writer: AvroType, reader: Union) -> AvroType | None:
    """Return the branch of ``reader`` for ``writer``, or None: equal full name before equal type before wider type."""
    if isinstance(writer, (AvroRecord, Enum, Fixed)):
        for branch in reader.branches:
            if type(branch) is type(writer) and getattr(branch, "name", None) == writer.name:
                return branch
    for promoted in (False, True):
        for branch in reader.branches:
            if is_match(writer, branch, promoted=promoted):
                return branch
    return None


def type_text(schema: AvroType) -> str:
    if isinstance(schema, Union):
        return f"union of {', '.join(map(type_text, schema.branches))}" if schema.branches else "union of nothing"
    if isinstance(schema, Primitive):
        logical = schema.logical
        if logical is None:
            return schema.kind
        return f"decimal with scale {logical.scale}" if logical.name == "decimal" else logical.name
    return f"{type(schema).__name__.removeprefix('Avro').lower()} {getattr(schema, 'name', '')}".rstrip()
