"""A pager for tables that are longer than the screen, as git has one."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kdump.output import stdout

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

CHOICES: Final = ("KDUMP_PAGER", "PAGER")
"""The environment variables that name the pager, the first one that is set; empty or ``cat`` is none."""
ENVIRONMENT: Final = {"LESS": "FRX", "LV": "-c"}
"""What pagers are told where the user tells them nothing: less ends by itself where all fits on the screen."""


@contextmanager
def paged(*, wanted: bool = True) -> Iterator[None]:
    """Show what is printed meanwhile on a terminal through the user's pager, page by page.

    Standard error goes the same way, so that nothing is written over the page. A reader who leaves the pager early is
    a closed pipe. Without a terminal, or a pager, nothing changes.
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
    """Start the pager; None where there is none."""
    import shlex  # these three take time to import, and few runs need them
    import shutil
    import subprocess

    named = next((os.environ[name] for name in CHOICES if name in os.environ), "less")
    words = shlex.split(named)
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        return None
    return subprocess.Popen(words, stdin=subprocess.PIPE, env=ENVIRONMENT | os.environ)


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Wait until the reader leaves the pager, which Ctrl-C does not end."""
    while True:
        try:
            process.wait()
        except KeyboardInterrupt:
            continue
        return
