"""``kdump.scan``: the reader gets the filters and columns of Polars, and no row is lost."""

import random

import pytest

pl = pytest.importorskip("polars")
pytest.importorskip("pyarrow")

import kdump
from kdump.errors import DamageWarning
from kdump.queries import lazy_frame
from kdump.queries.conditions import Values
from kdump.queries.lazy_frame import bounds_of
from testing import GOLDEN

BROKER = GOLDEN / "brokers" / "4.2.2"


@pytest.fixture(scope="module")
def every():
    return kdump.scan(BROKER).collect()


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        (pl.col("offset") >= 5, {"offset": Values(low=5)}),
        (pl.col("offset") < 5, {"offset": Values(high=4)}),
        (pl.col("topic") == "a", {"topic": Values(only=frozenset({"a"}))}),
        (pl.col("key") == b"\xff", {"key": Values(only=frozenset({b"\xff"}))}),
        ((pl.col("offset") == 1) | (pl.col("offset") == 4), {"offset": Values(only=frozenset({1, 4}))}),
        ((pl.col("offset") == 1) | (pl.col("topic") == "a"), {}),
        (pl.col("offset").is_in([1, 2]), {}),
        (~(pl.col("offset") == 1), {}),
        (pl.col("offset") + 1 == 5, {}),
        (pl.col("offset") == 1.5, {}),
        (pl.col("offset").map_batches(lambda one: one == 1, return_dtype=pl.Boolean), {}),
    ],
    ids=str,
)
def test_what_is_known_of_a_predicate(predicate, found):
    assert bounds_of(predicate) == found


def test_generated_predicates_give_what_a_full_read_gives(every):
    chosen = random.Random(5)

    def atom():
        whole = every.drop_nulls(["topic", "partition", "key", "timestamp", "producerId"])
        row = whole.row(chosen.randrange(len(whole)), named=True)
        offset, topic, ms = row["offset"], row["topic"], row["timestampMs"]
        return chosen.choice(
            [
                pl.col("topic") == topic,
                pl.col("offset") >= offset,
                pl.col("offset") < offset,
                pl.col("timestampMs") >= ms,
                pl.col("timestamp") <= row["timestamp"],
                pl.col("key") == row["key"],
                pl.col("isControl"),
                pl.col("partition") == row["partition"],
                pl.col("producerId") == row["producerId"],
                pl.col("topic").is_in([topic, "x"]),
                pl.col("value").is_null(),
            ]
        )

    for _ in range(25):
        one, other = atom(), atom()
        predicate = chosen.choice([one & other, one | other, one & ~other])
        found = kdump.scan(BROKER).filter(predicate).collect()
        assert found.equals(every.filter(predicate)), str(predicate)


def test_columns_and_the_limit_reach_the_reader(monkeypatch):
    asked = []
    rows = lazy_frame.QueryReading.rows
    monkeypatch.setattr(
        lazy_frame.QueryReading,
        "rows",
        lambda one, view, names, bounds: asked.append((names, bounds)) or rows(one, view, names, bounds),
    )
    frame = kdump.scan(BROKER).filter(pl.col("topic") == "txn").select("offset").head(2).collect()
    assert frame.rows() == [(0,), (1,)]
    assert [(sorted(names), bounds) for names, bounds in asked] == [
        (["offset", "topic"], {"topic": Values(only=frozenset({"txn"}))})
    ]
    assert kdump.scan(BROKER).head(5).collect().height == 5
    assert kdump.scan(BROKER).tail(2).collect().height == 2


def test_a_sort_with_a_limit_and_a_count(every):
    frame = kdump.scan(BROKER)
    assert frame.select(pl.len()).collect().item() == len(every)
    found = frame.sort("offset", descending=True).select("offset").head(3).collect()
    assert found["offset"].to_list() == every["offset"].sort(descending=True).to_list()[:3]


def test_damage_is_a_warning(tmp_path):
    folder = tmp_path / "t-0"
    folder.mkdir()
    data = bytearray((BROKER / "one-0" / f"{0:020}.log").read_bytes())
    data[-1] ^= 1
    (folder / f"{0:020}.log").write_bytes(data)
    with pytest.warns(DamageWarning, match="checksum"):
        assert kdump.scan(folder).collect().is_empty()
