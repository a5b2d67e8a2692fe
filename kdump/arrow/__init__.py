"""Records as Arrow: the schema, and columns made by the kernel or from record objects."""
