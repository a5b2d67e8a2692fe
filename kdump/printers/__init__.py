"""The endings of the stream: classic text, JSON lines, tables."""
