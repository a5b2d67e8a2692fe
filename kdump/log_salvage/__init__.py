"""Writes the valid batches of one or more damaged replicas of a partition to new segments."""
