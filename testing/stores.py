"""A file system with the methods of ``pyarrow.fs`` over a local folder; a test can make its operations fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class FlakyStore:
    """The files below ``root``. Before each operation ``fault`` is called with its name and path, and may raise.

    The names are ``look``, ``list``, ``open``, ``read``, ``create``, ``write`` and ``copy``.

    ``short`` is called with the path and the size of a read, and returns how many bytes the store gives.
    """

    def __init__(
        self,
        root: object,
        fault: Callable[[str, str], None] = lambda *_: None,
        short: Callable[[str, int], int] = lambda _, size: size,
    ) -> None:
        from pyarrow import fs

        self._system = fs.SubTreeFileSystem(str(root), fs.LocalFileSystem())
        self.fault, self.short = fault, short

    def get_file_info(self, what: Any) -> Any:
        """Return the FileInfo of a path, or of all files in a folder."""
        is_path = isinstance(what, str)
        self.fault("look" if is_path else "list", what if is_path else what.base_dir)
        return self._system.get_file_info(what)

    def open_input_file(self, path: str) -> _FlakyFile:
        self.fault("open", path)
        return _FlakyFile(self, path, self._system.open_input_file(path))

    def open_output_stream(self, path: str) -> _FlakyStream:
        """Create or replace a file; after a fault half of it exists."""
        self.fault("create", path)
        self._system.create_dir(path.rpartition("/")[0])
        return _FlakyStream(self, path, self._system.open_output_stream(path))

    def copy_file(self, path: str, target: str) -> None:
        self.fault("copy", target)
        self._system.copy_file(path, target)

    def delete_file(self, path: str) -> None:
        self._system.delete_file(path)


class _FlakyStream:
    def __init__(self, store: FlakyStore, path: str, stream: Any) -> None:
        self._store, self._path, self._stream = store, path, stream

    def write(self, data: bytes) -> None:
        self._stream.write(data[: len(data) // 2])
        self._store.fault("write", self._path)
        self._stream.write(data[len(data) // 2 :])

    def __enter__(self) -> _FlakyStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()


class _FlakyFile:
    def __init__(self, store: FlakyStore, path: str, file: Any) -> None:
        self._store, self._path, self._file = store, path, file

    def size(self) -> int:
        return int(self._file.size())

    def read_at(self, size: int, position: int) -> bytes:
        self._store.fault("read", self._path)
        return bytes(self._file.read_at(self._store.short(self._path, size), position))

    def close(self) -> None:
        self._file.close()


class Outage:
    """Raises ``error`` from the operation ``first`` on, ``count`` times (None: always).

    It counts only operations in ``names``, if given, on paths that contain ``part``.
    """

    def __init__(
        self, error: Callable[[], OSError], *, first: int = 0, count: int | None = 1, names: str = "", part: str = ""
    ) -> None:
        self._error, self._first, self._count, self._names, self._part = error, first, count, names.split(), part
        self.met = 0
        """Operations so far."""
        self.failed = 0
        """Those that failed."""

    def __call__(self, name: str, path: str) -> None:
        if (self._names and name not in self._names) or self._part not in path:
            return
        self.met += 1
        if self.met > self._first and (self._count is None or self.failed < self._count):
            self.failed += 1
            raise self._error()


class Clock:
    """A replacement for the module ``time``: a pause takes no time, and is added to ``pauses`` (seconds)."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        """Return the seconds of all pauses."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.pauses.append(seconds)
        self.now += seconds
