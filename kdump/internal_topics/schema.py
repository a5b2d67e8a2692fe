"""Parses the notation that declares the messages of Kafka's own topics, for all releases together.

A text declares messages. A message is a header and its fields, in the order of Kafka's declaration::

    OffsetCommitValue; type 1, 0 before 4.1; versions 0-1 before 2.1, 0-3 before 3.4.1, 0-4; flexible 4+
        offset           int64
        leaderEpoch      int32   3+  = -1
        metadata         string
        commitTimestamp  int64
        expireTimestamp  int64   1   = -1
        topicId          uuid    4+  tag 0  from 4.1

A header has the name of Kafka's class and three lists: ``type`` (the type numbers of the record), ``versions`` (the
versions that can be read) and ``flexible`` (the versions with compact lengths and tagged fields, KIP-482). An item of a
list may be limited to releases: ``from 3.0``, ``before 4.1``. Of ``versions`` the first item for a release counts;
without one, the release does not have the message. A header that ends with a semicolon continues in the next line.

A field has a name; a type; its versions (default: all); ``null`` and the versions in which it may be null; ``tag`` and
its number; ``=`` and the default of an integer or bool, or null, if it is not zero, empty or false; its releases
(default: all). Types: int8 int16 int32 int64 uint16 uint32 float64 bool uuid string bytes records. Another type is a
struct: its fields are indented below this field, or below an earlier field of this type. ``[]`` is an array.

Source: the JSON definitions in ``src/main/resources/common/message`` of Kafka's modules, as its generator
(``org.apache.kafka.message``) reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Release: TypeAlias = tuple[int, ...]
Value: TypeAlias = "bool | int | float | str | bytes | list[Value] | dict[str, Value] | None"
Values: TypeAlias = "dict[str, Value]"

NEWEST: Final[Release] = (1 << 16,)
"""A release above all known ones, which selects the newest."""

SCALARS: Final[dict[str, Value]] = {
    "int8": 0,
    "int16": 0,
    "int32": 0,
    "int64": 0,
    "uint16": 0,
    "uint32": 0,
    "float64": 0.0,
    "bool": False,
    "uuid": bytes(16),
    "string": "",
    "bytes": b"",
    "records": b"",
}
"""Type -> the default of a field whose declaration has no default."""

T = TypeVar("T")


class Versions(NamedTuple):
    """The versions from ``lowest`` to ``highest``, both included."""

    lowest: int
    highest: int

    def has(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def meets(self, other: Versions) -> bool:
        return max(self.lowest, other.lowest) <= min(self.highest, other.highest)

    def nearest(self, version: int) -> int:
        return max(self.lowest, min(self.highest, version))


class Era(NamedTuple):
    since: Release = ()
    before: Release = (*NEWEST, 0)

    def has(self, release: Release) -> bool:
        return self.since <= release < self.before


ALL: Final = Versions(0, 0x7FFF)
NONE: Final = Versions(0, -1)
ALWAYS: Final = Era()


class PerRelease(Generic[T]):
    """A list of items. Each item is valid in the releases of its :class:`Era`."""

    def __init__(self, items: tuple[tuple[T, Era], ...]) -> None:
        self.items = items

    def at(self, release: Release) -> list[T]:
        return [item for item, era in self.items if era.has(release)]


class FieldSchema(NamedTuple):
    name: str
    type: str
    """One of SCALARS, or the name of a struct."""
    array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    default: str
    era: Era
    fields: tuple[FieldSchema, ...]


class Slot(NamedTuple):
    """A field as it is stored in one version of a message."""

    name: str
    type: str
    array: bool
    compact: bool
    """Whether lengths are stored as an unsigned varint of the length plus one. Equal for all fields of a version."""
    nullable: bool
    tag: int | None
    default: Callable[[], Value]
    struct: Struct | None


@dataclass(frozen=True, eq=False)
class Struct:
    """The fields of one version of a message in one release, or of a struct in it, in order of declaration."""

    name: str
    slots: tuple[Slot, ...]
    flexible: bool
    refused: int | None
    """The requested version if above the known ones, else None. Kafka refuses it. Fields are of the newest version."""
    plain: tuple[Slot, ...]
    """The fields without a tag, in the order in which they are stored."""
    tagged: dict[int, Slot]
    invalid_tags: frozenset[int]
    """The tags that exist only in other versions. Kafka's classes refuse them, but accept unknown tags."""
    version: int


class MessageSchema:
    def __init__(
        self,
        name: str,
        types: PerRelease[int],
        versions: PerRelease[Versions],
        flexible: PerRelease[Versions],
        fields: list[FieldSchema],
    ) -> None:
        self.name = name
        self.types = types
        self.declared_versions = versions
        self.flexible = flexible
        self.fields = tuple(fields)
        self._made: dict[tuple[int, Release], Struct] = {}
        self._releases: list[Release] = []

    def versions(self, release: Release = NEWEST) -> Versions | None:
        """Return the versions that ``release`` can read, or None if it lacks the message."""
        return next(iter(self.declared_versions.at(release)), None)

    def struct(self, version: int, release: Release = NEWEST) -> Struct:
        """Return the layout of a version or the nearest known one. Raises KeyError if the release lacks the message."""
        versions = self.versions(release)
        if versions is None:
            raise KeyError(self.name)
        nearest = versions.nearest(version)
        made = self._made.get((nearest, release))
        if made is None:
            made = self._made[nearest, release] = self._struct(nearest, release, versions)
        return made if version <= versions.highest else self._struct(nearest, release, versions, refused=version)

    def _struct(self, version: int, release: Release, known: Versions, refused: int | None = None) -> Struct:
        flexible = any(some.has(version) for some in self.flexible.at(release))
        return _struct(self.name, self.fields, version, release, known, flexible=flexible, refused=refused)

    def releases(self) -> list[Release]:
        """Return the releases that changed the message, newest first. The last item is (): the oldest layout."""
        if not self._releases:
            eras = [era for dated in (self.types, self.declared_versions, self.flexible) for _, era in dated.items]
            bounds = {bound for era in [*eras, *_eras(self.fields)] for bound in era}
            self._releases = sorted({(), *bounds} - {ALWAYS.before}, reverse=True)
        return self._releases

    def changed(self, release: Release) -> Release:
        """Return the last release up to ``release`` in which the message changed."""
        return next(some for some in self.releases() if some <= release)


def _eras(fields: tuple[FieldSchema, ...]) -> list[Era]:
    return [era for field in fields for era in (field.era, *_eras(field.fields))]


def _struct(
    name: str,
    fields: tuple[FieldSchema, ...],
    version: int,
    release: Release,
    known: Versions,
    *,
    flexible: bool,
    refused: int | None,
) -> Struct:
    slots, invalid_tags = [], set()
    for field in fields:
        if not field.era.has(release):
            continue
        if not field.versions.has(version):
            if field.tag is not None and field.versions.meets(known):
                invalid_tags.add(field.tag)
            continue
        inner = None
        if field.fields:
            inner = _struct(field.type, field.fields, version, release, known, flexible=flexible, refused=refused)
        default = _default(field, inner)
        nullable = field.nullable.has(version)
        slots.append(
            Slot(field.name, field.type, field.array, flexible, nullable, field.tag, default, inner),
        )
    return Struct(
        name,
        tuple(slots),
        flexible,
        refused,
        tuple(slot for slot in slots if slot.tag is None),
        {slot.tag: slot for slot in slots if slot.tag is not None},
        frozenset(invalid_tags),
        version if refused is None else refused,
    )


def _default(field: FieldSchema, struct: Struct | None) -> Callable[[], Value]:
    """Return a function that returns a field's default: a new list or dict for each call."""
    if field.default == "null":
        return lambda: None
    if field.array:
        return list
    if struct is not None:
        return lambda: defaults(struct)
    scalar = SCALARS[field.type]
    value: Value = {"true": True, "false": False}[field.default] if field.type == "bool" and field.default else scalar
    if field.default and field.type.startswith(("int", "uint")):
        value = int(field.default)
    return lambda: value


def defaults(struct: Struct) -> Values:
    return {slot.name: slot.default() for slot in struct.slots}


VERSIONS: Final = re.compile(r"(\d+)(\+|-\d+)?")


def _versions(text: str) -> Versions:
    match = VERSIONS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a range of versions: write it as 0, 0-3 or 1+")
    lowest, rest = int(match[1]), match[2] or ""
    if rest == "+":
        return Versions(lowest, ALL.highest)
    return Versions(lowest, int(rest[1:]) if rest else lowest)


def by_type(messages: Mapping[str, MessageSchema], suffix: str, release: Release = NEWEST) -> dict[int, MessageSchema]:
    """Return type -> message for the messages of ``release`` whose name ends in ``suffix``."""
    return {
        number: message
        for message in messages.values()
        if message.name.endswith(suffix) and message.versions(release)
        for number in message.types.at(release)
    }


def parse_release(text: str) -> Release:
    """Return ``3.4.1`` as (3, 4, 1)."""
    return tuple(int(part) for part in text.split("."))


def _pairs(words: list[str], allowed: set[str], line: str) -> dict[str, str]:
    pairs = dict(zip(words[::2], words[1::2], strict=True))
    if unknown := set(pairs) - allowed:
        raise ValueError(f"{line!r}: the notation has no word {sorted(unknown)}")
    return pairs


def _era(words: dict[str, str]) -> Era:
    since, before = words.get("from"), words.get("before")
    return Era(parse_release(since) if since else ALWAYS.since, parse_release(before) if before else ALWAYS.before)


def _dated(text: str, convert: Callable[[str], T]) -> PerRelease[T]:
    """Return the items of a text such as ``0-1 before 2.1, 0-3``, each parsed by ``convert``, with their releases."""
    items = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        value, *rest = item.split()
        items.append((convert(value), _era(_pairs(rest, {"from", "before"}, item))))
    return PerRelease(tuple(items))


def _header(line: str) -> tuple[str, dict[str, str]]:
    name, *clauses = (part.strip() for part in line.split(";"))
    header = {word: rest for word, _, rest in (clause.partition(" ") for clause in clauses)}
    if unknown := set(header) - {"type", "versions", "flexible"}:
        raise ValueError(f"{line!r}: a header has no part {sorted(unknown)}")
    return name, header


def _field(line: str, below: list[FieldSchema], known: dict[str, tuple[FieldSchema, ...]]) -> FieldSchema:
    """Return the field that a line declares. ``below`` are the fields indented below the line."""
    name, kind, *words = line.split()
    array = kind.startswith("[]")
    kind = kind.removeprefix("[]")
    if kind in SCALARS:
        fields: tuple[FieldSchema, ...] = ()
    else:
        fields = known[kind] = tuple(below) or known[kind]
    versions, nullable = ALL, NONE
    if words and VERSIONS.fullmatch(words[0]):
        versions = _versions(words.pop(0))
    if words and words[0] == "null":
        nullable = ALL
        words.pop(0)
        if words and VERSIONS.fullmatch(words[0]):
            nullable = _versions(words.pop(0))
    pairs = _pairs(words, {"tag", "=", "from", "before"}, line)
    tag = int(pairs["tag"]) if "tag" in pairs else None
    return FieldSchema(name, kind, array, versions, nullable, tag, pairs.get("=", ""), _era(pairs), fields)


class SchemaText(Mapping[str, "MessageSchema"]):
    """A mapping of the messages of a text by name. It parses the text on first use, because few runs need it."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _parsed(self) -> dict[str, MessageSchema]:
        return parse(self._text)

    def __getitem__(self, name: str) -> MessageSchema:
        return self._parsed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parsed)

    def __len__(self) -> int:
        return len(self._parsed)


def parse(text: str) -> dict[str, MessageSchema]:
    """Return the messages of a text, by name. Most errors of notation raise ValueError, KeyError or IndexError."""
    from textwrap import dedent

    lines = [line for line in dedent(text).splitlines() if line.strip()]
    known: dict[str, tuple[FieldSchema, ...]] = {}
    messages: dict[str, MessageSchema] = {}
    at = 0
    while at < len(lines):
        while lines[at].endswith(";"):
            lines[at : at + 2] = [f"{lines[at]} {lines[at + 1].strip()}"]
        name, header = _header(lines[at])
        fields, at = _block(lines, at + 1, 1, known)
        messages[name] = MessageSchema(
            name,
            _dated(header.get("type", ""), int),
            _dated(header["versions"], _versions),
            _dated(header.get("flexible", ""), _versions),
            fields,
        )
    return messages


def _block(
    lines: list[str], at: int, depth: int, known: dict[str, tuple[FieldSchema, ...]]
) -> tuple[list[FieldSchema], int]:
    """Parse the fields indented by ``depth`` steps. Return them and the number of the next line."""
    fields = []
    while at < len(lines) and _depth(lines[at]) == depth:
        line = lines[at]
        below, at = _block(lines, at + 1, depth + 1, known)
        fields.append(_field(line, below, known))
    if at < len(lines) and _depth(lines[at]) > depth:
        raise ValueError(f"{lines[at]!r} is indented too deeply")
    return fields, at


def _depth(line: str) -> int:
    steps, odd = divmod(len(line) - len(line.lstrip()), 4)
    if odd:
        raise ValueError(f"{line!r} is not indented by a multiple of four spaces")
    return steps
