"""The next cleaning of compacted logs: the dirty section, whether a cleaning is due, and the records that it drops."""
