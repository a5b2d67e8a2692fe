"""The same stream for Spark: a data source, an export, and answers on a cluster."""
