"""A growing log dir as a stream: each record in exactly one trigger, whatever happens to the files in between."""

import json

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")

from pyspark.errors import StreamingQueryException

from kdump.errors import KdumpError, UsageError
from kdump.spark_source import options as words
from kdump.spark_source import reading, streaming
from kdump.spark_source.streaming import DataLossError, Limits
from tests import forge

NONE = Limits()


class Log:
    """A partition folder that grows."""

    def __init__(self, folder):
        self.folder = folder
        self.next = 0
        self.roll()

    def roll(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / f"{self.next:020}.log"
        self.file.touch()

    def batch(self, count=3, **given):
        records = [forge.record(b"k", b"%d" % (self.next + n), offset=n) for n in range(count)]
        made = forge.batch(records, base_offset=self.next, **given)
        self.next += count
        return made

    def append(self, batches=1, **given):
        for _ in range(batches):
            with self.file.open("ab") as file:
                file.write(self.batch(**given))


class Stream:
    """What Spark does with a stream reader, without Spark: offsets go through JSON, as through its checkpoint."""

    def __init__(self, path, **given):
        self.options = words.Options(paths=(str(path),), **given)
        self.at = {}
        self.told = []

    def trigger(self, limits=NONE, output="records"):
        """The offsets of the records of one trigger."""
        end = json.loads(json.dumps(streaming.latest(self.options, self.at, limits)))
        start, self.at = self.at, end
        return self.replay(start, end, output)

    def replay(self, start, end, output="records"):
        splits = streaming.between(self.options, start, end, self.lost)
        options = words.Options(paths=self.options.paths, output=output, isolation=self.options.isolation)
        rows = [row for split in splits for batch in reading.read(split, options) for row in batch.to_pylist()]
        return [row["offset"] for row in rows] if output == "records" else rows

    def lost(self, text):
        if self.options.fail_on_data_loss:
            raise DataLossError(text)
        self.told.append(text)


def test_each_record_is_in_one_trigger_while_segments_grow_and_roll(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    assert stream.trigger() == []
    log.append(2)
    assert stream.trigger() == list(range(6))
    assert stream.trigger() == []
    log.append()
    log.roll()
    log.append(2)
    assert stream.trigger() == list(range(6, 15))
    other = Log(tmp_path / "t-1")
    other.append()
    log.append()
    assert sorted(stream.trigger()) == [0, 1, 2, 15, 16, 17]


def test_a_trigger_is_the_same_when_it_is_run_again(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    log.append(4)
    stream.trigger(Limits(records=4))
    start = stream.at
    taken = stream.trigger(Limits(records=4))
    end = stream.at
    log.append(2)
    log.roll()
    log.append()
    assert stream.replay(start, end) == taken == [3, 4, 5]


def test_a_batch_that_is_half_written_waits(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    log.append()
    made = log.batch()
    for cut in range(1, len(made)):
        with log.file.open("ab") as file:
            file.write(made[cut - 1 : cut])
        assert stream.trigger() == ([0, 1, 2] if cut == 1 else [])
    with log.file.open("ab") as file:
        file.write(made[-1:])
    assert stream.trigger() == [3, 4, 5]


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [
        (Limits(records=4), [3, 3, 3]),
        (Limits(records=6), [6, 3]),
        (Limits(bytes=1), [3, 3, 3]),
        (Limits(files=1), [6, 3]),
    ],
)
def test_limits_of_a_trigger(tmp_path, limits, sizes):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    log.append(2)
    log.roll()
    log.append()
    taken = []
    while batch := stream.trigger(limits):
        taken.append(batch)
    assert [len(batch) for batch in taken] == sizes
    assert [offset for batch in taken for offset in batch] == list(range(9))


def test_damage_is_passed_and_goes_to_its_own_output_once(tmp_path):
    log, stream, lost = Log(tmp_path / "t-0"), Stream(tmp_path), Stream(tmp_path)
    log.append()
    broken = bytearray(log.batch())
    broken[-1] ^= 1
    with log.file.open("ab") as file:
        file.write(broken)
    assert stream.trigger() == [0, 1, 2]
    assert lost.trigger(output="damaged") == [], "it may be a batch that is being written"
    log.append()
    assert stream.trigger() == [6, 7, 8]
    (row,) = lost.trigger(output="damaged")
    assert (row["bytes"], row["missingFrom"], row["missingUntil"]) == (bytes(broken), None, 6)
    with log.file.open("ab") as file:
        file.write(b"\xff" * 40)
    log.roll()
    log.append()
    assert stream.trigger() == [9, 10, 11]
    assert [row["length"] for row in lost.trigger(output="damaged")] == [40]
    assert lost.trigger(output="damaged") == []


def test_retention_before_the_next_trigger_is_told(tmp_path):
    log = Log(tmp_path / "t-0")
    strict, lenient = Stream(tmp_path), Stream(tmp_path, fail_on_data_loss=False)
    log.append()
    assert strict.trigger() == lenient.trigger() == [0, 1, 2]
    log.append()
    gone = log.file
    log.roll()
    log.append()
    gone.rename(gone.with_name(gone.name + ".deleted"))
    with pytest.raises(DataLossError, match="offsets from 3 up to 6 are gone"):
        strict.trigger()
    assert lenient.trigger() == [6, 7, 8]
    assert len(lenient.told) == 1


def test_retention_of_what_was_read_is_no_loss(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    log.append()
    old = log.file
    log.roll()
    assert stream.trigger() == [0, 1, 2]
    old.unlink()
    log.append()
    assert stream.trigger() == [3, 4, 5]


def test_compaction_that_writes_a_segment_anew_loses_and_doubles_nothing(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    log.append(3)
    assert stream.trigger() == list(range(9))
    rest = forge.batch([forge.record(b"k", b"8", offset=2)], base_offset=6, last_offset_delta=2)
    log.file.write_bytes(rest)
    log.append()
    assert stream.trigger() == [9, 10, 11]


def test_read_committed_waits_for_the_end_of_transactions(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path, isolation="read_committed")

    def end(producer, kind):
        with log.file.open("ab") as file:
            marker = [forge.record(b"\0\0\0" + bytes([kind]), b"\0\0\0\0\0\0")]
            file.write(
                forge.batch(marker, base_offset=log.next, attributes=0x30, producer_id=producer, producer_epoch=0)
            )
        log.next += 1

    log.append()
    log.append(attributes=0x10, producer_id=1, producer_epoch=0)
    log.append()
    assert stream.trigger() == [0, 1, 2]
    log.append(attributes=0x10, producer_id=2, producer_epoch=0)
    end(1, 1)
    assert stream.trigger() == [3, 4, 5, 6, 7, 8]
    end(2, 0)
    log.append()
    assert stream.trigger() == [14, 15, 16]


def test_a_query_writes_each_record_once_over_restarts(spark, tmp_path):
    log = Log(tmp_path / "in" / "t-0")

    def run(**options):
        frame = spark.readStream.format("kdump").options(**options).load(str(tmp_path / "in"))
        query = (
            frame.select("topic", "offset")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        query.awaitTermination()
        return len(query.recentProgress)

    log.append(3)
    assert patiently(lambda: run(maxRecordsPerTrigger="3")) >= 3
    log.append()
    log.roll()
    log.append()
    patiently(run)
    patiently(run)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row.offset for row in rows) == list(range(15))


def patiently(run):
    """Run until the machine is quick enough: Spark waits ten seconds for a Python worker of a stream, and no longer.

    A run that ended like that is one more restart: the next goes on where it stopped.
    """
    for _ in range(4):
        try:
            return run()
        except (KdumpError, StreamingQueryException) as error:
            if "Python worker failed to connect back" not in str(error):
                raise
    return run()


def test_ten_incremental_exports_are_one_full_export(spark, tmp_path):
    from kdump.spark_export import following, job

    listener = job.Listener(lambda _: None, lambda *_: None)
    source, out = tmp_path / "in", tmp_path / "out"
    logs = [Log(source / "t-0"), Log(source / "t-1")]

    def export(place, **given):
        return job.Export(paths=(str(source),), out=str(place), options={}, conf={}, **given)

    added = []
    for number in range(10):
        logs[number % 2].append(number % 3)
        if number % 4 == 3:
            logs[0].roll()
        if number == 6:
            broken = bytearray(logs[1].batch())
            broken[-1] ^= 1
            with logs[1].file.open("ab") as file:
                file.write(broken)
        added.append(patiently(lambda: following.run(export(out), listener, forever=False)))
    job.run(export(tmp_path / "full"), listener)

    def rows(place):
        frame = spark.read.parquet(str(place)).drop("topic_name", "date")
        return sorted((row.partition, row.offset, row.value, row.position) for row in frame.collect())

    assert rows(out) == rows(tmp_path / "full")
    assert 20 < len(rows(out)) >= sum(one.rows for one in added)
    assert sum(one.damaged_rows for one in added) == 1
    assert spark.read.parquet(str(out / "_damaged")).count() == 1
    with pytest.raises(UsageError, match="holds no _checkpoint"):
        following.run(export(tmp_path / "full"), listener, forever=False)
