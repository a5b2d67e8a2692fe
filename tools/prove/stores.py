"""Real stores on loopback, for proofs: an S3 server (versitygw) over a folder, and an HDFS of one node.

The S3 server is a program of Go: `go install github.com/versity/versitygw/cmd/versitygw@v1.8.0`. Maven Central has the
jars of the HDFS, and of Spark's client for S3. Both servers keep their files when they are restarted.
"""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

from tools.prove.broker import starting
from tools.record.fetch_jars import CACHE, gather

KEY, SECRET, REGION = "kdumpkey", "kdumpsecret", "us-east-1"
GO_BIN: Final = Path.home() / "go" / "bin" / "versitygw"
HADOOP: Final = "3.5.0"
"""The release of Hadoop in PySpark 4.3."""
HDFS_JARS: Final = (
    f"org.apache.hadoop:hadoop-client-minicluster:{HADOOP}",
    f"org.apache.hadoop:hadoop-client-api:{HADOOP}",
    f"org.apache.hadoop:hadoop-client-runtime:{HADOOP}",
    "junit:junit:4.13.2",
    "org.mockito:mockito-core:4.11.0",
    "org.slf4j:slf4j-simple:1.7.36",
)
PATIENCE: Final = 120


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def gateway() -> str:
    """Return the path of versitygw."""
    return shutil.which("versitygw") or str(GO_BIN)


class Gateway:
    """An S3 server over ``root``, whose folders are the buckets. ``port`` stays the same over restarts."""

    def __init__(self, root: Path, program: str = "") -> None:
        self.root, self.port = root, free_port()
        self._program = program or gateway()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server unless it runs."""
        if self._process is not None:
            return
        words = [self._program, "--access", KEY, "--secret", SECRET, "--port", f"127.0.0.1:{self.port}"]
        words += ["--region", REGION, "--quiet", "posix", str(self.root)]
        self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with starting(self.stop):
            self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(OSError):
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
                connection.request("GET", "/")
                connection.getresponse()
                return
            time.sleep(0.05)
        raise SystemExit("the S3 server does not start")

    def stop(self) -> None:
        """Kill the server: a connection is then refused."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait()

    @property
    def settings(self) -> dict[str, str]:
        """The settings of Spark, without the jars of its client."""
        return {
            "spark.hadoop.fs.s3a.endpoint": f"http://127.0.0.1:{self.port}",
            "spark.hadoop.fs.s3a.access.key": KEY,
            "spark.hadoop.fs.s3a.secret.key": SECRET,
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Hdfs:
    """An HDFS over the folder ``root``. ``port`` is that of its name node, and stays the same over restarts."""

    def __init__(self, root: Path) -> None:
        self._root, self.port = root, free_port()
        self._process: subprocess.Popen[str] | None = None
        self._is_formatted = False

    @property
    def uri(self) -> str:
        return f"hdfs://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the servers unless they run; return when they are ready."""
        if self._process is not None:
            return
        folder = gather(list(HDFS_JARS), CACHE.parent / f"hdfs-{HADOOP}")
        command = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{folder}/*"]
        command += [str(Path(__file__).with_name("HdfsServer.java")), str(self._root), str(self.port)]
        self._root.mkdir(parents=True, exist_ok=True)
        with (self._root / "log.txt").open("a") as log:
            self._process = subprocess.Popen(
                [*command, "open" if self._is_formatted else "format"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self._root,
            )
        assert self._process.stdout is not None
        with starting(self.stop):
            if not any(line == "ready\n" for line in self._process.stdout):
                raise SystemExit((self._root / "log.txt").read_text())
        self._is_formatted = True

    def stop(self) -> None:
        """Kill the servers: a connection is then refused."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.communicate()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def s3_jars() -> str:
    """Return the jars of Spark's client for S3 for ``spark.jars``: ``local:``, so that no executor copies them."""
    import pyspark  # the servers need none of it

    own = {jar.name.rpartition("-")[0] for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    folder = gather([f"org.apache.hadoop:hadoop-aws:{HADOOP}"], CACHE.parent / f"hadoop-aws-{HADOOP}")
    return ",".join(sorted(f"local:{jar}" for jar in folder.glob("*.jar") if jar.name.rpartition("-")[0] not in own))


class Lake:
    """A folder for exports, on a local disk. ``uri`` is its name on a command line."""

    conf: Mapping[str, str] = MappingProxyType({})
    is_store = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def uri(self, path: Path) -> str:
        """Return the name of a path below the folder for a command line."""
        return str(path)

    def names(self) -> set[str]:
        """Return the paths of all files in it. Folders may be deleted meanwhile, as those of an upload."""
        found = (Path(folder, name) for folder, _, names in os.walk(self.folder) for name in names)
        return {str(path.relative_to(self.folder)) for path in found}

    def text(self, name: str) -> str:
        """Return the text of a file; empty if there is none."""
        try:
            return (self.folder / name).read_text("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def push(self, path: Path) -> None:
        """Make the store's copy of a folder that of the local disk."""

    def pull(self) -> None:
        """Make the local folder a copy of the store's."""


class S3Lake(Lake):
    """A folder of a bucket: the S3 server keeps its objects as files of the same names."""

    is_store = True

    def __init__(self, folder: Path, server: Gateway) -> None:
        super().__init__(folder)
        self._server = server
        self.conf = {**server.settings, "spark.jars": s3_jars()}

    def uri(self, path: Path) -> str:
        return f"s3a://{path.relative_to(self._server.root)}"


class HdfsLake(Lake):
    """A folder of HDFS, with a copy on the local disk that :meth:`pull` and :meth:`push` update."""

    is_store = True

    def __init__(self, folder: Path, server: Hdfs) -> None:
        super().__init__(folder)
        self._server = server

    @property
    def _client(self) -> Any:
        import hdfs_native

        return hdfs_native.Client(self._server.uri)

    def uri(self, path: Path) -> str:
        return f"{self._server.uri}{path}"

    def names(self) -> set[str]:
        with suppress(FileNotFoundError):
            found = self._client.list_status(str(self.folder), recursive=True)
            return {str(Path(one.path).relative_to(self.folder)) for one in found if not one.isdir}
        return set()

    def text(self, name: str) -> str:
        with suppress(FileNotFoundError), self._client.read(str(self.folder / name)) as file:
            return bytes(file.read()).decode("utf-8", "replace")
        return ""

    def push(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            self._client.delete(str(path), recursive=True)
        self._put(path, path)

    def pull(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.get_all(self.folder)

    def put_all(self, source: Path) -> None:
        """Copy a local folder to that of the store."""
        self._put(source, self.folder)

    def _put(self, source: Path, target: Path) -> None:
        for one in source.rglob("*"):
            if one.is_file():
                self.put(one, str(target / one.relative_to(source)))

    def put(self, source: Path, name: str) -> None:
        """Copy a local file to ``name`` in the store."""
        import hdfs_native

        with self._client.create(name, hdfs_native.WriteOptions(overwrite=True)) as out:
            out.write(source.read_bytes())

    def delete(self, name: str) -> None:
        """Delete a file of the store."""
        self._client.delete(name)

    def get_all(self, target: Path) -> None:
        """Copy the folder of the store to a local one."""
        client = self._client
        target.mkdir(parents=True)
        for name in self.names():
            with suppress(FileNotFoundError), client.read(str(self.folder / name)) as file:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (target / name).write_bytes(file.read())
