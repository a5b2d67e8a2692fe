"""Reads payloads as typed values of one version of a subject. :class:`SubjectTables` divides records by subject.

The user names the subject (``orders-value``: its newest current version) or a version (``orders-value:3``). A payload
that cannot be converted has a problem instead of a value. A payload with ``trailing-bytes`` has both. JSON stays text.
Only Avro is read with the writer's schema.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kdump.errors import UsageError
from kdump.primitives.messages import did_you_mean
from kdump.schemas import MismatchError, SchemaError, UndecodableError
from kdump.schemas.avro import AvroReader, ResolvingReader, compact_json
from kdump.schemas.framing import PREFIX_SIZE, frame_of
from kdump.schemas.protobuf import ProtobufReader, ReadMessage
from kdump.schemas.protobuf_values import message_column
from kdump.schemas.readers import read_json
from kdump.schemas.shapes import JSON_TEXT, Shape, avro_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.formats.record import Header
    from kdump.schemas.decoder import PayloadDecoder, WrittenPayload
    from kdump.schemas.framing import SchemaFrame, Side
    from kdump.schemas.readers import PayloadReader
    from kdump.schemas.store import SchemaVersion

    _Read: TypeAlias = Callable[[bytes, int, Sequence[int]], tuple[Any, int]]
    """(payload, position of the message, Protobuf path) -> value, its end. Raises UndecodableError, MismatchError."""

_PINNED: Final = re.compile(r"(.+?)(?::([1-9]\d{0,9}))?(?:#([\w.]+))?", re.DOTALL)


class TypedValue(NamedTuple):
    """The value of a payload (None for null, or if it cannot be converted), the id of its schema, and its problem."""

    value: Any = None
    schema_id: int | None = None
    problem: str | None = None
    why: str | None = None


_NULL: Final = TypedValue()
_NO_SCHEMA: Final = TypedValue(problem="no-schema", why="the payload names no schema")


def _value(read: _Read, payload: bytes, position: int, indexes: Sequence[int], schema_id: int) -> TypedValue:
    try:
        value, end = read(payload, position, indexes)
    except MismatchError as error:
        return TypedValue(None, schema_id, "schema-mismatch", str(error))
    except UndecodableError as error:
        return TypedValue(None, schema_id, "payload-invalid", str(error))
    left = len(payload) - end
    if left:
        return TypedValue(value, schema_id, "trailing-bytes", f"{left} bytes are left after the value")
    return TypedValue(value, schema_id)


def _written(
    decoder: PayloadDecoder,
    place: tuple[str, Side],
    payload: bytes,
    headers: Sequence[Header],
    preferred: Callable[[list[SchemaVersion]], list[SchemaVersion]] | None = None,
) -> tuple[SchemaFrame, WrittenPayload] | TypedValue:
    """Return the frame and the writer's schema of a payload, or a TypedValue with the problem.

    ``place``: its topic and side. Several subjects may share a schema id: ``preferred`` selects among their versions.
    """
    topic, side = place
    frame = None if decoder.has_own_layout(topic, side, payload) else frame_of(side, payload, headers)
    if frame is None:
        return _NO_SCHEMA
    if frame.framing == "file":
        return TypedValue(
            problem="schema-mismatch",
            why="the payload is an Avro container file. It can hold several records, but a typed column has only one "
            "value for each payload",
        )
    candidates = decoder.candidates(frame)
    if candidates is None:
        return _NO_SCHEMA
    if not candidates:
        missing = decoder.missing_schema(frame)
        return TypedValue(None, frame.schema_id, missing["problem"], missing["why"])
    written = decoder.written(topic, side, payload, frame, candidates if preferred is None else preferred(candidates))
    schema = written.schema
    if schema.problem:
        return TypedValue(None, schema.version.id, schema.problem, schema.why)
    if written.broken is not None:
        return TypedValue(None, schema.version.id, "payload-invalid", str(written.broken))
    return frame, written


class TypedSide:
    """Converts payloads to one version's types. If subjects share a schema id, the version's subject is preferred."""

    def __init__(
        self,
        decoder: PayloadDecoder,
        version: SchemaVersion,
        side: Side,
        message: str | None = None,
        *,
        wide_times: bool = False,
    ) -> None:
        """``message``: of Protobuf, by default the first. Raises UsageError for a bad schema or name.

        ``wide_times``: accept Protobuf's timestamps outside the years 1678 to 2262 (the range of ns in 64 bits).
        """
        self.side, self.version, self.wide_times, self._decoder = side, version, wide_times, decoder
        self._target = decoder.schema(version)
        if self._target.problem:
            raise UsageError(f"version {version.version} of {version.subject!r}: {self._target.why}")
        self._reads: dict[tuple[str, int], _Read] = {}
        self._own: dict[int, list[SchemaVersion]] = {}
        """Cache: ``id(versions)`` -> those of this subject, or all if there are none. The store keeps ``versions``."""
        self._prefixes: dict[tuple[str, bytes], tuple[_Read, int]] = {}
        self._message: ReadMessage | None = None
        reader = self._target.reader
        if message is not None and not isinstance(reader, ProtobufReader):
            raise UsageError(f"version {version.version} of {version.subject!r} is not Protobuf: leave out #{message}")
        if isinstance(reader, AvroReader):
            self.shape: Shape = avro_shape(reader.schema)
        elif isinstance(reader, ProtobufReader):
            self._message = reader.read_message(message)
            if self._message is None:
                raise UsageError(
                    f"version {version.version} of {version.subject!r} has no message {message or ''}".strip()
                )
            self.shape, self._convert = message_column(self._message.kind, wide_times=wide_times)
        else:
            self.shape = JSON_TEXT

    def read(self, topic: str, payload: bytes | None, headers: Sequence[Header]) -> TypedValue:
        """Return the typed value of a payload of ``topic``, or its problem."""
        if payload is None:
            return _NULL
        if not headers:
            known = self._prefixes.get((topic, payload[:PREFIX_SIZE]))
            if known is not None:
                return _value(known[0], payload, PREFIX_SIZE, (), known[1])
        found = _written(self._decoder, (topic, self.side), payload, headers, self._preferred)
        if isinstance(found, TypedValue):
            return found
        frame, (schema, position, indexes, _) = found
        schema_id = schema.version.id
        read = self._reading(schema)
        if frame.framing == "prefix" and schema.format != "protobuf":
            self._prefixes[topic, payload[:PREFIX_SIZE]] = read, schema_id
        return _value(read, payload, position, indexes, schema_id)

    def _preferred(self, candidates: list[SchemaVersion]) -> list[SchemaVersion]:
        made = self._own.get(id(candidates))
        if made is None:
            own = [each for each in candidates if each.subject == self.version.subject]
            made = self._own[id(candidates)] = own or candidates
        return made

    def _reading(self, schema: PayloadReader) -> _Read:
        key = (schema.version.subject, schema.version.version)
        made = self._reads.get(key)
        if made is None:
            made = self._reads[key] = self._made(schema)
        return made

    def _made(self, schema: PayloadReader) -> _Read:
        target, written = self._target.reader, schema.reader
        if schema.format != self._target.format:
            return _refusal(
                f"the payload is {schema.format}, but the columns are from a schema in {self._target.format}"
            )
        if isinstance(target, AvroReader) and isinstance(written, AvroReader):
            try:
                read_avro = ResolvingReader(written.schema, target.schema, self.shape).read
            except SchemaError as error:
                return _refusal(str(error))
            return lambda payload, position, _: read_avro(payload, position)
        if isinstance(written, ProtobufReader):
            return lambda payload, position, indexes: self._protobuf(written, payload, position, indexes)
        return lambda payload, position, _: (compact_json(read_json(payload, position)), len(payload))

    def _protobuf(
        self, written: ProtobufReader, payload: bytes, position: int, indexes: Sequence[int]
    ) -> tuple[Any, int]:
        message = self._message
        names = written.names(indexes)
        if not names:
            raise UndecodableError(
                f"the payload has the message indexes {list(indexes)}, but its schema has no such message"
            )
        if message is None or message.kind.full_name not in names:
            raise MismatchError(
                f"the payload is the message {names[0]}: for its columns use the subject "
                f"{self.version.subject}#{names[0]}"
            )
        return self._convert(message.read(payload, position)), len(payload)


def _refusal(why: str) -> _Read:
    def read(*_: object) -> tuple[Any, int]:
        raise MismatchError(why)

    return read


def typed_sides(decoder: PayloadDecoder, subject: str, *, wide_times: bool = False) -> tuple[TypedSide, ...]:
    """Return the reader of the subject's own side (key or value) as the last item. Raises UsageError.

    Before it comes the reader of the other side (``orders-key`` for ``orders-value``), if there is such a subject
    and its newest current version is usable. ``subject`` may have a version and a Protobuf message: ``orders-value:3``,
    ``orders-value#org.shop.Order``. A subject that ends with ``-key`` is for keys, any other for values.
    """
    version, message = _version(decoder, subject)
    _, dash, ending = version.subject.rpartition("-")
    side: Side = "key" if dash and ending == "key" else "value"
    return _both_sides(decoder, TypedSide(decoder, version, side, message, wide_times=wide_times))


class SubjectTables:
    """Divides records into one table for each subject, by the schemas of their values.

    The newest current version of the subject gives the types (without one, the first payload's). A Protobuf message
    that is not the first of this version has its own table: ``orders-value#org.shop.Order``. For records without a
    table this object takes the place of a TypedSide: :meth:`read` returns the reason instead of a value.
    """

    side: Final = "value"
    shape: Final = JSON_TEXT

    def __init__(self, decoder: PayloadDecoder) -> None:
        self._decoder = decoder
        self._sides: dict[str, tuple[TypedSide, ...] | UsageError] = {}
        """Table -> its readers, or the reason why its schema cannot be used."""
        self._prefixes: dict[tuple[str, bytes], str] = {}
        self._of_nulls: dict[str, str | None] = {}

    def table(self, topic: str, value: bytes | None, headers: Sequence[Header]) -> str | None:
        """Return the table of a value, or None. A null belongs to ``TOPIC-value``, if its newest version is usable."""
        if value is None:
            if topic not in self._of_nulls:
                name = f"{topic}-value"
                known = self._decoder.store.newest(name)
                self._of_nulls[topic] = None if known is None else self._usable(name, known)
            return self._of_nulls[topic]
        key = topic, value[:PREFIX_SIZE]
        known_table = None if headers else self._prefixes.get(key)
        if known_table is not None:
            return known_table
        found = _written(self._decoder, (topic, self.side), value, headers)
        if isinstance(found, TypedValue):
            return None
        frame, written = found
        table = self._usable(*self._named(written))
        if table is not None and frame.framing == "prefix" and written.schema.format != "protobuf":
            self._prefixes[key] = table
        return table

    def sides(self, table: str) -> tuple[TypedSide, ...]:
        """Return the readers of a table of :meth:`table`: for keys if they have a usable subject, and for values."""
        found = self._sides[table]
        if isinstance(found, UsageError):
            raise found
        return found

    def _named(self, written: WrittenPayload) -> tuple[str, SchemaVersion, str | None]:
        """Return the table of a payload, the table's schema version, and the Protobuf message (None: the first)."""
        schema, store = written.schema, self._decoder.store
        subject = schema.version.subject
        version = store.newest(subject) or schema.version
        target = self._decoder.schema(version).reader
        if isinstance(schema.reader, ProtobufReader) and isinstance(target, ProtobufReader):
            names, first = schema.reader.names(written.indexes), target.read_message()
            if names and first is not None and first.kind.full_name not in names:
                return f"{subject}#{names[0]}", version, names[0]
        return subject, version, None

    def _usable(self, table: str, version: SchemaVersion, message: str | None = None) -> str | None:
        found = self._sides.get(table)
        if found is None:
            try:
                side = TypedSide(self._decoder, version, self.side, message, wide_times=True)
                found = _both_sides(self._decoder, side)
            except UsageError as error:
                found = error
            self._sides[table] = found
        return None if isinstance(found, UsageError) else table

    def read(self, topic: str, payload: bytes | None, headers: Sequence[Header]) -> TypedValue:
        if payload is None:
            unusable = self._sides.get(f"{topic}-value")
            subject = f"there is no subject {topic}-value" if unusable is None else str(unusable)
            return TypedValue(problem="no-schema", why=f"a null refers to no schema, and {subject}")
        found = _written(self._decoder, (topic, self.side), payload, headers)
        if isinstance(found, TypedValue):
            return found
        written = found[1]
        table, *_ = self._named(written)
        return TypedValue(None, written.schema.version.id, "schema-invalid", str(self._sides[table]))


def _both_sides(decoder: PayloadDecoder, given: TypedSide) -> tuple[TypedSide, ...]:
    name, dash, ending = given.version.subject.rpartition("-")
    if not dash or ending != given.side:
        return (given,)
    other: Side = "value" if given.side == "key" else "key"
    found = decoder.store.newest(f"{name}-{other}")
    if found is None:
        return (given,)
    try:
        return TypedSide(decoder, found, other, wide_times=given.wide_times), given
    except UsageError:  # the schema cannot be used
        return (given,)


def _version(decoder: PayloadDecoder, subject: str) -> tuple[SchemaVersion, str | None]:
    """Return the version and the message name (or None) in the text of a subject. Raises UsageError."""
    store = decoder.store
    found = store.newest(subject)
    if found is not None:
        return found, None
    if not store:
        raise UsageError(f"schema {subject!r}: no record of the topic {store.topic} is in the given paths")
    named = _PINNED.fullmatch(subject)
    name, number, message = named.groups() if named else (subject, None, None)
    found = store.newest(name) if number is None else store.version(name, int(number))
    if found is not None:
        return found, message
    known = sorted({each.subject for each in store.versions()})
    if name not in known:
        raise UsageError(
            f"no subject is called {name!r}{did_you_mean(name, known) or ': kdump schemas PATH lists all'}"
        )
    versions = [str(each.version) for each in store.versions() if each.subject == name]
    if number is None:
        raise UsageError(
            f"all versions of {name!r} are deleted ({', '.join(versions)}): write {name}:{versions[-1]} to use one"
        )
    raise UsageError(f"{name!r} has no version {number}: it has {', '.join(versions)}")
