"""Records of ``__cluster_metadata``."""

from __future__ import annotations

from typing import Any

from kdump.internal_topics import cluster_metadata, interpreter
from kdump.primitives.wire import write_unsigned_varint


def metadata_value(name: str, version: int = 0, /, **fields: Any) -> bytes:
    """Return the value of a record by the name of its message; fields that are not given get empty values."""
    message = cluster_metadata.MESSAGES[name]
    head = b"".join(map(write_unsigned_varint, (1, message.types.items[-1][0], version)))
    return head + interpreter.write(message.struct(version), fields)
