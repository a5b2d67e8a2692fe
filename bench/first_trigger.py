"""How many bytes the driver reads before the first trigger of a stream.

    python -m bench.first_trigger [--mib 512]

Three partitions have rolled segments with an index entry for every 4 KiB: batches of 16 KB, of 500 bytes and of 1,700
bytes. The table in bench/RESULTS-spark.md has the processor time and the bytes that the driver reads of logs and
indexes. It reads them to find the end of the log (``availableNow``), the end of the trigger and the splits, without a
limit and with two.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.disk_answers import batch
from bench.spark import RESULTS, machine, put_section
from kdump.formats import offset_index
from kdump.log_dirs.local import LocalFile, Meter
from kdump.spark.source import options as words
from kdump.spark.source import streaming
from tools import arguments

TITLE: Final = "## The first trigger of a stream"
INTERVAL: Final = 4096
"""Bytes of a log for each entry of its index: a broker's default (``index.interval.bytes``)."""
SHAPES: Final = ((16, 1000), (1, 430), (100, 10))
"""Records of a batch and bytes of a value, for each partition."""
LIMITS: Final = {
    "no limit": streaming.TriggerLimits(),
    "maxBytesPerTrigger 64m": streaming.TriggerLimits(bytes=64 << 20),
    "maxRecordsPerTrigger 100000": streaming.TriggerLimits(records=100_000),
}


class ReadBytes(Meter):
    """Counts all bytes that are read of files."""

    count = 0

    def add(self, path: str, position: int, size: int) -> None:  # noqa: ARG002  a look at a header counts, too
        self.count += size


def make(folder: Path, shape: tuple[int, int], size: int) -> None:
    """Write two segments of ``size`` bytes together, with their indexes."""
    folder.mkdir(parents=True)
    records, value = shape[0], random.Random(1).randbytes(shape[1])
    rest = batch(0, [b"k"] * records, value)[8:]  # a base offset is not in the checksum
    offset = 0
    for _ in range(2):
        base, position, last = offset, 0, 0
        entries: list[tuple[int, int]] = []
        with (folder / f"{base:020}.log").open("wb") as out:
            while position < size // 2:
                if position - last > INTERVAL:
                    entries.append((offset + records - 1, position))
                    last = position
                position += out.write(offset.to_bytes(8, "big") + rest)
                offset += records
        (folder / f"{base:020}.index").write_bytes(offset_index.encode(entries, base))


def main() -> None:
    parser = arguments.parser(__doc__, mib=512)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    head = machine(f"{given.mib} MiB in three partitions of two segments")
    lines = [
        TITLE,
        "",
        "`python -m bench.first_trigger` writes this section: the bytes that the driver reads with `availableNow`.",
        head,
        "",
        "| Limit | bytes read | of the log dir | CPU seconds |",
        "|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory(prefix="kdump-bench-") as place:
        for number, shape in enumerate(SHAPES):
            make(Path(place, f"t-{number}"), shape, (given.mib << 20) // len(SHAPES))
        size = sum(path.stat().st_size for path in Path(place).rglob("*.log"))
        options = words.SourceOptions(paths=(place,))
        for name, limits in LIMITS.items():
            read = ReadBytes()
            LocalFile.meter = read
            began = time.process_time()
            end = streaming.advance(options, {}, limits, streaming.ends(options)).offsets
            if not streaming.between(options, {}, end, print):
                raise AssertionError("a trigger that takes nothing")
            took = time.process_time() - began
            LocalFile.meter = None
            lines.append(f"| {name} | {read.count:,} | {read.count / size:.3%} | {took:.3f} |")
    lines += ["", "The aim is less than 1 %. To look at every checksum, a driver read 109 to 183 % in 3 to 6 seconds."]
    put_section(given.out, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
