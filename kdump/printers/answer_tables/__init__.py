"""Tables of answers for people, one module per command. ``tables(lines)`` yields them, with urgent rows first."""
