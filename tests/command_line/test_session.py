"""What all commands that read logs share."""

import io
import sys

import pytest

from kdump import cli, kernel
from kdump.command_line import session
from kdump.command_line.session import Session
from testing import forge


def test_a_run_keeps_the_memory_that_it_frees(monkeypatch):
    """Otherwise the system clears the same blocks again for each part of a segment."""
    asked = []
    monkeypatch.setattr(kernel, "keep_freed_memory", lambda: asked.append(True))
    Session()
    assert asked == [True]


class Terminal(io.StringIO):
    """Standard error that claims to be a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize(
    "words",
    [
        ["check", "IN"],
        ["salvage", "IN", "--out", "OUT", "-q"],
        ["salvage", "IN", "AGAIN", "--out", "OUT", "-q"],
        ["stats", "IN", "--what-if", "zstd"],
        ["dump", "IN", "-o", "jsonl", "--jobs", "1"],
    ],
)
def test_progress_is_shown_and_cleared(words, tmp_path, monkeypatch, capfdbinary):
    """This also holds for one segment: the last update is before its end, and the line is cleared at the end."""
    for name in ("in", "again"):
        place = tmp_path / name / "orders-0"
        place.mkdir(parents=True)
        batches = (forge.batch([forge.record(b"k", b"v" * 300)], base_offset=offset) for offset in range(4000))
        (place / f"{0:020}.log").write_bytes(b"".join(batches))
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(session, "EVERY", 0)
    paths = {"IN": tmp_path / "in", "AGAIN": tmp_path / "again", "OUT": tmp_path / "out"}
    monkeypatch.setattr(sys, "argv", ["kdump", *(str(paths.get(word, word)) for word in words)])
    assert cli.main() == 0
    lines = shown.getvalue().split("\r")
    steps = [line for line in lines if " MiB of " in line or " KiB of " in line]
    assert len(steps) > 1, lines
    assert any("left" in line for line in steps)
    assert lines[-1] == ""
    assert lines[-2].isspace()
    assert capfdbinary.readouterr().err == b""


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_a_status_line_fits_and_has_what_is_left(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    for amount in ("1 of 9 tasks", "999.9 GiB of 999.9 GiB  1023.9 MiB/s"):
        text = session.share_done(1, 9, amount, 100.0)
        assert text.endswith(f"{amount}  13:20 left")
        assert len(text) < width or session.FULL not in text
        assert (session.FULL in text) == (width - len(amount) > 30)
    assert session.share_done(0, 9, "nothing", 1.0) == "nothing"
