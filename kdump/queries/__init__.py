"""Queries log dirs with SQL. DuckDB reads views of records, batches, damage, findings and answers."""

from typing import Final

MEMORY: Final = 128 << 20
"""Default limit of DuckDB's memory, in bytes."""
FORMATS: Final = ("table", "csv", "jsonl", "parquet", "arrow")
