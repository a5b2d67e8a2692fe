"""All writers of files and of standard output: locks, parts, permissions. The callers make the content."""
