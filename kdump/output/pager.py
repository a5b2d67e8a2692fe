"""A pager for tables that are longer than the screen, as in git."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kdump.output import stdout

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

CHOICES: Final = ("KDUMP_PAGER", "PAGER")
"""Environment variables with the pager; the first one that is set counts. Empty or ``cat``: no pager."""
ENVIRONMENT: Final = {"LESS": "FRX", "LV": "-c"}
"""Defaults for pagers, if the user sets none: less ends by itself if the text fits on the screen."""


@contextmanager
def paged(*, wanted: bool = True) -> Iterator[None]:
    """Show the output of the block on a terminal through the user's pager.

    Standard error goes to the pager too, so that it does not write over the page. If the user leaves the pager early,
    the pipe is closed. Without a terminal or a pager nothing changes.
    """
    process = _started() if wanted and stdout.is_terminal() else None
    if process is None or process.stdin is None:
        yield
        return
    try:
        with stdout.sent_to(process.stdin):
            yield
    finally:
        _wait(process)


def _started() -> subprocess.Popen[bytes] | None:
    """Start the pager; return None if there is none."""
    import shlex  # slow to import, and few runs need them
    import shutil
    import subprocess

    named = next((os.environ[name] for name in CHOICES if name in os.environ), "less")
    words = shlex.split(named)
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        return None
    return subprocess.Popen(words, stdin=subprocess.PIPE, env=ENVIRONMENT | os.environ)


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Wait until the user leaves the pager; Ctrl-C does not end it."""
    while True:
        try:
            process.wait()
        except KeyboardInterrupt:
            continue
        return
