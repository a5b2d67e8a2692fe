"""The source in a session of Spark Connect, whose server is a separate process."""

import json
import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
pytest.importorskip("grpc_status", reason="Spark Connect's client is not installed: pip install 'pyspark[connect]'")

from testing import GOLDEN, ROOT
from testing.processes import kdump

BROKER = GOLDEN / "brokers" / "4.2.2"
CLIENT = """
import json, sys
from pyspark.sql import SparkSession
from kdump.spark_source import register

broker, place = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
found = {"module": type(spark).__module__, "itself": spark.read.format("kdump").load(f"{broker}/c-zstd-0").count()}
register(spark)
for output in ("records", "damaged", "batches", "findings"):
    found[output] = spark.read.format("kdump").option("output", output).load(broker).count()
frame = spark.readStream.format("kdump").load(f"{broker}/c-zstd-0").select("offset")
for _ in range(2):
    writer = frame.writeStream.format("parquet").option("checkpointLocation", f"{place}/checkpoint")
    writer.trigger(availableNow=True).start(f"{place}/out").awaitTermination()
found["stream"] = sorted(row.offset for row in spark.read.parquet(f"{place}/out").collect())
print(json.dumps(found))
spark.stop()
"""


@pytest.mark.xdist_group("spark-processes")
def test_a_session_of_spark_connect_has_the_source_with_all_outputs_and_streams(tmp_path):
    if shutil.which("java") is None:
        pytest.skip("Java is not installed: Spark needs Java 17 or later")
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", CLIENT, BROKER, tmp_path]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert ".connect." in found["module"]
    assert found["stream"] == list(range(224))
    assert (found["itself"], found["damaged"]) == (224, 0)

    def lines(*command):
        return len(kdump(*command, "-o", "jsonl", BROKER).stdout.splitlines())

    assert found["records"] == lines("dump", "--type", "data,tombstone")
    assert found["batches"] == lines("dump", "--batches")
    assert found["findings"] == lines("check") - 1  # the last line is the summary
