"""Groups and transactions that the coordinators of a rebuilt cluster load."""

from __future__ import annotations

import random

import pytest

from kdump.answers.coordinator import coordinator_partition
from kdump.answers.transactional_ids import TransactionalId
from kdump.rebuild import coordinators, first_start, metadata
from kdump.rebuild.cluster import choose
from kdump.rebuild.coordinators import OpenProducer, RebuiltGroup, RebuiltTransaction, partition_count, partition_counts
from kdump.rebuild.volumes import survey
from testing import GOLDEN
from tests.rebuild.test_metadata import Heard

BROKER = GOLDEN / "brokers" / "4.2.2"
DAY = 86_400_000


def found(at, still_open=()):
    volumes = survey([str(BROKER)])
    heard = Heard()
    lost = metadata.found(volumes, None, heard.said)
    plans = choose(volumes, lost.image)
    return coordinators.read(plans, still_open, at, heard.damages.append)


def test_groups_of_every_type_are_counted_with_their_offsets():
    groups = {one.group_id: one for one in found(0).groups}
    assert {one.type for one in groups.values()} == {"Classic", "Consumer", "Share", "Streams"}
    assert sum(one.offsets for one in groups.values()) > 10
    assert not [one for one in groups.values() if one.expired]


def test_offsets_that_are_over_are_named_and_a_retention_that_keeps_them():
    newest = max(one.oldest_commit_ms for one in found(0).groups if one.oldest_commit_ms)
    at = newest + 8 * DAY
    known = found(at)
    gone = [one for one in known.groups if one.expired]
    assert gone
    assert all(one.expire_timestamp_ms <= at for one in gone)
    minutes = coordinators.retention_minutes(known.groups, at)
    oldest = min(one.oldest_commit_ms for one in known.groups if one.oldest_commit_ms)
    assert oldest + minutes * 60_000 > at + 29 * DAY
    (text,) = first_start.of_groups(known, minutes)
    assert f"offsets.retention.minutes={minutes}" in text
    assert gone[0].group_id in text
    assert not list(first_start.of_groups(found(0), 1))


def transactional(state, number=7, partitions=("a-0",)):
    return TransactionalId("tx", 0, number, 0, state, 1, 2, 3, tuple(partitions), None, None)


@pytest.mark.parametrize(
    ("state", "partitions", "hangs"),
    [
        ("Ongoing", ["a-0"], False),
        ("PrepareAbort", ["a-0"], False),
        ("PrepareCommit", ["a-0"], False),
        ("Ongoing", ["b-0"], True),
        ("CompleteCommit", [], True),
        ("Empty", [], True),
    ],
)
def test_a_transaction_hangs_unless_its_coordinator_has_it_open_there(state, partitions, hangs):
    made = list(coordinators.transactions_of([transactional(state, 7, partitions)], [OpenProducer(7, "a", 0)]))
    assert [(one.transactional_id, one.partitions) for one in made if one.hangs] == (
        [("tx", ("a-0",))] if hangs else []
    )


def test_a_producer_that_no_coordinator_knows_hangs():
    still_open = [OpenProducer(9, "a", 0), OpenProducer(9, "b", 1), OpenProducer(8, "a", 0)]
    made = list(coordinators.transactions_of([], still_open))
    assert [(one.transactional_id, one.producer_id, one.partitions) for one in made] == [
        (None, 8, ("a-0",)),
        (None, 9, ("a-0", "b-1")),
    ]
    (text,) = first_start.of_transactions(made)
    assert "2 open transactions will hang in a-0, a-0, b-1" in text


def test_open_transactions_of_coordinators_are_named():
    ends = RebuiltTransaction("tx", 7, "Ongoing", ("a-0",), hangs=False)
    (text,) = first_start.of_transactions([ends])
    assert "tx" in text
    assert not list(first_start.of_transactions([]))


def test_long_lists_are_cut():
    groups = [RebuiltGroup(f"g{number}", "Classic", "Empty", 1, 1, 2, True) for number in range(9)]
    (text,) = first_start.of_groups(coordinators.Coordinators(groups), 5)
    assert "9 groups (g0, g1, g2, g3, g4 and 4 more)" in text


def test_the_greatest_producer_id_of_transactional_ids():
    assert found(0).max_producer_id > 0


@pytest.mark.parametrize("number", [1, 3, 4, 7, 50, 64, 100])
def test_ids_give_the_number_though_the_highest_partition_is_lost(number):
    names = [f"group-{each}" for each in random.Random(number).sample(range(10**6), 60)]
    kept = [(coordinator_partition(name, number), name) for name in names]
    for there in (kept, [one for one in kept if one[0] != number - 1 or number == 1]):
        assert partition_count(there, max(one[0] for one in there) + 1) == number


def test_without_ids_the_highest_folder_gives_the_number():
    assert partition_count([], 4) == 4


def test_ids_that_fit_no_number_are_no_evidence():
    assert partition_count([(0, "a"), (1, "a")], 2) == 2


def test_few_ids_are_no_proof_of_a_greater_number():
    assert partition_count([(0, "a"), (0, "ab")], 1) == 1


def test_the_numbers_of_a_real_broker():
    folders = list(survey([str(BROKER)]).folders)
    topics = ("__consumer_offsets", "__share_group_state", "__transaction_state")
    assert partition_counts(folders, pytest.fail) == dict.fromkeys(topics, 2)
