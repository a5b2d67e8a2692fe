"""Copies of a log dir without its snapshots, and with its logs cut: the answer is equal, or names what is missing."""

import os

import pytest

from kdump.formats import producer_snapshot
from kdump.formats.producer_snapshot import ProducerEntry
from testing import GOLDEN
from tests.answers.test_transactions import NOW, PREPARE_COMMIT, coordinators, hung, state
from tests.helpers.asking import ask
from tests.helpers.log_dirs import write
from tests.helpers.segments import ABORT, COMMIT, data, marker

CUT = 30


@pytest.fixture
def log_dir(tmp_path):
    """A log dir with one hanging, one open and some ended transactions, and a snapshot at each segment."""
    first = data(0, producer=1, base_sequence=0) + hung(1, base_sequence=0) + marker(3, 1, COMMIT)
    second = data(4, 2, producer=2, base_sequence=0) + marker(6, 2, ABORT)
    third = data(7, producer=3, base_sequence=0, timestamp=NOW - 1000) + data(8, size=100)
    folder = write(tmp_path, "orders-0", {0: first, 4: second, 7: third}, partition__metadata="version: 0\n")
    one = ProducerEntry(1, 0, 0, 0, 0, 1000, 3, -1)
    seven = ProducerEntry(7, 0, 1, 2, 1, NOW - 3_600_000, -1, 1)
    two = ProducerEntry(2, 0, 1, 5, 1, 1000, 3, -1)
    for offset, entries in ((4, (one, seven)), (7, (one, two, seven))):
        (folder / f"{offset:020}.snapshot").write_bytes(producer_snapshot.encode(entries))
    coordinators(
        tmp_path, state(0, "one", producer=1), state(1, "three", producer=3, partitions=[("orders", 0)]),
        state(2, "other", producer=9, status=PREPARE_COMMIT),
    )  # fmt: skip
    return tmp_path


def answers(log_dir, status=0):
    """Return the answers of the three commands about ``orders``, and their notes about the files."""
    found, said = [], ""
    for words in (("offsets",), ("transactions", "--all"), ("producers",)):
        lines, reported = ask(*words, log_dir, "--at", NOW, status=status)
        found.append([line for line in lines if line.get("topic") == "orders"])
        said += reported
    return found, said


def test_without_snapshots_the_logs_give_the_same(log_dir):
    before, said = answers(log_dir)
    assert said == ""
    assert [line["state"] for line in before[1]] == ["hanging", "open", "committed", "aborted"]
    for snapshot in log_dir.rglob("*.snapshot"):
        snapshot.unlink()
    after, said = answers(log_dir)
    assert after == before
    assert "orders-0: no valid producer snapshot" in said


def test_what_the_cut_end_of_a_log_held_is_named_and_the_rest_reported(log_dir):
    before, _ = answers(log_dir)
    for log in (log_dir / "orders-0" / f"{7:020}.log", log_dir / "__transaction_state-0" / f"{0:020}.log"):
        os.truncate(log, log.stat().st_size - CUT)
    after, said = answers(log_dir, status=3)
    assert (before[0][0]["latest"], after[0][0]["latest"]) == (9, 8)
    assert after[0][0]["lastStable"] == before[0][0]["lastStable"] == 1
    names = [name for name in before[1][0] if name != "heldBack"]
    assert [[line[name] for name in names] for line in after[1]] == [
        [line[name] for name in names] for line in before[1]
    ]
    assert after[2] == before[2]
    assert f"{7:020}.log: byte {len(data(7))}: the file ends inside a batch, " in said
    assert "the last record of transactional id 'other' is truncated" in said


@pytest.mark.parametrize("command", [("offsets",), ("producers",), ("transactions", "--all")])
def test_a_real_log_dir_without_snapshots_answers_the_same(tmp_path, command):
    golden = GOLDEN / "brokers" / "4.2.2"
    for folder in ("txn-0", "idem-0", "__transaction_state-0", "__transaction_state-1"):
        target = tmp_path / folder
        target.mkdir()
        for file in (golden / folder).iterdir():
            if file.suffix not in {".snapshot", ".txnindex"}:
                (target / file.name).write_bytes(file.read_bytes())
    paths = [golden / folder for folder in ("txn-0", "idem-0", "__transaction_state-0", "__transaction_state-1")]
    topics = ("--topic", "txn", "--topic", "idem", "--at", NOW)
    assert ask(*command, tmp_path, *topics)[0] == ask(*command, *paths, *topics)[0] != []
