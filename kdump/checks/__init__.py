"""Checks of logs and of the files beside them. They yield findings, and change nothing."""
