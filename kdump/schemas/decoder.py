"""Decodes keys and values with the schemas of a store, and the known layouts of MirrorMaker 2 and Kafka Streams.

Known layouts are tried first. A result that is not complete has the keys ``problem`` and ``why``. The schemas and their
readers are loaded at the first payload that may need one, because few topics have such payloads.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kdump.internal_topics import DECODER_SWITCHES
from kdump.primitives.compression import DEFAULT_LIMIT
from kdump.schemas import FIRST_BYTES, SchemaError, UndecodableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kdump.schemas.avro import AvroReader
    from kdump.schemas.framing import SchemaFrame, Side
    from kdump.schemas.protobuf import ProtobufReader
    from kdump.schemas.readers import PayloadReader
    from kdump.schemas.store import SchemaStore, SchemaVersion

FORMATS: Final = ("avro", "protobuf", "json")
Decoded: TypeAlias = dict[str, Any]
"""A decoded key or value: the JSON object in the column ``decoded``."""
CHANGELOG: Final = "-changelog"
"""The suffix of a changelog's name (ProcessorStateManager.storeChangelogTopic)."""
_OWN_LAYOUTS: Final = (".internal", "heartbeats", CHANGELOG)


def has_own_layouts(topic: str) -> bool:
    """Return whether a topic may be one of MirrorMaker 2 or a changelog of Kafka Streams, judged by its name."""
    return topic.endswith(_OWN_LAYOUTS)


class WrittenPayload(NamedTuple):
    """The writer's schema of a payload, and the position of the message in the payload."""

    schema: PayloadReader
    position: int
    indexes: list[int]
    """The path of a Protobuf message in its file. ``broken``: the error if the path is malformed."""
    broken: UndecodableError | None


class PayloadDecoder:
    """Decodes payloads: :meth:`side` and :meth:`decode` those of ``formats``; known layouts need all formats."""

    def __init__(
        self,
        store: SchemaStore | Callable[[], SchemaStore],
        formats: Iterable[str] = FORMATS,
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        """``store`` may be a function, called if needed. ``limit``: see :func:`kdump.schemas.avro.read_file`."""
        self._given = store
        self._formats = frozenset(formats)
        self._every = len(self._formats) == len(FORMATS)
        self._limit = limit
        self._schemas: dict[tuple[str, int], PayloadReader] = {}
        self._choices: dict[tuple[object, ...], tuple[SchemaVersion, list[SchemaVersion]]] = {}
        """Values keep the candidates, so that their ``id()`` stays unique."""
        self.missing = 0
        """The number of calls of :meth:`missing_schema`."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the state to pickle: the schemas, but not their readers."""
        return PayloadDecoder, (self.store, self._formats, self._limit)

    def decode(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[tuple[bytes, bytes | None]] = (),
    ) -> dict[str, Decoded | None] | None:
        """Return the decoded key and value of a record, or None if :meth:`side` returns None for both."""
        sides = {"key": self.side(topic, "key", key, headers), "value": self.side(topic, "value", value, headers)}
        return sides if sides["key"] or sides["value"] else None

    def side(
        self, topic: str, side: Side, payload: bytes | None, headers: Iterable[tuple[bytes, bytes | None]] = ()
    ) -> Decoded | None:
        """Return the decoded key or value; None for null, or if it names no schema of ``formats`` and has no layout."""
        if payload is None:
            return None
        if self._every and has_own_layouts(topic):
            found = self._own_layout(topic, side, payload, headers)
            if found is not None:
                return found
        return self._with_schema(topic, side, payload, headers)

    def has_own_layout(self, topic: str, side: Side, payload: bytes) -> bool:
        """Return whether a payload is of Kafka's own topics or of MirrorMaker 2. Windowed keys do not count."""
        if has_own_layouts(topic):
            from kdump.schemas import own_layouts

            return own_layouts.mirrored(topic, side, payload) is not None
        return topic in DECODER_SWITCHES

    def _own_layout(
        self, topic: str, side: Side, payload: bytes, headers: Iterable[tuple[bytes, bytes | None]]
    ) -> Decoded | None:
        from kdump.schemas import own_layouts

        found = own_layouts.mirrored(topic, side, payload)
        if found is not None:
            return {"format": None, "framing": None, "data": found}
        parts = own_layouts.window_of(payload) if side == "key" and topic.endswith(CHANGELOG) else None
        if parts is None:
            return None
        made = self._with_schema(topic, side, parts.key, headers)
        if made is None:
            return {"format": None, "framing": None, **own_layouts.key_data(parts.key), "window": parts.window}
        if "problem" in made:
            whole = self._with_schema(topic, side, payload, headers)
            if whole is not None and "problem" not in whole:
                return whole  # the schema fits the whole key, so the bytes that look like a window belong to it
        return made | {"window": parts.window}

    def _with_schema(
        self, topic: str, side: Side, payload: bytes, headers: Iterable[tuple[bytes, bytes | None]]
    ) -> Decoded | None:
        if not headers and payload[:1] not in FIRST_BYTES:
            return None
        from kdump.schemas.framing import frame_of

        frame = frame_of(side, payload, headers)
        if frame is None:
            return None
        if frame.framing == "file":
            return self._file(payload)
        candidates = self.candidates(frame)
        if candidates is None:
            return None
        if not candidates:
            return self.missing_schema(frame) if self._every else None
        return self._framed(topic, side, payload, frame, candidates)

    def candidates(self, frame: SchemaFrame) -> list[SchemaVersion] | None:
        """Return the schema versions that a frame may refer to; empty if its schema is unknown.

        Return None if the bytes only look like a frame: its fingerprint is unknown, or its id is 0 and unknown. Also
        return None for a fingerprint if ``formats`` lacks Avro.
        """
        if frame.framing == "single-object":
            return self._by_fingerprint.get(frame.fingerprint) if "avro" in self._formats else None
        if frame.guid is not None:
            return self.store.with_guid(frame.guid)
        candidates = self.store.with_id(frame.schema_id or 0)
        return None if not candidates and frame.schema_id == 0 else candidates

    @cached_property
    def store(self) -> SchemaStore:
        return self._given() if callable(self._given) else self._given

    def reader(self, subject: str, version: int) -> AvroReader | ProtobufReader | None:
        """Return the reader of a version's payloads; None for JSON, an unknown version, or an unusable schema."""
        found = self.store.version(subject, version)
        return None if found is None else self.schema(found).reader

    def missing_schema(self, frame: SchemaFrame) -> Decoded:
        """Return the result for a frame with an unknown schema, and count it."""
        made = _begun(frame)
        self.missing += 1
        name = f"the GUID {frame.guid}" if frame.guid is not None else f"the id {frame.schema_id}"
        where = (
            f"no schema of {self.store.topic} has"
            if self.store
            else f"the paths have no topic {self.store.topic} to look up"
        )
        return made | {"problem": "schema-missing", "why": f"{where} {name}"}

    def written(
        self, topic: str, side: Side, payload: bytes, frame: SchemaFrame, candidates: list[SchemaVersion]
    ) -> WrittenPayload:
        """Return the most likely schema of a payload among ``candidates`` (not empty), and the message's position.

        The subjects are preferred in this order: ``TOPIC-SIDE``, ``TOPIC-NAME``, ``NAME`` (of the message), others.
        """
        from kdump.schemas.protobuf import read_indexes

        indexes: list[int] = []
        position = frame.position
        broken: UndecodableError | None = None
        if any(each.schema_type == "PROTOBUF" for each in candidates):
            try:
                if frame.framing == "header":
                    indexes = read_indexes(frame.indexes, 0)[0] if frame.indexes else [0]
                else:
                    indexes, position = read_indexes(payload, frame.position)
            except UndecodableError as error:
                broken = error
        schema = self.schema(self._choose(topic, side, candidates, indexes))
        if schema.format != "protobuf":
            position, broken = frame.position, None
        return WrittenPayload(schema, position, indexes, broken)

    def _framed(
        self, topic: str, side: Side, payload: bytes, frame: SchemaFrame, candidates: list[SchemaVersion]
    ) -> Decoded | None:
        schema, position, indexes, broken = self.written(topic, side, payload, frame, candidates)
        version = schema.version
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
            return made | schema.data(payload, position, indexes)
        except UndecodableError as error:
            return made | {"name": None, "problem": "payload-invalid", "why": str(error)}

    def _file(self, payload: bytes) -> Decoded | None:
        if "avro" not in self._formats:
            return None
        from kdump.schemas.avro import read_file

        made: Decoded = {"format": "avro", "framing": "file", "schemaId": None}
        try:
            records, name = read_file(payload, self._limit)
        except SchemaError as reason:
            return made | {"name": None, "problem": "schema-invalid", "why": str(reason)}
        except UndecodableError as reason:
            return made | {"name": None, "problem": "payload-invalid", "why": str(reason)}
        return made | {"name": name, "data": records}

    def schema(self, version: SchemaVersion) -> PayloadReader:
        key = (version.subject, version.version)
        made = self._schemas.get(key)
        if made is None:
            from kdump.schemas.readers import PayloadReader

            made = self._schemas[key] = PayloadReader(version, self.store)
        return made

    def _choose(self, topic: str, side: Side, candidates: list[SchemaVersion], indexes: list[int]) -> SchemaVersion:
        if len(candidates) == 1:
            return candidates[0]
        key = (topic, side, id(candidates), *indexes)
        chosen = self._choices.get(key)
        if chosen is None:
            chosen = self._choices[key] = self._chosen(topic, side, candidates, indexes), candidates
        return chosen[0]

    def _chosen(self, topic: str, side: Side, candidates: list[SchemaVersion], indexes: list[int]) -> SchemaVersion:
        first: dict[str, int] = {}
        for each in candidates:
            first[each.subject] = min(first.get(each.subject, each.first_offset), each.first_offset)

        from kdump.schemas.store import DEFAULT_CONTEXT, STATES, split_context

        def rank(each: SchemaVersion) -> tuple[int, bool, int]:
            context, bare = split_context(each.subject)
            match = 0
            if bare != f"{topic}-{side}":
                name = self.schema(each).name(indexes)
                match = 3 if name is None else 1 if bare == f"{topic}-{name}" else 2 if bare == name else 3
            return match, context != DEFAULT_CONTEXT, first[each.subject]

        subject = min(candidates, key=rank).subject
        of_subject = [each for each in candidates if each.subject == subject]
        return min(of_subject, key=lambda each: (STATES.index(each.state), -each.version))

    @cached_property
    def _by_fingerprint(self) -> dict[bytes, list[SchemaVersion]]:
        from kdump.schemas import readers

        return readers.fingerprints(self.store)


def _begun(frame: SchemaFrame) -> Decoded:
    made: Decoded = {"framing": frame.framing, "schemaId": frame.schema_id}
    if frame.guid is not None:
        made["guid"] = frame.guid
    return made
