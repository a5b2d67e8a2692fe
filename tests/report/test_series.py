"""The data of charts: the axis of time."""

import pytest

from kdump.report import series

HOUR = 3_600_000
YEAR = 365 * 24


def lines(*hours):
    return [{"hourMs": hour * HOUR, "records": 1, "bytes": 100} for hour in hours]


@pytest.mark.parametrize(
    ("last", "step"), [(0, "1 h"), (59, "1 h"), (60, "2 h"), (60 * 24 * 7, "14 days"), (56 * YEAR, "365 days")]
)
def test_an_axis_is_as_long_as_its_times(last, step):
    axis = series.time_axis(lines(0, last), last * HOUR)
    assert (axis.step, axis.left_out) == (step, 0)
    assert axis.length <= series.BUCKETS + 1


@pytest.mark.parametrize("years", [60, 61, 130, 8000])
def test_the_newest_is_on_an_axis_of_many_years(years):
    axis = series.time_axis(lines(0, years * YEAR), years * YEAR * HOUR)
    assert axis.left_out == 0
    assert axis.bucket(years * YEAR * HOUR) == axis.buckets[-1]


def test_a_time_that_no_chart_knows_is_counted_as_left_out():
    axis = series.time_axis(lines(1, 2, 2**63 // HOUR - 1), 2**63 - 1)
    assert (axis.step, axis.left_out) == ("1 h", 1)
