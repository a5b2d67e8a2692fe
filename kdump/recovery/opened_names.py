"""The segments that a broker opens for the names in a partition folder.

A broker lists each ``.log`` and ``.log.swap`` file as a segment. Its base offset is the number before the first dot:
``+8.log``, ``8.log`` and ``8.x.log`` have base offset 8. Then the broker opens the name with 20 digits. If this file
does not exist, the broker creates an empty file of this name, and never reads the listed file.

Source: Kafka's classes LogLoader (``loadSegmentFiles``), LogFileUtils (``offsetFromFile``) and LogSegment (``open``).
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, NamedTuple

from kdump.log_dirs import file_names
from kdump.log_dirs.partition import Segment
from kdump.recovery.segment_end import Cut, lost
from kdump.recovery.split_segment import SegmentSlice

if TYPE_CHECKING:
    from kdump.findings.codes import Code
    from kdump.log_dirs.files import OpenSource
    from kdump.log_dirs.partition import Partition

OPENED = (f".{file_names.LOG}", f".{file_names.LOG}.{file_names.SWAP}")


class EmptySegment(Segment):
    """The empty segment that a broker creates for a name without 20 digits."""

    __slots__ = ()

    def open(self) -> OpenSource:
        """Open an empty range at the end of the listed file."""
        return SegmentSlice(Segment.open(self), self.start, 0)


class OpenedNames(NamedTuple):
    """The partition as a broker opens it, and the files that it lists as segments but does not read."""

    partition: Partition
    unread: tuple[Segment, ...]


def opened(partition: Partition) -> OpenedNames:
    """Return the segments that a broker opens, without names that have no offset: with them a broker does not start."""
    held = {posixpath.basename(each.path): each for each in partition.segments}
    for entry in partition.others:
        if entry.name.endswith(OPENED) and file_names.offset_of(entry.name) is not None:
            held[entry.name] = Segment(partition.files, entry.path, entry.size, None, {}, limit=partition.limit)
    others = {name: file_names.opened_name(name) for name in held if name.endswith(OPENED) and not _is_opened(name)}
    if not others:
        return OpenedNames(partition, ())
    segments = [each for name, each in held.items() if name not in others]
    unread = [name for name, opens in others.items() if opens not in held]
    for name in {others[name]: name for name in unread}.values():
        each = held[name]
        base = file_names.offset_of(name)
        segments.append(EmptySegment(each.files, each.path, 0, base, {}, limit=each.limit, start=each.size))
    return OpenedNames(partition._replace(segments=tuple(segments)), tuple(held[name] for name in unread))


def _is_opened(name: str) -> bool:
    stem, _, rest = name.partition(".")
    return file_names.is_padded(stem) and f".{rest}" in OPENED


def content_of(each: Segment, code: Code) -> Cut:
    """Return the records in a file that the broker does not read.

    The number is 0 if the first offset is not the offset in the name: the file is then a copy of another segment.
    """
    name = posixpath.basename(each.path)
    base = file_names.offset_of(name)
    text = f"a broker opens {file_names.opened_name(name)} instead of this file, as an empty segment"
    if base is None or each.first_offset() != base:
        return Cut(each.name, 0, 0, text, None, None, 0, code)
    return lost(each, 0, text)._replace(code=code)
