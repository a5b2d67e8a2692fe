"""The session of a command: prints messages and progress on standard error, and determines the exit status."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import IO, TYPE_CHECKING, Final, Self

from kdump import kernel
from kdump.errors import ExitStatus, Reporter, StoreError, UnreadableError, discard, many, once
from kdump.primitives.messages import message
from kdump.primitives.terminal import harmless_line, on_terminal, terminal_width
from kdump.printers.quantities import exact_size, pace, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kdump.broker_start.shortfall import Shortfall
    from kdump.log_dirs.partition import Partition
    from kdump.primitives.messages import Level
    from kdump.segments.regions import Damage

_BY_RANK: Final = (ExitStatus.UNREADABLE, ExitStatus.DAMAGED, ExitStatus.DERIVED, ExitStatus.ABSENT)
ALIKE: Final = 10
"""Maximum number of damaged ranges of a file that are printed; further ranges are only counted."""
EVERY: Final = 0.2
"""Minimum time between two updates of the progress line, in seconds."""


FULL, EMPTY = "━", "╌"
LONGEST_BAR, SHORTEST_BAR = 30, 5
"""Maximum and minimum width of a progress bar, in columns. With less room, the line has no bar."""
BESIDE: Final = 9
"""Columns of the progress line without bar and text: the percentage, the gaps, and the free last column."""
SHOWN: Final = 10
"""Maximum number of partitions that are reported one by one."""


def share_done(done: int, total: int, shown: str, seconds: float) -> str:
    """Return percentage, bar if it fits, ``shown`` and time left; only ``shown`` if ``done`` or ``total`` is 0."""
    if not done or not total:
        return shown
    part = min(1.0, done / total)
    seconds_left = max(0, round(seconds * (total - done) / done))
    text = f"{shown}  {seconds_left // 60}:{seconds_left % 60:02} left"
    length = min(LONGEST_BAR, terminal_width() - len(text) - BESIDE)
    full = int(part * length)
    drawn = f"{FULL * full}{EMPTY * (length - full)}  " if length >= SHORTEST_BAR else ""
    return f"{int(100 * part):3}%  {drawn}{text}"


class StatusLine:
    """A line that is overwritten on the terminal ``out``. If ``out`` is None, nothing is printed."""

    def __init__(self, out: IO[str] | None = None) -> None:
        self._out = out
        self._length = 0

    def show(self, text: str) -> None:
        if self._out is not None:
            text = harmless_line(text)[: terminal_width() - 1]
            self._out.write("\r" + text.ljust(self._length))
            self._out.flush()
            self._length = len(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        if self._out is not None and self._length:
            self._out.write("\r" + " " * self._length + "\r")
            self._out.flush()
            self._length = 0


class Progress(StatusLine):
    """A progress line: bytes done, and the remaining time."""

    def __init__(self, total: int = 0, out: IO[str] | None = None) -> None:
        super().__init__(out)
        self.total = total
        self.done = 0
        self._began = time.monotonic()
        self._shown = self._began

    def __call__(self, count: int) -> None:
        self.done += count
        if self._out is None:
            return
        now = time.monotonic()
        if now - self._shown >= EVERY:
            self._shown = now
            self.show(self._text(now - self._began))

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def _text(self, seconds: float) -> str:
        text = f"{size(self.done)} of {size(self.total)}  {size(self.done / max(seconds, 0.001))}/s"
        return share_done(self.done, self.total, text, seconds)


class ReportedSoFar:
    """The reports of a run so far. Worker processes return them."""

    def __init__(self) -> None:
        self.statuses: set[int] = set()
        self.failed: set[str] = set()
        """The printed errors on unreadable files and absent topics: each is printed once."""
        self.denied = False
        self.ranges: dict[str, Counter[str]] = {}
        """File -> the number of its damaged ranges of each kind since the last :meth:`Session.sum_up`."""


class Session:
    """One run of a command: prints messages on standard error, and determines the exit status."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.progress = Progress()
        """The progress line. It is not shown before :meth:`watch` is called."""
        self.reported = ReportedSoFar()
        self.before: Callable[[], object] = lambda: None
        """Called before each report except :meth:`sum_up`, so that a worker process can wait for its turn."""
        self.report = Reporter(self.damage, self.wrong_index, once(self.note), self.fail, self.has_read)
        if quiet:
            from kdump.log_dirs import remote

            remote.notify = discard
        kernel.keep_freed_memory()

    @property
    def pace(self) -> str:
        """The bytes of the progress line and their rate as text; empty at 0 bytes, or without a terminal."""
        if not self.progress.done or not on_terminal(sys.stderr, 2):
            return ""
        return f" ({exact_size(self.progress.done)} {pace(self.progress.done, self.progress.seconds)})"

    @property
    def statuses(self) -> set[int]:
        return self.reported.statuses

    def watch(self, total: int) -> None:
        """Show the progress of ``total`` bytes, if standard error is a terminal."""
        if sys.stderr.isatty():
            self.progress = Progress(total, sys.stderr)

    def reads(self, size: int) -> None:
        """Add ``size`` bytes to the total of the progress line, or start the line with this total."""
        if self.progress.total:
            self.progress.total += size
        else:
            self.watch(size)

    def has_read(self, size: int) -> None:
        self.progress(size)

    def unwatch(self) -> None:
        self.progress.clear()
        self.progress = Progress()

    def watched(self, partitions: Iterable[Partition]) -> Iterable[Partition]:
        """Show the progress of partitions, if standard error is a terminal; return them."""
        if not sys.stderr.isatty():
            return partitions
        found = list(partitions)
        self.watch(sum(segment.size for part in found for segment in part.segments))
        return found

    def note(self, text: str) -> None:
        """Print a note, unless --quiet is given. The exit status does not change."""
        if not self.quiet:
            self.before()
            self._message("note", text)

    def fail(self, error: UnreadableError) -> None:
        """Report an unreadable input, each text once. The first without permission may get a sudo command as hint."""
        hint = ""
        if error.is_denied and not self.reported.denied:
            from kdump.command_line.usage_hints import as_owner

            self.reported.denied, hint = True, as_owner(str(error.path))
        self._cannot(str(error), error.hint or hint)

    def insist(self, text: str) -> None:
        """Print a warning also with --quiet. The exit status does not change."""
        self.before()
        self._message("warning", text)

    def must_be_whole(self, out: str) -> None:
        """Raise UnreadableError for ``out`` if an input was unreadable or absent: the output would look complete."""
        if ExitStatus.UNREADABLE in self.statuses:
            raise UnreadableError(
                out,
                "this output is not written, because an input cannot be read",
                "leave the unreadable input out, or make it readable",
            )

    def absent(self, texts: Iterable[str]) -> None:
        """Report topics that were requested and are absent as errors (exit status 1)."""
        for text in texts:
            self._cannot(text)

    def wrong_index(self, text: str) -> None:
        """Report a wrong index, or another wrong file that can be rebuilt from the log (exit status 4)."""
        self.before()
        self.statuses.add(ExitStatus.DERIVED)
        self._message("warning", f"{text}; kdump does not use this file (see kdump check)")

    def damage(self, text: str) -> None:
        """Report damage (exit status 3)."""
        self.damages()
        self._message("error", text)

    def damages(self) -> None:
        """Set the exit status for damage without a message."""
        self.before()
        self.statuses.add(ExitStatus.DAMAGED)

    def add_status(self, status: int) -> None:
        self.statuses.update({status} - {0})

    def damaged_range(self, file: str, damage: Damage) -> None:
        """Report a damaged range of a file. After ALIKE ranges of a file, only count the others for :meth:`sum_up`."""
        self.before()
        kinds = self.reported.ranges.setdefault(file, Counter())
        if kinds.total() < ALIKE:
            self.damage(f"{file}: byte {damage.position}: {damage}")
        kinds[damage.kind] += 1

    def sum_up(self) -> None:
        """Report the number of damaged ranges that were not printed."""
        for file, kinds in self.reported.ranges.items():
            if kinds.total() > ALIKE:
                of = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
                more = many(kinds.total() - ALIKE, "more range is", "more ranges are")
                self._message("error", f"{file}: {more} damaged; all damaged ranges: {of}")
        self.reported.ranges.clear()

    @property
    def status(self) -> int:
        """The gravest exit status: unreadable file or absent topic, damage, wrong derived file, then absent record."""
        return next((status for status in _BY_RANK if status in self.statuses), 0)

    def _cannot(self, text: str, hint: str = "") -> None:
        self.before()
        self.statuses.add(ExitStatus.UNREADABLE)
        if text not in self.reported.failed:
            self.reported.failed.add(text)
            self._message("error", text, hint)

    def _message(self, level: Level, text: str, hint: str = "") -> None:
        self.progress.clear()
        message(level, text, hint)


def report_shortfalls(
    run: Session, paths: tuple[str, ...], partitions: Sequence[Partition], takes: Callable[[str, int], bool]
) -> list[Shortfall]:
    """Warn of partitions of log dirs that lack all their records, also with --quiet; after SHOWN give only a number.

    Return those (also beyond SHOWN) that have no bytes in any folder of ``partitions``, or [] if a store fails. Only
    whole log dirs are examined, because other paths do not show which folders are missing.
    """
    from kdump import checking

    try:
        places = checking.log_dirs(paths, partitions, {})
        if not places:
            return []
        from kdump.broker_start.shortfall import shortfalls
        from kdump.log_dirs.file_names import FUTURE_FOLDER, leftover_state

        found = list(shortfalls(places, partitions, takes, run.fail))
    except StoreError as error:
        run.fail(error)
        return []
    full = [part for part in partitions if any(each.size for each in part.segments)]
    held = {(part.topic, part.partition) for part in full}
    in_use = {(part.topic, part.partition) for part in full if leftover_state(part.folder) in {None, FUTURE_FOLDER}}
    for each in found[:SHOWN]:
        is_elsewhere = (each.topic, each.partition) in in_use and not each.strays
        other = "; another folder in these paths has records of the partition" if is_elsewhere else ""
        run.insist(f"{each.file}: {each.text}{other}")
    if len(found) > SHOWN:
        run.insist(f"{many(len(found) - SHOWN, 'more partition')} have lost all records: kdump check lists them")
    return [each for each in found if (each.topic, each.partition) not in held]
