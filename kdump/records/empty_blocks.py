"""Where Kafka's reader of LZ4 ends at an empty block.

Since 3.6 a ``ChunkedBytesStream`` of 2 KiB stands between ``Lz4BlockInputStream`` and what reads records. It takes a
block that holds nothing for the end, unless 2 KiB or more of one record are still to come: these are read past it.

Before, records of magic 2 come straight from ``KafkaLZ4BlockInputStream``. It throws where one byte is read and an
empty block comes: at the size of a record, a varint, and where it is asked whether anything follows the last one.
Content is read past empty blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_CHUNK: Final = 2048


class RecordBytes(NamedTuple):
    """The bytes of a record or message in an unpacked stream: its size field, and its content."""

    start: int
    content: int
    end: int


def end_of_chunks(empty: list[int], records: Iterable[RecordBytes]) -> int | None:
    """Return the position at which Kafka 3.6 stops while it reads ``records``; None when it reads them all.

    ``empty`` are the rising positions of blocks that hold nothing, as ``compression.UnpackedLz4`` has them.
    """
    for record in records:
        for position in empty:
            if record.start <= position < record.end and (position < record.content or record.end - position < _CHUNK):
                return position
    return None


def end_of_bytes(empty: list[int], records: Iterable[RecordBytes]) -> int | None:
    """Return the position at which Kafka before 3.6 stops while it reads ``records`` of magic 2, None for nowhere."""
    end = None
    for record in records:
        end = record.end
        for position in empty:
            if record.start <= position < record.content:
                return position
    return next((position for position in empty if end is not None and position >= end), None)
