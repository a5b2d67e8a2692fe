"""Which transactions a log holds, and how they ended."""
