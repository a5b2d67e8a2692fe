"""Test that no command and format controls a terminal: all command lines of `testing.terminals` over a log dir.

    python -m tools.prove.terminals LOG_DIR [--spark]    # such as one whose names and records hold escape sequences

runs each on a terminal without colours and on one with them, and prints the control characters. ``--spark`` runs only
the command lines that start Spark. The exit status is 1 if something controls the terminal.
"""

import sys
import tempfile
from pathlib import Path

from testing import terminals
from tools import arguments


def main() -> int:
    """Run the matrix; return the exit status."""
    parser = arguments.parser(__doc__)
    parser.add_argument("log_dir", type=Path, metavar="LOG_DIR")
    parser.add_argument("--spark", action="store_true")
    given = parser.parse_args()
    log_dir = given.log_dir
    runs = wrong = 0
    with tempfile.TemporaryDirectory() as out:
        matrix = terminals.spark_matrix if given.spark else terminals.matrix
        for words in matrix(log_dir, Path(out)):
            for colours in (False,) if given.spark else (False, True):
                runs += 1
                screen = terminals.show(words, colours=colours)
                if screen.faults or b"Traceback" in screen.shown:
                    wrong += 1
                    print(f"{words!r}: {screen.faults[:1] or screen.shown[-200:]!r}")
    print(f"{runs} runs on a terminal, {wrong} with what steers it or a traceback")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
