"""What the project's own people run, sorted by purpose; ``python -m tools.prove.check --help`` says what one does."""
