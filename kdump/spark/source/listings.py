"""The listings of one run, which show whether an unread segment has disappeared.

A run lists its inputs more than once. The names and sizes of the other segments may explain why a segment is missing:

- Retention deletes the oldest segments (``LocalLog.deleteSegments``): no earlier segment exists, but a later one does.
- Compaction replaces a segment and deletes the segments merged into it (``Cleaner.cleanSegments``): the nearest earlier
  segment has another size or time.
- A broker that truncates a log deletes segments and shortens the segment before them (``LocalLog.truncateTo``,
  KIP-101): again the nearest earlier segment has another size or time.

Any other gap of records is an error, because the run would silently lack them.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kdump.errors import UnreadableError
from kdump.log_reader.header_scan import survey
from kdump.spark.source.marks import START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kdump.log_dirs.partition import Partition, Segment
    from kdump.spark.source.marks import Mark
    from kdump.transaction_replay.outcomes import SegmentOutcomes

GONE: Final = (
    "it has disappeared before it was read completely, and retention, compaction and truncation do not explain this"
)
HINT: Final = "put it back, or start again to read the other segments"


class ListedSegment(NamedTuple):
    """A listed segment: base offset, name in its folder, size in bytes, and time of the last write in ms."""

    base: int | None
    name: str
    size: int
    modified: int | None


PartKey: TypeAlias = tuple[ListedSegment, int, int | None]
"""The key of a segment, or of a part of a segment: the listed file, the first byte, and the end offset of a part."""


class HeaderOutcomes(NamedTuple):
    """The outcomes of a segment's transactions, and the last offset of its batches (None without batches)."""

    found: SegmentOutcomes
    last_offset: int | None


@dataclass
class Listings:
    """For each folder: the last listing from the last read segment on, and the transactions of closed segments."""

    _known: dict[str, list[ListedSegment]] = field(default_factory=dict)
    _transactions: dict[str, dict[PartKey, HeaderOutcomes]] = field(default_factory=dict)
    _lacking_now: set[str] = field(default_factory=set)

    def remember(self, found: Iterable[Partition]) -> None:
        for partition in found:
            self._known[key_of(partition)] = [_listed(segment) for segment in partition.segments]

    def transactions(self, partition: Partition, split_bytes: int) -> list[HeaderOutcomes]:
        """Return the transactions of each segment. Read new and changed ones, and the last. Raises UnreadableError."""
        before, now = self._transactions.get(key_of(partition), {}), {}
        for segment in partition.segments:
            key = (_listed(segment), segment.start, segment.until)
            now[key] = before.get(key) or _transactions(segment, split_bytes)
        found = list(now.values())
        if now:
            now.popitem()
        self._transactions[key_of(partition)] = now
        return found

    def accept(self) -> None:
        """Forget the listing of each folder with an error in the last comparison. The run has reported these errors."""
        for key in self._lacking_now:
            self._known.pop(key, None)

    def compare(
        self, found: Mapping[str, Partition], marks: Mapping[str, Mark], is_there: Callable[[str], bool]
    ) -> dict[str, UnreadableError]:
        """Return folder -> error, for each folder in which an unread segment has disappeared for no known reason.

        ``marks`` are the positions in the folders. ``is_there`` returns whether an unlisted folder exists. A folder
        with an error keeps its earlier listing; other folders get the new listing.
        """
        errors: dict[str, UnreadableError] = {}
        for key in [key for key in self._known if key not in found]:
            if is_there(key):  # listing the folder failed, which is already reported
                continue
            missing = self._lacking(key, [], marks.get(key, START))
            if missing is None:
                del self._known[key]
                self._transactions.pop(key, None)
            else:
                errors[key] = missing
        for key, partition in found.items():
            now = [_listed(segment) for segment in partition.segments]
            missing = self._lacking(key, now, marks.get(key, START))
            if missing is None:
                self._known[key] = now[max(0, _first_unread(key, now, marks.get(key, START)) - 1) :]
            else:
                errors[key] = missing
        self._lacking_now = {*errors}
        return errors

    def _lacking(self, key: str, now: list[ListedSegment], mark: Mark) -> UnreadableError | None:
        before = self._known.get(key, [])
        names, bases = {one.name for one in now}, {one.base for one in now if one.base is not None}
        for number, one in enumerate(before):
            is_unread = number >= _first_unread(key, before, mark) and one.size
            if is_unread and one.name not in names and one.base not in bases and not _is_explained(before, number, now):
                return UnreadableError(posixpath.join(key, one.name), GONE, HINT)
        return None


def key_of(partition: Partition) -> str:
    """Return the shown path of a folder. It is the folder's key in the offsets of a stream."""
    return partition.files.shown(partition.folder)


def _listed(segment: Segment) -> ListedSegment:
    return ListedSegment(segment.base_offset, posixpath.basename(segment.path), segment.size, segment.modified)


def _transactions(segment: Segment, split_bytes: int) -> HeaderOutcomes:
    found = survey(segment, split_bytes)
    lasts = [part.last_offset for part in found.chunks if part.last_offset is not None]
    return HeaderOutcomes(found.transactions, max(lasts, default=None))


def _first_unread(key: str, listed: list[ListedSegment], mark: Mark) -> int:
    for number, one in enumerate(listed):
        following = listed[number + 1].base if number + 1 < len(listed) else None
        is_last_read = mark.file == posixpath.join(key, one.name) and mark.position >= one.size
        is_before = mark.offset is not None and following is not None and following <= mark.offset
        if not is_before and not is_last_read:
            return number
    return len(listed)


def _is_explained(before: list[ListedSegment], number: int, now: list[ListedSegment]) -> bool:
    base = before[number].base
    left = {one.base: one for one in now if one.base is not None}
    for earlier in reversed(before[:number]):
        if earlier.base in left:
            after = left[earlier.base]
            return (after.size, after.modified) != (earlier.size, earlier.modified)
    return base is not None and any(other > base for other in left)
