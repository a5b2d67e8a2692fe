"""What the coverage-guided fuzzer counts, however its process ends; a small module replaces atheris."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from testing import ROOT
from tools.fuzz import guided
from tools.fuzz import report as fuzz_report

ATHERIS = """
import os
import sys
from tools.fuzz import attempts, targets

def instrument_all():
    attempts.FOUND = attempts.Path({found!r})

def Setup(arguments, test_one):
    instrument_all.test_one = test_one
    (instrument_all.prefix,) = (text.partition("=")[2] for text in arguments if text.startswith("-artifact_prefix="))

def Fuzz():
    for data in (b"", b"ab", b"abc"):
        instrument_all.last = data
        instrument_all.test_one(data)
    end({status})

def end(status):
    if status:
        with open(instrument_all.prefix + "crash-0123", "wb") as file:
            file.write(instrument_all.last)
    os._exit(status)
"""
BROKEN = """
def instrument_all():
    attempts.FOUND = attempts.Path({found!r})
    targets.TARGETS["codec"] = lambda data: 1 // (len(data) - 2)
    sys.excepthook = lambda *_: end(77)
"""
SECTION = """# Head

## A

kept

## Guided

Kernel: compiled.

| target | seconds | inputs | bytes | crashes | hangs |
|---|---|---|---|---|---|
| archive | 5 | 7 | 70 | 0 | 0 |
| state | 1 | 1 | 1 | 1 | 1 |
"""


@pytest.fixture
def atheris(tmp_path, monkeypatch):
    """Replace atheris with a module that tries three inputs and ends the process."""

    def make(status=0, *, more=""):
        (tmp_path / "atheris.py").write_text((ATHERIS + more).format(found=str(tmp_path / "found"), status=status))
        monkeypatch.setattr(guided.attempts, "FOUND", tmp_path / "found")
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
        return tmp_path / "found"

    return make


@pytest.fixture
def report(tmp_path, monkeypatch):
    path = tmp_path / "fuzz.md"
    monkeypatch.setattr(fuzz_report, "REPORT", path)
    return path


def test_inputs_are_counted_though_the_process_ends_itself(atheris):
    atheris()
    assert guided.tried("codec", 9) == Counter(seconds=9, inputs=3, bytes=5)


@pytest.mark.parametrize(("status", "figure"), [(77, "crashes"), (guided.TIMED_OUT, "hangs")])
def test_a_process_that_dies_is_a_finding(atheris, status, figure):
    found = atheris(status)
    assert guided.tried("codec", 1)[figure] == 1
    ((name, data),) = [(path.name, path.read_bytes()) for path in found.iterdir()]
    assert (name.rpartition("-")[0], data) == ("codec", b"abc")  # as tests/tools/test_fuzz.py finds it


def test_an_input_that_breaks_a_target_is_kept_and_counted_once(atheris):
    found = atheris(more=BROKEN)
    assert guided.tried("codec", 1) == Counter(seconds=1, inputs=2, bytes=2, crashes=1)
    assert [path.read_bytes() for path in found.iterdir()] == [b"ab"]


def test_a_run_of_some_targets_leaves_the_figures_of_others(report, monkeypatch):
    report.write_text(SECTION)
    monkeypatch.setattr(guided, "tried", lambda target, seconds: Counter(seconds=seconds, inputs=len(target)))
    assert guided.run(["state", "codec"], 130, "Guided")
    rows = ["| archive | 5 | 7 | 70 | 0 | 0 |", "| codec | 130 | 5 | 0 | 0 | 0 |", "| state | 130 | 5 | 0 | 0 | 0 |"]
    assert report.read_text().split("|---|---|---|---|---|---|\n")[1].splitlines() == rows
    assert "## A\n\nkept\n\n## Guided\n\nKernel: " in report.read_text()


def test_a_finding_makes_a_run_fail_and_stands_in_a_new_report(report, monkeypatch):
    monkeypatch.setattr(guided, "tried", lambda *_: Counter(seconds=1, inputs=4, hangs=1))
    assert not guided.run(["state"], 1, "Guided")
    assert report.read_text().startswith(fuzz_report.HEAD)
    assert report.read_text().endswith("\n| state | 1 | 4 | 0 | 0 | 1 |\n")
