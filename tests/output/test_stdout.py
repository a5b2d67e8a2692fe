"""Standard output as a pipe."""

import fcntl
import os
import subprocess
import sys

import pytest

from kdump.output.stdout import PIPE
from testing import ROOT

pytestmark = pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="only Linux makes pipes wider")


def width(code):
    """Return the size of a pipe's buffer after a process has written to it."""
    reader, writer = os.pipe()
    try:
        subprocess.run([sys.executable, "-c", code], stdout=writer, check=True, cwd=ROOT)
        return fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ)
    finally:
        os.close(reader)
        os.close(writer)


OPEN = "from kdump.output import stdout; {} stdout.open_output().close()"


def test_a_pipe_becomes_wide():
    assert width(OPEN.format("")) == PIPE


def test_a_wide_pipe_stays_as_it_is():
    assert width(OPEN.format("stdout.PIPE = 4096;")) == width("") > 4096


def test_what_the_system_refuses_is_done_without():
    refuse = "stdout.PIPE = (1 << 31) - 1;"
    assert width(OPEN.format(refuse)) == width("")
