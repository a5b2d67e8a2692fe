"""First and last offsets of partitions in queries of Kafka's source, for batches and streams, without Spark."""

import re
from dataclasses import replace

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kdump[spark]'")

from kdump.errors import UsageError
from kdump.spark.source import options as words
from kdump.spark.source import planning, reading, streaming
from kdump.spark.source.marks import DataLossError
from kdump.spark.source.streaming import TriggerLimits
from testing import forge
from tests.helpers.growing import ID, Log, Stream

SECOND = 1_700_000_000_000
"""The time of the first record, in ms; each record is a second later than the one before."""


class Clock(Log):
    """A partition folder of batches of three records, a second apart."""

    def batch(self, count=3, **given):
        records = [forge.record(b"k", b"%d" % (self.next + n), offset=n, timestamp=n * 1000) for n in range(count)]
        first = SECOND + self.next * 1000
        given = {"base_timestamp": first, "max_timestamp": first + (count - 1) * 1000, **given}
        self.next += count
        return forge.batch(records, base_offset=self.next - count, **given)


@pytest.fixture
def log_dir(tmp_path):
    """Partition 0 of orders with offsets 0 to 11 in two segments, partition 1 with 0 to 2, and another topic."""
    log = Clock(tmp_path / "orders-0")
    log.append(2)
    log.roll()
    log.append(2)
    Clock(tmp_path / "orders-1").append()
    Clock(tmp_path / "other-0").append()
    return tmp_path


def read(path, reported=None, **given):
    """Return partition and offset of each record in a batch."""
    options = words.parse({"path": str(path), "subscribe": "orders", "columns": "topic,partition,offset", **given})
    options = replace(options, kafka=options.kafka.for_batch())
    note = (lambda _: None) if reported is None else reported.append
    splits = [split for planned in planning.plan(options, note) for split in planned.splits]
    rows = [row for split in splits for batch in reading.read(split, options) for row in batch.to_pylist()]
    assert {row["topic"] for row in rows} <= {"orders"}
    return [(row["partition"], row["offset"]) for row in rows]


def offsets(partition, first, end):
    return [(partition, offset) for offset in range(first, end)]


def both(first, end, other=(0, 3)):
    return offsets(0, first, end) + offsets(1, *other)


def at(time):
    return str(SECOND + time * 1000)


@pytest.mark.parametrize("more", [{}, {"columns": "topic,partition,offset,transactionState"}, {"splitBytes": "1"}])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, both(0, 12)),
        ({"startingOffsets": "earliest", "endingOffsets": "latest"}, both(0, 12)),
        ({"startingOffsets": '{"orders":{"0":4,"1":-2}}'}, both(4, 12)),
        ({"startingOffsets": '{"orders":{"0":12,"1":3}}'}, []),
        ({"endingOffsets": '{"orders":{"0":7,"1":-1}}'}, both(0, 7)),
        (
            {"startingOffsets": '{"orders":{"0":5,"1":1}}', "endingOffsets": '{"orders":{"0":8,"1":2}}'},
            both(5, 8, (1, 2)),
        ),
        ({"startingOffsets": '{"orders":{"0":5,"1":1}}', "endingOffsets": '{"orders":{"0":5,"1":1}}'}, []),
        ({"startingTimestamp": at(1)}, both(1, 12, (1, 3))),
        ({"startingTimestamp": at(2), "endingTimestamp": at(7)}, both(2, 7, (2, 3))),
        ({"startingOffsetsByTimestamp": f'{{"orders":{{"0":{at(7)},"1":0}}}}'}, both(7, 12)),
        ({"endingOffsetsByTimestamp": f'{{"orders":{{"0":{at(99)},"1":{at(1)}}}}}'}, both(0, 12, (0, 1))),
        ({"startingTimestamp": at(7), "startingOffsetsByTimestampStrategy": "latest"}, both(7, 12, (3, 3))),
    ],
)
def test_a_batch_reads_from_edge_to_edge(log_dir, given, expected, more):
    assert read(log_dir, **given, **more) == expected


def test_assigned_partitions_alone_are_read(log_dir):
    options = words.parse({"path": str(log_dir), "assign": '{"orders":[1],"other":[0]}'})
    options = replace(options, kafka=options.kafka.for_batch())
    assert [planned.name.split("/")[-2] for planned in planning.plan(options)] == ["orders-1", "other-0"]


def test_a_time_is_looked_up_and_no_filter(tmp_path):
    """A broker does the same: records after the first one that is late enough are read, even if they are earlier."""
    log = Clock(tmp_path / "orders-0")
    log.append()
    log.append(base_timestamp=SECOND + 50_000, max_timestamp=SECOND + 52_000)
    log.append()
    assert read(tmp_path, startingTimestamp=at(10)) == offsets(0, 3, 9)
    assert read(tmp_path, endingTimestamp=at(10)) == offsets(0, 0, 3)


def test_where_no_record_is_as_late_as_the_time_the_query_ends(log_dir):
    with pytest.raises(UsageError, match="orders-1: all records are before the start time"):
        read(log_dir, startingTimestamp=at(7))


def test_an_end_before_the_beginning_is_refused(log_dir):
    with pytest.raises(UsageError, match="orders-0: the end offset 2 is below the start offset 5"):
        read(log_dir, startingOffsets='{"orders":{"0":5,"1":0}}', endingTimestamp=at(2))


def test_the_earliest_offset_is_the_log_start_offset(log_dir):
    (log_dir / "meta.properties").write_text("version=1\nnode.id=1\n")
    (log_dir / "log-start-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    assert read(log_dir) == both(4, 12)
    assert read(log_dir, startingOffsets='{"orders":{"0":-2,"1":-2}}') == both(4, 12)
    assert read(log_dir, startingTimestamp=at(1)) == both(4, 12, (1, 3))
    with pytest.raises(DataLossError, match="orders-0: offsets 2 to 3 are gone"):
        read(log_dir, startingOffsets='{"orders":{"0":2,"1":0}}')


@pytest.mark.parametrize(
    ("given", "lost", "expected"),
    [
        (
            {"startingOffsets": '{"orders":{"0":13,"1":0}}'},
            "orders-0: offset 13 is above the log end offset 12",
            both(12, 12),
        ),
        (
            {"endingOffsets": '{"orders":{"0":13,"1":3}}'},
            "orders-0: offset 13 is above the log end offset 12",
            both(0, 12),
        ),
        ({"startingOffsets": '{"orders":{"0":0,"1":0,"2":0}}'}, "there is no partition orders-2", both(0, 12)),
        ({"subscribe": "orders,gone"}, "there is no partition of topic gone", both(0, 12)),
    ],
)
def test_what_is_asked_for_and_is_not_there_ends_the_query_or_is_said(log_dir, given, lost, expected):
    with pytest.raises(DataLossError, match=re.escape(f"{lost} (failOnDataLoss=false")):
        read(log_dir, **given)
    reported = []
    assert read(log_dir, reported, failOnDataLoss="false", **given) == expected
    assert reported == [f"{lost}; continuing with the remaining records"]


def test_a_partition_that_was_assigned_and_is_not_there_is_lost(log_dir):
    options = words.parse({"path": str(log_dir), "assign": '{"orders":[0,5],"gone":[1]}'})
    options = replace(options, kafka=options.kafka.for_batch(), fail_on_data_loss=False)
    reported = []
    planning.plan(options, reported.append)
    assert [text.partition(";")[0] for text in reported] == [
        "there is no partition of topic gone",
        "there is no partition orders-5",
    ]


def test_all_partitions_must_be_named_where_one_is(log_dir):
    with pytest.raises(UsageError, match=r"must name all partitions; orders-1 is not named \(-1 is the latest"):
        read(log_dir, startingOffsets='{"orders":{"0":4}}')
    with pytest.raises(UsageError, match=r"must name all partitions; orders-0 is not named"):
        read(log_dir, endingOffsetsByTimestamp='{"orders":{"1":4}}')


def test_a_partition_in_two_log_dirs_is_reported(log_dir):
    Clock(log_dir / "second" / "orders-1").append()
    reported = []
    assert len(read(log_dir, reported)) == 18
    assert reported == ["orders-1 is in 2 folders: option dedupe returns each offset once"]
    reported.clear()
    assert read(log_dir, reported, dedupe="true", startingOffsets='{"orders":{"0":4,"1":1}}') == both(4, 12, (1, 3))
    assert reported == []


def test_batches_that_reach_between_the_edges_are_given(log_dir):
    given = {"path": str(log_dir), "subscribe": "orders", "output": "batches"}
    options = words.parse({**given, "startingOffsets": '{"orders":{"0":4,"1":3}}', "endingTimestamp": at(6)})
    options = replace(options, kafka=options.kafka.for_batch(), fail_on_data_loss=False)
    splits = [split for planned in planning.plan(options) for split in planned.splits]
    rows = [row for batch in reading.read_all(splits, options) for row in batch.to_pylist()]
    assert [(row["partition"], row["baseOffset"]) for row in rows] == [(0, 3)]


def test_headers_are_null_where_a_record_has_none(tmp_path):
    folder = tmp_path / "orders-0"
    folder.mkdir()
    records = [
        forge.record(b"k", b"v", offset=0),
        forge.record(b"k", b"v", offset=1, headers=[(b"a", b"1"), (b"a", None)]),
        forge.record(b"k", b"v", offset=2),
    ]
    (folder / "00000000000000000000.log").write_bytes(forge.batch(records))
    for more in ({}, {"decode": "auto"}):  # by the kernel, and of objects
        options = words.parse({"path": str(tmp_path), "subscribe": "orders", "includeHeaders": "true", **more})
        (planned,) = planning.plan(replace(options, kafka=options.kafka.for_batch()))
        (batch,) = reading.read(planned.splits[0], options)
        assert batch["headers"].to_pylist() == [None, [{"key": "a", "value": b"1"}, {"key": "a", "value": None}], None]
        batch.validate(full=True)


class Query(Stream):
    """A stream of Kafka's source."""

    def __init__(self, path, **given):
        options = words.parse({"path": str(path), "subscribe": "orders", **given})
        super().__init__(path, kafka=options.kafka.for_stream(), fail_on_data_loss=options.fail_on_data_loss)
        self.notes = []
        self.at = self.begin()

    def begin(self):
        return streaming.initial(self.options, self.notes.append)


def test_a_stream_begins_at_the_latest_offset_and_new_partitions_at_the_earliest(tmp_path):
    log = Clock(tmp_path / "orders-0")
    log.append(2)
    stream = Query(tmp_path)
    assert stream.trigger() == []
    log.append()
    Clock(tmp_path / "other-0").append()
    assert stream.trigger() == [6, 7, 8]
    Clock(tmp_path / "orders-1").append()
    assert stream.trigger() == [0, 1, 2]


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ({"startingOffsets": "earliest"}, 0),
        ({"startingOffsets": '{"orders":{"0":4}}'}, 4),
        ({"startingOffsets": '{"orders":{"0":6}}'}, 6),
        ({"startingOffsets": '{"orders":{"0":-1}}'}, 9),
        ({"startingTimestamp": at(7)}, 7),
        ({"startingTimestamp": at(77), "startingOffsetsByTimestampStrategy": "latest"}, 9),
    ],
)
def test_a_stream_begins_at_the_given_position(tmp_path, given, first):
    log = Clock(tmp_path / "orders-0")
    log.append(2)
    log.roll()
    log.append()
    stream = Query(tmp_path, **given)
    assert stream.trigger(TriggerLimits(records=1)) == list(range(first, min(9, first // 3 * 3 + 3)))
    log.append()
    taken = []
    while more := stream.trigger():
        taken += more
    assert taken == list(range(min(9, first // 3 * 3 + 3), 12))


def test_the_first_trigger_stands_when_it_is_run_again_and_the_log_has_grown_meanwhile(tmp_path):
    """After a driver was killed in its first trigger, Spark asks again for the start; the log has the trigger's end."""
    log, quiet = Clock(tmp_path / "orders-0"), Clock(tmp_path / "orders-1")
    log.append()
    quiet.append()
    stream = Query(tmp_path)
    log.append()
    assert stream.trigger() == [3, 4, 5]
    end = stream.at
    log.append()
    quiet.append()
    assert stream.replay(stream.begin(), end) == [3, 4, 5]
    assert sorted(stream.trigger()) == [3, 4, 5, 6, 7, 8]
    assert stream.reported == []


def test_of_a_log_that_is_cut_back_below_where_a_stream_began_all_is_given_that_is_new(tmp_path):
    log = Clock(tmp_path / "orders-0")
    (tmp_path / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {ID}\n")
    log.append(2)
    stream = Query(tmp_path, failOnDataLoss="false")
    assert stream.trigger() == []
    log.file.write_bytes(b"")
    log.next = 0
    log.append()
    assert stream.trigger() == []
    log.append()
    assert stream.trigger() == [3, 4, 5]
    assert stream.reported == []


def test_a_stream_says_or_ends_with_what_is_not_there(tmp_path):
    Clock(tmp_path / "orders-0").append()
    given = {"startingOffsets": '{"orders":{"0":9,"1":0}}'}
    with pytest.raises(DataLossError, match="there is no partition orders-1"):
        Query(tmp_path, **given)
    stream = Query(tmp_path, failOnDataLoss="false", **given)
    assert [text.partition(";")[0] for text in stream.notes] == [
        "there is no partition orders-1",
        "orders-0: offset 9 is above the log end offset 3",
    ]
    assert stream.trigger() == []
