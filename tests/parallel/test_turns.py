"""Processes that write standard output in turns."""

import errno
import os
import select
import signal
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from kdump.errors import DamageError, KdumpError
from kdump.output.stdout import OutputError
from kdump.parallel import turns


class Total(NamedTuple):
    """A state that is a number. The next chunk depends on all of it."""

    number: int

    @property
    def start(self):
        return self.number


class AddingWork:
    """Work on chunks whose results are added to the state."""

    def __init__(self, make, assume, add):
        self._make, self._assume, self._add = make, assume, add

    def assume(self, chunk):
        return self._assume(chunk)

    def make(self, chunk, _, turn):
        return self._make(chunk, turn)

    def carry(self, before, made):
        return Total(before.number + self._add(made))


def run(jobs, chunks, make, first, take, assume=lambda _: None, add=lambda _: 1):
    """Make chunks in processes; pass the results to ``take``, return the last state. By default nothing is assumed."""
    last = Total(first)
    with closing(turns.Forks(jobs).run(chunks, AddingWork(make, assume, add), last)) as results:
        for made, last in results:  # noqa: B007  the last one counts
            take(made)
    return last.number


def counted(number, turn):
    """Print a line; the state counts the lines."""
    turn.write(b"%d\n" % number)
    return number * number


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_output_results_and_state_are_in_order(capfdbinary, jobs):
    squares = []
    assert run(jobs, range(9), counted, 100, squares.append) == 109
    assert squares == [number * number for number in range(9)]
    assert capfdbinary.readouterr().out == b"".join(b"%d\n" % number for number in range(9))


@pytest.mark.parametrize("eager", [0, 1])
def test_processes_with_many_results_do_not_wait_for_those_with_few(eager):
    """The results of one process fill its pipe while the parent asks another one, which waits for the first."""

    def work(number, turn):
        turns.EVERY = 0 if number % 2 == eager else 1000
        turn.take()
        return bytes(1 << 20)

    def stuck(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stuck)
    signal.alarm(600)  # a hang, not slowness
    try:
        sizes = []
        assert run(2, range(9), work, 0, lambda result: sizes.append(len(result))) == 9
        assert sizes == [1 << 20] * 9
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_without_a_piece_nothing_is_written(capfdbinary):
    assert run(2, [], counted, 5, lambda _: None) == 5
    assert capfdbinary.readouterr().out == b""


@pytest.mark.parametrize("size", [1, 100, turns.AT_ONCE, turns.HELD // 2, turns.HELD + 1])
def test_more_than_a_process_may_hold_waits_for_the_turn(capfdbinary, size):
    def work(number, turn):
        for _ in range(3):
            turn.write(memoryview(b"%d" % number * size))

    run(2, range(2), work, 0, lambda _: None)
    assert capfdbinary.readouterr().out == b"0" * 3 * size + b"1" * 3 * size


@pytest.mark.parametrize("size", [1, 100, turns.AT_ONCE, turns.HELD // 2, turns.HELD])
def test_what_is_made_in_place_is_not_copied_and_comes_once(capfdbinary, size):
    def work(number, turn):
        for _ in range(3):
            room = turn.room(size)
            if room is None:
                turn.write(b"%d" % number * size)
            else:
                assert len(room) >= size
                room[:size] = b"%d" % number * size
                turn.write(room[:size])
            turn.write(b"\n")
        turn.take()
        assert turn.room(1) is None

    run(2, range(3), work, 0, lambda _: None)
    assert capfdbinary.readouterr().out == b"".join((b"%d" % number * size + b"\n") * 3 for number in range(3))


def test_a_wrong_assumption_is_dropped_with_its_output_and_its_error(capfdbinary):
    def make(number, turn):
        is_assumed = turn.state is None
        turn.when_come(lambda state: setattr(turn, "lead", b"after %d: " % state.number))
        turn.write(b"%d\n" % number)
        if is_assumed and number == 2:
            raise ValueError("seen by a wrong assumption alone")
        return 5 if number == 1 else 10

    assert run(2, range(4), make, 0, lambda _: None, assume=lambda n: 10 * n, add=lambda made: made) == 35
    assert capfdbinary.readouterr().out == b"after 0: 0\nafter 10: 1\nafter 15: 2\nafter 25: 3\n"


def test_a_wrong_assumption_ends_where_its_turn_comes(capfdbinary):
    """A chunk with more output than fits in memory waits for its turn while it is being made."""

    def make(number, turn):
        for _ in range(3):
            turn.write(b"%d" % number * (turns.HELD // 2))
        tried.write(b"%d" % number)
        tried.flush()

    with tempfile.TemporaryFile() as tried:
        assert run(2, range(2), make, 0, lambda _: None, assume=lambda _: 0) == 2
        tried.seek(0)
        assert tried.read() == b"01"
    half = turns.HELD // 2
    assert capfdbinary.readouterr().out == b"0" * 3 * half + b"1" * 3 * half


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (KdumpError("that is it"), KdumpError),
        (DamageError("crc", "wrong", position=7, expected=1, found=2), DamageError),
        (OSError(28, "No space left on device"), OutputError),
        (BrokenPipeError(), BrokenPipeError),
        (MemoryError(), MemoryError),
    ],
)
def test_what_a_process_raises_ends_the_output_there(capfdbinary, raised, expected):
    def work(number, turn):
        turn.write(b"%d\n" % number)
        if number == 3:
            raise raised

    with pytest.raises(expected) as caught:
        run(2, range(9), work, 0, lambda _: None)
    assert str(caught.value).endswith(str(raised).partition("] ")[2] or str(raised))
    assert capfdbinary.readouterr().out == b"0\n1\n2\n3\n"


@pytest.mark.parametrize("last", range(6))
def test_a_process_that_ends_is_reported_and_none_is_left(last, capfdbinary):
    def work(number, turn):
        turn.write(b"%d\n" % number)
        if number == last:
            os._exit(7)

    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = children.read_text()
    with pytest.raises(KdumpError, match="ended with exit status 7"):
        run(3, range(9), work, 0, lambda _: None)
    assert children.read_text() == before  # other tests may have left some
    assert capfdbinary.readouterr().out == b"".join(b"%d\n" % number for number in range(last))


@pytest.mark.parametrize("last", [0, 1, 4])
def test_a_bug_in_a_process_is_shown_and_ends_all(last, capfdbinary):
    def work(number, turn):
        turn.take()
        if number == last:
            raise ValueError("a bug")
        time.sleep(1.5 * turns.EVERY)  # no result waits to be sent

    with pytest.raises(KdumpError, match="ended with exit status 1"):
        run(3, range(9), work, 0, lambda _: None)
    assert b"ValueError: a bug" in capfdbinary.readouterr().err


def test_results_of_parts_are_reported_in_time():
    heard, send = os.pipe()
    reported = []

    def hear(result):
        reported.append(result)
        if result[0] == 0:
            os.write(send, b"x")

    def work(number, turn):
        turn.take()
        turns.EVERY = 1000 if number < 4 else -1  # the clock of each process, as piece 4 ends
        early = number == 4 and bool(select.select([heard], [], [], 0)[0])
        if number == 6:  # it ends only when the parent has heard of piece 0
            os.read(heard, 1)
        return number, early

    run(2, range(8), work, 0, hear)
    os.close(heard)
    os.close(send)
    assert reported == [(number, False) for number in range(8)]


def test_a_turn_that_comes_in_the_midst_of_a_piece_is_taken(capfdbinary):
    """When its turn comes, a process copies only the output that it has in memory, and then writes directly."""

    def work(number, turn):
        turn.write(b"%d" % number * turns.AT_ONCE)
        while number == 1 and turn.state is None:
            turn.write(b"1" * turns.AT_ONCE)
        return turn.state

    met = []
    run(2, range(2), work, 5, met.append)
    out = capfdbinary.readouterr().out
    assert met[1].number == 6
    assert out == b"0" * turns.AT_ONCE + b"1" * (len(out) - turns.AT_ONCE)


@pytest.mark.parametrize("started", [0, 1])
def test_a_system_that_starts_no_more_processes_is_reported(monkeypatch, capfdbinary, started):
    fork, children = os.fork, []

    def limited():
        if len(children) == started:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        children.append(fork())
        return children[-1]

    open_before = len([*Path("/proc/self/fd").iterdir()])
    monkeypatch.setattr(os, "fork", limited)
    with pytest.raises(
        KdumpError, match=r"starts no more processes \(Resource temporarily unavailable\): use --jobs 1"
    ):
        run(3, range(9), counted, 0, lambda _: None)
    assert len([*Path("/proc/self/fd").iterdir()]) == open_before
    for child in children:
        with pytest.raises(ChildProcessError):  # it has been waited for
            os.waitpid(child, os.WNOHANG)
    assert capfdbinary.readouterr().out == b""


@pytest.mark.parametrize("message", [b"", b"x" * 100, b"y" * (5 << 20)])
def test_messages_of_any_size_come_through(message):
    got = []
    run(2, range(4), lambda *_: message, 0, got.append)
    assert got == [message] * 4
