"""Reads Protobuf payloads as JSON values, with the mapping of ``google.protobuf.json_format`` where that has one.

Its options are ``preserving_proto_field_name`` (names as in the .proto text) and
``always_print_fields_with_no_presence`` (an absent field without presence has its default value).
protobuf's own ``MessageToDict`` is not used: it needs descriptors from protoc, does not report the numbers of unknown
fields, and raises for an Any of an unknown type. The kernel writes common messages (:mod:`kdump.kernel.schemas`).
"""

from __future__ import annotations

from binascii import a2b_base64
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kdump.schemas import MissingReferenceError, SchemaError, UndecodableError, well_known
from kdump.schemas.proto_model import SCALARS, EnumType, FieldType, MessageType, Pool, ProtoFile
from kdump.schemas.proto_text import parse as parse_text
from kdump.schemas.protobuf_wire import (
    BYTES,
    DEFAULTS,
    GROUP,
    MAX_DEPTH,
    VARINT,
    Read,
    group_end,
    int32,
    read_tag,
    scalar,
    skip,
    span,
    varint,
    zigzag,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ANY: Final = well_known.PACKAGE + "Any"
_NULL: Final = well_known.PACKAGE + "NullValue"
_MAX_INDEXES: Final = 64

_Put: TypeAlias = "Callable[[dict[str, Any], bytes, int, int, _Walk], int]"
"""Reads a field into an object: (object, payload, position after the tag, message end, walk) -> end of the field."""


@dataclass(slots=True)
class _Walk:
    """The state of one read: the nesting level, and the numbers of unknown fields at all levels."""

    level: int = 0
    unknown: list[int] = field(default_factory=list)
    plain: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    """(``id()`` of the enclosing object, field name) -> fields of a well-known type, which a repetition updates."""


_NOTHING: Final = object()
"""Returned for a number that is missing in a closed enum: it counts as an unknown field."""


class _Plan:
    """The plan for reading a message: the reader of each field by tag, and defaults of fields without presence."""

    def __init__(self, message: MessageType, reader: ProtobufReader) -> None:
        self.puts: dict[int, _Put] = {}
        self.scalars: dict[str, Any] = {}
        self.lists: list[str] = []
        self.maps: list[str] = []
        self._oneofs: dict[str, list[str]] = {}
        for each in message.fields:
            if each.oneof is not None:
                self._oneofs.setdefault(each.oneof, []).append(each.name)
        for each in (*message.fields, *message.extensions):
            self._add(each, reader)

    def _add(self, found: FieldType, reader: ProtobufReader) -> None:
        name = f"[{found.name}]" if found.extension else found.name
        kind = found.resolved
        if isinstance(kind, MessageType):
            self._add_message(name, found, kind, reader)
            return
        wire = VARINT if isinstance(kind, EnumType) else SCALARS[found.type]
        read = _enum(kind) if isinstance(kind, EnumType) else scalar(found.type)
        tag = found.number << 3
        if found.repeated:
            if not found.extension:
                self.lists.append(name)
            self.puts[tag | wire] = _append(name, read, found.number)
            if wire != BYTES:
                self.puts[tag | BYTES] = _packed(name, read, found.number)
            return
        if not found.presence:
            self.scalars[name] = default(found)
        others = [each for each in self._oneofs.get(found.oneof or "", ()) if each != name]
        self.puts[tag | wire] = _set(name, read, found.number, others)

    def _add_message(self, name: str, found: FieldType, kind: MessageType, reader: ProtobufReader) -> None:
        tag = found.number << 3 | (GROUP if found.group else BYTES)
        if kind.is_map_entry:
            self.maps.append(name)
            self.puts[tag] = _map(name, kind, reader, found.number)
        elif found.repeated:
            if not found.extension:
                self.lists.append(name)
            read = _message(kind, reader, found.number if found.group else 0)
            self.puts[tag] = _append(name, read, found.number)
        else:
            others = [each for each in self._oneofs.get(found.oneof or "", ()) if each != name]
            self.puts[tag] = _merge(name, kind, reader, found.number if found.group else 0, others)

    def empty(self) -> dict[str, Any]:
        made = dict(self.scalars)
        for name in self.lists:
            made[name] = []
        for name in self.maps:
            made[name] = {}
        return made


def enum_names(kind: EnumType) -> dict[int, str | None]:
    """Return number -> first name of an enum's values. The value of NullValue has None instead of a name."""
    names: dict[int, str | None] = {}
    for name, value in kind.values:
        names.setdefault(value, name)
    if kind.full_name == _NULL:
        names[0] = None
    return names


def _enum(kind: EnumType) -> Read:
    names = enum_names(kind)
    closed, is_null = kind.closed, kind.full_name == _NULL

    def read(data: bytes, position: int, end: int, _: _Walk) -> tuple[Any, int]:
        value, position = varint(data, position, end)
        signed = int32(value)
        if is_null:  # any number is null
            return None, position
        return names.get(signed, _NOTHING if closed else signed), position

    return read


def default(found: FieldType) -> Any:
    """Return the default of a scalar or enum type. The option ``default`` of proto2 is ignored."""
    if isinstance(found.resolved, EnumType):
        if found.resolved.full_name == _NULL:
            return None
        return found.resolved.values[0][0]
    return DEFAULTS.get(found.type, 0)


def _set(name: str, read: Read, field_number: int, others: Sequence[str]) -> _Put:
    def put(out: dict[str, Any], data: bytes, position: int, end: int, walk: _Walk) -> int:
        value, position = read(data, position, end, walk)
        if value is _NOTHING:
            walk.unknown.append(field_number)
        else:
            out[name] = value
            for other in others:
                out.pop(other, None)
        return position

    return put


def _append(name: str, read: Read, field_number: int) -> _Put:
    def put(out: dict[str, Any], data: bytes, position: int, end: int, walk: _Walk) -> int:
        value, position = read(data, position, end, walk)
        if value is _NOTHING:
            walk.unknown.append(field_number)
        else:
            out.setdefault(name, []).append(value)
        return position

    return put


def _packed(name: str, read: Read, field_number: int) -> _Put:
    def put(out: dict[str, Any], data: bytes, position: int, end: int, walk: _Walk) -> int:
        position, after = span(data, position, end)
        values = out.setdefault(name, [])
        while position < after:
            value, position = read(data, position, after, walk)
            if value is _NOTHING:
                walk.unknown.append(field_number)
            else:
                values.append(value)
        return after

    return put


def _message(kind: MessageType, reader: ProtobufReader, group: int) -> Read:
    """Return the reader of a length and a message, or of a group if ``group`` is a field number, not 0."""

    def read(data: bytes, position: int, end: int, walk: _Walk) -> tuple[Any, int]:
        if group:
            after = group_end(data, position, end, group)
            return reader.value(kind, data, position, after[0], walk), after[1]
        begin, after_ = span(data, position, end)
        return reader.value(kind, data, begin, after_, walk), after_

    return read


def _merge(name: str, kind: MessageType, reader: ProtobufReader, group: int, others: Sequence[str]) -> _Put:
    """Return the reader of a message field. Repeated occurrences of the field are merged, as in protobuf."""
    is_plain = kind.full_name != ANY and kind.full_name not in well_known.CONVERTERS

    def put(out: dict[str, Any], data: bytes, position: int, end: int, walk: _Walk) -> int:
        if group:
            begin, (last, after) = position, group_end(data, position, end, group)
        else:
            begin, last = span(data, position, end)
            after = last
        if is_plain:
            out[name] = reader.value(kind, data, begin, last, walk, out.get(name))
        else:
            key = (id(out), name)
            plain = reader.plain(kind, data, begin, last, walk, walk.plain.get(key) if name in out else None)
            walk.plain[key] = plain
            out[name] = reader.converted(kind, plain, walk)
        for other in others:
            out.pop(other, None)
        return after

    return put


def _map(name: str, kind: MessageType, reader: ProtobufReader, field_number: int) -> _Put:
    """Return the reader of a map field. As in protobuf's upb, an entry with unknown fields of its own is left out."""
    key, value = kind.fields
    empty_key: Any = map_key(DEFAULTS.get(key.type, 0))
    inner = value.resolved if isinstance(value.resolved, MessageType) else None

    def put(out: dict[str, Any], data: bytes, position: int, end: int, walk: _Walk) -> int:
        begin, after = span(data, position, end)
        known = len(walk.unknown)
        entry = reader.plain(kind, data, begin, after, walk)
        if len(walk.unknown) > known and (inner is None or reader.has_unknown_fields(kind, data, begin, after)):
            del walk.unknown[known:]
            walk.unknown.append(field_number)
            return after
        if "value" in entry:
            made = entry["value"]
        else:
            made = default(value) if inner is None else reader.value(inner, b"", 0, 0, walk)
        out[name][map_key(entry["key"]) if "key" in entry else empty_key] = made
        return after

    return put


def map_key(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class DecodedMessage:
    """A decoded message: name, value, and sorted numbers of unknown fields at all levels, once per reading."""

    name: str
    value: dict[str, Any]
    unknown_fields: tuple[int, ...]


class ReadMessage(NamedTuple):
    """Reads payloads as a message of type ``kind``. Fields that are not in this type are left out."""

    kind: MessageType
    reader: ProtobufReader

    def read(self, payload: bytes, position: int) -> Any:
        """Return the JSON value of the message from ``position`` to the payload's end. Raises UndecodableError."""
        return self.reader.value(self.kind, payload, position, len(payload), _Walk())


class ProtobufReader:
    """Reads messages of a .proto file."""

    def __init__(
        self,
        text: str,
        references: Mapping[str, str] | None = None,
        parse: Callable[[str], ProtoFile] = parse_text,
    ) -> None:
        """Parse a file. ``references``: name -> text of an imported file. Raises SchemaError."""
        self._pool = Pool()
        self._plans: dict[int, _Plan] = {}
        self._loaded: set[str] = set()
        self._parse = parse
        self._texts = {} if references is None else references
        self._file = self._load(text, 0)

    def _load(self, text: str, level: int) -> ProtoFile:
        if level > MAX_DEPTH:
            raise SchemaError("files import each other too deep")
        file = self._parse(text)
        for name in file.imports:
            if name in self._loaded:
                continue
            self._loaded.add(name)
            found = self._texts.get(name) or well_known.texts().get(name)
            if found is None:
                raise MissingReferenceError(f"the schema imports {name!r}, which is not in the log")
            self._load(found, level + 1)
        self._pool.add(file)
        return file

    def find(self, name: str) -> MessageType | None:
        """Return the message with this full name in the files or in protobuf's own files, or None."""
        found = self._pool.known.get(name)
        if found is None and name.startswith(well_known.PACKAGE):
            found = _own_pool().known.get(name)
        return found if isinstance(found, MessageType) else None

    def read(self, payload: bytes, position: int, indexes: Sequence[int]) -> DecodedMessage:
        """Return the message at a position, up to the end of the payload. Raises UndecodableError.

        ``indexes`` is the path to the message in its file. Writers count nested messages in three ways, so it may
        identify several messages. Of the readable ones, the first with the fewest unknown fields is used.
        """
        best: DecodedMessage | None = None
        problem = UndecodableError(
            f"the payload has the message indexes {list(indexes)}, but its schema has no such message"
        )
        for message in self._messages(indexes):
            walk = _Walk()
            try:
                value = self.value(message, payload, position, len(payload), walk)
            except UndecodableError as error:
                problem = error
                continue
            unknown = tuple(sorted(walk.unknown))
            if not unknown:
                return DecodedMessage(message.full_name, value, ())
            if best is None or len(unknown) < len(best.unknown_fields):
                best = DecodedMessage(message.full_name, value, unknown)
        if best is None:
            raise problem
        return best

    def name(self, indexes: Sequence[int]) -> str | None:
        message = self.first_message(indexes)
        return None if message is None else message.full_name

    def first_message(self, indexes: Sequence[int]) -> MessageType | None:
        """Return the first message that ``indexes`` may identify (see :meth:`read`); None if there is none."""
        return next(self._messages(indexes), None)

    def names(self, indexes: Sequence[int]) -> list[str]:
        """Return the full names of all messages that ``indexes`` may identify (see :meth:`read`)."""
        return [message.full_name for message in self._messages(indexes)]

    def read_message(self, name: str | None = None) -> ReadMessage | None:
        """Return the reader of the message with this full name, by default the file's first; None if it is missing."""
        message = self.first_message([0]) if name is None else self.find(name)
        return None if message is None else ReadMessage(message, self)

    def _messages(self, indexes: Sequence[int]) -> Iterator[MessageType]:
        """Yield the messages that a path may identify. Some writers do not count map entries, some count them last."""
        seen: set[int] = set()
        for reading in range(3):
            level, message = self._file.messages, None
            for index in indexes:
                if reading == 1:
                    level = [each for each in level if not each.is_map_entry]
                elif reading == 2:
                    level = sorted(level, key=lambda each: each.is_map_entry)
                message = level[index] if 0 <= index < len(level) else None
                if message is None:
                    break
                level = message.nested
            if message is not None and not message.is_map_entry and id(message) not in seen:
                seen.add(id(message))
                yield message

    def message(self, name: str, data: bytes) -> dict[str, Any]:
        """Return the fields of a message, given its full name and its bytes. Raises UndecodableError."""
        kind = self.find(name)
        if kind is None:
            raise UndecodableError(f"the schema has no message {name!r}")
        return self.plain(kind, data, 0, len(data), _Walk())

    def value(
        self, kind: MessageType, data: bytes, begin: int, end: int, walk: _Walk, into: dict[str, Any] | None = None
    ) -> Any:
        """Return the JSON value of the message between two positions. Its fields are added to ``into``, if given."""
        made = self.plain(kind, data, begin, end, walk, into)
        return self.converted(kind, made, walk)

    def converted(self, kind: MessageType, plain: dict[str, Any], walk: _Walk) -> Any:
        """Return the JSON value for the fields ``plain`` of a message: an object, or the value of a well-known type."""
        if kind.full_name == ANY:
            return self._any(plain, walk)
        convert = well_known.CONVERTERS.get(kind.full_name)
        return plain if convert is None else convert(plain)

    def _any(self, plain: dict[str, Any], walk: _Walk) -> dict[str, Any]:
        url, packed = plain.get("type_url", ""), plain.get("value", "")
        if not url and not packed:
            return {}
        kind = self.find(url.rpartition("/")[2])
        if kind is None:
            return {"@type": url, "value": packed}
        data = a2b_base64(packed)
        walk.level += 1
        value = self.value(kind, data, 0, len(data), walk)
        walk.level -= 1
        is_plain = kind.full_name != ANY and kind.full_name not in well_known.CONVERTERS
        return {"@type": url, **value} if is_plain else {"@type": url, "value": value}

    def plain(
        self, kind: MessageType, data: bytes, begin: int, end: int, walk: _Walk, into: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the fields of the message between two positions by name, also of well-known types (:meth:`value`)."""
        plan = self._plans.get(id(kind))
        if plan is None:
            plan = self._plans[id(kind)] = _Plan(kind, self)
        if walk.level > MAX_DEPTH:
            raise UndecodableError("messages are nested too deep")
        walk.level += 1
        made = plan.empty() if into is None else into
        puts, position = plan.puts, begin
        while position < end:
            tag = data[position]
            if tag < 128:
                position += 1
            else:
                tag, position = read_tag(data, position, end)
            put = puts.get(tag)
            if put is not None:
                position = put(made, data, position, end, walk)
                continue
            if tag < 8:
                raise UndecodableError("a field has the number 0")
            position = skip(data, position, end, tag & 7, tag >> 3)
            walk.unknown.append(tag >> 3)
        walk.level -= 1
        return made

    def has_unknown_fields(self, kind: MessageType, data: bytes, begin: int, end: int) -> bool:
        """Return whether a message itself has unknown fields, nested messages excluded. Call :meth:`plain` before."""
        puts, position = self._plans[id(kind)].puts, begin
        while position < end:
            tag, position = read_tag(data, position, end)
            if tag not in puts:
                return True
            position = skip(data, position, end, tag & 7, tag >> 3)
        return False


@cache
def _own_pool() -> Pool:
    imports = "".join(f'import "{name}";' for name in well_known.texts() if name.startswith("google/protobuf/"))
    return ProtobufReader(f'syntax = "proto3"; {imports}')._pool


def read_indexes(data: bytes, position: int) -> tuple[list[int], int]:
    """Return the path of message indexes at a position, and the position after it. Raises UndecodableError.

    The path is a count and as many indexes, all zigzag varints; the count 0 stands for the first message. Python
    clients 1.4 to 1.7 wrote plain varints. These are recognised only if one would be negative as a zigzag number.
    """
    for signed in (True, False):
        found, at = _numbers(data, position, signed=signed)
        if found == [] and signed:
            return [0], at
        if found and min(found) >= 0 and (signed or found != [0]):
            return found, at
    raise UndecodableError("the message indexes before the payload are malformed")


def _numbers(data: bytes, position: int, *, signed: bool) -> tuple[list[int] | None, int]:
    """Read a count and as many varints. Return them (None if the count is invalid), and the position after them."""
    count, position = varint(data, position, len(data))
    count = zigzag(count) if signed else count
    if not 0 <= count <= _MAX_INDEXES:
        return None, position
    found = []
    for _ in range(count):
        value, position = varint(data, position, len(data))
        found.append(zigzag(value) if signed else value)
    return found, position
