import pytest

from kdump.dump_log_segments.log_printer import end_of
from kdump.dump_log_segments.options import Options

GIB = 1 << 30


@pytest.mark.parametrize(
    ("size", "given", "end"),
    [(100, None, 100), (10 * GIB, None, 10 * GIB), (10 * GIB, GIB, GIB), (100, GIB, 100), (100, 0, 0)],
)
def test_a_segment_is_read_to_its_end_whatever_its_size(size, given, end):
    assert end_of(size, Options() if given is None else Options(max_bytes=given)) == end
