"""Commands whose work once grew with the square of the number of partitions, log dirs or segments."""

import subprocess
import sys

import pytest

from bench import growth

WORST = {
    "partitions": "PATH,check,diff,du",
    "log_dirs": "PATH,check",
    "segments": "rebuild-index",
    "members": "PATH,check,slice",
}


@pytest.mark.parametrize("kind", WORST)
def test_four_times_as_many_things_take_at_most_five_times_the_calls(kind):
    command = [sys.executable, "-m", "bench.growth", "--kinds", kind, "--commands", WORST[kind], "--size", "50"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_growth_is_seen(monkeypatch):
    counts = iter([900, 100, 600, 5100])
    monkeypatch.setattr(growth, "calls", lambda _: next(counts))
    assert growth.growth("junk", "du", 60) == 10


def test_a_refused_command_is_not_taken_for_a_measured_one(tmp_path):
    assert growth.calls(["dump", str(tmp_path), "--no-such-option"]) is None
    assert growth.calls(["ls", str(tmp_path)])
