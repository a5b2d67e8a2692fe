"""Batches of any magic and their records, read in plain Python: the reference for compiled code."""
