"""``partition.metadata``: the topic id of a partition's folder.

Source: KIP-516 and Kafka's class PartitionMetadataFile (2.8). Two lines, ``version: 0`` and ``topic_id: ID``, the
second without a line end; an id is 16 bytes in base64 for URLs, without padding.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from kdump.errors import DamageError
from kdump.formats import checkpoint_text

if TYPE_CHECKING:
    from kdump.primitives.wire import Bytes

VERSION = 0
ZERO_ID = bytes(16)


class PartitionMetadata(NamedTuple):
    """The file's version, and the topic's id as 16 bytes."""

    version: int
    topic_id: bytes

    @property
    def topic_id_text(self) -> str:
        """The id as Kafka writes it: 22 characters."""
        return id_text(self.topic_id)


def id_text(topic_id: bytes) -> str:
    """Return a topic id as Kafka writes it: 22 characters."""
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(topic_id).decode().rstrip("=")


def read(data: Bytes) -> PartitionMetadata:
    """Return the content. Lines behind the second are left alone, as a broker does. Raises DamageError."""
    rest = checkpoint_text.lines(data)
    line = next(rest, checkpoint_text.TextLine("", 0))
    version = checkpoint_text.integer(_value(line, "version: 0"), line, "version: 0")
    if version < VERSION:
        raise DamageError("version", "partition.metadata has an unknown version", expected=VERSION, found=version)
    line = next(rest, checkpoint_text.TextLine("", len(data)))
    expected = "topic_id: and 22 characters of base64"
    text = _value(line, expected)
    from base64 import b64decode  # few runs need it

    try:
        topic_id = b64decode(text + "==", altchars=b"-_", validate=True)
    except ValueError:
        checkpoint_text.malformed(line, expected)
    if len(topic_id) != len(ZERO_ID) or len(text) != 22 or topic_id == ZERO_ID:
        checkpoint_text.malformed(line, expected)
    return PartitionMetadata(version, topic_id)


def encode(metadata: PartitionMetadata) -> bytes:
    """Return the bytes of the file."""
    return f"version: {metadata.version}\ntopic_id: {metadata.topic_id_text}".encode()


def _value(line: checkpoint_text.TextLine, expected: str) -> str:
    parts = re.split(r"\s+", line.text.rstrip())
    if len(parts) != 2:
        checkpoint_text.malformed(line, expected)
    return parts[1]
