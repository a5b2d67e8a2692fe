"""Exports records with Spark as Parquet, ORC, JSON, CSV or tables, with an account of every input byte."""
