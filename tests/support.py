"""Running kdump as a user does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "golden"


def kdump(*args, cwd=None, stdin=None, env=None) -> subprocess.CompletedProcess:
    """Run ``kdump ARGS`` in a process of its own."""
    command = [sys.executable, "-m", "kdump", *map(str, args)]
    return subprocess.run(command, cwd=cwd or ROOT, input=stdin, capture_output=True, env=env, check=False)


def dump(*args, status=0) -> bytes:
    """Run kdump, hold its exit status against ``status``, and return its standard output."""
    done = kdump(*args)
    assert done.returncode == status, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert bool(done.stderr) == bool(status), done.stderr.decode()
    return done.stdout
