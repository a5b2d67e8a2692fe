"""The segments that ``__remote_log_metadata`` lists, and how far a partition is copied."""

import pytest

from kdump.errors import SILENT
from kdump.log_dirs.finder import Finder
from kdump.log_reader.remote_segments import TopicIdPartition, of_partitions
from testing import tiered
from testing.tiered import COPIED, DELETED, DELETING


@pytest.mark.parametrize(
    ("states", "end", "listed"),
    [
        ([COPIED], 99, 1),
        ([COPIED, DELETING], 99, 1),
        ([COPIED, DELETING, DELETED], 99, 0),
        ([], None, 1),
        ([DELETING], None, 1),  # a copy that failed: a broker copies the segment again
        ([DELETING, DELETED], None, 0),
    ],
)
def test_only_a_copy_that_ended_counts(tmp_path, states, end, listed):
    """RemoteLogMetadataCache raises the highest offset of a leader epoch at COPY_SEGMENT_FINISHED only."""
    segment = tiered.Segment(0, 99)
    tiered.write_metadata(tmp_path, [segment.added(), *map(segment.changed, states)])
    found = of_partitions(Finder().find([str(tmp_path)]), SILENT)
    assert found.last_copied.get(TopicIdPartition("t", tiered.TOPIC_ID, 0)) == end
    assert len(found.segments) == listed


@pytest.mark.parametrize(("state", "copied"), [(0, [99]), (1, [99]), (2, [])])
def test_a_deleted_partition_has_no_segments(tmp_path, state, copied):
    """RemotePartitionMetadataStore forgets a partition at DELETE_PARTITION_FINISHED."""
    segment = tiered.Segment(0, 99)
    tiered.write_metadata(tmp_path, [segment.added(), segment.changed(COPIED), segment.partition_deleted(state)])
    found = of_partitions(Finder().find([str(tmp_path)]), SILENT)
    assert found.known
    assert [one.end for one in found.segments.values()] == list(found.last_copied.values()) == copied
    assert len(found.deletions) == len(copied)


@pytest.mark.parametrize(
    ("wrong", "receiver", "text"),
    [
        (
            b"\1\0\0\7",
            "damage",
            "offset 1: RemoteLogSegmentMetadataRecord v0",
        ),
        (b"\1\x63\0", "note", "offset 1: record type 99 is unknown"),
    ],
)
def test_unreadable_records_are_reported(tmp_path, wrong, receiver, text):
    segment = tiered.Segment(0, 99)
    tiered.write_metadata(tmp_path, [segment.added(), wrong, segment.changed(COPIED), wrong])
    reports = []
    found = of_partitions(Finder().find([str(tmp_path)]), SILENT._replace(**{receiver: reports.append}))
    assert list(found.last_copied.values()) == [99]
    (report,) = reports
    assert report.startswith(
        str(tmp_path / "__remote_log_metadata-0" / f"{0:020}.log: 2 records cannot be decoded, the first at {text}")
    )


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_an_older_replica_does_not_restore_deleted_segments(tmp_path, order):
    segment = tiered.Segment(0, 99)
    states = [segment.added(), segment.changed(COPIED), segment.changed(DELETING), segment.changed(DELETED)]
    tiered.write_metadata(tmp_path / "a", states)
    tiered.write_metadata(tmp_path / "b", states[:2])
    found = of_partitions(Finder().find([str(tmp_path / name) for name in order]), SILENT)
    assert found.segments == {}


def test_damaged_bytes_are_reported(tmp_path):
    segment = tiered.Segment(0, 99)
    tiered.write_metadata(tmp_path, [segment.added(), segment.changed(COPIED)])
    path = tmp_path / "__remote_log_metadata-0" / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    reports = []
    found = of_partitions(Finder().find([str(tmp_path)]), SILENT._replace(damage=reports.append))
    assert found.is_damaged
    (report,) = reports
    assert report.startswith(f"{path}: byte ")
