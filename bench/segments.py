"""The segments that the benchmark reads, made by kdump's own writers with the real codecs.

The records are like those of an ordinary topic: 10-byte keys, JSON values of some 105 bytes, one header, a record per
ms. A segment is made once and kept; its file name describes it.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.formats import record_layout
from kdump.primitives import compression
from kdump.records import magic_0_1, magic_2
from testing import forge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BATCH_BYTES: Final = 16 << 10
UNIQUE: Final = 100_000
"""Number of different records of magic 2: a larger segment repeats their batches with other offsets."""
START_MS: Final = 1_700_000_000_000


class Shape(NamedTuple):
    """The properties of a segment."""

    name: str
    magic: int = 2
    codec: int = compression.NONE
    value_bytes: int = 105
    """Approximate; values are JSON texts."""
    batch_bytes: int = BATCH_BYTES
    """Size of the records of one batch before compression."""
    has_headers: bool = True
    """Whether each record has one header."""
    share: float = 1.0
    """The part of the requested records that this segment has: fewer if they are large."""


SHAPES: Final = {
    shape.name: shape
    for shape in (
        *(Shape(name, codec=codec) for codec, name in enumerate(compression.NAMES)),
        Shape("no-headers", has_headers=False),
        Shape("small", value_bytes=24),
        Shape("singles", batch_bytes=1),
        Shape("large", value_bytes=100_000, batch_bytes=1 << 20, share=0.001),
        Shape("large-zstd", codec=compression.ZSTD, value_bytes=100_000, batch_bytes=1 << 20, share=0.001),
        Shape("magic0", magic=0),
        Shape("magic0-gzip", magic=0, codec=compression.GZIP),
        Shape("magic1", magic=1),
        Shape("magic1-lz4", magic=1, codec=compression.LZ4),
    )
}


def path(folder: Path, shape: Shape, records: int) -> Path:
    """Return the segment's path, in a folder of its own so that its name is that of a base offset."""
    return folder / f"{shape.name}-{records}" / f"{0:020}.log"


def make(folder: Path, shape: Shape, records: int) -> Path:
    """Return the path of a segment of that shape; write it if it does not exist."""
    target = path(folder, shape, records)
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(".partial")
        with partial.open("wb") as out:
            for entry in entries(shape, max(1, int(records * shape.share))):
                out.write(entry)
        partial.rename(target)
    return target


def entries(shape: Shape, records: int) -> Iterator[bytes]:
    """Yield the batches, or the messages and wrappers, of a segment."""
    if shape.magic != record_layout.MAGIC_2:
        yield from _messages(shape, records)
        return
    batches = list(_batches(shape, min(records, UNIQUE)))
    yield from repeated(batches, min(records, UNIQUE), records)


def repeated(batches: list[bytes], held: int, records: int) -> Iterator[bytes]:
    """Yield ``records`` records of magic 2: repeat batches with ``held`` records from offset 0 on.

    The CRC of a batch does not cover its first offset. The last repetition may have fewer batches, and the total a few
    records more.
    """
    base = 0
    while True:
        for one in batches:
            offset = base + int.from_bytes(one[:8], "big")
            if offset >= records:
                return
            yield offset.to_bytes(8, "big") + one[8:]
        base += held


class Content(NamedTuple):
    """Key and value of one record."""

    key: bytes
    value: bytes


def contents(shape: Shape, records: int) -> Iterator[Content]:
    """Yield keys and values, the same ones in each run."""
    seed = random.Random(7)
    filler = "".join(seed.choices("abcdefghijklmnopqrstuvwxyz ", k=max(0, shape.value_bytes - 84) + 1000))
    for number in range(records):
        user = seed.randrange(1_000_000)
        if shape.value_bytes < 84:
            value = f'{{"user":{user},"n":{number}}}'
        else:
            at = seed.randrange(1000)
            note = filler[at : at + shape.value_bytes - 84]
            paid = f'"amount":{user / 100:.2f},"currency":"EUR","state":"paid"'
            value = f'{{"user":{user},"n":{number},{paid},"note":"{note}"}}'
        yield Content(b"user%06d" % user, value.encode())


def _batches(shape: Shape, records: int) -> Iterator[bytes]:
    part: list[bytes] = []
    size = base = 0
    for number, (key, value) in enumerate(contents(shape, records)):
        headers = [(b"trace", b"%09x" % number)] if shape.has_headers else []
        record = magic_2.write_record(
            timestamp_delta=number - base, offset_delta=number - base, key=key, value=value, headers=headers
        )
        if part and size + len(record) > shape.batch_bytes:
            yield _batch(shape, base, part)
            part, size, base = [], 0, number
            record = magic_2.write_record(timestamp_delta=0, offset_delta=0, key=key, value=value, headers=headers)
        part.append(record)
        size += len(record)
    yield _batch(shape, base, part)


def _batch(shape: Shape, base: int, records: list[bytes]) -> bytes:
    last = len(records) - 1
    header = record_layout.BatchHeader(
        base_offset=base,
        length=0,
        partition_leader_epoch=3,
        magic=record_layout.MAGIC_2,
        crc=0,
        attributes=shape.codec,
        last_offset_delta=last,
        base_timestamp=START_MS + base,
        max_timestamp=START_MS + base + last,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=last + 1,
    )
    return magic_2.write_batch(header, compression.compress(shape.codec, b"".join(records)))


def _messages(shape: Shape, records: int) -> Iterator[bytes]:
    made = (
        (number, forge.message(shape.magic, key, value, timestamp=START_MS + number))
        for number, (key, value) in enumerate(contents(shape, records))
    )
    if shape.codec == compression.NONE:
        for number, entry in made:
            yield magic_0_1.write_entry(number, entry)
        return
    part: list[tuple[int, bytes]] = []
    size = 0
    for number, entry in made:
        if part and size + len(entry) > shape.batch_bytes:
            yield _wrapper(shape, part)
            part, size = [], 0
        part.append((number, entry))
        size += len(entry) + record_layout.LOG_OVERHEAD.size
    yield _wrapper(shape, part)


def _wrapper(shape: Shape, inner: list[tuple[int, bytes]]) -> bytes:
    """Return a wrapper: inner offsets are absolute in magic 0 and count from 0 in magic 1."""
    base = inner[0][0] if shape.magic else 0
    last = inner[-1][0]
    messages = b"".join(magic_0_1.write_entry(number - base, entry) for number, entry in inner)
    packed = compression.compress(shape.codec, messages, magic=shape.magic)
    return magic_0_1.write_entry(
        last,
        forge.message(shape.magic, None, packed, timestamp=START_MS + last, attributes=shape.codec),
    )
