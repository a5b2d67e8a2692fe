"""Reads and writes messages by their schema, in plain Python.

Fields are read in the order of Kafka's generated classes. So the error for a truncated or invalid message is at the
same field, and has the text of Kafka's own error (``java_message``), which DumpLogSegments prints.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from kdump.errors import DamageError
from kdump.primitives.encodings import java_utf8
from kdump.primitives.wire import read_unsigned_varint, write_unsigned_varint

if TYPE_CHECKING:
    from kdump.internal_topics.schema import Slot, Struct, Value, Values

UNKNOWN_TAGS: Final = "_unknownTaggedFields"
"""The key of ``Values`` for unknown tagged fields: a list of their tags and bytes."""

FIXED: Final = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "uint16": struct.Struct(">H"),
    "uint32": struct.Struct(">I"),
    "float64": struct.Struct(">d"),
    "bool": struct.Struct(">?"),
    "uuid": struct.Struct(">16s"),
}
LONGEST_STRING: Final = 0x7FFF
MOST_TAGGED: Final = 10_000
MOST_ELEMENTS: Final = 1_000_000
"""Kafka's classes refuse more tagged fields and more array elements in 4.2.2 and from 4.4 on (MessageUtil)."""


class PayloadError(DamageError):
    """A message that cannot be read. ``field``: the path to the field. ``position``: from the start of the payload.

    ``java_message`` is the text of Kafka's error; None if it has none, as for a buffer underflow.
    """

    def __init__(self, java_message: str | None, reason: str, position: int) -> None:
        super().__init__("payload", reason, position=position)
        self.java_message = java_message
        self.what = reason
        self.field = ""

    def inside(self, name: str) -> PayloadError:
        """Put ``name``, the enclosing field, before the path of the field."""
        separator = "." if self.field and not self.field.startswith("[") else ""
        self.field = f"{name}{separator}{self.field}"
        return self

    def within(self, message: str) -> PayloadError:
        where = f"{message}, {self.field}" if self.field else message
        self.reason = f"{where}: {self.what} at {self.position}"
        return self

    def at(self, base: int) -> DamageError:
        """Return the error as a DamageError with ``base`` added to its position."""
        return DamageError(self.kind, self.reason, position=base + self.position)

    def __str__(self) -> str:
        return self.reason


class Reader:
    def __init__(self, data: bytes, position: int = 0, *, limited: bool = False) -> None:
        """``limited``: check the number of tags, and refuse more than MOST_ELEMENTS elements, like 4.2.2 and 4.4."""
        self.data = data
        self.limited = limited
        self.position = position

    @property
    def remaining(self) -> int:
        return len(self.data) - self.position

    def fixed(self, kind: str) -> Value:
        layout = FIXED[kind]
        try:
            value: Value = layout.unpack_from(self.data, self.position)[0]
        except struct.error:
            missing = layout.size - self.remaining
            raise PayloadError(None, f"{missing} {'byte' if missing == 1 else 'bytes'} short", self.position) from None
        self.position += layout.size
        return value

    def int16(self) -> int:
        return cast("int", self.fixed("int16"))

    def varint(self) -> int:
        """Read an unsigned varint; a value from 2 ** 31 on becomes negative, as in Java. Raises PayloadError."""
        if self.position < len(self.data) and self.data[self.position] < 0x80:  # most have one byte
            self.position += 1
            return self.data[self.position - 1]
        try:
            value, self.position = read_unsigned_varint(self.data, self.position)
        except DamageError as damage:
            raise PayloadError(_varint_error(self.data, self.position), damage.reason, self.position) from None
        return value if value < 1 << 31 else value - (1 << 32)

    def bytes(self, count: int) -> bytes:
        if count < 0:
            raise PayloadError(str(count), f"a length of {count} bytes", self.position)
        if count > self.remaining:
            raise PayloadError(
                f"Error reading byte array of {count} byte(s): only {self.remaining} byte(s) available",
                f"{count - self.remaining} of {count} bytes short",
                self.position,
            )
        start = self.position
        self.position += count
        return self.data[start : self.position]


def _varint_error(data: bytes, position: int) -> str | None:
    """Return Kafka's error for a varint above 5 bytes (ByteUtils.readUnsignedVarint); None for a truncated varint."""
    if len(data) - position < 5:
        return None
    value = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(data[position : position + 4]))
    value |= data[position + 4] << 28 & 0xFFFFFFFF
    return f"Varint is too long, the most significant bit in the 5th byte is set, converted value: {value:x}"


class _Run(NamedTuple):
    """Consecutive fields of fixed size, read together by ``layout``; or one other field, with ``layout`` None."""

    slots: list[Slot]
    names: list[str]
    layout: struct.Struct | None


@lru_cache
def _runs(schema: Struct) -> tuple[Values, list[_Run]]:
    """Return a template of a struct's values, in which all are None, and the runs of its untagged fields."""
    runs = []
    for fixed, slots in groupby(schema.plain, lambda slot: slot.type in FIXED and not slot.array):
        found = list(slots)
        if fixed:
            layout = struct.Struct(">" + "".join(FIXED[slot.type].format[1:] for slot in found))
            runs.append(_Run(found, [slot.name for slot in found], layout))
        else:
            runs.extend(_Run([slot], [slot.name], None) for slot in found)
    return dict.fromkeys([slot.name for slot in schema.slots]), runs


def read(schema: Struct, reader: Reader) -> Values:
    """Return the fields of a struct. Raises PayloadError for invalid bytes, and for a version above the known ones."""
    if schema.refused is not None:
        raise PayloadError(
            f"Can't read version {schema.refused} of {schema.name}",
            f"version {schema.refused} is newer than the known ones",
            reader.position,
        )
    return read_fields(schema, reader)


def read_fields(schema: Struct, reader: Reader) -> Values:
    """Like :func:`read`, but an unknown version of the outermost struct is read like the nearest known one."""
    blank, runs = _runs(schema)
    values = blank.copy()
    for run in runs:
        if run.layout is not None and run.layout.size <= len(reader.data) - reader.position:
            values.update(zip(run.names, run.layout.unpack_from(reader.data, reader.position), strict=True))
            reader.position += run.layout.size
            continue
        for slot in run.slots:
            try:
                values[slot.name] = _read_slot(slot, reader)
            except PayloadError as error:
                raise error.inside(slot.name) from None
    for slot in schema.tagged.values():
        values[slot.name] = slot.default()
    if schema.flexible:
        _read_tagged(schema, reader, values)
    return values


def _read_tagged(schema: Struct, reader: Reader, values: Values) -> None:
    position, count = reader.position, reader.varint()
    if not count:
        return
    unknown: list[Value] = []
    if reader.limited and not 0 <= count <= min(reader.remaining, MOST_TAGGED):
        raise _refuse_tagged(count, reader.remaining, position)
    for _ in range(count):
        position = reader.position
        tag, size = reader.varint(), reader.varint()
        if tag in schema.invalid_tags:
            java_message = f"Tag {tag} is not valid for version {schema.version}"
            raise PayloadError(java_message, f"tag {tag} does not exist in version {schema.version}", position)
        slot = schema.tagged.get(tag)
        try:
            if slot is None:
                unknown.append({"tag": tag, "data": reader.bytes(size)})
            else:
                values[slot.name] = _read_slot(slot, reader)
        except PayloadError as error:
            raise error.inside(slot.name if slot else f"tag {tag}") from None
    if unknown:
        values[UNKNOWN_TAGS] = unknown


def _refuse_tagged(count: int, remaining: int, position: int) -> PayloadError:
    if count < 0:
        return PayloadError(f"Invalid negative number of tagged fields {count}", f"{count} tagged fields", position)
    if count > remaining:
        java_message = f"Tried to read {count} tagged fields, but there are only {remaining} bytes remaining."
        return PayloadError(java_message, f"{count} tagged fields do not fit into {remaining} bytes", position)
    java_message = f"Tried to read {count} tagged fields, which exceeds the maximum allowed count of {MOST_TAGGED}."
    return PayloadError(java_message, f"more than {MOST_TAGGED} tagged fields: {count}", position)


def _read_slot(slot: Slot, reader: Reader) -> Value:
    if slot.array:
        return _read_array(slot, reader)
    if slot.struct is not None:
        if slot.nullable and (reader.varint() <= 0 if slot.tag is not None else _is_null(reader)):
            return None
        return read(slot.struct, reader)
    if slot.type in FIXED:
        return reader.fixed(slot.type)
    return _read_sized(slot, reader, slot.name, nullable=slot.nullable)


def _is_null(reader: Reader) -> bool:
    return cast("int", reader.fixed("int8")) < 0


def _length(slot: Slot, reader: Reader, kind: str) -> int:
    return reader.varint() - 1 if slot.compact else cast("int", reader.fixed(kind))


def _refuse_null(name: str, position: int) -> PayloadError:
    return PayloadError(f"non-nullable field {name} was serialized as null", "null in a non-nullable field", position)


def _read_sized(slot: Slot, reader: Reader, name: str, *, nullable: bool) -> Value:
    position = reader.position
    text = slot.type == "string"
    length = _length(slot, reader, "int16" if text else "int32")
    if length < 0:
        if nullable:
            return None
        raise _refuse_null(name, position)
    if text and length > LONGEST_STRING:
        raise PayloadError(
            f"string field {name} had invalid length {length}", f"a string of {length} bytes is too long", position
        )
    data = reader.bytes(length)
    return java_utf8(data) if text else data


def _read_array(slot: Slot, reader: Reader) -> Value:
    position = reader.position
    count = _length(slot, reader, "int32")
    if count < 0:
        if slot.nullable:
            return None
        raise _refuse_null(slot.name, position)
    if count > reader.remaining:
        raise PayloadError(
            f"Tried to allocate a collection of size {count}, but there are only {reader.remaining} bytes remaining.",
            f"{count} elements do not fit into {reader.remaining} bytes",
            position,
        )
    if reader.limited and count > MOST_ELEMENTS:
        raise PayloadError(
            f"Tried to read a collection of size {count}, which exceeds the maximum allowed size of {MOST_ELEMENTS}.",
            f"more than {MOST_ELEMENTS} elements: {count}",
            position,
        )
    if slot.type in FIXED:
        layout = FIXED[slot.type]
        if count * layout.size <= reader.remaining:
            start, reader.position = reader.position, reader.position + count * layout.size
            return [value for (value,) in layout.iter_unpack(reader.data[start : reader.position])]
    values: list[Value] = []
    for index in range(count):
        try:
            if slot.struct is not None:
                values.append(read(slot.struct, reader))
            elif slot.type in FIXED:
                values.append(reader.fixed(slot.type))
            else:
                values.append(_read_sized(slot, reader, f"{slot.name} element", nullable=False))
        except PayloadError as error:
            raise error.inside(f"[{index}]") from None
    return values


def write(schema: Struct, values: Values) -> bytes:
    """Return the bytes of a struct. A missing field gets its default; a tagged field with its default is left out."""
    out = [_write_slot(slot, values.get(slot.name, slot.default())) for slot in schema.plain]
    if schema.flexible:
        tagged = {
            tag: _write_slot(slot, values[slot.name])
            for tag, slot in schema.tagged.items()
            if slot.name in values and values[slot.name] != slot.default()
        }
        for unknown in cast("list[dict[str, Value]]", values.get(UNKNOWN_TAGS, [])):
            tagged[cast("int", unknown["tag"])] = cast("bytes", unknown["data"])
        out.append(write_unsigned_varint(len(tagged)))
        for tag, data in sorted(tagged.items()):
            out += [write_unsigned_varint(tag), write_unsigned_varint(len(data)), data]
    return b"".join(out)


def _write_slot(slot: Slot, value: Value) -> bytes:
    if slot.array:
        if value is None:
            return _write_length(slot, -1, "int32")
        elements = cast("list[Value]", value)
        return _write_length(slot, len(elements), "int32") + b"".join(_write_one(slot, one) for one in elements)
    if slot.struct is not None and slot.nullable:
        null, there = (b"\0", b"\1") if slot.tag is not None else (b"\xff", b"\1")
        return null if value is None else there + _write_one(slot, value)
    return _write_one(slot, value)


def _write_one(slot: Slot, value: Value) -> bytes:
    if slot.struct is not None:
        return write(slot.struct, cast("Values", value))
    if slot.type in FIXED:
        return FIXED[slot.type].pack(value)
    kind = "int16" if slot.type == "string" else "int32"
    if value is None:
        return _write_length(slot, -1, kind)
    data = value.encode() if isinstance(value, str) else cast("bytes", value)
    return _write_length(slot, len(data), kind) + data


def _write_length(slot: Slot, length: int, kind: str) -> bytes:
    return write_unsigned_varint(length + 1) if slot.compact else FIXED[kind].pack(length)


PREVIEW_FRAME: Final = 0
"""The frame version of the KRaft preview in 2.8. Later releases do not read its layouts."""
FRAME: Final = 1
_LARGEST: Final = 0x7FFF


def frame_number(reader: Reader, name: str) -> int:
    """Return the next number of a frame of ``__cluster_metadata`` or ``__remote_log_metadata``; ``name`` is for errors.

    A frame precedes the message. It has three unsigned varints: its own version (0 in 2.8, 1 since 3.0), and the type
    and the version of the message. Source: ``org.apache.kafka.server.common.serialization.AbstractApiMessageSerde``
    (KIP-631). Raises PayloadError if the number cannot be read, or is from 32768 to 2 ** 31 - 1.
    """
    position = reader.position
    try:
        value = reader.varint()
    except PayloadError as error:
        raise PayloadError(f"Error while reading {name}", f"{name}: {error.what}", position) from None
    if value > _LARGEST:
        raise PayloadError(f"Value for {name} was too large.", f"{name}: {value} is too large", position)
    return (value + 0x8000 & 0xFFFF) - 0x8000
