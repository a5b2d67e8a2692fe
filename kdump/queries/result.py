"""``kdump.sql``: runs a query, returns all rows in memory with sentences about problems, and warns of damage."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsFloat

import pyarrow as pa

from kdump.api import Decoding, at_least, given_paths, is_committed, moment, numbers, path_text, topics
from kdump.arrow.files import TableResult
from kdump.errors import Reporter, UsageError, many, reports, warn_of_damage
from kdump.log_dirs.finder import Wanted
from kdump.output.files import scratch_folder
from kdump.primitives import timestamps
from kdump.printers import notebook
from kdump.queries import MEMORY, writers
from kdump.queries.engine import Engine, QueryLimits, Running
from kdump.queries.reading import QueryReading, SqlInputs
from kdump.schemas import TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdump.api import Decode, Isolation, Path, Time


@dataclass(frozen=True, repr=False)
class QueryResult(TableResult):
    """The rows of a query, in memory. ``damage``, ``wrong`` (on files beside the log) and ``notes`` are sentences."""

    table: pa.Table
    damage: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as dicts with pyarrow's Python values, such as bytes for a BLOB."""
        found: list[dict[str, Any]] = self.table.to_pylist()
        return found

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self.table

    def __repr__(self) -> str:
        names = ", ".join(self.table.schema.names)
        return f"<QueryResult: {many(self.table.num_rows, 'row')} of {names}{reports(self.damage)}>"

    def _repr_html_(self) -> str:
        rows = [list(row.values()) for row in self.table.slice(0, notebook.SHOWN + 1).to_pylist()]
        sentences = self.damage + self.wrong + self.notes
        return notebook.table(repr(self), self.table.schema.names, rows, sentences)


def sql(  # noqa: PLR0913  each option by its name
    query: str,
    *paths: Path | Iterable[Path],
    params: Mapping[str, object] | None = None,
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    isolation: Isolation = "read_uncommitted",
    leftovers: bool = False,
    every_replica: bool = False,
    out_of_order: bool = False,
    timeout: float | None = None,
    memory: int = MEMORY,
    decode: Decode = "none",
    schemas: Path | None = None,
    schemas_topic: str = TOPIC,
    schema: str | None = None,
) -> QueryResult:
    """Return the rows of a query over the views of ``kdump sql``, such as ``records``, ``batches`` and ``groups``.

    Values of ``params`` replace ``$NAME`` in the query: numbers, texts, bytes, datetimes and others. ``at`` is the time
    that counts as now. ``isolation="read_committed"`` leaves out records and batches that such a consumer does not get.
    ``out_of_order`` also reads segments that begin after the requested times, because they may have records of these
    times. ``decode`` adds the column ``decoded`` to records. ``schema`` adds the typed columns of a subject, as in
    :func:`kdump.open`. The query is stopped after ``timeout`` seconds; ``memory`` is DuckDB's limit in bytes. All rows
    are held in memory. If several columns are named ``n``, the second becomes ``n_1``. Requires DuckDB and pyarrow.

    Raises UsageError for a wrong query, KdumpError for a query that fails while it runs, and UnreadableError.

    >>> import kdump
    >>> kdump.sql("select topic, count(*) as n from records group by 1", "golden/brokers/4.2.2/one-0").rows()
    [{'topic': 'one', 'n': 1}]
    """
    if not isinstance(query, str):
        raise UsageError(f"{query!r} is not a query: the query comes first, then the paths")
    if not isinstance(params, Mapping | None):
        raise UsageError(f"params={params!r}: expected a dict of names and values")
    if timeout is not None and not (isinstance(timeout, SupportsFloat) and float(timeout) > 0):
        raise UsageError(f"timeout={timeout!r}: expected a number of seconds above 0")
    memory = at_least(1, memory, "memory")
    when = moment(at)
    inputs = SqlInputs(
        given_paths(paths),
        Wanted(topics=topics(topic), partitions=numbers(partition), leftovers=leftovers, siblings=True),
        timestamps.now() if when is None else when,
        committed=is_committed(isolation),
        every_replica=every_replica,
        out_of_order=out_of_order,
        schemas=None if schemas is None else path_text(schemas),
        schemas_topic=schemas_topic,
    ).decoding(Decoding.of(decode, schemas, schemas_topic, schema), "duckdb")
    damage, wrong, notes = list[str](), list[str](), list[str]()
    report = Reporter(damage.append, wrong.append, notes.append)
    with scratch_folder(None) as folder:
        limits = QueryLimits(memory, min(4, os.cpu_count() or 1), folder, timeout)
        engine = Engine(inputs.views, limits)
        running = Running(engine, query, params or {}, QueryReading(inputs, report))
        try:
            running.wait()
            rows = pa.Table.from_batches(list(running.batches()), running.schema)
            table = rows.rename_columns(writers.distinct(rows.schema.names))
        finally:
            running.close()
    warn_of_damage(damage)
    return QueryResult(table, tuple(damage), tuple(wrong), tuple(notes), paths=inputs.paths)
