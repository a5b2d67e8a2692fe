"""Changes of a log between two triggers of a stream: deleted, compacted, truncated, created again."""

import os
import shutil

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kdump[spark]'")

from kdump.spark.source import options as words
from kdump.spark.source import streaming
from kdump.spark.source.marks import DataLossError
from kdump.spark.source.streaming import TriggerLimits
from testing import forge
from tests.helpers.growing import ID, NONE, Log, Stream


def test_another_log_in_the_place_of_a_segment_without_a_sound_batch_is_read(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    log.append()
    log.roll()
    lost = log.file
    lost.write_bytes(log.batch(crc=1))
    log.roll()
    assert stream.trigger() == [0, 1, 2]
    log.file.unlink()
    log.file, log.next = lost, 3
    lost.write_bytes(b"")
    log.append(2)
    assert stream.trigger() == list(range(3, 9))


def test_retention_before_the_next_trigger_is_reported(tmp_path):
    log = Log(tmp_path / "t-0")
    strict, lenient = Stream(tmp_path), Stream(tmp_path, fail_on_data_loss=False)
    log.append()
    assert strict.trigger() == lenient.trigger() == [0, 1, 2]
    log.append()
    gone = log.file
    log.roll()
    log.append()
    gone.rename(gone.with_name(gone.name + ".deleted"))
    with pytest.raises(DataLossError, match="offsets 3 to 5 are gone"):
        strict.trigger()
    assert lenient.trigger() == [6, 7, 8]
    assert len(lenient.reported) == 1


def test_retention_of_what_was_read_is_no_loss(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    log.append()
    old = log.file
    log.roll()
    assert stream.trigger() == [0, 1, 2]
    old.unlink()
    log.append()
    assert stream.trigger() == [3, 4, 5]


def test_compaction_that_rewrites_a_segment_loses_and_doubles_nothing(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    log.append(3)
    assert stream.trigger() == list(range(9))
    rest = forge.batch([forge.record(b"k", b"8", offset=2)], base_offset=6, last_offset_delta=2)
    log.file.write_bytes(rest)
    log.append()
    assert stream.trigger() == [9, 10, 11]


def test_limits_do_not_go_back_after_compaction_rewrites_a_segment(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path)
    log.append(4)
    assert stream.trigger() == list(range(12))
    left = [forge.batch([forge.record(b"k", b"", offset=2)], base_offset=n, last_offset_delta=2) for n in (0, 3, 6, 9)]
    log.file.write_bytes(b"".join(left))
    log.append(2)
    assert stream.trigger(TriggerLimits(records=1)) == [12, 13, 14]
    assert stream.trigger(TriggerLimits(records=1)) == [15, 16, 17]


def test_a_log_that_another_leader_cut_back_is_reported_and_read_from_there(tmp_path):
    log = Log(tmp_path / "t-0")
    strict, lenient = Stream(tmp_path), Stream(tmp_path, fail_on_data_loss=False)
    log.append(3)
    kept = log.file.stat().st_size // 3
    assert strict.trigger() == lenient.trigger() == list(range(9))
    with log.file.open("r+b") as file:
        file.truncate(kept)
    log.next = 3
    log.append(2, leader_epoch=1)  # the same bytes at the same places but for the epoch
    log.append(leader_epoch=2)
    with pytest.raises(DataLossError, match=r"was truncated to offset 3, .* had read up to offset 9"):
        strict.trigger()
    assert lenient.trigger() == list(range(3, 12))
    assert len(lenient.reported) == 1
    assert lenient.trigger() == []


@pytest.mark.parametrize("rolled", [False, True])
def test_a_cut_is_seen_before_anything_follows_it_and_over_segments(tmp_path, rolled):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path, fail_on_data_loss=False)
    log.append(leader_epoch=4)
    first = log.file
    log.roll()
    log.append(2, leader_epoch=5)
    assert stream.trigger() == list(range(9))
    log.file.unlink()
    log.file, log.next = first, 3
    assert stream.trigger() == []
    assert "truncated to offset 3" in stream.reported[0]
    if rolled:
        log.roll()
    log.append(3, leader_epoch=7)
    assert stream.trigger() == list(range(3, 12))
    assert len(stream.reported) == 1


def test_a_cut_is_found_in_the_segment_where_it_begins(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path, fail_on_data_loss=False)
    log.append(6)
    assert stream.trigger() == list(range(18))
    with log.file.open("r+b") as file:
        file.truncate(log.file.stat().st_size // 6)
    log.next = 3
    for _ in range(4):
        log.append(2, leader_epoch=1)
        log.roll()
    assert stream.trigger() == list(range(3, 27))
    assert "had read up to offset 18" in stream.reported[0]


def test_a_batch_across_the_end_of_what_was_read_is_another_one(tmp_path):
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path, fail_on_data_loss=False)
    log.append(2)
    assert stream.trigger() == list(range(6))
    with log.file.open("r+b") as file:
        file.truncate(log.file.stat().st_size // 2)
    log.next = 3
    log.append(count=7)
    assert stream.trigger() == list(range(3, 10))
    assert "truncated to offset 3" in stream.reported[0]


def test_a_topic_that_was_created_again_is_reported_and_read_from_its_beginning(tmp_path):
    log = Log(tmp_path / "t-0")
    strict, lenient = Stream(tmp_path), Stream(tmp_path, fail_on_data_loss=False)
    (log.folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {ID}")
    log.append(2)
    assert strict.trigger() == lenient.trigger() == list(range(6))
    shutil.rmtree(log.folder)
    log = Log(tmp_path / "t-0")
    (log.folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {ID[::-1]}")
    log.append(4)  # longer than what was read
    with pytest.raises(DataLossError, match=f"deleted and created again .its id was {ID} and is {ID[::-1]}"):
        strict.trigger()
    assert lenient.trigger() == list(range(12))
    assert len(lenient.reported) == 1


def test_a_folder_that_is_gone_is_reported_once_and_goes_on_where_it_was(tmp_path):
    log, other = Log(tmp_path / "in" / "t-0"), Log(tmp_path / "in" / "t-1")
    strict, lenient = Stream(tmp_path / "in"), Stream(tmp_path / "in", fail_on_data_loss=False)
    log.append()
    strict.trigger()
    lenient.trigger()
    log.folder.rename(tmp_path / "away")
    other.append()
    with pytest.raises(DataLossError, match="t-0 is gone after offset 3 was read"):
        strict.trigger()
    assert lenient.trigger() == [0, 1, 2]
    assert lenient.trigger() == []
    assert len(lenient.reported) == 1
    (tmp_path / "away").rename(log.folder)
    log.append()
    assert lenient.trigger() == [3, 4, 5]
    assert len(lenient.reported) == 1


def test_topics_of_a_narrower_choice_are_not_gone(tmp_path):
    logs, stream = [Log(tmp_path / "a-0"), Log(tmp_path / "b-0")], Stream(tmp_path)
    for log in logs:
        log.append()
    stream.trigger()
    stream.options = words.SourceOptions(paths=(str(tmp_path),), topic=("b",))
    logs[0].append()
    logs[1].append()
    assert stream.trigger() == [3, 4, 5]


def test_what_a_planned_trigger_lacks_when_it_is_run_again_is_reported(tmp_path):
    """A driver that was killed repeats its planned trigger, but retention has deleted some of its records."""
    log, stream = Log(tmp_path / "t-0"), Stream(tmp_path, fail_on_data_loss=False)
    log.append()
    gone = log.file
    log.roll()
    log.append()
    assert stream.trigger() == list(range(6))
    gone.unlink()
    assert stream.replay({}, stream.at) == [3, 4, 5]
    assert stream.reported == [f"{log.folder}: offsets 0 to 2 are gone"]


@pytest.mark.parametrize("named", [True, False])
def test_another_log_in_place_of_a_planned_one_is_reported_when_a_trigger_is_run_again(tmp_path, named):
    """A driver is killed; before it starts again, the topic is deleted and created again."""
    log = Log(tmp_path / "t-0")
    strict, lenient = Stream(tmp_path), Stream(tmp_path, fail_on_data_loss=False)
    if named:
        (log.folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {ID}")
    log.append(3)
    first = streaming.advance(strict.options, {}, TriggerLimits(records=4)).offsets
    log.append()
    end = streaming.advance(strict.options, first, NONE).offsets
    shutil.rmtree(log.folder)
    log = Log(tmp_path / "t-0")
    if named:
        (log.folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {ID[::-1]}")
    log.append(6, base_timestamp=9)
    with pytest.raises(DataLossError, match="after Spark planned to read"):
        strict.replay(first, end)
    assert lenient.replay(first, end) == []
    assert len(lenient.reported) == 1
    lenient.at = end
    assert lenient.trigger() == list(range(18)), "what the next trigger finds is the other log"


def test_a_log_that_is_cut_back_before_a_planned_trigger_is_run_again(tmp_path):
    log = Log(tmp_path / "t-0")
    strict, lenient = Stream(tmp_path), Stream(tmp_path, fail_on_data_loss=False)
    log.append(4)
    start = streaming.advance(strict.options, {}, TriggerLimits(records=3)).offsets
    end = streaming.advance(strict.options, start, NONE).offsets
    assert strict.replay(start, end) == list(range(3, 12))
    os.truncate(log.file, log.file.stat().st_size // 2)
    log.next = 6
    log.append(5, leader_epoch=1)
    with pytest.raises(DataLossError, match="truncated to offset 6 after Spark planned to read up to offset 12"):
        strict.replay(start, end)
    assert lenient.replay(start, end) == [3, 4, 5]
    lenient.at = end
    assert lenient.trigger() == list(range(6, 21))
