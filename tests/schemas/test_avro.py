import bz2
import io
import json
import lzma
import random
import zlib
from contextlib import suppress

import fastavro
import fastavro.utils
import pytest
import snappy

from kdump.primitives import compression
from kdump.schemas import SchemaError, UndecodableError
from kdump.schemas.avro import FILE_MAGIC, AvroReader, read_file
from kdump.schemas.avro_schema import parse


def reader(schema):
    return AvroReader(parse(json.dumps(schema)))


def read(schema, payload):
    value, end = reader(schema).value(payload)
    assert end == len(payload)
    return value


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


FIXED_16 = {"type": "fixed", "name": "F", "size": 16}


@pytest.mark.parametrize(
    ("schema", "payload", "value"),
    [
        ("null", "", None),
        ("boolean", "01", True),
        ("int", "01", -1),
        ("int", "feffffff0f", 2**31 - 1),
        ("long", "ffffffffffffffffff01", -(2**63)),
        ("float", "0000c07f", "NaN"),
        ("float", "000080ff", "-Infinity"),
        ("double", "000000000000f03f", 1.0),
        ("string", "04c3bc", "\u00fc"),
        ("bytes", "04ff00", "/wA="),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "02", "B"),
        ({"type": "array", "items": "int"}, "0402040206" + "00", [1, 2, 3]),
        ({"type": "array", "items": "int"}, "03040204" + "00", [1, 2]),
        ({"type": "map", "values": "int"}, "020261020100"[:8] + "00", {"a": 1}),
        (["null", "string"], "00", None),
        (["null", "string"], "020261", "a"),
        (logical("bytes", "decimal", precision=5, scale=3), "04cff4", "-12.300"),
        (logical("bytes", "decimal", precision=5, scale=3), "00", "0.000"),
        (logical("bytes", "decimal", precision=5), "0205", "5"),
        (logical("bytes", "decimal", precision=2, scale=3), "0205", "BQ=="),
        (logical("int", "date"), "00", "1970-01-01"),
        (logical("int", "date"), "feffffff0f", 2**31 - 1),
        (logical("int", "time-millis"), "02", "00:00:00.001"),
        (logical("int", "time-millis"), "01", -1),
        (logical("long", "time-micros"), "02", "00:00:00.000001"),
        (logical("long", "timestamp-millis"), "01", "1969-12-31T23:59:59.999Z"),
        (logical("long", "timestamp-micros"), "00", "1970-01-01T00:00:00.000000Z"),
        (logical("long", "timestamp-nanos"), "00", "1970-01-01T00:00:00.000000000Z"),
        (logical("long", "local-timestamp-millis"), "00", "1970-01-01T00:00:00.000"),
        (logical("long", "timestamp-millis"), "feffffffffffffffff01", 2**63 - 1),
        (logical("string", "uuid"), "0261", "a"),
        (FIXED_16 | {"logicalType": "uuid"}, "00" * 15 + "07", "00000000-0000-0000-0000-000000000007"),
        (
            {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"},
            "010000000200000003000000",
            {"months": 1, "days": 2, "millis": 3},
        ),
        (logical("int", "no-such-type"), "02", 1),
    ],
)
def test_values(schema, payload, value):
    found = read(schema, bytes.fromhex(payload))
    assert found == value
    assert type(found) is type(value)


def test_every_cut_of_a_record_is_refused():
    fields = ["int", "string", "double", ["null", "bytes"], {"type": "array", "items": "string"}]
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": f"f{number}", "type": each} for number, each in enumerate(fields)],
    }
    payload = bytes.fromhex("0204616200000000000000000202ff0202610000"[:-2])
    made = reader(schema)
    value, end = made.value(payload)
    assert end == len(payload)
    assert list(value) == ["f0", "f1", "f2", "f3", "f4"]
    for cut in range(len(payload)):
        with pytest.raises(UndecodableError):
            made.value(payload[:cut])
    assert made.value(payload + b"\xff")[1] == len(payload)


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        ("long", "80" * 10 + "01"),
        ("long", "ff" * 9 + "7f"),
        ("int", "80808080 20"),
        ("string", "01"),
        ("string", "feffffffffffffffff01"),
        ("string", "02ff"),
        ("boolean", "02"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "02"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "01"),
        (["null"], "02"),
        ([], "00"),
        ({"type": "array", "items": "null"}, "feffffffffffffffff01"),
        ({"type": "array", "items": {"type": "record", "name": "E", "fields": []}}, "feffffffffffffffff01"),
        ({"type": "array", "items": "int"}, "feffffffffffffffff01"),
        ({"type": "array", "items": "int"}, "0301"),
        ({"type": "map", "values": "null"}, "feffffffffffffffff01"),
        ({"type": "record", "name": "S", "fields": [{"name": "s", "type": "S"}]}, "00"),
        (logical("bytes", "decimal", precision=9999), "d01a" + "01" * 1704),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(schema, payload):
    with pytest.raises(UndecodableError):
        reader(schema).value(bytes.fromhex(payload))


def test_a_payload_of_empty_items_is_bounded_as_a_whole():
    nulls = {"type": "array", "items": {"type": "array", "items": "null"}}
    inner = bytes.fromhex("8089 7a 00".replace(" ", ""))  # a million nulls
    with pytest.raises(UndecodableError):
        reader(nulls).value(bytes.fromhex("08") + inner * 4 + b"\0")


def test_records_nested_64_levels_deep_are_read_and_a_hundred_thousand_refused():
    tree = {"type": "record", "name": "T", "fields": [{"name": "t", "type": ["null", "T"]}]}
    assert str(read(tree, b"\x02" * 64 + b"\0")).count("{") == 65
    with pytest.raises(UndecodableError):
        reader(tree).value(b"\x02" * 100_000)


def test_a_schema_of_bytes_takes_the_whole_payload_where_a_frame_ends():
    assert reader("bytes").read(b"frame\x01\x02", 5) == ("AQI=", 7)
    decimal = logical("bytes", "decimal", precision=4, scale=1)
    assert reader(decimal).read(b"frame\x05", 5) == ("0.5", 6)


def test_names_of_a_schema_are_no_code():
    name = "a'+__import__('os').system('false')+'"
    schema = {"type": "enum", "name": "E", "symbols": [name, '"\\\n']}
    assert read(schema, b"\0") == name
    assert read(schema, b"\x02") == '"\\\n'


def test_large_schemas_are_read_or_refused():
    wide = {"type": "record", "name": "R", "fields": [{"name": f"f{n}", "type": "int"} for n in range(3000)]}
    assert len(read(wide, b"\0" * 3000)) == 3000
    deep = "int"
    for _ in range(90):
        deep = {"type": "array", "items": deep}
    assert read(deep, b"\0") == []
    for _ in range(20):
        deep = {"type": "array", "items": deep}
    with pytest.raises(SchemaError):
        reader(deep)


def random_schema(rng, names, level=0):
    kinds = ["int", "long", "string", "bytes", "double", "boolean", "null"]
    if level < 3:
        kinds += ["record", "array", "map", "union", "enum", "fixed"] * 2
    kind = rng.choice(kinds)
    if kind == "record":
        names.append(f"R{len(names)}")
        name = names[-1]
        fields = [{"name": f"f{n}", "type": random_schema(rng, names, level + 1)} for n in range(rng.randrange(4))]
        return {"type": "record", "name": name, "fields": fields}
    if kind in ("array", "map"):
        return {"type": kind, "items" if kind == "array" else "values": random_schema(rng, names, level + 1)}
    if kind == "union":
        return ["null", rng.choice(["int", "string"]), {"type": "array", "items": "long"}]
    if kind in ("enum", "fixed"):
        names.append(f"N{len(names)}")
        return {"type": kind, "name": names[-1]} | ({"symbols": ["A", "B"]} if kind == "enum" else {"size": 3})
    return kind


def plain(value):
    """Return a value of fastavro in the form of JSON."""
    if isinstance(value, bytes):
        import base64

        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def test_random_payloads_are_read_as_fastavro_does():
    rng = random.Random(7)
    random.seed(7)  # of generate_many
    for _ in range(150):
        schema = random_schema(rng, [])
        parsed = fastavro.parse_schema(schema)
        made = reader(schema)
        for value in fastavro.utils.generate_many(parsed, 3):
            out = io.BytesIO()
            fastavro.schemaless_writer(out, parsed, value)
            payload = out.getvalue()
            out.seek(0)
            assert made.value(payload) == (plain(fastavro.schemaless_reader(out, parsed, None)), len(payload))
            for _ in range(5):  # broken: a value or a reason, nothing else
                broken = bytearray(payload + b"\0")
                broken[rng.randrange(len(broken))] = rng.randrange(256)
                with suppress(UndecodableError):
                    json.dumps(made.value(bytes(broken))[0], allow_nan=False)


RECORD = {"type": "record", "name": "n.R", "fields": [{"name": "a", "type": "string"}]}


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_container_files(codec):
    out = io.BytesIO()
    rows = [{"a": f"row {number}"} for number in range(50)]
    fastavro.writer(out, fastavro.parse_schema(RECORD), rows, codec=codec, sync_interval=100)
    found = read_file(out.getvalue(), 1 << 20)
    assert found == (rows, "n.R")
    if codec != "null":
        with pytest.raises(UndecodableError):
            read_file(out.getvalue(), 100)
    for cut in range(len(FILE_MAGIC), len(out.getvalue())):
        with suppress(UndecodableError, SchemaError):
            assert len(read_file(out.getvalue()[:cut], 1 << 20)[0]) < 50


def number(value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", value)
    return out.getvalue()


def file_of(codec, count, data):
    """Return a container file of nulls or ints with one block."""
    codec = codec.encode()
    head = FILE_MAGIC + b'\x04\x16avro.schema\x0a"int"\x14avro.codec' + number(len(codec)) + codec + b"\0" + bytes(16)
    return head + number(count) + number(len(data)) + data + bytes(16)


def test_a_snappy_block_ends_with_its_checksum():
    packed = snappy.compress(b"\x02\x04")
    assert read_file(file_of("snappy", 2, packed + b"crc!"), 100)[0] == [1, 2]


def test_a_block_of_zstd():
    packed = compression.compress(compression.ZSTD, b"\x02\x04")
    assert read_file(file_of("zstandard", 2, packed), 100)[0] == [1, 2]


def test_a_bomb_in_a_container_file_is_refused():
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = packer.compress(bytes(50 << 20)) + packer.flush()
    with pytest.raises(UndecodableError, match="the blocks take more than 1048576 bytes uncompressed"):
        read_file(file_of("deflate", 1, data), 1 << 20)


@pytest.mark.parametrize("codec", ["snappy", "zstandard", "xz", "bzip2"])
def test_the_limit_of_a_container_file_counts_all_blocks(codec):
    packed = {
        "snappy": lambda data: snappy.compress(data) + b"crc!",
        "zstandard": lambda data: compression.compress(compression.ZSTD, data),
        "xz": lzma.compress,
        "bzip2": bz2.compress,
    }[codec](b"\2" * 60)
    one = file_of(codec, 60, packed)
    assert read_file(one, 60)[0] == [1] * 60
    block = one[one.index(bytes(17)) + 17 :]  # the end of the map, then the sync marker
    assert read_file(one + block, 120)[0] == [1] * 120
    with pytest.raises(UndecodableError, match="the blocks take more than 119 bytes uncompressed"):
        read_file(one + block, 119)


@pytest.mark.parametrize(
    ("codec", "data", "why"),
    [
        ("null", b"\2\4", "has 1 bytes after its records"),
        ("deflate", zlib.compress(b"\2\4", wbits=-15), "has 1 bytes after its records"),
        ("deflate", zlib.compress(bytes(1000), wbits=-15)[:-2], "the compressed stream of a block is truncated"),
        ("xz", lzma.compress(b"\2")[:-4], "the compressed stream of a block is truncated"),
    ],
)
def test_a_block_has_its_records_and_nothing_else(codec, data, why):
    with pytest.raises(UndecodableError, match=why):
        read_file(file_of(codec, 1, data), 1 << 20)


def test_an_unknown_codec_and_a_wrong_sync_marker_are_refused():
    with pytest.raises(UndecodableError, match="lzw"):
        read_file(file_of("lzw", 1, b"\2"), 100)
    with pytest.raises(UndecodableError, match="sync"):
        read_file(file_of("null", 1, b"\2")[:-1] + b"x", 100)
