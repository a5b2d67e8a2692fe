"""How fast indexes are verified, compared with a walk over the batch headers of the same log.

    python -m bench.indexes [--size MIB] [--batch BYTES] [--folder DIR]

It makes a segment of one size of batches (1 GiB of 16 KiB by default) with its indexes, verifies them and
prints processor seconds, the best of three; what reading the records would take is measured on the first 32 MiB. The
folder is removed at the end unless it was named.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from kdump.checks import partition
from kdump.formats import record_layout
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.local import LocalFile
from kdump.output import files
from kdump.records import magic_2
from kdump.records.record_batch import RecordBatch
from kdump.recovery.index_builder import IndexBuilder
from kdump.segments.walk import walk
from tools import arguments

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS = 100
SAMPLE = 32 << 20
STEM = f"{0:020}"


def make(folder: Path, size: int, batch_bytes: int) -> None:
    """Write the segment and its indexes."""
    count = max(1, min(RECORDS, batch_bytes // 100))
    value = bytes(batch_bytes // count - 18)
    records = b"".join(
        magic_2.write_record(timestamp_delta=n, offset_delta=n, key=None, value=value) for n in range(count)
    )
    with (folder / f"{STEM}.log").open("wb") as out:
        written = number = 0
        while written < size:
            stamp = 1_700_000_000_000 + number * count
            header = record_layout.BatchHeader(
                number * count, 0, 0, 2, 0, 0, count - 1, stamp, stamp + count - 1, -1, -1, -1, count
            )
            written += out.write(magic_2.write_batch(header, records))
            number += 1
    write_indexes(folder)


def write_indexes(folder: Path) -> None:
    """Write the indexes of the only segment of a folder."""
    builder = IndexBuilder(0)
    with LocalFile(folder / f"{STEM}.log") as source:
        for region in walk(source):
            if isinstance(region, RecordBatch):
                builder.add(region)
    made = builder.finish()
    files.write(folder, {f"{STEM}.index": made.offset_index, f"{STEM}.timeindex": made.time_index})


def walk_headers(folder: Path) -> int:
    with LocalFile(folder / f"{STEM}.log") as source:
        return sum(1 for region in walk(source) if isinstance(region, RecordBatch) and region.last_offset >= 0)


def verify(folder: Path) -> int:
    batches = 0
    for held in Finder(Wanted(siblings=True)).find([str(folder)]):
        for checked in partition.check(held):
            wrong = [finding.text for finding in checked.findings if not finding.is_remark]
            if wrong:
                raise SystemExit(f"a healthy index has findings: {wrong}")
            batches += checked.batches
    return batches


def read_records(folder: Path) -> int:
    with LocalFile(folder / f"{STEM}.log") as source:
        held = [region for region in walk(source, end=min(source.size, SAMPLE)) if isinstance(region, RecordBatch)]
        for region in held:
            for record in region.records():
                if record.offset < 0:
                    raise SystemExit("a record has no offset")
        return len(held)


def best_of_three(run: Callable[[Path], int], folder: Path) -> tuple[int, float]:
    found = []
    batches = 0
    for _ in range(3):
        began = time.process_time()
        batches = run(folder)
        found.append(time.process_time() - began)
    return batches, min(found)


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
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / f"{STEM}.index").exists():
            make(folder, options.size << 20, options.batch)
        size = (folder / f"{STEM}.log").stat().st_size
        for name, run, part in (
            ("batch headers", walk_headers, size),
            ("verify-index", verify, size),
            ("records", read_records, min(SAMPLE, size)),
        ):
            batches, seconds = best_of_three(run, folder)
            rate = part / seconds / (1 << 30)
            print(f"{name:14} {batches} batches, {part >> 20} MiB: {seconds:.2f} s of processor time, {rate:.2f} GiB/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
