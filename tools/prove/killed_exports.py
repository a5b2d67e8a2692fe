"""Kill exports through Spark at random moments, and read the output with DuckDB, pyarrow, pandas and Polars.

    python -m tools.prove.killed_exports [--kills 30] [--kind append ...] [--victim driver|executor ...]
        [--store local|s3|hdfs ...] [--seed 1]

Kinds: `new`, `overwrite` (every other time beside a file of another), `append`, `incremental` and `follow`. The driver
dies by SIGKILL on local[2]: its Python, its Java, or both at once; in turns at any moment after it has locked the
output, when all files are prepared, and while its files are moved after the commit. Executors die on a standalone
cluster with two workers, some in one export. After each kill the output is read: by glob and by the files that its
manifest names. Then the same command runs again, and is killed again or finishes. At the end the output must have every
row and every damaged range once.

`lost`: rows that disappear, or are missing at the end. `doubled`: rows that appear twice. `misleading`: an incomplete
output that looks complete: a manifest that matches neither the old nor the new output, an unreadable file, a part of an
export that no journal names. The exit status is 1 if there is one of these. Needs Java and DuckDB; `s3` and `hdfs`,
used for input and output, need the programs of `tools.prove.stores`.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pandas as pd
import polars as pl
from pyarrow import parquet

from testing import ROOT, forge
from testing.spark_java import java_options
from tools import arguments
from tools.prove import spark_cluster, stores

KINDS = ("new", "overwrite", "append", "incremental", "follow")
ADDING = ("incremental", "follow")
VICTIMS = ("driver", "executor")
STORES = ("local", "s3", "hdfs")
TOPICS, PARTITIONS, DAYS = 4, 2, 2
PER_BATCH = 500
DAY = 86_400_000
DAMAGE = 3
"""The exit status of an export with damage, which each of these exports has."""
LEFT = ("_commit.json", "_parts", "_temporary")
EXECUTOR = b"CoarseGrainedExecutorBackend"
IN_A_ROW = 4
"""The number of kills of one export before it may finish."""
PATIENCE = 300
JUST_BEGINNING = "is locked by an export that is just beginning"

Row = tuple[str, int, int]


class Log:
    """A growing log dir: ``rows`` are its records, ``broken`` the positions of its damaged batches."""

    def __init__(self, lake: stores.Lake, folder: Path, name: str, batches: int) -> None:
        self.folder, self._name, self._lake = folder, name, lake
        self.rows: set[Row] = set()
        self.broken: set[tuple[str, int]] = set()
        self._next: Counter[tuple[str, int]] = Counter()
        self.grow(batches)

    def grow(self, batches: int) -> None:
        """Append to each partition, and to one of them a damaged batch between valid batches."""
        for topic in range(TOPICS):
            for partition in range(PARTITIONS):
                for number in range(batches):
                    is_broken = (topic, partition, number) == (0, 0, 0)  # at the end it might still be written
                    self._append(f"{self._name}{topic}", partition, number, is_broken=is_broken)
        self._lake.push(self.folder)

    def _append(self, topic: str, partition: int, number: int, *, is_broken: bool) -> None:
        path = self.folder / f"{topic}-{partition}" / f"{0:020}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        base = self._next[topic, partition]
        records = [forge.record(b"k", b"value of %d" % (base + at), offset=at) for at in range(PER_BATCH)]
        at = 1_700_000_000_000 + number % DAYS * DAY
        data = bytearray(forge.batch(records, base_offset=base, base_timestamp=at, max_timestamp=at))
        if is_broken:
            data[-1] ^= 1
            shown = self._lake.uri(path).replace("s3a:", "s3:")
            self.broken.add((shown, path.stat().st_size if path.exists() else 0))
        else:
            self.rows |= {(topic, partition, base + one) for one in range(PER_BATCH)}
        self._next[topic, partition] += PER_BATCH
        with path.open("ab") as file:
            file.write(data)


class Seen(NamedTuple):
    """The rows in an output: those of a glob, and those of the files in the manifest (None: no manifest).

    ``strays`` are files of records that are neither in the manifest nor in a journal. ``is_moving``: there is a
    journal.
    """

    rows: list[Row]
    reported: list[Row] | None
    strays: list[str]
    is_moving: bool


class Faults(NamedTuple):
    """The numbers of faults."""

    lost: int = 0
    doubled: int = 0
    misleading: int = 0

    def plus(self, other: "Faults") -> "Faults":
        return Faults(*(one + two for one, two in zip(self, other, strict=True)))


def by_duckdb(out: Path) -> list[Row]:
    """Return the rows of a glob."""
    if not list(out.glob("topic_name=*/date=*/*.parquet")):
        return []
    with duckdb.connect() as lake:
        found = lake.read_parquet(f"{out}/topic_name=*/date=*/*.parquet").select("topic", "partition", '"offset"')
        return sorted(found.fetchall())


def rows_of(path: Path) -> list[Row]:
    table = parquet.ParquetFile(path).read(["topic", "partition", "offset"])
    return list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def look(out: Path) -> Seen:
    """Read an output with four readers. Raises ValueError if they differ or a file cannot be read.

    Processes that outlive the kill may still write files. If files appear or disappear meanwhile, read again.
    """
    while True:
        paths = files_of(out)
        try:
            found = look_once(out, paths)
        except ValueError:
            if files_of(out) == paths:
                raise
        else:
            if files_of(out) == paths:
                return found


def files_of(out: Path) -> list[Path]:
    return sorted(out.glob("topic_name=*/date=*/*.parquet"))


def look_once(out: Path, paths: list[Path]) -> Seen:
    try:
        found = {str(path.relative_to(out)): rows_of(path) for path in paths}
        rows = by_duckdb(out)
    except Exception as reason:  # whatever a reader says of a file that is there under its name
        raise ValueError(f"a file cannot be read: {reason}") from reason
    if rows != sorted(row for part in found.values() for row in part):
        raise ValueError("DuckDB and pyarrow differ")
    if rows:
        scanned = pl.scan_parquet(f"{out}/topic_name=*/date=*/*.parquet").select(pl.len()).collect().item()
        loaded = len(pd.read_parquet(out, partitioning=None, columns=["offset"]))
        if not len(rows) == scanned == loaded:
            raise ValueError(f"DuckDB finds {len(rows)} rows, Polars {scanned}, pandas {loaded}")
    commits = [json.loads(path.read_text()) for path in out.glob("_checkpoint/*.json")]
    journal = out / "_commit.json"
    commits += [json.loads(journal.read_text())] if journal.exists() else []
    moves = {name for commit in commits for name in commit["moves"]}
    named: dict[str, Any] = {}
    if (out / "_manifest.json").exists():
        runs = json.loads((out / "_manifest.json").read_text())["runs"]
        named = {file["file"]: file["rows"] for run in runs for file in run["output"]}
        for name, count in named.items():
            if not (out / name).exists():
                raise ValueError(f"the manifest names {name}, which is not there")
            if count is not None and count != len(found[name]):
                raise ValueError(f"{name} has {len(found[name])} rows, the manifest says {count}")
        reported = sorted(row for name in named for row in found.get(name, []))
        strays = sorted(found.keys() - named.keys() - moves)
        return Seen(rows, reported, strays, bool(commits))
    return Seen(rows, None, sorted(found.keys() - moves), bool(commits))


def judge(seen: Seen, old: set[Row], new: set[Row], *, adds: bool, moves: bool) -> Faults:
    """Return the faults of an output after an export from ``old`` to ``new`` was killed.

    ``adds``: the old rows stay. ``moves``: some steps of the export may be there already.
    """
    found = set(seen.rows)
    misleading = len(found - old - new) + (0 if adds else bool(found & (old - new) and found & (new - old)))
    if moves:
        misleading += len(seen.strays) + len(set(seen.reported or []) - found)
        doubled = len(seen.rows) - len(found) + len(seen.reported or []) - len(set(seen.reported or []))
        return Faults(len(old - found), doubled, misleading)
    whole = [sorted(rows) for rows in (old, new)]
    misleading += seen.reported is not None and seen.reported not in whole
    misleading += bool(seen.rows) and seen.rows not in whole and not seen.is_moving
    return Faults(len(old - found) if adds else 0, len(seen.rows) - len(found), misleading)


class Export:
    """One process that exports, in its own process group."""

    def __init__(self, place: Path, lake: stores.Lake, out: Path, words: list[str]) -> None:
        self._lake, self.log = lake, place / "said.txt"
        self._scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=place))
        command = [sys.executable, "-m", "kdump", "spark-export", *words, "--out", lake.uri(out)]
        env = {
            **os.environ,
            **spark_cluster.LOOPBACK,
            "PYTHONPATH": str(ROOT),
            "SPARK_SUBMIT_OPTS": java_options("off"),
            "SPARK_LOCAL_DIRS": str(self._scratch),  # a killed driver does not delete its copies of jars
        }
        with self.log.open("wb") as said:
            self._process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=said, start_new_session=True)

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def is_done(self) -> bool:
        """Whether it has reported that everything is written."""
        return "rows/s" in self.said or " added in " in self.said

    @property
    def added(self) -> int:
        """The number of records that ``--follow`` has added."""
        return sum(int(count.replace(",", "")) for count in re.findall(r"([\d,]+) records? added:", self.said))

    @property
    def status(self) -> int | None:
        return self._process.poll()

    def holds(self) -> bool:
        """Whether it holds the lock of its output."""
        return f'"pid": {self._process.pid},' in self._lake.text(".out.kdump-lock")

    def until(self, happened: Callable[[], object]) -> bool:
        """Wait for an event; return False if the export has ended before."""
        end = time.monotonic() + PATIENCE
        while not happened():
            if self.status is not None:
                return False
            if time.monotonic() > end:
                raise TimeoutError(self.said)
            time.sleep(0.05 if self._lake.is_store else 0.001)
        return True

    def wait(self) -> int:
        return self._process.wait(PATIENCE)

    def kill(self, victim: str) -> None:
        """Kill the Python of the driver, its Java, or both."""
        if victim == "both":
            os.killpg(self._process.pid, signal.SIGKILL)
        elif victim == "python":
            self._process.kill()
        else:
            for number in children(self._process.pid, b"org.apache.spark.deploy.SparkSubmit"):
                os.kill(number, signal.SIGKILL)
        self.wait()

    def bury(self) -> None:
        """End its remaining processes, and delete their temporary files."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE)
        shutil.rmtree(self._scratch, ignore_errors=True)


def children(parent: int, word: bytes) -> Iterator[int]:
    """Yield the child processes of ``parent`` whose command contains ``word``."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            command = (status.parent / "cmdline").read_bytes()
        except OSError:  # it has ended since
            continue
        if int(fields[1]) == parent and word in command:
            yield int(status.parent.name)


class Trial:
    """One kind of export from an old output to a new one, which can be run repeatedly."""

    def __init__(self, kind: str, place: Path, master: list[str], lake: stores.Lake) -> None:
        self.kind, self.place, self.lake = kind, place, lake
        self._master = [*master, *(word for pair in lake.conf.items() for word in ("--conf", "=".join(pair)))]
        self.adds = kind in ("append", *ADDING)
        self.moves = kind in ADDING
        beside = lake.folder.parent
        self._logs = [Log(lake, beside / f"in{number}", name, 6) for number, name in enumerate(("a", "b"))]
        self.out = lake.folder / "out"
        self._round = 0
        self.theirs: Path | None = None
        self.took = 0.0
        self.exports: list[Export] = []
        self.old: set[Row] = set()
        if kind in ("append", "overwrite"):
            self._run(self._words(self._logs[0], ()))
            lake.pull()
            shutil.copytree(self.out, place / "before")
        self.reset()
        export = self.start()
        export.until(export.holds)
        held = time.monotonic()
        if kind == "follow":
            export.until(lambda: "waiting" in export.said or " added:" in export.said)
            export.bury()
        self.took = time.monotonic() - held if kind == "follow" else self.finish(export) - held
        self.reset()

    @property
    def new(self) -> set[Row]:
        if self.kind == "append":
            return self._logs[0].rows | self._logs[1].rows
        return self._logs[0 if self.moves else 1].rows

    @property
    def broken(self) -> set[tuple[str, int]]:
        if self.kind == "append":
            return self._logs[0].broken | self._logs[1].broken
        return self._logs[0 if self.moves else 1].broken

    def _words(self, log: Log, more: tuple[str, ...]) -> list[str]:
        small = ["--split-bytes", "128k", "--min-partitions", "8", "--columns", "topic,partition,offset,value"]
        return [self.lake.uri(log.folder), *small, *self._master, *more]

    def _run(self, words: list[str]) -> None:
        export = Export(self.place, self.lake, self.out, words)
        self.finish(export)

    def finish(self, export: Export) -> float:
        """Wait for the end of an export; return its time. Raises RuntimeError after a failure.

        If the lock that a killed export was creating is still empty, the export is started again until that counts as
        dead (:data:`kdump.spark.export.hold.SILENCE`).
        """
        end = time.monotonic() + PATIENCE
        while export.wait() == 1 and JUST_BEGINNING in export.said and time.monotonic() < end:
            time.sleep(10)
            export = self.start(to_the_end=True)
        if export.wait() != DAMAGE and not (self.moves and export.status == 0):  # nothing was new
            raise RuntimeError(f"{self.kind}: ended with {export.status}: {export.said}")
        return time.monotonic()

    def reset(self) -> None:
        """Restore the old output. An export that adds continues with a log that has grown."""
        for export in self.exports:
            export.bury()
        self.exports.clear()
        self._round += 1
        if self.moves:
            self.lake.pull()
            self.old = set(look(self.out).rows) if self.out.exists() else set()
            self._logs[0].grow(2)
            return
        shutil.rmtree(self.out.parent, ignore_errors=True)
        self.out.parent.mkdir(parents=True)
        self.theirs = None
        if self.kind != "new":
            shutil.copytree(self.place / "before", self.out)
            self.old = self._logs[0].rows
        if self.kind == "overwrite" and self._round % 2:
            self.theirs = self.out / "topic_name=a0" / "notes.txt"
            self.theirs.write_text("of another")
        self.lake.push(self.lake.folder)

    def start(self, *, to_the_end: bool = False) -> Export:
        """Start the export. ``to_the_end``: a step of ``incremental`` ends ``follow``."""
        more = {"append": ("--mode", "append"), "overwrite": ("--mode", "overwrite"), "new": ()}.get(self.kind)
        if more is None:
            more = ("--follow",) if self.kind == "follow" and not to_the_end else ("--incremental",)
        export = Export(self.place, self.lake, self.out, self._words(self._logs[0 if self.moves else 1], more))
        self.exports.append(export)
        return export

    def is_published_soon(self) -> bool:
        """Return whether an export has prepared its files."""
        hidden = [name for name in self.lake.names() if name.startswith(".out.kdump-") and "/" in name]
        if not self.moves:
            return any(name.endswith("/_manifest.json") for name in hidden)
        if self.lake.is_store:  # a store gets this file first
            return any(name.endswith(".parquet") for name in hidden)
        return any(name.endswith("/_SUCCESS") for name in hidden)

    def is_complete(self) -> bool:
        """Return whether nothing remains to be added: ``follow`` would wait forever."""
        if self.kind != "follow":
            return False
        self.lake.pull()
        return set(look(self.out).rows) == self.new

    def commits(self) -> tuple[str, ...]:
        """Return the names of the existing journals."""
        journals = re.compile(r"out/(_commit\.json|_checkpoint/[^/]+\.json)")
        return tuple(sorted(name for name in self.lake.names() if journals.fullmatch(name)))

    def look(self) -> Faults:
        """Return the faults after a kill."""
        self.lake.pull()
        try:
            found = judge(look(self.out), self.old, self.new, adds=self.adds, moves=self.moves)
        except ValueError as reason:
            print(f"{self.kind}: {reason}")
            found = Faults(misleading=1)
        if self.theirs is not None and (not self.theirs.exists() or self.theirs.read_text() != "of another"):
            print(f"{self.kind}: {self.theirs} is gone")
            found = found.plus(Faults(lost=1))
        return found

    def at_the_end(self, *, is_killed: bool = False) -> Faults:
        """Return the faults at the end of an export: of its process, or, if ``is_killed``, of the run after it."""
        found = self.look()
        seen = look(self.out)
        rows = Counter(seen.rows)
        found = found.plus(Faults(len(self.new - rows.keys()), 0, int(seen.reported != sorted(self.new))))
        damaged = parquet.read_table(self.out / "_damaged", columns=["file", "position"]).to_pylist()
        places = Counter((row["file"], row["position"]) for row in damaged)
        strange = len(places.keys() - self.broken)
        found = found.plus(Faults(len(self.broken - places.keys()), len(damaged) - len(places), strange))
        left = [path.name for path in self.out.parent.iterdir() if ".kdump-" in path.name]
        left += [path.name for path in self.out.rglob("*") if path.name in LEFT or path.name.endswith(".new")]
        if left and not is_killed:
            print(f"{self.kind}: {left} is left")
            found = found.plus(Faults(misleading=len(left)))
        return found


def kill_drivers(trial: Trial, kills: int, rng: random.Random) -> tuple[Faults, Counter[str]]:
    """Kill drivers; return the faults, and the number of kills at each moment."""
    found, met, in_a_row, tries = Faults(), Counter[str](), 0, 0
    while sum(met.values()) < kills:
        export = trial.start()
        export.until(export.holds)
        turn, before, tries = tries % 3, trial.commits(), tries + 1  # an export may end before it is killed
        if turn == 0:
            time.sleep(rng.uniform(0, trial.took))
        elif turn == 1:
            export.until(trial.is_published_soon)
            time.sleep(rng.uniform(0, 0.3))
        else:
            export.until(lambda: trial.commits() != before)  # noqa: B023  it is called at once
            time.sleep(rng.uniform(0, 0.3))
        is_killed = export.status is None
        if is_killed:
            export.kill(rng.choice(("python", "java", "both")))
            met[moment(trial, export)] += 1
            in_a_row += 1
        found = found.plus(trial.look())
        is_done = export.is_done and trial.kind != "follow"
        if is_done or trial.is_complete() or in_a_row >= rng.randint(1, IN_A_ROW):
            if not is_done:
                trial.finish(trial.start(to_the_end=True))
            found = found.plus(trial.at_the_end(is_killed=is_done and is_killed))
            trial.reset()
            in_a_row = 0
    return found, met


def moment(trial: Trial, export: Export) -> str:
    """Return the progress of a killed export."""
    if export.is_done:
        return "at the end"
    names = trial.lake.names()
    if "out/_commit.json" in names or (trial.moves and trial.commits() and trial.is_published_soon()):
        return "when it had committed"
    if trial.is_published_soon():
        return "when all was prepared"
    if any(name.startswith(".out.kdump-") and "/" in name for name in names):
        return "while Spark wrote"
    return "before and after that"


def kill_executors(
    trial: Trial, kills: int, rng: random.Random, cluster: spark_cluster.Cluster
) -> tuple[Faults, Counter[str]]:
    """Kill executors, some of them in one export, which must finish by itself; ``follow`` ends when it has all rows."""
    found, met = Faults(), Counter[str]()
    while sum(met.values()) < kills:
        export = trial.start()
        export.until(export.holds)
        for _ in range(rng.randint(1, 3)):
            time.sleep(rng.uniform(0.2, trial.took * 0.7))
            running = [one for worker in cluster.workers for one in children(worker.pid, EXECUTOR)]
            if export.status is not None or not running:
                break
            os.kill(rng.choice(running), signal.SIGKILL)
            met[moment(trial, export)] += 1
            found = found.plus(trial.look())
        if trial.kind == "follow":
            export.until(lambda: export.added >= len(trial.new - trial.old))  # noqa: B023  it is called at once
            export.bury()
        else:
            trial.finish(export)
        found = found.plus(trial.at_the_end(is_killed=trial.kind == "follow"))
        trial.reset()
    return found, met


@contextmanager
def lake_of(store: str, place: Path) -> Iterator[stores.Lake]:
    """Run a store, and yield the folder in it for the exports."""
    if store == "s3":
        (place / "s3" / "lake").mkdir(parents=True)
        with stores.Gateway(place / "s3") as gateway:
            yield stores.S3Lake(place / "s3" / "lake", gateway)
    elif store == "hdfs":
        with stores.Hdfs(place / "hdfs") as hdfs:
            yield stores.HdfsLake(place / "lake", hdfs)
    else:
        yield stores.Lake(place / "lake")


def prove(kind: str, victim: str, store: str, place: Path, given: argparse.Namespace) -> bool:
    """Kill one kind of export; print the figures; return whether there is no fault."""
    rng = random.Random(f"{given.seed} {kind} {victim}" + (f" {store}" if store != "local" else ""))
    began = time.monotonic()
    place.mkdir()
    with ExitStack() as at_the_end:
        lake = at_the_end.enter_context(lake_of(store, place))
        if victim == "driver":
            trial = Trial(kind, place, ["--master", "local[2]", "--conf", "spark.driver.memory=600m"], lake)
            at_the_end.callback(lambda: [export.bury() for export in trial.exports])
            found, met = kill_drivers(trial, given.kills, rng)
        else:
            cluster = at_the_end.enter_context(spark_cluster.running(place))
            trial = Trial(kind, place, cluster.options, lake)
            at_the_end.callback(lambda: [export.bury() for export in trial.exports])
            found, met = kill_executors(trial, given.kills, rng, cluster)
    reported = ", ".join(f"{count} {what}" for what, count in met.most_common())
    now, took = f"{datetime.now(UTC):%H:%M:%S}", time.monotonic() - began
    print(f"{now} {store}, {kind}, {victim} killed {sum(met.values())} times ({reported}):", end=" ")
    print(f"{found.lost} lost, {found.doubled} doubled, {found.misleading} misleading; {took:.0f} s", flush=True)
    return found == Faults()


def main() -> int:
    """Run the proof for each kind and victim."""
    parser = arguments.parser(__doc__, kills=30, seed=1)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--victim", action="append", choices=VICTIMS)
    parser.add_argument("--store", action="append", choices=STORES)
    given = parser.parse_args()
    held = []
    for store, victim, kind in product(given.store or STORES[:1], given.victim or VICTIMS, given.kind or KINDS):
        with tempfile.TemporaryDirectory(prefix="kdump-killed-") as folder:
            held.append(prove(kind, victim, store, Path(folder) / kind, given))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
