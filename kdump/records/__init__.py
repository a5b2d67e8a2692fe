"""Batches of any magic and their records, read in plain Python: the truth that the kernel is compared with."""
