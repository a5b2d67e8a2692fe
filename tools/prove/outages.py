"""Let an S3 server or an HDFS fail during commands, and compare each answer with the complete one.

    python -m tools.prove.outages [--store s3|hdfs] [--fault stopped ...] [--command count ...] [--seed 1]
        [--gateway PATH]

The S3 server is versitygw (`go install github.com/versity/versitygw/cmd/versitygw@v1.8.0`) over a folder. A proxy in
front starts a fault at one of the requests for data, chosen by the seed. Faults: the server is stopped for 15 s
(`stopped`) or for good (`gone`); it answers 503 or 403 for 8 s (`busy`, `denied`) or for good (`busy-for-good`,
`denied-for-good`); the key expires (`expired`); an object is deleted before it is read (`deleted`). Commands: a count
through Spark in the modes PERMISSIVE and FAILFAST, spark-export (new, append, incremental, follow), a stream, and
`check` of a bucket; `dump` and `salvage` of a tiered topic whose remote storage is the bucket. An HDFS (`--store hdfs`)
is stopped, or loses a file, at a time that the seed chooses.

`whole` is the answer of a run without a fault. `refused` is an error with exit status 1 (or an exception), which names
the store, reports no damage, and publishes nothing; the next run without a fault then has the whole answer. An HDFS may
lose a file before the command lists it: `as without the file`. Everything else is `WRONG`, also `refused` if the server
is back before the last try. The exit status is 1 if one result is `WRONG`. Needs Java and PySpark.
"""

import argparse
import http.client
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyarrow import dataset

from kdump.log_dirs.remote import LONGEST_PAUSE
from testing import forge
from testing.tiered import Segment, Store, uuid
from tools.prove import stores

TRIES: Final = 25
"""The number of seconds in which kdump retries in these runs."""
HDFS_TRIES: Final = 90
"""The same for an HDFS, which takes longer to start."""
STOPPED, ANSWERS = 15, 8
"""The duration of the faults that end, in seconds."""
OF_HDFS: Final = ("stopped", "gone", "deleted")
PARTITIONS, SEGMENTS, RECORDS = 4, 3, 1500
RECORDS_IN_ALL: Final = PARTITIONS * SEGMENTS * RECORDS
VALUE = 600
PATIENCE: Final = 300
INTERRUPTED: Final = 130
LEFT_OUT: Final = "continuing with the other folders"
EXPIRED: Final = "ExpiredToken", "The provided token has expired."
WORDS_OF_DAMAGE: Final = re.compile(r"damage(?!d ranges \(0 B\))|no offset is missing|\bare lost\b", re.IGNORECASE)


class Fault(NamedTuple):
    """A fault, its duration in seconds (None: to the end), and the ``status`` and S3 code of its answers, if any."""

    seconds: int | None
    status: int | None = None
    code: tuple[str, str] = ("", "")


FAULTS: Final = {
    "stopped": Fault(STOPPED),
    "gone": Fault(None),
    "busy": Fault(ANSWERS, 503, ("SlowDown", "Reduce your request rate.")),
    "busy-for-good": Fault(None, 503, ("SlowDown", "Reduce your request rate.")),
    "denied": Fault(ANSWERS, 403, ("AccessDenied", "Access Denied.")),
    "denied-for-good": Fault(None, 403, ("AccessDenied", "Access Denied.")),
    "expired": Fault(None, 403, EXPIRED),
    "deleted": Fault(None),
}


class Server:
    """The gateway over ``root``, and the proxy, whose address is constant."""

    def __init__(self, gateway: str, root: Path) -> None:
        self.root = root
        self._gateway = stores.Gateway(root, gateway)
        self.port = stores.free_port()
        self._proxy: ThreadingHTTPServer | None = None
        self.up_since = math.inf
        self._lock = threading.Lock()
        self.requests = 0
        """The number of requests for data of segments since :meth:`arm`."""
        self._fault: Fault | None = None
        self._at: int | None = None
        self._delete: Path | None = None
        self._deleted: tuple[Path, bytes] | None = None
        self._until: float | None = None
        self.has_struck = False
        self._timers: list[threading.Timer] = []

    def uri(self, path: str) -> str:
        options = f"endpoint_override=127.0.0.1:{self.port}&scheme=http&region={stores.REGION}"
        return f"s3://{stores.KEY}:{stores.SECRET}@{path}?{options}"

    def start(self) -> None:
        """Start both, unless they run."""
        self._gateway.start()
        if self._proxy is None:
            self.up_since = time.monotonic()
            self._proxy = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
            self._proxy.daemon_threads = True
            threading.Thread(target=self._proxy.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self) -> None:
        """Stop both: a connection is then refused."""
        proxy, self._proxy, self.up_since = self._proxy, None, math.inf
        if proxy is not None:
            proxy.shutdown()
            proxy.server_close()
        self._gateway.stop()

    def arm(self, fault: Fault | None, at: int | None = None, delete: Path | None = None) -> None:
        """Start a fault at a request for data, which deletes the object ``delete``. First end the current fault."""
        for timer in self._timers:
            timer.cancel()
            timer.join()
        self._timers.clear()
        with self._lock:
            if self._deleted is not None:
                self._deleted[0].write_bytes(self._deleted[1])
                self._deleted = None
            self._fault, self._at, self._delete = fault, at, delete
            self.requests, self._until, self.has_struck = 0, None, False
        self.start()

    def _answer(self, path: str) -> Fault | None:
        """Count a request; return the fault that determines its answer."""
        with self._lock:
            is_data = ".log" in path
            self.requests += is_data
            if self._fault is None:
                return None
            if not self.has_struck and is_data and self._at is not None and self.requests >= self._at:
                self.has_struck = True
                if self._fault.seconds is not None:
                    self._until = time.monotonic() + self._fault.seconds
                if self._delete is not None:
                    self._deleted = self._delete, self._delete.read_bytes()
                    self._delete.unlink()
                elif self._fault.status is None:
                    threading.Thread(target=self._outage, args=(self._fault.seconds,), daemon=True).start()
            if not self.has_struck or self._delete is not None:
                return None
            return self._fault if self._until is None or time.monotonic() < self._until else None

    def _outage(self, seconds: int | None) -> None:
        self.stop()
        if seconds is not None:
            timer = threading.Timer(seconds, self.start)
            self._timers.append(timer)
            timer.start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                fault = server._answer(self.path)
                if fault is not None:
                    self.close_connection = True
                    if fault.status is not None:
                        self._refuse(fault)
                    return
                connection = http.client.HTTPConnection("127.0.0.1", server._gateway.port, timeout=30)
                try:
                    connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                    for name, value in self.headers.items():
                        connection.putheader(name, value)
                    connection.endheaders()
                    answer = connection.getresponse()
                    data = answer.read()
                except (OSError, http.client.HTTPException):
                    self.close_connection = True
                    return
                finally:
                    connection.close()
                self.send_response_only(answer.status, answer.reason)
                for name, value in answer.getheaders():
                    if name.lower() not in {"transfer-encoding", "connection", "content-length"}:
                        self.send_header(name, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else None
                self.send_header("Content-Length", length or str(len(data)))
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(data)

            do_HEAD = do_GET  # noqa: N815  as the library calls it

            def _refuse(self, fault: Fault) -> None:
                code, text = fault.code
                body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{text}</Message></Error>".encode()
                self.send_response_only(fault.status or 500)
                self.send_header("Content-Type", "application/xml")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Handler


class HdfsServer:
    """An HDFS with the folders of ``root``; ``requests`` are milliseconds since :meth:`arm`, as there is no proxy."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._hdfs = stores.Hdfs(folder)
        self._root = root
        self._lake = stores.HdfsLake(Path("/"), self._hdfs)
        self._began, self._timers = 0.0, list[threading.Timer]()
        self.up_since = math.inf
        self._deleted: Path | None = None
        self.has_struck = False

    def uri(self, path: str) -> str:
        return f"{self._hdfs.uri}/{path}"

    @property
    def requests(self) -> int:
        return int((time.monotonic() - self._began) * 1000)

    def start(self) -> None:
        self._up()
        self._lake.put_all(self._root)

    def _up(self) -> None:
        self._hdfs.start()
        self.up_since = min(self.up_since, time.monotonic())

    def stop(self) -> None:
        self._hdfs.stop()
        self.up_since = math.inf

    def arm(self, fault: Fault | None, at: int | None = None, delete: Path | None = None) -> None:
        """Start a fault after ``at`` milliseconds, which deletes the file ``delete``. First end the current fault."""
        for timer in self._timers:
            timer.cancel()
            timer.join()
        self._timers.clear()
        self._up()
        if self._deleted is not None:
            self._lake.put(self._deleted, self._inside(self._deleted))
            self._deleted = None
        self.has_struck, self._began = False, time.monotonic()
        if fault is not None and at is not None:
            self._later(at / 1000, lambda: self._strike(fault.seconds, delete))

    def _inside(self, path: Path) -> str:
        return f"/{path.relative_to(self._root)}"

    def _later(self, seconds: float, what: Callable[[], None]) -> None:
        self._timers.append(threading.Timer(seconds, what))
        self._timers[-1].start()

    def _strike(self, seconds: int | None, delete: Path | None) -> None:
        if delete is None:
            self.stop()
        else:
            self._lake.delete(self._inside(delete))
            self._deleted = delete
        self.has_struck = True
        if seconds is not None:
            self._later(seconds, self._up)


class Answer(NamedTuple):
    """The result of a run: success, the answer, the published output, and standard error."""

    ok: bool
    found: object
    published: object
    said: str


class Run:
    """The commands, over a bucket and a folder for their outputs."""

    def __init__(self, server: Server | HdfsServer, work: Path) -> None:
        self._server, self._work = server, work
        self._spark: Any = None
        self.logs = server.uri("logs/broker")
        self.tiered = server.uri("tiered/store")
        self.out = work / "out"

    @property
    def spark(self) -> Any:
        """A session with the same workers as a user's session."""
        if self._spark is None:
            from kdump.spark import session, source

            self._spark = session.start("local[2]", {"spark.sql.shuffle.partitions": "2"})
            source.register(self._spark)
        return self._spark

    def _command(self, *words: str) -> Answer:
        """Run kdump in this process, in the session if there is one."""
        from kdump.cli import main

        shown, said, before = StringIO(), StringIO(), sys.argv
        sys.argv = ["kdump", *words]
        try:
            with redirect_stdout(shown), redirect_stderr(said):
                status = main()
        finally:
            sys.argv = before
        return Answer(status == 0, shown.getvalue(), None, f"status {status}\n{said.getvalue()}")

    def _in_process_of_its_own(self, *words: str) -> Answer:
        done = subprocess.run([sys.executable, "-m", "kdump", *words], capture_output=True, check=False, text=True)
        return Answer(done.returncode == 0, done.stdout, None, f"status {done.returncode}\n{done.stderr}")

    def _count(self, mode: str) -> Answer:
        try:
            rows = self.spark.read.format("kdump").option("mode", mode).load(self.logs).select("offset").count()
        except Exception as error:  # whatever Spark makes of it
            return Answer(False, None, None, str(error).partition("\n\nDriver stacktrace")[0])
        return Answer(True, rows, None, "")

    def _rows(self) -> int:
        files = [
            str(path)
            for path in self.out.rglob("*.parquet")
            if not any(part[0] in "._" for part in path.relative_to(self.out).parts)
        ]
        return int(dataset.dataset(files).count_rows()) if files else 0

    def _export(self, *more: str) -> Answer:
        words = ["spark-export", self.logs, "--out", str(self.out), "--partition-by", "none", "--master", "local[2]"]
        _ = self.spark
        reported = self._command(*words, *more)
        left = [path.name for path in self._work.glob(".out.kdump-*")]
        return reported._replace(found=self._rows(), published=(self._rows(), left))

    def _follow(self) -> Answer:
        """Follow until all rows are there, or folders are left out after the last try; then press Ctrl-C."""
        command = [sys.executable, "-m", "kdump", "spark-export", self.logs, "--out", str(self.out), "--follow"]
        command += ["--partition-by", "none", "--master", "local[2]", "--conf", "spark.driver.memory=600m"]
        log = self._work / "said.txt"
        with log.open("wb") as said:
            process = subprocess.Popen(command, stderr=said, start_new_session=True)
        end = time.monotonic() + PATIENCE
        while process.poll() is None and self._rows() < RECORDS_IN_ALL and LEFT_OUT not in log.read_text():
            if time.monotonic() > end:
                break
            time.sleep(0.5)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        status, rows = process.wait(PATIENCE), self._rows()
        is_whole = status == INTERRUPTED and rows == RECORDS_IN_ALL
        return Answer(is_whole, rows, rows, f"status {status}\n{log.read_text()}")

    def _stream(self) -> Answer:
        rows = (
            self.spark.readStream.format("kdump").option("mode", "PERMISSIVE").load(self.logs).select("topic", "offset")
        )
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(self._work / "checkpoint"))
        try:
            writer.trigger(availableNow=True).start(str(self.out)).awaitTermination()
        except Exception as error:
            return Answer(False, None, self._committed(), str(error))
        return Answer(True, self._committed(), self._committed(), "")

    def _committed(self) -> int:
        """Return the rows the stream's sink has committed: its log lists their files, other files are leftovers."""
        if not list(self.out.glob("_spark_metadata/[0-9]*")):
            return 0
        return int(self.spark.read.parquet(str(self.out)).count())

    def _salvage(self) -> Answer:
        words = ["salvage", str(self._work / "local"), "--remote", self.tiered, "--out", str(self.out)]
        reported = self._in_process_of_its_own(*words)
        held = sorted((path.name, path.stat().st_size) for path in self.out.rglob("*.log"))
        return reported._replace(found=held, published=held or [path.name for path in self._work.glob(".out*")])

    @property
    def commands(self) -> dict[str, Callable[[], Answer]]:
        """The commands by their names."""
        dump = ["dump", str(self._work / "local"), "--remote", self.tiered, "-o", "jsonl", "--jobs", "1"]
        return {
            "count": lambda: self._count("PERMISSIVE"),
            "failfast": lambda: self._count("FAILFAST"),
            "export": self._export,
            "append": lambda: self._export("--mode", "append"),
            "incremental": lambda: self._export("--incremental"),
            "follow": self._follow,
            "stream": self._stream,
            "check": lambda: self._in_process_of_its_own("check", self.logs, "-o", "jsonl"),
            "dump": lambda: self._in_process_of_its_own(*dump),
            "salvage": self._salvage,
        }

    @contextmanager
    def prepared(self, name: str) -> Iterator[None]:
        """Create the inputs of a command, and delete its outputs."""
        self._clear()
        if name == "append":
            self._server.arm(None)
            made = self._export()
            assert made.ok, made.said
        yield
        self._clear()

    def _clear(self) -> None:
        for path in (self.out, self._work / "checkpoint"):
            shutil.rmtree(path, ignore_errors=True)


def make_inputs(root: Path, work: Path) -> Path:
    """Write both buckets, and the local end of the tiered topic; return an object that is read late."""
    chance = random.Random(5)
    log = root / "logs" / "broker"
    last = log
    for partition in range(PARTITIONS):
        folder = log / f"orders-{partition}"
        folder.mkdir(parents=True)
        for number in range(SEGMENTS):
            first = number * RECORDS
            batches = [
                forge.batch([forge.record(b"k", chance.randbytes(VALUE))], base_offset=first + at)
                for at in range(RECORDS)
            ]
            last = folder / f"{first:020}.log"
            last.write_bytes(b"".join(batches))
    store = Store(root / "tiered" / "store", 1 << 18)
    for number in range(SEGMENTS):
        first = number * RECORDS
        data = [
            forge.batch([forge.record(b"k", chance.randbytes(VALUE))], base_offset=first + at) for at in range(RECORDS)
        ]
        store.write(Segment(first, first + RECORDS - 1, b"".join(data), number + 1, epochs=((0, first),)))
    folder = work / "local" / "t-0"
    folder.mkdir(parents=True)
    first = SEGMENTS * RECORDS
    (folder / f"{first:020}.log").write_bytes(forge.batch([forge.record(b"k", b"v")], base_offset=first))
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {uuid(bytes(15) + bytes([7]))}")
    return last


def late_objects(root: Path) -> dict[str, Path]:
    """Return the object of each bucket that is read last."""
    return {name: max((root / name).rglob("*.log")) for name in ("logs", "tiered")}


def verdict(name: str, fault: Fault, got: Answer, sound: Answer, before: object) -> str:
    """Return the result of a run with a fault: whole, refused, or a description of the error."""
    if got.ok:
        return "whole" if got.found == sound.found else f"WRONG: success with {_brief(got.found)}"
    if fault.seconds is not None:
        return f"WRONG: refused though the server came back: {got.said[-300:]}"
    status = INTERRUPTED if name == "follow" else 1
    if name not in {"count", "failfast", "stream"} and not got.said.startswith(f"status {status}\n"):
        return f"WRONG: {got.said[:200]}"
    if not re.search("s3://|hdfs://", got.said):
        return f"WRONG: no place is named: {got.said[:300]}"
    raised = re.findall(r"kdump\.errors\.\w+: (.*)", got.said)  # without the lines of code of a stack
    words = WORDS_OF_DAMAGE.search(raised[-1] if raised else got.said)
    if words:
        return f"WRONG: it speaks of {words[0]!r}: {got.said[:400]}"
    is_committed = name == "follow" or (name == "stream" and got.published == sound.published)  # with their offsets
    if not is_committed and got.published != before and got.published not in (0, [], (0, []), None):
        return f"WRONG: published {_brief(got.published)}"
    return "refused"


def _brief(value: object) -> str:
    return str(value)[:60]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gateway", default=stores.gateway())
    parser.add_argument("--store", choices=("s3", "hdfs"), default="s3")
    parser.add_argument("--fault", nargs="*", choices=list(FAULTS))
    parser.add_argument("--command", nargs="*", default=None)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    of_s3 = given.store == "s3"
    os.environ["KDUMP_STORE_SECONDS"] = str(TRIES if of_s3 else HDFS_TRIES)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="outages-") as place:
        root, work = Path(place) / "store", Path(place) / "work"
        work.mkdir()
        make_inputs(root, work)
        late = late_objects(root)
        server = Server(given.gateway, root) if of_s3 else HdfsServer(root, Path(place) / "hdfs")
        server.start()
        try:
            run = Run(server, work)
            for name in given.command or run.commands:
                prober = Prober(run, server, name, late["tiered" if name in {"dump", "salvage"} else "logs"])
                wrong += sum(
                    prober.has_fault(fault, given.seed) for fault in given.fault or (FAULTS if of_s3 else OF_HDFS)
                )
        finally:
            server.arm(None)
            server.stop()
    return 1 if wrong else 0


class Prober:
    """One command with a known answer. ``late`` is an object that it reads last."""

    def __init__(self, run: Run, server: Server | HdfsServer, name: str, late: Path) -> None:
        self._run, self._server, self._name, self._late = run, server, name, late
        self._command = run.commands[name]
        self._before: object = None
        for _ in range(2):  # the first run also starts Spark
            with run.prepared(name):
                self._before = (run._rows(), []) if name == "append" else None
                server.arm(None)
                self._sound = self._command()
                self._requests = server.requests
            assert self._sound.ok, self._sound.said

    def has_fault(self, fault_name: str, seed: int) -> bool:
        """Run the command with a fault, then without; print a line, and return whether there is an error."""
        fault, requests, server = FAULTS[fault_name], self._requests, self._server
        chance = random.Random(f"{seed} {self._name} {fault_name}")
        at = chance.randint(max(1, requests // 10), max(1, requests * 6 // 10))
        with ExitStack() as prepared:
            while True:
                prepared.enter_context(self._run.prepared(self._name))
                server.arm(fault, at, self._late if fault_name == "deleted" else None)
                began = time.monotonic()
                got = self._command()
                seconds = time.monotonic() - began
                struck = server.has_struck
                if struck or at == 1:
                    break
                prepared.close()
                at = max(1, at // 3)  # the first run took longer: it also started Spark
            if server.up_since > time.monotonic() - LONGEST_PAUSE:  # its start took longer than the tries
                fault = fault._replace(seconds=None)
            reported = verdict(self._name, fault, got, self._sound, self._before) if struck else "no request met it"
            if "WRONG" in reported and fault_name == "deleted" and self._is_as_without_the_file(got):
                reported = "as without the file"
            if reported == "refused":
                server.arm(None)
                again = self._command()
                whole = again.ok and again.found == self._sound.found
                reported += ", then whole" if whole else f", then WRONG: {again.said[-300:]}"
        print(
            f"{self._name:12} {fault_name:16} request {at:3} of {requests:3}  {seconds:5.1f} s  {reported}", flush=True
        )
        return "WRONG" in reported

    def _is_as_without_the_file(self, got: Answer) -> bool:
        if not isinstance(self._server, HdfsServer) or self._name == "follow":
            return False
        with self._run.prepared(self._name):
            self._server.arm(FAULTS["deleted"], 0, self._late)
            while not self._server.has_struck:
                time.sleep(0.1)
            without = self._command()
        return (got.ok, got.found) == (without.ok, without.found)


if __name__ == "__main__":
    sys.exit(main())
