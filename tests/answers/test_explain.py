"""Each reason why a consumer gets a record or not, from log dirs written batch by batch."""

import json
import os
from types import SimpleNamespace

import pytest

from kdump.answers.collector import Place, as_json
from kdump.answers.explain.evidence import TopicHistory, topic_history
from kdump.answers.explain.explanation import OffsetRange, explain_all
from kdump.answers.metadata.events import Event
from kdump.errors import SILENT, Reporter
from kdump.formats import producer_snapshot
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.log_dir_state import LogDirStates
from testing import GOLDEN, forge
from testing.processes import kdump
from tests.helpers.log_dirs import checkpoint, node, replica
from tests.helpers.segments import ABORT, COMMIT, data, marker

NOW = 10**12
ID = bytes(15) + b"\1"
UNKNOWN = TopicHistory(None, tuple)


def history(*, removals=(), topics=None, **configs):
    """A metadata log with the topic orders, its configs, and deleted topics of the same name."""
    topic = SimpleNamespace(id=ID, partitions={})
    known = {"orders": topic} if topics is None else topics
    image = SimpleNamespace(
        topics=SimpleNamespace(by_name=known, by_id={one.id: one for one in known.values()}),
        configs=SimpleNamespace(
            resources={(2, "orders"): {name.replace("_", "."): value for name, value in configs.items()}}
        ),
    )
    return TopicHistory(image, lambda: removals)


def lines(first, last, *brokers, of=UNKNOWN, at=NOW):
    """Explain a range; return its lines, and the damage that was found."""
    said = []
    states = LogDirStates(Reporter(said.append, fail=raise_))
    finder = Finder(Wanted(siblings=True, log_dirs=True, leftovers=True))
    places = [
        Place(one, states.of(one), SILENT._replace(damage=said.append))
        for one in finder.find(list(map(str, brokers)))
        if one.topic
    ]
    return list(map(as_json, explain_all([OffsetRange("orders", 0, first, last)], places, of, at, raise_))), said


def one(offset, *brokers, of=UNKNOWN, at=NOW):
    (found,), _ = lines(offset, offset, *brokers, of=of, at=at)
    return found


def raise_(error):
    raise error


def check(found, reason, where, *read, alternatives=()):
    uncommitted, committed = read or (False, False)
    assert (found["reason"], found["where"], found["alternatives"]) == (reason, where, list(alternatives))
    assert (found["readUncommitted"], found["readCommitted"]) == (uncommitted, committed)


def keyed(offset, key, value=b"v", **rest):
    return forge.batch([forge.record(key, value)], base_offset=offset, base_timestamp=1000, **rest)


def several(first, last):
    return b"".join(data(offset) for offset in range(first, last))


def test_visible_with_the_batch_that_holds_it(tmp_path):
    replica(tmp_path, {0: several(0, 3)})
    found = one(1, tmp_path)
    check(found, "visible", "log", True, True)
    assert found["evidence"][0]["position"] == len(data(0))
    assert found["evidence"][0]["path"].endswith("orders-0/00000000000000000000.log")


def test_offsets_after_the_end_are_one_line_however_many(tmp_path):
    replica(tmp_path, {0: several(0, 3)})
    (there, after), _ = lines(0, 10**15, tmp_path)
    assert (there["offset"], there["lastOffset"], there["reason"]) == (0, 2, "visible")
    assert (after["offset"], after["lastOffset"], after["reason"]) == (3, 10**15, "past-end")
    check(after, "past-end", "nowhere")


def test_transactions_aborted_open_and_those_that_wait_for_them(tmp_path):
    log = data(0, producer=1) + data(1, producer=2) + data(2) + marker(3, 1, ABORT) + data(4, producer=3)
    replica(tmp_path, {0: log + data(5) + data(6, producer=2) + marker(7, 2, COMMIT)})
    check(one(0, tmp_path), "aborted-transaction", "log", True, False)
    check(one(1, tmp_path), "visible", "log", True, True)
    check(one(3, tmp_path), "control-marker", "log")
    check(one(4, tmp_path), "open-transaction", "log", True, False)
    check(one(5, tmp_path), "behind-open-transaction", "log", True, False)
    check(one(6, tmp_path), "behind-open-transaction", "log", True, False)
    check(one(7, tmp_path), "control-marker", "log")
    assert "ABORT" in one(3, tmp_path)["because"]
    assert "producer 3 has been open since offset 4" in one(5, tmp_path)["because"]


def test_a_marker_lost_in_damage_leaves_the_outcome_open(tmp_path):
    bad = bytearray(marker(1, 1, ABORT))
    bad[-1] ^= 1
    replica(tmp_path, {0: data(0, producer=1) + bytes(bad) + data(2, producer=1) + marker(3, 1, COMMIT)})
    (found,), said = lines(0, 0, tmp_path)
    check(found, "visible", "log", True, None, alternatives=["aborted-transaction"])
    assert "the checksum is wrong" in said[0]


def test_a_damaged_batch(tmp_path):
    bad = bytearray(data(1, 3))
    bad[70] ^= 1
    replica(tmp_path, {0: data(0) + bytes(bad) + data(4)})
    (found,), said = lines(1, 3, tmp_path)
    check(found, "damaged", "log")
    assert found["evidence"][0]["position"] == len(data(0))
    assert set(said) == {f"{tmp_path}/orders-0/{0:020}.log: byte {len(data(0))}: the checksum is wrong"}


def test_a_wrong_offset_in_a_batch_that_counts_a_record_for_each_is_no_work_of_the_cleaner(tmp_path):
    odd = forge.batch([forge.record(None, b"v", offset=n) for n in (0, 9, 2)], base_offset=1, last_offset_delta=2)
    replica(tmp_path, {0: data(0) + odd + data(4)})
    (before, wrong, after), said = lines(1, 3, tmp_path)
    check(wrong, "damaged", "log")
    assert (wrong["offset"], wrong["evidence"][0]["position"]) == (2, len(data(0)))
    assert "record 2 of 3 has offset 10 instead of 2" in wrong["because"]
    assert before["reason"] == after["reason"] == "visible"
    place = f"{tmp_path}/orders-0/{0:020}.log: byte {len(data(0))}"
    assert said == [f"{place}: record 2 of 3 has offset 10 instead of 2"]


@pytest.mark.parametrize(
    ("at", "indexed", "reason"),
    [(70, False, "visible"), (8, False, "damaged"), (8, True, "visible")],
    ids=["crc", "length", "length, with an index entry after it"],
)
def test_a_record_after_damage_is_visible_where_a_fetch_gets_past_the_damage(tmp_path, at, indexed, reason):
    first, bad, last = several(0, 3), bytearray(data(3, 2)), data(5, 2)
    bad[at] ^= 1 if at > 8 else 0x40
    folder = replica(tmp_path, {0: first + bytes(bad) + last})
    if indexed:
        entry = (5).to_bytes(4, "big") + (len(first) + len(bad)).to_bytes(4, "big")
        (folder / f"{0:020}.index").write_bytes(entry)
    found = one(5, tmp_path)
    check(found, reason, "log", *([True, True] if reason == "visible" else []))
    assert ("stops at the damage" in found["because"]) == (reason == "visible")


def test_a_damaged_end_below_the_high_watermark(tmp_path):
    bad = bytearray(data(3, 2))
    bad[70] ^= 1
    replica(tmp_path, {0: several(0, 3) + bytes(bad)})
    checkpoint(tmp_path / "replication-offset-checkpoint", ("orders", 0, 5))
    check(one(3, tmp_path), "damaged", "log")
    check(one(5, tmp_path), "past-end", "nowhere", alternatives=["damaged"])


def test_a_batch_that_the_file_cuts_off_says_which_offsets_it_had(tmp_path):
    replica(tmp_path, {0: several(0, 3) + data(3, 5)[:70]})
    checkpoint(tmp_path / "replication-offset-checkpoint", ("orders", 0, 3))
    (there, torn, after), said = lines(2, 9, tmp_path)
    assert (there["reason"], torn["offset"], torn["lastOffset"]) == ("visible", 3, 7)
    check(torn, "damaged", "log")
    assert (
        torn["evidence"][0]["says"] == "offsets 3 to 7 cannot be read: "
        "the file ends inside a batch, 70 bytes after its start"
    )
    check(after, "past-end", "nowhere")
    assert len(set(said)) == 1
    assert lines(0, 2, tmp_path)[1] == []
    assert one(6, tmp_path)["evidence"] == torn["evidence"]


@pytest.mark.parametrize("torn", [data(3, 5)[:40], bytes(range(1, 200)), b"\x7f" * 5000])
def test_an_end_that_says_nothing_of_its_offsets(tmp_path, torn):
    replica(tmp_path, {0: several(0, 3) + torn})
    check(one(5, tmp_path), "damaged", "log", alternatives=["past-end"])
    checkpoint(tmp_path / "replication-offset-checkpoint", ("orders", 0, 6))
    check(one(5, tmp_path), "damaged", "log")
    check(one(6, tmp_path), "past-end", "nowhere", alternatives=["damaged"])


@pytest.mark.parametrize(("clean", "alternatives"), [(True, []), (False, ["visible"])])
def test_above_the_high_watermark(tmp_path, clean, alternatives):
    replica(tmp_path, {0: several(0, 5)})
    checkpoint(tmp_path / "replication-offset-checkpoint", ("orders", 0, 3))
    if clean:
        (tmp_path / ".kafka_cleanshutdown").write_text("{}")
    check(one(3, tmp_path), "above-high-watermark", "log", alternatives=alternatives)
    check(one(2, tmp_path), "visible", "log", True, True)


def test_a_single_replica_has_no_high_watermark_to_wait_for(tmp_path):
    replica(tmp_path, {0: several(0, 5)})
    checkpoint(tmp_path / "replication-offset-checkpoint", ("orders", 0, 3))
    topic = SimpleNamespace(id=ID, partitions={0: SimpleNamespace(replicas=[1])})
    check(one(3, tmp_path, of=history(topics={"orders": topic})), "visible", "log", True, True)


def test_delete_records_leaves_a_log_start_inside_the_log(tmp_path):
    replica(tmp_path, {3: several(3, 9), f"{0:020}.log.deleted": several(0, 3)})
    checkpoint(tmp_path / "log-start-offset-checkpoint", ("orders", 0, 5))
    check(one(4, tmp_path), "delete-records", "log")
    check(one(1, tmp_path, of=history(retention_ms="-1")), "delete-records", "deleted-file")
    assert one(1, tmp_path, of=history(retention_ms="5"))["alternatives"] == ["retention-time"]


def test_retention_by_the_configs_of_the_topic(tmp_path):
    replica(tmp_path, {3: several(3, 9), f"{0:020}.log.deleted": several(0, 3)})
    unsure = ["delete-records"]
    check(one(1, tmp_path, of=history()), "retention-time", "deleted-file", alternatives=unsure)
    sized = history(retention_ms="-1", retention_bytes="100")
    check(one(1, tmp_path, of=sized), "retention-size", "deleted-file", alternatives=unsure)
    young = history(retention_ms="1000", retention_bytes="100")
    check(one(1, tmp_path, of=young, at=2000), "retention-size", "deleted-file", alternatives=unsure)
    compact = history(cleanup_policy="compact")
    check(one(1, tmp_path, of=compact), "delete-records", "deleted-file")
    check(one(1, tmp_path), "retention-time", "deleted-file", alternatives=["retention-size", *unsure])


def test_bytes_below_the_log_start_that_are_nowhere(tmp_path):
    replica(tmp_path, {3: several(3, 9)})
    check(one(1, tmp_path, of=history()), "retention-time", "nowhere", alternatives=["delete-records"])


@pytest.mark.parametrize("on", ["true", " TRUE"])
def test_remote_storage_holds_what_is_local_no_more(tmp_path, on):
    replica(tmp_path, {3: several(3, 9)})
    checkpoint(tmp_path / "log-start-offset-checkpoint", ("orders", 0, 1))
    tiered = history(remote_storage_enable=on)
    check(
        one(1, tmp_path, of=tiered),
        "visible",
        "remote",
        True,
        None,
        alternatives=["aborted-transaction", "control-marker"],
    )
    assert one(0, tmp_path, of=tiered)["reason"] == "retention-time"


def test_compacted_for_a_newer_record_of_its_key(tmp_path):
    before = keyed(0, b"a") + keyed(1, b"b") + keyed(2, b"c", None) + keyed(3, b"d")
    now = keyed(3, b"d") + keyed(4, b"a") + keyed(5, b"a")
    replica(tmp_path, {0: now, f"{0:020}.log.deleted": before})
    checkpoint(tmp_path / "cleaner-offset-checkpoint", ("orders", 0, 4))
    check(one(0, tmp_path), "compacted", "deleted-file")
    assert "offset 5 has the newest record of its key" in one(0, tmp_path)["because"]
    assert "because of a newer record of its key, which it removed later" in one(1, tmp_path)["because"]
    assert "an expired tombstone" in one(2, tmp_path)["because"]


def test_an_aborted_newer_record_supersedes_nothing(tmp_path):
    kept = keyed(1, b"a") + keyed(2, b"a", producer_id=7, attributes=0x10) + marker(3, 7, ABORT)
    replica(tmp_path, {0: kept, f"{0:020}.log.deleted": keyed(0, b"a")})
    checkpoint(tmp_path / "cleaner-offset-checkpoint", ("orders", 0, 4))
    assert "offset 1 has the newest record of its key" in one(0, tmp_path)["because"]


def test_cleaned_without_bytes_leaves_more_than_one_reason(tmp_path):
    empty = forge.batch([], base_offset=1, last_offset_delta=0)
    in_transaction = forge.batch([], base_offset=2, last_offset_delta=0, producer_id=5, attributes=0x10)
    control = forge.batch([], base_offset=3, last_offset_delta=0, producer_id=5, attributes=0x30)
    replica(tmp_path, {0: empty + in_transaction + control + keyed(4, b"a")})
    checkpoint(tmp_path / "cleaner-offset-checkpoint", ("orders", 0, 4))
    cleaned = ["aborted-transaction-cleaned", "control-marker-cleaned"]
    check(one(0, tmp_path), "compacted", "nowhere", alternatives=cleaned)
    check(one(1, tmp_path), "compacted", "empty-batch")
    check(one(2, tmp_path), "compacted", "empty-batch", alternatives=cleaned[:1])
    check(one(3, tmp_path), "control-marker-cleaned", "empty-batch")


def test_cleaned_transactions_by_the_markers_that_are_left(tmp_path):
    old = keyed(0, b"a", producer_id=7, attributes=0x10) + marker(1, 8, COMMIT)
    replica(tmp_path, {0: marker(2, 7, ABORT) + data(3), f"{0:020}.log.deleted": old})
    checkpoint(tmp_path / "cleaner-offset-checkpoint", ("orders", 0, 3))
    check(one(0, tmp_path), "aborted-transaction-cleaned", "deleted-file")
    check(one(1, tmp_path), "control-marker-cleaned", "deleted-file")


def test_a_gap_that_no_cleaner_made_is_lost_bytes(tmp_path):
    replica(tmp_path, {0: data(0) + data(2) + data(4)})
    check(one(1, tmp_path, of=history()), "damaged", "nowhere")
    guess = one(1, tmp_path)
    cleaned = ["aborted-transaction-cleaned", "control-marker-cleaned"]
    check(guess, "compacted", "nowhere", alternatives=[*cleaned, "damaged"])
    assert guess["because"].startswith("most likely the log cleaner removed the record")
    assert [fact["says"] for fact in guess["evidence"]] == ["no batch of the log covers the offset"]
    check(one(1, tmp_path, of=history(cleanup_policy="compact")), "compacted", "nowhere", alternatives=cleaned)
    checkpoint(tmp_path / "cleaner-offset-checkpoint", ("orders", 0, 2))
    check(one(3, tmp_path), "damaged", "nowhere", alternatives=["compacted"])


def test_truncated_by_a_higher_epoch_and_held_by_a_replica(tmp_path):
    asked, stale = tmp_path / "1", tmp_path / "2"
    replica(asked, {0: several(0, 5) + data(5, leader_epoch=2)}, epochs={0: 0, 2: 5})
    replica(stale, {0: several(0, 8)}, epochs={0: 0})
    node(asked, 1)
    node(stale, 2)
    found = one(7, asked, stale)
    check(found, "truncated", "replica")
    assert "truncates its log to offset 5" in found["because"]
    check(one(8, asked, stale), "past-end", "nowhere")


def test_a_record_that_a_newer_leader_does_not_have(tmp_path):
    asked, leader = tmp_path / "1", tmp_path / "2"
    replica(asked, {0: several(0, 8)}, epochs={0: 0})
    replica(leader, {0: several(0, 5) + data(5, leader_epoch=2)}, epochs={0: 0, 2: 5})
    node(asked, 1)
    node(leader, 2)
    (kept, cut), _ = lines(4, 7, asked, leader)
    check(kept, "visible", "log", True, True)
    check(cut, "truncated", "log")
    assert (cut["offset"], cut["lastOffset"]) == (5, 7)
    assert "the record was lost when leader epoch 2 began" in cut["because"]
    assert (
        "has a different record at this offset. This replica truncates its log to offset 5 when it follows"
        in cut["because"]
    )
    assert [fact["path"].split("/")[-3] for fact in cut["evidence"]] == ["1", "2"]
    alone = one(7, asked, leader)
    assert "has no record at this offset" in alone["because"]
    assert alone["evidence"][1]["says"].endswith("has the newer leader epoch 2, and ends at offset 6")
    check(one(5, leader, asked), "visible", "log", True, True)


def test_a_lagging_copy_has_not_lost_anything(tmp_path):
    asked, leader = tmp_path / "1", tmp_path / "2"
    replica(asked, {0: several(0, 5)}, epochs={0: 0})
    replica(leader, {0: several(0, 8)}, epochs={0: 0})
    node(asked, 1)
    node(leader, 2)
    check(one(7, asked, leader), "past-end", "replica")


def topic_id(folder, number):
    import base64

    text = base64.urlsafe_b64encode(bytes(15) + bytes([number])).decode().rstrip("=")
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {text}")


def test_a_deleted_topic_leaves_its_folder_for_a_while(tmp_path):
    topic_id(replica(tmp_path, {0: several(0, 3)}, name=f"orders-0.{'a' * 32}-delete"), 1)
    gone = history(removals=[Event(77, 5000, "TopicDeleted", "orders", None, {})], topics={})
    found = one(1, tmp_path, of=gone)
    check(found, "topic-deleted", "deleted-file")
    assert found["evidence"][-1]["says"] == "offset 77: the topic was deleted at 1970-01-01T00:00:05.000Z"
    check(one(1, tmp_path), "topic-deleted", "deleted-file", alternatives=["unknown"])
    check(one(1, tmp_path, of=history()), "unknown", "deleted-file", None, None)


def test_damage_below_the_log_start_hides_no_record(tmp_path):
    bad = bytearray(data(1))
    bad[-1] ^= 1
    replica(tmp_path, {0: data(0) + bytes(bad) + data(2) + data(3)})
    assert one(1, tmp_path)["reason"] == "damaged"
    checkpoint(tmp_path / "log-start-offset-checkpoint", ("orders", 0, 2))
    check(one(1, tmp_path), "delete-records", "nowhere")
    check(one(2, tmp_path), "visible", "log", True, True)


def test_an_unreadable_segment_is_not_compacted(tmp_path):
    folder = replica(tmp_path, {5: several(5, 8), 8: several(8, 9)})
    (folder / f"{8:020}.snapshot").write_bytes(producer_snapshot.encode([]))
    os.mkfifo(folder / f"{0:020}.log")
    done = kdump("explain", "orders-0@2..6", "--in", tmp_path, "-o", "jsonl")
    found, other = map(json.loads, done.stdout.splitlines())
    check(found, "unknown", "log", None, None)
    assert (found["lastOffset"], found["because"].split(":")[0]) == (4, "the segment with this offset cannot be read")
    check(other, "visible", "log", True, True)
    assert done.returncode == 1


def test_a_folder_that_was_moved_to_another_broker_is_not_deleted(tmp_path):
    """A reassignment leaves a -delete folder on the broker that had the replica."""
    one_, other = tmp_path / "1", tmp_path / "2"
    replica(one_, {0: several(0, 3)}, name=f"orders-0.{'a' * 32}-delete")
    replica(other, {0: several(0, 5)})
    for number, broker in enumerate((one_, other)):
        node(broker, number)
    check(one(4, one_, other), "visible", "log", True, True)
    assert one(1, one_, other) == one(1, other, one_)


def test_a_folder_whose_topic_is_gone_from_the_metadata_log(tmp_path):
    topic_id(replica(tmp_path, {0: several(0, 3)}), 9)
    check(one(1, tmp_path, of=history()), "topic-deleted", "log")


def test_an_older_topic_of_the_same_name_is_another_one(tmp_path):
    topic_id(replica(tmp_path, {0: several(0, 2)}), 1)
    topic_id(replica(tmp_path, {0: several(0, 9)}, name=f"orders-0.{'a' * 32}-delete"), 2)
    check(one(1, tmp_path, of=history()), "visible", "log", True, True)
    check(one(5, tmp_path, of=history()), "past-end", "nowhere", alternatives=["topic-deleted"])
    check(one(9, tmp_path, of=history()), "past-end", "nowhere")


def test_a_partition_that_is_nowhere(tmp_path):
    (tmp_path / "other-0").mkdir()
    (tmp_path / "other-0" / f"{0:020}.log").write_bytes(data(0))
    check(one(1, tmp_path), "unknown", "nowhere", None, None)


def test_a_long_range_is_looked_at_in_blocks(tmp_path):
    replica(tmp_path, {0: data(0, 1500) + data(1500, 700, producer=1) + marker(2200, 1, ABORT) + data(2201, 300)})
    found, _ = lines(0, 2499, tmp_path)
    assert [(line["offset"], line["lastOffset"], line["reason"]) for line in found] == [
        (0, 1499, "visible"),
        (1500, 2199, "aborted-transaction"),
        (2200, 2200, "control-marker"),
        (2201, 2499, "visible"),
    ]


def test_topics_and_configs_come_from_a_metadata_log():
    folder = next(GOLDEN.glob("**/__cluster_metadata-0")).parent
    found = topic_history(
        Finder(Wanted(siblings=True, log_dirs=True)).find([str(folder)]), Reporter(damage=raise_, fail=raise_)
    )
    assert found.image is not None
    assert found.config("no such topic", "retention.ms") == "604800000"
    assert found.number("no such topic", "cleanup.policy") is None


def test_the_command_takes_several_offsets_and_ranges(tmp_path):
    replica(tmp_path, {0: several(0, 5)})
    done = kdump("explain", "orders-0@1", "orders-0@2..9", "--in", tmp_path, "-o", "jsonl")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["kind"], line["offset"], line["lastOffset"], line["reason"]) for line in found] == [
        ("explanation", 1, 1, "visible"),
        ("explanation", 2, 4, "visible"),
        ("explanation", 5, 9, "past-end"),
    ]
    text = kdump("explain", "orders-0@2..9", "--in", tmp_path).stdout.decode()
    assert "orders-0@5..9: past-end; consumers do not get the records. Offset 5: the log ends at offset 5" in text
    assert kdump("explain", "orders@2", "--in", tmp_path).returncode == 2


def test_an_open_transaction_that_damage_may_have_ended_is_not_called_certain(tmp_path):
    broken = bytearray(marker(1, 7, COMMIT))
    broken[-1] ^= 1
    replica(tmp_path, {0: data(0, producer=7) + bytes(broken) + data(2)})
    check(one(0, tmp_path), "open-transaction", "log", True, None, alternatives=["visible", "aborted-transaction"])
    check(one(2, tmp_path), "behind-open-transaction", "log", True, None, alternatives=["visible"])


@pytest.mark.parametrize("dense", [True, False])
def test_a_range_says_of_each_offset_what_is_said_of_it_alone(tmp_path, dense):
    one_broker, other = tmp_path / "1", tmp_path / "2"
    kept = range(40) if dense else (8, 9, 12, 20, 21, 25, 33)
    held = b"".join(data(offset, producer=7 if offset in {20, 25} else -1) for offset in kept if offset >= 8)
    cleaned = forge.batch([], base_offset=14, last_offset_delta=2)
    broken = bytearray(data(29))
    broken[-1] ^= 1
    log = held if dense else b"".join(sorted([*(data(offset) for offset in kept), cleaned, bytes(broken)]))
    aside = b"".join(map(data, (2, 3, 10, 11)))
    replica(one_broker, {8: log, f"{2:020}.log.deleted": aside}, epochs={0: 0, 2: 30})
    replica(other, {0: b"".join(map(data, range(0, 50, 3)))}, epochs={0: 0})
    node(one_broker, 1)
    node(other, 2)
    checkpoint(one_broker / "log-start-offset-checkpoint", ("orders", 0, 9))
    checkpoint(one_broker / "replication-offset-checkpoint", ("orders", 0, 33))
    checkpoint(one_broker / "cleaner-offset-checkpoint", ("orders", 0, 24))
    reported, _ = lines(0, 59, one_broker, other)
    names = ("reason", "where", "readUncommitted", "readCommitted", "alternatives")
    spread = [
        [line[name] for name in names] for line in reported for _ in range(line["offset"], line["lastOffset"] + 1)
    ]
    assert spread == [[one(offset, one_broker, other)[name] for name in names] for offset in range(60)]
    assert len(reported) > 8


def test_a_range_of_twenty_million_offsets_takes_no_longer_than_what_is_there(tmp_path):
    replica(tmp_path, {20_000_000: data(20_000_000)})
    reported, _ = lines(0, 20_000_001, tmp_path)
    assert [(line["offset"], line["lastOffset"], line["reason"]) for line in reported] == [
        (0, 19_999_999, "retention-time"), (20_000_000, 20_000_000, "visible"), (20_000_001,) * 2 + ("past-end",),
    ]  # fmt: skip


def test_of_two_leaders_at_one_offset_the_later_epoch_counts_and_both_are_named(tmp_path):
    """The batches of the two leaders alternate."""
    first = data(0, 5, leader_epoch=3)
    later = [data(offset, 5, leader_epoch=4) for offset in (5, 10)]
    older = [data(offset, 5, leader_epoch=3) for offset in (5, 10)]
    for number, pairs in enumerate((zip(later, older, strict=True), zip(older, later, strict=True))):
        replica(tmp_path / str(number), {0: first + b"".join(one + other for one, other in pairs)})
        found = one(7, tmp_path / str(number))
        check(found, "visible", "log", True, True)
        assert "a different record of leader epoch 3 at this offset" in found["because"]
        assert [fact["says"].partition("(")[2] for fact in found["evidence"]] == [
            "leader epoch 4) holds the record",
            "leader epoch 3) holds a different record",
        ]


@pytest.mark.parametrize(
    ("older", "newer", "reason"),
    [
        ({"producer": 1}, {}, "visible"),
        ({"producer": 1}, {"producer": 2}, "visible"),
        ({"producer": 2}, {"producer": 1}, "aborted-transaction"),
        ({"producer": 3}, {}, "visible"),
    ],
)
def test_the_transaction_of_an_older_leader_does_not_decide_about_the_record_of_the_newer(
    tmp_path, older, newer, reason
):
    both = data(1, leader_epoch=3, **older) + data(1, leader_epoch=4, **newer)
    log = data(0, leader_epoch=3) + both + marker(2, 1, ABORT) + marker(3, 2, COMMIT) + marker(4, 3, ABORT)
    replica(tmp_path, {0: log})
    check(one(1, tmp_path), reason, "log", True, reason == "visible")


def test_no_record_of_a_truncated_batch_is_visible(tmp_path):
    last = data(3, 3)
    for cut in range(1, len(last)):
        replica(tmp_path / str(cut), {0: several(0, 3) + last[:-cut]})
        assert one(4, tmp_path / str(cut))["reason"] in {"damaged", "past-end"}, cut


def test_an_offset_of_a_segment_that_is_not_named_is_unknown(tmp_path):
    """The user names one or two of three segments, so the log neither begins nor ends with them."""
    replica(tmp_path, {first: several(first, first + 3) for first in (0, 3, 6)})
    path = [tmp_path / "orders-0" / f"{first:020}.log" for first in (0, 3, 6)]
    for named in ([0], [1], [2], [0, 2], [0, 1], [1, 2]):
        for offset in range(9):
            reason = one(offset, *(path[number] for number in named))["reason"]
            assert reason == ("visible" if offset // 3 in named else "unknown"), (named, offset)
        assert one(9, *(path[number] for number in named))["reason"] == ("past-end" if 2 in named else "unknown")
    found, _ = lines(0, 20, path[1])
    assert [(line["offset"], line["reason"]) for line in found] == [(0, "unknown"), (3, "visible"), (6, "unknown")]
    check(one(0, path[1]), "unknown", "nowhere", None, None)
    assert {one(offset, *path)["reason"] for offset in range(9)} == {"visible"}


def test_a_transaction_may_end_in_a_segment_that_is_not_named(tmp_path):
    replica(tmp_path, {0: data(0, producer=7), 1: data(1), 2: marker(2, 7, COMMIT)})
    first, second, last = (tmp_path / "orders-0" / f"{base:020}.log" for base in range(3))
    for named, alternatives in (((first,), ["visible", "aborted-transaction"]), ((first, second, last), [])):
        found = one(0, *named)
        assert found["alternatives"] == alternatives
        assert found["reason"] == ("open-transaction" if alternatives else "visible")
    assert "a segment outside of the given paths may hold the end marker of the transaction" in one(0, first)["because"]
    assert one(1, first, second)["alternatives"] == ["visible"]
    done = kdump("dump", first, "--isolation", "read_committed", "--count")
    assert b"1 transaction may end in later segments, which are not read; read_committed ends at" in done.stderr


def test_a_note_says_that_segments_of_a_folder_are_not_named(tmp_path):
    replica(tmp_path, {first: several(first, first + 3) for first in (0, 3, 6)})
    folder = tmp_path / "orders-0"
    paths = [folder / f"{first:020}.log" for first in (0, 3, 6)]
    note = (
        f"note: kdump reads only the given 1 of 3 segments in {folder}: give the folder to read the whole log".encode()
    )
    for command in ("offsets", "transactions", "retention", "stats"):
        assert note in kdump(command, paths[0]).stderr, command
        assert b"segments in" not in kdump(command, *paths).stderr, command
    assert note.replace(b"1 of", b"2 of").replace(b"is named", b"are named") in kdump("offsets", *paths[1:]).stderr


def test_a_damaged_record_of_one_broker_may_come_from_another(tmp_path):
    broken = bytearray(several(0, 3))
    broken[-1] ^= 1
    for number, content in enumerate((bytes(broken), several(0, 3))):
        replica(tmp_path / str(number), {0: content})
        node(tmp_path / str(number), number)
    check(one(2, tmp_path / "0"), "damaged", "log", alternatives=["past-end"])
    check(one(2, tmp_path / "0", tmp_path / "1"), "damaged", "replica", None, None, alternatives=["past-end"])
    check(one(2, tmp_path / "1", tmp_path / "0"), "visible", "log", True, True)
