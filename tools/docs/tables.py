"""Makes the tables of the docs from the code. A page includes one as ``<!-- table: NAME -->``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.dump_log_segments.dialects.releases import CHANGES
from kdump.log_dirs.file_names import FILES
from kdump.rows import columns as rows
from kdump.spark.source import kafka_options as kafka_options_of
from kdump.spark.source.options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def table(head: Iterable[str], lines: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    head = list(head)
    texts = [head, ["---"] * len(head), *lines]
    return "".join("| " + " | ".join(str(cell).replace("|", r"\|") for cell in line) + " |\n" for line in texts)


def columns() -> str:
    """Return every column once, with the kinds of JSON lines that have it."""
    kinds: dict[str, list[str]] = {}
    declared: dict[str, rows.Column] = {}
    for kind, of_kind in {**rows.KINDS, "record ": (rows.DECODED,)}.items():
        for column in of_kind:
            kinds.setdefault(column.name, []).append(kind.strip())
            declared.setdefault(column.name, column)
    lines = []
    for name, column in declared.items():
        optional = " (where there is something to say)" if column.optional else ""
        where = "all" if len(kinds[name]) == len(rows.KINDS) else ", ".join(kinds[name])
        lines.append((name, f"{column.type}{', null' if column.nullable else ''}", f"{where}{optional}", column.doc))
    return table(("Column", "Type", "In", "What it says"), lines)


def files() -> str:
    """Return the files that kdump reads."""
    return table(
        ("File", "Since", "What it holds"),
        ((f"`{file.name}`", file.since, file.holds) for file in FILES if file.format),
    )


def dialects() -> str:
    """Return the changes of each Kafka release in the output of DumpLogSegments."""
    return table(("From", "What changed"), ((change.release, "; ".join(change.why)) for change in CHANGES))


def spark_options() -> str:
    return table(("Option", "Value", "What it does"), ((option.name, option.shape, option.doc) for option in OPTIONS))


def kafka_options() -> str:
    """Return the effect of each option of Spark's Kafka source."""
    lines = ((option.name, option.fate, option.doc) for option in kafka_options_of.OPTIONS)
    return table(("Option of Kafka's source", "What is done with it", "Why, and how"), lines)


TABLES: dict[str, Callable[[], str]] = {
    "columns": columns,
    "files": files,
    "dialects": dialects,
    "spark options": spark_options,
    "kafka options": kafka_options,
}
