"""Processes that write standard output in turns."""

import errno
import os
import select
import signal
import time
from pathlib import Path

import pytest

from kdump.errors import DamageError, KdumpError
from kdump.output import in_turns
from kdump.output.stdout import OutputError


def counted(number, turn):
    """Print a line; the state counts the lines."""
    turn.write(b"%d\n" % number)
    turn.state = turn.take() + 1
    return number * number


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_output_results_and_state_are_in_order(capfdbinary, jobs):
    squares = []
    assert in_turns.run(jobs, range(9), counted, 100, lambda _, result: squares.append(result)) == 109
    assert squares == [number * number for number in range(9)]
    assert capfdbinary.readouterr().out == b"".join(b"%d\n" % number for number in range(9))


@pytest.mark.parametrize("eager", [0, 1])
def test_processes_that_tell_much_and_often_do_not_wait_for_those_that_do_not(eager):
    """What one process tells fills its pipe while the parent asks another, which waits for the turn of the first."""

    def work(number, turn):
        in_turns.EVERY = 0 if number % 2 == eager else 1000
        turn.state = turn.take() + 1
        return bytes(1 << 20)

    def stuck(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stuck)
    signal.alarm(20)
    try:
        sizes = []
        assert in_turns.run(2, range(9), work, 0, lambda _, result: sizes.append(len(result))) == 9
        assert sizes == [1 << 20] * 9
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_without_a_piece_nothing_is_written(capfdbinary):
    assert in_turns.run(2, [], counted, 5, lambda *_: None) == 5
    assert capfdbinary.readouterr().out == b""


@pytest.mark.parametrize("size", [1, 100, in_turns.AT_ONCE, in_turns.HELD // 2, in_turns.HELD + 1])
def test_more_than_a_process_may_hold_waits_for_the_turn(capfdbinary, size):
    def work(number, turn):
        for _ in range(3):
            turn.write(memoryview(b"%d" % number * size))

    in_turns.run(2, range(2), work, 0, lambda *_: None)
    assert capfdbinary.readouterr().out == b"0" * 3 * size + b"1" * 3 * size


@pytest.mark.parametrize("size", [1, 100, in_turns.AT_ONCE, in_turns.HELD // 2, in_turns.HELD])
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

    in_turns.run(2, range(3), work, 0, lambda *_: None)
    assert capfdbinary.readouterr().out == b"".join((b"%d" % number * size + b"\n") * 3 for number in range(3))


def test_a_wrong_guess_is_dropped_with_what_it_printed_and_raised(capfdbinary):
    def work(number, turn):
        guess = turn.state

        def check(state):
            if state != number * 10:
                raise in_turns.WrongGuessError
            turn.lead = b"right: "

        turn.check = check
        turn.write(b"%d\n" % number)
        if guess is None and number == 2:
            raise ValueError("seen by a wrong guess alone")
        turn.state = turn.take() + (5 if number == 1 else 10)

    assert in_turns.run(2, range(4), work, 0, lambda *_: None) == 35
    assert capfdbinary.readouterr().out == b"right: 0\nright: 1\n2\n3\n"


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
        in_turns.run(2, range(9), work, 0, lambda *_: None)
    assert str(caught.value).endswith(str(raised).partition("] ")[2] or str(raised))
    assert capfdbinary.readouterr().out == b"0\n1\n2\n3\n"


@pytest.mark.parametrize("last", range(6))
def test_a_process_that_ends_is_told_and_none_is_left(last, capfdbinary):
    def work(number, turn):
        turn.write(b"%d\n" % number)
        if number == last:
            os._exit(7)

    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = children.read_text()
    with pytest.raises(KdumpError, match="ended with 7"):
        in_turns.run(3, range(9), work, 0, lambda *_: None)
    assert children.read_text() == before  # other tests may have left some
    assert capfdbinary.readouterr().out == b"".join(b"%d\n" % number for number in range(last))


@pytest.mark.parametrize("last", [0, 1, 4])
def test_a_bug_in_a_process_is_shown_and_ends_all(last, capfdbinary):
    def work(number, turn):
        turn.take()
        if number == last:
            raise ValueError("a bug")
        time.sleep(1.5 * in_turns.EVERY)  # no result waits to be told

    with pytest.raises(KdumpError, match="ended with 1"):
        in_turns.run(3, range(9), work, 0, lambda *_: None)
    assert b"ValueError: a bug" in capfdbinary.readouterr().err


def test_what_comes_of_pieces_is_told_in_time():
    heard, tell = os.pipe()
    told = []

    def hear(number, early):
        told.append((number, early))
        if number == 0:
            os.write(tell, b"x")

    def work(number, turn):
        turn.take()
        in_turns.EVERY = 1000 if number < 4 else -1  # the clock of each process, as piece 4 ends
        early = number == 4 and bool(select.select([heard], [], [], 0)[0])
        if number == 6:  # it ends only when the parent has heard of piece 0
            os.read(heard, 1)
        return early

    in_turns.run(2, range(8), work, 0, hear)
    os.close(heard)
    os.close(tell)
    assert told == [(number, False) for number in range(8)]


def test_a_turn_that_comes_in_the_midst_of_a_piece_is_taken(capfdbinary):
    """Who holds little copies little."""

    def work(number, turn):
        turn.write(b"%d" % number * in_turns.AT_ONCE)
        while number == 1 and turn.state is None:
            turn.write(b"1" * in_turns.AT_ONCE)
        return turn.state

    met = []
    in_turns.run(2, range(2), work, 5, lambda _, state: met.append(state))
    out = capfdbinary.readouterr().out
    assert met[1] == 5
    assert out == b"0" * in_turns.AT_ONCE + b"1" * (len(out) - in_turns.AT_ONCE)


@pytest.mark.parametrize("started", [0, 1])
def test_a_system_that_starts_no_more_processes_is_told(monkeypatch, capfdbinary, started):
    fork, children = os.fork, []

    def limited():
        if len(children) == started:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        children.append(fork())
        return children[-1]

    open_before = len([*Path("/proc/self/fd").iterdir()])
    monkeypatch.setattr(os, "fork", limited)
    with pytest.raises(
        KdumpError, match=r"starts no more processes \(Resource temporarily unavailable\): --jobs 1 reads"
    ):
        in_turns.run(3, range(9), counted, 0, lambda *_: None)
    assert len([*Path("/proc/self/fd").iterdir()]) == open_before
    for child in children:
        with pytest.raises(ChildProcessError):  # it has been waited for
            os.waitpid(child, os.WNOHANG)
    assert capfdbinary.readouterr().out == b""


@pytest.mark.parametrize("message", [b"", b"x" * 100, b"y" * (5 << 20)])
def test_messages_of_any_size_come_through(message):
    got = []
    in_turns.run(2, range(4), lambda *_: message, 0, lambda _, result: got.append(result))
    assert got == [message] * 4
