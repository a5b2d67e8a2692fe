"""Transactions: open, ended, aborted, and the last stable offset."""

import random

import pytest

from kdump.errors import DamageError
from kdump.formats.txn_index import AbortedTxn
from kdump.transaction_replay import replay as transactions
from kdump.transaction_replay.replay import AbortedRanges, OpenTransaction, Replay
from testing import forge
from tests.helpers.segments import ABORT, COMMIT, CONTROL, TRANSACTIONAL, batches, data, marker

LOG = b"".join(
    [
        data(0, 2, producer=7),
        data(2, 1),
        data(3, 2, producer=9),
        data(5, 1, producer=7),
        marker(6, 7, ABORT),
        data(7, 1, producer=7),
        marker(8, 9, COMMIT),
        marker(9, 9, ABORT),
        marker(10, 7, ABORT),
        data(11, 3, producer=8),
    ]
)


def test_each_transaction_ends_at_its_marker():
    replay = Replay()
    found = list(transactions.ended(batches(LOG), replay))
    assert [(t.producer_id, t.first_offset, t.last_offset, t.last_stable_offset, t.aborted) for t in found] == [
        (7, 0, 6, 3, True),
        (9, 3, 8, 7, False),
        (9, None, 9, 7, True),
        (7, 7, 10, 11, True),
    ]
    assert [t.coordinator_epoch for t in found] == [3] * 4
    assert [t.as_entry() for t in found] == [AbortedTxn(0, 7, 0, 6, 3), None, None, AbortedTxn(0, 7, 7, 10, 11)]
    assert replay.open == {8: OpenTransaction(8, 0, 11)}
    assert (replay.end_offset, replay.last_stable_offset) == (14, 11)


def test_the_last_stable_offset_after_each_batch():
    replay, stable = Replay(), []
    assert replay.last_stable_offset is None
    for batch in batches(LOG):
        replay.add(batch)
        stable.append(replay.last_stable_offset)
    assert stable == [0, 0, 0, 0, 3, 3, 7, 7, 11, 11]


def test_what_was_open_before_is_taken_over():
    replay = Replay([OpenTransaction(9, 0, -5)])
    assert replay.last_stable_offset == -5
    found = [transaction.first_offset for transaction in transactions.ended(batches(LOG), replay)]
    assert found == [0, -5, None, 7]


def test_batches_without_a_producer_and_other_control_batches_change_nothing():
    record = forge.record(b"\0\0\0\2", b"")
    other = forge.batch([record], attributes=CONTROL, base_offset=1)
    typed = forge.batch([record], attributes=CONTROL | TRANSACTIONAL, producer_id=7, base_offset=2)
    emptied = forge.batch([], attributes=CONTROL | TRANSACTIONAL, producer_id=7, base_offset=3, last_offset_delta=0)
    replay = Replay()
    assert list(transactions.ended(batches(data(0, producer=7) + other + typed + emptied), replay)) == []
    assert replay.open == {7: OpenTransaction(7, 0, 0)}
    legacy = Replay()
    assert legacy.add(batches(forge.entry(4, forge.message(1, None, b"v")))[0]) is None
    assert legacy.last_stable_offset == 5


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0"])
def test_a_marker_that_cannot_be_read_is_damage(key):
    bad = forge.batch([forge.record(key, b"\0" * 6)], attributes=CONTROL | TRANSACTIONAL, producer_id=7)
    with pytest.raises(DamageError):
        Replay().add(batches(bad)[0])


def test_aborted_data_is_distinguished_from_other_data():
    aborted = AbortedRanges(transactions.ended(batches(LOG)))
    assert [batch.base_offset for batch in batches(LOG) if aborted.hold(batch)] == [0, 5, 7]
    by_index = AbortedRanges([AbortedTxn(0, 7, 0, 6, 3)])
    assert [batch.base_offset for batch in batches(LOG) if by_index.hold(batch)] == [0, 5]
    assert not any(AbortedRanges([]).hold(batch) for batch in batches(LOG))


def test_the_oldest_open_transaction_is_known_at_once_however_many_there_are():
    chance = random.Random(1)
    replay = Replay([OpenTransaction(5, 0, -3), OpenTransaction(6, 0, -9)])
    for offset in range(3000):
        producer = chance.randrange(40)
        if producer in replay.open and chance.random() < 0.5:
            (batch,) = batches(marker(offset, producer, ABORT))
        else:
            (batch,) = batches(data(offset, producer=producer))
        replay.add(batch)
        least = min((one.first_offset for one in replay.open.values()), default=None)
        assert replay.first_open_offset(-1) == (-1 if least is None else least)
        assert len(replay._firsts) <= 2 * len(replay.open) + 65  # what has ended does not stay


@pytest.mark.parametrize("cut", range(11))
def test_changes_since_a_mark_are_taken_back(cut):
    log = list(batches(LOG))
    replay = Replay()
    for batch in log[:cut]:
        replay.add(batch)
    before = (dict(replay.open), replay.end_offset, replay.last_stable_offset)
    for _ in range(2):
        replay.mark()
        for batch in log[cut:]:
            replay.add(batch)
        replay.restore()
        assert (replay.open, replay.end_offset, replay.last_stable_offset) == before
    fresh = Replay()
    assert [replay.add(batch) for batch in log[cut:]] == [fresh.add(batch) for batch in log][cut:]
    assert replay.open == fresh.open


def test_taking_back_does_not_touch_what_was_open_before():
    class Counted(dict):
        touched = 0

        def __setitem__(self, key, value):
            Counted.touched += 1
            super().__setitem__(key, value)

        def values(self):
            Counted.touched += len(self)
            return super().values()

    replay = Replay(OpenTransaction(producer, 0, producer) for producer in range(1000))
    replay.open = Counted(replay.open)
    for _ in range(100):
        replay.mark()
        replay.add(next(iter(batches(data(2000, 1, producer=5000)))))
        replay.restore()
    assert Counted.touched <= 200
