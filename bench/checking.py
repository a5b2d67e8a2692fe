"""How fast `kdump check` is with records and with --headers-only, and how fast the records are printed.

    python -m bench.checking [--size MIB] [--batch BYTES]

It makes a segment of one size of batches with its indexes (default: 512 MiB, batches of 16 KiB). It prints processor
seconds and GB of file per second, the best of three, in one process. Printing goes to /dev/null.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from bench.indexes import STEM, make
from kdump.checks import whole_partition
from kdump.checks.log_dir import LogDirs
from kdump.log_dirs.finder import Finder, Wanted
from tools import arguments


def seconds(folder: Path, *, records: bool) -> float:
    """Check the folder; return processor seconds, the best of three."""
    best = 0.0
    for _ in range(3):
        (found,) = Finder(Wanted(siblings=True, leftovers=True)).find([str(folder)])
        began = time.process_time()
        checked = whole_partition.check(found, whole_partition.CheckOptions(records=records), LogDirs())
        took = time.process_time() - began
        if any(not finding.is_remark for finding in checked.findings):
            sys.exit(f"the file is not healthy: {checked.findings}")
        best = min(best or took, took)
    return best


def printing(log: Path) -> float:
    """Print the records of the log to /dev/null; return processor seconds, the best of three."""
    best = 0.0
    for _ in range(3):
        before = getrusage(RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "kdump", "--print-data-log", "--files", str(log)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = getrusage(RUSAGE_CHILDREN)
        took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = min(best or took, took)
    return best


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("--size", type=int, default=512, metavar="MIB")
    parser.add_argument("--batch", type=int, default=16384, metavar="BYTES")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "bench-0")
        folder.mkdir()
        make(folder, options.size << 20, options.batch)
        log = folder / f"{STEM}.log"
        size = log.stat().st_size
        for what, took in (
            ("check --headers-only", seconds(folder, records=False)),
            ("check", seconds(folder, records=True)),
            ("--print-data-log", printing(log)),
        ):
            print(f"{what:22} {took:7.2f} s  {size / took / 1e9:6.2f} GB/s")


if __name__ == "__main__":
    main()
