"""Whether a batch's own fields agree and its checksum is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.errors import DamageError
from kdump.formats import record_layout
from kdump.primitives import compression
from kdump.records import magic_2

if TYPE_CHECKING:
    from kdump.records.record_batch import RecordBatch


def check(region: RecordBatch) -> None:
    """Raise DamageError when the batch cannot be trusted: the broker's checks, and the magic that no crc covers."""
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
            f"magic {region.magic} is none of Kafka's",
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
        raise DamageError("crc", "the checksum is wrong", position=crc_position(region.magic), found=region.crc)
    if region.codec == compression.ZSTD and region.magic < record_layout.MAGIC_2:
        raise DamageError("codec", f"zstd in magic {region.magic}", found=region.codec)


def is_sound(batch: RecordBatch) -> bool:
    """Tell whether a batch can be trusted."""
    try:
        check(batch)
    except DamageError:
        return False
    return True


def crc_position(magic: int) -> int:
    """Return where the crc stands in a batch of this magic, in bytes."""
    return (
        record_layout.BATCH_HEADER.offsets["crc"] if magic >= record_layout.MAGIC_2 else record_layout.LOG_OVERHEAD.size
    )
