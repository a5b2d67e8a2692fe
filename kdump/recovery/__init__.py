"""What a broker does with a log dir when it starts, and the files that it rebuilds."""
