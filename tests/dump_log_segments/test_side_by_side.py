"""The headers of a large segment, printed by two threads."""

import threading

from kdump.dump_log_segments import side_by_side
from kdump.segments import parts, read_ahead
from testing import forge
from tests.helpers import forked

THREADS = [
    (parts, "SIZE", 700),
    (read_ahead, "processors", lambda: 3),
    (side_by_side, "WORTH_IT", 1),
    (side_by_side, "SMALL", 0),
]


def test_ctrl_c_calls_the_thread_back_from_the_part_that_it_reads(tmp_path):
    begun = threading.Event()

    def read_on(_, source, __, leash=None):
        if threading.current_thread() is threading.main_thread():
            begun.wait()
            raise KeyboardInterrupt
        begun.set()
        try:
            while True:
                (leash or source).read(0, 1)
        except BaseException:
            (tmp_path / "called back").touch()
            raise

    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"".join(forge.batch([forge.record(b"k", b"v")], base_offset=base) for base in range(300)))
    replaced = [*THREADS, (side_by_side, "print_part", read_on)]
    done = forked.kdump(tmp_path, "--files", path, replaced=replaced)
    assert done.status
    assert (tmp_path / "called back").exists()
