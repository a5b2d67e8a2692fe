"""The charts of the page, drawn by Vega-Lite (vl-convert) as SVG when the report is made.

Colours are CSS variables, so that the light and dark schemes of the page apply. Each mark has an ``aria-label``. Names
of topics are values in a chart, never field names or expressions.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kdump.errors import KdumpError, many
from kdump.primitives.terminal import harmless_line
from kdump.printers.quantities import size, time
from kdump.report import drawing, series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.report.document import Line, LogDirReport

Spec: TypeAlias = dict[str, Any]
TOPICS: Final = 15
"""Maximum number of topics or groups in a bar chart."""
COLOURED: Final = 7
"""Maximum number of topics with their own colour; the other topics share one colour."""
ROWS: Final = 40
"""Maximum number of rows of the heat map and of the map of damage."""
AT_ONCE: Final = 14
"""Maximum number of rows of these maps in one drawing, because the engine needs about 7 KiB for each mark."""
MARKS: Final = 40 * AT_ONCE
"""Maximum number of damaged ranges in one drawing."""
HEATS: Final = 5
"""Number of colours of the heat map."""
WIDTH: Final = 520
WIDE: Final = 820
NAME: Final = 28
"""Maximum number of characters of a name at an axis. A number that makes the name unique does not count."""
LETTER: Final = 8
"""Maximum width of a character in pixels, except for wide characters."""
PADDING: Final = 4
_COLOURS: Final = [f"var(--c{number})" for number in range(1, COLOURED + 2)]
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v5.json"
CONFIG: Final[Spec] = {
    "background": None,
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "gridColor": "var(--grid)",
        "labelColor": "var(--text)",
        "titleColor": "var(--soft)",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelLimit": 220,
    },
    "legend": {"labelColor": "var(--text)", "titleColor": "var(--soft)", "labelFontSize": 11, "labelLimit": 200},
    "bar": {"fill": "var(--c1)"},
    "range": {"category": _COLOURS},
}
_UNITS: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))


_TEXT: Final[Spec] = {"field": "text", "type": "nominal"}
"""The encoding of the description (aria-label) of each mark."""


def _colour(field: str, domain: Sequence[str | int], colours: Sequence[str], *, kind: str = "nominal") -> Spec:
    legend = {"orient": "bottom", "title": None}
    return {"field": field, "type": kind, "scale": {"domain": domain, "range": colours}, "legend": legend}


class Chart(NamedTuple):
    """A drawn chart: the section of the page, the title, a description in words, and the SVG."""

    part: str
    title: str
    words: str
    svg: str


def charts(report: LogDirReport) -> list[Chart]:
    found = list(_specs(report))
    svgs = drawn([{"$schema": SCHEMA, "config": CONFIG, **spec} for _, _, _, *specs in found for spec in specs])
    within_page = (_within_page(svg, number) for number, svg in enumerate(svgs, 1))
    return [Chart(part, title, words, "".join(islice(within_page, len(specs)))) for part, title, words, *specs in found]


def drawn(specs: Sequence[Spec]) -> list[str]:
    """Return the SVGs of specifications, drawn by processes one after another: the end of a process frees its memory.

    The processes are not forks, which would keep this process's memory. Raises KdumpError if one fails or cannot start.
    """
    svgs: list[str] = []
    while len(svgs) < len(specs):
        left = json.dumps(specs[len(svgs) :]).encode()
        command = [sys.executable, "-P", drawing.__file__, str(os.getpid())]  # -P: no imports from its folder
        try:
            done = subprocess.run(command, input=left, stdout=subprocess.PIPE, process_group=0, check=False)
        except OSError as reason:
            raise KdumpError(f"the system cannot start a process that draws charts ({reason.strerror})") from None
        if done.returncode:
            raise KdumpError(f"a process that draws charts ended with {done.returncode}")
        svgs += json.loads(done.stdout)
    return svgs


def _within_page(svg: str, number: int) -> str:
    """Return an SVG without namespaces, which look like URLs, and with identifiers made unique by ``number``."""
    svg = re.sub(r'(<clipPath id="|clip-path="url\(#)clip', rf"\g<1>chart{number}-clip", svg)
    svg = svg.replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)
    return svg.replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "", 1).replace(' version="1.1"', "", 1)


_Drawn: TypeAlias = tuple[str, str, str, *tuple[Spec, ...]]
"""A chart to draw: section, title, description, and the specifications of its parts from top to bottom."""


def _specs(report: LogDirReport) -> Iterator[_Drawn]:
    yield from _bytes_by_topic(report)
    lines = report.lines("stats", "hour")
    axis = series.time_axis(lines, report.at)
    if axis is not None:
        yield from _ingest(report, axis)
        yield from _heat(report, axis)
    yield from _damage(report)
    yield from _forecast(report)
    yield from _codecs(report)
    yield from _fill(report)
    yield from _lag(report)


def short_name(name: str) -> str:
    text = harmless_line(name)
    return text if len(text) <= NAME else f"{text[: NAME // 2 - 1]}…{text[-NAME // 2 :]}"


def _bar_rows(values: Sequence[Spec], field: str, title: str, *, axis: Spec | None = None) -> Spec:
    """Return a bar chart of ``values`` in their order. Each has ``name``, ``text`` and the field ``field``."""
    return {
        "width": WIDTH - 200,
        "height": {"step": 20},
        "data": {"values": list(values)},
        "mark": {"type": "bar", "cornerRadiusEnd": 2},
        "encoding": {
            "y": _names(value["name"] for value in values),
            "x": {"field": field, "type": "quantitative", "title": title, "axis": {"tickCount": 4, **(axis or {})}},
            "description": _TEXT,
        },
    }


def _names(order: Iterable[str]) -> Spec:
    return {"field": "name", "type": "nominal", "sort": list(order), "title": None, "axis": {"domain": False}}


def _rows(names: Sequence[str], values: Sequence[Spec], spec: Spec) -> Iterator[Spec]:
    """Yield a map with a row for each name, in parts of at most AT_ONCE rows. The last part has scale and legend."""
    encoding = spec["encoding"]
    across, colour = encoding["x"], encoding["color"]
    axis: Spec = {"domain": False, "ticks": False}
    parts = -(-len(names) // AT_ONCE)
    rows = -(-len(names) // parts)
    if parts > 1:
        axis["labelLimit"] = LETTER * max(map(len, names))
        axis["minExtent"] = axis["labelLimit"] + PADDING
    for first in range(0, len(names), rows):
        shown = names[first : first + rows]
        if first + rows >= len(names):
            below = {"x": across, "color": colour}
        else:
            bare = {**across["axis"], "labels": False, "ticks": False, "domain": False}
            below = {"x": {**across, "title": None, "axis": bare}, "color": {**colour, "legend": None}}
        yield {
            **spec,
            "data": {"values": [value for value in values if value["name"] in shown]},
            "encoding": {**encoding, **below, "y": {**_names(shown), "axis": axis}},
        }


def _unit(most: int) -> tuple[int, str]:
    """Return the unit of an axis of bytes: the largest unit that is not above ``most`` bytes."""
    return next(((unit, name) for unit, name in _UNITS if most >= unit), _UNITS[-1])


def _unique(names: Sequence[str], shown: Callable[[str], str] = lambda name: name) -> dict[str, str]:
    """Return a unique short form of each name, because an axis merges equal names."""
    found: dict[str, str] = {}
    for name in names:
        text = unique = short_name(shown(name))
        number = 1
        while unique in found.values():
            number += 1
            unique = f"{text} ({number})"
        found[name] = unique
    return found


def _bytes_by_topic(report: LogDirReport) -> Iterator[_Drawn]:
    sizes = series.bytes_by_topic(report)
    topics = series.largest(sizes, TOPICS)
    if topics:
        names = _unique(topics)
        bars = [(names[topic], sizes[topic]) for topic in topics]
        if rest := len(sizes) - len(topics):
            bars.append((f"{rest} more", sum(sizes.values()) - sum(amount for _, amount in bars)))
        unit, unit_name = _unit(max(amount for _, amount in bars))
        values = [{"name": name, "bytes": amount / unit, "text": f"{name}: {size(amount)}"} for name, amount in bars]
        words = f"The largest topic is {harmless_line(topics[0])} with {size(sizes[topics[0]])}."
        yield "disk", "Bytes of log by topic", words, _bar_rows(values, "bytes", f"{unit_name} of log")


def _ingest(report: LogDirReport, axis: series.TimeAxis) -> Iterator[_Drawn]:
    topics = series.largest(series.logged_by_topic(report), COLOURED)
    names = {**_unique(topics), series.OTHERS: series.OTHERS}
    rows = series.ingest(report, axis, topics)
    most: Counter[int] = Counter()
    for at, _, _, amount in rows:
        most[at] += amount
    unit, unit_name = _unit(max(most.values(), default=0))
    for what, unit_shown in (("Bytes", unit_name), ("Records", "records")):
        values = [
            {
                "at": at,
                "end": at + axis.width,
                "topic": names[topic],
                "rank": list(names).index(topic),
                "amount": records if what == "Records" else amount / unit,
                "text": f"{time(at)}, {names[topic]}: "
                + (f"{records:,} records" if what == "Records" else size(amount)),
            }
            for at, topic, records, amount in rows
        ]
        colour = _colour("topic", list(names.values()), _COLOURS[: len(topics)] + _COLOURS[-1:])
        words = f"{what} by the time of their batches. Each bar is {axis.step}."
        if axis.left_out:
            words += f" {many(axis.left_out, 'record')} without a time, or with a distant time, are left out."
        spec = {
            "width": WIDE - 90,
            "height": 170,
            "data": {"values": values},
            "mark": {"type": "bar", "orient": "vertical"},
            "encoding": {
                "x": {**_time(axis), "field": "at"},
                "x2": {"field": "end"},
                "y": {
                    "field": "amount",
                    "type": "quantitative",
                    "stack": "zero",
                    "title": unit_shown,
                    "axis": {"tickCount": 4, "format": "~s" if what == "Records" else "~r"},
                },
                "color": colour | {"legend": {**colour["legend"], "columns": 4}},
                "order": {"field": "rank", "type": "quantitative"},
                "description": _TEXT,
            },
        }
        yield "time", f"{what} over time", words, spec


def _time(axis: series.TimeAxis) -> Spec:
    scale = {"type": "utc", "domain": [axis.start, axis.start + axis.length * axis.width]}
    return {"type": "temporal", "title": "UTC", "scale": scale, "axis": {"grid": False, "tickCount": 8}}


def _heat(report: LogDirReport, axis: series.TimeAxis) -> Iterator[_Drawn]:
    """Yield a heat map of bytes by partition and time. The maximum of each row has the strongest colour."""
    sums: Counter[tuple[str, int, int]] = Counter()
    whole: Counter[tuple[str, int]] = Counter()
    for line in report.lines("hours"):
        bucket = axis.bucket(line["hourMs"])
        if bucket is not None:
            sums[line["topic"], line["partition"], bucket] += line["bytes"]
            whole[line["topic"], line["partition"]] += line["bytes"]
    order = sorted(key for key, _ in whole.most_common(ROWS))
    if not order:
        return
    names = _unique([f"{topic}-{partition}" for topic, partition in order])
    most: Counter[tuple[str, int]] = Counter()
    for (topic, partition, _), amount in sums.items():
        most[topic, partition] = max(most[topic, partition], amount)
    values = [
        {
            "at": at,
            "end": at + axis.width,
            "name": names[f"{topic}-{partition}"],
            "heat": min(HEATS - 1, amount * HEATS // max(1, most[topic, partition])),
            "text": f"{names[f'{topic}-{partition}']}, {time(at)}: {size(amount)}",
        }
        for (topic, partition, at), amount in sorted(sums.items())
        if (topic, partition) in order
    ]
    colours = [f"var(--h{step})" for step in range(1, HEATS + 1)]
    spec = {
        "width": WIDE - 200,
        "height": {"step": 15},
        "mark": {"type": "rect", "stroke": "var(--card)", "strokeWidth": 0.5},
        "encoding": {
            "x": {**_time(axis), "field": "at"},
            "x2": {"field": "end"},
            "color": _colour("heat", list(range(HEATS)), colours, kind="ordinal") | {"legend": None},
            "description": _TEXT,
        },
    }
    words = (
        f"The {many(len(order), 'partition')} with the most bytes. Each cell is {axis.step}. "
        "The strongest colour is the maximum of the row. An empty cell had no records."
    )
    yield "time", "When partitions were written", words, *_rows(list(names.values()), values, spec)


def _damage(report: LogDirReport) -> Iterator[_Drawn]:
    """Yield a chart with a row for each of the first ROWS damaged segments, and its damaged ranges."""
    files = report.lines("damage", "damagedFile")[:ROWS]
    if not files:
        return
    names = _unique([line["file"] for line in files], lambda file: "/".join(file.split("/")[-2:]))
    values = [
        {
            "name": names[line["file"]],
            "from": 0.0,
            "to": 1.0,
            "what": "valid",
            "text": f"{names[line['file']]}: {size(line['size'])}, {many(line['ranges'], 'damaged range')}",
        }
        for line in files
    ]
    for file, ranges in _damaged_ranges(report, files).items():
        for one in _thinned(ranges, MARKS // min(len(files), AT_ONCE)):
            shown = {"name": names[file], "from": one.start, "to": max(one.end, one.start + 0.004), "what": "damage"}
            values.append({**shown, "text": f"{names[file]}, {one.text}"})
    spec = {
        "width": WIDE - 260,
        "height": {"step": 22},
        "mark": {"type": "bar", "height": 12},
        "encoding": {
            "x": {
                "field": "from",
                "type": "quantitative",
                "title": "of the file",
                "scale": {"domain": [0, 1.005], "nice": False},
                "axis": {"format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1], "labelFlush": 5},
            },
            "x2": {"field": "to"},
            "color": _colour("what", ["valid", "damage"], ["var(--sound)", "var(--bad)"]),
            "description": _TEXT,
        },
    }
    more = len(report.lines("damage", "damagedFile")) - len(files)
    words = "Each row is a segment from its first byte to its last." + (
        f" {more} more are in the table." if more else ""
    )
    yield "damage", "Where segments are damaged", words, *_rows(list(names.values()), values, spec)


class _Range(NamedTuple):
    """A damaged range: start and end as shares of the file (0 to 1), size in bytes, and description."""

    start: float
    end: float
    bytes: int
    text: str


def _damaged_ranges(report: LogDirReport, files: Sequence[Line]) -> dict[str, list[_Range]]:
    found: dict[str, list[_Range]] = {line["file"]: [] for line in files}
    sizes = {line["file"]: max(1, line["size"]) for line in files if line["parts"] is None}
    for line in report.lines("damage", "damage"):
        if whole := sizes.get(line["file"]):
            position, damaged = line["position"], line["size"]
            text = f"byte {position:,}: {damaged:,} bytes, {harmless_line(line['reason'])}"
            found[line["file"]].append(_Range(position / whole, (position + damaged) / whole, damaged, text))
    for line in files:
        parts = line["parts"] or ()
        for number, damaged in enumerate(parts):
            if damaged:
                found[line["file"]].append(_together(number / len(parts), (number + 1) / len(parts), damaged))
    return found


def _thinned(ranges: Sequence[_Range], most: int) -> Iterator[_Range]:
    """Yield the ranges. If there are more than ``most``, merge those that begin in the same 1/``most`` of the file."""
    if len(ranges) <= most:
        yield from ranges
        return
    for _, near in groupby(ranges, lambda one: min(most - 1, int(one.start * most))):
        first, *others = near
        if others:
            first = _together(first.start, others[-1].end, first.bytes + sum(one.bytes for one in others))
        yield first


def _together(start: float, end: float, damaged: int) -> _Range:
    return _Range(start, end, damaged, f"{start:.0%} to {end:.0%} of the file: {size(damaged)} damaged")


def _forecast(report: LogDirReport) -> Iterator[_Drawn]:
    days = series.forecast(report)
    if not any(kept or goes for _, kept, goes in days):
        return
    unit, unit_name = _unit(max(kept + goes for _, kept, goes in days))
    values = [
        {
            "day": (time(at) or str(at))[:10],
            "what": what,
            "bytes": amount / unit,
            "text": f"{time(at)}: {size(amount)} {what}",
        }
        for at, kept, goes in days
        for what, amount in (("stay", kept), ("are deleted by then", goes))
    ]
    spec = {
        "width": WIDTH - 90,
        "height": 180,
        "data": {"values": values},
        "mark": {"type": "bar"},
        "encoding": {
            "x": {"field": "day", "type": "ordinal", "title": None, "axis": {"labelAngle": -30, "grid": False}},
            "y": {"field": "bytes", "type": "quantitative", "title": unit_name, "axis": {"tickCount": 4}},
            "color": _colour("what", ["stay", "are deleted by then"], ["var(--c1)", "var(--sound)"]),
            "description": _TEXT,
        },
    }
    words = "The bytes of log that retention keeps on the next days, if nothing more is written."
    yield "retention", "Retention on the coming days", words, spec


def _stats_by_topic(report: LogDirReport) -> tuple[list[str], dict[str, list[Line]]]:
    lines: dict[str, list[Line]] = {}
    for line in report.lines("stats", "stats"):
        lines.setdefault(line["topic"], []).append(line)
    logged = series.logged_by_topic(report)
    return [topic for topic in series.largest(logged, TOPICS) if logged[topic]], lines


def _codecs(report: LogDirReport) -> Iterator[_Drawn]:
    topics, lines = _stats_by_topic(report)
    names = _unique(topics)
    values = []
    for topic in topics:
        sums: Counter[str] = Counter()
        for line in lines[topic]:
            sums.update({codec: one["bytes"] for codec, one in line["codecs"].items()})
        whole = sum(sums.values())
        values += [
            {
                "name": names[topic],
                "codec": codec,
                "order": _CODECS.index(codec),
                "share": amount / whole,
                "text": f"{names[topic]}, {codec}: {size(amount)}",
            }
            for codec, amount in sorted(sums.items())
            if whole
        ]
    if values:
        spec = _bar_rows(values, "share", "share of bytes", axis={"format": ".0%"})
        spec["encoding"]["y"]["sort"] = list(names.values())
        spec["encoding"]["x"]["stack"] = "zero"
        spec["encoding"]["order"] = {"field": "order", "type": "quantitative"}
        spec["encoding"]["color"] = _colour("codec", _CODECS, ["var(--c8)", *_COLOURS[:4]])
        spec["mark"] = {"type": "bar"}
        yield "topics", "Codecs by topic", "The share of bytes in batches of each codec.", spec


def _fill(report: LogDirReport) -> Iterator[_Drawn]:
    topics, lines = _stats_by_topic(report)
    names = _unique(topics)
    values = []
    for topic in topics:
        batches = sum(line["batches"] for line in lines[topic])
        records = sum(line["records"] for line in lines[topic])
        if batches:
            text = f"{names[topic]}: {records / batches:.1f} records per batch, {batches:,} batches"
            values.append({"name": names[topic], "fill": round(records / batches, 3), "text": text})
    if values:
        spec = _bar_rows(values, "fill", "records per batch (mean)")
        yield (
            "topics",
            "Records per batch by topic",
            "Small batches cost more bytes, requests and processor time per record.",
            spec,
        )


def _lag(report: LogDirReport) -> Iterator[_Drawn]:
    lag = series.lag_by_group(report)
    groups = [group for group in series.largest(lag, TOPICS) if lag[group]]
    if groups:
        names = _unique(groups)
        values = [
            {"name": names[group], "lag": lag[group], "text": f"{names[group]}: {lag[group]:,}"} for group in groups
        ]
        words = f"The group with the most lag is {harmless_line(groups[0])}: {lag[groups[0]]:,} offsets."
        yield "groups", "Lag by group", words, _bar_rows(values, "lag", "offsets", axis={"format": ".3~s"})
