"""Prints the lines of a dialect in compiled code, which is faster than :mod:`kdump.dump_log_segments.log_printer`.

``KernelLines`` prints batches of magic 2, ``KernelEntries`` messages of magic 0 and 1. Both compile a line into a
:class:`Shape` for all batches or messages of the same kind: literals, and slots that compiled code fills in. Malformed
batches and messages, control and large records, and records of messages under a decoder switch are left to log_printer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.dump_log_segments.lines import KINDS, split
from kdump.errors import DamageError
from kdump.formats.record import LARGE_BATCH
from kdump.formats.record_layout import BATCH_HEADER, LOG_APPEND_TIME
from kdump.kernel.batches import OTHERS
from kdump.kernel.digests import KeyedHash
from kdump.kernel.lines import MESSAGE_SLOTS, SLOTS_OF_TEXTS, Lines, Messages, Shape, slots
from kdump.kernel.records import FAR
from kdump.primitives.compression import NONE
from kdump.segments.read_ahead import LinesAhead

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kdump.dump_log_segments.decoder_classes import Decoders
    from kdump.dump_log_segments.decoders.texts import Parser
    from kdump.dump_log_segments.lines import FieldValues, Line, LineValues
    from kdump.dump_log_segments.run import DumpRun
    from kdump.kernel.lines import Part
    from kdump.primitives.wire import Bytes
    from kdump.records.magic_0_1 import Message
    from kdump.records.magic_2 import Batch
    from kdump.segments.batch_runs import Entries, Run
    from kdump.segments.read_ahead import MadeLines

CHUNK: Final = 1 << 20
"""Bytes of lines after which a call of compiled code ends, except for compressed batches up to WHOLE."""
WHOLE: Final = 1 << 18
"""Largest compressed batch, in decompressed bytes, whose lines are made in one call, or not at all if malformed."""
SLOTS: Final = slots(OTHERS)
OF_BATCH: Final = {**SLOTS, "count": SLOTS["records_count"]}
"""Field -> its number in SLOTS. Batches with equal attributes, crc_valid and delete horizon have equal other fields."""
OF_RECORD: Final = {name: slot for name, slot in OF_BATCH.items() if name != "crc"}
OF_RECORDS: Final = {"is_valid": True, "crc": None}
"""Values of these fields in lines of magic 2 records, which have no checksum of their own."""


OF_MESSAGE: Final = {name: MESSAGE_SLOTS[name] for name in ("offset", "timestamp", "key_size", "value_size", "crc")}
OF_ENTRY: Final = {
    **OF_MESSAGE,
    "base_offset": MESSAGE_SLOTS["offset"],
    "last_offset": MESSAGE_SLOTS["offset"],
    "max_timestamp": MESSAGE_SLOTS["timestamp"],
    "position": MESSAGE_SLOTS["position"],
    "size": MESSAGE_SLOTS["size"],
}
"""Field -> its number in MESSAGE_SLOTS, for an uncompressed message that is not in a wrapper."""
OF_WRAPPER: Final = OF_ENTRY.keys() - OF_MESSAGE.keys()
"""Fields that an inner message takes from its wrapper."""


class KernelLines:
    def __init__(self, printer: LineValues) -> None:
        self.printer = printer
        self.decodes = printer.run.parser is not None
        self.ahead = LinesAhead(self._lines)
        self.writer = self.ahead.writer
        self.shapes = printer.run.shapes

    def end(self) -> None:
        del self.ahead, self.writer

    def batch(self, batch: Batch, *, head: bool, deep: bool) -> int | None:
        """Print a batch: its line if ``head``, its records if ``deep``. Return None if all of this is printed.

        Otherwise return the number of printed records. If this is 0, the line of the batch is not printed either.
        """
        header = batch.header
        if batch.size < BATCH_HEADER.size:
            return 0
        shapes = self._shapes(batch, deep=deep)
        if shapes is None:
            return 0
        try:
            limit = self.printer.run.options.max_batch_bytes
            in_chunks = self.printer.run.dialect.reads_lz4_in_chunks
            data, start = batch.payload(limit, in_chunks=in_chunks) if deep and header.records_count else (b"", 0)
        except DamageError:
            return 0
        if len(data) >= LARGE_BATCH and _holds_large(batch, data, start):
            return 0
        printer, writer = self.printer, self.writer
        others = (batch.last_offset, batch.last_sequence, batch.position, batch.size)
        if not writer.begin(data, start, header, others):
            return 0
        if not deep:
            printer.out.write(writer.lines(shapes[0], None, 0))
            return None
        printer.lead(writer)
        limit = CHUNK
        if batch.codec and writer.left:
            if len(data) <= WHOLE:
                limit = 1 << 62
            elif not writer.sound():
                return 0
        return self.records(shapes[0] if head else None, shapes[1], limit, header.records_count)

    def print_batches(
        self, batches: Run, first: int, stop: int, made: MadeLines | None, *, head: bool, deep: bool
    ) -> tuple[int, int]:
        """Print the batches ``first`` to ``stop`` (exclusive) of a run. ``made`` has lines from :meth:`make`.

        Return the number of the first batch that is not printed completely (``stop`` if all are), and the count of its
        printed records. The line of the batch is printed too if this count is not 0.
        """
        shapes = self._shapes(batches.first, deep=deep)
        if shapes is None:
            return first, 0
        printer = self.printer
        self.writer.memory = getattr(printer.out, "room", None)  # only this thread writes to the output
        writer, lines = self.ahead.begin(batches, first, stop, made)
        if lines:
            printer.follow(writer, lines)
        printer.lead(writer)
        while not writer.stuck and (writer.left or writer.row < stop):
            printer.follow(writer, writer.run(shapes[0] if head else None, shapes[1] if deep else None, CHUNK))
        self.ahead.end(writer)
        if not writer.left:
            return writer.row, 0
        return writer.row - 1, batches.batch(writer.row - 1).count - writer.left

    def make(self, batches: Run, *, head: bool) -> MadeLines | None:
        """Return the first lines of a run for :meth:`print_batches`, or None. Any thread may call this."""
        shapes = self._shapes(batches.first, deep=True)
        return None if shapes is None else self.ahead.make(batches, shapes[0] if head else None, shapes[1])

    def _shapes(self, batch: Batch, *, deep: bool) -> tuple[Shape, Shape] | None:
        """Return the compiled lines of a batch and of its records, or None if compiled code cannot print the batch."""
        if deep and batch.is_control:
            return None
        try:
            key = (batch.attributes, batch.crc_valid, batch.delete_horizon_ms)
            return self.shapes.get(key) or self.compile(key, batch)
        except DamageError:
            return None

    def _lines(self) -> Lines:
        run, decoders = self.printer.run, self.printer.decoders
        if run.parser is not None:
            return _decoding(run, run.parser)
        lines = Lines(*decoders.of_classes, KeyedHash(decoders.secret))
        lines.armed, lines.whole_batches = self.printer.armed, self.printer.whole_batches
        lines.stops_at_frames = self.printer.stops_at_frames
        return lines

    def records(self, head: Shape | None, shape: Shape, limit: int, count: int) -> int | None:
        """Print a batch: its line unless ``head`` is None, then its records. Return the same as :meth:`batch`."""
        printer, writer = self.printer, self.writer
        while True:
            lines = writer.lines(head, shape, limit)
            if writer.left and (limit > CHUNK or writer.left == count):
                writer.gaps.clear()
                return 0
            head = None
            printer.follow(writer, lines)
            if not writer.left:
                return None
            if len(lines) < limit:
                return count - int(writer.left)

    def compile(self, key: tuple[int, bool, int | None], batch: Batch) -> tuple[Shape, Shape]:
        """Compile the lines of a batch and of its records. They are cached for all batches with this ``key``."""
        printer = self.printer
        value = printer.fields(batch)
        contents = [[(b"", "decoded")]] * 4 if self.decodes and printer.run.options.print_data_log else printer.contents
        own = [*encoded(split(printer.batch_line, OF_BATCH, value)), b"\n"]
        meta: list[Part] = []
        if not printer.run.options.skip_record_metadata:
            meta = encoded(
                split(
                    printer.record_line,
                    OF_RECORD,
                    lambda name: OF_RECORDS[name] if name in OF_RECORDS else value(name),
                )
            )
        shapes = (Shape([own] * 4), Shape([[*meta, *shown(content, printer.decoders), b"\n"] for content in contents]))
        if len(self.shapes) >= KINDS:
            self.shapes.clear()
        self.shapes[key] = shapes
        return shapes


class KernelEntries:
    def __init__(self, printer: LineValues) -> None:
        self.printer = printer
        self.writer = Messages(*printer.decoders.of_classes)
        self.entries: dict[tuple[int, int], Shape] = {}
        self.inner: dict[tuple[int, int, int], Shape] = {}
        names = {part.name for line in printer.legacy_record_line for part in line.parts if not isinstance(part, str)}
        self.lasting = printer.run.options.skip_record_metadata or not names & OF_WRAPPER
        """Whether lines of inner messages are independent of the wrapper, so that they can be cached."""

    def end(self) -> None:
        del self.writer

    def print_messages(self, messages: Entries, *, head: bool, deep: bool) -> Iterator[Message]:
        """Print batch lines if ``head``, and records if ``deep``. Yield the messages that the caller must print."""
        writer = self.writer
        by_hand = deep and self.printer.run.parser is not None
        writer.turn_to(messages.block, messages.at, messages.stop, place=messages.start)
        while (at := writer.position()) < messages.stop:
            entry = messages.entry(at)
            key = (entry.magic, entry.attributes)
            done = writer.done
            if not by_hand:
                shape = self.entries.get(key) or self.of_entry(key, entry, head=head, deep=deep)
                self.print(shape, entry, CHUNK, deep=deep)
            if writer.done == done:
                yield entry
                writer.skip(entry.size)

    def wrapper(self, batch: Message) -> int | None:
        """Print the messages inside a wrapper. Return None if all are printed, else the number of printed messages."""
        run = self.printer.run
        if batch.codec == NONE or batch.magic not in (0, 1) or run.parser is not None:
            return 0
        writer = self.writer
        in_chunks = run.dialect.reads_lz4_in_chunks
        try:
            data = batch.unpacked(batch.codec, run.options.max_batch_bytes, in_chunks=in_chunks)
        except DamageError:  # raised again by plain Python
            return 0
        try:
            writer.turn_to(data, 0, len(data))
            last = writer.last_offset_stored()
            base = 0 if last is None else batch.inner_base(last)
            if last is None or not -FAR < base < FAR:
                return 0
            timestamp = -1
            if batch.timestamp_type == LOG_APPEND_TIME:
                timestamp = batch.timestamp
                if timestamp < 0:
                    return 0
            writer.turn_to(data, 0, len(data), base=base, timestamp=timestamp)
            done = -1
            while writer.done > done and writer.position() < len(data):
                done = writer.done
                message = batch.inner(data, writer.position(), base)
                if message.magic != batch.magic or message.codec != NONE:
                    break
                self.print(self.of_inner(batch, message), message, CHUNK, deep=True)
        except DamageError:
            pass
        return int(writer.done) if writer.position() < len(data) else None

    def print(self, shape: Shape, first: Message, limit: int, *, deep: bool) -> None:
        """Print ``first`` and the next messages of its kind, in at most about ``limit`` bytes."""
        self.printer.lead(self.writer)
        lines = self.writer.lines_like(shape, first.magic, first.attributes & 0xFF, limit, deep=deep)
        self.printer.follow(self.writer, lines)

    def of_entry(self, key: tuple[int, int], entry: Message, *, head: bool, deep: bool) -> Shape:
        """Compile and cache the lines of messages outside wrappers that have the magic and attributes in ``key``."""
        printer = self.printer
        own = [*parts(printer.legacy_batch_line, OF_ENTRY, printer.fields(entry)), b"\n"] if head else []
        value = printer.record_fields(entry, entry)
        shape = self.entries[key] = Shape([[*own, *record] for record in self.records(value, OF_ENTRY, deep=deep)])
        return shape

    def of_inner(self, batch: Message, message: Message) -> Shape:
        """Return the compiled line of a message inside a wrapper. Raises DamageError if a field cannot be read."""
        key = (batch.magic, batch.attributes, message.attributes)
        shape = self.inner.get(key) if self.lasting else None
        if shape is None:
            value = self.printer.record_fields(batch, message)
            shape = Shape(self.records(value, OF_MESSAGE, deep=True))
            if self.lasting and len(self.inner) < KINDS:
                self.inner[key] = shape
        return shape

    def records(self, value: FieldValues, slots: Mapping[str, int], *, deep: bool) -> list[list[Part]]:
        """Return a record's line in four variants (complete, no key, no value, neither), empty unless ``deep``."""
        if not deep:
            return [[]] * 4
        printer = self.printer
        bare = printer.run.options.skip_record_metadata
        meta = [] if bare else parts(printer.legacy_record_line, slots, value)
        return [[*meta, *shown(content, printer.decoders), b"\n"] for content in printer.contents]


def parts(lines: list[Line], slots: Mapping[str, int], value: FieldValues) -> list[Part]:
    """Return the literals and slots of lines of messages with valid checksums."""
    return encoded(split(lines, slots, lambda name: name == "is_valid" or value(name)))


def _holds_large(batch: Batch, data: Bytes, start: int) -> bool:
    from kdump.segments.lazy_records import BatchRecords, holds_large

    return holds_large(BatchRecords(batch, data, start))


def encoded(parts: Iterable[str | int]) -> list[Part]:
    return [part if isinstance(part, int) else part.encode() for part in parts]


def shown(content: Iterable[tuple[bytes, str]], decoders: Decoders) -> list[Part]:
    """Return each text of ``content``, and after it the slot for its second item (key, value or decoded)."""
    way = f"{decoders.spelling}_" if decoders.spelling else ""
    return [part for text, name in content for part in (text + decoders.prefix, SLOTS_OF_TEXTS[way + name])]


def _decoding(run: DumpRun, parser: Parser) -> Lines:

    def general(offset: int, key: bytes | None, value: bytes | None) -> bytes:
        return b"".join(parser(offset, key, value).parts(*run.fronts))

    from kdump.dump_log_segments.decoders.kernel_texts import Fronts, payloads

    front, alone = run.fronts
    return payloads(parser, Fronts(f"{front}key: ", " payload: ", f"{alone}payload: "), general)
