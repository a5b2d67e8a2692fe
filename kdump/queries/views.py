"""The views of ``kdump sql``, derived from the declarations of the lines that commands print.

Records, batches and damage have the columns of :mod:`kdump.rows.columns`. Other views have the fields of findings, or
of lines of :data:`kdump.answers.QUESTIONS` and ``kdump schemas``. Columns are named as in ``-o jsonl``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kdump.answers import QUESTIONS, question_named, table_names
from kdump.arrow import schema
from kdump.arrow.header_rows import batch_schema
from kdump.rows import columns as rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.answers.question import LineTable
    from kdump.arrow.typed import TypedColumns
    from kdump.rows.columns import Column

SECOND_NAMES: Final = {"du": "partitions"}
"""Name of a command -> the view that also has this name."""
SIZES: Final = {
    "keySize": rows.Column("keySize", "int", "record.key", "The size of the key in bytes; -1 if it is null."),
    "valueSize": rows.Column("valueSize", "int", "record.value", "The size of the value in bytes; -1 if it is null."),
}
"""Columns that can be added to records (:class:`Views`), for hidden payloads: ``key`` and ``value`` are then null."""
_UNITS: Final = (
    (re.compile(r"Ms$"), "ms since 1970 (UTC)"),
    (re.compile(r"^(age|retention|localRetention|timeout)Ms$"), "ms"),
    (re.compile(r"[bB]ytes$|^size$|[a-z]Size$"), "bytes"),
    (re.compile(r"^(position|at)$"), "byte of the file"),
)


class View:
    """A view: its columns, and the ``command`` and ``kind`` of JSON lines. Most columns are fields of these lines."""

    def __init__(self, name: str, command: str, kind: str, doc: str) -> None:
        self.name, self.command, self.kind, self.doc = name, command, kind, doc

    schema: pa.Schema

    @property
    def docs(self) -> Mapping[str, str]:
        """Column -> its description. Some columns have none."""
        raise NotImplementedError

    def lines(self) -> Iterator[dict[str, object]]:
        """Yield a line of ``kdump sql --schema`` for each column."""
        docs = self.docs
        for field in self.schema:
            unit = unit_of(field)
            line = {
                "view": self.name,
                "column": field.name,
                "type": type_name(field.type),
                "command": self.command,
                "kind": self.kind,
                "doc": _sentence(docs.get(field.name) or plain_words(field.name)),
            }
            yield line if unit is None else {**line, "unit": unit}


class RowView(View):
    """A view of records, batches or damage, with columns of :data:`kdump.rows.columns.KINDS`."""

    def __init__(
        self,
        name: str,
        command: str,
        kind: str,
        doc: str,
        more: tuple[Column, ...] = (),
        typed: TypedColumns | None = None,
    ) -> None:
        super().__init__(name, command, kind, doc)
        self._typed = typed
        if typed is not None:
            more = (*more, *(column for column in rows.TYPED if column.name in typed.names))
        self.columns = (*(column for column in rows.KINDS[kind] if column.name not in rows.TEXT_ONLY), *more)

    @cached_property
    def schema(self) -> pa.Schema:
        shape = batch_schema([column for column in self.columns if column.type not in {"any", "json", "headers"}])
        header = schema.arrow(schema.chosen(["headers"])).field(0).type
        types = {"any": pa.string(), "json": pa.json_(), "headers": header}
        own = {} if self._typed is None else {name: self._typed.field(name) for name in self._typed.names}
        return pa.schema(
            own.get(one.name) or pa.field(one.name, types.get(one.type) or shape.field(one.name).type)
            for one in self.columns
        )

    @property
    def docs(self) -> Mapping[str, str]:
        return {column.name: column.doc for column in self.columns}


class LineView(View):
    """A view of one class of a command's lines. ``question`` is None for the lines of ``kdump schemas``."""

    def __init__(self, command: str, table: LineTable, question: str | None = None) -> None:
        words = f"{command} {table.words}".rstrip()
        super().__init__(table.name, words, table.line.kind, _sentence(table.line.__doc__ or ""))
        self.table, self.question = table, question

    @cached_property
    def schema(self) -> pa.Schema:
        from kdump.arrow import answer_lines

        omits = self.table.omits
        return pa.schema([field for field in answer_lines.fields_of(self.table.line) if field[0] not in omits])

    @property
    def docs(self) -> Mapping[str, str]:
        return _field_docs(self.table.line)


def _of_question(question: str, name: str) -> LineView:
    found = question_named(question)
    return LineView(found.called, _table(found.tables, name), question)


def _of_registry(name: str) -> LineView:
    from kdump.answers.schemas import TABLES

    return LineView("schemas", _table(TABLES, name))


def _table(tables: Iterable[LineTable], name: str) -> LineTable:
    return next(table for table in tables if table.name == name)


class FindingView(View):
    """The findings of ``kdump check``, but no notes. Without ``whole`` it lacks the fields of :data:`_OF_DETAILS`."""

    def __init__(self, name: str, doc: str, *, whole: bool) -> None:
        super().__init__(name, "check", "finding", doc)
        self._whole = whole

    @cached_property
    def schema(self) -> pa.Schema:
        from kdump.arrow.answer_lines import findings_schema

        return pa.schema([one for one in findings_schema() if self._whole or one.name not in _OF_DETAILS])

    @property
    def docs(self) -> Mapping[str, str]:
        from kdump.findings import Finding

        return {**_field_docs(Finding.__base__), **_FINDING_DOCS}


_OF_DETAILS: Final = frozenset({"code", "missing", "loses", "commands"})
_FINDING_DOCS: Final = {
    "check": "A short stable word for the problem, such as crc or gap.",
    "code": "The stable code of docs/finding-codes.md.",
    "level": "derived: a wrong file that can be rebuilt from the log, or another fault that costs no records; "
    "log: any other problem.",
    "file": "The path of the file.",
    "text": "The problem as a sentence.",
    "entry": "The entry of an index, counted from 0.",
    "position": "The byte of the file at which the problem starts.",
    "offset": "An offset of the log.",
    "expected": "The expected value.",
    "found": "The value in the file.",
    "advice": "The next step.",
    "fatal": "Whether the problem prevents a broker's start.",
}
FINDINGS: Final = "findings"
RECORDS: Final = "records"
BATCHES: Final = "batches"
DAMAGE: Final = "damage"
FINDING_DETAILS: Final = "finding_details"
REGISTRY: Final = ("schemas", "subjects", "schema_history")
"""The tables of :mod:`kdump.answers.schemas`."""


class Views(Mapping[str, View]):
    """All views by name. A view is created on access, because this imports the class of its lines."""

    def __init__(self, *, decoded: bool = False, sizes: bool = False, typed: TypedColumns | None = None) -> None:
        """``decoded`` adds a column to records, ``sizes`` the columns of SIZES, ``typed`` the columns of a subject."""
        more = ((rows.DECODED,) if decoded else ()) + (tuple(SIZES.values()) if sizes else ())
        self._makers: dict[str, Callable[[], View]] = {
            RECORDS: lambda: RowView(RECORDS, "dump", "record", "The records of logs.", more, typed),
            BATCHES: lambda: RowView(BATCHES, "dump --batches", "batch", "The batches of logs, by their headers."),
            DAMAGE: lambda: RowView(DAMAGE, "dump", "damage", "The damaged ranges of logs."),
            FINDINGS: lambda: FindingView(FINDINGS, "The problems that a check finds.", whole=False),
            FINDING_DETAILS: lambda: FindingView(
                FINDING_DETAILS,
                "The same problems, with codes, counts of records and commands.",
                whole=True,
            ),
        }
        for question in QUESTIONS:
            self._makers |= {name: partial(_of_question, question, name) for name in table_names(question)}
        self._makers |= {name: partial(_of_registry, name) for name in REGISTRY}
        self._made: dict[str, View] = {}

    def __getitem__(self, name: str) -> View:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def schema_lines(names: Iterable[str], known: Mapping[str, View]) -> Iterator[dict[str, object]]:
    """Yield a line for each column of these views, by default of all views."""
    for name in names or known:
        yield from known[SECOND_NAMES.get(name, name)].lines()


def unit_of(field: pa.Field) -> str | None:
    """Return the unit of a column of integers, judged by its name; None if it has none."""
    if not pa.types.is_integer(field.type):
        return None
    found = [unit for pattern, unit in _UNITS if pattern.search(field.name)]
    return found[-1] if found else None


_TYPES: Final = {
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float32(): "FLOAT",
    pa.date32(): "DATE",
    pa.time32("ms"): "TIME",
    pa.time64("us"): "TIME",
    pa.timestamp("ms"): "TIMESTAMP_MS",
    pa.timestamp("us"): "TIMESTAMP",
    pa.timestamp("ns"): "TIMESTAMP_NS",
}


def type_name(kind: pa.DataType) -> str:
    """Return DuckDB's name of an Arrow type, as DESCRIBE prints it."""
    return _in_duckdb(_type_name(kind)) if pa.types.is_nested(kind) else _type_name(kind)


@cache
def _in_duckdb(name: str) -> str:
    """Return a type name as DuckDB writes it: only some field names are quoted."""
    import duckdb

    return str(duckdb.sqltype(name))


def _type_name(kind: pa.DataType) -> str:
    if isinstance(kind, pa.JsonType):
        return "JSON"
    if pa.types.is_struct(kind):
        inside = ", ".join(f'"{field.name}" {_type_name(field.type)}' for field in kind)
        return f"STRUCT({inside})"
    if pa.types.is_map(kind):
        return f"MAP({_type_name(kind.key_type)}, {_type_name(kind.item_type)})"
    if pa.types.is_list(kind):
        return f"{_type_name(kind.value_type)}[]"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind) and kind.tz:
        return "TIMESTAMPTZ_NS" if kind.unit == "ns" else "TIMESTAMP WITH TIME ZONE"
    return _TYPES[kind]


def _sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", " ".join(text.split()), maxsplit=1)[0]


def plain_words(name: str) -> str:
    """Return the name of a column as words, for a column without a description."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name.removesuffix("Ms")).lower()
    return f"{words[0].upper()}{words[1:]}."


@cache
def _field_docs(line: Any) -> dict[str, str]:
    """Return the docstrings below the fields of a class, by their names in JSON."""
    import ast
    import inspect

    from kdump.answers.collector import camel_case

    source = ast.parse(inspect.getsource(sys.modules[line.__module__]))
    body = next(node.body for node in source.body if isinstance(node, ast.ClassDef) and node.name == line.__name__)
    found = {}
    for node, after in pairwise(body):
        is_field = (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and node.target.id in line.__annotations__
        )
        if is_field and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            name = camel_case(node.target.id)  # type: ignore[attr-defined]  # it is a name
            found[name] = str(after.value.value)
    return found
