"""Chunks that threads make while another thread takes the results."""

import threading
import time
from collections import defaultdict
from contextlib import closing
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from kdump.parallel import chunks
from kdump.parallel.chunks import IN_FLIGHT, Threads, TooMuchError, _ChunkThreads

PATIENCE = 60


class Before(NamedTuple):
    """The state before a chunk: a number."""

    start: int = 0


class NumberWork:
    """Work on numbers: each chunk is first assumed to start from its own number."""

    def __init__(self, make):
        self._make = make

    def assume(self, number):
        return number

    def make(self, number, start, turn):
        return self._make(number, start, turn)

    def carry(self, before, _):
        return Before(before.start + 1)


def run(numbers, make, count=1, split=lambda number: (number,)):
    """Return the running engine; the caller closes it."""
    source = SimpleNamespace(is_over=False)
    return closing(Threads(count, source).run(numbers, NumberWork(make), Before(), split))


def results(numbers, make, **options):
    with run(numbers, make, **options) as found:
        return [made for made, _ in found]


def is_caller():
    return threading.current_thread() is threading.main_thread()


def names():
    return [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_every_chunk_is_made_once_and_the_results_are_in_order(count):
    made = []

    def make(number, start, _):
        assert number == start
        made.append(number)
        return number * number

    with run(range(200), make, count) as found:
        assert list(found) == [(number * number, Before(number + 1)) for number in range(200)]
    assert sorted(made) == list(range(200))
    assert "chunks" not in names()


def test_the_thread_makes_chunks_in_order_too():
    """The first chunk waits for the thread: it takes the second one."""
    begun, by = threading.Event(), defaultdict(list)

    def make(number, *_):
        by[is_caller()].append(number)
        if is_caller():
            assert begun.wait(PATIENCE)
        else:
            begun.set()
        return number

    assert results(range(100), make) == list(range(100))
    assert by[False] == sorted(by[False])
    assert by[True] + by[False]


def test_a_wrong_assumption_is_dropped_with_its_result_and_its_error():
    tried = []

    def make(number, start, _):
        tried.append((number, start))
        if start == 7:
            raise ValueError("met by a wrong assumption alone")
        return number

    workers = _ChunkThreads(iter([5, 7]), NumberWork(make))
    for _ in range(2):
        workers._make(workers._take(BaseException, wait=False), BaseException)
    assert [(task.start, task.made) for task in workers._tasks] == [(5, 5), (7, None)]
    assert results([5, 7], make) == [5, 7]
    assert (5, 0) in tried
    assert (7, 1) in tried


def test_what_is_raised_is_raised_after_the_results_before_it():
    def make(number, *_):
        if number == 3:
            raise ValueError(number)
        return number

    found = []
    with run(range(9), make) as engine, pytest.raises(ValueError, match="3"):
        found.extend(made for made, _ in engine)
    assert found == [0, 1, 2]


def test_an_error_of_the_chunks_is_raised_after_the_results_before_it():
    def numbers():
        yield from range(3)
        raise ValueError("no more")

    found = []
    with run(numbers(), lambda number, *_: number) as engine, pytest.raises(ValueError, match="no more"):
        found.extend(made for made, _ in engine)
    assert found == [0, 1, 2]


def test_no_more_results_wait_than_may():
    made = threading.Semaphore(0)
    workers = _ChunkThreads(iter(range(3 * IN_FLIGHT)), NumberWork(lambda *_: made.release()))
    workers.start(1)
    for _ in range(IN_FLIGHT):
        assert made.acquire(timeout=PATIENCE)
    assert not made.acquire(timeout=0.1)
    assert workers.next().chunk == 0
    workers.done()
    assert made.acquire(timeout=PATIENCE)
    workers.end()


def test_a_system_that_gives_no_more_threads(few_threads):
    given, started = few_threads
    assert results(range(20), lambda number, *_: number, count=3) == list(range(20))
    assert len(started) == given


def test_once_there_is_too_much_the_caller_makes_the_rest_in_pieces():
    def make(number, _, turn):
        if number >= IN_FLIGHT - 1:
            turn.take()
        by[is_caller()].append(number)
        return number

    by = defaultdict(list)
    found = results(range(9), make, split=lambda number: (number, number + 0.5))
    assert found[: IN_FLIGHT - 1] == list(range(IN_FLIGHT - 1))
    assert all(number < IN_FLIGHT - 1 for number in by[False])
    assert found[-2:] == [8, 8.5]


def test_too_much_without_a_turn_is_raised():
    with pytest.raises(TooMuchError):
        chunks.Turn().take()


def test_the_caller_makes_others_while_it_waits_and_ctrl_c_ends_that():
    begun, go_on, made = threading.Event(), threading.Event(), []

    def make(number, *_):
        if not is_caller():
            begun.set()
            assert go_on.wait(PATIENCE)
        elif number == 3:
            go_on.set()
            raise KeyboardInterrupt
        else:
            made.append(number)
        return number

    workers = _ChunkThreads(iter(range(9)), NumberWork(make))
    workers.start(1)
    assert begun.wait(PATIENCE)
    with pytest.raises(KeyboardInterrupt):
        workers.next()
    workers.end()
    assert made == [1, 2]


def test_no_chunk_is_made_any_more_when_it_is_closed():
    begun, made = threading.Event(), []

    def make(number, *_):
        if number == 0 or is_caller():
            return number
        begun.set()
        while not source.is_over:
            time.sleep(0.001)
        made.append(number)
        return number

    source = SimpleNamespace(is_over=False)
    with closing(Threads(1, source).run(range(9), NumberWork(make), Before())) as engine:
        next(engine)
        assert begun.wait(PATIENCE)
    assert len(made) == 1
    assert "chunks" not in names()
