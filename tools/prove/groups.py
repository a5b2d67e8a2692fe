"""Compare `kdump groups` with a broker for groups of every type, and transfer its offsets to a new cluster.

    python -m tools.prove.groups [RELEASE] [--folder DIR]

A broker of a release (4.2.2) gets groups of each type with members, manually set offsets, committed, aborted and open
transactions, deleted groups and deleted offsets. Its log dir is copied while it runs. The output of
kafka-consumer-groups.sh, kafka-share-groups.sh and kafka-streams-groups.sh must equal kdump's output for the copy. Then
a new cluster takes the file of ``-o reset-csv``, and its offsets are read back.
"""

import csv
import io
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from tools import arguments
from tools.prove.broker import Broker, jar, logger
from tools.record.fetch_jars import fetch

TOOLS: Final = "4.3.1"
"""The first release whose tools Maven Central has; they also work with brokers of 4.2."""
COMMANDS: Final = {
    "consumer": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "share": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "streams": "org.apache.kafka.tools.streams.StreamsGroupCommand",
}
ASKED: Final = {"offsets": ["--offsets"], "members": ["--members", "--verbose"], "state": ["--state"]}
CLIENT: Final = Path(__file__).with_name("GroupClient.java")
FILLED: Final = {"orders-0": 20, "orders-1": 10, "orders-2": 5, "views-0": 7}
"""Partition -> the number of records that are written first."""
SETTINGS: Final = {
    "offsets.topic.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
HEAP: Final = "256m"
Facts: TypeAlias = set[tuple[str, ...]]
Line: TypeAlias = Mapping[str, Any]


def tool(broker: Broker, kind: str, *words: str) -> str:
    """Run one of COMMANDS; return its output. Raises RuntimeError."""
    level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    command = ["java", f"-Xmx{HEAP}", level, "-cp", f"{fetch(TOOLS)}/*:{logger()}", COMMANDS[kind]]
    done = subprocess.run(
        [*command, "--bootstrap-server", broker.address, *words], check=False, capture_output=True, text=True
    )
    if done.returncode or "Error:" in done.stdout:
        raise RuntimeError(done.stdout + done.stderr[-3000:])
    return done.stdout


def rows(text: str) -> Iterable[dict[str, str]]:
    """Yield the rows of the tables of a tool, by column. Group ids and streams assignments may contain blanks."""
    columns: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith("GROUP "):
            columns = line.split()
        elif not line.strip():
            columns = []
        elif columns:
            split = line.split if columns[-1] == "ASSIGNMENTS" else line.rsplit
            yield dict(zip(columns, (cell.strip() for cell in split(None, len(columns) - 1)), strict=True))


def partitions(assignment: str) -> str:
    """Return the names of partitions in a text such as ``orders:0,1;views:0``."""
    if assignment == "-":
        return ""
    topics = (topic.rpartition(":") for topic in assignment.split(";"))
    return " ".join(sorted(f"{topic}-{number}" for topic, _, numbers in topics for number in numbers.split(",")))


OF_TOOL: Final = {
    ("consumer", "offsets"): (
        *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"),
    ),
    ("consumer", "members"): (
        *("GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "CURRENT-EPOCH"),
        *("CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"),
    ),
    ("consumer", "state"): ("GROUP", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"),
    ("share", "offsets"): ("GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"),
    ("share", "members"): ("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "MEMBER-EPOCH", "ASSIGNMENT"),
    ("share", "state"): ("GROUP", "STATE", "#MEMBERS"),
    ("streams", "offsets"): ("GROUP", "TOPIC", "PARTITION", "OFFSET-LAG"),
    ("streams", "members"): ("GROUP", "TARGET-ASSIGNMENT-EPOCH", "MEMBER", "MEMBER-EPOCH", "CLIENT-ID", "ASSIGNMENTS"),
    ("streams", "state"): ("GROUP", "STATE", "#MEMBERS"),
}
"""The columns of each table whose values are in the files."""


def reported(broker: Broker, kind: str, what: str) -> Facts:
    """Return the facts that a tool prints."""
    found = set()
    for row in rows(tool(broker, kind, "--describe", "--all-groups", *ASKED[what])):
        cells = []
        for name in OF_TOOL[kind, what]:
            cell = row.get(name, "-")
            if name.endswith("ASSIGNMENT"):
                cell = partitions(cell)
            elif name == "ASSIGNMENTS":
                held = dict(part.split(": ", 1) for part in cell.split("; "))
                cell = f"{held.get('ACTIVE', '')} {held.get('STANDBY', '')}"
            cells.append(cell)
        found.add(tuple(cells))
    return found


def kdump(log_dirs: Iterable[Path], form: str) -> str:
    """Return the output of `kdump groups`."""
    command = [sys.executable, "-m", "kdump", "groups", *map(str, log_dirs), "-o", form]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def read(lines: list[Line], kind: str, what: str) -> Facts:
    """Return the same facts from the lines of kdump."""
    types = {"consumer": ("Classic", "Consumer"), "share": ("Share",), "streams": ("Streams",)}[kind]
    groups = {line["groupId"]: line for line in lines if line["kind"] == "group" and line["type"] in types}
    if what == "state":
        facts = (
            (name, *([group["protocol"] or "-"] if kind == "consumer" else []), group["state"], len(group["members"]))
            for name, group in groups.items()
        )
        return {tuple(map(str, fact)) for fact in facts}
    if what == "members":
        return {MEMBER[kind](group, member) for group in groups.values() for member in group["members"]}
    offsets = [line for line in lines if line["kind"] == "offset" and line["pendingProducerId"] is None]
    return {OFFSET[kind](groups[line["groupId"]], line) for line in offsets if line["groupId"] in groups}


def _consumer_offset(group: Line, line: Line) -> tuple[str, ...]:
    name = f"{line['topic']}-{line['partition']}"
    owner = next((one for one in group["members"] if name in one["topicPartitions"]), {})
    held = (owner.get(key, "-") for key in ("memberId", "clientHost", "clientId"))
    place = (line["groupId"], line["topic"], line["partition"])
    return tuple(map(str, (*place, line["offset"], line["logEndOffset"], line["lag"], *held)))


def _consumer_member(group: Line, member: Line) -> tuple[str, ...]:
    names = member["topicPartitions"]
    modern = group["type"] == "Consumer"
    identity = (
        group["groupId"],
        member["memberId"],
        member["instanceId"] or "-",
        member["clientHost"],
        member["clientId"],
    )
    epochs = (member["memberEpoch"], group["assignmentEpoch"]) if modern else ("-", "-")
    target = " ".join(sorted(member["targetTopicPartitions"] or ()))
    return tuple(map(str, (*identity, len(names), epochs[0], " ".join(sorted(names)), epochs[1], target)))


def _share_member(group: Line, member: Line) -> tuple[str, ...]:
    names = member["topicPartitions"]
    identity = (group["groupId"], member["memberId"], member["clientHost"], member["clientId"])
    return tuple(map(str, (*identity, len(names), member["memberEpoch"], " ".join(sorted(names)))))


def _streams_member(group: Line, member: Line) -> tuple[str, ...]:
    tasks = " ".join("; ".join(member["tasks"][name]).replace(", ", ",") for name in ("active", "standby"))
    cells = (group["groupId"], group["assignmentEpoch"], member["memberId"], member["memberEpoch"], member["clientId"])
    return tuple(map(str, (*cells, tasks)))


MEMBER: Final = {"consumer": _consumer_member, "share": _share_member, "streams": _streams_member}
OFFSET: Final = {
    "consumer": _consumer_offset,
    "share": lambda _, line: tuple(str(line[name]) for name in ("groupId", "topic", "partition", "offset", "lag")),
    "streams": lambda _, line: tuple(str(line[name]) for name in ("groupId", "topic", "partition", "lag")),
}


def compare(broker: Broker, copy: list[Path]) -> list[str]:
    """Return the differences between the tools and kdump."""
    lines = [json.loads(line) for line in kdump(copy, "jsonl").splitlines()]
    wrong = []
    for kind, what in OF_TOOL:
        theirs, ours = reported(broker, kind, what), read(lines, kind, what)
        print(f"{kind} groups, {what}: {len(theirs)} rows, {len(theirs ^ ours)} differ", flush=True)
        wrong += [f"{kind} {what}, tool alone: {fact}" for fact in sorted(theirs - ours)]
        wrong += [f"{kind} {what}, kdump alone: {fact}" for fact in sorted(ours - theirs)]
        if not theirs:
            wrong.append(f"{kind} {what}: the tool prints nothing")
    pending = [line["offset"] for line in lines if line["kind"] == "offset" and line["pendingProducerId"] is not None]
    print(f"pending in open transactions: {pending}")
    return wrong if pending == [8] else [*wrong, f"pending offsets are {pending}, and not [8]"]


def reset(folder: Path, release: str, text: str, ends: Mapping[str, int]) -> list[str]:
    """Set the offsets of a new cluster from the file; return the differences when they are read back."""
    file = folder / "offsets.csv"
    file.write_text(text)
    wanted = {(group, f"{topic}-{number}", offset) for group, topic, number, offset in csv.reader(io.StringIO(text))}
    groups = sorted({group for group, _, _ in wanted})
    with Broker(release, folder / "new", SETTINGS, jars=[streams(release)], heap=HEAP) as broker:
        broker.create(list(ends))
        broker.run(CLIENT, "fill", broker.address, *(f"{name}:{end}" for name, end in ends.items()))
        named = [word for group in groups for word in ("--group", group)]
        tool(broker, "consumer", "--reset-offsets", *named, "--from-file", str(file), "--execute")
        held = (line.split("\t") for line in broker.run(CLIENT, "offsets", broker.address, *groups).splitlines())
        found = {(group, name, offset) for group, name, offset, _ in held}
    print(f"reset-csv: {len(wanted)} offsets of {len(groups)} groups, {len(found ^ wanted)} differ when read back")
    return [f"set and read back differ: {fact}" for fact in sorted(found ^ wanted)]


def streams(release: str) -> Path:
    """Return the jar of Kafka Streams."""
    return jar(f"org.apache.kafka:kafka-streams:{release}")


def prove(release: str, folder: Path) -> list[str]:
    with Broker(release, folder / "old", SETTINGS, jars=[streams(release)], heap=HEAP) as broker:
        broker.create(list(FILLED))
        broker.run(CLIENT, "fill", broker.address, *(f"{name}:{count}" for name, count in FILLED.items()))
        broker.run(CLIENT, "commit", broker.address)
        members = broker.client(CLIENT, "members", broker.address, str(folder), piped=True)
        try:
            if members.stdout is None or members.stdout.readline() != b"ready\n":
                raise RuntimeError("the members failed")
            copy = [folder / "copy", folder / "metadata copy"]
            for source, target in zip((broker.logs, broker.folder / "metadata"), copy, strict=True):
                shutil.copytree(source, target)
            wrong = compare(broker, copy)
        finally:
            members.kill()
            members.wait()
    offsets = subprocess.run(
        [sys.executable, "-m", "kdump", "offsets", str(copy[0]), "-o", "jsonl"], check=True, stdout=subprocess.PIPE
    )
    lines = map(json.loads, offsets.stdout.splitlines())
    ends = {name: line["latest"] for line in lines if (name := f"{line['topic']}-{line['partition']}") in FILLED}
    return wrong + reset(folder, release, kdump(copy, "reset-csv"), ends)


def main() -> int:
    parser = arguments.parser(__doc__)
    parser.add_argument("release", nargs="?", default="4.2.2")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        wrong = prove(options.release, options.folder or Path(temporary))
    print("\n".join(wrong) if wrong else "the tools and kdump say the same; the new cluster has the offsets")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
