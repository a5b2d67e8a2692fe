"""The lines of a dialect as shapes for the kernel: the fast branch of :mod:`kdump.dump_log_segments.log_printer`.

The general path prints the rest: damaged batches, control records, magic 0 and 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.dump_log_segments.lines import KINDS, split
from kdump.errors import DamageError
from kdump.formats.record import LARGE_BATCH
from kdump.formats.record_layout import BATCH_HEADER
from kdump.kernel.batches import OTHERS
from kdump.kernel.digests import KeyedHash
from kdump.kernel.lines import SLOTS_OF_TEXTS, Lines, Shape, slots
from kdump.segments.kernel_ahead import LinesAhead

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.dump_log_segments.decoder_classes import Decoders
    from kdump.dump_log_segments.decoders.texts import Parser
    from kdump.dump_log_segments.lines import LineValues
    from kdump.dump_log_segments.run import DumpRun
    from kdump.kernel.lines import Part
    from kdump.primitives.wire import Bytes
    from kdump.records.magic_2 import Batch
    from kdump.segments.batch_runs import Run
    from kdump.segments.kernel_ahead import MadeLines

CHUNK: Final = 1 << 20
"""Bytes of output after which an uncompressed batch's lines go out."""
WHOLE: Final = 1 << 18
"""A decompressed batch up to this size (bytes) is formatted at once, so that a broken one prints no lines."""
SLOTS: Final = slots(OTHERS)
OF_BATCH: Final = {**SLOTS, "count": SLOTS["records_count"]}
"""The slots of fields; the others are the same in all batches of a kind: same attributes, soundness, delete horizon."""
OF_RECORD: Final = {name: slot for name, slot in OF_BATCH.items() if name != "crc"}
OF_RECORDS: Final = {"is_valid": True, "crc": None}
"""Values of a record of magic 2 that differ from those of its batch: a record has no checksum."""


class KernelLines:
    """Prints batches of magic 2 through the kernel, as far as it supports them."""

    def __init__(self, printer: LineValues) -> None:
        self.printer = printer
        self.decodes = printer.run.parser is not None
        self.ahead = LinesAhead(self._lines)
        self.kernel = self.ahead.kernel
        self.shapes: dict[tuple[int, bool, int | None], tuple[Shape, Shape]] = {}

    def end(self) -> None:
        """Print no more: let go of the memory of lines."""
        del self.ahead, self.kernel

    def batch(self, batch: Batch, *, head: bool, deep: bool) -> int | None:
        """Print a batch, its own line only with ``head``; return None when all of it is printed.

        A number n > 0: the line of the batch and n of its records are printed; 0: nothing is.
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
        if len(data) >= LARGE_BATCH and _holds_large(batch, data, start):  # before the kernel keeps a hold on them
            return 0
        printer, kernel = self.printer, self.kernel
        others = (batch.last_offset, batch.last_sequence, batch.position, batch.size)
        if not kernel.begin(data, start, header, others):
            return 0
        if not deep:
            printer.out.write(kernel.lines(shapes[0], None, 0))
            return None
        printer.lead(kernel)
        limit = CHUNK
        if batch.codec and kernel.left:
            if len(data) <= WHOLE:
                limit = 1 << 62
            elif not kernel.sound():
                return 0
        return self.records(shapes[0] if head else None, shapes[1], limit, header.records_count)

    def print_batches(
        self, batches: Run, first: int, stop: int, made: MadeLines | None, *, head: bool, deep: bool
    ) -> tuple[int, int]:
        """Print batches of a run from row ``first`` to before ``stop`` as far as possible; ``made`` are first lines.

        Return the row after the completely printed batches, and the number of records printed of its batch. If that is
        not 0, the line of the batch is printed too.
        """
        shapes = self._shapes(batches.first, deep=deep)
        if shapes is None:
            return first, 0
        printer = self.printer
        self.kernel.memory = getattr(printer.out, "room", None)  # no thread writes there
        kernel, lines = self.ahead.begin(batches, first, stop, made)
        if lines:
            printer.follow(kernel, lines)
        printer.lead(kernel)
        while not kernel.stuck and (kernel.left or kernel.row < stop):
            printer.follow(kernel, kernel.run(shapes[0] if head else None, shapes[1] if deep else None, CHUNK))
        self.ahead.end(kernel)
        if not kernel.left:
            return kernel.row, 0
        return kernel.row - 1, batches.batch(kernel.row - 1).count - kernel.left

    def make(self, batches: Run, *, head: bool) -> MadeLines | None:
        """Return the first lines of batches and their records for :meth:`print_batches`; a thread may call this."""
        shapes = self._shapes(batches.first, deep=True)
        return None if shapes is None else self.ahead.make(batches, shapes[0] if head else None, shapes[1])

    def _shapes(self, batch: Batch, *, deep: bool) -> tuple[Shape, Shape] | None:
        """Return the shapes of batches like ``batch``, or None if the kernel cannot print them."""
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
        return lines

    def records(self, head: Shape | None, shape: Shape, limit: int, count: int) -> int | None:
        """Print the records of the batch that the kernel has turned to."""
        printer, kernel = self.printer, self.kernel
        while True:
            lines = kernel.lines(head, shape, limit)
            if kernel.left and (limit > CHUNK or kernel.left == count):
                kernel.gaps.clear()
                return 0
            head = None
            printer.follow(kernel, lines)
            if not kernel.left:
                return None
            if len(lines) < limit:
                return count - int(kernel.left)

    def compile(self, key: tuple[int, bool, int | None], batch: Batch) -> tuple[Shape, Shape]:
        """Return the shapes of batch and record lines; values that all batches of this kind share are literal."""
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
        if len(self.shapes) > KINDS:  # each delete horizon is one
            self.shapes.clear()
        self.shapes[key] = shapes
        return shapes


def _holds_large(batch: Batch, data: Bytes, start: int) -> bool:
    """Return whether some records of a large batch are large: the general path prints them in pieces."""
    from kdump.segments.lazy_records import BatchRecords, holds_large  # few batches are

    return holds_large(BatchRecords(batch, data, start))


def encoded(parts: Iterable[str | int]) -> list[Part]:
    """Return literals as bytes and slots unchanged."""
    return [part if isinstance(part, int) else part.encode() for part in parts]


def shown(content: Iterable[tuple[bytes, str]], decoders: Decoders) -> list[Part]:
    """Return the parts for pairs of literal text and the field after it (key or value)."""
    way = f"{decoders.spelling}_" if decoders.spelling else ""
    return [part for text, name in content for part in (text + decoders.prefix, SLOTS_OF_TEXTS[way + name])]


def _decoding(run: DumpRun, parser: Parser) -> Lines:
    """Return the kernel's writer of records under a decoder switch."""

    def general(offset: int, key: bytes | None, value: bytes | None) -> bytes:
        return b"".join(parser(offset, key, value).parts(*run.fronts))

    from kdump.dump_log_segments.decoders.kernel_texts import Fronts, payloads  # needed with such a switch alone

    front, alone = run.fronts
    return payloads(parser, Fronts(f"{front}key: ", " payload: ", f"{alone}payload: "), general)
