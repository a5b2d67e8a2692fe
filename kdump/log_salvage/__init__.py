"""Writes valid batches to new segments: all of the damaged replicas of partitions, or those of a range of offsets."""
