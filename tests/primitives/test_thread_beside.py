"""Pieces that a thread does beside whoever takes what comes of them."""

import threading

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
    done = []

    def attempt(number):
        done.append(number)
        return number

    results = taken(100, attempt)
    assert all(result in (None, number) for number, result in enumerate(results))
    assert sorted([*done, *(number for number, result in enumerate(results) if result is None)]) == list(range(100))


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
        if number == 3:
            raise TooMuchError
        return number

    beside = ThreadBeside(100, attempt)
    results = [beside.take(number) for number in range(100)]
    beside.end()
    assert beside.has_too_much == (3 in tried)
    assert all(result in (None, number) for number, result in enumerate(results))
    if 3 in tried:
        assert results[3] is None
        assert len(tried) <= 3 + AHEAD + 2


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
