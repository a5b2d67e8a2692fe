"""Seeded pairs of replicas of one partition, and the offsets at which their records differ.

A pair begins as one log, with transactions. Each side is then changed in its own way: it is truncated inside a batch,
has flipped or zeroed bytes, follows another leader from some offset on, is compacted, has the same records in other
batches of other codecs, or has the first of them as messages of magic 0 or 1. The truth comes from the batches that
were written, never from a reader: a batch counts where its bytes are all in the file as they were written.
"""

from __future__ import annotations

import gzip
import random
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby
from typing import TYPE_CHECKING, TypeAlias

import lz4.frame
import snappy
import zstandard

from testing import forge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Record: TypeAlias = tuple[int, bytes, bytes]
"""Offset, key, value. The timestamp is TIME."""
TIME = 1_700_000_000_000
Held: TypeAlias = "dict[int, tuple[Record, bool, int | None, int | None]]"
GZIP = 1
PACK: dict[int, Callable[[bytes], bytes]] = {
    GZIP: lambda data: gzip.compress(data, mtime=0),
    2: snappy.compress,
    3: lz4.frame.compress,
    4: lambda data: zstandard.ZstdCompressor().compress(data),
}
"""Codec -> its compression."""
CHANGES = ("none", "truncated", "flipped", "zeroed", "diverged", "compacted", "packed", "older")
CRC_AT = 17
"""The first byte of a batch that its CRC covers, and the position of the CRC."""


@dataclass(frozen=True)
class Batch:
    """A batch as it is written. Below magic 2 it is one message for each record."""

    epoch: int
    first: int
    last: int
    records: tuple[Record, ...]
    codec: int
    magic: int = 2
    producer: int = -1
    """The producer id of a batch in a transaction, else -1."""
    is_control: bool = False

    @property
    def data(self) -> bytes:
        if self.magic < 2:
            return b"".join(
                forge.entry(offset, forge.message(self.magic, key, value, timestamp=TIME))
                for offset, key, value in self.records
            )
        records = [forge.record(key, value, offset=offset - self.first) for offset, key, value in self.records]
        packed = PACK[self.codec](b"".join(records)) if self.codec else None
        return forge.batch(
            records,
            base_offset=self.first,
            base_timestamp=TIME,
            leader_epoch=self.epoch,
            attributes=self.codec | (0 if self.producer < 0 else 0x10) | (0x20 if self.is_control else 0),
            producer_id=self.producer,
            producer_epoch=0 if self.producer >= 0 else -1,
            last_offset_delta=self.last - self.first,
            payload=packed,
        )


class Side:
    """A replica: segments as lists of batches, and their bytes, which may be changed."""

    def __init__(self, batches: list[Batch], choice: random.Random) -> None:
        self.segments: list[list[Batch]] = [[]]
        for batch in batches:
            if self.segments[-1] and choice.random() < 0.1:
                self.segments.append([])
            self.segments[-1].append(batch)
        self.files = [bytearray(b"".join(one.data for one in held)) for held in self.segments]

    def held(self) -> Held:
        """Return offset -> record, leader epoch and producer id, of the batches whose bytes are as they were written.

        Messages of magic 0 and 1 have no epoch and no producer id: None.
        """
        found = {}
        for batches, data in zip(self.segments, self.files, strict=True):
            at = 0
            for batch in batches:
                end = at + len(batch.data)
                if data[at:end] == batch.data:
                    facts = (batch.epoch, batch.producer) if batch.magic == 2 else (None, None)
                    found.update({record[0]: (record, batch.is_control, *facts) for record in batch.records})
                at = end
        return found

    def write(self, broker: Path) -> None:
        """Write the folder of the partition orders-0."""
        folder = broker / "orders-0"
        folder.mkdir(parents=True)
        for batches, data in zip(self.segments, self.files, strict=True):
            (folder / f"{batches[0].first:020}.log").write_bytes(data)


def pair(seed: int) -> tuple[Side, Side, tuple[str, str]]:
    """Return two replicas, and the changes of each."""
    choice = random.Random(seed)
    log = _log(choice, 0, choice.randint(1, 40), epoch=0)
    kinds = choice.choice(CHANGES), choice.choice(CHANGES[1:])
    left, right = (_changed(kind, log, choice) for kind in kinds)
    return left, right, kinds


def differences(left: Side, right: Side) -> list[int]:
    """Return the offsets at which the two hold different records, compared byte by byte."""
    one, other = left.held(), right.held()
    start = max(left.segments[0][0].first, right.segments[0][0].first)
    return sorted(offset for offset in one.keys() | other.keys() if offset >= start and _differ(offset, one, other))


def _differ(offset: int, one: Held, other: Held) -> bool:
    """Return whether two sides differ at an offset. What one side does not know may be as on the other side."""
    if offset not in one or offset not in other:
        return True
    return any(
        left != right for left, right in zip(one[offset], other[offset], strict=True) if None not in (left, right)
    )


def _log(choice: random.Random, first: int, batches: int, *, epoch: int) -> list[Batch]:
    log = []
    for _ in range(batches):
        count, codec = choice.randint(1, 6), GZIP * (choice.random() < 0.2)
        records = tuple(
            (offset, b"k%d" % choice.randrange(9), bytes(choice.choices(range(1, 256), k=choice.randint(1, 60))))
            for offset in range(first, first + count)
        )
        producer = choice.choice((-1, -1, 7, 8))
        log.append(Batch(epoch, first, first + count - 1, records, codec, producer=producer))
        first += count
        if producer >= 0 and choice.random() < 0.5:
            marker = (first, b"\0\0\0" + bytes([choice.randrange(2)]), bytes(6))
            log.append(Batch(epoch, first, first, (marker,), 0, producer=producer, is_control=True))
            first += 1
    return log


def _changed(kind: str, log: list[Batch], choice: random.Random) -> Side:
    if kind == "diverged":
        kept = choice.randint(0, len(log) - 1)
        first = log[kept - 1].last + 1 if kept else 0
        new = _log(choice, first, choice.randint(1, 5), epoch=choice.choice((0, 1, 2)))
        return Side(log[:kept] + new, choice)
    if kind == "compacted":
        cleaned = (_cleaned(batch, choice) for batch in log[:-1])
        return Side([batch for batch in cleaned if batch.records or choice.random() < 0.5] + log[-1:], choice)
    if kind == "packed":
        return Side(list(_packed(log, choice)), choice)
    if kind == "older":
        upgraded = choice.randint(1, len(log))
        return Side([_older(batch, choice) for batch in log[:upgraded]] + log[upgraded:], choice)
    side = Side(log, choice)
    change = {"truncated": _truncate, "flipped": _flip, "zeroed": _zero}.get(kind)
    if change is not None:
        change(side, choice)
    return side


def _cleaned(batch: Batch, choice: random.Random) -> Batch:
    kept = tuple(record for record in batch.records if choice.random() < 0.6)
    return replace(batch, records=kept, codec=batch.codec if kept else 0)


def _older(batch: Batch, choice: random.Random) -> Batch:
    return batch if batch.is_control else replace(batch, magic=choice.choice((0, 1)), codec=0)


def _packed(log: list[Batch], choice: random.Random) -> Iterator[Batch]:
    """Yield the records of a log in other batches."""
    for _, similar in groupby(log, key=lambda batch: (batch.epoch, batch.producer, batch.is_control)):
        batches = list(similar)
        records = list(chain.from_iterable(batch.records for batch in batches))
        while records:
            held = tuple(records[: 1 if batches[0].is_control else choice.randint(1, 9)])
            del records[: len(held)]
            codec = 0 if batches[0].is_control else choice.choice((0, *PACK))
            yield replace(batches[0], first=held[0][0], last=held[-1][0], records=held, codec=codec)


def _truncate(side: Side, choice: random.Random) -> None:
    data = side.files[-1]
    del data[len(data) - choice.randint(1, len(data) - 1) :]


def _flip(side: Side, choice: random.Random) -> None:
    for _ in range(choice.randint(1, 3)):
        _in_a_batch(side, choice, lambda: 1, lambda byte: byte ^ 1 << choice.randrange(8))


def _zero(side: Side, choice: random.Random) -> None:
    _in_a_batch(side, choice, lambda: choice.randint(1, 200), lambda _: 0)


def _in_a_batch(side: Side, choice: random.Random, count: Callable[[], int], new: Callable[[int], int]) -> None:
    """Change bytes in a batch, and in those after it.

    A header is changed with its CRC or not at all: nothing guards the offset, and a batch may be valid at another one.
    """
    number = choice.randrange(len(side.files))
    data = side.files[number]
    starts = [0, *accumulate(len(batch.data) for batch in side.segments[number])]
    hit = choice.randrange(len(starts) - 1)
    start = choice.randrange(starts[hit] + CRC_AT, starts[hit + 1])
    end = start + count()
    end = next((after + CRC_AT + 4 for after in starts[hit + 1 : -1] if after < end < after + CRC_AT + 4), end)
    for position in range(start, min(end, len(data))):
        data[position] = new(data[position])
