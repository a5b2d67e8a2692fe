"""Compare the rows that Spark exports with `kdump dump -o jsonl`, record by record.

    python -m tools.prove.spark [PATH...] [--master local[2] --master cluster] [--show 5]

Exports the paths (default: golden/) on each master. `cluster` is a standalone one on loopback with two workers.
Compares every column of every row with the JSON lines of `kdump dump --type data,tombstone`: bytes, headers, nulls,
timestamps, outcomes of transactions, marks. The manifest's bytes must sum to each file's size. Folders without a
segment are listed and left out. The exit status is 1 if anything differs, or if there was no row to compare.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyarrow import dataset

from kdump.arrow import schema
from testing import ROOT
from tools import arguments
from tools.prove import spark_cluster

MAIN = [sys.executable, "-m", "kdump"]
WORDS = {"CreateTime": 0, "LogAppendTime": 1, None: None}
MARKS = ("aboveHighWatermark", "belowLogStart")
"""Columns that are False or null in Spark and absent in JSON."""

Row = dict[str, Any]
Place = tuple[str | None, int | None]
"""A topic and the number of a partition, null as in the rows."""


def decoded(text: str | None, encoding: str | None) -> bytes | None:
    """Return the bytes of a text in a JSON line."""
    if text is None:
        return None
    return {"hex": bytes.fromhex, "base64": base64.b64decode}.get(encoding or "", str.encode)(text)


def of_line(line: bytes) -> Row:
    """Return a JSON line in the form for the comparison."""
    reported = json.loads(line)
    row = {field.name: reported.get(field.name) for field in schema.RECORDS}
    row["key"] = decoded(reported["key"], reported.get("keyEncoding"))
    row["value"] = decoded(reported["value"], reported.get("valueEncoding"))
    row["headers"] = [
        {"key": item["key"], "value": decoded(item["value"], item.get("encoding"))} for item in reported["headers"]
    ]
    row["timestampType"] = WORDS[reported["timestampType"]]
    return row | {mark: bool(row[mark]) for mark in MARKS}


def of_spark(row: Row) -> Row:
    """Return a row of an export in the form for the comparison."""
    time = row["timestamp"]
    shown = None if time is None else time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return row | {"timestamp": shown} | {mark: bool(row[mark]) for mark in MARKS}


def place(row: Row) -> tuple[Any, ...]:
    """Return the sort key of a row: damaged files may have an offset more than once."""
    return (row["file"], row["position"], row["offset"], row["sequence"] or 0, repr(row["key"]), repr(row["value"]))


def differences(lines: Iterable[bytes], rows: Iterable[Row]) -> Iterator[str]:
    """Yield the differences between JSON lines and rows of an export."""
    expected = sorted((of_line(line) for line in lines), key=place)
    found = sorted(map(of_spark, rows), key=place)
    at = 0
    for row in expected:
        while at < len(found) and place(found[at]) < place(row):
            yield f"only in Spark: {place(found[at])}"
            at += 1
        if at == len(found) or place(found[at]) != place(row):
            yield f"not in Spark: {place(row)}"
            continue
        for name, value in row.items():
            if value != found[at][name]:
                yield f"{place(row)}: {name} is {found[at][name]!r}, in the JSON lines {value!r}"
        at += 1
    for row in found[at:]:
        yield f"only in Spark: {place(row)}"


def exported(out: Path, where: Place | None = None) -> list[Row]:
    """Return the rows of an export, or of one topic and partition in it, read by pyarrow alone."""
    files = [str(path) for path in out.rglob("*.parquet") if "_damaged" not in path.parts]
    if not files:
        return []
    only = None
    for name, value in zip(("topic", "partition"), where or (), strict=False):
        column = dataset.field(name)
        here = column.is_null() if value is None else column == value
        only = here if only is None else only & here
    rows: list[Row] = dataset.dataset(files).to_table(columns=list(schema.RECORD_NAMES), filter=only).to_pylist()
    return rows


def unaccounted(manifest: Row) -> Iterator[str]:
    """Yield the files whose bytes do not add up to their size."""
    for file in manifest["files"]:
        reported, size = sum(file["bytes"].values()), Path(file["file"]).stat().st_size
        if not reported == file["size"] == size:
            yield f"{file['file']}: {reported} bytes are accounted for, {size} are there"


def with_segments(paths: list[str]) -> list[str]:
    """Return the files, and the folders with segments."""
    found = []
    for path in paths:
        if Path(path).is_dir() and next(Path(path).rglob("*.log"), None) is None:
            print(f"{path} holds no segment and is left out")
        else:
            found.append(path)
    return found


@contextmanager
def _options(master: str, place: Path) -> Iterator[list[str]]:
    if master == "cluster":
        with spark_cluster.running(place) as cluster:
            yield cluster.options
    else:
        yield ["--master", master]


def prove(paths: list[str], master: str, lines: list[bytes], show: int) -> bool:
    """Export on one master, compare, print the figures; return whether all is equal."""
    with tempfile.TemporaryDirectory(prefix="kdump-spark-") as folder:
        out = Path(folder) / "out"
        with _options(master, Path(folder)) as options:
            command = [*MAIN, "spark-export", *paths, "--out", str(out), "--partition-by", "none", *options]
            env = {**os.environ, **spark_cluster.LOOPBACK}
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=env, check=False)
        if done.returncode not in (0, 1, 3):
            print(f"{master}: spark-export ended with {done.returncode}: {done.stderr}")
            return False
        rows = exported(out)
        (run,) = json.loads((out / "_manifest.json").read_text())["runs"]
    found = [*differences(lines, rows), *unaccounted(run), *([] if rows else ["no row was compared"])]
    for text in found[:show]:
        print(text)
    totals = run["totals"]
    print(
        f"{master}: {len({Path(file['file']).parent for file in run['files']})} folders, {totals['files']} segments, "
        f"{totals['size']} bytes, {totals['damagedRanges']} damaged ranges, {len(rows)} rows, "
        f"{len(lines)} JSON lines, {len(found)} differences"
    )
    return not found


def main() -> int:
    """Run the proof on each given master."""
    parser = arguments.parser(__doc__, show=5)
    parser.add_argument("paths", nargs="*", default=[str(ROOT / "golden")])
    parser.add_argument("--master", action="append", help="local[N], a master's URL, or cluster")
    given = parser.parse_args()
    paths = with_segments([str(Path(path).resolve()) for path in given.paths])
    if not paths:
        sys.exit("there is nothing to compare")
    dump = [*MAIN, "dump", "-o", "jsonl", "--show-secrets", "--every-replica", "--type", "data,tombstone", *paths]
    done = subprocess.run(dump, cwd=ROOT, capture_output=True, check=False)
    if done.returncode not in (0, 1, 3, 4):
        sys.exit(done.stderr.decode())
    lines = [line for line in done.stdout.splitlines() if b'"kind":"record"' in line[:40]]
    held = [prove(paths, master, lines, given.show) for master in given.master or ["local[2]", "cluster"]]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
