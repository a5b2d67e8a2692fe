"""Finds the end of a segment and of a log, and decides whether a truncated batch at the end is damage.

The ``.log`` of an active segment may end in zeros (``preallocate=true``). Its indexes usually end in
zeros: a broker allocates 10 MiB for each, and truncates them when it rolls the segment or stops.

=========================  ================  ========================  ======================================
``.kafka_cleanshutdown``   newest segment    a broker holds the lock   the truncated batch is
=========================  ================  ========================  ======================================
any                        no                any                       damage: a later segment follows
present                    yes               any                       damage: a clean stop leaves whole batches
absent                     yes               no                        damage: by an unclean stop, or in a copy
absent                     yes               yes                       no damage: the broker is writing it
=========================  ================  ========================  ======================================

A running broker locks the file ``.lock`` of each log dir (Kafka's classes LogManager and FileLock). The lock is visible
on the broker's machine only. So a truncated batch in a copy, an archive or an object store is damage.
"""

from __future__ import annotations

import errno
import os
import posixpath
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import DamageError, UnreadableError
from kdump.formats import offset_index
from kdump.log_dirs import file_names
from kdump.log_dirs.file_names import SEGMENT_NAME
from kdump.log_dirs.local import LOCAL
from kdump.records.log_entry import is_sound
from kdump.records.record_batch import Batches, RecordBatch
from kdump.segments import resync, walk
from kdump.segments.regions import DATA, Damage, Trailing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kdump.errors import Reporter
    from kdump.formats.leader_epoch import EpochEntry
    from kdump.log_dirs.files import Files, Source
    from kdump.log_dirs.partition import Partition, Segment

SMALL: Final = 1 << 14
"""Number of bytes up to which the rest of a segment is read whole, without its index."""


class SegmentEnd(NamedTuple):
    """The last valid batch that was read or None, and the position after the last byte that is not padding.

    ``base`` is the base offset in the segment's name, or 0. ``damage`` is the last damaged range that was read.
    ``first`` is the segment's first batch, unverified; None if it was not read or if there is damage.
    """

    last: RecordBatch | None
    position: int
    base: int
    damage: Damage | Trailing | None = None
    first: RecordBatch | None = None

    @property
    def offset(self) -> int:
        """The offset after the last valid batch, but at least the base offset."""
        return max(self.base, 0 if self.last is None else self.last.last_offset + 1)


class LogEnd(NamedTuple):
    """A log end offset, and the leader epoch of the last batch: -1 for magic 0 and 1 and for an empty log."""

    offset: int
    epoch: int = -1

    def with_epochs(self, entries: Iterable[EpochEntry]) -> LogEnd:
        """Return this end with the newest leader epoch of the log. ``entries`` are those of leader-epoch-checkpoint.

        A leader without new records has its epoch only in the checkpoint. Entries after the log end do not count.
        """
        epochs = [one.epoch for one in entries if one.start_offset <= self.offset]
        return LogEnd(self.offset, max([self.epoch, *epochs]))

    @property
    def rank(self) -> tuple[int, int]:
        """The leader epoch, then the offset: the replica with the greatest rank is the most current (KIP-101)."""
        return self.epoch, self.offset


NO_END: Final = LogEnd(0)
"""The end of a log without batches that begins at offset 0."""


def end_of_log(partition: Partition) -> LogEnd:
    """Return the end of a log. An empty log ends at the base offset of its last segment. Raises UnreadableError."""
    base = max([segment.base_offset or 0 for segment in partition.segments], default=0)
    last = last_batch(partition.segments)
    return LogEnd(base) if last is None else LogEnd(max(base, last.last_offset + 1), last.leader_epoch)


def last_batch(segments: Sequence[Segment]) -> RecordBatch | None:
    """Return the last valid batch of consecutive segments; None if they have none. Raises UnreadableError."""
    ends = (end_of_segment(segment).last for segment in reversed(segments))
    return next((last for last in ends if last is not None), None)


def first_batch(segments: Sequence[Segment]) -> RecordBatch | None:
    """Return the batch, unverified, at the start of the first segment with bytes, or None. Raises UnreadableError."""
    for segment in segments:
        if segment.size:
            with segment.open() as source:
                region = next(walk.walk(source), None)
            return region if isinstance(region, RecordBatch) else None
    return None


def end_of_segment(segment: Segment, since: int = 0) -> SegmentEnd:
    """Return the end of a segment. Raises UnreadableError.

    Reading starts at the batch boundary ``since`` (bytes) or, if more than SMALL bytes follow it, at the last index
    entry after it. The batches there and at the end are checked. After damage, all these batches are checked.
    """
    base = segment.base_offset or 0
    with segment.open() as source:
        start = max(since, last_indexed(segment, source)) if source.size - since > SMALL else since
        first: RecordBatch | None = None
        last: RecordBatch | None = None
        for region in walk.walk(source, start, runs=DATA):
            if isinstance(region, Batches):
                first, last = first or region.first, region.last
        end = start if last is None else last.end
        if (last is None or is_sound(last)) and (
            end == source.size or resync.zero_tail(source, end, source.size) == end
        ):
            return SegmentEnd(last, end, base, first=None if start else first)
        return _end_after_damage(source, start, base)


def _end_after_damage(source: Source, start: int, base: int) -> SegmentEnd:
    last: RecordBatch | None = None
    damage: Damage | Trailing | None = None
    end = start
    for region in resync.read(source, start, on_error="resync"):
        if isinstance(region, RecordBatch):
            last = region
        elif isinstance(region, Damage | Trailing):
            damage = region
        else:
            break
        end = region.position + region.size
    return SegmentEnd(last, end, base, damage)


def last_indexed(
    segment: Segment, source: Source, *, position: int | None = None, offset: int | None = None, skip: int = 0
) -> int:
    """Return the position in the last suitable entry of the offset index, or 0.

    An entry is suitable up to ``position`` (bytes) and up to ``offset``; of these entries the last ``skip`` are left
    out. The result is 0 without such an entry, or if the batch there is damaged or has other offsets.
    """
    path = segment.siblings.get("index")
    if path is None:
        return 0
    base = segment.base_offset or 0
    try:
        with segment.files.open(path) as index:
            entry = _last_entry(index, position, None if offset is None else offset - base, skip)
    except UnreadableError:  # the segment is read from its start
        return 0
    if entry is None or not 0 < entry.position < source.size:
        return 0
    region = next(walk.walk(source, entry.position), None)
    if not isinstance(region, RecordBatch) or not is_sound(region) or region.last_offset < base:
        return 0
    try:
        return entry.position if region.base_offset <= base + entry.relative_offset else 0
    except DamageError:
        return 0


def _last_entry(
    index: Source, position: int | None, relative: int | None, skip: int
) -> offset_index.StoredOffset | None:
    """Return the entry of :func:`last_indexed`. A binary search finds it, because the file may be large."""
    layout = offset_index.OffsetIndex.layout
    low, high = 0, index.size // layout.size
    while low < high:
        middle = (low + high) // 2
        data = index.read(middle * layout.size, layout.size)
        entry = layout.read(data) if len(data) == layout.size and any(data) else None
        if (
            entry is not None
            and (position is None or entry.position <= position)
            and (relative is None or entry.relative_offset <= relative)
        ):
            low = middle + 1
        else:
            high = middle
    slot = low - 1 - skip
    return layout.read(index.read(slot * layout.size, layout.size)) if slot >= 0 else None


class Tail(NamedTuple):
    is_damage: bool
    text: str


def tail(segment: Segment | None, region: Trailing) -> Tail:
    """Return whether a truncated batch at a segment's end is damage, and its sentence. True without a segment."""
    if segment is not None and is_being_written(segment):
        return Tail(False, f"{region}: a broker is writing it")
    return Tail(True, f"{region}: truncated, or copied while it was written")


def report_region(segment: Segment, region: Damage | Trailing, report: Reporter) -> None:
    """Report a region of a segment as damage. For a truncated batch that a broker is writing, report a note."""
    found = tail(segment, region) if isinstance(region, Trailing) else Tail(True, region.reason)
    receive = report.damage if found.is_damage else report.note
    receive(f"{segment.name}: byte {region.position}: {found.text}")


def damage_of(segment: Segment, region: Damage | Trailing) -> Damage | None:
    """Return a region as a damaged range; None for a truncated batch that a broker is writing."""
    if isinstance(region, Damage):
        return region
    return region.damage() if tail(segment, region).is_damage else None


def is_being_written(segment: Segment) -> bool:
    """Return whether a running broker may append to a segment (last row of the table); False if this is unknown."""
    return is_written_at(segment.files, segment.path)


def is_written_at(files: Files, path: str) -> bool:
    """Return :func:`is_being_written` for the segment at a path."""
    if files is not LOCAL:
        return False
    folder, name = posixpath.split(posixpath.abspath(path))
    log_dir = posixpath.dirname(folder)
    try:
        if LOCAL.look(posixpath.join(log_dir, file_names.CLEAN_SHUTDOWN)) is not None or not is_locked(log_dir):
            return False
        names = [SEGMENT_NAME.fullmatch(entry.name) for entry in LOCAL.entries(folder)]
    except UnreadableError:
        return False
    own = SEGMENT_NAME.fullmatch(name)
    logs = [int(each["offset"]) for each in names if each is not None and each["state"] is None]
    return own is not None and own["state"] is None and int(own["offset"]) >= max(logs, default=0)


def is_locked(log_dir: str) -> bool:
    """Return whether another process on this machine holds the lock of a log dir; False if this cannot be tested."""
    if not hasattr(os, "lockf"):
        return False
    try:
        handle = os.open(posixpath.join(log_dir, file_names.LOCK), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.lockf(handle, os.F_TEST, 0)
    except OSError as error:
        return error.errno in {errno.EACCES, errno.EAGAIN}
    finally:
        os.close(handle)
    return False
