import multiprocessing

from kdump.primitives.processes import Processes


def test_no_more_processes_are_forked_than_there_are_tasks():
    results = Processes(50).results(abs, [-1, -2, -3])
    assert next(results) == 1
    assert len(multiprocessing.active_children()) <= 3
    assert list(results) == [2, 3]


def test_no_task_has_no_result():
    assert list(Processes(2).results(abs, [])) == []
