"""Decode mutated payloads and schemas: each gives a value or a reason, and the value equals that of the library.

    python -m tools.fuzz.decoding [--count N] [--schemas N] [--seed N]

Payloads are those of golden/registries.tar.xz, with bytes flipped, removed, repeated, or a length made huge. Records of
its `_schemas` are changed too, and other payloads are decoded with the changed schemas. The exit status is 1 with the
first input that fails. An input fails if it raises something else, if the kernel and the general path differ, or if
fastavro or protobuf read another value. More than a second of processor time, or 1 GiB more memory than at the start,
is a failure too.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import kdump
from kdump import kernel
from kdump.printers.json_text import scalar
from kdump.rows.columns import DECODED
from kdump.schemas.decoder import PayloadDecoder
from kdump.schemas.store import SchemaStore
from testing import GOLDEN
from tools import arguments
from tools.fuzz.library_values import Libraries

if TYPE_CHECKING:
    from collections.abc import Iterable

SECONDS = 1.0
MEMORY = 1 << 30
HUGE = (b"\xff" * 9 + b"\x01", b"\xfe" * 4 + b"\x7f", b"\x80" * 10, b"\xff\xff\xff\xff\x0f")


class Payload(NamedTuple):
    """A payload, and its origin."""

    topic: str
    side: str
    data: bytes
    headers: tuple[tuple[bytes, bytes | None], ...]


def main() -> int:
    """Mutate, decode and compare."""
    parser = arguments.parser(__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--schemas", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(GOLDEN / "registries.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        clusters = [(records(path / "_schemas-0"), payloads(path)) for path in sorted(Path(folder).glob("*/logs"))]
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    found: dict[str, int] = {}
    for number in range(given.count):
        schemas, all_payloads = clusters[number % len(clusters)]
        decoder = decoder_of(number % len(clusters), schemas)
        one = rng.choice(all_payloads)
        changed = one._replace(data=mutated(rng, one.data))
        check(decoder, changed, found, one.data, _LIBRARIES[number % len(clusters)])
    print(f"{given.count:,} payloads: {shown(found)}")
    found.clear()
    for number in range(given.schemas):
        schemas, all_payloads = clusters[number % len(clusters)]
        place = rng.randrange(len(schemas))
        offset, timestamp, key, value = schemas[place]
        broken = [*schemas[:place], (offset, timestamp, key, mutated(rng, value or b"{}")), *schemas[place + 1 :]]
        decoder = PayloadDecoder(store_of(broken))
        for one in rng.sample(all_payloads, 30):
            check(decoder, one, found, one.data)
    print(
        f"{given.schemas:,} schema records: {', '.join(f'{count:,} {what}' for what, count in sorted(found.items()))}"
    )
    return 0


def shown(found: dict[str, int]) -> str:
    """Return counts as text."""
    return ", ".join(f"{count:,} {what}" for what, count in sorted(found.items()))


_DECODERS: dict[int, PayloadDecoder] = {}
_LIBRARIES: dict[int, Libraries] = {}


def decoder_of(number: int, schemas: list[tuple[int, int, bytes | None, bytes | None]]) -> PayloadDecoder:
    """Return the decoder of a cluster, created once."""
    if number not in _DECODERS:
        store = store_of(schemas)
        _DECODERS[number] = PayloadDecoder(store)
        _LIBRARIES[number] = Libraries(store)
    return _DECODERS[number]


def records(folder: Path) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [(one.offset, one.timestamp, one.key, one.value) for one in kdump.open(str(folder))]


def store_of(schemas: Iterable[tuple[int, int, bytes | None, bytes | None]]) -> SchemaStore:
    store = SchemaStore()
    for one in schemas:
        store.add(*one)
    return store


def payloads(logs: Path) -> list[Payload]:
    """Return the keys and values in a log dir that have a schema."""
    found = []
    for one in kdump.open(str(logs)):
        headers = tuple((name, value) for name, value in one.headers)
        for side, data in (("key", one.key), ("value", one.value)):
            if data is not None and len(data) < 4096 and (data[:1] in (b"\0", b"\xc3", b"O") or headers):
                found.append(Payload(one.topic or "", side, data, headers))
    return found


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Return bytes with one to three changes."""
    made = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(made) + 1)
        kind = rng.randrange(6)
        if kind == 0 and made:
            made[place % len(made)] ^= 1 << rng.randrange(8)
        elif kind == 1 and made:
            made[place % len(made)] = rng.choice((0, 1, 2, 127, 128, 255))
        elif kind == 2:
            del made[place : place + rng.randrange(1, 9)]
        elif kind == 3:
            made[place:place] = made[max(0, place - 8) : place]
        elif kind == 4:
            made[place : place + 1] = rng.choice(HUGE)
        else:
            del made[place:]
    return bytes(made)


def check(
    decoder: PayloadDecoder, one: Payload, found: dict[str, int], sound: bytes, libraries: Libraries | None = None
) -> None:
    """Decode a payload in both ways, and with the libraries. A fault ends the process with status 1.

    ``sound`` is a payload with which the kernel learns the schema.
    """
    begun = time.process_time()
    try:
        side = decoder.side(one.topic, one.side, one.data, one.headers)  # type: ignore[arg-type]  # key or value
        text = "null" if side is None else scalar(DECODED, side)
        json.loads(text)
        if kernel.COMPILED:
            from kdump.printers.decoded_text import DecodedText

            writer = DecodedText(decoder, one.topic)
            made = b""
            for data in (sound, one.data):
                pair = (data, None) if one.side == "key" else (None, data)
                made = writer.text(*pair, one.headers)  # type: ignore[arg-type]  # pairs are headers
            pair_text = f'{text},"value":null' if one.side == "key" else f'null,"value":{text}'
            if made != (b"" if side is None else f'{{"key":{pair_text}}}'.encode()):
                raise ValueError(f"the kernel writes {made!r}, the general path {text!r}")
        took = time.process_time() - begun
        differs = None if libraries is None or side is None else compared(libraries, one, side, found)
        if differs:
            raise ValueError(f"kdump reads {differs}")
    except Exception as reason:
        print(f"{one.topic} {one.side} {one.data.hex()}: {type(reason).__name__}: {reason}")
        raise SystemExit(1) from reason
    if took > SECONDS:
        print(f"{one.topic} {one.side} {one.data.hex()}: {took:.1f} s")
        raise SystemExit(1)
    what = "without a frame" if side is None else side.get("problem", "decoded")
    found[what] = found.get(what, 0) + 1


def compared(libraries: Libraries, one: Payload, side: dict[str, Any], found: dict[str, int]) -> str | None:
    """Return how a library's value differs, and count the comparison. A library may refuse parts that kdump reads."""
    try:
        differs = libraries.difference(one.data, side) if "subject" in side else None
    except Exception as reason:
        if "problem" in side:
            return None
        raise ValueError(f"the library refuses it: {type(reason).__name__}: {reason}") from reason
    if differs == "":
        found["equal to the library's value"] = found.get("equal to the library's value", 0) + 1
    return differs


if __name__ == "__main__":
    sys.exit(main())
