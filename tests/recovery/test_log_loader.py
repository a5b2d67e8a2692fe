"""The dry run of a broker's start. tools/prove/recovery.py compares it with a real broker."""

import errno
import json
import os
import pathlib
import struct
import subprocess

import pytest

from kdump.findings.codes import Code
from kdump.formats import offset_index, producer_snapshot
from kdump.log_dirs.finder import Finder, Wanted
from kdump.recovery import log_loader
from kdump.recovery.log_loader import LoaderRules, content_of, opened
from kdump.recovery.segment_end import skipped
from testing import forge
from testing.processes import kdump
from tests.helpers import log_dirs


def one(offset, **rest):
    return forge.batch([forge.record(b"k", bytes(30))], base_offset=offset, **rest)


def start(folder, files, *, clean=False, indexed=True, **rest):
    """Write ``files`` (base offset -> bytes, or name -> bytes) into a partition, and start."""
    partition = folder / "topic-0"
    partition.mkdir(parents=True)
    for name, data in files.items():
        if isinstance(name, str):
            (partition / name).write_bytes(data)
            continue
        (partition / f"{name:020}.log").write_bytes(data)
        if indexed:
            (partition / f"{name:020}.index").write_bytes(b"")
    (found,) = Finder(Wanted(leftovers=True)).find([str(partition)])
    return log_loader.dry_run(found, clean=clean, **rest)


def spans(outcome):
    return [
        (cut.file[-24:-4].lstrip("0") or "0", cut.position, cut.first_offset, cut.last_offset, cut.records)
        for cut in outcome.cuts
    ]


SOUND = {0: one(0) + one(1), 2: one(2) + one(3), 4: one(4)}
SIZE = len(one(0))
BAD = one(2, crc=1) + one(3)


def test_a_sound_log_loses_nothing(tmp_path):
    outcome = start(tmp_path, SOUND)
    assert (outcome.log_end_offset, outcome.cuts, len(outcome.recovered), outcome.fails) == (5, (), 3, None)


def test_after_a_clean_stop_nothing_is_read(tmp_path):
    outcome = start(tmp_path, {**SOUND, 2: BAD}, clean=True)
    assert (outcome.log_end_offset, outcome.cuts, outcome.recovered) == (5, (), ())


def test_the_first_bad_batch_costs_all_that_follows(tmp_path):
    outcome = start(tmp_path, {**SOUND, 2: BAD})
    assert outcome.log_end_offset == 2
    assert spans(outcome) == [("2", 0, 3, 3, 1), ("4", 0, 4, 4, 1)]
    assert outcome.cuts[0].size == 2 * SIZE


def test_below_the_recovery_point_nothing_is_read(tmp_path):
    outcome = start(tmp_path, {**SOUND, 0: one(0, crc=1) + one(1)}, recovery_point=3)
    assert (outcome.log_end_offset, outcome.cuts, len(outcome.recovered)) == (5, (), 2)


def test_without_an_index_a_segment_is_recovered_and_later_ones_stay(tmp_path):
    outcome = start(tmp_path, {**SOUND, 2: one(2) + one(3, crc=1)}, clean=True, indexed=False)
    assert outcome.log_end_offset == 5
    assert spans(outcome) == [("2", SIZE, None, None, 0)]


def test_any_magic_above_1_passes_and_a_zero_tail_is_cut(tmp_path):
    outcome = start(tmp_path, {0: one(0) + one(1, magic=9) + bytes(500)})
    assert outcome.log_end_offset == 2
    assert [(cut.position, cut.size, cut.records) for cut in outcome.cuts] == [(2 * SIZE, 500, 0)]


def test_offsets_that_go_back_between_index_entries_cost_the_segment(tmp_path):
    data = b"".join(one(offset) for offset in (*range(60), *range(40)))
    assert start(tmp_path, {0: data}).log_end_offset == 0


def test_a_log_that_ends_before_its_start_is_emptied(tmp_path):
    outcome = start(tmp_path, SOUND, log_start=9)
    assert (outcome.log_end_offset, len(outcome.cuts)) == (9, 3)


def test_what_keeps_a_broker_from_loading_the_log(tmp_path):
    assert "does not fit into a segment" in start(tmp_path, {100: one(7)}).fails.text


def test_a_swap_is_finished_unless_its_cleaning_was_not(tmp_path):
    swap = {"00000000000000000000.log.swap": one(0) + one(3), "00000000000000000000.index.swap": b""}
    outcome = start(tmp_path, {**SOUND, **swap})
    assert [name.rpartition("/")[2].lstrip("0") for name in outcome.recovered] == [".log.swap", "4.log"]
    assert outcome.log_end_offset == 5
    cleaned = {"00000000000000000000.log.cleaned": b""}
    (tmp_path / "other").mkdir()
    assert len(start(tmp_path / "other", {**SOUND, **swap, **cleaned}).recovered) == 3


FAR = 1 << 40


def test_a_segment_with_an_offset_that_does_not_fit_is_split(tmp_path):
    outcome = start(tmp_path, {0: one(0) + one(1) + one(FAR), 2: one(2)})
    assert (outcome.log_end_offset, outcome.cuts, outcome.fails) == (FAR + 1, (), None)
    assert [name[-5:] for name in outcome.splits] == ["0.log"]
    loaded = start(tmp_path / "2", {0: one(0) + one(1) + one(FAR)}, clean=True, indexed=False)
    assert (loaded.log_end_offset, len(loaded.splits), loaded.fails) == (FAR + 1, 1, None)


def test_what_is_cut_after_a_split_is_reported_by_its_place_in_the_file(tmp_path):
    outcome = start(tmp_path, {0: one(0) + one(FAR) + one(FAR + 1, crc=7) + one(FAR + 2)})
    assert outcome.log_end_offset == FAR + 1
    (cut,) = outcome.cuts
    assert (cut.position, cut.size, cut.first_offset, cut.records) == (2 * SIZE, 2 * SIZE, FAR + 2, 1)
    both = start(tmp_path / "2", {0: one(0) + one(1, crc=7) + one(FAR)})
    assert [(cut.position, cut.first_offset) for cut in both.cuts] == [(SIZE, FAR)]
    early = start(tmp_path / "3", {0: one(0) + one(FAR) + one(FAR + 1, crc=7), FAR + 5: one(FAR + 5)})
    assert [cut.position for cut in early.cuts] == [2 * SIZE, 0]


@pytest.mark.parametrize(
    "data",
    [
        one(0) + one(FAR) + one(1),  # the last offset fits
        one(0) + one(FAR) + bytes(99),
        one(0) + one(FAR) + one(FAR + 1)[:-1],
        one(0) + one(FAR, last_offset_delta=-7),
    ],
)
def test_what_cannot_be_split_is_not_loaded(tmp_path, data):
    outcome = start(tmp_path, {0: data})
    assert outcome.log_end_offset is None
    assert "split the segment" in outcome.fails.text or "record size" in outcome.fails.text


def test_an_offset_below_the_base_offset_cannot_be_split_away(tmp_path):
    outcome = start(tmp_path, {5: one(0) + one(6)})
    assert "fail" in outcome.fails.text


def test_the_report_shows_a_split(tmp_path):
    start(tmp_path, {0: one(0) + one(FAR) + one(FAR + 1, crc=3)})
    done = kdump("check", tmp_path / "topic-0")
    assert b"a broker would split the segment first" in done.stdout


def test_after_a_clean_stop_an_index_past_the_log_hides_the_segment(tmp_path):
    past = {**SOUND, f"{4:020}.index": offset_index.encode([(4, 0), (6, 2 * SIZE)], 4)}
    outcome = start(tmp_path, past, clean=True)
    assert (outcome.log_end_offset, outcome.cuts) == (4, ())
    assert outcome.hidden_by is not None
    assert outcome.hidden_by.endswith(f"{4:020}.index")


@pytest.mark.parametrize(("by_base", "end"), [(True, 0), (False, 1)])
def test_an_offset_that_goes_back_at_the_end_is_found_by_release(tmp_path, by_base, end):
    files = {0: one(0) + one(1) + one(0), f"{0:020}.index": offset_index.encode([(1, SIZE)], 0)}
    files[0] = (
        one(0)
        + forge.batch([forge.record(b"k", bytes(30)), forge.record(b"k", bytes(30), offset=1)], base_offset=1)
        + one(0)
    )
    files[f"{0:020}.index"] = offset_index.encode([(2, SIZE)], 0)
    rules = LoaderRules(searches_bases=by_base)
    assert start(tmp_path, files, clean=True, indexed=False, rules=rules).log_end_offset == end


@pytest.mark.parametrize(("by_base", "end"), [(True, 0), (False, 4)])
def test_a_repeated_batch_after_the_last_new_index_entry_hides_the_recovered_segment(tmp_path, by_base, end):
    """From 4.1 on no batch after the entry of offset 5 reaches it (tools.prove.many_starts, batch_twice)."""
    batches = [forge.batch([forge.record(b"k", bytes(30))] * 2, base_offset=offset) for offset in (0, 2, 4, 2)]
    rules = LoaderRules(searches_bases=by_base)
    outcome = start(tmp_path, {0: b"".join(batches)}, interval=len(batches[0]), rules=rules)
    assert (outcome.log_end_offset, outcome.cuts, len(outcome.recovered)) == (end, (), 1)


@pytest.mark.parametrize(
    ("from_byte", "rules", "clean", "expected"),
    [
        (SIZE, LoaderRules(), False, (2, "log-unreadable", 0)),  # the second batch of the segment of offset 2
        (SIZE, LoaderRules(forgives_io=False), False, "offline"),
        (0, LoaderRules(), False, "offline"),  # it cannot truncate the segment, either
        (SIZE, LoaderRules(), True, (5, None, 0)),
    ],
)
def test_recovery_empties_a_segment_that_the_disk_cannot_read(tmp_path, monkeypatch, from_byte, rules, clean, expected):
    """From 4.0 on ``LogLoader.recoverLog`` catches the IOException, and truncates the segment to its base offset."""
    pread = os.pread

    def failing(descriptor, size, position):
        name = pathlib.Path(f"/proc/self/fd/{descriptor}").readlink().name
        if name == f"{2:020}.log" and position + size > from_byte:
            raise OSError(errno.EIO, "Input/output error")
        return pread(descriptor, size, position)

    monkeypatch.setattr(os, "pread", failing)
    outcome = start(tmp_path, SOUND, clean=clean, rules=rules)
    if expected == "offline":
        assert (outcome.fails.is_io, outcome.fails.code) == (True, "log-unreadable")
    else:
        first = outcome.cuts[0] if outcome.cuts else None
        said = (outcome.log_end_offset, first and first.code, first.records if first else 0)
        assert (outcome.fails, said) == (None, expected)


@pytest.mark.parametrize("by_base", [True, False])
def test_only_a_search_by_base_offsets_decompresses_old_messages(tmp_path, by_base):
    """A broker of 3.9.2 loads a batch whose magic became 1; one of 4.1 or later stops at it."""
    changed = bytearray(one(4))
    changed[16:18] = 1, 1  # a gzip wrapper
    outcome = start(tmp_path, {**SOUND, 4: bytes(changed)}, clean=True, rules=LoaderRules(searches_bases=by_base))
    assert (outcome.fails is not None, outcome.log_end_offset) == (by_base, None if by_base else 5)


@pytest.mark.parametrize(("folder", "fails"), [(3, False), (4, True), (5, True), (9, False)])
def test_a_replay_writes_snapshots_at_the_last_two_segments_and_the_end(tmp_path, folder, fails):
    """A broker fails if a folder has the name (tools.prove.many_starts, log_folder and seg_lost_last)."""
    files = {**SOUND, f"{2:020}.snapshot": producer_snapshot.encode([])}
    outcome = start(tmp_path, files, clean=True, snapshot_folders=frozenset({folder}))
    assert (outcome.fails is not None) == fails


def test_a_broker_searches_no_end_that_is_the_base_of_the_newest_segment(tmp_path):
    """A broker of 4.2.2 ended such a log at its base: it began to read past the cut, and never saw the old message."""
    changed = bytearray(one(4))
    changed[16:18] = 0, 5  # a wrapper of an unknown codec
    index = offset_index.encode([(5, 2 * SIZE)], 4)
    outcome = start(tmp_path, {**SOUND, 4: bytes(changed), f"{4:020}.index": index}, clean=True, indexed=False)
    assert (outcome.fails, outcome.log_end_offset, outcome.hidden_by is not None) == (None, 4, True)


def test_a_swap_without_an_index_is_not_recovered_after_a_clean_stop(tmp_path):
    """A broker of 4.2.2 created its .index.swap, and loaded offsets that go back; recovery would have stopped it."""
    back = b"".join(one(offset) for offset in (*range(60), *range(40)))
    outcome = start(tmp_path, {**SOUND, f"{0:020}.log.swap": back}, clean=True, indexed=False)
    assert (outcome.fails, outcome.log_end_offset, len(outcome.swapped)) == (None, 40, 1)
    assert not [name for name in outcome.recovered if name.endswith(".swap")]


def test_an_empty_swap_replaces_the_segment_that_it_is_named_for(tmp_path):
    outcome = start(tmp_path, {**SOUND, f"{4:020}.log.swap": b""}, clean=True)
    (cut,) = outcome.cuts
    assert (outcome.log_end_offset, cut.code, cut.records) == (4, "swapped", 1)


def test_a_whole_swap_costs_nothing(tmp_path):
    outcome = start(tmp_path, {**SOUND, f"{0:020}.log.swap": SOUND[0]}, clean=True)
    assert (outcome.log_end_offset, outcome.cuts, len(outcome.swapped)) == (5, (), 1)


def test_a_cleaned_file_discards_swaps_from_its_offset_on(tmp_path):
    files = {**SOUND, f"{2:020}.log.swap": b"", f"{2:020}.index.cleaned": b""}
    outcome = start(tmp_path, files, clean=True)
    assert (outcome.log_end_offset, outcome.cuts, len(outcome.discarded)) == (5, (), 1)


def test_a_name_with_too_few_digits_begins_an_empty_segment(tmp_path):
    assert start(tmp_path, {**SOUND, "9999.log": one(9999)}, clean=True).log_end_offset == 9999


def test_a_negative_position_in_an_index_counts_as_0(tmp_path):
    """``LogSegment.translateOffset`` takes the greater of it and 0; a broker of 4.3.1 ended such a log at its base."""
    for relative, end, is_hidden in ((0, 5, False), (0x776A45B2, 4, True)):
        bad = relative.to_bytes(4, "big") + (-5).to_bytes(4, "big", signed=True)
        place = tmp_path / str(end)
        place.mkdir()
        outcome = start(place, {**SOUND, f"{4:020}.index": bad}, clean=True, indexed=False)
        assert (outcome.fails, outcome.log_end_offset, outcome.hidden_by is not None) == (None, end, is_hidden)


def test_an_index_that_ends_in_a_negative_offset_hides_the_segment(tmp_path):
    """A broker of 4.2.2 ended such a log at the base offset of its newest segment."""
    bad = (-1121187223).to_bytes(4, "big", signed=True) + (1381823830).to_bytes(4, "big")
    outcome = start(tmp_path, {**SOUND, f"{4:020}.index": bad}, clean=True, indexed=False)
    assert (outcome.fails, outcome.log_end_offset, outcome.hidden_by is not None) == (None, 4, True)


def test_an_index_entry_past_the_segment_hides_new_records(tmp_path):
    """A broker of 4.3.1 found the end of such a log, but no consumer received the next record."""
    data = b"".join(one(offset) for offset in range(4, 9))
    entries = [(4, 0), (5, SIZE), (6, 2 * SIZE), (7, 3 * SIZE)]
    index = offset_index.encode(entries, 4) + struct.pack(">ii", -815015739, 608199960)
    outcome = start(tmp_path, {**SOUND, 4: data, f"{4:020}.index": index}, clean=True, indexed=False)
    assert (outcome.fails, outcome.log_end_offset, outcome.hidden_by is not None) == (None, 9, True)


def batch(base):
    return forge.batch([forge.record(None, b"a"), forge.record(None, b"b", offset=1)], base_offset=base)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "t-0"
    place.mkdir()
    (place / f"{0:020}.log").write_bytes(batch(0))
    return place


def of(folder):
    """The base offset and size of each segment that is opened, and the names of the files that are not read."""
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    made = opened(found)
    segments = sorted((each.base_offset, each.size) for each in made.partition.segments)
    return segments, sorted(each.path.rpartition("/")[2] for each in made.unread)


def test_names_of_20_digits_are_opened_as_they_are(folder):
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    made = opened(found)
    assert made.partition is found
    assert made.unread == ()


@pytest.mark.parametrize("name", ["2.log", "+2.log", "2.x.log", f"{2:025}.log", "٢.log"])
def test_a_number_of_other_digits_opens_an_empty_segment(folder, name):
    (folder / name).write_bytes(batch(2))
    size = len(batch(0))
    assert of(folder) == ([(0, size), (2, 0)], [name])
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    made = opened(found)
    (empty,) = (each for each in made.partition.segments if not each.size)
    with empty.open() as source:
        assert source.size == 0
    (unread,) = made.unread
    cut = content_of(unread, Code.SEGMENT_NAME)
    assert (cut.records, cut.first_offset, cut.last_offset) == (2, 2, 3)
    assert f"creates an empty {2:020}.log instead" in cut.reason


def test_a_name_beside_the_right_one_is_not_opened_twice(folder):
    (folder / "0.log").write_bytes(batch(0))
    assert of(folder) == ([(0, len(batch(0)))], [])


def test_two_names_of_one_number_are_one_empty_segment(folder):
    for name in ("2.log", "+2.log"):
        (folder / name).write_bytes(batch(2))
    assert of(folder) == ([(0, len(batch(0))), (2, 0)], ["+2.log", "2.log"])


def test_a_copy_of_another_segment_has_no_records_of_its_own(folder):
    (folder / "9.log").write_bytes(batch(0))
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    (unread,) = opened(found).unread
    assert content_of(unread, Code.SEGMENT_NAME).records == 0


def test_a_name_without_a_number_is_no_segment(folder):
    (folder / "copy.log").write_bytes(batch(2))
    assert of(folder)[1] == []


def test_a_swap_of_a_higher_offset_without_an_index_is_loaded_after_a_clean_stop(tmp_path):
    """The broker creates an empty .index.swap, finds no batch of the base offset, and ends the log at this offset."""
    outcome = start(tmp_path, {**SOUND, f"{800:020}.log.swap": SOUND[0]}, clean=True)
    assert (outcome.fails, outcome.log_end_offset, outcome.cuts) == (None, 800, ())
    assert outcome.hidden_by.endswith(f"{800:020}.log.swap")


@pytest.mark.parametrize(
    ("entries", "lost"),
    [
        ([], 0),
        ([(2, 2 * SIZE)], 0),
        ([(3, -5)], 0),
        ([(1, 2 * SIZE)], 1),
        ([(1, SIZE + 7)], 3),
        ([(2, 9 * SIZE)], 2),
        ([(0, 9 * SIZE)], 4),
    ],
)
def test_wrong_index_entries_skip_records_of_a_segment_that_is_not_recovered(tmp_path, entries, lost):
    """A broker does not verify such an index. A start without the index, or a recovery, rebuilds it."""
    start(tmp_path, {0: b"".join(map(one, range(4))), 4: one(4)}, clean=True)
    index = tmp_path / f"topic-0/{0:020}.index"
    index.write_bytes(offset_index.encode(entries, 0))
    (found,) = Finder(Wanted()).find([str(tmp_path / "topic-0")])
    assert skipped(found.segments[0]) == lost
    assert skipped(found.segments[0], log_start=4) == 0
    log_dirs.node(tmp_path, 1)
    (tmp_path / "topic-0/partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    for is_clean in (False, True):
        if is_clean:
            (tmp_path / ".kafka_cleanshutdown").write_text("")
        for path in (tmp_path, tmp_path / "topic-0"):
            lines = list(map(json.loads, kdump("check", "-o", "jsonl", path).stdout.splitlines()))
            said = [line for line in lines if line.get("code") == "index-skips"]
            want = [(str(index), lost)] if lost and is_clean else []
            assert [(line["file"], line["loses"]) for line in said] == want
        for line in said:
            subprocess.run(["sh", "-c", line["commands"][0]], check=True)
            assert not index.exists()


def test_a_wrong_index_counts_as_it_is_after_the_start(tmp_path):
    """A swap replaces it or brings it, or the start deletes its segment."""
    wrong = offset_index.encode([(0, 9 * SIZE)], 0)
    start(tmp_path, {0: b"".join(map(one, range(4))), 4: one(4)}, clean=True)
    (tmp_path / "topic-0/partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    log_dirs.node(tmp_path, 1)
    (tmp_path / ".kafka_cleanshutdown").write_text("")
    log = tmp_path / f"topic-0/{0:020}.log"
    index, swap = log.with_suffix(".index"), log.with_name(f"{0:020}.index.swap")

    def lost():
        lines = list(map(json.loads, kdump("check", "-o", "jsonl", tmp_path).stdout.splitlines()))
        return [line["file"] for line in lines if line.get("code") == "index-skips"]

    swap.write_bytes(wrong)
    assert lost() == [str(swap)]
    index.write_bytes(wrong)
    swap.write_bytes(b"")
    log.with_name(f"{log.name}.swap").write_bytes(log.read_bytes())
    assert lost() == []
    log.with_name(f"{log.name}.swap").unlink()
    swap.unlink()
    assert lost() == [str(index)]
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\ntopic 0 4\n")
    assert lost() == []


def within(offset, producer=5):
    return one(offset, attributes=0x10, producer_id=producer, producer_epoch=0, base_sequence=0)


def outside(offset, producer=5):
    return one(offset, producer_id=producer, producer_epoch=0, base_sequence=0)


def marker(offset, producer=5, key=b"\0\0\0\1", value=bytes(6)):
    return forge.batch(
        [forge.record(key, value)], base_offset=offset, attributes=0x30, producer_id=producer, producer_epoch=0
    )


ABORT = bytes(4)
STATE = producer_snapshot.encode([])


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    ("batches", "reason"),
    [
        ([within(1), marker(2), outside(3)], None),
        ([within(1), outside(2, producer=6)], None),
        ([within(1), outside(2)], "InvalidTxnStateException: Expected transactional write from producer 5 at offset 2"),
        ([within(1), within(1, producer=6), marker(2), marker(3, producer=6)], "Attempted to complete a transaction"),
    ],
)
def test_the_producer_state_refuses_batches(tmp_path, clean, batches, reason):
    """ProducerAppendInfo and ProducerStateManager throw for any origin: UnifiedLog of 4.3.1 did so on such logs."""
    files = {0: one(0) + b"".join(batches), f"{1:020}.snapshot": STATE}
    outcome = start(tmp_path, files, clean=clean)
    assert (outcome.fails is None) == (reason is None)
    if outcome.fails is not None:
        assert (reason in outcome.fails.text, outcome.fails.code, outcome.fails.is_io) == (True, "producer", False)


def test_the_producer_state_begins_with_the_newest_snapshot(tmp_path):
    entry = producer_snapshot.ProducerEntry(5, 0, 0, 0, 0, 0, 0, 0)
    held = {f"{1:020}.snapshot": producer_snapshot.encode([entry])}
    files = {0: within(0), 1: outside(1), 2: one(2)}
    assert start(tmp_path / "1", {**files, **held}, clean=True).fails.code == "producer"
    assert start(tmp_path / "2", {**files, f"{2:020}.snapshot": STATE}, clean=True).fails is None
    assert start(tmp_path / "3", files, clean=True).fails is None  # without a snapshot nothing is read
    assert start(tmp_path / "4", files, recovery_point=2).fails.code == "producer"  # after a crash all is read


@pytest.mark.parametrize("clean", [True, False])
def test_a_repeated_transaction_ends_the_start_where_it_is_read_at_once(tmp_path, clean):
    """Recovery completes each transaction at its marker, and a replay all of a segment at its end."""
    repeated = (within(1) + marker(2)) * 2
    outcome = start(tmp_path / "1", {0: one(0) + repeated, f"{1:020}.snapshot": STATE}, clean=clean)
    assert (outcome.fails is not None) == clean
    aborted = (within(1) + marker(2, key=ABORT)) * 2
    outcome = start(tmp_path / "2", {0: one(0) + aborted, f"{1:020}.snapshot": STATE}, clean=clean)
    reason = "complete a transaction" if clean else "The last offset of appended transactions must increase"
    assert reason in outcome.fails.text


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("later", [True, False])
@pytest.mark.parametrize(
    ("changes", "old"),
    [
        ({"key": None}, False),
        ({"key": b"\0\0\0"}, False),
        ({"value": None}, False),
        ({"value": b"\0\0\0\0\0"}, False),
        ({"value": b"\0\0\0\0\0"}, True),
        ({"value": b"\xff\xff\0\0\0\0"}, False),
    ],
)
def test_a_malformed_marker_ends_any_start_that_reads_it(tmp_path, clean, later, changes, old):
    """Recovery keeps the marker, and the rebuild of the producer state then reads it again (UnifiedLog of 4.3.1)."""
    files = {0: one(0), 1: marker(1, **changes), f"{1:020}.snapshot": STATE}
    outcome = start(
        tmp_path,
        {**files, **({2: one(2)} if later else {})},
        clean=clean,
        rules=LoaderRules(checks_marker_size=old),
    )
    assert (outcome.fails.code, outcome.fails.is_io) == ("control-record", False)


@pytest.mark.parametrize(("size", "fits"), [(4000, True), (119, True), (72, True), (71, False)])
def test_an_index_larger_than_its_topic_allows_ends_the_start(tmp_path, size, fits):
    """``AbstractIndex.resize`` throws if the entries of the newest segment exceed segment.index.bytes (4.3.1)."""
    files = {**SOUND, f"{4:020}.timeindex": bytes(72)}
    for number, newest in enumerate((72, 8)):
        index = {f"{4:020}.index": bytes(newest)}
        outcome = start(tmp_path / str(number), {**files, **index}, clean=True, rules=LoaderRules(index_size=size))
        assert (outcome.fails is None) == fits
    assert fits or outcome.fails.code == "index-too-large"
    assert start(tmp_path / "2", files, clean=True, rules=LoaderRules(index_size=None)).fails is None


@pytest.mark.parametrize("grows", [True, False])
def test_recovery_fails_if_a_new_index_is_full(tmp_path, grows):
    """With rising timestamps the time index is full first, one entry before its end. UnifiedLog of 4.3.1 agrees."""
    batches = [one(offset, base_timestamp=offset if grows else 0) for offset in range(12)]
    most = 11 * 12 + 12 if grows else 11 * 8  # eleven entries
    for size, fits in ((most, True), (most - 1, False)):
        folder = tmp_path / str(size)
        outcome = start(folder, {0: b"".join(batches)}, interval=0, rules=LoaderRules(index_size=size))
        assert (outcome.fails is None) == fits


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(("size", "fails"), [(2**31 - 1, False), (2**31, True)])
def test_a_segment_above_2_gib_ends_any_start(tmp_path, clean, size, fails):
    """FileRecords throws KafkaException as it opens the file, before it reads a batch (UnifiedLog of 4.3.1)."""
    partition = tmp_path / "topic-0"
    partition.mkdir()
    for base, batch in ((0, one(0)), (1, one(1))):
        (partition / f"{base:020}.log").write_bytes(batch)
        (partition / f"{base:020}.index").write_bytes(b"")
    (partition / f"{1:020}.snapshot").write_bytes(STATE)
    os.truncate(partition / f"{0:020}.log", size)  # a broker reads no batch before the snapshot
    (found,) = Finder(Wanted(leftovers=True)).find([str(partition)])
    outcome = log_loader.dry_run(found, clean=clean, recovery_point=1)
    assert (outcome.fails is not None) == fails
    assert not fails or (outcome.fails.code, outcome.fails.is_io) == ("segment-too-large", False)


def old(offset):
    return forge.entry(offset, forge.message(1, b"k", bytes(30), timestamp=5))


EMPTY = forge.wrapper(1, 1, b"", timestamp=5)


@pytest.mark.parametrize(
    ("files", "killed", "clean"),
    [
        ({0: old(0) + EMPTY}, None, 2),
        ({0: old(0) + EMPTY + old(2)}, None, 3),
        ({0: old(0) + EMPTY, 2: old(2)}, 3, 3),
        ({0: EMPTY + old(2)}, None, None),
        ({0: old(0), 1: EMPTY + old(2)}, None, None),
        ({0: EMPTY + one(2)}, None, None),
    ],
)
def test_a_wrapper_without_messages_stops_a_search_that_reaches_it(tmp_path, files, killed, clean):
    """As UnifiedLog of 4.3.1. ``LogSegment.recover`` makes no producer state of old messages, so a start replays them.

    ``killed`` and ``clean``: the log end offsets, or None if the log cannot be loaded.
    """
    for state, expected in (("killed", killed), ("clean", clean)):
        outcome = start(tmp_path / state, files, clean=state == "clean")
        assert outcome.log_end_offset == expected
        assert (None if outcome.fails is None else outcome.fails.code) is (None if expected else Code.LOG_UNREADABLE)
