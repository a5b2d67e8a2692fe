"""Runs kdump and the original, and measures and compares the runs."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
import venv
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from tools.record.fetch_jars import fetch, main_class

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.primitives.wire import Bytes

ROOT = Path(__file__).parent.parent
HEAP = ["-Xmx256M", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"]
"""The heap options of kafka-run-class.sh."""
NOT_OURS = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "KDUMP_KERNEL"}
"""Environment variables that a user who installs kdump does not have."""


class Tool(NamedTuple):
    """A program to measure: its command before the options, and its environment."""

    name: str
    command: list[str]
    env: dict[str, str]


class Measured(NamedTuple):
    """One run: wall and processor seconds, and the peak of resident memory in bytes."""

    wall: float
    cpu: float
    peak: int


def original(release: str) -> Tool:
    jars = fetch(release)
    return Tool(f"DumpLogSegments {release}", ["java", *HEAP, "-cp", f"{jars}/*", main_class(release)], {})


def kdump(build: str, program: Path) -> Tool:
    """Return the installed ``program`` with the "compiled" kernel, or with "no kernel"."""
    return Tool(f"kdump, {build}", [str(program)], {} if build == "compiled" else {"KDUMP_KERNEL": "off"})


def install(folder: Path) -> Path:
    """Install kdump as a user does, into a new environment; return the program.

    It is installed again after a source has changed; pip fetches its dependencies.
    """
    sources = [ROOT / "pyproject.toml", *sorted((ROOT / "kdump").rglob("*.p*"))]
    suffixes = {".py", ".pyx", ".pxd", ".toml"}
    stamp = hashlib.sha256(b"".join(path.read_bytes() for path in sources if path.suffix in suffixes))
    done = folder / "stamp"
    python = folder / "bin" / "python"
    if not done.exists() or done.read_text("utf-8") != stamp.hexdigest():
        venv.create(folder, clear=True, with_pip=True)
        clean = {**environment({}), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        subprocess.run([python, "-m", "pip", "install", "-q", str(ROOT)], check=True, env=clean)
        done.write_text(stamp.hexdigest(), "utf-8")
    return folder / "bin" / "kdump"


def environment(env: dict[str, str]) -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if name not in NOT_OURS}, **env}


def measure(tool: Tool, arguments: Sequence[str], *, pipe: bool = False) -> Measured:
    """Run once, with the output to /dev/null, or through a pipe into ``wc -c``.

    Raises CalledProcessError if it fails.
    """
    with Path(os.devnull).open("wb") as null:
        reader = subprocess.Popen(["wc", "-c"], stdin=subprocess.PIPE, stdout=null) if pipe else None
        out = reader.stdin if reader else null
        start = time.perf_counter()
        command = [*tool.command, *arguments]
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=environment(tool.env))
        if reader and reader.stdin:
            reader.stdin.close()
        _, status, used = os.wait4(process.pid, 0)
        if reader:
            reader.wait()
        wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Measured(wall, used.ru_utime + used.ru_stime, used.ru_maxrss << 10)


def medians(runs: Sequence[Measured]) -> Measured:
    """Return the median of each measure."""
    return Measured(
        median(run.wall for run in runs), median(run.cpu for run in runs), int(median(run.peak for run in runs))
    )


def measured(tools: Sequence[Tool], arguments: Sequence[str], rounds: int, *, pipe: bool = False) -> list[Measured]:
    """Run the tools in turn, ``rounds`` times each; return the medians of each."""
    taken: list[list[Measured]] = [[] for _ in tools]
    for _ in range(rounds):
        for tool, runs in zip(tools, taken, strict=True):
            runs.append(measure(tool, arguments, pipe=pipe))
    return [medians(runs) for runs in taken]


def digest(tool: Tool, arguments: Sequence[str]) -> str:
    """Return a checksum of the standard output of a run."""
    summed = hashlib.sha256()
    with subprocess.Popen(
        [*tool.command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(tool.env)
    ) as process:
        block: Bytes
        while process.stdout and (block := process.stdout.read(1 << 20)):
            summed.update(block)
    return summed.hexdigest()


def version(program: Path) -> str:
    """Return the version that the installed kdump prints."""
    done = subprocess.run([program, "--version"], check=True, capture_output=True, env=environment({}))
    return done.stdout.decode().strip()
