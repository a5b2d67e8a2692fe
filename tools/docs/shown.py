"""Runs the commands in the docs again, and compares or replaces their outputs.

python -m tools.docs.shown [PAGE...]    # writes the outputs of the pages again

A block ``console`` holds lines ``$ COMMAND``, each with its output, standard error included. The words ``title="exit
status 3"`` are the exit status of its last command. Commands run in the root of the checkout.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from testing import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
"""The pages whose commands are run."""
BLOCK = re.compile(
    r"^```console(?: title=\"exit status (?P<status>\d+)\")?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
ANY_BLOCK = re.compile(r"^ *```(\S*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
OUT = ROOT / "build" / "rescue"
"""The folder into which the shown commands write. It is deleted before they run."""
OPERATORS = {"|", "||", "&&", ";", ">", ">>"}
WIDTH = "100"


class Run(NamedTuple):
    """The exit status of a command, and its standard output and standard error in the order of a terminal."""

    status: int
    output: str


class Shell(NamedTuple):
    """A command line: the words of ``kdump``, and the shell command that receives its output (``| jq .offset``)."""

    words: list[str]
    rest: str


def parse(line: str) -> Shell:
    """Return the parts of a command line, without a comment. Raises ValueError for an unclosed quote."""
    lexer = shlex.shlex(line, posix=False, punctuation_chars="|&;>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word in OPERATORS:
            rest = line[line.index(word, len(" ".join(words)) - 1) :] if words else line
            return Shell(shlex.split(" ".join(words)), rest)
        words.append(word)
    return Shell(shlex.split(" ".join(words)), "")


def run(line: str, folder: Path = ROOT) -> Run:
    """Run a command line that begins with ``kdump`` in this process, and the rest of its pipe in a shell."""
    if str(OUT.relative_to(ROOT)) in line:
        shutil.rmtree(OUT, ignore_errors=True)
    program, *words = (shell := parse(line)).words
    if program != "kdump":
        raise ValueError(f"{line!r} does not begin with kdump")
    with tempfile.TemporaryFile() as out:
        if shell.rest.startswith("|") and not shell.rest.startswith("||"):
            with tempfile.TemporaryFile() as piped:
                status = _in_process(words, folder, piped.fileno(), out.fileno())
                piped.seek(0)
                subprocess.run(
                    ["bash", "-c", shell.rest[1:]], stdin=piped, stdout=out, stderr=out, cwd=folder, check=True
                )
        else:
            status = _in_process(words, folder, out.fileno(), out.fileno())
        out.seek(0)
        return Run(status, out.read().decode())


def _in_process(words: list[str], folder: Path, out: int, err: int) -> int:
    from kdump import cli

    with _streams(out, err), _place(folder, words):
        try:
            return cli.main()
        except SystemExit as end:
            return int(end.code or 0)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()


@contextmanager
def _place(folder: Path, words: list[str]) -> Iterator[None]:
    """Set the current folder, the command line to ``words``, and the width of the terminal to WIDTH columns."""
    before, arguments, width = Path.cwd(), sys.argv, os.environ.get("COLUMNS")
    os.chdir(folder)
    sys.argv = ["kdump", *words]
    os.environ["COLUMNS"] = WIDTH
    try:
        yield
    finally:
        os.chdir(before)
        sys.argv = arguments
        os.environ.pop("COLUMNS")
        if width is not None:
            os.environ["COLUMNS"] = width


@contextmanager
def _streams(out: int, err: int) -> Iterator[None]:
    """Redirect the descriptors 1 and 2, and Python's streams, to files."""
    kept = sys.stdout, sys.stderr, os.dup(1), os.dup(2)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False, buffering=1)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = kept[:2]
        for target, descriptor in enumerate(kept[2:], 1):
            os.dup2(descriptor, target)
            os.close(descriptor)


def renewed(text: str) -> str:
    """Return a page with the current outputs of its commands."""
    return BLOCK.sub(_renewed_block, text)


def _renewed_block(block: re.Match[str]) -> str:
    commands = re.findall(r"^\$ (.*)$", block["body"], re.MULTILINE)
    runs = [run(command) for command in commands]
    status = runs[-1].status
    title = f' title="exit status {status}"' if status else ""
    body = "".join(
        f"$ {command}\n{done.output.rstrip()}\n" if done.output.strip() else f"$ {command}\n"
        for command, done in zip(commands, runs, strict=True)
    )
    body = "\n".join(line.rstrip() for line in body.splitlines())
    return f"```console{title}\n{body}\n```"


def command_lines(text: str) -> Iterator[str]:
    """Yield each command line of kdump in a page outside of its console blocks."""
    for block in ANY_BLOCK.finditer(text):
        if block[1] == "sh":
            for line in block[2].splitlines():
                if found := re.match(r"(?:.*bin/|eval \"\$\()?(kdump .*?)(?:\)\".*|\s+#.*)?$", line):
                    yield found[1]
    for code in re.findall(r"`(kdump [^`]+)`", ANY_BLOCK.sub("", text)):
        yield code.replace("\\|", "|")


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:] or PAGES):
        path.write_text(renewed(path.read_text()))
