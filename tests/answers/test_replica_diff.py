"""Two replicas of a partition: each verdict, from log dirs written batch by batch."""

import json

import pytest

from kdump.answers import replica_diff
from kdump.answers.collector import Place, as_json
from kdump.answers.replica_diff import BrokerReplica
from kdump.errors import Reporter, UnreadableError
from kdump.formats.partition_metadata import PartitionMetadata, encode
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.log_dir_state import LogDirStates
from kdump.log_dirs.partition import Segment
from kdump.primitives.processes import Processes
from testing import forge
from testing.processes import kdump, on_a_terminal, patched
from tests.helpers import log_dirs
from tests.helpers.log_dirs import checkpoint, replica
from tests.helpers.segments import data
from tools.prove import diff_pairs


def pairs(*paths):
    states = LogDirStates(Reporter(fail=raise_))
    finder = Finder(Wanted(siblings=True, log_dirs=True))
    copies = [
        [BrokerReplica(str(path), Place(one, states.of(one))) for one in finder.find([str(path)]) if one.topic]
        for path in paths
    ]
    return replica_diff.pairs(replica_diff.by_partition(copies))


def ask(*paths, records=False, workers=None):
    """Compare brokers; return the lines, and the damage."""
    said = []
    report = Reporter(said.append, fail=raise_)
    lines = replica_diff.compare_all(pairs(*paths), records=records, report=report, workers=workers)
    return list(map(as_json, lines)), said


def raise_(error):
    raise error


def pair(tmp_path):
    """Compare two brokers; return the line of the pair, the sides that have each differing offset, and the damage."""
    (*lines, found), said = ask(tmp_path / "1", tmp_path / "2", records=True)
    records = [(line["offset"], line["left"] and 1, line["right"] and 1) for line in lines]
    assert found["kind"] == "pair"
    assert len(records) == found["onlyLeft"] + found["onlyRight"] + found["differ"]
    assert ask(tmp_path / "1", tmp_path / "2") == ([found], said)
    return found, records, said


def check(found, **want):
    assert {name: found[name] for name in want} == want


def several(first, last, **rest):
    return b"".join(data(offset, **rest) for offset in range(first, last))


def test_equal_bytes_are_the_same_whatever_the_borders_of_segments(tmp_path):
    replica(tmp_path / "1", {0: several(0, 9)}, epochs={0: 0})
    replica(tmp_path / "2", {0: several(0, 3), 3: several(3, 7), 7: several(7, 9), 9: b""}, epochs={0: 0})
    found, _, _ = pair(tmp_path)
    check(found, same=True, verdict="same", endLeft=9, endRight=9, truncateTo=None, firstDifference=None)


def test_zeros_of_a_preallocated_file_are_no_difference(tmp_path):
    replica(tmp_path / "1", {0: several(0, 3) + bytes(5000)})
    replica(tmp_path / "2", {0: several(0, 3)})
    check(pair(tmp_path)[0], verdict="same", endLeft=3)


def test_a_shorter_log_lags(tmp_path):
    replica(tmp_path / "1", {0: several(0, 5), 5: several(5, 6)}, epochs={0: 0})
    replica(tmp_path / "2", {0: several(0, 4) + data(4)[:-3]}, epochs={0: 0})
    found, records, _ = pair(tmp_path)
    check(found, verdict="behind", onlyLeft=2, onlyRight=0, endLeft=6, endRight=4, truncateTo=None, stale=None)
    assert records == [(4, 1, None), (5, 1, None)]


def test_an_unclean_election_says_where_the_older_history_is_cut_and_what_goes(tmp_path):
    replica(tmp_path / "1", {0: several(0, 8)}, epochs={0: 0})
    new = several(5, 7, leader_epoch=2, timestamp=2000)
    replica(tmp_path / "2", {0: several(0, 5) + new}, epochs={0: 0, 2: 5})
    found, records, _ = pair(tmp_path)
    check(found, verdict="diverged", truncateTo=5, stale="left", loses=3, firstDifference=5, differ=2, onlyLeft=1)
    check(found, epochLeft=0, epochRight=2)
    assert records == [(5, 1, 1), (6, 1, 1), (7, 1, None)]


def test_a_lost_end_of_an_older_history_is_diverged_without_a_new_record(tmp_path):
    replica(tmp_path / "1", {0: several(0, 8)}, epochs={0: 0})
    replica(tmp_path / "2", {0: several(0, 5)}, epochs={0: 0, 2: 5})
    check(pair(tmp_path)[0], verdict="diverged", truncateTo=5, loses=3, differ=0, onlyLeft=3)


@pytest.mark.parametrize("epochs", [None, {0: 0}])
def test_epochs_of_batches_count_where_the_checkpoint_lags_or_is_missing(tmp_path, epochs):
    replica(tmp_path / "1", {0: several(0, 8)}, epochs=epochs)
    replica(tmp_path / "2", {0: several(0, 5) + several(5, 7, leader_epoch=2)}, epochs=epochs)
    check(pair(tmp_path)[0], verdict="diverged", truncateTo=5, epochRight=2)


def test_cleaned_ranges_are_compared_record_by_record(tmp_path):
    records = [
        forge.record(b"a", b"1", offset=0),
        forge.record(b"b", b"2", offset=1),
        forge.record(b"a", b"3", offset=2),
    ]
    replica(tmp_path / "1", {0: forge.batch(records) + several(3, 6)})
    kept = forge.batch(records[1:], last_offset_delta=2)
    replica(tmp_path / "2", {0: kept + several(3, 4) + forge.batch([], base_offset=4, last_offset_delta=0) + data(5)})
    found, records, _ = pair(tmp_path)
    check(found, verdict="cleaned", onlyLeft=2, onlyRight=0, differ=0, same=False)
    assert records == [(0, 1, None), (4, 1, None)]


def test_what_lies_below_a_log_start_is_not_compared(tmp_path):
    replica(tmp_path / "1", {0: several(0, 3), 3: several(3, 6), 6: several(6, 9)})
    replica(tmp_path / "2", {3: several(3, 9)})
    checkpoint(tmp_path / "1" / "log-start-offset-checkpoint", ("orders", 0, 1))
    check(pair(tmp_path)[0], verdict="same", startLeft=1, startRight=3)


def test_other_bytes_in_one_epoch_are_really_different(tmp_path):
    replica(tmp_path / "1", {0: several(0, 9)}, epochs={0: 0})
    replica(tmp_path / "2", {0: several(0, 4) + data(4, size=19) + several(5, 9)}, epochs={0: 0})
    found, _, _ = pair(tmp_path)
    check(found, verdict="different", differ=1, firstDifference=4, damaged=[])
    assert "the files do not show which" in found["because"]


def test_the_damaged_side_is_named(tmp_path):
    whole = several(0, 9)
    at = len(several(0, 4)) + 70
    replica(tmp_path / "1", {0: whole}, epochs={0: 0})
    replica(tmp_path / "2", {0: whole[:at] + b"?" + whole[at + 1 :]}, epochs={0: 0})
    found, records, said = pair(tmp_path)
    check(found, verdict="different", damaged=["right"], onlyLeft=1, differ=0)
    assert records == [(4, 1, None)]
    assert [text.split("byte")[1] for text in said] == [f" {len(several(0, 4))}: the checksum is wrong"]


def test_histories_without_epochs_part_where_bytes_differ(tmp_path):
    def entry(offset, value):
        return forge.entry(offset, forge.message(1, b"k", value, timestamp=5))

    replica(tmp_path / "1", {0: entry(0, b"a") + entry(1, b"b")})
    replica(tmp_path / "2", {0: entry(0, b"a") + entry(1, b"c")})
    check(pair(tmp_path)[0], verdict="diverged", truncateTo=None, differ=1, epochLeft=None)


@pytest.mark.parametrize("size", [16, 1000, 100_000])
def test_a_difference_is_found_wherever_blocks_end(tmp_path, size):
    batches = [data(offset, size=size) for offset in range(40)]
    replica(tmp_path / "1", {0: b"".join(batches)}, epochs={0: 0})
    for offset in (0, 1, 23, 39):
        changed = data(offset, size=size, leader_epoch=1)
        other = tmp_path / f"changed-{offset}"
        replica(other, {0: b"".join([*batches[:offset], changed, *batches[offset + 1 :]])}, epochs={0: 0, 1: offset})
        lines, _ = ask(tmp_path / "1", other)
        check(lines[0], differ=1, firstDifference=offset, verdict="diverged", truncateTo=offset)


def test_every_two_brokers_are_compared_and_processes_find_the_same(tmp_path):
    for broker in (1, 2, 3):
        for number in range(3):
            replica(tmp_path / str(broker), {0: several(0, broker + number)}, name=f"orders-{number}")
    paths = [tmp_path / str(broker) for broker in (1, 2, 3)]
    alone, _ = ask(*paths, records=True)
    assert sum(line["kind"] == "pair" for line in alone) == 9
    assert ask(*paths, records=True, workers=Processes(2))[0] == alone
    assert ask(*paths, workers=Processes(2)) == ask(*paths)


def test_log_dirs_of_one_broker_stand_with_commas(tmp_path):
    replica(tmp_path / "1a", {0: data(0)})
    replica(tmp_path / "1b", {0: data(0)}, name="orders-1")
    for number in (0, 1):
        replica(tmp_path / "2", {0: data(0)}, name=f"orders-{number}")
    done = kdump("diff", f"{tmp_path}/1a,{tmp_path}/1b", tmp_path / "2", "-o", "jsonl")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["partition"], line["verdict"]) for line in lines] == [(0, "same"), (1, "same")]


def test_one_path_is_wrong_usage(tmp_path):
    done = kdump("diff", tmp_path)
    assert done.returncode == 2
    assert b"one for each broker" in done.stderr


def test_the_table_explains_what_differs(tmp_path):
    replica(tmp_path / "1", {0: several(0, 8)}, epochs={0: 0})
    replica(tmp_path / "2", {0: several(0, 5)}, epochs={0: 0, 2: 5})
    replica(tmp_path / "2", {0: b""}, name="orders-1")
    done = kdump("diff", tmp_path / "1", tmp_path / "2", "--records")
    assert b"not compared, because only one broker has a copy: orders-1\n" in done.stderr
    text = done.stdout.decode()
    assert text.startswith("1 pair of replicas: 1 diverged")
    assert "truncates its log to offset 5 and loses 3 records" in text
    assert "epoch 0, 1970-01-01T00:00:01.000Z, key None" in text


def test_the_headers_of_records_that_differ_are_listed(tmp_path):
    """Two records that differ only in their headers, and two that differ only in their producer ids."""
    for name, headers, producer in (("1", [(b"trace", b"a"), (b"raw", b"\xff")], 7), ("2", [(b"trace", None)], 8)):
        first = forge.batch([forge.record(b"k", b"v", headers=headers)])
        replica(
            tmp_path / name, {0: first + forge.batch([forge.record(b"k", b"v")], base_offset=1, producer_id=producer)}
        )
    (one, other, _), _ = ask(tmp_path / "1", tmp_path / "2", records=True)
    plain = {"keyEncoding": None, "encoding": None}
    assert one["left"]["headers"] == [
        {"key": "trace", "value": "a", **plain},
        {"key": "raw", "value": "/w==", **plain, "encoding": "base64"},
    ]
    assert one["right"]["headers"] == [{"key": "trace", "value": None, **plain}]
    assert other["left"]["headers"] == []
    text = kdump("diff", tmp_path / "1", tmp_path / "2", "--records").stdout.decode()
    assert "value v, headers trace=a, raw=/w==" in text
    assert "value v, headers trace=None" in text
    assert "value v, producer id 7" in text
    assert "value v, producer id 8" in text


def test_a_comma_at_the_end_parts_nothing(tmp_path):
    for name in ("1", "2"):
        replica(tmp_path / name, {0: data(0)})
    done = kdump("diff", f"{tmp_path}/1,", tmp_path / "2")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == f"1 pair of replicas: 1 same; left: {tmp_path}/1, right: {tmp_path}/2\n"


def test_records_that_only_damage_hides_are_not_said_to_differ(tmp_path):
    broken = bytearray(data(1))
    broken[-1] ^= 1
    replica(tmp_path / "1", {0: data(0) + data(1) + data(2)}, epochs={0: 0})
    replica(tmp_path / "2", {0: data(0) + bytes(broken) + data(2)}, epochs={0: 0})
    (found,), _ = ask(tmp_path / "1", tmp_path / "2")
    check(found, verdict="different", onlyLeft=1, differ=0, damaged=["right"])
    missing = "0 records missing only on the left, 1 only on the right"
    assert found["because"] == f"unreadable bytes on the right side: {missing}"


def test_an_unreadable_segment_is_not_reported_as_damage(tmp_path, monkeypatch):
    replica(tmp_path / "1", {0: several(0, 2), 2: several(2, 4)}, epochs={0: 0})
    replica(tmp_path / "2", {1: several(1, 4)}, epochs={0: 0})
    first, read = f"{tmp_path}/1/orders-0/{0:020}.log", Segment.open

    def opened(self):
        if self.path == first:
            raise UnreadableError(self.path, "Input/output error")
        return read(self)

    monkeypatch.setattr(Segment, "open", opened)
    failed, said = [], []
    report = Reporter(said.append, fail=lambda error: failed.append(error.path))
    found = replica_diff.compare_all(pairs(tmp_path / "1", tmp_path / "2"), records=False, report=report)
    check(as_json(*found), verdict="different", onlyRight=1, damaged=["left"])
    assert (failed, said) == ([first], [])


def test_progress_is_gone_before_the_answer_is_printed(tmp_path):
    for name in ("b1", "b2"):
        log_dirs.write(tmp_path / name, "t-0", {0: forge.batch([forge.record(b"k", b"v")])})
    patch = "from kdump.command_line import session; session.EVERY = 0"
    _, shown = on_a_terminal(patched, patch, "diff", tmp_path / "b1", tmp_path / "b2")
    progress, title, _ = shown.partition(b"1 pair of replicas")
    assert b" of " in progress
    assert title
    assert progress.removesuffix(b"\x1b[1m").endswith(b" \r")


@pytest.mark.parametrize("seed", range(60))
def test_diff_is_symmetric_and_names_what_a_comparison_of_bytes_finds(seed, tmp_path):
    assert diff_pairs.faults(seed, tmp_path)[1] == []


@pytest.mark.parametrize("lost", range(1, 9))
@pytest.mark.parametrize("sides", ["12", "21"])
def test_a_log_that_ends_inside_a_batch_lacks_its_records_on_either_side(tmp_path, lost, sides):
    left, right = sides
    whole = several(0, 5) + data(5, count=3, size=200)
    replica(tmp_path / left, {0: whole}, epochs={0: 0})
    replica(tmp_path / right, {0: whole[: -lost * 70]}, epochs={0: 0})
    found, records, said = pair(tmp_path)
    assert (found["verdict"], [offset for offset, *_ in records]) == ("behind", [5, 6, 7])
    assert ["the file ends inside a batch" in text for text in said] == [True]
    assert "side is truncated" in found["because"]


def test_a_folder_is_not_compared_with_itself_without_a_word(tmp_path):
    left, right = tmp_path / "a", tmp_path / "b"
    for place in (left, right):
        replica(place, {0: data(0)}, name="t-0")
    (tmp_path / "link").symlink_to(left)
    reported = "note: t-0: both sides are the same files: name two different copies\n"
    for other in (left, f"{left}/", tmp_path / "link", left / "t-0"):
        done = kdump("diff", left, other)
        assert (done.returncode, done.stderr.decode()) == (0, reported)
    assert kdump("diff", left, right).stderr == b""


def test_folders_of_two_topics_with_one_name_do_not_follow_each_other(tmp_path):
    """A fetch with another topic id is refused (INCONSISTENT_TOPIC_ID, KIP-516), so nothing is truncated."""
    one = replica(tmp_path / "1", {0: data(0, 3, timestamp=5, leader_epoch=0)}, epochs={0: 0})
    two = replica(tmp_path / "2", {0: data(0, 2, leader_epoch=0) + data(2, leader_epoch=4)}, epochs={0: 0, 4: 2})
    for folder in (one, two):
        (folder / "partition.metadata").write_bytes(encode(PartitionMetadata(0, bytes(range(16)))))
    (line,), _ = ask(one.parent, two.parent)
    assert (line["verdict"], line["stale"], line["truncateTo"]) == ("different", "left", 2)
    (two / "partition.metadata").write_bytes(encode(PartitionMetadata(0, bytes(range(1, 17)))))
    (line,), _ = ask(one.parent, two.parent)
    assert (line["verdict"], line["stale"], line["truncateTo"], line["loses"]) == ("different", None, None, 0)
    assert "the topic id is AAECAwQFBgcICQoLDA0ODw on the left, AQIDBAUGBwgJCgsMDQ4PEA on the right" in line["because"]
    (two / f"{0:020}.log").write_bytes(data(0, 3, timestamp=5, leader_epoch=0))
    (two / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    assert ask(one.parent, two.parent)[0][0]["verdict"] == "same"
