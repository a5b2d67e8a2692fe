"""Query log dirs with SQL: DuckDB over views derived from the registry of questions and the columns of rows."""
