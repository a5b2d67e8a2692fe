"""Makes rows in compiled code: JSON, CSV and format strings.

A compiled form (:class:`Shape`) has slots (placeholders) for the fields of a record, and literal text for values that
are equal in all its rows. If compiled code does not support a column or a batch, plain Python prints the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.dump_log_segments.lines import KINDS
from kdump.errors import KdumpError
from kdump.formats.record import Header
from kdump.kernel.batches import OTHERS
from kdump.kernel.digests import KeyedHash
from kdump.kernel.lines import ROW_SLOTS, SLOTS_OF_TEXTS, General, RowLines, Shape
from kdump.kernel.records import RECORD_NUMBERS, slots
from kdump.primitives import timestamps
from kdump.primitives.encodings import to_text
from kdump.printers import cells, json_text
from kdump.rows import columns as rows
from kdump.rows import values
from kdump.rows.redaction import HASHED, PREFIX
from kdump.segments.lazy_records import RunRecords
from kdump.segments.read_ahead import LinesAhead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kdump.kernel.lines import Part
    from kdump.primitives.wire import Bytes
    from kdump.printers.decoded_text import DecodedText
    from kdump.printers.format_string import Letter
    from kdump.printers.output_formats import PrintOptions
    from kdump.rows.columns import Column
    from kdump.rows.selection import SegmentFacts, SelectedBatch
    from kdump.schemas.decoder import PayloadDecoder
    from kdump.segments.batch_runs import Run
    from kdump.segments.lazy_records import BatchRecords
    from kdump.segments.read_ahead import MadeLines

CHUNK: Final = 1 << 22
"""Rows are written when they have this number of bytes or more."""
NUMBERS: Final = {
    f"{'record' if name in RECORD_NUMBERS else 'batch'}.{name}": slot for name, slot in slots(OTHERS).items()
} | {"batch.count": slots(OTHERS)["records_count"]}
"""Source of a numeric column -> slot in compiled code."""
KEY, VALUE = (next(column for column in rows.RECORD if column.name == name) for name in ("key", "value"))
_SPELT: Final = {"hex", "base64"}
_WAYS: Final = {"auto": "string", "utf8": "string"}


class KernelRows:
    """Makes a row for each record without parsing it in Python, or for each batch if ``batches`` is set."""

    whole_batches = True
    """Whether compiled code prints each batch of a run completely or not at all."""

    def __init__(self, options: PrintOptions, write: Callable[[Column, bytes], bytes]) -> None:
        """``write`` returns the text of a key, a value or its hash that compiled code cannot format."""
        self.columns, self.batches = options.columns, options.batches
        self.encoding, self.redactor = encoding, redactor = options.encoding, options.redactor
        self.marks = [column for column in self.columns if column.source in values.MARKS]
        self.file: SegmentFacts | None = None
        self.marked: list[Column] = []  # the columns of ``marks`` whose offset is known for this file
        self.shapes: dict[object, Shape] = {}
        self._literals: dict[str, bytes | None] = {}
        self._decoder: tuple[PayloadDecoder, str] | None = None
        self._decoded: DecodedText | None = None
        self._headers_way = _WAYS.get(encoding, encoding)
        if redactor is not None:
            self._headers_way = "general" if encoding in _SPELT else "hash"
        self._general = General(
            quote=json_text.quote,
            key=lambda data: write(KEY, self.shown(data)),
            value=lambda data: write(VALUE, self.shown(data)),
            mark=lambda data: (to_text(self.shown(data), encoding).encoding or "").encode(),
            headers=self._headers,
            marks=(b',"keyEncoding":"json"', b',"valueEncoding":"json"'),
            prefix=PREFIX.encode(),
            first=timestamps.FIRST,
            last=timestamps.LAST,
            decoded=self.decoded,
        )
        self.ahead = LinesAhead(self._lines)
        self.writer = self.ahead.writer

    def _lines(self) -> RowLines:
        keyed_hash = None if self.redactor is None else KeyedHash(self.redactor.key)
        lines = RowLines(self._general, headers=self._headers_way, keyed_hash=keyed_hash)
        lines.whole_batches = self.whole_batches
        return lines

    def parts(self, item: SelectedBatch, nulls: set[str]) -> list[Part] | None:
        """Return the literals and slots of a row; None if compiled code does not support a column.

        ``nulls`` has ``record.key`` or ``record.value`` if the row has a null key or value.
        """
        raise NotImplementedError

    def literal(self, column: Column, item: SelectedBatch) -> bytes | None:
        """Return the text of a column (cached per compiled form); None if it is numeric, or varies between rows."""
        if column.name not in self._literals:
            is_same = number(column) is None and is_literal(column, item)
            self._literals[column.name] = self.constant(column, item) if is_same else None
        return self._literals[column.name]

    def constant(self, column: Column, item: SelectedBatch) -> bytes:
        """Return the text of a column for which :func:`is_literal` is true."""
        raise NotImplementedError

    def decoded(self, key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> bytes:
        """Return the decoded payloads in the format of the row, or empty."""
        return self.decoded_text(key, value, headers)

    def decoded_text(self, key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> bytes:
        """Return the decoded payloads as a JSON object; empty if neither side is decoded."""
        if self._decoder is None:
            return b""
        if self._decoded is None or not self._decoded.is_of(*self._decoder):
            from kdump.printers.decoded_text import DecodedText

            self._decoded = DecodedText(*self._decoder)
        return self._decoded.text(key, value, headers)

    def decoded_slot(self, column: Column, item: SelectedBatch) -> int | None:
        """Return the slot of decoded payloads; None for other columns, or if compiled code cannot write it."""
        decoder, topic = item.file.decoder, item.file.layout or ""
        if column is not rows.DECODED or decoder is None or self.redactor is not None or values.has_words(topic):
            return None
        self._decoder = decoder, topic
        return _DECODED

    def shown(self, data: bytes) -> bytes:
        """Return a payload, or its hash with --redact."""
        return data if self.redactor is None else self.redactor.hash(data).encode()

    def _headers(self, pairs: Sequence[Header]) -> bytes:
        hidden = [pair if pair.value is None else Header(pair.key, self.shown(pair.value)) for pair in pairs]
        return json_text.headers(hidden, self.encoding).encode()

    def rows(
        self, item: SelectedBatch, records: BatchRecords | RunRecords, made: MadeLines | None
    ) -> Iterator[Bytes] | None:
        """Return an iterator of the rows of a batch or run in blocks, or None if plain Python must print them.

        A block is valid until the caller requests the next one. ``made``: the first rows of a run, from :meth:`make`.
        If the result for a run is None, the caller may pass its batches one by one.
        """
        shape = self.shape_of(item)
        if shape is None:
            return None
        if isinstance(records, RunRecords):
            return self._of_run(shape, records, made)
        return self._of_batch(shape) if self.begin(records) else None

    def make(self, item: SelectedBatch, run: Run) -> MadeLines | None:
        """Return a run's first rows; None if it is small, or its form is not compiled. Any thread may call this."""
        if item.file is not self.file or (marks := self._marks(item)) is None:
            return None
        shape = self.shapes.get(self._kind(item, marks))
        return None if shape is None else self.ahead.make(run, None, shape)

    def begin(self, records: BatchRecords) -> bool:
        """Give the records of a batch to compiled code. Return False if compiled code cannot read them."""
        others = [getattr(records.batch, name) for name in OTHERS]
        return self.writer.begin(records.data, records.start, records.batch.header, others)

    def shape_of(self, item: SelectedBatch) -> Shape | None:
        """Return the compiled form of the rows of a batch or run; None if plain Python must print them."""
        if item.file is not self.file and item.file != self.file:
            self.marked = [column for column in self.marks if values.mark(column, item) is not None]
            self.shapes.clear()
            self.file = item.file  # set last, because make() in a thread compares only the file
        marks = self._marks(item)
        if marks is None:
            return None
        kind = self._kind(item, marks)
        return self.shapes.get(kind) or self._compile(kind, item)

    def _marks(self, item: SelectedBatch) -> tuple[object, ...] | None:
        """Return ``belowLogStart`` and ``aboveHighWatermark`` of all rows; None if the rows have different values."""
        if not self.marked:
            return ()
        offsets = (item.base_offset, item.batch.last_offset) if item.run is None else item.run.offsets
        if any(values.crosses(column, item, offsets) for column in self.marked):
            return None
        return tuple([values.value(column, item) for column in self.marked])

    def _kind(self, item: SelectedBatch, marks: tuple[object, ...]) -> tuple[object, ...]:
        """Return the values that all rows of a compiled form share, as its cache key. ``marks``: :meth:`_marks`."""
        batch = item.batch
        return (batch.attributes, item.crc_valid, batch.delete_horizon_ms, item.transaction, marks)

    def _of_batch(self, shape: Shape) -> Iterator[Bytes]:
        writer = self.writer
        while left := writer.left:
            lines = writer.lines(None, shape, CHUNK)
            writer.gaps.clear()
            if writer.left == left:
                raise self._stuck()
            yield lines

    def _of_run(self, shape: Shape, records: RunRecords, made: MadeLines | None) -> Iterator[Bytes]:
        """Yield the rows of a run. Stop at an invalid, unchecked batch: set ``records.stop`` to its number."""
        head, of_record = self.lines(shape)
        writer, lines = self.ahead.begin(records.run, records.row, records.stop, made)
        while True:
            writer.gaps.clear()
            if writer.stuck and (writer.left or not records.may_break):
                raise self._stuck()
            if lines:  # empty if the last batches have no records
                yield lines
            if writer.stuck:
                records.stop = writer.row
            if not writer.left and writer.row == records.stop:
                break
            lines = writer.run(head, of_record, CHUNK)
        self.ahead.end(writer)

    def lines(self, shape: Shape) -> tuple[Shape | None, Shape | None]:
        """Return ``shape`` as (form of batches, form of records). One of the two is None."""
        return (shape, None) if self.batches else (None, shape)

    def _stuck(self) -> KdumpError:
        name = self.file.name if self.file else "-"
        return KdumpError(
            f"{name}: a bug in kdump: its compiled code accepted records that it cannot print. "
            "Run again with KDUMP_KERNEL=off"
        )

    def _compile(self, kind: object, item: SelectedBatch) -> Shape | None:
        variants = []
        self._literals.clear()
        run = item.run
        if self.batches:
            item = item._replace(records=())
        elif run is not None and run.may_break and not run.first_records_are_valid:
            return None
        for null in range(4):
            parts = self.parts(item, {source for bit, source in _NULLS.items() if null & bit})
            if parts is None:
                return None
            variants.append(parts)
        if any(_DECODED in parts for parts in variants) and values.needs_frame(item.file.layout):
            variants = [[part for part in parts if part != _DECODED] for parts in variants] + variants
        if len(self.shapes) >= KINDS:
            self.shapes.clear()
        shape = self.shapes[kind] = Shape([*map(_joined, variants)])
        return shape


_DECODED: Final = ROW_SLOTS["decoded"]
_NULLS: Final = {1: "record.key", 2: "record.value"}
LATEST: Final = "batch.max_timestamp"
"""The column source of a batch's largest timestamp. Compiled code writes it like the timestamp of a record."""


def _joined(parts: list[Part]) -> list[Part]:
    joined: list[Part] = []
    for part in parts:
        if isinstance(part, bytes) and joined and isinstance(joined[-1], bytes):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def number(column: Column) -> int | None:
    """Return the slot of a numeric column; None for other columns."""
    return NUMBERS.get(column.source) if column.type in {"int", "long"} else None


def is_literal(column: Column, item: SelectedBatch) -> bool:
    """Return whether a column has the same value in all rows of a compiled form. The column is not numeric."""
    return column.source != LATEST and values.is_constant(column, item)


class JsonRows(KernelRows):
    """Makes JSON objects, each between the two texts ``around``."""

    def __init__(self, shape: json_text.JsonShape, options: PrintOptions, around: tuple[bytes, bytes]) -> None:
        super().__init__(
            options._replace(columns=shape.columns),
            lambda column, data: json_text.content(column, data, options.encoding).encode(),
        )
        self.shape = shape
        self.before, self.after = around

    def parts(self, item: SelectedBatch, nulls: set[str]) -> list[Part] | None:
        parts: list[Part] = []
        for column in self.columns:
            if (text := self.literal(column, item)) is not None:
                parts.append(text)
                continue
            slot = number(column)
            if (decoded := self.decoded_slot(column, item)) is not None:
                if not parts:  # ``decoded`` may be empty, and the next field begins with a comma
                    return None
                parts.append(decoded)
                continue
            written = self._written(column) if slot is None else [slot]
            if written is None:
                return None
            parts += [f',"{column.name}":'.encode(), *([b"null"] if column.source in nulls else written)]
        first = next((at for at, part in enumerate(parts) if part), None)
        if first is not None and isinstance(part := parts[first], bytes):
            parts[first] = part.removeprefix(b",")
        return [self.before + b"{", *parts, b"}" + self.after]

    def constant(self, column: Column, item: SelectedBatch) -> bytes:
        return self.shape.constant(column, item).encode()

    def decoded(self, key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> bytes:
        text = self.decoded_text(key, value, headers)
        return b',"decoded":' + text if text else b""

    def _written(self, column: Column) -> list[Part] | None:
        name, encoding = column.name, self.encoding
        if column.type != "binary":
            slot = _JSON_SLOTS.get(column.source)
            return None if slot is None else [slot]
        if self.redactor is not None:
            if encoding in _SPELT:
                return [ROW_SLOTS[f"general_{name}"]]
            return [b'"' + PREFIX.encode(), SLOTS_OF_TEXTS[f"hash_{name}"], b'"']
        if encoding in _SPELT:
            return [b'"', SLOTS_OF_TEXTS[f"{encoding}_{name}"], f'","{name}Encoding":"{encoding}"'.encode()]
        return [ROW_SLOTS[f"{_WAYS.get(encoding, encoding)}_{name}"]]


_JSON_SLOTS: Final = {
    "record.timestamp": ROW_SLOTS["iso"],
    LATEST: ROW_SLOTS["iso"],
    "record.headers": ROW_SLOTS["headers"],
    "record.attributes": ROW_SLOTS["attributes"],
}


class CsvRows(KernelRows):
    def __init__(self, options: PrintOptions) -> None:
        super().__init__(options, lambda _, data: cells.quoted(to_text(data, options.encoding).text).encode())

    def parts(self, item: SelectedBatch, nulls: set[str]) -> list[Part] | None:
        parts: list[Part] = []
        for column in self.columns:
            written: list[Part] | None
            if (text := self.literal(column, item)) is not None:
                written = [text]
            else:
                slot = number(column)
                slot = self.decoded_slot(column, item) if slot is None else slot
                written = self._written(column, nulls) if slot is None else [slot]
            if written is None:
                return None
            marked = _MARKED.get((parts[-1], *written)) if parts and len(written) == 1 else None
            if marked is None:
                parts += [b",", *written]
            else:
                parts[-1] = marked
        return [*parts[1:], b"\n"]

    def decoded(self, key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> bytes:
        text = self.decoded_text(key, value, headers)
        return b'"' + text.replace(b'"', b'""') + b'"' if text else b""

    def constant(self, column: Column, item: SelectedBatch) -> bytes:
        return cells.quoted(cells.constant_cell(column, item, self.encoding)).encode()

    def _written(self, column: Column, nulls: set[str]) -> list[Part] | None:
        encoding = self.encoding
        of = rows.PAYLOAD_OF.get(column.source)
        if of is not None:
            if f"record.{of}" in nulls or (self.redactor is not None and encoding not in _SPELT):
                return [b""]
            return [encoding.encode() if encoding in _SPELT else ROW_SLOTS[f"mark_{of}"]]
        if column.type != "binary":
            slot = _CSV_SLOTS.get(column.source)
            return None if slot is None else [slot]
        if column.source in nulls:
            return [b""]
        if self.redactor is not None:
            if encoding in _SPELT:
                return [ROW_SLOTS[f"general_{column.name}"]]
            return [PREFIX.encode(), SLOTS_OF_TEXTS[f"hash_{column.name}"]]
        return [ROW_SLOTS[f"{encoding}_cell_{column.name}" if encoding in _SPELT else f"cell_{column.name}"]]


_MARKED: Final[dict[tuple[Part, ...], Part]] = {
    (ROW_SLOTS[f"cell_{name}"], ROW_SLOTS[f"mark_{name}"]): ROW_SLOTS[f"marked_cell_{name}"]
    for name in ("key", "value")
}
"""(slot for a payload, slot for the name of its encoding) -> one slot for both."""
_CSV_SLOTS: Final = {
    "record.timestamp": ROW_SLOTS["iso_cell"],
    LATEST: ROW_SLOTS["iso_cell"],
    "record.headers": ROW_SLOTS["headers_cell"],
    "record.attributes": ROW_SLOTS["attributes"],
}


class FormatRows(KernelRows):
    """Makes lines from a template of :func:`kdump.printers.format_string.parse`."""

    def __init__(self, template: Sequence[bytes | Letter], options: PrintOptions) -> None:
        super().__init__(options, lambda _, data: data)
        self.template = template

    def parts(self, item: SelectedBatch, nulls: set[str]) -> list[Part] | None:
        return [written for part in self.template for written in self._part(part, item, nulls)]

    def _part(self, part: bytes | Letter, item: SelectedBatch, nulls: set[str]) -> list[Part]:
        if isinstance(part, bytes):
            return [part]
        name = _PAYLOAD_LETTERS.get(part.letter)
        if name is None:
            slot = _LETTERS.get(part.letter)
            if slot is not None:
                return [slot]
            return [part.write(item, None)]  # type: ignore[arg-type]  # such letters do not use the record
        if part.letter in "ks":
            if f"record.{name}" in nulls:
                return [b""]
            prefix, way = (b"", "raw") if self.redactor is None else (PREFIX.encode(), "hash")
            return [prefix, SLOTS_OF_TEXTS[f"{way}_{name}"]]
        if self.redactor is not None and f"record.{name}" not in nulls:
            return [HASHED.to_bytes(4, "big") if part.letter == "R" else b"%d" % HASHED]
        return [ROW_SLOTS["size_bytes"] if part.letter == "R" else NUMBERS[f"record.{name}_size"]]


_PAYLOAD_LETTERS: Final = {"k": "key", "s": "value", "K": "key", "S": "value", "R": "value"}
_LETTERS: Final = {"o": NUMBERS["record.offset"], "T": NUMBERS["record.timestamp"], "h": ROW_SLOTS["pairs"]}
