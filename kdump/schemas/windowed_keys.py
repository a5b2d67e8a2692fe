"""Splits the keys of windows in changelogs of Kafka Streams into the application's key and the window's times.

Sources: WindowKeySchema, SessionKeySchema and TimestampedKeyAndJoinSideSerializer of
org.apache.kafka.streams.state.internals, TimeWindowedSerializer of org.apache.kafka.streams.kstream. Numbers are big
endian, times are ms since 1970:

* window stores: the key, the start of the window (int64), a sequence number (int32; 0 unless duplicates are kept);
* session stores: the key, the end of the session, its start (int64 each);
* keys of TimeWindowedSerializer, as in suppressed results: the key, the start of the window (int64);
* rows of outer joins that have no partner yet: their time (int64), 1 or 0 for the left or right side (int8), the key.

The bytes do not identify their layout. A layout is assumed if the topic is a changelog and the times are in the years
1990 to 2100.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final, NamedTuple

from kdump.primitives.encodings import to_text
from kdump.primitives.timestamps import iso

CHANGELOG: Final = "-changelog"
"""The suffix of a changelog's name (ProcessorStateManager.storeChangelogTopic)."""
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


def is_topic(topic: str) -> bool:
    """Return whether a topic has the name of a changelog."""
    return topic.endswith(CHANGELOG)


def split(key: bytes) -> WindowedKey | None:
    """Return the parts of a key in a changelog, or None if it has no plausible window.

    The first layout that fits is taken: two times at the end, one time at the end, a time and a sequence number, a time
    at the start. A layout with one time is tried before a layout with a time and a number: a small number at the end of
    an application's key also looks like the first half of a time.
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


def as_data(key: bytes) -> dict[str, Any]:
    """Return a key without a schema as ``data``: text, or bytes with their ``encoding``."""
    text, encoding = to_text(key, "auto")
    return {"data": text} if encoding is None else {"data": text, "encoding": encoding}


def _is_time(value: int) -> bool:
    return _FIRST <= value < _LAST


def _taken(kind: str, key: bytes, size: int, what: str, times: dict[str, Any]) -> WindowedKey:
    return WindowedKey(key[:-size], {"type": kind, **times, "taken": f"the last {size} bytes: {what}"})
