import errno
import multiprocessing
import os

import pytest

from kdump.errors import KdumpError
from kdump.primitives.processes import Processes


def test_no_more_processes_are_forked_than_there_are_tasks():
    results = Processes(50).results(abs, [-1, -2, -3])
    assert next(results) == 1
    assert len(multiprocessing.active_children()) <= 3
    assert list(results) == [2, 3]


def test_no_task_has_no_result():
    assert list(Processes(2).results(abs, [])) == []


def test_a_system_that_starts_no_more_processes_is_told(monkeypatch):
    def no_more():
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", no_more)
    with pytest.raises(KdumpError, match=r"starts no more processes \(Resource temporarily unavailable\): --jobs 1"):
        list(Processes(2).results(abs, [1, 2, 3]))
