"""Run the store examples of docs/spark/cluster.md unchanged, with a real S3 server and an HDFS.

    python -m tools.prove.store_examples [PATH] [--python PYTHON]

The log dir PATH (default: golden/brokers/4.2.2) is `bucket/broker-1` and `hdfs://namenode:8020/broker-1` of the
examples. Only the addresses of the servers are replaced. PYTHON is that of an environment with `pip install
'kdump[spark]'`, by default this one. Every row of each output must be a JSON line of `kdump dump`, in every column but
`file`. Otherwise the exit status is 1. `tools.prove.stores` lists the requirements of the servers.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pyarrow import dataset

from testing import ROOT
from tools import arguments
from tools.prove import spark as prove_spark
from tools.prove import spark_cluster, stores

PAGE: Final = ROOT / "docs" / "spark" / "cluster.md"


def examples() -> Iterator[list[str]]:
    """Yield the words of each command line with an output in the section about stores."""
    section = PAGE.read_text("utf-8").partition("\n## Stores\n")[2].partition("\n## ")[0]
    for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if "--out" in words:
                yield words


def lines_of(path: Path) -> dict[prove_spark.Place, list[bytes]]:
    """Return the JSON lines of all records of a log dir by partition."""
    dump = [*prove_spark.MAIN, "dump", "-o", "jsonl", "--show-secrets", "--every-replica", "--type", "data,tombstone"]
    done = subprocess.run([*dump, str(path)], cwd=ROOT, capture_output=True, check=False)
    found: dict[prove_spark.Place, list[bytes]] = {}
    for line in done.stdout.splitlines():
        if line.startswith(b'{"kind":"record"'):
            row = json.loads(line)
            found.setdefault((row["topic"], row["partition"]), []).append(line)
    return found


def differences(lines: dict[prove_spark.Place, list[bytes]], out: Path, before: str, after: str) -> Iterator[str]:
    """Yield the differences between the JSON lines of files in ``before`` and the rows, of files in ``after``."""
    for partition, some in lines.items():
        shown = [named(line, before, after) for line in some]
        yield from prove_spark.differences(shown, prove_spark.exported(out, partition))
    files = [str(path) for path in out.rglob("*.parquet") if "_damaged" not in path.parts]
    rows, expected = dataset.dataset(files).count_rows() if files else 0, sum(map(len, lines.values()))
    if rows != expected or not rows:
        yield f"{rows} rows instead of {expected}"


def named(line: bytes, before: str, after: str) -> bytes:
    """Return a JSON line with another path of the file."""
    row = json.loads(line)
    row["file"] = after + row["file"].removeprefix(before)
    return json.dumps(row).encode()


def main() -> int:
    """Run each example, compare, print the figures."""
    parser = arguments.parser(__doc__, show=5)
    parser.add_argument("path", nargs="?", type=Path, default=ROOT / "golden" / "brokers" / "4.2.2")
    parser.add_argument("--python", default=sys.executable)
    given = parser.parse_args()
    lines, wrong = lines_of(given.path), 0
    with tempfile.TemporaryDirectory(prefix="kdump-examples-") as folder:
        place = Path(folder)
        shutil.copytree(given.path, place / "s3" / "bucket" / "broker-1")
        (place / "s3" / "lake").mkdir()
        with stores.Gateway(place / "s3") as s3, stores.Hdfs(place / "hdfs") as hdfs:
            copy = stores.HdfsLake(Path("/broker-1"), hdfs)
            copy.put_all(given.path)
            endpoint = s3.settings["spark.hadoop.fs.s3a.endpoint"]
            env = {**os.environ, **spark_cluster.LOOPBACK, "AWS_ACCESS_KEY_ID": stores.KEY}
            env |= {"AWS_SECRET_ACCESS_KEY": stores.SECRET, "AWS_REGION": stores.REGION, "AWS_ENDPOINT_URL": endpoint}
            for printed in examples():
                words = [
                    word.replace("http://minio:9000", endpoint).replace("hdfs://namenode:8020", hdfs.uri)
                    for word in printed
                ]
                command = [given.python, "-m", *words]
                done = subprocess.run(command, cwd=place, capture_output=True, text=True, env=env, check=False)
                out, source = words[words.index("--out") + 1], words[2]
                if out.startswith("hdfs:"):
                    stores.HdfsLake(Path("/lake"), hdfs).get_all(place / "pulled")
                    found = place / "pulled"
                else:
                    found = place / "s3" / out.removeprefix("s3a://") if out.startswith("s3a:") else place / out
                faults = list(differences(lines, found, str(given.path), source.replace("s3a:", "s3:")))
                if done.returncode not in (0, 3):
                    faults.append(f"it ended with {done.returncode}: {done.stderr[-500:]}")
                for text in faults[: given.show]:
                    print(text)
                rows = sum(map(len, lines.values()))
                print(f"{shlex.join(printed)}: {rows} rows, {len(faults)} differences", flush=True)
                wrong += bool(faults)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
