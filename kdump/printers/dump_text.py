"""The classic text of what a filter took: the lines of DumpLogSegments, for records of any selection."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from kdump.dialects import NEWEST
from kdump.errors import DamageError, UnreadableError
from kdump.printers.classic import Classic, Options
from kdump.printers.classic_decoders import Decoders
from kdump.printers.classic_log import LogPrinter
from kdump.printers.classic_names import offset_in_name
from kdump.printers.values import Encoding, to_text
from kdump.text import java_text, path_text

if TYPE_CHECKING:
    from kdump.found import Found, Lost


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

        def decode(data: bytes) -> bytes:
            return java_text(data) if encoding in {"auto", "utf8", "json"} else to_text(data, encoding).text.encode()

        options = Options(print_data_log=keys or values, deep_iteration=not batches)
        self._run = Classic(NEWEST, options, out)
        self._decoders = Decoders(decode, decode)
        self._printer: _Printer | None = None

    def begin(self) -> None:
        """Nothing stands before the first line."""

    def found(self, item: Found) -> None:
        printer = self._of(item)
        printer.header(item.batch)
        if self.batches:
            return
        for record in item.records:
            shown = record if self.values else record._replace(value=None, value_size=record.value_size)
            try:
                printer.record(item.batch, shown)
            except DamageError as damage:  # a control record that says nothing sound
                self.out.write(f" {damage.reason}\n".encode())

    def lost(self, item: Lost) -> None:
        self._of(item)
        damage = item.damage
        self.out.write(
            f"damage: position: {damage.position} size: {damage.size} kind: {damage.kind} "
            f"at: {damage.at} reason: {damage.reason}\n".encode()
        )

    def end(self) -> None:
        """Nothing stands behind the last line."""

    def _of(self, item: Found | Lost) -> _Printer:
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
