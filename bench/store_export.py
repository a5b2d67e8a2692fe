"""How fast `kdump spark-export` writes to S3 and HDFS, compared with a local disk and the store's own limit.

    python -m bench.store_export [--records 2000000] [--partitions 4] [--runs 5] [--cores 2]

Each partition is one segment of that many records, read from the local disk. The exports run in turns in one warm
session. The limit of a store is the time in which as many threads as cores write the same files into it, and nothing
else; S3 then copies each file to its final path by itself, because it cannot rename. The S3 server and the HDFS run on
this machine, on the same processors. The table goes to bench/RESULTS-spark.md.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Final

from bench import segments
from bench.spark import RESULTS, machine, put_section, say, timed
from kdump.log_dirs.remote import RemoteFiles
from kdump.spark import session
from kdump.spark.export import job
from tools import arguments
from tools.prove import stores

TITLE: Final = "## Exports into stores"
LOCAL: Final = "a local disk"
SHARE: Final = 0.8


def export(logs: Path, out: str, master: str, conf: dict[str, str]) -> None:
    """Run ``kdump spark-export`` in the current session."""
    asked = job.Export(paths=(str(logs),), out=out, options={}, master=master, conf=conf)
    job.run(asked, job.Listener(lambda _: None, lambda *_: None))


def copy(files: list[Path], place: tuple[RemoteFiles, str], threads: int, *, again: bool) -> None:
    """Copy files into a store, ``again`` from there to a second path."""
    system, folder = place[0]._system, place[1]

    def put(path: Path) -> None:
        with system.open_output_stream(f"{folder}-{path.name}") as out:  # a store may lack folders
            out.write(path.read_bytes())
        if again:
            system.copy_file(f"{folder}-{path.name}", f"{folder}-final-{path.name}")

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(put, files))


def main() -> None:
    parser = arguments.parser(__doc__, records=2_000_000, partitions=4, runs=5, cores=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    rows = f"{given.partitions} partitions of {given.records:,} records (key of 10 bytes, value of some 105)"
    head = machine(f"{rows}, medians of {given.runs}")
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="kdump-bench-") as folder:
        place = Path(folder)
        segment = segments.make(place, segments.SHAPES["none"], given.records)
        for number in range(given.partitions):
            (place / "logs" / f"orders-{number}").mkdir(parents=True)
            os.link(segment, place / "logs" / f"orders-{number}" / f"{0:020}.log")
        (place / "s3" / "lake").mkdir(parents=True)
        with stores.Gateway(place / "s3") as s3, stores.Hdfs(place / "hdfs") as hdfs:
            conf = {**s3.settings, "spark.jars": stores.s3_jars()}
            master = f"local[{given.cores}]"
            spark = session.start(master, conf)
            session.use_stores(conf)
            outs = {LOCAL: str(place / "out"), "S3": "s3a://lake/out", "HDFS": f"{hdfs.uri}/out"}
            try:
                for number in range(given.runs + 1):
                    for name, out in outs.items():
                        new = f"{out}-{number}"
                        took = timed(lambda new=new: export(place / "logs", new, master, conf))  # type: ignore[misc]  # bound at once
                        seconds.setdefault(name, []).append(took)
                        say(f"{name}: {took:.2f} s{' (warm-up)' if not number else ''}")
                files = list((place / "out-0").rglob("*.parquet"))
                size = sum(path.stat().st_size for path in files)
                for name, out in outs.items():
                    if name != LOCAL:
                        target = RemoteFiles.of(f"{out}-copy")
                        seconds[f"{name} alone"] = [
                            timed(lambda t=target, s3=name == "S3": copy(files, t, given.cores, again=s3))  # type: ignore[misc]  # the same
                            for _ in range(3)
                        ]
            finally:
                spark.stop()
        shutil.rmtree(place / "logs")
    lines = [
        TITLE,
        "",
        "`python -m bench.store_export` writes this section. The servers run on the same processors.",
        head,
        "",
        f"| Into | s | rate, beside {LOCAL} | the store alone, s | rate with the store's work only |",
        "|---|---|---|---|---|",
    ]
    local = median(seconds[LOCAL][1:])
    for name in outs:
        took = median(seconds[name][1:])
        alone = median(seconds[f"{name} alone"]) if name != LOCAL else 0.0
        limit = f"{alone:.2f} | {local / (local + alone):.2f}" if alone else "|"
        lines.append(f"| {name} | {took:.2f} | {local / took:.2f} | {limit} |")
    lines += ["", f"{size / 2**20:.0f} MiB in {len(files)} files. The aim is {SHARE}, or the store's own limit."]
    put_section(given.out, "\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
