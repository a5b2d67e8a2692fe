"""The command line of a tool. The docstring of its module is the help."""

import argparse


def parser(text: str | None, **defaults: int | str) -> argparse.ArgumentParser:
    """Return a parser with an option for each of ``defaults``: its name and its default."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in defaults.items():
        made.add_argument(f"--{name}", type=type(value), default=value, help="(%(default)s)")
    return made
