"""Records as Arrow: the schema, and columns made by compiled code or from record objects."""
