"""Read well-formed messages by the kernel.

:mod:`kdump.internal_topics.interpreter` reads messages that are truncated, not UTF-8 or too long, and reports the
error. Without the kernel it reads all messages.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from kdump import kernel
from kdump.internal_topics import cluster_metadata, interpreter
from kdump.internal_topics.schema import by_type

if TYPE_CHECKING:
    from kdump.internal_topics.schema import Struct, Values
if kernel.COMPILED:
    from kdump.kernel.internal_topics import SchemaReader


def read(schema: Struct, data: bytes, start: int) -> Values | None:
    """Return the values of the message from ``start`` to the end of ``data``; None if the interpreter must read it."""
    return reader(schema).read(data, start) if kernel.COMPILED and schema.refused is None else None


@cache
def reader(schema: Struct) -> SchemaReader:
    """Return the kernel's reader of messages of a known version."""
    return SchemaReader(
        schema, {kind: layout.size for kind, layout in interpreter.FIXED.items()}, interpreter.LONGEST_STRING
    )


FRAME_BYTES: Final = 3
"""Size in bytes of a frame. Its three numbers are below 128 in all known messages."""


@lru_cache(maxsize=256)
def metadata_message(head: bytes) -> tuple[str, SchemaReader] | None:
    """Return the name and the reader of a message of the metadata log by the bytes of its frame.

    The result is None if the newest release does not have the message. Requires the kernel.
    """
    message = by_type(cluster_metadata.MESSAGES, "Record").get(head[1]) if head[0] == interpreter.FRAME else None
    versions = None if message is None else message.versions()
    if message is None or versions is None or not versions.has(head[2]):
        return None
    return message.name, reader(message.struct(head[2]))


def is_metadata_record(key: bytes | None, value: bytes | None) -> bool:
    """Return whether a record of the metadata log is well-formed. If not, the interpreter must read it."""
    if key is not None or value is None or len(value) < FRAME_BYTES:
        return False
    found = metadata_message(value[:FRAME_BYTES])
    return found is not None and found[1].read(value, FRAME_BYTES) is not None
