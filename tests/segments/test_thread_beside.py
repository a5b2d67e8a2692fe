"""Pieces that a thread does beside whoever takes what comes of them."""

import threading

import pytest

from kdump.segments.thread_beside import AHEAD, ThreadBeside


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
