"""Compare verify-index and rebuild-index with a real broker: live folders, and a start on rebuilt indexes.

    python -m tools.prove.indexes [--release 4.2.2] [--seconds 40]

While three producers (two with transactions, every third aborted) write to a broker with small segments, its log dir is
verified repeatedly: there must be no finding. Then the broker is stopped, all indexes are replaced by rebuilt ones, and
it is started again: it must accept them unchanged, and give the same answers to read_committed consumers and to
look-ups by time as before. The exit status is 1 if something differs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from kdump.checks import partition
from kdump.errors import UnreadableError
from kdump.log_dirs.finder import Finder, Wanted
from testing.processes import kdump
from tools import arguments
from tools.prove.broker import Broker

CLIENT = Path(__file__).with_name("LoadClient.java")
TOPIC = "load"
SETTINGS = {"log.index.interval.bytes": "300", "log.segment.bytes": "1048576", "log.index.size.max.bytes": "65536"}


def findings(folder: Path, counts: Counter[str]) -> list[str]:
    """Return the findings of verify-index on a folder. A file that disappears during a roll is ignored."""
    found = []
    try:
        for held in Finder(Wanted(siblings=True)).find([str(folder)]):
            for checked in partition.check(held):
                counts["segments"] += 1
                counts["batches"] += checked.batches
                found += [
                    f"{one.file}: {one.text} (expected {one.expected}, found {one.found})"
                    for one in checked.findings
                    if not one.is_remark
                ]
    except UnreadableError as error:
        counts[f"unreadable: {error.reason}"] += 1
    return found


def rebuild(folder: Path) -> int:
    """Replace all indexes of a partition by rebuilt ones; return the number of segments."""
    logs = sorted(folder.glob("[0-9]*.log"))
    with tempfile.TemporaryDirectory() as fresh:
        for log in logs:
            kdump("rebuild-index", log, "--out", fresh, "-q", check=True)
        for pattern in ("*.index", "*.timeindex", "*.txnindex"):
            for old in folder.glob(pattern):
                old.unlink()
            for new in Path(fresh).glob(pattern):
                new.rename(folder / new.name)
    return len(logs)


def main() -> int:
    options = arguments.parser(__doc__, release="4.2.2", seconds=40).parse_args()
    with tempfile.TemporaryDirectory() as temporary, Broker(options.release, Path(temporary), SETTINGS) as broker:
        return prove(broker, options.seconds)


def asked(broker: Broker, times: list[str]) -> tuple[str, str]:
    """Return all records of a consumer, and the offsets that it finds by time."""
    return broker.run(CLIENT, "read", broker.address, TOPIC), broker.run(CLIENT, "times", broker.address, *times)


def prove(broker: Broker, seconds: int) -> int:
    wrong = 0
    broker.create([f"{TOPIC}-0"])
    began = round(time.time() * 1000)
    counts: Counter[str] = Counter()
    with broker.client(CLIENT, "load", broker.address, TOPIC, str(seconds)) as load:
        while load.poll() is None:
            for text in findings(broker.logs, counts):
                print(f"LIVE     {text}")
                wrong += 1
            counts["passes"] += 1
            time.sleep(0.05)
        wrong += bool(load.returncode)
    print(f"live: {dict(counts)}, {wrong} findings")
    times = [TOPIC, str(began - 1000), str(round(time.time() * 1000)), "97"]
    before = asked(broker, times)
    broker.stop()
    for text in findings(broker.logs, counts):
        print(f"STOPPED  {text}")
        wrong += 1
    segments = rebuild(broker.logs / f"{TOPIC}-0")
    broker.start()
    after = asked(broker, times)
    for name, first, second in zip(("records", "look-ups by time"), before, after, strict=True):
        same = first == second
        wrong += not same
        print(f"{segments} rebuilt segments: {len(first.splitlines())} {name} {'as before' if same else 'DIFFER'}")
    refused = broker.reported(r".*(?:orrupt|Rebuilding|Recovering).*index.*")
    wrong += len(refused)
    for line in refused:
        print(f"BROKER   {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
