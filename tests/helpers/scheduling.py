"""How pytest-xdist gives tests to its processes: a module at a time, and long tests first."""

from __future__ import annotations

from collections import Counter

from xdist.scheduler import LoadGroupScheduling

MOST = 50
"""Maximum number of a module's tests that one process receives at once. Several processes share a larger module."""


class ModuleScheduling(LoadGroupScheduling):
    """Hands out the tests of a module or of a group together, in the order in which they were collected.

    The fixtures of a module are then set up in one process. LoadGroupScheduling hands out single tests, and takes
    longer for each one the more it has handed out.
    """

    def __init__(self, config, log=None):
        config.option.loadscopereorder = False
        super().__init__(config, log)
        self._seen, self._parts = Counter(), {}

    def _split_scope(self, nodeid):
        part = self._parts.get(nodeid)
        if part is None:  # the base class asks for all tests once, in their order
            scope = super()._split_scope(nodeid)
            module, single, _ = scope.partition("::")
            part = self._parts[nodeid] = f"{module}::{self._seen[module] // MOST}" if single else scope
            self._seen[module] += 1
        return part


def in_order(items):
    """Return tests in their starting order.

    Groups come first. Modules of few tests follow: their tests are the long ones. The shortest tests are the last, so
    that all processes end at about the same time.
    """
    sizes = Counter(item.path for item in items)
    return sorted(items, key=lambda item: (item.get_closest_marker("xdist_group") is None, sizes[item.path], item.path))
