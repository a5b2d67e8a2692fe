"""A growing log dir as a stream: each record in exactly one trigger."""

import json
import os

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")


from kdump.errors import KdumpError, UnreadableError
from kdump.log_dirs.local import LocalFile
from kdump.spark.source import data_source, reading, register, streaming
from kdump.spark.source import options as words
from kdump.spark.source.data_source import KdumpStreamReader
from kdump.spark.source.marks import DataLossError
from kdump.spark.source.streaming import TriggerLimits
from tests.helpers.growing import ID, NONE, Log, Stream


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
    stream.trigger(TriggerLimits(records=4))
    start = stream.at
    taken = stream.trigger(TriggerLimits(records=4))
    end = stream.at
    log.append(2)
    log.roll()
    log.append()
    assert stream.replay(start, end) == taken == [3, 4, 5]


def test_what_cannot_be_read_takes_no_room_from_what_can(tmp_path, monkeypatch):
    """Otherwise a trigger would be full of unreadable bytes, and the next one as well."""
    broken, log = Log(tmp_path / "t-0"), Log(tmp_path / "t-1")
    broken.append(100, count=100)
    log.append(2, count=50)
    plain = LocalFile.read

    def read(source, position, size):
        if source.name == str(broken.file) and position > 0:
            raise UnreadableError(source.name, f"byte {position}: Input/output error")
        return plain(source, position, size)

    monkeypatch.setattr(LocalFile, "read", read)
    options = words.SourceOptions(paths=(str(tmp_path),))
    for records in range(100, 10_000, 100):
        fails = []
        made = streaming.advance(options, {}, TriggerLimits(records=records), fail=fails.append)
        assert {taken.partition.name for taken in made.taken} >= ({"t-1"} if fails else {"t-0"})
    assert fails


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
        (TriggerLimits(records=4), [3, 3, 3]),
        (TriggerLimits(records=6), [6, 3]),
        (TriggerLimits(bytes=1), [3, 3, 3]),
        (TriggerLimits(files=1), [6, 3]),
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


@pytest.mark.parametrize("limits", [TriggerLimits(files=1), TriggerLimits(bytes=1), TriggerLimits(records=1), NONE])
@pytest.mark.parametrize("tail", [b"", b"\xff" * 50])
def test_a_rolled_segment_without_a_sound_batch_is_passed_and_reported_once(tmp_path, limits, tail):
    log = Log(tmp_path / "t-0")
    log.append()
    with log.file.open("ab") as file:
        file.write(tail)
    log.roll()
    for _ in range(2):
        broken = bytearray(log.batch())
        broken[-1] ^= 1
        log.file.write_bytes(broken)
        log.roll()
    log.append()
    for output, wanted in (
        ("records", [0, 1, 2, 9, 10, 11]),
        ("damaged", [*([len(tail)] * bool(tail)), *[len(broken)] * 2]),
    ):
        stream, taken, triggers = Stream(tmp_path), [], 0
        before = None
        while stream.at != before:
            before = stream.at
            found = stream.trigger(limits, output)
            taken += [row["length"] for row in found] if output == "damaged" else found
            triggers += 1
            assert triggers < 9, "it goes on"
        assert taken == wanted
    log.append()
    assert stream.trigger() == [12, 13, 14]


def test_a_log_that_begins_with_a_segment_without_a_sound_batch(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    log.file.write_bytes(log.batch(count=1, crc=1))
    log.roll()
    assert stream.trigger() == []
    assert stream.trigger(output="damaged") == []
    log.append()
    assert stream.trigger() == [1, 2, 3]


def test_read_committed_waits_for_the_end_of_transactions(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path, isolation="read_committed")

    log.append()
    log.append(attributes=0x10, producer_id=1, producer_epoch=0)
    log.append()
    assert stream.trigger() == [0, 1, 2]
    log.append(attributes=0x10, producer_id=2, producer_epoch=0)
    log.end(1, 1)
    assert stream.trigger() == [3, 4, 5, 6, 7, 8]
    log.end(2, 0)
    log.append()
    assert stream.trigger() == [14, 15, 16]


def test_an_offset_is_plain_json_with_the_next_offset_and_its_place(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    (log.folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {ID}")
    log.append(2)
    stream.trigger()
    assert list(stream.at) == [str(log.folder)]
    mark = stream.at[str(log.folder)]
    assert (mark["offset"], mark["file"], mark["position"]) == (6, str(log.file), log.file.stat().st_size)
    assert (mark["since"], mark["topicId"], mark["trigger"]) == (0, ID, 1)
    assert all(isinstance(value, int | str) for value in mark.values())
    before = dict(stream.at)
    assert stream.trigger() == []
    assert stream.at == before, "Spark begins no micro-batch where an offset stays the same"


def test_the_folder_that_waited_longest_comes_first(tmp_path):
    logs, stream = [Log(tmp_path / f"t-{number}") for number in range(3)], Stream(tmp_path)
    for log in logs:
        log.append(2)
    taken = []
    for _ in range(6):
        taken += stream.trigger(TriggerLimits(records=1), output="where")
        logs[0].append()
    assert taken == [(0, 0), (1, 0), (2, 0), (0, 3), (1, 3), (2, 3)]


def test_a_folder_that_waits_for_the_rest_of_a_batch_holds_up_no_other(tmp_path):
    stuck, log, stream = Log(tmp_path / "a-0"), Log(tmp_path / "b-0"), Stream(tmp_path)
    stuck.file.write_bytes(stuck.batch()[:-1])
    for number in range(3):
        log.append()
        assert stream.trigger(TriggerLimits(files=1)) == [number * 3, number * 3 + 1, number * 3 + 2]


def test_an_empty_log_dir_waits_for_its_first_topic(tmp_path):
    stream = Stream(tmp_path)
    assert stream.trigger() == []
    log = Log(tmp_path / "t-0")
    log.append()
    assert stream.trigger() == [0, 1, 2]
    with pytest.raises(UnreadableError, match="No such file"):
        Stream(tmp_path / "nowhere").trigger()


def test_a_segment_that_is_deleted_before_a_task_opens_it(tmp_path, capsys):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    log.append()
    old = log.file
    log.roll()
    log.append()
    end = streaming.advance(stream.options, {}, NONE).offsets
    splits = streaming.between(stream.options, {}, end, stream.lost)

    def offsets(**given):
        options = words.SourceOptions(paths=stream.options.paths, **given)
        return [row["offset"] for one in splits for batch in reading.read(one, options) for row in batch.to_pylist()]

    old = old.rename(f"{old}.deleted")
    assert offsets() == list(range(6)), "a broker renames first, and deletes a minute later"
    old.unlink()
    with pytest.raises(DataLossError, match="t-0: offsets 0 to 2 are gone"):
        offsets()
    assert offsets(fail_on_data_loss=False) == [3, 4, 5]
    assert "offsets 0 to 2 are gone; continuing" in capsys.readouterr().err


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("nowhere")], ids=["pipe", "link to nowhere"])
def test_what_has_no_size_since_it_is_no_file_is_no_empty_segment(tmp_path, make):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    log.append()
    log.roll()
    assert stream.trigger() == [0, 1, 2]
    path = log.folder / f"{9:020}.log"
    make(path)
    with pytest.raises(UnreadableError, match=f"{path}: "):
        stream.trigger()


def test_a_segment_that_vanishes_while_a_trigger_is_planned_is_looked_for_again(tmp_path, monkeypatch):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    log.append()
    old = log.file
    log.roll()
    log.append()
    real = streaming.planning.find

    def find(*given):
        found = list(real(*given))
        old.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(streaming.planning, "find", find)
    assert stream.trigger() == [3, 4, 5]


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_file_that_is_not_the_one_that_was_planned_is_not_read(tmp_path, isolation):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path, isolation=isolation)
    log.append(4)
    whole = log.file.read_bytes()
    end = streaming.advance(stream.options, {}, NONE).offsets
    (split,) = streaming.between(stream.options, {}, end, stream.lost)

    def offsets():
        return [row["offset"] for batch in reading.read(split, stream.options) for row in batch.to_pylist()]

    assert offsets() == list(range(12))
    log.file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnreadableError, match=f"the file ends at byte {len(whole) // 2}; it had at least {len(whole)}"):
        offsets()
    log.next = 0
    log.file.write_bytes(b"")
    log.append(3, count=9, leader_epoch=1)
    assert log.file.stat().st_size > len(whole)
    with pytest.raises(UnreadableError, match="the bytes from byte 0 on have changed since"):
        offsets()


def test_a_file_that_is_cut_back_while_it_is_read(tmp_path, monkeypatch):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    log.append(4)
    end = streaming.advance(stream.options, {}, NONE).offsets
    (split,) = streaming.between(stream.options, {}, end, stream.lost)
    real = reading._contents

    def contents(*given):
        yield from real(*given)
        os.truncate(log.file, 100)

    monkeypatch.setattr(reading, "_contents", contents)
    with pytest.raises(UnreadableError, match="the file ends at byte 100"):
        list(reading.read(split, stream.options))


def test_a_large_segment_is_read_by_several_tasks(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path, split_bytes=250)
    log.append(12)
    stream.trigger(TriggerLimits(records=6))
    start, end = stream.at, streaming.advance(stream.options, stream.at, NONE).offsets
    splits = streaming.between(stream.options, start, end, stream.lost)
    assert len(splits) > 2
    assert stream.replay(start, end) == list(range(6, 36))


def test_available_now_ends_where_it_began_to_look(tmp_path):
    pytest.importorskip("pyspark.sql.streaming.datasource", reason="a trigger of Spark before 4.2 has no limits")
    log = Log(tmp_path / "t-0")
    log.append(3)
    reader = KdumpStreamReader(words.SourceOptions(paths=(str(tmp_path),), max_records_per_trigger=3))
    reader.prepareForTriggerAvailableNow()
    at, seen = {}, []
    for _ in range(9):
        end = reader.latestOffset(at, reader.getDefaultReadLimit())
        if end == at:
            break
        seen.append(end[str(log.folder)]["offset"])
        at = end
        log.append()
        Log(tmp_path / f"new{len(seen)}-0").append()
    assert seen == [3, 6, 9]


class OlderSpark:
    """Calls a stream reader as Spark before 4.2 does: it asks for an end without giving the start."""

    def __init__(self, path, at=None, **given):
        self.reader = KdumpStreamReader(words.SourceOptions(paths=(str(path),), **given))
        self.at = at
        if at is not None:  # a query that goes on from its checkpoint
            assert self.reader.partitions(at, at) == []

    def trigger(self):
        end = json.loads(json.dumps(self.reader.latestOffset()))
        start = json.loads(json.dumps(self.reader.initialOffset())) if self.at is None else self.at
        if end == start:
            return []
        splits = [split for group in self.reader.partitions(start, end) for split in group.value]
        self.at = end
        self.reader.commit(end)
        rows = [
            row for split in splits for batch in reading.read(split, self.reader._options) for row in batch.to_pylist()
        ]
        return [row["offset"] for row in rows]


def test_a_stream_continues_without_a_position_from_spark(tmp_path):
    log, gone, stream = Log(tmp_path / "t-0"), Log(tmp_path / "t-1"), OlderSpark(tmp_path, fail_on_data_loss=False)
    assert stream.trigger() == []
    log.append(2)
    gone.append()
    assert sorted(stream.trigger()) == [0, 0, 1, 1, 2, 2, 3, 4, 5]
    assert stream.trigger() == []
    log.append()
    assert stream.trigger() == [6, 7, 8]
    log.file.unlink()  # by retention, after the next segment was rolled
    log.roll()
    gone.file.unlink()
    log.append()
    again = OlderSpark(tmp_path, stream.at, fail_on_data_loss=False)
    assert again.trigger() == [9, 10, 11]
    assert again.trigger() == []


def test_nothing_is_read_twice_if_spark_looks_before_it_gives_the_position(tmp_path):
    log, stream = Log(tmp_path / "t-0"), OlderSpark(tmp_path)
    log.append(2)
    stream.trigger()
    reader = KdumpStreamReader(stream.reader._options)
    reader.latestOffset()
    with pytest.raises(KdumpError, match=r"Unset spark\.sql\.streaming\.triggerAvailableNowWrapper\.enabled"):
        reader.partitions(stream.at, stream.at)


def test_options_that_a_release_of_spark_has_no_room_for_are_said(tmp_path, monkeypatch, capsys):
    Log(tmp_path / "t-0").append()
    monkeypatch.setattr(data_source, "_HAS_LIMITS", False)
    OlderSpark(tmp_path, max_bytes_per_trigger=100).trigger()
    assert "max...PerTrigger needs 4.2 or later" in capsys.readouterr().err
    OlderSpark(tmp_path).trigger()
    monkeypatch.setattr(data_source, "DataSourceReader", object)
    data_source.KdumpDataSource({"path": str(tmp_path), "pushdown": "true"}).reader(None)
    assert "pushdown needs 4.1 or later" in capsys.readouterr().err


def test_a_file_that_vanishes_while_it_is_read_is_reported_where_the_query_runs(tmp_path, capsys):
    log = Log(tmp_path / "t-0")
    log.append(attributes=0x10, producer_id=1, producer_epoch=0)
    old = log.file
    log.roll()
    log.append(attributes=0x10, producer_id=1, producer_epoch=0)
    log.end(1, 0)
    log.append()
    options = words.SourceOptions(paths=(str(tmp_path),), fail_on_data_loss=False, isolation="read_committed")
    reader = KdumpStreamReader(options)
    end = reader.latestOffset({}, None)
    splits = [split for partition in reader.partitions({}, end) for split in partition.value]
    old.unlink()
    rows = [row for split in splits for batch in reading.read(split, options) for row in batch.to_pylist()]
    assert [row["offset"] for row in rows] == [7, 8, 9], "what was aborted is known, though it began in the lost file"
    capsys.readouterr()
    reader.commit(end)
    reported = f"kdump: {old} was deleted before it was read completely: offsets 0 to 2 may be missing\n"
    assert capsys.readouterr().err == reported
    reader.stop()
    assert capsys.readouterr().err == ""


def test_a_transaction_with_a_damaged_end_is_reported_and_not_returned_as_committed(tmp_path, capsys):
    log = Log(tmp_path / "t-0")
    log.append(attributes=0x10, producer_id=1, producer_epoch=0)
    log.end(1, 0, crc=1)
    log.append(attributes=0x10, producer_id=1, producer_epoch=0)
    log.end(1, 1)
    stream = Stream(tmp_path, isolation="read_committed")
    assert stream.trigger() == [4, 5, 6]
    KdumpStreamReader(stream.options).partitions({}, stream.at)
    said = "kdump did not read the bytes that show whether transactions at offsets 0 to 2 were committed"
    assert f"kdump: {log.folder}: {said}" in capsys.readouterr().err


def test_read_committed_takes_nothing_of_what_came_after_its_look_at_transactions(tmp_path, monkeypatch):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path, isolation="read_committed")
    log.append()
    real = streaming.combined

    def combined(*given, **more):
        reported = real(*given, **more)
        log.append(attributes=0x10, producer_id=1, producer_epoch=0)
        return reported

    with monkeypatch.context() as patched:
        patched.setattr(streaming, "combined", combined)
        stream.at = streaming.advance(stream.options, {}, NONE).offsets
    assert stream.replay({}, stream.at) == [0, 1, 2]
    log.end(1, 1)
    assert stream.trigger() == [3, 4, 5]


def test_streams_that_begin_at_once_change_nothing_that_they_share(spark, tmp_path):
    """Spark gives both the same map of variables, without a lock: a broken map would end every stream of a session."""
    kept = dict(spark.sparkContext.environment)
    register(spark)
    assert spark.sparkContext.environment == kept
    manager = spark._jsparkSession.sessionState().dataSourceManager()
    variables = manager.lookupDataSource("kdump").dataSourceCls().envVars()
    before = set(variables.keySet())
    Log(tmp_path / "in" / "t-0").append(2)
    frame = spark.readStream.format("kdump").load(str(tmp_path / "in")).select("offset")
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
    query.awaitTermination()
    assert sorted(row.offset for row in spark.read.parquet(str(tmp_path / "out")).collect()) == list(range(6))
    assert set(variables.keySet()) == before


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
    assert run(maxRecordsPerTrigger="3") >= (3 if data_source._HAS_LIMITS else 1)
    log.append()
    log.roll()
    log.append()
    run()
    run()
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row.offset for row in rows) == list(range(15))


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_a_stream_reports_once_where_damage_is_named(tmp_path, capsys, mode):
    """Only tasks verify checksums: the driver does not know the damage."""
    log = Log(tmp_path / "t-0")
    log.append(3)
    data = bytearray(log.file.read_bytes())
    data[len(data) // 3 + 40] ^= 1
    log.file.write_bytes(data)
    reader = data_source.KdumpStreamReader(words.parse({"path": str(tmp_path), "mode": mode}))
    start = reader.initialOffset()
    end = reader.latestOffset(start, None)
    for partition in reader.partitions(start, end):
        assert [row["offset"] for batch in reader.read(partition) for row in batch.to_pylist()] == [0, 1, 2, 6, 7, 8]
    reader.commit(end)
    said = capsys.readouterr().err
    assert said.startswith(f"kdump: mode {mode} leaves out damaged ranges. The log of each executor")
    assert reader.latestOffset(end, None) == end
    assert capsys.readouterr().err == ""


def test_a_stream_ends_at_damage_unless_it_is_asked_to_go_on(tmp_path):
    log = Log(tmp_path / "t-0")
    log.append(3)
    data = bytearray(log.file.read_bytes())
    data[40] ^= 1
    log.file.write_bytes(data)
    reader = data_source.KdumpStreamReader(words.parse({"path": str(tmp_path)}))
    start = reader.initialOffset()
    partitions = reader.partitions(start, reader.latestOffset(start, None))
    with pytest.raises(UnreadableError, match="mode FAILFAST stops here"):
        [list(reader.read(partition)) for partition in partitions]
