"""Simulates how a broker recovers one log at its start, and makes the indexes that it rebuilds. Changes no file."""
