"""Functions that break the files beside a log: indexes and producer snapshots, which are rows after a header."""

import functools
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from kdump.formats import producer_snapshot
from kdump.primitives.crc import crc32c
from testing import GOLDEN
from tools.fuzz.mutations import whole

LARGEST_LOG = 16_000
"""The size of the log beside an index, in bytes."""


class Shape(NamedTuple):
    """The size of the header, and the sizes of the fields of a row, in bytes."""

    header: int
    fields: tuple[int, ...]
    siblings: tuple[str, ...]
    """The suffixes of other files that the dump of this file reads."""

    @property
    def row(self) -> int:
        """The size of a row in bytes."""
        return sum(self.fields)


SHAPES = {
    "index": Shape(0, (4, 4), ("log",)),
    "timeindex": Shape(0, (8, 4), ("log", "index")),
    "txnindex": Shape(0, (2, 8, 8, 8, 8), ()),
    "snapshot": Shape(10, (8, 2, 4, 8, 4, 8, 4, 8), ()),
}


@functools.cache
def subjects() -> dict[str, dict[str, bytes]]:
    """Return the golden files that are not empty, each with the files that it needs: name -> file name -> bytes."""
    found = {}
    for path in sorted((GOLDEN / "brokers").glob("*/*/*")):
        shape = SHAPES.get(path.suffix[1:])
        if shape is None or path.stat().st_size <= shape.header:
            continue
        files = [path, *(path.with_suffix(f".{suffix}") for suffix in shape.siblings)]
        if all(file.is_file() and file.stat().st_size <= LARGEST_LOG for file in files):
            found[path.relative_to(GOLDEN).as_posix()] = {file.name: file.read_bytes() for file in files}
    return found


def sealed(shape: Shape, data: bytes) -> bytes:
    """Return a snapshot with the right checksum, or any other file unchanged."""
    if not shape.header or len(data) < shape.header:
        return data
    guarded = data[producer_snapshot.GUARDED_FROM :]
    return data[:2] + crc32c(guarded).to_bytes(4, "big") + guarded


def rows_of(shape: Shape, data: bytes) -> list[bytes]:
    """Return the rows; the last one may be truncated."""
    return [data[at : at + shape.row] for at in range(shape.header, len(data), shape.row)]


def row_field(random: Random, shape: Shape, data: bytes) -> bytes:
    """Give a field of a row a wrong value."""
    number, column = random.randrange(len(rows_of(shape, data))), random.randrange(len(shape.fields))
    at = shape.header + number * shape.row + sum(shape.fields[:column])
    size = shape.fields[column]
    value = whole.lie(random, int.from_bytes(data[at : at + size], "big", signed=True), size * 8)
    return data[:at] + value.to_bytes(size, "big", signed=True) + data[at + size :]


def header_field(random: Random, shape: Shape, data: bytes) -> bytes:
    """Give a field of the header a wrong value."""
    if not shape.header:
        return data
    at, size = random.choice(((0, 2), (2, 4), (6, 4)))
    value = whole.lie(random, int.from_bytes(data[at : at + size], "big", signed=True), size * 8)
    return data[:at] + value.to_bytes(size, "big", signed=True) + data[at + size :]


def row_order(random: Random, shape: Shape, data: bytes) -> bytes:
    """Drop, duplicate or swap rows."""
    rows = rows_of(shape, data)
    at = random.randrange(len(rows))
    what = random.randrange(3)
    if what == 0:
        del rows[at]
    elif what == 1:
        rows.insert(at, rows[at])
    else:
        random.shuffle(rows)
    return data[: shape.header] + b"".join(rows)


def zero_row(random: Random, shape: Shape, data: bytes) -> bytes:
    """Fill a row with zeros, like the unused rest of an active index."""
    at = shape.header + random.randrange(len(rows_of(shape, data))) * shape.row
    return data[:at] + bytes(shape.row) + data[at + shape.row :]


def right_checksum(change: Callable[[Random, Shape, bytes], bytes]) -> Callable[[Random, Shape, bytes], bytes]:
    """Return ``change``, followed by a correction of the checksum."""

    @functools.wraps(change)
    def mutate(random: Random, shape: Shape, data: bytes) -> bytes:
        return sealed(shape, change(random, shape, data))

    mutate.__name__ = f"{change.__name__}_crc_ok"
    return mutate


def of_whole(change: Callable[[Random, bytes], bytes]) -> Callable[[Random, Shape, bytes], bytes]:
    """Return a change of any file as a change of a file of rows."""

    @functools.wraps(change)
    def mutate(random: Random, _shape: Shape, data: bytes) -> bytes:
        return change(random, data)

    return mutate


_PLAIN = (row_field, row_field, header_field, row_order, zero_row, *map(of_whole, whole.KINDS))
KINDS = (*_PLAIN, *map(right_checksum, _PLAIN))
