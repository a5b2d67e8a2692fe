"""Speed and memory of the answering commands that need only headers, compared with `kdump check --headers-only`.

    python -m bench.answers [--size MIB] [--batch BYTES]

It makes a log of transactions (1 GiB by default): batches of BYTES (16 KiB) in transactions of 10. Every fourth is
aborted, and the last is open. Processor seconds are the best of three, in one process; memory is the most that Python
held at a time, for this log and for one of a quarter of its size.
"""

from __future__ import annotations

import struct
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kdump.answers.log_dir_pass import LogDirPass
from kdump.answers.offsets import Offsets
from kdump.answers.producers import Producers
from kdump.answers.transactions import Transactions, ended
from kdump.checks import whole_partition
from kdump.checks.log_dir import LogDirs
from kdump.errors import Reporter
from kdump.formats import record_layout
from kdump.log_dirs.finder import Finder, Wanted
from kdump.records import control, magic_2
from tools import arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.answers.collector import Collector
    from kdump.log_dirs.partition import Partition

RECORDS: Final = 100
IN_A_TRANSACTION: Final = 10
START: Final = 1_700_000_000_000


def make(folder: Path, size: int, batch_bytes: int) -> None:
    """Write the log; ten producers alternate."""
    folder.mkdir(parents=True)
    value = bytes(max(0, batch_bytes // RECORDS - 12))
    records = b"".join(
        magic_2.write_record(timestamp_delta=n, offset_delta=n, key=None, value=value) for n in range(RECORDS)
    )
    with (folder / f"{0:020}.log").open("wb") as out:
        offset = written = number = 0
        while written < size:
            for turn in range(IN_A_TRANSACTION):
                sequence = (number // 10 * IN_A_TRANSACTION + turn) * RECORDS % (1 << 30)
                written += out.write(_batch(offset, records, number % 10, RECORDS, sequence))
                offset += RECORDS
            number += 1
            if written < size:
                kind = control.COMMIT if number % 4 else control.ABORT
                key, end = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 1)
                marker = magic_2.write_record(timestamp_delta=0, offset_delta=0, key=key, value=end)
                written += out.write(_batch(offset, marker, (number - 1) % 10, 1, -1))
                offset += 1


def _batch(offset: int, records: bytes, producer: int, count: int, sequence: int) -> bytes:
    attributes = record_layout.TRANSACTIONAL_FLAG | (record_layout.CONTROL_FLAG if sequence < 0 else 0)
    stamp = START + offset
    header = record_layout.BatchHeader(
        offset, 0, 0, 2, 0, attributes, count - 1, stamp, stamp + count - 1, producer, 0, sequence, count
    )
    return magic_2.write_batch(header, records)


def check(partition: Partition) -> None:
    whole_partition.check(partition, whole_partition.CheckOptions(records=False), LogDirs())


def gather(collector: Callable[[], Collector]) -> Callable[[Partition], None]:
    """Return the function that passes a partition to a collector."""

    def run(partition: Partition) -> None:
        made = collector()
        _reader([made]).run([partition])
        if not sum(1 for _ in made.answer(START)):
            sys.exit("there is no answer")

    return run


def list_ended(partition: Partition) -> None:
    """List all transactions, as --all does."""
    ids = Transactions(Wanted()).ids
    if not sum(1 for _ in ended(_reader([]), [partition], ids, START)):
        sys.exit("there is no answer")


def _reader(collectors: list[Collector]) -> LogDirPass:
    def fail(text: object) -> None:
        sys.exit(f"the log is not healthy: {text}")

    return LogDirPass(collectors, Reporter(damage=fail, fail=fail))


MEASURED: Final[dict[str, Callable[[Partition], None]]] = {
    "check --headers-only": check,
    "offsets": gather(Offsets),
    "transactions": gather(lambda: Transactions(Wanted())),
    "transactions --all": list_ended,
    "producers": gather(Producers),
    "producers --gaps": gather(lambda: Producers(gaps=True)),
}


def seconds(run: Callable[[Partition], None], partition: Partition) -> float:
    """Return processor seconds, the best of three."""
    found = []
    for _ in range(3):
        began = time.process_time()
        run(partition)
        found.append(time.process_time() - began)
    return min(found)


def memory(run: Callable[[Partition], None], partition: Partition) -> float:
    """Return Python's peak of memory, in MiB."""
    tracemalloc.start()
    run(partition)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / (1 << 20)


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("--size", type=int, default=1024, metavar="MIB")
    parser.add_argument("--batch", type=int, default=16384, metavar="BYTES")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for part, divisor in (("small", 4), ("large", 1)):
            make(Path(temporary, part, "bench-0"), (options.size << 20) // divisor, options.batch)
        small, large = (next(Finder().find([str(Path(temporary, part))])) for part in ("small", "large"))
        base = None
        for what, run in MEASURED.items():
            took = seconds(run, large)
            base = base or took
            held = (
                ""
                if run is check
                else f"{memory(run, small):6.1f} MiB of a quarter, {memory(run, large):6.1f} MiB of all"
            )
            rate = large.size / took / 1e9
            print(f"{what:22} {took:7.2f} s  {rate:6.2f} GB/s  {took / base:5.2f} times check  {held}", flush=True)


if __name__ == "__main__":
    main()
