import json

import pytest

from kdump.errors import UsageError
from kdump.schemas.decoder import PayloadDecoder
from kdump.schemas.shapes import JSON_TEXT, Leaf, ListShape, MapShape, StructShape
from kdump.schemas.typed import SubjectTables, TypedValue, typed_sides
from tests.schemas.test_store import schema, store_of

PROTO = """syntax = "proto3"; package p; import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto"; import "google/protobuf/duration.proto";
message M { int64 big = 1; uint64 unsigned = 2; google.protobuf.Timestamp at = 3; google.protobuf.Int64Value maybe = 4;
google.protobuf.Struct free = 5; M inner = 6; map<int32, bytes> parts = 7; repeated E kinds = 8;
oneof o { bool b = 9; float f = 10; }
google.protobuf.Duration took = 11; Empty none = 12; }
enum E { A = 0; B = 1; } message Empty { } message Other { int32 x = 1; }"""
RECORD = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
NEWER = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string"]}],
    }
)


def side_of(subject, *records, **given):
    *_, side = typed_sides(PayloadDecoder(store_of(*records)), subject, **given)
    return side


def prefixed(number, payload):
    return b"\0" + number.to_bytes(4, "big") + payload


@pytest.fixture
def versions():
    return [
        schema("t-value", 1, 1, RECORD),
        schema("t-value", 2, 2, NEWER),
        schema("t-key", 1, 3, '"string"'),
        schema("json-value", 1, 4, "{}", schemaType="JSON"),
        schema("proto-value", 1, 5, PROTO, schemaType="PROTOBUF"),
        schema("old-value", 1, 6, '"int"', deleted=True),
        schema("broken-value", 1, 7, "{"),
    ]


def test_older_payloads_have_the_newest_shape(versions):
    side = side_of("t-value", *versions)
    assert side.shape == StructShape((("a", Leaf("int64")), ("b", Leaf("string"))))
    assert side.read("t", prefixed(1, b"\2"), ()) == TypedValue((1, None), 1)
    assert side.read("t", prefixed(2, b"\2\2\2x"), ()) == TypedValue((1, "x"), 2)
    assert side.read("t", prefixed(1, b"\2"), ()) == TypedValue((1, None), 1)
    assert side.read("t", None, ()) == TypedValue()
    pinned = side_of("t-value:1", *versions)
    assert pinned.shape == StructShape((("a", Leaf("int32")),))
    assert pinned.read("t", prefixed(2, b"\2\0"), ()).problem == "schema-mismatch"


@pytest.mark.parametrize(
    ("payload", "problem", "why"),
    [
        (b"text", "no-schema", "names no schema"),
        (prefixed(99, b""), "schema-missing", "the id 99"),
        (prefixed(1, b""), "payload-invalid", "ends early"),
        (prefixed(1, b"\2rest"), "trailing-bytes", "4 bytes are left"),
        (prefixed(7, b"\2"), "schema-invalid", "not JSON"),
        (prefixed(3, b"\2x"), "schema-mismatch", "a value of string is not of the type record R"),
        (prefixed(4, b"1"), "schema-mismatch", "the payload is json"),
        (b"Obj\1", "schema-mismatch", "container file"),
    ],
)
def test_what_has_no_such_value_says_why(versions, payload, problem, why):
    found = side_of("t-value", *versions).read("t", payload, ())
    assert found.problem == problem
    assert why in found.why
    assert found.value == ((1, None) if problem == "trailing-bytes" else None)


def test_the_other_side_of_a_topic_comes_first(versions):
    decoder = PayloadDecoder(store_of(*versions))
    assert [side.side for side in typed_sides(decoder, "t-value")] == ["key", "value"]
    assert [side.side for side in typed_sides(decoder, "t-key")] == ["value", "key"]
    assert [side.side for side in typed_sides(decoder, "json-value")] == ["value"]


def test_a_key_whose_schema_has_no_message_gives_no_columns(versions):
    key = schema("t3-key", 1, 30, 'syntax="proto3"; enum E { A = 0; }', schemaType="PROTOBUF")
    decoder = PayloadDecoder(store_of(*versions, key, schema("t3-value", 1, 31, '"int"')))
    assert [side.side for side in typed_sides(decoder, "t3-value")] == ["value"]


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        ("t-valu", "no subject is called 't-valu'; did you mean 't-value'\\?"),
        ("t-value:3", "'t-value' has no version 3: it has 1, 2"),
        ("old-value", "all versions of 'old-value' are deleted \\(1\\): write old-value:1"),
        ("broken-value", "version 1 of 'broken-value': the schema is not JSON"),
        ("proto-value#p.None", "has no message p.None"),
        ("t-value#p.None", "'t-value' is not Protobuf: leave out #p.None"),
    ],
)
def test_a_subject_that_is_not_there_says_what_is(versions, subject, why):
    with pytest.raises(UsageError, match=why):
        side_of(subject, *versions)


def test_a_log_without_schemas_says_so():
    with pytest.raises(UsageError, match="no record of the topic _schemas"):
        side_of("t-value")


def test_a_deleted_version_counts_where_it_is_named(versions):
    assert side_of("old-value:1", *versions).read("t", prefixed(6, b"\2"), ()) == TypedValue(1, 6)


def test_the_versions_of_the_own_subject_come_first():
    records = [schema("a-value", 1, 1, '"int"'), schema("t-value", 1, 1, '"int"'), schema("t-value", 2, 2, '"long"')]
    assert side_of("t-value", *records).read("a", prefixed(1, b"\2"), ()) == TypedValue(1, 1)


def test_protobuf_messages(versions):
    side = side_of("proto-value", *versions)
    assert side.shape == StructShape(
        (
            ("big", Leaf("int64")),
            ("unsigned", Leaf("uint64")),
            ("at", Leaf("instant-nanos")),
            ("maybe", Leaf("int64")),
            ("free", JSON_TEXT),
            ("inner", JSON_TEXT),
            ("parts", MapShape(Leaf("int32"), Leaf("bytes"))),
            ("kinds", ListShape(Leaf("enum", symbols=("A", "B")))),
            ("b", Leaf("boolean")),
            ("f", Leaf("float32")),
            ("took", Leaf("string")),
            ("none", JSON_TEXT),
        )
    )
    body = bytes.fromhex(
        "08ffffffffffffffff7f10ffffffffffffffffff011a04080110022202080532020803"  # big, unsigned, at, maybe, inner
        "3a0508071201ff4202010948015a0208036200"  # parts, kinds, b, took, none
    )
    found = side.read("proto", prefixed(5, b"\0" + body), ())
    assert found == TypedValue(
        (
            2**63 - 1,
            2**64 - 1,
            10**9 + 2,
            5,
            None,
            '{"big":"3","unsigned":"0","kinds":[],"parts":{}}',
            [(7, b"\xff")],
            [1, "9"],
            True,
            None,
            "3s",
            "{}",
        ),
        5,
    )


def test_another_message_of_the_file_is_named(versions):
    payload = prefixed(5, b"\2\4\x08\5")
    found = side_of("proto-value", *versions).read("proto", payload, ())
    assert (found.problem, found.schema_id) == ("schema-mismatch", 5)
    assert "for its columns use the subject proto-value#p.Other" in found.why
    assert side_of("proto-value#p.Other", *versions).read("proto", payload, ()) == TypedValue((5,), 5)
    assert side_of("proto-value", *versions).read("proto", prefixed(5, b"\2\x08"), ()).problem == "payload-invalid"


def test_a_timestamp_beyond_nanoseconds_fits_only_wider_columns(versions):
    payload = prefixed(5, b"\0\x1a\x0b\x08\x80\x92\xb8\xc3\x98\xfe\xff\xff\xff\x01")
    found = side_of("proto-value", *versions).read("proto", payload, ())
    assert found.problem == "schema-mismatch"
    assert "0001-01-01T00:00:00Z is outside the years 1678 to 2262" in found.why
    found = side_of("proto-value", *versions, wide_times=True).read("proto", payload, ())
    assert found.problem is None
    assert found.value[2] == -62_135_596_800 * 10**9


@pytest.mark.parametrize("topic", ["__consumer_offsets", "heartbeats", "b.heartbeats"])
def test_payloads_of_a_known_layout_have_no_schema(versions, topic):
    heartbeat = b"\0\0" + (5 << 40).to_bytes(8, "big")  # as a frame: the schema id 5
    decoder = PayloadDecoder(store_of(*versions))
    tables, (side,) = SubjectTables(decoder), typed_sides(decoder, "proto-value")
    assert (side.read("orders", heartbeat, ()).problem, tables.table("orders", heartbeat, ())) == (
        "payload-invalid",
        "proto-value",
    )
    assert (side.read(topic, heartbeat, ()).problem, tables.table(topic, heartbeat, ())) == ("no-schema", None)
    assert tables.read(topic, heartbeat, ()).problem == "no-schema"


def test_a_null_of_an_unusable_schema_has_its_reason():
    decoder = PayloadDecoder(store_of(schema("t-value", 1, 1, '{"type": "nothing"}')))
    tables = SubjectTables(decoder)
    assert tables.table("t", None, ()) is None
    found = tables.read("t", None, ())
    assert (found.problem, "nothing" in found.why) == ("no-schema", True)
    assert tables.table("u", None, ()) is None
    assert tables.read("u", None, ()).why == "a null refers to no schema, and there is no subject u-value"


def test_json_payloads_are_text(versions):
    side = side_of("json-value", *versions)
    assert side.shape is JSON_TEXT
    assert side.read("json", prefixed(4, b'{ "a": [1] }'), ()) == TypedValue('{"a":[1]}', 4)
    assert side.read("json", prefixed(4, b"{"), ()).problem == "payload-invalid"


def test_a_schema_of_endless_fields_keeps_few_columns():
    fields, name = [{"name": "v", "type": "int"}], "R0"
    kind = {"type": "record", "name": name, "fields": fields}
    for level in range(1, 30):
        inner = [{"name": "a", "type": kind}, {"name": "b", "type": f"R{level - 1}"}]
        kind = {"type": "record", "name": f"R{level}", "fields": inner}
    side = side_of("t-value", schema("t-value", 1, 1, json.dumps(kind)))

    def count(shape):
        return sum(count(inner) for _, inner in shape.fields) if isinstance(shape, StructShape) else 1

    assert count(side.shape) < 6000
