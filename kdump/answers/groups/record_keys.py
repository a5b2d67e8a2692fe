"""The keys of ``__consumer_offsets``: the bytes of a key say which group it is of, and what its record is.

Every key begins with the int16 type of the record, then the group id: an int16 length and its bytes.
"""

from __future__ import annotations

from typing import Final

from kdump.internal_topics import consumer_offsets
from kdump.internal_topics.decode import decode
from kdump.internal_topics.schema import by_type

KEY_TYPES: Final = {
    message.name: number.to_bytes(2, "big") for number, message in by_type(consumer_offsets.MESSAGES, "Key").items()
}
"""Message -> the bytes that its keys begin with."""
COMMIT: Final = KEY_TYPES["OffsetCommitKey"]
OFFSETS: Final = frozenset({KEY_TYPES["LegacyOffsetCommitKey"], COMMIT})
GROUPS: Final = {
    KEY_TYPES["GroupMetadataKey"]: "Classic",
    KEY_TYPES["ConsumerGroupMetadataKey"]: "Consumer",
    KEY_TYPES["ShareGroupMetadataKey"]: "Share",
    KEY_TYPES["StreamsGroupMetadataKey"]: "Streams",
}
"""Keys of the records that make a group -> its type; their tombstone ends it."""
KINDS: Final = GROUPS | {
    prefix: kind for name, prefix in KEY_TYPES.items() for kind in GROUPS.values() if name.startswith(f"{kind}Group")
}
"""Keys of the records of groups -> the type of group that has such; a group may begin with any of them."""
_GROUP_AT: Final = 4


def group_of(key: bytes) -> bytes:
    """Return the group id in a key that can be read."""
    return key[_GROUP_AT : _group_end(key)]


def prefix_of(key: bytes) -> bytes:
    """Return what the keys of all offsets of a key's group begin with."""
    return COMMIT + key[2 : _group_end(key)]


def _group_end(key: bytes) -> int:
    return _GROUP_AT + (key[2] << 8 | key[3])


def is_commit(key: bytes) -> bool:
    """Tell whether a key of a commit can be read: group, topic and the int32 of the partition fill it."""
    if len(key) < _GROUP_AT:
        return False
    topic = _group_end(key)
    return len(key) > topic + 1 and len(key) == topic + 2 + (key[topic] << 8 | key[topic + 1]) + 4


def problem_of(key: bytes | None) -> str | None:
    """Return why a key cannot be read, None where it can."""
    if key is not None and key[:2] in OFFSETS and is_commit(key):
        return None
    decoded = decode(consumer_offsets.TOPIC, key, None)
    if decoded is None or decoded.key is None:
        return "the record has no key"
    return decoded.key.reason or None
