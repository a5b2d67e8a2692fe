"""Distributes work on chunks over threads or processes, and chooses their number. The callers define the work."""
