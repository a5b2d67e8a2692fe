"""How fast the answers on disk space are: du, stats, retention (beside ``check --headers-only``) and compaction.

    python -m bench.disk_answers [--partitions N] [--size MIB] [--records N]

It makes log dirs in a temporary folder and prints processor seconds, the best of three; they are in the page cache.
``--keys N`` measures instead the cleaner's map of N different keys.
"""

from __future__ import annotations

import io
import re
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench import indexes
from kdump.answers.compaction.cleaning import CleaningLimits
from kdump.answers.compaction.compacted_logs import Compaction
from kdump.answers.disk_usage import DiskUsage
from kdump.answers.log_dir_pass import LogDirPass
from kdump.answers.retention import Retention
from kdump.answers.statistics import Statistics
from kdump.answers.topic_configs import GivenConfig, TopicConfigs
from kdump.checks import whole_partition
from kdump.checks.log_dir import LogDirs
from kdump.errors import Reporter
from kdump.formats import record_layout
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.log_dir_state import LogDirStates
from kdump.primitives.crc import crc32c
from kdump.printers.answer_lines import write_jsonl
from kdump.records import magic_2
from tools import arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.answers.collector import Collector

NOW = 1_800_000_000_000
IN_BATCH = 500
KEY = b"key-%011d"
COMPACTED = TopicConfigs(given=[GivenConfig("*", "cleanup.policy", "compact")])


def batch(first: int, keys: list[bytes], value: bytes) -> bytes:
    """Return a batch of one record a key."""
    records = b"".join(
        magic_2.write_record(timestamp_delta=0, offset_delta=n, key=key, value=value) for n, key in enumerate(keys)
    )
    last, stamp = len(keys) - 1, 1_700_000_000_000
    header = record_layout.BatchHeader(first, 0, 0, 2, 0, 0, last, stamp, stamp, -1, -1, -1, len(keys))
    return magic_2.write_batch(header, records)


def make_partitions(folder: Path, count: int) -> None:
    """Write partitions as a running broker has them: one segment, indexes of 10 MiB of zeros."""
    content = b"".join(batch(n * 5, [b"k"] * 5, bytes(100)) for n in range(8))
    for number in range(count):
        inside = folder / f"t{number // 100}-{number % 100}"
        inside.mkdir(parents=True)
        (inside / f"{0:020}.log").write_bytes(content)
        for suffix in ("index", "timeindex"):
            with (inside / f"{0:020}.{suffix}").open("wb") as out:
                out.truncate(10 << 20)


def make_compacted(folder: Path, count: int, distinct: int, value: bytes = bytes(100)) -> None:
    """Write a closed segment of ``count`` records, or a few less, and an active one."""
    inside = folder / "t-0"
    inside.mkdir(parents=True)
    form = bytearray(batch(0, [KEY % 0] * IN_BATCH, value))
    places = [match.end() - 11 for match in re.finditer(re.escape(KEY % 0), form)]
    whole = count // IN_BATCH * IN_BATCH
    with (inside / f"{0:020}.log").open("wb") as out:
        for first in range(0, whole, IN_BATCH):
            form[:8] = first.to_bytes(8, "big")
            for number, at in enumerate(places, first):
                form[at : at + 11] = b"%011d" % (number * 7919 % distinct)
            crc = crc32c(memoryview(form)[record_layout.CRC_COVERS_FROM :])
            form[record_layout.CRC_COVERS_FROM - 4 : record_layout.CRC_COVERS_FROM] = crc.to_bytes(4, "big")
            out.write(form)
    (inside / f"{whole:020}.log").write_bytes(batch(whole, [b"last"], value))


def answer(folder: Path, new: Callable[[], Collector]) -> int:
    """Run a collector over a folder and discard its lines of JSON; return their size in bytes."""
    collector = new()
    partitions = list(Finder(Wanted(siblings=True, leftovers=True)).find([str(folder)]))
    states = LogDirStates(Reporter(print, fail=print))
    LogDirPass([collector], Reporter(damage=print, fail=print), states).run(partitions)
    out = io.BytesIO()
    write_jsonl(collector.answer(NOW), out)
    return out.tell()


def measure(name: str, folder: Path, new: Callable[[], Collector], amount: float, unit: str) -> None:
    """Print the processor time of an answer."""
    _, seconds = indexes.best_of_three(lambda path: answer(path, new), folder)
    print(f"{name:15} {seconds:.2f} s of processor time, {amount / seconds:,.2f} {unit}/s")


def beside_headers(folder: Path, name: str, batch_bytes: int, size: int) -> None:
    """Print the time of the answers for a segment of ``size`` MiB, and that of ``kdump check --headers-only``."""
    log = folder / "t-0"
    log.mkdir(parents=True)
    indexes.make(log, size << 20, batch_bytes)
    gib = size / 1024
    _, seconds = indexes.best_of_three(check_headers, log)
    print(f"{'check headers':15} {seconds:.2f} s of processor time, {gib / seconds:,.2f} GiB/s, batches of {name}")
    measure("stats", folder, Statistics, gib, "GiB")
    measure("stats --records", folder, lambda: Statistics(records=True), gib, "GiB")
    measure("retention", folder, lambda: Retention(TopicConfigs()), gib, "GiB")


def check_headers(folder: Path) -> int:
    """Check a partition without its records; return the number of its batches."""
    (partition,) = Finder(Wanted(siblings=True)).find([str(folder)])
    return whole_partition.check(partition, whole_partition.CheckOptions(records=False), LogDirs()).batches


def main() -> int:
    parser = arguments.parser(__doc__)
    parser.add_argument("--partitions", type=int, default=10_000, metavar="N")
    parser.add_argument("--size", type=int, default=1024, metavar="MIB")
    parser.add_argument("--records", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--keys", type=int, default=0, metavar="N")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        if options.keys:
            make_compacted(folder / "keys", options.keys, options.keys, b"v")
            began = time.process_time()
            limits = CleaningLimits(options.keys, options.keys)
            answer(folder / "keys", lambda: Compaction(COMPACTED, NOW, limits))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            print(f"{options.keys:,} keys: {time.process_time() - began:.1f} s of processor time, {peak:,} MiB at most")
            return 0
        make_partitions(folder / "many", options.partitions)
        measure("du", folder / "many", DiskUsage, options.partitions, "partitions")
        for name, batch_bytes, size in (("16 KiB", 16 << 10, options.size), ("1 KiB", 1 << 10, options.size // 8)):
            beside_headers(folder / name, name, batch_bytes, size)
        make_compacted(folder / "compacted", options.records, options.records // 2)
        measure("compaction", folder / "compacted", lambda: Compaction(COMPACTED, NOW), options.records, "records")
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
