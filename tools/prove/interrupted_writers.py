"""Interrupt writers at random moments, run two at once, and create files at their target.

    python -m tools.prove.interrupted_writers [--times 25] [--pairs 100] [--seed 1] [--package FOLDER]

- `slice`, `salvage`, `rebuild-index`, `rebuild-cluster` and `report` get SIGTERM, SIGHUP, SIGINT and SIGKILL, each
  `--times` times at random moments of their run. Then the same command runs again.
- Pairs of runs have one target and, where `unshare` may make namespaces, equal process ids, `--pairs` times.
- A file or a folder appears at the target at a random moment, `--pairs` times.

`half`: outputs that are neither complete nor absent. `overwritten`: other files that are gone or changed (in a pair:
two runs that succeed, or none). `left`: temporary files that remain, although the run did not end by SIGKILL.
`unnamed`: files that remain after SIGKILL and that the next run does not name. `status`: runs whose exit status does
not match their signal. The exit status is 1 if there is one of these. `--package` is the folder of another kdump, such
as an older one.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from testing import ROOT, forge

SIGNALS = {"TERM": signal.SIGTERM, "HUP": signal.SIGHUP, "INT": signal.SIGINT, "KILL": signal.SIGKILL}
FAULTS = ("half", "overwritten", "left", "unnamed", "status")
NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
OTHERS = b"another's"
BATCHES, VALUE = 1500, 16_000
SEGMENTS = 3
ENDS = 60


class Writer(NamedTuple):
    """A command line whose output is ``out``; ``is_folder``: ``out`` is a folder."""

    words: tuple[str, ...]
    is_folder: bool


WRITERS = {
    "slice": Writer(("slice", "{log}/orders-0", "--offset", "0..", "--out", "{out}"), False),
    "salvage": Writer(("salvage", "{log}", "--out", "{out}"), True),
    "rebuild-index": Writer(("rebuild-index", "{log}/orders-0", "--out", "{out}"), True),
    "rebuild-cluster": Writer(
        ("rebuild-cluster", "{log}", "--cluster-id", "kdump", "--release", "4.3.1", "--out", "{out}"), True
    ),
    "report": Writer(("report", "{log}", "--at", "2026-01-01", "--out", "{out}"), False),
}


NEW_EACH_TIME = ("rebuild-cluster", "report")
"""The writers whose outputs contain new ids or the time."""
INTO_EMPTY = ("rebuild-cluster", "salvage")
"""The writers that write into an empty folder."""


class Bench:
    """A log dir to read, and the duration and output of each writer."""

    def __init__(self, root: Path, package: Path) -> None:
        self.root, self.package = root, package
        self._env = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
        self.log = root / "in"
        for topic in ("orders", "prices"):
            folder = self.log / f"{topic}-0"
            folder.mkdir(parents=True)
            for segment in range(SEGMENTS):
                base = segment * BATCHES
                data = (forge.batch([forge.record(b"k", bytes(VALUE))], base_offset=base + n) for n in range(BATCHES))
                (folder / f"{base:020}.log").write_bytes(b"".join(data))
        self.seconds: dict[str, float] = {}
        self.whole: dict[str, dict[str, bytes | None]] = {}
        for name in WRITERS:
            place = root / f"whole-{name}"
            place.mkdir()
            began = time.monotonic()
            process = self.start(name, place / "out")
            assert process.wait(ENDS) == 0, process.stderr and process.stderr.read()
            self.seconds[name] = time.monotonic() - began
            self.whole[name] = held(place / "out", contents=name not in NEW_EACH_TIME)

    def start(self, name: str, out: Path, *before: str, words: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        line = [word.format(log=self.log, out=out) for word in WRITERS[name].words]
        command = [*before, sys.executable, "-m", "kdump", *line, *words]
        return subprocess.Popen(
            command, cwd=self.root, env=self._env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def is_whole(self, name: str, out: Path) -> bool:
        return held(out, contents=name not in NEW_EACH_TIME) == self.whole[name]

    def is_absent(self, name: str, out: Path) -> bool:
        """Whether nothing is there. rebuild-index moves its files one by one: then no incomplete file may be there."""
        if name != "rebuild-index":
            return not os.path.lexists(out)
        return held(out).items() <= self.whole[name].items()


def held(out: Path, *, contents: bool = True) -> dict[str, bytes | None]:
    """Return the files of an output, without unfinished parts."""
    if out.is_file():
        return {"": out.read_bytes() if contents else None}
    found = [path for path in out.rglob("*") if path.is_file() and ".part" not in str(path)]
    return {str(path.relative_to(out)): path.read_bytes() if contents else None for path in found}


def parts(place: Path) -> list[Path]:
    """Return the leftovers: files and folders whose names begin with a dot."""
    return [
        path
        for path in place.rglob(".*")
        if not any(above.name.startswith(".") for above in path.relative_to(place).parents if above.name)
    ]


def interrupted(bench: Bench, name: str, kind: str, place: Path, rng: random.Random) -> Counter[str]:
    """Send a signal at a random moment; run again."""
    out, faults = place / "out", Counter[str]()
    process = bench.start(name, out)
    try:
        status = process.wait(rng.uniform(0.02, 1.0) * bench.seconds[name])
    except subprocess.TimeoutExpired:
        process.send_signal(SIGNALS[kind])
        status = process.wait(ENDS)
    said = process.stderr.read().decode("utf-8", "replace") if process.stderr else ""
    number = SIGNALS[kind]
    is_early = "Traceback" in said and f"{bench.package}/kdump" not in said  # Python has not begun kdump
    is_wrong = status not in (0, -number, 128 + number) or "Traceback" in said
    if is_wrong and not is_early:
        print(f"{name} SIG{kind} ended with {status}: {said}")
    faults["status"] += is_wrong and not is_early
    faults["half"] += not (bench.is_whole(name, out) or (status != 0 and bench.is_absent(name, out)))
    left = parts(place)
    faults["left"] += bool(left) and kind != "KILL"
    faults["ended by it"] += status != 0
    faults["with a part"] += bool(left)
    words = ("--force",) if name == "rebuild-index" else ()
    again = bench.start(name, place / "again" if held(out) and not words else out, words=words)
    said = again.communicate(timeout=ENDS)[1].decode("utf-8", "replace")
    faults["unnamed"] += sum(str(path) not in said for path in left) if kind == "KILL" else 0
    faults["status"] += again.returncode != 0
    return faults


def paired(bench: Bench, name: str, place: Path, rng: random.Random, namespace: tuple[str, ...]) -> Counter[str]:
    """Run two at once: one must succeed, the other must report that the name is taken."""
    out, faults = place / "out", Counter[str]()
    first = bench.start(name, out, *namespace)
    time.sleep(rng.uniform(0, 0.3) * bench.seconds[name])
    second = bench.start(name, out, *namespace)
    ends = sorted([first.wait(ENDS), second.wait(ENDS)])
    faults["overwritten"] += ends.count(0) > 1 or (ends.count(0) == 0 and name != "rebuild-index")
    faults["half"] += not (bench.is_whole(name, out) or (name == "rebuild-index" and bench.is_absent(name, out)))
    faults["left"] += bool(parts(place))
    faults["status"] += any(end not in (0, 2) for end in ends)
    faults["both refused"] += ends.count(0) == 0
    return faults


def appeared(bench: Bench, name: str, place: Path, rng: random.Random) -> Counter[str]:
    """Create another file or folder at the target."""
    out, faults = place / "out", Counter[str]()
    process = bench.start(name, out)
    time.sleep(rng.uniform(0.02, 1.0) * bench.seconds[name])
    target = out / "orders-0" / f"{(SEGMENTS - 1) * BATCHES:020}.index" if name == "rebuild-index" else out
    kind = rng.choice(("file", "folder", "empty folder"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if kind == "file":
            with target.open("xb") as file:
                file.write(OTHERS)
        else:
            target.mkdir()
            if kind == "folder":
                (target / "z").write_bytes(OTHERS)
    except FileExistsError:  # the run was faster
        kind = ""
    status = process.wait(ENDS)
    faults["met"] += bool(kind) and status == 2
    into = kind == "empty folder" and name in INTO_EMPTY  # it may be written into, if it was there when the run began
    if kind == "file":
        faults["overwritten"] += held(target) != {"": OTHERS}
    elif kind == "folder":
        faults["overwritten"] += held(target) != {"z": OTHERS}
    elif kind and not into:
        faults["overwritten"] += not target.is_dir() or any(target.iterdir())
    if not kind or (into and status == 0):
        faults["half"] += not bench.is_whole(name, out)
    faults["status"] += status != (2 if kind and not (into and status == 0) else 0)
    faults["left"] += bool(parts(place))
    return faults


def namespaces() -> tuple[str, ...]:
    """Return the words before a command that give it process ids from 1 on; empty if the system refuses."""
    try:
        done = subprocess.run([*NAMESPACE, "true"], check=False, capture_output=True)
    except OSError:
        return ()
    return NAMESPACE if done.returncode == 0 else ()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=25)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--package", type=Path, default=ROOT)
    parser.add_argument("--writer", choices=[*WRITERS], action="append")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # children would ignore what a background job ignores
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    rng, total = random.Random(options.seed), Counter[str]()
    names, namespace = options.writer or [*WRITERS], namespaces()
    print(f"process ids of pairs are {'equal' if namespace else 'not equal: unshare is refused'}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.package)

        def series(title: str, times: int, work: Callable[[Path], Counter[str]]) -> None:
            count = Counter[str]()
            for number in range(times):
                place = Path(folder) / f"{title} {number}"
                place.mkdir()
                count.update(work(place))
                shutil.rmtree(place)
            total.update(count)
            print(
                f"{title}: {times} times, "
                + ", ".join(f"{count[word]} {word}" for word in [*FAULTS, *sorted({*count} - {*FAULTS})]),
                flush=True,
            )

        for name in names:
            for kind in SIGNALS:
                series(
                    f"{name} SIG{kind}",
                    options.times,
                    lambda place, name=name, kind=kind: interrupted(bench, name, kind, place, rng),
                )
        for name in names:
            each = -(-options.pairs // len(names))
            series(f"{name} pairs", each, lambda place, name=name: paired(bench, name, place, rng, namespace))
            series(f"{name} appears", each, lambda place, name=name: appeared(bench, name, place, rng))
    return int(any(total[word] for word in FAULTS))


if __name__ == "__main__":
    sys.exit(main())
