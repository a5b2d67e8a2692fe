"""Shared by commands: options, the run of an answering command, standard error and the exit status, help."""
