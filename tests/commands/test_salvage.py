"""kdump salvage and kdump slice: they copy valid batches unchanged into a folder that a broker can open."""

import io
import json
import os
import random
import resource
import shutil
import tarfile

import pytest

from kdump.errors import UnreadableError, UsageError
from kdump.formats import partition_metadata
from kdump.formats.partition_metadata import PartitionMetadata
from kdump.formats.record_layout import TIMESTAMP_TYPE_FLAG
from kdump.formats.sparse_index import MAX_RELATIVE_OFFSET
from kdump.log_dirs import local
from kdump.log_dirs.finder import Finder
from kdump.log_salvage import merge, writer
from kdump.output import files
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync
from testing import GOLDEN, forge
from testing.processes import kdump


def one(offset, *, value=b"v", **rest):
    return forge.batch([forge.record(b"k%d" % offset, value)], base_offset=offset, **rest)


def copy(folder, *segments):
    place = folder / "orders-0"
    place.mkdir(parents=True)
    for base, data in segments:
        (place / f"{base:020}.log").write_bytes(data)
    return place


def rescued(out, name="orders-0"):
    return b"".join(path.read_bytes() for path in sorted((out / "logs" / name).glob("*.log")))


def account(out, name="orders-0"):
    return json.loads((out / "lost+found" / name / "account.json").read_bytes())


def test_valid_batches_come_back_and_the_rest_is_accounted_for(tmp_path):
    bad = one(2, crc=7)
    place = copy(tmp_path / "in", (0, one(0) + one(1) + bad + one(3)), (4, one(4) + bytes(300)))
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    done = kdump("salvage", place, "--out", tmp_path / "out")
    assert done.returncode == 3
    assert b"byte 138" in done.stderr or b"not recovered" in done.stderr
    assert rescued(tmp_path / "out") == one(0) + one(1) + one(3) + one(4)
    reported = account(tmp_path / "out")
    assert reported["missingOffsets"] == [{"missingFrom": 2, "missingUntil": 3, "belowLogStart": None}]
    assert (reported["batches"], reported["paddingBytes"], reported["firstOffset"], reported["lastOffset"]) == (
        4,
        300,
        0,
        4,
    )
    (lost,) = reported["lost"]
    assert (lost["kind"], lost["missingFrom"], lost["missingUntil"]) == ("crc", 2, 3)
    assert (tmp_path / "out" / "lost+found" / "orders-0" / lost["savedAs"]).read_bytes() == bad
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    assert kdump("verify-index", "-q", tmp_path / "out" / "logs").returncode == 0


def write_half(target):
    """Write a file, and fail at the next one."""
    with files.new_folder(target, last="file") as temporary:
        (temporary / "file").write_bytes(b"")
        (temporary / "missing" / "file").write_bytes(b"")


def test_nothing_is_overwritten_and_nothing_half_done_stays(tmp_path):
    place = copy(tmp_path / "in", (0, one(0)))
    assert kdump("salvage", "-q", place, "--out", tmp_path / "out").returncode == 0
    again = kdump("salvage", place, "--out", tmp_path / "out")
    assert (again.returncode, b"already" in again.stderr) == (2, True)
    with pytest.raises(UnreadableError):
        write_half(tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
    with pytest.raises(UsageError), files.new_folder(tmp_path / "in", last="file"):
        pass


def test_replicas_are_merged_by_offset_and_leader_epoch(tmp_path):
    first = copy(tmp_path / "1", (0, one(0) + one(1, crc=1) + one(2, leader_epoch=1) + one(3, leader_epoch=1)))
    second = copy(tmp_path / "2", (0, one(0) + one(1) + one(2, leader_epoch=2, value=b"w")))
    third = copy(tmp_path / "3", (1, one(1) + one(4, leader_epoch=2)))
    kdump("salvage", first, second, third, "--out", tmp_path / "out")
    expected = [one(0), one(1), one(2, leader_epoch=2, value=b"w"), one(3, leader_epoch=1), one(4, leader_epoch=2)]
    assert rescued(tmp_path / "out") == b"".join(expected)
    reported = account(tmp_path / "out")
    assert [lost["kind"] for lost in reported["lost"]] == ["crc", "conflict"]
    assert (reported["duplicates"], len(reported["copies"]), reported["missingOffsets"]) == (2, 3, [])


@pytest.mark.parametrize("leftover", [False, True])
def test_folders_of_another_topic_of_the_same_name_are_left_out(tmp_path, leftover):
    def with_id(place, number, seconds):
        metadata = partition_metadata.encode(PartitionMetadata(0, number * 16))
        (place / "partition.metadata").write_bytes(metadata)
        os.utime(place / f"{0:020}.log", (seconds, seconds))
        return place

    # a log dir whose name ends as a folder of remote storage does
    new = with_id(copy(tmp_path / "data-nub61tcETP6KClWv92MVHg", (0, one(0) + one(1))), b"1", 9_000)
    old = with_id(copy(tmp_path / "2", (0, one(0, value=b"old") + one(1) + one(2, value=b"old"))), b"2", 8_000)
    without = copy(tmp_path / "3", (0, one(0) + one(1) + one(3)))
    (old.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 2\n")
    if leftover:
        os.utime(old / f"{0:020}.log", (10_000, 10_000))
        old = old.rename(old.with_name(f"orders-0.{'a' * 32}-stray"))
    inputs = [old.parent, new.parent, without.parent]
    done = kdump("salvage", *inputs, "--leftovers", "--out", tmp_path / "out")
    assert done.returncode == 3
    ids = "its topic id is MjIyMjIyMjIyMjIyMjIyMg, but the topic id of the written log is MTExMTExMTExMTExMTExMQ"
    assert f"error: {old} is not read: {ids}" in done.stderr.decode()
    assert b"all other bytes, except 1 folder of another topic" in done.stderr
    assert rescued(tmp_path / "out") == one(0) + one(1) + one(3)
    assert len(account(tmp_path / "out")["copies"]) == 2
    assert not (tmp_path / "out" / "logs" / "log-start-offset-checkpoint").exists()
    kdump("salvage", old, "--out", tmp_path / "other")
    names = [path.name for path in (tmp_path / "other" / "logs").iterdir() if path.is_dir()]
    assert names == ["orders-0"]


def test_a_batch_whose_offset_its_neighbours_contradict_is_not_placed(tmp_path):
    place = copy(tmp_path / "in", (0, one(0) + one(700) + one(2) + one(3)))
    kdump("salvage", place, "--out", tmp_path / "out")
    assert rescued(tmp_path / "out") == one(0) + one(2) + one(3)
    assert [lost["kind"] for lost in account(tmp_path / "out")["lost"]] == ["misplaced"]


def test_a_wrapper_of_magic_0_with_another_offset_than_its_last_message_is_not_placed(tmp_path):
    inner = [(1, forge.message(0, b"k", b"v")), (2, forge.message(0, b"k", b"w"))]
    for number, offset in enumerate((9, 1 << 60)):
        place = copy(tmp_path / f"in{number}", (0, one(0) + forge.wrapper(0, offset, inner)))
        kdump("salvage", place, "--out", tmp_path / f"out{number}")
        assert rescued(tmp_path / f"out{number}") == one(0)
        assert [lost["kind"] for lost in account(tmp_path / f"out{number}")["lost"]] == ["offset"]


def test_swapped_and_doubled_batches_come_back_in_order(tmp_path):
    swapped = [one(0), one(3), one(4), one(1), one(2), one(2), one(5)]
    place = copy(tmp_path / "in", (0, b"".join(swapped)))
    kdump("salvage", place, "--out", tmp_path / "out")
    assert rescued(tmp_path / "out") == b"".join(one(offset) for offset in range(6))


def test_segments_have_a_greatest_size(tmp_path):
    place = copy(tmp_path / "in", (0, b"".join(one(n, value=bytes(400)) for n in range(9))))
    kdump("salvage", "-q", place, "--out", tmp_path / "out", "--segment-bytes", 1024)
    assert [path.stem.lstrip("0") for path in sorted((tmp_path / "out/logs/orders-0").glob("*.log"))] == [
        "",
        "2",
        "4",
        "6",
        "8",
    ]


def test_segments_keep_no_room_that_was_set_aside_for_them(tmp_path):
    """The first segment ends at an offset that does not fit into it: it might have contained all later batches."""
    offsets = [0, 1, MAX_RELATIVE_OFFSET + 1, MAX_RELATIVE_OFFSET + 2]
    place = copy(tmp_path / "in", (0, b"".join(one(offset, value=bytes(900_000)) for offset in offsets)))
    kdump("salvage", "-q", place, "--out", tmp_path / "out", check=True)
    files = sorted((tmp_path / "out/logs/orders-0").glob("*.log"))
    assert len(files) == 2
    for file in files:
        held = file.stat()
        assert held.st_blocks * 512 <= held.st_size + (1 << 16)


@pytest.mark.parametrize("missing", [1, 4000, 600_000])
def test_a_disk_that_is_full_amid_a_log_or_at_its_end_is_reported_in_one_line(tmp_path, missing):
    data = b"".join(one(offset, value=bytes(900_000)) for offset in range(2))
    place = copy(tmp_path / "in", (0, data))
    limit = len(data) - missing
    done = kdump(
        *("salvage", "-q", place, "--out", tmp_path / "out"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {tmp_path}/out: cannot be written: File too large\nhint: ".encode())
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("source", sorted((GOLDEN / "brokers" / "4.2.2").glob("[!_]*-0")), ids=lambda path: path.name)
def test_golden_logs_come_back_to_the_byte(tmp_path, source):
    logs = sorted(source.glob("*.log"))
    out = tmp_path / "out"
    (found,) = Finder().find([str(source)])
    _, account = writer.write(source.name, [found], out, writer.SegmentLimits())
    assert rescued(out, source.name) == b"".join(path.read_bytes() for path in logs)
    assert account.lost == []


def test_what_is_damaged_at_random_comes_back_whole_from_two_copies(tmp_path):
    source = GOLDEN / "brokers" / "4.2.2" / "c-zstd-0"
    whole = b"".join(path.read_bytes() for path in sorted(source.glob("*.log")))
    for seed in range(10):
        rng = random.Random(seed)
        copies = []
        for number in range(2):
            place = tmp_path / f"{seed}-{number}" / "c-zstd-0"
            shutil.copytree(source, place)
            log = sorted(place.glob("*.log"))[number]  # never the same batch in both
            data = bytearray(log.read_bytes())
            data[rng.randrange(20, len(data))] ^= 0x55
            log.write_bytes(data)
            copies += Finder().find([str(place)])
        _, account = writer.write("c-zstd-0", copies, tmp_path / f"{seed}-out", writer.SegmentLimits())
        assert rescued(tmp_path / f"{seed}-out", "c-zstd-0") == whole
        assert list(account.gaps) == []


def test_a_slice_is_a_sound_segment(tmp_path):
    place = copy(tmp_path / "in", (0, one(0) + one(1)), (2, one(2) + one(3)), (4, one(4)))
    out = tmp_path / "00000000000000000001.log"
    done = kdump("slice", place, "--offset", "1..3", "--out", out)
    assert (done.returncode, out.read_bytes()) == (0, one(1) + one(2) + one(3))
    with local.LocalFile(out) as source:
        assert all(isinstance(region, RecordBatch) for region in resync.read(source))
    assert kdump("slice", place, "--offset", "1..3", "--out", out).returncode == 2
    assert kdump("slice", place, "--offset", "9..", "--out", tmp_path / "none.log").returncode == 2
    assert not (tmp_path / "none.log").exists()
    (place / f"{2:020}.log").write_bytes(one(2, crc=3) + one(3))
    assert kdump("slice", place, "--offset", "..3", "--out", tmp_path / "more.log").returncode == 3
    assert (tmp_path / "more.log").read_bytes() == one(0) + one(1) + one(3)


def test_a_slice_says_which_offsets_it_holds_beyond_those_asked_for(tmp_path):
    records = [forge.record(b"k", b"v", offset=number) for number in range(5)]
    place = copy(tmp_path / "in", (0, forge.batch(records) + forge.batch(records, base_offset=5)))
    said = kdump("slice", place, "--offset", "2..7", "--out", tmp_path / "all.log").stderr.decode()
    assert "wrote 2 batches, offsets 0 to 9. To give the file to a broker, name it" in said
    assert "the first batch has offsets 0 to 4: it starts before offset 2" in said
    assert "the last batch has offsets 5 to 9: it ends after offset 7" in said
    said = kdump("slice", place, "--offset", "5..9", "--out", tmp_path / "one.log").stderr.decode()
    assert said.count("note: ") == 1
    said = kdump("slice", place, "--offset", "0..0", "--out", tmp_path / "first.log").stderr.decode()
    assert "the last batch has offsets 0 to 4: it ends after offset 0" in said
    assert "-1" not in said


def test_a_slice_reports_a_truncated_batch_that_may_hold_its_offsets(tmp_path):
    whole, out = one(0) + one(1), tmp_path / "s.log"
    place = copy(tmp_path / "in", (0, whole + one(2)[:-3]))
    said = kdump("slice", place, "--offset", "1..", "--out", out)
    assert (said.returncode, out.read_bytes()) == (3, one(1))
    size = len(one(2)) - 3
    assert f"byte {len(whole)}: {size} bytes left out: the file ends inside a batch".encode() in said.stderr
    lost = kdump("slice", place, "--offset", "2", "--out", tmp_path / "none.log")
    assert (lost.returncode, (tmp_path / "none.log").exists()) == (3, False)
    assert kdump("slice", place, "--offset", "0..1", "--out", tmp_path / "sound.log").returncode == 0


def test_a_slice_of_lost_offsets_writes_nothing_and_damage_elsewhere_is_no_matter(tmp_path):
    place = copy(tmp_path / "in", (0, one(0) + one(1, crc=7) + one(2) + one(3)))
    out = tmp_path / "s.log"
    lost = kdump("slice", place, "--offset", "1", "--out", out)
    assert (lost.returncode, out.exists()) == (3, False)
    assert b"nothing was written: no valid batch covers --offset 1" in lost.stderr
    sound = kdump("slice", place, "--offset", "2..3", "--out", out)
    assert (sound.returncode, out.read_bytes()) == (0, one(2) + one(3))
    assert b"2 batches, offsets 2 to 3" in sound.stderr
    folder = kdump("slice", place, "--offset", "2", "--out", tmp_path)
    assert (folder.returncode, b"is a folder" in folder.stderr) == (2, True)


@pytest.mark.parametrize("release", ["0.8.2.1", "0.10.2.2", "4.2.2"])
def test_a_slice_of_compressed_batches_is_sound_under_any_name(tmp_path, release):
    out = tmp_path / "s.log"
    assert kdump("slice", GOLDEN / "brokers" / release / "c-gzip-0", "--offset", "10..20", "--out", out).returncode == 0
    done = kdump("check", "-q", out)
    assert (done.returncode, done.stdout) == (0, b"")


def test_a_slice_with_aborted_transactions_needs_no_index(tmp_path):
    out = tmp_path / "s.log"
    assert kdump("slice", GOLDEN / "brokers" / "4.2.2" / "txn-0", "--offset", "10..30", "--out", out).returncode == 0
    done = kdump("check", out)
    assert (done.returncode, b"WRONG" in done.stdout) == (0, False)


def test_where_nothing_is_there_to_salvage_nothing_is_written(tmp_path):
    (tmp_path / "in").mkdir()
    for path in (tmp_path / "in", tmp_path / "missing"):
        assert kdump("salvage", path, "--out", tmp_path / "out").returncode == 1
        assert not (tmp_path / "out").exists()


def test_the_output_of_salvage_never_lies_in_what_it_reads(tmp_path):
    place = copy(tmp_path / "in", (0, one(0)))
    for path in (place, tmp_path / "in"):
        done = kdump("salvage", path, "--out", place / "out")
        assert (done.returncode, (place / "out").exists()) == (2, False)
        assert b"name a place outside" in done.stderr


def test_salvage_ends_with_what_to_do_next(tmp_path):
    place = copy(tmp_path / "in", (0, one(0) + one(1, crc=7) + one(2)))
    done = kdump("salvage", place, "--out", tmp_path / "out").stderr.decode().splitlines()[-1]
    assert "2 records in 2 batches of 1 partition are in" in done
    assert "1 offset is missing between them" in done
    assert "What to do next" in done
    sound = copy(tmp_path / "sound", (0, one(0)))
    done = kdump("salvage", sound, "--out", tmp_path / "out2").stderr.decode().splitlines()[-1]
    assert done == (
        f"note: no batch and no offset is missing: 1 record in 1 batch of 1 partition is in {tmp_path}/out2/logs. "
        f"To verify the records: kdump check {tmp_path}/out2/logs"
    )
    old = copy(tmp_path / "old", (0, forge.entry(0, forge.message(1, b"k", b"v"))))
    done = kdump("salvage", old, "--out", tmp_path / "out3").stderr.decode().splitlines()[-1]
    assert done.startswith(
        f"note: no batch and no offset is missing: 1 batch of 1 partition is in {tmp_path}/out3/logs. To verify"
    )


def test_salvage_goes_on_where_a_file_cannot_be_read(tmp_path):
    place = copy(tmp_path / "1", (0, one(0)), (1, one(1)), (2, one(2)))
    (place / f"{1:020}.log").unlink()
    (place / f"{1:020}.log").symlink_to("gone")
    (place / "partition.metadata").symlink_to("gone")
    other = copy(tmp_path / "1" / "x", (0, one(0)))
    other.rename(tmp_path / "1" / "other-0")
    done = kdump("salvage", tmp_path / "1", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert b"1.log: 0 bytes could not be read: No such file" in done.stderr
    assert b"partition.metadata: No such file" in done.stderr
    assert b"all other bytes that could be read" in done.stderr
    assert (rescued(tmp_path / "out"), rescued(tmp_path / "out", "other-0")) == (one(0) + one(2), one(0))
    (lost,) = account(tmp_path / "out")["lost"]
    assert (lost["kind"], lost["savedAs"]) == ("unreadable", None)


def test_a_disk_that_fails_in_the_middle_of_a_file_costs_what_follows(tmp_path, monkeypatch):
    place = copy(tmp_path / "in", (0, one(0) + one(1) + one(2, attributes=TIMESTAMP_TYPE_FLAG)))
    whole = resync.read

    def fails(source, **rest):
        yield from list(whole(source, **rest))[:-1]
        raise UnreadableError(place, "Input/output error")

    monkeypatch.setattr(resync, "read", fails)
    placed, account = merge.merge(Finder().find([str(place)]))
    (lost,) = account.lost
    assert [(each.base_offset, each.last_offset, each.count) for each in placed] == [(0, 1, 2)]
    assert (lost.kind, lost.position, lost.size) == ("unreadable", len(one(0) + one(1)), len(one(2)))


CHANGES = {
    "cut": lambda data: data[:-1],
    "cut at a batch": lambda data: data[: -len(one(2))],
    "written to": lambda data: data[:-1] + b"x",
    "written anew": lambda data: data[: -len(one(2))] + one(7),
    "gone": lambda data: data[:0],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_log_that_changes_between_the_two_looks_is_not_written(tmp_path, change):
    place = copy(tmp_path / "in", (0, one(0) + one(1) + one(2)))
    found = Finder().find([str(place)])
    placed, _ = merge.merge(found)
    log = place / f"{0:020}.log"
    log.write_bytes(change(log.read_bytes()))
    with pytest.raises(UnreadableError, match=r"byte \d+: the file has changed since"):
        list(merge.batches(placed))


def test_nothing_is_written_into_a_log_dir(tmp_path):
    place = copy(tmp_path / "in", (0, one(0)))
    (tmp_path / "in" / "meta.properties").write_bytes(b"version=1\nnode.id=1\ncluster.id=c\n")
    for command in (("salvage",), ("slice", "--offset", "0")):
        done = kdump(*command, place, "--out", tmp_path / "in" / "out")
        assert (done.returncode, (tmp_path / "in" / "out").exists()) == (2, False)
        assert b"is in the log dir" in done.stderr


def test_a_slice_never_becomes_part_of_the_log(tmp_path):
    place = copy(tmp_path / "in", (0, one(0) + one(1)))
    for path, out in ((place, place / "s.log"), (place / f"{0:020}.log", place / f"{1:020}.log"), (place, "-")):
        done = kdump("slice", path, "--offset", "1", "--out", out, cwd=tmp_path)
        assert (done.returncode, b"name " in done.stderr) == (2, True)
    assert sorted(path.name for path in (*tmp_path.iterdir(), *place.iterdir())) == [f"{0:020}.log", "in"]


def test_what_to_do_next_names_what_salvage_does_not_write(tmp_path):
    place = copy(tmp_path / "in", (0, one(0) + one(1, crc=1) + one(2)))
    done = kdump("salvage", place, "--out", tmp_path / "out")
    last = done.stderr.decode().splitlines()[-1]
    assert done.returncode == 3
    assert "copy the folder logs, put the broker's meta.properties into the copy" in last
    assert "records that DeleteRecords removed may reappear" in last
    assert not (tmp_path / "out" / "logs" / "meta.properties").exists()


def test_a_log_that_ends_below_its_start_offset_has_no_checkpoint(tmp_path):
    """A broker would delete a log below its log start offset."""
    place = copy(tmp_path / "in", (0, one(0) + one(1, crc=1)))
    (tmp_path / "in" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 20\n")
    done = kdump("salvage", place, "--out", tmp_path / "out")
    last = done.stderr.decode().splitlines()[-1]
    assert "No checkpoint was written: records that DeleteRecords removed may reappear" in last
    assert not (tmp_path / "out" / "logs" / "log-start-offset-checkpoint").exists()


def test_what_delete_records_removed_is_distinguished_from_what_is_lost(tmp_path):
    """The log start offset is only in a checkpoint: batches below it are still in the segment."""
    place = copy(tmp_path / "in", (0, b"".join((one(0), one(1, crc=1), one(2), one(5), one(6, crc=1), one(7)))))
    (tmp_path / "in" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    done = kdump("salvage", place, "--out", tmp_path / "out")
    reported = account(tmp_path / "out")
    assert (reported["version"], reported["logStartOffset"], reported["batches"]) == (2, 4, 4)
    assert reported["belowLogStart"] == {"batches": 2, "bytes": 2 * len(one(0)), "firstOffset": 0, "lastOffset": 2}
    lost = [(one["missingFrom"], one["missingUntil"], one["belowLogStart"]) for one in reported["lost"]]
    assert lost == [(1, 2, True), (6, 7, False)]
    assert [tuple(gap.values()) for gap in reported["missingOffsets"]] == [
        (1, 2, True), (3, 4, True), (4, 5, False), (6, 7, False)
    ]  # fmt: skip
    said = done.stderr.decode()
    assert "orders-0: 2 batches are below the log start offset 4 (DeleteRecords or retention)\n" in said
    assert "No checkpoint was written except log-start-offset-checkpoint, which hides" in said.splitlines()[-1]
    written = (tmp_path / "out" / "logs" / "log-start-offset-checkpoint").read_text()
    assert written == "0\n1\norders 0 4\n"


def test_a_log_begins_and_ends_where_it_did(tmp_path):
    """A compacted log's first segment keeps its name, and an empty last segment keeps the log end offset."""
    place = copy(tmp_path / "in", (0, b""), (10, one(14) + one(17)), (20, b""))
    done = kdump("salvage", place, "--out", tmp_path / "out")
    assert done.returncode == 0
    logs = tmp_path / "out" / "logs"
    assert {path.name: path.read_bytes() for path in sorted((logs / "orders-0").glob("*.log"))} == {
        f"{0:020}.log": one(14) + one(17),
        f"{20:020}.log": b"",
    }
    gaps = [(gap["missingFrom"], gap["missingUntil"]) for gap in account(tmp_path / "out")["missingOffsets"]]
    assert gaps == [(15, 17), (18, 20)]
    assert not (logs / "log-start-offset-checkpoint").exists()
    assert kdump("verify-index", "-q", logs).returncode == 0
    place = copy(tmp_path / "empty", (9, b""))
    assert kdump("salvage", place, "--out", tmp_path / "out2").returncode == 0
    assert [path.name for path in (tmp_path / "out2" / "logs" / "orders-0").glob("*.log")] == [f"{9:020}.log"]


def test_a_first_segment_too_far_below_its_first_batch_stays_empty(tmp_path):
    first = MAX_RELATIVE_OFFSET + 1
    place = copy(tmp_path / "in", (0, b""), (first, one(first)))
    assert kdump("salvage", place, "--out", tmp_path / "out").returncode == 0
    found = sorted((tmp_path / "out" / "logs" / "orders-0").glob("*.log"))
    assert [(path.name, path.read_bytes()) for path in found] == [
        (f"{0:020}.log", b""),
        (f"{first:020}.log", one(first)),
    ]


def test_a_log_start_offset_beyond_the_log_is_not_written(tmp_path):
    place = copy(tmp_path / "in", (0, one(0)))
    (tmp_path / "in" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 900\n")
    kdump("salvage", place, "--out", tmp_path / "out")
    assert not (tmp_path / "out" / "logs" / "log-start-offset-checkpoint").exists()


def test_leader_epochs_of_remote_segments_are_kept(tmp_path):
    place = copy(tmp_path / "in", (20, one(20, leader_epoch=4) + one(21, leader_epoch=6)))
    (place / "leader-epoch-checkpoint").write_text("0\n4\n0 0\n3 7\n4 15\n6 21\n")
    (tmp_path / "in" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 2\n")
    assert kdump("salvage", place, "--out", tmp_path / "out").returncode == 0
    logs = tmp_path / "out" / "logs"
    assert (logs / "orders-0" / "leader-epoch-checkpoint").read_text() == "0\n4\n0 0\n3 7\n4 15\n6 21\n"
    assert (logs / "log-start-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"


def test_without_anything_below_the_log_start_nothing_may_be_back(tmp_path):
    place = copy(tmp_path / "in", (4, one(4) + one(5, crc=1) + one(6)))
    (tmp_path / "in" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    done = kdump("salvage", place, "--out", tmp_path / "out")
    reported = account(tmp_path / "out")
    assert (reported["logStartOffset"], reported["belowLogStart"], reported["lost"][0]["belowLogStart"]) == (
        4,
        None,
        False,
    )
    assert done.stderr.decode().splitlines()[-1].endswith("and name the copy in log.dirs. No checkpoint was written")


def test_salvage_does_not_call_gaps_nothing(tmp_path):
    place = copy(tmp_path / "in", (0, one(0)), (2, one(2)))
    reported = kdump("salvage", place, "--out", tmp_path / "out").stderr
    assert (b"no offset is missing" in reported, b"1 offset is missing between them" in reported) == (False, True)
    assert b"orders-0: offset 1 is missing" in reported
    empty = copy(tmp_path / "empty", (0, b""))
    assert b"no batch was found" in kdump("salvage", empty, "--out", tmp_path / "out2").stderr


def test_a_gap_of_any_size_takes_no_time(tmp_path):
    place = copy(tmp_path / "in", (0, one(0) + one(1 << 60)))
    assert kdump("salvage", place, "--out", tmp_path / "out", timeout=60).returncode == 0
    (gap,) = account(tmp_path / "out")["missingOffsets"]
    assert (gap["missingFrom"], gap["missingUntil"]) == (1, 1 << 60)


@pytest.mark.parametrize("letter", ["x", "ä"])
def test_names_in_an_archive_may_be_longer_than_a_disk_takes(tmp_path, letter):
    names = [f"{letter * 300}{end}" for end in ("a-0", "b-0", "c", "d-1234567")]
    with tarfile.open(tmp_path / "in.tar", "w") as tar:
        for number, name in enumerate(names):
            member = tarfile.TarInfo(f"{name}/{0:020}.log")
            member.size = len(one(number))
            tar.addfile(member, io.BytesIO(one(number)))
    done = kdump("salvage", tmp_path / "in.tar", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    made = sorted((tmp_path / "out" / "logs").glob("*-*"))
    assert len(made) == 4
    assert all(len(os.fsencode(folder.name)) <= 255 for folder in made)
    held = [b"".join(path.read_bytes() for path in folder.glob("*.log")) for folder in made]
    assert sorted(held) == sorted(one(number) for number in range(4))
    assert kdump("salvage", tmp_path / "in.tar", "--out", tmp_path / "again").returncode == 0
    assert [folder.name for folder in made] == sorted(path.name for path in (tmp_path / "again" / "logs").glob("*-*"))
