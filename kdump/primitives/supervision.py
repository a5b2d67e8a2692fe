"""Runs the rest of a command in a child process, which a supervisor kills if it does not end in time.

Compiled libraries hold Python's interpreter lock for seconds, and some of their calls cannot be interrupted. Then no
Python code of the same process runs: neither a handler of signals nor a thread with a time limit. The supervisor is the
first process: it forks, waits, kills the fork if needed, and then deletes its temporary files. The fork runs the
command. Through a pipe it sends the paths of its temporary files, and the start and end of limited work.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn

from kdump.primitives import signals
from kdump.primitives.messages import message

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

GRACE: Final = 2.0
"""Seconds between a time limit or Ctrl-C and the kill."""
_SHORT: Final = 0.5
"""Seconds between SIGTERM, SIGHUP, a second Ctrl-C or :func:`last_words`, and the kill."""
_NEWS: Final = signal.SIGUSR1
"""The signal that the command sends after it has written to the pipe."""
_PIPE: Final = 1 << 16


class _Supervised:
    news: ClassVar[int | None] = None
    """The writing end of the pipe, in the process of a supervised command."""
    supervisor: ClassVar[int] = 0


def supervise(delete: Callable[[Path], object]) -> None:
    """Fork. The fork returns and runs the rest of the command; this process ends with the exit status of the fork.

    The fork is killed if it does not end soon after its time limit, SIGTERM, SIGHUP or :func:`last_words`, or after
    Ctrl-C between :func:`begin` and :func:`end`. After a kill, or if another signal ended the fork, ``delete`` is
    called for each of its temporary files and folders (:func:`owns`). The exit status is then 1, or 128 plus SIGINT,
    SIGTERM or SIGHUP. Without the system calls of Linux, and in a Python program that calls kdump, do nothing.
    """
    if not (signals.is_own_process() and hasattr(signal, "sigtimedwait")):
        return
    sys.stdout.flush()
    sys.stderr.flush()
    own = os.getpid()
    waited = {*signals.ENDING, signal.SIGCHLD, _NEWS}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    for number in (signal.SIGCHLD, _NEWS):
        signal.signal(number, signal.SIG_DFL)  # the program that started kdump may ignore these signals
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        heeded = [number for number in waited if signal.getsignal(number) != signal.SIG_IGN]
        _Supervisor(process, reader, heeded, delete).run()
    os.close(reader)
    os.set_blocking(writer, False)
    _Supervised.news, _Supervised.supervisor = writer, own
    signals.end_with(own)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def owns(path: str | os.PathLike[str]) -> None:
    """Let the supervisor, if there is one, delete a temporary file or folder if a signal ends this process."""
    _send(f"own {os.fspath(path)}", wakes=False)


def begin(seconds: float | None, late: str) -> None:
    """Begin limited work: the supervisor, if there is one, kills this process after the time limit or Ctrl-C.

    It waits GRACE seconds before the kill. ``seconds`` is the time limit, or None. After a kill at the time limit the
    supervisor prints the error ``late``.
    """
    _send(f"begin {'' if seconds is None else seconds} {late}")


def end() -> None:
    """Report to the supervisor, if there is one, that the limited work has ended."""
    _send("end")


def last_words(*, is_late: bool = False) -> None:
    """Report to the supervisor, if there is one, that this process prints why it ends, for at most _SHORT seconds.

    ``is_late``: this process is going to print the text ``late`` of :func:`begin`, and then calls :func:`said`. If it
    is killed before, the supervisor prints the text.
    """
    _send("last late" if is_late else "last")


def said() -> None:
    """Report to the supervisor, if there is one, that this process has printed why it ends."""
    _send("said", wakes=False)


def _send(news: str, *, wakes: bool = True) -> None:
    if _Supervised.news is None:
        return
    with suppress(BlockingIOError, ProcessLookupError):  # the supervisor has ended, and needs no report
        os.write(_Supervised.news, os.fsencode(news) + b"\0")
        if wakes:
            os.kill(_Supervised.supervisor, _NEWS)


class _Supervisor:
    """Waits for the fork ``process`` and for the signals ``heeded``. It reads the reports from the pipe ``reader``."""

    def __init__(self, process: int, reader: int, heeded: Collection[int], delete: Callable[[Path], object]) -> None:
        self._process, self._reader, self._heeded, self._delete = process, reader, heeded, delete
        self._rest = b""
        self._owned: list[str] = []
        self._kill_at: float | None = None
        self._is_limited = False
        self._late = ""
        self._status = 1
        """The exit status of this process if it kills the fork."""

    def run(self) -> NoReturn:
        while True:
            rest = None if self._kill_at is None else self._kill_at - time.monotonic()
            if rest is not None and rest <= 0:
                self._kill()
            found = signal.sigwaitinfo(self._heeded) if rest is None else signal.sigtimedwait(self._heeded, rest)
            if found is None:
                continue
            if found.si_signo == signal.SIGCHLD:
                self._look()
            elif found.si_signo == _NEWS:
                self._read()
            else:
                self._pass_on(found.si_signo, is_from_terminal=found.si_code > 0)

    def _pass_on(self, number: int, *, is_from_terminal: bool) -> None:
        """Send a signal to the command, unless the terminal sent it to both processes. Set the time of the kill."""
        if not is_from_terminal:
            os.kill(self._process, number)
        self._read()
        is_first = self._status <= signals.BY_SIGNAL
        if number != signal.SIGINT or self._is_limited:
            grace = GRACE if number == signal.SIGINT and is_first else _SHORT
            self._kill_by(time.monotonic() + grace, signals.BY_SIGNAL + number, "")

    def _kill_by(self, end: float, status: int, late: str) -> None:
        if self._kill_at is None or end <= self._kill_at:
            self._kill_at, self._status, self._late = end, status, late

    def _read(self) -> None:
        while select.select([self._reader], [], [], 0)[0]:
            read = os.read(self._reader, _PIPE)
            if not read:
                return
            *news, self._rest = (self._rest + read).split(b"\0")
            for one in news:
                word, _, more = os.fsdecode(one).partition(" ")
                self._take(word, more)

    def _take(self, word: str, more: str) -> None:
        if word == "own":
            self._owned.append(more)
        elif word == "begin":
            seconds, _, late = more.partition(" ")
            self._is_limited = True
            if seconds:
                self._kill_by(time.monotonic() + float(seconds) + GRACE, 1, late)
        elif word == "end":
            self._is_limited, self._kill_at, self._status = False, None, 1
        elif word == "last":
            self._kill_at, self._late = time.monotonic() + _SHORT, self._late if more else ""
        elif word == "said":
            self._late = ""

    def _look(self) -> None:
        process, status = os.waitpid(self._process, os.WNOHANG)
        if not process:
            return
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            self._clean_up()
            if -code not in signals.ENDING:
                message("error", f"the command was ended by {signal.Signals(-code).name}")
            os._exit(1 if -code not in signals.ENDING else signals.BY_SIGNAL - code)
        os._exit(code)

    def _kill(self) -> NoReturn:
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        self._clean_up()
        if self._late:
            message("error", self._late)
        elif self._status == signals.BY_SIGNAL + signal.SIGINT:
            print(file=sys.stderr)  # ends the line after ^C
        sys.stderr.flush()
        os._exit(self._status)

    def _clean_up(self) -> None:
        from pathlib import Path

        self._read()
        for path in self._owned:
            with suppress(OSError):
                self._delete(Path(path))
