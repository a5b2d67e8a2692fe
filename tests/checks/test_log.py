"""Remarks on valid logs: open transactions, timestamps in the future."""

import pytest

from kdump.checks import whole_partition
from kdump.checks.log_dir import LogDirs
from kdump.log_dirs.finder import Finder, Wanted
from kdump.primitives import compression
from kdump.primitives.compression import COUNTED
from kdump.records.magic_2 import Batch
from testing import forge
from testing.processes import dump

NOW = 1_700_000_000_000
HOUR = 3_600_000


def data(offset, **fields):
    return forge.batch([forge.record(b"k", b"v")], base_offset=offset, base_timestamp=NOW, leader_epoch=0, **fields)


def within(offset, producer):
    return data(offset, attributes=0x10, producer_id=producer, producer_epoch=0, base_sequence=offset)


def marker(offset, producer):
    record = forge.record(b"\0\0\0\1", b"\0\0\0\0\0\1")
    return forge.batch(
        [record], base_offset=offset, base_timestamp=NOW, attributes=0x30, producer_id=producer, producer_epoch=0
    )


def remarks(folder, *segments, at=NOW):
    """Return the remarks of a check at a time in ms, by kind, except remarks on absent files."""
    folder = folder / "t-0"
    folder.mkdir()
    for base, batches in segments:
        (folder / f"{base:020}.log").write_bytes(b"".join(batches))
    (part,) = Finder(Wanted(siblings=True, log_dirs=True)).find([str(folder)])
    checked = whole_partition.check(part, whole_partition.CheckOptions(records=False, at=at), LogDirs())
    return {finding.kind: finding for finding in checked.findings if finding.is_remark and finding.kind != "absent"}


def offsets(found):
    return {kind: finding.offset for kind, finding in found.items()}


def test_a_transaction_without_an_end_is_remarked(tmp_path):
    batches = [within(0, 5), within(1, 7), marker(2, 5), data(3)]
    assert offsets(remarks(tmp_path, (0, batches))) == {"open transaction": 1}


def test_a_transaction_that_ends_in_a_later_segment_is_not(tmp_path):
    assert remarks(tmp_path, (0, [within(0, 5)]), (1, [data(1), marker(2, 5)])) == {}


def test_the_sizes_of_refused_batches_are_counted_up_to_a_total(tmp_path, monkeypatch):
    """Each costs a decompression of up to 2 GiB: a log of many bombs would take hours."""
    counted = []
    monkeypatch.setattr(Batch, "uncompressed_size", lambda batch: counted.append(batch.base_offset) or COUNTED // 2)
    log = tmp_path / "t-0" / f"{0:020}.log"
    log.parent.mkdir()
    packed = compression.compress(compression.GZIP, forge.record(b"k", bytes(4096)))
    batches = [
        forge.batch([], base_offset=each, count=1, base_timestamp=NOW, attributes=compression.GZIP, payload=packed)
        for each in range(5)
    ]
    log.write_bytes(b"".join(batches))
    (part,) = Finder(Wanted(siblings=True, log_dirs=True, max_batch_bytes=1024)).find([str(log.parent)])
    found = whole_partition.check(part, whole_partition.CheckOptions(at=NOW), LogDirs()).findings
    advice = [finding.advice for finding in found if finding.kind == "limit"]
    assert (counted, [f"give --max-batch-bytes {COUNTED // 2} or more." in each for each in advice]) == (
        [0, 1],
        [True, True, False, False, False],
    )


def test_damage_may_hold_the_end(tmp_path):
    found = remarks(tmp_path, (0, [within(0, 5), b"\xff" * 40, within(1, 6)]))
    assert found["open transaction"].offset == 1
    assert found["open transaction"].text.startswith("1 transaction ")


def test_a_wrong_checksum_at_the_log_start_is_damage_if_the_next_batch_repeats_its_offset(tmp_path):
    """No offset is missing, but a consumer meets the first batch."""
    batch = bytearray(data(0))
    batch[-1] ^= 1
    assert "crc" not in remarks(tmp_path, (0, [bytes(batch), data(0), data(1)]))


@pytest.mark.parametrize(("later", "expected"), [(HOUR, {}), (HOUR + 1, {"future timestamp": 1})])
def test_a_timestamp_more_than_an_hour_ahead_is_remarked(tmp_path, later, expected):
    future = forge.batch([forge.record(b"k", b"v")], base_offset=1, base_timestamp=NOW + later, leader_epoch=0)
    assert offsets(remarks(tmp_path, (0, [data(0), future, data(2)]))) == expected


def test_without_a_time_nothing_is_in_the_future(tmp_path):
    assert remarks(tmp_path, (0, [data(0, max_timestamp=1 << 62)]), at=None) == {}


def test_remarks_name_the_first_and_count_all(tmp_path):
    batches = [within(0, 5), within(1, 6), *(data(offset, max_timestamp=1 << 62) for offset in (2, 3))]
    found = remarks(tmp_path, (0, batches))
    assert (
        "2 transactions without an end marker: read_committed consumers wait at offset 0, "
        "where producer 5 began a transaction" in found["open transaction"].text
    )
    assert "2 batches with a timestamp in the future (first: 4611686018427387904" in (found["future timestamp"].text)


def test_the_time_is_an_option(tmp_path):
    (tmp_path / f"{0:020}.log").write_bytes(data(0))
    for at, expected in ((NOW, False), (NOW - 2 * HOUR, True)):
        assert (b"future timestamp" in dump("check", tmp_path, "--json", "--at", at)) == expected


def checked(folder, *batches):
    (folder / "t-0").mkdir()
    (folder / "t-0" / f"{0:020}.log").write_bytes(b"".join(batches))
    (part,) = Finder(Wanted(siblings=True, log_dirs=True)).find([str(folder / "t-0")])
    found = whole_partition.check(part, whole_partition.CheckOptions(records=True, at=NOW), LogDirs())
    of_the_log = [each for each in found.findings if each.level == "log" and each.code != "recovery"]
    return found, [(each.code, each.offset) for each in of_the_log]


@pytest.mark.parametrize("value", [None, b"", b"\0\0\0\0\0", b"\xff\xff\0\0\0\0"])
def test_the_value_of_a_marker_is_checked(tmp_path, value):
    """A broker that reads it for its producer state does not start (EndTransactionMarker of 4.3.1)."""
    record = forge.record(b"\0\0\0\1", value)
    bad = forge.batch([record], base_offset=1, base_timestamp=NOW, attributes=0x30, producer_id=5, producer_epoch=0)
    found, findings = checked(tmp_path, data(0), bad)
    assert (findings, found.sound_end) == ([("control-value", 1)], None)


def test_a_batch_outside_of_an_open_transaction_is_a_finding(tmp_path):
    """ProducerAppendInfo throws InvalidTxnStateException for such a batch, also while it loads a log."""
    batches = [
        data(at, attributes=flags, producer_id=5, producer_epoch=0, base_sequence=at)
        for at, flags in enumerate([0x10, 0x10, 0, 0])
    ]
    found, findings = checked(tmp_path, *batches)
    assert (findings, found.sound_end) == ([("producer", 2)], None)
