"""What log dirs can tell: one module per question, each a collector that one pass over the files feeds."""
