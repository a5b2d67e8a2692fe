"""Hold verify-index and rebuild-index against a real broker: live folders, and a start on rebuilt indexes.

    python -m tools.prove_indexes [--release 4.2.2] [--seconds 40]

While three producers (two with transactions, every third aborted) write to a broker with small segments, its log dir is
verified over and over: there must be no finding. Then the broker is stopped, all indexes are replaced by rebuilt ones,
and it is started again: it must take them as they are, and give the same answers to read_committed consumers and to
look-ups by time as before. Exit status 1 when something differs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from kdump.checks import partition
from kdump.errors import UnreadableError
from kdump.inputs import Finder, Wanted
from tools.broker import Broker

CLIENT = Path(__file__).with_name("LoadClient.java")
TOPIC = "load"
SETTINGS = "log.index.interval.bytes=300\nlog.segment.bytes=1048576\nlog.index.size.max.bytes=65536\n"


def findings(folder: Path, counts: Counter[str]) -> list[str]:
    """What verify-index has against a folder; what is gone in the middle of a roll is no matter."""
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


def ask(broker: Broker, *arguments: str) -> str:
    """Run the client with the broker's own jars."""
    command = broker._command(str(CLIENT), arguments[0], broker.address, *arguments[1:])
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def rebuild(folder: Path) -> int:
    """Replace all indexes of a partition by rebuilt ones; return how many segments there are."""
    logs = sorted(folder.glob("[0-9]*.log"))
    with tempfile.TemporaryDirectory() as fresh:
        for log in logs:
            command = [sys.executable, "-m", "kdump", "rebuild-index", str(log), "--out", fresh, "-q"]
            subprocess.run(command, check=True)
        for pattern in ("*.index", "*.timeindex", "*.txnindex"):
            for old in folder.glob(pattern):
                old.unlink()
            for new in Path(fresh).glob(pattern):
                new.rename(folder / new.name)
    return len(logs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="4.2.2")
    parser.add_argument("--seconds", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        broker = Broker(options.release, Path(temporary, "broker"))
        with (broker.folder / "server.properties").open("a") as settings:
            settings.write(SETTINGS)
        with broker:
            return prove(broker, options.seconds)


def prove(broker: Broker, seconds: int) -> int:
    wrong = 0
    broker.create([f"{TOPIC}-0"])
    command = broker._command(str(CLIENT), "load", broker.address, TOPIC, str(seconds))
    began = round(time.time() * 1000)
    counts: Counter[str] = Counter()
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as load:
        while load.poll() is None:
            for text in findings(broker.logs, counts):
                print(f"LIVE     {text}")
                wrong += 1
            counts["passes"] += 1
            time.sleep(0.05)
        wrong += bool(load.returncode)
    print(f"live: {dict(counts)}, {wrong} findings")
    times = ["times", TOPIC, str(began - 1000), str(round(time.time() * 1000)), "97"]
    before = ask(broker, "read", TOPIC), ask(broker, *times)
    broker.stop()
    for text in findings(broker.logs, counts):
        print(f"STOPPED  {text}")
        wrong += 1
    segments = rebuild(broker.logs / f"{TOPIC}-0")
    broker.start()
    after = ask(broker, "read", TOPIC), ask(broker, *times)
    for name, first, second in zip(("records", "look-ups by time"), before, after, strict=True):
        same = first == second
        wrong += not same
        print(f"{segments} rebuilt segments: {len(first.splitlines())} {name} {'as before' if same else 'DIFFER'}")
    refused = broker.told(r".*(?:orrupt|Rebuilding|Recovering).*index.*")
    wrong += len(refused)
    for line in refused:
        print(f"BROKER   {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
