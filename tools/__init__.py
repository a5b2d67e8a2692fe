"""The project's own tools, sorted by purpose. ``--help`` describes one: ``python -m tools.prove.check --help``."""
