"""Queries log dirs with SQL: DuckDB reads views that are derived from the questions and the columns of rows."""
