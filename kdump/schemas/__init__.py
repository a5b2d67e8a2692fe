"""Schemas of the topic ``_schemas``, and payloads decoded with them: Avro, Protobuf and JSON Schema."""
