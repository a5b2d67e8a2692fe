"""Compare a stream with a live broker: a killed and restarted driver writes the same records as a consumer gets.

    python -m tools.prove.stream [--release 4.2.2] [--records 200000] [--seconds 120] [--kills 6]
                                 [--retention no|fail|go-on] [--seed 1] [--keep DIR]

Producers of every codec, and a transactional one that aborts every third transaction, write to a local broker. Its
segments roll by size and time. Topics with either kind of timestamps exist from the beginning, and a new one appears in
the middle. Meanwhile a Spark driver streams the log dir to Parquet, once as read_uncommitted and
once as read_committed (`stream_driver`). It is killed by SIGKILL in the middle of micro-batches, with its JVM and
workers, and started again from its checkpoint. In the end each output must have the records of a consumer with that
isolation level, each once, with its times, key, value and headers.

With `--retention` the broker deletes old segments all the time. `fail` keeps the driver down until records that it
waits for are gone, and the stream must end by saying so (failOnDataLoss). `go-on` sets failOnDataLoss=false. A consumer
reads at the same time. Some records that it saw are not in the output. They must be the ones that the stream reported
as gone, to the offset, or be deleted before the stream first looked at their partition.

The exit status is 1 if an output is wrong. Needs Java, Maven for the jars, and kdump[spark].
"""

import argparse
import base64
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tools import arguments
from tools.prove.broker import Broker
from tools.prove.stream_driver import COLUMNS, ISOLATIONS, RESTARTS, SPARKS_OWN

CLIENT = Path(__file__).with_name("StreamClient.java")
TOPICS = {"live": 4, "stamped": 1}
LATE = {"later": 2}
SETTINGS = {
    "segment.bytes": str(1 << 20),
    "segment.ms": "3000",
    "retention.ms": "-1",
    "message.timestamp.before.max.ms": str(1 << 62),
}
RETAINED = {"retention.bytes": str(200 << 10), "file.delete.delay.ms": "1000", "retention.ms": "-1"}
GONE = re.compile(r"(\w+)-(\d+): offsets? (\d+)(?: to (\d+))? (?:is|are) gone")
GONE_LINE = re.compile(r"\S+: offsets? \d+(?: to \d+)? (?:is|are) gone[^\n]*")
Key = tuple[str, int, int]
Row = tuple[object, ...]


class Driver:
    """The process that streams, in its own process group."""

    def __init__(self, logs: Path, place: Path, options: dict[str, str]) -> None:
        self._command = [sys.executable, "-m", "tools.prove.stream_driver", str(logs), str(place)]
        self._command += [f"{name}={value}" for name, value in options.items()]
        self.place = place
        self.log = place / "driver.txt"
        self.starts = 0
        self.hiccups = 0
        self._said_before = 0
        self._has_begun = False
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.starts += 1
        self._said_before = len(self.said) if self.log.exists() else 0
        (self.place / "ready").unlink(missing_ok=True)
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(self._command, stderr=out, stdout=out, start_new_session=True)

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def ended(self) -> int | None:
        """Return its exit status after its end. A driver that failed because of Spark itself is started again."""
        assert self._process is not None
        status = self._process.poll()
        if (
            status
            and self.hiccups < RESTARTS
            and any(failure in self.said[self._said_before :] for failure in SPARKS_OWN)
        ):
            self.hiccups += 1
            self.start()
            return None
        return status

    def in_batch(self) -> bool:
        """Return whether a micro-batch has been planned and not committed.

        False before each query has planned one, because Spark does not restart from a checkpoint without one. False
        also before one has begun with a partition: a stream cannot miss records of a partition that it does not know
        yet.
        """
        places = [self.place / f"{isolation}.checkpoint" for isolation in ISOLATIONS]
        planned = [latest(place / "offsets") for place in places]
        committed = [latest(place / "commits") for place in places]
        self._has_begun = self._has_begun or all(map(begins, places))
        return self._has_begun and min(planned) >= 0 and planned != committed

    def kill(self) -> None:
        """End it, its JVM and its workers at once."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def latest(folder: Path) -> int:
    """Return the greatest number of a folder of a checkpoint, -1 for none."""
    return max((int(path.name) for path in folder.glob("*") if path.name.isdecimal()), default=-1)


def consumed(path: Path) -> dict[Key, Row]:
    """Return the records of a consumer, by topic, partition and offset."""
    found = {}
    for line in path.read_text().splitlines():
        topic, partition, offset, time_, kind, key, value, headers = line.split("\t")
        pairs = tuple(
            (name, data(text)) for name, _, text in (pair.partition("=") for pair in headers.split(",")) if name
        )
        found[topic, int(partition), int(offset)] = (int(time_), int(kind), data(key), data(value), pairs)
    return found


def data(text: str) -> bytes | None:
    return None if text == "null" else base64.b64decode(text[:-1])


def streamed(place: Path) -> list[tuple[Key, Row]]:
    """Return the rows of an output, in the same form."""
    from pyarrow import dataset

    found = []
    for row in dataset.dataset(place, format="parquet").to_table(columns=list(COLUMNS)).to_pylist():
        headers = tuple((header["key"], header["value"]) for header in row["headers"] or ())
        facts = (row["timestampMs"], row["timestampType"], row["key"], row["value"], headers)
        found.append(((row["topic"], row["partition"], row["offset"]), facts))
    return found


class Verdict(NamedTuple):
    """The differences between an output and the records of a consumer.

    Of the absent records, ``earlier`` were deleted before the stream first read the partition, and the stream reported
    ``told`` as gone; ``missing`` are the others.
    """

    rows: int
    consumed: int
    doubled: int
    strange: int
    different: int
    missing: int
    reported: int
    earlier: int

    @property
    def holds(self) -> bool:
        return not (self.doubled or self.strange or self.different or self.missing)


def begins(checkpoint: Path) -> dict[tuple[str, int], int]:
    """Return the offset at which a stream began with each partition, from its checkpoint."""
    found: dict[tuple[str, int], int] = {}
    for path in sorted(checkpoint.glob("offsets/[0-9]*"), key=lambda path: int(path.name)):
        for folder, mark in json.loads(path.read_text().splitlines()[2]).items():
            topic, _, partition = Path(folder).name.rpartition("-")
            found.setdefault((topic, int(partition)), mark["since"])
    return found


def compare(rows: list[tuple[Key, Row]], got: dict[Key, Row], said: str, first: dict[tuple[str, int], int]) -> Verdict:
    counts = Counter(key for key, _ in rows)
    gone = {(topic, int(part), n) for topic, part, a, b in GONE.findall(said) for n in range(int(a), int(b or a) + 1)}
    lacking = got.keys() - counts.keys()
    earlier = {key for key in lacking if key[:2] in first and key[2] < first[key[:2]]}
    return Verdict(
        rows=len(rows),
        consumed=len(got),
        doubled=sum(count - 1 for count in counts.values()),
        strange=len(counts.keys() - got.keys()),
        different=sum(1 for key, facts in rows if key in got and got[key] != facts),
        missing=len(lacking - gone - earlier),
        reported=len(lacking & gone - earlier),
        earlier=len(earlier),
    )


def run_clients(broker: Broker, *arguments: list[str]) -> None:
    for each in [broker.client(CLIENT, *words) for words in arguments]:
        if each.wait():
            raise RuntimeError("a client failed")


def create(broker: Broker, topics: dict[str, int], settings: dict[str, str]) -> None:
    kinds = {"stamped": {"message.timestamp.type": "LogAppendTime"}}
    words = [
        [
            "create",
            broker.address,
            name,
            str(count),
            *(f"{k}={v}" for k, v in {**settings, **kinds.get(name, {})}.items()),
        ]
        for name, count in topics.items()
    ]
    run_clients(broker, *words)


def shown(topics: dict[str, int]) -> list[str]:
    return [f"{name}={count}" for name, count in topics.items()]


def start_consumers(broker: Broker, place: Path, topics: dict[str, int]) -> list["subprocess.Popen[bytes]"]:
    """Let a consumer of each isolation level read from the beginning until PLACE/written exists."""
    return [
        broker.client(
            CLIENT,
            "consume",
            broker.address,
            level,
            str(place / f"{level}.txt"),
            str(place / "written"),
            *shown(topics),
        )
        for level in ISOLATIONS
    ]


def finish(clients: list["subprocess.Popen[bytes]"]) -> None:
    for each in clients:
        if each.wait():
            raise RuntimeError("a client failed")


def strike(driver: Driver, rng: random.Random, pause: float) -> bool:
    """Kill the driver in the middle of a micro-batch and start it again after a pause; return whether it was killed."""
    while not (driver.place / "ready").exists() and driver.ended() is None:
        time.sleep(0.1)
    time.sleep(rng.uniform(0, 3))
    while driver.ended() is None:
        if driver.in_batch():
            time.sleep(rng.uniform(0, 0.4))
            if driver.in_batch():
                driver.kill()
                time.sleep(pause)
                driver.start()
                return True
        time.sleep(0.005)
    return False


def write(broker: Broker, driver: Driver, options: argparse.Namespace, rng: random.Random) -> int:
    """Write all records in two halves, and kill the driver meanwhile; return the number of kills.

    The late topic comes with the second half.
    """
    retained = options.retention != "no"
    half = [str(options.records // 2 + 1), str(options.seconds // 2)]
    struck = 0
    for number, topics in enumerate((TOPICS, {**TOPICS, **LATE})):
        enough = driver.place / f"enough{number}"
        if number and not retained:
            create(broker, LATE, SETTINGS)
        writer = broker.client(CLIENT, "write", broker.address, *half, str(enough), *shown(topics))
        for _ in range((options.kills + 1 - number) // 2):
            struck += strike(driver, rng, pause=options.seconds / 8 if retained else 0)
        enough.touch()
        while writer.poll() is None:
            time.sleep(0.2)
            driver.ended()
        finish([writer])
    return struck


def proof(place: Path, options: argparse.Namespace) -> bool:
    began = time.monotonic()
    retained = options.retention != "no"
    frequent = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500"} if retained else {}
    topics = {**TOPICS, **LATE}
    source = {
        "topic": ",".join(topics),
        "maxRecordsPerTrigger": str(max(1000, options.records // 40)),
        "failOnDataLoss": str(options.retention != "go-on").lower(),
    }
    with ExitStack() as at_the_end:
        broker = at_the_end.enter_context(Broker(options.release, place / "broker", frequent))
        create(broker, topics if retained else TOPICS, {**SETTINGS, **(RETAINED if retained else {})})
        consumers = start_consumers(broker, place, topics) if retained else []
        driver = Driver(broker.logs, place, source)
        at_the_end.callback(lambda: driver.kill() if driver.ended() is None else None)
        driver.start()
        while not (place / "ready").exists() and driver.ended() is None:
            time.sleep(0.1)
        struck = write(broker, driver, options, random.Random(options.seed))
        (place / "written").touch()
        finish(consumers or start_consumers(broker, place, topics))
        (place / "stop").touch()
        while (status := driver.ended()) is None:
            time.sleep(0.5)
        segments = sum(1 for path in broker.logs.glob("*-*/*.log") if path.parent.name.rpartition("-")[0] in topics)
    print(f"broker {options.release}, {segments} segments in the end, {time.monotonic() - began:.0f} s")
    print(f"driver: {driver.starts} starts, {struck} times killed by SIGKILL in the middle of a micro-batch")
    if options.retention == "fail":
        print("\n".join(dict.fromkeys(GONE_LINE.findall(driver.said))))
        return status != 0 and GONE.search(driver.said) is not None
    if status:
        print(driver.said[-3000:])
        return False
    verdicts = [reported(place, isolation, driver.said) for isolation in ISOLATIONS]
    return all(verdicts)


def reported(place: Path, isolation: str, said: str) -> bool:
    """Print the differences between an output and the records of a consumer; return whether there are none."""
    checkpoint = place / f"{isolation}.checkpoint"
    batches = latest(checkpoint / "commits") + 1
    got = consumed(place / f"{isolation}.txt")
    verdict = compare(streamed(place / f"{isolation}.all"), got, said, begins(checkpoint))
    print(
        f"{isolation}: {batches} micro-batches, {verdict.rows} rows, {verdict.consumed} consumed, "
        f"{verdict.doubled} doubled, {verdict.strange} strange, {verdict.different} different, "
        f"{verdict.missing} missing, {verdict.reported} said to be gone, {verdict.earlier} gone before it began"
    )
    return verdict.holds and verdict.rows > 0


def main() -> int:
    parser = arguments.parser(__doc__, release="4.2.2", records=200_000, seconds=120, kills=6, seed=1)
    parser.add_argument("--retention", choices=("no", "fail", "go-on"), default="no")
    parser.add_argument("--keep", type=Path, help="work in this folder, and leave it")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True)
        return 0 if proof(options.keep, options) else 1
    with tempfile.TemporaryDirectory() as temporary:
        return 0 if proof(Path(temporary), options) else 1


if __name__ == "__main__":
    sys.exit(main())
