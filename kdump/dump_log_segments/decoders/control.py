"""The texts of control records."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kdump.errors import DamageError
from kdump.records import control

if TYPE_CHECKING:
    from kdump.dump_log_segments.dialects.payload import PayloadDialect
    from kdump.internal_topics.schema import Struct, Values


def control_text(key: bytes | None, value: bytes | None, dialect: PayloadDialect) -> str:
    """Return what a control record says. Raises DamageError where the original's run ends."""
    kind = control.read_key(key).type
    if kind in control.MARKERS:
        marker = control.read_marker(value)
        return f" endTxnMarker: {control.MARKERS[kind]} coordinatorEpoch: {marker.coordinator_epoch}"
    if kind not in dialect.control_json:
        return f" controlType: {dialect.control_names.get(kind, 'UNKNOWN')}({kind})"
    prefix, name = dialect.control_json[kind]
    if value is None:
        raise DamageError("control value", f"the control record has no {name}: its value is null")
    return prefix + _json(name, value, dialect)


def _json(name: str, value: bytes, dialect: PayloadDialect) -> str:
    # most logs hold no such record, and need no schemas
    from kdump.dump_log_segments.decoders import java
    from kdump.dump_log_segments.decoders.texts import broken
    from kdump.internal_topics.control_records import MESSAGES
    from kdump.internal_topics.interpreter import PayloadError, Reader, read_fields

    message, reader = MESSAGES[name], Reader(value, limited=dialect.limited)
    try:  # the version that the message says it has is not looked at before all is read as version 0
        values = read_fields(message.struct(0, dialect.definitions), reader)
    except PayloadError as error:
        raise broken(error, f"{name} of a control record") from None
    version = values["version"]
    struct = message.struct(version if isinstance(version, int) else 0, dialect.definitions)
    return java.json(struct, _completed(struct, values))


def _completed(struct: Struct, values: Values) -> Values:
    """Return ``values`` with the default of each field that the version which was read does not have."""
    completed: Values = {}
    for slot in struct.slots:
        value = values.get(slot.name, slot.default())
        if slot.struct is not None and isinstance(value, list):
            value = [_completed(slot.struct, cast("Values", element)) for element in value]
        elif slot.struct is not None and isinstance(value, dict):
            value = _completed(slot.struct, value)
        completed[slot.name] = value
    return completed
