"""Reads the records of partitions that a filter selects, from files at rest or while a broker writes them."""
