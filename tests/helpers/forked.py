"""kdump in a process forked from the tests: no start to wait for, and parts of it can be replaced before."""

import functools
import os
import sys
from typing import NamedTuple

from kdump.cli import main
from testing import fork_server


class Done(NamedTuple):
    """How kdump ended, and what it printed."""

    status: int
    out: bytes
    errors: bytes


import_once = functools.cache(fork_server.import_all)  # what a forked process imports, all those after it import again


def kdump(folder, *args, replaced=()) -> Done:
    """Run kdump with files in ``folder`` for what it prints; ``replaced`` are (object, name, value)."""
    import_once()
    files = [folder / "kdump.out", folder / "kdump.errors"]
    process = os.fork()
    if not process:
        try:
            for number, path in enumerate(files, 1):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.stdout = os.fdopen(1, "w", closefd=False)
            sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
            for where, name, value in replaced:
                setattr(where, name, value)
            sys.argv = ["kdump", *map(str, args)]
            os._exit(main())
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(99)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return Done(status, *(path.read_bytes() for path in files))
