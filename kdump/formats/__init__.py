"""One module per kind of file or structure that Kafka writes; `log_dirs/file_names.py` has the names of the files."""
