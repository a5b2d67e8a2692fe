"""Pieces of work in a row, some of which a thread does: what comes of them is taken in order.

Reading a file and the kernel's loops go without Python's global lock. Whoever takes the results does the pieces that
the thread has not begun, and does others while it waits.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R")
AHEAD: Final = 4
"""Results that wait to be taken, at most, beside those that are being made."""


class TooMuchError(Exception):
    """What comes of a piece is more than may wait: whoever takes it does it, and all that follow."""


class ThreadBeside(Generic[R]):
    """Does pieces, by their numbers from 0 on, ahead of whoever takes them; :meth:`end` must be called."""

    def __init__(self, count: int, attempt: Callable[[int], R]) -> None:
        """``attempt`` does a piece before those in front of it are known. Both threads call it.

        Where it raises TooMuchError, nothing is done ahead any more.
        """
        self._left = deque(range(count))
        self._attempt = attempt
        self._done: dict[int, R | _Raised | None] = {}
        self.has_too_much = False
        """Whether an attempt has said so."""
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="beside", daemon=True)
        try:
            self._thread.start()
            self._runs = True
        except RuntimeError:  # the system gives none
            self._runs = False

    def take(self, number: int) -> R | None:
        """Return what came of the next piece, None where nobody has begun it: the caller does it then.

        Raises what ``attempt`` raised.
        """
        while True:
            with self._changed:
                if number in self._done:
                    done = self._done.pop(number)
                    self._changed.notify()
                    if isinstance(done, _Raised):
                        raise done.failure
                    return done
                if self._left and self._left[0] == number:
                    self._left.popleft()
                    return None
                if not self._left or len(self._done) >= AHEAD or self.has_too_much:
                    self._changed.wait()
                    continue
                other = self._left.popleft()
            self._do(other, Exception)  # Ctrl-C ends the work here

    def end(self) -> None:
        """Let the thread end; it works no more when this returns."""
        with self._changed:
            self._left.clear()
            self._done.clear()
            self._changed.notify()
        if self._runs:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._left and len(self._done) >= AHEAD and not self.has_too_much:
                    self._changed.wait()
                if not self._left or self.has_too_much:
                    return
                number = self._left.popleft()
            self._do(number, BaseException)

    def _do(self, number: int, kept: type[BaseException]) -> None:
        """Do a piece; what is raised of a ``kept`` kind is raised again where the result is taken."""
        done: R | _Raised | None = None
        too_much = False
        try:
            done = self._attempt(number)
        except TooMuchError:
            too_much = True
        except kept as failure:
            done = _Raised(failure)
        with self._changed:
            self._done[number] = done
            self.has_too_much |= too_much
            self._changed.notify()


class _Raised:
    """What was raised in place of a result."""

    def __init__(self, failure: BaseException) -> None:
        self.failure = failure
