"""Records, batches and the lines of answers as Arrow: schemas, columns, streams of record batches, and their files."""
