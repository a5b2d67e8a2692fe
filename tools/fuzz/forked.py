"""Run kdump many times from one Python: each run in a forked child, with limits on time and memory."""

import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from kdump import cli

SECONDS = 20
MEMORY = 2 << 30
CRASHED = 70
IMPORTED_ONCE = ("kdump.dump_log_segments.run", "lz4.block", "snappy", "xxhash", "zstandard")
"""Modules that kdump imports late. They are imported once here, so that children need not import them again."""


class Run(NamedTuple):
    """One run of kdump. ``status`` below 0 is the signal that ended it, CRASHED an unexpected exception."""

    status: int
    stdout: bytes
    stderr: bytes

    @property
    def crashed(self) -> bool:
        """Whether the run ended in a way that is always a bug."""
        return self.status == CRASHED or (self.status < 0 and not self.hung)

    @property
    def hung(self) -> bool:
        """Whether the run exceeded the time limit."""
        return self.status == -signal.SIGALRM


def run(
    arguments: Sequence[str], folder: Path, *, seconds: int = SECONDS, memory: int = MEMORY, env: Mapping[str, str] = {}
) -> Run:
    """Run kdump in ``folder``, with limits on seconds and on bytes of address space."""
    for module in IMPORTED_ONCE:
        import_module(module)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            status = CRASHED
            try:
                os.chdir(folder)
                os.environ.update(env)
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(seconds)
                sys.argv = ["kdump", *arguments]
                status = cli.main()
                sys.stdout.flush()
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        return Run(os.waitstatus_to_exitcode(ended), out.read(), err.read())
