"""A query of Spark's Kafka source in a session: with a new format and path it runs on kdump's source."""

import base64
import json

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")

from kdump.spark.source import data_source
from testing import GOLDEN
from testing.processes import kdump
from tests.helpers.kafka_columns import KAFKA_COLUMNS

BROKER = GOLDEN / "brokers" / "4.2.2"
KAFKA = {
    "kafka.bootstrap.servers": "localhost:9092",
    "kafka.sasl.jaas.config": "a secret",
    "subscribe": "headers,multi",
    "startingOffsets": '{"headers":{"0":1},"multi":{"0":3,"1":-2,"2":10}}',
    "endingOffsets": '{"headers":{"0":-1},"multi":{"0":7,"1":2,"2":-1}}',
    "includeHeaders": "true",
}
"""Options of a query of Kafka's source."""


def dumped(*paths):
    """Return the records that `kdump dump` prints, in the form of Kafka's source."""
    done = kdump("dump", *map(str, paths), "-o", "jsonl", "--encoding", "base64")
    assert done.returncode == 0, done.stderr.decode()
    for line in map(json.loads, done.stdout.splitlines()):
        if line["kind"] == "record" and not line["isControl"]:
            yield (
                payload(line["key"]),
                payload(line["value"]),
                line["topic"],
                line["partition"],
                line["offset"],
                line["timestampMs"],
                0 if line["timestampType"] == "CreateTime" else 1,
                [(header["key"], payload(header["value"])) for header in line["headers"]] or None,
            )


def payload(text):
    return None if text is None else base64.b64decode(text)


def rows(frame):
    """Return the rows of a frame with the columns of Kafka's source."""
    from pyspark.sql import functions as spark_sql

    names = ["key", "value", "topic", "partition", "offset", "ms", "timestampType", "headers"]
    for row in frame.withColumn("ms", spark_sql.unix_millis("timestamp")).select(names).collect():
        key, value, *rest, headers = row
        payloads = (None if part is None else bytes(part) for part in (key, value))
        pairs = headers and [(one.key, None if one.value is None else bytes(one.value)) for one in headers]
        yield (*payloads, *rest, pairs)


def test_a_query_is_switched_by_its_format_and_its_path(spark):
    frame = spark.read.format("kdump").options(**KAFKA).load(str(BROKER))
    assert frame.dtypes == KAFKA_COLUMNS
    bounds = {("headers", 0): (1, 99), ("multi", 0): (3, 7), ("multi", 1): (0, 2), ("multi", 2): (10, 99)}
    expected = [
        row for row in dumped(*BROKER.glob("headers-*"), *BROKER.glob("multi-*")) if within(bounds[row[2:4]], row[4])
    ]
    found = list(rows(frame))
    by_place = sorted(found, key=lambda row: row[2:5])
    assert by_place == sorted(expected, key=lambda row: row[2:5])
    assert {row[7] is None for row in found} == {True, False}


def within(bounds, offset):
    return bounds[0] <= offset < bounds[1]


def test_without_headers_there_is_no_such_column(spark):
    frame = spark.read.format("kdump").option("subscribePattern", "^multi$").load(str(BROKER))
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert frame.count() == len(list(dumped(*BROKER.glob("multi-*")))) > 50


def test_a_stream_is_switched_too(spark, tmp_path):
    out, point = str(tmp_path / "out"), str(tmp_path / "checkpoint")
    options = {"assign": '{"multi":[0,2]}', "startingOffsets": '{"multi":{"0":3,"2":-2}}', "maxOffsetsPerTrigger": "5"}
    frame = spark.readStream.format("kdump").options(**options).load(str(BROKER))
    query = frame.select("partition", "offset").writeStream.format("parquet").option("checkpointLocation", point)
    query.trigger(availableNow=True).start(out).awaitTermination()
    found = sorted(tuple(row) for row in spark.read.parquet(out).collect())
    expected = sorted(row[3:5] for row in dumped(BROKER / "multi-0", BROKER / "multi-2"))
    assert found == [(number, offset) for number, offset in expected if number == 2 or offset >= 3]


def test_what_is_ignored_is_said_once_without_values(capsys):
    given = {**KAFKA, "startingTimestamp": "0", "maxOffsetsPerTrigger": "5", "path": str(BROKER)}
    data_source.KdumpDataSource(given).reader(None).partitions()
    assert capsys.readouterr().err.splitlines() == [
        "kdump: no broker is contacted, so these options are ignored: kafka.bootstrap.servers, kafka.sasl.jaas.config",
        "kdump: startingOffsets is not used: startingTimestamp overrides it",
        "kdump: maxRecordsPerTrigger is not used: only a stream has triggers",
    ]
    data_source.KdumpDataSource({"output": "stats", "kafka.client.id": "c", "path": str(BROKER)}).reader(
        None
    ).partitions()
    ignored = "kdump: no broker is contacted, so these options are ignored: kafka.client.id"
    assert ignored in capsys.readouterr().err.splitlines()
    stream = data_source.KdumpDataSource(
        {"path": str(BROKER), "subscribe": "multi", "groupIdPrefix": "g", "endingTimestamp": "5"}
    ).streamReader(None)
    begin = stream.initialOffset()
    assert stream.latestOffset(begin) == begin
    assert stream.latestOffset(begin) == begin
    assert capsys.readouterr().err.splitlines() == [
        "kdump: no broker is contacted, so these options are ignored: groupIdPrefix",
        "kdump: endingTimestamp is not used: a stream has no end",
    ]


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"subscribe": "multi", "assign": '{"multi":[0]}'}, "only one of subscribe, subscribePattern and assign"),
        ({"subscribe": "multi", "startingOffsets": "latest"}, "a batch query cannot start at latest"),
        (
            {"subscribe": "multi", "startingOffsets": '{"multi":{"0":1}}'},
            "must name all partitions; multi-1, multi-2",
        ),
        ({"subscribe": "nothing"}, "there is no partition of topic nothing"),
    ],
)
def test_what_is_refused_is_reported_on_the_driver(spark, given, reported):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as error:
        spark.read.format("kdump").options(**given).load(str(BROKER)).count()
    assert reported in str(error.value)


def test_a_stream_with_an_end_is_refused(spark, tmp_path):
    from pyspark.errors import PySparkException

    frame = spark.readStream.format("kdump").option("subscribe", "multi").option("endingOffsets", "latest")
    query = frame.load(str(BROKER)).writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(PySparkException, match="option endingOffsets: a stream has no end"):
        query.processAllAvailable()
