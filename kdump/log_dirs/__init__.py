"""Finds partitions and their segments in folders, archives and object stores. It reads no records."""
