"""How many records are lost when a start replaces segments with a ``.swap`` file."""

import posixpath

import pytest

from kdump.formats import txn_index
from kdump.log_dirs.finder import Finder, Wanted
from kdump.recovery import log_loader, swaps
from testing import forge
from testing.processes import kdump


def batch(base, *keys, value=b"v"):
    records = [forge.record(key, value, offset=number) for number, key in enumerate(keys)]
    return forge.batch(records, base_offset=base)


@pytest.fixture
def folder(tmp_path):
    """Two segments: three batches of two records, and a batch that repeats the keys a and b."""
    place = tmp_path / "t-0"
    place.mkdir()
    old = batch(0, b"a", b"b") + batch(2, b"a", b"c") + batch(4, b"b", b"a")
    (place / f"{0:020}.log").write_bytes(old)
    (place / f"{6:020}.log").write_bytes(batch(6, b"a", b"b"))
    for base in (0, 6):
        (place / f"{base:020}.index").write_bytes(b"")
    return place


def cut(folder):
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    return [each for each in log_loader.dry_run(found, clean=True).cuts if each.code == "swapped"]


def test_a_batch_whose_end_is_missing_is_lost(folder):
    """This holds at every byte: only batches that are complete in the file are kept."""
    data = (folder / f"{0:020}.log").read_bytes()
    ends = [len(batch(0, b"a", b"b")) * number for number in (1, 2, 3)]
    for size in range(len(data)):
        (folder / f"{0:020}.log.swap").write_bytes(data[:size])
        (found,) = cut(folder)
        whole = sum(end <= size for end in ends)
        assert (found.records, found.position) == (6 - 2 * whole, ([0, *ends])[whole])
        assert found.is_replaced_by_nothing == (not size)


def test_the_whole_file_costs_nothing(folder):
    (folder / f"{0:020}.log.swap").write_bytes((folder / f"{0:020}.log").read_bytes())
    assert cut(folder) == []


def test_records_of_overlapping_segments_are_counted_by_offset(folder):
    """A second segment repeats offsets 2 to 5: the swap file of the first has them too, or lacks some."""
    (folder / f"{2:020}.log").write_bytes(batch(2, b"a", b"c") + batch(4, b"b", b"a"))
    first = (folder / f"{0:020}.log").read_bytes()
    (folder / f"{0:020}.log.swap").write_bytes(first)
    assert sum(each.records for each in cut(folder)) == 0
    (folder / f"{0:020}.log.swap").write_bytes(batch(0, b"a", b"b") + batch(4, b"b", b"a"))
    assert sum(each.records for each in cut(folder)) == 2
    (folder / f"{0:020}.log.swap").write_bytes(batch(4, b"b", b"a"))
    assert sum(each.records for each in cut(folder)) == 4


def test_what_a_compaction_removes_is_superseded(folder):
    (folder / f"{0:020}.log.swap").write_bytes(batch(3, b"c"))
    (found,) = cut(folder)
    assert (found.records, found.superseded) == (5, 5)
    (folder / f"{0:020}.log.swap").write_bytes(batch(4, b"b", b"a"))
    (found,) = cut(folder)
    assert (found.records, found.superseded) == (4, 3)  # c comes nowhere else


@pytest.mark.parametrize("at", [17, 7])  # in the checksum; in the base offset, which it does not cover
def test_a_damaged_file_is_no_compaction(folder, at):
    first = batch(0, b"a")
    data = bytearray(first + batch(1, b"a"))
    (folder / f"{0:020}.log").write_bytes(data)
    data[len(first) + at] ^= 4
    (folder / f"{0:020}.log.swap").write_bytes(data)
    (found,) = cut(folder)
    assert (found.records, found.superseded) == (1, 0)


def test_a_record_without_a_value_may_go(folder):
    (folder / f"{0:020}.log").write_bytes(batch(0, b"z", value=None))
    (folder / f"{0:020}.log.swap").write_bytes(b"")
    (found,) = cut(folder)
    assert (found.records, found.superseded, found.is_replaced_by_nothing) == (1, 1, True)


def test_an_aborted_transaction_may_go_though_its_marker_is_in_the_next_segment(folder):
    """The transaction is then listed in the next transaction index."""
    inside = {"attributes": 0x10, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    aborted = forge.batch([forge.record(b"x", b"v")], base_offset=6, **inside)
    marker = forge.record(b"\0\0\0\0", b"\0\0\0\0\0\1")
    end = forge.batch([marker], base_offset=7, **{**inside, "attributes": 0x30, "base_sequence": -1})
    (folder / f"{6:020}.log").rename(folder / f"{6:020}.log.deleted")
    (folder / f"{6:020}.index").unlink()
    (folder / f"{6:020}.log.deleted").write_bytes(aborted)
    (folder / f"{7:020}.log").write_bytes(end)
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    assert [(one.segment.base_offset, one.records) for one in swaps.only_in_removed(found)] == [(6, 1)]
    entries = txn_index.encode([txn_index.AbortedTxn(0, 7, 6, 7, 6)])
    (folder / f"{7:020}.txnindex").write_bytes(entries)
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    assert list(swaps.only_in_removed(found)) == []


def test_the_marker_of_a_transaction_hides_no_lost_record(folder):
    inside = {"attributes": 0x10, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    user = forge.batch([forge.record(None, b"v")], base_offset=6, **inside)
    marker = forge.record(b"\0\0\0\1", b"\0\0\0\0\0\1")
    end = forge.batch([marker], base_offset=7, **{**inside, "attributes": 0x30, "base_sequence": -1})
    (folder / f"{6:020}.log").unlink()
    (folder / f"{6:020}.log.deleted").write_bytes(user + end)
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    assert [(one.segment.base_offset, one.records) for one in swaps.only_in_removed(found)] == [(6, 1)]


@pytest.mark.parametrize(("first", "lost"), [("log.deleted", [(0, 6), (6, 2)]), ("log.swap", [(6, 2)])])
def test_deleted_segments_have_the_only_copy_if_no_later_segment_stays(folder, first, lost):
    """Retention always leaves a segment. A ``.swap`` file is a segment after the start."""
    for base, suffix in ((0, first), (6, "log.deleted")):
        (folder / f"{base:020}.log").rename(folder / f"{base:020}.{suffix}")
    for path in folder.iterdir():
        if "deleted" in path.name:  # without keys compaction removes nothing
            base = int(path.name[:20])
            path.write_bytes(batch(base, *[None] * (2 if base else 6)))
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    assert [(one.segment.base_offset, one.records) for one in swaps.only_in_removed(found)] == lost


@pytest.mark.parametrize("has_copy", [False, True])
def test_a_swap_that_a_start_discards_can_have_the_only_copy(folder, has_copy):
    """A ``.cleaned`` file of a lower offset makes a start discard it. Its new name makes it a segment."""
    name = f"{6:020}.log"
    (folder / name).write_bytes(batch(6, None, None))
    (folder / name).rename(folder / f"{name}.swap")
    if has_copy:
        (folder / name).write_bytes(batch(6, None, None))
    (folder / f"{0:020}.log.cleaned").write_bytes(b"")
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    lost = [(posixpath.basename(one.segment.path), one.records) for one in swaps.only_in_removed(found)]
    assert lost == ([] if has_copy else [(f"{name}.swap", 2)])
    command = f"mv {folder}/{name}.swap {folder}/{name}"
    assert (command in kdump("check", str(folder)).stdout.decode()) == (not has_copy)


def test_two_removed_segments_of_the_same_offsets_have_each_record_once(folder):
    """A second ``mv`` to the same name would overwrite the first file."""
    log = folder / f"{6:020}.log"
    log.write_bytes(batch(6, None, None) + batch(8, None, None))
    log.rename(folder / f"{log.name}.deleted")
    (folder / f"{log.name}.swap").write_bytes(batch(6, None, None))
    (folder / f"{0:020}.log.cleaned").write_bytes(b"")
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    assert sum(one.records for one in swaps.only_in_removed(found)) == 4
    commands = [line for line in kdump("check", str(folder)).stdout.decode().splitlines() if line.startswith("  mv ")]
    assert commands == [f"  mv {log}.deleted {log}"]


def test_a_removed_segment_that_shares_offsets_with_others_gets_no_command(folder):
    name = f"{4:020}.log"
    (folder / f"{name}.swap").write_bytes(batch(4, None, None) + batch(9, None, None))
    (folder / f"{0:020}.log.cleaned").write_bytes(b"")
    (found,) = Finder(Wanted(leftovers=True)).find([str(folder)])
    assert [(one.records, one.first, one.fits) for one in swaps.only_in_removed(found)] == [(2, 9, False)]
    assert f"mv {folder}" not in kdump("check", str(folder)).stdout.decode()


def test_a_swap_that_no_broker_can_read_is_damage(folder):
    (folder / f"{6:020}.log.swap").write_bytes(bytes(100))
    (folder / f"{9:020}.log.cleaned").write_bytes(b"")
    done = kdump("check", str(folder))
    assert (done.returncode, b"Traceback" in done.stderr) == (3, False)
