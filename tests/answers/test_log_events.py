"""What happened to logs: new segments, leader epochs and damage, at the times of neighbouring batches."""

import pytest

from kdump.answers import log_events
from kdump.answers.log_dir_pass import LogDirPass
from kdump.answers.log_events import LogEvents
from kdump.errors import Reporter
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.log_dir_state import LogDirStates
from testing.forge import batch, record
from tests.helpers import log_dirs

AT = 1_700_000_000_000


def one(offset, epoch, at=None):
    ms = AT + offset if at is None else at
    return batch([record(b"k", b"v")], base_offset=offset, base_timestamp=ms, max_timestamp=ms, leader_epoch=epoch)


def gathered(*folders):
    found = LogEvents()
    for folder in folders:
        collector = LogEvents()
        partitions = Finder(Wanted(siblings=True, log_dirs=True)).find([str(folder)])
        states = LogDirStates(Reporter(pytest.fail, fail=pytest.fail))
        LogDirPass([collector], Reporter(damage=str, fail=pytest.fail), states).run(partitions)
        found.merge(collector)
    return [(line.at_ms, line.what, line.partition, line.offset) for line in found.answer(0)]


def test_segments_epochs_and_damage_have_their_times(tmp_path):
    bad = bytearray(one(3, 5))
    bad[-1] ^= 1
    log_dirs.write(tmp_path, "orders-0", {0: one(0, 2) + one(1, 2) + one(2, 5) + bytes(bad), 4: one(4, 5)})
    assert gathered(tmp_path) == [
        (AT, "leader epoch", 0, 0),
        (AT + 2, "leader epoch", 0, 2),
        (AT + 2, "damage", 0, 3),
        (AT + 4, "segment", 0, 4),
    ]


def test_many_batches_alike_in_one_run(tmp_path):
    log_dirs.write(tmp_path, "orders-0", {0: b"".join(one(offset, offset // 40) for offset in range(100))})
    assert gathered(tmp_path) == [(AT + 40 * epoch, "leader epoch", 0, 40 * epoch) for epoch in range(3)]


def test_a_batch_without_an_epoch_does_not_end_one(tmp_path):
    log_dirs.write(tmp_path, "orders-0", {0: one(0, 3) + one(1, -1) + one(2, 3) + one(3, -1) + one(4, 4)})
    assert gathered(tmp_path) == [(AT, "leader epoch", 0, 0), (AT + 4, "leader epoch", 0, 4)]


def test_events_of_several_processes_are_in_one_order(tmp_path):
    for number in range(2):
        log_dirs.write(tmp_path / str(number), f"orders-{number}", {0: one(0, number), 1: one(1, number)})
    events = gathered(tmp_path / "1", tmp_path / "0")
    assert events == sorted(events, key=lambda event: event[0])
    assert {event[2] for event in events} == {0, 1}


def test_the_newest_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(log_events, "MOST", 3)
    log_dirs.write(tmp_path, "orders-0", {0: b"".join(one(offset, offset) for offset in range(20))})
    assert gathered(tmp_path) == [(AT + offset, "leader epoch", 0, offset) for offset in (17, 18, 19)]


def test_a_batch_without_a_time(tmp_path):
    log_dirs.write(tmp_path, "orders-0", {0: one(0, 0, -1)})
    assert gathered(tmp_path) == [(None, "leader epoch", 0, 0)]
