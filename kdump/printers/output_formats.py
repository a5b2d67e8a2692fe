"""The printers of ``kdump dump``, imported when needed. :class:`HidingPrinter` hides Kafka's secrets in records."""

from __future__ import annotations

import sys
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO, Final

from kdump.printers.printer import Printer
from kdump.rows.selection import may_hold_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.printers.printer import PrintOptions
    from kdump.rows.redaction import Secrets
    from kdump.rows.selection import DamagedRange, SelectedBatch
    from kdump.segments.batch_runs import Run
    from kdump.segments.read_ahead import MadeLines


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


def _of_class(module: str, name: str) -> Callable[[BinaryIO, PrintOptions], Printer]:
    def make(out: BinaryIO, options: PrintOptions) -> Printer:
        kind: type[Printer] = getattr(import_module(f"kdump.printers.{module}"), name)
        return kind(out, options)  # type: ignore[call-arg]  # the classes of printers have these arguments

    return make


def _table(_: BinaryIO, options: PrintOptions) -> Printer:
    from kdump.printers.table import Tables

    return Tables(sys.stdout, options)


def _raw(out: BinaryIO, options: PrintOptions) -> Printer:
    from kdump.printers.format_string import raw
    from kdump.printers.record_rows import Plain

    return Plain(out, raw(options.delimiter), redactor=options.redactor)


def _format(out: BinaryIO, options: PrintOptions) -> Printer:
    from kdump.printers.format_string import parse
    from kdump.printers.record_rows import Plain

    return Plain(out, parse(options.template), redactor=options.redactor)


PRINTERS: Final[dict[str, Callable[[BinaryIO, PrintOptions], Printer]]] = {
    "text": _of_class("classic_text", "DumpText"),
    "jsonl": _of_class("record_rows", "JsonLines"),
    "json": _of_class("record_rows", "JsonArray"),
    "csv": _of_class("record_rows", "Separated"),
    "table": _table,
    "raw": _raw,
    "format": _format,
}
COLUMNAR: Final = frozenset({"jsonl", "json", "csv", "table"})
WHOLE: Final = frozenset({"json", "table"})
"""Formats whose output is one document. The outputs of several processes cannot be joined to such a document."""
