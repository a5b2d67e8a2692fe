"""What the log cleaner does next: the rules of Kafka's cleaner on small logs, also within a memory limit."""

import json
import random

import pytest

from kdump.formats import txn_index
from kdump.formats.txn_index import AbortedTxn
from testing import forge
from testing.processes import kdump
from tests.helpers.segments import ABORT, COMMIT, TRANSACTIONAL, marker

NOW = 1_700_000_000_000
HORIZON = 0x40


def keyed(base, *pairs, timestamp=NOW - 1000, **fields):
    """A batch with one record for each pair of key and value."""
    records = [forge.record(key, value, offset=number) for number, (key, value) in enumerate(pairs)]
    return forge.batch(records, base_offset=base, base_timestamp=timestamp, **fields)


def write(folder, *segments, aborted=()):
    """A log of segments, each a list of batches; the last one is active."""
    folder.mkdir(parents=True, exist_ok=True)
    for batches in segments:
        base = int.from_bytes(batches[0][:8], "big")
        (folder / f"{base:020}.log").write_bytes(b"".join(batches))
        (folder / f"{base:020}.index").write_bytes(b"")
    if aborted:
        (folder / f"{0:020}.txnindex").write_bytes(txn_index.encode(aborted))


def answer(folder, *args, status=0, at=NOW):
    done = kdump("compaction", folder, "--at", at, "-o", "jsonl", "--config", "*:cleanup.policy=compact", *args)
    assert done.returncode == status, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    removed = [(line["offset"], line["why"]) for line in lines if line["kind"] == "removed"]
    return [line for line in lines if line["kind"] == "partition"], removed, lines


def cleaned(folder, offset, name="t"):
    (folder / "cleaner-offset-checkpoint").write_text(f"0\n1\n{name} 0 {offset}\n")


def test_a_newer_record_supersedes_and_what_has_no_key_goes(tmp_path):
    first = keyed(0, (b"a", b"1"), (b"b", b"1"), (None, b"x"), (b"a", b"2"), (b"c", None))
    write(tmp_path / "t-0", [first], [keyed(5, (b"b", b"2"))], [keyed(6, (b"a", b"3"))])
    (line,), removed, _ = answer(tmp_path, "--records")
    assert removed == [(0, "superseded"), (1, "superseded"), (2, "keyless")], "the active segment does not count"
    assert (line["firstDirtyOffset"], line["firstUncleanableOffset"]) == (0, 6)
    assert (line["keys"], line["records"], line["tombstones"], line["removableTombstones"]) == (3, 6, 1, 0)
    assert (line["due"], line["dirtyRatio"], line["mapFits"]) == (True, 1.0, True)


def test_a_name_beyond_every_offset_is_an_offset_too(tmp_path):
    write(tmp_path / "t-0", [keyed(0, (b"a", b"1"), (b"a", b"2"))])
    for name in ("09223372036854775807", "99999999999999999999"):
        (tmp_path / "t-0" / f"{name}.log").write_bytes(keyed(2, (b"a", b"3")))
    assert answer(tmp_path, "--records")[1] == [(0, "superseded"), (1, "superseded")]


def test_tombstones_go_when_their_horizon_has_passed(tmp_path):
    for horizon, why in ((NOW, [(0, "tombstone")]), (NOW + 1, [])):
        dead = keyed(0, (b"a", None), (b"b", b"1"), attributes=HORIZON, timestamp=horizon)
        write(tmp_path / "t-0", [dead], [keyed(2, (b"c", b"1"))], [keyed(3, (b"d", b"1"))])
        cleaned(tmp_path, 2)
        assert answer(tmp_path, "--records")[1] == why


def test_aborted_data_goes_and_its_marker_a_cleaning_later(tmp_path):
    batches = [
        keyed(0, (b"a", b"kept")),
        keyed(1, (b"a", b"aborted"), producer_id=7, producer_epoch=0, attributes=TRANSACTIONAL),
        marker(2, 7, ABORT),
        keyed(3, (b"b", b"1"), producer_id=8, producer_epoch=0, attributes=TRANSACTIONAL),
        marker(4, 8, COMMIT),
    ]
    aborted = [AbortedTxn(0, 7, 1, 2, 3)]
    write(tmp_path / "t-0", batches, [keyed(5, (b"z", b""))], aborted=aborted)
    assert answer(tmp_path, "--records")[1] == [(1, "aborted")]
    alone = forge.batch(
        [forge.record(b"\0\0\0\0", b"\0\0\0\0\0\3")],
        base_offset=2,
        base_timestamp=NOW,
        producer_id=7,
        producer_epoch=0,
        attributes=TRANSACTIONAL | 0x20 | HORIZON,
    )
    write(tmp_path / "t-0", [batches[0], alone, *batches[3:]], [keyed(5, (b"z", b""))], aborted=aborted)
    assert answer(tmp_path, "--records")[1] == [(2, "marker")]
    assert answer(tmp_path, "--records", at=NOW - 1)[1] == []


def test_an_abort_whose_marker_is_in_a_later_segment_counts(tmp_path):
    aborted = keyed(1, (b"a", b"aborted"), producer_id=7, producer_epoch=0, attributes=TRANSACTIONAL)
    write(tmp_path / "t-0", [keyed(0, (b"a", b"kept")), aborted], [marker(2, 7, ABORT)])
    (tmp_path / "t-0" / f"{2:020}.txnindex").write_bytes(txn_index.encode([AbortedTxn(0, 7, 1, 2, 3)]))
    assert answer(tmp_path, "--records")[1] == [(1, "aborted")]


def test_a_full_map_ends_a_cleaning_but_not_for_aborted_data(tmp_path):
    """Like Kafka's Cleaner: for each batch it first checks the transaction, then whether the map covers the offset."""
    batches = [
        keyed(0, (b"a", b"1"), (None, b"x"), (b"b", b"1"), (b"c", b"1"), (b"a", b"2"), (None, b"x")),
        keyed(6, (b"a", b"3"), producer_id=7, producer_epoch=0, attributes=TRANSACTIONAL),
        marker(7, 7, ABORT),
    ]
    write(tmp_path / "t-0", batches, [keyed(8, (b"z", b""))], aborted=[AbortedTxn(0, 7, 6, 7, 8)])
    for more in ((), ("--max-keys", "1")):
        (line,), removed, _ = answer(tmp_path, "--records", "--map-entries", "2", *more)
        assert removed == [(1, "keyless"), (6, "aborted")]
        assert (line["cleanedUpTo"], line["mapFits"], line["keys"]) == (3, False, 2)
        (line,), removed, _ = answer(tmp_path, "--records", "--map-entries", "3", *more)
        assert (line["cleanedUpTo"], line["mapFits"], removed[0]) == (4, False, (1, "keyless"))
    write(tmp_path / "u" / "t-0", [keyed(0, (b"a", b"1"), (b"b", b"1"), (None, b"x"))], [keyed(3, (b"z", b""))])
    (line,), removed, _ = answer(tmp_path / "u", "--records", "--map-entries", "2")
    assert (line["cleanedUpTo"], line["mapFits"], removed) == (3, True, [(2, "keyless")])


def test_an_open_transaction_and_young_segments_end_the_dirty_part(tmp_path):
    opened = keyed(2, (b"b", b"1"), producer_id=7, producer_epoch=0, attributes=TRANSACTIONAL)
    write(tmp_path / "t-0", [keyed(0, (b"a", b"1"))], [keyed(1, (b"a", b"2"))], [opened], [keyed(3, (b"z", b""))])
    (line,), removed, _ = answer(tmp_path, "--records")
    assert (line["firstUncleanableOffset"], removed) == (2, [(0, "superseded")])
    assert "transaction that begins at offset 2" in line["why"]
    (line,), removed, _ = answer(tmp_path, "--records", "--config", "*:min.compaction.lag.ms=5000")
    assert (line["firstUncleanableOffset"], removed, line["due"]) == (0, [], False)


def test_what_the_cleaner_cannot_reach_is_reported_with_its_reasons(tmp_path):
    """Each reason alone blocks some bytes: those of whole segments from its own to that of the next reason."""
    opened = keyed(2, (b"b", b"1"), producer_id=7, producer_epoch=0, attributes=TRANSACTIONAL)
    log = [
        [keyed(0, (b"a", b"1"))],
        [keyed(1, (b"a", b"2"))],
        [opened],
        [keyed(3, (b"c", b"3"))],
        [keyed(4, (b"z", b""))],
    ]
    write(tmp_path / "t-0", *log)
    sizes = [len(batch) for (batch,) in log]

    def held(*args):
        ((line,), _, _) = answer(tmp_path, *args)
        assert line["uncleanableBytes"] == sum(one["bytes"] for one in line["heldBack"])
        return [(one["by"], one["fromOffset"], one["bytes"]) for one in line["heldBack"]]

    active = ("activeSegment", 4, sizes[4])
    assert held() == [("openTransaction", 2, sum(sizes[2:4])), active]
    lag = ("minCompactionLag", 0, sum(sizes[:2]))
    assert held("--config", "*:min.compaction.lag.ms=5000") == [lag, ("openTransaction", 2, sum(sizes[2:4])), active]
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nt 0 1\n")
    assert held() == [("highWatermark", 1, sum(sizes[1:4])), active]
    (tmp_path / "replication-offset-checkpoint").unlink()
    shown = kdump("compaction", tmp_path, "--at", NOW, "--config", "*:cleanup.policy=compact").stdout.decode()
    table = shown[shown.index("The cleaner cannot reach ") :].split("\n\n")[0].splitlines()
    assert table[0] == f"The cleaner cannot reach {sum(sizes[2:])} B"
    assert [line.split(maxsplit=4) for line in table[2:]] == [
        ["t-0", "2", str(sum(sizes[2:4])), "B", "the open transaction that begins at offset 2"],
        ["t-0", "4", str(sizes[4]), "B", "the active segment"],
    ]


def test_the_ratio_and_the_age_decide_when_it_is_due(tmp_path):
    clean = [keyed(0, *((b"%d" % n, b"v" * 50) for n in range(20)))]
    write(tmp_path / "t-0", clean, [keyed(20, (b"1", b"2"))], [keyed(21, (b"z", b""))])
    cleaned(tmp_path, 20)
    (line,), _, _ = answer(tmp_path)
    assert (line["due"], line["firstDirtyOffset"], line["superseded"]) == (False, 20, 1)
    assert 0 < line["dirtyRatio"] < 0.1
    assert answer(tmp_path, "--config", "t:min.cleanable.dirty.ratio=0.01")[0][0]["due"]
    assert answer(tmp_path, "--config", "t:max.compaction.lag.ms=999")[0][0]["due"]
    assert not answer(tmp_path, "--config", "t:max.compaction.lag.ms=1000")[0][0]["due"]
    cleaned(tmp_path, 999)
    assert answer(tmp_path)[0][0]["firstDirtyOffset"] == 0


@pytest.mark.parametrize("entries", [1, 3, 17, 50, 1000])
def test_several_passes_give_the_answer_of_one(tmp_path, entries):
    seed = random.Random(5)
    segments, offset = [], 0
    for _ in range(4):
        batches = []
        for _ in range(5):
            pairs = [
                (seed.choice((None, b"k%d" % seed.randrange(40), b"long" * 9 + b"%d" % seed.randrange(9))), b"v")
                for _ in range(seed.randrange(1, 9))
            ]
            batches.append(keyed(offset, *pairs))
            offset += len(pairs)
        segments.append(batches)
    write(tmp_path / "t-0", *segments)
    options = ("--records", "--top", "5", "--map-entries", entries)
    whole = answer(tmp_path, *options)
    assert whole[0][0]["keys"] <= entries
    assert whole[0][0]["mapFits"] is (entries > 17 and whole[0][0]["keys"] < entries)
    for most in (1, 2, 7):
        assert answer(tmp_path, *options, "--max-keys", most) == whole


def test_damage_is_said_and_stops_the_cleaner(tmp_path):
    broken = keyed(1, (b"a", b"2"))[:-1] + b"\xff"
    write(tmp_path / "t-0", [keyed(0, (b"a", b"1")), broken, keyed(2, (b"a", b"3"))], [keyed(3, (b"z", b""))])
    (line,), removed, _ = answer(tmp_path, "--records", status=3)
    assert removed == [(0, "superseded")]
    assert "the cleaner stops at damage" in line["why"]


def test_the_largest_keys_topics_of_other_policies_and_two_processes(tmp_path):
    write(tmp_path / "t-0", [keyed(0, (b"a", b"x" * 50), (b"\xff", b"1"), (b"a", b""))], [keyed(3, (b"z", b""))])
    write(tmp_path / "u-0", [keyed(0, (b"a", b"1"))], [keyed(1, (b"z", b""))])
    lines = answer(tmp_path, "--top", "2", "--config", "u:cleanup.policy=delete")[2]
    keys = [(line["topic"], line["partition"], line["key"], line["records"]) for line in lines if line["kind"] == "key"]
    assert keys == [("t", 0, "a", 2), ("t", 0, "/w==", 1)]
    assert answer(tmp_path, "--records", "--jobs", "2") == answer(tmp_path, "--records")
    table = kdump("compaction", tmp_path, "--at", NOW, "--config", "*:cleanup.policy=compact", "--records").stdout
    assert table.startswith(b"2 of 2 compacted partitions are due")


def test_what_is_not_compacted_is_said_where_it_was_asked_for(tmp_path):
    write(tmp_path / "t-0", [keyed(0, (b"a", b"1"))], [keyed(1, (b"z", b""))])
    for args, said in (
        (
            (),
            "t: the topic's configs are unknown without __cluster_metadata in the paths; "
            "if the topic is compacted, add --config t:cleanup.policy=compact",
        ),
        (("--config", "t:cleanup.policy=delete", "--topic", "t"), "t is not compacted: its cleanup.policy is 'delete'"),
    ):
        done = kdump("compaction", tmp_path, *args)
        assert (done.returncode, done.stdout[:7]) == (0, b"0 of 0 ")
        assert said in done.stderr.decode()
    done = kdump("compaction", tmp_path, "--config", "t:cleanup.policy=compact")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Records that a cleaning would remove now" in done.stdout


def test_limits_may_be_beyond_all_numbers(tmp_path):
    write(tmp_path / "t-0", [keyed(0, (b"a", b"1"), (b"a", b"2"))], [keyed(2, (b"z", b""))])
    for limits in (("--map-entries", 10**30), ("--max-keys", 10**30), ("--map-entries", 10**30, "--max-keys", 10**30)):
        assert answer(tmp_path, "--records", "--top", 10**30, *limits)[1] == [(0, "superseded")]
