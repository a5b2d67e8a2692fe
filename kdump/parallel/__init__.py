"""Distributes work over threads and processes, and chooses their number."""
