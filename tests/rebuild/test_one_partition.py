"""The plan of a partition: copies of several nodes, damaged, diverged, compacted, tiered."""

import errno
import os

import pytest

from kdump.formats.leader_epoch import EpochEntry
from kdump.segments import resync
from tests.helpers.counting import calls
from tests.rebuild.replicas import batch, batches, copy, flipped, log_of, plan

HEALTHY = batches(0, 3, 5, 9)


def states(found):
    return found.state, [(one.from_offset, one.until_offset) for one in found.lost]


def test_the_copy_with_the_highest_end_is_taken_whole(tmp_path):
    copy(tmp_path, 1, {0: batches(0, 3, 5)})
    best = copy(tmp_path, 2, {0: HEALTHY})
    found = plan(tmp_path)
    assert states(found) == ("whole", [])
    assert log_of(found) == {0: HEALTHY}
    assert [one.path for one in found.sources] == [str(best)]
    assert (found.log_start, found.end, found.leader_epoch) == (0, 9, 0)


def test_the_newest_leader_epoch_wins_and_the_other_tail_has_no_place(tmp_path):
    copy(tmp_path, 1, {0: batches(0, 3, 5) + batches(5, 6, 9, 12, text="old")}, epochs=[(0, 0)])
    copy(tmp_path, 2, {0: batches(0, 3, 5) + batches(5, 7, epoch=2)}, epochs=[(0, 0), (2, 5)])
    found = plan(tmp_path)
    assert states(found) == ("whole", [])
    assert found.end == 7
    assert [(one.kind, one.missing_from, one.missing_until) for one in found.left_out] == [("diverged", 5, 12)]
    assert found.epochs == (EpochEntry(0, 0), EpochEntry(2, 5))


def test_a_leader_without_a_record_of_its_own_still_ends_the_older_tail(tmp_path):
    copy(tmp_path, 1, {0: HEALTHY}, epochs=[(0, 0)])
    copy(tmp_path, 2, {0: batches(0, 3, 5)}, epochs=[(0, 0), (1, 5)])
    found = plan(tmp_path)
    assert (found.end, found.leader_epoch) == (5, 1)
    assert [(one.kind, one.missing_from, one.missing_until) for one in found.left_out] == [("diverged", 5, 9)]


def test_a_checkpoint_that_the_batches_contradict_is_not_believed(tmp_path):
    copy(tmp_path, 1, {0: HEALTHY}, epochs=[(0, 0), (7, 3)])
    found = plan(tmp_path)
    assert states(found) == ("whole", [])
    assert log_of(found) == {0: HEALTHY}


@pytest.mark.parametrize("position", range(61))
def test_a_flipped_bit_in_a_header_is_repaired_from_another_copy(tmp_path, position):
    size = len(batches(0, 3))
    copy(tmp_path, 1, {0: flipped(HEALTHY, size + position)}, epochs=[(0, 0)])
    copy(tmp_path, 2, {0: flipped(HEALTHY, size - 1)}, epochs=[(0, 0)])
    found = plan(tmp_path)
    assert states(found)[1] == []
    assert log_of(found) == {0: HEALTHY}


def test_each_copy_is_damaged_elsewhere_and_the_merge_has_all(tmp_path):
    size = len(batches(0, 3))
    for node, at in enumerate((70, size + 70, len(HEALTHY) - 1)):
        copy(tmp_path, node, {0: flipped(HEALTHY, at)}, epochs=[(0, 0)])
    found = plan(tmp_path)
    assert states(found) == ("merged", [])
    assert log_of(found) == {0: HEALTHY}
    assert found.repaired
    assert found.left_out == ()


def test_what_no_copy_has_is_lost_with_the_reason(tmp_path):
    size = len(batches(0, 3))
    damaged = flipped(HEALTHY, size + 70)
    copy(tmp_path, 1, {0: damaged})
    copy(tmp_path, 2, {0: damaged})
    found = plan(tmp_path)
    assert states(found) == ("partial", [(3, 5)])
    assert f"damaged at byte {size} of " in found.lost[0].why
    assert ".log, and no other copy has these offsets: the checksum is wrong" in found.lost[0].why
    assert log_of(found) == {0: batches(0, 3) + batches(5, 9)}
    assert [(one.position, one.missing_from, one.missing_until) for one in found.left_out] == [(size, 3, 5)] * 2


@pytest.mark.parametrize("bit", range(8))
@pytest.mark.parametrize("position", [*range(8), *range(12, 16)])
def test_a_wrong_offset_or_epoch_in_the_only_copy_is_corrected(tmp_path, position, bit):
    size = len(batches(0, 3))
    copy(tmp_path, 1, {0: flipped(HEALTHY, size + position, bit)}, epochs=[(0, 0)])
    found = plan(tmp_path)
    assert states(found) == ("whole", [])
    assert log_of(found) == {0: HEALTHY}
    assert found.repaired


def test_a_lost_tail_keeps_its_offsets(tmp_path):
    copy(tmp_path, 1, {0: flipped(HEALTHY, len(HEALTHY) - 1)})
    found = plan(tmp_path)
    assert states(found) == ("partial", [(5, 9)])
    assert (found.end, list(log_of(found))) == (9, [0, 9])


def test_a_batch_that_the_end_of_the_file_cuts_off_is_lost(tmp_path):
    copy(tmp_path, 1, {0: HEALTHY[:-1]})
    assert states(plan(tmp_path)) == ("partial", [(5, 9)])


def test_a_high_watermark_above_the_end_shows_a_loss(tmp_path):
    copy(tmp_path, 1, {0: HEALTHY}, replication=12)
    found = plan(tmp_path)
    assert states(found) == ("partial", [(9, 12)])
    assert (found.end, log_of(found)) == (12, {0: HEALTHY, 12: b""})


def test_the_end_of_an_empty_last_segment_stays(tmp_path):
    copy(tmp_path, 1, {9: b""})
    found = plan(tmp_path)
    assert (found.state, found.log_start, found.end, log_of(found)) == ("whole", 9, 9, {9: b""})


def test_log_start_offsets_are_kept_and_whole_segments_below_are_not(tmp_path):
    copy(tmp_path, 1, {0: batches(0, 3), 3: batches(3, 5), 5: batches(5, 9)}, log_start=4)
    copy(tmp_path, 2, {0: batches(0, 3), 3: batches(3, 5), 5: batches(5, 9)}, log_start=1)
    found = plan(tmp_path)
    assert (found.state, found.log_start, list(log_of(found))) == ("whole", 4, [3, 5])


def test_a_log_start_offset_above_the_end_is_not_believed(tmp_path):
    copy(tmp_path, 1, {0: HEALTHY}, log_start=900)
    assert (plan(tmp_path).log_start, plan(tmp_path).end) == (0, 9)


def test_a_compacted_log_keeps_the_name_of_its_first_segment_and_its_gaps(tmp_path):
    last = batch(20, 2) + batch(30)
    copy(tmp_path, 1, {0: b"", 10: batch(14) + batch(17, 2), 20: last})
    found = plan(tmp_path, is_compacted=True)
    assert states(found) == ("whole", [])
    assert (found.log_start, found.end, list(log_of(found))) == (0, 31, [0, 10, 20])


def test_in_a_compacted_log_only_what_may_have_been_there_is_lost(tmp_path):
    first, second, third = batch(3), batch(14, 2), batch(30)
    copy(tmp_path, 1, {0: first + flipped(second, 65) + third})
    found = plan(tmp_path, is_compacted=True)
    assert states(found) == ("partial", [(14, 16)])
    copy(tmp_path, 2, {0: flipped(first, 65) + second + third})
    found = plan(tmp_path, is_compacted=True)
    assert states(found) == ("merged", [])
    assert log_of(found) == {0: first + second + third}


def test_a_deleted_key_does_not_come_back_from_a_damaged_copy(tmp_path):
    copy(tmp_path, 1, {0: batch(3) + flipped(batch(5), 65) + batch(30)})
    copy(tmp_path, 2, {0: batch(3) + batch(9) + flipped(batch(12), 65) + batch(30)})
    found = plan(tmp_path, is_compacted=True)
    assert log_of(found)[0] == batch(3) + batch(30)  # the cleaner removed offset 9 where the first copy is undamaged
    assert states(found) == ("whole", [])  # and offset 5 where the second one is


@pytest.mark.parametrize("end", [12, 15, 20])
def test_a_deleted_key_does_not_come_back_from_a_copy_of_an_earlier_moment(tmp_path, end):
    ends = [0, 3, 8, 12, 15, 20]
    copy(tmp_path, 1, {0: batch(0, 3) + flipped(batch(8, 4), 65), 20: batch(20, 5)})
    copy(tmp_path, 2, {0: batches(*(one for one in ends if one <= end))})
    found = plan(tmp_path, is_compacted=True)
    # Only a copy that reaches the last segment has the tombstones of the keys in offsets 3 to 7 for certain.
    others = batch(8, 4) if end < 20 else batches(*ends[1:])
    assert log_of(found) == {0: batch(0, 3) + others, 20: batch(20, 5)}
    assert states(found) == ("merged", [])


def test_a_missing_segment_comes_from_another_copy_under_its_name(tmp_path):
    segments = {0: batches(0, 3), 3: batches(3, 5), 5: batches(5, 9)}
    copy(tmp_path, 1, {0: segments[0], 5: segments[5]}, epochs=[(0, 0), (1, 9)])
    copy(tmp_path, 2, segments, epochs=[(0, 0)])
    found = plan(tmp_path)
    assert states(found) == ("merged", [])
    assert log_of(found) == segments


def test_the_first_segment_is_missing_and_its_index_is_not(tmp_path):
    copy(tmp_path, 1, {3: batches(3, 5)}, files={f"{0:020}.index": b""})
    found = plan(tmp_path)
    assert states(found) == ("partial", [(0, 3)])
    assert found.log_start == 0


def test_committed_only_ends_at_the_high_watermark(tmp_path):
    copy(tmp_path, 1, {0: HEALTHY}, replication=5)
    assert (plan(tmp_path).uncommitted, plan(tmp_path).end) == (4, 9)
    found = plan(tmp_path, committed_only=True)
    assert (found.state, found.end, log_of(found)) == ("whole", 5, {0: batches(0, 3, 5)})
    assert found.uncommitted == 4
    assert [(one.kind, one.missing_from, one.missing_until) for one in found.left_out] == [("uncommitted", 5, 9)]


def test_offsets_of_a_batch_around_the_high_watermark_are_left_out_and_not_absent(tmp_path):
    copy(tmp_path, 1, {0: HEALTHY}, replication=4)
    found = plan(tmp_path, committed_only=True)
    assert [(one.missing_from, one.missing_until) for one in found.left_out] == [(3, 9)]
    assert (plan(tmp_path).uncommitted, found.uncommitted) == (5, 6)
    (lost,) = found.lost
    why = "the batch has offsets at or above the high watermark 4"
    assert (lost.from_offset, lost.until_offset, lost.why) == (
        3,
        4,
        f"their batch is left out by --committed-only: {why}",
    )


@pytest.mark.parametrize("position", [7, 15], ids=["base offset", "leader epoch"])
def test_a_corrected_batch_above_the_high_watermark_is_listed_as_left_out(tmp_path, position):
    size = len(batches(0, 3))
    copy(tmp_path, 1, {0: flipped(HEALTHY, size + position)}, epochs=[(0, 0)], replication=3)
    found = plan(tmp_path, committed_only=True)
    assert (found.state, found.end, log_of(found)) == ("whole", 3, {0: batches(0, 3)})
    left = [(one.position, one.kind, one.missing_from, one.missing_until) for one in found.left_out]
    assert left == [(size, "uncommitted", 3, 9)]


def test_a_partition_that_no_volume_has_begins_where_it_is_known_to_have_come(tmp_path):
    copy(tmp_path, 1, {0: HEALTHY})
    found = plan(tmp_path, "orders-7", known_end=123)
    assert (found.state, found.log_start, found.end, log_of(found)) == ("lost", 123, 123, {123: b""})
    assert states(found)[1] == [(0, 123)]


def test_a_tiered_log_keeps_its_start_and_its_old_leader_epochs(tmp_path):
    copy(tmp_path, 1, {5: batches(5, 9, epoch=4)}, epochs=[(0, 0), (4, 3)], log_start=1)
    found = plan(tmp_path, is_tiered=True)
    assert states(found) == ("whole", [])
    assert (found.log_start, found.end, found.epochs) == (1, 9, (EpochEntry(0, 0), EpochEntry(4, 3)))


def test_epochs_without_a_checkpoint_come_from_other_copies(tmp_path):
    copy(tmp_path, 1, {5: batches(5, 9, epoch=4)})
    copy(tmp_path, 2, {5: batches(5, 7, epoch=4)}, epochs=[(0, 0), (4, 3)])
    assert plan(tmp_path, is_tiered=True).epochs == (EpochEntry(0, 0), EpochEntry(4, 3))


@pytest.mark.parametrize(
    ("middle", "checkpoint"),
    [(1, None), (2, None), (1, [(0, 0), (1, 3), (2, 5)]), (2, [(0, 0), (2, 3)])],
)
def test_a_damaged_batch_at_which_an_epoch_begins_comes_from_another_copy(tmp_path, middle, checkpoint):
    """Without a checkpoint, the epochs in the hole of the leading copy are those of a copy with the next epoch."""
    first, second = batches(0, 3), batches(3, 5, epoch=middle)
    log = first + second + batches(5, 7, epoch=2)
    copy(tmp_path, 1, {0: flipped(log, len(first + second) - 1) + batches(7, 9, epoch=2)})
    copy(tmp_path, 2, {0: log}, epochs=checkpoint)
    found = plan(tmp_path)
    assert states(found) == ("merged", [])
    assert log_of(found) == {0: log + batches(7, 9, epoch=2)}
    assert found.left_out == ()


def test_a_folder_without_a_file_is_a_copy_that_holds_nothing(tmp_path):
    copy(tmp_path, 1, {}, topic_id=None)
    copy(tmp_path, 2, {0: HEALTHY})
    assert states(plan(tmp_path)) == ("whole", [])


def test_the_highest_producer_id_is_found(tmp_path):
    copy(tmp_path, 1, {0: batch(0) + batch(1, producer_id=4711, producer_epoch=0, base_sequence=0) + batch(2)})
    assert plan(tmp_path).highest_producer_id == 4711


def test_a_segment_cut_at_every_byte_loses_the_bytes_after_the_cut(tmp_path):
    for size in range(len(HEALTHY) + 1):
        folder = copy(tmp_path / str(size), 1, {0: HEALTHY[:size]})
        found = plan(tmp_path / str(size))
        whole = [cut for cut in (0, len(batches(0, 3)), len(batches(0, 3, 5)), len(HEALTHY)) if cut <= size][-1]
        assert log_of(found)[0] == HEALTHY[:whole]
        assert (folder / f"{0:020}.log").stat().st_size == size


def test_garbage_after_the_last_batch_is_left_out(tmp_path):
    copy(tmp_path, 1, {0: HEALTHY + b"garbage" * 20})
    found = plan(tmp_path)
    assert (states(found), log_of(found)) == (("whole", []), {0: HEALTHY})


def test_a_copy_without_an_id_counts_where_it_shares_a_batch(tmp_path):
    copy(tmp_path, 1, {0: batches(0, 3, 5)}, epochs=[(0, 0)])
    copy(tmp_path, 2, {0: HEALTHY}, epochs=[(0, 0)], topic_id=None)
    assert log_of(plan(tmp_path)) == {0: HEALTHY}
    copy(tmp_path, 3, {0: batches(0, 4, 12, text="older")}, epochs=[(7, 0)], topic_id=None)
    found = plan(tmp_path)
    assert log_of(found) == {0: HEALTHY}
    assert "node-3/orders-0 is left out" in found.notes[0]


def test_a_copy_without_an_id_and_without_a_common_offset_counts(tmp_path):
    copy(tmp_path, 1, {0: bytes(61) + batches(5, 9)}, topic_id=None, replication=12)
    copy(tmp_path, 2, {0: batches(0, 3, 5)})
    found = plan(tmp_path)
    assert (states(found), b"".join(log_of(found).values())) == (("partial", [(9, 12)]), HEALTHY)


def test_a_copy_of_another_topic_is_kept_in_lost_and_found(tmp_path):
    copy(tmp_path, 1, {0: HEALTHY})
    other = copy(tmp_path, 2, {0: batches(0, 4, 12, text="older")}, topic_id=None)
    found = plan(tmp_path)
    (left,) = found.left_out
    assert (left.segment.path, left.position, left.size) == (
        f"{other}/{0:020}.log",
        0,
        len(batches(0, 4, 12, text="older")),
    )
    assert (left.kind, found.repaired) == ("other topic", True)


def test_a_gap_between_consecutive_batches_is_of_the_cleaner(tmp_path):
    log = batch(0) + batch(7, 2) + batch(11, epoch=3)
    copy(tmp_path, 1, {0: log, 20: batch(20, epoch=3)})
    found = plan(tmp_path)
    assert (states(found), log_of(found)) == (("whole", []), {0: log, 20: batch(20, epoch=3)})


def test_a_wrong_leader_epoch_of_a_single_batch_between_others_is_corrected(tmp_path):
    log = [batch(0, 3, epoch=4), batch(3, 2, epoch=4), batch(5, 4, epoch=4)]
    for number, wrong in enumerate([0, 5, 6, 4 | 1 << 30]):
        for at in range(len(log)):
            parts = [*log[:at], log[at][:12] + wrong.to_bytes(4, "big") + log[at][16:], *log[at + 1 :]]
            root = tmp_path / f"{number}-{at}"
            copy(root, 1, {0: parts[0], 3: b"".join(parts[1:])}, epochs=[(4, 0)])
            assert log_of(plan(root)) == {0: log[0], 3: log[1] + log[2]}, (wrong, at)


def test_a_checkpoint_shows_a_wrong_leader_epoch_of_the_first_batch(tmp_path):
    log = batch(0, 5, epoch=1) + batches(5, 8, 10, epoch=5)
    copy(tmp_path, 1, {0: flipped(log, 15)}, epochs=[(1, 0), (5, 5)])
    assert log_of(plan(tmp_path)) == {0: log}


def test_a_checkpoint_shows_a_wrong_leader_epoch_of_the_first_batch_of_a_leader(tmp_path):
    log = [batch(0, 5, epoch=1), batch(5, 1, epoch=3), batch(6, 3, epoch=3)]
    copy(tmp_path, 1, {0: log[0], 5: flipped(log[1], 15, 1) + log[2]}, epochs=[(1, 0), (3, 5)])
    assert log_of(plan(tmp_path)) == {0: log[0], 5: log[1] + log[2]}


def test_a_checkpoint_of_another_copy_shows_a_wrong_leader_epoch_of_the_last_batch(tmp_path):
    log = batches(0, 3, 5) + batch(5, 4, epoch=4)
    copy(tmp_path, 1, {0: flipped(log, len(log) - len(batch(5, 4)) + 12, 1)})
    copy(tmp_path, 2, {0: batches(0, 3, 5)}, epochs=[(0, 0), (4, 5)])
    found = plan(tmp_path)
    assert (log_of(found), found.leader_epoch) == ({0: log}, 4)


def test_a_new_leader_epoch_of_the_last_batch_counts_without_a_checkpoint(tmp_path):
    log = batches(0, 3, 5, epoch=4) + batch(5, 4, epoch=5)
    copy(tmp_path, 1, {0: log})
    copy(tmp_path, 2, {0: batches(0, 3, epoch=4)}, epochs=[(4, 0)])
    found = plan(tmp_path)
    assert (log_of(found), found.leader_epoch) == ({0: log}, 5)


def test_a_corrected_batch_of_an_older_leader_has_no_place(tmp_path):
    tail = batches(5, 8, 10, epoch=2) + flipped(batch(10, 3, epoch=2), 15, 3)
    copy(tmp_path, 1, {0: batches(0, 3, 5, epoch=1) + tail}, epochs=[(1, 0), (2, 5)], replication=5)
    copy(tmp_path, 2, {0: b""}, epochs=[(1, 0), (5, 5)], replication=7)
    found = plan(tmp_path)
    assert (states(found), list(log_of(found))) == (("partial", [(5, 7)]), [0, 7])
    assert {one.kind for one in found.left_out} == {"diverged"}


def test_a_base_offset_in_zeros_is_found_by_the_next_batch(tmp_path):
    first = len(batches(0, 3))
    log = batches(0, 3, 6, 9, 11)
    copy(tmp_path, 1, {0: log[: first - 20] + bytes(28) + log[first + 8 :]}, epochs=[(0, 0)])
    found = plan(tmp_path)
    assert states(found) == ("partial", [(0, 3)])
    assert log_of(found) == {0: log[first:]}


def test_a_base_offset_is_found_by_the_headers_of_a_damaged_batch_before_it(tmp_path):
    first, second = len(batches(0, 3)), len(batches(0, 3, 5))
    log = flipped(HEALTHY, second - 1)
    for bit in range(8):
        copy(tmp_path / str(bit), 1, {0: flipped(log, second + 5, bit)}, epochs=[(0, 0)])
        found = plan(tmp_path / str(bit))
        assert states(found) == ("partial", [(3, 5)])
        assert (found.end, log_of(found)) == (9, {0: HEALTHY[:first] + HEALTHY[second:]})


def test_two_wrong_bits_in_the_offset_of_the_last_batch(tmp_path):
    last = len(batches(0, 3, 5))
    copy(tmp_path, 1, {0: flipped(flipped(HEALTHY, last + 4, 4), last + 5)}, epochs=[(0, 0)])
    assert log_of(plan(tmp_path)) == {0: HEALTHY}


def test_a_wrong_leader_epoch_of_the_last_batch_does_not_lead(tmp_path):
    copy(tmp_path, 1, {0: batches(0, 3) + flipped(batches(3, 5), 13)})
    copy(tmp_path, 2, {0: HEALTHY}, epochs=[(0, 0)])
    found = plan(tmp_path)
    assert (states(found), log_of(found), found.leader_epoch) == (("whole", []), {0: HEALTHY}, 0)


@pytest.mark.parametrize("position", range(8))
@pytest.mark.parametrize("count", [1, 3])
def test_a_wrong_offset_of_the_first_or_last_batch_is_corrected(tmp_path, position, count):
    starts = [40, 43, 45, 49][: count + 1]
    data = batches(*starts)
    for number, at in enumerate({0, len(data) - len(batches(*starts[-2:]))}):
        copy(tmp_path / str(number), 1, {40: flipped(data, at + position, 4)}, epochs=[(0, 40)])
        found = plan(tmp_path / str(number))
        assert (states(found), log_of(found)) == (("whole", []), {40: data})


def test_records_that_the_cluster_deleted_do_not_come_back_from_a_lagging_copy(tmp_path):
    copy(tmp_path, 1, {3: batches(3, 5), 5: batches(5, 9)}, replication=9)
    copy(tmp_path, 2, {0: batches(0, 3), 3: batches(3, 5)}, replication=5)
    found = plan(tmp_path)
    assert (states(found), found.log_start, log_of(found)) == (("whole", []), 3, {3: batches(3, 5), 5: batches(5, 9)})


def test_a_first_segment_that_went_missing_comes_from_a_copy_in_sync(tmp_path):
    copy(tmp_path, 1, {3: batches(3, 5), 5: batches(5, 9)}, replication=9)
    copy(tmp_path, 2, {0: batches(0, 3), 3: batches(3, 5), 5: batches(5, 9)}, replication=9)
    found = plan(tmp_path)
    assert states(found) == ("merged", [])
    assert (found.log_start, list(log_of(found))) == (0, [0, 3, 5])


def test_a_log_without_a_valid_batch_still_ends_where_it_did(tmp_path):
    copy(tmp_path, 1, {0: bytes(200)}, replication=9)
    found = plan(tmp_path)
    assert (states(found), found.end, log_of(found)) == (("partial", [(0, 9)]), 9, {0: b"", 9: b""})


def _other_topic(root, count):
    copy(root, 1, {0: b"".join(batch(2 * n) for n in range(count))})
    copy(root, 2, {0: b"".join(batch(n, text="w") for n in range(2 * count))}, topic_id=None)


def _damaged(root, count):
    for node in (1, 2):
        log = [batch(n) for n in range(count)]
        copy(
            root,
            node,
            {0: b"".join(flipped(one, len(one) - 2) if n % (node + 1) else one for n, one in enumerate(log))},
        )


def _damaged_and_compacted(root, count):
    for node in (1, 2):
        log = [batch(3 * n) for n in range(count)]
        copy(
            root,
            node,
            {0: b"".join(flipped(one, len(one) - 2) if n % (node + 1) else one for n, one in enumerate(log))},
        )


def _missing_segments(root, count):
    copy(
        root,
        1,
        {n: batch(n) for n in range(0, count, 2)},
        files={f"{n:020}.index": b"" for n in range(1, count, 2)},
    )


def _epochs(root, count):
    log = b"".join(batch(n, epoch=n) for n in range(count))
    copy(root, 1, {0: log}, epochs=[(n, n) for n in range(count)])


@pytest.mark.parametrize("kind", [_other_topic, _damaged, _damaged_and_compacted, _missing_segments, _epochs])
def test_the_work_grows_with_the_batches(tmp_path, kind):
    counts = []
    for size in (60, 240):
        kind(tmp_path / str(size), size)
        counts.append(calls(lambda root=tmp_path / str(size): plan(root)))
    assert counts[1] <= 5 * counts[0]


@pytest.mark.parametrize("other", [False, True])
def test_a_log_with_gaps_is_read_once(tmp_path, monkeypatch, other):
    log = b"".join(batch(3 * n, epoch=n // 4) for n in range(12))
    copy(tmp_path, 1, {0: log[:-1], 40: batch(40, epoch=3)})
    if other:
        copy(tmp_path, 2, {0: log}, topic_id=None)
    reads = []
    real = resync.read
    monkeypatch.setattr(
        resync, "read", lambda source, *args, **more: reads.append(source.name) or real(source, *args, **more)
    )
    found = plan(tmp_path)
    assert states(found) == ("partial", [(34, 40) if other else (31, 40)])
    first = str(tmp_path / "node-1" / "orders-0" / f"{0:020}.log")
    assert reads.count(first) == 1 or other  # the batches of two copies are compared one by one
    assert plan(tmp_path, is_compacted=True) == found


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", f"{3:020}.snapshot"])
def test_a_note_has_the_path_of_an_unreadable_file_once(tmp_path, monkeypatch, name):
    folder = copy(tmp_path, 1, {3: batches(3, 5, 9)}, epochs=[(0, 0)])
    closed, opened = str(folder / name), os.open
    (folder / name).write_bytes(b"")

    def refuse(path, *rest, **more):
        if str(path) == closed:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opened(path, *rest, **more)

    monkeypatch.setattr(os, "open", refuse)
    assert [note.count(closed) for note in plan(tmp_path).notes if "Permission denied" in note] == [1]
