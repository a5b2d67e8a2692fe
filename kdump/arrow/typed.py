"""Decoded keys and values as Arrow columns with the types of their schemas (:class:`TypedColumns`).

``keyDecoded`` and ``valueDecoded`` have the values, ``schemaId`` the schema id of the payload. ``problem`` is a word,
and ``why`` a sentence, if a payload has no usable schema, cannot be decoded, does not fit the types, or has bytes after
its value.

By default Spark has no times of day, unsigned integers and nanoseconds. Times of day and Avro's nanoseconds become the
stored numbers there, as in ``from_avro``. Protobuf's timestamps become microseconds, as in ``from_protobuf``; its
``uint32`` and ``uint64`` become long and decimal. Decimals of more than 38 digits (in Arrow: 76) become text.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

from kdump.rows.columns import TYPED
from kdump.schemas.avro import decimal_text
from kdump.schemas.shapes import JsonText, Leaf, ListShape, MapShape, StructShape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from kdump.formats.record import Record
    from kdump.rows.selection import SelectedBatch
    from kdump.schemas.decoder import PayloadDecoder
    from kdump.schemas.framing import Side
    from kdump.schemas.shapes import Shape
    from kdump.schemas.typed import SubjectTables, TypedSide, TypedValue

Engine: TypeAlias = Literal["arrow", "spark", "duckdb"]
SCHEMA_ID, PROBLEM, WHY = "schemaId", "problem", "why"
SIDES: Final[dict[Side, str]] = {"key": "keyDecoded", "value": "valueDecoded"}
NAMES: Final = tuple(column.name for column in TYPED)
_MOST_DIGITS: Final = 38
"""Maximum number of digits of decimal128, and of decimals in Spark and DuckDB."""
_MOST_DIGITS_256: Final = 76
_TIMES: Final = {"millis": "ms", "micros": "us", "nanos": "ns"}
_FACTORIES: Final = {"boolean": "bool_", "bytes": "binary", "date": "date32"}
"""Kind of a single value -> the pyarrow function that returns its type, if the function has another name."""


class TypedColumns:
    """The typed columns of keys, of values, or of both."""

    def __init__(self, sides: Sequence[TypedSide | SubjectTables], engine: Engine = "arrow") -> None:
        """``sides``: key, value, or both. Of both, the last gives the schema id, the last faulty one the problem."""
        self._sides = sides
        self._types = {side.side: arrow_type(side.shape, engine) for side in sides}
        self.names = (*(name for side, name in SIDES.items() if side in self._types), SCHEMA_ID, PROBLEM, WHY)

    @classmethod
    def of_subject(cls, decoder: PayloadDecoder, subject: str, engine: Engine = "arrow") -> Self:
        """Return the columns of ``subject``, and of the other side if it has a subject. Raises UsageError."""
        from kdump.schemas.typed import typed_sides

        return cls(typed_sides(decoder, subject, wide_times=engine == "spark"), engine)

    def field(self, name: str) -> pa.Field:
        import pyarrow as pa

        for side, column in SIDES.items():
            if name == column:
                return pa.field(name, self._types[side])
        return pa.field(name, pa.int32() if name == SCHEMA_ID else pa.string())

    def arrays(self, rows: Iterable[tuple[SelectedBatch, Sequence[Record]]]) -> dict[str, pa.Array]:
        """Return the columns of records by name. Control records have nulls."""
        import pyarrow as pa

        values: list[list[Any]] = [[] for _ in self._sides]
        ids: list[int | None] = []
        problems: list[str | None] = []
        reasons: list[str | None] = []
        for item, records in rows:
            topic, is_control = item.file.topic or "", item.batch.is_control
            for record in records:
                found: TypedValue | None = None
                problem = why = None
                for side, column in zip(self._sides, values, strict=True):
                    if is_control:
                        column.append(None)
                        continue
                    payload = record.key if side.side == "key" else record.value
                    found = side.read(topic, payload, record.headers)
                    column.append(found.value)
                    if found.problem is not None:
                        problem, why = found.problem, f"{side.side}: {found.why}"
                ids.append(None if found is None else found.schema_id)
                problems.append(problem)
                reasons.append(why)
        made = {
            SIDES[side.side]: array(side.shape, self._types[side.side], column)
            for side, column in zip(self._sides, values, strict=True)
        }
        return {
            **made,
            SCHEMA_ID: pa.array(ids, pa.int32()),
            PROBLEM: pa.array(problems, pa.string()),
            WHY: pa.array(reasons, pa.string()),
        }


def arrow_type(shape: Shape, engine: Engine) -> pa.DataType:
    import pyarrow as pa

    if isinstance(shape, Leaf):
        return _leaf_type(shape, engine)
    if isinstance(shape, StructShape):
        return pa.struct([pa.field(name, arrow_type(inner, engine)) for name, inner in shape.fields])
    if isinstance(shape, ListShape):
        return pa.list_(pa.field("element", arrow_type(shape.items, engine)))
    if isinstance(shape, MapShape):
        return pa.map_(_leaf_type(shape.key, engine), arrow_type(shape.values, engine))
    return pa.string()


def _leaf_type(leaf: Leaf, engine: Engine) -> pa.DataType:
    import pyarrow as pa

    kind = leaf.kind
    if kind == "decimal":
        return _decimal_type(leaf, engine)
    if kind == "enum":
        return pa.dictionary(pa.int32(), pa.string()) if engine == "arrow" else pa.string()
    other = _of_spark(kind) if engine == "spark" else None
    if other is not None:
        return other
    base, _, unit = kind.rpartition("-")
    if not base:
        made: pa.DataType = getattr(pa, _FACTORIES.get(kind, kind))()
        return made
    if base == "time":
        return pa.time32("ms") if unit == "millis" else pa.time64("us")
    return pa.timestamp(_TIMES[unit], None if base == "local-timestamp" else "UTC")


def _decimal_type(leaf: Leaf, engine: Engine) -> pa.DataType:
    import pyarrow as pa

    if leaf.precision <= _MOST_DIGITS:
        return pa.decimal128(leaf.precision, leaf.scale)
    is_wide = engine == "arrow" and leaf.precision <= _MOST_DIGITS_256
    return pa.decimal256(leaf.precision, leaf.scale) if is_wide else pa.string()


def _of_spark(kind: str) -> pa.DataType | None:
    """Return the type to use in Spark if Spark lacks the Arrow type of a kind of value; else None."""
    import pyarrow as pa

    if kind in ("time-millis", "time-micros", "timestamp-nanos", "local-timestamp-nanos", "uint32"):
        return pa.int32() if kind == "time-millis" else pa.int64()
    if kind == "uint64":
        return pa.decimal128(20, 0)
    if kind in ("instant-nanos", "timestamp-millis"):
        return pa.timestamp("us", tz="UTC")
    return pa.timestamp("us") if kind == "local-timestamp-millis" else None


def array(shape: Shape, kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    if isinstance(shape, Leaf):
        return _leaf_array(shape, kind, values)
    if isinstance(shape, JsonText):
        return _texts(values)
    mask = pa.array([value is None for value in values], pa.bool_())
    if isinstance(shape, StructShape):
        null = (None,) * len(shape.fields)
        turned = list(zip(*(null if value is None else value for value in values), strict=True)) or [()] * len(null)
        children = [
            array(inner, field.type, column)
            for (_, inner), field, column in zip(shape.fields, kind, turned, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    ends = pa.array(accumulate((0 if value is None else len(value) for value in values), initial=0), pa.int32())
    parts = [part for value in values if value is not None for part in value]
    if isinstance(shape, ListShape):
        return pa.ListArray.from_arrays(ends, array(shape.items, kind.value_type, parts), type=kind, mask=mask)
    keys = _leaf_array(shape.key, kind.key_type, [key for key, _ in parts])
    items = array(shape.values, kind.item_type, [value for _, value in parts])
    return pa.MapArray.from_arrays(ends, keys, items, type=kind, mask=mask)


def _leaf_array(leaf: Leaf, kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return _decimals(kind, values)
    if leaf.kind == "decimal":
        return _texts([None if value is None else decimal_text(value, leaf.scale) for value in values])
    if leaf.kind == "enum":
        return _enums(leaf.symbols, kind, values)
    if leaf.kind == "string":
        return _texts(values)
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        if leaf.kind.endswith("-millis"):
            values = [None if value is None else value * 1000 for value in values]
        elif leaf.kind == "instant-nanos":
            values = [None if value is None else value // 1000 for value in values]
    return pa.array(values, kind)


def _decimals(kind: pa.DataType, values: Sequence[int | None]) -> pa.Array:
    import pyarrow as pa

    there = pa.array([None if value is None else True for value in values], pa.bool_())
    size = kind.bit_width // 8
    data = b"".join((value or 0).to_bytes(size, "little", signed=True) for value in values)
    return pa.Array.from_buffers(kind, len(values), [there.buffers()[0], pa.py_buffer(data)])


def _enums(symbols: Sequence[str], kind: pa.DataType, values: Sequence[int | str | None]) -> pa.Array:
    """Return enum values as texts or a dictionary. An int is an index of ``symbols``, a str a number without a name."""
    import pyarrow as pa

    if not pa.types.is_dictionary(kind):
        return _texts([symbols[value] if isinstance(value, int) else value for value in values])
    known = list(symbols)
    texts = [value for value in values if isinstance(value, str)]
    others: dict[str, int] = {text: number for number, text in enumerate(dict.fromkeys(texts), len(known))}
    numbers = [others[value] if isinstance(value, str) else value for value in values]
    return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), _texts([*known, *others]))


def _texts(values: Sequence[str | None]) -> pa.Array:
    """Return texts as an array. Half of a surrogate pair (from JSON) becomes a JSON escape: Arrow cannot hold it."""
    import pyarrow as pa

    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        return pa.array([None if one is None else one.encode("utf-8", "backslashreplace").decode() for one in values])
