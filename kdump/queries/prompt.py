"""The prompt of ``kdump sql``: statements that end with ``;``, dot commands, history and completion."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Final

from kdump.errors import KdumpError, UsageError
from kdump.primitives.messages import message
from kdump.queries import FORMATS
from kdump.queries.engine import MACROS
from kdump.queries.statement import is_complete

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from types import ModuleType

    from kdump.queries.views import View

FIRST: Final = "kdump> "
MORE: Final = "   ..> "
KEYWORDS: Final = """
select from where group order by having limit join left using union all distinct count sum min max with as in between
like not null and or case when then else end desc asc exclude explain describe timestamptz interval
"""
HISTORY: Final = "KDUMP_HISTORY"
"""The variable with the path of the history file (default: below XDG_STATE_HOME); an empty value means no history."""
HELP: Final = """\
.help                this text
.tables              the views
.schema [VIEW]       the columns of a view, or of all
.mode FORMAT         table, csv, jsonl, parquet or arrow
.out FILE            write the rows of the next query to FILE
.timer on|off        print how long a query takes
.quit                leave, as Ctrl-D does
A statement ends with a semicolon. Ctrl-C stops a query."""


class Prompt:
    """Reads statements and runs them with ``ask`` (text, format, output file or None). ``show`` prints columns."""

    def __init__(
        self,
        views: Mapping[str, View],
        ask: Callable[[str, str, str | None], object],
        show: Callable[[tuple[str, ...]], object],
        report: Callable[[BaseException], object],
    ) -> None:
        self._views, self._ask, self._show, self._report = views, ask, show, report
        self.mode = "table"
        self.out: str | None = None
        self.timer = False
        self.is_over = False

    def run(self) -> int:
        """Read statements until the end of the input or ``.quit``; return the exit status 0."""
        with_history = _lines(self._words())
        try:
            for text in statements(with_history):
                self.take(text)
                if self.is_over:
                    break
        finally:
            with_history.close()
        return 0

    def _words(self) -> list[str]:
        columns = {name for view in self._views.values() for name in view.schema.names}
        return sorted({*self._views, *columns, *MACROS, *KEYWORDS.split(), *(f".{name}" for name in _COMMANDS)})

    def take(self, text: str) -> None:
        """Run a statement or a dot command. Ctrl-C ends it; errors are printed."""
        try:
            if text.startswith("."):
                self._command(text[1:].rstrip(" ;").split())
                return
            began = time.monotonic()
            out, self.out = self.out, None
            self._ask(text, self.mode, out)
            if self.timer:
                print(f"{time.monotonic() - began:.3f} s", file=sys.stderr)
        except KeyboardInterrupt:
            print(file=sys.stderr)
        except KdumpError as error:
            self._report(error)

    def _command(self, words: list[str]) -> None:
        name, *rest = words or [""]
        if name not in _COMMANDS:
            raise UsageError(f"there is no .{name}: .help lists the dot commands")
        if name == "quit":
            self.is_over = True
        elif name == "help":
            print(HELP)
        elif name == "tables":
            print("\n".join(self._views))
        elif name == "schema":
            self._show(tuple(rest))
        else:
            self._set(name, rest)

    def _set(self, name: str, rest: list[str]) -> None:
        if len(rest) != 1:
            raise UsageError(f".{name} takes one word")
        if name == "mode":
            if rest[0] not in FORMATS:
                raise UsageError(f".mode {rest[0]}: the formats are {', '.join(FORMATS)}")
            self.mode = rest[0]
        elif name == "timer":
            if rest[0] not in {"on", "off"}:
                raise UsageError(f".timer {rest[0]}: it is on or off")
            self.timer = rest[0] == "on"
        else:
            self.out = rest[0]


_COMMANDS: Final = ("help", "tables", "schema", "mode", "out", "timer", "quit")


def statements(lines: Iterator[str | None]) -> Iterator[str]:
    """Yield statements (which may have several lines) and dot commands. A line None drops an unfinished statement."""
    text = ""
    for line in lines:
        if line is None:
            text = ""
            continue
        if not text and line.strip().startswith("."):
            yield line.strip()
            continue
        text = f"{text}\n{line}" if text else line
        if is_complete(text):
            yield text
            text = ""
        elif not text.strip():
            text = ""
        _Asked.more = bool(text)


class _Asked:
    """The state of the prompt. ``more``: whether the next line continues a statement."""

    more = False


def _lines(words: list[str]) -> Generator[str | None, None, None]:
    """Yield the lines that the user enters (None for Ctrl-C), with history and completion if readline exists."""
    _Asked.more = False
    readline = _readline(words)
    history = _history() if readline is not None else None
    if readline is not None and history is not None:
        _load(readline, history)
    try:
        while True:
            try:
                yield input(MORE if _Asked.more else FIRST)
            except KeyboardInterrupt:
                print(file=sys.stderr)
                _Asked.more = False
                yield None
            except EOFError:
                print(file=sys.stderr)
                return
    finally:
        if readline is not None and history is not None:
            _save(readline, history)


def _readline(words: list[str]) -> ModuleType | None:
    try:
        import readline
    except ImportError:  # this Python has no readline
        return None

    def complete(start: str, number: int) -> str | None:
        lower = start.lower()
        found = [word for word in words if lower and word.lower().startswith(lower)]
        return found[number] if number < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n(),;=<>+-*/'\"")
    readline.parse_and_bind("tab: complete")
    return readline


def _history() -> str | None:
    given = os.environ.get(HISTORY)
    if given is not None:
        return given or None
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111  as in a shell
    return f"{state}/kdump/sql_history"


def _load(readline: ModuleType, path: str) -> None:
    readline.set_history_length(1000)
    try:
        readline.read_history_file(path)
    except OSError:  # the history is missing or unreadable
        readline.clear_history()


def _save(readline: ModuleType, path: str) -> None:
    from kdump.output.files import private_file

    try:
        private_file(path)
        readline.write_history_file(path)
    except OSError as reason:
        message("warning", f"the history is not kept: {path}: {reason.strerror}")
