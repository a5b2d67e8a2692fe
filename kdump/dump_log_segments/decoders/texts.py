"""The texts that DumpLogSegments prints for control records, and for records with a decoder switch.

:mod:`kdump.dump_log_segments.decoders` has the parsers of the switches. The printers of segments print the texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeAlias, cast

from kdump.errors import DamageError
from kdump.records import control
from kdump.records.magic_0_1 import LyingSizeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.dump_log_segments.dialects.payload import PayloadDialect
    from kdump.formats.record import Record
    from kdump.internal_topics.interpreter import PayloadError
    from kdump.internal_topics.schema import Struct, Values
    from kdump.records.magic_0_1 import Message

DELETE: Final = "<DELETE>"
"""The text of a null value."""


class Texts(NamedTuple):
    """The texts of a key and a payload; None for a part that is not printed."""

    key: str | None
    payload: str | None

    def parts(self, prefix: str, bare_payload: str) -> Iterator[bytes]:
        """Yield the printed texts, with ``prefix`` before a key and ``bare_payload`` before a payload without a key."""
        if self.key is not None:
            yield f"{prefix}key: {self.key}".encode()
        if self.payload is not None:
            yield f"{bare_payload if self.key is None else ' '}payload: {self.payload}".encode()


Parser: TypeAlias = "Callable[[int, bytes | None, bytes | None], Texts]"
"""Offset, key and value of a record -> its texts. Raises DamageError where DumpLogSegments stops."""


class SkippingParser:
    """A parser that prints an error for an unreadable record, and continues. A missing required key ends the run."""

    reads_key: ClassVar[bool] = True
    """Whether the key is read and required."""

    def __call__(self, offset: int, key: bytes | None, value: bytes | None) -> Texts:
        raise NotImplementedError

    def skipped(self, offset: int, java_message: str | None) -> Texts:
        """Return the texts of an unreadable record. ``java_message`` is the message of Java's exception, or None."""
        raise NotImplementedError

    def read(self, entry: Record | Message) -> Texts:
        """Return the texts of a record, or :meth:`skipped` if its key or value is larger, or its message too short.

        DumpLogSegments catches errors of ``record.key()`` and ``record.value()``, but not those of ``record.hasKey()``.
        ``Utils.sizeDelimited`` sets the stored size as the limit of a buffer. Java refuses a limit above its capacity.
        """
        if self.reads_key and entry.key_size < 0:
            raise no_key(entry.offset)
        try:
            key = entry.key if self.reads_key else None
            value = entry.value if entry.value_size >= 0 else None
        except LyingSizeError as error:
            return self.skipped(entry.offset, f"newLimit > capacity: ({error.found} > {error.room})")
        except DamageError:  # IndexOutOfBoundsException without a message: the message ends before the size
            return self.skipped(entry.offset, None)
        return self(entry.offset, key, value)


def parsed(parser: Parser, entry: Record | Message) -> Texts:
    """Return the texts that ``parser`` makes from a record. Raises DamageError where DumpLogSegments stops."""
    if isinstance(parser, SkippingParser):
        return parser.read(entry)
    key = entry.key if entry.key_size >= 0 else None
    try:
        value = entry.value if entry.value_size >= 0 else None
    except DamageError as damage:
        try:
            return parser(entry.offset, key, b"")  # for an unknown type the value is not read
        except DamageError:
            raise damage from None
    return parser(entry.offset, key, value)


def no_key(offset: int) -> DamageError:
    return DamageError(
        "payload", f"the record at offset {offset} has no key: the key should contain the type of the record"
    )


def unknown(what: str, version: int, offset: int) -> DamageError:
    return DamageError("payload", f"the record at offset {offset} has an unknown {what}", found=version)


def broken(error: PayloadError, what: str) -> DamageError:
    return DamageError("payload", error.within(what).reason)


def control_text(key: bytes | None, value: bytes | None, dialect: PayloadDialect) -> str:
    """Return the text of a control record. Raises DamageError where DumpLogSegments stops."""
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
    from kdump.dump_log_segments.decoders import java
    from kdump.internal_topics.cluster_metadata import CONTROL_MESSAGES
    from kdump.internal_topics.interpreter import PayloadError, Reader, read_fields

    message, reader = CONTROL_MESSAGES[name], Reader(value, limited=dialect.limited)
    try:  # Kafka reads any version of the message as version 0
        values = read_fields(message.struct(0, dialect.definitions), reader)
    except PayloadError as error:
        raise broken(error, f"{name} of a control record") from None
    version = values["version"]
    struct = message.struct(version if isinstance(version, int) else 0, dialect.definitions)
    return java.json(struct, _completed(struct, values))


def _completed(struct: Struct, values: Values) -> Values:
    """Return ``values`` with defaults for the fields of ``struct`` that their version lacks."""
    completed: Values = {}
    for slot in struct.slots:
        value = values.get(slot.name, slot.default())
        if slot.struct is not None and isinstance(value, list):
            value = [_completed(slot.struct, cast("Values", element)) for element in value]
        elif slot.struct is not None and isinstance(value, dict):
            value = _completed(slot.struct, value)
        completed[slot.name] = value
    return completed
