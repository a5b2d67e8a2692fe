"""The memory of a dump of a large segment, and whether its time is proportional to the file size:

``python -m bench.memory``. The segment is valid and takes little space on the disk: batches of 1 MiB, each one record
whose value is zeros, so that the file is sparse. The crc of a batch does not cover its base offset: it is the same for
all.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench import runs
from kdump.formats import record_layout
from kdump.records import magic_2

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCH = 1 << 20
LIMIT = 80 << 20
"""Maximum bytes in addition to the interpreter's own."""
RUNS = (["--files"], ["--print-data-log", "--files"], ["dump", "--batches", "-o", "jsonl"])
"""The words of the command, before the path."""


def make(path: Path, size: int) -> None:
    """Write a sparse segment of ``size`` bytes, a multiple of 1 MiB."""
    room = BATCH - record_layout.BATCH_HEADER.size
    value = bytes(room - 20)
    record = magic_2.write_record(timestamp_delta=0, offset_delta=0, key=None, value=value)
    value = bytes(len(value) + room - len(record))
    record = magic_2.write_record(timestamp_delta=0, offset_delta=0, key=None, value=value)
    header = record_layout.BatchHeader(
        0, 0, 0, record_layout.MAGIC_2, 0, 0, 0, 1_700_000_000_000, 1_700_000_000_000, -1, -1, -1, 1
    )
    whole = magic_2.write_batch(header, record)
    front = whole[: len(whole) - len(value) - 1]
    with path.open("wb") as out:
        for number in range(size // BATCH):
            out.seek(number * BATCH)
            out.write(number.to_bytes(8, "big") + front[8:])
        out.truncate(size)


def table(tool: runs.Tool, folder: Path, gib: float = 2.0) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a table, and whether ``gib`` of file and a tenth of it take about the same memory."""
    python = Path(tool.command[0]).with_name("python")
    own = runs.measure(runs.Tool("python", [str(python)], {}), ["-c", "pass"]).peak
    yield f"| run | GiB | s | CPU s | MiB | MiB beyond the interpreter's own ({own >> 20}) |", True
    yield "|---|---|---|---|---|---|", True
    path = folder / "sparse" / f"{0:020}.log"
    path.parent.mkdir(exist_ok=True)
    for size in (gib / 10, gib):
        make(path, int(size * 1024) << 20)
        for words in RUNS:
            taken = runs.measure(tool, [*words, str(path)])
            yield (
                f"| {' '.join(words)} | {size:g} | {taken.wall:.2f} | {taken.cpu:.2f} | {taken.peak >> 20} | "
                f"{taken.peak - own >> 20} |",
                taken.peak - own <= LIMIT,
            )
    path.unlink()


def main() -> int:
    """Print a table; the exit status is 1 if a run takes more than its limit."""
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--gib", type=float, default=10.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = runs.install(Path(__file__).parent / "data" / "venv")
        rows = []
        for text, held in table(runs.kdump("compiled", program), Path(folder), options.gib):
            print(text, flush=True)
            rows.append(held)
    return int(not all(rows))


if __name__ == "__main__":
    sys.exit(main())
