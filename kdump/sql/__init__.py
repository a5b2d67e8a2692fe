"""SQL over log dirs: views made of the registry of questions and of rows, read by DuckDB as far as a query needs."""
