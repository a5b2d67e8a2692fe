"""Retries operations of a store over a network, with pauses, before an error is raised.

The pauses are those of Hadoop's S3A client (``fs.s3a.retry.interval``: 500 ms, doubled each time). S3A stops after
seven retries (``fs.s3a.retry.limit``), about a minute; kdump stops after :data:`SECONDS`.
"""

from __future__ import annotations

import os
import re
import time
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeVar

from kdump.errors import StoreError
from kdump.primitives.messages import message

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

VARIABLE: Final = "KDUMP_STORE_SECONDS"
"""The environment variable that replaces :data:`SECONDS`."""
SECONDS: Final = 60.0
"""An operation is retried for this number of seconds after its first error."""
RIGHTS_SECONDS: Final = 20.0
"""Maximum number of seconds of retries if access is denied. A key may be replaced, or a new policy take effect."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds between two tries. Each pause is twice as long as the previous one."""


class ErrorKind(Enum):
    """The kind of a store's error."""

    TRANSPORT = "no answer, or an answer that another try may change"
    RIGHTS = "access denied"
    FINAL = "no other try changes it"


_FINAL: Final = re.compile(
    r"NO_SUCH_|INVALID_OBJECT_STATE|RESOURCE_NOT_FOUND|NotFound\b|HTTP (404|405|410)\b|[Bb]ucket '.*' not found"
    r"|Unable to load lib(hdfs|jvm)|INVALID_(URI|BUCKET_NAME)|MethodNotAllowed"
)
"""Errors for a missing bucket or object, an object in an archive class (Glacier), or a missing library."""
_RIGHTS: Final = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|INVALID_CLIENT_TOKEN_ID|INVALID_SIGNATURE"
    r"|EXPIRED_TOKEN|ExpiredToken|MISSING_AUTHENTICATION_TOKEN|REQUEST_EXPIRED|UNRECOGNIZED_CLIENT"
    r"|HTTP (401|403)\b|UNAUTHENTICATED|PERMISSION_DENIED|AccessControlException"
)


def kind_of(error: OSError) -> ErrorKind:
    """Return the kind of an error of ``pyarrow.fs``, by its class and its text, which comes from the store's client."""
    text = str(error)
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError) or _FINAL.search(text):
        return ErrorKind.FINAL
    if isinstance(error, PermissionError) or _RIGHTS.search(text):
        return ErrorKind.RIGHTS
    return ErrorKind.TRANSPORT


def _note(text: str) -> None:
    message("note", text)


notify: Callable[[str], None] = _note
"""The function that prints a note before the first retry of an operation. A quiet command replaces it."""


def seconds() -> float:
    """Return the number of seconds for which an operation is retried."""
    try:
        return max(0.0, float(os.environ.get(VARIABLE, SECONDS)))
    except ValueError:
        return SECONDS


class Retries:
    """Retries the operations of one store. Ctrl-C ends a pause.

    After an operation has failed in all its tries, later operations get only one try. After a TRANSPORT error this ends
    when the store answers again; after a RIGHTS error it does not end. A RIGHTS error before the first answer is not
    retried, because keys that never worked are wrong.
    """

    def __init__(self) -> None:
        self._has_answered = False
        self._given_up: set[ErrorKind] = set()

    def __getstate__(self) -> dict[str, object]:
        return {"_has_answered": self._has_answered, "_given_up": set()}

    def call(self, name: str, what: Callable[[], T], done: str = "read") -> T:
        """Return the result of ``what``, which may raise OSError. Raises StoreError after the last try.

        The error names the file ``name``, and says that it could not be ``done``: "read" or "written".
        """
        began: float | None = None
        pause = FIRST_PAUSE
        while True:
            try:
                result = what()
            except OSError as error:
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
                self._has_answered = True
                self._given_up.discard(ErrorKind.TRANSPORT)
                return result

    def _last(self, what: str, name: str, kind: ErrorKind, error: OSError, waited: float) -> StoreError:
        if kind is not ErrorKind.FINAL:
            self._given_up.add(kind)
        if isinstance(error, FileNotFoundError):
            return StoreError(name, "No such file or directory")
        tried = f" (tried for {waited:.0f} s)" if waited >= 1 else ""
        return StoreError(name, f"{what}: {error}{tried}")
