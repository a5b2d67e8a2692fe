"""The output formats: classic text, JSON lines, CSV, tables, format strings, findings, answers."""
