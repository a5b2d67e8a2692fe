"""The vocabulary of the stream: what a segment is made of.

A segment is read as a lazy stream of regions. Every byte of the file belongs to exactly one of them: their sizes sum
to the file's size. Positions are byte offsets in the file, times are milliseconds since 1970 (UTC).
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from kdump.errors import DamageError, many
from kdump.formats.record_layout import CODEC_MASK, CONTROL_FLAG
from kdump.records.record_batch import Batches

UNREADABLE: Final = "unread"
"""The kind of bytes that the system cannot read (an I/O error); outputs have this word."""


class Damage(NamedTuple):
    """A range of bytes that cannot be read.

    ``kind`` is a short stable word, ``reason`` a sentence; ``at`` the position of the field that is wrong.
    ``missing_from`` is the offset after the last valid batch before it, ``missing_until`` the first offset of the
    next valid one: the offsets in between are missing (as far as there were any). None if nothing shows.
    """

    position: int
    size: int
    kind: str
    reason: str
    at: int
    expected: object = None
    found: object = None
    missing_from: int | None = None
    missing_until: int | None = None
    holes: int = 0
    """Bytes of it that are in holes of a sparse file: they are zeros, and are not read."""

    def error(self, path: str) -> DamageError:
        """Return the damage as the error of a file."""
        reason = f"{path}: {self.reason}"
        return DamageError(self.kind, reason, position=self.at, expected=self.expected, found=self.found)

    @property
    def is_unreadable(self) -> bool:
        """Whether the system cannot read the bytes: they may be valid."""
        return self.kind == UNREADABLE

    @property
    def end(self) -> int:
        """The position after it."""
        return self.position + self.size

    @property
    def missing(self) -> range | None:
        """The offsets that are missing; None when one of the two ends is not known."""
        if self.missing_from is None or self.missing_until is None:
            return None
        return range(self.missing_from, max(self.missing_from, self.missing_until))

    @property
    def loss(self) -> str:
        """The missing offsets in words; empty where nothing says which they are."""
        missing = self.missing
        if missing is None:
            return "" if self.missing_from is None else f"what is missing begins with offset {self.missing_from}"
        first, last = missing.start, missing.stop - 1  # a range of more than 2**63 offsets has no len()
        if first < last:
            return f"offsets {first} to {last} are missing"
        return f"offset {first} is missing" if missing else ""

    def __str__(self) -> str:
        """Return how many bytes cannot be read, why, and which offsets are missing."""
        loss = f"; {self.loss}" if self.loss else ""
        holes = f"; {many(self.holes, 'byte is', 'bytes are')} in holes of the file" if self.holes else ""
        return f"{many(self.size, 'byte')} cannot be read: {self.reason} (byte {self.at}){holes}{loss}"


class Padding(NamedTuple):
    """Zeros after the last batch: a preallocated file that was not trimmed.

    ``holes`` counts the bytes that are in holes of a sparse file: they are not read.
    """

    position: int
    size: int
    holes: int = 0

    def __str__(self) -> str:
        """Return how many zeros there are, and how many of them are on no disk."""
        return f"{many(self.size, 'byte')} of zeros" + (f" ({self.holes} in holes of the file)" if self.holes else "")


ENDS_INSIDE: Final = "the file ends inside a batch"
"""What is wrong with a truncated last batch, in the words of every command."""


class Trailing(NamedTuple):
    """A truncated batch at the end of a file: the bytes of it that are there."""

    position: int
    size: int

    def __str__(self) -> str:
        """Return what is wrong, as a sentence."""
        return f"{ENDS_INSIDE}, after {many(self.size, 'byte')} of it"

    def damage(self) -> Damage:
        """Return it as damage: where another segment follows, or where its reader needs all bytes."""
        return Damage(self.position, self.size, "trailing", ENDS_INSIDE, self.position, found=self.size)


Region: TypeAlias = Batches | Damage | Padding | Trailing

OnError: TypeAlias = Literal["stop", "skip", "resync"]


class RunKinds(NamedTuple):
    """The kinds of batches that come in runs: those of magic 2 with no bit of ``excluded`` in their attributes.

    With ``messages``, uncompressed messages of magic 0 and 1 do too.
    """

    excluded: int
    messages: bool = False


DATA: Final = RunKinds(CONTROL_FLAG)
"""Runs of data, compressed or not."""
CONTROL_TOO: Final = RunKinds(0)
"""Runs of data, and runs of control batches."""
PLAIN_DATA: Final = RunKinds(CONTROL_FLAG | CODEC_MASK)
"""Runs of data without compression."""


class Range(NamedTuple):
    """The bytes of a segment to read; ``end`` is None for all that follow."""

    start: int = 0
    end: int | None = None
