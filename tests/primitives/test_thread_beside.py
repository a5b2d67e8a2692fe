"""Pieces that a thread does beside whoever takes what comes of them."""

import threading
from collections import defaultdict

import pytest

from kdump.primitives.thread_beside import AHEAD, ThreadBeside, TooMuchError


def taken(count, attempt):
    """Return what comes of all pieces, of those that nobody has begun None."""
    beside = ThreadBeside(count, attempt)
    try:
        return [beside.take(number) for number in range(count)]
    finally:
        beside.end()


def test_every_piece_is_done_once_and_in_order():
    def attempt(number):
        begun.set()
        done[threading.current_thread()].append(number)
        return number

    def do(beside, number):
        begun.wait()
        result = beside.take(number)
        if result is None:
            done[caller].append(number)
        return number if result is None else result

    begun, caller = threading.Event(), threading.current_thread()
    done = defaultdict(list)
    beside = ThreadBeside(100, attempt)
    assert [do(beside, number) for number in range(100)] == list(range(100))
    beside.end()
    (thread,) = done.keys() - {caller}
    assert done[thread] == sorted(done[thread])
    assert sorted(done[thread] + done[caller]) == list(range(100))


def test_what_is_raised_is_raised_where_the_piece_is_taken():
    def attempt(number):
        if number == 0:
            begun.set()
        raise ValueError(number)

    begun = threading.Event()
    beside = ThreadBeside(3, attempt)
    begun.wait()
    with pytest.raises(ValueError, match="0"):
        beside.take(0)
    beside.end()


def test_no_more_wait_than_may():
    done = threading.Semaphore(0)
    beside = ThreadBeside(3 * AHEAD, lambda _: done.release())
    for _ in range(AHEAD):
        done.acquire()
    assert not done.acquire(timeout=0.1)
    beside.end()


def test_without_a_thread_the_caller_does_all(monkeypatch):
    def none(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none)
    assert taken(5, int) == [None] * 5


def test_where_there_is_too_much_the_caller_does_the_rest():
    tried = []

    def attempt(number):
        tried.append(number)
        if number == AHEAD - 1:
            raise TooMuchError
        return number

    beside = ThreadBeside(100, attempt)
    beside._thread.join()
    results = [beside.take(number) for number in range(100)]
    beside.end()
    assert beside.has_too_much
    assert tried == list(range(AHEAD))
    assert results == [*range(AHEAD - 1), *[None] * (101 - AHEAD)]


def test_the_caller_does_others_while_it_waits_and_ctrl_c_ends_that():
    begun, go_on = threading.Event(), threading.Event()
    caller = threading.current_thread()
    done = []

    def attempt(number):
        if threading.current_thread() is not caller:
            begun.set()
            go_on.wait()
        elif number == 3:
            go_on.set()
            raise KeyboardInterrupt
        else:
            done.append(number)
        return number

    beside = ThreadBeside(9, attempt)
    begun.wait()
    with pytest.raises(KeyboardInterrupt):
        beside.take(0)
    beside.end()
    assert done == [1, 2]


def test_no_piece_is_done_any_more_when_the_end_returns():
    def attempt(number):
        begun.set()
        go_on.wait()
        done.append(number)

    begun, go_on = threading.Event(), threading.Event()
    done = []
    beside = ThreadBeside(9, attempt)
    begun.wait()
    threading.Timer(0.05, go_on.set).start()
    beside.end()
    assert done == [0]
    assert "beside" not in [thread.name for thread in threading.enumerate()]
