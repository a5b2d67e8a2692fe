"""How the work of each command grows: function calls over n and 4n of every kind of thing in a log dir.

    python -m bench.growth [--kinds junk,members] [--size 60]

Calls are counted, not time, so a busy machine gives the same figures. `sql` is left out: DuckDB's threads call it, and
their calls are not counted. A line is printed for each command and kind whose calls grow by more than LIMIT when there
are four times as many things. A line also names each command that kdump refuses or accepts against REFUSED.
The exit status is 1 if it prints a line.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import struct
import sys
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import groups, metadata
from kdump import cli
from kdump.errors import ExitStatus
from testing import forge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

TIMES: Final = 4
LIMIT: Final = 5.0
LOG: Final = "{:020}.log"


def _segment(folder: Path, base: int = 0, batches: Sequence[bytes] = ()) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    made = batches or [forge.batch([forge.record(b"k%d" % base, b"v")], base_offset=base)]
    (folder / LOG.format(base)).write_bytes(b"".join(made))
    return folder


def partitions(place: Path, n: int) -> None:
    for number in range(n):
        _segment(place / f"t{number // 3}-{number % 3}")


def log_dirs(place: Path, n: int) -> None:
    for number in range(n):
        _segment(place / f"d{number}" / f"t-{number}")
        (place / f"d{number}" / "meta.properties").write_text(f"version=1\nnode.id={number}\ncluster.id=c\n")


def segments(place: Path, n: int) -> None:
    for number in range(n):
        _segment(place / "t-0", number)


def batches(place: Path, n: int) -> None:
    _segment(
        place / "t-0",
        0,
        [forge.batch([forge.record(b"k%d" % at, b"v")], base_offset=at, attributes=8 * (at % 2)) for at in range(n)],
    )


def records(place: Path, n: int) -> None:
    """One batch of records with different keys."""
    _segment(place / "t-0", 0, [forge.batch([forge.record(b"k%d" % at, b"v", offset=at) for at in range(n)])])


def gaps(place: Path, n: int) -> None:
    _segment(place / "t-0", 0, [forge.batch([forge.record(b"k", b"v")], base_offset=at * 3) for at in range(n)])


def damaged(place: Path, n: int) -> None:
    made = [bytearray(forge.batch([forge.record(b"k", b"v" * 20)], base_offset=at)) for at in range(2 * n)]
    for batch in made[::2]:
        batch[-1] ^= 1
    _segment(place / "t-0", 0, [bytes(batch) for batch in made])


def producers(place: Path, n: int) -> None:
    open_transaction = {"producer_epoch": 0, "base_sequence": 0, "attributes": 16}
    for at in range(n):
        made = forge.batch([forge.record(b"k", b"v")], base_offset=at, producer_id=at, **open_transaction)
        _segment(place / "t-0", at, [made])


def junk(place: Path, n: int) -> None:
    _segment(place / "t-0")
    for number in range(n):
        (place / "t-0" / f"junk{number}").touch()
        (place / f"junk{number}").touch()


def snapshots(place: Path, n: int) -> None:
    _segment(place / "t-0")
    for number in range(n):
        (place / "t-0" / f"{number:020}.snapshot").write_bytes(b"\0\1broken")
        (place / "t-0" / f"{number:020}.index").write_bytes(b"ragged")


def epochs(place: Path, n: int) -> None:
    _segment(
        place / "t-0", 0, [forge.batch([forge.record(b"k", b"v")], base_offset=at, leader_epoch=at) for at in range(n)]
    )
    lines = "".join(f"{at} {at}\n" for at in range(n))
    (place / "t-0" / "leader-epoch-checkpoint").write_text(f"0\n{n}\n{lines}")


def indexes(place: Path, n: int) -> None:
    """Entries of an offset index and a time index that point past the end of the log."""
    _segment(place / "t-0")
    (place / "t-0" / f"{0:020}.index").write_bytes(b"".join(struct.pack(">ii", at, 1 << 20) for at in range(1, n + 1)))
    (place / "t-0" / f"{0:020}.timeindex").write_bytes(b"".join(struct.pack(">qi", at, at) for at in range(1, n + 1)))


def aborted(place: Path, n: int) -> None:
    """Aborted transactions, without the transaction index that lists them."""
    made = []
    for at in range(n):
        sent = {"producer_id": at, "producer_epoch": 0}
        made.append(forge.batch([forge.record(b"k", b"v")], base_offset=2 * at, base_sequence=0, attributes=16, **sent))
        end = forge.record(struct.pack(">hh", 0, 0), struct.pack(">hi", 0, 0))
        made.append(forge.batch([end], base_offset=2 * at + 1, attributes=48, **sent))
    _segment(place / "t-0", 0, made)


def commits(place: Path, n: int) -> None:
    groups.make(place, 0, n, n)


def metadata_records(place: Path, n: int) -> None:
    (place / "__cluster_metadata-0").mkdir()
    metadata.write(place / "__cluster_metadata-0", n)


def _keyed(place: Path, pairs: Iterable[tuple[bytes, bytes]]) -> None:
    made = (forge.batch([forge.record(*pair)], base_offset=at) for at, pair in enumerate(pairs))
    _segment(place, 0, [*made])


def schemas(place: Path, n: int) -> None:
    key = b'{"keytype":"SCHEMA","subject":"s%d","version":1,"magic":1}'
    value = b'{"subject":"s%d","version":1,"id":%d,"schema":"\\"string\\""}'
    _keyed(place / "_schemas-0", ((key % at, value % (at, at)) for at in range(1, n + 1)))


def connectors(place: Path, n: int) -> None:
    pairs = ((b"connector-c%d" % at, b'{"properties":{"name":"c%d"}}' % at) for at in range(n))
    _keyed(place / "connect-configs-0", pairs)


def members(place: Path, n: int) -> Path:
    """An archive of partitions: its path."""
    with tempfile.TemporaryDirectory() as folder:
        partitions(Path(folder), n)
        with tarfile.open(place / "bundle.tar.gz", "w:gz") as archive:
            archive.add(folder, "d")
    return place / "bundle.tar.gz"


KINDS: Final[dict[str, Callable[[Path, int], Path | None]]] = {
    kind.__name__: kind
    for kind in (
        partitions, log_dirs, segments, batches, records, gaps, damaged, producers, aborted, junk, snapshots, epochs,
        indexes, commits, metadata_records, schemas, connectors, members,
    )
}  # fmt: skip
NEW_CLUSTER: Final = ("--cluster-id", "kdumpGrowthAAAAAAAAAAA", "--release", "4.3.1", "--yes")
"""Options of rebuild-cluster for log dirs without metadata."""
COMMANDS: Final = {
    "PATH": ["{}"],
    "ls": ["ls", "{}", "--segments"],
    "dump": ["dump", "{}"],
    "dump jsonl": ["dump", "{}", "-o", "jsonl"],
    "dump --batches": ["dump", "{}", "--batches", "-o", "csv"],
    "dump --tail": ["dump", "{}", "--tail", "1"],
    "dump --grep": ["dump", "{}", "--grep", "x.*y"],
    "check": ["check", "{}"],
    "check --headers-only": ["check", "{}", "--headers-only"],
    "verify-index": ["verify-index", "{}"],
    "offsets": ["offsets", "{}"],
    "transactions": ["transactions", "{}", "--all"],
    "producers": ["producers", "{}", "--gaps"],
    "get": ["get", "*-0@0", "--in", "{}"],
    "explain": ["explain", "t-0@0..5", "--in", "{}"],
    "diff": ["diff", "{}", "{}"],
    "groups": ["groups", "{}", "--history"],
    "metadata": ["metadata", "{}", "--events"],
    "du": ["du", "{}"],
    "stats": ["stats", "{}", "--records"],
    "retention": ["retention", "{}"],
    "compaction": ["compaction", "{}", "--config", "*:cleanup.policy=compact", "--records"],
    "report": ["report", "{}", "--text"],
    "salvage": ["salvage", "{}", "--out", "{}.out"],
    "rebuild-index": ["rebuild-index", "{}", "--out", "{}.out"],
    "slice": ["slice", "{}", "--offset", "0..", "--out", "{}.out"],
    "rebuild-cluster": ["rebuild-cluster", "{}", *NEW_CLUSTER, "--out", "{}.out"],
    "schemas": ["schemas", "{}", "--history"],
    "connect": ["connect", "{}"],
}


REFUSED: Final = {
    *((kind, "slice") for kind in ("partitions", "log_dirs", "members")),
    ("members", "rebuild-cluster"),
}
"""Commands that kdump refuses: a slice of several partitions, a rebuild from an archive."""


@contextmanager
def _silent() -> Iterator[None]:
    """Discard the output of commands."""
    kept = os.dup(1), os.dup(2)
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for descriptor in (sink, *kept):
            os.close(descriptor)


def _status() -> object:
    """Return the exit status of a run."""
    try:
        return cli.main()
    except SystemExit as ended:
        return ended.code


def calls(words: Sequence[str]) -> int | None:
    """Return how many functions a command line calls, or None if kdump refuses the command line."""
    profile = cProfile.Profile()
    sys.argv = ["kdump", *words]
    with _silent():
        status = profile.runcall(_status)
    return None if status == ExitStatus.USAGE else sum(entry.callcount for entry in profile.getstats())


def growth(kind: str, command: str, size: int) -> float | None:
    """Return the ratio of a command's calls over TIMES as many things to its calls over ``size`` of them.

    None if kdump refuses the command for the kind.
    """
    counts: list[int] = []
    for n in (1, 1, size, TIMES * size):  # the first run imports
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "logs"
            place.mkdir()
            path = KINDS[kind](place, n) or place
            called = calls([word.format(path) for word in COMMANDS[command]])
            if called is None:
                return None
            counts.append(called)
    _, base, few, many = counts
    return (many - base) / max(few - base, size)


def main() -> int:
    """Print the commands whose calls grow too fast."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default="", help="by default all")
    parser.add_argument("--commands", default="", help="by default all")
    parser.add_argument("--size", type=int, default=60)
    given = parser.parse_args()
    worst = 0
    if hasattr(os, "sched_setaffinity"):  # calls are counted in one process, so kdump must not start others
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    for kind in given.kinds.split(",") if given.kinds else KINDS:
        for command in given.commands.split(",") if given.commands else COMMANDS:
            found = growth(kind, command, given.size)
            if (found is None) != ((kind, command) in REFUSED):
                worst = 1
                print(f"{kind}: kdump {command}: {'refused' if found is None else 'not refused'}", flush=True)
            elif found is not None and found > LIMIT:
                worst = 1
                print(f"{kind}: kdump {command}: {found:.1f} times the calls", flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
