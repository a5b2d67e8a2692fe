"""Reads a segment as regions: batches, damage, padding and trailing bytes."""
