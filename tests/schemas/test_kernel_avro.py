import io
import json
import random

import fastavro
import fastavro.utils
import pytest

from kdump import kernel
from kdump.printers.json_text import quote, scalar
from kdump.rows.columns import DECODED
from kdump.schemas import UndecodableError
from kdump.schemas.avro import AvroReader
from kdump.schemas.avro_schema import parse
from tests.schemas.test_avro import logical, random_schema

pytestmark = pytest.mark.skipif(not kernel.COMPILED, reason="the kernel is not compiled")

LOGICAL = [
    logical("int", "date"),
    logical("int", "time-millis"),
    logical("long", "time-micros"),
    *(logical("long", f"{zone}timestamp-{unit}") for zone in ("", "local-") for unit in ("millis", "micros", "nanos")),
    logical("bytes", "decimal", precision=18, scale=3),
    logical("bytes", "decimal", precision=18),
    {"type": "fixed", "name": "X", "size": 5, "logicalType": "decimal", "precision": 10, "scale": 10},
    {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"},
    {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"},
    logical("string", "uuid"),
    "float",
    "double",
    "boolean",
    {"type": "map", "values": "long"},
]


def writer(schema):
    from kdump.schemas.kernel_tables import avro_text  # needs the kernel

    return avro_text(schema, quote)


def general(reader, payload):
    """Return the general path's JSON of a whole payload, or None if something is wrong."""
    try:
        value, end = reader.value(payload)
    except UndecodableError:
        return None
    return scalar(DECODED, value).encode() if end == len(payload) else None


def compare(schema, payload):
    """Assert that the kernel writes the same as the general path, or nothing; return whether it wrote."""
    parsed = parse(json.dumps(schema))
    text = writer(parsed)
    if text is None:
        return False
    made = text.text(b"frame" + payload, 5)
    assert made is None or made == general(AvroReader(parsed), payload)
    return made is not None


@pytest.mark.parametrize("schema", LOGICAL, ids=str)
def test_random_bytes(schema):
    rng = random.Random(str(schema))
    whole = {"type": "record", "name": "R", "fields": [{"name": "a", "type": schema}]}
    written = 0
    for size in range(24):
        for _ in range(60):
            written += compare(whole, rng.randbytes(size))
            written += compare(whole, bytes([rng.choice((0, 2, 4, 8, 127, 255)) for _ in range(size)]))
    assert written


@pytest.mark.parametrize("value", [-(2**63), -1, 0, 1, 86399999, 2**31 - 1, 2**31, 253402300799999, 2**63 - 1])
def test_numbers_at_their_ends(value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", value)
    for schema in LOGICAL[:9]:
        compare({"type": "record", "name": "R", "fields": [{"name": "a", "type": schema}]}, out.getvalue())
    assert compare({"type": "array", "items": "long"}, b"\2" + out.getvalue() + b"\0")


def test_random_schemas():
    rng = random.Random(11)
    random.seed(11)  # of generate_many
    written = 0
    for _ in range(150):
        schema = random_schema(rng, [])
        parsed = fastavro.parse_schema(schema)
        for value in fastavro.utils.generate_many(parsed, 3):
            out = io.BytesIO()
            fastavro.schemaless_writer(out, parsed, value)
            payload = out.getvalue()
            written += compare(schema, payload)
            for _ in range(5):
                broken = bytearray(payload + b"\0")
                broken[rng.randrange(len(broken))] = rng.randrange(256)
                compare(schema, bytes(broken[: rng.randrange(len(broken) + 1)]))
    assert written > 200


@pytest.mark.parametrize(
    "text", ["", "plain", 'a"b\\c', "\u00fc\U0001f600", "\0\n\x7f", "\u2028\u202e\x85", "x" * 5000]
)
def test_texts(text):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "string", text)
    assert compare("string", out.getvalue())
    assert compare({"type": "map", "values": "string"}, b"\2" + out.getvalue() * 2 + b"\0")


def test_a_key_that_comes_twice_and_many_keys_are_left_to_the_general_path():
    entry = b"\2a\2"
    ints = {"type": "map", "values": "int"}
    assert not compare(ints, b"\4" + entry * 2 + b"\0")
    assert compare(ints, b"\2" + entry + b"\2\2b\2" + b"\0")
    many = b"".join(b"\4" + bytes([97 + number // 10, 97 + number % 10]) + b"\2" for number in range(40))
    assert not compare(ints, b"\x50" + many + b"\0")


def test_deep_payloads():
    tree = {"type": "record", "name": "T", "fields": [{"name": "t", "type": ["null", "T"]}]}
    assert compare(tree, b"\2" * 64 + b"\0")
    assert not compare(tree, b"\2" * 100_000 + b"\0")


def test_schemas_with_rules_of_their_own_are_left_to_the_general_path():
    empty = {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]}
    for schema in ("bytes", {"type": "array", "items": "null"}, {"type": "array", "items": empty}):
        assert writer(parse(json.dumps(schema))) is None
    loop = {"type": "record", "name": "A", "fields": [{"name": "a", "type": {"type": "array", "items": "A"}}]}
    assert compare(loop, b"\2\0\0")
