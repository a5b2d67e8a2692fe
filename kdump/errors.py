"""What can go wrong, as data.

Three kinds reach a caller: bad usage, a file that cannot be read, and damaged bytes. Damage is raised where it is
met, with the position at which it was met, and becomes a :class:`kdump.segments.regions.Damage` region in
``segment.py``. Every other exception is a bug.
"""

from __future__ import annotations


class KdumpError(Exception):
    """Base of all errors that kdump raises on purpose."""


class UsageError(KdumpError):
    """The caller asked for something that cannot be done: a wrong option, a bad value (exit status 2)."""


class UnreadableError(KdumpError):
    """A file or folder cannot be read: missing, no permission, an I/O fault (exit status 1)."""

    def __init__(self, path: object, reason: str, hint: str = "") -> None:
        super().__init__(f"{path}: {reason}" + (f" ({hint})" if hint else ""))
        self.path, self.reason, self.hint = path, reason, hint

    def __reduce__(self) -> tuple[type[UnreadableError], tuple[object, str, str]]:
        return type(self), (self.path, self.reason, self.hint)


class DamageError(KdumpError):
    """Bytes that are not what the format says.

    ``kind`` is a short stable word for machines ("crc", "record size", "codec"), ``reason`` a sentence for people.
    ``position`` is the byte offset at which the bad field stands: in the file once the walker has added where the
    structure begins, inside the structure before. ``expected`` and ``found`` are the two values that disagree.
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
        self.position, self.expected, self.found = position, expected, found

    def __reduce__(self) -> tuple[object, ...]:
        told = {"position": self.position, "expected": self.expected, "found": self.found}
        return type(self), (self.kind, self.reason), told

    def at(self, base: int) -> DamageError:
        """Return the same damage, its position counted from ``base`` bytes further out."""
        return type(self)(
            self.kind, self.reason, position=base + self.position, expected=self.expected, found=self.found
        )

    def __str__(self) -> str:
        known = {"expected": self.expected, "found": self.found}
        told = ", ".join(f"{word} {value}" for word, value in known.items() if value is not None)
        return f"byte {self.position}: {self.reason}" + (f" ({told})" if told else "")


class LimitError(DamageError):
    """A field claims more than the limit that the caller set, such as a batch that unpacks to gigabytes."""
