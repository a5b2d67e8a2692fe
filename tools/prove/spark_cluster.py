"""A real standalone cluster of Spark on loopback: a master and workers, each in its own process."""

import os
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyspark

from testing import ROOT

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1"}

T = TypeVar("T")


class Cluster(NamedTuple):
    """Its master's address, its workers, and the archive from which executors get kdump."""

    address: str
    workers: list[subprocess.Popen[bytes]]
    archive: Path

    @property
    def options(self) -> list[str]:
        """The options of ``kdump spark-export`` for this cluster."""
        conf = {
            "spark.submit.pyFiles": str(self.archive),
            "spark.executor.memory": "600m",
            "spark.driver.memory": "600m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
        return ["--master", self.address, *(word for pair in conf.items() for word in ("--conf", "=".join(pair)))]


def wait_for(what: str, seconds: float, happened: Callable[[], T]) -> T:
    """Wait until ``happened`` returns a true value, and return the value."""
    end = time.monotonic() + seconds
    while not (result := happened()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.2)
    return result


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def running(place: Path) -> Iterator[Cluster]:
    """Run a master and two workers with one core each; their logs are in ``place``."""
    archive = place / "kdump.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for package in ("kdump", "pyspark_kdump"):
            for path in (ROOT / package).rglob("*.py"):
                packed.write(path, path.relative_to(ROOT))
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    env = {**os.environ, **LOOPBACK, "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable}
    env.pop("PYTHONPATH", None)  # the executors get kdump from the archive
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, sign: str, *arguments: str) -> subprocess.Popen[bytes]:
        reported = place / f"{name}.log"
        with reported.open("wb") as log:
            command = [str(SPARK_CLASS), f"org.apache.spark.deploy.{name.partition('-')[0]}", *arguments]
            processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=env, cwd=place))
        wait_for(name, 240, lambda: sign in reported.read_text())
        return processes[-1]

    own = ["--host", "127.0.0.1", "--webui-port", "0"]
    try:
        start("master.Master", "Starting Spark master", *own, "--port", str(port))
        workers = []
        for number in (1, 2):
            work = ["--work-dir", str(place / f"work{number}"), "--cores", "1", "--memory", "768m"]
            name = f"worker.Worker-{number}"
            workers.append(start(name, "Successfully registered with master", *own, *work, address))
        yield Cluster(address, workers, archive)
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(60)
