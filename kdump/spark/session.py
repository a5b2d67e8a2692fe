"""Checks Java, PySpark and store clients, starts a Spark session for a command, and runs tasks on its executors."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial, reduce
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kdump.errors import KdumpError, UsageError
from kdump.log_dirs import stores
from kdump.primitives import signals
from kdump.spark.failures import SparkFailedError, errors, try_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark import RDD
    from pyspark.sql import SparkSession


T = TypeVar("T")
R = TypeVar("R")
SAFE_PATH: Final = "PYTHONSAFEPATH"
"""With this variable Python 3.11 and later does not import modules from the current folder."""
OURS: Final = {
    f"spark.executorEnv.{SAFE_PATH}": "1",
    "spark.app.name": "kdump",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # a task keeps a file open for each folder, because sorting the rows would cost as much as writing them
    "spark.sql.maxConcurrentOutputFileWriters": "64",
    # other programs read Spark's default, INT96, as times without a zone
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Settings of a session that the user may override."""
_LOCAL: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Settings that keep a local session from listening on the network."""


LEAST: Final = (4, 0)
"""The first release of PySpark that has data sources in Python (``pyspark.sql.datasource``)."""


def check_version() -> None:
    """Raise KdumpError if PySpark or pyarrow is missing, or PySpark is too old. Imports neither."""
    specs = {name: find_spec(name) for name in ("pyspark", "pyarrow")}
    missing = [name for name, spec in specs.items() if spec is None]
    if missing:
        raise KdumpError(f"{' and '.join(missing)} not installed: pip install 'kdump[spark]'")
    origin = specs["pyspark"].origin if specs["pyspark"] else None
    try:
        text = Path(origin or "").with_name("version.py").read_text("utf-8")
    except OSError:
        return
    found = re.search(r"^__version__\b[^=]*=\s*[\"']((\d+)\.(\d+)[^\"']*)", text, re.MULTILINE)
    if found is not None and (int(found[2]), int(found[3])) < LEAST:
        raise KdumpError(
            f"PySpark {found[1]} is installed, and kdump needs {LEAST[0]}.{LEAST[1]} or later; to get it: "
            "pip install 'kdump[spark]'"
        )


def check() -> None:
    """Raise KdumpError, with the next step, if PySpark, pyarrow or Java is missing, or PySpark is too old.

    The same if SPARK_HOME is not an installation of Spark, unless spark-submit has started this process.
    """
    check_version()
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        where = f"JAVA_HOME ({home})" if home else "PATH, and JAVA_HOME is not set"
        raise KdumpError(
            f"there is no Java in {where}: Spark runs on Java 17 or later "
            "(apt install openjdk-17-jre-headless, dnf install java-17-openjdk-headless, brew install openjdk@17)"
        )
    spark_home = os.environ.get("SPARK_HOME")
    is_started = "PYSPARK_GATEWAY_PORT" in os.environ
    if spark_home and not is_started and not shutil.which("spark-submit", path=str(Path(spark_home) / "bin")):
        raise KdumpError(
            f"SPARK_HOME ({spark_home}) has no program bin/spark-submit: set it to the folder of Spark, or unset it to "
            "use the Spark in PySpark"
        )


def start(master: str, settings: Mapping[str, str], output: SparkOutput | None = None) -> SparkSession:
    """Return a session on ``master``, whose executors run this Python by default; or the process's active session.

    ``output`` collects Spark's own output. If Spark does not start, the output is printed and KdumpError is raised.
    Also raises the errors of :func:`check` and :func:`check_master`.
    """
    check()
    check_master(master)
    _keep_code_out()
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        if not os.environ.get(name):  # PySpark itself reads no setting of these names
            os.environ[name] = settings.get(f"spark.{name.lower().replace('_', '.')}", sys.executable)
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master)
    given = {**OURS, **(_LOCAL if master.startswith("local") else {}), **_of_s3(settings), **settings}
    for name, value in given.items():
        builder = builder.config(name, value)
    try:
        with nullcontext() if output is None else output.redirected():
            spark = builder.getOrCreate()
    except (PySparkException, Py4JError) as reason:
        raise KdumpError(f"Spark does not start on {master}: {reason} Spark's own message is above") from reason
    if "spark.log.level" not in settings:
        spark.sparkContext.setLogLevel("FATAL")  # errors are raised as exceptions
    return spark


def store_settings(spark: SparkSession) -> dict[str, str]:
    """Return a session's Hadoop settings for stores, with the secrets of credential providers.

    Sources: ``spark.hadoop.*``, core-site.xml, and settings made since the start. Hadoop's defaults are left out.
    """
    java: Any = spark.sparkContext._jsc
    hadoop = java.hadoopConfiguration()
    found = {}
    for prefix in stores.PREFIXES:
        for rest in hadoop.getPropsWithPrefix(prefix):
            name = f"{prefix}{rest}"
            if any(source not in _DEFAULTS for source in hadoop.getPropertySources(name) or ()):
                found[name] = hadoop.get(name)
    for name in stores.SECRETS:
        secret = hadoop.getPassword(name)
        if secret is not None:
            found[name] = "".join(secret)
    return found


_DEFAULTS: Final = {"core-default.xml", "hdfs-default.xml"}
_HADOOP: Final = "spark.hadoop."


def use_stores(settings: Mapping[str, str]) -> None:
    """Let this process and its children read stores with ``settings``, unless they already have settings of stores."""
    found = stores.relevant({name.removeprefix(_HADOOP): value for name, value in settings.items()})
    if found:
        os.environ.setdefault(stores.VARIABLE, json.dumps(found))


def configured(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of spark-defaults.conf, overridden by ``settings``."""
    folder = os.environ.get("SPARK_CONF_DIR") or str(Path(os.environ.get("SPARK_HOME") or os.devnull) / "conf")
    try:
        lines = (Path(folder) / "spark-defaults.conf").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    pairs = (re.fullmatch(r"\s*([^#\s=:]+)\s*[=:\s]\s*(.*?)\s*", line) for line in lines)
    return {**{pair[1]: pair[2] for pair in pairs if pair is not None}, **settings}


def _of_s3(settings: Mapping[str, str]) -> dict[str, str]:
    """Return S3A settings from the AWS environment variables that Hadoop's client does not read.

    With the endpoint of a variable, the bucket is a part of the URL's path. With an endpoint outside AWS, the default
    region is us-east-1. PyArrow does the same.
    """
    name = f"{_HADOOP}fs.s3a."
    own = settings.get(f"{name}endpoint")
    endpoint = own or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if endpoint and not region and ".amazonaws.com" not in endpoint:
        region = "us-east-1"
    found = {"endpoint": endpoint, "endpoint.region": region}
    if endpoint and not own:
        found["path.style.access"] = "true"
    return {f"{name}{key}": value for key, value in found.items() if value}


def check_store(path: str, settings: Mapping[str, str]) -> None:
    """Raise KdumpError if Spark has no client for an s3a or abfs path, unless settings add jars or packages."""
    scheme = path.partition("://")[0] if "://" in path else ""
    module = _MODULES.get(scheme)
    if module is None or _BRINGS & {*settings}:
        return
    jars = _jars()
    if any(jar.startswith(f"{module}-") for jar in jars):
        return
    release = next((found[1] for jar in jars if (found := re.match(r"hadoop-client-api-([\d.]+)\.jar", jar))), None)
    if release is not None:
        raise KdumpError(
            f"{path}: Spark has no client for {scheme}; to get it: --packages org.apache.hadoop:{module}:{release}"
        )


def check_writer(name: str, settings: Mapping[str, str]) -> None:
    """Raise UsageError if Spark has no jar or Python package for a name without a dot, unless settings add jars."""
    if "." in name or find_spec(f"pyspark_{name}") or _BRINGS & {*settings}:
        return
    writer = "spark-avro" if name.lower() == "avro" else name  # Spark's own jars hold Avro, but not its writer
    if not any(re.match(rf"{re.escape(writer)}[-_.]", jar, re.IGNORECASE) for jar in _jars()):
        raise UsageError(
            f"--format {name}: Spark itself has no writer of this name; add a package with --packages, or a "
            "jar with --conf spark.jars=FILE"
        )


def _jars() -> list[str]:
    spec = find_spec("pyspark")
    homes = [os.environ.get("SPARK_HOME"), str(Path(spec.origin).parent) if spec and spec.origin else None]
    return [jar.name for home in homes if home for jar in (Path(home) / "jars").glob("*.jar")]


_BRINGS: Final = {"spark.jars", "spark.jars.packages", "spark.driver.extraClassPath"}
"""Settings that may add any client or writer to a session."""
_MODULES: Final = {"s3a": "hadoop-aws", "abfs": "hadoop-azure", "abfss": "hadoop-azure"}
"""Scheme -> the Hadoop module with its client, which Spark's own distribution does not have."""


def _keep_code_out() -> None:
    """Prevent Spark's workers and start scripts from running code in the current folder or its parent.

    ``python -m pyspark.daemon`` imports from the current folder first, unless :data:`SAFE_PATH` is set. PySpark uses a
    parent folder that looks like a Spark installation, unless SPARK_HOME is set.
    """
    os.environ[SAFE_PATH] = "1"
    spec = find_spec("pyspark")
    if not os.environ.get("SPARK_HOME") and spec is not None and spec.origin is not None:
        home = Path(spec.origin).parent
        chosen = [one for one in (home / "spark-distribution", home) if (one / "bin" / "spark-submit").exists()]
        if chosen:
            os.environ["SPARK_HOME"] = str(chosen[0])


class SparkOutput:
    """Spark's own output in a temporary file. Its end is printed after SparkFailedError in a ``with`` block."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  open as long as Spark writes to it
        self._shown = 0
        weakref.finalize(self, self._file.close)

    @contextmanager
    def redirected(self) -> Iterator[None]:
        """In the block, send stdout and stderr, also of children, to the file. After an error, print the file's end."""
        streams = [(number, os.dup(number)) for number in (1, 2)]
        try:
            for number, _ in streams:
                os.dup2(self._file.fileno(), number)
            yield
        except Exception:  # after an interrupt nothing is printed
            self._show(streams[-1][1])
            raise
        finally:
            for number, kept in streams:
                os.dup2(kept, number)
                os.close(kept)
        self._shown = self._size

    @property
    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _show(self, number: int) -> None:
        """Copy the output since the last call, at most its last MOST_SHOWN bytes, to the file descriptor ``number``."""
        first = max(self._shown, self._size - MOST_SHOWN)
        self._shown = self._size
        os.write(number, os.pread(self._file.fileno(), self._shown - first, first))

    def __enter__(self) -> None:
        """Do nothing: only the end of the block matters."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, SparkFailedError):
            self._show(2)


def check_alive(spark: SparkSession) -> None:
    """Raise KdumpError if Spark has ended. An idle driver does not notice this."""
    with errors():
        spark.sparkContext.statusTracker().getActiveStageIds()  # this always calls Java


@contextmanager
def repeated(call: Callable[[], object], seconds: float, name: str) -> Iterator[None]:
    """In the block, a thread with this name calls ``call`` after each pause of ``seconds``."""
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(seconds):
            call()

    thread = threading.Thread(target=repeat, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def watched(spark: SparkSession, what: str, report: Callable[[str, int, int], None]) -> Iterator[None]:
    """Call ``report`` with ``what``, and the finished and all tasks of active stages, twice a second."""
    tracker = spark.sparkContext.statusTracker()

    def watch() -> None:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        tasks = [(stage.numCompletedTasks, stage.numTasks) for stage in stages if stage is not None]
        report(what, sum(task[0] for task in tasks), sum(task[1] for task in tasks))

    report(what, 0, 0)
    with repeated(watch, 0.5, "kdump-progress"):
        yield


@contextmanager
def interruptible(spark: SparkSession) -> Iterator[None]:
    """Cancel all Spark jobs of the session on Ctrl-C and SIGTERM, and wait at most about 10 s until they end.

    PySpark's own handler would call Java while another call to Java is running. That fails and logs stack traces.
    Outside of the main thread this function does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    log = logging.getLogger()
    log.addFilter(_is_no_interrupt)
    try:
        yield
    except (KeyboardInterrupt, signals.EndedBySignal):
        try_to(lambda: _end_jobs(spark))  # the signal may have ended Java too
        raise
    finally:
        log.removeFilter(_is_no_interrupt)
        signal.signal(signal.SIGINT, before)


def awaited(spark: SparkSession, call: Callable[[], T]) -> T:
    """Return the result of ``call``, in which a second thread calls Java and waits for tasks.

    If a signal interrupts a call to Java, the thread's connection keeps the result, and the thread's next call reads
    this wrong result. After a signal the calling thread must cancel the jobs, so it must not wait in a call.
    """

    def activated() -> T:
        # Spark finds data sources written in Python only in a thread with an active session
        spark._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)
        return call()

    pool = ThreadPoolExecutor(1, "kdump-tasks")
    try:
        return pool.submit(activated).result()
    finally:
        pool.shutdown(wait=False)


def _end_jobs(spark: SparkSession) -> None:
    spark.sparkContext.cancelAllJobs()
    for _ in range(_JOB_ENDS):
        if not spark.sparkContext.statusTracker().getActiveJobsIds():
            break
        time.sleep(0.1)


_JOB_ENDS: Final = 100


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not (record.exc_info and record.exc_info[0] is KeyboardInterrupt)


MOST_SHOWN: Final = 1 << 16
_MASTER: Final = re.compile(r"local(\[(\*|0*[1-9]\d*)(,0*[1-9]\d*)?\])?|spark://[^/]+|yarn|k8s://.+")
_ANSWER_SECONDS: Final = 5.0


def check_master(master: str) -> None:
    """Raise UsageError for an unknown master or Spark Connect, KdumpError if no master answers or YARN lacks files."""
    remote = master if master.startswith("sc:") else os.environ.get("SPARK_REMOTE")
    if remote:
        where = "--master" if remote == master else "SPARK_REMOTE"
        raise UsageError(
            f"{where} {remote}: this command does not work with Spark Connect: give the URL of the cluster's "
            'master, or use spark.read.format("kdump") in a session of Spark Connect'
        )
    if _MASTER.fullmatch(master) is None:
        raise UsageError(f"--master {master}: expected local[N], spark://HOST:PORT, yarn or k8s://URL")
    if master == "yarn" and not (os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")):
        raise KdumpError("--master yarn: HADOOP_CONF_DIR or YARN_CONF_DIR must name the folder of Hadoop's settings")
    if master.startswith("spark://"):
        reasons = [_unreachable(address) for address in master.removeprefix("spark://").split(",")]
        if all(reasons):
            raise KdumpError(f"--master {master}: no Spark master answers there ({', '.join(map(str, reasons))})")


def _unreachable(address: str) -> str | None:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS):
            return None
    except (OSError, ValueError) as reason:
        return str(reason)


TASKS: Final = 4
"""Maximum number of Spark tasks per task slot (core). More than one balances uneven tasks."""
FAN: Final = 16
"""The maximum number of merged results for the driver. Executors merge groups of this many adjacent results."""


@dataclass(frozen=True)
class SparkWorkers:
    """:class:`kdump.primitives.processes.Workers` that run tasks on the executors of a session.

    ``report`` is called with the current work, the number of finished tasks, and the number of all tasks. ``output``
    keeps Spark's own output, which is printed only if Spark fails.
    """

    spark: SparkSession
    report: Callable[[str, int, int], None]
    output: SparkOutput | None = None

    @classmethod
    def start(cls, master: str, settings: Mapping[str, str], report: Callable[[str, int, int], None]) -> SparkWorkers:
        """Start Spark on ``master``, with its output kept in a file. Raises UsageError, KdumpError."""
        output = SparkOutput()
        return cls(start(master, settings, output), report, output)

    @property
    def count(self) -> int:
        """Spark's default parallelism, usually the number of tasks that run at the same time."""
        return self.spark.sparkContext.defaultParallelism

    def results(
        self, work: Callable[[T], R], tasks: Sequence[T], merge: Callable[[R, R], R] | None = None
    ) -> Iterator[R]:
        """Yield the result of ``work`` for each task, in order.

        If ``merge`` is given, results of adjacent tasks are merged until at most FAN are left. Tasks run in the current
        folder if it exists on the executor. Raises KdumpError if Spark fails.
        """
        context = self.spark.sparkContext
        with (
            self.output or nullcontext(),
            errors(),
            interruptible(self.spark),
            watched(self.spark, "reading", self.report),
        ):
            spread = context.parallelize(tasks, min(len(tasks), TASKS * self.count))
            done: RDD[Any] = spread.map(partial(_in_folder, work, _here()))
            if merge is not None:
                done = _merged(done, merge)
            found = awaited(self.spark, done.collect)
        yield from found


def _here() -> Path | None:
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _in_folder(work: Callable[[T], R], folder: Path | None, task: T) -> R:
    before = _here()
    _go_to(folder)
    try:
        return work(task)
    finally:
        _go_to(before)


def _go_to(folder: Path | None) -> None:
    if folder is not None:
        with suppress(OSError):
            os.chdir(folder)


def _merged(results: RDD[Any], merge: Callable[[Any, Any], Any]) -> RDD[Any]:
    """Merge adjacent results on the executors until at most FAN are left. ``treeReduce`` would change their order."""

    def one(rows: Iterable[Any]) -> list[Any]:
        held = list(rows)
        return [reduce(merge, held)] if held else []

    results = results.mapPartitions(one)
    while (count := results.getNumPartitions()) > FAN:
        keyed = results.mapPartitionsWithIndex(lambda number, rows: ((number, row) for row in rows))
        rows = keyed.partitionBy(-(-count // FAN), lambda number: number // FAN)
        results = rows.mapPartitions(lambda pairs: one(row for _, row in sorted(pairs, key=lambda pair: pair[0])))
    return results
