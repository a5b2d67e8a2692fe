"""Print the README's table of columns from what rows.py declares.

python -m tools.dev.row_table
"""

from __future__ import annotations

import sys

from kdump.rows import columns as rows


def table() -> str:
    """Return the table: every column once, with the kinds of lines that have it."""
    kinds: dict[str, list[str]] = {}
    columns: dict[str, rows.Column] = {}
    for kind, declared in {**rows.KINDS, "record ": (rows.DECODED,)}.items():
        for column in declared:
            kinds.setdefault(column.name, []).append(kind.strip())
            columns.setdefault(column.name, column)
    lines = ["| Column | Type | In | What it says |", "|---|---|---|---|"]
    for name, column in columns.items():
        optional = " (where there is something to say)" if column.optional else ""
        where = "all" if len(kinds[name]) == len(rows.KINDS) else ", ".join(kinds[name])
        lines.append(
            f"| {name} | {column.type}{', null' if column.nullable else ''} | {where}{optional} | {column.doc} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table())
