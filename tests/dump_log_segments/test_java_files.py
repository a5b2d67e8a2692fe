"""Paths as ``java.io.File`` has them."""

from kdump.dump_log_segments.java_files import absolute


def test_an_absolute_path(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    assert absolute("x/../y.log") == "/x/../y.log"
    monkeypatch.chdir(tmp_path)
    assert absolute("x/y.log") == f"{tmp_path}/x/y.log"
    assert absolute("/x/y.log") == "/x/y.log"
