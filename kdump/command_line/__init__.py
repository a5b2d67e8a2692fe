"""Code that commands share: options, help, messages, the exit status, and the run of an answering command."""
