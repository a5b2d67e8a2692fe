"""Interrupt writers at random moments, run two at once, and give them targets that they may not use.

    python -m tools.prove.interrupted_writers [--times 25] [--pairs 100] [--seed 1] [--writer NAME] [--package FOLDER]
                                              [--series signals|pairs|appears|full|places]

- signals: each command with an output gets SIGTERM, SIGHUP, SIGINT and SIGKILL, each `--times` times at random moments
  of its run. Then the same command runs again.
- pairs: two runs have one target and, where `unshare` may make namespaces, equal process ids.
- appears: a file or a folder appears at the target at a random moment. `--pairs` times for all writers together, as
  for pairs.
- full: the target is on a file system of random size that becomes full, `--times` times (needs root).
- places: the target is an input, in an input, a link, a FIFO, a socket, a device, a folder, on a read-only file system.

`half`: outputs that are neither complete nor absent. `overwritten`: other files that are gone or changed (in a pair:
two runs that succeed, or none). `left`: temporary files that remain, although the run did not end by SIGKILL.
`unnamed`: files that remain after SIGKILL and that the next run does not name. `status`: runs whose exit status or
message is wrong. The exit status is 1 if there is one of these. `--package` is the folder of another kdump, such as an
older one. tools.prove.killed_exports has the same for `spark-export`.
"""

import argparse
import os
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from testing import GOLDEN, ROOT, forge

SIGNALS = {"TERM": signal.SIGTERM, "HUP": signal.SIGHUP, "INT": signal.SIGINT, "KILL": signal.SIGKILL}
FAULTS = ("half", "overwritten", "left", "unnamed", "status")
NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
OTHERS = b"another's"
BATCHES, VALUE = 600, 16_000
SEGMENTS = 3
ENDS = 60
ROWS = 'select topic, partition, "offset", timestamp, key, unnest(range(20)) from records'


class Writer(NamedTuple):
    """A command line whose output is ``{out}``."""

    words: tuple[str, ...]
    is_folder: bool = False
    """Whether the output is a folder, not a file."""
    joins: bool = False
    """Whether files are added to a folder that may hold others."""
    replaces: bool = False
    """Whether existing files are replaced."""
    is_new: bool = False
    """Whether each output differs, because it contains new ids or the time."""
    resumes: bool = False
    """Whether a run that fails keeps its part, and the next one continues it."""

    @property
    def into_empty(self) -> bool:
        """Whether the command writes into an empty folder."""
        return self.is_folder and not self.joins


REPORT = ("report", "{log}", "--at", "2026-01-01", "--out", "{out}")
INDEX = ("rebuild-index", "{log}/orders-0", "--out", "{out}")
CLUSTER = ("rebuild-cluster", "{log}", "--cluster-id", "kdump", "--release", "4.3.1", "--out", "{out}")
SNAPSHOT = ("metadata", "{metadata}", "--write-snapshot", "{out}")
VOTER = "1@localhost:9093:AAAAAAAAAAAAAAAAAAAAAQ"
WRITERS = {
    "slice": Writer(("slice", "{log}/orders-0", "--offset", "0..", "--out", "{out}")),
    "salvage": Writer(("salvage", "{log}", "--out", "{out}"), is_folder=True),
    "salvage of copies": Writer(("salvage", "{log}", "{copy}", "--out", "{out}"), is_folder=True),
    "rebuild-index": Writer(INDEX, is_folder=True, joins=True),
    "rebuild-index --force": Writer((*INDEX, "--force"), is_folder=True, joins=True, replaces=True),
    "rebuild-cluster": Writer(CLUSTER, is_folder=True, is_new=True),
    "rebuild-cluster --resume": Writer((*CLUSTER, "--resume"), is_folder=True, is_new=True, resumes=True),
    "report": Writer(REPORT, is_new=True),
    "report --overwrite": Writer((*REPORT, "--overwrite"), is_new=True, replaces=True),
    **{f"dump {form}": Writer(("dump", "{log}", "-o", form, "--out", "{out}")) for form in ("parquet", "arrow")},
    "dump parquet --overwrite": Writer(
        ("dump", "{log}", "-o", "parquet", "--overwrite", "--out", "{out}"), replaces=True
    ),
    **{
        f"sql {form}": Writer(("sql", ROWS, "{log}", "-o", form, "--out", "{out}"))
        for form in ("table", "csv", "jsonl", "parquet", "arrow")
    },
    "sql csv --overwrite": Writer(("sql", ROWS, "{log}", "-o", "csv", "--overwrite", "--out", "{out}"), replaces=True),
    "metadata": Writer(SNAPSHOT, is_folder=True, joins=True),
    "metadata --voters": Writer((*SNAPSHOT, "--voters", VOTER), is_folder=True, joins=True),
    "schemas": Writer(("schemas", "{schemas}", "--export", "{out}"), is_folder=True),
}


class Bench:
    """Log dirs to read, and the duration and output of each writer."""

    def __init__(self, root: Path, package: Path, names: list[str]) -> None:
        self.root, self.package = root, package
        self.temporary = root / "temporary"
        self.temporary.mkdir()
        self._env = {
            **os.environ,
            "PYTHONPATH": str(package),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(self.temporary),
        }
        self.inputs = root / "in"
        self.log = self.inputs / "logs"
        for topic in ("orders", "prices"):
            folder = self.log / f"{topic}-0"
            folder.mkdir(parents=True)
            for segment in range(SEGMENTS):
                base = segment * BATCHES
                data = (forge.batch([forge.record(b"k", bytes(VALUE))], base_offset=base + n) for n in range(BATCHES))
                (folder / f"{base:020}.log").write_bytes(b"".join(data))
        shutil.copytree(GOLDEN / "brokers/4.2.2/__cluster_metadata-0", self.inputs / "metadata/__cluster_metadata-0")
        with tarfile.open(GOLDEN / "registries.tar.xz") as archive:
            archive.extractall(self.inputs, filter="data")
        schemas = self.inputs / "confluent/logs/_schemas-0"
        copy = self.inputs / "copy"
        shutil.copytree(self.log, copy)
        self._words = {
            "log": self.log,
            "copy": copy,
            "metadata": self.inputs / "metadata",
            "schemas": schemas,
        }
        self.stored = tree(self.inputs)
        self.seconds: dict[str, float] = {}
        self.sizes: dict[str, int] = {}
        self.whole: dict[str, dict[str, bytes | None]] = {}
        for name in names:
            place = root / f"whole-{name}"
            place.mkdir()
            began = time.monotonic()
            process = self.start(name, place / "out")
            said = process.communicate(timeout=ENDS)[1].decode("utf-8", "replace")
            if process.returncode:
                raise RuntimeError(f"{name}: {said}")
            self.seconds[name] = time.monotonic() - began
            self.sizes[name] = sum(path.stat().st_size for path in [place, *place.rglob("*")])
            self.whole[name] = held(place / "out", contents=not WRITERS[name].is_new)
            shutil.rmtree(place)

    def start(self, name: str, out: Path | str, *before: str) -> subprocess.Popen[bytes]:
        """Start a writer; its output is ``out``, as it is given."""
        line = [word.format(out=out, **self._words) for word in WRITERS[name].words]
        command = [*before, sys.executable, "-m", "kdump", *line]
        return subprocess.Popen(
            command, cwd=self.root, env=self._env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def is_whole(self, name: str, out: Path) -> bool:
        return held(out, contents=not WRITERS[name].is_new) == self.whole[name]

    def is_absent(self, name: str, out: Path) -> bool:
        """Whether nothing is there, or the old file, or of files that join others only complete ones."""
        writer = WRITERS[name]
        if not writer.joins:
            return held(out) == {"": OTHERS} if writer.replaces else not os.path.lexists(out)
        return all(data in (OTHERS, self.whole[name].get(path)) for path, data in held(out).items())

    def prepare(self, name: str, out: Path) -> None:
        """Create the files that a writer replaces."""
        for path in self.whole[name] if WRITERS[name].replaces else ():
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            (out / path).write_bytes(OTHERS)

    def left(self, place: Path) -> list[Path]:
        """Return the temporary files that remain, and delete those outside ``place``."""
        beside = [*self.temporary.iterdir()]
        for path in beside:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return parts(place) + beside


def held(out: Path, *, contents: bool = True) -> dict[str, bytes | None]:
    """Return the files of an output, without unfinished parts."""
    if out.is_file():
        return {"": out.read_bytes() if contents else None}
    found = [path for path in out.rglob("*") if path.is_file() and ".part" not in str(path)]
    return {str(path.relative_to(out)): path.read_bytes() if contents else None for path in found}


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return each path in a folder: mode, time of the last change of a file, and the target of a link or the start."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = os.fsencode(path.readlink()) if path.is_symlink() else b""
        if stat.S_ISREG(status.st_mode):
            with path.open("rb") as file:
                content = file.read(1 << 16) + b"%d" % status.st_size
        changed = status.st_mtime_ns if stat.S_ISREG(status.st_mode) else 0
        found[str(path.relative_to(folder))] = (status.st_mode, changed, content)
    return found


def parts(place: Path) -> list[Path]:
    """Return the leftovers: files and folders whose names begin with a dot."""
    return [
        path
        for path in place.rglob(".*")
        if not any(above.name.startswith(".") for above in path.relative_to(place).parents if above.name)
    ]


def said_of(process: subprocess.Popen[bytes]) -> str:
    """Wait for the end of a run; return its standard error. A run that does not end is killed, and `hang` returned."""
    try:
        return process.communicate(timeout=ENDS)[1].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "hang"


def interrupted(bench: Bench, name: str, kind: str, place: Path, rng: random.Random) -> Counter[str]:
    """Send a signal at a random moment; run again."""
    out, faults, writer = place / "out", Counter[str](), WRITERS[name]
    bench.prepare(name, out)
    process = bench.start(name, out)
    try:
        process.wait(rng.uniform(0.02, 1.0) * bench.seconds[name])
    except subprocess.TimeoutExpired:
        process.send_signal(SIGNALS[kind])
    said = said_of(process)  # until the last process that has standard error ends
    status, number = process.returncode, SIGNALS[kind]
    is_early = "Traceback" in said and f"{bench.package}/kdump" not in said  # Python has not begun kdump
    is_wrong = status not in (0, -number, 128 + number) or "Traceback" in said
    if is_wrong and not is_early:
        print(f"{name} SIG{kind} ended with {status}: {said}")
    faults["status"] += is_wrong and not is_early
    faults["half"] += not (bench.is_whole(name, out) or (status != 0 and bench.is_absent(name, out)))
    left = bench.left(place)
    if kind != "KILL" and not is_kept(name, left, said):
        faults["left"] += 1
        print(f"{name} SIG{kind} left {left}")
    faults["ended by it"] += status != 0
    faults["with a part"] += bool(left)
    is_taken = bool(held(out)) and not writer.replaces
    again = bench.start(name, place / "again" if is_taken else out)
    said = said_of(again)
    named = [path for path in left if place in path.parents and not (is_taken and out in path.parents)]
    if unnamed := [path for path in named if path.exists() and str(path) not in said]:
        faults["unnamed"] += 1
        print(f"{name} SIG{kind} unnamed {unnamed}: {said}")
    if again.returncode:
        print(f"{name} after SIG{kind} ended with {again.returncode}: {said}")
    faults["status"] += again.returncode != 0
    return faults


def is_kept(name: str, left: list[Path], said: str) -> bool:
    """Return whether a failed run may keep these parts: it names each, and the next run continues them."""
    return not left or (WRITERS[name].resumes and all(str(path) in said for path in left))


def paired(bench: Bench, name: str, place: Path, rng: random.Random, namespace: tuple[str, ...]) -> Counter[str]:
    """Run two at once: one must succeed, the other must report that the name is taken, unless both replace it."""
    out, faults, writer = place / "out", Counter[str](), WRITERS[name]
    bench.prepare(name, out)
    first = bench.start(name, out, *namespace)
    time.sleep(rng.uniform(0, 0.3) * bench.seconds[name])
    second = bench.start(name, out, *namespace)
    said = [said_of(first), said_of(second)]
    ends = sorted([first.returncode, second.returncode])
    if not writer.replaces:
        faults["overwritten"] += ends.count(0) > 1 or (ends.count(0) == 0 and not writer.joins)
    faults["half"] += not (bench.is_whole(name, out) or (writer.joins and bench.is_absent(name, out)))
    faults["left"] += not is_kept(name, bench.left(place), "".join(said))
    if any(end not in (0, 2) for end in ends) or "Traceback" in "".join(said):
        faults["status"] += 1
        print(f"{name} pair ended with {ends}: {said}")
    faults["both refused"] += ends.count(0) == 0
    return faults


def appeared(bench: Bench, name: str, place: Path, rng: random.Random) -> Counter[str]:
    """Create another file or folder at the target."""
    out, faults, writer = place / "out", Counter[str](), WRITERS[name]
    process = bench.start(name, out)
    time.sleep(rng.uniform(0.02, 1.0) * bench.seconds[name])
    target = out / max(bench.whole[name]) if writer.joins else out
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
    said = said_of(process)
    status = process.returncode
    faults["met"] += bool(kind) and status == 2
    into = kind == "empty folder" and writer.into_empty  # it may be written into, if it was there when the run began
    if kind == "file":
        faults["overwritten"] += held(target) != {"": OTHERS}
    elif kind == "folder":
        faults["overwritten"] += held(target) != {"z": OTHERS}
    elif kind and not into:
        faults["overwritten"] += not target.is_dir() or any(target.iterdir())
    if not kind or (into and status == 0):
        faults["half"] += not bench.is_whole(name, out)
    if status != (2 if kind and not (into and status == 0) else 0):
        faults["status"] += 1
        print(f"{name} with a new {kind or 'nothing'} ended with {status}: {said}")
    faults["left"] += not is_kept(name, bench.left(place), said)
    return faults


@contextmanager
def mounted(place: Path, options: str) -> Iterator[None]:
    """Mount a file system in memory."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def filled(bench: Bench, name: str, place: Path, rng: random.Random) -> Counter[str]:
    """Write to a file system of random size, in half of the runs a tenth of the output at most."""
    faults, writer = Counter[str](), WRITERS[name]
    size = bench.sizes[name]
    room = max(8192, int(rng.uniform(0, 1.2) * size * rng.choice((0.1, 1))))
    with mounted(place, f"size={room}"):
        out = place / "out"
        try:
            bench.prepare(name, out)
        except OSError:  # no room for the old files
            shutil.rmtree(out, ignore_errors=True)
            faults["no run"] += 1
            return faults
        process = bench.start(name, out)
        said = said_of(process)
        status = process.returncode
        faults["ended by it"] += status != 0
        is_named = str(out) in said and re.search("No space left|free bytes, but", said)
        if status not in (0, 1) or "Traceback" in said or (status and not is_named):
            faults["status"] += 1
            print(f"{name} in {room} bytes ended with {status}: {said}")
        faults["half"] += not (bench.is_whole(name, out) or (status != 0 and bench.is_absent(name, out)))
        left = bench.left(place)
        if not is_kept(name, left, said):
            faults["left"] += 1
            print(f"{name} in {room} bytes left {left}")
        elif status and not writer.replaces and (entries := [*place.iterdir()]) and not writer.joins:
            print(f"{name} in {room} bytes left {entries}")
            faults["left"] += 1
    return faults


def _links_to(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def link(out: Path) -> None:
        make(out.with_name("linked"))
        out.symlink_to("linked")

    return link


def _with_a_file(folder: Path) -> None:
    folder.mkdir()
    (folder / "z").write_bytes(OTHERS)


def _socket(out: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(out))


PLACES: dict[str, Callable[[Path], object]] = {
    "a file": lambda out: out.write_bytes(OTHERS),
    "a folder": _with_a_file,
    "an empty folder": Path.mkdir,
    "a link to a file": _links_to(lambda path: path.write_bytes(OTHERS)),
    "a link to a folder": _links_to(_with_a_file),
    "a link to an empty folder": _links_to(Path.mkdir),
    "a broken link": lambda out: out.symlink_to("nothing"),
    "a link to itself": lambda out: out.symlink_to("out"),
    "a FIFO": os.mkfifo,
    "a socket": _socket,
    "a device": lambda out: os.mknod(out, 0o600 | stat.S_IFCHR, os.makedev(1, 3)),
}
"""What is at the target, and how it is made."""
FREE = {"a folder": "joins", "an empty folder": "is_folder", "a link to a folder": "joins"}
FREE["a link to an empty folder"] = "is_folder"
"""The folders that a command writes into, if its Writer has this property."""
REPLACED = ("a file", "a link to a file", "a broken link")


def placed(bench: Bench, name: str, place: Path) -> Counter[str]:
    """Write to each target of PLACES, to the inputs, below a file, and to a file system without writing."""
    faults, writer = Counter[str](), WRITERS[name]

    def refused(title: str, out: Path | str, above: Path, *, may_write: bool = False) -> None:
        before = tree(above)
        process = bench.start(name, out)
        said = said_of(process)
        faults["runs"] += 1
        problems = []
        if may_write and process.returncode == 0:
            faults["written"] += 1
            if not bench.is_whole(name, Path(out)):
                expected = bench.whole[name] | ({"z": OTHERS} if (Path(out) / "z").exists() else {})
                if held(Path(out), contents=not writer.is_new) != expected:
                    problems.append("half")
        else:
            if process.returncode not in (1, 2) or "Traceback" in said or (str(out) and str(out) not in said):
                problems.append("status")
            if tree(above) != before:
                problems.append("overwritten")
        if tree(bench.inputs) != bench.stored:
            problems.append("overwritten")
            bench.stored = tree(bench.inputs)
        if not is_kept(name, bench.left(place), said):
            problems.append("left")
        if problems:
            print(f"{name} on {title} ended with {process.returncode} ({', '.join(problems)}): {said}")
        faults.update(problems)

    for title, make in PLACES.items():
        folder = place / title
        folder.mkdir()
        make(folder / "out")
        free = title in FREE and getattr(writer, FREE[title])
        replaced = title in REPLACED and writer.replaces and not writer.is_folder
        refused(title, folder / "out", folder, may_write=free or replaced)
    below = place / "below"
    below.write_bytes(OTHERS)
    refused("a name below a file", below / "out", place)
    refused("a name of 300 letters", place / ("x" * 300), place)
    refused("an empty name", "", place)
    within = {
        "an input": next(word for word in writer.words if word.startswith("{")).format(**bench._words),
        "the segment of an input": bench.log / "orders-0" / f"{0:020}.log",
        "a name in an input": next(word for word in writer.words if word.startswith("{")).format(**bench._words)
        + "/new",
    }
    (place / "way").symlink_to(within["an input"])
    for title, target in {**within, "a link into an input": place / "way" / "new"}.items():
        refused(title, target, place)
    still = place / "still"
    still.mkdir()
    with mounted(still, "ro"):
        refused("a file system without writing", still / "out", place)
    return faults


def namespaces() -> tuple[str, ...]:
    """Return the words before a command that give it process ids from 1 on; empty if the system refuses."""
    try:
        done = subprocess.run([*NAMESPACE, "true"], check=False, capture_output=True)
    except OSError:
        return ()
    return NAMESPACE if done.returncode == 0 else ()


SERIES = ("signals", "pairs", "appears", "full", "places")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=25)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--package", type=Path, default=ROOT)
    parser.add_argument("--writer", choices=[*WRITERS], action="append")
    parser.add_argument("--signal", choices=[*SIGNALS], action="append")
    parser.add_argument("--series", choices=SERIES, action="append")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # children would ignore what a background job ignores
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    rng, total = random.Random(options.seed), Counter[str]()
    names, namespace = options.writer or [*WRITERS], namespaces()
    print(f"process ids of pairs are {'equal' if namespace else 'not equal: unshare is refused'}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.package, names)

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

        wanted = options.series or SERIES
        for name in names:
            for kind in (options.signal or SIGNALS) if "signals" in wanted else ():
                series(
                    f"{name} SIG{kind}",
                    options.times,
                    lambda place, name=name, kind=kind: interrupted(bench, name, kind, place, rng),
                )
        for name in names:
            each = -(-options.pairs // len(names))
            if "pairs" in wanted:
                series(f"{name} pairs", each, lambda place, name=name: paired(bench, name, place, rng, namespace))
            if "appears" in wanted and not WRITERS[name].replaces:
                series(f"{name} appears", each, lambda place, name=name: appeared(bench, name, place, rng))
            if "full" in wanted and os.geteuid() == 0:
                series(f"{name} full", options.times, lambda place, name=name: filled(bench, name, place, rng))
            if "places" in wanted and os.geteuid() == 0:
                series(f"{name} places", 1, lambda place, name=name: placed(bench, name, place))
    return int(any(total[word] for word in FAULTS))


if __name__ == "__main__":
    sys.exit(main())
