"""The old name of :mod:`testing.processes`."""

from testing import GOLDEN, ROOT  # noqa: F401  likewise
from testing.processes import *  # noqa: F403  likewise
