"""The base of the printers of ``kdump dump``, and their options."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdump.rows.columns import RECORD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.primitives.encodings import Encoding
    from kdump.rows.columns import Column
    from kdump.rows.redaction import Redactor
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
    template: str = ""
    """The value of ``--format``, a format string; empty without this option."""
    delimiter: str = "\\n"
    """The text after each value of ``raw``."""
    redactor: Redactor | None = None
    decodes: bool = False
    """Whether the classic text prints decoded keys and values too."""


class Printer:
    """Prints batches and damaged ranges of a reader."""

    shows_damage = False
    """Whether the output contains damaged ranges."""

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
