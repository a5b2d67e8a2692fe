"""Writes valid batches to new segments: merged ones of damaged replicas, or those of a range of offsets."""
