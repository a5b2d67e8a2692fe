"""``partition.metadata``: the topic id of a partition folder.

Source: KIP-516 and Kafka's class PartitionMetadataFile (2.8). Two lines, ``version: 0`` and ``topic_id: ID``; the
second one has no line end. An id is 16 bytes in URL-safe base64 without padding.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from kdump.errors import DamageError
from kdump.formats import checkpoint_text
from kdump.formats.checkpoint_text import NumberDamageError, TextLine
from kdump.primitives.encodings import JAVA_SPACES

if TYPE_CHECKING:
    from kdump.primitives.wire import Bytes

VERSION = 0
ZERO_ID = bytes(16)
MOST_TEXT = 24
"""Maximum number of characters of an id (``Uuid.fromString``)."""


class PartitionMetadata(NamedTuple):
    """The file's version, and the topic's id as 16 bytes."""

    version: int
    topic_id: bytes

    @property
    def topic_id_text(self) -> str:
        return id_text(self.topic_id)


def id_text(topic_id: bytes) -> str:
    """Return a topic id as Kafka's 22 characters."""
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(topic_id).decode().rstrip("=")


def read(data: Bytes) -> PartitionMetadata:
    """Return the content. Like a broker, accept any version from 0 on, and ignore lines after the second.

    Raises NumberDamageError for a missing line or an id that ``Uuid.fromString`` refuses: a broker stops. Raises
    DamageError for other damage.
    """
    lines = iter(list(checkpoint_text.lines(data)))  # all lines are decoded before the first is parsed, as in Java
    expected = "version: 0"
    line = next(lines, None) or _absent(0, expected)
    version = checkpoint_text.header(TextLine(_value(line, expected), line.position), expected)
    if version < VERSION:
        raise DamageError("version", "partition.metadata has an unknown version", expected=VERSION, found=version)
    expected = "topic_id: and 22 characters of base64"
    line = next(lines, None) or _absent(len(data), expected)
    topic_id = id_of(_value(line, expected))
    if not topic_id:
        checkpoint_text.malformed(line, expected, NumberDamageError)
    if topic_id == ZERO_ID:
        checkpoint_text.malformed(line, expected)
    return PartitionMetadata(version, topic_id)


def id_of(text: str) -> bytes:
    """Return the 16 bytes of an id, or empty bytes for a text that ``Uuid.fromString`` refuses."""
    from base64 import b64decode

    if len(text) > MOST_TEXT or "+" in text or "/" in text:
        return b""
    padding = "" if text.endswith("=") else "=" * (-len(text) % 4)
    try:
        found = b64decode(text + padding, altchars=b"-_", validate=True)
    except ValueError:
        return b""
    return found if len(found) == len(ZERO_ID) else b""


def _absent(position: int, expected: str) -> NoReturn:
    checkpoint_text.malformed(TextLine("", position), expected, NumberDamageError)


def encode(metadata: PartitionMetadata) -> bytes:
    return f"version: {metadata.version}\ntopic_id: {metadata.topic_id_text}".encode()


def _value(line: TextLine, expected: str) -> str:
    parts = re.split(f":[{JAVA_SPACES}]+", line.text)
    while len(parts) > 1 and not parts[-1]:  # String.split drops empty parts at the end
        parts.pop()
    if len(parts) != 2:
        checkpoint_text.malformed(line, expected)
    return parts[1]
