"""Remote storage compared with the segments listed in __remote_log_metadata."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from testing import forge, tiered
from testing.processes import kdump
from testing.tiered import COPIED, COPYING, DELETED, DELETING, Segment, Store, write_metadata

HOUR = 3_600_000
NOW = tiered.TIME + 10 * HOUR


def batches(first, end, epoch=0):
    return b"".join(
        forge.batch([forge.record(b"k", b"v")], base_offset=at, leader_epoch=epoch) for at in range(first, end)
    )


def segments(*borders):
    """Segments with these offsets: the end of one is the start of the next."""
    return [
        Segment(first, end - 1, batches(first, end), number, epochs=((0, first),))
        for number, (first, end) in enumerate(pairwise(borders))
    ]


def copied(*held):
    """The records of segments whose copies were finished."""
    return [value for one in held for value in (one.added(), one.changed(COPIED))]


class Stage:
    """A log dir whose local log begins at an offset, and a remote store."""

    def __init__(self, root, *held, start=9, epochs=((0, 0),)):
        self.logs, self.store = root / "logs", Store(root / "store", compress=True)
        for one in held:
            self.store.write(one)
        folder = self.logs / "t-0"
        folder.mkdir(parents=True)
        (folder / f"{start:020}.log").write_bytes(batches(start, start + 3, epochs[-1][0]))
        (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {tiered.uuid(tiered.TOPIC_ID)}")
        lines = "".join(f"{epoch} {offset}\n" for epoch, offset in epochs)
        (folder / "leader-epoch-checkpoint").write_text(f"0\n{len(epochs)}\n{lines}")

    def check(self, values, *args, status=0, at=NOW):
        """Return what `kdump check` reports: kind and text of each finding that is not a remark."""
        write_metadata(self.logs, values)
        given = ("--remote", self.store.root, "--at", at, "-o", "jsonl", *args)
        done = kdump("check", self.logs, *given)
        assert done.returncode == status, (done.stdout.decode(), done.stderr.decode())
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        kinds = {"unlisted", "index"}
        return [
            (line["check"], line["text"])
            for line in lines
            if "check" in line and (line["check"].startswith("remote") or line["check"] in kinds)
        ]


@pytest.fixture
def held():
    return segments(0, 3, 6, 9)


def test_what_is_listed_and_there_is_no_finding(tmp_path, held):
    assert Stage(tmp_path, *held).check(copied(*held)) == []


def test_a_listed_segment_that_is_absent(tmp_path, held):
    ((kind, text),) = Stage(tmp_path, held[0], held[2]).check(copied(*held), status=3)
    assert kind == "remote absent"
    assert text == "the segment is listed as copied (offsets 3 to 5), but is not in remote storage"


def test_of_an_absent_segment_that_is_local_too_it_is_said(tmp_path, held):
    ((_, text),) = Stage(tmp_path, *held[:2], start=6).check(copied(*held), status=3)
    assert text.endswith("; the local log still has these offsets")


def test_a_segment_that_is_not_listed(tmp_path, held):
    extra = Segment(3, 5, batches(3, 6), 77)
    ((kind, text),) = Stage(tmp_path, *held, extra).check(copied(*held), status=4)
    assert (kind, text) == ("unlisted", "the segment is not listed: no broker reads or deletes it")


def test_a_deleted_segment_that_is_still_there_is_not_listed(tmp_path, held):
    gone = [held[0].changed(DELETING), held[0].changed(DELETED)]
    ((kind, _),) = Stage(tmp_path, *held).check([*copied(*held), *gone], status=4)
    assert kind == "unlisted"


def test_a_copy_that_is_stuck(tmp_path, held):
    stage = Stage(tmp_path, *held[:2], start=6)
    values = [*copied(*held[:2]), held[2].added(COPYING)]
    assert stage.check(values, at=tiered.TIME + HOUR) == []
    ((kind, text),) = stage.check(values, status=4)
    assert (kind, text) == ("remote copy", "the copy of the segment began 10 h ago and is not listed as finished")


def test_a_deletion_that_is_stuck(tmp_path, held):
    stage = Stage(tmp_path, *held)
    values = [*copied(*held), held[0].changed(DELETING)]
    assert stage.check(values, at=tiered.TIME + 1000 + HOUR) == []
    ((kind, text),) = stage.check(values, status=4)
    assert (kind, text) == (
        "remote deletion",
        "the deletion of the segment began 9 h ago and is not listed as finished",
    )


def test_a_deletion_of_a_partition_that_is_stuck(tmp_path, held):
    stage = Stage(tmp_path, *held)
    ((kind, text),) = stage.check([*copied(*held), held[0].partition_deleted(0)], status=4)
    assert (kind, text[:25]) == ("remote deletion", "the deletion of the parti")


def test_the_segments_of_a_deleted_partition_are_not_listed(tmp_path, held):
    values = [*copied(*held), held[0].partition_deleted(0), held[0].partition_deleted(2)]
    ((kind, text),) = Stage(tmp_path, held[0]).check(values)
    assert (kind, text.partition(",")[0]) == ("unlisted", "remote storage has 1 segment of the partition")


def test_a_hole_between_copied_segments(tmp_path, held):
    ((kind, text),) = Stage(tmp_path, held[0], held[2]).check(copied(held[0], held[2]), status=3)
    assert (kind, text) == ("remote hole", "offsets 3 to 5 are missing: no remote or local segment has them")


def test_a_hole_in_front_of_the_local_log(tmp_path, held):
    ((kind, text),) = Stage(tmp_path, *held[:2]).check(copied(*held[:2]), status=3)
    assert (kind, text) == ("remote hole", "offsets 6 to 8 are missing: no remote or local segment has them")


def test_a_hole_that_the_local_log_fills_is_none(tmp_path, held):
    assert Stage(tmp_path, held[0], held[2], start=3).check(copied(held[0], held[2])) == []


def test_epochs_that_begin_after_their_segment(tmp_path, held):
    odd = replace(held[1], epochs=((0, 4),))
    ((kind, text),) = Stage(tmp_path, held[0], odd, held[2]).check(copied(held[0], odd, held[2]), status=3)
    assert kind == "remote epoch"
    assert text.startswith("the leader epochs of the segment begin at offset 4, but the segment begins at 3")


def test_epochs_that_fall(tmp_path, held):
    odd = replace(held[1], epochs=((0, 3), (0, 4)))
    ((kind, text),) = Stage(tmp_path, held[0], odd, held[2]).check(copied(held[0], odd, held[2]), status=3)
    assert (kind, text[:45]) == ("remote epoch", "the leader epochs of the segment and their st")


def test_an_epoch_of_the_log_that_is_not_listed(tmp_path, held):
    stage = Stage(tmp_path, *held, epochs=((0, 0), (1, 4), (2, 9)))
    ((kind, text), *rest) = stage.check(copied(held[0], held[1]) + copied(replace(held[2], epochs=((1, 6),))), status=3)
    assert rest == []
    assert kind == "remote epoch"
    assert text.startswith("leader epoch 1, from offset 4 on, is not listed with the segment: a broker does not find")


def test_a_segment_of_another_lineage_is_a_remark_and_fills_no_hole(tmp_path, held):
    other = replace(held[1], epochs=((7, 3),))
    first, second = Stage(tmp_path, held[0], other, held[2]).check(copied(held[0], other, held[2]), status=3)
    assert first == ("remote epoch", "the local log has none of the leader epochs of this segment (7)")
    assert second[0] == "remote hole"


def test_a_segment_of_another_size(tmp_path, held):
    values = [held[0].added(size=1), held[0].changed(COPIED), *copied(*held[1:])]
    ((kind, text),) = Stage(tmp_path, *held).check(values, status=3)
    assert (kind, text) == ("remote size", "the size of the segment differs from its size in __remote_log_metadata")


def test_without_metadata_nothing_is_known(tmp_path, held):
    ((kind, text),) = Stage(tmp_path, *held).check([])
    assert kind == "unlisted"
    assert "the list of remote segments is unknown" in text


def test_of_a_partition_that_another_partition_of_the_metadata_lists_there_is_a_remark(tmp_path, held):
    other = Segment(0, 2, batches(0, 3), 50, topic="other")
    found = Stage(tmp_path, *held, other).check(copied(*held))
    text = "remote storage has 1 segment of the partition, but __remote_log_metadata in the given paths lists none"
    assert found == [("unlisted", text)]


def test_other_topics_are_left_alone(tmp_path, held):
    listed = Segment(0, 2, batches(0, 3), 50, topic="other")
    stage = Stage(tmp_path, *held)
    assert [kind for kind, _ in stage.check(copied(*held, listed), status=3)] == ["remote absent"]
    assert stage.check(copied(*held, listed), "--topic", "t") == []


def test_records_of_remote_segments_are_checked(tmp_path, held):
    broken = replace(held[1], data=held[1].data[:80] + b"\xff" + held[1].data[81:])
    stage = Stage(tmp_path, held[0], broken, held[2])
    write_metadata(stage.logs, copied(*held))
    done = kdump("check", stage.logs, "--remote", stage.store.root, "--at", NOW)
    assert done.returncode == 3
    assert b"AAAAAAAAAAQ.log byte 70: 70 bytes cannot be read" in done.stdout
    assert b"recover" not in done.stdout, "no broker starts on remote storage"
