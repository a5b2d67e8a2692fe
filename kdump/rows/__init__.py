"""The flat row: one line of output per record, batch or damaged range."""
