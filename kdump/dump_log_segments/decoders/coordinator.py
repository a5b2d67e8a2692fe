"""The decoder switches that print coordinators' records as JSON: type of the key, version of the value, fields.

A null value is printed as ``<DELETE>``. For an unknown type or an unreadable record a sentence is printed instead, and
the run continues. A record without a key ends it (DamageError).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

from kdump.dump_log_segments.decoders import java
from kdump.dump_log_segments.decoders.texts import DELETE, SkippingParser, Texts, no_key
from kdump.internal_topics import consumer_offsets
from kdump.internal_topics.interpreter import PayloadError, Reader, read_fields
from kdump.internal_topics.schema import by_type
from kdump.internal_topics.transaction_state import STATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kdump.dump_log_segments.dialects.payload import CoordinatorWords, PayloadDialect
    from kdump.internal_topics.schema import MessageSchema, Struct, Value, Values

CONSUMER: Final = "consumer"
"""The protocol type whose member bytes are decoded."""
STATUS: Final = "transactionStatus"
GROUP: Final = "GroupMetadataValue"
KEYS: Final = 1 << 12
"""Maximum number of key texts that are cached."""
MEMBER_BYTES: Final = {"subscription": "ConsumerProtocolSubscription", "assignment": "ConsumerProtocolAssignment"}


class CoordinatorParser(SkippingParser):
    """A :data:`Parser` that prints records of the types ``messages`` in a dialect."""

    def __init__(self, messages: Mapping[str, MessageSchema], words: CoordinatorWords, dialect: PayloadDialect) -> None:
        self.words, self.release, self.limited = words, dialect.definitions, dialect.limited
        self.keys, self.values = by_type(messages, "Key", self.release), by_type(messages, "Value", self.release)
        self.key = lru_cache(maxsize=KEYS)(self.read_key)
        self.struct = lru_cache(self._struct)

    def __call__(self, offset: int, key: bytes | None, value: bytes | None) -> Texts:
        if key is None:
            raise no_key(offset)
        try:
            number, key_text = self.key(key)
            if key_text is None:
                return Texts(f"Unknown record type {number} at offset {offset}, skipping.", None)
            if value is None:
                return Texts(key_text, DELETE)
            reader = Reader(value, limited=self.limited)
            version = _read_version(reader, "value")
            struct = self.struct(number, version)
            values = self.shown(struct, _read(struct, reader, number=version, part="value"))
            return Texts(key_text, f"{self.value_head(version)}{java.json(struct, values)}}}")
        except PayloadError as error:
            return self.skipped(offset, error.java_message)

    def skipped(self, offset: int, java_message: str | None) -> Texts:
        return Texts(f"Error at offset {offset}, skipping. {'null' if java_message is None else java_message}", None)

    def value_head(self, version: int) -> str:
        """Return the JSON text before the fields of a value. The caller adds the fields and the closing brace."""
        return f'{{"{self.words.value_version}":"{version}","data":'

    def shown(self, struct: Struct, values: Values) -> Values:
        """Return values in which the bytes of group members are decoded. Some releases also replace states by names."""
        if self.words.names_states and STATUS in values:
            status = cast("int", values[STATUS])
            return {**values, STATUS: f'"{STATES[status] if 0 <= status < len(STATES) else status}"'}
        if struct.name != GROUP or values["protocolType"] != CONSUMER:
            return values
        members = [
            {name: self._embedded(name, value) if name in MEMBER_BYTES else value for name, value in member.items()}
            for member in cast("list[Values]", values["members"])
        ]
        return {**values, "members": cast("Value", members)}

    def _embedded(self, name: str, value: Value) -> Value:
        reader = Reader(cast("bytes", value), limited=self.limited)
        try:
            struct = consumer_offsets.MEMBER_MESSAGES[MEMBER_BYTES[name]].struct(reader.int16(), self.release)
            return java.Json(java.json(struct, read_fields(struct, reader)))
        except PayloadError:
            return value

    def read_key(self, key: bytes) -> tuple[int, str | None]:
        """Return the type of a record and the text of its key (None for an unknown type). Raises PayloadError."""
        reader = Reader(key, limited=self.limited)
        number = _read_version(reader, "key")
        if number not in self.keys:
            return number, None
        struct = self.keys[number].struct(0, self.release)
        values = _read(struct, reader, number=number, part="key")
        return number, f'{{"type":"{number}","data":{java.json(struct, values)}}}'

    def _struct(self, number: int, version: int) -> Struct:
        """Return the layout of a value. Raises PayloadError for a version that the release refuses."""
        known = self.values[number].versions(self.release)
        if self.words.checks_version and known is not None and not known.has(version):
            java_message = f"Found an unknown record version {version} for {number} type"
            raise PayloadError(java_message, "unknown version", 0)
        return self.values[number].struct(version, self.release)


def _read_version(reader: Reader, part: str) -> int:
    try:
        return reader.int16()
    except PayloadError as error:
        raise PayloadError(f"Could not read version from {part}'s buffer.", error.what, error.position) from None


def _read(struct: Struct, reader: Reader, *, number: int, part: str) -> Values:
    try:
        return read_fields(struct, reader)
    except PayloadError as error:
        java_message = "null" if error.java_message is None else error.java_message
        java_message = f"Could not read record with version {number} from {part}'s buffer due to: {java_message}."
        raise PayloadError(java_message, error.what, error.position) from None
