"""Writes the valid batches of damaged replicas to new segments."""
