"""Known layouts of payloads without a schema: the records of MirrorMaker 2, and windowed keys of Kafka Streams.

MirrorMaker 2 (KIP-382) writes checkpoints, heartbeats and offset syncs. Sources: Checkpoint, Heartbeat and OffsetSync
of org.apache.kafka.connect.mirror. A string is a length (int16) followed by UTF-8.

Windowed keys in changelogs of Kafka Streams have the application's key and the window's times. Sources:
WindowKeySchema, SessionKeySchema and TimestampedKeyAndJoinSideSerializer of org.apache.kafka.streams.state.internals,
TimeWindowedSerializer of org.apache.kafka.streams.kstream. Times are ms since 1970:

* window stores: the key, the start of the window (int64), a sequence number (int32; 0 unless duplicates are kept);
* session stores: the key, the end of the session, its start (int64 each);
* keys of TimeWindowedSerializer, as in suppressed results: the key, the start of the window (int64);
* rows of outer joins that have no partner yet: their time (int64), 1 or 0 for the left or right side (int8), the key.

The bytes of a key do not identify their layout. A layout is assumed if the topic is a changelog and the times are in
the years 1990 to 2099. All numbers are big endian.
"""

from __future__ import annotations

import re
from struct import Struct
from struct import error as struct_error
from typing import Any, Final, NamedTuple

from kdump.primitives.encodings import to_text
from kdump.primitives.timestamps import iso

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


def mirrored(topic: str, side: str, payload: bytes) -> dict[str, Any] | None:
    """Return a MirrorMaker 2 key or value as fields, without ``version``; None for another topic or layout."""
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


_FIRST, _LAST = 631_152_000_000, 4_102_444_800_000
"""1990-01-01 and 2100-01-01, in ms since 1970."""
_SESSION: Final = Struct(">qq")
_STORE: Final = Struct(">qi")
_TIME: Final = Struct(">q")
_JOIN: Final = Struct(">qb")
_SIDES: Final = ("right", "left")


class WindowedKey(NamedTuple):
    """The application's key, and its window as in JSON lines."""

    key: bytes
    window: dict[str, Any]


def window_of(key: bytes) -> WindowedKey | None:
    """Return the parts of a key in a changelog, or None without a plausible window. The caller checks the topic.

    One time is tried before a time and a sequence number, because its keys fit both if the application's key ends
    with a small number.
    """
    size = len(key)
    if size > _SESSION.size:
        end, start = _SESSION.unpack_from(key, size - _SESSION.size)
        if _is_time(start) and start <= end < _LAST:
            times = {"startMs": start, "start": iso(start), "endMs": end, "end": iso(end)}
            return _taken("session", key, _SESSION.size, "the end and the start of a session", times)
    if size > _TIME.size:
        (start,) = _TIME.unpack_from(key, size - _TIME.size)
        if _is_time(start):
            times = {"startMs": start, "start": iso(start)}
            return _taken("time", key, _TIME.size, "the start of a window", times)
    if size >= _STORE.size:  # the application's key may be empty
        start, sequence = _STORE.unpack_from(key, size - _STORE.size)
        if _is_time(start) and sequence >= 0:
            times = {"startMs": start, "start": iso(start), "sequence": sequence}
            return _taken("time", key, _STORE.size, "the start of a window and a sequence number", times)
    if size > _JOIN.size:
        at, side = _JOIN.unpack_from(key)
        if _is_time(at) and side in (0, 1):
            times = {"timeMs": at, "time": iso(at), "side": _SIDES[side]}
            what = f"the first {_JOIN.size} bytes: the time and the side of a row without a partner"
            return WindowedKey(key[_JOIN.size :], {"type": "join", **times, "taken": what})
    return None


def key_data(key: bytes) -> dict[str, Any]:
    """Return a key without a schema as ``data``: its text, or the encoded bytes and their ``encoding``."""
    text, encoding = to_text(key, "auto")
    return {"data": text} if encoding is None else {"data": text, "encoding": encoding}


def _is_time(value: int) -> bool:
    return _FIRST <= value < _LAST


def _taken(kind: str, key: bytes, size: int, what: str, times: dict[str, Any]) -> WindowedKey:
    return WindowedKey(key[:-size], {"type": kind, **times, "taken": f"the last {size} bytes: {what}"})
