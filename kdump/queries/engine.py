"""Runs queries with DuckDB. Each query has its own connection, and can read only the views (and call the macros).

The views are Python subclasses of ``pyarrow.dataset.Dataset``. DuckDB 2 calls ``scanner(columns=, filter=)`` after its
own optimizer, for each reference to a view, and does not filter again. DuckDB does not document subclasses, so each
connection first tests a subclass with two rows. If the test fails, views are Arrow streams, which are slower.

A query runs in its own thread. The calling thread writes the rows, and stops the query at Ctrl-C or the timeout.
"""

from __future__ import annotations

import queue
import re
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.dataset
from duckdb.sqltypes import DuckDBPyType

from kdump.errors import KdumpError, UsageError
from kdump.primitives import supervision
from kdump.primitives.signals import Interrupts
from kdump.queries import statement
from kdump.queries.views import SECOND_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from kdump.queries.reading import QueryReading
    from kdump.queries.views import View

GRACE: Final = supervision.GRACE - 0.5
"""Seconds to wait for the end of an interrupted query."""
_LOOK: Final = 0.05
"""Seconds between two checks of the clock."""
BLOCK: Final = 1 << 11
"""Maximum number of rows in a block of a result."""
_NO_HOME: Final = "/nonexistent"
_LEAST_THREADS: Final = 2
"""Minimum number of threads. A single thread would collect BLOCK rows of any size before it returns them."""
MACROS: Final = {
    "as_text": "as_text(b) as try(decode(b))",
    "as_json": "as_json(b) as try(try(decode(b))::json)",
    "header": "header(h, name) as list_filter(h, lambda x: x.key = name)[1].value",
    "ts": "ts(ms) as case when ms between -62135596800000 and 253402300799999 and ms <> -1"
    " then make_timestamptz(ms * 1000) end",
}
"""Name -> definition of a function that queries can use."""
_WRONG: Final = ("ParserException", "SyntaxException", "BinderException", "CatalogException", "PermissionException")
"""DuckDB's errors for an invalid query. Its other errors occur while a query runs."""
MOST_LINES: Final = 20
_LONGEST: Final = 240


class QueryError(KdumpError):
    """A query that failed while it ran (exit status 1)."""


class WrongQueryError(UsageError):
    """A query that cannot run, such as one with a syntax error or an unknown name (exit status 2)."""


class QueryTimeoutError(QueryError):
    """A query that exceeded the timeout."""


class QueryLimits(NamedTuple):
    """The limits of a query (memory in bytes, threads, folder for temporary files, seconds), and its time zone."""

    memory: int
    threads: int
    folder: Path
    timeout: float | None = None
    zone: str = "UTC"


class ViewScan:
    """A scan of a view by DuckDB, with the columns and the condition that DuckDB passes."""

    def __init__(self, view: View, reading: QueryReading, columns: list[str], condition: Any) -> None:
        self._view, self._reading, self._columns, self._condition = view, reading, columns, condition

    def to_reader(self) -> pa.RecordBatchReader:
        shape = pa.schema([self._view.schema.field(name) for name in self._columns])
        blocks = self._reading.blocks(self._view, self._columns, self._condition)
        return pa.RecordBatchReader.from_batches(shape, blocks)


class ViewDataset(pyarrow.dataset.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """A view to which DuckDB passes columns and conditions."""

    def __init__(self, view: View, reading: QueryReading) -> None:
        self._view, self._reading = view, reading

    @property
    def schema(self) -> pa.Schema:
        return self._view.schema

    def scanner(self, columns: list[str] | None = None, filter: Any = None, **_: object) -> ViewScan:  # noqa: A002  the name that DuckDB passes
        """Return a scan of these columns (by default all), with the rows that meet the condition ``filter``."""
        return ViewScan(self._view, self._reading, list(columns or self._view.schema.names), filter)


class ViewStream:
    """A view as an Arrow stream of all its rows and columns."""

    def __init__(self, view: View, reading: QueryReading) -> None:
        self._view, self._reading = view, reading

    def __arrow_c_schema__(self) -> object:
        return self._view.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        names = list(self._view.schema.names)
        return ViewScan(self._view, self._reading, names, None).to_reader().__arrow_c_stream__(requested_schema)


class _ProbeReading:
    """A view of two rows. It records the columns of each scan, and whether the scan has a condition."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], bool]] = []

    def blocks(self, view: Any, columns: list[str], condition: Any) -> Iterator[pa.RecordBatch]:
        self.asked.append((columns, condition is not None))
        table = pa.table({"a": [1, 2], "b": ["x", "y"]}, schema=view.schema)
        kept = table if condition is None else table.filter(condition)
        yield from kept.select(columns).to_batches()


class _ProbeView:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])


def pushes_down(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether DuckDB passes columns and conditions to a Python Dataset and does not filter the rows again."""
    probe = _ProbeReading()
    reading: Any = probe
    view: Any = _ProbeView()
    try:
        connection.register("kdump_probe", ViewDataset(view, reading))
        found = connection.sql("select b from kdump_probe where a = 2").fetchall()
        connection.unregister("kdump_probe")
    except duckdb.Error:
        return False
    return found == [("y",)] and probe.asked == [(["b"], True)]


class Engine:
    def __init__(self, views: Mapping[str, View], limits: QueryLimits) -> None:
        self.views, self.limits = views, limits

    @property
    def names(self) -> list[str]:
        return [*self.views, *SECOND_NAMES, *MACROS]

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Return a connection without views or files, with locked settings. Raises UsageError for a wrong time zone."""
        limits = self.limits
        connection = duckdb.connect(
            ":memory:",
            config={
                "home_directory": _NO_HOME,  # otherwise settings and errors show the path of the user's home
                "temp_directory": str(limits.folder),
                "max_temp_directory_size": "10GB",
                "memory_limit": f"{limits.memory}B",
                "threads": str(max(_LEAST_THREADS, limits.threads)),
                "max_expression_depth": "1000",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "allow_community_extensions": "false",
                "allow_unsigned_extensions": "false",
                "allow_persistent_secrets": "false",
                "python_enable_replacements": "false",
                "enable_external_file_cache": "false",
            },
        )
        shows = "select current_setting('enable_progress_bar')"
        if getattr(duckdb, "__interactive__", True) and connection.execute(shows).fetchall() == [(True,)]:
            # DuckDB prints the bar to standard output under python -c. In Jupyter without ipywidgets it cannot be set.
            connection.execute("set enable_progress_bar = false")
        try:
            connection.execute("set timezone = ?", [limits.zone])
        except duckdb.Error as error:
            if limits.zone == "UTC":
                raise UsageError("this DuckDB has no time zones: its extension icu is missing") from None
            similar = re.findall(r'"([\w/+\-]+)"', str(error))
            hint = f"similar names: {', '.join(similar)}" if similar else "--tz takes names such as Asia/Tokyo"
            raise WrongQueryError(f"--tz {limits.zone}: there is no such time zone\nhint: {hint}") from None
        connection.execute("set enable_external_access = false")  # not in the config: DuckDB would set it in any order
        connection.execute("set lock_configuration = true")
        return connection

    def add(self, connection: duckdb.DuckDBPyConnection, reading: QueryReading, names: Iterable[str]) -> None:
        """Let a connection read the views, and use the macros, with these names."""
        kind = ViewDataset if pushes_down(connection) else ViewStream
        for name in names:
            if name in MACROS:
                connection.execute(f"create temp macro {MACROS[name]}")
            else:
                connection.register(name, kind(self.views[SECOND_NAMES.get(name, name)], reading))


class Running:
    """A query in a thread of its own, which :meth:`wait` starts: its columns, and blocks of its rows."""

    def __init__(self, engine: Engine, text: str, params: Mapping[str, object], reading: QueryReading) -> None:
        self._engine, self._text, self._params, self._reading = engine, text, params, reading
        self._blocks: queue.Queue[Any] = queue.Queue(1)
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._began, self._interrupts = time.monotonic(), Interrupts()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.types: list[str] = []
        """DuckDB's names of the columns' types."""
        self.schema: pa.Schema = pa.schema([])

    def wait(self) -> None:
        """Start the query and wait for its columns. Raises UsageError, and the errors of :meth:`batches`."""
        self._began = time.monotonic()
        self._thread.start()
        self.types, self.schema = self._next()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows. Raises KdumpError (such as QueryError or UnreadableError) and KeyboardInterrupt."""
        while (found := self._next()) is not None:
            yield found

    def close(self) -> None:
        """Stop the query, and wait up to GRACE seconds for its end."""
        self._reading.stopped.set()
        ends = time.monotonic() + GRACE
        while self._thread.is_alive() and time.monotonic() < ends:
            connection = self._connection
            if connection is not None:
                with suppress(duckdb.ConnectionException):  # the query's thread has just closed it
                    connection.interrupt()
            self._thread.join(_LOOK)

    @property
    def is_stuck(self) -> bool:
        """Whether the thread still runs after :meth:`close`, because DuckDB cannot interrupt some calls."""
        return self._thread.is_alive()

    @property
    def late(self) -> str:
        return f"query: stopped after {self._engine.limits.timeout or 0:g} s (--timeout)"

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def _next(self) -> Any:
        timeout = self._engine.limits.timeout
        while True:
            self._interrupts.check()
            if timeout is not None and self.seconds > timeout:  # checked here too, for endless rows
                raise QueryTimeoutError(self.late)
            try:
                found = self._blocks.get(timeout=_LOOK)
            except queue.Empty:
                continue
            if isinstance(found, BaseException):
                raise self._as_kdump_error(found)
            return found

    def _as_kdump_error(self, error: BaseException) -> BaseException:
        """Return the scan's own error without DuckDB's wrapper, or DuckDB's error as an error of kdump."""
        if self._reading.error is not None:
            return self._reading.error
        if isinstance(error, duckdb.Error):
            kind = WrongQueryError if type(error).__name__ in _WRONG else QueryError
            return kind(f"query: {message(error)}")
        if isinstance(error, OSError):  # an Arrow stream raises DuckDB's error as OSError
            return QueryError(f"query: {message(error)}")
        if isinstance(error, MemoryError):
            return QueryError("query: there is not enough memory (--memory)")
        return error

    def _put(self, what: Any) -> bool:
        """Pass a block to the caller; return False if the query was stopped."""
        while not self._reading.stopped.is_set():
            try:
                self._blocks.put(what, timeout=_LOOK)
            except queue.Full:
                continue
            return True
        return False

    def _relation(self) -> Any:
        """Return DuckDB's relation for a query that has not run; None without rows. Raises duckdb.Error, UsageError.

        Only the views and macros in the query are created. All of them are created if the query lists tables, or if a
        name is unknown, because then DuckDB suggests similar names.
        """
        connection = self._connection = self._engine.connect()
        query = statement.parse(self._text, self._params, connection.extract_statements)
        named = statement.named(query.text, self._engine.names)
        self._engine.add(connection, self._reading, named)
        params = dict(query.params) or None
        try:
            return connection.sql(query.text, params=params)
        except duckdb.CatalogException:
            others = [name for name in self._engine.names if name not in named]
            if not others:
                raise
        self._engine.add(connection, self._reading, others)
        return connection.sql(query.text, params=params)

    def _work(self) -> None:
        try:
            found = self._relation()
            if found is None:
                raise WrongQueryError(f"query: the statement returns no rows: {statement.ONLY}")
            _check_types(found)
            types = [str(kind) for kind in found.types]
            rows = found.to_arrow_reader(BLOCK)
            if not self._put((types, in_utc(rows.schema))):
                return
            unsigned = [place for place, name in enumerate(types) if name == "UHUGEINT"]
            for block in rows:
                for place in unsigned:
                    _be_held(block, place)
                if block.num_rows and not self._put(block.cast(in_utc(block.schema))):
                    return
            self._put(None)
        except BaseException as error:
            self._put(error)


_NESTED: Final = frozenset({"list", "array", "struct", "map", "union"})
_LOSSY: Final = frozenset({"bignum", "variant", "time with time zone"})
"""The types whose values DuckDB does not return as Arrow values. Nested values of _LOSSY_INSIDE are wrong too."""
_LOSSY_INSIDE: Final = _LOSSY | {"bit", "uhugeint"}


def _check_types(found: duckdb.DuckDBPyRelation) -> None:
    """Raise WrongQueryError for a column that has values of a type that Arrow does not have."""
    for name, kind in zip(found.columns, found.types, strict=True):
        lossy = {kind.id} & _LOSSY or (_inside(kind) & _LOSSY_INSIDE)
        if lossy:
            raise WrongQueryError(
                f"query: column {name} has values of the type {min(lossy).upper()}, which Arrow does not have: "
                "cast it to VARCHAR"
            )


def _inside(kind: DuckDBPyType) -> set[str]:
    inner = [child for _, child in kind.children if isinstance(child, DuckDBPyType)] if kind.id in _NESTED else []
    return {child.id for child in inner}.union(*map(_inside, inner))


def _be_held(block: pa.RecordBatch, place: int) -> None:
    """Raise KdumpError if a UHUGEINT is above 2**127 - 1: DuckDB returns it as a negative decimal."""
    if any(number is not None and number < 0 for number in block.column(place).to_pylist()):
        name = block.schema.names[place]
        raise KdumpError(
            f"query: column {name} has a number above 2^127 - 1, the most that Arrow holds: cast it to VARCHAR"
        )


def in_utc(schema: pa.Schema) -> pa.Schema:
    """Return a schema with all times in UTC instead of the session's zone."""
    fields = [
        field.with_type(pa.timestamp(field.type.unit, tz="UTC"))
        if pa.types.is_timestamp(field.type) and field.type.tz is not None
        else field
        for field in schema
    ]
    return pa.schema(fields, schema.metadata)


_ENDS: Final = re.compile(r"^(Possible solutions:|Detail:|Traceback \(most recent|See https?://)", re.MULTILINE)
"""Matches the start of tracebacks and the like in DuckDB's message; :func:`message` drops the text from there on."""
_HINT: Final = re.compile(
    r"(?:^|(?<=\. ))(?:Please try installing|Alternatively, consider|[^.]*\b(?:INSTALL|LOAD|SET) [a-z_]+).*"
)
"""Matches hints to run a statement that kdump refuses (INSTALL, LOAD, SET), up to the end of the line."""


def message(error: BaseException) -> str:
    """Return at most MOST_LINES lines of DuckDB's message, without hints that do not work in kdump."""
    text = _ENDS.split(str(error), maxsplit=1)[0].strip()
    if "length(BLOB)" in text:
        text = text.split("\n")[0] + "\nhint: octet_length(value) is the size of a BLOB in bytes"
    elif "Could not allocate" in text or "failed to allocate" in text or "out of memory" in text.lower():
        text = f"{text}\nhint: --memory gives the query more"
    found = text.split("\n")
    shown = (line if line.startswith("LINE ") else _HINT.sub("", line) for line in found)
    lines = [line.rstrip() for line in shown if line.strip()] or found
    return "\n".join(line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..." for line in lines[:MOST_LINES])
