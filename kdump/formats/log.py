"""A segment (``.log``): batches one after the other, each behind the 12-byte log overhead.

Source: ``org.apache.kafka.common.record.FileLogInputStream`` and ``Records``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.codecs import DEFAULT_LIMIT, LIMIT_OPTION
from kdump.errors import DamageError, LimitError
from kdump.formats import batch, message
from kdump.wire import Int8, Int32, Int64, Layout

if TYPE_CHECKING:
    from kdump.pieces import RecordBatch


class EntryStart(NamedTuple):
    """The log overhead and what follows it up to the magic, which stands at the same place in every version."""

    offset: Int64
    size: Int32
    """Bytes behind this field."""
    differs: Int32
    """The crc in magic 0 and 1, the partition leader epoch in magic 2."""
    magic: Int8


OVERHEAD: Final = message.OVERHEAD
START: Final = Layout(EntryStart)
MAGIC_POSITION: Final = START.offsets["magic"]
UP_TO_MAGIC: Final = START.size
SMALLEST: Final = message.SMALLEST[0]


def check_size(size: int) -> None:
    """Raise DamageError when no message of any magic can have this size field."""
    if size < SMALLEST:
        raise DamageError(
            "record size",
            f"a record size of {size} is smaller than the smallest record",
            position=OVERHEAD.offsets["size"],
            expected=f"{SMALLEST} or more",
            found=size,
        )


def check_limit(size: int, limit: int) -> None:
    """Raise LimitError when a batch of this size field is more than ``limit`` bytes: it would be held in memory."""
    if size > limit:
        raise LimitError(
            "limit",
            f"a batch of {size} bytes is larger than the limit ({LIMIT_OPTION})",
            position=OVERHEAD.offsets["size"],
            expected=f"at most {limit} bytes",
            found=size,
        )


def needs(size: int, magic: int) -> int:
    """Return how many bytes from its start on :func:`read` wants of a batch of this size field: magic 2 always has its
    full header.
    """
    return max(OVERHEAD.size + size, batch.HEADER.size) if magic >= batch.MAGIC else OVERHEAD.size + size


def read(
    data: memoryview, offset: int, size: int, magic: int, position: int, *, limit: int = DEFAULT_LIMIT
) -> RecordBatch:
    """Return the batch that ``data`` begins with; ``position`` is where it stands in the file.

    ``offset``, ``size`` and ``magic`` are those that it begins with. Its records are read as long as they unpack to at
    most ``limit`` bytes.

    As in Kafka a magic above 2 reads as 2 and one below 0 as a message whose fields then fail. Raises DamageError when
    the file ends inside the header of magic 2.
    """
    whole = OVERHEAD.size + size
    if magic >= batch.MAGIC:
        return batch.Batch(data, position, whole, limit)
    return message.Message(data[OVERHEAD.size : whole], offset, position, limit=limit)
