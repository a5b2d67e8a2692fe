"""The short version of a report for a terminal: the verdict, bars and sparklines."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from rich.text import Text

from kdump.primitives.terminal import harmless_line
from kdump.printers.quantities import counted, size, time
from kdump.printers.table import Quiet
from kdump.report import series
from kdump.report.verdicts import verdicts

if TYPE_CHECKING:
    from collections import Counter

    from kdump.report.document import LogDirReport

STYLES: Final = {"bad": "bold red", "warn": "yellow", "info": "cyan", "good": "green"}
WORDS: Final = {"bad": "WRONG", "warn": "look", "info": "note", "good": "well"}
TOPICS: Final = 10
"""Topics that are drawn: those with the most bytes."""
BAR: Final = 30
"""Columns of the longest bar."""
LINE: Final = 100
"""Columns of a line where no terminal sets a width."""
_SPARKS: Final = "▁▂▃▄▅▆▇█"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def draw(report: LogDirReport, out: IO[str]) -> None:
    """Draw the short version; a pipe or file gets the same without colours."""
    console = Quiet(file=out, highlight=False, width=None if out.isatty() else LINE)
    paths = ", ".join(map(harmless_line, report.paths))
    console.print(Text(f"{paths} at {time(report.at)}", style="bold"), soft_wrap=True)
    for one in verdicts(report):
        line = Text(f"{WORDS[one.weight]:6}", style=STYLES[one.weight])
        console.print(line + Text(harmless_line(one.text), style="default"), soft_wrap=True)
        if one.advice:
            console.print(Text(f"      {harmless_line(one.advice)}", style="dim"), soft_wrap=True)
        for command in one.commands:
            console.print(Text(f"        {harmless_line(command)}", style="none"), soft_wrap=True)
    console.print()
    _bars(console, "Bytes of log by topic", series.bytes_by_topic(report), report)
    _forecast(console, report)


def _bars(console: Quiet, title: str, sizes: Counter[str], report: LogDirReport) -> None:
    topics = series.largest(sizes, TOPICS)
    if not topics:
        return
    axis = series.time_axis(report.lines("stats", "hour"), report.at)
    span = f"; came in from {time(axis.start)} on, {axis.step} a column" if axis else ""
    console.print(Text(f"{title}{span}", style="bold"), soft_wrap=True)
    names = [_shortened(harmless_line(topic)) for topic in topics]
    widest = max(map(len, names))
    for topic, name in zip(topics, names, strict=True):
        line = Text(f"  {name:{widest}}  {size(sizes[topic]):>10}  ")
        line.append(f"{bar(sizes[topic] / max(1, sizes[topics[0]]), BAR):{BAR}}  ", style="cyan")
        line.append(_came_in(report, axis, topic) if axis else "", style="green")
        console.print(line, soft_wrap=True)
    if len(sizes) > len(topics):
        rest = sum(sizes.values()) - sum(sizes[topic] for topic in topics)
        console.print(Text(f"  and {counted(len(sizes) - len(topics), 'topic')} more, {size(rest)}"), soft_wrap=True)
    console.print()


def _shortened(name: str, most: int = 32) -> str:
    return name if len(name) <= most else f"{name[: most - 3]}..."


def _came_in(report: LogDirReport, axis: series.TimeAxis, topic: str) -> str:
    sums = {bucket: amount for bucket, name, _, amount in series.ingest(report, axis, [topic]) if name == topic}
    return sparkline([sums.get(bucket, 0) for bucket in axis.buckets])


def _forecast(console: Quiet, report: LogDirReport) -> None:
    days = series.forecast(report)
    if any(kept or goes for _, kept, goes in days):
        line = sparkline([kept for _, kept, _ in days])
        text = f"Retention leaves {size(days[0][1])} now, {size(days[-1][1])} on {(time(days[-1][0]) or '')[:10]}  "
        console.print(Text(text) + Text(line, style="green") + Text("  (if nothing more is written)"), soft_wrap=True)
    page = report.command("du").replace("kdump du", "kdump report", 1)
    console.print(Text(f"The whole picture: {harmless_line(page)} --out report.html"), soft_wrap=True)


def bar(share: float, width: int) -> str:
    """Return a bar of a share of ``width`` columns, in eighths; what is not nothing is seen."""
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def sparkline(numbers: list[int]) -> str:
    """Return a letter for each number, as high as it is; a blank for 0."""
    most = max(numbers, default=0)
    return "".join(_SPARKS[(number * 8 - 1) // most] if number > 0 else " " for number in numbers)
