"""Tables of answers for people, one module per command: ``tables(lines)``, or a function for each kind of lines."""
