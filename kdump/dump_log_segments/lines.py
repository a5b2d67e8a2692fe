"""Parses the notation of output lines, and returns the values of their fields for batches and records.

A text such as ``"| offset: {offset} isControl: {is_control:bool}"`` is parsed into literals and fields. The word after
the colon is the type that Java prints: ``bool``, ``optional`` (OptionalLong), ``option`` (Scala's Option), ``int`` (-1
for None). By default None is printed as null.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, TypeAlias

from kdump.dump_log_segments.java_files import absolute
from kdump.errors import DamageError
from kdump.formats.record import Record
from kdump.formats.record_layout import TIMESTAMP_TYPES
from kdump.parallel.costs import UNKNOWN
from kdump.primitives.encodings import java_utf8
from kdump.primitives.wire import to_int64

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from kdump.dump_log_segments.decoder_classes import Decoders
    from kdump.dump_log_segments.dialects.segments import Dialect
    from kdump.dump_log_segments.run import DumpRun
    from kdump.kernel.lines import Lines
    from kdump.primitives.wire import Bytes
    from kdump.records.magic_0_1 import Message
    from kdump.records.record_batch import RecordBatch

    FieldValues: TypeAlias = Callable[[str], object]


class Field(NamedTuple):
    name: str
    type: str


class Line(NamedTuple):
    parts: tuple[str | Field, ...]

    def render(self, value: Callable[[str], object]) -> str:
        """Return the line as text. ``value`` is called with the field names, in order, and returns their values."""
        return "".join(part if isinstance(part, str) else WRITE[part.type](value(part.name)) for part in self.parts)


WRITE: Final[dict[str, Callable[[object], str]]] = {
    "": lambda value: "null" if value is None else str(value),
    "int": lambda value: "-1" if value is None else str(value),
    "bool": lambda value: "true" if value else "false",
    "optional": lambda value: "OptionalLong.empty" if value is None else f"OptionalLong[{value}]",
    "option": lambda value: "None" if value is None else f"Some({value})",
}

_BRACE: Final = "\0"
"""Replaces a literal brace while a text is parsed."""
NUMBERS: Final = {"", "int"}
"""The types that compiled code can write."""
KINDS: Final = 64
"""Maximum number of kinds of batches, and of messages in wrappers, with cached lines. A delete horizon makes one."""


def split(lines: Iterable[Line], slots: Mapping[str, int], value: Callable[[str], object]) -> Iterator[str | int]:
    """Yield the literals and slots of lines. Without a slot, or if its type is not in NUMBERS, a field is a literal."""
    for line in lines:
        for part in line.parts:
            if isinstance(part, str):
                yield part
            elif part.name in slots and part.type in NUMBERS:
                yield slots[part.name]
            else:
                yield WRITE[part.type](value(part.name))


@cache
def line(text: str) -> Line:
    """Return ``text`` parsed into literals and fields. Raises ValueError for an unknown type."""
    begin, *fields = text.replace("{{", _BRACE).split("{")
    parts: list[str | Field] = [_literal(begin)]
    for field in fields:
        inside, _, after = field.partition("}")
        name, _, kind = inside.partition(":")
        if kind not in WRITE:
            raise ValueError(f"{text!r}: unknown type of a field: {kind}")
        parts += [Field(name, kind), _literal(after)]
    return Line(tuple(filter(None, parts)))


def _literal(text: str) -> str:
    return text.replace(_BRACE, "{").replace("}}", "}")


RECORD_FIELDS = frozenset({"offset", "timestamp", "key_size", "value_size", "sequence", "crc"})
"""Fields of a record line that are attributes of the record or message, not of its batch."""


def codec_name(dialect: Dialect, codec: int) -> str:
    """Return the release's name of a codec. Raises DamageError for a codec that the release lacks."""
    if codec >= len(dialect.codecs):
        raise DamageError("codec", f"this release has no compression codec {codec}", found=codec)
    return dialect.codecs[codec]


def contents(run: DumpRun, null_key: bool, null_value: bool) -> list[tuple[bytes, str]]:
    """Return a pair for each printed part of a record: the text before the part, and its field ``key`` or ``value``.

    Null is not printed, and with a null value some releases print no key. Empty without --print-data-log.
    """
    options, dialect = run.options, run.dialect
    if not options.print_data_log or (dialect.key_needs_value and null_value):
        return []
    bare = options.skip_record_metadata
    texts = []
    if not null_key:
        texts.append((b"| key: " if bare else b" key: ", "key"))
    if not null_value:
        prefix = dialect.bare_payload if bare and null_key else " "
        texts.append((f"{prefix}payload: ".encode(), "value"))
    return texts


class LineValues:
    """The values of fields for the lines of one segment. It keeps the last printed offset to find gaps."""

    whole_batches = False
    """Whether a batch of a run is left to plain Python unless compiled code can print it completely."""
    stops_at_frames = False
    """Whether plain Python prints the records whose payloads may begin with a schema id."""

    def __init__(self, run: DumpRun, path: str, decoders: Decoders) -> None:
        dialect = run.dialect
        self.run = run
        self.path = path
        self.decoders = decoders
        self.out: BinaryIO = run.out
        self.last_offset = -1
        self.armed = dialect.gaps_before_first
        """Whether a first offset other than 0 is a gap."""
        self.batch_line = [line(text) for text in dialect.batch]
        self.legacy_batch_line = [line(text) for text in dialect.legacy_batch]
        self.record_line = [line(text) for text in dialect.record]
        self.legacy_record_line = [line(text) for text in dialect.legacy_record]
        self.contents = [contents(run, bool(null & 1), bool(null & 2)) for null in range(4)]

    def lead(self, writer: Lines) -> None:
        """Copy the last offset and ``armed`` to the compiled writer, before it makes lines."""
        writer.last_offset, writer.armed = self.last_offset, self.armed

    def follow(self, writer: Lines, lines: Bytes) -> None:
        """Copy the last offset and the gaps from the compiled writer, then print its lines.

        A gap is a pair: the offsets before and after it. UNKNOWN before it is the last offset before these lines.
        """
        for last, current in writer.gaps:
            if last != UNKNOWN:
                self.gap(last, current)
            elif self.last_offset != -1 or self.armed:
                self.gap(self.last_offset, current)
        writer.gaps.clear()
        if writer.last_offset != UNKNOWN:
            self.last_offset = writer.last_offset
        self.out.write(lines)  # this may drop the lines (WrongAssumptionError): their gaps must then not be added

    def gap(self, last: int, current: int) -> None:
        """Add a gap unless ``current`` is the next offset after ``last``. Offsets wrap around as in Java."""
        if current != to_int64(last + 1):
            self.run.gaps.setdefault(absolute(self.path), []).append((last, current))

    def fields(self, batch: RecordBatch) -> FieldValues:
        """Return a function: name -> value of a field of a batch line. It raises DamageError for an unknown codec."""

        def value(name: str) -> object:
            if name == "codec":
                return codec_name(self.run.dialect, batch.codec)
            if name == "timestamp_type":
                return TIMESTAMP_TYPES[batch.timestamp_type]
            if name == "is_valid":
                return batch.crc_valid
            return getattr(batch, name)

        return value

    def record_fields(self, batch: RecordBatch, entry: Record | Message) -> FieldValues:
        """Like :meth:`fields`, but RECORD_FIELDS, ``header_keys`` and ``is_valid`` come from ``entry``."""
        of_batch = self.fields(batch)

        def value(name: str) -> object:
            if name in RECORD_FIELDS:
                return getattr(entry, name)
            if name == "header_keys":
                return ",".join(java_utf8(header.key) for header in entry.headers) if isinstance(entry, Record) else ""
            return entry.crc_valid is not False if name == "is_valid" else of_batch(name)

        return value
