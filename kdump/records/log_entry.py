"""A segment (``.log``): batches one after the other, each behind the 12-byte log overhead.

Source: ``org.apache.kafka.common.record.FileLogInputStream`` and ``Records``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.errors import DamageError, LimitError
from kdump.formats import record_layout
from kdump.formats.record_layout import LOG_OVERHEAD, SMALLEST_ENTRY
from kdump.primitives.compression import DEFAULT_LIMIT, LIMIT_OPTION
from kdump.records import magic_0_1, magic_2

if TYPE_CHECKING:
    from kdump.records.record_batch import RecordBatch


def check_size(size: int) -> None:
    """Raise DamageError when no message of any magic can have this size field."""
    if size < SMALLEST_ENTRY:
        raise DamageError(
            "record size",
            f"a record size of {size} is smaller than the smallest record",
            position=LOG_OVERHEAD.offsets["size"],
            expected=f"{SMALLEST_ENTRY} or more",
            found=size,
        )


def check_limit(size: int, limit: int) -> None:
    """Raise LimitError when a batch of this size field is more than ``limit`` bytes: it would be held in memory."""
    if size > limit:
        raise LimitError(
            "limit",
            f"a batch of {size} bytes is larger than the limit ({LIMIT_OPTION})",
            position=LOG_OVERHEAD.offsets["size"],
            expected=f"at most {limit} bytes",
            found=size,
        )


def needs(size: int, magic: int) -> int:
    """Return how many bytes from its start on :func:`read` wants of a batch of this size field: magic 2 always has its
    full header.
    """
    return (
        max(LOG_OVERHEAD.size + size, record_layout.BATCH_HEADER.size)
        if magic >= record_layout.MAGIC_2
        else LOG_OVERHEAD.size + size
    )


def read(
    data: memoryview, offset: int, size: int, magic: int, position: int, *, limit: int = DEFAULT_LIMIT
) -> RecordBatch:
    """Return the batch that ``data`` begins with; ``position`` is where it stands in the file.

    ``offset``, ``size`` and ``magic`` are those that it begins with. Its records are read as long as they unpack to at
    most ``limit`` bytes.

    As in Kafka a magic above 2 reads as 2 and one below 0 as a message whose fields then fail. Raises DamageError when
    the file ends inside the header of magic 2.
    """
    whole = LOG_OVERHEAD.size + size
    if magic >= record_layout.MAGIC_2:
        return magic_2.Batch(data, position, whole, limit)
    return magic_0_1.Message(data[LOG_OVERHEAD.size : whole], offset, position, limit=limit)
