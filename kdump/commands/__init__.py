"""Modules of subcommands, imported when these run. A subcommand without a module is a question (kdump.answers)."""
