"""Writes files and standard output: locks, parts, permissions, the pager. The callers make the content."""
