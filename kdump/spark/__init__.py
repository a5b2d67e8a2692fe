"""kdump on Spark: a data source, an export to files and tables, and answers on a cluster."""
