"""Restore a lost schema registry with ``kdump schemas --import-script``, on a real broker and a real Karapace.

    python -m tools.prove.restored_registry --python PYTHON [--release 4.3.1] [--corpus golden/registries.tar.xz]

The corpus has the log dir of a cluster with a Karapace registry. The script writes the schemas to the topic of a new
broker, and a new Karapace starts on it. It must answer each version of each subject with the id and the schema of the
old log, and each id of a deleted version. The payloads of the old log are then produced to the new broker. Confluent's
consumer and deserializers must read them as fastavro does with the schemas of the old log.

PYTHON is the Python of an environment with Karapace, confluent-kafka and fastavro. Karapace is on no package index:
``pip install git+https://github.com/Aiven-Open/karapace`` builds it with Go. Needs Java 17, Maven 3 and curl. The exit
status is 1 if something differs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from testing import GOLDEN
from testing.processes import kdump
from tools import arguments
from tools.prove.broker import Broker, free_ports, logger, starting
from tools.record.fetch_jars import fetch

TOOLS: Final = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
}
CONSUMER: Final = Path(__file__).with_name("restored_consumer.py")


def main() -> int:
    """Run the proof; return the exit status."""
    parser = arguments.parser(__doc__, release="4.3.1")
    parser.add_argument("--python", required=True, help="the interpreter of an environment with Karapace")
    parser.add_argument("--corpus", type=Path, default=GOLDEN / "registries.tar.xz", help="%(default)s")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with tarfile.open(given.corpus) as archive:
            archive.extractall(folder, filter="data")
        (logs,) = (path / "logs" for path in folder.rglob("karapace"))
        with Broker(given.release, folder / "broker", {"auto.create.topics.enable": "true"}) as broker:
            restore(logs, broker, folder, given.release)
            registry = Karapace(given.python, broker.address, folder)
            try:
                wrong = [*compared(logs, registry), *consumed(logs, registry, broker.address, given.python)]
            finally:
                registry.stop()
    print(*wrong[:20], sep="\n", end="\n" * bool(wrong))
    print(f"{len(wrong)} differences")
    return int(bool(wrong))


def restore(logs: Path, broker: Broker, folder: Path, release: str) -> None:
    """Run the script of kdump, with Kafka's tools on the PATH."""
    shell = folder / "bin"
    shell.mkdir()
    for name, main_class in TOOLS.items():
        path = shell / name
        java = f'java -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp "{fetch(release)}/*:{logger()}"'
        path.write_text(f'#!/bin/sh\nexec {java} {main_class} "$@"\n')
        path.chmod(0o755)
    script = kdump("schemas", logs, "--all", "--import-script", check=True).stdout
    environment = os.environ | {"PATH": f"{shell}:{os.environ['PATH']}", "BOOTSTRAP": broker.address}
    subprocess.run(["sh"], input=script, check=True, env=environment)


class Karapace:
    """A registry on the loopback."""

    def __init__(self, python: str, broker: str, folder: Path) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        settings = {"bootstrap_uri": broker, "port": port, "host": "127.0.0.1", "karapace_registry": "true"}
        settings |= {"advertised_hostname": "127.0.0.1", "log_level": "WARNING"}
        environment = os.environ | {f"KARAPACE_{name.upper()}": str(value) for name, value in settings.items()}
        self._output = folder / "karapace.txt"
        with self._output.open("wb") as out:
            self._process = subprocess.Popen([python, "-m", "karapace"], stdout=out, stderr=out, env=environment)
        with starting(self.stop):
            self._wait()

    def _wait(self) -> None:
        for _ in range(300):
            if self._process.poll() is None and isinstance(self.ask("/subjects"), list) and self.ask("/subjects"):
                return
            time.sleep(0.5)
        raise RuntimeError(f"Karapace does not answer:\n{self._output.read_text(errors='replace')[-4000:]}")

    def ask(self, path: str) -> Any:
        """Return an answer, the number of an HTTP error, or None without an answer."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as answer:  # noqa: S310  our own registry
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)


def versions_of(logs: Path, *options: str) -> list[dict[str, Any]]:
    """Return the lines of ``kdump schemas``."""
    done = kdump("schemas", logs, "-o", "jsonl", *options, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def compared(logs: Path, registry: Karapace) -> list[str]:
    """Return the differences between the registry and the old log."""
    wrong, live, every = [], versions_of(logs), versions_of(logs, "--all")
    subjects = sorted({line["subject"] for line in live})
    if sorted(registry.ask("/subjects")) != subjects:
        wrong.append(f"subjects: {registry.ask('/subjects')}, not {subjects}")
    for line in every:
        where = f"/subjects/{quote(line['subject'], safe='')}/versions/{line['version']}"
        answer = registry.ask(where + ("" if line["state"] == "current" else "?deleted=true"))
        if not isinstance(answer, dict):
            wrong.append(f"{where}: {answer}")
            continue
        kind = answer.get("schemaType", "AVRO")
        if (answer["id"], kind, meaning(answer["schema"], kind)) != (
            line["id"],
            line["schemaType"],
            meaning(line["schema"], kind),
        ):
            wrong.append(f"{where}: {answer}, not {line}")
        found = registry.ask(f"/schemas/ids/{line['id']}")
        if not isinstance(found, dict) or meaning(found["schema"], kind) != meaning(line["schema"], kind):
            wrong.append(f"id {line['id']}: {found}")
    print(f"{len(every)} versions of {len({line['subject'] for line in every})} subjects, {len(live)} of them current")
    return wrong


def meaning(schema: str, kind: str) -> object:
    """Return the meaning of a schema's text: Karapace writes JSON again, with sorted keys."""
    return schema.strip() if kind == "PROTOBUF" else json.loads(schema)


def consumed(logs: Path, registry: Karapace, broker: str, python: str) -> list[str]:
    """Produce the payloads of the old log; return the differences that a consumer of the new registry finds."""
    every = {(line["subject"], line["version"]): line for line in versions_of(logs, "--all")}
    payloads = []
    fields = "topic,value,decoded"
    done = kdump(
        "dump", logs, "-o", "jsonl", "--decode", "auto", "--encoding", "base64", "--fields", fields, check=True
    )
    for line in map(json.loads, done.stdout.splitlines()):
        side = (line.get("decoded") or {}).get("value") or {}
        if side.get("format") in ("avro", "json") and side["framing"] == "prefix" and "problem" not in side:
            version = every[side["subject"], side["version"]]
            schema = version["schema"] if not version["references"] else None
            payloads.append(
                {"topic": line["topic"], "value": line["value"], "format": side["format"], "schema": schema}
            )
    command = [python, str(CONSUMER), broker, registry.url]
    ended = subprocess.run(command, input=json.dumps(payloads).encode(), stdout=subprocess.PIPE, check=True)
    answer = json.loads(ended.stdout)
    print(f"{answer['read']} of {len(payloads)} payloads read by a consumer, {answer['equal']} compared with fastavro")
    return [*answer["wrong"], *([] if answer["read"] == len(payloads) else ["payloads are missing"])]


if __name__ == "__main__":
    if shutil.which("curl") is None:
        sys.exit("curl is missing")
    sys.exit(main())
