"""Converts the lines of answers, and findings, to Arrow tables. Makes the DDL of a schema for Spark."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin, get_type_hints

import pyarrow as pa

from kdump.answers.collector import as_json, camel_case
from kdump.findings import Finding, Level
from kdump.printers.answer_lines import json_cell
from kdump.printers.findings_report import finding_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.answers.collector import AnswerLine

KIND: Final = "kind"
_PLAIN: Final = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
_NAMED: Final = {"partition": pa.int32()}
"""Column -> its type in the tables of records, which replaces the type of the annotation."""


class LineColumns:
    """The columns of a table for lines of several classes: ``kind``, then each field once; null if a line lacks it.

    If fields of two classes have the same name but different types, the second one becomes ``<kind><Field>``.
    """

    def __init__(self, kinds: Iterable[type[AnswerLine]]) -> None:
        self._names: dict[str, dict[str, str]] = {}
        types: dict[str, pa.DataType] = {KIND: pa.string()}
        for one in kinds:
            names = self._names[one.kind] = {}
            for name, kind in fields_of(one):
                column = name
                if types.setdefault(name, kind) != kind:
                    column = f"{one.kind}{name[0].upper()}{name[1:]}"
                    types[column] = kind
                names[name] = column
        self.schema = pa.schema(list(types.items()))

    def row(self, line: AnswerLine) -> dict[str, Any]:
        names = self._names[line.kind]
        return {names.get(name, name): value for name, value in as_json(line).items()}

    def batches_table(self, rows: Sequence[dict[str, Any]]) -> pa.Table:
        return pa.Table.from_batches([self.batch(rows)], self.schema)

    def batch(self, rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(rows, self.schema)


def table(kind: type[AnswerLine], lines: Iterable[AnswerLine]) -> pa.Table:
    return rows_table(map(as_json, lines), pa.schema(list(fields_of(kind))))


def rows_table(rows: Iterable[dict[str, Any]], shape: pa.Schema) -> pa.Table:
    """Return JSON objects as a table with the columns of ``shape``. A column of JSON type becomes one of JSON text."""
    texts = [field.name for field in shape if isinstance(field.type, pa.JsonType)] if hasattr(pa, "JsonType") else []
    plain = pa.schema([pa.field(one.name, pa.string()) if one.name in texts else one for one in shape])
    made = [{**row, **{name: _json_text(row.get(name)) for name in texts}} for row in rows]
    return pa.Table.from_pylist(made, plain)


def findings_schema() -> pa.Schema:
    types = {"fatal": pa.bool_(), "commands": pa.list_(pa.field("element", pa.string()))}
    types |= dict.fromkeys(("entry", "position", "offset", "missing", "loses"), pa.int64())
    names = finding_row(Finding(level=Level.LOG, file="", kind="crc", text=""))
    return pa.schema([(name, types.get(name, pa.string())) for name in names])


def finding_row(finding: Finding) -> dict[str, Any]:
    """Return the JSON object of a finding without ``kind`` and ``version``; ``expected`` and ``found`` are texts."""
    line = {name: value for name, value in finding_line(finding).items() if name not in {KIND, "version"}}
    texts = {name: None if line[name] is None else str(line[name]) for name in ("expected", "found")}
    return {**line, **texts}


def findings_table(findings: Iterable[Finding]) -> pa.Table:
    return pa.Table.from_pylist([finding_row(one) for one in findings], findings_schema())


def _json_text(value: Any) -> str | None:
    return None if value is None else json_cell(value)


def fields_of(line: Any) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the name in JSON and the Arrow type of each field. ``line`` is a dataclass."""
    hints = get_type_hints(line)
    for field in fields(line):
        name = camel_case(field.name)
        yield name, _NAMED.get(name, _type(hints[field.name]))


def _type(hint: Any) -> pa.DataType:
    args = [one for one in get_args(hint) if one is not NoneType]
    if hint in _PLAIN:
        return _PLAIN[hint]
    if is_dataclass(hint):
        return pa.struct(list(fields_of(hint)))
    if get_origin(hint) is Literal:
        return _PLAIN[type(args[0])]
    if get_origin(hint) in (tuple, list):
        return pa.list_(pa.field("element", _type(args[0])))
    if get_origin(hint) is dict and args[1] in (Any, object):
        return pa.json_()
    if get_origin(hint) is dict:
        return pa.map_(*map(_type, args))
    return _type(args[0])


def ddl(schema: pa.Schema) -> str:
    return ", ".join(f"`{field.name}` {_sql(field.type)}" for field in schema)


def _sql(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'`{field.name}`: {_sql(field.type)}' for field in kind)}>"
    if pa.types.is_list(kind):
        return f"array<{_sql(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{_sql(kind.key_type)}, {_sql(kind.item_type)}>"
    return _SQL[kind]


_SQL: Final = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
}
