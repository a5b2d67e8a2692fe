"""Compare the windowed keys of kdump with the windows of Kafka Streams.

    python -m tools.prove.windowed_keys [--release 4.3.1] [--seeds N] [--records N]

A topology with every kind of store runs in Kafka's TopologyTestDriver: tumbling, hopping and sliding windows, sessions,
suppressed results, inner and outer joins, and a table without windows; keys are texts, numbers of 4 and of 8 bytes. The
records of its changelogs are written as logs, and ``kdump dump --decode auto`` must show the keys and windows that the
stores return. Otherwise the exit status is 1. Needs Java 17 and Maven 3.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from base64 import b64decode
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from testing import forge
from testing.processes import kdump
from tools import arguments
from tools.record.fetch_jars import CACHE, gather

CLIENT: Final = Path(__file__).with_name("ChangelogClient.java")
STARTED: Final = 1_790_000_000_000
"""The timestamp of records for which a changelog has none."""


def main() -> int:
    """Run the proof; return the exit status."""
    parser = arguments.parser(__doc__, release="4.3.1")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="applications (%(default)s)")
    parser.add_argument("--records", type=int, default=300, metavar="N", help="records of each (%(default)s)")
    given = parser.parse_args()
    names = ("org.apache.kafka:kafka-streams", "org.apache.kafka:kafka-streams-test-utils")
    wanted = [*(f"{name}:{given.release}" for name in names), "org.slf4j:slf4j-nop:1.7.36"]
    jars = gather(wanted, CACHE.parent / f"streams-{given.release}")
    keys, wrong = 0, []
    for seed in range(given.seeds):
        with tempfile.TemporaryDirectory() as folder:
            command = ["java", "-Xmx512m", "-cp", f"{jars}/*", str(CLIENT), str(seed), str(given.records), folder]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            counted, found = compared(text, Path(folder, "logs"))
        keys += counted
        wrong += [f"seed {seed}: {each}" for each in found]
    print(*wrong[:20], sep="\n", end="\n" * bool(wrong))
    print(f"{keys:,} keys of changelogs of {given.seeds} applications, {len(wrong)} differences")
    return int(bool(wrong))


def compared(text: str, folder: Path) -> tuple[int, list[str]]:
    """Return the number of keys in the client's lines, and the differences from kdump."""
    logs: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    stores: dict[str, set[tuple[str, bytes, int, int]]] = defaultdict(set)
    rows: set[tuple[bytes, int, str]] = set()
    for line in text.splitlines():
        what, *parts = line.split(" ")
        if what == "changelog":
            stamp = STARTED if parts[1] == "null" else int(parts[1])
            logs[parts[0]].append((stamp, bytes.fromhex(parts[2])))
        elif what == "store":
            topic, kind, key, start, end = parts
            stores[topic].add((kind, bytes.fromhex(key), int(start), int(end)))
        else:
            rows.add((bytes.fromhex(parts[0]), int(parts[1]), parts[2]))
    wrong: list[str] = []
    for topic, records in logs.items():
        write(folder, topic, records)
    lines: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in kdump("dump", str(folder), "-o", "jsonl", "--decode", "auto").stdout.splitlines():
        record = json.loads(line)
        lines[record["topic"]].append(record)
    for topic, records in logs.items():
        found = [window_of(record) for record in lines[topic]]
        if len(found) != len(records):
            wrong.append(f"{topic}: {len(found)} lines of {len(records)} records")
        wrong += [f"{topic}: {problem}" for problem in problems(topic, records, found, stores, rows)]
    return sum(map(len, logs.values())), wrong


def window_of(record: dict[str, Any]) -> tuple[bytes, dict[str, Any] | None]:
    """Return the application's key in a line, and its window.

    A number of 8 bytes that looks like the id of an unknown schema has no ``data``.
    """
    side = (record.get("decoded") or {}).get("key")
    if side is None or "window" not in side:
        return b"", None
    if side.get("problem") == "schema-missing":
        return b64decode(record["key"])[:8], side["window"]
    data = side["data"]
    return b64decode(data) if side.get("encoding") == "base64" else data.encode(), side["window"]


def problems(
    topic: str,
    records: list[tuple[int, bytes]],
    found: list[tuple[bytes, dict[str, Any] | None]],
    stores: dict[str, set[tuple[str, bytes, int, int]]],
    rows: set[tuple[bytes, int, str]],
) -> list[str]:
    """Return the faults in the windows of a changelog."""
    if "plain" in topic:
        return [f"a window {window} of a key without one" for _, window in found if window is not None]
    without = sum(window is None for _, window in found)
    if without:
        return [f"{without} of {len(found)} keys have no window"]
    windows = [(key, window) for key, window in found if window is not None]
    if "shared-join" in topic:
        shown = [(key, window.get("timeMs"), window.get("side")) for key, window in windows]
        return [f"no row {each}" for each in shown if each not in rows]
    if "join-store" in topic:
        wrong = [f"{w} at {at}" for (_, w), (at, _) in zip(windows, records, strict=True) if w.get("startMs") != at]
        numbers = [window.get("sequence") for _, window in windows]
        return wrong + [f"sequence numbers {numbers}"] * (numbers != list(range(1, len(numbers) + 1)))
    of = {"app-suppressed-store-changelog": "app-before-changelog"}
    of["app-suppressed-sessions-store-changelog"] = "app-before-sessions-changelog"
    kind = "session" if "sessions" in topic else "time"
    wrong = [f"{window} is not a {kind} window" for _, window in windows if window["type"] != kind]
    if topic in stores:
        known = {(key, start) for _, key, start, _ in stores[topic]}
        shown_ = {(key, window.get("startMs")) for key, window in windows}
        wrong += [f"of the store, not shown: {each}" for each in sorted(known - shown_)]
        if kind == "time":
            wrong += [f"shown, not of the store: {each}" for each in sorted(shown_ - known)]
    if kind == "session" and topic in stores:
        ends = {(key, window.get("startMs"), window.get("endMs")) for key, window in windows}
        wrong += [f"no session {each}" for each in stores[topic] if each[1:] not in ends]
    has_sequence = kind == "time" and topic not in of
    wrong += [f"{window} has a sequence, or none" for _, window in windows if ("sequence" in window) != has_sequence]
    return wrong


def write(folder: Path, topic: str, records: list[tuple[int, bytes]]) -> None:
    """Write a log of these timestamps and keys."""
    target = folder / f"{topic}-0"
    target.mkdir(parents=True)
    made = b"".join(
        forge.batch([forge.record(key, b"x")], base_offset=offset, base_timestamp=stamp)
        for offset, (stamp, key) in enumerate(records)
    )
    (target / f"{0:020}.log").write_bytes(made)


if __name__ == "__main__":
    sys.exit(main())
