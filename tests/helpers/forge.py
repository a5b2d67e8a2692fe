"""The old name of :mod:`testing.forge`."""

from testing.forge import *  # noqa: F403  branches that began before the move still import it from here
