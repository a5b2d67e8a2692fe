"""Checks a query and its parameters (:func:`parse`), and finds the views that it may use (:func:`named`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import duckdb

_PIECE: Final = re.compile(
    r"(?P<skip>'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z)|--[^\n]*|/\*.*?(?P<closed>\*/|\Z)"
    r"|(?P<dollar>\$\w*\$).*?(?:(?P=dollar)|\Z))"
    r"|(?P<word>\$?[A-Za-z_]\w*)|(?P<other>.)",
    re.DOTALL,
)
"""Matches a piece of a query. An open quote or comment lasts to the end, so that the time stays linear."""
_AFTER: Final = re.compile(r"(?>\s|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))*+(?:[0-9]|\$\w|\?|\()", re.DOTALL)
"""The operand of OFFSET: a number, a parameter or an expression in brackets."""
_EXPLAIN: Final = re.compile(r"\s*explain\b(\s+analyze\b)?(\s*\([^)]*\))?", re.IGNORECASE)
_PIVOT: Final = re.compile(r"[\s(]*(?:pivot|unpivot|pivot_wider|from|with|select)\b", re.IGNORECASE)


ONLY: Final = "only SELECT, DESCRIBE, SHOW, SUMMARIZE and EXPLAIN run here"


class Query(NamedTuple):
    """A valid query: its text, and the values of its parameters by name."""

    text: str
    params: Mapping[str, object]


def quoted_offset(text: str) -> str:
    """Return a query with the word ``offset`` quoted, except before an operand of the clause OFFSET."""
    made = []
    for piece in _PIECE.finditer(text):
        word = piece["word"]
        is_column = word is not None and word.lower() == "offset" and not _AFTER.match(text, piece.end())
        made.append('"offset"' if is_column else piece[0])
    return "".join(made)


_LISTS: Final = re.compile(
    r"\b(show|describe|query|query_table|(duckdb|pragma|pg|sqlite)_\w+|information_schema)\b|^\s*desc\b", re.IGNORECASE
)
"""Matches statements and functions that list tables, or take the name of a table as a text."""


def named(text: str, names: Iterable[str]) -> list[str]:
    """Return the views and macros among ``names`` that a query may use."""
    if _LISTS.search(text):
        return list(names)
    words = set(re.findall(r"\w+", text.lower()))
    return [name for name in names if name in words]


def without_comments(text: str) -> str:
    pieces = (" " if piece[0].startswith(("--", "/*")) else piece[0] for piece in _PIECE.finditer(text))
    return "".join(pieces)


def is_complete(text: str) -> bool:
    """Return whether a text ends with a semicolon. Whitespace and complete comments after it do not count."""
    last = ";"
    found = False
    for piece in _PIECE.finditer(text):
        if piece["closed"] == "":
            return False
        if piece["skip"] and piece[0].startswith(("--", "/*")):
            continue
        if not piece[0].isspace():
            last, found = piece[0], True
    return found and last == ";"


def parse(text: str, params: Mapping[str, object], statements: Callable[[str], Sequence[duckdb.Statement]]) -> Query:
    """Return a query that is one statement: a SELECT, or an EXPLAIN of a SELECT.

    DESCRIBE, SHOW, SUMMARIZE and PIVOT are SELECTs.
    The column ``offset`` is quoted if the text has a syntax error without quotes. ``statements``: a connection's
    ``extract_statements``; the module's opens a database first (20 ms of CPU). Raises UsageError for another statement,
    for EXPLAIN PIVOT without values, and for a missing or unused parameter; duckdb.Error for a syntax error.
    """
    import duckdb

    try:
        text.encode()
    except UnicodeEncodeError:  # bytes of an argument or a file, as Python keeps them
        raise UsageError("query: it is not valid UTF-8") from None
    try:
        found = statements(text)
    except duckdb.ParserException:
        again = quoted_offset(text)
        if again == text:
            raise
        try:
            found = statements(again)
        except duckdb.ParserException:
            found = []
        if not found:
            raise
        text = again
    if len(found) != 1:
        count = "there is no statement" if not found else f"there are {len(found)} statements"
        raise UsageError(f"query: {count}, and one is expected")
    kind = found[0].type.name
    if kind == "EXPLAIN":
        bare = without_comments(text)
        explained = _EXPLAIN.match(bare)
        inner = statements(bare[explained.end() :]) if explained else []
        kind = inner[0].type.name if len(inner) == 1 else "EXPLAIN"
    if kind == "MULTI" and _PIVOT.match(without_comments(text)) and "pivot" in text.lower():
        kind = "SELECT"  # a PIVOT without a list of columns becomes several statements
    if kind != "SELECT":
        raise UsageError(f"query: {kind.replace('_', ' ')} is refused: {ONLY}")
    return Query(text, _given(found[0].named_parameters, params))


def _given(used: set[str], params: Mapping[str, object]) -> Mapping[str, object]:
    missing, unused = sorted(used - params.keys()), sorted(params.keys() - used)
    if any(name.isdigit() for name in missing):
        raise UsageError("query: parameters have names: write $name, and give --param name=VALUE")
    if missing:
        raise UsageError(f"query: the parameter ${missing[0]} is not given: --param {missing[0]}=VALUE")
    if unused:
        raise UsageError(f"query: --param {unused[0]}: there is no ${unused[0]} in the query")
    return params
