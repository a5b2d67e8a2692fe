"""What every command that reads logs shares."""

from kdump import kernel
from kdump.commands.session import Session


def test_a_run_keeps_the_memory_that_it_frees(monkeypatch):
    """Else the system clears the same blocks anew for each part of a segment."""
    asked = []
    monkeypatch.setattr(kernel, "keep_freed_memory", lambda: asked.append(True))
    Session()
    assert asked == [True]
