"""Code that commands share: options, the run of an answering command, messages and the exit status, help."""
