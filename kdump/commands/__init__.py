"""The root command and the subcommands, imported when needed. One without a module is a question (kdump.answers)."""
