"""The printers of records (classic text, JSON lines, CSV, tables, format strings), of findings and of answers."""
