"""Local files."""

import pickle

from kdump.log_dirs.local import LOCAL


def test_local_files_are_the_same_ones_in_every_process():
    assert pickle.loads(pickle.dumps(LOCAL)) is LOCAL
