"""Compare the configs that kdump hides with those that a real broker hides.

    python -m tools.prove.config_secrets [--release 4.2.2]

kafka-configs.sh sets configs of a broker, of all brokers and of a topic: known ones, passwords, unknown ones, with the
prefix of a listener and of a SASL mechanism. `--describe` of the same tool, and `kdump metadata` over the broker's
metadata log, must then hide the values of the same configs. The exit status is 1 if they do not.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools import arguments
from tools.prove.broker import Broker

TOOL: Final = "kafka.admin.ConfigCommand"
HIDDEN: Final = "[redacted]"
JAAS: Final = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="sEcReT";'
EXTERNAL: Final = "listener.name.external."
BROKER: Final = {
    "my.plugin.password": "sEcReT",
    "my.plugin.endpoint": "sEcReT",
    "log.cleaner.threads": "2",
    "leader.replication.throttled.rate": "1000000",
    f"{EXTERNAL}ssl.key.password": "sEcReT",
    f"{EXTERNAL}ssl.keystore.password": "sEcReT",
    f"{EXTERNAL}ssl.truststore.password": "sEcReT",
    f"{EXTERNAL}ssl.keystore.key": "sEcReT",
    f"{EXTERNAL}ssl.keystore.type": "JKS",
    f"{EXTERNAL}plain.sasl.jaas.config": JAAS,
    f"{EXTERNAL}scram-sha-256.sasl.jaas.config": JAAS,
    f"{EXTERNAL}plain.connections.max.reauth.ms": "1000",
    f"{EXTERNAL}my.own.secret": "sEcReT",
    "sasl.oauthbearer.client.credentials.client.secret": "sEcReT",
    "connection.password": "sEcReT",
}
ALL_BROKERS: Final = {"my.plugin.token": "sEcReT", "log.retention.ms": "3600000", "message.max.bytes": "2000000"}
TOPIC: Final = {"retention.ms": "3600000", "cleanup.policy": "compact"}
ENTITIES: Final = {
    ("brokers", "1"): BROKER,
    ("brokers", ""): ALL_BROKERS,
    ("topics", "orders"): TOPIC,
}
LINE: Final = re.compile(r"^ +(\S+)=(.*) sensitive=(true|false) synonyms=", re.MULTILINE)


def main() -> int:
    """Make the proof; return the exit status."""
    release = arguments.parser(__doc__, release="4.2.2").parse_args().release
    with tempfile.TemporaryDirectory() as made:
        return prove(release, Path(made))


def prove(release: str, folder: Path) -> int:
    """Set configs, describe them, and compare."""
    broker = Broker(release, folder)
    theirs: dict[tuple[str, str, str], bool] = {}
    with broker:
        broker.create(["orders-0"])
        for (kind, name), values in ENTITIES.items():
            entity = [*("--bootstrap-server", broker.address, "--entity-type", kind)]
            entity += ["--entity-name", name] if name else ["--entity-default"]
            for config, value in values.items():
                with tempfile.NamedTemporaryFile("w", suffix=".properties", dir=folder) as file:
                    file.write(f"{config}={value}\n")
                    file.flush()
                    try:
                        broker.run(TOOL, *entity, "--alter", "--add-config-file", file.name)
                    except RuntimeError as refused:
                        print(f"the broker refuses {config}: {str(refused).splitlines()[-1][:150]}")
            for config, _, sensitive in LINE.findall(broker.run(TOOL, *entity, "--describe")):
                if config in values:
                    theirs[kind, name, config] = sensitive == "true"
    ours = hidden(folder / "metadata")
    ours = {key: value for key, value in ours.items() if key[2] in ENTITIES[key[:2]]}  # the broker sets some itself
    wrong = 0
    for key in sorted(theirs.keys() | ours.keys()):
        wrong += theirs.get(key) != ours.get(key)
        if theirs.get(key) != ours.get(key):
            print(f"{key}: the broker hides it: {theirs.get(key)}, kdump: {ours.get(key)}")
    print(f"{release}: {len(theirs)} configs, {sum(theirs.values())} hidden by the broker, {wrong} differ")
    return int(wrong > 0 or not theirs)


def hidden(metadata: Path) -> dict[tuple[str, str, str], bool]:
    """Return whether kdump hides each config of the metadata log."""
    command = [sys.executable, "-m", "kdump", "metadata", str(metadata), "-o", "jsonl"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    kinds = {2: "topics", 4: "brokers"}
    records = [line["data"] for line in map(json.loads, done.stdout.splitlines()) if line["type"] == "CONFIG_RECORD"]
    if b"sEcReT" in done.stdout:
        raise RuntimeError("kdump shows a secret")
    return {
        (kinds[each["resourceType"]], each["resourceName"], each["name"]): each["value"] == HIDDEN for each in records
    }


if __name__ == "__main__":
    sys.exit(main())
