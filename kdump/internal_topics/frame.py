"""The frame of a message in ``__cluster_metadata`` and ``__remote_log_metadata``.

Three unsigned varints stand before the message: the version of the frame (0 in 2.8, 1 since 3.0), the type of the
message, its version. Source: ``org.apache.kafka.server.common.serialization.AbstractApiMessageSerde`` (KIP-631).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.internal_topics.interpreter import PayloadError

if TYPE_CHECKING:
    from kdump.internal_topics.interpreter import Reader

PREVIEW: Final = 0
"""The frame of the KRaft preview in 2.8, whose layouts no later release reads."""
CURRENT: Final = 1
LARGEST: Final = 0x7FFF


def read_number(reader: Reader, name: str) -> int:
    """Read one number of a frame. Raises PayloadError when it is truncated or does not fit an int16."""
    position = reader.position
    try:
        value = reader.varint()
    except PayloadError as error:
        raise PayloadError(f"Error while reading {name}", f"{name}: {error.what}", position) from None
    if value > LARGEST:
        raise PayloadError(f"Value for {name} was too large.", f"{name}: {value} is too large", position)
    return (value + 0x8000 & 0xFFFF) - 0x8000
