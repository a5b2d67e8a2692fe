"""Errors, warnings, exit statuses, :class:`Reporter` (the callbacks of readers), and functions for texts in messages.

There are three main kinds of errors: wrong usage, unreadable files, and damaged bytes. A DamageError has a position;
readers of segments turn it into a region (:class:`kdump.segments.regions.Damage`).
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

LONGEST_VALUE: Final = 100
"""Longest value that an error or a finding prints completely, in characters."""
DISK_FAILS: Final = frozenset({errno.EIO, errno.EBADMSG, getattr(errno, "EUCLEAN", errno.EIO)})
"""Error numbers of a failing disk, and of wrong checksums in a file system (XFS, ext4; Btrfs returns EIO)."""
_SHOWN: Final = 60


class ExitStatus:
    """The exit statuses besides 0. If several apply, the first of 1, 3, 4 and 5 is returned."""

    UNREADABLE: Final = 1
    USAGE: Final = 2
    DAMAGED: Final = 3
    """Damage, or data at risk."""
    DERIVED: Final = 4
    """Only derived files are wrong: they can be rebuilt from the log."""
    ABSENT: Final = 5
    """The requested record is not in the files."""
    INTERRUPTED: Final = 130
    """Ctrl-C (128 + SIGINT, as in shells)."""
    CLOSED_PIPE: Final = 141
    """The reader of standard output closed the pipe (128 + SIGPIPE, as in shells)."""


class KdumpError(Exception):
    """Base of the errors that kdump reports to its user."""


class UsageError(KdumpError):
    """Wrong usage, such as a wrong option or value (exit status 2)."""


class UnreadableError(KdumpError):
    """A file or folder cannot be read or written (exit status 1). ``errno`` is the number of an OSError, or None."""

    def __init__(self, path: object, reason: str, hint: str = "") -> None:
        super().__init__(f"{path}: {reason}" + (f" ({hint})" if hint else ""))
        self.path, self.reason, self.hint = path, reason, hint
        self.errno: int | None = None

    @classmethod
    def of(cls, path: object, error: Exception, where: str = "") -> Self:
        """Return the error for an exception. ``where`` is the beginning of the reason."""
        made = cls(path, f"{where}{getattr(error, 'strerror', None) or error}")
        made.errno = getattr(error, "errno", None)
        return made

    def on(self, path: object) -> Self:
        made = type(self)(path, self.reason, self.hint)
        made.errno = self.errno
        return made

    @property
    def is_denied(self) -> bool:
        """Whether the system denied access (EACCES): a broker's account may have the permission."""
        return self.errno == errno.EACCES

    @property
    def is_of_disk(self) -> bool:
        return self.errno in DISK_FAILS

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path, self.reason, self.hint), {"errno": self.errno}


class StoreError(UnreadableError):
    """A store in the network lacks the object, changed it meanwhile, or failed after retries: no damage."""


class PartlyUnreadableError(UnreadableError):
    """A part of a segment in remote storage is damaged or missing (a chunk, the indexes); the other parts are read."""


class IncompleteCopyError(UnreadableError):
    """A copy of a segment in remote storage is incomplete: an object is absent, or the manifest is wrong."""


class FailingDiskError(UnreadableError):
    """A local disk opened a file, but returned an I/O error for some bytes (EIO, EUCLEAN or EBADMSG)."""


class DamageError(KdumpError):
    """Bytes that do not follow the format.

    ``kind`` is a stable word for programs ("crc", "record size", "codec"). ``reason`` is a sentence for people.
    ``position`` is the byte of the wrong field or structure. A parser counts from its own start; :meth:`at` returns the
    damage with the position in the file. ``expected`` and ``found`` are values of the field (see :func:`brief`).
    """

    def __init__(
        self,
        kind: str,
        reason: str,
        *,
        position: int = 0,
        expected: object = None,
        found: object = None,
    ) -> None:
        super().__init__(reason)
        self.kind, self.reason = kind, reason
        self.position, self.expected, self.found = position, brief(expected), brief(found)

    def __reduce__(self) -> tuple[object, ...]:
        fields = {"position": self.position, "expected": self.expected, "found": self.found}
        return type(self), (self.kind, self.reason), fields

    def at(self, base: int) -> DamageError:
        """Return the same damage with ``base`` added to its position."""
        return type(self)(
            self.kind, self.reason, position=base + self.position, expected=self.expected, found=self.found
        )

    def __str__(self) -> str:
        known = {"expected": self.expected, "found": self.found}
        values = ", ".join(f"{word} {value}" for word, value in known.items() if value is not None)
        return f"byte {self.position}: {self.reason}" + (f" ({values})" if values else "")


class LimitError(DamageError):
    """A size or number above a limit, for example a batch whose uncompressed size is gigabytes."""


class DamageWarning(UserWarning):
    """The warning of a Python function that skips damaged bytes, or does not use a wrong index."""


class NoteWarning(UserWarning):
    """The warning of a Python function for a note, such as on a requested topic that is not in the paths."""


def warn(text: str, kind: type[UserWarning]) -> None:
    """Show a warning at the line that called kdump."""
    import sys
    import warnings

    frame, level = sys._getframe(1), 2  # Python 3.11 has no other way to skip the frames of a package
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "kdump":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level)


def warn_of_damage(texts: Sequence[str]) -> None:
    if texts:
        more = (
            f" (the first of {len(texts)} reports of damage; the attribute .damage of the result lists all of them)"
            if len(texts) > 1
            else ""
        )
        warn(texts[0] + more, DamageWarning)


def reports(texts: Sequence[str]) -> str:
    """Return the text ", 2 reports of damage" for the repr of a result; empty if ``texts`` is empty."""
    return f", {many(len(texts), 'report')} of damage" if texts else ""


def brief(value: object) -> object:
    """Return a value for a message: "5 zero bytes" for a text of NULs; cut above :data:`LONGEST_VALUE` characters."""
    text = str(value)
    return _zeros(text) or (value if len(text) <= LONGEST_VALUE else _cut(text, text))


def many(count: int, what: str, more: str = "") -> str:
    """Return a number and its noun; ``more`` is an irregular plural.

    Numbers of bytes have no separators, because readers compare them with positions and with sizes of other tools.
    """
    return f"{count if what == 'byte' else f'{count:,}'} {what if count == 1 else more or what + 's'}"


def many_are(count: int, what: str) -> str:
    """Return the beginning of a sentence: "1 record is", "2 records are"."""
    return f"{many(count, what)} {'is' if count == 1 else 'are'}"


def offsets_text(first: int | None, last: int | None) -> str:
    return f"offset {first}" if first == last else f"offsets {first} to {last}"


def offsets_are(first: int, last: int) -> str:
    """Return the beginning of a sentence: "offset 5 is", "offsets 5 to 9 are"."""
    return f"{offsets_text(first, last)} {'is' if first == last else 'are'}"


def first_of(names: Sequence[str], most: int, count: int | None = None) -> str:
    """Return the first ``most`` names and the number of the others: "a, b and 3 more". ``count``: of all names."""
    count = len(names) if count is None else count
    more = f" and {count - most} more" if count > most else ""
    return f"{', '.join(names[:most])}{more}"


def quoted(value: object) -> str:
    """Return the repr of a value, shortened like :func:`brief`."""
    text, shown = str(value), repr(value)
    return _zeros(text) or (shown if len(shown) <= LONGEST_VALUE else _cut(shown, text))


def _zeros(text: str) -> str:
    return f"{len(text)} zero byte{'s' if len(text) > 1 else ''}" if text and not text.strip("\0") else ""


def _cut(shown: str, whole: str) -> str:
    return f"{shown[:_SHOWN]}... ({len(whole)} characters)"


def without_path(error: DamageError | UnreadableError) -> str:
    """Return the message of an error without the path of its file."""
    return error.reason if isinstance(error, UnreadableError) else str(error)


def refused(path: str, damage: DamageError) -> str:
    """Return the message on an invalid file that prevents a broker's start (exit status 3)."""
    return f"{path}: {damage}; kdump does not use this file, and a broker refuses it (kdump check reports what to do)"


def discard(_: object) -> None:
    """Ignore a report."""


def raise_it(error: UnreadableError) -> None:
    raise error


def once(report: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function that passes each text to ``report`` once. Several passes may find the same damage."""
    reported: set[str] = set()

    def say_new(text: str) -> None:
        if text not in reported:
            reported.add(text)
            report(text)

    return say_new


class Reporter(NamedTuple):
    """The callbacks of a reader: the argument ``report``.

    ``damage`` receives a sentence on damaged bytes. ``wrong`` receives a sentence on an index or checkpoint that is not
    used. ``note`` receives a sentence that does not change the exit status. ``fail`` receives the error of an
    unreadable file. ``progress`` receives the number of bytes read since its last call.
    """

    damage: Callable[[str], None] = discard
    wrong: Callable[[str], None] = discard
    note: Callable[[str], None] = discard
    fail: Callable[[UnreadableError], None] = raise_it
    progress: Callable[[int], None] = discard


RAISING: Final = Reporter()
"""Raises errors of unreadable files, and ignores everything else."""
SILENT: Final = Reporter(fail=discard)
"""Ignores everything, also errors of unreadable files."""
