"""Bounds of a condition: they contain all rows that meet it, for any text of the expression."""

import random

import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.compute as pc

from kdump.queries.conditions import Condition, Values, read

NAMES = {"topic": False, "partition": False, "offset": False, "timestamp": False, "key": True, "isControl": False}
FIELD = {name: pc.field(name) for name in NAMES}


def bounds(expression):
    return read(str(expression), NAMES).bounds


def isin(name, array):
    """Return DuckDB's pushed-down expression for IN."""
    field = FIELD[name]
    return pc.if_else(field.is_valid(), pc.is_in(field, value_set=array), pa.scalar(None, pa.bool_()))


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        (FIELD["offset"] == 5, {"offset": Values(only=frozenset({5}))}),
        (FIELD["offset"] >= -3, {"offset": Values(low=-3)}),
        (FIELD["offset"] > 3, {"offset": Values(low=4)}),
        (FIELD["offset"] < 3, {"offset": Values(high=2)}),
        (FIELD["offset"] != 3, {}),
        (FIELD["offset"].is_null(), {}),
        (~(FIELD["offset"] == 3), {}),
        (FIELD["offset"] == 1.5, {}),
        ((FIELD["offset"] >= 2) & (FIELD["offset"] <= 4), {"offset": Values(2, 4)}),
        ((FIELD["offset"] == 2) | (FIELD["offset"] == 9), {"offset": Values(only=frozenset({2, 9}))}),
        ((FIELD["offset"] <= 2) | (FIELD["offset"] == 9), {"offset": Values(high=9)}),
        ((FIELD["offset"] == 2) | (FIELD["topic"] == "a"), {}),
        (FIELD["key"] == b"78", {"key": Values(only=frozenset({b"78"}))}),
        (FIELD["isControl"] == True, {"isControl": Values(only=frozenset({True}))}),  # noqa: E712  an expression
        (isin("partition", pa.array([1, 2], pa.int32())), {"partition": Values(only=frozenset({1, 2}))}),
        (isin("topic", pa.array(["a.b", "c-d_e"])), {"topic": Values(only=frozenset({"a.b", "c-d_e"}))}),
        (isin("key", pa.array([b"\x00\xff", b""])), {"key": Values(only=frozenset({b"\x00\xff", b""}))}),
        (
            FIELD["timestamp"] == pa.scalar(1_000, pa.timestamp("us", "UTC")),
            {"timestamp": Values(only=frozenset({1000}))},
        ),
    ],
    ids=lambda each: None if isinstance(each, dict) else str(each),  # sets have no order
)
def test_what_is_known_of_a_condition(expression, found):
    assert bounds(expression) == found


@pytest.mark.parametrize(
    "expression",
    [
        isin("topic", pa.array(['x", "y'])),
        isin("topic", pa.array(["a\n b", "c"])),
        isin("topic", pa.array(["a\\"])),
        isin("partition", pa.array(range(50), pa.int32())),  # Arrow cuts the list short
        FIELD["topic"] == "a\nb",
        FIELD["topic"] == 'a"b',
        pc.starts_with(FIELD["topic"], "a"),
        FIELD["offset"] + 1 == 5,
    ],
    ids=str,
)
def test_what_is_not_known_bounds_nothing(expression):
    assert bounds(expression) == {}


def test_a_text_that_looks_like_a_condition_is_a_text():
    assert bounds(FIELD["topic"] == ") and (offset == 5") == {"topic": Values(only=frozenset({") and (offset == 5"}))}


def test_the_columns_that_a_condition_names_are_found():
    expression = (FIELD["topic"] == "offset") & isin("key", pa.array([b"a"]))
    assert read(str(expression), NAMES).columns == {"topic", "key"}
    assert read("offset ~ key", NAMES) == Condition({}, frozenset({"offset", "key"}))


def test_no_row_that_meets_a_condition_is_outside_its_bounds():
    chosen = random.Random(54)
    table = pa.table(
        {
            "topic": [chosen.choice(["a", "b", None]) for _ in range(200)],
            "partition": pa.array([chosen.choice([0, 1, 2, None]) for _ in range(200)], pa.int32()),
            "offset": [chosen.choice([None, *range(-2, 9)]) for _ in range(200)],
            "key": pa.array([chosen.choice([b"", b"a", b"\xff", None]) for _ in range(200)], pa.binary()),
        }
    )

    def made(depth):
        if depth == 0 or chosen.random() < 0.3:
            name = chosen.choice(["topic", "partition", "offset", "key"])
            value = chosen.choice([one for one in table[name].unique().to_pylist() if one is not None])
            atom = chosen.choice(
                [
                    lambda: FIELD[name] == value,
                    lambda: FIELD[name] != value,
                    lambda: isin(name, pa.array([value], table[name].type)),
                    FIELD[name].is_null,
                    lambda: FIELD[name] >= value,
                    lambda: FIELD[name] < value,
                ]
            )
            return atom()
        one, other = made(depth - 1), made(depth - 1)
        return chosen.choice([one & other, one | other, ~one])

    for _ in range(300):
        expression = made(3)
        found = bounds(expression)
        for row in table.filter(expression).to_pylist():
            for name, values in found.items():
                assert values.only is None or row[name] in values.only, expression
                low, high = values.range
                assert low is None or row[name] >= low, expression
                assert high is None or row[name] <= high, expression
