"""Tries inputs on a target of the fuzzer one after another, and saves those that break the target."""

import hashlib
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from kdump.errors import KdumpError, UsageError
from testing import ROOT
from tools.fuzz.inputs import inputs
from tools.fuzz.targets import TARGETS, Broken

FOUND = ROOT / "tests" / "hostile"
"""The folder of inputs that broke a target, as TARGET-DIGEST. tests/tools/test_fuzz.py tries them again."""
SECONDS = 10
"""The time limit of an input in seconds. An input that takes longer counts as a hang."""


def attempt(target: str, data: bytes) -> str:
    """Try one input; return the fault, or an empty text without one."""
    started = time.process_time()
    try:
        TARGETS[target](data)
    except (KdumpError, Broken) as error:
        return f"{type(error).__name__}: {error}" if isinstance(error, Broken | UsageError) else ""
    except Exception:
        return traceback.format_exc()
    spent = time.process_time() - started
    return f"hang: {spent:.0f} s" if spent > SECONDS else ""


def keep(target: str, data: bytes) -> Path:
    """Save an input in the folder that the tests read."""
    FOUND.mkdir(exist_ok=True)
    path = FOUND / f"{target}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return path


def work(job: tuple[str, int, int, int]) -> Counter[str]:
    """Try a range of the inputs of a target."""
    target, seed, first, count = job
    return tried(target, inputs(target, seed, count, first))


def tried(target: str, data_of: Iterable[bytes]) -> Counter[str]:
    """Try inputs on a target; save and report those that break it."""
    tally: Counter[str] = Counter()
    for data in data_of:
        tally["inputs"] += 1
        tally["bytes"] += len(data)
        if wrong := attempt(target, data):
            tally["hangs" if wrong.startswith("hang") else "crashes"] += 1
            print(f"--- {target}: {keep(target, data)}\n{wrong}", flush=True)
    return tally
