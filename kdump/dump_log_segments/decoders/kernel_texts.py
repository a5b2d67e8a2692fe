"""Makes compiled writers (:mod:`kdump.kernel.internal_topics`) for decoder switches. They are faster than the parsers.

The parsers in Python print texts of :mod:`.before_json`, malformed records, and unknown types and versions.
"""

from __future__ import annotations

from functools import cache, lru_cache, partial
from string import Formatter
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.dump_log_segments.decoders import framed, java
from kdump.dump_log_segments.decoders.coordinator import (
    CONSUMER,
    GROUP,
    KEYS,
    MEMBER_BYTES,
    STATUS,
    CoordinatorParser,
)
from kdump.dump_log_segments.decoders.framed import FramedParser, MetadataParser, RemoteLogParser, metadata_head
from kdump.dump_log_segments.decoders.texts import DELETE
from kdump.internal_topics import consumer_offsets
from kdump.internal_topics.decode import kernel_reader
from kdump.internal_topics.interpreter import FIXED
from kdump.internal_topics.transaction_state import STATES
from kdump.kernel.internal_topics import ALWAYS, FieldText, Payloads, StructText
from kdump.kernel.texts import escapes

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.dump_log_segments.decoders.texts import Parser
    from kdump.internal_topics.schema import MessageSchema, Release, Slot, Struct
    from kdump.kernel.internal_topics import Message, SchemaReader

    General = Callable[[int, bytes | None, bytes | None], bytes]
    Find = Callable[[int, int], Message | None]

ESCAPES: Final = escapes(java.string)
WAYS: Final = {
    **dict.fromkeys((kind for kind in FIXED if "int" in kind), "number"),
    **{kind: kind for kind in ("string", "uuid", "bytes")},
    "records": "size",
}
"""Type -> its format in JSON; bool and float64 have none."""
BOOLS: Final = (b"false", b"true")
STATE_NAMES: Final = tuple(f'"{state}"'.encode() for state in STATES)
PLAIN: Final = {"string": "plain_string", "uuid": "plain_uuid"}
"""Type -> its format in the text that ``toString`` of a Java class prints."""


class Fronts(NamedTuple):
    """The texts before a key, before a payload that follows a key, and before a payload alone."""

    key: str
    payload: str
    alone: str


def payloads(parser: Parser, fronts: Fronts, general: General) -> Payloads:
    """Return the compiled writer for a parser. It calls ``general`` for records that compiled code cannot write."""
    match parser:
        case CoordinatorParser():
            return _coordinator(parser, fronts, general)
        case MetadataParser() | RemoteLogParser():
            return _framed(parser, fronts, general)
        case _:
            return Payloads(general, lambda _kind, _version: None)


def _coordinator(parser: CoordinatorParser, fronts: Fronts, general: General) -> Payloads:
    @lru_cache(maxsize=KEYS)
    def key(data: bytes) -> tuple[int, bytes | None]:
        number, text = parser.read_key(data)
        return number, None if text is None else f"{fronts.key}{text}".encode()

    def text(struct: Struct, version: int) -> Message:
        states = parser.words.names_states
        written = partial(json, struct, fronts.payload + parser.value_head(version), "}", states=states)
        if struct.name != GROUP:
            return kernel_reader(struct), written()
        other, consumer = written(), written(embedded=parser.release)
        return kernel_reader(struct), lambda values: consumer if values["protocolType"] == CONSUMER else other

    return Payloads(general, _find(parser.values, parser, text), -1, key, f"{fronts.payload}{DELETE}".encode())


def _framed(parser: MetadataParser | RemoteLogParser, fronts: Fronts, general: General) -> Payloads:
    def text(struct: Struct, version: int) -> Message:
        if isinstance(parser, MetadataParser):
            return kernel_reader(struct), json(struct, fronts.alone + metadata_head(struct, version), "}")
        return kernel_reader(struct), _of_class(
            struct, txn_index=parser.dialect.remote_log_txn_index, before=fronts.alone
        )

    return Payloads(general, _find(parser.types, parser, text), parser.words.frame)


def _find(
    messages: dict[int, MessageSchema], parser: CoordinatorParser | FramedParser, text: Callable[[Struct, int], Message]
) -> Find:
    """Return a function from type and version to a message, or to None for those that the release lacks."""

    def find(kind: int, version: int) -> Message | None:
        versions = messages[kind].versions(parser.release) if kind in messages else None
        if versions is None or not versions.has(version):
            return None
        return text(messages[kind].struct(version, parser.release), version)

    return find


@cache
def json(
    struct: Struct, before: str = "", after: str = "", *, embedded: Release | None = None, states: bool = False
) -> StructText:
    """Return a writer of a struct as :func:`.java.json` prints it, between the texts ``before`` and ``after``.

    ``embedded``: the release that decodes group members' bytes, or None. ``states``: write names of transaction states.
    """
    fields = [
        FieldText(f'"{STATUS}":'.encode(), STATUS, "name", STATE_NAMES)
        if states and slot.name == STATUS
        else _json_field(slot, embedded)
        for slot in struct.slots
    ]
    return StructText(fields, f"{before}{{".encode(), f"}}{after}".encode(), b",", ESCAPES)


def _json_field(slot: Slot, embedded: Release | None) -> FieldText:
    literal = f'"{slot.name}":'.encode()
    default = ALWAYS if slot.tag is None else slot.default()
    if embedded is not None and slot.name in MEMBER_BYTES:
        return FieldText(literal, slot.name, "embedded", _member_bytes(slot.name, embedded))
    if slot.struct is not None:
        return FieldText(literal, slot.name, "struct", json(slot.struct, embedded=embedded), slot.array, default)
    if slot.type == "bool":
        return FieldText(literal, slot.name, "name", BOOLS, slot.array, default)
    if slot.type not in WAYS:
        return FieldText(literal, slot.name, "call", partial(java.field, slot), default=default)
    return FieldText(literal, slot.name, WAYS[slot.type], array=slot.array, default=default)


def _member_bytes(name: str, release: Release) -> list[tuple[SchemaReader, StructText]]:
    """Return a reader and a writer for each version of the field ``name``, which has a group member's bytes."""
    message = consumer_offsets.MEMBER_MESSAGES[MEMBER_BYTES[name]]
    versions = message.versions(release)
    structs = [message.struct(version, release) for version in range(versions.highest + 1)] if versions else []
    return [(kernel_reader(struct), json(struct)) for struct in structs]


def _of_class(struct: Struct, *, txn_index: bool, before: str = "") -> StructText:
    """Return a writer of a struct as its class's ``toString`` prints it (:func:`.framed.remote_log_text`)."""
    slots = {slot.name: slot for slot in struct.slots}
    fields, literal = [], before
    for text, name, _, _ in Formatter().parse(framed.TEXTS[struct.name]):
        literal += text
        if name is not None and (txn_index or name != framed.TXN_INDEX):
            fields.append(_class_field(slots[name], literal.encode(), txn_index=txn_index))
            literal = ""
    return StructText(fields, b"", literal.encode(), b"", ESCAPES)


def _class_field(slot: Slot, literal: bytes, *, txn_index: bool) -> FieldText:
    if slot.struct is not None and not slot.array:
        return FieldText(literal, slot.name, "struct", _of_class(slot.struct, txn_index=txn_index))
    if slot.type in PLAIN:
        return FieldText(literal, slot.name, PLAIN[slot.type])
    if slot.name in framed.NAMES:
        return FieldText(literal, slot.name, "name", tuple(name.encode() for name in framed.NAMES[slot.name]))
    if slot.name == framed.EPOCHS:
        return FieldText(literal, slot.name, "map", ("leaderEpoch", "offset"))
    if slot.name == framed.END:
        return FieldText(literal, slot.name, "end", framed.START)
    if slot.name == framed.CUSTOM:
        return FieldText(literal, slot.name, "optional_size", tuple(text.encode() for text in framed.CUSTOM_TEXTS))
    return FieldText(literal, slot.name, WAYS[slot.type])
