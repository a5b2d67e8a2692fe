"""The decoders as programs for the kernel (:mod:`kdump.kernel.payloads`): the fast branch of the parsers.

The texts are those of the parsers beside this module. What has no program is left to them: releases that print texts
of their own, versions that a release does not know, and messages with fields that the kernel does not write.
"""

from __future__ import annotations

from array import array
from string import Formatter
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.dump_log_segments.decoders import java, remote_log
from kdump.dump_log_segments.decoders.coordinator import CONSUMER, GROUP, MEMBER_BYTES
from kdump.dump_log_segments.decoders.framed import metadata_head
from kdump.dump_log_segments.decoders.texts import DELETE
from kdump.dump_log_segments.dialects.payload import CoordinatorWords
from kdump.internal_topics import (
    cluster_metadata,
    consumer_offsets,
    remote_log_metadata,
    share_group_state,
    transaction_state,
)
from kdump.internal_topics.consumer_offsets import EMBEDDED
from kdump.internal_topics.decode import by_type
from kdump.internal_topics.interpreter import FIXED
from kdump.kernel.fields import COMPACT, FINDS, NULLABLE, PLACES, TAGGED
from kdump.kernel.payloads import WRITES, Program
from kdump.kernel.quoting import escapes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kdump.dump_log_segments.dialects.payload import FrameWords, PayloadDialect
    from kdump.internal_topics.schema import MessageSchema, Release, Slot, Struct

    Make = Callable[["Builder"], Callable[[Struct, int], int]]

UNSIGNED: Final = {"uint16", "uint32"}
END: Final = FINDS.index("end")
RUN: Final = FINDS.index("run")
NEVER_THERE: Final = 0x7FFFFFFF
"""The size of a field that no record has room for, so that the parser tells what is wrong with its tag."""
FOUND_AS: Final = {"string": "string", "bytes": "bytes", "records": "bytes"}
WRITTEN_AS: Final = {"bool": "bool", "uuid": "uuid", "string": "string", "bytes": "bytes", "records": "count"}


class Unknown(Exception):  # noqa: N818  it never leaves this module
    """The kernel has no steps for a struct."""


class Before(NamedTuple):
    """What stands in front of a key, of a payload behind a key, and of a payload alone."""

    key: str
    payload: str
    alone: str


class FieldPlace(NamedTuple):
    """Where a field is found: its place, and how many bytes behind it."""

    number: int
    bytes: int = 0


class Step(NamedTuple):
    """A writing step."""

    kind: str
    place: int = 0
    first: int = 0
    second: int = 0


class StructText:
    """What is written of a struct: literals and steps in turn."""

    def __init__(self) -> None:
        self.parts: list[tuple[bytes, Step]] = []
        self.rest = b""

    def literal(self, text: str) -> None:
        """Write ``text``, and then what comes next."""
        self.rest += text.encode()

    def step(self, kind: str, place: int = 0, first: int = 0, second: int = 0) -> int:
        """Write what the literals said so far, then this; return the number of the step."""
        self.parts.append((self.rest, Step(kind, place, first, second)))
        self.rest = b""
        return len(self.parts) - 1

    def jump_here(self, number: int) -> None:
        """Let the step of this number go ahead to the next one, where it has to jump."""
        if self.rest:
            self.step("literal")
        literal, step = self.parts[number]
        self.parts[number] = literal, step._replace(first=len(self.parts) - number)


class Builder:
    """Collects the structs of a program. The same struct, written the same way, stands there once."""

    def __init__(self) -> None:
        self.texts = bytearray(b"\0")
        self.literals: dict[bytes, int] = {b"": 0}
        self.code = array("i")

    def literal(self, text: bytes) -> tuple[int, int]:
        """Return where a literal starts, and its size."""
        start = self.literals.get(text)
        if start is None:
            start = self.literals[text] = len(self.texts)
            self.texts += text
        return start, len(text)

    def names(self, texts: Iterable[str]) -> int:
        """Add a table of names; return its index."""
        spans = [self.literal(text.encode()) for text in texts]
        return self.add([len(spans), *(number for span in spans for number in span)])

    def add(self, numbers: Iterable[int]) -> int:
        """Add numbers; return the index of the first."""
        index = len(self.code)
        self.code.extend(numbers)
        return index

    def struct(self, finds: list[int], text: StructText) -> int:
        """Add a struct; return its index."""
        index = self.add([0, *finds])
        self.code[index] = len(self.code)
        for literal, step in text.parts:
            self.add((*self.literal(literal), WRITES.index(step.kind), step.place, step.first, step.second))
        return index

    def program(self, frame: int, tables: tuple[int, int, int, int], deleted: str) -> Program:
        """Return the program: frame, how many types and versions, the tables of keys and of values, a null value."""
        span = self.literal(deleted.encode())
        return Program(bytes(self.texts), self.code or array("i", [0]), escapes(java.string), frame, *tables, span)


class FindingSteps:
    """The finding steps of a struct, and the places of its fields by name."""

    def __init__(self, struct: Struct, inner: Callable[[Slot], int]) -> None:
        """``inner`` returns the index of the struct that a field holds. Raises Unknown."""
        self.inner = inner
        self.steps: list[int] = []
        self.places: dict[str, FieldPlace] = {}
        self.used = 0
        run = -1
        for slot in struct.plain:
            if slot.type in FIXED and not slot.array:
                if run < 0:
                    run = len(self.steps)
                    self.steps += [RUN, self.place(), 0, 0, 0]
                self.places[slot.name] = FieldPlace(self.steps[run + 1], self.steps[run + 2])
                self.steps[run + 2] += FIXED[slot.type].size
            else:
                run = -1
                self.steps += self.field(slot)
        if struct.flexible:
            invalid = [RUN, self.place(), NEVER_THERE, 0, 0] if struct.invalid_tags else []
            self.steps += [FINDS.index("tags"), len(struct.tagged) + len(struct.invalid_tags), 0, 0, 0]
            for tag, slot in struct.tagged.items():
                self.steps += [tag, *self.field(slot)]
            for tag in sorted(struct.invalid_tags):
                self.steps += [tag, *invalid]
        else:
            self.steps += [END, 0, 0, 0, 0]

    def place(self) -> int:
        if self.used == PLACES:
            raise Unknown
        self.used += 1
        return self.used - 1

    def field(self, slot: Slot) -> list[int]:
        """Return the step that finds a field."""
        place = self.place()
        self.places[slot.name] = FieldPlace(place)
        flags = COMPACT * slot.compact | NULLABLE * slot.nullable | TAGGED * (slot.tag is not None)
        if slot.array:
            if slot.type in FIXED:
                element = [RUN, FIXED[slot.type].size]
            elif slot.struct is not None:
                element = [FINDS.index("struct"), self.inner(slot)]
            else:
                element = [FINDS.index(FOUND_AS[slot.type]), 0]
            return [FINDS.index("array"), place, flags, *element]
        if slot.struct is not None:
            return [FINDS.index("struct"), place, flags, self.inner(slot), 0]
        if slot.type in FIXED:
            return [RUN, place, FIXED[slot.type].size, 0, 0]
        return [FINDS.index(FOUND_AS[slot.type]), place, flags, 0, 0]


class Shapes:
    """Makes the structs of a program in one way of writing them. Raises Unknown."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.made: dict[int, tuple[Struct, int]] = {}

    def inner(self, slot: Slot) -> int:
        """Return the index of the struct that a field holds, made once."""
        if slot.struct is None:
            raise Unknown
        known = self.made.get(id(slot.struct))
        if known is None:
            known = self.made[id(slot.struct)] = slot.struct, self.struct(slot.struct)
        return known[1]

    def struct(self, struct: Struct, before: str = "", after: str = "") -> int:
        """Return the index of a struct, with texts around it."""
        finder, text = FindingSteps(struct, self.inner), StructText()
        text.literal(before)
        self.write(struct, finder.places, text)
        text.literal(after)
        text.step("end")
        return self.builder.struct(finder.steps, text)

    def top(self, struct: Struct, before: str, after: str) -> int:
        """Return the index of a message; -1 when the kernel has no steps for it."""
        try:
            return self.struct(struct, before, after)
        except Unknown:
            return -1

    def write(self, struct: Struct, places: Mapping[str, FieldPlace], text: StructText) -> None:
        """Write the fields of a struct."""
        raise NotImplementedError

    def value(self, slot: Slot, place: FieldPlace, text: StructText) -> None:
        """Write one field as JSON."""
        if slot.array:
            text.step("array", place.number, COMPACT * slot.compact)
            if slot.type == "records":
                raise Unknown
            self.one(slot, FieldPlace(0), text)
        else:
            self.one(slot, place, text)

    def one(self, slot: Slot, place: FieldPlace, text: StructText) -> None:
        """Write a field that is no array, or an element of one."""
        if slot.struct is not None:
            text.step("struct", place.number, self.inner(slot))
        elif slot.type in WRITTEN_AS:
            quoted = {"string": (1, 0), "uuid": (place.bytes, 1)}.get(slot.type, (place.bytes, 0))
            text.step(WRITTEN_AS[slot.type], place.number, *quoted)
        elif slot.type == "float64":
            raise Unknown
        else:
            size = FIXED[slot.type].size
            text.step("number", place.number, place.bytes, -size if slot.type in UNSIGNED else size)


class JsonShapes(Shapes):
    """Structs as JSON. Bytes of the fields in ``embedded`` hold structs: for each, a table of them and its size."""

    def __init__(self, builder: Builder, embedded: Mapping[str, tuple[int, int]] | None = None) -> None:
        super().__init__(builder)
        self.embedded = embedded or {}

    def write(self, struct: Struct, places: Mapping[str, FieldPlace], text: StructText) -> None:
        """Write fields in order of declaration, tagged ones unless they have their default."""
        text.literal("{")
        for slot in struct.slots:
            place = places[slot.name]
            if slot.tag is None:
                text.literal(f'"{slot.name}":')
                self.value(slot, place, text)
                text.literal(",")
            elif slot.type == "records":  # its text does not tell it from the default
                raise Unknown
            else:
                absent = text.step("absent", place.number)
                text.literal(f'"{slot.name}":')
                self.value(slot, place, text)
                default = f'"{slot.name}":{java.field(slot, slot.default())}'
                text.step("default", 0, *self.builder.literal(default.encode()))
                text.jump_here(absent)
        text.step("close")

    def one(self, slot: Slot, place: FieldPlace, text: StructText) -> None:
        """Write a field that is no array, or an element of one."""
        if slot.name in self.embedded:
            text.step("embedded", place.number, *self.embedded[slot.name])
        else:
            super().one(slot, place, text)


class Groups(JsonShapes):
    """Groups as JSON, those of the consumer protocol with what their members' bytes say."""

    def __init__(self, builder: Builder, release: Release) -> None:
        super().__init__(builder)
        embedded = {}
        for name, message in MEMBER_BYTES.items():
            versions = EMBEDDED[message].versions(release)
            if versions is None:
                raise Unknown
            structs = [
                self.struct(EMBEDDED[message].struct(version, release)) for version in range(versions.highest + 1)
            ]
            embedded[name] = builder.add(structs), len(structs)
        self.consumers = JsonShapes(builder, embedded)

    def struct(self, struct: Struct, before: str = "", after: str = "") -> int:
        """Return the index of a struct, with texts around it."""
        if struct.name != GROUP:
            return super().struct(struct, before, after)
        finder, text = FindingSteps(struct, self.inner), StructText()
        text.literal(CONSUMER)
        other = text.step("text", finder.places["protocolType"].number)
        text.literal(before)
        self.consumers.write(struct, finder.places, text)
        text.literal(after)
        text.step("end")
        text.jump_here(other)
        text.literal(before)
        self.write(struct, finder.places, text)
        text.literal(after)
        text.step("end")
        return self.builder.struct(finder.steps, text)


class RemoteLog(Shapes):
    """Remote log metadata as its classes print it."""

    def __init__(self, builder: Builder, *, txn_index: bool) -> None:
        super().__init__(builder)
        self.txn_index = txn_index

    def write(self, struct: Struct, places: Mapping[str, FieldPlace], text: StructText) -> None:
        """Write the fields as the text of the class has them."""
        slots = {slot.name: slot for slot in struct.slots}
        if struct.name in remote_log.WITH_OFFSETS:
            start, end = places["startOffset"], places["endOffset"]
            if end != (start.number, start.bytes + 8):
                raise Unknown
            text.step("ordered", *start)
        for literal, name, _, _ in Formatter().parse(remote_log.TEXTS[struct.name]):
            text.literal(literal)
            if name is None or (name == "txnIndexEmpty" and not self.txn_index):
                continue
            if name not in slots:
                raise Unknown
            self.field(slots[name], places[name], text)

    def field(self, slot: Slot, place: FieldPlace, text: StructText) -> None:
        """Write one field."""
        if slot.name in remote_log.STATES:
            text.step("name", *place, self.builder.names(remote_log.STATES[slot.name]))
        elif slot.name == "segmentLeaderEpochs" and slot.struct is not None:
            text.step("map", place.number, COMPACT * slot.compact)
            text.step("struct", 0, self.struct(slot.struct, after=", "))
        elif slot.name == "customMetadata":
            before, after = remote_log.CUSTOM
            there = text.step("null", place.number)
            text.literal(remote_log.NO_CUSTOM)
            past = text.step("jump")
            text.jump_here(there)
            text.literal(before)
            text.step("count", place.number)
            text.literal(after)
            text.jump_here(past)
        elif slot.name == "txnIndexEmpty":
            text.literal(remote_log.TXN_INDEX)
            absent = text.step("absent", place.number)
            text.step("bool", *place)
            past = text.step("jump")
            text.jump_here(absent)
            text.literal("false")
            text.jump_here(past)
        elif slot.type == "string":
            text.step("string", place.number, 0)
        elif slot.type == "uuid":
            text.step("uuid", *place, 0)
        else:
            self.one(slot, place, text)


def _versioned(
    builder: Builder, messages: Mapping[int, MessageSchema], release: Release, make: Callable[[Struct, int], int]
) -> tuple[int, int, int]:
    """Return the table of the structs of messages by type and version, how many types and how many versions it has."""
    known = {kind: message.versions(release) for kind, message in messages.items()}
    types = max(known, default=-1) + 1
    count = max((versions.highest for versions in known.values() if versions), default=-1) + 1
    table = [-1] * (types * count)
    for kind, versions in known.items():
        for version in range(versions.lowest, versions.highest + 1) if versions else ():
            table[kind * count + version] = make(messages[kind].struct(version, release), version)
    return builder.add(table), types, count


def coordinator(
    messages: dict[str, MessageSchema], words: CoordinatorWords, release: Release, before: Before
) -> Program:
    """Return the program of :func:`kdump.dump_log_segments.decoders.coordinator.parser`."""
    builder = Builder()
    shapes = Groups(builder, release)
    keys = by_type(messages, "Key", release)
    made = {
        kind: shapes.top(message.struct(0, release), f'{before.key}{{"type":"{kind}","data":', "}")
        for kind, message in keys.items()
    }

    def value(struct: Struct, version: int) -> int:
        return shapes.top(struct, f'{before.payload}{{"{words.value_version}":"{version}","data":', "}")

    values, types, versions = _versioned(builder, by_type(messages, "Value", release), release, value)
    table = builder.add([made.get(kind, -1) for kind in range(types)])
    return builder.program(-1, (types, versions, table, values), before.payload + DELETE)


def framed(messages: dict[str, MessageSchema], words: FrameWords, release: Release, make: Make) -> Program:
    """Return the program of a topic whose messages are framed; ``make`` gives what makes their structs."""
    builder = Builder()
    values, types, versions = _versioned(builder, by_type(messages, "Record", release), release, make(builder))
    return builder.program(words.frame, (types, versions, 0, values), "")


def metadata(words: FrameWords, release: Release, before: Before) -> Program:
    """Return the program of :func:`kdump.dump_log_segments.decoders.framed.metadata_parser`."""

    def make(builder: Builder) -> Callable[[Struct, int], int]:
        shapes = JsonShapes(builder)
        return lambda struct, version: shapes.top(struct, before.alone + metadata_head(struct, version), "}")

    return framed(cluster_metadata.MESSAGES, words, release, make)


def remote(words: FrameWords, release: Release, before: Before, *, txn_index: bool) -> Program:
    """Return the program of :func:`kdump.dump_log_segments.decoders.framed.remote_log_parser`."""

    def make(builder: Builder) -> Callable[[Struct, int], int]:
        shapes = RemoteLog(builder, txn_index=txn_index)
        return lambda struct, _: shapes.top(struct, before.alone, "")

    return framed(remote_log_metadata.MESSAGES, words, release, make)


def none() -> Program:
    """Return a program that knows nothing."""
    return Builder().program(-1, (0, 0, 0, 0), "")


def _offsets(dialect: PayloadDialect, before: Before) -> Program:
    if isinstance(dialect.offsets, CoordinatorWords):
        return coordinator(consumer_offsets.MESSAGES, dialect.offsets, dialect.definitions, before)
    return none()


def _transactions(dialect: PayloadDialect, before: Before) -> Program:
    if isinstance(dialect.transactions, CoordinatorWords):
        return coordinator(transaction_state.MESSAGES, dialect.transactions, dialect.definitions, before)
    return none()


PROGRAMS: Final[dict[str, Callable[[PayloadDialect, Before], Program]]] = {
    "offsets-decoder": _offsets,
    "transaction-log-decoder": _transactions,
    "cluster-metadata-decoder": lambda dialect, before: metadata(dialect.metadata, dialect.definitions, before),
    "remote-log-metadata-decoder": lambda dialect, before: remote(
        dialect.remote_log, dialect.definitions, before, txn_index=dialect.remote_log_txn_index
    ),
    "share-group-state-decoder": lambda dialect, before: coordinator(
        share_group_state.MESSAGES, dialect.share, dialect.definitions, before
    ),
}
"""Switch -> what makes its program, as :data:`kdump.dump_log_segments.decoders.switches.PARSERS` has its parser."""
