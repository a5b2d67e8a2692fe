import pytest

from kdump.printers.quantities import pace, size


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0 B"), (1023, "1023 B"), (902.17, "902 B"), (1024, "1.0 KiB"), (3 << 40, "3.0 TiB")]
)
def test_bytes_below_a_kibibyte_are_whole(count, shown):
    assert size(count) == shown


def test_a_rate_is_as_short_as_a_size():
    assert pace(120, 0.133) == "in 0.1 s, 902 B/s"
    assert pace(120, 0.0) == "in 0.0 s, 117.2 KiB/s"
