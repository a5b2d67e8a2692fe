"""Replays the transactions of a log: which are open, committed or aborted, and the last stable offset."""
