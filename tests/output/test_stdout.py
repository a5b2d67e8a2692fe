"""Standard output as a pipe, and on a full disk."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kdump.output.stdout import PIPE
from testing import ROOT

pytestmark = pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="only Linux makes pipes wider")
FULL = Path("/dev/full")


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


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_an_incomplete_last_line_on_a_full_disk_is_an_output_error():
    code = (
        "from kdump.output import stdout; out = stdout.open_output(paint=bytes); out.write(b'abc')\n"
        "try: out.close()\n"
        "except stdout.OutputError as error: raise SystemExit(str(error))"
    )
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, check=False, cwd=ROOT, text=True
        )
    assert done.stderr == "standard output cannot be written: No space left on device\n"
