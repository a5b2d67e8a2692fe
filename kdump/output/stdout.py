"""Standard output in bytes: what goes wrong there is told as an error of its own, and a terminal is not steered.

Also the other two standard streams, where whoever started kdump closed them.
"""

from __future__ import annotations

import codecs
import fcntl
import io
import os
import sys
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, BinaryIO, Final, cast

from kdump.errors import KdumpError
from kdump.primitives.terminal import PAGED, harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _typeshed import ReadableBuffer

CLOSED_PIPE: Final = 141
"""What a shell reports for a program that a closed pipe ended (128 + SIGPIPE)."""
BUFFER: Final = 1 << 18
PIPE: Final = 1 << 20
"""Bytes that a pipe holds, where the system allows: with its usual 64 KiB, writer and reader wait for each other."""


class OutputError(KdumpError):
    """Standard output takes no more: a full disk, an I/O fault (exit status 1)."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(f"standard output cannot be written: {reason.strerror or reason}")


class _Raw(io.RawIOBase):
    """File descriptor 1, with ``escape`` without the bytes that make a terminal do something.

    ``paint`` colours each line after that.
    """

    def __init__(self, *, escape: bool, paint: Callable[[bytes], bytes] | None) -> None:
        self._paint = paint
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace") if escape else None
        """It keeps a character that lies across two writes; a byte that is not UTF-8 may be a control of 8 bits."""
        self._line = b""
        self._interrupted = False

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return is_terminal()

    def write(self, data: ReadableBuffer, /) -> int:
        with memoryview(data) as view:
            if self._interrupted:
                return view.nbytes
            try:
                self._show(view)
                return view.nbytes
            except KeyboardInterrupt:  # nobody knows how much was written: what is buffered must not come twice
                self._interrupted = True
                raise
            except BrokenPipeError:
                raise
            except OSError as reason:
                raise OutputError(reason) from reason

    def close(self) -> None:
        """Send the character and the line that were begun last."""
        if not self.closed and not self._interrupted:
            if self._decoder is not None:
                self._show(memoryview(b""), final=True)
            line, self._line = self._line, b""
            self._send(line)
        super().close()

    def _show(self, data: memoryview, *, final: bool = False) -> None:
        out: bytes | memoryview = data
        if self._decoder is not None:
            out = harmless(self._decoder.decode(data, final)).encode()
        self._send(out if self._paint is None else self._painted(bytes(out), self._paint))

    def _send(self, data: bytes | memoryview) -> None:
        with memoryview(data) as view:
            done = 0
            while done < view.nbytes:
                done += os.write(1, view[done:])

    def _painted(self, data: bytes, paint: Callable[[bytes], bytes]) -> bytes:
        """Colour whole lines. The beginning of one waits for the next bytes."""
        *lines, self._line = (self._line + data).split(b"\n")
        return b"".join(paint(line) + b"\n" for line in lines)


def open_output(*, escape: bool = True, paint: Callable[[bytes], bytes] | None = None) -> BinaryIO:
    """Return standard output, buffered, for a ``with`` statement; file descriptor 1 stays open behind it.

    With ``escape`` control characters but tab and newline, and bytes that are not UTF-8, reach a terminal as ``\\x1b``
    and the like; in a pipe or a file every byte stays as it is. ``paint`` colours each line, which it gets without its
    end. Writing raises OutputError, and BrokenPipeError where the reader has gone.
    """
    _widen_pipe()
    return cast("BinaryIO", io.BufferedWriter(_Raw(escape=escape and is_terminal(), paint=paint), BUFFER))


def is_terminal() -> bool:
    """Tell whether standard output is shown on a terminal, be it through a pager."""
    return 1 in PAGED or os.isatty(1)


@contextmanager
def sent_to(pager: IO[bytes]) -> Iterator[None]:
    """Send standard output, and standard error where it is a terminal, to a pager meanwhile, and close it then.

    Raises BrokenPipeError where the pager has ended: standard output then leads nowhere.
    """
    terminal = sys.stdout
    terminal.flush()
    saved = {descriptor: os.dup(descriptor) for descriptor in (1, 2) if os.isatty(descriptor)}
    for descriptor in saved:
        os.dup2(pager.fileno(), descriptor)
    pager.close()
    paged = io.TextIOWrapper(open_output(escape=False), encoding=terminal.encoding, errors="backslashreplace")
    sys.stdout = paged
    PAGED.update(saved)
    try:
        try:
            yield
        finally:
            paged.flush()
    except BrokenPipeError:
        give_up()
        paged.flush()
        raise
    finally:
        sys.stdout = terminal
        PAGED.clear()
        for descriptor, copy in saved.items():
            os.dup2(copy, descriptor)
            os.close(copy)


def _widen_pipe() -> None:
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):  # it is no pipe, or this user's pipes may hold no more
            if fcntl.fcntl(1, fcntl.F_GETPIPE_SZ) < PIPE:
                fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, PIPE)


def open_standard_streams() -> None:
    """Give descriptors 0 to 2 back where they are closed, so that no file is opened in their place.

    Standard input can then not be read, standard output not be written, and what is told on standard error is lost.
    What the locale cannot encode is written as an escape, on standard output as Python does it on standard error.
    """
    for descriptor, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # which takes the lowest descriptor that is free
    # Python has None where a descriptor was closed when it started, and print() takes that for standard output.
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False, errors="backslashreplace")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def give_up() -> None:
    """Send what is still buffered nowhere, so that the end of Python does not try again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
