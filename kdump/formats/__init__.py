"""One module per kind of file that Kafka writes. Their names are in `log_dirs/file_names.py`."""
