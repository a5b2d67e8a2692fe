"""The modules of formats and the table of file names: they match, and each format has a file of a real broker."""

from pathlib import Path

import pytest

import kdump.formats
from kdump.log_dirs.file_names import CLEAN_SHUTDOWN, FILES
from testing import GOLDEN

READ = [file for file in FILES if file.format]
NOT_RECORDED = {CLEAN_SHUTDOWN}  # the log dirs in golden/ were copied without it
FOLDER = Path(kdump.formats.__file__).parent
SHARED = {"__init__", "record", "sparse_index", "checkpoint_text"}
"""Modules for parts of files."""
REMOTE = {"rsm_manifest": "*.rsm-manifest"}
"""Modules for files of remote storage, which are in no log dir; golden/tiered has some from the plugin."""


@pytest.mark.parametrize("file", READ, ids=lambda file: file.name)
def test_each_has_files_of_a_real_broker(file):
    assert (next((GOLDEN / "brokers").rglob(file.name), None) is None) == (file.name in NOT_RECORDED)


def test_no_module_is_left_out():
    assert {path.stem for path in FOLDER.glob("*.py")} - SHARED == {file.format for file in READ} | set(REMOTE)
    assert all(next((GOLDEN / "tiered").rglob(name), None) for name in REMOTE.values())
