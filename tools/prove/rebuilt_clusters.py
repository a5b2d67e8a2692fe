"""Test `kdump rebuild-cluster` on random losses and damages of a real cluster: it must report exactly the lost records.

    python -m tools.prove.rebuilt_clusters [--release 4.3.1] [--cases 30] [--seed 0] [--keep DIR]

A cluster of three brokers with two disks each and a controller is filled and read by a consumer; a topic is compacted;
the cluster is killed. For each case some of its volumes or disks are dropped, bits flip in logs, indexes, and copies of
the metadata log, files are truncated or removed. `rebuild-cluster` writes one new node from the rest; it starts, and a
consumer reads every partition. Its records must be those that the first consumer got, without exactly the offsets that
account.json calls lost; begin and end offsets must be those of the account; no byte or time of the volumes may have
changed. Of the compacted topic the last record of each key must be there, or be called lost. With the folder of an
earlier run as DIR that cluster is used again. The exit status is 1 after a fault. Needs Java, and Maven.
"""

import hashlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from testing.processes import kdump
from tools import arguments
from tools.prove.broker import Broker, free_ports
from tools.prove.unclean_election import Cluster

CLIENT = Path(__file__).with_name("LostClusterClient.java")
COMPACTED = "profiles"
TOPICS = ("audit", "events", "orders", "payments", COMPACTED)
PARTITIONS = [f"{topic}-{number}" for topic in TOPICS for number in range(3)]
CLEANED_SECONDS = 120
"""The longest time until the cleaners of all brokers have compacted their copies, in seconds."""
WATERMARKS_SECONDS = 5
"""The interval in which brokers write their high watermarks, which show how far a log reached, in seconds."""

Records = dict[str, dict[int, tuple[str, ...]]]


class RebuiltNode(Broker):
    """A node that starts on an existing log dir."""

    def __init__(self, release: str, folder: Path, properties: Path, port: int) -> None:
        super().__init__(release, folder, format_as=None)
        self.address = f"127.0.0.1:{port}"
        lines = ["log.retention.check.interval.ms=3600000", "log.cleaner.enable=false"]
        self._settings.write_text("\n".join([properties.read_text(), *lines, ""]))


def consumed(broker: Broker, partitions: Sequence[str] = PARTITIONS) -> tuple[Records, dict[str, tuple[int, int]]]:
    """Return the records of each partition by offset, and its first and end offset."""
    records: Records = defaultdict(dict)
    for name, *fields in broker.consume(partitions):
        if fields[0] != "end":
            records[name][int(fields[0])] = tuple(fields[1:])
    ends = {name: (int(found.start), int(found.end)) for name, found in broker.offsets(partitions).items()}
    return records, ends


def live(release: str, folder: Path) -> tuple[list[Path], Records, dict[str, tuple[int, int]]]:
    """Fill a cluster and kill it; return its volumes, and the records of a consumer."""
    cluster = Cluster(release, folder, disks=2)
    nodes = (cluster.controller, *cluster.brokers)
    with ExitStack() as stack:
        for node in nodes:
            stack.callback(node.kill)
            node.start()
        addresses = ",".join(broker.address for broker in cluster.brokers)
        cluster.brokers[0].run(CLIENT, addresses, "1")
        records, ends = consumed(cluster.brokers[0])
        for broker in cluster.brokers:
            broker.stop()
            broker.change({"log.cleaner.enable": "true", "log.cleaner.backoff.ms": "500"})
            broker.start()
        wait_until_compacted([broker.folder for broker in cluster.brokers])
        time.sleep(2 * WATERMARKS_SECONDS)
    (folder / TRUTH).write_text(json.dumps([records, ends]))
    return [node.folder for node in nodes], records, ends


TRUTH = "truth.json"


def again(folder: Path) -> tuple[list[Path], Records, dict[str, tuple[int, int]]]:
    """Return the cluster of an earlier run."""
    records, ends = json.loads((folder / TRUTH).read_text())
    found = {name: {int(offset): tuple(record) for offset, record in held.items()} for name, held in records.items()}
    names = ["controller", *(f"broker-{number}" for number in (1, 2, 3))]
    return [folder / name for name in names], found, {name: tuple(pair) for name, pair in ends.items()}


def wait_until_compacted(brokers: Sequence[Path]) -> None:
    """Wait until the cleaner of each broker has a checkpoint for each partition. Raises RuntimeError."""
    for _ in range(CLEANED_SECONDS):
        held = [
            [line for path in broker.glob("logs*/cleaner-offset-checkpoint") for line in path.read_text().splitlines()]
            for broker in brokers
        ]
        if all(sum(line.startswith(f"{COMPACTED} ") for line in lines) == 3 for lines in held):
            return
        time.sleep(1)
    raise RuntimeError(f"{COMPACTED} was not compacted")


def damage(volumes: list[Path], choice: random.Random) -> list[str]:
    """Damage copies of volumes; return the changes. The checkpoints of high watermarks stay, except on lost disks."""
    done = []
    for number in choice.sample(range(1, 4), choice.randint(0, 2)):
        done.append(f"{volumes[number].name} dropped")
        shutil.rmtree(volumes[number])
    if choice.random() < 0.5:
        done.append("the controller dropped")
        shutil.rmtree(volumes[0])
    left = [volume for volume in volumes[1:] if volume.exists()]
    if choice.random() < 0.2:
        disk = choice.choice(left) / choice.choice(["logs", "logs-2", "metadata"])
        done.append(f"{disk.parent.name}/{disk.name} dropped")
        shutil.rmtree(disk)
    folders = [folder for volume in left for folder in volume.glob("logs*/*") if folder.is_dir()]
    own = sorted(folder for folder in folders if folder.name in PARTITIONS)
    for _ in range(choice.randint(0, 12)):
        done += damage_folder(own, choice)
    if choice.random() < 0.4:
        copies = sorted(path for volume in volumes for path in volume.glob("metadata/__cluster_metadata-0/*"))
        names = [path for path in copies if path.suffix in (".log", ".checkpoint") and path.stat().st_size]
        for path in choice.sample(names, min(len(names), choice.randint(1, 3))):
            kind = choice.choice(["flip", "zero", "cut"])
            done.append(f"{path.parent.parent.parent.name}/{path.parent.name}/{path.name}: {kind}")
            spoil(path, kind, choice)
    return done


def damage_folder(own: list[Path], choice: random.Random) -> list[str]:
    """Damage a partition folder; return the change."""
    folder = choice.choice(own)
    name = "/".join(folder.parts[-3:])
    logs = sorted(path for path in folder.glob("*.log") if path.stat().st_size)
    kinds = ["flip", "flip", "flip", "zero", "cut", "segment", "index", "index flip", "small file", "folder"]
    kind = choice.choice(kinds)
    if kind == "small file":
        names = [name for name in ("leader-epoch-checkpoint", "partition.metadata") if (folder / name).exists()]
        for small in names[:1]:
            (folder / small).unlink()
            return [f"{name}/{small} removed"]
    elif kind == "folder" and choice.random() < 0.5:
        shutil.rmtree(folder)
        own.remove(folder)
        return [f"{name} removed"]
    elif kind == "index flip":
        indexes = sorted(path for path in folder.glob("*index") if path.stat().st_size)
        for path in choice.sample(indexes, min(len(indexes), 1)):
            spoil(path, "flip", choice)
            return [f"{name}/{path.name}: flip"]
    elif logs and kind != "folder":
        path = choice.choice(logs)
        spoil(path, kind, choice)
        return [f"{name}/{path.name}: {kind}"]
    return []


def spoil(path: Path, kind: str, choice: random.Random) -> None:
    """Damage a file."""
    data = bytearray(path.read_bytes())
    if kind == "segment":
        path.unlink()
        return
    if kind == "index":
        path.with_suffix(".index").unlink(missing_ok=True)
    elif kind == "flip":
        data[choice.randrange(len(data))] ^= 1 << choice.randrange(8)
    elif kind == "zero":
        at = choice.randrange(len(data))
        data[at : at + 200] = bytes(len(data[at : at + 200]))
    elif kind == "cut":
        del data[choice.randrange(len(data)) :]
    path.write_bytes(data)


def state(volumes: list[Path]) -> dict[str, tuple[str, int]]:
    """Return a sum of each file and the time of its last change."""
    files = (path for volume in volumes for path in sorted(volume.rglob("*")) if path.is_file())
    return {str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in files}


def wanted(name: str, records: dict[int, tuple[str, ...]]) -> list[int]:
    """Return the offsets that must be there or be reported lost: for a compacted topic the last one of each key."""
    if not name.startswith(f"{COMPACTED}-"):
        return list(records)
    last = {record[1]: offset for offset, record in sorted(records.items())}
    return sorted(last.values())


def unreported(account: dict, reported: set[str], volumes: Sequence[Path]) -> list[str]:
    """Return the partitions that the account should have: without a whole metadata log only folders show them."""
    is_whole = account["metadata"]["from"] and not account["metadata"]["breaks"]
    folders = {path.name for volume in volumes for path in volume.glob("logs*/*")}
    return [
        f"{name} is not in the account" for name in PARTITIONS if name not in reported and (is_whole or name in folders)
    ]


def differences(
    account: dict, want: Records, ends: dict[str, tuple[int, int]], got: Records, found: dict[str, tuple[int, int]]
) -> list[str]:
    """Return the faults of a rebuilt cluster."""
    said = []
    reported = {f"{one['topic']}-{one['partition']}": one for one in account["partitions"]}
    for name in PARTITIONS:
        one = reported.get(name)
        if one is None:
            continue
        end = ends[name][1]
        lost = {n for part in one["lost"] for n in range(part["fromOffset"], min(part["untilOffset"], end + 1))}
        if one["state"] == "lost":
            lost.update(range(end))  # all of it, whatever is known of its end
        missing = {offset for offset in wanted(name, want[name]) if offset not in got[name]}
        wrong = {offset for offset, record in got[name].items() if want[name].get(offset) != record}
        if wrong:
            said.append(f"{name}: other records at {sorted(wrong)[:9]}")
        if missing - lost:
            said.append(f"{name}: missing and not called lost: {sorted(missing - lost)[:9]}")
        if lost & got[name].keys():
            said.append(f"{name}: called lost and there: {sorted(lost & got[name].keys())[:9]}")
        if (one["logStartOffset"], one["endOffset"]) != found[name]:
            said.append(f"{name}: account {one['logStartOffset']} to {one['endOffset']}, broker {found[name]}")
        if one["state"] != "lost" and found[name][1] < ends[name][1]:
            said.append(f"{name}: ends at {found[name][1]}, not {ends[name][1]}")
    return said


def prove(release: str, folder: Path, cases: range) -> bool:
    """Run the cases; return whether all hold."""
    origin, want, ends = (
        again(folder / "live") if (folder / "live" / TRUTH).exists() else live(release, folder / "live")
    )
    print(f"{sum(map(len, want.values()))} records in {len(PARTITIONS)} partitions", flush=True)
    bad = 0
    states: Counter[str] = Counter()
    for number in cases:
        root = folder / f"case-{number}"
        volumes = [root / "volumes" / one.name for one in origin]
        for one, copy in zip(origin, volumes, strict=True):
            shutil.copytree(one, copy)
        done = damage(volumes, random.Random(number))
        left = [volume for volume in volumes if volume.exists()]
        before = state(left)
        port, controller = free_ports(2)
        out = root / "out"
        node = f"1@127.0.0.1:{port}/{controller}"
        ran = kdump("rebuild-cluster", *left, "--out", out, "--node", node, "--release", release, "--yes", "-q")
        said = [] if state(left) == before else ["the volumes have changed"]
        if ran.returncode not in (0, 3):
            said.append(f"status {ran.returncode}: {ran.stderr.decode()[-500:]}")
        else:
            account = json.loads((out / "account.json").read_text())
            states.update(one["state"] for one in account["partitions"] if f"{one['topic']}-{one['partition']}" in ends)
            lossy = any(one["lost"] or one["state"] == "lost" for one in account["partitions"])
            if lossy and ran.returncode == 0:
                said.append("status 0, and something is lost")
            reported = {f"{one['topic']}-{one['partition']}" for one in account["partitions"]}
            said += unreported(account, reported, left)
            with RebuiltNode(release, root / "node", out / "node-1.properties", port) as broker:
                said += differences(account, want, ends, *consumed(broker, sorted(reported & {*PARTITIONS})))
        bad += bool(said)
        print(
            f"case {number}: {'holds' if not said else 'DOES NOT HOLD'}: {'; '.join(done) or 'no damage'}", flush=True
        )
        for text in said:
            print(f"  {text}", flush=True)
        if not said:
            shutil.rmtree(root)
    print(f"{len(cases) - bad} of {len(cases)} hold; partitions: {dict(states)}")
    return not bad


def main() -> int:
    parser = arguments.parser(__doc__, release="4.3.1", cases=30, seed=0)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a folder that is kept, for another run")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        return 0 if prove(options.release, folder, range(options.seed, options.seed + options.cases)) else 1


if __name__ == "__main__":
    sys.exit(main())
