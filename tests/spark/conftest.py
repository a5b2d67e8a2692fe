"""Java loads Spark from an archive of its classes, which halves the processor time of a new driver."""

import fcntl
import os
import shutil
import subprocess
import sys
from functools import cache

import pytest

from testing import GOLDEN, ROOT
from testing.spark_java import BRIEF_JAVA, archive, java_options


@pytest.fixture(autouse=True)
def archived_classes(request, monkeypatch):
    """Pass the archive to Java. A test that starts drivers makes it, unless an earlier run has made it."""
    pytest.importorskip("pyspark")
    mark = request.node.get_closest_marker("xdist_group")
    if mark is not None and mark.args == ("spark-processes",) and shutil.which("java"):
        made()
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", java_options())
    monkeypatch.setenv("SPARK_DAEMON_JAVA_OPTS", java_options())


@cache
def made():
    """Make the archive of the classes that an export loads, once for all processes."""
    archive().parent.mkdir(exist_ok=True)
    with archive().with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if archive().exists():
            return
        new, out = archive().with_suffix(".new"), archive().with_suffix(".out")
        shutil.rmtree(out, ignore_errors=True)
        words = ["spark-export", GOLDEN / "brokers/4.2.2/txn-0", "--out", out, "--master", "local[2]"]
        env = {**os.environ, "SPARK_SUBMIT_OPTS": f"{BRIEF_JAVA} -XX:ArchiveClassesAtExit={new} -Xlog:cds=error"}
        # Java writes the archive after kdump has ended. It keeps the pipe open until then, where it prints to the pipe.
        code = (
            "from contextlib import nullcontext\nfrom kdump.__main__ import run\n"
            "from kdump.spark.session import SparkOutput\nSparkOutput.redirected = lambda _: nullcontext()\nrun()"
        )
        subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, env=env, check=True, capture_output=True)
        shutil.rmtree(out)
        new.rename(archive())
