"""Compare kdump with a consumer on tiered partitions, with local and remote segments as one log.

    python -m tools.prove.tiered --plugin CLASSPATH [--release RELEASE] [--folder DIR]

CLASSPATH is that of Aiven's tiered-storage-for-apache-kafka with its file system backend: the jars of a release's two
archives (``core`` and ``filesystem``); Maven Central has none. A broker of the release (4.2.2) copies two topics with
it in each of four ways: as they are, compressed, encrypted, both. Then every record that a consumer gets must be one
that `kdump dump --remote` prints, and none more; `kdump check --remote` must find nothing.
"""

import base64
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from testing.tiered import Keys
from tools import arguments
from tools.prove.broker import Broker

CLIENT: Final = Path(__file__).with_name("TieredClient.java")
TOPICS: Final = ("orders", "views")
SETTINGS: Final = {
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "transaction.state.log.min.isr": "1",
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "500",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "remote.log.storage.manager.class.name": "io.aiven.kafka.tieredstorage.RemoteStorageManager",
    "rsm.config.storage.backend.class": "io.aiven.kafka.tieredstorage.storage.filesystem.FileSystemStorage",
    "rsm.config.key.prefix": "some/prefix/",
    "rsm.config.chunk.size": "65536",
    "rsm.config.custom.metadata.fields.include": "REMOTE_SIZE,OBJECT_PREFIX,OBJECT_KEY",
}
WAYS: Final = ((False, False), (True, False), (False, True), (True, True))
"""Whether segments are compressed, and encrypted."""


def settings(folder: Path, plugin: str, *, compressed: bool, encrypted: bool) -> dict[str, str]:
    """Return what a broker needs to copy its segments to a folder, with a fresh key pair in it."""
    store = folder / "store"
    store.mkdir(parents=True)
    found = {
        **SETTINGS,
        "remote.log.storage.manager.class.path": plugin,
        "rsm.config.storage.root": str(store),
        "rsm.config.compression.enabled": str(compressed).lower(),
        "rsm.config.encryption.enabled": str(encrypted).lower(),
    }
    if encrypted:
        keys = Keys()
        (folder / "private.pem").write_bytes(keys.pem())
        (folder / "public.pem").write_bytes(keys.public_pem())
        pair = f"rsm.config.encryption.key.pairs.{keys.name}"
        found |= {
            "rsm.config.encryption.key.pair.id": keys.name,
            "rsm.config.encryption.key.pairs": keys.name,
            f"{pair}.public.key.file": str(folder / "public.pem"),
            f"{pair}.private.key.file": str(folder / "private.pem"),
        }
    return found


def kdump(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "kdump", *words], check=False, capture_output=True, text=True)


def records(text: str) -> list[tuple[object, ...]]:
    """Return the records of ``dump -o jsonl --encoding base64``, in order: partition, offset, time, key, value."""
    lines = map(json.loads, text.splitlines())
    return [
        (f"{line['topic']}-{line['partition']}", line["offset"], line["timestampMs"], line["key"], line["value"])
        for line in lines
        if line["kind"] == "record" and not line["isControl"]
    ]


def consumed(broker: Broker, names: list[str]) -> list[tuple[object, ...]]:
    """Return the records that a consumer gets, in the same form."""
    found = []
    for line in broker.consume(names):
        if line[1] != "end":
            key, value = (None if cell == "null" else plain(cell) for cell in line[3:5])
            found.append((line[0], int(line[1]), int(line[2]), key, value))
    return sorted(found, key=lambda record: (str(record[0]), record[1]))


def plain(cell: str) -> str:
    """Return the base64 of a cell, without the dot after it."""
    return base64.b64encode(base64.b64decode(cell.removesuffix("."))).decode()


def prove(folder: Path, release: str, plugin: str, *, compressed: bool, encrypted: bool) -> list[str]:
    given = settings(folder, plugin, compressed=compressed, encrypted=encrypted)
    names = [f"{topic}-{number}" for topic in TOPICS for number in range(2)]
    with Broker(release, folder / "broker", given) as broker:
        print(broker.run(CLIENT, broker.address, "7", *TOPICS), end="", flush=True)
        theirs = consumed(broker, names)
        broker.stop()
        remote = ["--remote", str(folder / "store")]
        remote += ["--remote-key", f"key1={folder / 'private.pem'}"] if encrypted else []
        topics = [word for topic in TOPICS for word in ("--topic", topic)]
        dumped = kdump("dump", str(broker.logs), *topics, *remote, "-o", "jsonl", "--encoding", "base64")
        checked = kdump("check", str(broker.logs), *remote)
    ours = sorted(records(dumped.stdout), key=lambda record: (str(record[0]), record[1]))
    local = records(kdump("dump", str(broker.logs), *topics, "-o", "jsonl", "--encoding", "base64").stdout)
    print(f"{len(theirs)} records consumed, {len(ours)} dumped, {len(local)} of them local", flush=True)
    wrong = [] if ours == theirs else [f"{len(set(ours) ^ set(theirs))} records differ"]
    wrong += [] if dumped.returncode == 0 else [f"dump ends with {dumped.returncode}: {dumped.stderr[-2000:]}"]
    wrong += [] if checked.returncode == 0 else [f"check ends with {checked.returncode}: {checked.stdout[-3000:]}"]
    return wrong if len(local) < len(ours) else [*wrong, "all records are local: nothing is proved"]


def main() -> int:
    """Run the proof in each way."""
    parser = arguments.parser(__doc__)
    parser.add_argument("--plugin", required=True, help="class path of the remote storage manager")
    parser.add_argument("--release", default="4.2.2", help="of the broker (%(default)s)")
    parser.add_argument("--folder", type=Path, help="where all is kept")
    options = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as temporary:
        for compressed, encrypted in WAYS:
            way = f"compressed {compressed}, encrypted {encrypted}"
            place = (options.folder or Path(temporary)) / f"{compressed}-{encrypted}"
            print(way, flush=True)
            found = prove(place, options.release, options.plugin, compressed=compressed, encrypted=encrypted)
            wrong += [f"{way}: {one}" for one in found]
    print("\n".join(wrong) if wrong else "kdump's records are the consumer's")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
