"""Records, batches and answer lines as Arrow: schemas, columns, streams of record batches, and files."""
