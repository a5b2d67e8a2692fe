"""Object stores and HDFS (s3, gs, hdfs, abfs) as places of files: :class:`kdump.log_dirs.files.Files`.

After errors that may be temporary, most operations are retried (:class:`Retries`). The pauses are those of Hadoop's
S3A client (``fs.s3a.retry.interval``: 500 ms, doubled each time), up to :data:`LONGEST_PAUSE`. kdump stops after
:func:`seconds`; S3A stops at about the time of :data:`SECONDS`, after seven retries (``fs.s3a.retry.limit``).
"""

from __future__ import annotations

import os
import posixpath
import re
import time
from contextlib import suppress
from enum import Enum
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar

from kdump.errors import KdumpError, StoreError, UsageError
from kdump.log_dirs.files import Entry, Files, OpenSource, matches
from kdump.log_dirs.local import LOCAL
from kdump.primitives.compression import DEFAULT_LIMIT
from kdump.primitives.messages import SCHEME, message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_URI: Final = r"(?P<scheme>[a-z][a-z0-9+.-]*):/(?P<rest>.*)"
"""Matches a URI. The patterns of this module are compiled at first use, because most commands read local paths."""
HADOOP_NAMES: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
"""Hadoop's name of a scheme -> Arrow's name."""
_SCHEMES: Final = frozenset({"s3", "gs", "hdfs", "viewfs", "abfs", "abfss", "file", *HADOOP_NAMES})
_CREDENTIALS: Final = rf"(?P<scheme>{SCHEME}:/+)(?:[^/@:]*:(?(ported)(?!\d+(?:/|\Z)))[^@]*@(?:[^/@]*@)*|[^/@]*@)"
_OPTION: Final = r"\?[^/?]*(?:=|%3[dD])"
_BLOCK: Final = 1 << 20


def places(
    paths: Iterable[str], place_of: Callable[[str], tuple[Files, str]] | None = None
) -> Iterator[tuple[Files, list[str]]]:
    """Group consecutive ``paths`` by place: yield (place, paths). ``place_of``: :func:`place` or :func:`as_written`."""
    group: list[str] = []
    current: Files = LOCAL
    for path in paths:
        files, inside = (place_of or place)(path)
        if group and files != current:
            yield current, group
            group = []
        current = files
        group.append(inside)
    if group:
        yield current, group


def _uri(path: str) -> re.Match[str] | None:
    return re.match(_URI, path, re.DOTALL) if ":/" in path else None


def place(path: str) -> tuple[Files, str]:
    """Return the place of a path or URI, and the path in this place. Local paths become absolute, except "".

    Raises UsageError for a wrong URI or scheme, StoreError if the store does not answer, KdumpError without PyArrow.
    """
    found = _uri(path)
    if found is None:
        return LOCAL, posixpath.abspath(path) if path else ""
    if found["scheme"] == "file":
        from urllib.parse import unquote

        return LOCAL, unquote(re.sub(r"^file:(?://[^/]*)?", "", path))  # a ? is part of a glob
    return RemoteFiles.of(path)


def as_written(path: str) -> tuple[Files, str]:
    """Return the place of a path or URI, and the path in this place. Local paths stay as written.

    A path is a URI if kdump opens its scheme and no local file has this name. Raises like :func:`place`.
    """
    found = _uri(path)
    if found is None or found["scheme"] not in _SCHEMES or LOCAL.look(path) is not None:
        return LOCAL, path
    return place(path)


def is_remote(path: str) -> bool:
    """Return whether a path is a URI with the scheme of a store that kdump opens."""
    found = _uri(path)
    return found is not None and found["scheme"] in _SCHEMES - {"file"}


def without_secret(path: str) -> str:
    """Return a path, or a URI (scheme in lower case) without its credentials and options, for messages.

    A secret may have ``/``, ``@``, ``?`` or a space that the user did not encode; Arrow refuses such a URI. A ``?``
    without the name of an option after it is part of a glob, as in :meth:`RemoteFiles.of`.
    """
    if _uri(path) is None:
        return path
    found = re.match(_CREDENTIALS, path, re.DOTALL | re.IGNORECASE)
    bare = path if found is None else found["scheme"] + path[found.end() :]
    return bare.partition("?")[0] if re.search(_OPTION, bare) else bare


def shown_paths(paths: Iterable[str]) -> str:
    """Return the user's paths, separated by commas, without credentials and options, for messages."""
    return ", ".join(map(without_secret, paths))


def is_there(shown: str, paths: Iterable[str]) -> bool:
    """Return whether a file exists in one of the places of ``paths``. ``shown`` is its shown path."""
    for files, _ in places(paths):
        if shown.startswith(files.shown("")) and files.look(shown.removeprefix(files.shown(""))) is not None:
            return True
    return False


class RemoteFiles:
    """A ``pyarrow.fs`` file system (:mod:`kdump.log_dirs.stores`). Its shown paths begin with ``prefix``.

    Methods retry after errors (:class:`Retries`), then raise StoreError. Those that raise OSError try once.
    """

    def __init__(self, system: Any, prefix: str, retries: Retries | None = None) -> None:
        self._system, self._prefix = system, prefix
        self._retries = retries or Retries()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteFiles) and (self._prefix, self._system) == (other._prefix, other._system)

    def __hash__(self) -> int:
        return hash(self._prefix)

    @classmethod
    def of(cls, uri: str) -> tuple[RemoteFiles, str]:
        """Return the place of ``uri`` and the path in it. Text such as ``?name=value`` has Arrow's options."""
        try:
            from pyarrow import ArrowInvalid, ArrowNotImplementedError
        except ImportError:
            raise KdumpError(
                f"pyarrow is not installed, but {uri.partition(':')[0]} needs it: pip install pyarrow"
            ) from None

        from urllib.parse import urlsplit

        from kdump.log_dirs import stores

        scheme, _, rest = uri.partition(":")
        scheme = HADOOP_NAMES.get(scheme, scheme)
        bare, query, arguments = rest.partition("?") if re.search(r"\?\w+=", rest) else (rest, "", "")
        glob = re.search(r"[*?[]", bare)  # Arrow does not accept globs: the glob is added to the path below
        folder = bare[: bare.rfind("/", 0, glob.start()) + 1] if glob else bare
        place, shown = f"{folder}{query}{arguments}", without_secret(uri)
        if glob and folder in ("/", "//"):
            raise UsageError(
                f"{shown}: the name of a bucket cannot contain *, ? or [. In a secret, write %2A, %3F and %5B"
            )
        try:
            system, path = Retries().call(shown, lambda: stores.client(scheme, place))  # the store has not answered yet
        except (ArrowInvalid, ArrowNotImplementedError) as reason:
            raise UsageError(f"{shown}: {str(reason).replace(f'{scheme}:{place}', shown)}") from reason
        except StoreError as error:
            cause = error.__cause__
            if isinstance(cause, OSError) and kind_of(cause) is ErrorKind.FINAL:
                raise UsageError(f"{shown}: {cause}") from cause
            raise
        if glob:
            path = path.rstrip("/") + "/" + bare[len(folder) :]
        host = urlsplit(uri).netloc
        prefix = f"{scheme}://" + (f"{host.rpartition('@')[2]}/" if scheme in ("hdfs", "viewfs") else "")
        return cls(system, prefix, Retries(f"{scheme}://{host}?{arguments}")), path.rstrip("/")

    def shown(self, path: str) -> str:
        return self._prefix + path.lstrip("/")

    def look(self, path: str) -> Entry | None:
        from pyarrow.fs import FileType

        info = self._retries.call(self.shown(path), lambda: self._system.get_file_info(path))
        return None if info.type == FileType.NotFound else self._entry(info)

    def entries(self, folder: str) -> list[Entry]:
        from pyarrow.fs import FileSelector

        found = self._retries.call(self.shown(folder), lambda: self._system.get_file_info(FileSelector(folder)))
        return sorted(map(self._entry, found))

    def _entry(self, info: Any) -> Entry:
        from pyarrow.fs import FileType

        folder = info.type == FileType.Directory
        modified = None if info.mtime_ns is None else info.mtime_ns // 1_000_000
        return Entry(info.base_name, info.path, folder, 0 if folder else info.size, (self._prefix, info.path), modified)

    def open(self, path: str) -> OpenSource:
        return RemoteSource(self._system, path, self.shown(path), self._retries)

    def put(self, source: BinaryIO, path: str) -> None:
        """Write all bytes of ``source``, which must be seekable, to a file. Each retry starts at the first byte."""
        self._retries.call(self.shown(path), lambda: self._put(source, path), "written")

    def put_once(self, data: bytes, path: str) -> None:
        """Write a file in one try. Raises OSError."""
        self._put(BytesIO(data), path)
        self._retries.answered()

    def _put(self, source: BinaryIO, path: str) -> None:
        source.seek(0)
        opened = self._system.open_output_stream(path)
        try:
            with opened as out:
                while block := source.read(_BLOCK):
                    out.write(block)
        except BaseException:
            with suppress(OSError):  # report the write error, not an error of delete()
                self.delete(path)  # PyArrow completes a file at the end of the block, also after an error
            raise

    def copy(self, path: str, target: str) -> None:
        """Copy a file within the store, in one try; replace ``target``. Raises OSError."""
        self._system.copy_file(path, target)

    def delete(self, path: str) -> None:
        """Delete a file in one try. Raises OSError."""
        self._system.delete_file(path)

    def glob(self, pattern: str) -> list[str]:
        return matches(self, pattern)


class RemoteSource:
    """A file of a ``pyarrow.fs`` file system. The try after an error opens it again: StoreError if its size changed."""

    def __init__(self, system: Any, path: str, name: str, retries: Retries) -> None:
        self.name, self.limit = name, DEFAULT_LIMIT
        self._system, self._path, self._retries = system, path, retries
        self._file, self.size = retries.call(name, self._opened)
        self._whole, self._has_failed = self.size, False

    def _opened(self) -> tuple[Any, int]:
        file = self._system.open_input_file(self._path)
        return file, file.size()

    def __enter__(self) -> RemoteSource:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, position: int, size: int) -> bytes:
        wanted = max(0, min(size, self.size - position))
        return self._retries.call(self.name, lambda: self._read(position, wanted)) if wanted else b""

    def _read(self, position: int, size: int) -> bytes:
        """Read in one try. Raises OSError, also if the response ends early, and StoreError if the size has changed."""
        if self._has_failed:
            self._file, now = self._opened()
            if now != self._whole:
                raise StoreError(self.name, f"its size changed from {self._whole} to {now} bytes while kdump read it")
            self._has_failed = False
        try:
            data: bytes = self._file.read_at(size, position)
            if len(data) != size:
                raise OSError(f"the response ended after {len(data)} of {size} bytes")
        except OSError as reason:
            self._has_failed = True
            raise type(reason)(f"byte {position}: {reason}") from reason
        return data


T = TypeVar("T")

VARIABLE: Final = "KDUMP_STORE_SECONDS"
"""The environment variable that replaces :data:`SECONDS`."""
SECONDS: Final = 60.0
"""Default: no retry of an operation starts later than this number of seconds after its first error."""
RIGHTS_SECONDS: Final = 20.0
"""Maximum number of seconds of retries if access is denied, for example while a key is replaced."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0


class ErrorKind(Enum):
    TRANSPORT = "no answer, or an error that may be temporary"
    RIGHTS = "access denied"
    FINAL = "each try gives the same error"


_FINAL: Final = (
    r"NO_SUCH_|INVALID_OBJECT_STATE|RESOURCE_NOT_FOUND|NotFound\b|HTTP (404|405|410)\b|[Bb]ucket '.*' not found"
    r"|Unable to load lib(hdfs|jvm)|INVALID_(URI|BUCKET_NAME)|MethodNotAllowed"
)
"""Matches errors that are not retried: a missing bucket, object or library, an object in an archive class (Glacier)."""
_RIGHTS: Final = (
    r"ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|INVALID_CLIENT_TOKEN_ID|INVALID_SIGNATURE"
    r"|EXPIRED_TOKEN|ExpiredToken|MISSING_AUTHENTICATION_TOKEN|REQUEST_EXPIRED|UNRECOGNIZED_CLIENT"
    r"|HTTP (401|403)\b|UNAUTHENTICATED|PERMISSION_DENIED|AccessControlException|AuthenticationException"
)


def _is_unknown(error: Exception) -> bool:
    """Return whether Arrow raised its general error for a failure of a store's client, such as Azure's login."""
    from pyarrow import ArrowException

    return type(error) is ArrowException


def kind_of(error: Exception) -> ErrorKind:
    """Return the kind of an error of ``pyarrow.fs``, by its class and its text, which comes from the store's client."""
    text = str(error)
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError) or re.search(_FINAL, text):
        return ErrorKind.FINAL
    if isinstance(error, PermissionError) or re.search(_RIGHTS, text):
        return ErrorKind.RIGHTS
    return ErrorKind.TRANSPORT


def _note(text: str) -> None:
    message("note", text)


notify: Callable[[str], None] = _note
"""The function that prints a note before the first retry of an operation. A quiet command replaces it."""


def seconds() -> float:
    """Return the number of seconds for which operations are retried: from the environment (VARIABLE), or SECONDS."""
    try:
        return max(0.0, float(os.environ.get(VARIABLE, SECONDS)))
    except ValueError:
        return SECONDS


_ANSWERED: Final[set[str]] = set()
"""The URIs, without paths, of the stores that have answered in this process."""


class Retries:
    """Retries the operations of one store after TRANSPORT and RIGHTS errors. Ctrl-C ends a pause.

    If the last try of an operation fails, later errors of its kind are not retried: TRANSPORT errors until an operation
    succeeds, RIGHTS errors for good. Before the first success no RIGHTS error is retried: the keys are wrong.
    ``store`` is the URI without a path; a success of another object with the same URI counts.
    """

    def __init__(self, store: str = "") -> None:
        self._store = store
        self._has_answered = store in _ANSWERED
        self._given_up: set[ErrorKind] = set()

    def __getstate__(self) -> dict[str, object]:
        return {"_store": "", "_has_answered": self._has_answered, "_given_up": set()}

    def call(self, name: str, what: Callable[[], T], done: str = "read") -> T:
        """Return the result of ``what``. An OSError or plain ArrowException is retried or becomes a StoreError."""
        began: float | None = None
        pause = FIRST_PAUSE
        while True:
            try:
                result = what()
            except Exception as error:
                if not (isinstance(error, OSError) or _is_unknown(error)):
                    raise
                kind, now = kind_of(error), time.monotonic()
                began = now if began is None else began
                most = min(seconds(), RIGHTS_SECONDS) if kind is ErrorKind.RIGHTS else seconds()
                at_once = kind is ErrorKind.FINAL or kind in self._given_up
                at_once = at_once or (kind is ErrorKind.RIGHTS and not self._has_answered)
                if at_once or now - began + pause > most:
                    raise self._last(f"could not be {done}", name, kind, error, now - began) from error
                if pause == FIRST_PAUSE:
                    notify(f"{name}: {error}; retrying for up to {most:.0f} s")
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                self.answered()
                return result

    def answered(self) -> None:
        """Note a success: from now on retry RIGHTS errors, unless given up, and TRANSPORT errors again."""
        if not self._has_answered and self._store:
            _ANSWERED.add(self._store)
        self._has_answered = True
        self._given_up.discard(ErrorKind.TRANSPORT)

    def _last(self, what: str, name: str, kind: ErrorKind, error: Exception, waited: float) -> StoreError:
        if kind is not ErrorKind.FINAL:
            self._given_up.add(kind)
        if isinstance(error, FileNotFoundError):
            return StoreError(name, "No such file or directory")
        tried = f" (tried for {waited:.0f} s)" if waited >= 1 else ""
        return StoreError(name, f"{what}: {error}{tried}")
