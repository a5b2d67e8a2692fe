"""Write messages of Kafka's own topics at random, valid and broken, and compare kdump's reading with Kafka's classes.

    python -m tools.fuzz.probe_messages   300 of each message and version, seed 1, release 4.4.0
    python -m tools.fuzz.probe_messages --seed 7 --count 2000 4.3.1

`probe_payloads` runs the release's tool. This module runs the classes with which the tool and the brokers read. So it
covers messages that the tool does not print, and releases whose tool is not published. Both must give the same JSON and
leave the same number of bytes, and refuse the same messages. The exit status is 1 if one differs.
"""

import json
import random
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kdump.dump_log_segments.decoders import java
from kdump.internal_topics import (
    cluster_metadata,
    consumer_offsets,
    remote_log_metadata,
    share_group_state,
    transaction_state,
)
from kdump.internal_topics.decode import decode, read_well_formed
from kdump.internal_topics.interpreter import PayloadError, Reader, read, write
from kdump.internal_topics.schema import MessageSchema, Release, Struct, parse_release
from kdump.primitives.wire import write_unsigned_varint
from tools import arguments
from tools.fuzz.probe_payloads import broken, values_of
from tools.record.fetch_jars import fetch

SOURCE: Final = Path(__file__).with_name("ReadMessages.java")
PACKAGES: Final = (
    ("org.apache.kafka.coordinator.group.generated", consumer_offsets.TOPIC, consumer_offsets.MESSAGES),
    ("org.apache.kafka.coordinator.transaction.generated", transaction_state.TOPIC, transaction_state.MESSAGES),
    ("org.apache.kafka.coordinator.share.generated", share_group_state.TOPIC, share_group_state.MESSAGES),
    ("org.apache.kafka.common.metadata", cluster_metadata.TOPIC, cluster_metadata.MESSAGES),
    (
        "org.apache.kafka.server.log.remote.metadata.storage.generated",
        remote_log_metadata.TOPIC,
        remote_log_metadata.MESSAGES,
    ),
    ("org.apache.kafka.common.message", "", cluster_metadata.CONTROL_MESSAGES),
    ("org.apache.kafka.common.message", "", consumer_offsets.MEMBER_MESSAGES),
)
"""The package of the classes, the topic of their records (empty: no own topic), and the messages."""


class Sample(NamedTuple):
    """A message: its class, version and bytes, and the topic of its record."""

    class_name: str
    topic: str
    message: MessageSchema
    struct: Struct
    version: int
    body: bytes
    is_sound: bool


def samples(release: Release, count: int, rng: random.Random) -> Iterator[Sample]:
    """Yield `count` samples of each version of each message of the release; every second sample is broken."""
    for package, topic, messages in PACKAGES:
        for name, message in messages.items():
            versions = message.versions(release)
            if versions is None:
                continue
            is_key = name.endswith("Key")  # its "version" is the number of the record type, and not of its layout
            for version in [0] if is_key else range(versions.lowest, versions.highest + 1):
                struct = message.struct(version, release)
                for number in range(count):
                    body = write(struct, values_of(struct, rng))
                    is_sound = number % 2 == 0
                    changed = body if is_sound else broken(body, rng) or b""
                    yield Sample(f"{package}.{name}", topic, message, struct, version, changed, is_sound)


def theirs(release: str, wanted: list[Sample]) -> list[list[str]]:
    """Return the results of the classes: the number of remaining bytes and the JSON, or "-" and the reason."""
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary, "samples")
        lines = (f"{one.class_name}\t{one.version}\t{b64encode(one.body).decode()}\n" for one in wanted)
        file.write_text("".join(lines), encoding="ascii")
        command = ["java", "-Xmx1g", "-Dfile.encoding=UTF-8", "-cp", f"{fetch(release, server=True)}/*"]
        done = subprocess.run([*command, str(SOURCE), str(file)], check=True, stdout=subprocess.PIPE)
    return [line.split("\t", 1) for line in done.stdout.decode("utf-8").split("\n")[:-1]]


def ours(sample: Sample) -> list[str]:
    """Return kdump's result in the same form."""
    reader = Reader(sample.body)
    try:
        values = read(sample.struct, reader)
    except PayloadError as refused:
        return ["-", refused.what]
    return [str(reader.remaining), java.json(sample.struct, values)]


def by_record(sample: Sample, release: Release) -> str:
    """Return the JSON of a valid message in a record of its topic. Only its bytes identify it."""
    number = sample.message.types.at(release)[0]
    if sample.message.name.endswith("Key"):
        record = decode(sample.topic, number.to_bytes(2, "big") + sample.body, None)
        part = record and record.key
    elif sample.message.name.endswith("Value"):
        record = decode(sample.topic, number.to_bytes(2, "big"), sample.version.to_bytes(2, "big") + sample.body)
        part = record and record.value
    else:
        head = b"\1" + write_unsigned_varint(number) + write_unsigned_varint(sample.version)
        record = decode(sample.topic, None, head + sample.body)
        part = record and record.value
    if part is None or part.values is None:
        return f"{part}"
    return java.json(sample.message.struct(sample.version, release), part.values)


def same(mine: str, said: str) -> bool:
    """Return whether two texts are the same JSON. JVMs before 19 write some doubles with more digits than needed."""
    return mine == said or (mine[:1] == "{" and json.loads(mine) == json.loads(said))


def differences(release: str, wanted: list[Sample]) -> Iterator[str]:
    at = parse_release(release)
    for sample, said in zip(wanted, theirs(release, wanted), strict=True):
        mine = ours(sample)
        shown = f"{sample.class_name} v{sample.version} {sample.body.hex()}\n  ours   {mine}\n  theirs {said}"
        if mine[0] != said[0] or (mine[0] != "-" and not same(mine[1], said[1])):
            yield shown
        elif sample.is_sound:
            whole = read_well_formed(sample.struct, sample.body, 0)
            if whole is not None and not same(java.json(sample.struct, whole), said[1]):
                yield f"{shown}\n  kernel {whole}"
            if sample.topic and not same(record := by_record(sample, at), said[1]):
                yield f"{shown}\n  record {record}"


def main() -> int:
    """Probe the given releases."""
    parser = arguments.parser(__doc__, seed=1)
    parser.add_argument("releases", nargs="*", default=["4.4.0"], help="from 3.9 on (4.4.0)")
    parser.add_argument("--count", type=int, default=300, help="of each message and version (%(default)s)")
    parser.add_argument("--most", type=int, default=10, help="differences to show per release (%(default)s)")
    options = parser.parse_args()
    failed = 0
    for release in options.releases:
        rng = random.Random(f"{options.seed} {options.count}")
        wanted = list(samples(parse_release(release), options.count, rng))
        found = list(differences(release, wanted))
        names = len({sample.class_name for sample in wanted})
        print(*found[: options.most], sep="\n")
        print(f"{release}: {len(wanted) - len(found)} of {len(wanted)} samples of {names} messages are read the same")
        failed += len(found)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
