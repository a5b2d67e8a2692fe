"""What became of transactions: markers decide, .txnindex stands in for markers that cannot be read."""

import pytest

from kdump.formats import txn_index
from kdump.inputs import Finder
from kdump.outcomes import Follower, follow
from kdump.pieces import RecordBatch
from kdump.segment import read
from tests import forge

TRANSACTIONAL, CONTROL = 0x10, 0x20


def data(offset, producer, **rest):
    record = forge.record(b"k", b"v")
    return forge.batch([record], base_offset=offset, producer_id=producer, attributes=TRANSACTIONAL, **rest)


def marker(offset, producer, *, commit, **rest):
    record = forge.record(b"\0\0\0" + bytes([commit]), b"\0\0\0\0\0\0")
    flags = TRANSACTIONAL | CONTROL
    return forge.batch([record], base_offset=offset, producer_id=producer, attributes=flags, **rest)


def entry(producer, first, last):
    return txn_index.AbortedTxn(0, producer, first, last, last + 1)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "t-0"
    folder.mkdir()
    return folder


def outcomes(folder, segments, *, entries=(), only=None):
    """Write segments (base offset -> batches); return what is told of every batch, the outcomes and the notes."""
    for base, batches in segments.items():
        (folder / f"{base:020}.log").write_bytes(b"".join(batches))
    if entries:
        base = max(segments)
        (folder / f"{base:020}.txnindex").write_bytes(txn_index.encode(entries))
    notes = []
    path = folder if only is None else folder / f"{only:020}.log"
    (partition,) = Finder().find([str(path)])

    def fail(error):
        raise error

    told = follow(partition, notes.append, fail)
    found = []
    for where in partition.segments:
        with where.open() as source:
            found += [told.of(piece) for piece in read(source, on_error="resync") if isinstance(piece, RecordBatch)]
    return found, told, notes


def test_interleaved_transactions_over_two_segments(folder):
    found, told, notes = outcomes(
        folder,
        {
            0: [data(0, 7), data(1, 8), data(2, 7)],
            3: [
                marker(3, 7, commit=False),
                data(4, 7),
                marker(5, 8, commit=True),
                data(6, 9),
                marker(7, 7, commit=True),
            ],
        },
    )
    assert found == ["aborted", "committed", "aborted", "aborted", "committed", "committed", "open", "committed"]
    assert (told.last_stable_offset, len(told.open), notes) == (6, 1, [])


def test_what_is_in_no_transaction(folder):
    found, told, _ = outcomes(folder, {0: [forge.batch([forge.record(None, None)])]})
    assert (found, told.last_stable_offset, told.early_end) == (["none"], None, None)
    assert outcomes(folder, {0: []})[1].last_stable_offset is None


def test_an_end_in_a_segment_that_was_not_named_is_not_known(folder):
    segments = {0: [data(0, 7)], 1: [marker(1, 7, commit=False)]}
    assert outcomes(folder, segments, only=0)[0] == [None]
    assert outcomes(folder, segments)[0] == ["aborted", "aborted"]
    assert outcomes(folder, segments, only=1)[0] == ["aborted"]


def test_the_index_stands_in_for_a_marker_that_cannot_be_read(folder):
    lost = data(0, 7) + data(1, 8) + marker(2, 8, commit=True) + marker(3, 7, commit=False, crc=1) + data(4, 9)
    found, told, notes = outcomes(folder, {0: [lost]}, entries=[entry(7, 0, 3)])
    assert (found, notes) == (["aborted", "committed", "committed", "open"], [])
    assert told.last_stable_offset == 4
    assert told.early_end == "1 transactions have not ended; read_committed ends at the last stable offset, 4"


def test_what_follows_a_marker_that_cannot_be_read_is_another_transaction(folder):
    lost = data(0, 7) + marker(1, 7, commit=False, crc=1) + data(2, 7)
    assert outcomes(folder, {0: [lost]}, entries=[entry(7, 0, 1)])[0] == ["aborted", "open"]
    ended = [lost, marker(3, 7, commit=True)]
    assert outcomes(folder, {0: ended}, entries=[entry(7, 0, 1)])[0] == ["aborted", "committed", "committed"]
    segments = {0: [data(0, 7)], 1: [marker(1, 7, commit=False, crc=1), data(2, 8)]}
    found, told, _ = outcomes(folder, segments, entries=[entry(7, 0, 1)])
    assert (found, told.last_stable_offset) == (["aborted", "open"], 2)


def test_many_transactions_of_a_producer_keep_little(folder):
    batches = [made for n in range(0, 200, 2) for made in (data(n, 7), marker(n + 1, 7, commit=True))]
    outcomes(folder, {0: batches})
    (partition,) = Finder().find([str(folder)])
    follower = Follower(partition.segments[0])
    with partition.segments[0].open() as source:
        for piece in read(source):
            follower.add(piece)
    told = follower.told()
    assert ([end.last_offset for end in told.ended], told.open, told.wrong) == ([1], (), ())


def test_an_entry_that_the_log_refutes_is_said_and_not_believed(folder):
    found, _, notes = outcomes(folder, {0: [data(0, 7), marker(1, 7, commit=True)]}, entries=[entry(7, 0, 1)])
    assert found == ["committed", "committed"]
    assert "txnindex" in notes[0]
    assert "producer 7 at offset 1" in notes[0]


def test_a_broken_index_is_said(folder):
    (folder / f"{0:020}.txnindex").write_bytes(b"\0\1")
    found, _, notes = outcomes(folder, {0: [data(0, 7), marker(1, 7, commit=True)]})
    assert (found, len(notes)) == (["committed", "committed"], 1)


def test_a_marker_that_compaction_emptied(folder):
    empty = forge.batch([], base_offset=1, producer_id=7, attributes=TRANSACTIONAL | CONTROL, last_offset_delta=0)
    assert outcomes(folder, {0: [data(0, 7), empty]})[0] == ["open", None]
