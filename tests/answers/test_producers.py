"""Producers of partitions, from snapshots and logs, and breaks in their sequences."""

import pytest

from kdump.formats import producer_snapshot
from kdump.formats.producer_snapshot import ProducerEntry
from testing import forge
from tests.helpers.asking import ask
from tests.helpers.log_dirs import write
from tests.helpers.segments import ABORT, COMMIT, data, marker

FIELDS = ("producerId", "producerEpoch", "lastSequence", "lastTimestampMs", "coordinatorEpoch")
START = "currentTransactionStartOffset"


def producers(*args, status=0):
    """The producers that ``kdump producers ARGS`` lists, as tuples of their fields."""
    lines, said = ask("producers", *args, status=status)
    return [tuple(line[name] for name in (*FIELDS, START)) for line in lines], said


def breaks(tmp_path, *batches):
    """Return the breaks that --gaps finds in a log of these batches."""
    write(tmp_path, "orders-0", {0: b"".join(batches)})
    lines, _ = ask("producers", tmp_path, "--gaps")
    names = ("producerEpoch", "offset", "expected", "found", "what")
    return [tuple(line[name] for name in names) for line in lines if line["kind"] == "sequence"]


def idempotent(offset, sequence, count=1, epoch=0, **rest):
    return data(offset, count, producer=7, producer_epoch=epoch, base_sequence=sequence, attributes=0, **rest)


def test_a_producer_is_known_by_its_last_batch_and_marker(tmp_path):
    log = data(0, 2, producer=7, base_sequence=0, timestamp=100) + data(2) + marker(3, 7, COMMIT, timestamp=200)
    write(tmp_path, "orders-0", {0: log + data(4, 3, producer=8, base_sequence=5, timestamp=300)})
    assert producers(tmp_path)[0] == [(7, 0, 1, 200, 3, None), (8, 0, 7, 300, None, 4)]


def test_a_marker_of_a_newer_epoch_forgets_the_sequence(tmp_path):
    write(tmp_path, "orders-0", {0: data(0, producer=7, base_sequence=0) + marker_of_epoch(1, 7, 1)})
    assert producers(tmp_path)[0] == [(7, 1, -1, 200, 3, None)]


def marker_of_epoch(offset, producer, epoch):
    record = forge.record(b"\0\0\0\1", b"\0\0\0\0\0\3")
    fields = {"base_timestamp": 200, "producer_id": producer, "producer_epoch": epoch, "attributes": 0x30}
    return forge.batch([record], base_offset=offset, **fields)


def test_state_begins_with_the_newest_sound_snapshot(tmp_path):
    folder = write(
        tmp_path, "orders-0", {0: data(0, producer=7, base_sequence=0), 1: data(1, producer=8, base_sequence=0)}
    )
    (folder / f"{1:020}.snapshot").write_bytes(producer_snapshot.encode([ProducerEntry(9, 4, 6, 0, 0, 50, 2, -1)]))
    assert producers(tmp_path)[0] == [(8, 0, 0, 1000, None, 1), (9, 4, 6, 50, 2, None)]
    (folder / f"{2:020}.snapshot").write_bytes(producer_snapshot.encode([ProducerEntry(10, 0, -1, -1, 0, 60, 2, -1)]))
    assert producers(tmp_path)[0] == [(10, 0, -1, 60, 2, None)]


@pytest.mark.parametrize(("content", "status"), [(b"", 0), (b"\0\1garbage", 4), (None, 0)])
def test_without_a_valid_snapshot_the_log_is_read(tmp_path, content, status):
    folder = write(
        tmp_path, "orders-0", {0: data(0, producer=7, base_sequence=0), 1: data(1, producer=8, base_sequence=0)}
    )
    if content is not None:
        (folder / f"{1:020}.snapshot").write_bytes(content)
    found, said = producers(tmp_path, status=status)
    assert [one[0] for one in found] == [7, 8]
    assert "orders-0: no valid producer snapshot" in said


def test_of_two_replicas_the_one_nearer_to_the_leader_counts(tmp_path):
    write(tmp_path / "broker-1", "orders-0", {0: data(0, producer=7, base_sequence=0)})
    write(tmp_path / "broker-2", "orders-0", {0: data(0, producer=7, base_sequence=0) + marker(1, 7, ABORT)})
    found, _ = producers(tmp_path / "broker-1", tmp_path / "broker-2")
    assert found == [(7, 0, 0, 1000, 3, None)]
    assert producers(tmp_path / "broker-2", tmp_path / "broker-1", "--jobs", "2")[0] == found


def test_what_is_legal_is_no_break(tmp_path):
    day = 86_400_000
    log = (
        idempotent(0, 41, 2), idempotent(2, 43), idempotent(3, 2147483646, 3, epoch=0, timestamp=1000 + day),
        idempotent(6, 1, timestamp=1000 + day), idempotent(7, 0, 5, epoch=1, timestamp=1000 + day),
        marker_of_epoch(12, 7, 2), idempotent(13, 0, epoch=2),
    )  # fmt: skip
    assert breaks(tmp_path, *log) == []


def test_a_marker_keeps_the_state_of_its_producer_for_another_day(tmp_path):
    log = idempotent(0, 0, timestamp=0) + marker(1, 7, COMMIT, timestamp=80_000_000)
    assert breaks(tmp_path, log, idempotent(2, 5, timestamp=90_000_000)) == [(0, 2, 1, 5, "gap")]


def test_missing_offsets_account_for_missing_sequences_but_for_no_more(tmp_path):
    assert breaks(tmp_path, idempotent(0, 0), idempotent(3, 3)) == []
    assert breaks(tmp_path, idempotent(0, 0), idempotent(3, 4)) == [(0, 3, 1, 4, "gap")]


def test_gaps_repeats_and_older_epochs_are_breaks(tmp_path):
    assert breaks(tmp_path, idempotent(0, 0, 2), idempotent(2, 3), idempotent(3, 4)) == [(0, 2, 2, 3, "gap")]
    repeat = (idempotent(0, 0, 2), idempotent(2, 0, 2), idempotent(4, 2))
    assert breaks(tmp_path, *repeat) == [(0, 2, 2, 0, "repeat")]
    older = (idempotent(0, 0, epoch=3), idempotent(1, 1, epoch=2), idempotent(2, 1, epoch=3))
    assert breaks(tmp_path, *older) == [(2, 1, 3, 2, "epoch")]
    assert breaks(tmp_path, idempotent(0, 0), idempotent(1, 4, epoch=1)) == [(1, 1, 0, 4, "gap")]


def test_gaps_are_the_same_over_processes(tmp_path):
    for number in range(3):
        write(tmp_path, f"orders-{number}", {0: idempotent(0, 0) + idempotent(1, 5)})
    alone, _ = ask("producers", tmp_path, "--gaps")
    assert len(alone) == 6
    assert ask("producers", tmp_path, "--gaps", "--jobs", "2")[0] == alone


def test_a_marker_without_sense_is_damage(tmp_path):
    bad = forge.batch([forge.record(b"\0", b"")], base_offset=1, producer_id=7, producer_epoch=0, attributes=0x30)
    write(tmp_path, "orders-0", {0: data(0, producer=7, base_sequence=0) + bad})
    found, said = producers(tmp_path, status=3)
    assert found == [(7, 0, 0, 1000, None, 0)]
    assert "the key of a control record is too short" in said
