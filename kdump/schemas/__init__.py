"""Schemas of the topic ``_schemas``, and payloads decoded with them: Avro, Protobuf and JSON Schema."""

from typing import Final

TOPIC: Final = "_schemas"
"""The default name of the registry's topic (``kafkastore.topic``)."""
