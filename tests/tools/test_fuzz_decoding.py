"""A short run of the fuzzer of payloads, in a separate process because it limits its memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from testing import ROOT


def test_a_short_run_finds_nothing():
    pytest.importorskip("fastavro")
    pytest.importorskip("google.protobuf")
    words = ["-m", "tools.fuzz.decoding", "--count", "40", "--schemas", "2"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.startswith("40 payloads: ")) == (0, True), done.stdout + done.stderr
