# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""The headers of batches of magic 2 that follow each other and are like each other, as a table of numbers.

The layout is told by :mod:`kdump.records.magic_2`.
"""

from __future__ import annotations

from array import array
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from kdump.formats.record_layout import BATCH_HEADER, CRC_COVERS_FROM, DELETE_HORIZON_FLAG, LOG_OVERHEAD, MAGIC_2
from kdump.kernel.cursor import FAR
from kdump.primitives.crc import crc32c
from kdump.primitives.wire import INT32_MAX

if TYPE_CHECKING:
    import cython
else:
    from kdump.kernel import _shadow as cython

if cython.compiled:
    from cython.cimports.kdump.kernel.words import big
if TYPE_CHECKING:
    from typing import Protocol

    from kdump.primitives.wire import Bytes

    class Batch(Protocol):
        """What must be known of the first batch; ``crc_valid`` is asked for only where another batch is like it."""

        position: int

        @property
        def crc_valid(self) -> bool: ...

        @property
        def attributes(self) -> int: ...

        @property
        def base_timestamp(self) -> int: ...


STAMP: Final = "800ddd1a"

OTHERS: Final = ("last_offset", "last_sequence", "position", "size")
"""The numbers of a row behind those of the batch's header."""
_FIELDS: Final = BATCH_HEADER.fields._fields
WIDTH: Final = 2 + len(_FIELDS) + len(OTHERS)
"""How many numbers a row has: where the records of the batch start and end in the block, its header, and OTHERS."""

_HEADER_SIZE = cython.declare(cython.Py_ssize_t, BATCH_HEADER.size)
_OVERHEAD_SIZE = cython.declare(cython.Py_ssize_t, LOG_OVERHEAD.size)
_LENGTH = cython.declare(cython.Py_ssize_t, BATCH_HEADER.offsets["length"])
_MAGIC_AT = cython.declare(cython.Py_ssize_t, BATCH_HEADER.offsets["magic"])
_ATTRIBUTES = cython.declare(cython.Py_ssize_t, BATCH_HEADER.offsets["attributes"])
_LAST_DELTA = cython.declare(cython.Py_ssize_t, BATCH_HEADER.offsets["last_offset_delta"])
_BASE_TIMESTAMP = cython.declare(cython.Py_ssize_t, BATCH_HEADER.offsets["base_timestamp"])
_BASE_SEQUENCE = cython.declare(cython.Py_ssize_t, BATCH_HEADER.offsets["base_sequence"])
_CRC = cython.declare(cython.int, _FIELDS.index("crc"))
_CRC_AT = cython.declare(cython.Py_ssize_t, BATCH_HEADER.offsets["crc"])
_COVERED = cython.declare(cython.Py_ssize_t, CRC_COVERS_FROM)
_COUNT_OF_FIELDS = cython.declare(cython.int, len(_FIELDS))
_ROW = cython.declare(cython.Py_ssize_t, WIDTH)
_MAGIC = cython.declare(cython.int, MAGIC_2)
_DATED = cython.declare(cython.int, DELETE_HORIZON_FLAG)
_FAR = cython.declare(cython.longlong, FAR)
_INT32_MAX = cython.declare(cython.longlong, INT32_MAX)
_STARTS = cython.declare(cython.uint[16])
_SIZES = cython.declare(cython.uint[16])


def rows(first: Batch, block: Bytes, place: int, most: int) -> array[int]:
    """Return a row for each batch that follows ``first`` in ``block`` and is like it, behind its own; none without one.

    They are whole, their checksums are right, and they have its attributes and its delete horizon. ``place`` is where
    the block stands in the file, ``most`` the greatest size of a batch in bytes. What is not listed is not looked at,
    but for the batch behind the last: who calls this for each batch of a block reads the block twice at most.
    """
    at = first.position - place
    if not 0 <= at <= len(block) - BATCH_HEADER.size:
        return array("q")
    return _rows(first, block, at, place, most) if cython.compiled else _rows_in_python(first, block, at, place, most)


def _rows_in_python(first: Batch, block: Bytes, at: int, place: int, most: int) -> array[int]:
    unpack, least, end = BATCH_HEADER.struct.unpack_from, BATCH_HEADER.size, len(block)
    attributes, horizon = first.attributes, first.base_timestamp
    table = array("q")
    add = table.extend
    while at <= end - least:
        header = unpack(block, at)
        base, length, _, magic, crc, kind, delta, dates_from, _, _, _, sequence, _ = header
        size = LOG_OVERHEAD.size + length
        stop = at + size
        if not (magic == MAGIC_2 and kind == attributes and least <= size <= most and stop <= end):
            break
        if kind & DELETE_HORIZON_FLAG and dates_from != horizon:
            break
        if sequence != -1 and not (sequence >= 0 and 0 <= delta <= INT32_MAX - sequence):
            break
        if not -FAR < base < FAR:
            break
        if table and not (first.crc_valid and crc == crc32c(block[at + CRC_COVERS_FROM : stop])):
            break
        ends_with = sequence if sequence == -1 else sequence + delta
        add((at + least, stop, *header, base + delta, ends_with, place + at, size))
        at = stop
    return table if len(table) > WIDTH else array("q")


@cython.cfunc
def _rows(  # type: ignore[no-untyped-def]  # noqa: ANN202  an array
    first: Batch, block: Bytes, at: cython.Py_ssize_t, place: cython.longlong, most: cython.longlong
):
    text: cython.const[cython.uchar][::1] = block
    end: cython.Py_ssize_t = text.shape[0]
    stop: cython.Py_ssize_t = at
    size: cython.Py_ssize_t
    count: cython.Py_ssize_t = 0
    crc: cython.uint
    attributes: cython.longlong = first.attributes
    horizon: cython.longlong = first.base_timestamp
    while end - stop >= _HEADER_SIZE:
        size = like(cython.address(text[stop]), end - stop, attributes, horizon, most)
        if size == 0:
            break
        if count:
            crc = cython.cast(cython.uint, big(cython.address(text[stop + _CRC_AT]), 4))
            if not (first.crc_valid and crc == crc32c(block[stop + _COVERED : stop + size])):
                break
        stop += size
        count += 1
    if count < 2:
        return array("q")
    table = array("q", bytes(8 * _ROW * count))
    fill(cython.address(text[at]), count, at, place, table)
    return table


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def like(
    data: cython.pointer[cython.const[cython.uchar]],
    left: cython.Py_ssize_t,
    attributes: cython.longlong,
    horizon: cython.longlong,
    most: cython.longlong,
) -> cython.Py_ssize_t:
    """Return the size of the batch whose header stands there, 0 where it is another kind, odd, or not whole."""
    size: cython.longlong = _OVERHEAD_SIZE + big(data + _LENGTH, 4)
    sequence: cython.longlong = big(data + _BASE_SEQUENCE, 4)
    delta: cython.longlong = big(data + _LAST_DELTA, 4)
    base: cython.longlong = big(data, 8)
    if data[_MAGIC_AT] != _MAGIC or big(data + _ATTRIBUTES, 2) != attributes:
        return 0
    if size < _HEADER_SIZE or size > most or size > left:
        return 0
    if attributes & _DATED and big(data + _BASE_TIMESTAMP, 8) != horizon:
        return 0
    if sequence != -1 and (sequence < 0 or delta < 0 or delta > _INT32_MAX - sequence):
        return 0
    return size if -_FAR < base < _FAR else 0


@cython.cfunc
def fill(
    data: cython.pointer[cython.const[cython.uchar]],
    count: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    place: cython.longlong,
    table: cython.longlong[::1],
) -> cython.void:
    """Write the rows of ``count`` batches, the first of which stands at ``data``, byte ``at`` of the block."""
    row: cython.Py_ssize_t
    field: cython.int
    for row in range(0, count * _ROW, _ROW):
        size: cython.Py_ssize_t = _OVERHEAD_SIZE + big(data + _LENGTH, 4)
        sequence: cython.longlong = big(data + _BASE_SEQUENCE, 4)
        delta: cython.longlong = big(data + _LAST_DELTA, 4)
        table[row] = at + _HEADER_SIZE
        table[row + 1] = at + size
        for field in range(_COUNT_OF_FIELDS):
            table[row + 2 + field] = big(data + _STARTS[field], _SIZES[field])
        table[row + 2 + _CRC] &= 0xFFFFFFFF
        field = 2 + _COUNT_OF_FIELDS
        table[row + field] = big(data, 8) + delta
        table[row + field + 1] = sequence if sequence == -1 else sequence + delta
        table[row + field + 2] = place + at
        table[row + field + 3] = size
        data += size
        at += size


def _split() -> None:
    """Note where the fields of a header stand."""
    for field, (start, stop) in enumerate(pairwise([*BATCH_HEADER.offsets.values(), BATCH_HEADER.size])):
        _STARTS[field], _SIZES[field] = start, stop - start


if cython.compiled:
    _split()
