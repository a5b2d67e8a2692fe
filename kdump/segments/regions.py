"""The kinds of regions in a segment: batches, damage, padding and trailing bytes.

A segment is read as a lazy stream of regions. Every byte of a file is in exactly one region. Positions are in bytes.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

from kdump.errors import DamageError, many, many_are, offsets_are
from kdump.formats.record_layout import CODEC_MASK, CONTROL_FLAG
from kdump.records.record_batch import Batches

UNREADABLE: Final = "unread"
"""The kind of a range that cannot be read, as after an I/O error. Spark's outputs use ``unreadable``."""


class Damage(NamedTuple):
    """A damaged range of bytes.

    ``kind`` is a short stable word, and ``reason`` is a sentence. ``at`` is the position of the wrong field.
    ``expected`` and ``found`` are values of this field. The offsets ``missing_from`` to ``missing_until`` (exclusive)
    are missing: those between the valid batches before and after the range. An unknown bound is None.
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
    """Bytes of the range that are holes of a sparse file. They are zeros, and are not read."""

    def error(self, path: str = "") -> DamageError:
        reason = f"{path}: {self.reason}" if path else self.reason
        return DamageError(self.kind, reason, position=self.at, expected=self.expected, found=self.found)

    @property
    def is_unreadable(self) -> bool:
        return self.kind == UNREADABLE

    @property
    def end(self) -> int:
        return self.position + self.size

    @property
    def missing(self) -> range | None:
        """The missing offsets; None if their start or end is unknown."""
        if self.missing_from is None or self.missing_until is None:
            return None
        return range(self.missing_from, max(self.missing_from, self.missing_until))

    @property
    def loss(self) -> str:
        """The missing offsets as a part of a sentence; empty if there are none, or if their start is unknown."""
        missing = self.missing
        if missing is None:
            return "" if self.missing_from is None else f"the missing offsets begin with {self.missing_from}"
        first, last = missing.start, missing.stop - 1  # a range of more than 2**63 offsets has no len()
        return f"{offsets_are(first, last)} missing" if missing else ""

    def __str__(self) -> str:
        loss = f"; {self.loss}" if self.loss else ""
        holes = f"; {many_are(self.holes, 'byte')} in holes of the file" if self.holes else ""
        return f"{many(self.size, 'byte')} cannot be read: {self.reason} (byte {self.at}){holes}{loss}"


class Padding(NamedTuple):
    """Zeros at the end of a file, usually preallocated. ``holes`` counts the bytes in holes of a sparse file."""

    position: int
    size: int
    holes: int = 0

    def __str__(self) -> str:
        return f"{many(self.size, 'byte')} of zeros" + (f" ({self.holes} in holes of the file)" if self.holes else "")


ENDS_INSIDE: Final = "the file ends inside a batch"
"""The reason of a truncated last batch, in every command."""
TRAILING: Final = "trailing"
"""The kind of :class:`Trailing` as a damaged range."""


class Trailing(NamedTuple):
    """The last bytes of a file, after the last batch that ends in it: a truncated batch, or one with a wrong size."""

    position: int
    size: int

    def __str__(self) -> str:
        return f"{ENDS_INSIDE}, {many(self.size, 'byte')} after its start"

    def damage(self) -> Damage:
        """Return the bytes as a damaged range. :mod:`kdump.segments.log_end` decides whether they are damage."""
        return Damage(self.position, self.size, TRAILING, ENDS_INSIDE, self.position, found=self.size)


Region: TypeAlias = Batches | Damage | Padding | Trailing

OnError: TypeAlias = Literal["stop", "skip", "resync"]


class RunKinds(NamedTuple):
    """Runs have batches of magic 2 without the bits ``excluded``; with ``messages`` also uncompressed magic 0 and 1."""

    excluded: int
    messages: bool = False


DATA: Final = RunKinds(CONTROL_FLAG)
"""Runs of data, compressed or not."""
CONTROL_TOO: Final = RunKinds(0)
PLAIN_DATA: Final = RunKinds(CONTROL_FLAG | CODEC_MASK)


class Range(NamedTuple):
    """A byte range of a segment to read; ``end`` is None for the end of the file."""

    start: int = 0
    end: int | None = None
