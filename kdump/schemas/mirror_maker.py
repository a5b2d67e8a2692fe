"""Decodes the records of MirrorMaker 2: checkpoints, heartbeats and offset syncs (KIP-382).

Sources: Checkpoint, Heartbeat and OffsetSync of org.apache.kafka.connect.mirror. Numbers are big endian; a string is a
length (int16) followed by UTF-8.
"""

from __future__ import annotations

import re
from struct import Struct
from struct import error as struct_error
from typing import Any, Final

_SIZES: Final = {"int16": Struct(">h"), "int32": Struct(">i"), "int64": Struct(">q")}
_VERSION: Final = ("version", "int16")

_LAYOUTS: Final[tuple[tuple[re.Pattern[str], dict[str, tuple[tuple[str, str], ...]]], ...]] = (
    (
        re.compile(r".+\.checkpoints\.internal"),
        {
            "key": (("group", "string"), ("topic", "string"), ("partition", "int32")),
            "value": (_VERSION, ("upstreamOffset", "int64"), ("offset", "int64"), ("metadata", "string")),
        },
    ),
    (
        re.compile(r"(?:.+\.)?heartbeats"),
        {
            "key": (("sourceClusterAlias", "string"), ("targetClusterAlias", "string")),
            "value": (_VERSION, ("timestamp", "int64")),
        },
    ),
    (
        re.compile(r"mm2-offset-syncs\..+\.internal"),
        {
            "key": (("topic", "string"), ("partition", "int32")),
            "value": (("upstreamOffset", "int64"), ("offset", "int64")),
        },
    ),
)
"""The pattern of a topic's name (DefaultReplicationPolicy), and the fields of its keys and values."""


def is_topic(topic: str) -> bool:
    return any(name.fullmatch(topic) for name, _ in _LAYOUTS)


def read(topic: str, side: str, payload: bytes) -> dict[str, Any] | None:
    """Return the fields of a key or value; None for other topics, and for bytes that do not fit the layout exactly."""
    for name, layouts in _LAYOUTS:
        if name.fullmatch(topic):
            return _fields(layouts[side], payload)
    return None


def _fields(layout: tuple[tuple[str, str], ...], payload: bytes) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    position = 0
    try:
        for name, kind in layout:
            number = _SIZES["int16" if kind == "string" else kind]
            (value,) = number.unpack_from(payload, position)
            position += number.size
            if kind == "string":
                if not 0 <= value <= len(payload) - position:
                    return None
                position, value = position + value, payload[position : position + value].decode()
            found[name] = value
    except (struct_error, UnicodeDecodeError):
        return None
    if position != len(payload) or found.pop("version", 0) != 0:
        return None
    return found
