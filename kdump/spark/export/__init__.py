"""Export the records of segments by Spark as Parquet, ORC, JSON, CSV or tables, with an account of every input byte."""
