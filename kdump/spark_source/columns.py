"""Records to Arrow: what the rows of a record batch are made of, column by column.

Facts of a batch are kept once per batch and spread over its rows at the end; facts of records are turned around as a
whole. Columns that nobody asked for are never made.
"""

from __future__ import annotations

from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final

from kdump import codecs, found
from kdump.pieces import Record
from kdump.printers import jsonl
from kdump.rows import DECODED, RECORD
from kdump.spark_source import schema
from kdump.text import java_utf8

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from kdump.found import File, Found

EARLIEST_MS: Final = -62_135_596_800_000
LATEST_MS: Final = 253_402_300_799_999
"""The years 1 to 9999, which are Spark's."""

_COLUMNS: Final = {column.name: column for column in (*RECORD, DECODED)}
_FIELD: Final = {name: number for number, name in enumerate(Record._fields)}


class Rows:
    """Rows of one file on their way to Arrow. ``names`` are the columns, in the order wanted."""

    def __init__(self, file: File, names: Sequence[str]) -> None:
        self._file = file
        self._schema = schema.arrow(schema.chosen(names))
        self._batch_columns = [
            name
            for name in names
            if name == "transactionState" or (_COLUMNS[name].scope == "batch" and name != "crcValid")
        ]
        self._clear()

    def _clear(self) -> None:
        self._records: list[Record] = []
        self._ends: list[int] = []
        self._facts: dict[str, list[Any]] = {name: [] for name in self._batch_columns}
        self._batches: list[Found] = []
        self.size = 0

    def __len__(self) -> int:
        return len(self._records)

    def add(self, item: Found) -> None:
        """Add the records of a batch."""
        self._records += item.records
        self._ends.append(len(self._records))
        self._batches.append(item)
        for name, facts in self._facts.items():
            facts.append(_fact(item, name))
        self.size += sum(record.size for record in item.records)

    def take(self) -> pa.RecordBatch:
        """Return the rows so far as a record batch, and begin anew."""
        import pyarrow as pa

        turned = list(zip(*self._records, strict=True))
        made = pa.RecordBatch.from_arrays(
            [self._column(field.name, field.type, turned) for field in self._schema], schema=self._schema
        )
        self._clear()
        return made

    def _column(self, name: str, kind: pa.DataType, turned: list[tuple[Any, ...]]) -> pa.Array:
        import pyarrow as pa

        column = _COLUMNS[name]
        if column.scope == "file":
            return pa.repeat(pa.scalar(getattr(self._file, column.attribute), kind), len(self))
        if name in self._facts:
            return self._spread(self._facts[name], kind)
        if column.scope == "state":
            return self._state(name, kind, turned)
        maker = _MAKERS.get(name)
        values = turned[_FIELD[column.attribute]]
        return pa.array(values, kind) if maker is None else maker(values, kind)

    def _state(self, name: str, kind: pa.DataType, turned: list[tuple[Any, ...]]) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        if name in ("controlType", "coordinatorEpoch"):
            return self._control(name, kind)
        if name == DECODED.name:
            return self._decoded(kind)
        offsets = pa.array(turned[_FIELD["offset"]], pa.int64())
        if name == "aboveHighWatermark":
            return _compared(pc.greater_equal, offsets, self._file.high_watermark, kind)
        return _compared(pc.less, offsets, self._file.log_start, kind)

    def _control(self, name: str, kind: pa.DataType) -> pa.Array:
        import pyarrow as pa

        if not any(item.batch.is_control for item in self._batches):
            return pa.nulls(len(self), kind)
        read = found.source(_COLUMNS[name])
        return pa.array([read(item, record) for item in self._batches for record in item.records], kind)

    def _decoded(self, kind: pa.DataType) -> pa.Array:
        """Return records of Kafka's own topics in words, as the JSON lines have them."""
        import pyarrow as pa

        read = found.source(DECODED)
        told = (read(item, record) for item in self._batches for record in item.records)
        return pa.array([None if value is None else jsonl.scalar(DECODED, value) for value in told], kind)

    def _spread(self, values: list[Any], kind: pa.DataType) -> pa.Array:
        """Return an array that repeats each batch's value for each of its rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if len(values) == 1:
            return pa.repeat(pa.scalar(values[0], kind), len(self))
        runs = pa.RunEndEncodedArray.from_arrays(pa.array(self._ends, pa.int32()), pa.array(values, kind))
        return pc.run_end_decode(runs)


def _fact(item: Found, name: str) -> Any:
    """Return what a batch says for a column."""
    value: Any = found.source(_COLUMNS[name])(item, None)
    return codecs.NAMES[value] if name == "codec" else value


def _timestamps(values: Sequence[int], kind: pa.DataType) -> pa.Array:
    """Return the timestamps (ms) as Spark's (us): null for -1, and outside Spark's range."""
    import pyarrow as pa
    import pyarrow.compute as pc

    stored = pa.array(values, pa.int64())
    shown = pc.and_(pc.greater_equal(stored, EARLIEST_MS), pc.less_equal(stored, LATEST_MS))
    shown = pc.and_(shown, pc.not_equal(stored, -1))
    return pc.multiply(pc.if_else(shown, stored, pa.scalar(None, pa.int64())), 1000).view(kind)


def _headers(values: Sequence[tuple[Any, ...]], kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    flat = list(chain.from_iterable(values))
    keys = pa.array([java_utf8(header.key) for header in flat], pa.string())
    contents = pa.array([header.value for header in flat], pa.binary())
    entries = pa.StructArray.from_arrays([keys, contents], fields=list(kind.value_type))
    ends = pa.array(accumulate(map(len, values), initial=0), pa.int32())
    return pa.ListArray.from_arrays(ends, entries, type=kind)


def _validity(values: Sequence[bool | None], kind: pa.DataType) -> pa.Array:
    """Return whether the checksums are right: a record of magic 2 has none of its own, and its batch's was right."""
    import pyarrow as pa

    return pa.array(values, kind).fill_null(True)


_MAKERS: Final[dict[str, Callable[[Sequence[Any], Any], Any]]] = {
    "timestamp": _timestamps,
    "headers": _headers,
    "crcValid": _validity,
}


def _compared(compare: Callable[..., Any], offsets: pa.Array, mark: int | None, kind: pa.DataType) -> pa.Array:
    """Return how each offset stands to a checkpoint's mark; null where there is no checkpoint."""
    import pyarrow as pa

    return pa.nulls(len(offsets), kind) if mark is None else compare(offsets, mark)
