"""Open and hanging transactions, transactional ids, and what truncated or damaged files hide."""

import os
import struct

import pytest

from kdump.formats import producer_snapshot
from kdump.formats.producer_snapshot import ProducerEntry
from testing import forge
from testing.processes import kdump
from tests.helpers.asking import ask
from tests.helpers.log_dirs import replica, write
from tests.helpers.segments import ABORT, COMMIT, data, marker

NOW = 1_700_000_000_000
HOUR = 3_600_000
ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT = 1, 2, 4


def text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def state(offset, name, *, producer=7, status=ONGOING, partitions=(), timeout=60_000, started=NOW - 1000):
    """A batch of one record of ``__transaction_state``: a state (value version 0), or without status a tombstone."""
    key = struct.pack(">h", 0) + text(name)
    value = None
    if status is not None:
        value = struct.pack(">hqhib", 0, producer, 0, timeout, status) + struct.pack(">i", len(partitions))
        for topic, number in partitions:
            value += text(topic) + struct.pack(">ii", 1, number)
        value += struct.pack(">qq", started, started)
    return forge.batch([forge.record(key, value)], base_offset=offset, base_timestamp=started)


def coordinators(log_dir, *batches):
    write(log_dir, "__transaction_state-0", {0: b"".join(batches)})


def transactions(*args, status=0):
    """Return the lines of ``kdump transactions``: transactions, other lines, and standard error."""
    lines, said = ask("transactions", *args, "--at", NOW, status=status)
    found = [line for line in lines if line["kind"] == "transaction"]
    return found, [line for line in lines if line["kind"] != "transaction"], said


def only(*args, status=0):
    (found,), _, _ = transactions(*args, status=status)
    return found


def hung(offset=0, **rest):
    """Data that producer 7 wrote an hour ago."""
    return data(offset, 2, producer=7, timestamp=NOW - HOUR, **rest)


def test_a_transaction_hangs_when_no_coordinator_names_its_partition(tmp_path):
    write(tmp_path, "orders-0", {0: hung() + data(2, 3)})
    coordinators(tmp_path, state(0, "tx", status=COMPLETE_COMMIT))
    assert only(tmp_path, "--bootstrap-server", "b1:9092") == {
        "kind": "transaction", "topic": "orders", "partition": 0, "producerId": 7, "producerEpoch": 0,
        "coordinatorEpoch": None, "startOffset": 0, "lastOffset": 1, "lastTimestampMs": NOW - HOUR, "ageMs": HOUR,
        "state": "hanging", "endOffset": None, "transactionalId": None,
        "abort": "kafka-transactions.sh --bootstrap-server b1:9092 abort --topic orders --partition 0 --start-offset 0",
        "terminate": None, "twoPhase": False, "lastTransactionalId": "tx", "heldBack": 5,
        "why": "the transaction of 'tx' (CompleteCommit) does not list orders-0, "
        "if __transaction_state has no more partitions than 1", "startTimeMs": None, "clock": "records",
    }  # fmt: skip


def test_a_named_one_is_open_whatever_its_age(tmp_path):
    write(tmp_path, "orders-0", {0: hung()})
    coordinators(tmp_path, state(0, "tx", partitions=[("orders", 0)]))
    found = only(tmp_path)
    assert (found["state"], found["transactionalId"], found["abort"], found["terminate"]) == ("open", "tx", None, None)
    assert "aborts the transaction at 2023-11-14T22:14:19.000Z" in found["why"]


@pytest.mark.parametrize("dated", [NOW - 1106 * 24 * HOUR, NOW + 50 * HOUR, -1])
def test_the_age_of_a_named_one_is_by_its_coordinator(tmp_path, dated):
    """Producers set the timestamps of records: imported records may be years old."""
    write(tmp_path, "orders-0", {0: data(0, 2, producer=7, timestamp=dated)})
    coordinators(tmp_path, state(0, "tx", partitions=[("orders", 0)], started=NOW - 2 * HOUR))
    found = only(tmp_path)
    assert (found["ageMs"], found["startTimeMs"], found["clock"]) == (2 * HOUR, NOW - 2 * HOUR, "coordinator")
    assert found["lastTimestampMs"] == dated
    shown = kdump("transactions", tmp_path, "--at", NOW).stdout.decode()
    assert "open for 2 h by its coordinator's clock; holds back 2 offsets" in shown
    shown = kdump("transactions", tmp_path, "--at", NOW - 3 * HOUR).stdout.decode()
    assert "open, its start is 1 h in the future by its coordinator's clock; holds back" in shown


def test_the_age_of_an_ended_one_is_that_of_its_last_batch(tmp_path):
    """The current time says nothing about when it ended."""
    write(tmp_path, "orders-0", {0: hung() + marker(2, 7, COMMIT)})
    found, _, _ = transactions(tmp_path, "--all")
    assert [(one["ageMs"], one["startTimeMs"], one["clock"]) for one in found] == [(HOUR, None, "records")]
    shown = kdump("transactions", tmp_path, "--all", "--at", NOW).stdout.decode()
    assert "committed at offset 2, its last batch is 1 h old by record timestamps" in shown


def test_one_past_its_timeout_is_terminated_by_its_id(tmp_path):
    write(tmp_path, "orders-0", {0: hung()})
    coordinators(tmp_path, state(0, "tx 1", partitions=[("orders", 0)], started=NOW - 60_001))
    line = "kafka-transactions.sh --bootstrap-server HOST:9092 forceTerminateTransaction --transactionalId 'tx 1'"
    assert only(tmp_path)["terminate"] == line
    assert only(tmp_path, "--release", "4.0")["terminate"] is None
    coordinators(tmp_path, state(0, "tx 1", partitions=[("orders", 0)], status=PREPARE_COMMIT, started=0))
    assert only(tmp_path)["terminate"] is None


def test_a_young_one_that_nothing_names_is_open_until_the_timeout(tmp_path):
    write(tmp_path, "orders-0", {0: hung()})
    coordinators(tmp_path, state(0, "other", producer=9))
    assert only(tmp_path, "--max-timeout", "2h")["state"] == "open"
    assert only(tmp_path, "--max-timeout", "1h")["state"] == "open"
    assert only(tmp_path, "--max-timeout", "59m")["state"] == "hanging"


@pytest.mark.parametrize("numbers", [(), (1,), (0, 2)])
def test_without_all_coordinators_nothing_hangs(tmp_path, numbers):
    write(tmp_path, "orders-0", {0: hung()})
    for number in numbers:
        write(tmp_path, f"__transaction_state-{number}", {0: state(0, f"tx-{number}")})
    found = only(tmp_path)
    assert (found["state"], found["transactionalId"], found["abort"]) == ("open", None, None)
    assert "it is unknown whether the transaction hangs" in found["why"]


def test_the_topics_asked_leave_coordinators_in(tmp_path):
    for topic in ("orders", "audit"):
        write(tmp_path, f"{topic}-0", {0: hung()})
    coordinators(tmp_path, state(0, "tx", producer=9))
    found, ids, _ = transactions(tmp_path, "--topic", "audit")
    assert [(one["topic"], one["state"]) for one in found] == [("audit", "hanging")]
    assert [one["transactionalId"] for one in ids] == ["tx"]


def test_the_last_state_of_each_id_counts(tmp_path):
    coordinators(
        tmp_path, state(0, "a"), state(1, "b"), state(2, "a", status=COMPLETE_COMMIT), state(3, "b", status=None)
    )
    _, ids, _ = transactions(tmp_path)
    assert ids == [
        {
            "kind": "coordinator", "transactionalId": "a", "coordinatorPartition": 0, "producerId": 7,
            "producerEpoch": 0, "state": "CompleteCommit", "timeoutMs": 60_000, "startTimeMs": NOW - 1000,
            "lastUpdateMs": NOW - 1000, "partitions": [], "previousProducerId": None, "nextProducerId": None,
        }
    ]  # fmt: skip


def test_a_broker_before_3_0_wants_the_producer(tmp_path):
    epochs = {"leader_epoch_checkpoint": "0\n1\n0 0\n"}
    write(tmp_path, "orders-0", {0: marker(0, 7, ABORT, epoch=5) + hung(1)}, **epochs)
    coordinators(tmp_path, state(0, "tx", producer=9))
    old = "abort --topic orders --partition 0 --producer-id 7 --producer-epoch 0 --coordinator-epoch 5"
    assert only(tmp_path)["abort"].endswith(old)
    assert only(tmp_path, "--release", "3.0")["abort"].endswith("--start-offset 1")
    (tmp_path / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg\n")
    assert only(tmp_path)["abort"].endswith("--start-offset 1")
    assert only(tmp_path, "--release", "2.8")["abort"].endswith(old)


def test_all_lists_ended_ones_and_only_the_oldest_open_one_holds_back(tmp_path):
    log = data(0, producer=1) + data(1, producer=2) + marker(2, 1, COMMIT) + marker(3, 2, ABORT) + marker(4, 3, ABORT)
    write(tmp_path, "orders-0", {0: log + hung(5) + data(7, producer=8)})
    coordinators(tmp_path, state(0, "one", producer=1, status=COMPLETE_COMMIT))
    found, _, _ = transactions(tmp_path, "--all")
    names = ("producerId", "state", "startOffset", "lastOffset", "endOffset", "transactionalId", "heldBack")
    assert [tuple(one[name] for name in names) for one in found] == [
        (7, "hanging", 5, 6, None, None, 3), (8, "hanging", 7, 7, None, None, 0),
        (1, "committed", 0, 0, 2, "one", 0), (2, "aborted", 1, 1, 3, None, 0),
    ]  # fmt: skip


def test_snapshots_and_logs_give_the_same(tmp_path):
    folder = write(tmp_path, "orders-0", {0: hung(), 2: data(2, producer=8)})
    coordinators(tmp_path, state(0, "tx"))
    by_log = transactions(tmp_path)[0]
    entry = ProducerEntry(7, 0, -1, 1, 1, NOW - HOUR, -1, 0)
    (folder / f"{2:020}.snapshot").write_bytes(producer_snapshot.encode([entry]))
    assert transactions(tmp_path)[0] == by_log


def test_deleted_segments_are_not_held_back(tmp_path):
    folder = write(tmp_path, "orders-0", {10: data(10, 5)})
    entry = ProducerEntry(7, 0, -1, 1, 1, NOW - HOUR, -1, 0)
    (folder / f"{10:020}.snapshot").write_bytes(producer_snapshot.encode([entry]))
    coordinators(tmp_path, state(0, "tx"))
    assert (only(tmp_path)["startOffset"], only(tmp_path)["heldBack"]) == (0, 5)


def test_replicas_agree_or_the_difference_is_named(tmp_path):
    one, two = tmp_path / "broker-1", tmp_path / "broker-2"
    log = hung() + marker(2, 7, ABORT) + data(3)
    write(one, "orders-0", {0: log})
    write(two, "orders-0", {0: hung()})
    assert transactions(one, two)[:2] == ([], [])
    write(two, "orders-0", {0: hung() + data(2) + data(3, 2)})
    found, (difference,), _ = transactions(one, two)
    assert [line["startOffset"] for line in found] == [0]
    assert (difference["kind"], difference["logDir"], difference["endOffset"]) == ("difference", str(one), 4)
    assert (
        difference["text"] == f"producer 7 has an open transaction from offset 0 on in {two}, but not in this replica"
    )
    assert transactions(two, one, "--jobs", "2")[:2] == (found, [difference])


def test_states_are_those_of_the_replica_with_the_newest_epoch(tmp_path):
    new, old = tmp_path / "1", tmp_path / "2"
    write(new, "orders-0", {0: hung()})
    replica(new, {0: state(0, "tx", status=COMPLETE_COMMIT)}, name="__transaction_state-0", epochs={0: 0, 2: 1})
    states = state(0, "tx", status=COMPLETE_COMMIT) + state(1, "tx", partitions=[("orders", 0)])
    replica(old, {0: states}, name="__transaction_state-0", epochs={0: 0})
    (found,), (known,), _ = transactions(new, old)
    assert (found["transactionalId"], known["state"]) == (None, "CompleteCommit")


def test_a_cut_state_leaves_the_transactions_of_its_id_alone(tmp_path):
    write(tmp_path, "orders-0", {0: hung() + data(2, producer=8, timestamp=NOW - HOUR)})
    coordinators(tmp_path, state(0, "sure", producer=9) + state(1, "tx", partitions=[("orders", 0)])[:-30])
    found, ids, said = transactions(tmp_path, status=3)
    assert [(one["producerId"], one["state"]) for one in found] == [(7, "open"), (8, "hanging")]
    assert "truncated or damaged" in found[0]["why"]
    assert [one["transactionalId"] for one in ids] == ["sure"]
    assert "the last record of transactional id 'tx' is truncated" in said


@pytest.mark.parametrize("keep", [20, 61, 70])
def test_a_state_that_is_cut_too_short_leaves_all_of_unknown_ids_alone(tmp_path, keep):
    write(tmp_path, "orders-0", {0: hung()})
    coordinators(tmp_path, state(0, "sure", producer=9) + state(1, "tx")[:keep])
    ((one,), _, _) = transactions(tmp_path, status=3)
    assert one["state"] == "open"


def test_damage_among_coordinators_is_named_and_nothing_is_made_of_it(tmp_path):
    write(tmp_path, "orders-0", {0: hung()})
    broken = bytearray(state(0, "tx", partitions=[("orders", 0)]))
    broken[-9] ^= 1
    coordinators(tmp_path, bytes(broken), state(1, "sure", producer=9))
    found, _, said = transactions(tmp_path, status=3)
    assert [one["state"] for one in found] == ["open"]
    assert "__transaction_state-0" in said


def test_the_table_says_what_to_do_first(tmp_path):
    write(tmp_path, "orders-0", {0: hung() + data(2, 3)})
    coordinators(tmp_path, state(0, "tx", status=COMPLETE_COMMIT))
    shown = kdump("transactions", tmp_path, "--at", NOW).stdout.decode()
    assert shown.startswith("Transactions: 1 hanging, 0 open; 5 offsets held back from read_committed consumers\n")
    assert "hanging for 1 h by record timestamps; holds back 5 offsets of orders-0; " in shown
    assert "\nkafka-transactions.sh --bootstrap-server HOST:9092 abort --topic orders" in shown
    assert "1 transactional id: 1 CompleteCommit" in shown


def unread(path):
    """Replace a file with a pipe: it exists but cannot be read."""
    path.unlink()
    os.mkfifo(path)


def test_nothing_hangs_where_states_of_coordinators_cannot_be_read(tmp_path):
    write(tmp_path, "orders-0", {0: hung()})
    first = state(0, "tx", partitions=[("orders", 0)])
    folder = write(tmp_path, "__transaction_state-0", {0: first, 1: state(1, "other", producer=9)})
    assert only(tmp_path)["transactionalId"] == "tx"
    unread(folder / f"{0:020}.log")
    found = only(tmp_path, status=1)
    assert (found["state"], found["abort"]) == ("open", None)
    assert "truncated or damaged" in found["why"]


@pytest.mark.parametrize("fault", ["unread", "damaged", "cut"])
def test_nothing_hangs_whose_end_may_be_in_bytes_that_cannot_be_read(tmp_path, fault):
    coordinators(tmp_path, state(0, "tx", status=COMPLETE_COMMIT))
    folder = write(tmp_path, "orders-0", {0: hung() + marker(2, 7, COMMIT), 3: data(3)})
    log = folder / f"{0:020}.log"
    if fault == "unread":
        write(tmp_path, "orders-0", {0: hung(), 2: marker(2, 7, COMMIT)})
        unread(folder / f"{2:020}.log")
    elif fault == "damaged":
        log.write_bytes(log.read_bytes()[:-1] + b"?")
    else:
        os.truncate(log, log.stat().st_size - 5)
    found = only(tmp_path, status=1 if fault == "unread" else 3)
    assert (found["state"], found["abort"], found["startOffset"]) == ("open", None, 0)
    assert (
        found["why"]
        == "bytes of orders-0 after the first batch of the transaction cannot be read: they may have its end marker"
    )


def test_damage_casts_no_doubt_on_what_a_later_snapshot_or_marker_settles(tmp_path):
    coordinators(tmp_path, state(0, "tx", status=COMPLETE_COMMIT))
    broken = bytearray(data(0))
    broken[-1] ^= 1
    folder = write(tmp_path, "orders-0", {0: hung() + bytes(broken) + marker(3, 7, COMMIT) + hung(4), 6: data(6)})
    assert only(tmp_path, status=3)["state"] == "hanging"
    entry = ProducerEntry(7, 0, -1, 5, 1, NOW - HOUR, -1, 4)
    write(tmp_path, "orders-0", {0: hung() + marker(2, 7, COMMIT) + hung(4) + bytes(broken)})
    (folder / f"{6:020}.snapshot").write_bytes(producer_snapshot.encode([entry]))
    assert only(tmp_path)["state"] == "hanging"


def test_times_that_no_calendar_has_are_numbers_and_those_to_come_are_called_so(tmp_path):
    end = 2**63 - 1
    write(tmp_path, "orders-0", {0: data(0, producer=7, timestamp=NOW + HOUR)})
    coordinators(tmp_path, state(0, "tx", partitions=[("orders", 0)], started=end))
    shown = kdump("transactions", tmp_path, "--at", NOW).stdout.decode()
    future = (end - NOW) // (24 * HOUR)
    assert f"open, its start is {future} d in the future by its coordinator's clock; holds back 1 offset" in shown
    coordinators(tmp_path, state(0, "tx", producer=9))
    later = kdump("transactions", tmp_path, "--at", NOW).stdout.decode()
    assert "open, its last batch is 1 h in the future by record timestamps; holds back 1 offset of orders-0; " in later
    assert f"the coordinator aborts the transaction at {end + 60_000} ms unless it ends earlier" in shown


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"\0\x63new", b"\0\0", "record type 99 is unknown"),
        (b"\xff\xff", b"\0\0", "record type -1 is unknown"),
        (b"\0\0" + text("tx"), b"\0\x63", "the state of transactional id 'tx': version 99 of TransactionLogValue is"),
    ],
)
def test_a_record_that_a_coordinator_ignores_is_no_damage(tmp_path, key, value, reason):
    """A broker of 4.3.1 warns: Unknown message key (or value) with version 99 while loading transaction state."""
    coordinators(tmp_path, state(0, "tx"), forge.batch([forge.record(key, value)], base_offset=1))
    _, _, said = transactions(tmp_path)
    assert f"note: __transaction_state-0: offset 1: {reason}" in said


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b"\0\0"), (b"", b"\0\0"), (b"\0", b"\0\0"), (b"\0\0" + text("tx"), b""), (b"\0\0\0", None)],
)
def test_a_record_at_which_a_coordinator_stops_is_damage(tmp_path, key, value):
    """A broker of 4.3.1 logs "Error loading transactions from transaction log", and has only the states before it."""
    coordinators(tmp_path, state(0, "tx"), forge.batch([forge.record(key, value)], base_offset=1))
    assert "__transaction_state-0" in transactions(tmp_path, status=3)[2]


@pytest.mark.parametrize(("count", "says"), [(2, ", if __transaction_state has no more partitions than 2"), (50, "")])
def test_what_hangs_rests_on_the_number_of_coordinators(tmp_path, count, says):
    write(tmp_path, "orders-0", {0: hung()})
    for number in range(count):
        write(tmp_path, f"__transaction_state-{number}", {0: b""})
    assert only(tmp_path)["why"] == f"no transactional id in __transaction_state has the producer id{says}"


@pytest.mark.parametrize("command", ["offsets", "producers"])
def test_a_partition_with_a_file_that_cannot_be_read_is_left_out(tmp_path, command):
    for number in (0, 1):
        folder = write(tmp_path, f"orders-{number}", {0: data(0, producer=7), 1: data(1, producer=7)})
    unread(folder / f"{1:020}.log")
    lines, _ = ask(command, tmp_path, status=1)
    assert [line["partition"] for line in lines] == [0]


NEVER = 2**31 - 1


def test_one_in_two_phase_commit_is_never_ended_by_its_coordinator(tmp_path):
    """Its timeout is the maximum (KIP-939): the coordinator waits for a decision made outside Kafka."""
    write(tmp_path, "orders-0", {0: hung()})
    coordinators(tmp_path, state(0, "tx", partitions=[("orders", 0)], timeout=NEVER, started=NOW - 30 * 24 * HOUR))
    found = only(tmp_path)
    assert (found["state"], found["twoPhase"]) == ("open", True)
    assert found["why"].startswith("the transaction uses two-phase commit (KIP-939), so")
    assert found["terminate"].endswith("forceTerminateTransaction --transactionalId tx")
    older = only(tmp_path, "--release", "4.0")
    assert (older["twoPhase"], older["terminate"]) == (False, None)
    assert "aborted the transaction at" in older["why"]


def test_the_table_has_lines_to_copy(tmp_path):
    for topic in ("audit", "orders"):
        write(tmp_path, f"{topic}-0", {0: hung()})
    write(tmp_path, "orders-1", {0: hung()})
    coordinators(tmp_path, state(0, "tx", partitions=[("orders", 0), ("orders", 1)], timeout=NEVER))
    shown = kdump("transactions", tmp_path, "--at", NOW).stdout.decode().splitlines()
    tool = "kafka-transactions.sh --bootstrap-server HOST:9092"
    first = shown.index(
        "# aborts the hanging transaction in audit-0 from offset 0; run it only if the leader's "
        "describe-producers shows this transaction:"
    )
    assert shown[first + 1 : first + 4] == [
        f"{tool} abort --topic audit --partition 0 --start-offset 0",
        "# aborts the transaction of 'tx' in all its partitions (here: orders-0, orders-1); run it only if the "
        "external "
        "coordinator did not commit:",
        f"{tool} forceTerminateTransaction --transactionalId tx",
    ]
    assert not [line for line in shown if tool in line and not line.startswith(tool)]
