"""pytest-xdist gives each test to one process, keeps modules and groups together, and starts long tests first."""

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("xdist")

from tests.helpers.scheduling import MOST, ModuleScheduling, in_order


class Process:
    """A process of pytest-xdist that runs the tests it receives."""

    def __init__(self, name):
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.received, self.done = [], 0

    def send_runtest_some(self, numbers):
        self.received.append(numbers)

    def shutdown(self):
        self.shutting_down = True


def handed_out(tests, processes):
    """Return what each process received: a list of tests for each time it received some."""
    options = SimpleNamespace(tx=["popen"] * processes, loadscopereorder=True)
    config = SimpleNamespace(option=options, getvalue=lambda name: getattr(options, name), rootpath=Path())
    scheduling = ModuleScheduling(config)
    nodes = [Process(f"gw{number}") for number in range(processes)]
    for node in nodes:
        scheduling.add_node(node)
        scheduling.add_node_collection(node, tests)
    scheduling.schedule()
    while not scheduling.tests_finished:
        for node in nodes:
            waiting = [number for numbers in node.received for number in numbers][node.done :]
            if waiting:
                node.done += 1
                scheduling.mark_test_complete(node, waiting[0])
    return [[[tests[number] for number in numbers] for numbers in node.received] for node in nodes]


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_each_test_is_handed_out_once_and_modules_together(processes):
    tests = [f"a/test_one.py::test[{number}]" for number in range(2 * MOST + 3)]
    tests += [f"a/test_two.py::test[x@{number}]" for number in range(5)]
    tests += ["a/test_one.py::test_of_spark@spark", "a/test_two.py::test_of_spark[1]@spark"]
    parts = [part for process in handed_out(tests, processes) for part in process]
    assert sorted(test for part in parts for test in part) == sorted(tests)
    assert sorted(map(len, parts)) == [2, 3, 5, MOST, MOST]
    assert all(len({test.partition("::")[0] for test in part}) == 1 for part in parts if len(part) != 2)


def item(path, name, group=None):
    return SimpleNamespace(path=Path(path), name=name, get_closest_marker=lambda _: group)


def test_groups_and_modules_of_few_tests_come_first():
    items = [item("b.py", "1"), item("b.py", "2"), item("b.py", "3", "spark"), item("c.py", "4"), item("a.py", "5")]
    items += [item("a.py", "6")]
    assert [one.name for one in in_order(items)] == ["3", "4", "5", "6", "1", "2"]
