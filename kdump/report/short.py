"""The short versions of a report: verdict, bars and sparklines for a terminal, and lines for a ticket."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from rich.text import Text

from kdump import __version__
from kdump.errors import many
from kdump.primitives.messages import folded
from kdump.primitives.terminal import MEASURE, harmless_line, prose_width
from kdump.printers.quantities import size, time
from kdump.printers.table import Quiet
from kdump.report import series
from kdump.report.verdicts import verdicts

if TYPE_CHECKING:
    from kdump.report.document import LogDirReport

STYLES: Final = {"bad": "bold red", "warn": "yellow", "info": "cyan", "good": "green"}
WORDS: Final = {"bad": "WRONG", "warn": "check", "info": "note", "good": "ok"}
TOPICS: Final = 10
"""Maximum number of topics in the chart; the topics with the most bytes are shown."""
BAR, LEAST = 30, 10
"""Maximum and minimum width of the longest bar, in columns."""
TICKET: Final = 10
WORD: Final = 6
"""Width of the word (of :data:`WORDS`) before a sentence, in columns."""
NAME: Final = 20
"""Maximum width of a name on a narrow terminal."""
LINE: Final = 100
"""Width in columns for the bars if the output is not a terminal. Sentences are then not folded."""
_SPARKS: Final = "▁▂▃▄▅▆▇█"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def draw(report: LogDirReport, out: IO[str]) -> None:
    console = Quiet(file=out, width=None if out.isatty() else LINE)
    paths = ", ".join(map(harmless_line, report.paths))
    console.print(Text(f"{paths} at {time(report.at)}", style="bold"), soft_wrap=True)
    for one in verdicts(report):
        word = Text(f"{WORDS[one.weight]:{WORD}}", style=STYLES[one.weight])
        for line in _folded(console, one.text, WORD):
            console.print(word + Text(line, style="default"), soft_wrap=True)
            word = Text(" " * WORD)
        for line in _folded(console, one.advice, WORD) if one.advice else ():
            console.print(Text(f"{'':{WORD}}{line}", style="dim"), soft_wrap=True)
        for command in one.commands:
            console.print(Text(f"{'':{WORD}}  {harmless_line(command)}", style="none"), soft_wrap=True)
    console.print()
    _bars(console, report)
    _forecast(console, report)


def ticket(report: LogDirReport) -> list[str]:
    """Return at most TICKET lines: paths, time, size, the gravest problems, and the next commands."""
    partitions = report.held("du", "partition")
    times = [ms for line in partitions for ms in (line.oldest_ms, line.newest_ms) if ms is not None]
    log = size(sum(line.log_bytes for line in partitions))
    span = f", records from {time(min(times))} to {time(max(times))}" if times else ""
    lines = [
        f"kdump {__version__} report of {', '.join(report.paths)} at {time(report.at)}",
        f"{many(len(partitions), 'partition')}, {log} of log{span}",
    ]
    found = verdicts(report)
    for number, one in enumerate(found):
        shown = [f"{WORDS[one.weight]}: {one.text}", *(f"  {command}" for command in one.commands[:1])]
        left = TICKET - 1 - len(lines)
        if len(shown) + (number < len(found) - 1) > left:
            lines.append(f"and {len(found) - number} more in the report")
            break
        lines += shown
    return [*lines, f"Repeat: {report.repeat} --text"]


def draw_ticket(report: LogDirReport, out: IO[str]) -> None:
    """Print the lines for a ticket. On a terminal, lines other than commands are folded."""
    for line in map(harmless_line, ticket(report)):
        is_command = not out.isatty() or line.startswith(("  ", "Repeat: "))
        for part in [line] if is_command else folded(line, prose_width()):
            out.write(f"{part}\n")


def _folded(console: Quiet, text: str, before: int = 0) -> list[str]:
    """Return the lines of a sentence, folded on a terminal. ``before`` columns of each line are already used."""
    text = harmless_line(text)
    return folded(text, min(console.width, MEASURE) - before, indent=0) if console.is_terminal else [text]


def _bars(console: Quiet, report: LogDirReport) -> None:
    sizes = series.bytes_by_topic(report)
    topics = series.largest(sizes, TOPICS)
    if not topics:
        return
    axis = series.time_axis(report.lines("stats", "hour"), report.at)
    span = f"; one column is {axis.step}, the first begins at {time(axis.start)}" if axis else ""
    for line in _folded(console, f"Bytes of log by topic{span}"):
        console.print(Text(line, style="bold"), soft_wrap=True)
    names = [_shortened(harmless_line(topic), max(NAME, console.width // 4)) for topic in topics]
    widest = max(map(len, names))
    steps = len(axis.buckets) + 2 if axis else 0
    longest = max(LEAST, min(BAR, console.width - widest - 16 - steps))
    has_room = widest + longest + 16 + steps <= console.width
    for topic, name in zip(topics, names, strict=True):
        drawn = Text(f"  {name:{widest}}  {size(sizes[topic]):>10}  ")
        drawn.append(f"{bar(sizes[topic] / max(1, sizes[topics[0]]), longest):{longest}}  ", style="cyan")
        drawn.append(_came_in(report, axis, topic) if axis and has_room else "", style="green")
        drawn.rstrip()
        console.print(drawn, soft_wrap=True)
    if len(sizes) > len(topics):
        rest = sum(sizes.values()) - sum(sizes[topic] for topic in topics)
        console.print(Text(f"  and {many(len(sizes) - len(topics), 'topic')} more, {size(rest)}"), soft_wrap=True)
    console.print()


def _shortened(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 3]}..."


def _came_in(report: LogDirReport, axis: series.TimeAxis, topic: str) -> str:
    sums = {bucket: amount for bucket, name, _, amount in series.ingest(report, axis, [topic]) if name == topic}
    return sparkline([sums.get(bucket, 0) for bucket in axis.buckets])


def _forecast(console: Quiet, report: LogDirReport) -> None:
    days = series.forecast(report)
    if any(kept or goes for _, kept, goes in days):
        line = sparkline([kept for _, kept, _ in days])
        text = f"Retention leaves {size(days[0][1])} now, {size(days[-1][1])} on {(time(days[-1][0]) or '')[:10]}  "
        lines = _folded(console, f"{text}(if nothing more is written)")
        for each in lines:
            console.print(Text(each), soft_wrap=True)
        console.print(Text(f"  {line[: console.width - 2]}", style="green"), soft_wrap=True)
    page = report.command("du").replace("kdump du", "kdump report", 1)
    console.print(Text("The whole picture:"), soft_wrap=True)
    console.print(Text(f"  {harmless_line(page)} --out report.html"), soft_wrap=True)


def bar(share: float, width: int) -> str:
    """Return a bar for a share of ``width`` columns, in eighths of a column; at least one eighth if not 0."""
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def sparkline(numbers: list[int]) -> str:
    """Return a block character for each number, scaled to the highest; a blank for 0."""
    most = max(numbers, default=0)
    return "".join(_SPARKS[(number * 8 - 1) // most] if number > 0 else " " for number in numbers)
