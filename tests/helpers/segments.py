"""Small segments for the tests of checks: batches that a broker could have written, and their indexes."""

from __future__ import annotations

import struct

from kdump.formats import record_layout
from kdump.primitives.compression import DEFAULT_LIMIT
from kdump.records.record_batch import RecordBatch
from kdump.segments.resync import read
from kdump.segments.walk import walk
from testing import forge

CONTROL, TRANSACTIONAL = 0x20, 0x10
ABORT, COMMIT = 0, 1


class Memory:
    """Bytes as a source."""

    def __init__(self, data: bytes, name: str = "00000000000000000000.log") -> None:
        self.data, self.name, self.size, self.limit = data, name, len(data), DEFAULT_LIMIT

    def read(self, position: int, size: int) -> bytes:
        return self.data[position : position + size]


def regions(content: bytes, reader=read) -> list:
    """Read bytes whole, and assert that every byte belongs to exactly one region."""
    found = list(reader(Memory(content)))
    position = 0
    for region in found:
        assert region.position == position
        assert region.size > 0
        position += region.size
    assert position == len(content)
    return found


def data(first: int, count: int = 1, *, timestamp: int = 1000, producer: int = -1, size: int = 20, **rest) -> bytes:
    """A batch of ``count`` records from offset ``first`` on; transactional if ``producer`` is given."""
    records = [forge.record(None, b"v" * size, offset=n) for n in range(count)]
    attributes = TRANSACTIONAL if producer >= 0 else 0
    fields = {"base_offset": first, "base_timestamp": timestamp, "producer_id": producer, "attributes": attributes}
    return forge.batch(records, **{**fields, "producer_epoch": 0 if producer >= 0 else -1, **rest})


def marker(offset: int, producer: int, kind: int, *, timestamp: int = 1000, epoch: int = 3, **rest) -> bytes:
    """A control batch that ends a transaction."""
    record = forge.record(struct.pack(">hh", 0, kind), struct.pack(">hi", 0, epoch))
    return forge.batch(
        [record],
        base_offset=offset,
        base_timestamp=timestamp,
        producer_id=producer,
        producer_epoch=0,
        attributes=TRANSACTIONAL | CONTROL,
        **rest,
    )


def batches(segment: bytes) -> list[RecordBatch]:
    return [region for region in walk(Memory(segment)) if isinstance(region, RecordBatch)]


def starts(segment: bytes) -> list[int]:
    """The positions of the batches of a segment."""
    found, position = [], 0
    while position < len(segment):
        found.append(position)
        position += record_layout.LOG_OVERHEAD.size + record_layout.LOG_OVERHEAD.read(segment, position).size
    return found
