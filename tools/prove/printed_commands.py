"""Run the commands that `kdump check` prints below its verdict, on copies of log dirs.

    python -m tools.prove.printed_commands FOLDER [FOLDER ...] [--part 1/4]

Each FOLDER holds the log dirs of one broker, as folders or files named d1, d2, d3. The commands of a FOLDER run in
order in a copy. A command is wrong if `sh -n` or shlex refuses it, or if it ends with a failure, as it does when a path
that it names does not exist. kdump salvage and kdump check report damage by their exit status: 1 and 2 are wrong there.
Prints a line per wrong command; ends with 1 if there is one.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools import arguments

TOTAL = re.compile(r"[\d,]+ segments?, .* of log")
"""The line after the findings; the verdicts and their commands follow."""
KDUMP = "kdump "
SECONDS = 120


def commands(text: str) -> list[str]:
    """Return the commands of all verdicts: the indented lines after the totals that check prints for people."""
    lines = text.splitlines()
    begin = next((number for number, line in enumerate(lines) if TOTAL.match(line)), len(lines))
    return [line.strip() for line in lines[begin:] if line.startswith("  ") and not line.startswith("  ...")]


def environment() -> dict[str, str]:
    """Return the environment of a shell that finds this kdump."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def printed(folder: Path, paths: list[str]) -> list[str]:
    """Return the commands that check prints on the log dirs of a broker."""
    words = [sys.executable, "-m", "kdump", "check", *paths]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    return commands(done.stdout)


def wrong(folder: Path, paths: list[str]) -> Iterator[tuple[str, str]]:
    """Run the commands that check prints in a folder; yield each that is wrong, and why."""
    for command in printed(folder, paths):
        parsed = subprocess.run(["sh", "-n", "-c", command], capture_output=True, text=True, check=False)
        if parsed.returncode:
            yield command, parsed.stderr.strip()
            continue
        try:
            shlex.split(command)
        except ValueError as reason:
            yield command, f"shlex: {reason}"
            continue
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        reports = {0, 3, 4} if command.startswith(KDUMP) else {0}
        if done.returncode not in reports:
            yield command, f"exit {done.returncode}: {done.stderr.strip()[-300:]}"


def main() -> int:
    """Run the commands of all folders."""
    parser = arguments.parser(__doc__, part="1/1")
    parser.add_argument("folders", nargs="+", type=Path)
    options = parser.parse_args()
    number, parts = map(int, options.part.split("/"))
    ran = bad = 0
    for folder in sorted(options.folders)[number - 1 :: parts]:
        with tempfile.TemporaryDirectory(prefix="kdump-commands-") as temporary:
            copy = Path(temporary, "scene")
            shutil.copytree(folder, copy, symlinks=True)
            paths = sorted(each.name for each in copy.iterdir() if each.name in {"d1", "d2", "d3"})
            ran += len(printed(copy, paths))
            for command, reason in wrong(copy, paths):
                bad += 1
                print(f"{folder.name}: {command}\n    {reason}", flush=True)
    print(f"{ran} commands, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
