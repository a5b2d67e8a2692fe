"""``kdump.scan``: records of logs as a Polars LazyFrame. Polars passes predicate, columns and limit to the reader."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kdump.api import Decoding, given_paths, is_committed, numbers, topics
from kdump.errors import DamageWarning, NoteWarning, Reporter, warn
from kdump.log_dirs.finder import Wanted
from kdump.primitives import timestamps
from kdump.queries import conditions
from kdump.queries.conditions import Bounds, Values
from kdump.queries.reading import QueryReading, SqlInputs
from kdump.queries.views import RECORDS
from kdump.schemas import TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.api import Decode, Isolation, Path


def scan(  # noqa: PLR0913  each option by its name
    *paths: Path | Iterable[Path],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    leftovers: bool = False,
    every_replica: bool = False,
    isolation: Isolation = "read_uncommitted",
    out_of_order: bool = False,
    decode: Decode = "none",
    schemas: Path | None = None,
    schemas_topic: str = TOPIC,
    schema: str | None = None,
) -> Any:
    """Return the records of logs as a Polars LazyFrame, with the columns and types of the SQL view ``records``.

    kdump reads less with selected columns, ``head``, and comparisons with a constant: ``==`` of topic, key, producerId
    or leaderEpoch; ``==``, ``<``, ``>`` of partition, offset or times; not ``is_between`` or ``is_in``. Damage and
    unused index files are reported as DamageWarning, notes as NoteWarning (in ``kdump.errors``). An unreadable file
    raises UnreadableError. ``isolation="read_committed"`` returns only the records that such a consumer receives. If
    times have a start and an end, segments that begin after the end are skipped; ``out_of_order`` reads them.
    ``decode`` adds the column ``decoded``, ``schema`` typed columns (:func:`kdump.open`). Requires Polars and pyarrow.

    >>> import kdump, polars as pl
    >>> frame = kdump.scan("golden/brokers/4.2.2", topic="c-none")
    >>> frame.filter(pl.col("offset") < 2).select("offset", "codec").collect().rows()
    [(0, 'none'), (1, 'none')]
    """
    import polars as pl
    import pyarrow as pa
    from polars.io.plugins import register_io_source

    inputs = SqlInputs(
        given_paths(paths),
        Wanted(topics=topics(topic), partitions=numbers(partition), leftovers=leftovers),
        timestamps.now(),
        committed=is_committed(isolation),
        every_replica=every_replica,
        out_of_order=out_of_order,
    ).decoding(Decoding.of(decode, schemas, schemas_topic, schema), "arrow")
    view = inputs.views[RECORDS]
    damage = partial(warn, kind=DamageWarning)
    report = Reporter(damage, damage, partial(warn, kind=NoteWarning))

    def frames(
        with_columns: list[str] | None, predicate: Any, n_rows: int | None, batch_size: int | None
    ) -> Iterator[Any]:
        """Yield exactly the requested rows, because Polars does not apply the predicate and the limit again."""
        del batch_size  # the reader chooses the size of blocks
        columns = with_columns or view.schema.names
        used = [] if predicate is None else predicate.meta.root_names()
        bounds = {} if predicate is None else bounds_of(predicate)
        names = [*columns, *(name for name in dict.fromkeys(used) if name not in columns)]
        left = n_rows
        for block in QueryReading(inputs, report).rows(view, names, bounds):
            frame: Any = pl.from_arrow(pa.Table.from_batches([block]))
            if predicate is not None:
                frame = frame.filter(predicate)
            frame = frame.select(columns)
            if left is not None:
                frame = frame.head(left)
                left -= len(frame)
            yield frame
            if left == 0:
                return

    empty: Any = pl.from_arrow(view.schema.empty_table())
    return register_io_source(frames, schema=empty.schema)


_COMPARISONS: Final = {"Eq": "==", "Gt": ">", "GtEq": ">=", "Lt": "<", "LtEq": "<="}


def bounds_of(predicate: Any) -> Bounds:
    """Return the bounds of a Polars predicate. Polars may change the JSON form, so unknown parts are ignored."""
    import polars as pl

    try:
        return _bounds(json.loads(predicate.meta.serialize(format="json")))
    except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError):  # Python functions have no JSON
        return {}


def _bounds(node: Any) -> Bounds:
    if not isinstance(node, dict) or "BinaryExpr" not in node:
        return {}
    one = node["BinaryExpr"]
    if one["op"] in ("And", "LogicalAnd"):
        return conditions.both(_bounds(one["left"]), _bounds(one["right"]))
    if one["op"] in ("Or", "LogicalOr"):
        return conditions.either(_bounds(one["left"]), _bounds(one["right"]))
    sign = _COMPARISONS.get(one["op"])
    if sign is None or "Column" not in one["left"]:
        return {}
    value = _literal(one["right"])
    name = one["left"]["Column"]
    if value is None or (name == "timestamp" and not isinstance(value, int)):
        return {}
    if sign == "==":
        return {name: Values(only=frozenset((value,)))}
    return conditions.compared(name, sign, "number", value) if type(value) is int else {}


def _literal(node: Any) -> Any:
    """Return the value of a literal, or None if it is of an unknown kind."""
    scalar = node["Literal"].get("Scalar", {}) if "Literal" in node else {}
    if "Literal" in node and "Dyn" in node["Literal"]:
        scalar = node["Literal"]["Dyn"]
    for kind, value in scalar.items() if isinstance(scalar, dict) else ():
        if kind in ("Int", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"):
            return int(value)
        if kind in ("String", "Boolean"):
            return value
        if kind == "Binary":
            return bytes(value)
        if kind.startswith("Datetime") and isinstance(value, list):
            per = {"Microseconds": 1, "Milliseconds": 1000}.get(value[1])
            return None if per is None else value[0] * per
    return None
