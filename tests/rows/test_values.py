from types import SimpleNamespace

import pytest

from kdump.rows.columns import decoded_field
from kdump.rows.selection import SegmentFacts
from kdump.rows.values import value, within

DATA = {"id": 1, "a": {"b": None, "c": [10, {"d": "x"}]}, "a.b": "dotted", "m": {"x.y": {"z": 5}}}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("id", 1),
        ("a.c.0", 10),
        ("a.c.1.d", "x"),
        ("a.c.2", None),
        ("a.c." + "1" * 5000, None),
        ("a.c.-1", None),
        ("a.b", "dotted"),
        ("m.x.y.z", 5),
        ("id.deeper", None),
        ("none", None),
    ],
)
def test_a_path_finds_a_part_of_a_value(path, found):
    assert within(DATA, tuple(path.split("."))) == found


@pytest.mark.parametrize("name", ["value", "value.", "headers.x", "topic"])
def test_other_names_are_no_fields_of_payloads(name):
    assert decoded_field(name) is None


def test_several_fields_of_a_record_decode_it_once():
    calls = []

    def decode(topic, key, value, headers):
        calls.append(value)
        return {"value": {"data": {"a": len(calls), "b": 2}}}

    found = SimpleNamespace(
        file=SegmentFacts("f", "t", decoder=SimpleNamespace(decode=decode)), batch=SimpleNamespace(is_control=False)
    )
    columns = [decoded_field(name) for name in ("value.a", "value.b", "key.a")]
    for size in (10, 1 << 30):  # of a large one nothing is kept
        one = SimpleNamespace(key=None, value=b"x", headers=(), size=size)
        assert [value(column, found, one) for column in columns] == [len(calls) if size < 99 else 2, 2, None]
    assert len(calls) == 1 + 3
