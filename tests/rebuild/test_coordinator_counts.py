"""The number of partitions of coordinators' topics, derived from the ids in them."""

from __future__ import annotations

import random

import pytest

from kdump.answers.coordinator import coordinator_partition
from kdump.rebuild.coordinator_counts import partition_count, partition_counts
from kdump.rebuild.volumes import survey
from testing import GOLDEN

BROKER = GOLDEN / "brokers" / "4.2.2"


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


def test_a_real_broker():
    folders = list(survey([str(BROKER)]).folders)
    topics = ("__consumer_offsets", "__share_group_state", "__transaction_state")
    assert partition_counts(folders, pytest.fail) == dict.fromkeys(topics, 2)
