"""A real broker of any KRaft release on the loopback, for proofs: format, start, stop, query.

    with Broker("4.2.2", folder) as broker:
        broker.create(["topic-0"])
        broker.stop()
        ...  # change the files in broker.logs
        broker.start()
        print(broker.offsets(["topic-0"]))

`fetch_jars` downloads the release; `BrokerClient.java` queries the broker.
"""

import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tools.record.fetch_jars import CACHE, fetch

CLIENT = Path(__file__).with_name("BrokerClient.java")
CLUSTER = "kdumpProofsAAAAAAAAAAA"

PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={logs}
metadata.log.dir={metadata}
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
log.retention.ms=-1
log.retention.check.interval.ms=3600000
log.cleaner.enable=false
share.coordinator.state.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=1
"""


class Offsets(NamedTuple):
    """The first offset and the log end offset of a partition, or the error of the broker as text."""

    start: str
    end: str


def free_ports(count: int) -> list[int]:
    """Return free ports of the loopback."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def jar(artifact: str) -> Path:
    """Return the jar of an artifact ("group:name:version") without its dependencies; it is downloaded if missing."""
    _, name, version = artifact.split(":")
    folder = CACHE.parent / "single"
    found = folder / f"{name}-{version}.jar"
    if not found.exists():
        command = ["mvn", "--quiet", "--batch-mode", "dependency:copy", f"-DoutputDirectory={folder}"]
        subprocess.run([*command, f"-Dartifact={artifact}"], check=True, stdout=sys.stderr)
    return found


def logger() -> Path:
    """Return the jar with which the broker prints its log."""
    return jar("org.slf4j:slf4j-simple:1.7.36")


@contextmanager
def starting(end: Callable[[], object]) -> Iterator[None]:
    """Wait in the block for a server to answer; ``end`` is called to end it if the block raises or is interrupted."""
    with ExitStack() as failed:
        failed.callback(end)
        yield
        failed.pop_all()


class Broker:
    """One broker with its log dir and metadata dir below `folder`; `settings` are added to PROPERTIES, or replace them.

    `jars` are for its clients; each program gets `heap` of memory. The loggers `talks` print all events, the others
    only errors. The log dirs are formatted with the cluster id `format_as`, with None not at all. Raises RuntimeError
    if the broker does not start.
    """

    def __init__(
        self,
        release: str,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        *,
        jars: Sequence[Path] = (),
        heap: str = "768m",
        talks: Sequence[str] = (),
        format_as: str | None = CLUSTER,
    ) -> None:
        self.release = release
        self._talks = tuple(talks)
        self.folder = folder
        self.logs = folder / "logs"
        self._classpath = ":".join(map(str, (f"{fetch(release, server=True)}/*", logger(), *jars)))
        self._heap = heap
        self._process: subprocess.Popen[bytes] | None = None
        port, controller = free_ports(2)
        self.address = f"127.0.0.1:{port}"
        self._settings = folder / "server.properties"
        self.output = folder / "broker.txt"
        folder.mkdir(parents=True, exist_ok=True)
        text = PROPERTIES.format(port=port, controller=controller, logs=self.logs, metadata=folder / "metadata")
        self._settings.write_text(text)
        self.change(settings or {})
        if format_as is not None:
            self.run("kafka.tools.StorageTool", "format", "-t", format_as, "-c", str(self._settings))

    def change(self, settings: Mapping[str, str]) -> None:
        """Change settings for its next start."""
        kept = [line for line in self._settings.read_text().splitlines() if line.partition("=")[0] not in settings]
        self._settings.write_text("\n".join([*kept, *(f"{name}={value}" for name, value in settings.items()), ""]))

    def __enter__(self) -> "Broker":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with self.output.open("ab") as out:
            self._process = subprocess.Popen(self._command("kafka.Kafka", str(self._settings)), stdout=out, stderr=out)
        with starting(self.kill):
            self._wait(self._process)

    def _wait(self, process: "subprocess.Popen[bytes]") -> None:
        host, port = self.address.split(":")
        for _ in range(600):
            if process.poll() is not None:
                reported = self.output.read_text(errors="replace")
                raise RuntimeError(f"the broker ended with {process.returncode}:\n{reported[-20000:]}")
            try:
                socket.create_connection((host, int(port)), 1).close()
            except OSError:
                time.sleep(0.2)
            else:
                return
        raise RuntimeError("the broker does not answer")

    @property
    def pid(self) -> int:
        """The id of its process. Raises RuntimeError if it does not run."""
        if self._process is None:
            raise RuntimeError("the broker does not run")
        return self._process.pid

    def stop(self) -> None:
        """Stop it cleanly, so that it writes .kafka_cleanshutdown."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(120)
            self._process = None

    def kill(self) -> None:
        """Kill it like a power failure, except that the page cache stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(120)
            self._process = None

    def crash(self) -> None:
        """Remove the marker of the clean shutdown while it is stopped, so that it recovers its logs."""
        for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
            (self.logs / name).unlink()

    def create(self, partitions: Sequence[str]) -> None:
        """Create the topics of these partitions ("topic-0")."""
        self._ask("create", partitions)

    def offsets(self, partitions: Sequence[str]) -> dict[str, Offsets]:
        lines = (line.split("\t") for line in self._ask("offsets", partitions).splitlines())
        return {name: Offsets(start, end) for name, start, end in lines}

    def append(self, partitions: Sequence[str]) -> dict[str, str]:
        """Append a record to each partition; return its offset, which was the log end offset.

        A consumer gets the high watermark instead, which differs if offsets are out of order.
        """
        return dict(line.split("\t") for line in self._ask("append", partitions).splitlines())

    def consume(self, partitions: Sequence[str]) -> list[list[str]]:
        """Return what a consumer reads: partition, offset, timestamp, key, value (base64 and a dot, or null), headers.

        Each partition ends with a line "end", the consumer's position, the log end offset.
        """
        return [line.split("\t") for line in self._ask("consume", partitions).splitlines()]

    def client(self, program: Path, *arguments: str, piped: bool = False) -> "subprocess.Popen[bytes]":
        """Start another client, a Java source with a main method; the caller waits for it or ends it.

        With `piped` its standard input and output are pipes to the caller.
        """
        command = self._command(str(program), *arguments, level="error")  # waiting transactions do not matter
        if piped:
            return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return subprocess.Popen(command, stdout=sys.stderr)

    def _ask(self, what: str, partitions: Sequence[str]) -> str:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
            wanted.write("".join(f"{name}\n" for name in partitions))
            wanted.flush()
            return self.run(CLIENT, self.address, what, wanted.name)

    def run(self, program: Path | str, *arguments: str) -> str:
        """Run a class of the broker, or a Java source with a main method; return its output. Raises RuntimeError."""
        done = subprocess.run(self._command(str(program), *arguments), capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.decode(errors="replace")[-3000:] + done.stdout.decode(errors="replace"))
        return done.stdout.decode()

    def _command(self, *arguments: str, level: str = "warn") -> list[str]:
        logging = [f"-Dorg.slf4j.simpleLogger.defaultLogLevel={level}"]
        logging += [f"-Dorg.slf4j.simpleLogger.log.{name}=info" for name in self._talks]
        return ["java", f"-Xmx{self._heap}", *logging, "-cp", self._classpath, *arguments]

    def reported(self, pattern: str) -> list[str]:
        """Return the parts of the broker's log that match."""
        return re.findall(pattern, self.output.read_text(errors="replace"))
