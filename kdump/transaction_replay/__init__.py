"""The transactions in a log, and their outcomes."""
