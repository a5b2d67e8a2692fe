"""Collects the records of a split in one table for each subject, with the typed columns of the subject.

Values without a usable schema, and values that do not fit the types of their subject, have no subject, no keyDecoded
and no valueDecoded; ``why`` has any reason. Neither do control records. See :func:`subject_of` for a batch's subject.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.arrow import typed
from kdump.arrow.columns import BYTES, ROWS, Rows
from kdump.arrow.typed import TypedColumns
from kdump.schemas.typed import SubjectTables

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from kdump.formats.record import Record
    from kdump.log_reader.filter import Filter
    from kdump.records.magic_2 import Batch
    from kdump.rows.selection import SegmentFacts, SelectedBatch
    from kdump.schemas.decoder import PayloadDecoder

_SUBJECT: Final = b"kdump.subject"
_WITHOUT_VALUE: Final = frozenset(typed.SIDES.values())
_HAS_VALUE: Final = "trailing-bytes"
"""A payload with this problem still has a typed value."""


def subject_of(batch: pa.RecordBatch) -> str | None:
    """Return the subject to whose table the rows of ``batch`` belong; None if they belong to none."""
    name = (batch.schema.metadata or {}).get(_SUBJECT)
    return None if name is None else name.decode()


class SubjectRows:
    """Like :class:`~kdump.arrow.columns.Rows`, for several subjects. The subject's typed columns follow ``names``."""

    def __init__(self, file: SegmentFacts, names: Sequence[str], wanted: Filter, decoder: PayloadDecoder) -> None:
        self.wanted = wanted
        self._file, self._tables = file, SubjectTables(decoder)
        self._names = names
        self._rows: dict[str | None, Rows] = {None: self._made(TypedColumns((self._tables,), "spark"), _WITHOUT_VALUE)}

    def _made(self, columns: TypedColumns, without: frozenset[str] = frozenset()) -> Rows:
        chosen = [name for name in columns.names if name not in without]
        return Rows(self._file, [*self._names, *chosen], self.wanted, typed=columns)

    def read(self, batch: Batch, transaction: str | None, *, drop: bool = False) -> bool:  # noqa: ARG002  as of Rows
        """Return False: compiled code does not decode payloads."""
        return False

    def add(self, item: SelectedBatch) -> None:
        topic = item.file.topic or ""
        found: dict[str | None, list[Record]] = {}
        for record in item.records:
            subject = None if item.batch.is_control else self._tables.table(topic, record.value, record.headers)
            found.setdefault(subject, []).append(record)
        for subject, records in found.items():
            rows = self._rows.get(subject)
            if rows is None:
                rows = self._made(TypedColumns(self._tables.sides(subject or ""), "spark"))
                self._rows[subject] = rows
            rows.add(item._replace(records=records))

    @property
    def is_full(self) -> bool:
        rows = self._rows.values()
        return sum(map(len, rows)) >= ROWS or sum(one.size for one in rows) >= BYTES

    def take(self) -> list[pa.RecordBatch]:
        """Return the rows so far as record batches of one subject (or none) each, and drop them."""
        taken = ((batch, subject) for subject, rows in self._rows.items() for batch in rows.take())
        return [part for batch, subject in taken for part in _divided(batch, subject)]


def _divided(batch: pa.RecordBatch, subject: str | None) -> list[pa.RecordBatch]:
    """Return the rows whose value cannot be read (as a batch without a subject), then the others. No batch is empty."""
    import pyarrow.compute as pc

    if subject is None:
        return [batch]
    problem, why = batch.column(typed.PROBLEM), batch.column(typed.WHY)
    fails = pc.and_(pc.starts_with(why, "value: "), pc.not_equal(problem, _HAS_VALUE)).fill_null(False)
    named = batch.replace_schema_metadata({_SUBJECT: subject.encode("utf-8", "backslashreplace")})
    if fails.true_count == 0:
        return [named]
    left = batch.filter(fails).drop_columns([name for name in batch.schema.names if name in _WITHOUT_VALUE])
    kept = named.filter(pc.invert(fails))
    return [left, kept] if kept.num_rows else [left]
