"""Schemas of the topic ``_schemas``, and the decoding of payloads with them: Avro, Protobuf and JSON Schema."""

from typing import Final

TOPIC: Final = "_schemas"
"""The default name of the registry's topic (``kafkastore.topic``)."""
FIRST_BYTES: Final = (b"\0", b"\xc3", b"O")
"""The first byte of a payload with a frame of its own (:mod:`kdump.schemas.framing`)."""
