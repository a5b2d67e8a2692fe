"""Decoded records of Kafka's own topics, for the column ``decoded``.

A key or value becomes an object with Kafka's name, the version and the data. Its bytes and uuids are URL-safe base64
without padding, as Kafka writes uuids. If it cannot be decoded, the object has the reason.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, TypeAlias, cast

from kdump.internal_topics.decode import Decoded, decode
from kdump.internal_topics.secrets import HIDDEN, HIDDEN_BYTES

if TYPE_CHECKING:
    from kdump.formats.record import Record
    from kdump.internal_topics.schema import Value
    from kdump.rows.selection import SelectedBatch

    Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def decoded(found: SelectedBatch, record: Record | None) -> dict[str, Json] | None:
    """Return a decoded record; None for other topics and for control records."""
    if record is None or found.file.layout is None or found.batch.is_control:
        return None
    made = decode(found.file.layout, record.key, record.value)
    if made is None:
        return None
    return {"type": made.type, "key": _part(made.key), "value": _part(made.value)}


def _part(part: Decoded | None) -> Json:
    if part is None:
        return None
    found: dict[str, Json] = {}
    if part.name:
        found |= {"name": part.name, "version": part.version}
    if part.values is not None:
        found["data"] = _plain(part.values)
    if part.reason:
        found["reason"] = part.reason
    return found


def _plain(value: Value) -> Json:
    if isinstance(value, bytes):
        if value == HIDDEN_BYTES:
            return HIDDEN
        return urlsafe_b64encode(value).rstrip(b"=").decode()
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return cast("Json", value)
