"""The table of formats: each has its module and a file of a real broker."""

from importlib import import_module
from pathlib import Path

import pytest

import kdump.formats
from kdump.formats import FORMATS
from testing import GOLDEN

NOT_RECORDED = {".kafka_cleanshutdown"}  # the log dirs in golden/ were copied without it
FOLDER = Path(kdump.formats.__file__).parent
SHARED = {"__init__", "record", "sparse_index", "checkpoint_text"}
"""Modules for parts of files."""


@pytest.mark.parametrize("name", FORMATS)
def test_each_has_files_of_a_real_broker(name):
    assert (next((GOLDEN / "brokers").rglob(f"*{name}"), None) is None) == (name in NOT_RECORDED)


def test_the_table_and_the_modules_know_the_same_names():
    told = {}
    for module in set(FORMATS.values()):
        constants = vars(import_module(f"kdump.formats.{module}"))
        told |= {constants[one]: module for one in NAMES if one in constants}
    assert told == {name: module for name, module in FORMATS.items() if name in told}
    assert {name for name in FORMATS if name not in told} == SUFFIXES


NAMES = ("NAME", "RECOVERY_POINTS", "HIGH_WATERMARKS", "LOG_STARTS", "CLEANED")
SUFFIXES = {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint"}


def test_no_module_is_left_out():
    assert {path.stem for path in FOLDER.glob("*.py")} - SHARED == set(FORMATS.values())
