"""The memory that one valid batch just below ``--max-batch-bytes`` takes: ``python -m bench.batch_memory``.

    python -m bench.batch_memory [--mib N] [--seconds N] [--folder DIR] [-k REGEX]

Every command, output form and the Python API read every shape of batch that is large for its file or its limit. The
table has the MiB of the largest process, and how many times ``--max-batch-bytes`` it needs in addition to the memory
for a small batch. Forms whose limit is lower read a batch just below that limit, and refuse one just below
``--max-batch-bytes``. The exit status is 1 above MOST times, if a command fails or takes more than ``--seconds``, or
if a batch above the limit of a form is not refused.
"""

from __future__ import annotations

import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.runs import ROOT
from kdump.primitives import compression
from testing import forge
from tools import arguments

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

MIB: Final = 1 << 20
MOST: Final = 2.5
"""Maximum memory as a multiple of ``--max-batch-bytes``."""
COLUMNS: Final = r"parquet|arrow|: sql "
"""The lines whose records become columns."""
LOG: Final = f"{0:020}.log"
LIMITED: Final = "--max-batch-bytes {limit}"
FORMS: Final = (
    *("dump {logs}", "dump {logs} -o jsonl", "dump {logs} -o json", "dump {logs} -o csv", "dump {logs} -o table"),
    *("dump {logs} -o raw", "dump {logs} -f %o.%k.%s", "dump {logs} -o jsonl --encoding base64"),
    *("dump {logs} --batches", "dump {logs} --count", "dump {logs} --tail 1", "dump {logs} --grep q+"),
    *("dump {logs} -o jsonl --redact --redact-key {key}", "dump {logs} -o jsonl --no-payload"),
    *("get t-0@0 --in {logs}", "get t-0@0 --in {logs} -o jsonl", "get t-0@0 --in {logs} -o table"),
    *("get t-0@0 --in {logs} --batch", "get t-0@0 --in {logs} --hexdump"),
    *(
        "explain t-0@0 --in {logs}",
        "check {logs}",
        "verify-index {logs}",
        "stats {logs} --records",
        "diff {logs} {logs}",
    ),
    *(
        "offsets {logs} --time 5",
        "producers {logs} --gaps",
        "compaction {logs} --records --config *:cleanup.policy=compact",
    ),
    *("report {logs}", "salvage {logs} --out {out}"),
    *("dump {logs} -o parquet --out {out}", "dump {logs} -o arrow", "dump {logs} -o arrow --grep ^"),
    "dump {logs} -o arrow --header h",
    *("sql 'select sum(octet_length(value)) from records' {logs}", "sql 'select * from records' {logs}"),
    "sql 'select * from records' {logs} -o parquet --out {out}",
    *("sql 'select * from records' {logs} -o csv", "sql 'select * from records' {logs} -o jsonl"),
    *("--files {log}", "--files {log} --print-data-log", "--files {log} --print-data-log --skip-record-metadata"),
)
"""Command lines; the option of the limit is added to each."""
PYTHON: Final = {
    "kdump.open": "for record in log: pass",
    "kdump.open to_arrow": "for batch in log.to_arrow(): pass",
    "kdump.open row": "for record in log: record.row()",
}
"""Python code that uses a ``log``."""


class Peak(NamedTuple):
    """The end of a run: exit status (below 0 a signal), peak of memory in MiB, and processor seconds."""

    status: int
    mib: float
    seconds: float


def value(size: int) -> bytes:
    """One record whose value is ``size`` bytes."""
    return forge.record(b"k", bytes(size))


def tiny(size: int) -> bytes:
    """Records of 7 to 11 bytes, each with its own offset, up to ``size`` bytes."""
    made, total, number = [], 0, 0
    while total < size:
        made.append(forge.record(None, None, offset=number))
        total, number = total + len(made[-1]), number + 1
    return b"".join(made)


def headers(size: int) -> bytes:
    """One record of headers of 3 bytes."""
    count = size // 3
    body = b"\0\0\0" + forge.sized(None) + forge.sized(None) + forge.varint(count) + b"\2h\1" * count
    return forge.varint(len(body)) + body


def batch(name: str, codec: int, size: int) -> bytes:
    """Return a batch of magic 2 whose records take about ``size`` bytes without compression."""
    plain = {"value": value, "tiny": tiny, "headers": headers}[name](size - 4096)
    count = 1
    if name == "tiny":
        count, at = 0, 0
        while at < len(plain):
            count, at = count + 1, at + 1 + (plain[at] >> 1)
    payload = compression.compress(codec, plain) if codec else plain
    covered = struct.pack(">hiqqqhii", codec, count - 1, 0, 0, -1, -1, -1, count) + payload
    return struct.pack(">qiibI", 0, 9 + len(covered), 0, 2, _crc(covered)) + covered


def _crc(data: bytes) -> int:
    from kdump.primitives.crc import crc32c  # forge's own takes minutes for so many bytes

    return crc32c(data)


def message(size: int, magic: int = 1) -> bytes:
    """A message without compression."""
    return forge.entry(0, forge.message(magic, b"k", bytes(size - 4096)))


def wrapper(codec: int, size: int, each: int, magic: int = 1) -> bytes:
    """A wrapper around messages with values of ``each`` bytes."""
    body = forge.message(magic, None, bytes(each))
    count = max(1, (size - 4096) // len(forge.entry(0, body)))
    return around(codec, b"".join(forge.entry(number, body) for number in range(count)), count - 1, magic)


def around(codec: int, inner: bytes, last: int, magic: int = 1) -> bytes:
    """A wrapper around a set of messages."""
    packed = compression.compress(codec, inner, magic=magic)
    covered = struct.pack(">bb", magic, codec) + bytes(8 * magic) + struct.pack(">ii", -1, len(packed)) + packed
    return forge.entry(last, struct.pack(">I", zlib.crc32(covered)) + covered)


def nested(size: int) -> bytes:
    """A wrapper in a wrapper, which no client writes."""
    return around(compression.GZIP, wrapper(compression.GZIP, size, size - 8192), 0)


CODECS: Final = {name: code for code, name in enumerate(compression.NAMES)}
SHAPES: Final[dict[str, Callable[[int], bytes]]] = {
    **{f"value {name}": lambda size, code=code: batch("value", code, size) for name, code in CODECS.items()},
    "magic 0 value": lambda size: message(size, magic=0),
    "magic 0 wrapper lz4": lambda size: wrapper(compression.LZ4, size, size - 8192, magic=0),
    "wrapper in a wrapper": nested,
    "tiny records none": lambda size: batch("tiny", 0, size),
    "tiny records zstd": lambda size: batch("tiny", compression.ZSTD, size),
    "headers none": lambda size: batch("headers", 0, size),
    "headers zstd": lambda size: batch("headers", compression.ZSTD, size),
    "magic 1 value": message,
    "magic 1 wrapper gzip": lambda size: wrapper(compression.GZIP, size, size - 8192),
    "magic 1 wrapper snappy": lambda size: wrapper(compression.SNAPPY, size, size - 8192),
    "magic 1 wrapper lz4": lambda size: wrapper(compression.LZ4, size, size - 8192),
    "magic 1 wrapper of tiny": lambda size: wrapper(compression.GZIP, size, 0),
}


LAUNCH: Final = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2)
nothing = os.open(os.devnull, os.O_RDWR)
actions = [(os.POSIX_SPAWN_DUP2, nothing, number) for number in range(3)]
_, status, used = os.wait4(os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ, file_actions=actions), 0)
print(os.waitstatus_to_exitcode(status), used.ru_maxrss, used.ru_utime + used.ru_stime)
"""
"""Runs a command without its output and measures it.

The peak of a process includes that of its parent, so the parent must be small.
"""


def run(command: list[str], seconds: int) -> Peak:
    """Run a command without its output."""
    launch = [sys.executable, "-S", "-c", LAUNCH, str(seconds), *command]
    done = subprocess.run(launch, cwd=ROOT, capture_output=True, text=True, check=True)
    status, kib, took = done.stdout.split()
    return Peak(int(status), int(kib) / 1024, float(took))


def command_of(form: str, words: dict[str, str]) -> list[str]:
    if form in PYTHON:
        text = f"import kdump\nlog = kdump.open({words['logs']!r}, max_batch_bytes={words['limit']})\n{PYTHON[form]}"
        return [sys.executable, "-c", text]
    return [sys.executable, "-m", "kdump", *shlex.split(f"{form} {LIMITED}".format(**words))]


def peak(
    root: Path, name: str, make: Callable[[int], bytes], form: str, size: int, options: argparse.Namespace
) -> Peak:
    """Run a form over a shape of ``size`` bytes."""
    log = root / f"{name.replace(' ', '-')}-{size}" / "t-0" / LOG
    if not log.exists():
        log.parent.mkdir(parents=True)
        log.write_bytes(make(size))
    out = Path(tempfile.mkdtemp(dir=root), "out")
    words = {"limit": f"{options.mib * MIB}", "key": f"{root}/key", "log": f"{log}", "logs": f"{log.parent}"}
    try:
        return run(command_of(form, words | {"out": f"{out}"}), options.seconds)
    finally:
        shutil.rmtree(out.parent)


def divisor(name: str, line: str) -> int:
    """Return by how much the limit of a form is lower than ``--max-batch-bytes`` for a shape."""
    form = "sql" if ": sql " in line else "parquet" if "parquet" in line else ""
    return compression.COPIES.get(form, 1) * (4 if name.startswith("headers") and re.search(COLUMNS, line) else 1)


def main() -> int:
    parser = arguments.parser(__doc__)
    parser.add_argument("--mib", type=int, default=64, help="the limit (default: 64)")
    parser.add_argument("--seconds", type=int, default=60, help="most processor time of a run (default: 60)")
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    parser.add_argument("-k", default="", help="only lines 'SHAPE: COMMAND' that this regular expression finds")
    options = parser.parse_args()
    limit, wrong = options.mib * MIB, 0
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        root = Path(temporary)
        (root / "key").write_bytes(bytes(32))
        for name, make in SHAPES.items():
            wanted = [form for form in (*FORMS, *PYTHON) if re.search(options.k, f"{name}: {form}")]
            if not wanted:
                continue
            for form in wanted:
                line = f"{name}: {form}"
                part = divisor(name, line)
                small, large = (peak(root, name, make, form, size, options) for size in (64 << 10, limit // part))
                rows = [(large, line, small.status)]
                if part > 1:
                    rows.append(
                        (peak(root, name, make, form, limit, options), f"{line} (refused)", 0 if form in PYTHON else 3)
                    )
                for end, text, status in rows:
                    times = (end.mib - small.mib) / options.mib
                    bad = times > MOST or end.status != status
                    wrong += bad
                    more = "" if end.status == status else f"  ended with {end.status} (expected {status})"
                    mark = "!" if bad else " "
                    print(f"{mark} {end.mib:7.0f} MiB {times:5.2f} x {end.seconds:6.1f} s  {text}{more}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
