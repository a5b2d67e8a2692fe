import datetime as dt
import decimal
import io
import json

import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet

import kdump
from kdump import kernel
from kdump.arrow import recorded
from kdump.arrow.typed import array, arrow_type
from kdump.errors import UsageError
from kdump.schemas.avro_schema import parse
from kdump.schemas.shapes import JSON_TEXT, Leaf, avro_shape
from testing import forge
from tests.schemas.test_store import schema

UTC = dt.UTC
ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "clock6", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "tags", "type": {"type": "map", "values": ["null", "string"]}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "Line", "fields": [{"name": "n", "type": "int"}]},
            },
        },
        {"name": "ref", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "any", "type": ["null", "int", "string"]},
        {"name": "raw", "type": {"type": "fixed", "name": "F", "size": 2}},
        {"name": "span", "type": {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}},
        {"name": "big", "type": {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 1}},
    ],
}
VALUE = {
    "id": -5,
    "price": decimal.Decimal("-12.30"),
    "day": dt.date(2026, 11, 21),
    "clock": dt.time(10, 11, 12, 345000),
    "clock6": dt.time(10, 11, 12, 345678),
    "at": dt.datetime(2026, 11, 21, 10, 11, 12, 345000, UTC),
    "local": dt.datetime(2026, 11, 21, 10, 11, 12, 345678),
    "kind": "B",
    "tags": {"x": "y", "z": None},
    "lines": [{"n": 1}, {"n": 2}],
    "ref": "00000000-0000-0000-0000-000000000007",
    "any": "text",
    "raw": b"ab",
    "span": bytes.fromhex("010000000200000003000000"),
    "big": decimal.Decimal("1234567890123456789012345678901234567890.5"),
}
FOUND = VALUE | {
    "tags": [("x", "y"), ("z", None)],
    "any": '"text"',
    "span": {"months": 1, "days": 2, "millis": 3},
}


def payload(kind, value, number=1):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(kind))), value)
    return b"\0" + number.to_bytes(4, "big") + out.getvalue()


def folder(path, topic, *records):
    """Write a partition of a topic: one batch for every two records, which are pairs of key and value."""
    where = path / f"{topic}-0"
    where.mkdir()
    batches = []
    for at in range(0, len(records), 2):
        made = [forge.record(*record, offset=n) for n, record in enumerate(records[at : at + 2])]
        batches.append(forge.batch(made, base_offset=at))
    (where / f"{0:020d}.log").write_bytes(b"".join(batches))


@pytest.fixture
def logs(tmp_path):
    older = ORDER | {"fields": ORDER["fields"][:3]}
    folder(
        tmp_path,
        "_schemas",
        schema("orders-value", 1, 1, json.dumps(older)),
        schema("orders-value", 2, 2, json.dumps(ORDER)),
        schema("orders-key", 1, 3, '"string"'),
    )
    records = [
        (payload("string", "k", 3), payload(older, VALUE)),
        (b"key", payload(ORDER, VALUE, 2)),
        (None, None),
        (None, b"no frame"),
        (None, payload(ORDER, VALUE, 2)[:-1]),
    ]
    folder(tmp_path, "orders", *records)
    return tmp_path


def test_one_subject_gives_struct_columns(logs):
    table = kdump.open(str(logs), topic="orders", schema="orders-value").to_arrow().read_all()
    assert table.column_names[-6:] == ["decoded", "keyDecoded", "valueDecoded", "schemaId", "problem", "why"]
    older = dict.fromkeys(FOUND) | {name: VALUE[name] for name in ("id", "price", "day")}
    assert table["valueDecoded"].to_pylist() == [older, FOUND, None, None, None]
    assert table["keyDecoded"].to_pylist() == ["k", None, None, None, None]
    assert table["schemaId"].to_pylist() == [1, 2, None, None, 2]
    assert table["problem"].to_pylist() == [None, "no-schema", None, "no-schema", "payload-invalid"]
    assert table["why"].to_pylist()[1] == "key: the payload names no schema"
    table.validate(full=True)


def test_the_types_are_those_of_the_schema(logs):
    reader = kdump.open(str(logs), topic="orders", schema="orders-value").to_arrow(["valueDecoded"])
    kind = reader.schema.field("valueDecoded").type
    assert {field.name: str(field.type) for field in kind} == {
        "id": "int64",
        "price": "decimal128(9, 2)",
        "day": "date32[day]",
        "clock": "time32[ms]",
        "clock6": "time64[us]",
        "at": "timestamp[ms, tz=UTC]",
        "local": "timestamp[us]",
        "kind": "dictionary<values=string, indices=int32, ordered=0>",
        "tags": "map<string, string>",
        "lines": "list<element: struct<n: int32>>",
        "ref": "string",
        "any": "string",
        "raw": "binary",
        "span": "struct<months: uint32, days: uint32, millis: uint32>",
        "big": "decimal256(50, 1)",
    }
    assert reader.schema == reader.read_all().schema


def test_pandas_polars_and_parquet_have_them(logs, tmp_path_factory):
    log = kdump.open(str(logs), topic="orders", schema="orders-value:2", offset=1)
    assert log.to_pandas(["valueDecoded"])["valueDecoded"][0]["id"] == -5
    small = kdump.open(str(logs), topic="orders", schema="orders-value:1", offset=0)
    assert small.to_polars(["valueDecoded"])["valueDecoded"][0]["price"] == VALUE["price"]
    file = tmp_path_factory.mktemp("out") / "rows.parquet"
    log.to_parquet(file)
    assert parquet.read_table(file)["valueDecoded"].to_pylist() == [FOUND]


def test_a_stream_without_rows_has_the_schema(logs):
    log = kdump.open(str(logs), topic="orders", schema="orders-value", offset=99)
    assert pa.schema(log).field("valueDecoded").type == log.to_arrow().read_all().schema.field("valueDecoded").type


@pytest.mark.parametrize(
    ("kind", "stored", "spark", "shown"),
    [
        ("time-millis", 5, "int32", 5),
        ("time-micros", 5, "int64", 5),
        ("timestamp-millis", -1, "timestamp[us, tz=UTC]", -1000),
        ("timestamp-nanos", 1001, "int64", 1001),
        ("instant-nanos", -1001, "timestamp[us, tz=UTC]", -2),
        ("uint32", 2**32 - 1, "int64", 2**32 - 1),
        ("uint64", 2**64 - 1, "decimal128(20, 0)", decimal.Decimal(2**64 - 1)),
    ],
)
def test_spark_has_types_of_its_own(kind, stored, spark, shown):
    leaf = Leaf(kind)
    made = array(leaf, arrow_type(leaf, "spark"), [stored, None])
    assert str(made.type) == spark
    assert (made.view("int64") if pa.types.is_timestamp(made.type) else made).to_pylist() == [shown, None]


def test_long_decimals_are_text_in_sql_and_spark():
    leaf = Leaf("decimal", 1, 50)
    for engine in ("spark", "duckdb"):
        assert array(leaf, arrow_type(leaf, engine), [-15, None]).to_pylist() == ["-1.5", None]


def test_numbers_of_enums_and_halves_of_pairs_are_texts():
    leaf = Leaf("enum", symbols=("A", "\ud800"))
    made = array(leaf, arrow_type(leaf, "arrow"), [0, "7", 1, None])
    assert made.to_pylist() == ["A", "7", "\\ud800", None]
    assert array(leaf, arrow_type(leaf, "spark"), [0, "7", 1]).to_pylist() == ["A", "7", "\\ud800"]
    assert array(JSON_TEXT, arrow_type(JSON_TEXT, "arrow"), ['["\ud800"]']).to_pylist() == ['["\\ud800"]']


def test_nothing_and_nulls_of_every_type():
    shape = avro_shape(parse(json.dumps(ORDER)))
    for engine in ("arrow", "spark", "duckdb"):
        kind = arrow_type(shape, engine)
        assert array(shape, kind, []).type == kind
        assert array(shape, kind, [None, (None,) * len(ORDER["fields"])]).null_count == 1


@pytest.mark.parametrize("columns", [None, ["offset", "decoded"], ["value.id"], ["decoded", "value", "value.id"]])
def test_payloads_without_frames_are_columns_of_the_kernel(logs, monkeypatch, columns):
    plain = [(b"k%d" % number, None if number % 3 else b"plain %d" % number) for number in range(20)]
    folder(logs, "mixed", *plain, (b"k", payload(ORDER, VALUE, 2)), *plain)
    folder(logs, "plain", *plain)
    found = {}
    for is_compiled in (True, False):
        for topic in ("mixed", "plain"):
            with monkeypatch.context() as patched:
                if not is_compiled:
                    patched.setattr(recorded, "columns", lambda *_, **__: None)
                elif topic == "plain" and kernel.COMPILED:
                    patched.setattr(recorded.Objects, "add", None)
                log = kdump.open(str(logs), topic=topic, decode="auto")
                found[is_compiled, topic] = log.to_arrow(columns).read_all()
    for topic in ("mixed", "plain"):
        assert found[True, topic].equals(found[False, topic])
    column = "decoded" if columns is None or "decoded" in columns else "value.id"
    shown = found[True, "mixed"][column].to_pylist()
    assert [at for at, text in enumerate(shown) if text is not None] == [20]


def test_queries_and_scans_decode_as_open_does(logs):
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    log = kdump.open(str(logs), topic="orders", schema="orders-value").to_arrow(["offset", "decoded", "valueDecoded"])
    want = log.read_all()
    query = 'select "offset", decoded, valueDecoded.id as id from records order by 1'
    found = kdump.sql(query, str(logs), topic="orders", schema="orders-value").to_arrow()
    assert [None if one is None else json.loads(one) for one in found["decoded"].to_pylist()] == [
        None if one is None else json.loads(one) for one in want["decoded"].to_pylist()
    ]
    ids = [None if one is None else one["id"] for one in want["valueDecoded"].to_pylist()]
    assert found["id"].to_pylist() == ids == [-5, -5, None, None, None]
    scan = kdump.scan(str(logs), topic="orders", schema="orders-value:1")  # Polars has no decimals of 50 digits
    assert scan.select("valueDecoded").head(1).collect()["valueDecoded"].struct.field("id").to_list() == [-5]
    with pytest.raises(UsageError, match=r"decode='xml' is unknown: use none, auto"):
        kdump.sql("select 1", str(logs), decode="xml")
    with pytest.raises(UsageError, match="'all' is not an isolation level"):
        kdump.scan(str(logs), isolation="all")


@pytest.mark.parametrize("read", [list, lambda log: list(log.batches()), lambda log: log.to_arrow(["offset"])])
def test_no_iteration_begins_for_an_unknown_subject(logs, read):
    with pytest.raises(UsageError, match="nosuch"):
        read(kdump.open(str(logs), topic="orders", schema="nosuch"))
