"""Checks of logs and of the files beside them. Their results are findings."""
