"""Runs kdump in a separate process, as a user does."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from testing import ROOT, fork_server

FORKED = {"check", "cwd", "encoding", "env", "input", "stderr", "stdin", "stdout", "text", "timeout"}
"""Options that the run of a forked process supports."""

FIRST_LINE = '"$@" | head -n 1; echo ${PIPESTATUS[0]}'
"""A script that prints the first line of a command's output, then its exit status."""


def python(*args, shell="", **options) -> subprocess.CompletedProcess:
    """Run Python in a new process, as ``"$@"`` of the script ``shell`` if it is given.

    ``options`` are those of :func:`subprocess.run`; the defaults run it in ROOT and capture its output.
    """
    command = [sys.executable, *map(str, args)]
    if shell:
        command = ["bash", "-c", shell, "bash", *command]
    defaults = {"cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run(command, check=options.pop("check", False), **defaults | options)


def kdump(*args, **options) -> subprocess.CompletedProcess:
    """Run ``kdump ARGS`` in a separate process; ``options`` are those of :func:`python`."""
    return patched("", *args, **options)


def patched(patch, *args, **options) -> subprocess.CompletedProcess:
    """Run the Python code ``patch``, then ``kdump ARGS``, in a separate process; ``options`` are those of python.

    The process is forked from one that has already imported kdump, unless an option or the environment takes effect
    before kdump's first line.
    """
    env = options.get("env")
    environ = dict(os.environ if env is None else env)
    words = [*map(str, args)]
    if options.keys() <= FORKED and fork_server.server(words).suits(environ):
        return _forked(words, environ, patch, options)
    if not patch:
        return python("-m", "kdump", *args, **options)
    return python("-c", f"{patch}\nimport sys; from kdump.cli import main; sys.exit(main())", *args, **options)


def _forked(words, environ, patch, options) -> subprocess.CompletedProcess:
    text, encoding, check, given = (options.pop(name, None) for name in ("text", "encoding", "check", "input"))
    options = (
        {"cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options | {"env": environ, "patch": patch}
    )
    if given is not None:
        given = given.encode(encoding or "utf-8") if isinstance(given, str) else given
        options |= {"stdin": subprocess.PIPE, "given": given}
    done = fork_server.server(words).run(words, **options)
    if text or encoding:
        done.stdout, done.stderr = (_text(output, encoding) for output in (done.stdout, done.stderr))
    if check:
        done.check_returncode()
    return done


def _text(output, encoding):
    if output is None:
        return None
    return io.TextIOWrapper(io.BytesIO(output), encoding or "utf-8").read()


def on_a_terminal(
    run, *args, streams=("stdout", "stderr"), typed=b"", **options
) -> tuple[subprocess.CompletedProcess, bytes]:
    """Call one of the functions above with a terminal for ``streams`` and ``typed`` as its keyboard input.

    Return its result, and the bytes that the terminal received.
    """
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    with ThreadPoolExecutor(1) as reader:
        shown = reader.submit(_all_of, ours)
        try:
            done = run(*args, **dict.fromkeys(streams, theirs), **options)
        finally:
            os.close(theirs)
    return done, shown.result()


def _all_of(terminal) -> bytes:
    seen = b""
    try:
        while region := os.read(terminal, 1 << 16):
            seen += region
    except OSError:  # that is how a terminal ends
        pass
    os.close(terminal)
    return seen.replace(b"\r\n", b"\n")


def dump(*args, status=0) -> bytes:
    """Run kdump, assert that its exit status is ``status``, and return its standard output."""
    done = kdump(*args)
    assert done.returncode == status, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert bool(done.stderr) == bool(status), done.stderr.decode()
    return done.stdout
