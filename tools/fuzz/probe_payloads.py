"""Write records of Kafka's own topics at random, valid and broken, and compare kdump's output with that of releases.

    python -m tools.fuzz.probe_payloads   300 records of each switch, seed 1, release 4.4.0.
    python -m tools.fuzz.probe_payloads --seed 7 --count 2000 3.9.2 2.4.1

Every message of the schema texts is written in every version and in the layout of every release that changed it, with
random values; half of the records are then broken: truncated, longer, or with a changed byte. Each record is in a
separate file, because a broken record ends the run in many releases. The exit status is 1 if the standard output or the
exit status of a run differs.
"""

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kdump.dump_log_segments.dialects import segments as dialects
from kdump.internal_topics import (
    DECODER_SWITCHES,
    cluster_metadata,
    consumer_offsets,
    remote_log_metadata,
    share_group_state,
    transaction_state,
)
from kdump.internal_topics.interpreter import write
from kdump.internal_topics.schema import MessageSchema, Slot, Struct, Value, Values
from kdump.primitives.wire import write_unsigned_varint
from testing import forge
from tools import arguments
from tools.fuzz import forked
from tools.record import original

SWITCHES = {
    DECODER_SWITCHES[module.TOPIC]: module.MESSAGES
    for module in (consumer_offsets, transaction_state, cluster_metadata, remote_log_metadata, share_group_state)
}
WORDS = ("", "a", "consumer", "range", "topic-1", 'q"\\\n', "é€😀", "connect")
NUMBERS = (0, 1, -1, 2, 5, 7, 127)

FITTING = {
    "startOffset": (0, 3, 5, -1),
    "endOffset": (5, 7, 3, 900),
    "remoteLogSegmentState": (-1, 0, 1, 2, 3, 4),
    "remotePartitionDeleteState": (-1, 0, 1, 2, 3),
    "clientTransactionVersion": (0, 1, 2, 3, -1),
    "transactionStatus": (-1, 0, 1, 2, 3, 4, 5, 6, 7, 8),
}
"""Field -> numbers near the border between valid and invalid."""

Record = tuple[bytes | None, bytes | None]


def value_of(slot: Slot, rng: random.Random) -> Value:
    if slot.nullable and rng.random() < 0.2:
        return None
    if slot.array:
        return [one(slot, rng) for _ in range(rng.choice((0, 1, 1, 2, 3, 9, 20)))]
    return one(slot, rng)


def one(slot: Slot, rng: random.Random) -> Value:
    if slot.struct is not None:
        return values_of(slot.struct, rng)
    if slot.name in FITTING:
        return rng.choice(FITTING[slot.name])
    if slot.type.startswith(("int", "uint")):
        bits = int(slot.type.lstrip("uint"))
        value = rng.choice((rng.choice(NUMBERS), rng.getrandbits(bits))) & (1 << bits) - 1
        return value if slot.type.startswith("u") or value < 1 << bits - 1 else value - (1 << bits)
    if slot.name in {"memberId", "groupInstanceId"} and rng.random() < 0.9:
        return rng.randbytes(4).hex()
    if slot.name in {"assignment", "subscription"}:
        return embedded(slot.name, rng)
    scalars: dict[str, Value] = {
        "bool": rng.random() < 0.5,
        "float64": rng.choice((0.0, 1.5, -2e-5, 123456789.25, float(rng.getrandbits(40)))),
        "uuid": rng.randbytes(16),
        "string": rng.choice(WORDS),
        "bytes": rng.randbytes(rng.randrange(5)),
    }
    return scalars[slot.type]


def embedded(name: str, rng: random.Random) -> bytes:
    """Return the bytes of a member of a classic group: usually those of the consumer protocol."""
    if rng.random() < 0.2:
        return rng.randbytes(rng.randrange(6))
    version = rng.choice((0, 1, 2, 3, 3, 9))
    schema = consumer_offsets.MEMBER_MESSAGES[f"ConsumerProtocol{name.capitalize()}"].struct(version)
    return version.to_bytes(2, "big") + write(schema, values_of(schema, rng))


def values_of(schema: Struct, rng: random.Random) -> Values:
    return {slot.name: value_of(slot, rng) for slot in schema.slots if slot.tag is None or rng.random() < 0.6}


def records(messages: dict[str, MessageSchema], rng: random.Random) -> Iterator[Record]:
    """Yield valid records without end: every message in every version and layout in turn."""
    while True:
        for message in messages.values():
            for release in message.releases():
                versions, types = message.versions(release), message.types.at(release)
                if versions is None or not types or message.name.endswith("Key"):
                    continue
                for version in range(versions.lowest, versions.highest + 1):
                    schema = message.struct(version, release)
                    body = write(schema, values_of(schema, rng))
                    number = rng.choice(types)
                    if message.name.endswith("Value"):
                        key = messages[message.name.removesuffix("Value") + "Key"].struct(0, release)
                        key_bytes = number.to_bytes(2, "big") + write(key, values_of(key, rng))
                        yield key_bytes, None if rng.random() < 0.05 else version.to_bytes(2, "big") + body
                    else:
                        frame = b"\0" if release < (3, 0) and rng.random() < 0.9 else b"\1"
                        yield None, frame + write_unsigned_varint(number) + write_unsigned_varint(version) + body


def broken(data: bytes | None, rng: random.Random) -> bytes | None:
    """Return the bytes with one change."""
    if not data:
        return data
    at = rng.randrange(len(data))
    return rng.choice(
        (
            data[:at],
            data + rng.randbytes(rng.randrange(1, 4)),
            data[:at] + bytes([rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF, rng.getrandbits(8)))]) + data[at + 1 :],
            data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :],
        )
    )


def make(switch: str, count: int, rng: random.Random) -> list[Record]:
    made = []
    for (key, value), _ in zip(records(SWITCHES[switch], rng), range(count), strict=False):
        if rng.random() < 0.5:
            if rng.random() < 0.1:
                key = broken(key, rng)
            else:
                value = broken(value, rng)
        made.append((key, value))
    return made


def probe(release: str, seed: int, count: int, most: int) -> int:
    """Run both; return the number of runs that differ."""
    rng = random.Random(f"{seed} {count}")
    cases: dict[str, list[str]] = {}
    reported: dict[str, Record] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        for switch in SWITCHES:
            if switch not in dialects.find(release).options:
                continue
            for number, record in enumerate(make(switch, count, rng)):
                name = f"{switch}-{number}"
                (folder / name).mkdir()
                (folder / name / f"{0:020}.log").write_bytes(forge.entry(0, forge.message(0, *record)))
                cases[name] = [f"--{switch}", "--print-data-log", "--deep-iteration", "--files", f"{name}/{0:020}.log"]
                reported[name] = record
        differing = 0
        for theirs in original.runs(release, cases, folder):
            ours = forked.run(["--compat", release, *cases[theirs.name]], folder)
            if (ours.status, ours.stdout) != (theirs.status, theirs.stdout):
                differing += 1
                if differing <= most:
                    key, value = reported[theirs.name]
                    print(f"{release} {theirs.name} key={key and key.hex()} value={value and value.hex()}")
                    print(f"  ours   {ours.status} {ours.stdout[-700:]!r} {ours.stderr[-300:]!r}")
                    print(f"  theirs {theirs.status} {theirs.stdout[-700:]!r} {theirs.stderr[:300]!r}")
    print(f"{release}: {len(cases) - differing} of {len(cases)} records print the same")
    return differing


def main() -> int:
    parser = arguments.parser(__doc__, seed=1)
    parser.add_argument("releases", nargs="*", default=["4.4.0"])
    parser.add_argument("--count", type=int, default=300, help="records of each switch (%(default)s)")
    parser.add_argument("--most", type=int, default=10, help="differences to show per release (%(default)s)")
    options = parser.parse_args()
    return int(sum(probe(release, options.seed, options.count, options.most) for release in options.releases) > 0)


if __name__ == "__main__":
    sys.exit(main())
