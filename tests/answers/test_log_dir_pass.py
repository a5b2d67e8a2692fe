"""The pass over log dirs: what it reads and reports, and that several processes give the same result."""

import os
import signal
from functools import partial

import pytest

from kdump.answers.collector import Collector, Needs, Reading
from kdump.answers.log_dir_pass import Collectors, LogDirPass, feed, gather_with
from kdump.errors import KdumpError, Reporter
from kdump.formats.partition_metadata import PartitionMetadata, encode
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.log_dir_state import LogDirStates
from kdump.primitives.processes import Processes
from testing import forge
from testing.forge import batch, record
from tests.helpers.asking import ask
from tests.helpers.group_topics import commit_key, commit_value
from tests.helpers.log_dirs import replica
from tests.helpers.metadata_records import metadata_value
from tests.helpers.segments import data


class Offsets(Collector):
    """Gathers base offsets and unread positions, from an offset on."""

    def __init__(self, since=0):
        self.since, self.met, self.lost, self.ended = since, [], [], 0

    def begin(self, place):  # noqa: ARG002  the pass gives it
        return Reading(Needs.HEADERS, self.since)

    def add(self, batches):
        self.met += batches.column("base_offset")

    def lose(self, region):
        self.lost.append(region.position)

    def end(self):
        self.ended += 1

    def merge(self, other):
        self.met += other.met
        self.lost += other.lost
        self.ended += other.ended

    def answer(self, at):  # noqa: ARG002  it has no lines
        return ()


def log_dir(tmp_path, *contents):
    """A partition with one segment for each content, ten offsets apart."""
    folder = tmp_path / "orders-0"
    folder.mkdir(parents=True)
    for number, content in enumerate(contents):
        (folder / f"{number * 10:020}.log").write_bytes(content)
    return list(Finder(Wanted(siblings=True)).find([str(tmp_path)]))


def run(collectors, partitions):
    said = {"damage": [], "note": []}
    states = LogDirStates(Reporter(said["damage"].append, fail=raise_))
    report = Reporter(damage=said["damage"].append, note=said["note"].append, fail=raise_)
    LogDirPass(collectors, report, states).run(partitions)
    return said


def raise_(error):
    raise error


def test_reads_from_the_segment_that_holds_the_offset(tmp_path):
    partitions = log_dir(tmp_path, data(0), data(10), data(20))
    late, later = Offsets(since=10), Offsets(since=25)
    run([late], partitions)
    run([later], partitions)
    assert (late.met, later.met) == ([10, 20], [20])
    both = [Offsets(since=10), Offsets(since=25)]
    run(both, partitions)
    assert [one.met for one in both] == [[10, 20], [10, 20]]


def test_a_truncated_batch_is_damage(tmp_path):
    cut = data(0)[:-30]
    collector = Offsets()
    said = run([collector], log_dir(tmp_path, cut, data(10) + cut))
    assert collector.lost == [0, len(data(10))]
    assert [len(said["damage"]), len(said["note"])] == [2, 0]
    assert "00000000000000000000.log: byte 0: the file ends inside a batch" in said["damage"][0]
    assert "00000000000000000010.log" in said["damage"][1]


def test_processes_gather_what_one_gathers(tmp_path):
    for number in range(5):
        log_dir(tmp_path / str(number), data(number), data(10) + data(11)[:-9])
    partitions = list(Finder(Wanted(siblings=True)).find([str(tmp_path)]))
    alone, several, said = Offsets(), Offsets(), []
    one_by_one = run([alone], partitions)
    report = Reporter(*(partial(lambda name, text: said.append((name, text)), name) for name in Reporter._fields[:4]))
    gather_with(Processes(2), Collectors([several]), feed, partitions, report)
    assert vars(several) == vars(alone)
    assert [text for name, text in said if name == "damage"] == one_by_one["damage"]
    assert [name for name, _ in said] == ["damage"] * 5


def test_a_file_that_cannot_be_read_is_a_lost_range(tmp_path):
    partitions = log_dir(tmp_path, data(0), data(10), data(20))
    path = tmp_path / "orders-0" / f"{10:020}.log"
    path.unlink()
    collector, failed = Offsets(), []
    LogDirPass(
        [collector], Reporter(damage=pytest.fail, fail=failed.append), LogDirStates(Reporter(pytest.fail, fail=raise_))
    ).run(partitions)
    assert (collector.met, collector.lost) == ([0, 20], [0])
    assert [one.path for one in failed] == [str(path)]


def _die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_killed_is_an_error_of_one_sentence():
    with pytest.raises(KdumpError, match="a worker process was killed"):
        list(Processes(2).results(_die, range(4)))


def test_a_topic_that_is_not_there_is_named(tmp_path):
    log_dir(tmp_path, data(0))
    lines, said = ask("transactions", tmp_path, "--topic", "order", "--topic", "orders")
    assert (lines, said) == ([], f"warning: no partition of topic 'order' is in {tmp_path}; did you mean 'orders'?\n")
    _, said = ask("offsets", tmp_path, "--topic", "orders", "--partition", "1")
    absent = "no partition of topic 'orders' with a number in --partition is in"
    assert said == f"warning: {absent} {tmp_path}; found partition 0\n"


@pytest.mark.parametrize("command", [("offsets",), ("transactions", "--jobs", "2"), ("explain", "orders-0@0", "--in")])
def test_a_checkpoint_that_a_broker_refuses_is_not_used(tmp_path, command):
    for name in ("1", "2"):
        log_dir(tmp_path / name, data(0))
    checkpoint = tmp_path / "1" / "replication-offset-checkpoint"
    checkpoint.write_text("0\n1\norders\n")
    (tmp_path / "1" / ".kafka_cleanshutdown").write_text("?")  # what counts of it is that it is there
    _, said = ask(*command, tmp_path / "1", *(() if "--in" in command else (tmp_path / "2",)), status=3)
    assert said.startswith(f"error: {checkpoint}: ")
    assert said.endswith("(kdump check reports what to do)\n")
    assert said.count("\n") == 1


def test_progress_counts_what_is_done_within_a_segment(tmp_path):
    """Packing a segment again for --what-if takes minutes."""
    large = b"".join(batch([record(b"k", bytes(1 << 20))], base_offset=number) for number in range(9))
    partitions = log_dir(tmp_path, large, data(10), data(20) + bytes(7))
    done = []
    states = LogDirStates(Reporter(raise_, fail=raise_))
    report = Reporter(damage=raise_, fail=raise_, note=print, progress=done.append)
    LogDirPass([Offsets(since=11)], report, states).run(partitions)
    sizes = [segment.size for segment in partitions[0].segments]
    assert sum(done) == sum(sizes)
    done.clear()
    LogDirPass([Offsets()], report, states).run(partitions)
    assert sum(done) == sum(sizes)
    assert sum(size > 0 for size in done) > len(sizes)
    assert max(done) < len(large)


@pytest.mark.parametrize("jobs", [(), ("--jobs", "2")])
def test_a_folder_of_a_deleted_topic_is_no_replica_of_its_successor(tmp_path, jobs):
    """A starting broker makes it stray (KAFKA-15605): its log is longer and its leader epoch higher."""
    old, new = bytes(range(16)), bytes(range(1, 17))
    stale = replica(tmp_path / "1", {0: data(0, 9, leader_epoch=9) + data(9, producer=7, leader_epoch=9)})
    live = replica(tmp_path / "2", {0: data(0, 5, leader_epoch=0)})
    for folder, topic_id in ((stale, old), (live, new)):
        (folder / "partition.metadata").write_bytes(encode(PartitionMetadata(0, topic_id)))
    topic = forge.record(None, metadata_value("TopicRecord", name="orders", topicId=new))
    replica(tmp_path / "2", {0: forge.batch([topic])}, name="__cluster_metadata-0")
    group = forge.record(commit_key("app"), commit_value(3))
    replica(tmp_path / "2", {0: forge.batch([group])}, name="__consumer_offsets-0")
    found = {}
    compacted = ("--config", "orders:cleanup.policy=compact")
    for command in ("offsets", "groups", "transactions", "producers", "retention", "compaction"):
        more = compacted if command == "compaction" else ()
        lines, said = ask(command, tmp_path / "1", tmp_path / "2", "--topic", "orders", *more, *jobs)
        found[command] = [line for line in lines if line.get("topic") == "orders"]
        assert said.count(f"note: {stale}: left out, because its topic id is AAECAwQFBgcICQoLDA0ODw, but orders") == 1
    assert [line["latest"] for line in found["offsets"]] == [5]
    assert [line["lag"] for line in found["groups"]] == [2]
    assert found["transactions"] == found["producers"] == []
    for command in ("retention", "compaction"):
        assert {line["logDir"] for line in found[command] if "logDir" in line} == {str(tmp_path / "2")}
