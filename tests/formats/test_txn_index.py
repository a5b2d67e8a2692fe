"""Aborted transactions in a segment's index."""

import pytest

from kdump.errors import DamageError
from kdump.formats import txn_index
from kdump.formats.txn_index import AbortedTxn

ENTRIES = (AbortedTxn(0, 7, 10, 20, 15), AbortedTxn(0, 9, 1, 30, 31))
DATA = bytes.fromhex(
    "0000 0000000000000007 000000000000000a 0000000000000014 000000000000000f"
    "0000 0000000000000009 0000000000000001 000000000000001e 000000000000001f"
)


def test_whole():
    assert txn_index.read(DATA) == ENTRIES
    assert txn_index.read(b"") == ()
    assert txn_index.encode(ENTRIES) == DATA


def test_cut_at_every_byte():
    for end in range(len(DATA) + 1):
        assert tuple(txn_index.entries(DATA[:end])) == ENTRIES[: end // 34]
        if end % 34:
            with pytest.raises(DamageError) as caught:
                txn_index.read(DATA[:end])
            assert (caught.value.kind, caught.value.position) == ("short", end // 34 * 34)


def test_garbage_after():
    with pytest.raises(DamageError) as caught:
        txn_index.read(DATA + b"\xff" * 40)
    assert (caught.value.kind, caught.value.position, caught.value.found) == ("version", 68, -1)


@pytest.mark.parametrize(("stored", "shown"), [("0000", 0), ("0001", 0), ("0100", 1), ("c3ff", -61)])
def test_the_original_shows_the_upper_byte_of_the_version(stored, shown):
    (entry,) = txn_index.entries(bytes.fromhex(stored) + DATA[2:34])
    assert entry.shown_version == shown
