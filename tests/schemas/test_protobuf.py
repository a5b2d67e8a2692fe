import json
import random
import tempfile
from pathlib import Path

import grpc_tools
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.message import DecodeError
from grpc_tools import protoc

from kdump.schemas import MissingReferenceError, SchemaError, UndecodableError
from kdump.schemas.proto_descriptor import as_text, parse_file
from kdump.schemas.protobuf import ProtobufReader, read_indexes

SCHEMA = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/any.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/empty.proto";

enum Level { LEVEL_NONE = 0; LEVEL_HIGH = 1; }
message Order {
  int32 a = 1; int64 b = 2; uint32 c = 3; uint64 d = 4; sint32 e = 5; sint64 f = 6;
  fixed32 g = 7; fixed64 h = 8; sfixed32 i = 9; sfixed64 j = 10;
  float k = 11; double l = 12; bool m = 13; string n = 14; bytes o = 15;
  Level level = 16;
  repeated int32 many = 17; repeated string texts = 18; repeated Line lines = 19; repeated Level levels = 20;
  map<string, int64> by = 21; map<int32, Line> of = 22; map<bool, Level> flags = 23;
  Line line = 24;
  oneof pick { int32 one = 25; string two = 26; Line three = 27; }
  optional int32 maybe = 28;
  google.protobuf.Timestamp at = 29;
  google.protobuf.Duration took = 30;
  google.protobuf.Struct free = 31;
  google.protobuf.Value value = 32;
  google.protobuf.ListValue list = 33;
  google.protobuf.Int64Value wrapped = 34;
  google.protobuf.BytesValue blob = 35;
  google.protobuf.Any any = 36;
  google.protobuf.FieldMask mask = 37;
  google.protobuf.Empty nothing = 38;
  message Line { string item = 1; Order parent = 2; google.protobuf.NullValue none = 3; }
}
"""
PROTO2 = """
syntax = "proto2";
package old;
message A {
  required int32 id = 1; optional string text = 2 [default = "x"]; repeated int32 packed = 3 [packed = true];
  optional group Inner = 4 { optional int32 k = 1; repeated group Deep = 2 { optional bool b = 1; } }
  enum Kind { NONE = 0; ONE = 1; TWO = 2; }
  optional Kind kind = 5; repeated Kind kinds = 6; map<string, Kind> by = 7;
  extensions 100 to 200;
}
extend A { optional int64 more = 100; repeated A nested = 101; }
"""

EDITION = """
edition = "2023";
package new;
option features = { message_encoding: DELIMITED, field_presence: IMPLICIT };
option features.enum_type = CLOSED;
message A {
  int32 id = 1; string text = 2 [deprecated = true, features.field_presence = EXPLICIT];
  repeated int32 many = 3 [features.repeated_field_encoding = EXPANDED];
  Inner inner = 4; repeated Inner more = 5; Inner plain = 6 [features = { message_encoding: LENGTH_PREFIXED }];
  message Inner { int32 k = 1 [features = { field_presence: EXPLICIT }]; A a = 2; }
  enum Kind { NONE = 0; ONE = 1; } Kind kind = 7 [features.field_presence = EXPLICIT]; repeated Kind kinds = 11;
  enum Open { option features = { enum_type: OPEN }; ZERO = 0; } Open open = 12; repeated Open opens = 13;
  map<string, Inner> by = 8; oneof pick { int32 one = 9; Inner two = 10; }
  extensions 100 to 200;
}
extend A { repeated int64 longs = 100; A.Inner other = 101; }
"""


def compiled(text):
    """protoc's descriptors of a .proto text, as a pool."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.proto")
        path.write_text(text)
        own = Path(grpc_tools.__file__).parent / "_proto"
        out = Path(folder, "out")
        arguments = ["protoc", f"-I{folder}", f"-I{own}", f"--descriptor_set_out={out}", "--include_imports", str(path)]
        assert protoc.main(arguments) == 0
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())


def messages(text, name):
    pool = descriptor_pool.DescriptorPool()
    files = compiled(text)
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name)), files, pool


def expected(message, pool):
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True, descriptor_pool=pool
    )


@pytest.fixture(scope="module")
def order():
    return messages(SCHEMA, "shop.Order")


def fill(rng, message, level=0):
    """Set random fields of a message, by its descriptor."""
    for field in message.DESCRIPTOR.fields:
        if rng.random() < 0.4:
            continue
        if field.message_type is not None and level > 2:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            target = getattr(message, field.name)
            key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
            for _ in range(rng.randrange(3)):
                if value.message_type is not None:
                    fill(rng, target[scalar(rng, key)], level + 1)
                else:
                    target[scalar(rng, key)] = scalar(rng, value)
        elif field.message_type is not None and field.message_type.full_name == "google.protobuf.Any":
            message.any.type_url = rng.choice(["type.googleapis.com/no.Such", "type.googleapis.com/shop.Order.Line"])
        elif field.message_type is not None and field.message_type.full_name == "google.protobuf.Timestamp":
            getattr(message, field.name).FromMilliseconds(rng.randrange(-(10**13), 10**14))
        elif field.message_type is not None and field.message_type.full_name == "google.protobuf.Duration":
            getattr(message, field.name).FromMicroseconds(rng.randrange(-(10**13), 10**14))
        elif field.message_type is not None and field.message_type.full_name == "google.protobuf.FieldMask":
            getattr(message, field.name).paths.append("a_b.c_d")
        elif (
            field.message_type is not None
            and field.message_type.full_name.startswith("google.protobuf.")
            and (field.message_type.name in ("Struct", "Value", "ListValue"))
        ):
            made = {"a": [1.5, None, True, "x"], "b": {"c": {}}}
            made = {"Struct": made, "Value": "v", "ListValue": [made, 2]}[field.message_type.name]
            json_format.ParseDict(made, getattr(message, field.name))
        elif field.is_repeated:
            for _ in range(rng.randrange(3)):
                if field.message_type is not None:
                    fill(rng, getattr(message, field.name).add(), level + 1)
                else:
                    getattr(message, field.name).append(scalar(rng, field))
        elif field.message_type is not None:
            getattr(message, field.name).SetInParent()
            fill(rng, getattr(message, field.name), level + 1)
        else:
            setattr(message, field.name, scalar(rng, field))


def scalar(rng, field):
    if field.enum_type is not None:
        return rng.choice(field.enum_type.values).number
    kinds = {
        field.TYPE_BOOL: lambda: rng.random() < 0.5,
        field.TYPE_STRING: lambda: rng.choice(["", "text", "\u00fc\U0001f600", "a\0b"]),
        field.TYPE_BYTES: lambda: rng.randbytes(rng.randrange(4)),
        field.TYPE_FLOAT: lambda: rng.choice(
            [0.1, -1.5, 3.4028234663852886e38, float("nan"), float("inf"), 80836.61, -1.00642857e37]
        ),
        field.TYPE_DOUBLE: lambda: rng.choice([0.1, -0.0, 1e300, float("-inf")]),
    }
    if field.type in kinds:
        return kinds[field.type]()
    unsigned = field.type in (field.TYPE_UINT32, field.TYPE_UINT64, field.TYPE_FIXED32, field.TYPE_FIXED64)
    wide = "64" in {getattr(field, name): name for name in dir(field) if name.startswith("TYPE_")}[field.type]
    bits = (64 if wide else 32) - (not unsigned)
    return rng.choice([0, 1, 2**bits - 1, *([] if unsigned else [-1, -(2**bits)])])


def same(found, wanted):
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict) and found.keys() == wanted.keys() and all(same(found[k], wanted[k]) for k in found)
        )
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    return found == wanted and isinstance(found, bool) == isinstance(wanted, bool)


@pytest.mark.parametrize(
    ("text", "name"),
    [(SCHEMA, "shop.Order"), (PROTO2, "old.A"), (EDITION, "new.A")],
    ids=["proto3", "proto2", "edition"],
)
def test_random_messages_are_read_as_protobuf_does(text, name):
    kind, files, pool = messages(text, name)
    readers = [ProtobufReader(text), ProtobufReader(as_text(base64_of(files)), None, parse_file)]
    readers.append(ProtobufReader(base64_of(files), None, parse_file))
    rng = random.Random(name)
    for _ in range(120):
        message = kind()
        fill(rng, message)
        payload = message.SerializePartialToString()
        try:
            wanted = expected(message, pool)
        except (TypeError, json_format.SerializeToJsonError):  # an Any of an unknown type: kdump shows its bytes
            wanted = None
        for reader in readers:
            found = reader.read(payload, 0, [0])
            assert found.name == name
            assert found.unknown_fields == ()
            json.dumps(found.value, allow_nan=False)
            assert wanted is None or same(found.value, wanted)
        check_broken(readers[0], kind, payload, pool, rng)


def test_a_descriptor_with_a_group_as_an_extension_is_printed():
    text = """syntax = "proto2";
package old;
message A { extensions 100 to 199; }
extend A { optional group More = 100 { optional int32 k = 1; } }
"""
    made = as_text(base64_of(messages(text, "old.A")[1]))
    assert "optional group More = 100 {" in made
    assert "message More" not in made
    ProtobufReader(made)


FULL = r"""syntax = "proto2";
package old;
import public "google/protobuf/any.proto";
import "google/protobuf/timestamp.proto";
message A {
  message Inner { optional google.protobuf.Timestamp at = 1; }
  enum Kind { reserved -7 to -5, 9, 100 to max; reserved "GONE"; NONE = 0; ONE = 1; }
  optional string text = 1 [default = "it's a \"b\" \\ \n\t\177 \303\274?"];
  optional bytes data = 2 [default = "\001\377\"'\\"];
  optional Kind kind = 3 [default = ONE];
  optional double big = 4 [default = -1.5e300]; optional float no = 5 [default = nan];
  optional float least = 6 [default = -inf]; optional bool yes = 7 [default = true];
  optional sint64 low = 8 [default = -9223372036854775808, json_name = "lowest"];
  optional string a_b_c = 10 [json_name = "a_b_c"]; optional string _d_2e = 11;
  optional string empty = 12 [default = ""];
  oneof pick { string one = 13 [default = "1"]; google.protobuf.Any two = 14; }
  reserved 20, 30 to 39, 536870000 to max; reserved "gone", "lost";
  extensions 100 to 199;
}
extend A { optional int32 more_or_less = 100 [default = -3]; }
"""
NESTED = """syntax = "proto2";
package old;
message A {
  message First {}
  map<string, Last> m = 1 [json_name = "all"];
  message Middle { map<int32, string> n = 1; message In {} }
  oneof pick { int32 one = 2; group Two = 3 [json_name = "deux"] { message Deep {} } string three = 4; }
  extend B { optional group More = 100 { optional int32 k = 1; } }
  message Last {}
  repeated group Four = 5 { map<bool, Middle> o = 6; }
  optional First first = 7;
}
message B { extensions 100 to 199; }
extend B { optional group Most = 101 { optional A a = 1; } }
message C {}
"""
FULL_EDITION = """edition = "2023";
import public "google/protobuf/any.proto";
message A { int32 k = 1 [default = 7]; reserved 4 to 5; reserved gone, lost; google.protobuf.Any any = 2; }
enum Kind { NONE = 0; reserved 3; reserved GONE; }
"""


@pytest.mark.parametrize("text", [FULL, FULL_EDITION, NESTED], ids=["proto2", "edition", "nested"])
def test_the_text_of_a_descriptor_compiles_to_the_same_descriptor(text):
    files = compiled(text)
    made = as_text(base64_of(files))
    assert compiled(made).file[-1] == files.file[-1]
    ProtobufReader(made)


def test_a_map_in_a_descriptor_needs_two_types():
    import base64

    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name="a", syntax="proto3")
    message = file.message_type.add(name="A")
    entry = message.nested_type.add(name="MEntry")
    entry.options.map_entry = True
    message.field.add(name="m", number=1, label=3, type=11, type_name=".A.MEntry")
    with pytest.raises(SchemaError, match="the map m in the descriptor has 0 types, not 2"):
        as_text(base64.b64encode(file.SerializeToString()).decode())


def base64_of(files):
    import base64

    return base64.b64encode(files.file[-1].SerializeToString()).decode()


def check_broken(reader, kind, payload, pool, rng):
    """A broken payload gives the value that protobuf reads, or a reason."""
    for _ in range(4):
        broken = bytearray(payload + b"\0")
        broken[rng.randrange(len(broken))] = rng.randrange(256)
        broken = bytes(broken[: rng.randrange(len(broken) + 1)])
        try:
            found = reader.read(broken, 0, [0])
        except UndecodableError:
            continue
        json.dumps(found.value, allow_nan=False)
        message = kind()
        message.ParseFromString(broken)  # what kdump reads protobuf reads, too
        try:
            wanted = expected(message, pool)
        except (TypeError, ValueError, json_format.Error):
            continue
        if not found.unknown_fields:
            assert same(found.value, wanted)


LINE = 'syntax = "proto3"; message A { int32 x = 1; A a = 2; string s = 3; repeated int32 r = 4; }'


def hexed(reader, text):
    return reader.read(bytes.fromhex(text), 0, [0])


def test_messages_that_come_twice_are_merged():
    reader = ProtobufReader(LINE)
    assert hexed(reader, "1202 0801 1205 1a0161 2001").value["a"] == {"x": 1, "s": "a", "r": [1]}


def test_well_known_types_that_come_twice_are_merged():
    reader = ProtobufReader(
        'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message A { google.protobuf.Timestamp t = 1; }'
    )
    assert hexed(reader, "0a02 0801 0a05 1080ade204").value == {"t": "1970-01-01T00:00:01.010Z"}


NULLS = """syntax = "proto3"; import "google/protobuf/struct.proto"; package m;
message M { google.protobuf.NullValue n = 1; repeated google.protobuf.NullValue r = 2; google.protobuf.Value v = 3;
map<int32, google.protobuf.NullValue> e = 4; oneof o { google.protobuf.NullValue q = 5; int32 x = 6; } }"""


NULL_PAYLOADS = ["", "0807", "1204 00070007", "1a020802", "2204 08011007", "2807", "1a09 3207 0a02 0802 0a01 20"]


@pytest.mark.parametrize("payload", NULL_PAYLOADS)
def test_a_null_value_of_any_number_is_null(payload):
    data = bytes.fromhex(payload)
    kind, _, pool = messages(NULLS, "m.M")
    try:
        wanted = expected(kind.FromString(data), pool)
    except DecodeError:
        with pytest.raises(UndecodableError):
            ProtobufReader(NULLS).read(data, 0, [0])
        return
    assert ProtobufReader(NULLS).read(data, 0, [0]).value == wanted


ENTRIES = """syntax = "proto2"; package m;
message M { map<string, M> of = 1; map<string, E> by = 2; map<string, int32> plain = 3; optional int32 x = 4;
enum E { A = 0; } }"""


@pytest.mark.parametrize(
    ("payload", "unknown"),
    [
        ("0a 05 0a 01 61 28 07", (1,)),  # field 5 of the entry itself
        ("0a 07 0a 01 61 12 02 28 07", (5,)),  # field 5 of the entry's value
        ("0a 09 0a 01 61 12 02 28 07 28 07", (1,)),  # both
        ("0a 05 28 07 0a 01 61", (1,)),
        ("12 05 0a 01 61 10 07", (2,)),  # a closed enum without this number
        ("1a 07 0a 01 61 10 07 28 07", (3,)),
        ("1a 05 0a 01 61 10 07", ()),
        ("0a 07 0a 01 61 12 02 20 07", ()),
    ],
)
def test_a_map_entry_with_unknown_fields_is_one(payload, unknown):
    data = bytes.fromhex(payload)
    kind, _, pool = messages(ENTRIES, "m.M")
    found = ProtobufReader(ENTRIES).read(data, 0, [0])
    assert found.value == expected(kind.FromString(data), pool)
    assert found.unknown_fields == unknown


def test_unknown_fields_are_named():
    found = hexed(ProtobufReader(LINE), "4801 5201ff 0801 4b 4c 4d00000000")
    assert found.value["x"] == 1
    assert found.unknown_fields == (9, 9, 9, 10)


@pytest.mark.parametrize(
    "payload",
    [
        "08",
        "0880",
        "0a",
        "1a05 61",
        "1a 01 ff",
        "00",
        "0e",
        "0f",
        "4b",
        "4c",
        "4b 54",
        "8880808080 00 01",  # a tag of six bytes
        "4b a5dedcfc35 00 4c",  # a tag of more than 32 bits, in a group
        "4b 0001 4c",
        "08" + "ff" * 10 + "01",
        "220180",
    ],
)
def test_broken_payloads_have_a_reason(payload):
    with pytest.raises(UndecodableError):
        hexed(ProtobufReader(LINE), payload)


def sized(tag, data):
    size, head = len(data), b""
    while size > 127:
        head, size = head + bytes([size & 127 | 128]), size >> 7
    return tag + head + bytes([size]) + data


def test_messages_100_levels_deep_are_read_and_deeper_ones_refused():
    def nested(levels):
        payload = b""
        for _ in range(levels):
            payload = sized(b"\x12", payload)
        return payload

    reader = ProtobufReader(LINE)
    assert str(reader.read(nested(100), 0, [0]).value).count("{") == 101
    for levels in (101, 5000):
        with pytest.raises(UndecodableError):
            reader.read(nested(levels), 0, [0])
    with pytest.raises(UndecodableError):
        reader.read(b"\x4b" * 100_000, 0, [0])


def test_an_any_in_an_any_counts_as_a_level():
    def nested(levels):
        payload = b""
        for _ in range(levels):
            payload = sized(b"\n", b"x/google.protobuf.Any") + sized(b"\x12", payload)
        return sized(b"\n", payload)

    reader = ProtobufReader(
        'syntax = "proto3"; import "google/protobuf/any.proto"; message A { google.protobuf.Any a = 1; }'
    )
    assert str(reader.read(nested(90), 0, [0]).value).count("@type") == 90
    for levels in (101, 5000):
        with pytest.raises(UndecodableError, match="nested too deep"):
            reader.read(nested(levels), 0, [0])


@pytest.mark.parametrize(
    ("data", "expected_path", "end"),
    [
        ("00", [0], 1),
        ("0202", [1], 2),
        ("040204", [1, 2], 3),
        ("0101", [1], 2),
        ("020001", [0], 2),
    ],
)
def test_paths_of_messages(data, expected_path, end):
    assert read_indexes(bytes.fromhex(data), 0) == (expected_path, end)


@pytest.mark.parametrize("data", ["", "80", "02", "0100", "feffffffffffffffff01", "0201"])
def test_broken_paths_are_refused(data):
    with pytest.raises(UndecodableError):
        read_indexes(bytes.fromhex(data), 0)


def test_nested_messages_are_counted_with_and_without_map_entries():
    text = """
        syntax = "proto3";
        message A { map<string, int32> m = 1; message B { int32 x = 1; } message C { string y = 2; } }
    """
    reader = ProtobufReader(text)
    assert reader.read(b"\x08\x01", 0, [0, 1]).name == "A.B"
    assert reader.read(b"\x08\x01", 0, [0, 0]).name == "A.B"
    assert reader.read(b"\x12\x01y", 0, [0, 1]).name == "A.C"
    with pytest.raises(UndecodableError):
        reader.read(b"", 0, [0, 7])


def test_an_import_that_is_nowhere_is_a_missing_reference():
    with pytest.raises(MissingReferenceError):
        ProtobufReader('import "../../etc/passwd";')
    assert ProtobufReader('import "a/b.proto"; message A { x.B b = 1; }', {"a/b.proto": "package x; message B {}"})


def test_files_that_import_each_other_end():
    texts = {"a": 'import "b"; message A {}', "b": 'import "a"; message B {}'}
    ProtobufReader('import "a"; message C {}', texts)
    with pytest.raises(SchemaError):
        ProtobufReader('import "a"; message A {}', texts)
