"""The consumer of :mod:`tools.prove.restored_registry`: runs in an environment with confluent-kafka and fastavro.

    PYTHON restored_consumer.py BROKER REGISTRY < PAYLOADS

PAYLOADS is a JSON array of topic, value (base64), format and schema (null: it has references, and is only read). Prints
how many messages Confluent's deserializers read, how many of them are what fastavro reads with the schema, and what
differs.
"""

import io
import json
import sys
from base64 import b64decode
from typing import Any

SHORTEST = 6
"""The smallest payload in bytes: AvroDeserializer refuses an empty message after the id."""


def is_valid(value: object, text: str) -> bool:
    """Return whether a schema accepts a value. A payload of the corpus may violate its schema."""
    import jsonschema  # as below

    schema = json.loads(text)
    return jsonschema.validators.validator_for(schema)(schema).is_valid(value)


def main() -> None:
    """Produce, consume, and compare."""
    import fastavro  # these are of the other environment
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    broker, registry = sys.argv[1:]
    payloads = json.load(sys.stdin)
    client = SchemaRegistryClient({"url": registry})
    read: dict[str, Any] = {"avro": AvroDeserializer(client)}
    read["json"] = JSONDeserializer(None, schema_registry_client=client)
    producer = Producer({"bootstrap.servers": broker})
    for number, payload in enumerate(payloads):
        producer.produce("payloads", b64decode(payload["value"]), key=str(number), partition=0)
        producer.poll(0)
    producer.flush()
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["payloads"])
    count = equal = 0
    wrong = []
    for _ in payloads:
        message = consumer.poll(60)
        if message is None or message.error():
            break
        payload = payloads[int(message.key())]
        value = message.value()
        count += 1
        if len(value) < SHORTEST:
            continue
        try:
            found = read[payload["format"]](value, SerializationContext(payload["topic"], MessageField.VALUE))
        except Exception as error:  # of any library below: it is the answer
            if payload["format"] == "json" and not is_valid(json.loads(value[5:]), payload["schema"]):
                equal += 1  # the consumer of the old registry refuses it, too
                continue
            wrong.append(f"{payload['topic']}: {type(error).__name__}: {error}"[:300])
            continue
        if payload["format"] == "json":
            expected = json.loads(value[5:])
        elif payload["schema"] in (None, '"bytes"'):
            continue
        else:
            schema = fastavro.parse_schema(json.loads(payload["schema"]))
            expected = fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None, return_record_name=False)
        if repr(found) == repr(expected):
            equal += 1
        else:
            wrong.append(f"{payload['topic']}: {found!r} is not {expected!r}"[:300])
    consumer.close()
    json.dump({"read": count, "equal": equal, "wrong": wrong}, sys.stdout)


if __name__ == "__main__":
    main()
