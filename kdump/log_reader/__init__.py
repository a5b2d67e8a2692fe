"""The records of a partition through a filter."""
