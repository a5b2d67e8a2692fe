"""Records as Arrow: the schema, and columns made by the kernel or of records as objects."""
