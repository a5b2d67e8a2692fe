"""Record the types of Kafka's configs, release by release, and make kdump's table of the names whose values it shows.

    python -m tools.record.config_types 4.3.1 3.9.2     # fetch the jars, read their ConfigDefs, write both files.
    python -m tools.record.config_types                 # make the table again from the recorded types

`ConfigTypes.java` reads the ConfigDefs of a release by reflection. golden/config_types.tsv keeps an owner, a name, a
type and the releases that have it; kdump/internal_topics/config_names.txt is made of that file.
"""

import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from testing import ROOT
from tools import arguments
from tools.record.fetch_jars import CACHE, gather, numbers

SOURCE = Path(__file__).with_name("ConfigTypes.java")
GOLDEN = ROOT / "golden" / "config_types.tsv"
TABLE = ROOT / "kdump" / "internal_topics" / "config_names.txt"
CONNECT = "org.apache.kafka.connect"
OWNERS = {
    "broker": [
        "kafka.server.KafkaConfig$",
        "kafka.server.DynamicConfig$Broker$",
        "org.apache.kafka.server.config.AbstractKafkaConfig",
        "org.apache.kafka.server.config.DynamicConfig$Broker",
    ],
    "topic": [
        "kafka.log.LogConfig$#configDef",
        "kafka.log.LogConfig$#kafka$log$LogConfig$$configDef",
        "org.apache.kafka.storage.internals.log.LogConfig#CONFIG",
    ],
    "group": ["org.apache.kafka.coordinator.group.GroupConfig"],
    "client-metrics": ["org.apache.kafka.server.metrics.ClientMetricsConfigs"],
    "connect": [
        f"{CONNECT}.runtime.distributed.DistributedConfig",
        f"{CONNECT}.runtime.standalone.StandaloneConfig",
        f"{CONNECT}.runtime.ConnectorConfig",
        f"{CONNECT}.runtime.SourceConnectorConfig",
        f"{CONNECT}.runtime.SinkConnectorConfig",
        f"{CONNECT}.mirror.MirrorMakerConfig",
        f"{CONNECT}.mirror.MirrorConnectorConfig",
        f"{CONNECT}.mirror.MirrorSourceConfig",
        f"{CONNECT}.mirror.MirrorCheckpointConfig",
        f"{CONNECT}.mirror.MirrorHeartbeatConfig",
        f"{CONNECT}.mirror.MirrorClientConfig",
    ],
    "client": [
        "org.apache.kafka.clients.producer.ProducerConfig",
        "org.apache.kafka.clients.consumer.ConsumerConfig",
        "org.apache.kafka.clients.consumer.ShareConsumerConfig",
        "org.apache.kafka.clients.admin.AdminClientConfig",
        "org.apache.kafka.streams.StreamsConfig",
    ],
}
"""Owner of configs -> the classes with its ConfigDefs. No release has all of them."""
ARTIFACTS = ["kafka_2.13", "connect-runtime", "kafka-streams", "connect-mirror"]
"""The artifacts of a release. Maven Central does not have the last one for every release."""
WIDTH = 120


class ConfigType(NamedTuple):
    """A config of an owner (a key of OWNERS), and its ConfigDef.Type."""

    owner: str
    name: str
    type: str


def jars(release: str) -> Path:
    """Return the folder with the jars of a release, which is downloaded if missing.

    Raises subprocess.CalledProcessError if Maven fails; it prints the reason on standard error.
    """
    folder = CACHE / f"{release}-configs"
    wanted = [f"org.apache.kafka:{artifact}:{release}" for artifact in ARTIFACTS]
    try:
        return gather(wanted, folder)
    except subprocess.CalledProcessError:
        return gather(wanted[:-1], folder)


def read(folder: Path) -> set[ConfigType]:
    """Return the configs in the jars of ``folder``. Raises subprocess.CalledProcessError when Java fails."""
    names = [f"{owner}={name}" for owner, classes in OWNERS.items() for name in classes]
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run(["javac", "-nowarn", "-cp", f"{folder}/*", "-d", classes, SOURCE], check=True)
        command = ["java", "-cp", f"{classes}:{folder}/*", SOURCE.stem, *names]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return {ConfigType(*line.split("\t")) for line in done.stdout.splitlines()}


def recorded() -> dict[ConfigType, set[str]]:
    """Return the recorded configs, and the releases that have each."""
    lines = GOLDEN.read_text(encoding="utf-8").splitlines() if GOLDEN.exists() else []
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {ConfigType(owner, name, kind): set(releases.split(" ")) for owner, name, kind, releases in rows}


def golden(known: dict[ConfigType, set[str]]) -> str:
    lines = [
        "\t".join([*config, " ".join(sorted(releases, key=numbers))]) for config, releases in sorted(known.items())
    ]
    return "".join(
        f"{line}\n" for line in ["# owner, config, type, releases: see tools/record/config_types.py", *lines]
    )


def shown(known: Iterable[ConfigType]) -> dict[str, list[str]]:
    """Return the configs of each owner that have a type in some release, and in no release the type PASSWORD."""
    types: dict[tuple[str, str], set[str]] = defaultdict(set)
    for config in known:
        types[config.owner, config.name].add(config.type)
    return {
        owner: sorted(name for (of, name), found in types.items() if of == owner and "PASSWORD" not in found)
        for owner in OWNERS
    }


def table(known: dict[ConfigType, set[str]]) -> str:
    releases = sorted({release for some in known.values() for release in some}, key=numbers)
    head = (
        "The names of Kafka's configs whose type is not PASSWORD. Generated by tools/record/config_types.py.\n"
        f"Source: the ConfigDefs of {len(releases)} releases, Kafka {releases[0]} to {releases[-1]}.\n"
    )
    return head + "".join(f"\n{owner}\n{''.join(_folded(names))}" for owner, names in shown(known).items())


def _folded(names: Iterable[str]) -> Iterator[str]:
    line = ""
    for name in names:
        if line and len(line) + 1 + len(name) > WIDTH:
            yield f"{line}\n"
            line = ""
        line = f"{line} {name}" if line else name
    yield f"{line}\n" if line else ""


def main() -> int:
    """Record the releases that the command line names, and write the table."""
    parser = arguments.parser(__doc__)
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="such as 4.3.1")
    releases = parser.parse_args().releases
    known = recorded()
    for release in releases:
        found = read(jars(release))
        for have in known.values():
            have.discard(release)
        for config in found:
            known.setdefault(config, set()).add(release)
        print(f"{release}: {len(found)} configs, {sum(each.type == 'PASSWORD' for each in found)} of type PASSWORD")
    known = {config: have for config, have in known.items() if have}
    GOLDEN.write_text(golden(known), encoding="utf-8")
    TABLE.write_text(table(known), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
