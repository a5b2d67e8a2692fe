"""Groups and transactions as the coordinators of a rebuilt cluster load them."""

from __future__ import annotations

import pytest

from kdump.answers.transactional_ids import TransactionalId
from kdump.rebuild import coordinators, metadata, warnings
from kdump.rebuild.coordinators import RebuiltGroup, RebuiltTransaction
from kdump.rebuild.first_start import OpenProducer
from kdump.rebuild.plan import choose
from kdump.rebuild.volumes import survey
from testing import GOLDEN
from tests.rebuild.test_metadata import Heard

BROKER = GOLDEN / "brokers" / "4.2.2"
DAY = 86_400_000


def found(at, still_open=()):
    volumes = survey([str(BROKER)])
    heard = Heard()
    lost = metadata.found(volumes, None, heard.said)
    plans = choose(volumes, lost.image, topics=["__consumer_offsets", "__share_group_state", "__transaction_state"])
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
    (text,) = warnings.of_groups(known, minutes)
    assert f"offsets.retention.minutes={minutes}" in text
    assert gone[0].group_id in text
    assert not list(warnings.of_groups(found(0), 1))


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
    (text,) = warnings.of_transactions(made)
    assert "2 open transactions will hang in a-0, a-0, b-1" in text


def test_open_transactions_of_coordinators_are_named():
    ends = RebuiltTransaction("tx", 7, "Ongoing", ("a-0",), hangs=False)
    (text,) = warnings.of_transactions([ends])
    assert "tx" in text
    assert not list(warnings.of_transactions([]))


def test_long_lists_are_cut():
    groups = [RebuiltGroup(f"g{number}", "Classic", "Empty", 1, 1, 2, True) for number in range(9)]
    (text,) = warnings.of_groups(coordinators.Coordinators(groups), 5)
    assert "9 groups (g0, g1, g2, g3, g4 and 4 more)" in text


def test_the_greatest_producer_id_of_transactional_ids():
    assert found(0).max_producer_id > 0
