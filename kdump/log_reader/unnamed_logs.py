"""Gives names to logs whose folder names have no topic and partition, and finds copies of a log among them.

The first records show whether a log belongs to one of Kafka's own topics. Thus ``kdump groups FILE`` reads a segment
of ``__consumer_offsets`` from any folder.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Final

from kdump.errors import DamageError, UnreadableError
from kdump.log_dirs.file_names import Name
from kdump.log_dirs.finder import left_out_text
from kdump.log_dirs.local import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.formats.record import Record
    from kdump.log_dirs.partition import Partition
    from kdump.records.record_batch import RecordBatch

BY_PATH: Final = Name(None, None)
"""A request to name a log after its records, if they are of one of Kafka's own topics, or else after its path."""
COPY: Final = Name("log", 0)
"""The name for logs of several brokers that are replicas of one partition of an unknown topic."""
_SAMPLED: Final = 20
"""Maximum number of records that are read to find the topic of a log."""
_SAMPLED_BYTES: Final = 4 << 20
"""Number of bytes that are searched for batches at the start of each segment."""


def with_names(
    partitions: Iterable[Partition],
    note: Callable[[str], None],
    *,
    name: Name = BY_PATH,
    every: bool = False,
    only_known: bool = False,
) -> Iterator[Partition]:
    """Yield the partitions. Logs without a topic get a name if the user gave their paths, or else are skipped.

    The name is ``name``. If this is BY_PATH, a log of one of Kafka's own topics gets that topic, and another log the
    path of its folder. Copies of a log (:class:`LogCopies`) then share a name. The first of these rules that fits
    applies:

    - A folder is skipped if the user gave only files of it that belong to no segment.
    - Partitions with a topic and, without ``only_known``, folders without a segment are yielded unchanged.
    - With ``every``, logs whose paths the user did not give are yielded unchanged.
    - With ``only_known``, logs that do not get the name of one of Kafka's own topics are skipped without a note.

    ``note`` is called for each renamed log, for each other skipped log or file, and if the user gave only some segments
    of a folder.
    """
    of_topics: defaultdict[str, LogCopies] = defaultdict(LogCopies)
    by_path = _PathNames()
    for one in partitions:
        if one.is_named and not one.is_listed and not one.segments:
            for entry in one.others:
                note(left_out_text(one.files.shown(entry.path)))
            continue
        if one.unnamed:
            count, total = len(one.segments), len(one.segments) + len(one.unnamed)
            note(
                f"kdump reads only the given {count} of {total} segments in {one.files.shown(one.folder)}: give the "
                "folder to read the whole log"
            )
        if one.topic is not None or (not one.segments and not only_known) or (every and not one.is_named):
            yield one
            continue
        known = own_topic(one) if name == BY_PATH and one.is_named else None
        if only_known and known is None:
            continue
        if not one.is_named:
            note(f"{one.name} is left out: its folder is not named TOPIC-PARTITION. Give its path to read it")
            continue
        given, copy = name, False
        if known is not None:
            given = Name(known, of_topics[known].number(one))
        elif name.topic is None:
            given, copy = by_path.name(one)
        named = one._replace(topic=given.topic, partition=given.partition)
        if len(one.segments) == 1:
            what, its = f"{one.segments[0].name} is", "its"
        else:
            what, its = f"{len(one.segments)} segments in {one.name} are", "their"
        why = f", but its records are of {known}" if known is not None else ""
        a_copy = "a copy of " if copy else ""
        note(f"{what} read as {a_copy}{named.name}: {its} folder is not named TOPIC-PARTITION{why}")
        yield named


class LogCopies:
    """Gives copies of a log the same number: their first _SAMPLED_BYTES share a data batch (last offset and CRC)."""

    def __init__(self) -> None:
        self._first: Partition | None = None
        self._seen: list[set[tuple[int, int]]] = []

    def number(self, partition: Partition) -> int:
        """Return the number of a log, from 0 on. The first log is read only when a second one follows."""
        if self._first is None:
            self._first = partition
            return 0
        if not self._seen:
            self._compared(self._first)
        return self._compared(partition)

    def _compared(self, partition: Partition) -> int:
        mine = {(batch.last_offset, batch.crc) for batch in _first_batches(partition)}
        number = next((number for number, batches in enumerate(self._seen) if batches & mine), len(self._seen))
        if number == len(self._seen):
            self._seen.append(set())
        self._seen[number] |= mine
        return number


class _PathNames:
    def __init__(self) -> None:
        self._copies, self._names = LogCopies(), list[Name]()

    def name(self, partition: Partition) -> tuple[Name, bool]:
        """Return the name of a log, and whether an earlier copy of the log already has this name."""
        number = self._copies.number(partition)
        is_copy = number < len(self._names)
        if not is_copy:
            path = _path_of(partition)
            self._names.append(Name(path, sum(one.topic == path for one in self._names)))
        return self._names[number], is_copy


def own_topic(partition: Partition) -> str | None:
    """Return the topic, one of Kafka's own, to which most of the first _SAMPLED readable records belong, or None."""
    from kdump.internal_topics.decode import TOPICS

    records = list(islice(first_records(partition), _SAMPLED))
    return next((topic for topic in TOPICS if _are_of(topic, records)), None)


def may_be_of(topic: str, partition: Partition) -> bool:
    """Return whether a log may belong to ``topic``, one of Kafka's own: most first records fit, or none is readable."""
    records = list(islice(first_records(partition), _SAMPLED))
    return not records or _are_of(topic, records)


def _are_of(topic: str, records: list[Record]) -> bool:
    return 2 * sum(_is_of(topic, record) for record in records) > len(records)


def _is_of(topic: str, record: Record) -> bool:
    from kdump.internal_topics.decode import decode

    made = decode(topic, record.key, record.value)
    if made is None or made.type is None:
        return False
    return not any(part is not None and (part.reason or part.values is None) for part in (made.key, made.value))


def first_records(partition: Partition) -> Iterator[Record]:
    """Yield the readable records in the data batches at the start of each segment."""
    for batch in _first_batches(partition):
        yield from _readable(batch)


def _first_batches(partition: Partition) -> Iterator[RecordBatch]:
    """Yield the data batches in the first _SAMPLED_BYTES of each segment. Unreadable segments are skipped."""
    from kdump.records.record_batch import RecordBatch
    from kdump.segments import resync

    for segment in partition.segments:
        try:
            with segment.open() as source:
                for region in resync.read(source, 0, _SAMPLED_BYTES, on_error="resync"):
                    if isinstance(region, RecordBatch) and not region.is_control:
                        yield region
        except UnreadableError:  # the reader of the segment reports it
            continue


def _readable(batch: RecordBatch) -> Iterator[Record]:
    try:
        yield from batch.records()
    except DamageError:  # the reader of the segment reports it
        return


def _path_of(unnamed: Partition) -> str:
    path = unnamed.files.shown(unnamed.folder) or posixpath.basename(unnamed.segments[0].name)
    if posixpath.basename(path) in {"", ".", ".."} and unnamed.files is LOCAL:
        path = posixpath.abspath(path)
    return path.rstrip("/") or "/"
