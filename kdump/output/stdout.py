"""Standard output in bytes: its errors, escaped control characters, the pager. Reopens closed standard streams."""

from __future__ import annotations

import codecs
import fcntl
import io
import os
import sys
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, BinaryIO, Final, cast

from kdump.errors import KdumpError, UsageError
from kdump.primitives.terminal import PAGED, harmless

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from _typeshed import ReadableBuffer


BUFFER: Final = 1 << 18
PIPE: Final = 1 << 20
"""The size of a pipe in bytes, if the system allows it. With the usual 64 KiB writer and reader wait for each other."""


class OutputError(KdumpError):
    """Standard output cannot be written, for example to a full disk (exit status 1); not for a closed pipe."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(f"standard output cannot be written: {reason.strerror or reason}")


class _Raw(io.RawIOBase):
    """Writes to file descriptor 1. ``escape``: escape control characters. ``paint`` returns a line with colours."""

    def __init__(self, *, escape: bool, paint: Callable[[bytes], bytes] | None) -> None:
        self._paint = paint
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace") if escape else None
        """Escapes bytes that are not UTF-8. It keeps an incomplete character until the next write completes it."""
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
            except KeyboardInterrupt:  # a part may be written: do not write the buffer again
                self._interrupted = True
                raise

    def close(self) -> None:
        """Write the incomplete last character and line."""
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
            try:
                while done < view.nbytes:
                    done += os.write(1, view[done:])
            except BrokenPipeError:
                raise
            except OSError as reason:
                raise OutputError(reason) from reason

    def _painted(self, data: bytes, paint: Callable[[bytes], bytes]) -> bytes:
        """Colour complete lines. Keep an incomplete line for the next call."""
        *lines, self._line = (self._line + data).split(b"\n")
        return b"".join(paint(line) + b"\n" for line in lines)


def open_output(*, escape: bool = True, paint: Callable[[bytes], bytes] | None = None) -> BinaryIO:
    """Return buffered standard output as a context manager. It does not close file descriptor 1.

    With ``escape`` control characters (except tab and newline), and bytes that are not UTF-8, are escaped on a terminal
    or pager (``\\x1b``). ``paint`` colours each complete line, without its newline, also in a pipe or file. Other
    bytes are written unchanged. Writing raises OutputError, and BrokenPipeError if the reader has closed the pipe.
    """
    _widen_pipe()
    return cast("BinaryIO", io.BufferedWriter(_Raw(escape=escape and is_terminal(), paint=paint), BUFFER))


def is_terminal() -> bool:
    """Return whether standard output goes to a terminal, directly or through a pager."""
    return 1 in PAGED or os.isatty(1)


@contextmanager
def sent_to(pager: IO[bytes]) -> Iterator[None]:
    """Send standard output and standard error to a pager during the block, each only if it is a terminal.

    Raises BrokenPipeError if output is left when the pager has ended; this output is discarded.
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
        with suppress(OSError):  # not a pipe, or the size is above the user's limit
            if fcntl.fcntl(1, fcntl.F_GETPIPE_SZ) < PIPE:
                fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, PIPE)


def open_standard_streams() -> None:
    """Open closed descriptors 0 to 2 again, so that no other file gets their numbers.

    Reading a reopened standard input fails, and so does writing a reopened standard output. A reopened standard error
    discards its text. Standard output escapes characters that the locale cannot encode, like Python's standard error.
    """
    for descriptor, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest free descriptor
    # Python sets a stream to None if its descriptor was closed at the start, and print() then uses standard output.
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False, errors="backslashreplace")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def give_up() -> None:
    """Discard standard output from now on, also bytes in buffers: Python would write them when it exits."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


PAGERS: Final = ("KDUMP_PAGER", "PAGER")
"""Variables that name the pager: the first that is set, else less. Empty, ``cat``, not installed: no pager."""
PAGER_DEFAULTS: Final = {"LESS": "FRX", "LV": "-c"}
"""Options of pagers, unless the user sets others: less ends if the text fits on the screen."""


@contextmanager
def paged(*, wanted: bool = True) -> Iterator[None]:
    """Show the output of the block on a terminal through the user's pager, as git does.

    Standard error goes to the pager too, if it is a terminal. Raises BrokenPipeError if output is left when the pager
    ends, and UsageError for a malformed variable. Without a terminal or pager, output is not changed.
    """
    process = _started_pager() if wanted and is_terminal() else None
    if process is None or process.stdin is None:
        yield
        return
    try:
        with sent_to(process.stdin):
            yield
    finally:
        _wait(process)


def _started_pager() -> subprocess.Popen[bytes] | None:
    import shlex
    import shutil
    import subprocess

    variable = next((name for name in PAGERS if name in os.environ), "")
    try:
        words = shlex.split(os.environ.get(variable, "less"))
    except ValueError as reason:
        raise UsageError(f"the environment variable {variable} is not a command: {reason}") from None
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        return None
    return subprocess.Popen(words, stdin=subprocess.PIPE, env=PAGER_DEFAULTS | os.environ)


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Wait until the user leaves the pager. Ctrl-C does not end a pager, so it does not end this wait."""
    while True:
        try:
            process.wait()
        except KeyboardInterrupt:
            continue
        return
