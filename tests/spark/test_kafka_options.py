"""The options of Spark's Kafka source, translated to those of kdump: each alone, without files and Spark."""

import re

import pytest

from kdump.errors import UsageError
from kdump.log_dirs.file_names import Name
from kdump.spark.source import kafka_options
from kdump.spark.source import options as words
from kdump.spark.source.kafka_options import EARLIEST, LATEST, Edge

PLAIN = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


def parse(**given):
    return words.parse({"path": "x", **given})


def asked(**given):
    return parse(subscribe="orders", **given).kafka


@pytest.mark.parametrize(
    ("given", "taken", "left"),
    [
        ({"subscribe": " orders, a.b_c-1,,orders"}, {("orders", 0), ("a.b_c-1", 7)}, {("order", 0), (None, None)}),
        ({"subscribePattern": "ord.*s$"}, {("orders", 0), ("my-orders", 1)}, {("orders2", 0), (None, None)}),
        ({"subscribePattern": "^_"}, {("_a", 0)}, {("__consumer_offsets", 0), ("__transaction_state", 1)}),
        ({"assign": '{"a":[0,2],"b":[1]}'}, {("a", 0), ("a", 2), ("b", 1)}, {("a", 1), ("b", 0), (None, None)}),
    ],
)
def test_topics_and_partitions(given, taken, left):
    query = parse(**given).kafka
    assert {name for name in taken | left if query.takes(Name(*name))} == taken
    assert query.asked == next(iter(given))


@pytest.mark.parametrize(
    ("given", "start", "end"),
    [
        ({}, None, None),
        ({"startingOffsets": "Earliest", "endingOffsets": "LATEST"}, Edge(offset=EARLIEST), Edge(offset=LATEST)),
        (
            {"startingOffsets": '{"orders":{"0":23,"1":-1,"12":-2}}'},
            Edge(offsets={("orders", 0): 23, ("orders", 1): LATEST, ("orders", 12): EARLIEST}),
            None,
        ),
        ({"endingOffsetsByTimestamp": '{"orders":{"0":1000}}'}, None, Edge(times={("orders", 0): 1000})),
        ({"startingTimestamp": "1000", "endingTimestamp": "2000"}, Edge(time=1000), Edge(time=2000)),
        ({"startingTimestamp": "1970-01-01T00:00:01"}, Edge(time=1000), None),
    ],
)
def test_edges(given, start, end):
    options = parse(subscribe="orders", **given)
    assert (options.kafka.start, options.kafka.end, options.kafka.unused) == (start, end, ())
    assert (options.starting_timestamp, options.ending_timestamp) == (None, None)


def test_times_come_before_offsets_and_one_time_before_many():
    by_time, by_offset = '{"orders":{"0":1000}}', '{"orders":{"0":5}}'
    query = asked(startingOffsets=by_offset, startingOffsetsByTimestamp=by_time, endingOffsets=by_offset)
    assert query.start == Edge(times={("orders", 0): 1000})
    assert query.end == Edge(offsets={("orders", 0): 5})
    assert query.unused == ("startingOffsets is not used: startingOffsetsByTimestamp overrides it",)
    query = asked(startingOffsets=by_offset, startingOffsetsByTimestamp=by_time, startingTimestamp="7")
    assert query.start == Edge(time=7)
    assert query.unused == (
        "startingOffsetsByTimestamp is not used: startingTimestamp overrides it",
        "startingOffsets is not used: startingTimestamp overrides it",
    )


def test_without_a_query_of_kafkas_source_times_choose_records():
    options = parse(startingTimestamp="1000", endingTimestamp="2000")
    assert (options.kafka, options.starting_timestamp, options.ending_timestamp) == (None, 1000, 2000)


def test_where_nothing_is_said_a_batch_begins_at_the_earliest_offset_and_a_stream_at_the_latest():
    query = asked()
    assert (query.for_batch().start, query.for_batch().end) == (Edge(offset=EARLIEST), None)
    assert (query.for_stream().start, query.for_stream().end) == (Edge(offset=LATEST), None)
    reported = asked(startingOffsets="earliest")
    assert reported.for_stream().start == Edge(offset=EARLIEST)


def test_a_stream_has_no_end_and_says_which_option_it_does_not_use():
    stream = asked(endingTimestamp="5").for_stream()
    assert (stream.end, stream.unused) == (None, ("endingTimestamp is not used: a stream has no end",))
    for name, text in (("endingOffsets", "latest"), ("endingOffsetsByTimestamp", '{"orders":{"0":5}}')):
        with pytest.raises(UsageError, match=f"option {name}: a stream has no end"):
            asked(**{name: text}).for_stream()


@pytest.mark.parametrize("text", ["latest", '{"orders":{"0":5,"1":-1}}'])
def test_a_batch_does_not_begin_at_the_latest_offset(text):
    query = asked(startingOffsets=text)
    assert query.for_stream().start == query.start
    with pytest.raises(UsageError, match="a batch query cannot start at latest"):
        query.for_batch()


def test_the_columns_are_those_of_kafkas_source():
    assert parse(subscribe="orders").names == PLAIN
    assert parse(subscribe="orders", includeHeaders="false").names == PLAIN
    assert parse(subscribe="orders", includeHeaders="True").names == (*PLAIN, "headers")
    assert parse(subscribe="orders", decode="auto").names == (*PLAIN, "decoded")
    assert parse(subscribe="orders", columns="offset,magic").names == ("offset", "magic")
    assert parse(subscribe="orders", output="damaged").columns == ()


def test_options_with_another_name_here():
    options = parse(subscribe="a", maxOffsetsPerTrigger="7", **{"kafka.isolation.level": "READ_COMMITTED"})
    assert (options.max_records_per_trigger, options.isolation, options.ignored) == (7, words.READ_COMMITTED, ())
    assert asked(startingOffsetsByTimestampStrategy="Latest").strays
    assert not asked(startingOffsetsByTimestampStrategy="error").strays
    assert parse(subscribe="a", minPartitions="5", failOnDataLoss="false").min_partitions == 5


def test_what_means_nothing_here_is_named_without_its_value():
    given = {
        "kafka.bootstrap.servers": "host:9092",
        "kafka.ssl.keystore.password": "secret",
        "GROUPIDPREFIX": "g",
        "minOffsetsPerTrigger": "5",
        "maxTriggerDelay": "1m",
        "maxRecordsPerPartition": "5",
        "fetchOffset.numRetries": "3",
        "fetchOffset.retryIntervalMs": "10",
        "kafkaConsumer.pollTimeoutMs": "10",
    }
    reported = {"groupIdPrefix" if name == "GROUPIDPREFIX" else name for name in given}
    assert set(parse(subscribe="a", **given).ignored) == reported
    assert set(parse(**given).ignored) == reported


ONE = '{"a":{"0":5}}'


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "only one of subscribe, subscribePattern and assign can be given"),
        (
            {"startingOffsets": "earliest"},
            "startingOffsets: add subscribe, subscribePattern or assign",
        ),
        ({"includeHeaders": "true"}, "option includeHeaders: add subscribe"),
        ({"subscribe": "a", "topic": "a"}, "option topic: subscribe sets it already"),
        ({"assign": '{"a":[0]}', "partition": "0"}, "option partition: assign sets it already"),
        ({"subscribe": "a", "startingOffset": "5"}, "option startingOffset: startingOffsets sets it already"),
        ({"subscribe": "a", "endingOffset": "5"}, "option endingOffset: endingOffsets sets it already"),
        ({"isolation": "read_committed", "kafka.isolation.level": "read_committed"}, "kafka.isolation.level sets it"),
        ({"maxRecordsPerTrigger": "5", "maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger sets it already"),
        ({"subscribe": " , "}, "no topic is named"),
        ({"subscribe": "order*"}, "'order*' is not a topic name (subscribePattern takes a pattern)"),
        ({"subscribePattern": " "}, "the pattern is empty"),
        ({"subscribePattern": "(a"}, "'(a' cannot be used: missing )"),
        ({"subscribePattern": "(?u)a"}, "'(?u)a' cannot be used: ASCII and UNICODE flags are incompatible"),
        ({"subscribePattern": "a{99999999999999999999}"}, "cannot be used: the repetition number is too large"),
        ({"subscribePattern": "[a-z&&[^b]]"}, "cannot be used: Possible set"),
        ({"subscribePattern": r"\p{Alpha}"}, r"cannot be used: bad escape \p"),
        ({"assign": "a"}, 'option assign: expected JSON such as {"topicA":[0,1],"topicB":[2]}, found \'a\''),
        ({"assign": "{}"}, "option assign: expected JSON such as"),
        ({"assign": '{"a":["0"]}'}, "option assign: expected JSON such as"),
        ({"assign": '{"a":[-1]}'}, "option assign: expected JSON such as"),
        ({"assign": '{"a":[[]]}'}, "option assign: expected JSON such as"),
        ({"subscribe": "a", "startingOffsets": "first"}, "option startingOffsets: expected JSON such as"),
        ({"subscribe": "a", "startingOffsets": '{"a":5}'}, "option startingOffsets: expected JSON such as"),
        ({"subscribe": "a", "startingOffsets": '{"a":{"0":-3}}'}, "found '0': -3"),
        ({"subscribe": "a", "startingOffsets": '{"a":{"0":true}}'}, "found '0': True"),
        ({"subscribe": "a", "startingOffsets": '{"a":{"x":1}}'}, "found 'x': 1"),
        ({"subscribe": "a", "startingOffsetsByTimestamp": '{"a":{"0":-2}}'}, "found '0': -2"),
        ({"subscribe": "a", "endingOffsets": "earliest"}, "the end cannot be the earliest offset"),
        ({"subscribe": "a", "endingOffsets": '{"a":{"0":-2}}'}, "the end cannot be the earliest offset"),
        (
            {"subscribe": "a", "startingOffsets": ONE, "endingOffsets": '{"a":{"0":4}}'},
            "a-0: the end 4 is before the start",
        ),
        (
            {"subscribe": "a", "startingOffsets": ONE, "endingOffsets": '{"a":{"1":9}}'},
            "name different partitions: a-0, a-1",
        ),
        ({"subscribe": "a", "startingTimestamp": "5", "endingTimestamp": "4"}, "4 is below startingTimestamp 5"),
        ({"subscribe": "a", "startingTimestamp": "soon"}, "option startingTimestamp: expected ms since 1970"),
        ({"subscribe": "a", "startingOffsetsByTimestampStrategy": "none"}, "expected error or latest, found 'none'"),
        ({"subscribe": "a", "includeHeaders": "yes"}, "option includeHeaders: expected true or false, found 'yes'"),
        ({"subscribe": "a", "output": "findings"}, "output=findings always covers whole partitions"),
        ({"subscibe": "a"}, "did you mean 'subscribe'?"),
        *(
            (
                {"subscribe": "a", f"kafka.{name}": "x"},
                f"option kafka.{name}: not supported, as in Spark's Kafka source",
            )
            for name in (
                "auto.offset.reset",
                "key.deserializer",
                "value.deserializer",
                "enable.auto.commit",
                "interceptor.classes",
            )
        ),
    ],
)
def test_what_is_refused(given, reported):
    with pytest.raises(UsageError, match=re.escape(reported)):
        parse(**given)


def test_an_end_that_is_the_latest_offset_is_not_before_any_start():
    query = asked(startingOffsets='{"orders":{"0":5}}', endingOffsets='{"orders":{"0":-1}}')
    assert query.end == Edge(offsets={("orders", 0): LATEST})


def test_every_option_that_is_taken_or_ignored_is_reported():
    reported = {name.lower() for option in kafka_options.OPTIONS for name in option.name.split(", ")}
    shared = {option.name.lower() for option in words.OPTIONS}
    assert {name.lower() for name in kafka_options.NAMES} <= reported
    taken = (option.name.split(", ") for option in kafka_options.OPTIONS if option.fate == kafka_options.TAKEN)
    known = {*shared, *(name.lower() for name in kafka_options.NAMES), "kafka.isolation.level"}
    assert {name.lower() for names in taken for name in names} <= known


@pytest.mark.parametrize("paths", ["5", "null", "[1]", "{}", "x", "[" * 100_000])
def test_paths_are_an_array_of_texts(paths):
    with pytest.raises(UsageError, match="option paths: expected a JSON array of texts"):
        words.parse({"paths": paths})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("assign", "[" * 100_000),
        ("subscribePattern", "(" * 3000 + ")" * 3000),
        ("startingOffset", "1_0"),
        ("partition", "5-3"),
    ],
)
def test_texts_that_python_would_take_or_cannot_parse_are_refused(name, text):
    with pytest.raises(UsageError, match=f"option {name}"):
        words.parse({"path": "x", name: text})


def test_a_fraction_of_a_ms_begins_and_ends_a_range_at_the_next_ms():
    at = "2026-01-01T00:00:00.{}"
    options = parse(startingTimestamp=at.format("0005"), endingTimestamp=at.format("0015"))
    assert (options.starting_timestamp, options.ending_timestamp) == (1_767_225_600_001, 1_767_225_600_002)
    assert parse(endingTimestamp="1969-12-31T23:59:59.9995").ending_timestamp == 0
