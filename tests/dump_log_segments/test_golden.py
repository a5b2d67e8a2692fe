"""Every recorded run of the real tool, repeated by kdump on the files of golden/."""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kdump.dump_log_segments.dialects import payload as dialects_payload
from kdump.dump_log_segments.dialects import segments as dialects
from kdump.dump_log_segments.dialects import state as dialects_state
from testing import GOLDEN, ROOT, goldens
from testing.goldens import Outcome

REPLAY = ROOT / "tests" / "helpers" / "replay.py"


@functools.cache
def recorded() -> goldens.Runs:
    return goldens.load()


def groups() -> list[tuple[str, str]]:
    """Releases, and the folders of golden/ on which they ran: (release, "damaged/gzip"), ..."""
    return sorted({(release, group(name)) for release, runs in recorded().items() for name in runs})


def group(name: str) -> str:
    first, _, rest = name.partition("/")
    return first if first in {"tiny", "options"} else f"{first}/{re.split('[-/]', rest)[0]}"


@pytest.fixture(scope="session")
def golden_folder():
    """golden/, or a copy where its path holds a dot: releases before 0.8.2 cut an index's path at the first one."""
    if "." not in str(GOLDEN):
        yield GOLDEN
        return
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        copy = Path(folder).resolve() / "golden"
        shutil.copytree(GOLDEN, copy, ignore=shutil.ignore_patterns("runs"))
        yield copy


@pytest.fixture(scope="session")
def replay(golden_folder):
    """Return kdump's result for a command line, run in golden/ by one process for all tests."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(REPLAY)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, cwd=golden_folder, env=environment, encoding="utf-8"
    ) as process:

        def run(arguments: list[str]) -> Outcome:
            process.stdin.write(json.dumps({"arguments": arguments}) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            return goldens.outcome(answer["status"], answer["stdout"].encode(), answer["stderr"], golden_folder)

        yield run


def difference(got: Outcome, want: Outcome) -> str:
    """Return the difference between two runs, or an empty text. kdump may describe an exception in other words."""
    if "Traceback" in got.stderr:
        return "stderr holds a traceback:\n" + got.stderr
    if got.stdout != want.stdout:
        return "stdout " + goldens.first_difference(got.stdout, want.stdout)
    if got.status != want.status:
        return f"exit {got.status} instead of {want.status}"
    if "Exception in thread" in want.stderr:
        return "" if got.stderr.startswith("error: ") else "stderr gives no reason"
    said = "".join(line for line in got.stderr.splitlines(keepends=True) if not line.startswith("WARNING: "))
    return "" if said == want.stderr else "stderr " + goldens.first_difference(said, want.stderr)


@pytest.mark.parametrize(("release", "folder"), groups())
def test_prints_what_the_original_printed(release, folder, replay):
    wanted = {name: run for name, run in recorded()[release].items() if group(name) == folder}
    commands = goldens.cases()
    failing = []
    for name, want in wanted.items():
        command = " ".join(commands[name])
        if what := difference(replay(["--compat", release, *commands[name]]), want):
            failing.append(f"{name}: kdump --compat {release} {command}\n{what}")
    assert not failing, f"{len(failing)} of {len(wanted)} cases\n" + "\n".join(failing[:5])


@pytest.mark.parametrize("table", [dialects, dialects_state, dialects_payload], ids=["log", "state", "payload"])
def test_every_dialect_has_recorded_runs(table):
    held = {table.find(release).since for release in recorded()}
    assert [dialect.why for dialect in table.DIALECTS if dialect.since not in held] == []


def test_every_case_is_recorded_and_every_run_is_a_case():
    assert {name for runs in recorded().values() for name in runs} == set(goldens.cases())
