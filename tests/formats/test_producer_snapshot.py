"""The producers of a partition, with their epochs and sequences."""

import pytest

from kdump.errors import DamageError
from kdump.formats import producer_snapshot
from kdump.formats.producer_snapshot import ProducerEntry
from kdump.primitives.crc import crc32c

ENTRIES = (
    ProducerEntry(7, 1, 12, 345, 2, 1500000000005, 3, -1),
    ProducerEntry(9, 0, -1, -1, 0, 1500000000009, -1, 77),
)
DATA = bytes.fromhex(
    "000131af01b900000002"
    "000000000000000700010000000c0000000000000159000000020000015d3ef7980500000003ffffffffffffffff"
    "00000000000000090000ffffffffffffffffffffffff000000000000015d3ef79809ffffffff000000000000004d"
)


def guarded(data: bytes) -> bytes:
    return data[:2] + crc32c(data[6:]).to_bytes(4, "big") + data[6:]


def damage(data: bytes) -> DamageError:
    with pytest.raises(DamageError) as caught:
        producer_snapshot.read(data)
    return caught.value


def test_whole():
    assert producer_snapshot.read(DATA) == ENTRIES
    assert producer_snapshot.encode(ENTRIES) == DATA
    assert producer_snapshot.read(producer_snapshot.encode([])) == ()


def test_meaning():
    first, second = ENTRIES
    assert (first.has_batch, first.has_open_transaction) == (True, False)
    assert (first.first_sequence, first.first_offset) == (10, 343)
    assert (second.has_batch, second.has_open_transaction) == (False, True)
    assert (first.open_transaction, second.open_transaction) == (None, 77)
    wrapped = ProducerEntry(1, 0, 1, 5, 3, 0, 0, -1)
    assert (wrapped.first_sequence, wrapped.unwrapped_first_sequence) == (2147483646, -2)
    assert (second.first_sequence, second.unwrapped_first_sequence) == (2147483647, -1)
    negative = ProducerEntry(1, 0, 1074504659, 5, -1955280755, 0, 0, -1)
    assert negative.first_sequence == -1265181882  # wraps as Java's int does


def test_cut_at_every_byte_names_the_field_in_which_it_ends():
    names = []
    for end in range(len(DATA)):
        parts = producer_snapshot.inspect(DATA[:end])
        assert parts.entries == ENTRIES[: max(0, end - 10) // 46]
        assert damage(DATA[:end]).kind == "short"
        names.append(parts.cut_in)
    fields = [("version", 2), ("crc", 4), ("producer_entries", 4)] + 2 * [
        ("producer_id", 8), ("epoch", 2), ("last_sequence", 4), ("last_offset", 8), ("offset_delta", 4),
        ("timestamp", 8), ("coordinator_epoch", 4), ("current_txn_first_offset", 8),
    ]  # fmt: skip
    assert names == [name for name, size in fields for _ in range(size)]


def test_garbage_after_breaks_the_checksum_only():
    assert damage(DATA + b"\0").kind == "crc"
    assert producer_snapshot.read(guarded(DATA + b"\xff" * 50)) == ENTRIES


def test_order_of_checks():
    assert damage(b"\0\2" + DATA[2:-1]).kind == "version"
    assert damage(DATA[:-1]).kind == "short"
    wrong = damage(DATA[:-1] + b"\x4e")
    assert (wrong.kind, wrong.position, wrong.found) == ("crc", 2, 0x31AF01B9)


def test_odd_counts():
    assert producer_snapshot.read(guarded(DATA[:6] + b"\0\0\0\0" + DATA[10:])) == ()
    assert damage(guarded(DATA[:6] + b"\xff\xff\xff\xff" + DATA[10:])).kind == "count"
    assert producer_snapshot.inspect(guarded(DATA[:6] + b"\0\0\0\3" + DATA[10:])).cut_in == "producer_id"
    assert damage(guarded(DATA[:6] + b"\0\0\0\3" + DATA[10:])).kind == "short"
    assert damage(guarded(DATA[:6] + b"\x7f\xff\xff\xff" + DATA[10:])).kind == "short"
