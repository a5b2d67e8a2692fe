"""Lets atheris search for inputs that reach new code. Each target has a process, because libFuzzer ends its process.

Called by ``python -m tools.fuzz TARGET... --coverage SECONDS``. A process counts its inputs in a shared file, so that
the figures are there if it is killed.
"""

import mmap
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tools.fuzz import attempts, report, targets
from tools.fuzz.inputs import inputs

SEEDS = 300
TIMEOUT = 30
"""Seconds after which libFuzzer ends a process that is stuck in one input."""
TIMED_OUT = 70
"""Exit status of libFuzzer in that case."""
SHARED = "figures"
"""The name of the shared file, which has a number of 8 bytes for each figure."""
LAST = "last-"
"""The prefixes of the files in which libFuzzer saves the input that ended or blocked a process."""


def run(targets: list[str], seconds: int, title: str | None) -> bool:
    """Try the targets one after another; return whether all is well. Figures also go to a section of the report."""
    failed = False
    for target in targets:
        tally = tried(target, seconds)
        print(report.row(target, tally, report.GUIDED), flush=True)
        if title is not None:
            report.write_guided(title, target, tally)
        failed |= report.is_failed(tally)
    return not failed


def tried(target: str, seconds: int) -> Counter[str]:
    """Try one target in another process; return the result."""
    with tempfile.TemporaryDirectory(dir=targets.PLACE) as folder:
        shared = Path(folder, SHARED)
        shared.write_bytes(bytes(8 * len(report.FIGURES)))
        command = [sys.executable, "-m", "tools.fuzz.guided", target, str(seconds), folder]
        status = subprocess.run(command, check=False).returncode
        figures = memoryview(shared.read_bytes()).cast("q")
        tally = Counter(dict(zip(report.FIGURES, figures, strict=True)))
        for path in Path(folder).glob(f"{LAST}*"):
            print(f"--- {target}: {attempts.keep(target, path.read_bytes())}", flush=True)
    if status and not report.is_failed(tally):  # it came to no figure of its own
        tally["hangs" if status == TIMED_OUT else "crashes"] += 1
    tally["seconds"] = seconds
    return tally


def main() -> None:
    """Fuzz one target. This function does not return."""
    import atheris  # type: ignore[import-not-found]  # declared nowhere: it has no wheel for every Python

    target, seconds, targets.PLACE = sys.argv[1:]
    seeds = list(inputs(target, 0, SEEDS))
    for data in seeds[:50]:
        attempts.attempt(target, data)  # modules that are imported late are there to be instrumented
    atheris.instrument_all()
    with Path(targets.PLACE, SHARED).open("r+b") as file:
        figures = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")

    def test_one(data: bytes) -> None:
        figures[0] += 1
        figures[1] += len(data)
        if wrong := attempts.attempt(target, data):
            figures[3 if wrong.startswith("hang") else 2] += 1
            attempts.keep(target, data)
            raise targets.Broken(wrong)

    corpus = Path(targets.PLACE, "corpus")
    corpus.mkdir()
    for number, data in enumerate(seeds):
        (corpus / str(number)).write_bytes(data)
    options = [f"-max_total_time={seconds}", "-max_len=4096", f"-timeout={TIMEOUT}", f"-report_slow_units={TIMEOUT}"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={targets.PLACE}/{LAST}", str(corpus)], test_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
