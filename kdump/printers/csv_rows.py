"""Comma-separated values (RFC 4180): a line of names, then one line per record or batch.

Null is an empty cell, the empty text ``""``. Lines end in a newline alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from kdump.printers.cells import damage_cell, rows
from kdump.rows.columns import KIND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.primitives.encodings import Encoding
    from kdump.rows.columns import Column
    from kdump.rows.selection import DamagedRange, SelectedBatch


class Separated:
    """Prints CSV. A damaged range has a row only where the column ``kind`` tells it from a record, without a reason."""

    shows_damage = False

    def __init__(
        self,
        out: BinaryIO,
        columns: Sequence[Column],
        *,
        batches: bool = False,
        encoding: Encoding = "auto",
    ) -> None:
        self.out, self.columns, self.batches, self.encoding = out, columns, batches, encoding

    def begin(self) -> None:
        """Print the names of the columns."""
        self._line([column.name for column in self.columns])

    def found(self, item: SelectedBatch) -> None:
        for cells in rows(item, self.columns, self.encoding, batches=self.batches):
            self._line(cells)

    def lost(self, item: DamagedRange) -> None:
        """Print the columns that a damaged range shares with a record or batch."""
        if KIND in self.columns:
            self._line([damage_cell(column, item) for column in self.columns])

    def end(self) -> None:
        """Nothing stands after the last line."""

    def _line(self, cells: Sequence[str | None]) -> None:
        self.out.write((",".join(map(_quoted, cells)) + "\n").encode())


def _quoted(text: str | None) -> str:
    if text is None:
        return ""
    awkward = not text or '"' in text or "," in text or "\n" in text or "\r" in text or " " in (text[0], text[-1])
    return '"' + text.replace('"', '""') + '"' if awkward else text
