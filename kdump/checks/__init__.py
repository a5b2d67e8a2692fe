"""The checks: they take regions and yield findings."""
