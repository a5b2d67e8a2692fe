"""A broker's recovery of a log dir at its start, and the files that it rebuilds."""
