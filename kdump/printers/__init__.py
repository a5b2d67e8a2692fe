"""The output formats: classic text, JSON lines, CSV, tables and format strings; findings and answers."""
