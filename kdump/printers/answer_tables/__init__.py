"""Tables of answers for people, one module per command. ``tables()`` converts answer lines, the urgent ones first."""
