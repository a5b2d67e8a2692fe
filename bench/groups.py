"""How fast commits are replayed, and in what memory: ``python -m bench.groups [--commits N] [--groups N]``.

Each commit is a batch of its own, as a busy coordinator writes them. Exit status 1 when the replay takes more memory
or time than it may; wants the compiled kernel and an idle machine.
"""

from __future__ import annotations

import argparse
import resource
import struct
import sys
import tempfile
import time
from pathlib import Path

from kdump.answers.groups.collector import ConsumerGroups, GroupsWanted
from kdump.answers.log_dir_pass import LogDirPass
from kdump.formats.record_layout import BatchHeader
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.log_dir_state import LogDirStates
from kdump.records import magic_2

RATE = 200_000
"""Commits a second of one processor."""
ROOM = 64 << 20
"""Bytes beyond those before the replay."""
BEGAN = 1_700_000_000_000


def make(path: Path, commits: int, groups: int) -> None:
    """Write a segment of commits, each a batch of its own; every group commits in seven partitions."""
    with path.open("wb") as out:
        for number in range(commits):
            group, topic = b"group-%d" % (number % groups), b"topic-%d" % (number % 7)
            key = struct.pack(">hh", 1, len(group)) + group + struct.pack(">h", len(topic)) + topic + bytes(4)
            value = struct.pack(">hqihq", 3, number, -1, 0, BEGAN + number)
            record = magic_2.write_record(timestamp_delta=0, offset_delta=0, key=key, value=value)
            header = BatchHeader(number, 0, 0, 2, 0, 0, 0, BEGAN + number, BEGAN + number, -1, -1, -1, 1)
            out.write(magic_2.write_batch(header, record))


def fail(reason: object) -> None:
    """End the run: what it reads is sound."""
    raise SystemExit(str(reason))


def main() -> int:
    """Print the figures; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.groups", description=__doc__)
    parser.add_argument("--commits", type=int, default=2_000_000)
    parser.add_argument("--groups", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "__consumer_offsets-0"
        folder.mkdir()
        make(folder / f"{0:020}.log", options.commits, options.groups)
        partitions = list(Finder(Wanted(siblings=True)).find([temporary]))
        answer = ConsumerGroups(GroupsWanted())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        began = time.process_time()
        LogDirPass([answer], LogDirStates(fail, fail), damage=fail, fail=fail).run(partitions)
        taken = time.process_time() - began
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before
    rate = options.commits / taken
    print(f"{options.commits} commits of {options.groups} groups: {rate:,.0f} a second, {grown >> 20} MiB more memory")
    return int(rate < RATE or grown > ROOM)


if __name__ == "__main__":
    sys.exit(main())
