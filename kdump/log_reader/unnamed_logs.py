"""Names logs whose folders give no topic and partition.

The first records show whether a log is one of Kafka's own topics. So ``kdump groups FILE`` reads a segment from any
folder, and refuses one of another topic.
"""

from __future__ import annotations

import posixpath
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
"""Names a log after its contents, or else after its folder."""
COPY: Final = Name("log", 0)
"""Names logs of several brokers whose folders have no topic: they are replicas of one partition."""
_SAMPLED: Final = 20
"""Most records whose topics decide that of a log."""
_SAMPLED_BYTES: Final = 4 << 20
"""Bytes at the start of a segment in which they are."""


def with_names(
    partitions: Iterable[Partition],
    note: Callable[[str], None],
    *,
    name: Name = BY_PATH,
    every: bool = False,
    only_known: bool = False,
) -> Iterator[Partition]:
    """Yield partitions. A named path whose folder gives no topic gets ``name``, or a name by BY_PATH.

    Other partitions without a topic are skipped; with ``every`` they are yielded unchanged. Folders without a segment
    are yielded unchanged. With ``only_known`` no log is named after its folder. ``note`` is called for each renamed or
    skipped partition, each named file without records, and each folder in which the user named only some segments.
    """
    numbered: dict[str, list[set[tuple[int, int]]]] = {}
    """Kafka's own topic -> the identities of the first batches of each of its logs."""
    for one in partitions:
        if one.is_named and not one.is_listed and not one.segments:
            for entry in one.others:
                note(left_out_text(one.files.shown(entry.path)))
            continue
        if one.unnamed:
            count, total = len(one.segments), len(one.segments) + len(one.unnamed)
            note(
                f"only {count} of {total} segments in {one.files.shown(one.folder)} {'is' if count == 1 else 'are'} "
                "named: the answer leaves the others out (name the folder for the whole log)"
            )
        if one.topic is not None or (not one.segments and not only_known) or (every and not one.is_named):
            yield one
            continue
        known = own_topic(one) if name == BY_PATH and one.is_named else None
        if only_known and known is None:
            continue
        if not one.is_named:
            note(f"{one.name} is left out: the name of its folder has no topic and partition")
            continue
        topic, number = known or name.topic or _path_of(one), name.partition or 0
        if known is not None:
            number = _number(numbered.setdefault(known, []), one)
        named = one._replace(topic=topic, partition=number)
        what = one.segments[0].name if len(one.segments) == 1 else f"{len(one.segments)} segments in {one.name}"
        why = f", but its records are of {known}" if known is not None else ""
        note(f"{what} is read as {named.name}: the name of its folder has no topic and partition{why}")
        yield named


def _number(seen: list[set[tuple[int, int]]], partition: Partition) -> int:
    """Return the index in ``seen`` of an earlier copy of a log, by a batch that both have; or add the log.

    A log without one is another partition: the number of neither is known.
    """
    mine = {(batch.base_offset, batch.crc) for batch in _first_batches(partition)}
    number = next((number for number, batches in enumerate(seen) if batches & mine), len(seen))
    if number == len(seen):
        seen.append(set())
    seen[number] |= mine
    return number


def own_topic(partition: Partition) -> str | None:
    """Return the one of Kafka's own topics that most of the first readable records belong to; else None."""
    from kdump.internal_topics.decode import TOPICS  # few logs have no name

    records = list(islice(first_records(partition), _SAMPLED))
    return next((topic for topic in TOPICS if _are_of(topic, records)), None)


def may_be_of(topic: str, partition: Partition) -> bool:
    """Return whether a log may belong to one of Kafka's own topics: by its first records, or because it is empty."""
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
    """Yield the data batches in the first bytes of each segment."""
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
    except DamageError:  # the reader reports it, too
        return


def _path_of(unnamed: Partition) -> str:
    path = unnamed.files.shown(unnamed.folder) or posixpath.basename(unnamed.segments[0].name)
    if posixpath.basename(path) in {"", ".", ".."} and unnamed.files is LOCAL:
        path = posixpath.abspath(path)
    return path.rstrip("/") or "/"
