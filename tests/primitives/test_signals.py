"""Ctrl-C ends a run, even if a compiled library ignores the KeyboardInterrupt."""

import io
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from kdump.primitives import signals
from testing import ROOT

SCRIPT = """
import os, signal
from contextlib import nullcontext
from kdump.primitives import signals

signals.heed(signals.ENDING)

def swallow(number):
    try:
        os.kill(os.getpid(), number)
    except BaseException as error:
        print("raised", type(error).__name__)
"""


def ended(code):
    return subprocess.run([sys.executable, "-c", SCRIPT + code], cwd=ROOT, capture_output=True, check=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_import_of_a_library_at_once(number):
    done = ended(f"with signals.at_once(): swallow({int(number)})\nprint('not reached')")
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, b"", b"")


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), signals.EndedBySignal(signal.SIGTERM)])
def test_a_signal_while_an_import_creates_a_class_is_no_other_error(raised):
    class Name:
        def __set_name__(self, owner, name):
            raise raised

    def create():
        with signals.unwrapped():
            type("Owner", (), {"name": Name()})

    with pytest.raises(type(raised)):
        create()


def test_other_errors_stay():
    def fail():
        with signals.unwrapped():
            raise RuntimeError("x") from ValueError("y")

    with pytest.raises(RuntimeError, match="x"):
        fail()


def test_a_run_that_must_clean_up_is_not_ended_at_once():
    code = "with signals.cleaned_up(lambda: print('cleaned')), signals.at_once(): swallow(signal.SIGINT)"
    done = ended(code)
    assert (done.returncode, done.stdout) == (0, b"raised KeyboardInterrupt\ncleaned\n")


@pytest.mark.parametrize("pause", [0, 0.1])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_a_finalizer_or_a_callback_ends_the_run(number, pause):
    """Python only prints an exception that is raised there, or in the hook that sends the signal again."""
    code = """
import threading, time, weakref

start = threading.Thread.start
threading.Thread.start = lambda thread: (start(thread), time.sleep(PAUSE))

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), NUMBER)

def read():
    try:
        one = Finalized()
        del one
        time.sleep(20)
    except BaseException as error:
        print("raised", type(error).__name__)

def read_referenced():
    try:
        one = {0}
        other = weakref.ref(one, lambda _: os.kill(os.getpid(), NUMBER))
        del one
        time.sleep(20)
    except BaseException as error:
        print("raised", type(error).__name__)

with signals.cleaned_up(lambda: print("cleaned")):
    read()
    read_referenced()
"""
    done = ended(code.replace("NUMBER", str(int(number))).replace("PAUSE", str(pause)))
    name = b"KeyboardInterrupt" if number == signal.SIGINT else b"EndedBySignal"
    assert (done.stdout, done.stderr) == (b"raised %s\nraised %s\ncleaned\n" % (name, name), b"")


def test_other_exceptions_of_a_finalizer_are_printed():
    done = ended("class One:\n    def __del__(self): 1 / 0\none = One()\ndel one")
    assert b"ZeroDivisionError" in done.stderr


def interrupt():
    """Press Ctrl-C, and ignore the exception."""
    with suppress(KeyboardInterrupt):
        signals._end(signal.SIGINT, None)


def test_a_swallowed_interrupt_is_raised_again_until_a_new_start():
    before = signals.Interrupts()
    before.check()
    interrupt()
    with pytest.raises(KeyboardInterrupt):
        before.check()
    signals.Interrupts().check()


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_file_ends_where_pyarrow_swallows_an_interrupt(form):
    pa = pytest.importorskip("pyarrow")
    from kdump.arrow import files

    batch, made = pa.record_batch({"a": [1]}), []

    def batches():
        for number in range(5):
            if number == 2:
                interrupt()
            made.append(number)
            yield batch

    with pytest.raises(KeyboardInterrupt):
        files.write(form, batch.schema, batches(), io.BytesIO())
    assert made == [0, 1, 2]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_an_interrupt_that_pyarrow_swallows_at_the_end_of_a_file_is_raised(form):
    pa = pytest.importorskip("pyarrow")
    from kdump.arrow import files

    class Out(io.BytesIO):
        def write(self, data):
            if ended and not self.closed:
                interrupt()
            return super().write(data)

    ended = []

    def batches():
        yield pa.record_batch({"a": [1]})
        ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        files.write(form, pa.schema({"a": pa.int64()}), batches(), Out())


def test_a_start_needs_few_modules_before_it_heeds_signals():
    """Ctrl-C shows a traceback until ``main`` has set its first handler."""
    code = (
        "import sys, _signal, kdump.__main__\nbefore = set(sys.modules)\n"
        "def heed(*_): print(*({*sys.modules} - before)); sys.stdout.flush(); import os; os._exit(0)\n"
        "_signal.signal = heed\nkdump.__main__.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True, text=True)
    assert set(done.stdout.split()) <= {"gc", "os"}
