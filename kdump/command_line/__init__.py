"""The common code of commands: options, help, messages, the exit status, the runs of dump and of answering commands."""
