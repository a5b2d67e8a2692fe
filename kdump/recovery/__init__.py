"""Simulates a broker's recovery of a log at its start, and makes the index files that a broker rebuilds. Changes no
file.
"""
