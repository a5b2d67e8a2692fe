"""The data of the charts, before they are drawn."""

import json
import re
import sys
from collections import Counter
from itertools import chain, islice, pairwise

import pytest
import vl_convert

from kdump.errors import KdumpError
from kdump.report import charts, drawing, series
from kdump.report.document import LogDirReport, ReportAnswer
from testing.processes import python

HOUR = 3_600_000
MIB = 1 << 20


def bars(count, *, clipped=False):
    """Return a chart of ``count`` bars."""
    values = [{"name": f"topic-{number}", "bytes": number} for number in range(count)]
    encoding = {"y": {"field": "name", "type": "nominal"}, "x": {"field": "bytes", "type": "quantitative"}}
    mark = {"type": "bar", "clip": clipped, "cornerRadiusEnd": 2}
    return {"$schema": charts.SCHEMA, "data": {"values": values}, "mark": mark, "encoding": encoding}


def of_a_log_dir():
    """The first charts of a report of many partitions: bars, two of ingest, and a heat map of maximum size."""
    hours = range(1020, 1020 + series.BUCKETS)
    parts = range(charts.ROWS)
    lines = [
        {"kind": "hour", "topic": f"orders-{n}", "partition": n, "hourMs": hour * HOUR, "bytes": hour, "records": 1}
        for n in parts
        for hour in hours
    ]
    stats = [{"kind": "stats", "topic": f"orders-{n}", "logBytes": MIB + n, "batches": 0} for n in parts]
    topics = [{"kind": "topic", "topic": f"orders-{n}", "logBytes": MIB + n} for n in parts]
    of = {"stats": [*stats, *lines], "hours": lines, "du-topics": topics}
    answers = {name: ReportAnswer("kdump", found) for name, found in of.items()}
    report = LogDirReport(("/broker1",), hours[-1] * HOUR, None, answers)
    return [whole(spec) for _, _, _, *specs in islice(charts._specs(report), 4) for spec in specs]


def whole(spec):
    return {"$schema": charts.SCHEMA, "config": charts.CONFIG, **spec}


def test_each_replica_of_a_damaged_segment_has_a_row_of_its_own():
    files = [f"/broker{number}/orders-0/{0:020}.log" for number in (1, 2)]
    about = {"topic": "orders", "partition": 0, "size": 1000}
    lines = [{"kind": "damagedFile", **about, "file": file, "ranges": 1, "parts": None} for file in files]
    lines.append(
        {"kind": "damage", **about, "file": files[0], "position": 10, "size": 5, "reason": "the checksum is wrong"}
    )
    report = LogDirReport(("/broker1", "/broker2"), 0, None, {"damage": ReportAnswer("kdump dump", lines)})
    ((_, _, _, spec),) = charts._damage(report)
    rows = [value["name"] for value in spec["data"]["values"] if value["what"] == "valid"]
    assert len(set(rows)) == 2
    assert [value["name"] for value in spec["data"]["values"] if value["what"] == "damage"] == rows[:1]


def test_a_map_of_many_damaged_files_has_a_bounded_number_of_marks():
    files = [f"/broker/orders-{number}/{0:020}.log" for number in range(charts.ROWS + 1)]
    about = {"topic": "orders", "partition": 0, "size": 1000}
    lines = [{"kind": "damagedFile", **about, "file": file, "ranges": 100, "parts": None} for file in files]
    damage = {"kind": "damage", **about, "size": 5, "reason": "the checksum is wrong"}
    lines += [{**damage, "file": file, "position": at} for file in files for at in range(0, 1000, 10)]
    report = LogDirReport(("/broker",), 0, None, {"damage": ReportAnswer("kdump dump", lines)})
    ((_, _, _, *specs),) = charts._damage(report)
    kinds = [Counter(value["what"] for value in spec["data"]["values"]) for spec in specs]
    rows = [charts.AT_ONCE, charts.AT_ONCE, charts.ROWS - 2 * charts.AT_ONCE]
    assert kinds == [{"valid": count, "damage": count * charts.MARKS // charts.AT_ONCE} for count in rows]


def test_a_map_of_many_rows_has_each_of_them_once_and_one_scale_below():
    specs = of_a_log_dir()[3:]
    rows = [spec["encoding"]["y"]["sort"] for spec in specs]
    assert list(chain.from_iterable(rows)) == sorted(f"orders-{number}-{number}" for number in range(charts.ROWS))
    assert [list(dict.fromkeys(value["name"] for value in spec["data"]["values"])) for spec in specs] == rows
    assert [spec["encoding"]["x"]["title"] for spec in specs] == [None, None, "UTC"]
    assert all(spec["encoding"]["x"]["scale"] == specs[0]["encoding"]["x"]["scale"] for spec in specs)
    assert all(spec["encoding"]["y"]["axis"] == specs[0]["encoding"]["y"]["axis"] for spec in specs)


def test_a_heat_map_has_the_largest_partitions_only(monkeypatch):
    lines = [{"kind": "hour", "topic": "t", "partition": n, "hourMs": HOUR, "bytes": n, "records": 1} for n in (1, 2)]
    answers = {name: ReportAnswer("kdump", found) for name, found in {"stats": lines, "hours": lines}.items()}
    monkeypatch.setattr(charts, "ROWS", 1)
    report = LogDirReport((), HOUR, None, answers)
    ((_, _, _, chart),) = charts._heat(report, series.time_axis(lines, HOUR))
    assert [value["name"] for value in chart["data"]["values"]] == ["t-2"]


@pytest.mark.parametrize("name", ["orders", "WAREHOUSE.MOVEMENTS.COMMANDS", "W" * 27])
@pytest.mark.parametrize("count", [charts.AT_ONCE, charts.AT_ONCE + 1, charts.ROWS])
def test_the_parts_of_a_map_stand_in_line(count, name):
    names = [f"/broker/orders-{number}/{0:020}.log" for number in range(count - 1)]
    files = [*names, f"/broker/{name}/{0:020}.log"]
    lines = [{"kind": "damagedFile", "file": file, "size": 10, "ranges": 1, "parts": None} for file in files]
    report = LogDirReport(("/broker",), 0, None, {"damage": ReportAnswer("kdump dump", lines)})
    ((_, _, _, *specs),) = charts._damage(report)
    svgs = charts.drawn([whole(spec) for spec in specs])
    assert len(svgs) == -(-count // charts.AT_ONCE)
    places = {re.search(r'width="(\d+)".*?translate\(([\d.]+)', svg, re.DOTALL).groups() for svg in svgs}
    assert len(places) == 1


def test_names_that_look_like_numbered_ones_stay_apart():
    names = ["x (2)", "x-0", "x-1"]
    assert list(charts._unique(names, lambda name: name.split("-")[0]).values()) == ["x (2)", "x", "x (3)"]


@pytest.mark.parametrize("count", [1, 63, 64, 65, 256])
def test_ranges_that_are_many_are_drawn_together_and_none_is_lost(count):
    places = [number / max(1, count - 1) for number in range(count)]  # the last one is the end of the file
    ranges = [charts._Range(place, place, 1 << 10, f"range {number}") for number, place in enumerate(places)]
    drawn = list(charts._thinned(ranges, 64))
    assert len(drawn) == min(count, 64)
    assert sum(one.bytes for one in drawn) == count << 10
    assert (drawn[0].start, drawn[-1].end) == (ranges[0].start, ranges[-1].end)
    assert all(one.end <= other.start for one, other in pairwise(drawn))
    if count == 256:
        assert drawn[0].text == "0% to 1% of the file: 4.0 KiB damaged"
    if count == 65:
        assert drawn[0].text == "range 0"
        assert drawn[-1].text == "98% to 100% of the file: 2.0 KiB damaged"


def clipless(svg):
    """Return an SVG without the numbers of identifiers."""
    return re.sub(r"clip\d+", "clip", svg)


def test_charts_are_those_of_one_engine_whichever_process_draws_them():
    specs = [bars(number) for number in (5, 1, 16, 7)]
    assert charts.drawn([]) == []
    of_one = [vl_convert.vegalite_to_svg(spec, vl_version=drawing.VERSION) for spec in specs]
    assert [clipless(svg) for svg in charts.drawn(specs)] == [clipless(svg) for svg in of_one]


def test_charts_of_several_processes_share_no_identifier():
    both = [charts._within_page(svg, number) for number, svg in enumerate(charts.drawn([bars(3, clipped=True)]) * 2)]
    ids = [re.findall(r'id="([^"]+)"', svg) for svg in both]
    assert len({*ids[0], *ids[1]}) == 2 * len(ids[0]) > 0
    assert [re.findall(r"url\(#([^)]+)\)", svg) for svg in both] == ids


def most_held(specs):
    """Return the peak of memory of a process that draws charts, in bytes."""
    script = "import json, resource, sys; from kdump.report import charts; charts.drawn(json.load(sys.stdin))\n"
    script += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    return int(python("-c", script, input=json.dumps(specs).encode(), check=True).stdout) << 10


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not report memory")
@pytest.mark.parametrize("numbers", [range(6), (3,), (0, 3, 0, 4)], ids=["all", "heat map", "bars and heat map"])
def test_no_process_that_draws_takes_much_more_than_one_that_draws_a_bar(numbers):
    """A process that draws all charts takes 60 MiB more. The library's file counts in part, as the system decides."""
    found = of_a_log_dir()
    assert sum(len(spec["data"]["values"]) for spec in found[3:]) == charts.ROWS * series.BUCKETS
    assert most_held([found[number] for number in numbers]) < most_held([bars(1)]) + 16 * MIB


def test_a_process_that_draws_nothing_says_why(capfd):
    with pytest.raises(KdumpError, match="a process that draws charts ended with 1"):
        charts.drawn([{"mark": "nothing of the kind"}])
    assert "ValueError: Vega-Lite to SVG conversion failed" in capfd.readouterr().err
