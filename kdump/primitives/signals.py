"""Handles SIGINT, SIGTERM and SIGHUP in a command.

After :func:`heed`, SIGTERM and SIGHUP end a command at once, with the status that a shell reports for them (143 and
129). Inside :func:`cleaned_up` they raise :class:`EndedBySignal`, as Ctrl-C raises KeyboardInterrupt. Inside
:func:`held` all three are delayed. A signal that was ignored when kdump started (``nohup``) stays ignored.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BY_SIGNAL: Final = 128
"""A shell adds this to a signal's number for the exit status of a program that the signal ended."""
_PR_SET_PDEATHSIG: Final = 1
_PAUSE: Final = 0.01
"""Seconds until a signal is sent again."""


class EndedBySignal(SystemExit):
    """SIGTERM or SIGHUP was received: the run ends with the exit status ``status``."""

    def __init__(self, number: int) -> None:
        self.status = BY_SIGNAL + number
        super().__init__(self.status)


class _State:
    cleaning: ClassVar[list[Callable[[], None]]] = []
    """The callbacks of open :func:`cleaned_up` blocks."""
    held = 0
    """The number of open :func:`held` blocks."""
    waiting: int | None = None
    """The first signal that was received in a :func:`held` block."""
    at_once = 0
    """The number of open :func:`at_once` blocks."""
    interrupts = 0


def heed(numbers: Iterable[int]) -> None:
    """Handle the signals ``numbers``. The caller leaves out ignored signals, and runs :func:`clean_up` at the end."""
    for number in numbers:
        signal.signal(number, _end)
    sys.unraisablehook = _repeat


def _repeat(ignored: sys.UnraisableHookArgs) -> None:
    """Send a signal again whose exception Python ignores, because a finalizer or a callback was running."""
    if not isinstance(ignored.exc_value, KeyboardInterrupt | EndedBySignal):
        sys.__unraisablehook__(ignored)
        return
    _State.held += 1  # an exception that is raised here is printed and lost
    try:
        from threading import Thread, get_ident

        number = signal.SIGINT
        if isinstance(ignored.exc_value, EndedBySignal):
            number = signal.Signals(ignored.exc_value.status - BY_SIGNAL)
        Thread(target=_send_again, args=(get_ident(), number), daemon=True).start()
    finally:
        _State.held, _State.waiting = _State.held - 1, None


def _send_again(thread: int, number: int) -> None:
    """Send a signal to ``thread`` when it has left :func:`_repeat`."""
    from time import sleep

    sleep(_PAUSE)
    while _is_in(sys._current_frames().get(thread)):
        sleep(_PAUSE)
    signal.pthread_kill(thread, number)


def _is_in(frame: FrameType | None) -> bool:
    """Return whether :func:`_repeat` is on the stack below ``frame``."""
    while frame is not None and frame.f_code is not _repeat.__code__:
        frame = frame.f_back
    return frame is not None


def is_own_process() -> bool:
    """Return whether this process is a run of the command line, not a Python program that calls kdump."""
    return any(signal.getsignal(number) is _end for number in ENDING)


def _end(number: int, _: object) -> None:
    if _State.held:
        _State.waiting = _State.waiting or number
    else:
        _raise(number)


def _raise(number: int) -> None:
    if _State.at_once and not _State.cleaning:
        os._exit(BY_SIGNAL + number)
    if number == signal.SIGINT:
        _State.interrupts += 1
        raise KeyboardInterrupt
    if not _State.cleaning:
        os._exit(BY_SIGNAL + number)
    raise EndedBySignal(number)


class Interrupts:
    """After :func:`heed`, ``check`` raises KeyboardInterrupt if one was raised since this object was made."""

    def __init__(self) -> None:
        self._before = _State.interrupts

    def check(self) -> None:
        if _State.interrupts != self._before:
            raise KeyboardInterrupt


@contextmanager
def unwrapped() -> Iterator[None]:
    """If the block raises a RuntimeError whose cause is KeyboardInterrupt or EndedBySignal, raise the cause instead.

    Python before 3.12 wraps them if the signal arrives in ``__set_name__``, which runs when an import makes a class.
    """
    try:
        yield
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt | EndedBySignal):
            raise error.__cause__ from None
        raise


@contextmanager
def at_once() -> Iterator[None]:
    """End the run at once if a signal arrives in the block, unless a :func:`cleaned_up` block is open.

    This is for imports of compiled libraries, which swallow a KeyboardInterrupt, turn it into an ImportError, or abort.
    """
    _State.at_once += 1
    try:
        yield
    finally:
        _State.at_once -= 1


@contextmanager
def cleaned_up(clean: Callable[[], None]) -> Iterator[None]:
    """Call ``clean`` when the block ends. SIGTERM and SIGHUP raise EndedBySignal in the block."""
    _State.cleaning.append(clean)
    try:
        yield
    finally:
        with held():
            if clean in _State.cleaning:
                _State.cleaning.remove(clean)
                clean()


def clean_up() -> None:
    """Call the callbacks that :func:`cleaned_up` blocks have not called, because a signal interrupted their end."""
    while _State.cleaning:
        _State.cleaning.pop()()


@contextmanager
def held() -> Iterator[None]:
    """Delay the signals of ``ENDING`` until the end of the outermost block, where the first one takes effect."""
    _State.held += 1
    try:
        yield
    finally:
        _State.held -= 1
        if not _State.held and _State.waiting is not None:
            number, _State.waiting = _State.waiting, None
            _raise(number)


def by_default() -> None:
    """Restore the default action of the signals of ``ENDING`` in this forked process. Ignored signals stay ignored."""
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def end_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Let Linux send this process the signal ``number`` when its parent ends. If the parent has ended, exit at once."""
    from ctypes import CDLL

    if hasattr(CDLL(None), "prctl"):
        CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number))
    if os.getppid() != parent:  # the parent ended before prctl()
        os._exit(1)
