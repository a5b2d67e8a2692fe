"""The next cleaning of compacted logs: the dirty section, whether it is due, and the records that it removes."""
