"""The common code of commands: options, help, messages, the exit status, and the run of an answering command."""
