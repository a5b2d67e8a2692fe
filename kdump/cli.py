"""The root command: the options of DumpLogSegments, and the table of subcommands."""

from __future__ import annotations


def main() -> int:
    """Start kdump."""
    return 2
