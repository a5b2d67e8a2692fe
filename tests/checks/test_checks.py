"""Indexes and their log: healthy ones cause no finding, and each damage is reported with its entry."""

import gzip
import struct
from copy import deepcopy
from types import SimpleNamespace

import pytest

from kdump.checks import partition
from kdump.checks.indexes import IndexCheck, PartitionState, SegmentFiles
from kdump.findings import Level
from kdump.log_dirs.finder import Finder, Wanted
from kdump.records.record_batch import Batches
from kdump.recovery.index_builder import IndexBuilder
from kdump.segments import walk
from kdump.segments.regions import DATA
from kdump.transaction_replay.replay import Replay
from testing import GOLDEN, forge
from tests.helpers.segments import ABORT, COMMIT, Memory, batches, data, marker, starts

BASE = 100
STAMPS = [500, 700, 600, 700, 900, 100, 950]
LOG = b"".join(data(BASE + 2 * n, 2, timestamp=stamp) for n, stamp in enumerate(STAMPS))
TXN_LOG = b"".join(
    [
        data(100, 2, producer=7),
        data(102, 1, producer=9),
        marker(103, 7, ABORT),
        data(104, 1, producer=7),
        marker(105, 9, COMMIT),
        marker(106, 7, ABORT),
        marker(107, 9, ABORT),
    ]
)


def made(log=LOG, **choice):
    builder, replay = IndexBuilder(BASE, **{"interval": 0, **choice}), Replay()
    for batch in batches(log):
        builder.add(batch, replay.add(batch))
    return builder.finish()


HEALTHY = made()


def check(
    log=LOG, index=HEALTHY.offset_index, times=HEALTHY.time_index, txns=None, *, state=None, active=False, base=BASE
):
    size = None if log is None else len(log)
    files = SegmentFiles(
        name=f"{base:020}.log",
        base_offset=base,
        log_size=size,
        index=index,
        timeindex=times,
        txnindex=txns,
        active=active,
    )
    together = IndexCheck(files, deepcopy(state))
    for region in runs(log or b""):
        if isinstance(region, Batches):
            together.add(region)
    checker = IndexCheck(files, state)
    for batch in batches(log or b""):
        checker.add(batch)
    found = list(checker.finish())
    assert list(together.finish()) == found
    return found


def runs(log):
    source = Memory(log)
    return walk.walk(source, 0, source.size, limit=source.limit, runs=DATA)


def wrong(found):
    return [(f.file.rpartition(".")[2], f.kind, f.entry) for f in found if not f.is_remark]


def remarks(found):
    return [(f.file.rpartition(".")[2], f.kind) for f in found if f.is_remark and f.kind != "convention"]


def offsets(*entries):
    return b"".join(struct.pack(">ii", offset - BASE, position) for offset, position in entries)


def times(*entries):
    return b"".join(struct.pack(">qi", timestamp, offset - BASE) for timestamp, offset in entries)


ENTRIES = [(101 + 2 * n, position) for n, position in enumerate(starts(LOG)) if n]
TIMES = [(700, 103), (900, 109), (950, 113)]


def test_healthy_files_are_silent():
    assert HEALTHY.offset_index == offsets(*ENTRIES)
    assert HEALTHY.time_index == times(*TIMES)
    found = check()
    assert wrong(found) == []
    assert remarks(found) == []
    assert [f.text for f in found] == ["6 entries name the last offset of the batch (brokers since 2.0)"]


def changed(entries, slot, entry):
    return [*entries[:slot], entry, *entries[slot + 1 :]]


@pytest.mark.parametrize(
    ("slot", "entry", "kind"),
    [
        (2, (106, ENTRIES[2][1]), None),  # the batch's first offset: a convention, but wrong after last ones
        (2, (105, ENTRIES[2][1]), "offset"),
        (2, (98, ENTRIES[2][1]), "offset"),
        (2, (200, ENTRIES[2][1]), "offset"),
        (2, (107, ENTRIES[2][1] + 1), "position"),
        (2, (107, len(LOG)), "beyond the log"),
        (2, (107, 1 << 30), "beyond the log"),
        (2, (107, 0), "position"),
        (2, (107, -8), "position"),
        (2, (BASE, 0), "position"),
        (2, ENTRIES[1], "order"),
        (5, (114, ENTRIES[5][1]), "offset"),
        (5, (113, len(LOG) - 4), "position"),
    ],
)
def test_one_bad_offset_entry_is_one_finding(slot, entry, kind):
    found = [f for f in check(index=offsets(*changed(ENTRIES, slot, entry))) if not f.is_remark]
    assert [(f.entry, f.position, f.level) for f in found] == [(slot, slot * 8, Level.DERIVED)]
    assert found[0].kind == (kind or "offset")
    assert str(entry[0]) in found[0].text
    assert str(entry[1]) in found[0].text
    assert "move the .index of the segment away" in found[0].advice
    assert found[0].expected is not None


def test_an_entry_may_point_anywhere():
    for position in range(1, len(LOG), 5):
        found = [f.kind for f in check(index=offsets((200, position)), times=b"") if not f.is_remark]
        assert found == ["offset" if position in starts(LOG) else "position"]


@pytest.mark.parametrize("gap", [0, 1])
def test_a_gap_between_batches_that_are_alike_explains_older_values(gap):
    first = 102 + gap
    log = data(100, 2, producer=7) + data(first, producer=9) + data(first + 1, producer=9) + marker(first + 2, 9, ABORT)
    found = wrong(check(log, None, None, txn(9, 101, first + 2, 100)))
    assert found == ([] if gap else [("txnindex", "first offset", 0)])


def test_swapped_and_doubled_offset_entries():
    swapped = [*ENTRIES[:2], ENTRIES[3], ENTRIES[2], *ENTRIES[4:]]
    assert wrong(check(index=offsets(*swapped))) == [("index", "order", 3)]
    positions = [*ENTRIES[:2], (107, ENTRIES[3][1]), (109, ENTRIES[2][1]), *ENTRIES[4:]]
    assert {entry for _, _, entry in wrong(check(index=offsets(*positions)))} <= {2, 3}
    doubled = [*ENTRIES[:3], *ENTRIES[2:]]
    assert wrong(check(index=offsets(*doubled))) == [("index", "order", 3)]


def test_an_entry_after_a_wrong_one_is_compared_with_the_last_correct_one():
    (offset, position), beside = ENTRIES[1], (107, ENTRIES[2][1] + 1)
    found = check(index=offsets(*ENTRIES[:2], beside, (offset, position), *ENTRIES[4:]))
    assert wrong(found) == [("index", "position", 2), ("index", "order", 3)]
    (order,) = [each for each in found if each.kind == "order"]
    assert "has an offset at or below that of an earlier entry" in order.text
    assert (order.expected, order.found) == (f"above {offset}", offset)


@pytest.mark.parametrize(
    ("slot", "entry", "kind"),
    [
        (1, (901, 109), "timestamp"),
        (1, (899, 109), "timestamp"),
        (1, (-1, 109), "timestamp"),
        (1, (0, 100), "offset"),
        (1, (700, 107), "timestamp"),
        (1, (900, 108), None),  # the record with this timestamp: brokers 0.11 to 3.8
        (1, (900, 110), "offset"),
        (1, (900, 97), "offset"),
        (1, (900, 1 << 20), "beyond the log"),
        (2, (950, 114), "beyond the log"),
        (1, (700, 103), "order"),
    ],
)
def test_one_bad_time_entry_is_one_finding(slot, entry, kind):
    found = [f for f in check(times=times(*changed(TIMES, slot, entry))) if not f.is_remark]
    expected = [] if kind is None else [(slot, slot * 12, kind)]
    assert [(f.entry, f.position, f.kind) for f in found] == expected


def test_a_missing_time_entry():
    last = check(times=times(*TIMES[:2]))
    assert wrong(last) == [("timeindex", "coverage", 1)]
    assert "retention" in next(f.text for f in last if not f.is_remark)
    middle = check(times=times(TIMES[0], TIMES[2]))
    assert wrong(middle) == [("timeindex", "coverage", None)]
    assert wrong(check(times=times(*TIMES[1:]))) == []


def test_sizes_that_are_no_whole_entries():
    assert wrong(check(index=offsets(*ENTRIES) + b"\0\0\0")) == [("index", "size", None)]
    assert wrong(check(index=b"\0" * 7)) == [("index", "size", None)]
    assert wrong(check(times=times(*TIMES)[:-5])) == [("timeindex", "size", None)]
    assert wrong(check(times=times(*TIMES) + b"\0" * 5)) == [("timeindex", "size", None)]


@pytest.mark.parametrize("cut", range(len(HEALTHY.offset_index) + 1))
def test_an_index_cut_anywhere_is_a_size_or_a_gap_in_coverage(cut):
    found = check(index=HEALTHY.offset_index[:cut])
    assert wrong(found) == ([("index", "size", None)] if cut % 8 else [])


def test_zero_tails_are_no_finding_and_odd_ones_are_reported():
    live = check(index=offsets(*ENTRIES) + bytes(2048 - 48), times=times(*TIMES) + bytes(2040 - 36), active=True)
    assert wrong(live) == []
    assert remarks(live) == [("index", "zero tail"), ("timeindex", "zero tail")]
    assert remarks(check(index=offsets(*ENTRIES[:-1]) + bytes(8))) == [
        ("index", "zero tail"),
        ("index", "coverage"),
        ("index", "preallocation"),
    ]
    zeros = check(index=bytes(64))
    assert wrong(zeros) == []
    assert remarks(zeros) == [("index", "empty"), ("index", "preallocation")]


def test_the_live_pair_may_lag_its_log():
    pair = {"index": offsets(*ENTRIES[:2]) + bytes(2032), "times": times(*TIMES[:1]) + bytes(2028)}
    assert wrong(check(**pair, active=True)) == []
    assert wrong(check(**pair, active=False)) == [("timeindex", "coverage", 0)]


def test_a_gap_in_coverage_is_a_remark():
    found = check(index=offsets(*ENTRIES[:2], *ENTRIES[4:]))
    assert wrong(found) == []
    assert remarks(found) == [("index", "coverage")]
    assert "have no entry, but" in next(f.text for f in found if f.kind == "coverage")


def test_first_offsets_are_a_convention_of_old_brokers():
    found = check(index=made(first_offsets=True).offset_index)
    assert wrong(found) == []
    assert [f.text for f in found] == ["6 entries name the first offset of the batch (brokers before 2.0)"]
    upgraded = offsets(*[(offset - 1, position) for offset, position in ENTRIES[:3]], *ENTRIES[3:])
    assert wrong(check(index=upgraded)) == []


def messages(count=8, wrappers=False):
    entries = []
    for n in range(count):
        if wrappers:
            inner = [(i, forge.message(1, None, b"v", timestamp=1000 + n)) for i in range(3)]
            entries.append(forge.wrapper(1, BASE + 3 * n + 2, inner, timestamp=1000 + n))
        else:
            entries.append(forge.entry(BASE + n, forge.message(1, None, b"v", timestamp=1000 + n)))
    return b"".join(entries)


def test_an_entry_may_name_the_end_of_its_append():
    log = messages()
    at = starts(log)
    newest = times((1002, 102), (1007, 107))
    assert wrong(check(log, offsets((103, at[2]), (106, at[5])), newest)) == []
    assert wrong(check(log, offsets((105, at[2]), (106, at[5])), newest)) == [("index", "offset", 0)]
    assert wrong(check(log, offsets((104, at[2]), (108, at[5])), newest)) == [("index", "offset", 1)]
    conventions = [f.text for f in check(log, offsets((103, at[2])), newest) if f.kind == "convention"]
    assert conventions == ["1 entry names the last offset of a whole append (brokers 2.0 to 3.8)"]


def test_wrappers_are_unpacked_for_their_first_offset():
    log = messages(wrappers=True)
    at = starts(log)
    newest = times((1007, 123))
    assert wrong(check(log, offsets((106, at[2]), (115, at[5])), newest)) == []
    assert wrong(check(log, offsets((107, at[2])), newest)) == [("index", "offset", 0)]
    assert wrong(check(log, offsets((104, at[2])), newest)) == [("index", "offset", 0)]
    broken = log.replace(b"\x1f\x8b", b"\x1f\x8c")
    found = check(broken, offsets((106, at[2])), newest)
    assert [(level, kind) for level, kind in ((f.level, f.kind) for f in found) if level is Level.LOG]


def test_damage_inside_a_wrapper_is_placed_at_the_wrapper():
    first = forge.entry(BASE, forge.message(1, None, b"v", timestamp=1000))
    many = b"".join(forge.entry(n, forge.message(1, None, b"v", timestamp=1000)) for n in range(100))
    packed = forge.message(1, None, gzip.compress(many + bytes(20)), attributes=1, timestamp=1000)
    log = first + forge.entry(BASE + 100, packed)
    found = check(log, offsets((BASE + 1, len(first))), times((1000, BASE + 100)))
    (damage,) = (one for one in found if one.level is Level.LOG)
    assert damage.position == len(first)
    assert damage.text.startswith(f"the batch at byte {len(first)} cannot be read: ")


def txns(log=TXN_LOG):
    return made(log).txn_index


def txn(producer, first, last, stable, version=0):
    return struct.pack(">hqqqq", version, producer, first, last, stable)


GOOD_TXNS = [(7, 100, 103, 102), (7, 104, 106, 107)]


def txn_check(*entries, log=TXN_LOG, complete=False, **rest):
    state = PartitionState()
    state.complete = complete
    if complete:
        state.replay.end_offset = BASE
    files = made(log)
    data = b"".join(txn(*entry) for entry in entries)
    return check(log, files.offset_index, files.time_index, data, state=state, **rest)


def test_healthy_aborted_transactions():
    assert txns() == b"".join(txn(*entry) for entry in GOOD_TXNS)
    assert wrong(txn_check(*GOOD_TXNS)) == []
    assert remarks(txn_check(*GOOD_TXNS)) == [("txnindex", "empty abort")]
    assert wrong(txn_check(*GOOD_TXNS, (9, 107, 107, 108))) == []


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize(
    ("slot", "entry", "kind"),
    [
        (0, (7, 100, 103, 102, 1), "version"),
        (0, (-1, 100, 103, 102), "producer id"),
        (0, (8, 100, 103, 102), "producer id"),
        (0, (7, 101, 103, 102), "first offset"),
        (0, (7, 104, 103, 102), "first offset"),
        (0, (7, -1, 103, 102), "first offset"),
        (0, (7, 100, 103, 103), "last stable offset"),
        (0, (7, 100, 103, 101), "last stable offset"),
        (0, (7, 100, 103, 105), "last stable offset"),
        (1, (7, 103, 106, 107), "first offset"),
        (1, (7, 104, 105, 106), "last offset"),
        (0, (0, 0, 0, 0), "last offset"),
    ],
)
def test_one_bad_aborted_transaction_is_named(slot, entry, kind, complete):
    found = wrong(txn_check(*changed(GOOD_TXNS, slot, entry), complete=complete))
    assert found[0] == ("txnindex", kind, slot)
    assert {what for _, what, _ in found[1:]} <= {"missing"}


def test_values_from_before_the_segment_need_the_whole_log():
    early = changed(GOOD_TXNS, 0, (7, 90, 103, 102))
    assert wrong(txn_check(*early, complete=True)) == [("txnindex", "first offset", 0)]
    assert wrong(txn_check(*early, complete=False)) == []
    assert wrong(txn_check(*changed(GOOD_TXNS, 0, (7, 100, 103, 80)), complete=False)) == []


def test_compaction_explains_older_values():
    log = TXN_LOG.replace(data(102, 1, producer=9), b"")
    assert wrong(txn_check(*GOOD_TXNS, log=log)) == []


@pytest.mark.parametrize("there", [b"", None])
def test_a_missing_entry_or_file_is_a_finding(there):
    files = made(TXN_LOG)
    found = check(TXN_LOG, files.offset_index, files.time_index, there)
    assert wrong(found) == [("txnindex", "missing", None)] * 2
    assert all("read_committed" in f.text for f in found if f.kind == "missing")


def test_without_any_index_remarks_replace_the_missing_entries():
    found = check(TXN_LOG, None, None, None)
    assert wrong(found) == []
    assert [what for what in remarks(found) if what[0] == "txnindex"] == [
        ("txnindex", "absent"),
        ("txnindex", "empty abort"),
    ]


def test_swapped_doubled_and_cut_aborted_transactions():
    assert wrong(txn_check(*GOOD_TXNS[::-1])) == [("txnindex", "order", 1)]
    assert wrong(txn_check(GOOD_TXNS[0], *GOOD_TXNS)) == [("txnindex", "order", 1)]
    files = made(TXN_LOG)
    for cut in range(1, 34):
        found = check(TXN_LOG, files.offset_index, files.time_index, txns()[:-cut])
        assert wrong(found) == [("txnindex", "size", None), ("txnindex", "missing", None)]


def test_files_without_their_log_are_judged_alone():
    found = check(None, offsets(*changed(ENTRIES, 2, (98, 5))), times(*TIMES))
    assert wrong(found) == [("index", "no log", None), ("index", "offset", 2)]


def test_a_log_that_lost_its_end_makes_one_finding_for_each_index():
    found = check(LOG[: starts(LOG)[3]])
    assert wrong(found) == [("index", "beyond the log", 2), ("timeindex", "beyond the log", 1)]
    texts = [f.text for f in found if not f.is_remark]
    assert "(all 3 later entries do too)" in texts[0]
    assert "(the last entry does too)" in texts[1]
    torn = SegmentFiles(
        name=f"{BASE:020}.log",
        base_offset=BASE,
        log_size=starts(LOG)[3] + 5,
        index=HEALTHY.offset_index,
        timeindex=HEALTHY.time_index,
        txnindex=None,
        active=False,
    )
    checker = IndexCheck(torn)
    for batch in batches(LOG)[:3]:
        checker.add(batch)
    assert wrong(checker.finish(readable=False)) == []


def test_a_log_under_another_name_is_reported_once():
    found = check(base=500)
    assert [(f.level, f.kind) for f in found] == [(Level.LOG, "base offset")]


def test_a_marker_that_cannot_be_read_is_damage_of_the_log():
    bad = forge.batch([forge.record(b"\0", b"")], base_offset=100, producer_id=7, attributes=0x30)
    assert [(f.level, f.kind) for f in check(bad, b"", b"") if not f.is_remark] == [(Level.LOG, "control key")]


def of(folder):
    for held in Finder(Wanted(siblings=True)).find([str(folder)]):
        for checked in partition.check(held):
            yield from checked.findings


@pytest.mark.parametrize(
    "folder", sorted((GOLDEN / "brokers").glob("*/[!_]*")), ids=lambda p: f"{p.parent.name}-{p.name}"
)
def test_what_real_brokers_wrote_has_no_finding(folder):
    assert [f.text for f in of(folder) if not f.is_remark] == []


def test_a_txnindex_that_comes_while_the_youngest_segment_is_read(tmp_path, monkeypatch):
    files = made(TXN_LOG)
    stem = tmp_path / f"{BASE:020}"
    stem.with_suffix(".log").write_bytes(TXN_LOG)
    stem.with_suffix(".index").write_bytes(files.offset_index)
    pauses = []

    def come(seconds):
        pauses.append(seconds)
        stem.with_suffix(".txnindex").write_bytes(files.txn_index[: 34 * len(pauses)])

    monkeypatch.setattr(partition, "time", SimpleNamespace(sleep=come))  # time.sleep is also that of other threads
    assert wrong(of(tmp_path)) == []
    assert len(pauses) == 2
    stem.with_suffix(".txnindex").unlink()
    monkeypatch.setattr(partition, "time", SimpleNamespace(sleep=lambda _: None))
    assert len(wrong(of(tmp_path))) == 2


HARMLESS = {"idx-allzero", "idx-empty", "idx-last-zero", "idx-pad1024", "idx-pad64", "idx-pad8", "tidx-allzero"}
HARMLESS |= {"tidx-empty", "tidx-pad12", "tidx-pad120", "tidx-pad1020"}
DAMAGED = {
    "idx-dup": 5, "idx-ff": 4, "idx-first-zero": 0, "idx-off+1": 4, "idx-off-big": 4, "idx-off-last": 11,
    "idx-off-neg": 4, "idx-pos+1": 4, "idx-pos-beyond": 4, "idx-pos-eof": 4, "idx-pos-near-eof": 4, "idx-pos-neg": 4,
    "idx-swap": 4, "idx-zero-entry": 4, "idx-cut3": None, "idx-cut7b": None, "idx-pad3": None, "idx-nolog": None,
    "idx-wrongbase": None,
    "tidx-dup": 2, "tidx-last-off": 11, "tidx-off+1": 1, "tidx-off-0": 1, "tidx-off-beyond": 1, "tidx-off-equal": 1,
    "tidx-off-neg": 1, "tidx-swap": 1, "tidx-ts+1": 1, "tidx-ts-big": 1, "tidx-ts-equal": 1, "tidx-ts-neg": 1,
    "tidx-ts-small": 1, "tidx-zero-entry": 1, "tidx-last-zero": 10, "tidx-pad5": None, "tidx-cut5": None,
}  # fmt: skip
SEVERAL = {"idx-random", "idx-reverse", "idx-swap-pos", "tidx-noindex-match", "tidx-reverse"}


@pytest.mark.parametrize("folder", sorted((GOLDEN / "damaged").glob("*idx-*")), ids=lambda p: p.name)
def test_every_damage_that_is_not_harmless_is_named(folder):
    found = [f for f in of(folder) if not f.is_remark]
    if folder.name in HARMLESS:
        assert found == []
    elif folder.name in DAMAGED:
        assert [f.entry for f in found] == [DAMAGED[folder.name]]
    else:
        assert folder.name in SEVERAL or folder.name.startswith("txnidx-")
        assert found
