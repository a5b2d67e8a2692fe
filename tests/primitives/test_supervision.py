"""A supervised command is killed when it does not end, and leaves nothing."""

import os
import signal
import subprocess
import sys
import time

import pytest

from kdump.primitives import supervision
from testing import ROOT

pytestmark = pytest.mark.skipif(not hasattr(signal, "sigtimedwait"), reason="supervision needs Linux")

START = """
import os, signal, sys, time
from kdump.output.parts import remove
from kdump.primitives import signals, supervision
signals.heed([signal.SIGINT, signal.SIGTERM])
folder = sys.argv[1]
supervision.supervise(remove)
def deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, signals.ENDING)
    os.mkdir(folder + "/scratch"); open(folder + "/scratch/spill", "w").close()
    open(folder + "/part", "w").close()
    supervision.owns(folder + "/scratch"); supervision.owns(folder + "/part")
def ready():
    print(os.getpid(), flush=True)
"""


def started(tmp_path, script):
    return subprocess.Popen(
        [sys.executable, "-c", START + script, tmp_path],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_exit_status_and_the_streams_are_those_of_the_command(tmp_path):
    process = started(tmp_path, "print('out'); print('err', file=sys.stderr); sys.exit(7)")
    assert (*process.communicate(timeout=30), process.returncode) == ("out\n", "err\n", 7)


@pytest.mark.parametrize(
    ("words", "printed"),
    [("", ""), ("is_late=True", "error: too late\n"), ("is_late=True); supervision.said(", "")],
)
def test_a_command_that_cannot_print_its_last_words_is_reported(tmp_path, words, printed):
    script = f"deaf(); supervision.begin(9, 'too late'); supervision.last_words({words}); time.sleep(60)"
    process = started(tmp_path, script)
    assert (*process.communicate(timeout=30), process.returncode) == ("", printed, 1)


def test_a_command_that_hears_nothing_is_killed_after_its_time(tmp_path):
    process = started(tmp_path, "deaf(); supervision.begin(0.2, 'too late'); ready(); time.sleep(60)")
    command = int(process.stdout.readline())
    began = time.monotonic()
    assert process.communicate(timeout=30) == ("", "error: too late\n")
    assert supervision.GRACE - 1 < time.monotonic() - began < supervision.GRACE + 5
    assert (process.returncode, is_running(command), list(tmp_path.iterdir())) == (1, False, [])


@pytest.mark.parametrize(("number", "grace"), [(signal.SIGINT, supervision.GRACE), (signal.SIGTERM, 0.5)])
def test_a_command_that_hears_no_signal_is_killed(tmp_path, number, grace):
    process = started(tmp_path, "deaf(); supervision.begin(None, ''); ready(); time.sleep(60)")
    command = int(process.stdout.readline())
    began = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert grace - 0.1 < time.monotonic() - began < grace + 5
    assert (out, err.strip(), process.returncode, is_running(command)) == ("", "", 128 + number, False)
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_obeys_ends_as_it_wants(tmp_path):
    script = """
supervision.begin(None, '')
try:
    ready()
    time.sleep(60)
except KeyboardInterrupt:
    supervision.end()
    time.sleep(3)
    print('obeyed')
    sys.exit(9)
"""
    process = started(tmp_path, script)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert (process.communicate(timeout=30)[0], process.returncode) == ("obeyed\n", 9)


def test_a_crash_leaves_nothing(tmp_path):
    process = started(tmp_path, "deaf(); os.kill(os.getpid(), signal.SIGSEGV)")
    assert process.communicate(timeout=30) == ("", "error: the command was ended by SIGSEGV\n")
    assert (process.returncode, list(tmp_path.iterdir())) == (1, [])


def test_a_command_ends_with_its_supervisor(tmp_path):
    process = started(tmp_path, "ready(); time.sleep(60)")
    command = int(process.stdout.readline())
    process.kill()
    process.communicate(timeout=30)
    ends = time.monotonic() + 20
    while is_running(command) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not is_running(command)


def test_a_program_that_ignores_signals_for_its_children_changes_nothing(tmp_path):
    quiet = "import signal, os, sys; [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGCHLD, signal.SIGUSR1)];"
    run = "os.execv(sys.executable, [sys.executable, '-c', sys.argv[1], sys.argv[2]])"
    script = START + "supervision.begin(0.2, 'too late'); deaf(); time.sleep(60)"
    done = subprocess.run(
        [sys.executable, "-c", quiet + run, script, tmp_path],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (1, "error: too late\n")


def test_a_program_that_calls_kdump_is_not_forked():
    script = (
        "import os; from kdump.primitives import supervision\n"
        "before = os.getpid(); supervision.supervise(None); print(os.getpid() == before)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
