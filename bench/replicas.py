"""How fast two replicas with equal bytes are compared, relative to only reading both files.

    python -m bench.replicas [--size MIB] [--batch BYTES] [--folder DIR]

It makes a segment of one size of batches with its indexes (default: 1 GiB, batches of 16 KiB), and a copy of it for
another broker. It prints processor seconds, the best of three, and the rate per replica. The folder is removed at the
end unless it was named.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

from bench.indexes import STEM, best_of_three, make
from kdump.answers import replica_diff
from kdump.answers.collector import Place
from kdump.answers.replica_diff import BrokerReplica, PairDifference
from kdump.errors import Reporter
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.local import LocalFile
from kdump.log_dirs.log_dir_state import LogDirStates
from tools import arguments

BLOCK = 1 << 18


def raise_text(text: str) -> None:
    raise SystemExit(f"a healthy replica is damaged: {text}")


def read(folder: Path) -> int:
    """Read both files; return the number of blocks."""
    blocks = 0
    for log in sorted(folder.glob("*/*/*.log")):
        with LocalFile(log) as source:
            for position in range(0, source.size, BLOCK):
                blocks += bool(source.read(position, BLOCK))
    return blocks


def compare(folder: Path) -> int:
    """Compare both replicas; return the log end offset."""
    states = LogDirStates(Reporter(raise_text))
    finder = Finder(Wanted(siblings=True, log_dirs=True))
    copies = [
        [BrokerReplica(broker.name, Place(one, states.of(one))) for one in finder.find([str(broker)])]
        for broker in sorted(folder.iterdir())
    ]
    (line,) = replica_diff.compare_all(
        replica_diff.pairs(replica_diff.by_partition(copies)), records=False, report=Reporter(raise_text)
    )
    if not isinstance(line, PairDifference) or not line.same:
        raise SystemExit(f"equal replicas differ: {line}")
    return line.end_left


def main() -> int:
    parser = arguments.parser(__doc__)
    parser.add_argument("--size", type=int, default=1024, metavar="MIB")
    parser.add_argument("--batch", type=int, default=16 << 10, metavar="BYTES")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(tempfile.mkdtemp())
        if options.folder is None:
            stack.callback(shutil.rmtree, folder)
        left, right = (folder / broker / "orders-0" for broker in ("broker-1", "broker-2"))
        if not right.exists():
            left.mkdir(parents=True)
            make(left, options.size << 20, options.batch)
            shutil.copytree(left, right)
        size = (left / f"{STEM}.log").stat().st_size
        times = {}
        for name, run in (("read both files", read), ("diff", compare)):
            _, times[name] = best_of_three(run, folder)
            rate = size / times[name] / (1 << 30)
            print(f"{name:16} {size >> 20} MiB a replica: {times[name]:.2f} s of processor time, {rate:.2f} GiB/s")
        print(f"ratio            {times['diff'] / times['read both files']:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
