"""One module per kind of file that Kafka writes. The names of the files are in `log_dirs/file_names.py`."""
