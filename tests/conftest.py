"""A Spark session for all tests of a process that need it, and what the tests of several rooms share."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tarfile
import threading
import warnings
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import pytest

from kdump.arrow import files as arrow_files
from kdump.parallel.chunks import _ChunkThreads
from kdump.primitives import threads as process_threads
from testing import GOLDEN, ROOT
from testing.spark_java import BRIEF_JAVA, java_options

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


arrow_files.small_arrow = lambda: None  # a command that runs in this process would block imports of later tests

# A test run in the background of a script inherits an ignored SIGINT, under nohup an ignored SIGHUP: so would kdump.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

os.environ["KDUMP_PAGER"] = ""  # a pager would wait for a key
os.environ |= {"SPARK_SUBMIT_OPTS": BRIEF_JAVA, "SPARK_DAEMON_JAVA_OPTS": BRIEF_JAVA}

# Tests start kdump more than a thousand times: compiled once, it starts in a quarter of the time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_configure(config):
    if getattr(config.option, "dist", "no") == "load":  # of a controller: "loadgroup" alone minds groups
        config.option.dist = "loadgroup"
    if hasattr(config, "workerinput"):  # which does not pass it to its workers
        config.option.loadgroup = True
    if not config.pluginmanager.hasplugin("xdist"):
        config.addinivalue_line("markers", "xdist_group(name): the tests that one process runs")
    with suppress(PackageNotFoundError):
        if version("pyspark") < "4.2":  # it leaves its sockets to the garbage collector
            unclosed = "Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
            config.addinivalue_line("filterwarnings", f"ignore:{unclosed}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One process more than processors, because tests of Spark wait for Java half of their time."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Let two processes with a Spark session each run the tests of Spark: one would end long after all others.

    The few modules of the first group take as long as all of the second.
    """
    for item in items:
        if "spark" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group("spark-1" if item.path.name < "test_f" else "spark-2"))
    if hasattr(config, "workerinput"):
        from tests.helpers.scheduling import in_order

        items[:] = in_order(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Exclude what is collected from garbage collection, meanwhile and later, also in forked processes."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.option.dist != "loadgroup":
        return None
    from tests.helpers.scheduling import ModuleScheduling

    return ModuleScheduling(config, log)


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    """Let threads read ahead, even after a command with --jobs 1 ran in this process."""
    monkeypatch.setattr(process_threads, "_allowed", True)


@pytest.fixture
def begun(monkeypatch):
    """Return the crews whose threads have started to make chunks."""
    threads = []
    run = _ChunkThreads._run

    def noted(workers):
        threads.append(workers)
        run(workers)

    monkeypatch.setattr(_ChunkThreads, "_run", noted)
    return threads


def java_is_missing() -> str:
    """Return the reason why Spark cannot run here, or an empty text."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        return "Java is not installed: Spark needs Java 17 or later"
    return ""


@pytest.fixture(scope="session")
def consumed(tmp_path_factory):
    """A folder with the log dir of a broker, and what a consumer received from it at each isolation level."""
    folder = tmp_path_factory.mktemp("consumed")
    with tarfile.open(GOLDEN / "consumed.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="session")
def registries(tmp_path_factory):
    """The folder of both clusters: NAME/logs is a log dir, NAME/truth.jsonl the recorded answers."""
    folder = tmp_path_factory.mktemp("registries")
    with tarfile.open(GOLDEN / "registries.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="session")
def spark(tmp_path_factory) -> Iterator:
    """A small session on two cores, whose workers use this Python and this checkout."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
    if reason := java_is_missing():
        pytest.skip(reason)
    from pyspark.sql import SparkSession

    place = tmp_path_factory.mktemp("spark")
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ |= {
        "SPARK_SUBMIT_OPTS": java_options(),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "faulty"), path]),  # of the workers, not of the tests
        "KDUMP_TEST_FAULTS": str(place / "faults.json"),
    }
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "America/St_Johns",
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.local.dir": str(place),
        "spark.log.level": "ERROR",
        # Queries of few rows: Spark would write and compile Java code for longer than it runs. Other processes do it.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    builder = SparkSession.builder.master("local[2]").appName("kdump tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # py4j leaves a socket to the garbage collector
        session = builder.getOrCreate()
        os.environ["PYTHONPATH"] = path
        yield session
        session.stop()


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of the archives of verdicts and of healthy log dirs."""
    place = tmp_path_factory.mktemp("cases")
    for name in ("verdict", "healthy"):
        with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
            archive.extractall(place, filter="tar")
    return place


@pytest.fixture(params=[0, 1])
def few_threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[threading.Thread]]:
    """Let at most a number of threads start; return the number, and the list of started threads."""
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def sparing(thread: threading.Thread) -> None:
        if len(started) == request.param:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", sparing)
    return request.param, started
