"""Schemas of the topic ``_schemas``, and the decoding of payloads with them: Avro, Protobuf and JSON Schema."""

from typing import Final

TOPIC: Final = "_schemas"
"""The default name of the registry's topic (``kafkastore.topic``)."""
FIRST_BYTES: Final = (b"\0", b"\xc3", b"O")
"""The possible first bytes of a payload whose frame is not in a header (:mod:`kdump.schemas.framing`)."""


class UndecodableError(ValueError):
    """A payload is malformed or does not match its schema; the text is one sentence for people."""


class SchemaError(ValueError):
    """A schema is malformed."""


class MissingReferenceError(SchemaError):
    """A referenced schema is not in the log."""


class MismatchError(UndecodableError):
    """A payload matches its own schema, but not the schema of the columns."""
