"""Compare the output of commands with and without --master: standard output, standard error, exit status.

    python -m tools.prove.answers_on_spark [PATH...] [--master local[2]] [--partitions 2000] [--lines FILE]

Runs check, verify-index, report, diff and every answer over the paths (default: golden/brokers/) and over forged log
dirs of two brokers. PARTITIONS is the number of their partitions (0: none). Some are damaged, in transactions or
without an index. FILE has more command lines: JSON objects with "folder", where to run it, and "args", a line each. All
runs in one process and one session of Spark. The exit status is 1 if anything differs.
"""

import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kdump.cli import main as run_kdump
from testing import GOLDEN, damages, forge
from tools import arguments

AT = ("--at", "2026-11-22")
LINES = (
    ("check", *AT),
    ("check", "--headers-only", "-o", "jsonl", *AT),
    ("verify-index", "-o", "jsonl"),
    ("stats", "--hours", "-o", "jsonl"),
    ("stats", "--records"),
    ("transactions", *AT),
    ("transactions", "--all", "-o", "jsonl", *AT),
    ("producers", "--gaps", "-o", "jsonl"),
    ("offsets", "-o", "jsonl"),
    ("groups", "-o", "jsonl", *AT),
    ("du", "-o", "jsonl", *AT),
    ("retention", "-o", "jsonl", *AT),
    ("compaction", "--records", "-o", "jsonl", *AT),
    ("report", "-o", "jsonl", *AT),
)
TRANSACTIONAL = 0x10
ENDED = b"\0\0\0\1"
"""The key of a commit marker."""


class Printed(NamedTuple):
    """The exit status and output of a command."""

    status: int
    out: bytes
    said: bytes


def printed(folder: Path, args: Sequence[str]) -> Printed:
    """Run kdump in this process."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        sys.stdout.flush()
        sys.stderr.flush()
        kept = [os.dup(number) for number in (1, 2)]
        here = Path.cwd()
        try:
            os.chdir(folder)
            os.dup2(out.fileno(), 1)
            os.dup2(said.fileno(), 2)
            sys.argv = ["kdump", *args]
            status = run_kdump()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os.chdir(here)
            for number, before in enumerate(kept, 1):
                os.dup2(before, number)
                os.close(before)
        out.seek(0)
        said.seek(0)
        return Printed(status, out.read(), said.read())


def make_logs(folder: Path, count: int, rng: random.Random) -> None:
    """Write log dirs of two brokers with ``count`` partitions. Each broker has a replica of each partition."""
    for number in range(count // 2):
        files = _partition(rng)
        name = f"t{number // 50}-{number % 50}"
        for broker in ("broker-1", "broker-2"):
            inside = folder / broker / name
            inside.mkdir(parents=True)
            for file, content in files.items():
                damaged = bytearray(content)
                if file.endswith(".log") and len(content) > 1 and rng.random() < 0.02:
                    damages.damage(damaged, rng, [0, len(content)])
                (inside / file).write_bytes(damaged)
    for broker in ("broker-1", "broker-2"):
        ids = f"version=1\ncluster.id=Jcp9qHk6RnaNkgBVOvaAyg\nnode.id={broker[-1]}\n"
        (folder / broker / "meta.properties").write_text(ids)
        marks = "".join(f"t{number // 50} {number % 50} 1\n" for number in range(0, count // 2, 3))
        (folder / broker / "replication-offset-checkpoint").write_text(f"0\n{marks.count(chr(10))}\n{marks}")


def _partition(rng: random.Random) -> dict[str, bytes]:
    """Return the files of a partition: segments, most with an index."""
    files, offset = {}, 0
    for _ in range(rng.randint(1, 3)):
        content, base = b"", offset
        for _ in range(rng.randint(1, 12)):
            producer = rng.choice([-1, -1, 7, 8])
            records = [forge.record(b"k%d" % rng.randrange(9), rng.randbytes(40), offset=at) for at in range(5)]
            kind = {"producer_id": producer, "producer_epoch": 0, "attributes": TRANSACTIONAL} if producer > 0 else {}
            time = 1_700_000_000_000 + offset * 1000
            content += forge.batch(records, base_offset=offset, base_timestamp=time, max_timestamp=time, **kind)
            offset += 5
        files[f"{base:020}.log"] = content
        if rng.random() < 0.9:
            files[f"{base:020}.index"] = files[f"{base:020}.timeindex"] = b""
    return files


def questions(
    paths: Sequence[Path], lines: Path | None, partitions: int, place: Path
) -> Iterator[tuple[Path, list[str]]]:
    """Yield folders, and the command lines to run there."""
    for path in paths:
        for command, *options in LINES:
            yield path, [command, ".", *options]
    if partitions:
        make_logs(place, partitions, random.Random(26))
        for command, *options in LINES:
            yield place, [command, "broker-1", "broker-2", *options]
        yield place, ["diff", "broker-1", "broker-2", "-o", "jsonl"]
    for line in lines.read_text("utf-8").splitlines() if lines else ():
        reported = json.loads(line)
        yield Path(reported["folder"]), reported["args"]


def hold(folder: Path, args: list[str], master: str, say: Callable[[str], None]) -> bool:
    """Return whether a command prints the same with and without ``master``."""
    alone, spark = printed(folder, args), printed(folder, [*args, "--master", master])
    wrong = [name for name, one, other in zip(Printed._fields, alone, spark, strict=True) if one != other]
    size = f"{len(alone.out):,} and {len(alone.said):,} bytes, status {alone.status}"
    say(f"{'differs: ' + ', '.join(wrong) if wrong else 'equal'}: {size}: kdump {' '.join(args)}")
    return not wrong


def main() -> int:
    parser = arguments.parser(__doc__, partitions=2000, master="local[2]")
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--lines", type=Path)
    given = parser.parse_args()
    held = total = 0
    with tempfile.TemporaryDirectory(prefix="kdump-prove-") as place:
        paths = given.paths or [GOLDEN / "brokers"]
        for folder, args in questions(paths, given.lines, given.partitions, Path(place)):
            total += 1
            held += hold(folder, args, given.master, lambda text: print(text, flush=True))
    print(f"{held} of {total} command lines print the same with --master {given.master}")
    return 0 if held == total > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
