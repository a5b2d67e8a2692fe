"""Control records (KIP-98), such as the markers that end a transaction: a key with version and type, and a value.

Source: ``ControlRecordType`` and ``EndTransactionMarker`` of ``org.apache.kafka.common.record``.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

from kdump.errors import DamageError
from kdump.primitives.wire import Int16, Int32, Layout

ABORT: Final = 0
COMMIT: Final = 1
SNAPSHOT_HEADER: Final = 3  # KIP-630
SNAPSHOT_FOOTER: Final = 4
KRAFT_VERSION: Final = 5  # KIP-853
KRAFT_VOTERS: Final = 6
MARKERS: Final = {ABORT: "ABORT", COMMIT: "COMMIT"}
TYPES: Final = {
    **MARKERS,
    2: "LEADER_CHANGE",  # KIP-595
    SNAPSHOT_HEADER: "SNAPSHOT_HEADER",
    SNAPSHOT_FOOTER: "SNAPSHOT_FOOTER",
    KRAFT_VERSION: "KRAFT_VERSION",
    KRAFT_VOTERS: "KRAFT_VOTERS",
}


class ControlKey(NamedTuple):
    version: Int16
    type: Int16


class EndTxnMarker(NamedTuple):
    """The value of an ABORT or COMMIT marker."""

    version: Int16
    coordinator_epoch: Int32


T = TypeVar("T", ControlKey, EndTxnMarker)

KEY: Final = Layout(ControlKey)
MARKER: Final = Layout(EndTxnMarker)


def read_key(key: bytes | None) -> ControlKey:
    """Return the version and the type. Raises DamageError for null, fewer than 4 bytes or a negative version."""
    if key is None:
        raise DamageError("control key", "a control record has no key", expected=f"{KEY.size} bytes", found="null")
    if len(key) < KEY.size:
        raise DamageError(
            "control key", "the key of a control record is too short", expected=f"{KEY.size} bytes", found=len(key)
        )
    return _checked("key", KEY.read(key))


def read_marker(value: bytes | None) -> EndTxnMarker:
    """Return the value of a marker. Raises DamageError for null, fewer than 6 bytes or a negative version."""
    if value is None or len(value) < MARKER.size:
        raise DamageError(
            "control value",
            "the value of a transaction marker is too short",
            expected=f"{MARKER.size} bytes",
            found="null" if value is None else len(value),
        )
    return _checked("value", MARKER.read(value))


def _checked(what: str, read: T) -> T:
    if read.version < 0:
        raise DamageError(
            f"control {what}", f"the {what} of a control record has a negative version", found=read.version
        )
    return read
