"""`kdump rebuild-cluster` compared with `cp` of the same healthy volume to the same file system.

    python -m bench.rebuilding [--gib 20] [--partitions 20] [--rounds 1] [--folder DIR]

The volume is dropped from the page cache before each run, and its time includes flushing to the disk: after `cp` by
`sync -f`, while `rebuild-cluster` does that itself. Prints seconds, the rate as a share of that of `cp`, and the peak
memory of the processes. The exit status is 1 if the share is below 0.7 or the memory above 150 MiB.
"""

from __future__ import annotations

import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from kdump.formats import producer_snapshot
from testing import forge
from tools import arguments

SEGMENT: Final = 1 << 30
AT_ONCE: Final = 8 << 20
RECORDS: Final = 16
TIMESTAMP: Final = 1_767_225_600_000
SHARE: Final = 0.7
MEMORY: Final = 150 << 10
"""Maximum memory of a process, in KiB."""


def write_volume(volume: Path, size: int, partitions: int) -> None:
    """Write a log dir of ``size`` bytes, with an entry in each index, which a look at the end of a segment needs.

    The checksum does not cover offsets, so one batch is repeated.
    """
    volume.mkdir()
    (volume / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=kdumpBench\n")
    records = [forge.record(b"key", os.urandom(1000), offset=n) for n in range(RECORDS)]
    batch = bytearray(forge.batch(records, base_timestamp=TIMESTAMP, max_timestamp=TIMESTAMP))
    for number in range(partitions):
        folder = volume / f"bench-{number}"
        folder.mkdir()
        (folder / "partition.metadata").write_text("version: 0\ntopic_id: Wml8KyZuSqu2XLphRJfCnA")
        left, offset = size // partitions, 0
        while left > 0:
            base, written = offset, 0
            (folder / f"{base:020}.snapshot").write_bytes(producer_snapshot.encode([]))
            with (folder / f"{base:020}.log").open("wb") as file:
                room = min(left, SEGMENT)
                while room > 0:
                    block = bytearray()
                    while len(block) < min(room, AT_ONCE):
                        batch[:8] = struct.pack(">q", offset)
                        block += batch
                        offset += RECORDS
                    file.write(block)
                    written += len(block)
                    room -= len(block)
                    left -= len(block)
                file.flush()
                os.fsync(file.fileno())
            last = offset - 1 - base
            (folder / f"{base:020}.index").write_bytes(struct.pack(">ii", last, written - len(batch)))
            (folder / f"{base:020}.timeindex").write_bytes(struct.pack(">qi", TIMESTAMP, last))


def forget(folder: Path) -> None:
    """Drop files from the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def seconds(command: list[str], volume: Path, out: Path) -> float:
    """Return the seconds of a command that writes to ``out``, which is then deleted."""
    forget(volume)
    os.sync()
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    took = time.monotonic() - began
    shutil.rmtree(out)
    return took


def main() -> int:
    parser = arguments.parser(__doc__, gib=20, partitions=20, rounds=1)
    parser.add_argument("--folder", type=Path, metavar="DIR", help="an existing folder on the disk to measure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        volume, out = Path(place, "volume"), Path(place, "out")
        write_volume(volume, options.gib << 30, options.partitions)
        copy = ["sh", "-c", f"cp -r {volume} {out} && sync -f {out}"]
        words = ["rebuild-cluster", str(volume), "--out", str(out), "--release", "4.3.1", "--yes", "-q"]
        rebuild = [sys.executable, "-m", "kdump", *words]
        copied = rebuilt = 0.0
        for _ in range(options.rounds):
            copied += seconds(copy, volume, out)
            rebuilt += seconds(rebuild, volume, out)
        share, peak = copied / rebuilt, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(f"cp {copied:.1f} s, rebuild-cluster {rebuilt:.1f} s: {share:.2f} of cp's rate; peak {peak >> 10} MiB")
        return 0 if share >= SHARE and peak <= MEMORY else 1


if __name__ == "__main__":
    sys.exit(main())
