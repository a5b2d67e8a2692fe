"""Compare `kdump check` with real starts: seeded changes to log dirs, and a broker that starts on a copy of each.

    python -m tools.prove.starts [--scenes 100] [--seed 1] [--release 4.3.1] [--kinds swap,metadata]
                                 [--base FOLDER] [--keep FOLDER] [--out FILE] [--fresh] [--seconds 280];
    python -m tools.prove.starts --recorded FILE;
    python -m tools.prove.starts --advice [--kinds dup-topic,zerometa]

For each release a broker with two log dirs (and one with one, and one without a controller) writes records, is killed
and stopped; FOLDER keeps these log dirs for the next run. A scene changes a copy in one or two ways. kdump checks it,
then a broker of the release starts on it, in a process that starts one broker after the other. These facts are
compared: whether it starts, its offline log dirs, each partition's outcome, log start and end, and the records of a
consumer. Prints a line per difference. The exit status is 1 if a fact differs, or if check gave 0 or 4 although the
broker does not start or records are lost. `--out` writes the broker's results to FILE; `--recorded` checks the scenes
of such a file again without starting a broker. With `--fresh` each start has a new process. With `--advice` each case
of golden/verdict.tar.xz is repaired with the commands that check prints, and a broker starts on the result.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, cast

from kdump import cli
from kdump.log_dirs.file_names import LOG
from testing import GOLDEN
from tools import arguments
from tools.fuzz import forked
from tools.prove.broker import CLUSTER, free_ports, logger
from tools.prove.printed_commands import environment, printed
from tools.prove.start_changes import CHANGES, METADATA, Scene
from tools.record.fetch_jars import fetch

RELEASES = ("3.9.2", "4.2.2", "4.3.1", "4.4.0")
CLIENT = Path(__file__).with_name("StartsClient.java")
TOPICS = {"plain": 3, "idem": 2, "dele": 2, "txn": 2, "zst": 2, "comp": 2, "bare": 1}
INTERNAL = {"__consumer_offsets": 2}
NOT_ONE_BROKER = {"jbod-cluster", "other-node"}
CHECK_SECONDS = 120
"""The time limit of `kdump check` of a scene, in seconds."""
UNSERVED = {"no leader", "no such partition"}
PROPERTIES = """process.roles={roles}
node.id={node}
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={listeners}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={dirs}
offsets.topic.num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
log.retention.ms=-1
log.retention.check.interval.ms=3600000
log.cleaner.min.compaction.lag.ms=100000000000
log.cleaner.backoff.ms=500
log.cleaner.dedupe.buffer.size=2097152
log.flush.offset.checkpoint.interval.ms=2000
log.flush.start.offset.checkpoint.interval.ms=2000
replica.high.watermark.checkpoint.interval.ms=2000
metadata.log.max.record.bytes.between.snapshots=3000
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=100
leader.imbalance.check.interval.seconds=3
broker.session.timeout.ms=1500
metric.reporters=
num.network.threads=1
num.io.threads=2
background.threads=2
group.coordinator.threads=1
"""


class Machine:
    """A process that runs brokers of one release; `output` has their log."""

    def __init__(self, release: str, output: Path) -> None:
        self.release, self.output = release, output
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[bytes] | None = None

    def ask(self, *words: str) -> list[list[str]]:
        """Return the lines of the answer to a command. Raises RuntimeError if the process ends."""
        if self._process is None:
            self._begin()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\t".join(words) + "\n")
        process.stdin.flush()
        found: list[list[str]] = []
        for line in process.stdout:
            if line == "done\n":
                return found
            found.append(line.rstrip("\n").split("\t"))
        self.end()
        raise RuntimeError(f"the process of {self.release} ended: {self.output.read_text(errors='replace')[-2000:]}")

    def _begin(self) -> None:
        self._errors = self.output.open("ab")
        classpath = f"{fetch(self.release, server=True)}/*:{logger()}"
        level = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        level += ["-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients=warn"]
        compiled = self.output.parent / "classes" / f"{self.release}-{zlib.crc32(CLIENT.read_bytes())}"
        if not compiled.exists():
            subprocess.run(["javac", "-cp", classpath, "-d", str(compiled), str(CLIENT)], check=True)
        command = ["java", "-Xmx700m", *level, "-cp", f"{compiled}:{classpath}", CLIENT.stem]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )

    def end(self) -> None:
        """End the process, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def log(self, begin: int) -> str:
        """The log of the brokers from position ``begin`` on."""
        with self.output.open("rb") as file:
            file.seek(begin)
            return file.read().decode(errors="replace")


@dataclass
class Base:
    """Log dirs of a stopped broker of a release: `folder` has d1 (and d2), and c of a separate controller."""

    release: str
    kind: str
    state: str
    folder: Path
    records: dict[str, dict[int, str]] = field(default_factory=dict)
    topics: Mapping[str, int] = field(default_factory=lambda: TOPICS)

    @property
    def name(self) -> str:
        return f"{self.release} {self.kind} {self.state}"

    @property
    def partitions(self) -> list[str]:
        return [f"{topic}-{number}" for topic, count in {**self.topics, **INTERNAL}.items() for number in range(count)]

    @property
    def dirs(self) -> list[str]:
        return ["d1"] if self.kind == "one" else ["d1", "d2"]

    @property
    def roles(self) -> str:
        return "broker" if self.kind == "apart" else "broker,controller"

    @property
    def node(self) -> int:
        return 2 if self.kind == "apart" else 1


def settings(base: Base, folder: Path) -> tuple[str, list[Path]]:
    """Write the properties of a base's nodes into a folder: the broker's address, its file, and the controller's."""
    port, controller = free_ports(2)
    broker = f"PLAINTEXT://127.0.0.1:{port}"
    voter = f"CONTROLLER://127.0.0.1:{controller}"
    dirs = ",".join(str(folder / each) for each in base.dirs)
    mine = folder / "server.properties"
    both = broker if base.kind == "apart" else f"{broker},{voter}"
    mine.write_text(
        PROPERTIES.format(roles=base.roles, node=base.node, controller=controller, listeners=both, dirs=dirs)
    )
    if base.kind != "apart":
        return f"127.0.0.1:{port}", [mine]
    other = folder / "controller.properties"
    other.write_text(
        PROPERTIES.format(roles="controller", node=1, controller=controller, listeners=voter, dirs=folder / "c")
    )
    return f"127.0.0.1:{port}", [mine, other]


def copy(source: Path, target: Path) -> None:
    """Copy folders, including holes and times."""
    target.mkdir(parents=True)
    subprocess.run(["cp", "-a", "--sparse=always", f"{source}/.", str(target)], check=True)


def bases(machine: Machine, kind: str, folder: Path, topics: Mapping[str, int] = TOPICS) -> Iterator[Base]:
    """Yield the log dirs of a release and kind, killed and clean; they are written if they are missing.

    ``topics`` has the number of partitions of each topic.
    """
    release = machine.release
    home = folder / f"{release}-{kind}"
    found = [Base(release, kind, state, home / state, topics=topics) for state in ("killed", "clean")]
    counts = ",".join(f"{topic}={count}" for topic, count in topics.items())
    if not (home / "whole").exists():
        shutil.rmtree(home, ignore_errors=True)
        run = home / "run"
        run.mkdir(parents=True)
        made = Base(release, kind, "", run)
        address, files = settings(made, run)
        for file in files:
            format_dirs(release, file)
        segment = "segment.bytes" if release < "4" else "internal.segment.bytes"
        start(machine, files)
        reported(machine.ask("fill", address, segment, counts))
        reported(machine.ask("stop"))
        start(machine, files)
        reported(machine.ask("more", address, counts))
        time.sleep(5)  # the checkpoints of a running broker are written every two seconds
        copy(run, home / "killed")
        reported(machine.ask("stop"))
        copy(run, home / "clean")
        shutil.rmtree(run)
        (home / "whole").touch()
    yield from found


def records_of(machine: Machine, base: Base) -> None:
    """Set the records that a consumer gets of a base; a file beside it stores them."""
    kept = base.folder.with_name(f"{base.folder.name}.json")
    if not base.records and kept.exists():
        base.records = {name: by_offset(had) for name, had in json.loads(kept.read_text()).items()}
    if not base.records:
        with tempfile.TemporaryDirectory(prefix="kdump-start-") as temporary:
            folder = Path(temporary, "untouched")
            copy(base.folder, folder)
            base.records = observe(machine, base, folder, 60).records
        kept.write_text(json.dumps(base.records))


def reported(lines: list[list[str]]) -> None:
    """Raise RuntimeError if an answer is a failure."""
    for line in lines:
        if line[0] in {"failed", "hangs"} or (line[0] == "started" and line[1]):
            raise RuntimeError(" ".join(line))


def start(machine: Machine, files: list[Path]) -> None:
    """Start a base's nodes."""
    reported(machine.ask("start", str(files[0]), "60", *map(str, files[1:])))


def format_dirs(release: str, file: Path) -> None:
    """Format the log dirs in a properties file."""
    classpath = f"{fetch(release, server=True)}/*:{logger()}"
    command = ["java", "-cp", classpath, "kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(file)]
    subprocess.run(command, check=True, capture_output=True)


@dataclass
class Truth:
    """The results of a broker: `logs` has log start and end by folder (DIR/NAME), as loaded."""

    starts: bool
    why: str
    offline: set[str]
    logs: dict[str, tuple[int, int]]
    created: set[str]
    recovered: set[str]
    after: set[str]
    cut: set[str]
    records: dict[str, dict[int, str]]
    fails: dict[str, str]
    new: dict[str, str]


LOADED = re.compile(
    r"Completed load of Log\(dir=(?P<dir>[^,]*), .*? local-log-start-offset (?P<start>\d+) and "
    r"log-end-offset (?P<end>\d+)"
)
LOADED_START = re.compile(r"logStartOffset=(\d+)")
CREATED = re.compile(r"Created log for partition \S+ in (\S+)")
RECOVERING = re.compile(r"partition=(\S+), dir=(\S+?)\] Recovering unflushed segment")
GONE = re.compile(r"Stopping serving logs in dir (\S+)|Failed to load (\S+) during broker startup")


def observe(machine: Machine, base: Base, folder: Path, seconds: float) -> Truth:
    """Start a broker on changed log dirs; return the results."""
    begin = machine.output.stat().st_size if machine.output.exists() else 0
    before, had = contents(folder, base.dirs), folders(folder, base.dirs)
    address, files = settings(base, folder)
    lines = machine.ask("start", str(files[0]), str(int(seconds)), *map(str, files[1:]))
    since = time.monotonic()
    up = next(line for line in lines if line[0] == "started")
    now = contents(folder, base.dirs)
    there = {str(Path(name).parent) for name in now} | folders(folder, base.dirs)
    answers: list[list[str]] = []
    if up[1:] == [""] and not any(line[0] == "exit" for line in lines):
        wanted = folder / "partitions.txt"
        wanted.write_text("\n".join(base.partitions) + "\n")
        answers = machine.ask("read", address, str(wanted))
        if any(line[4:5] == ["no leader"] for line in answers) and not GONE.search(machine.log(begin)):
            time.sleep(20)  # the broker first reports the log dirs of its partitions to the controller
            answers = machine.ask("read", address, str(wanted))
        # the first round of the cleaner, and of the handler of log dirs that fail
        time.sleep(max(0, since + 1.5 - time.monotonic()))
        lines += machine.ask("exits")
    ends = [line[1] for line in lines if line[0] == "exit"]
    starts = up[1:] == [""] and not ends
    text = machine.log(begin)
    if starts and GONE.search(text):
        time.sleep(8)  # the controller hears of the log dir, and has the broker create logs in another one
        text = machine.log(begin)
    stopped = machine.ask("stop") if starts else []
    if not starts or any(line[0] == "hangs" for line in stopped):
        machine.end()  # as the broker would have ended its process
    if starts:
        answers += stopped
        ends += [line[1] for line in stopped if line[0] == "exit"]
    logs = {}
    for each in LOADED.finditer(text):
        first = LOADED_START.search(each[0])
        name = str(Path(each["dir"]).relative_to(folder)) if each["dir"].startswith(str(folder)) else each["dir"]
        if name.endswith("-stray") and name not in had:  # the line of a log that was renamed meanwhile
            name = name.rpartition(".")[0]
        logs[name] = (int(first[1]) if first else int(each["start"]), int(each["end"]))
    return Truth(
        starts,
        " / ".join([*up[1:], *dict.fromkeys(ends)]) if not starts else "",
        {Path(found).name for each in GONE.finditer(text) for found in each.groups() if found},
        logs,
        {str(Path(each[1]).relative_to(folder)) for each in CREATED.finditer(text)},
        {str(Path(each[2], each[1]).relative_to(folder)) for each in RECOVERING.finditer(text)},
        there,
        {
            str(Path(name).parent)
            for name, data in before.items()
            if name.endswith(f".{LOG}") and not still_there(name, data, now) and not is_below(name, before, logs)
        },
        {
            line[1]: dict(_record(each) for each in line[5].split(",") if each)
            for line in answers
            if line[0] == "records" and len(line) > 5
        },
        {line[1]: line[4] for line in answers if line[0] == "records" and len(line) > 4 and line[4]},
        {line[1]: line[3] if line[3] != "read" else "" for line in answers if line[0] == "new"},
    )


def _record(text: str) -> tuple[int, str]:
    number, _, value = text.partition("=")
    return int(number), value


def contents(folder: Path, dirs: list[str]) -> dict[str, bytes]:
    """Return the files of partition folders."""
    found = {}
    for one in dirs:
        for path in (folder / one).glob("*/*") if (folder / one).is_dir() else ():
            if path.is_file() and path.suffix == f".{LOG}":
                found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def folders(folder: Path, dirs: list[str]) -> set[str]:
    return {
        str(path.relative_to(folder))
        for one in dirs
        if (folder / one).is_dir()
        for path in (folder / one).iterdir()
        if path.is_dir()
    }


def still_there(name: str, data: bytes, now: dict[str, bytes]) -> bool:
    """Return whether a log's bytes are in a file of its name, even in a renamed folder or split into two files."""
    mine = [other for key, other in sorted(now.items()) if same_partition(key, name)]
    return not data or any(each.startswith(data) for each in mine) or data in b"".join(mine)


def is_below(name: str, before: Iterable[str], logs: Mapping[str, tuple[int, int]]) -> bool:
    """Whether a segment lies below the log start offset: the cleaner removes it soon after the start."""
    folder, log = str(Path(name).parent), Path(name).stem
    begins = logs.get(folder, (0, 0))[0]
    bases = (Path(each).stem for each in before if str(Path(each).parent) == folder)
    return log.isdecimal() and any(int(log) < int(each) <= begins for each in bases if each.isdecimal())


def same_partition(one: str, other: str) -> bool:
    """Return whether two files (DIR/FOLDER/NAME) are in folders of one partition of a log dir, even if renamed."""
    (its_dir, its_folder, _), (log_dir, folder, _) = one.split("/"), other.split("/")
    return its_dir == log_dir and its_folder.split(".")[0].startswith(folder.split(".")[0][:200])


def check(base: Base, folder: Path) -> tuple[int, list[dict[str, object]], str]:
    """Return the result of `kdump check`: exit status, lines, standard error."""
    words = ["check", *base.dirs, "-o", "jsonl", "--release", base.release]
    words += ["--config", f"node.id={base.node}", "--config", f"process.roles={base.roles}"]
    done = forked.run(words, folder, seconds=CHECK_SECONDS)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    return done.status, lines, done.stderr.decode(errors="replace")


def load_kdump(folder: Path) -> None:
    """Run kdump once in this process, so that its children have its modules."""
    kept, sys.argv = (sys.argv, os.dup(1)), ["kdump", "check", str(folder), "-o", "jsonl"]
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        cli.main()
        os.dup2(kept[1], 1)
    sys.argv = kept[0]


def differences(base: Base, truth: Truth, status: int, rows: list[dict[str, object]], err: str) -> Iterator[str]:
    """Yield the predictions of kdump that did not come true."""
    start = next((row for row in rows if row.get("kind") == "start"), None)
    if "Traceback" in err or start is None:
        yield f"SILENT traceback or no start line: {err[-300:]}"
        return
    if start["starts"] is not None and start["starts"] != truth.starts:
        yield f"starts: kdump {start['starts']}, broker {truth.starts} ({truth.why or start['fatal']})"
    grave = status in {0, 4}
    if not truth.starts:
        if grave:
            yield f"SILENT {status}: the broker does not start: {truth.why}"
        return
    lost, fails, unread = losses(base, truth)
    if grave and (lost or fails or unread or truth.offline):
        yield f"SILENT {status}: lost {lost}, fails {fails}, new records {unread}, offline {truth.offline}"
    if status in {1, 3} and not (lost or fails or unread or truth.offline):
        why = [
            f"{row['code']} {row['file']}: {row['text']}"
            for row in rows
            if row.get("kind") == "finding" and (row.get("level") == "log" or row.get("fatal"))
        ]
        yield f"ALARM {status}: {' / '.join(map(str, why[:2]))[:300]}"
    if start["starts"] is False:
        return
    if set(map(str, start["offlineLogDirs"])) != truth.offline:  # type: ignore[call-overload]  # of JSON
        yield f"offline: kdump {start['offlineLogDirs']}, broker {truth.offline}"
    for row in rows:
        if row.get("kind") == "startLog" and (said := log_difference(row, truth)):
            yield said


def losses(base: Base, truth: Truth) -> tuple[dict[str, int], dict[str, str], dict[str, str]]:
    """Return by partition: lost records of a consumer, why it fails, and why it gets no new record."""
    lost = {
        name: len(gone)
        for name, had in base.records.items()
        if (gone := [at for at, value in had.items() if truth.records.get(name, {}).get(at) != value])
    }
    fails = {name: why for name, why in truth.fails.items() if name not in UNSERVED and base.records.get(name)}
    return lost, fails, {name: why for name, why in truth.new.items() if why}


def log_difference(row: dict[str, object], truth: Truth) -> str:
    """Return the difference in the outcome of a log."""
    outcome, name = row["outcome"], f"{row['topic']}-{row['partition']}"
    if outcome is None or name == METADATA:
        return ""
    if row["folder"] is None:
        made = {each for each in truth.created if Path(each).name == name}
        causes = cast("list[dict[str, object]]", row.get("causes", []))
        if outcome == "created-empty" and any(each["code"] == "log-dir-offline" for each in causes):
            return ""  # two threads of the broker decide it: see kdump.broker_start.start
        wrong = (outcome == "created-empty") != bool(made)
        return f"{name} without a folder: kdump {outcome}, broker created {sorted(made)}" if wrong else ""
    path = f"{row['logDir']}/{row['folder']}"
    found = truth.logs.get(path)
    if found is None and outcome == "stray":  # the line of a -future folder that became stray has the name without it
        found = truth.logs.get(f"{row['logDir']}/{name}")
    if outcome in {"offline", "ignored"}:
        return ""
    if found is None:
        return f"{path}: kdump {outcome}, not loaded by the broker"
    is_replaced = any(each.startswith(f"{path}.") and each.endswith("-delete") for each in truth.after)  # by a -future
    is_renamed = path not in truth.after and not is_replaced
    is_stray = any(each.startswith(f"{path}.") and each.endswith("-stray") for each in truth.after)
    is_renamed |= is_stray and is_promoted(path, truth)
    strays = is_renamed or path in truth.created or str(row["folder"]).endswith("-stray")
    word = (
        "stray" if strays
        else "deleted" if str(row["folder"]).endswith("-delete")
        else "future" if str(row["folder"]).endswith("-future")
        else "truncated" if path in truth.cut
        else "recovered" if path in truth.recovered
        else "loaded"
    )  # fmt: skip
    offsets = (row["logStartOffset"], row["logEndOffset"])
    if word == "stray" and outcome in {"deleted", "future"}:
        word = str(outcome)
    if word != outcome or (outcome != "deleted" and None not in offsets and offsets != found):
        return f"{path}: kdump {outcome} {offsets}, broker {word} {found}"
    return ""


def is_promoted(path: str, truth: Truth) -> bool:
    """Return whether a -future folder took the name of a folder: it was loaded, and is gone after the start."""
    futures = {each for each in truth.logs if each.startswith(f"{path}.") and each.endswith("-future")}
    return bool(futures - truth.after)


def scenes(found: list[Base], seed: int, count: int, kinds: list[str]) -> Iterator[tuple[int, Base, list[str]]]:
    """Yield a number, a base and one or two kinds of changes, for each scene."""
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        base = rng.choices(found, [1 if each.kind == "two" else 0.3 for each in found])[0]
        yield number, base, [rng.choice(kinds), *([rng.choice(kinds)] if rng.random() < 0.2 else [])]


def main() -> int:
    """Run the scenes."""
    parser = arguments.parser(__doc__, scenes=100, seed=1, seconds=280, first=0, kinds="", release="", kind="")
    parser.add_argument("--base", type=Path, default=Path(tempfile.gettempdir(), "kdump-starts"))
    parser.add_argument("--keep", type=Path, help="folder that keeps the log dirs of scenes that differ")
    parser.add_argument("--out", type=Path, help="file that a line of JSON is added to for each scene")
    parser.add_argument("--recorded", type=Path, help="file of --out: check these scenes again, start no broker")
    parser.add_argument("--fresh", action="store_true", help="a process for each start")
    parser.add_argument("--advice", action="store_true", help="follow what check says of golden/verdict.tar.xz")
    options = parser.parse_args()
    if options.advice:
        return follow(options.base, options.kinds.split(",") if options.kinds else [])
    if options.recorded:
        return recorded(options.recorded, options.base)
    until = time.monotonic() + options.seconds
    releases = options.release.split(",") if options.release else RELEASES
    counts: Counter[str] = Counter()
    options.base.mkdir(parents=True, exist_ok=True)
    machines = {release: Machine(release, options.base / f"{release}.txt") for release in releases}
    try:
        found = [
            each
            for machine in machines.values()
            for kind in (options.kind.split(",") if options.kind else ("two", "one", "apart"))
            for each in bases(machine, kind, options.base)
        ]
        kinds = options.kinds.split(",") if options.kinds else sorted(CHANGES)
        load_kdump(found[0].folder / "d1")
        for number, base, names in scenes(found, options.seed, options.scenes, kinds):
            if number < options.first:
                continue
            if time.monotonic() > until:
                print(f"stopped before scene {number}: go on with --first {number}")
                break
            one(machines[base.release], base, (options.seed, number, names), options, counts)
            if options.fresh:
                machines[base.release].end()
    finally:
        for machine in machines.values():
            machine.end()
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    return (
        1 if any(what != "scenes" and count for what, count in counts.items() if what in {"silent", "different"}) else 0
    )


def follow(home: Path, wanted: list[str]) -> int:
    """Run the commands that check prints on cases of golden/verdict.tar.xz; start a broker on each result.

    ``wanted`` are the names of the cases; empty for all.
    """
    home.mkdir(parents=True, exist_ok=True)
    machine, wrong = Machine(RELEASES[-1], home / "advice.txt"), 0
    with tempfile.TemporaryDirectory(prefix="kdump-advice-") as temporary:
        with tarfile.open(GOLDEN / "verdict.tar.xz") as archive:
            archive.extractall(temporary, filter="tar")
        try:
            for folder in sorted(Path(temporary, "verdict").iterdir()):
                is_wanted = folder.name in wanted if wanted else folder.name not in NOT_ONE_BROKER
                if not is_wanted or not (folder / "d1" / "meta.properties").exists():
                    continue  # a part of a log dir: no broker starts there
                base = Base(machine.release, "two" if (folder / "d2").exists() else "one", "", folder)
                ran, status = mended(folder, base.dirs)
                truth = observe(machine, base, folder, 40)
                wrong += not truth.starts
                said = f"{ran} commands, then exit {status}, starts {truth.starts} {truth.why[:300]}"
                print(f"{folder.name}: {said}", flush=True)
        finally:
            machine.end()
    return 1 if wrong else 0


def recorded(file: Path, home: Path) -> int:
    """Compare kdump's results on the scenes of a file with the recorded results of the brokers."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    known: dict[str, Base] = {}
    counts: Counter[str] = Counter()
    load_kdump(next(home.glob("*-two/clean/d1")))
    for line in lines:
        release, kind, state = line["base"].split()
        base = known.setdefault(line["base"], Base(release, kind, state, home / f"{release}-{kind}" / state))
        base.records = {name: by_offset(had) for name, had in line["had"].items()} or base.records
        truth = line["truth"]
        truth["records"] = {name: by_offset(had) for name, had in truth["records"].items()}
        truth["logs"] = {name: tuple(had) for name, had in truth["logs"].items()}
        truth |= {name: set(truth[name]) for name in ("offline", "created", "recovered", "after", "cut")}
        with tempfile.TemporaryDirectory(prefix="kdump-start-") as temporary:
            folder = Path(temporary, "scene")
            copy(base.folder, folder)
            scene = Scene([folder / each for each in base.dirs], generator(line["seed"], line["number"]))
            done = [CHANGES[name](scene) for name in line["kinds"]]
            show(base, line["number"], line["kinds"], done, check(base, folder), Truth(**truth), counts)
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    return 1 if counts["silent"] or counts["different"] else 0


def by_offset(had: dict[str, str]) -> dict[int, str]:
    """Return records by offset, from JSON."""
    return {int(offset): value for offset, value in had.items()}


def generator(seed: int, number: int) -> random.Random:
    """Return the generator of a scene's choices."""
    return random.Random(f"{seed} {number} {zlib.crc32(b'change')}")


def show(
    base: Base,
    number: int,
    names: list[str],
    done: Sequence[str | None],
    said: tuple[int, list[dict[str, object]], str],
    truth: Truth,
    counts: Counter[str],
) -> list[str]:
    """Print and count the differences between kdump and the broker in a scene; return their number."""
    counts["scenes"] += 1
    counts["starts" if truth.starts else "does not start"] += 1
    wrong = list(differences(base, truth, *said))
    counts["silent"] += any(each.startswith("SILENT") for each in wrong)
    counts["alarms"] += any(each.startswith("ALARM") for each in wrong)
    counts["different"] += any(not each.startswith(("ALARM", "SILENT")) for each in wrong)
    counts["equal"] += not wrong
    for each in wrong:
        print(
            f"{number} {base.name} {'+'.join(names)}: {'; '.join(map(str, done))}\n    exit {said[0]}, {each}",
            flush=True,
        )
    return wrong


def mended(folder: Path, dirs: list[str]) -> tuple[int, int]:
    """Run the commands below the verdict; return their number, and the result of check afterwards."""
    kdump = [sys.executable, "-m", "kdump", "check", *dirs]
    commands = printed(folder, dirs)
    for command in commands:
        subprocess.run(["bash", "-c", command], cwd=folder, env=environment(), check=True)
    return len(commands), subprocess.run(kdump, cwd=folder, capture_output=True, check=False).returncode


def one(
    machine: Machine,
    base: Base,
    which: tuple[int, int, list[str]],
    options: argparse.Namespace,
    counts: Counter[str],
) -> None:
    """Run one scene; print the differences."""
    (seed, number, names), keep = which, options.keep
    with tempfile.TemporaryDirectory(prefix="kdump-start-") as temporary:
        records_of(machine, base)
        folder = Path(temporary, "scene")
        copy(base.folder, folder)
        scene = Scene([folder / each for each in base.dirs], generator(seed, number))
        try:
            done = [CHANGES[name](scene) for name in names]
        except (OSError, IndexError, ValueError, KeyError) as reason:
            done = [None]
            print(f"{number} {names}: cannot be made: {reason!r}")
        if None in done:
            counts["not applicable"] += 1
            return
        if keep is not None:
            shutil.rmtree(keep / f"{seed}-{number}", ignore_errors=True)
            copy(folder, keep / f"{seed}-{number}")
        said = check(base, folder)
        truth = observe(machine, base, folder, 25)
        wrong = show(base, number, names, done, said, truth, counts)
        if options.out is not None:
            line = {"seed": seed, "number": number, "base": base.name, "kinds": names, "done": done, "status": said[0]}
            line |= {"truth": asdict(truth), "wrong": wrong, "had": base.records}
            with options.out.open("a") as file:
                print(json.dumps(line, default=sorted), file=file)
        if keep is not None and not wrong:
            shutil.rmtree(keep / f"{seed}-{number}")


if __name__ == "__main__":
    sys.exit(main())
