"""Folders of partitions in new log dirs: bytes, small files, files that are not copied, resumed runs."""

import os

import pytest

from kdump.errors import UnreadableError
from kdump.formats import checkpoints, leader_epoch, partition_metadata, producer_snapshot
from kdump.formats.checkpoints import PartitionOffset
from kdump.formats.leader_epoch import EpochEntry
from kdump.output import files
from kdump.output.access import ANY
from kdump.rebuild import copying
from kdump.rebuild.copying import Journal, PlacedPartition
from kdump.rebuild.volumes import survey
from tests.rebuild.replicas import TOPIC_ID, batch, batches, copy, flipped, log_of, plan

HEALTHY = batches(0, 3, 5, 9)


def tree(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def written(tmp_path, *placed, **options):
    out = tmp_path / "out"
    with files.new_folder(out) as root, Journal(root, str(out), ANY) as journal:
        copying.write(root, placed, ANY, journal, **options)
        journal.end()
    return tree(tmp_path / "out")


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_node_gets_segments_and_small_files(tmp_path, jobs):
    copy(tmp_path / "in", 1, {0: batches(0, 3), 3: flipped(batches(3, 5), 70), 5: batches(5, 9)}, epochs=[(0, 0)])
    copy(tmp_path / "in", 2, {0: batches(0, 3), 3: batches(3, 5), 5: batches(5, 9)}, log_start=2)
    found = plan(tmp_path / "in")
    done = []
    got = written(tmp_path, PlacedPartition(found, ("node-1", "node-7")), jobs=jobs, done=done.append)
    assert sum(done) == 2 * len(HEALTHY)
    for node in ("node-1", "node-7"):
        assert {name.removeprefix(f"{node}/"): data for name, data in got.items() if name.startswith(node)} == {
            "orders-0/00000000000000000000.log": batches(0, 3),
            "orders-0/00000000000000000003.log": batches(3, 5),
            "orders-0/00000000000000000005.log": batches(5, 9),
            "orders-0/leader-epoch-checkpoint": leader_epoch.encode([EpochEntry(0, 0)]),
            "orders-0/partition.metadata": partition_metadata.encode(partition_metadata.PartitionMetadata(0, TOPIC_ID)),
            "log-start-offset-checkpoint": checkpoints.encode([PartitionOffset("orders", 0, 2)]),
        }


def test_a_corrected_header_is_written(tmp_path):
    copy(tmp_path / "in", 1, {0: flipped(HEALTHY, len(batches(0, 3)) + 6)}, epochs=[(0, 0)])
    assert written(tmp_path, PlacedPartition(plan(tmp_path / "in"), ("n",)))["n/orders-0/" + f"{0:020}.log"] == HEALTHY


def test_the_state_of_producers_below_the_first_segment_is_kept(tmp_path):
    state = producer_snapshot.encode([])
    copy(tmp_path / "in", 1, {5: batches(5, 9)}, files={f"{5:020}.snapshot": state, f"{9:020}.snapshot": b"broken"})
    got = written(tmp_path, PlacedPartition(plan(tmp_path / "in"), ("n",)))
    assert [name for name in got if name.endswith(".snapshot")] == [f"n/orders-0/{5:020}.snapshot"]
    copy(tmp_path / "broken", 1, {5: batches(5, 9)}, files={f"{5:020}.snapshot": b"broken"})
    found = plan(tmp_path / "broken")
    assert found.producer_snapshot is None
    assert "snapshot" in found.notes[0]


def test_a_file_that_changed_since_it_was_verified_is_refused(tmp_path):
    log = copy(tmp_path / "in", 1, {0: HEALTHY}) / f"{0:020}.log"
    found = plan(tmp_path / "in")
    os.utime(log, ns=(1, 1))
    with pytest.raises(UnreadableError, match="the file has changed since kdump verified it"):
        written(tmp_path, PlacedPartition(found, ("n",)))
    assert not (tmp_path / "out").exists()


def test_lost_and_found_has_what_has_no_place(tmp_path):
    bad = flipped(batches(3, 5), 70)
    copy(tmp_path / "in", 1, {0: batches(0, 3) + bad + batches(5, 9)})
    copy(tmp_path / "in" / "b", 2, {0: batch(0)}, name="strange-0", topic_id=b"9" * 16)
    found, volumes = plan(tmp_path / "in"), survey([str(tmp_path / "in")])
    unknown = [folder for folder in volumes.folders if folder.topic == "strange"]
    with files.new_folder(tmp_path / "out") as root:
        assert copying.write_lost(root, [found], unknown, ANY) == len(bad) + len(batch(0)) + 43
    assert tree(tmp_path / "out") == {
        f"lost+found/orders-0/000000-{0:020}.log@{len(batches(0, 3))}": bad,
        f"lost+found/unknown-topics/0000-strange-0/{0:020}.log": batch(0),
        "lost+found/unknown-topics/0000-strange-0/partition.metadata": partition_metadata.encode(
            partition_metadata.PartitionMetadata(0, b"9" * 16)
        ),
    }


def test_lost_and_found_has_a_stray_folder_with_the_longest_name(tmp_path):
    name = f"{'t' * 214}-0.{'a' * 32}-stray"
    copy(tmp_path / "in", 1, {0: batch(0)}, name=name, topic_id=None)
    with files.new_folder(tmp_path / "out") as root:
        copying.write_lost(root, [], list(survey([str(tmp_path / "in")]).folders), ANY)
    assert list(tree(tmp_path / "out")) == [f"lost+found/unknown-topics/0000-{name[:250]}/{0:020}.log"]


def test_no_room_is_found_before_anything_is_written(tmp_path):
    copy(tmp_path / "in", 1, {0: HEALTHY})
    placed = [PlacedPartition(plan(tmp_path / "in"), ("a", "b"))]
    assert len(HEALTHY) * 2 < copying.room(placed) < 100_000
    copying.make_sure_of_room(str(tmp_path / "not" / "there"), copying.room(placed))
    with pytest.raises(UnreadableError, match=r"free bytes, but \d+ are needed"):
        copying.make_sure_of_room(str(tmp_path / "out"), 1 << 60)


def resumed(tmp_path, placed, *, stop_after=None):
    """Write with a journal; fail after some segments. Return the segments that were copied."""
    out = str(tmp_path / "out")
    copied = []

    class Noting(Journal):
        def add(self, task):
            super().add(task)
            copied.append(task.path)
            if len(copied) == stop_after:
                raise KeyboardInterrupt

    going_on = files.new_folder(out, resumes=lambda folder: Journal.is_of(folder, out))
    with going_on as root, Noting(root, out, ANY) as journal:
        files.fill(root / "account.json", b"{}", ANY)
        copying.write(root, placed, ANY, journal)
        journal.end()
    return copied


def test_a_run_goes_on_where_another_was_stopped(tmp_path):
    copy(tmp_path / "in", 1, {0: batches(0, 3), 3: batches(3, 5), 5: batches(5, 9)})
    placed = [PlacedPartition(plan(tmp_path / "in"), ("node-1", "node-2"))]
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            resumed(tmp_path, placed, stop_after=2)
        assert not (tmp_path / "out").exists()
    assert len(resumed(tmp_path, placed)) == 2
    want = tree(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / "first")
    assert len(resumed(tmp_path, placed)) == 6
    assert tree(tmp_path / "out") == want
    assert list(tmp_path.glob(".kdump*")) == []


def test_what_a_stopped_run_made_for_others_goes(tmp_path):
    copy(tmp_path / "in", 1, {0: batches(0, 3), 3: batches(3, 5), 5: batches(5, 9)})
    with pytest.raises(KeyboardInterrupt):
        resumed(tmp_path, [PlacedPartition(plan(tmp_path / "in"), ("node-9",))], stop_after=3)
    (part,) = tmp_path.glob(".kdump-*.part")
    (part / "node-9" / "orders-0" / f"{0:020}.log").write_bytes(b"half")  # a kill came while it was written
    os.utime(tmp_path / "in" / "node-1" / "orders-0" / f"{3:020}.log", ns=(1, 1))
    placed = [PlacedPartition(plan(tmp_path / "in"), ("node-1",))]
    assert len(resumed(tmp_path, placed)) == 3
    assert {name.split("/")[0] for name in tree(tmp_path / "out")} == {"account.json", "node-1"}


def test_another_output_is_not_gone_on_with(tmp_path):
    copy(tmp_path / "in", 1, {0: HEALTHY})
    placed = [PlacedPartition(plan(tmp_path / "in"), ("node-1",))]
    with pytest.raises(KeyboardInterrupt):
        resumed(tmp_path, placed, stop_after=1)
    (part,) = tmp_path.glob(".kdump-*.part")
    assert Journal.is_of(part, str(tmp_path / "out"))
    assert len(HEALTHY) < copying.copied_before(str(tmp_path / "out")) < len(HEALTHY) + 1000
    assert copying.copied_before(str(tmp_path / "other")) == 0
    assert not Journal.is_of(part, str(tmp_path / "other"))
    assert not Journal.is_of(tmp_path, str(tmp_path / "out"))


def test_a_journal_that_a_kill_cuts_off_counts_to_its_last_whole_line(tmp_path):
    copy(tmp_path / "in", 1, {0: batches(0, 3), 3: batches(3, 5), 5: batches(5, 9)})
    placed = [PlacedPartition(plan(tmp_path / "in"), ("node-1",))]
    with pytest.raises(KeyboardInterrupt):
        resumed(tmp_path, placed, stop_after=2)
    (part,) = tmp_path.glob(".kdump-*.part")
    data = (part / Journal.NAME).read_bytes()
    (part / Journal.NAME).write_bytes(data[:-1])
    assert len(resumed(tmp_path, placed)) == 2
    assert tree(tmp_path / "out")[f"node-1/orders-0/{3:020}.log"] == log_of(placed[0].plan)[3]


def test_an_empty_segment_keeps_the_time_of_its_last_write(tmp_path):
    """A broker looks up offsets by this time: a new one would hide the records after it."""
    folder = copy(tmp_path / "in", 1, {0: b"", 3: batches(3, 5)}, epochs=[(0, 0)])
    os.utime(next(path for path in (tmp_path / "in").rglob(f"{0:020}.log")), (1_000, 1_000))
    written(tmp_path, PlacedPartition(plan(tmp_path / "in"), ("n",)))
    out = tmp_path / "out" / "n" / "orders-0"
    assert (out / f"{0:020}.log").stat().st_mtime == 1_000
    assert (out / f"{3:020}.log").stat().st_mtime > 1_000_000, folder


def test_a_journal_that_is_cut_at_any_byte_becomes_whole_again(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "flush", lambda file: file.flush())  # a flush to the disk takes most of the time
    copy(tmp_path / "in", 1, {0: batches(0, 3), 3: batches(3, 5)})
    placed = [PlacedPartition(plan(tmp_path / "in"), ("node-1",))]
    out = str(tmp_path / "out")
    root = tmp_path / "part"
    root.mkdir()

    def left(data):
        """Write the segments with a journal, and return how many it did not have."""
        (root / Journal.NAME).write_bytes(data)
        copied = []
        with Journal(root, out, ANY) as journal:
            monkeypatch.setattr(journal, "add", lambda task: (copied.append(task), Journal.add(journal, task)))
            copying.write(root, placed, ANY, journal)
        return len(copied)

    assert left(b"") == 2
    whole = (root / Journal.NAME).read_bytes()
    for cut in range(len(whole) + 1):
        assert left(whole[:cut]) == 2 - max(0, whole[:cut].count(b"\n") - 1), cut
        assert (root / Journal.NAME).read_bytes() == whole, cut


def test_a_producer_snapshot_that_changed_since_it_was_verified_is_refused(tmp_path):
    state = producer_snapshot.encode([])
    folder = copy(tmp_path / "in", 1, {5: batches(5, 9)}, files={f"{5:020}.snapshot": state})
    found = plan(tmp_path / "in")
    (folder / f"{5:020}.snapshot").write_bytes(b"broken")
    with pytest.raises(UnreadableError, match="the file has changed since kdump verified it"):
        written(tmp_path, PlacedPartition(found, ("n",)))
    assert not (tmp_path / "out").exists()


def test_the_room_counts_the_small_files(tmp_path):
    producers = [producer_snapshot.ProducerEntry(1, 0, 0, 4, 0, 0, 0, -1)] * 5_000
    copy(tmp_path / "in", 1, {5: batches(5, 9)}, files={f"{5:020}.snapshot": producer_snapshot.encode(producers)})
    placed = [PlacedPartition(plan(tmp_path / "in"), ("a", "b"))]
    size = sum(map(len, written(tmp_path, *placed).values()))
    assert 2 * 200_000 < size < copying.room(placed) < size + 2 * 5 * 4096
    (volume,) = survey([str(tmp_path / "in")]).folders
    assert size / 2 < volume.partition.size + copying.small_size(volume.partition) + copying.SMALL_BYTES
