"""The printers of ``kdump dump``, imported when needed. :class:`HidingPrinter` hides Kafka's secrets in records."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import IO, TYPE_CHECKING, BinaryIO, Final, NamedTuple, Protocol

from kdump.rows.selection import may_hold_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.primitives.encodings import Encoding
    from kdump.rows.columns import Column
    from kdump.rows.redaction import Redactor, Secrets
    from kdump.rows.selection import DamagedRange, SelectedBatch
    from kdump.segments.batch_runs import Run
    from kdump.segments.read_ahead import MadeLines


class Printer(Protocol):
    """Prints batches and damaged ranges of a reader. ``shows_damage``: the output contains damaged ranges."""

    shows_damage: bool

    def begin(self) -> None: ...
    def go_on(self, name: str) -> bytes:
        """Begin in the middle of a segment; return the text that belongs before its first line."""

    def make(self, item: SelectedBatch, run: Run) -> MadeLines | None:
        """Return the first lines of ``run`` (``item``), or None: :meth:`found` makes them. Any thread may call this."""

    def found(self, item: SelectedBatch, made: MadeLines | None = None) -> None:
        """Print a batch or a run of batches; ``made`` is the result of :meth:`make`."""

    def lost(self, item: DamagedRange) -> None: ...
    def end(self) -> None: ...


class HidingPrinter:
    """Removes Kafka's passwords and credentials from records of topics that may hold them (``may_hold_secrets``)."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._secrets: Secrets | None = None
        self.shows_damage = printer.shows_damage
        self.begin, self.go_on, self.lost, self.end = printer.begin, printer.go_on, printer.lost, printer.end

    def make(self, item: SelectedBatch, run: Run) -> MadeLines | None:
        return None if self._hides(item) else self._printer.make(item, run)

    def found(self, item: SelectedBatch, made: MadeLines | None = None) -> None:
        if not self._hides(item) or self._secrets is None:
            self._printer.found(item, made)
            return
        for one in self._secrets.without(item):
            self._printer.found(one)

    def hides_in(self, item: DamagedRange) -> bool:
        """Return whether the values in a damaged range may be parts of secrets."""
        return may_hold_secrets(item.file.topic) and self._of_secrets().may_be_in(*item)

    def _hides(self, item: SelectedBatch) -> bool:
        return may_hold_secrets(item.file.topic) and self._of_secrets().mask(item) is not None

    def _of_secrets(self) -> Secrets:
        if self._secrets is None:
            from kdump.rows.redaction import Secrets

            self._secrets = Secrets()
        return self._secrets


class PrintOptions(NamedTuple):
    """The options of all printers; each format uses some of them."""

    columns: Sequence[Column]
    batches: bool
    encoding: Encoding
    keys: bool
    values: bool
    """``keys`` and ``values``: whether the classic text prints keys and values. ``values`` alone prints both."""
    template: str
    """The value of ``--format``, a format string; empty without this option."""
    delimiter: str
    """The text after each value of ``raw``."""
    redactor: Redactor | None = None
    decodes: bool = False
    """Whether the classic text prints decoded keys and values too."""


def _text(out: BinaryIO, options: PrintOptions) -> Printer:
    from kdump.printers.classic_text import DumpText

    return DumpText(
        out,
        batches=options.batches,
        keys=options.keys,
        values=options.values,
        encoding=options.encoding,
        redactor=options.redactor,
        decodes=options.decodes,
    )


def _in_columns(module: str, name: str) -> Callable[[BinaryIO, PrintOptions], Printer]:
    def make(out: BinaryIO | IO[str], options: PrintOptions) -> Printer:
        printer: Printer = getattr(import_module(f"kdump.printers.{module}"), name)(
            sys.stdout if module == "table" else out,
            options.columns,
            batches=options.batches,
            encoding=options.encoding,
            redactor=options.redactor,
        )
        return printer

    return make


def _raw(out: BinaryIO, options: PrintOptions) -> Printer:
    from kdump.printers.format_string import raw
    from kdump.printers.record_rows import Plain

    return Plain(out, raw(options.delimiter), redactor=options.redactor)


def _format(out: BinaryIO, options: PrintOptions) -> Printer:
    from kdump.printers.format_string import parse
    from kdump.printers.record_rows import Plain

    return Plain(out, parse(options.template), redactor=options.redactor)


PRINTERS: Final[dict[str, Callable[[BinaryIO, PrintOptions], Printer]]] = {
    "text": _text,
    "jsonl": _in_columns("record_rows", "JsonLines"),
    "json": _in_columns("record_rows", "JsonArray"),
    "csv": _in_columns("record_rows", "Separated"),
    "table": _in_columns("table", "Tables"),
    "raw": _raw,
    "format": _format,
}
COLUMNAR: Final = frozenset({"jsonl", "json", "csv", "table"})
WHOLE: Final = frozenset({"json", "table"})
"""Formats whose output is one document. The outputs of several processes cannot be joined to such a document."""
