"""The message of a Python without kdump that receives a reader of the source."""

import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
from pyspark import cloudpickle

from kdump.spark.source.data_source import KdumpDataSource
from testing import GOLDEN

BROKER = GOLDEN / "brokers" / "4.2.2"
UNPICKLE = "import pickle, sys; sys.modules.update(dict.fromkeys(sys.argv[1:])); pickle.load(sys.stdin.buffer)"


def readers(**options):
    source = KdumpDataSource({"path": str(BROKER), **options})
    return [source, source.reader(None), source.streamReader(None)]


def test_they_are_the_same_on_the_other_side():
    for reader in readers(topic="multi"):
        again = cloudpickle.loads(cloudpickle.dumps(reader))
        assert type(again) is type(reader)
        assert vars(again) == vars(reader)


def test_what_is_missing_is_reported_with_the_python_and_its_host():
    for reader in readers():
        command = [sys.executable, "-c", UNPICKLE, "kdump"]
        done = subprocess.run(command, input=cloudpickle.dumps(reader), capture_output=True, check=False)
        last = done.stderr.decode().splitlines()[-1]
        assert last.startswith(f"ModuleNotFoundError: {sys.executable} on "), done.stderr.decode()
        assert " has no kdump: pip install 'kdump[spark]' there" in last
