"""The headers of a large segment, printed by two threads."""

import threading
import time

from kdump.dump_log_segments import side_by_side
from tests.commands.test_parallel import THREADS, batches, log
from tests.helpers import forked


def test_ctrl_c_calls_the_thread_back_from_the_part_that_it_reads(tmp_path):
    begun = threading.Event()

    def read_on(_, source, __, leash=None):
        if threading.current_thread() is threading.main_thread():
            begun.wait()
            raise KeyboardInterrupt
        begun.set()
        until = time.monotonic() + 5
        try:
            while time.monotonic() < until:
                (leash or source).read(0, 1)
        except BaseException:
            (tmp_path / "called back").touch()
            raise

    replaced = [*THREADS, (side_by_side, "print_part", read_on)]
    done = forked.kdump(tmp_path, "--files", log(tmp_path, batches(300)), replaced=replaced)
    assert done.status
    assert (tmp_path / "called back").exists()
