"""Queries log dirs with SQL: DuckDB reads views that are derived from the questions and the columns of rows."""

from typing import Final

MEMORY: Final = 128 << 20
"""Default limit of DuckDB's memory, in bytes."""
FORMATS: Final = ("table", "csv", "jsonl", "parquet", "arrow")
"""The output formats of a query."""
