"""How many bytes are read for 100 records of a big segment, by offset and by time, at several places.

    python -m bench.seeking [--size MIB] [--batch BYTES] [--folder DIR]

It makes a segment with its indexes (default: 1 GiB, batches of 16 KiB). It prints, for each look-up, the bytes read,
their share of the segment, and milliseconds. The folder is removed at the end unless it was named.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from bench.indexes import RECORDS, STEM, make
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.local import LOCAL, LocalFile
from kdump.log_reader.filter import Filter
from kdump.log_reader.reader import PartitionReader
from tools import arguments

WANTED = 100
START_MS = 1_700_000_000_000
PLACES = (0.0, 0.25, 0.5, 0.75, 0.999)


class Counting(LocalFile):
    """A local file that counts the bytes read from all such files."""

    count = 0

    def read(self, position: int, size: int) -> bytes:
        data = super().read(position, size)
        Counting.count += len(data)
        return data


def look(folder: Path, wanted: Filter) -> tuple[int, float, list[int]]:
    """Return the bytes read, the seconds taken and the first offsets found."""
    Counting.count = 0
    began = time.perf_counter()
    (partition,) = Finder().find([str(folder)])
    items = PartitionReader(filter=wanted).read(partition)
    offsets = list(islice((record.offset for item in items for record in item.records), WANTED))
    return Counting.count, time.perf_counter() - began, offsets


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("--size", type=int, default=1024, metavar="MIB")
    parser.add_argument("--batch", type=int, default=16 << 10, metavar="BYTES")
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    LOCAL.open = Counting  # type: ignore[method-assign]  # it counts what is read
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / f"{STEM}.log").exists():
            make(folder, args.size << 20, args.batch)
        size = (folder / f"{STEM}.log").stat().st_size
        records = size // args.batch * RECORDS
        for place in PLACES:
            first = int(records * place)
            for name, wanted in (
                ("--offset", Filter(first_offset=first, last_offset=first + WANTED - 1)),
                ("--since", Filter(since=START_MS + first)),
            ):
                count, seconds, offsets = look(folder, wanted)
                if offsets[:1] != [first]:
                    raise SystemExit(f"{name}: {first} was asked for, {offsets[:1]} found")
                sys.stdout.write(
                    f"{name:9} {place:6.1%} of {size >> 20} MiB: {count:9} bytes, {count / size:.4%}, "
                    f"{seconds * 1000:.0f} ms\n"
                )


if __name__ == "__main__":
    main()
