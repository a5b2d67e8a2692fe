"""Follows the transactions in a log: open, committed or aborted, and the last stable offset."""
