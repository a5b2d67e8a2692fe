"""Where Kafka's reader of LZ4 takes an empty block for the end of a stream.

Since 3.6 a ``ChunkedBytesStream`` of 2 KiB stands between ``Lz4BlockInputStream`` and what reads records. It takes a
block that holds nothing for the end, unless 2 KiB or more of one record are still to come: these are read past it.
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


def end_of_stream(empty: list[int], records: Iterable[RecordBytes]) -> int | None:
    """Return the position at which Kafka stops while it reads ``records``; None when it reads them all.

    ``empty`` are the rising positions of blocks that hold nothing, as ``compression.UnpackedLz4`` has them.
    """
    for record in records:
        for position in empty:
            if record.start <= position < record.end and (position < record.content or record.end - position < _CHUNK):
                return position
    return None
