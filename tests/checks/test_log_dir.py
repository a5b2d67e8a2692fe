"""Tests of the findings on the files of a log dir."""

import pytest

from kdump.checks.folder import READERS
from kdump.checks.log_dir import IF_BROKEN, Effect, LogDirs, broken
from kdump.errors import DamageError
from kdump.formats.checkpoint_text import NumberDamageError
from kdump.log_dirs import file_names

OF_FOLDER = {name: if_broken for name, (_, if_broken) in READERS.items()}
CHECKPOINTS = [
    file_names.RECOVERY_POINTS,
    file_names.HIGH_WATERMARKS,
    file_names.LOG_STARTS,
    file_names.CLEANER_OFFSETS,
]
BESIDE_A_LOG = [file_names.LEADER_EPOCHS, file_names.PARTITION_METADATA]


def effect(name, damage, *, dispensable):
    found = {**IF_BROKEN, **OF_FOLDER}[name].effect_of(damage("count", "no number"), dispensable=dispensable)
    return found, found.is_fatal


@pytest.mark.parametrize("name", [*CHECKPOINTS, *BESIDE_A_LOG, file_names.META_PROPERTIES])
def test_a_broken_file_stops_the_broker_only_if_its_log_dir_is_needed(name):
    assert effect(name, DamageError, dispensable=False) == (Effect.STOPS, True)
    left = Effect.NONE if name == file_names.META_PROPERTIES else Effect.LEAVES_OUT
    assert effect(name, DamageError, dispensable=True) == (left, False)


@pytest.mark.parametrize("dispensable", [False, True])
def test_a_malformed_number_empties_a_checkpoint_but_stops_the_reader_of_a_partitions_file(dispensable):
    for name in CHECKPOINTS:
        assert effect(name, NumberDamageError, dispensable=dispensable) == (Effect.READS_AS_EMPTY, False)
    for name in BESIDE_A_LOG:
        assert effect(name, NumberDamageError, dispensable=dispensable) == (Effect.STOPS_A_READER, True)
    assert effect(file_names.QUORUM_STATE, DamageError, dispensable=dispensable) == (Effect.STOPS_A_NODE, True)
    assert effect(file_names.CLEAN_SHUTDOWN, DamageError, dispensable=dispensable) == (Effect.NONE, False)


def test_the_advice_begins_with_the_effect_and_a_stray_replica_stops_no_broker():
    damage, if_broken = DamageError("count", "no number", position=7), OF_FOLDER[file_names.LEADER_EPOCHS]
    for served in (True, False):
        found = broken("d1/orders-0/leader-epoch-checkpoint", damage, if_broken, served=served)
        assert found.advice == f"{Effect.STOPS.sentence} {if_broken.advice}"
        assert (found.fatal, found.position) == (served, 7)
    assert broken("d2/meta.properties", damage, IF_BROKEN["meta.properties"], dispensable=True).advice == (
        "Write the file again with the ids of the cluster and of this broker."
    )


def test_the_folder_above_relative_paths_is_the_log_dir_dot():
    assert [LogDirs(frozenset({"."})).is_dispensable(each) for each in ("", ".", "d1")] == [True, True, False]
