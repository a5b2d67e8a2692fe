import json

import pytest

from kdump.schemas import SchemaError
from kdump.schemas.avro_schema import canonical_form, fingerprint, parse


def record(fields, **more):
    return {"type": "record", "name": "R", "fields": fields} | more


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "record", "name": "R"},
        record([{"name": "a"}]),
        record([{"name": "", "type": "int"}]),
        record([{"name": "\ud800", "type": "int"}]),
        record([{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]),
        record([{"name": "a", "type": "no.such.Type"}]),
        record([{"name": "a", "type": record([])}]),
        record([], name=""),
        record([], name=7),
        record(["a"]),
        {"type": "enum", "name": "E"},
        {"type": "enum", "name": "E", "symbols": ["A", "A"]},
        {"type": "enum", "name": "E", "symbols": [1]},
        {"type": "fixed", "name": "F"},
        {"type": "fixed", "name": "F", "size": -1},
        {"type": "fixed", "name": "F", "size": True},
        {"type": "array"},
        {"type": "map"},
        ["int", "int"],
        ["int", ["null"]],
        [{"type": "array", "items": "int"}, {"type": "array", "items": "long"}],
        {},
        {"type": 7},
        "no_such",
        7,
        None,
    ],
)
def test_what_is_no_schema_is_refused(schema):
    with pytest.raises(SchemaError):
        parse(json.dumps(schema))


def test_a_text_that_is_no_json_is_refused():
    for text in ("", "{", '"int', "[" * 100_000):
        with pytest.raises(SchemaError):
            parse(text)


@pytest.mark.parametrize("name", ["shop-eu.orders.Order", "org.shop.Orders$.Order", "Order-2", "Auftrag \u00e4"])
def test_names_may_have_any_characters(name):
    found = parse(json.dumps(record([{"name": "unit-price", "type": "int"}], name=name)))
    assert (found.name, found.fields[0].name) == (name, "unit-price")


@pytest.mark.parametrize("name", ["Union", "Array", "Map"])
def test_a_union_may_have_a_record_named_like_a_kind_of_type(name):
    found = parse(
        json.dumps([{"type": "array", "items": "int"}, {"type": "map", "values": "int"}, record([], name=name)])
    )
    assert found.branches[2].name == name


def test_names_take_the_namespace_around_them():
    inner = record([], name="I")
    outer = record(
        [{"name": "i", "type": inner}, {"name": "j", "type": "I"}, {"name": "k", "type": "a.b.I"}], namespace="a.b"
    )
    found = parse(json.dumps(outer))
    assert found.name == "a.b.R"
    assert found.fields[0].type is found.fields[1].type is found.fields[2].type
    assert parse(json.dumps(record([], name="x.y.R", namespace="z"))).name == "x.y.R"
    fields = [{"name": "a", "type": record([], name=".Q")}, {"name": "b", "type": ["null", ".Q"]}]
    found = parse(json.dumps(record(fields, namespace="z")))
    assert (found.name, found.fields[0].type.name) == ("z.R", "Q")
    assert found.fields[1].type.branches[1] is found.fields[0].type


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "string", "logicalType": "date"}, None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 3}, "decimal"),
        ({"type": "bytes", "logicalType": "decimal"}, None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": -1}, None),
        ({"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 4}, "decimal"),
        ({"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 5}, None),
        ({"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}, "duration"),
        ({"type": "fixed", "name": "F", "size": 11, "logicalType": "duration"}, None),
        ({"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}, "uuid"),
        ({"type": "long", "logicalType": 7}, None),
    ],
)
def test_a_logical_type_that_does_not_fit_is_none(schema, name):
    found = parse(json.dumps(schema)).logical
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("schema", "canonical", "crc"),
    [  # of the specification's test cases (share/test/data/schema-tests.txt)
        ("null", '"null"', 7195948357588979594),
        ({"type": "fixed", "name": "foo", "size": 15}, '{"name":"foo","type":"fixed","size":15}', 1756455273707447556),
        (
            {"type": "record", "name": "foo", "fields": [{"name": "f1", "type": "boolean", "doc": "x"}]},
            '{"name":"foo","type":"record","fields":[{"name":"f1","type":"boolean"}]}',
            7843277075252814651,
        ),
    ],
)
def test_fingerprints(schema, canonical, crc):
    found = parse(json.dumps(schema))
    assert canonical_form(found) == canonical
    assert fingerprint(found) == crc.to_bytes(8, "little", signed=True)


def test_half_of_a_surrogate_pair_counts_as_a_question_mark_as_in_java():
    half, mark = ({"type": "enum", "name": "E", "symbols": [symbol]} for symbol in ("\ud800", "?"))
    assert fingerprint(parse(json.dumps(half))) == fingerprint(parse(json.dumps(mark)))
