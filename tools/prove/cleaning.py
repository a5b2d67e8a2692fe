"""Compare the predictions of `kdump compaction` and `kdump retention` with a broker that is started afterwards.

    python -m tools.prove.cleaning [RELEASE] [--seed N] [--keep DIR]

A broker (4.2.2) without a cleaner gets topics with repeated keys, tombstones, and keyless records from before
compaction. Others have committed, aborted and open transactions, codecs, logs that are not due, or too many keys for
the cleaner's map. It is stopped, and kdump predicts the end of the next cleaning and the offsets that it removes. Then
the broker runs with a cleaner that begins at once. There are three rounds, with more records before each: the later
ones remove tombstones and markers. The same follows for retention: the segments that a check deletes, the reasons, and
the times. The exit status is 1 if a single offset or segment differs. Needs Java, and Maven for the jars.
"""

import json
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from kdump.formats import checkpoints
from kdump.log_dirs.local import LocalFile
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync
from testing.processes import kdump
from tools import arguments
from tools.prove.broker import Broker

CLIENT = Path(__file__).with_name("CleaningClient.java")
CHECKPOINT = "cleaner-offset-checkpoint"
HOUR, DAY = 3_600_000, 86_400_000
BUFFER = (1 << 20) + 24
"""About the smallest log.cleaner.dedupe.buffer.size that a broker accepts."""
MAP_ENTRIES = BUFFER // 24 * 9 // 10
WITHOUT_CLEANER = {"log.cleaner.enable": "false", "log.retention.check.interval.ms": str(HOUR)}
WITH_CLEANER = {
    "log.cleaner.enable": "true",
    "log.cleaner.threads": "1",
    "log.cleaner.dedupe.buffer.size": str(BUFFER),
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "500",
}
TALKS = "org.apache.kafka.storage.internals.log.UnifiedLog"
"""The logger of deleted segments and their reasons."""
WITH_RETENTION = {"log.retention.check.interval.ms": "1000", "log.initial.task.delay.ms": "500"}
QUIET = 4
"""The number of seconds in which the broker must do nothing else than predicted."""
ROUNDS = 3
REASONS = {"log start offset": "logStart", "retention size": "size", "retention time": "time"}
"""The reason that a broker logs for a deletion -> the reason that kdump prints."""
SMALL = "internal.segment.bytes=2000"
COMPACT = ("cleanup.policy=compact", SMALL, "min.cleanable.dirty.ratio=0.01", f"delete.retention.ms={DAY}")
COMPACTED = {
    "keys": COMPACT,
    "tombstones-soon": (*COMPACT, "delete.retention.ms=1"),
    "tombstones-later": COMPACT,
    "ratio-high": (*COMPACT, "min.cleanable.dirty.ratio=0.99"),
    "ratio-half": (*COMPACT, "min.cleanable.dirty.ratio=0.5"),
    "lag-min": (*COMPACT, f"min.compaction.lag.ms={HOUR}"),
    "lag-max": (*COMPACT, "min.cleanable.dirty.ratio=1.0", "max.compaction.lag.ms=1"),
    "zstd": (*COMPACT, "compression.type=zstd"),
    "gzip": (*COMPACT, "compression.type=gzip", "delete.retention.ms=1"),
    "both-policies": (*COMPACT, "cleanup.policy=compact,delete", "retention.ms=-1"),
    "keyless": (*COMPACT, "cleanup.policy=delete", "retention.ms=-1"),
    "transactions": (*COMPACT, "delete.retention.ms=1"),
    "transactions-large": (*COMPACT, "internal.segment.bytes=6000"),
    "open": COMPACT,
    "map-full": (*COMPACT, "internal.segment.bytes=300000", "min.cleanable.dirty.ratio=0.6"),
}
"""The topics and their configs. Of two values the last counts."""
RETENTION = ("cleanup.policy=delete", "internal.segment.bytes=1000", "file.delete.delay.ms=600000")
RETAINED = {
    "by-time": (*RETENTION, f"retention.ms={HOUR}"),
    "by-size": (*RETENTION, "retention.ms=-1", "retention.bytes=2500"),
    "by-both": (*RETENTION, f"retention.ms={HOUR}", "retention.bytes=3000"),
    "by-start": (*RETENTION, "retention.ms=-1"),
    "future-blocks": (*RETENTION, f"retention.ms={HOUR}", f"message.timestamp.after.max.ms={100 * DAY}"),
    "all-old": (*RETENTION, f"retention.ms={HOUR}"),
    "young": (*RETENTION, f"retention.ms={HOUR}"),
    "no-time-index": (*RETENTION, f"retention.ms={HOUR}"),
    "touched-old": (*RETENTION, f"retention.ms={HOUR}"),
    "compact-only": (*RETENTION, "cleanup.policy=compact", f"retention.ms={HOUR}"),
}


class Script:
    """Lines for CleaningClient."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []

    def say(self, *words: object) -> None:
        self.lines.append("\t".join(map(str, words)))

    def put(self, topic: str, key: str, value: str, *, by: str = "plain", at: object = "-") -> None:
        self.say("put", by, topic, key, value, at)

    def some(self, topic: str, count: int, *, keys: int = 12, by: str = "plain", nulls: float = 0.2) -> None:
        """Put records of random keys; some are tombstones. Batches end at random."""
        for _ in range(count):
            value = "-" if self.random.random() < nulls else "v" * self.random.randrange(1, 90)
            self.put(topic, f"key-{self.random.randrange(keys)}", value, by=by)
            if self.random.random() < 0.3:
                self.say("flush", by)

    def transaction(self, topic: str, end: str) -> None:
        by = f"txn-{topic}-{self.random.randrange(2)}"
        self.say("begin", by)
        self.some(topic, self.random.randrange(1, 6), by=by)
        self.say(end, by)

    def run(self, broker: Broker) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("".join(f"{line}\n" for line in self.lines))
            file.flush()
            broker.run(CLIENT, broker.address, file.name)
        self.lines = []


def write_compacted(script: Script, number: int) -> None:
    """Add the records of a round."""
    if number == 1:
        for topic, configs in COMPACTED.items():
            script.say("create", topic, *configs)
        for n in range(60):
            script.put("keyless", "-" if n % 3 else f"key-{n}", "v" * 40)
            if n % 10 == 0:
                script.say("flush", "plain")
        for n in range(MAP_ENTRIES * 2):
            script.put("map-full", f"{n - (n % 4 == 3):07}", "v")
        script.say("flush", "plain")
        script.say("set", "keyless", "cleanup.policy=compact")
    for topic in COMPACTED:
        if topic.startswith("transactions"):
            for _ in range(25):
                script.transaction(topic, script.random.choice(("commit", "abort")))
                script.some(topic, script.random.randrange(3))
        elif topic != "map-full":
            keys = 12 if topic == "keys" else 100
            script.some(topic, 120, keys=keys, by=script.random.choice(("plain", "idempotent")))
    if number == 2:
        script.say("begin", "txn-open")
        script.put("open", "key-1", "open", by="txn-open")
        script.say("flush", "txn-open")
        script.some("open", 60)


def write_retained(script: Script, now: int) -> None:
    """Add the topics of retention: records two hours old, then ten minutes."""
    for topic, configs in RETAINED.items():
        script.say("create", topic, *configs)
        for n in range(12):
            age = 10 * 60_000 if topic == "young" or (n >= 6 and topic != "all-old") else 2 * HOUR
            stamp = now + 30 * DAY if topic == "future-blocks" and n == 4 else now - age + n
            script.put(topic, f"key-{n}", "v" * 300, at=stamp)
            script.say("flush", "plain")
    script.say("cut", "by-start", 8)
    script.say("cut", "by-both", 3)


def change_files(logs: Path, now: int) -> None:
    """Empty the time indexes of some closed segments, and set when their logs were last written."""
    for topic, age in (("no-time-index", 0), ("touched-old", 2 * HOUR)):
        for index in sorted((logs / f"{topic}-0").glob("*.timeindex"))[:-1]:
            index.write_bytes(b"")
            os.utime(index.with_suffix(".log"), ((now - age) / 1000,) * 2)


def foretold(command: str, broker: Broker, at: int, *options: object) -> list[dict[str, Any]]:
    """Return the lines of an answer on a stopped broker; the configs of its topics are in its metadata log."""
    done = kdump(command, broker.logs, broker.folder / "metadata", "--at", at, "-q", "-o", "jsonl", *options)
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    return [json.loads(line) for line in done.stdout.splitlines()]


def offsets(logs: Path) -> dict[str, set[int]]:
    """Return the offsets of all records in the logs of a stopped broker, including markers, by topic."""
    found: dict[str, set[int]] = {}
    for path in sorted(logs.glob("*-0/*.log")):
        topic = found.setdefault(path.parent.name[:-2], set())
        with LocalFile(path) as source:
            for region in resync.read(source):
                if isinstance(region, RecordBatch):
                    topic |= {record.offset for record in region.records()}
    return found


def cleaned(logs: Path) -> dict[str, int]:
    """Return the offset up to which each topic is cleaned."""
    path = logs / CHECKPOINT
    return {entry.topic: entry.offset for entry in checkpoints.read(path.read_bytes())} if path.exists() else {}


def wait(done: Callable[[], bool]) -> None:
    """Wait until a condition holds, at most two minutes, and then for events that must not happen."""
    end = time.monotonic() + 120
    while not done() and time.monotonic() < end:
        time.sleep(0.3)
    time.sleep(QUIET)


def clean(broker: Broker) -> Iterator[str]:
    """Predict the next cleaning of each log, run the cleaner of the broker, and yield the differences."""
    before, dirty = offsets(broker.logs), cleaned(broker.logs)
    options = ("--records", "--map-entries", MAP_ENTRIES)
    lines = foretold("compaction", broker, int(time.time() * 1000), *options)
    partitions = {line["topic"]: line for line in lines if line["kind"] == "partition"}
    ends = {topic: line["cleanedUpTo"] for topic, line in partitions.items() if line["due"]}
    removed: dict[str, dict[int, str]] = {topic: {} for topic in before}
    for line in lines:
        if line["kind"] == "removed" and line["topic"] in ends:
            removed[line["topic"]][line["offset"]] = line["why"]
    broker.change(WITH_CLEANER)
    broker.start()
    wait(lambda: all(cleaned(broker.logs).get(topic) == end for topic, end in ends.items()))
    broker.stop()
    after, now = offsets(broker.logs), cleaned(broker.logs)
    for topic in sorted(partitions):
        reasons = Counter(removed[topic].values())
        says = ", ".join(f"{count} {why}" for why, count in sorted(reasons.items())) or "nothing goes"
        state = f"cleaned up to {ends[topic]}" if topic in ends else "not due"
        print(f"  {topic}: {len(after[topic])} of {len(before[topic])} records stay: {state}: {says}", flush=True)
        if wrong := (before[topic] - removed[topic].keys()) ^ after[topic]:
            yield f"{topic}: foretold otherwise: offsets {sorted(wrong)[:20]}, {len(wrong)} in all"
        if now.get(topic) != ends.get(topic, dirty.get(topic)):
            yield f"{topic}: cleaned up to {now.get(topic)}, foretold {ends.get(topic, dirty.get(topic))}"
    if set(ends) != {topic for topic in partitions if now.get(topic) != dirty.get(topic)}:
        yield f"due are {sorted(ends)}"


Deletion: TypeAlias = tuple[str, int, str, str]
"""Topic, base offset, the reason, and the source of the time if that is the reason."""


def retain(broker: Broker) -> Iterator[str]:
    """Predict a check of retention, let the broker run it, and yield the differences."""
    lines = [line for line in foretold("retention", broker, int(time.time() * 1000)) if line["kind"] == "segment"]
    ours = {
        (line["topic"], line["baseOffset"], line["reason"], line["largestFrom"] if line["reason"] == "time" else "")
        for line in lines
        if line["deletable"]
    }
    said = len(broker.output.read_text())
    broker.change(WITH_RETENTION)
    broker.start()
    wait(lambda: len(deletions(broker.output.read_text()[said:])) >= len(ours))
    broker.stop()
    theirs = deletions(broker.output.read_text()[said:])
    for topic in RETAINED:
        reasons = Counter(" by ".join(filter(None, one[2:])) for one in ours if one[0] == topic)
        says = ", ".join(f"{count} for {why}" for why, count in sorted(reasons.items())) or "none"
        print(f"  {topic}: of {sum(line['topic'] == topic for line in lines)} segments go: {says}", flush=True)
    yield from (f"foretold, and does not come: {one}" for one in sorted(ours - theirs))
    yield from (f"comes, and was not foretold: {one}" for one in sorted(theirs - ours))
    left = {(path.parent.name[:-2], int(path.stem)) for path in broker.logs.glob("*-0/*.log")}
    if back := {one[:2] for one in ours} & left:
        yield f"still there: {sorted(back)}"


def deletions(log: str) -> set[Deletion]:
    """Return the segments that a broker logs as deleted, and the reasons."""
    found = set()
    for topic, text in re.findall(r"UnifiedLog partition=(\S+)-0, .*\] (Deleting segments? .*)", log):
        why = next(why for words, why in REASONS.items() if words in text)
        whence = "timeindex" if "largest record timestamp" in text else "mtime"
        for base in re.findall(r"baseOffset=(\d+)", text):
            found.add((topic, int(base), why, whence if why == "time" else ""))
    return found


def prove(broker: Broker, seed: int) -> Iterator[str]:
    """Run all rounds; yield the differences."""
    script = Script(seed)
    for number in range(1, ROUNDS + 1):
        print(f"Round {number} of cleaning", flush=True)
        broker.change(WITHOUT_CLEANER)
        broker.start()
        write_compacted(script, number)
        script.run(broker)
        broker.stop()
        yield from clean(broker)
    print("Retention", flush=True)
    broker.change(WITHOUT_CLEANER)
    broker.start()
    now = int(time.time() * 1000)
    write_retained(script, now)
    script.run(broker)
    broker.stop()
    change_files(broker.logs, now)
    yield from retain(broker)


def main() -> int:
    parser = arguments.parser(__doc__, seed=22)
    parser.add_argument("release", nargs="?", default="4.2.2")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new folder that is kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        broker = Broker(options.release, folder, WITHOUT_CLEANER, talks=[TALKS])
        try:
            wrong = list(prove(broker, options.seed))
        finally:
            broker.stop()
    print(
        "\n".join(wrong) if wrong else f"All came as foretold, in {ROUNDS} rounds of cleaning and a check of retention"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
