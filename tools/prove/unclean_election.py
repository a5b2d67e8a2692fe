"""Compare `kdump diff` with an unclean election of three real brokers: the predicted records must be lost.

    python -m tools.prove.unclean_election [--release 4.2.2] [--records 20] [--keep DIR]

All three brokers get records; the third stops, and two get more; the second stops, and the first gets more; the first
stops, the third is elected although it is out of sync, and gets other records. All are stopped: diff foretells where
the first and the second will cut their logs, and which records go. Then all start, become in sync again, and stop.
The exit status is 1 unless the logs are then equal, and lack exactly the predicted records. Needs Java, and Maven
for the jars.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path

from testing.processes import kdump
from tools import arguments
from tools.prove.broker import Broker, free_ports

CLIENT = Path(__file__).with_name("ElectionClient.java")
TOPIC = "orders"
CONTROLLER = 100


class Node(Broker):
    """A controller or a broker of a cluster, which listens on ``port``."""

    def __init__(self, release: str, folder: Path, number: int, port: int, controller: int, disks: int = 1) -> None:
        listener = ("CONTROLLER" if number == CONTROLLER else "PLAINTEXT") + f"://127.0.0.1:{port}"
        settings = {
            "process.roles": "controller" if number == CONTROLLER else "broker",
            "node.id": str(number),
            "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{controller}",
            "listeners": listener,
            "advertised.listeners": listener,
            "log.dirs": ",".join(str(folder / name) for name in ["logs", *(f"logs-{n}" for n in range(2, disks + 1))]),
        }
        super().__init__(release, folder, settings)
        self.address = f"127.0.0.1:{port}"


class Cluster:
    """A controller and three brokers below ``folder``, with ``disks`` log dirs each; none runs yet."""

    def __init__(self, release: str, folder: Path, disks: int = 1) -> None:
        controller, *ports = free_ports(4)
        self.controller = Node(release, folder / "controller", CONTROLLER, controller, controller)
        self.brokers = [
            Node(release, folder / f"broker-{number}", number, port, controller, disks)
            for number, port in enumerate(ports, 1)
        ]

    def ask(self, *arguments: str) -> None:
        """Send a command to the client, and wait for its end."""
        addresses = ",".join(broker.address for broker in self.brokers)
        self.brokers[0].run(CLIENT, addresses, TOPIC, *arguments)

    def stop(self) -> None:
        """Stop the running nodes."""
        for node in (*self.brokers, self.controller):
            node.stop()


def elect(cluster: Cluster, records: int) -> None:
    """Run the election; at its end all brokers are stopped."""
    first, second, third = cluster.brokers
    for node in (cluster.controller, first, second, third):
        node.start()
    cluster.ask("create")
    cluster.ask("isr", "3")
    cluster.ask("produce", "all-", str(records))
    third.stop()
    cluster.ask("produce", "two-", str(records))
    second.stop()
    cluster.ask("produce", "one-", str(records))
    first.stop()
    third.start()
    cluster.ask("elect")
    cluster.ask("produce", "other-", str(records // 2))
    third.stop()


def compare(left: Path, right: Path) -> tuple[dict[str, object], list[dict[str, object]]]:
    """Return the lines of diff for two log dirs: of the pair, and of the records."""
    done = kdump("diff", left, right, "--records", "--topic", TOPIC, "-o", "jsonl")
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    *records, pair = map(json.loads, done.stdout.splitlines())
    return pair, records


def values(logs: Path) -> Iterator[tuple[int, str]]:
    """Yield offset and value of each record of a log dir."""
    for line in kdump("dump", logs, "--topic", TOPIC, "-o", "jsonl").stdout.splitlines():
        record = json.loads(line)
        yield record["offset"], record["value"]


def prove(cluster: Cluster, records: int) -> bool:
    """Run the experiment; return whether all predictions are right."""
    elect(cluster, records)
    *stale, elected = (broker.logs for broker in cluster.brokers)
    foretold = {}
    for logs in stale:
        before = set(values(logs))
        pair, differ = compare(logs, elected)
        lost = {(line["offset"], line["left"]["value"]) for line in differ if isinstance(line["left"], dict)}
        print(f"{logs.parent.name}: {pair['because']}", flush=True)
        if pair["verdict"] != "diverged" or pair["stale"] != "left" or pair["loses"] != len(lost) or not lost:
            print(f"  it is not what was done: {pair}")
            return False
        foretold[logs] = lost, before - lost
    kept = set(values(elected))
    for broker in cluster.brokers:
        broker.start()
    cluster.ask("isr", "3")
    for broker in cluster.brokers:
        broker.stop()
    good = True
    for logs, (lost, left) in foretold.items():
        after = set(values(logs))
        came = after == kept and left <= after and not lost & after
        end = "as foretold" if came else "NOT as foretold"
        print(f"{logs.parent.name}: of {len(lost | left)} records {len((left | lost) - after)} are gone, {end}")
        good = good and came
    for one, other in combinations([broker.logs for broker in cluster.brokers], 2):
        pair, _ = compare(one, other)
        print(f"{one.parent.name} and {other.parent.name}: {pair['verdict']}")
        good = good and pair["verdict"] == "same"
    return good


def main() -> int:
    parser = arguments.parser(__doc__, release="4.2.2", records=20)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new folder that is kept")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = options.keep or Path(tempfile.mkdtemp())
        if options.keep is None:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        cluster = Cluster(options.release, folder)
        stack.callback(cluster.stop)
        return 0 if prove(cluster, options.records) else 1


if __name__ == "__main__":
    sys.exit(main())
