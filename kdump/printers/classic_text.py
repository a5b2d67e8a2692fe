"""The format ``text`` of ``kdump dump``: lines as of the newest DumpLogSegments; lines on damage and decoded data."""

from __future__ import annotations

from binascii import b2a_base64, hexlify
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from kdump.dump_log_segments import Options
from kdump.dump_log_segments.decoder_classes import Decoders
from kdump.dump_log_segments.dialects.segments import NEWEST
from kdump.dump_log_segments.java_files import offset_in_name
from kdump.dump_log_segments.log_printer import LogPrinter
from kdump.dump_log_segments.run import DumpRun
from kdump.errors import DamageError, UnreadableError
from kdump.formats.record import Record
from kdump.primitives.encodings import java_text
from kdump.primitives.terminal import path_text
from kdump.printers.output_formats import Printer, PrintOptions
from kdump.rows.redaction import PREFIX
from kdump.rows.values import needs_frame
from kdump.segments.lazy_records import BatchRecords, RunRecords, holds_large

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.primitives.encodings import Encoding
    from kdump.records.magic_0_1 import Message
    from kdump.records.record_batch import RecordBatch
    from kdump.rows.redaction import Redactor
    from kdump.rows.selection import DamagedRange, SelectedBatch
    from kdump.segments.batch_runs import Run
    from kdump.segments.read_ahead import MadeLines


class DumpText(Printer):
    """Prints lines of batches and records. Decoded payloads follow on own lines."""

    shows_damage = True

    def __init__(self, out: BinaryIO, options: PrintOptions = PrintOptions()) -> None:  # noqa: B008  a tuple
        self.out, self.batches, self.values, self.redactor = out, options.batches, options.values, options.redactor
        redactor, decodes = options.redactor, options.decodes
        has_data = options.keys or options.values
        self._run = DumpRun(NEWEST, Options(print_data_log=has_data, deep_iteration=not options.batches), out)
        spellings: dict[Encoding, Callable[[bytes], bytes]] = {
            "hex": hexlify,
            "base64": partial(b2a_base64, newline=False),
        }
        decode = spellings.get(options.encoding, java_text)
        self._decoders = Decoders(decode, decode)
        if redactor is not None:
            if decode is java_text:
                self._decoders = Decoders(decode, decode, "hash", PREFIX.encode(), redactor.key)
        elif decode is not java_text:
            self._decoders = Decoders(decode, decode, options.encoding)
        self._sides = ("key",) * (decodes and options.keys) + ("value",) * (decodes and options.values)
        """The sides ("key", "value") that are also printed decoded."""
        self._by_kernel = options.batches or redactor is None or (not self._sides and decode is java_text)
        """Whether compiled code can write the payloads in this encoding and, with a redactor, their hashes."""
        self._printer: _Printer | None = None

    def found(self, item: SelectedBatch, made: MadeLines | None = None) -> None:
        printer = self._of(item)
        printer.item = item
        records, deep = item.records, not self.batches
        by_kernel = self._is_for_kernel(item)
        if by_kernel and isinstance(records, RunRecords):
            printer.of_run(records, made, deep=deep)
        elif by_kernel and isinstance(records, BatchRecords) and (self.batches or not holds_large(records)):
            printer.batch(item.batch, deep=deep)
        else:
            for one in item.each(batches=self.batches):
                self._records(printer, one)

    def make(self, item: SelectedBatch, run: Run) -> MadeLines | None:
        """Return a run's first lines; None if it is small, its segment is not begun, or plain Python prints it."""
        printer = self._printer
        if printer is None or printer.path != item.file.name or not self._is_for_kernel(item):
            return None
        return printer.make(run)

    def _is_for_kernel(self, item: SelectedBatch) -> bool:
        """Return whether compiled code prints ``item``, except decoded records that may have a schema id."""
        return self._by_kernel and (not self._sides or needs_frame(item.file.layout))

    def _records(self, printer: _Printer, item: SelectedBatch) -> None:
        printer.header(item.batch)
        if self._sides and self.redactor is not None:
            item = self.redactor(item)  # hashes decoded fields too
        printer.item = item
        for record in () if self.batches else item.records:
            printer.record(item.batch, record)

    def lost(self, item: DamagedRange) -> None:
        self._of(item)
        damage = item.damage
        ends = {"missingFrom": damage.missing_from, "missingUntil": damage.missing_until}
        missing = "".join(f"{name}: {offset} " for name, offset in ends.items() if offset is not None)
        self.out.write(
            f"damage: position: {damage.position} size: {damage.size} kind: {damage.kind} "
            f"at: {damage.at} {missing}reason: {damage.reason}\n".encode()
        )

    def go_on(self, name: str) -> bytes:
        """Begin in the middle of a segment; return the lines at the start of the segment's output."""
        if self._printer is None or self._printer.path != name:
            self._printer = self._next_printer(name)
        return _title(name)

    def _of(self, item: SelectedBatch | DamagedRange) -> _Printer:
        name = item.file.name
        if self._printer is None or self._printer.path != name:
            self._printer = self._next_printer(name)
            self.out.write(_title(name))
        return self._printer

    def _next_printer(self, name: str) -> _Printer:
        """Return the printer for the segment ``name``. All segments use one printer: a new one is slow to make."""
        if self._printer is None:
            redactor = None if self._sides else self.redactor
            return _Printer(self._run, name, self._decoders, redactor, self._sides, values=self.values)
        self._printer.path, self._printer.last_offset = name, -1
        return self._printer


def _title(name: str) -> bytes:
    first = f"Dumping {path_text(name)}\n".encode()
    try:
        base = offset_in_name(name)
    except UnreadableError:
        return first
    return first + NEWEST.starting_offset.format(offset=base).encode() + b"\n"


class _Printer(LogPrinter):
    """Prints batches of segments. ``redactor`` hashes payloads; ``sides`` are also printed decoded, on own lines."""

    whole_batches = True
    item: SelectedBatch

    def __init__(
        self,
        run: DumpRun,
        path: str,
        decoders: Decoders,
        redactor: Redactor | None,
        sides: tuple[str, ...],
        *,
        values: bool,
    ) -> None:
        self.stops_at_frames = bool(sides)
        super().__init__(run, path, decoders)
        self._redactor, self._sides, self._values = redactor, sides, values
        if not values:
            self.contents = [[shown for shown in content if shown[1] != "value"] for content in self.contents]

    def of_run(self, records: RunRecords, made: MadeLines | None, *, deep: bool) -> None:
        """Print a run up to an invalid, unchecked batch. Set ``records.stop`` to the first batch not printed."""
        if not records.may_break:
            self.batches(records.run, records.row, records.stop, made, deep=deep)
            return
        run = records.run
        row, done = self.fast.print_batches(run, records.row, records.stop, made, head=True, deep=deep)
        if done:  # compiled code printed the first records of a large batch
            self.rest(records.run.batch(row), done, head=True, deep=deep)
        records.stop = row + (done > 0)

    def gap(self, last: int, current: int) -> None:
        """Do nothing: a gap between offsets may come from a filter."""

    def control_content(self, entry: Record | Message) -> bytes:
        return super().control_content(entry) if self._values else b""

    def record(self, batch: RecordBatch, entry: Record | Message) -> None:
        if self._redactor is not None and not batch.is_control and isinstance(entry, Record):
            entry = self._redactor.record(entry)
        shown = entry
        if not self._values and isinstance(entry, Record):
            shown = entry._replace(value=None)
        try:
            super().record(batch, shown)
        except DamageError as damage:  # the control record has an invalid value
            self.out.write(f" {damage.reason}\n".encode())
        if self._sides and isinstance(entry, Record):
            from kdump.printers import decoded_text

            for line in decoded_text.lines(self.item, entry, self._sides):
                self.out.write(line)
