import io
import json
import random
import struct

import fastavro
import pytest

from kdump.schemas import MismatchError, UndecodableError
from kdump.schemas.avro import ResolvingReader, default_value
from kdump.schemas.avro_schema import parse
from kdump.schemas.shapes import avro_shape


def resolved(writer, reader, payload):
    """Return the value of a payload in the writer's schema, as a value of the reader's."""
    target = parse(json.dumps(reader))
    value, end = ResolvingReader(parse(json.dumps(writer)), target, avro_shape(target)).read(payload, 0)
    assert end == len(payload)
    return value


def written(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def stored(schema, value):
    """Return the payload of a value without its logical type; a schema that is just bytes has no length before them."""
    kind = schema["type"] if isinstance(schema, dict) else schema
    return value if kind == "bytes" else written(json.loads(json.dumps(schema).replace("logicalType", "x")), value)


def record(*fields, name="R", **more):
    return {
        "type": "record",
        "name": name,
        "fields": [field if isinstance(field, dict) else {"name": field[0], "type": field[1]} for field in fields],
        **more,
    }


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


def enum(*symbols, **more):
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


RENAMED = [
    {"name": "a", "type": "int", "default": 9},
    {"name": "b", "type": "int", "default": 8, "aliases": ["a"]},
]


@pytest.mark.parametrize(
    ("writer", "reader", "value", "found"),
    [
        ("int", "long", 7, 7),
        ("int", "double", 7, 7.0),
        ("long", "float", 7, 7.0),
        ("string", "bytes", "é", "é".encode()),
        ("bytes", "string", b"a", "a"),
        ("int", ["null", "long"], 7, 7),
        (["null", "int"], ["null", "long"], None, None),
        (["null", "int"], ["long", "null"], 7, 7),
        (["null", "string"], "string", "a", "a"),
        (["int", "string"], ["string", "long"], 7, "7"),
        (["int", "string"], ["string", "long"], "a", '"a"'),
        (["null", "int", "string"], ["null", "int", "string"], None, None),
        (enum("A", "B"), enum("B", "A"), "B", 0),
        (enum("A", "B"), enum("A", "X", default="X"), "B", 1),
        (enum("A", "B"), ["null", "string", enum("B", "A")], "B", '"B"'),
        ({"type": "array", "items": "int"}, {"type": "array", "items": ["null", "long"]}, [1, 2], [1, 2]),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "double"}, {"a": 1}, [("a", 1.0)]),
        (record(("a", "int"), ("b", "string")), record(("b", "string"), ("a", "long")), {"a": 1, "b": "x"}, ("x", 1)),
        (record(("a", "int")), record(("c", ["null", "int"])), {"a": 1}, (None,)),
        (record(("a", "int")), record({"name": "c", "type": "int", "default": 5}), {"a": 1}, (5,)),
        (record(("a", "int")), record({"name": "c", "type": "long", "aliases": ["a"]}), {"a": 1}, (1,)),
        *(
            # the same for both orders: an alias renames the writer's field (avro 1.12.0 of Java reads so)
            (record(("a", "int")), record(*order, {"name": "c", "type": "int", "default": 0}), {"a": 1}, read)
            for order, read in ((RENAMED, (9, 1, 0)), (RENAMED[::-1], (1, 9, 0)))
        ),
        (record(("a", "int"), ("b", "int")), record(RENAMED[1]), {"a": 1, "b": 2}, (2,)),
        (record(("a", "int"), name="x.Old"), record(("a", "int"), name="New", aliases=["Old"]), {"a": 1}, (1,)),
        (record(("a", "int"), name="x.R"), record(("a", "int"), name="y.R"), {"a": 1}, (1,)),
        (
            logical("bytes", "decimal", precision=4, scale=2),
            logical("bytes", "decimal", precision=9, scale=2),
            b"\5",
            5,
        ),
        ("long", logical("long", "timestamp-micros"), -1, -1),
        ({"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 2}, b"ab", b"ab"),
        ("float", "double", 1.5, 1.5),
    ],
)
def test_a_value_of_the_writer_is_one_of_the_reader(writer, reader, value, found):
    payload = stored(writer, value)
    assert resolved(writer, reader, payload) == found


@pytest.mark.parametrize(
    ("writer", "reader", "value", "why"),
    [
        ("string", "long", "a", "a value of string is not of the type long in the schema of the columns"),
        ("long", "int", 1, "a value of long is not of the type int"),
        (["null", "string"], "string", None, "a value of null is not of the type string"),
        (
            record(("a", "int"), name="A"),
            record(("a", "int"), name="B"),
            {"a": 1},
            "a value of record A is not of the type record B",
        ),
        (enum("A", "B"), enum("A"), "B", "the symbol 'B' is not in the schema of the columns"),
        (
            logical("bytes", "decimal", precision=4, scale=2),
            logical("bytes", "decimal", precision=4, scale=1),
            b"\5",
            "a value of decimal with scale 2 is not of the type decimal with scale 1",
        ),
        (
            logical("long", "timestamp-millis"),
            logical("long", "timestamp-micros"),
            1,
            "a value of timestamp-millis is not of the type timestamp-micros",
        ),
        (
            {"type": "fixed", "name": "F", "size": 2},
            {"type": "fixed", "name": "F", "size": 3},
            b"ab",
            "a value of fixed F is not of the type fixed F",
        ),
        ("int", logical("int", "date"), 2**31 - 1, "outside the years 1 to 9999"),
        ("int", logical("int", "time-millis"), -1, "outside 24 hours"),
        (
            {"type": "fixed", "name": "F", "size": 4},
            {"type": "fixed", "name": "F", "size": 4, **logical("fixed", "decimal", precision=2, scale=1)},
            b"\0\0\1\0",
            "the decimal 256 has more than 2 digits",
        ),
    ],
)
def test_a_value_that_the_reader_has_not_says_why(writer, reader, value, why):
    payload = stored(writer, value)
    with pytest.raises(MismatchError, match=why):
        resolved(writer, reader, payload)


def test_a_type_in_itself_is_json_text_below_its_first_level():
    tree = record(("v", "int"), ("next", ["null", "R"]))
    payload = written(tree, {"v": 1, "next": {"v": 2, "next": {"v": 3, "next": None}}})
    assert resolved(tree, tree, payload) == (1, '{"v":2,"next":{"v":3,"next":null}}')


def test_json_text_has_the_fields_of_the_reader():
    old, new = record(("a", "int"), name="I"), record({"name": "b", "type": "bytes", "default": "\xff"}, name="I")
    payload = written(["int", old], {"a": 1})
    assert resolved(["int", old], ["string", "int", new], payload) == '{"b":"/w=="}'


@pytest.mark.parametrize(
    ("schema", "default", "found"),
    [
        ("int", 5, 5),
        ("int", "5", None),
        ("int", True, None),
        ("double", 5, 5.0),
        ("double", 10**309, None),
        ("bytes", "\xff\0", b"\xff\0"),
        ("string", "\ud800", None),
        (["null", "int"], None, None),
        (["int", "null"], 3, 3),
        (enum("A", "B"), "B", 1),
        (enum("A", "B"), "C", None),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "int"}, {"a": 1}, [("a", 1)]),
        (record({"name": "a", "type": "int", "default": 4}, ("b", "string")), {"b": "x"}, (4, "x")),
        (logical("bytes", "decimal", precision=4, scale=2), "\1\0", 256),
        (logical("int", "date"), -1, -1),
        (logical("int", "date"), 2**31 - 1, None),
        ({"type": "fixed", "name": "D", "size": 12, **logical("fixed", "duration")}, "\1\0\0\0" * 3, (1, 1, 1)),
        (["int", "string"], 3, "3"),
    ],
)
def test_defaults(schema, default, found):
    kind = parse(json.dumps(schema))
    assert default_value(kind, default, avro_shape(kind)) == found


def test_broken_payloads_raise_one_kind_of_error():
    schema = record(("a", {"type": "array", "items": ["null", "string"]}), ("b", {"type": "map", "values": "double"}))
    payload = written(schema, {"a": ["x", None, "yy"], "b": {"k": 1.5}})
    target = parse(json.dumps(schema))
    reader = ResolvingReader(target, target, avro_shape(target))
    for end in range(len(payload)):
        with pytest.raises(UndecodableError):
            reader.read(payload[:end], 0)
    assert reader.read(payload + b"rest", 0) == ((["x", None, "yy"], [("k", 1.5)]), len(payload))
    with pytest.raises(UndecodableError, match="a block claims"):
        reader.read(b"\xfe\xff\xff\xff\x7f" + payload, 0)


PROMOTED = {"int": ["long", "float", "double"], "long": ["double"], "float": ["double"], "string": ["bytes"]}
VALUES = {
    "int": lambda r: r.randint(-(2**31), 2**31 - 1),
    "long": lambda r: r.randint(-(2**63), 2**63 - 1),
    "float": lambda r: struct.unpack("f", struct.pack("f", r.uniform(-1e6, 1e6)))[0],
    "double": lambda r: r.uniform(-1e9, 1e9),
    "string": lambda r: "".join(r.choice("aü€\U0001f600") for _ in range(r.randint(0, 5))),
    "bytes": lambda r: r.randbytes(r.randint(0, 5)),
    "boolean": lambda r: r.random() < 0.5,
}
DEFAULTS = {"int": 3, "long": 4, "float": 1.5, "double": 2.5, "string": "d", "bytes": "d", "boolean": True}


class Evolution:
    """Random pairs of a writer's and a reader's schema, with values of the writer's."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = 0

    def pair(self, level=0):
        """Return a writer's type, a reader's type, and a function that makes a value of the writer's."""
        r = self.random
        kind = r.choice([*VALUES, "union"] + (["array", "map", "record", "enum"] if level < 3 else []))
        if kind in VALUES:
            return kind, r.choice([kind, kind, *PROMOTED.get(kind, [])]), lambda: VALUES[kind](r)
        if kind == "union":
            inner = r.choice(list(VALUES))
            make = VALUES[inner]
            wider = r.choice([inner, *PROMOTED.get(inner, [])])
            return ["null", inner], [wider, "null"], lambda: None if r.random() < 0.3 else make(r)
        if kind in ("array", "map"):
            old, new, make = self.pair(level + 1)
            name = "items" if kind == "array" else "values"
            if kind == "array":
                return (
                    {"type": kind, name: old},
                    {"type": kind, name: new},
                    lambda: [make() for _ in range(r.randint(0, 3))],
                )
            return (
                {"type": kind, name: old},
                {"type": kind, name: new},
                lambda: {f"k{n}": make() for n in range(r.randint(0, 3))},
            )
        self.names += 1
        if kind == "enum":
            name = f"E{self.names}"
            old = {"type": "enum", "name": name, "symbols": ["A", "B", "C"]}
            new = {"type": "enum", "name": name, "symbols": r.sample(["A", "B", "C", "D"], 3), "default": None}
            new["default"] = new["symbols"][0]
            return old, new, lambda: r.choice("ABC")
        return self.record(level)

    def record(self, level=0):
        r = self.random
        self.names += 1
        name = f"R{self.names}"
        pairs = {f"f{n}": self.pair(level + 1) for n in range(r.randint(1, 5))}
        kept = [field for field in pairs if r.random() < 0.8]
        fields = [{"name": field, "type": pairs[field][1]} for field in kept]
        added = r.choice(list(VALUES))
        fields.append({"name": "added", "type": ["null", "int"], "default": None})
        fields.append({"name": "more", "type": added, "default": DEFAULTS[added]})
        r.shuffle(fields)
        old = record(*((field, pair[0]) for field, pair in pairs.items()), name=name)
        return old, record(*fields, name=name), lambda: {field: pair[2]() for field, pair in pairs.items()}


def as_shape(schema, value):
    """Return a value of fastavro in the form of a shape."""
    if isinstance(schema, list):
        other = next(each for each in schema if each != "null")
        return None if value is None else as_shape(other, value)
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return tuple(as_shape(field["type"], value[field["name"]]) for field in schema["fields"])
    if kind == "array":
        return [as_shape(schema["items"], each) for each in value]
    if kind == "map":
        return [(name, as_shape(schema["values"], each)) for name, each in value.items()]
    if kind == "bytes" and isinstance(value, str):
        return value.encode()
    return schema["symbols"].index(value) if kind == "enum" else value


@pytest.mark.parametrize("seed", range(150))
def test_random_evolutions_are_read_as_fastavro_reads_them(seed):
    old, new, make = Evolution(seed).record()
    target = parse(json.dumps(new))
    reader = ResolvingReader(parse(json.dumps(old)), target, avro_shape(target))
    for _ in range(5):
        payload = written(old, make())
        want = fastavro.schemaless_reader(io.BytesIO(payload), old, new)
        assert reader.read(payload, 0) == (as_shape(new, want), len(payload))
