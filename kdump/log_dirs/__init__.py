"""Where files come from: folders, archives and object stores as partitions with their segments."""
