"""Reads one batch of any magic from the bytes of a segment, and checks it: size, magic, header, checksum, codec.

Source: ``org.apache.kafka.common.record.FileLogInputStream`` and ``Records``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.errors import DamageError, LimitError
from kdump.formats import record_layout
from kdump.formats.record_layout import LOG_OVERHEAD, SMALLEST_ENTRY
from kdump.primitives import compression
from kdump.primitives.compression import DEFAULT_LIMIT, LIMIT_OPTION
from kdump.records import magic_0_1, magic_2

if TYPE_CHECKING:
    from kdump.records.record_batch import RecordBatch


def check_size(size: int) -> None:
    """Raise DamageError if a size field is too small for a message of any magic."""
    if size < SMALLEST_ENTRY:
        raise DamageError(
            "record size",
            f"a record size of {size} is smaller than any record can be",
            position=LOG_OVERHEAD.offsets["size"],
            expected=f"{SMALLEST_ENTRY} or more",
            found=size,
        )


def check_limit(size: int, limit: int) -> None:
    """Raise LimitError if a size field is above ``limit`` (bytes)."""
    if size > limit:
        raise LimitError(
            "limit",
            f"a batch of {size} bytes is larger than the limit ({LIMIT_OPTION})",
            position=LOG_OVERHEAD.offsets["size"],
            expected=f"at most {limit} bytes",
            found=size,
        )


def needs(size: int, magic: int) -> int:
    """Return the number of bytes that :func:`read` needs: the whole batch, and in magic 2 at least a full header."""
    return (
        max(LOG_OVERHEAD.size + size, record_layout.BATCH_HEADER.size)
        if magic >= record_layout.MAGIC_2
        else LOG_OVERHEAD.size + size
    )


def read(
    data: memoryview, offset: int, size: int, magic: int, position: int, *, limit: int = DEFAULT_LIMIT
) -> RecordBatch:
    """Return the batch at the start of ``data``; ``position`` is its position in the file.

    ``offset``, ``size`` and ``magic`` are its first fields, ``limit`` is the largest decompressed size in bytes. As in
    Kafka, magic above 2 is read as 2, magic below 0 as a message. Raises DamageError for a truncated header.
    """
    whole = LOG_OVERHEAD.size + size
    if magic >= record_layout.MAGIC_2:
        return magic_2.Batch(data, position, whole, limit)
    return magic_0_1.Message(data[LOG_OVERHEAD.size : whole], offset, position, limit=limit)


def check(region: RecordBatch) -> None:
    """Raise DamageError for an unknown magic, a size below the header's, a wrong checksum or an invalid codec."""
    if isinstance(region, magic_2.Batch):
        header = region.header
        if (
            header.magic == record_layout.MAGIC_2
            and header.attributes & record_layout.CODEC_MASK <= compression.ZSTD
            and region.crc_valid
        ):
            return
    if not 0 <= region.magic <= record_layout.MAGIC_2:
        raise DamageError(
            "magic",
            f"magic {region.magic} is unknown",
            position=record_layout.MAGIC_POSITION,
            expected="0, 1 or 2",
            found=region.magic,
        )
    smallest = (
        record_layout.BATCH_HEADER.size
        if region.magic == record_layout.MAGIC_2
        else record_layout.LOG_OVERHEAD.size + record_layout.SMALLEST_MESSAGE[region.magic]
    )
    if region.size < smallest:
        raise DamageError(
            "batch size",
            f"a batch of magic {region.magic} is too short for its own header",
            position=record_layout.LOG_OVERHEAD.offsets["size"],
            expected=f"{smallest} bytes or more",
            found=region.size,
        )
    if not region.crc_valid:
        is_new = region.magic >= record_layout.MAGIC_2
        position = record_layout.BATCH_HEADER.offsets["crc"] if is_new else record_layout.LOG_OVERHEAD.size
        raise DamageError("crc", "the checksum is wrong", position=position, found=region.crc)
    if region.codec == compression.ZSTD and region.magic < record_layout.MAGIC_2:
        raise DamageError("codec", f"magic {region.magic} does not allow zstd", found=region.codec)


def is_sound(batch: RecordBatch) -> bool:
    try:
        check(batch)
    except DamageError:
        return False
    return True
