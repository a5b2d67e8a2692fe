"""Sums of the lines of a report, for the page and the short version."""

from __future__ import annotations

from collections import Counter, defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.answers.disk_usage import PartitionUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdump.answers.disk_usage import OtherUsage
    from kdump.report.document import Line, LogDirReport

HOUR: Final = 3_600_000
BUCKETS: Final = 60
"""Maximum length of a time axis in buckets. There may be one more: buckets begin at multiples of their width."""
_WIDTHS: Final = (1, 2, 3, 6, 12, 24, 48, 168, 336, 720, 2160, 8760)
"""The possible widths of a bucket in hours. A longer time has multiples of the last one."""
_DAY: Final = 24
_LAST: Final = 253_402_300_799_999
"""The last ms of the year 9999, the latest time in charts."""
_EARLY: Final = 0.01
"""A time axis leaves out the oldest records, up to this share of the bytes: a few old ones would make it too long."""
OTHERS: Final = "other topics"


class TimeAxis(NamedTuple):
    """Buckets of equal width; times in ms. ``left_out`` counts the records outside all buckets."""

    start: int
    width: int
    length: int
    left_out: int

    def bucket(self, ms: int | None) -> int | None:
        """Return the start of the bucket of a time in ms, or None if it is in no bucket."""
        if ms is None or not self.start <= ms < self.start + self.width * self.length:
            return None
        return ms - (ms - self.start) % self.width

    @property
    def step(self) -> str:
        hours = self.width // HOUR
        return f"{hours} h" if hours <= _DAY else f"{hours // _DAY} days"

    @property
    def buckets(self) -> list[int]:
        return [self.start + number * self.width for number in range(self.length)]


def time_axis(lines: Sequence[Line], at: int) -> TimeAxis | None:
    """Return the time axis of the hourly lines up to the time ``at`` (ms), or None if no line has such a time."""
    end = min(at, _LAST)
    dated = (line for line in lines if line["hourMs"] is not None and line["hourMs"] <= end)
    known = sorted(dated, key=itemgetter("hourMs"))
    if not known:
        return None
    early, seen = _EARLY * sum(line["bytes"] for line in known), 0
    first = known[0]
    for first in known:
        seen += first["bytes"]
        if seen > early:
            break
    hours = (known[-1]["hourMs"] - first["hourMs"]) // HOUR + 1
    years = -(-hours // (_WIDTHS[-1] * BUCKETS))
    width = next((width for width in _WIDTHS if hours <= width * BUCKETS), _WIDTHS[-1] * years)
    start = first["hourMs"] - first["hourMs"] % (width * HOUR)
    length = min(BUCKETS + 1, (known[-1]["hourMs"] - start) // (width * HOUR) + 1)
    axis = TimeAxis(start, width * HOUR, length, 0)
    left = sum(line["records"] for line in lines if axis.bucket(line["hourMs"]) is None)
    return axis._replace(left_out=left)


def largest(sizes: Counter[str], most: int) -> list[str]:
    """Return at most ``most`` names, in falling order of size."""
    return [name for name, _ in sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:most]]


def ingest(report: LogDirReport, axis: TimeAxis, topics: Sequence[str]) -> list[tuple[int, str, int, int]]:
    """Return (bucket, topic, records, bytes) of appended data; other topics than ``topics`` are summed."""
    sums: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
    for line in report.lines("stats", "hour"):
        bucket = axis.bucket(line["hourMs"])
        if bucket is not None:
            one = sums[bucket, line["topic"] if line["topic"] in topics else OTHERS]
            one[0] += line["records"]
            one[1] += line["bytes"]
    return [(bucket, topic, records, amount) for (bucket, topic), (records, amount) in sorted(sums.items())]


def bytes_by_topic(report: LogDirReport) -> Counter[str]:
    """Return the log bytes of each topic's current replicas. Indexes do not count, as a new one is 10 MiB of zeros."""
    return Counter({line["topic"]: line["logBytes"] for line in report.lines("du-topics", "topic")})


def on_disk(line: PartitionUsage | OtherUsage) -> int:
    """Return the bytes on disk of a line of ``du``, or the file sizes if they are unknown."""
    return all_bytes(line) if line.disk_bytes is None else line.disk_bytes


def all_bytes(line: PartitionUsage | OtherUsage) -> int:
    return line.all_bytes if isinstance(line, PartitionUsage) else line.bytes


def logged_by_topic(report: LogDirReport) -> Counter[str]:
    sums = Counter[str]()
    for line in report.lines("stats", "stats"):
        sums[line["topic"]] += line["logBytes"]
    return sums


def lag_by_group(report: LogDirReport) -> Counter[str]:
    """Return the lag of each group that has offsets. Unknown lags, and offsets past the end of a log, count as 0."""
    sums = Counter[str]()
    for line in report.lines("groups", "offset"):
        sums[line["groupId"]] += max(0, line["lag"] or 0)
    return sums


def forecast(report: LogDirReport) -> list[tuple[int, int, int]]:
    """Return (time in ms, kept bytes, deleted bytes) of each day of the forecast."""
    kept, goes = Counter[int](), Counter[int]()
    for line in report.lines("forecast"):
        kept[line["atMs"]] += line["keptBytes"]
        goes[line["atMs"]] += line["deletableBytes"]
    return [(at, kept[at], goes[at]) for at in sorted(kept)]
