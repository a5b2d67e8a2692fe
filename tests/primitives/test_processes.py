import errno
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kdump.errors import DamageError, KdumpError
from kdump.primitives import processes, threads
from kdump.primitives.processes import Processes
from testing import ROOT


def children():
    """Return the running child processes."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def test_no_more_processes_are_forked_than_there_are_tasks():
    before = len(children())
    results = Processes(50).results(abs, [-1, -2, -3])
    assert next(results) == 1
    assert len(children()) <= before + 3
    assert list(results) == [2, 3]
    assert len(children()) == before


@pytest.mark.parametrize("allowed", [True, False])
def test_processes_start_threads_only_if_they_may(allowed):
    assert set(Processes(2, threads=allowed).results(lambda _: threads.allowed(), range(4))) == {allowed}
    assert threads.allowed()


def test_no_task_has_no_result():
    assert list(Processes(2).results(abs, [])) == []


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("tasks", [1, 7, 3 * processes._AHEAD + 1])
def test_results_come_in_the_order_of_the_tasks(count, tasks):
    def work(number):
        if number % 50 == 3:
            time.sleep(0.002)
        return number, b"x" * (number % 7 << 14)

    results = list(Processes(count).results(work, range(tasks)))
    assert results == [(number, b"x" * (number % 7 << 14)) for number in range(tasks)]


def test_a_process_takes_the_next_task_while_another_is_busy():
    done, send = os.pipe()

    def work(number):
        if number:
            os.write(send, b"x")
        else:
            for _ in range(8):  # the others are done before this one
                os.read(done, 1)
        return os.getpid()

    first, *others = Processes(2).results(work, range(9))
    os.close(done)
    os.close(send)
    assert len(set(others)) == 1
    assert first not in others


@pytest.mark.parametrize(
    "raised",
    [
        KdumpError("that is it"),
        DamageError("crc", "wrong", position=7),
        OSError(5, "an I/O fault"),
        MemoryError("none"),
    ],
    ids=lambda raised: type(raised).__name__,
)
def test_an_error_of_a_task_comes_after_the_results_before_it(raised):
    def work(number):
        if number == 3:
            raise raised
        return number

    before = children()
    results = Processes(2).results(work, range(9))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(type(raised)) as caught:
        next(results)
    assert str(caught.value) == str(raised)
    assert children() == before


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "a worker process was killed; the system may lack memory"),
        (lambda: os._exit(7), "ended with exit status 7"),
    ],
)
@pytest.mark.parametrize("last", [0, 4])
def test_a_process_without_a_result_is_reported_and_none_is_left(end, words, last):
    def work(number):
        if number == last:
            end()
        return number

    before = children()
    with pytest.raises(KdumpError, match=words):
        list(Processes(3).results(work, range(9)))
    assert children() == before


def test_a_bug_in_a_process_is_shown(capfd):
    def work(number):
        raise ValueError(f"a bug of {number}")

    with pytest.raises(KdumpError, match="ended with exit status 1"):
        list(Processes(1).results(work, range(2)))
    assert "ValueError: a bug of 0" in capfd.readouterr().err


def test_ctrl_c_in_a_process_is_that_of_all():
    def work(_):
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        list(Processes(2).results(work, range(2)))


def test_a_system_that_starts_no_more_processes_is_reported(monkeypatch):
    def no_more():
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", no_more)
    open_before = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(
        KdumpError, match=r"starts no more processes \(Resource temporarily unavailable\): use --jobs 1"
    ):
        list(Processes(2).results(abs, [1, 2, 3]))
    assert len([*Path("/proc/self/fd").iterdir()]) == open_before


def test_who_wants_no_more_results_leaves_no_process():
    before = children()
    results = Processes(2).results(abs, range(1000))
    assert next(results) == 0
    results.close()
    assert children() == before


@pytest.mark.parametrize("result", [lambda: None, "too large"], ids=["no pickle", "no memory"])
def test_a_result_that_cannot_be_sent_ends_its_process_alone(result, monkeypatch, capfd):
    """The process ends there, although it runs the code of its parent."""
    dumps = pickle.dumps

    def scarce(reported):
        if any(isinstance(one, tuple) and one[1] == "too large" for one in reported):
            raise MemoryError("no room")
        return dumps(reported)

    monkeypatch.setattr(pickle, "dumps", scarce)
    before, parent = children(), os.getpid()
    with pytest.raises((KdumpError, MemoryError), match=r"ended with exit status 1|no room"):
        list(Processes(2).results(lambda number: result if number == 3 else number, range(5)))
    assert os.getpid() == parent
    assert children() == before
    assert "PicklingError" in capfd.readouterr().err or result == "too large"


def test_an_interruption_that_the_parent_ignores_is_ignored():
    """A script's commands in the background ignore Ctrl-C."""

    def work(number):
        os.kill(os.getpid(), signal.SIGINT)
        return number

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert list(Processes(2).results(work, range(4))) == [0, 1, 2, 3]
    finally:
        signal.signal(signal.SIGINT, before)


FORKS = """
import os, time
from kdump.primitives.processes import Processes
def work(number):
    os.write({end}, b"%d" % number)
    time.sleep(600)
list(Processes(2).results(work, range(2)))
"""
"""A run whose processes keep the end of a pipe open as long as they live."""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not end a process with its parent")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_processes_end_with_their_parent(number):
    reader, writer = os.pipe()
    code = FORKS.format(end=writer)
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, pass_fds=[writer], stderr=subprocess.PIPE) as run:
        os.close(writer)
        begun = b""
        while len(begun) < 2:
            begun += os.read(reader, 1)
        run.send_signal(number)
        assert os.read(reader, 1) == b""
        assert run.stderr.read() == b""
    os.close(reader)
