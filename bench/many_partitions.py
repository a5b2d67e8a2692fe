"""The cost per partition if there are many: a log dir of partitions of one batch, after a clean stop.

    python -m bench.many_partitions [--partitions 5000] [--rounds 5] [--beside PROGRAM] [--folder DIR] [-k REGEX]

Prints processor seconds with one process, the partitions in a processor second, and the peak of memory. With
``--beside`` another kdump runs in turn with this one, and both must print the same. ``--folder`` keeps the log dir.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import sys
import tempfile
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Final

from bench.runs import ROOT, Tool, digest, measured
from kdump.formats import producer_snapshot
from testing import forge
from tools import arguments

TIME: Final = 1_700_000_000_000
AT: Final = "2023-11-15"
OF_TOPIC: Final = 20
"""The partitions of a topic."""
COMMANDS: Final = (
    "dump {logs} --limit 1",
    "dump {logs} --topic topic1",
    "get topic1-1@0 --in {logs}",
    "explain topic1-1@0 --in {logs}",
    "dump {logs} --head 1 --jobs 1",
    "check {logs} --jobs 1 --at {at}",
    "check {logs} --headers-only --jobs 1 --at {at}",
    "du {logs} --jobs 1",
    "offsets {logs} --jobs 1",
    "stats {logs} --jobs 1",
    "stats {logs} --records --jobs 1",
    "report {logs} --text --jobs 1 --at {at}",
)


def make(logs: Path, count: int) -> None:
    logs.mkdir(parents=True)
    log = forge.batch([forge.record(b"key", b"value")], base_timestamp=TIME)
    lines = []
    for number in range(count):
        topic, partition = f"topic{number // OF_TOPIC}", number % OF_TOPIC
        topic_id = urlsafe_b64encode((1 + number // OF_TOPIC).to_bytes(16, "big")).decode()[:22]
        folder = logs / f"{topic}-{partition}"
        folder.mkdir()
        for name, content in (
            (f"{0:020}.log", log),
            (f"{0:020}.index", b""),
            (f"{0:020}.timeindex", TIME.to_bytes(8, "big") + bytes(4)),
            (f"{1:020}.snapshot", producer_snapshot.encode(())),
            ("leader-epoch-checkpoint", b"0\n1\n0 0\n"),
            ("partition.metadata", f"version: 0\ntopic_id: {topic_id}".encode()),
        ):
            (folder / name).write_bytes(content)
        lines.append(f"{topic} {partition} 1\n")
    for kind in ("replication-offset", "recovery-point-offset"):
        (logs / f"{kind}-checkpoint").write_text(f"0\n{count}\n{''.join(lines)}")
    (logs / "log-start-offset-checkpoint").write_text("0\n0\n")
    (logs / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=Jcp9qHk6RnaNkgBVOvaAyg\n")
    (logs / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')


def main() -> int:
    parser = arguments.parser(__doc__, partitions=5000, rounds=5)
    parser.add_argument("--beside", help="the program of another kdump")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("-k", type=re.compile, default=re.compile(""), metavar="REGEX", help="commands that match")
    args = parser.parse_args()
    tools = [Tool("this", [sys.executable, "-m", "kdump"], {"PYTHONPATH": str(ROOT)})]
    if args.beside:
        tools.append(Tool("beside", [args.beside], {}))
    differ = False
    with contextlib.ExitStack() as stack:
        logs = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "logs"
        if not logs.exists():
            make(logs, args.partitions)
        print(
            f"| of {args.partitions:,} partitions | {' | '.join(f'CPU s {one.name} | in a s | MiB' for one in tools)} |"
        )
        print("|---" * (1 + 3 * len(tools)) + "|")
        for line in (each for each in COMMANDS if args.k.search(each)):
            words = shlex.split(line.format(logs=logs, at=AT))
            cells = [
                f"{one.cpu:.2f} | {args.partitions / one.cpu:,.0f} | {one.peak / 2**20:.0f}"
                for one in measured(tools, words, args.rounds)
            ]
            if len({digest(tool, words) for tool in tools}) > 1:
                differ = True
                cells.append("THE OUTPUTS DIFFER")
            print(f"| {line.format(logs='LOGS', at=AT)} | {' | '.join(cells)} |", flush=True)
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
