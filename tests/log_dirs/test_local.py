"""Local files."""

import pickle

import pytest

from kdump.errors import UnreadableError
from kdump.log_dirs.local import LOCAL, LocalFile


def test_local_files_are_the_same_ones_in_every_process():
    assert pickle.loads(pickle.dumps(LOCAL)) is LOCAL


@pytest.mark.parametrize("use", [LocalFile, LOCAL.open, LOCAL.look, LOCAL.entries])
def test_a_name_with_a_nul_is_unreadable(use):
    with pytest.raises(UnreadableError, match="null byte"):
        use("a\0b")
