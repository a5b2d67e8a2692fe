"""A server that has imported kdump and forks a process for each run, for tests that start kdump thousands of times.

A run is a separate process, with the arguments, environment, folder and descriptors that exec would give it. It saves
nine tenths of the processor time of a short run: the start of Python and the imports.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress

from testing import ROOT

BEFORE_MAIN = re.compile("PYTHON|LD_|LC_|LANG|TZ$|GLIBC_|MALLOC_|KDUMP_KERNEL$")
"""Environment variables that take effect before the first line of kdump: a forked process has those of the server."""
LATE = ("kdump.mcp_server", "kdump.report", "kdump.spark", "kdump.commands.mcp")
"""Modules that no server imports, because they import packages that start threads."""
OF_ARROW = ("kdump.arrow", "kdump.queries")
"""Modules that only the server for the words of ARROW imports, so a run loads PyArrow if a user's run would."""
ARROW = {"sql", "parquet", "arrow", "feather"}
"""Words of a command line that needs PyArrow."""
REGION = 1 << 16


class ForkServer:
    """A server process, which ends with the current process."""

    def __init__(self, *modules):
        self._environ = _read_before_main(os.environ)
        self._channel, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", "testing.fork_server", str(theirs.fileno()), *modules]
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # NumPy starts no thread
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        atexit.register(self._end)

    def _end(self):
        self._channel.close()
        self._process.wait()

    def suits(self, environ) -> bool:
        """Return whether a process with this environment would start as the server did."""
        return _read_before_main(environ) == self._environ

    def run(self, words, *, cwd, env, patch="", given=b"", timeout=None, **streams):
        """Run ``kdump WORDS``, write ``given`` to its standard input if that is a pipe, and return the result.

        The process runs the Python code ``patch`` first.

        ``streams`` (stdin, stdout, stderr), ``timeout`` and the result are those of :func:`subprocess.run`.
        """
        theirs, ours = [], {}
        for number, stream in enumerate(map(streams.get, ("stdin", "stdout", "stderr"))):
            if stream == subprocess.PIPE:
                read, write = os.pipe()
                theirs.append(read if number == 0 else write)
                ours[number] = write if number == 0 else read
            elif stream == subprocess.DEVNULL:
                theirs.append(os.open(os.devnull, os.O_RDWR))
            else:
                same = theirs[1] if stream == subprocess.STDOUT else number if stream is None else stream
                theirs.append(os.dup(same if isinstance(same, int) else same.fileno()))
        answers = self._start([words, str(cwd), env, _umask(), patch], theirs)
        return _Run(["kdump", *words], answers, ours, given).completed(timeout)

    def _start(self, run, streams) -> socket.socket:
        """Start a run; return a socket that receives its process id, and later its exit status."""
        ours, theirs = socket.socketpair()
        with theirs, tempfile.TemporaryFile() as file:  # arguments may be longer than a message
            file.write(json.dumps(run).encode())
            file.flush()
            try:
                socket.send_fds(self._channel, [b"r"], [file.fileno(), theirs.fileno(), *streams])
            finally:
                for fd in streams:
                    os.close(fd)
        return ours


class _Run:
    """A forked process; ``pipes`` maps its descriptors to the parent's ends of its pipes."""

    def __init__(self, words, answers, pipes, given):
        self._words, self._answers, self._given = words, answers, memoryview(given)
        number = answers.recv(8, socket.MSG_WAITALL)
        if not number:
            raise RuntimeError("the fork server has ended: its error stands above")
        self._pid = int.from_bytes(number, "big")
        self._read = {number: [] for number in pipes if number}
        self._status = b""
        self._open = selectors.DefaultSelector()
        self._open.register(answers, selectors.EVENT_READ)
        for number, fd in pipes.items():
            os.set_blocking(fd, False)
            self._open.register(fd, selectors.EVENT_READ if number else selectors.EVENT_WRITE, number)

    def completed(self, timeout) -> subprocess.CompletedProcess:
        """Read and write until the process has ended and its pipes are closed."""
        ends = None if timeout is None else time.monotonic() + timeout
        with self._answers, self._open:
            try:
                while self._open.get_map():
                    ready = self._open.select(None if ends is None else max(0, ends - time.monotonic()))
                    if not ready:
                        raise subprocess.TimeoutExpired(self._words, timeout)
                    for key, _ in ready:
                        self._go_on(key)
            finally:
                for key in list(self._open.get_map().values()):
                    if key.data is None:
                        os.kill(self._pid, signal.SIGKILL)
                    else:
                        self._close(key)
        read = {number: b"".join(regions) for number, regions in self._read.items()}
        status = int.from_bytes(self._status, "big", signed=True)
        return subprocess.CompletedProcess(self._words, status, read.get(1), read.get(2))

    def _go_on(self, key):
        if key.data is None:
            self._status = self._answers.recv(8, socket.MSG_WAITALL)
            self._open.unregister(key.fileobj)
        elif key.data:
            region = os.read(key.fd, REGION)
            self._read[key.data].append(region)
            if not region:
                self._close(key)
        else:
            try:
                self._given = self._given[os.write(key.fd, self._given[:REGION]) :] if self._given else self._given
            except BrokenPipeError:
                self._given = self._given[:0]
            if not self._given:
                self._close(key)

    def _close(self, key):
        self._open.unregister(key.fileobj)
        os.close(key.fd)


def _umask():
    umask = os.umask(0)
    os.umask(umask)
    return umask


def _read_before_main(environ):
    return {name: value for name, value in environ.items() if BEFORE_MAIN.match(name)}


_servers: dict[tuple[str, ...], ForkServer] = {}


def server(words=()) -> ForkServer:
    """Return the server for a command line: a new one if an environment variable has changed since the last start."""
    modules = OF_ARROW if ARROW.intersection(words) else ()
    if modules not in _servers or not _servers[modules].suits(os.environ):
        _servers[modules] = ForkServer(*modules)
    return _servers[modules]


def _serve(channel: socket.socket) -> None:
    """Fork a process for each message, and send its exit status, until the other side closes the channel."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the tests, and their end closes the channel
    signal.signal(signal.SIGCHLD, lambda *_: None)
    ended, wakes = socket.socketpair()
    ended.setblocking(False)
    wakes.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    running: dict[int, int] = {}  # process id -> the socket that waits for its exit status
    ready = selectors.DefaultSelector()
    ready.register(channel, selectors.EVENT_READ)
    ready.register(ended, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is ended:
                ended.recv(REGION)
                _answer_ended(running)
                continue
            message, fds, _, _ = socket.recv_fds(channel, 1, 5)
            if not message:
                return
            run, answers, *streams = fds
            process = os.fork()
            if not process:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for ours in (channel, ended, wakes, ready):
                    ours.close()
                for fd in (answers, *running.values()):
                    os.close(fd)
                _run(run, *streams)
                return
            for fd in (run, *streams):
                os.close(fd)
            running[process] = answers
            _send(answers, process)


def _answer_ended(running: dict[int, int]) -> None:
    """Send the exit status of each process that has ended."""
    while running:
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
            return
        answers = running.pop(process)
        _send(answers, os.waitstatus_to_exitcode(status))
        os.close(answers)


def _send(answers: int, number: int) -> None:
    with suppress(BrokenPipeError):  # the caller had no more time
        os.write(answers, number.to_bytes(8, "big", signed=True))


def _run(run: int, *streams: int) -> None:
    """Take over the arguments, environment, folder and descriptors of a run, and run kdump."""
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        old = getattr(sys, name)
        new = os.fdopen(old.fileno(), mode, encoding=old.encoding, errors=old.errors, closefd=False)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    sys.stderr.reconfigure(line_buffering=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with os.fdopen(run, "rb") as file:
        file.seek(0)
        words, cwd, environ, umask, patch = json.load(file)
    os.umask(umask)
    os.chdir(cwd)
    for name in os.environ.keys() - environ.keys():
        del os.environ[name]
    os.environ.update(environ)
    sys.path[0] = cwd
    main = importlib.import_module("kdump.__main__")
    sys.modules["__main__"] = main
    sys.argv = [main.__file__, *words]
    exec(patch, {})
    main.run()


def import_all(*also) -> None:
    """Import the modules of kdump that need no other package, and the modules ``also``."""
    import kdump

    late = LATE + tuple(name for name in OF_ARROW if name not in also)
    for module in pkgutil.walk_packages(kdump.__path__, "kdump."):
        if not module.name.startswith(late) and not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as missing:  # some modules need a compiled kernel or a package of an extra
                if not also and not (missing.name or "").startswith("kdump.kernel."):
                    raise


if __name__ == "__main__":
    number, *modules = sys.argv[1:]
    import_all(*modules)
    gc.collect()
    gc.freeze()  # a process that collects garbage does not copy the pages of what is imported
    sys.modules.pop("atexit")  # kdump ends at once unless this module is imported
    with socket.socket(fileno=int(number)) as tests:
        _serve(tests)
