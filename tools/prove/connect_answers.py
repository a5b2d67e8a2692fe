"""Compare ``kdump connect`` with the REST API of a real Connect worker.

    python -m tools.prove.connect_answers [--release 3.9.2] [--record FILE]

Starts a broker and a distributed worker on the loopback. Makes connectors: source and sink, paused, stopped, failed,
deleted, with fewer tasks than before, and with secrets. Asks the REST API, stops both, and compares the answer of kdump
for the log dir. ``--record`` keeps the topics and the answers as a tar archive for the tests. Needs Java 17 and Maven
3.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final

from testing.processes import kdump
from tools import arguments
from tools.prove.broker import Broker, free_ports, logger, starting
from tools.record.fetch_jars import CACHE, DEPENDENCY, POM

TOPICS: Final = ("connect-configs", "connect-status", "connect-offsets")
WORKER: Final = """bootstrap.servers={broker}
group.id=connect-cluster
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.storage.partitions=2
status.storage.partitions=2
offset.flush.interval.ms=500
listeners=http://127.0.0.1:{port}
scheduled.rebalance.max.delay.ms=0
"""
FILE: Final = "org.apache.kafka.connect.file.FileStream"


def jars(release: str) -> Path:
    """Return the folder with the jars of a Connect worker; they are downloaded if missing."""
    folder = CACHE.parent / f"connect-{release}"
    if not folder.exists():
        names = ("connect-runtime", "connect-json", "connect-file")
        wanted = "".join(
            DEPENDENCY.format(group="org.apache.kafka", artifact=name, version=release, exclusions="") for name in names
        )
        with tempfile.TemporaryDirectory() as project:
            Path(project, "pom.xml").write_text(POM.format(dependencies=wanted))
            command = ["mvn", "--quiet", "--batch-mode", "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
            subprocess.run(command, cwd=project, check=True, stdout=sys.stderr)
    return folder


class Worker:
    """A distributed Connect worker, and its REST API."""

    def __init__(self, release: str, folder: Path, broker: str) -> None:
        (port,) = free_ports(1)
        self._url = f"http://127.0.0.1:{port}"
        settings = folder / "worker.properties"
        settings.write_text(WORKER.format(broker=broker, port=port))
        classpath = f"{jars(release)}/*:{logger()}"
        command = ["java", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classpath]
        self.output = folder / "worker.txt"
        with self.output.open("wb") as out:
            self._process = subprocess.Popen(
                [*command, "org.apache.kafka.connect.cli.ConnectDistributed", str(settings)], stdout=out, stderr=out
            )
        with starting(self.stop):
            self.wait(lambda: isinstance(self.ask("GET", "/connectors"), list))

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Return the answer of the REST API, None for an error or no body."""
        data = None if body is None else json.dumps(body).encode()
        head = {"Content-Type": "application/json"}
        asked = urllib.request.Request(self._url + path, data, head, method=method)  # noqa: S310  our own worker
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310  our own worker
                text = answer.read()
        except OSError:
            return None
        return json.loads(text) if text else {}

    def wait(self, holds: Any) -> None:
        """Wait until a condition holds."""
        for _ in range(600):
            if holds():
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.2)
        raise RuntimeError(f"it does not come to hold:\n{self.output.read_text(errors='replace')[-4000:]}")

    def state(self, name: str) -> list[str]:
        """Return the states of a connector and of its tasks."""
        found = self.ask("GET", f"/connectors/{name}/status") or {"connector": {"state": ""}, "tasks": []}
        return [found["connector"]["state"], *(task["state"] for task in found["tasks"])]

    def put(self, name: str, config: dict[str, str], *states: str) -> None:
        """Create or change a connector, and wait for its states."""
        self.ask("PUT", f"/connectors/{name}/config", {"name": name, **config})
        self.wait(lambda: self.state(name) == list(states))
        if "Source" in config["connector.class"]:
            self.wait(lambda: (self.ask("GET", f"/connectors/{name}/offsets") or {}).get("offsets"))

    def stop(self) -> None:
        """Stop it cleanly, so that it writes its offsets."""
        self._process.terminate()
        self._process.wait(60)


def main() -> int:
    """Run both, compare, and print the differences."""
    parser = arguments.parser(__doc__)
    parser.add_argument("--release", default="3.9.2")
    parser.add_argument("--record", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, Broker(given.release, Path(name) / "broker") as broker:
        answers = played(Worker(given.release, Path(name), broker.address), Path(name))
        broker.stop()
        differences = compare(answers, broker.logs)
        for each in differences:
            print(each)
        if given.record:
            record(given.record, broker.logs, answers)
    print(f"{len(answers)} connectors, {len(differences)} differences")
    return int(bool(differences))


def played(worker: Worker, folder: Path) -> dict[str, Any]:
    """Let a worker run connectors; return the answers of its REST API by connector."""
    lines = folder / "lines.txt"
    lines.write_text("one\ntwo\nthree\n")
    source = {"connector.class": f"{FILE}SourceConnector", "file": str(lines), "topic": "lines", "tasks.max": "1"}
    sink = {
        "connector.class": f"{FILE}SinkConnector",
        "file": str(folder / "out.txt"),
        "topics": "lines",
        "database.password": "sEcReT",
    }
    try:
        worker.put("lines-in", source, "RUNNING", "RUNNING")
        worker.put("sink-2", {**sink, "tasks.max": "2"}, "RUNNING", "RUNNING", "RUNNING")
        worker.put("sink-2", {**sink, "tasks.max": "1"}, "RUNNING", "RUNNING")
        worker.put("paused", {**source, "topic": "more"}, "RUNNING", "RUNNING")
        worker.ask("PUT", "/connectors/paused/pause")
        worker.wait(lambda: worker.state("paused") == ["PAUSED", "PAUSED"])
        worker.put("stopped-1", {**source, "topic": "more"}, "RUNNING", "RUNNING")
        worker.ask("PUT", "/connectors/stopped-1/stop")
        worker.wait(lambda: worker.state("stopped-1") == ["STOPPED"])
        worker.put("failing", {**sink, "file": "/nowhere/at/all", "tasks.max": "1"}, "RUNNING", "FAILED")
        worker.put("deleted", {**source, "topic": "more"}, "RUNNING", "RUNNING")
        worker.ask("DELETE", "/connectors/deleted")
        worker.wait(lambda: "deleted" not in worker.ask("GET", "/connectors"))
        return {
            name: {
                "config": worker.ask("GET", f"/connectors/{name}"),
                "status": worker.ask("GET", f"/connectors/{name}/status"),
                "topics": worker.ask("GET", f"/connectors/{name}/topics"),
                "offsets": worker.ask("GET", f"/connectors/{name}/offsets"),
                "tasks": worker.ask("GET", f"/connectors/{name}/tasks"),
            }
            for name in worker.ask("GET", "/connectors")
        }
    finally:
        worker.stop()


def compare(answers: dict[str, Any], logs: Path) -> list[str]:
    """Return the differences between the lines of ``kdump connect`` and the answers of the REST API."""
    done = kdump("connect", logs, "--show-secrets", "-o", "jsonl", "-q")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = reported(lines)
    wanted = {name: rest(name, answer) for name, answer in answers.items()}
    return [
        f"{name}: kdump {found.get(name)}, the worker {wanted.get(name)}"
        for name in sorted(found.keys() | wanted.keys())
        if found.get(name) != wanted.get(name)
    ]


def reported(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the lines of kdump by connector in the form of :func:`rest`, without states after the stop."""
    made: dict[str, Any] = {}
    for line in lines:
        of = made.setdefault(line["connector"], {"tasks": [], "offsets": []})
        if line["kind"] == "connector":
            of |= {name: line[name] for name in ("type", "config", "topics")}
        elif line["kind"] == "task":
            of["tasks"].append({"task": line["task"], "config": line["config"], "trace": line["trace"]})
        else:
            of["offsets"].append({"partition": line["partition"], "offset": line["offset"]})
    return {name: of for name, of in made.items() if "config" in of}


def rest(name: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of the REST API on a connector."""
    offsets = (answer["offsets"] or {}).get("offsets", [])
    traces = {task["id"]: task.get("trace") for task in answer["status"]["tasks"]}
    return {
        "type": answer["config"]["type"],
        "config": answer["config"]["config"],
        "topics": sorted((answer["topics"] or {}).get(name, {}).get("topics", [])),
        "tasks": [
            {"task": task["id"]["task"], "config": task["config"], "trace": traces.get(task["id"]["task"])}
            for task in answer["tasks"]
        ],
        "offsets": [each for each in offsets if "kafka_topic" not in each["partition"]],
    }


def record(file: Path, logs: Path, answers: dict[str, Any]) -> None:
    """Write the topics and the answers as an archive."""
    with tarfile.open(file, "w:xz") as archive:
        for folder in sorted(logs.iterdir()):
            if folder.name.rpartition("-")[0] in TOPICS:
                for each in sorted(folder.glob("*.log")):
                    archive.add(each, f"connect/logs/{folder.name}/{each.name}")
        text = json.dumps(answers, indent=1).encode()
        entry = tarfile.TarInfo("connect/answers.json")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))


if __name__ == "__main__":
    sys.exit(main())
