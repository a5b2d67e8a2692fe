"""When committed offsets expire (KIP-211; ``OffsetExpirationConditionImpl``).

An expireTimestamp in the record (value version 1, before 2.1) counts as it is. Otherwise the retention begins when a
classic group became empty, else with the commit. Topics that members have subscribed to keep their offsets, and so
does a pending transactional commit. The retention (offsets.retention.minutes) is a setting of the broker, in no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdump.answers.groups.group_records import CONSUMER

if TYPE_CHECKING:
    from kdump.answers.groups.group_records import KnownGroup

DEFAULT_RETENTION_MS: Final = 7 * 24 * 3_600_000
"""Kafka's default since 2.0 (KIP-186)."""


def expires_at(
    group: KnownGroup, topic: str, commit_timestamp: int, expire_timestamp: int | None, retention_ms: int
) -> int | None:
    """Return when an offset expires, in ms; None when it does not as things are."""
    line = group.line
    if line.type == "Share" or line.problem is not None:
        return None
    if line.type == "Classic" and line.protocol_type and line.state != "Empty":
        if line.protocol_type != CONSUMER or group.subscribed is None:
            return None
    elif line.type != "Classic" and group.subscribed is None:
        return None
    if group.subscribed is not None and topic in group.subscribed:
        return None
    if expire_timestamp is not None:
        return expire_timestamp
    begins = group.empty_since if line.protocol_type and group.empty_since is not None else commit_timestamp
    return begins + retention_ms
