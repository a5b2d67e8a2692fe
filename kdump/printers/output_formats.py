"""The printers of ``kdump dump``, imported when needed. :class:`HidingPrinter` hides Kafka's secrets in records."""

from __future__ import annotations

import sys
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from kdump.rows.columns import RECORD
from kdump.rows.selection import may_hold_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.primitives.encodings import Encoding
    from kdump.rows.columns import Column
    from kdump.rows.redaction import Redactor, Secrets
    from kdump.rows.selection import DamagedRange, SelectedBatch
    from kdump.segments.batch_runs import Run
    from kdump.segments.read_ahead import MadeLines


class PrintOptions(NamedTuple):
    """The options of all printers; each format uses some of them."""

    columns: Sequence[Column] = RECORD
    """The columns of records or, with ``batches``, of batches."""
    batches: bool = False
    encoding: Encoding = "auto"
    keys: bool = True
    values: bool = True
    """``keys`` and ``values``: whether the classic text prints keys and values. ``values`` alone prints both."""
    template: str | None = None
    """The value of ``--format``, a format string."""
    delimiter: str = "\\n"
    """The text after each value, without ``template``."""
    redactor: Redactor | None = None
    decodes: bool = False
    """Whether the classic text prints decoded keys and values too."""


class Printer:
    """Prints batches and damaged ranges of a reader."""

    shows_damage = False
    """Whether the output has damaged ranges with their reasons."""

    def begin(self) -> None:
        """Print the first line, if the format has one."""

    def go_on(self, name: str) -> bytes:  # noqa: ARG002  rows do not depend on the segment
        """Begin in the middle of a segment; return the text that belongs before its first line."""
        return b""

    def make(self, item: SelectedBatch, run: Run) -> MadeLines | None:  # noqa: ARG002  some formats make none ahead
        """Return the first lines of ``run`` (``item``), or None: :meth:`found` makes them. Any thread may call this."""
        return None

    def found(self, item: SelectedBatch, made: MadeLines | None = None) -> None:
        """Print a batch or a run of batches; ``made`` is the result of :meth:`make`."""
        raise NotImplementedError

    def lost(self, item: DamagedRange) -> None:
        """Print a damaged range, if the format has a line for it. Otherwise it appears only on standard error."""

    def end(self) -> None:
        """Print the last line, if the format has one."""


class HidingPrinter(Printer):
    """Removes Kafka's passwords and credentials from records of topics that may hold them (``may_hold_secrets``)."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self.shows_damage = printer.shows_damage
        self.begin, self.go_on, self.lost, self.end = printer.begin, printer.go_on, printer.lost, printer.end  # type: ignore[method-assign]  # unchanged

    def make(self, item: SelectedBatch, run: Run) -> MadeLines | None:
        return None if self._hides(item) else self._printer.make(item, run)

    def found(self, item: SelectedBatch, made: MadeLines | None = None) -> None:
        if not self._hides(item):
            self._printer.found(item, made)
            return
        for one in self._secrets.without(item):
            self._printer.found(one)

    def hides_in(self, item: DamagedRange) -> bool:
        """Return whether the values in a damaged range may be parts of secrets."""
        return may_hold_secrets(item.file.topic) and self._secrets.may_be_in(*item)

    def _hides(self, item: SelectedBatch) -> bool:
        return may_hold_secrets(item.file.topic) and self._secrets.mask(item) is not None

    @cached_property
    def _secrets(self) -> Secrets:
        from kdump.rows.redaction import Secrets

        return Secrets()


PRINTERS: Final = {
    "text": ("classic_text", "DumpText"),
    "jsonl": ("record_rows", "JsonLines"),
    "json": ("record_rows", "JsonArray"),
    "csv": ("record_rows", "Separated"),
    "table": ("table", "Tables"),
    "raw": ("record_rows", "Plain"),
    "format": ("record_rows", "Plain"),
}
"""Output format -> the module and the class of its printer."""
COLUMNAR: Final = frozenset({"jsonl", "json", "csv", "table"})
WHOLE: Final = frozenset({"json", "table"})
"""Formats whose output is one document. The outputs of several processes cannot be joined to such a document."""


def printer_of(name: str, out: BinaryIO, options: PrintOptions) -> Printer:
    """Return the printer of an output format. Tables are written to standard output. Raises UsageError."""
    module, kind = PRINTERS[name]
    of: type[Printer] = getattr(import_module(f"kdump.printers.{module}"), kind)
    return of(sys.stdout if name == "table" else out, options)  # type: ignore[call-arg]  # all printers take these
