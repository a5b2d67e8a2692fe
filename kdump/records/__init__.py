"""Batches of any magic and their records. The readers in plain Python are the reference for compiled code."""
