"""Compare the rows of a table that `kdump spark-export --format` writes with `kdump dump -o jsonl`.

    python -m tools.prove.tables [PATH...] [--format delta] [--format iceberg]

Exports the paths (default: golden/brokers/4.2.2) twice, the second time with `--mode append`. Reads the table through
Spark and compares every column of every row with the JSON lines, and the offsets in each commit with theirs. Then the
file of a killed export must stop the next one if the table has its commit, and only then. The writer's jars come from
Maven Central: a release of each is known for the releases of Spark below, others are refused. Needs `mvn`. The exit
status is 1 if anything differs.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark.sql import SparkSession

from kdump.arrow import schema
from kdump.spark.export.output import COMMIT_FACTS
from kdump.spark.session import OURS
from testing import ROOT
from tools import arguments
from tools.prove import spark as prove_spark
from tools.record.fetch_jars import CACHE, gather

JARS: Final = {
    "delta": {
        "4.0": "io.delta:delta-spark_4.0_2.13:4.2.0",
        "4.1": "io.delta:delta-spark_4.1_2.13:4.3.1",
        "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
    },
    "iceberg": {
        "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1",
        "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",
    },
}
"""Format -> release of Spark -> the artifact that has the writer."""


def settings(form: str, place: Path) -> dict[str, str]:
    """Return the settings of a session for a format, without jars that PySpark already has."""
    release = ".".join(pyspark.__version__.split(".")[:2])
    artifact = JARS[form].get(release)
    if artifact is None:
        sys.exit(f"{form}: no jars are known for Spark {release}; there are some for {', '.join(JARS[form])}")
    folder = gather([artifact], CACHE.parent / artifact.replace(":", "_"))
    own = {jar.name.rpartition("-")[0] for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    jars = [str(jar) for jar in folder.glob("*.jar") if jar.name.rpartition("-")[0] not in own]
    given = {"spark.jars": ",".join(jars), "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    if form == "delta":
        given["spark.sql.extensions"] = "io.delta.sql.DeltaSparkSessionExtension"
        given["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    else:
        given["spark.sql.catalog.lake"] = "org.apache.iceberg.spark.SparkCatalog"
        given["spark.sql.catalog.lake.type"] = "hadoop"
        given["spark.sql.catalog.lake.warehouse"] = str(place / "warehouse")
    return given


def commits(spark: SparkSession, form: str, table: str) -> Iterator[dict[str, Any]]:
    """Yield what kdump has written into each commit of a table."""
    if form == "delta":
        texts = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").select(COMMIT_FACTS[form])
    else:
        name = COMMIT_FACTS[form].rpartition(".")[2]
        texts = spark.read.format(form).load(f"{table}.snapshots").selectExpr(f"summary['{name}']")
    yield from (json.loads(text) for (text,) in texts.collect())


def ends_of(paths: list[str]) -> dict[str, tuple[int, int]]:
    """Return the first and last offset of the batches of each partition with a topic."""
    dump = [*prove_spark.MAIN, "dump", "--batches", "-o", "jsonl", "--every-replica", *paths]
    found: dict[str, tuple[int, int]] = {}
    for row in map(json.loads, subprocess.run(dump, cwd=ROOT, capture_output=True, check=False).stdout.splitlines()):
        if row["kind"] == "batch" and row["topic"] is not None:
            name = f"{row['topic']}-{row['partition']}"
            first, last = found.get(name, (row["baseOffset"], row["lastOffset"]))
            found[name] = min(first, row["baseOffset"]), max(last, row["lastOffset"])
    return found


def after_a_kill(command: list[str], account: Path, run: str, place: Path) -> Iterator[str]:
    """Yield what is wrong if an export was killed: after the commit of ``run``, and before any commit."""
    for killed, is_there in ((run, True), ("0" * 32, False)):
        writing = account / "_writing.json"
        writing.write_text(json.dumps({"run": killed, "began": "2026-11-30T10:00:00Z"}))
        done = subprocess.run([*command, "--mode", "append"], cwd=place, capture_output=True, text=True, check=False)
        if is_there != writing.exists() or is_there != ("was killed after the table's commit" in done.stderr):
            yield f"after a kill, {'with' if is_there else 'without'} a commit: {done.returncode}: {done.stderr}"


def prove(form: str, paths: list[str], show: int) -> bool:
    """Export twice, compare, print the figures; return whether all is equal."""
    with tempfile.TemporaryDirectory(prefix="kdump-tables-") as folder:
        place = Path(folder)
        given = settings(form, place)
        table = "lake.db.kafka" if form == "iceberg" else str(place / "kafka")
        command = [*prove_spark.MAIN, "spark-export", *paths, "--out", table, "--format", form, "--master", "local[2]"]
        command += [word for pair in given.items() for word in ("--conf", "=".join(pair))]
        for mode in ("error", "append"):
            done = subprocess.run([*command, "--mode", mode], cwd=place, capture_output=True, text=True, check=False)
            if done.returncode not in (0, 1, 3):
                print(f"{form}: spark-export --mode {mode} ended with {done.returncode}: {done.stderr}")
                return False
        account = place / f"{Path(table).name}.kdump"
        runs = json.loads((account / "_manifest.json").read_text())["runs"]
        dump = [
            *prove_spark.MAIN,
            "dump",
            "-o",
            "jsonl",
            "--show-secrets",
            "--every-replica",
            "--type",
            "data,tombstone",
            *paths,
        ]
        reported = subprocess.run(dump, cwd=ROOT, capture_output=True, check=False).stdout.splitlines()
        lines = [line for line in reported if b'"kind":"record"' in line[:40]]
        spark = SparkSession.builder.master("local[2]").config(map={**OURS, **given}).getOrCreate()
        try:
            found = spark.read.format(form).load(table).select(*schema.RECORD_NAMES).toArrow().to_pylist()
            facts = list(commits(spark, form, table))
        finally:
            spark.stop()
        held = [{name: tuple(of) for name, of in one["offsets"].items() if "/" not in name} for one in facts]
        resumed = list(after_a_kill(command, account, facts[0]["run"], place))
    wrong = [*resumed, *([] if held == [ends_of(paths)] * len(runs) else [f"the commits have the offsets {held}"])]
    wrong += list(prove_spark.differences([line for line in lines for _ in runs], found))
    wrong += [text for run in runs for text in prove_spark.unaccounted(run)]
    wrong += [] if found else ["no row was compared"]
    for text in wrong[:show]:
        print(text)
    print(
        f"{form}, Spark {pyspark.__version__}: {len(runs)} exports, {len(found)} rows in the table, "
        f"{sum(run['rowsWritten'] for run in runs)} in the manifest, {len(lines)} JSON lines, {len(wrong)} differences"
    )
    return not wrong and len(runs) == 2


def main() -> int:
    """Run the proof for each given format."""
    parser = arguments.parser(__doc__, show=5)
    parser.add_argument("paths", nargs="*", default=[str(ROOT / "golden" / "brokers" / "4.2.2")])
    parser.add_argument("--format", action="append", choices=list(JARS))
    given = parser.parse_args()
    paths = [str(Path(path).resolve()) for path in given.paths]
    held = [prove(form, paths, given.show) for form in given.format or ["delta"]]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
