"""Distributes work on chunks over threads and processes, and chooses their number. The callers define the work."""
