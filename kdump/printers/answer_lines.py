"""Writes the lines of answers as JSON lines, CSV, or plain tables. ``answer_terminal`` draws tables on a terminal."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from kdump.answers.collector import as_json
from kdump.primitives.terminal import harmless_line
from kdump.printers.json_text import harmless_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kdump.answers.collector import AnswerLine


_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class AnswerTable(NamedTuple):
    """A table for people: a title, names of columns, and cells; None is shown as a dash."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    right: frozenset[str] = frozenset()
    """Columns that are aligned to the right."""
    commands: Sequence[tuple[str, str]] = ()
    """The commands to print below the rows, each on one line: pairs of purpose and command line."""
    spare: Sequence[str] = ()
    """Columns that are omitted before others on a narrow terminal, in the order of omission."""

    @classmethod
    def of(
        cls, title: str, rows: Iterable[Mapping[str, object]], right: Iterable[str] = (), **more: Any
    ) -> AnswerTable:
        """Return a table of ``rows`` (column -> cell, all with the columns of the first). ``more``: other fields."""
        columns: tuple[str, ...] = ()
        cells = []
        for row in rows:
            columns = columns or tuple(row)
            cells.append(tuple(row.values()))
        return cls(title, columns, cells, frozenset(right), **more)

    def below(self) -> Iterator[str]:
        """Yield the lines below the table: the commands, each after a comment with its purpose, as a shell script."""
        if self.commands:
            yield ""
        for what, command in self.commands:
            yield f"# {harmless_line(what)}"
            yield harmless_line(command)


def plain_tables(lines: Iterable[AnswerLine]) -> Iterator[AnswerTable]:
    """Yield a table of each kind of line, with all fields but ``kind``, for answers without tables of their own."""
    rows: dict[str, list[dict[str, object]]] = {}
    for line in lines:
        rows.setdefault(line.kind, []).append(as_json(line))
    for kind, found in rows.items():
        names = [name for name in found[0] if name != "kind"]
        yield AnswerTable(kind, names, [[row[name] for name in names] for row in found])


def json_line(value: Mapping[str, object]) -> bytes:
    """Return a JSON object as one line, with control characters escaped."""
    return _text_line(_encode(value))


def _text_line(text: str) -> bytes:
    return harmless_json(text).encode("utf-8", "backslashreplace") + b"\n"


def write_texts(texts: Iterable[str], out: BinaryIO) -> None:
    """Write each JSON text as one line, with control characters escaped."""
    for text in texts:
        out.write(_text_line(text))


def write_jsonl(lines: Iterable[AnswerLine], out: BinaryIO) -> None:
    for line in lines:
        out.write(json_line(as_json(line)))


def write_csv(lines: Iterable[AnswerLine], out: BinaryIO) -> None:
    """Write the lines as CSV (RFC 4180, with plain newlines), with a header line whenever the fields change.

    Values other than texts are JSON. A null is an empty cell. Texts have control characters, but not on terminals.
    """
    shown: Callable[[str], str] = harmless_line if out.isatty() else str
    names: list[str] = []
    for line in lines:
        row = as_json(line)
        if list(row) != names:
            names = list(row)
            out.write(csv_line(names))
        out.write(csv_line([shown(_csv_cell(value)) for value in row.values()]))


def csv_line(cells: Sequence[object]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)  # so that Python 3.11 quotes a cell with \r
    return text.getvalue().removesuffix("\r\n").encode("utf-8", "backslashreplace") + b"\n"


def _csv_cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json_cell(value)


def json_cell(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def write_plain(tables: Iterable[AnswerTable], out: BinaryIO) -> None:
    """Write tables as aligned text for pipes and files. Lines are not folded."""
    for number, table in enumerate(tables):
        cells = [[_text(cell) for cell in row] for row in table.rows]
        widths = [max(map(len, column)) for column in zip(table.columns, *cells, strict=True)]
        lines = [] if not number else [""]
        lines += [harmless_line(table.title)] if table.title else []
        line = "  ".join(
            f"{{:{'>' if name in table.right else '<'}{width}}}"
            for name, width in zip(table.columns, widths, strict=True)
        )
        lines += [line.format(*row).rstrip() for row in ([table.columns, *cells] if cells else [])]
        lines += table.below()
        out.write("".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))


def _text(cell: object) -> str:
    return "-" if cell is None else harmless_line(str(cell))
