"""Spark's filters that select what is read."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("pyspark", minversion="4.1", reason="Spark passes filters to Python sources from 4.1 on")

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from kdump.spark.source import options as words
from kdump.spark.source import planning
from kdump.spark.source.data_source import KdumpDataSource
from testing import GOLDEN

BROKER = GOLDEN / "brokers" / "4.2.2"
SWITCH = "spark.sql.python.filterPushdown.enabled"
OFFSET, TIMESTAMP, TOPIC, PARTITION = ("offset",), ("timestamp",), ("topic",), ("partition",)


def narrowed(*filters, **given):
    return words.parse({"path": str(BROKER), **given}).narrowed(filters)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([EqualTo(OFFSET, 5)], (5, 6)),
        ([EqualNullSafe(OFFSET, 5)], (5, 6)),
        ([GreaterThan(OFFSET, 5)], (6, None)),
        ([GreaterThanOrEqual(OFFSET, 5), LessThanOrEqual(OFFSET, 9)], (5, 10)),
        ([LessThan(OFFSET, 9), LessThan(OFFSET, 7)], (None, 7)),
        ([In(OFFSET, (3, 8, None))], (3, 9)),
        ([Not(EqualTo(OFFSET, 5)), IsNotNull(OFFSET), EqualTo(("sequence",), 5)], (None, None)),
        ([EqualTo(OFFSET, None), EqualTo(OFFSET, 5.5)], (None, None)),
    ],
)
def test_offsets(filters, expected):
    options = narrowed(*filters)
    assert (options.starting_offset, options.ending_offset) == expected


def test_options_and_filters_hold_both():
    options = narrowed(GreaterThan(OFFSET, 5), LessThan(OFFSET, 90), startingOffset="10", endingOffset="50")
    assert (options.starting_offset, options.ending_offset) == (10, 50)


def test_a_time_between_two_milliseconds_leaves_both():
    time = datetime(2023, 11, 14, 22, 13, 20, 500, tzinfo=UTC)
    options = narrowed(GreaterThan(TIMESTAMP, time), LessThan(TIMESTAMP, time + timedelta(seconds=1)))
    assert (options.starting_timestamp, options.ending_timestamp) == (1_700_000_000_000, 1_700_000_001_001)
    options = narrowed(In(TIMESTAMP, (time,)))
    assert (options.starting_timestamp, options.ending_timestamp) == (1_700_000_000_000, 1_700_000_000_001)
    assert narrowed(EqualTo(TIMESTAMP, time.replace(tzinfo=None))).starting_timestamp is None


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([EqualTo(TOPIC, "multi")], {"multi-0", "multi-1", "multi-2"}),
        ([In(TOPIC, ("multi", "one")), LessThan(PARTITION, 1)], {"multi-0", "one-0"}),
        ([StringStartsWith(TOPIC, "multi"), In(PARTITION, (2, 5))], {"multi-2"}),
        ([EqualTo(TOPIC, "multi"), EqualTo(TOPIC, "one")], set()),
        ([EqualTo(TOPIC, "multi"), GreaterThan(OFFSET, 9), LessThan(OFFSET, 10)], set()),
    ],
)
@pytest.mark.parametrize("output", ["records", "damaged"])
def test_topics_and_partitions(filters, expected, output):
    planned = planning.plan(narrowed(*filters, topic="multi,one", output=output))
    names = {one.name.split("/")[-2] for one in planned}
    if output == "damaged" and not expected and len(filters) > 2:  # it has no offsets
        expected = {"multi-0", "multi-1", "multi-2"}
    assert names == expected


def test_a_query_of_kafkas_source_keeps_its_edges():
    given = {"subscribe": "multi,one", "endingOffsets": '{"multi":{"0":7,"1":-1,"2":-1},"one":{"0":-1}}'}
    options = narrowed(EqualTo(TOPIC, "multi"), GreaterThanOrEqual(OFFSET, 5), **given)
    options = replace(options, kafka=options.kafka.for_batch())
    splits = [split for planned in planning.plan(options) for split in planned.splits]
    assert {(split.topic, split.partition): split.offsets for split in splits} == {
        ("multi", 0): ((0, 7),),
        ("multi", 1): ((0, 21),),
        ("multi", 2): ((0, 20),),
    }
    assert options.starting_offset == 5


def test_only_a_caller_that_asks_gets_a_report_of_filters():
    """A source that accepts filters ends every job while Spark's setting is off, which is the default."""
    for given, takes in ({}, False), ({"pushdown": "false"}, False), ({"pushdown": "true"}, True):
        reader = KdumpDataSource({"path": str(BROKER), **given}).reader(None)
        assert (type(reader).pushFilters is not DataSourceReader.pushFilters) is takes


def test_in_a_session_rows_are_the_same_and_what_filters_leave_out_is_not_read(spark, tmp_path):
    from pyspark.errors import PySparkException

    for name in ("multi-0", "multi-1", "headers-0"):
        shutil.copytree(BROKER / name, tmp_path / name)
    (tmp_path / "broken-0").mkdir()
    (tmp_path / "broken-0" / "00000000000000000000.log").write_bytes(b"\x01" * 100)
    condition = (
        "topic IN ('multi', 'headers') AND partition < 2 AND offset BETWEEN 3 AND 9 "
        "AND timestamp >= timestamp'2023-11-14 22:13:20.015Z' AND value IS NOT NULL"
    )

    def rows(condition, **given):
        given = {"mode": "PERMISSIVE", **given}
        frame = spark.read.format("kdump").options(columns="topic,partition,offset,timestamp,value", **given)
        return sorted(map(tuple, frame.load(str(tmp_path)).where(condition).collect()))

    expected = rows(condition)
    assert len(expected) == 17
    with pytest.raises(PySparkException, match="mode FAILFAST stops here"):
        rows(condition, mode="FAILFAST")
    before = spark.conf.get(SWITCH)
    spark.conf.set(SWITCH, "true")
    try:
        assert rows(condition, mode="FAILFAST", pushdown="true") == expected
        with pytest.raises(PySparkException, match="mode FAILFAST stops here"):
            rows(f"({condition}) OR topic = 'broken'", mode="FAILFAST", pushdown="true")
    finally:
        spark.conf.set(SWITCH, before)
