"""The endings of a dump: what prints records, batches and damage, by the name of each format.

A printer's module is imported when its format is chosen: ``kdump --help`` needs none of them.
"""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING, BinaryIO, Final, Protocol, cast

from kdump.primitives.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kdump.primitives.encodings import Encoding
    from kdump.rows.columns import Column
    from kdump.rows.redaction import Redactor
    from kdump.rows.selection import DamagedRange, SelectedBatch
    from kdump.segments.batch_runs import Run


class Printer(Protocol):
    """Prints what a reader yields. ``shows_damage`` says whether damaged ranges stand in the output itself."""

    shows_damage: bool

    def begin(self) -> None: ...
    def go_on(self, name: str) -> bytes:
        """Begin amid a segment; return what stands before the first line of it, where nothing of it is printed yet."""

    def make(self, item: SelectedBatch, run: Run) -> int:
        """Make the first lines of a run, of which ``item`` is all, for a thread; return how many bytes they are."""

    def found(self, item: SelectedBatch) -> None: ...
    def lost(self, item: DamagedRange) -> None: ...
    def end(self) -> None: ...


class PrintOptions(NamedTuple):
    """What a printer shows of batches and records, and how; each format uses the fields that it has room for."""

    columns: Sequence[Column]
    batches: bool
    """Whether batches are printed in place of records."""
    encoding: Encoding
    keys: bool
    values: bool
    """Whether the classic text has keys, and values with headers."""
    template: str
    """The format string of ``format``."""
    delimiter: str
    """What follows each value of ``raw``."""
    redactor: Redactor | None = None
    """What hashes payloads."""


def _text(out: BinaryIO, options: PrintOptions) -> Printer:
    from kdump.printers.classic_text import DumpText

    return DumpText(
        out,
        batches=options.batches,
        keys=options.keys,
        values=options.values,
        encoding=options.encoding,
        redactor=options.redactor,
    )


def _json_lines(out: BinaryIO, options: PrintOptions) -> Printer:
    from kdump.printers.jsonl import JsonLines

    return JsonLines(
        out, options.columns, batches=options.batches, encoding=options.encoding, redactor=options.redactor
    )


def _json(out: BinaryIO, options: PrintOptions) -> Printer:
    from kdump.printers.jsonl import JsonArray

    return JsonArray(
        out, options.columns, batches=options.batches, encoding=options.encoding, redactor=options.redactor
    )


def _csv(out: BinaryIO, options: PrintOptions) -> Printer:
    from kdump.printers.csv_rows import Separated

    return Separated(
        out, options.columns, batches=options.batches, encoding=options.encoding, redactor=options.redactor
    )


def _table(_: BinaryIO, options: PrintOptions) -> Printer:
    from kdump.printers.table import Tables

    return Tables(
        cast("IO[str]", sys.stdout),
        options.columns,
        batches=options.batches,
        encoding=options.encoding,
        redactor=options.redactor,
    )


def _raw(out: BinaryIO, options: PrintOptions) -> Printer:
    from kdump.printers.format_string import Plain
    from kdump.printers.format_template import raw

    return Plain(out, raw(options.delimiter), redactor=options.redactor)


def _format(out: BinaryIO, options: PrintOptions) -> Printer:
    from kdump.printers.format_string import Plain
    from kdump.printers.format_template import parse

    return Plain(out, parse(options.template), redactor=options.redactor)


PRINTERS: Final[dict[str, Callable[[BinaryIO, PrintOptions], Printer]]] = {
    "text": _text,
    "jsonl": _json_lines,
    "json": _json,
    "csv": _csv,
    "table": _table,
    "raw": _raw,
    "format": _format,
}
"""Name of a format -> what makes its printer for an output."""
COLUMNAR: Final = frozenset({"jsonl", "json", "csv", "table"})
"""Formats made of columns."""
WHOLE: Final = frozenset({"json", "table"})
"""Formats whose output is one thing: it cannot be made in pieces, and has an end."""
