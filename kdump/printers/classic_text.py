"""The classic text of what a filter took: the lines of DumpLogSegments, for records of any selection."""

from __future__ import annotations

from base64 import b64encode
from binascii import hexlify
from typing import TYPE_CHECKING, BinaryIO

from kdump.dump_log_segments.decoder_classes import Decoders
from kdump.dump_log_segments.dialects.segments import NEWEST
from kdump.dump_log_segments.java_paths import offset_in_name
from kdump.dump_log_segments.log_printer import LogPrinter
from kdump.dump_log_segments.options import Options
from kdump.dump_log_segments.run import DumpRun
from kdump.errors import DamageError, UnreadableError
from kdump.primitives.java_text import java_text
from kdump.primitives.terminal import path_text
from kdump.segments.lazy_records import Unread, UnreadRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.primitives.encodings import Encoding
    from kdump.rows.selection import DamagedRange, SelectedBatch


class DumpText:
    """Prints batches and records as the newest DumpLogSegments does; damaged stretches stand in lines of their own.

    ``keys`` and ``values`` say which payloads are printed.
    """

    shows_damage = True

    def __init__(
        self,
        out: BinaryIO,
        *,
        batches: bool = False,
        keys: bool = True,
        values: bool = True,
        encoding: Encoding = "auto",
    ) -> None:
        self.out, self.batches, self.values = out, batches, values

        decoders: dict[Encoding, Callable[[bytes], bytes]] = {"hex": hexlify, "base64": b64encode}
        decode = decoders.get(encoding, java_text)
        options = Options(print_data_log=keys or values, deep_iteration=not batches)
        self._run = DumpRun(NEWEST, options, out)
        self._decoders = Decoders(decode, decode)
        self._whole = keys and values
        self._printer: _Printer | None = None

    def begin(self) -> None:
        """Nothing stands before the first line."""

    def found(self, item: SelectedBatch) -> None:
        printer = self._of(item)
        records = item.records
        if self._whole and isinstance(records, UnreadRun):
            printer.batches(records.run, records.row, records.behind, deep=True)
            return
        if self._whole and isinstance(records, Unread):
            printer.batch(item.batch, deep=True)
            return
        printer.header(item.batch)
        if self.batches:
            return
        for record in item.records:
            shown = record if self.values else record._replace(value=None, value_size=record.value_size)
            try:
                printer.record(item.batch, shown)
            except DamageError as damage:  # a control record that says nothing sound
                self.out.write(f" {damage.reason}\n".encode())

    def lost(self, item: DamagedRange) -> None:
        self._of(item)
        damage = item.damage
        ends = {"missingFrom": damage.missing_from, "missingUntil": damage.missing_until}
        missing = "".join(f"{name}: {offset} " for name, offset in ends.items() if offset is not None)
        self.out.write(
            f"damage: position: {damage.position} size: {damage.size} kind: {damage.kind} "
            f"at: {damage.at} {missing}reason: {damage.reason}\n".encode()
        )

    def end(self) -> None:
        """Nothing stands behind the last line."""

    def _of(self, item: SelectedBatch | DamagedRange) -> _Printer:
        name = item.file.name
        if self._printer is None or self._printer.path != name:
            self._printer = _Printer(self._run, name, self._decoders)
            self.out.write(f"Dumping {path_text(name)}\n".encode())
            try:
                base = offset_in_name(name)
            except UnreadableError:
                return self._printer
            self.out.write(NEWEST.starting_offset.format(offset=base).encode() + b"\n")
        return self._printer


class _Printer(LogPrinter):
    def gap(self, last: int, current: int) -> None:
        """Say nothing: a filter leaves gaps."""
