"""The table of known configs equals the recorded types, which equal those in the jars of the releases."""

from __future__ import annotations

import shutil

import pytest

from tools.record import config_types
from tools.record.fetch_jars import CACHE

RELEASES = sorted({release for some in config_types.recorded().values() for release in some})


def test_the_table_is_made_of_what_is_recorded():
    known = config_types.recorded()
    assert config_types.TABLE.read_text(encoding="utf-8") == config_types.table(known)
    assert config_types.GOLDEN.read_text(encoding="utf-8") == config_types.golden(known)


def test_a_config_that_is_a_password_in_one_release_is_not_shown():
    types = [config_types.ConfigType("broker", "a", kind) for kind in ("STRING", "PASSWORD")]
    types.append(config_types.ConfigType("topic", "a", "INT"))
    assert (config_types.shown(types)["broker"], config_types.shown(types)["topic"]) == ([], ["a"])


def test_every_owner_has_configs_of_every_release_since_its_first():
    since = {"broker": "2.8.2", "topic": "2.8.2", "client": "2.8.2", "connect": "2.8.2", "client-metrics": "3.7.2"}
    for owner, first in {**since, "group": "4.0.2"}.items():
        have = {
            release for config, some in config_types.recorded().items() if config.owner == owner for release in some
        }
        assert have >= {release for release in RELEASES if config_types.numbers(release) >= config_types.numbers(first)}


@pytest.mark.parametrize("release", RELEASES[-1:])
def test_the_types_are_those_of_the_jars(release):
    folder = CACHE / f"{release}-configs"
    if not folder.is_dir() or shutil.which("javac") is None:
        pytest.skip(f"python -m tools.record.config_types {release} fetches the jars")
    found = {config for config, some in config_types.recorded().items() if release in some}
    assert config_types.read(folder) == found
