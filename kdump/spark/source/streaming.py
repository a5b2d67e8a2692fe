"""A growing log dir as a stream: each trigger reads the records between two marks of each partition folder.

An offset of the stream is plain JSON, with a :class:`~kdump.spark.source.marks.Mark` for each folder. The Kafka offset
of the mark determines the next record, even if a segment was closed, renamed or compacted. The position in the mark
only saves a search.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from kdump.errors import Reporter, StoreError, UnreadableError, offsets_are, raise_it
from kdump.log_dirs.finder import NO_SEGMENT
from kdump.log_dirs.remote import RemoteFiles, is_there
from kdump.log_reader import header_scan
from kdump.log_reader.segment_choice import CheckpointOffsets
from kdump.primitives.wire import INT64_END
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync
from kdump.segments import walk as log
from kdump.segments.log_end import end_of_log, end_of_segment, last_indexed
from kdump.spark.source import kafka_edges, planning
from kdump.spark.source.listings import Listings, key_of
from kdump.spark.source.marks import NOT_LOOKED_UP, START, Mark, ahead, cut_back, holds, lose, topic_id
from kdump.spark.source.planning import Split
from kdump.transaction_replay.outcomes import Outcomes, combined

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    from kdump.log_dirs.files import Source
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.segments.regions import Region
    from kdump.spark.source.options import SourceOptions

Looked = TypeVar("Looked")
Fail: TypeAlias = "Callable[[UnreadableError], None]"
Offsets: TypeAlias = "dict[str, dict[str, Any]]"
"""Folder -> the fields of the folder's :class:`Mark`."""
Ends: TypeAlias = "dict[str, int]"
"""Folder -> the folder's log end offset."""
TRIES: Final = 5
"""The maximum number of listings of a log dir if files disappear during a listing."""


class TriggerLimits(NamedTuple):
    """The limits of one trigger; None for no limit. A trigger reads at least one batch or damaged range."""

    files: int | None = None
    bytes: int | None = None
    records: int | None = None


class Taken(NamedTuple):
    """Bytes of a segment that a trigger reads. ``until``: the mark after them. ``live``: :class:`Split` explains it."""

    partition: Partition
    segment: Segment
    start: int
    end: int
    until: Mark
    live: tuple[int, int] = (0, 0)
    outcomes: Outcomes | None = None

    def splits(self, split_bytes: int) -> list[Split]:
        if self.start >= self.end:
            return []
        segment = self.segment
        bounds = [self.start, *planning.cuts(segment, split_bytes, self.start, self.end), self.end]
        with segment.open() as source:
            return [
                Split(
                    files=segment.files,
                    path=segment.path,
                    topic=self.partition.topic,
                    partition=self.partition.partition,
                    start=start,
                    end=end,
                    outcomes=self.outcomes,
                    live=self.live,
                    head=planning.head(source, start, end),
                )
                for start, end in pairwise(bounds)
            ]


class Advance(NamedTuple):
    """The end of a trigger, and the bytes that it reads. ``is_complete``: no limit ended the trigger."""

    offsets: Offsets
    taken: list[Taken]
    partitions: dict[str, Partition]
    is_complete: bool


def initial(options: SourceOptions, note: Callable[[str], None], listings: Listings | None = None) -> Offsets:
    """Return the first offset of a stream: by the options of Kafka's source; without them {}, the start of each folder.

    ``note`` is called with sentences, such as on missing topics. Raises UsageError, DataLossError and UnreadableError.
    """
    known = listings or Listings()
    return {} if options.kafka is None else _until_still(lambda _: _initial(options, note, known), options)


def _initial(options: SourceOptions, note: Callable[[str], None], listings: Listings) -> Offsets:
    query = options.kafka
    if query is None:
        return {}

    def lost(text: str) -> None:
        lose(text, options, note)

    found = partitions(options, note)
    for text in kafka_edges.check_partitions(query, found, lost):
        note(text)
    listings.remember(found)
    checkpoints = CheckpointOffsets(Reporter(note, fail=planning.marks_unread(note)))
    begin: Offsets = {}
    for partition in found:
        start, _ = kafka_edges.edges(query, partition, checkpoints.facts(partition).log_start, lost)
        if start > (_first(partition) or 0):
            begin[key_of(partition)] = START._replace(offset=start, topicId=topic_id(partition))._asdict()
    return begin


def ends(options: SourceOptions, start: Offsets | None = None, listings: Listings | None = None) -> Ends:
    """Return the end of each log. Raises UnreadableError, with ``failOnDataLoss`` also for lost records."""
    known, marks = listings or Listings(), {key: Mark(**fields) for key, fields in (start or {}).items()}
    return _until_still(lambda _: _ends(options, marks, known), options)


def _ends(options: SourceOptions, marks: Mapping[str, Mark], listings: Listings) -> Ends:
    found = {key_of(one): one for one in partitions(options)}
    lacking = _lacking(options, found, marks, listings)
    if lacking and options.fail_on_data_loss:
        raise next(iter(lacking.values()))
    return {key: end_of_log(one).offset for key, one in found.items()}


def advance(
    options: SourceOptions,
    start: Offsets,
    limits: TriggerLimits,
    target: Ends | None = None,
    fail: Fail = raise_it,
    listings: Listings | None = None,
    checked: Container[str] = (),
) -> Advance:
    """Return the end of a trigger that begins at ``start``, and the bytes that it reads.

    With ``target`` the trigger reads only the folders of ``target``, at most up to their offsets there. It begins with
    the folder that was read longest ago. If size and file names show that a closed segment is within the limits,
    little of it is read here. In other segments, with read_committed in all new ones, the headers are read; in folders
    of ``checked`` all bytes. It ends after a closed segment or a batch with a right checksum, before a truncated batch.

    ``fail`` is called for each error, perhaps several times; by default it raises. If it returns, the trigger ends
    before the error in this folder. An unexplained loss of a segment of ``listings`` is an error too
    (:class:`~kdump.spark.source.listings.Listings`); without ``failOnDataLoss`` the remaining segments are read.
    """
    known = listings or Listings()
    return _until_still(lambda fail: _advance(options, start, limits, target, fail, known, checked), options, fail)


def _until_still(look: Callable[[Fail], Looked], options: SourceOptions, fail: Fail = raise_it) -> Looked:
    """Call ``look``, which lists a log dir. Call it again if a file has disappeared, for example by retention."""

    def is_gone(error: UnreadableError) -> bool:
        try:
            return not is_there(str(error.path), options.paths)
        except UnreadableError:  # a store does not answer, so the file may exist
            return False

    def fail_or_repeat(error: UnreadableError) -> None:
        if is_gone(error):
            raise error
        fail(error)

    for _ in range(TRIES - 1):
        try:
            return look(fail_or_repeat)
        except UnreadableError as error:
            if not is_gone(error):
                raise
            time.sleep(0.05)
    return look(fail)


def _advance(
    options: SourceOptions,
    start: Offsets,
    limits: TriggerLimits,
    target: Ends | None,
    fail: Fail,
    listings: Listings,
    checked: Container[str],
) -> Advance:
    meter = _Meter(limits)
    end = dict(start)
    taken: list[Taken] = []
    marks = {key: Mark(**fields) for key, fields in start.items()}
    trigger = 1 + max((mark.trigger for mark in marks.values()), default=0)
    found: dict[str, Partition] = {}
    try:
        found.update((key_of(partition), partition) for partition in partitions(options, fail=fail))
    except StoreError as error:  # the store could not be opened
        fail(error)
    lacking = _lacking(options, found, marks, listings)
    for missing in lacking.values() if options.fail_on_data_loss else ():
        fail(missing)
    left_out = lacking if options.fail_on_data_loss else {}
    for key, partition in sorted(found.items(), key=lambda item: marks.get(item[0], START).trigger):
        if key in left_out or (target is not None and key not in target):
            continue
        begun = marks.get(key, START)
        try:
            fates, stable = _outcomes(partition, options, listings) if options.committed else (None, None)
            here = topic_id(partition)
            begin = _restarted(partition, begun, here)
        except UnreadableError as error:
            fail(error)
            continue
        if target is not None:
            stable = target[key] if stable is None else min(target[key], stable)
        meter.go_on(stable)
        parts, until = _take_from(partition, begin, meter, fail, is_checked=key in checked)
        live = [_live(partition, part.segment, begin, until) for part in parts]
        taken += [part._replace(live=one, outcomes=fates) for part, one in zip(parts, live, strict=True)]
        if until != begun:
            since = _first(partition) if begin.offset is None else begin.offset
            end[key] = until._replace(topicId=here or until.topicId, since=since, trigger=trigger)._asdict()
    for key, mark in marks.items():
        try:
            if key not in found and key not in left_out and not mark.gone and not _is_there(key, options):
                end[key] = mark._replace(trigger=trigger, gone=True)._asdict()
        except UnreadableError as error:
            fail(error)
    return Advance(end, taken, found, not meter.is_full)


def _lacking(
    options: SourceOptions, found: dict[str, Partition], marks: Mapping[str, Mark], listings: Listings
) -> dict[str, UnreadableError]:
    def is_there(key: str) -> bool:
        try:
            return _is_there(key, options)
        except UnreadableError:  # listing the folder has failed too, which is reported
            return True

    return listings.compare(found, marks, is_there)


def partitions(
    options: SourceOptions,
    note: Callable[[str], None] = lambda _: None,
    fail: Fail = raise_it,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Partition]:
    """Return the partitions of the inputs. A folder without partitions is accepted: a broker may create them later."""

    def fail_unless_empty(error: UnreadableError) -> None:
        if error.reason != NO_SEGMENT:
            fail(error)

    return list(planning.find(options, Reporter(note=note, fail=fail_unless_empty), progress))


def _restarted(partition: Partition, mark: Mark, here: str) -> Mark:
    """Return where a stream continues: ``mark``, START for a new topic id, or the first offset that was rewritten."""
    if mark.topicId and here and here != mark.topicId:
        return START
    cut = cut_back(partition, mark)
    return mark._replace(gone=False) if cut is None else START._replace(offset=cut)


def _first(partition: Partition) -> int | None:
    return partition.segments[0].base_offset if partition.segments else None


def _is_there(key: str, options: SourceOptions) -> bool:
    return is_there(key, (*options.paths, key))


def _outcomes(partition: Partition, options: SourceOptions, listings: Listings) -> tuple[Outcomes, int]:
    segments = listings.transactions(partition, options.split_bytes)
    fates = combined((one.found for one in segments), whole=partition.whole, unnamed=partition.unnamed)
    end = 1 + max((one.last_offset for one in segments if one.last_offset is not None), default=-1)
    return fates, end if fates.last_stable_offset is None else min(end, fates.last_stable_offset)


class _Meter:
    """Counts the bytes, records and files of a trigger, and stops before the first batch over a limit."""

    def __init__(self, limits: TriggerLimits) -> None:
        self._limits = limits
        self._files = self._bytes = self._records = 0
        self.stable: int | None = None
        self.is_stopped = self.is_full = False
        self._before = (0, 0, False)

    def go_on(self, stable: int | None) -> None:
        """Begin the next partition, up to ``stable``: the last stable or the target offset, or None for no limit."""
        self.is_stopped = False
        self.stable = stable

    def stop(self) -> None:
        self.is_stopped = True

    def opens(self) -> bool:
        if self._limits.files is not None and self._files >= self._limits.files:
            self.is_stopped = self.is_full = True
        self._before = (self._bytes, self._records, self.is_full)
        return not self.is_stopped

    def put_back(self) -> None:
        self._bytes, self._records, self.is_full = self._before
        self.is_stopped = False

    def took(self, part: Taken) -> None:
        self._files += part.end > part.start

    def is_stable(self, offset: int) -> bool:
        """Return whether a batch whose last offset is ``offset`` is completely below :attr:`stable`."""
        return self.stable is None or offset < self.stable

    @property
    def room(self) -> TriggerLimits:
        most, records = self._limits.bytes, self._limits.records
        return TriggerLimits(
            bytes=None if most is None else most - self._bytes,
            records=None if records is None else records - self._records,
        )

    def holds(self, size: int, records: int) -> bool:
        room = self.room
        return (room.bytes is None or size <= room.bytes) and (room.records is None or records <= room.records)

    def takes(self, size: int, records: int) -> bool:
        """Return whether a batch fits into the trigger, and count it. The first batch always fits."""
        if self._bytes and not self.holds(size, records):
            self.is_stopped = self.is_full = True
            return False
        self._bytes += size
        self._records += records
        return True


def _take_from(
    partition: Partition, begin: Mark, meter: _Meter, fail: Fail, *, is_checked: bool
) -> tuple[list[Taken], Mark]:
    parts: list[Taken] = []
    try:
        parts.extend(_parts_from(partition, begin, meter, is_checked=is_checked))
        return parts, _looked_up(parts, begin)
    except UnreadableError as error:  # the parts before the error are read
        fail(error)
    while parts and parts[-1].until.batch == NOT_LOOKED_UP:
        parts.pop()
    return parts, parts[-1].until if parts else begin


def _parts_from(partition: Partition, at: Mark, meter: _Meter, *, is_checked: bool) -> Iterator[Taken]:
    """Yield the bytes that the trigger reads in each segment from a mark on. Raises UnreadableError."""
    begin = at
    for segment, position in ahead(partition, at):
        if not segment.size:  # raises for a pipe or a broken link, which have no size either
            _open(segment)
        if position < segment.size and meter.opens():
            whole = None if is_checked else _whole(partition, (segment, position), at, meter)
            try:
                if whole and (at is begin or not isinstance(segment.files, RemoteFiles)):
                    _open(segment)  # raises if retention has deleted it
                part = whole or _take(partition, (segment, position), at, meter, is_checked=is_checked)
            except UnreadableError:
                meter.put_back()
                raise
            at = part.until
            meter.took(part)
            if part.end > part.start:
                yield part
        if meter.is_stopped:
            return


def _open(segment: Segment) -> None:
    with segment.open():
        pass


def _whole(partition: Partition, place: tuple[Segment, int], at: Mark, meter: _Meter) -> Taken | None:
    """Return the rest of a closed segment if its size and its offsets (from file names) fit the limits, else None."""
    segment, position = place
    following = _following(partition, segment)
    first = segment.base_offset if at.offset is None else at.offset
    if following is None or first is None or segment is partition.segments[-1]:
        return None
    size, records = segment.size - position, max(0, following - first)
    if not meter.is_stable(following - 1) or not meter.holds(size, records):
        return None
    meter.takes(size, records)
    until = at._replace(offset=following, file=segment.name, position=segment.size, batch=NOT_LOOKED_UP)
    return Taken(partition, segment, position, segment.size, until)


def _following(partition: Partition, segment: Segment) -> int | None:
    base = segment.base_offset
    later = [one.base_offset for one in partition.segments if one.base_offset is not None]
    return None if base is None else min((one for one in later if one > base), default=None)


def _looked_up(parts: list[Taken], begin: Mark) -> Mark:
    """Return the mark after ``parts``, which begin at ``begin``. Raises UnreadableError."""
    if not parts or parts[-1].until.batch != NOT_LOOKED_UP:
        return parts[-1].until if parts else begin
    *before, part = parts
    last = end_of_segment(part.segment, part.start).last
    mark = _looked_up(before, begin) if last is None else part.until.after(part.segment, last)
    return mark.past(part.segment, part.end)


def _take(partition: Partition, place: tuple[Segment, int], at: Mark, meter: _Meter, *, is_checked: bool) -> Taken:
    """Return the bytes that the trigger reads in a segment from a position on, and the mark after them."""
    segment, position = place
    with segment.open() as source:
        if not is_checked:
            begin = _skip(segment, source, position, at, meter)
            batch, end = _fitting(header_scan.regions(source, begin, source.size), partition, place, meter)
            is_right = batch is not None and log.is_sound_at(source, batch.position)
            if is_right or (batch is None and begin == position):
                return _taken(partition, place, at, batch, end)
            meter.put_back()
        batch, end = _fitting(resync.read(source, position, on_error="resync"), partition, place, meter)
        return _taken(partition, place, at, batch, end)


def _skip(segment: Segment, source: Source, position: int, at: Mark, meter: _Meter) -> int:
    """Return a position up to which all batches are within the limits of ``meter``, and count these batches.

    It is the second last index entry within the limits, so that at least one such batch follows; else ``position``.
    """
    room = meter.room
    first = segment.base_offset if at.offset is None else at.offset
    if first is None:
        return position
    most = None if room.records is None else first + room.records
    found = last_indexed(
        segment,
        source,
        position=None if room.bytes is None else position + room.bytes,
        offset=min((one for one in (most, meter.stable) if one is not None), default=None),
        skip=1,
    )
    batch = next(log.walk(source, found), None) if found > position else None
    if not isinstance(batch, RecordBatch):
        return position
    meter.takes(found - position, max(0, batch.base_offset - first))
    return found


def _fitting(
    regions: Iterable[Region], partition: Partition, place: tuple[Segment, int], meter: _Meter
) -> tuple[RecordBatch | None, int]:
    """Return the last batch within the limits of ``meter``, and the byte up to which to read the segment.

    Damage is read with the valid batches after it. At the end of the last segment it is left to the next trigger,
    because a broker may be writing a batch there.
    """
    segment, end = place
    waiting: list[Region] = []
    batch: RecordBatch | None = None
    for region in regions:
        if not isinstance(region, RecordBatch):
            waiting.append(region)
            continue
        if not meter.is_stable(region.last_offset):
            meter.stop()
            break
        if not meter.takes(region.size + sum(one.size for one in waiting), region.count or 1):
            break
        waiting.clear()
        batch, end = region, region.end
    else:  # a closed segment does not grow
        size = sum(one.size for one in waiting)
        if waiting and segment is not partition.segments[-1] and meter.takes(size, 0):
            end = waiting[-1].position + waiting[-1].size
    return batch, end


def _taken(partition: Partition, place: tuple[Segment, int], at: Mark, batch: RecordBatch | None, end: int) -> Taken:
    segment, position = place
    until = at if batch is None else at.after(segment, batch)
    if end > (position if batch is None else batch.end):
        until = until.past(segment, end)
    return Taken(partition, segment, position, end, until)


def between(
    options: SourceOptions,
    start: Offsets,
    end: Offsets,
    lost: Callable[[str], None],
    note: Callable[[str], None] = lambda _: None,
    listings: Listings | None = None,
) -> list[Split]:
    """Return the splits between two offsets of the stream.

    ``lost`` is called for each detected loss of records after ``start``. It may raise; otherwise the remaining records
    are read. ``note`` is called if read_committed leaves out records of transactions with an unknown outcome. Splits
    are limited by Kafka offsets: compaction does not change them.
    """
    known = listings or Listings()
    splits, gone, unknown = _until_still(lambda _: _planned(options, start, end, known), options)
    for text in gone:
        lost(text)
    known.accept()
    for text in unknown:
        note(text)
    return splits


def unknown(key: str, outcomes: Outcomes | None, since: int | None) -> list[str]:
    """Return at most one message, on transactions with an unknown outcome at the offset ``since`` or later."""
    text = None if outcomes is None else outcomes.among(since or 0, INT64_END).unknown
    return [] if text is None else [f"{key}: {text}"]


def _planned(
    options: SourceOptions, start: Offsets, end: Offsets, listings: Listings
) -> tuple[list[Split], list[str], list[str]]:
    splits: list[Split] = []
    notes: list[str] = []
    folders = {key_of(partition): partition for partition in partitions(options)}
    marks = {key: Mark(**fields) for key, fields in start.items()}
    gone = [str(error) for error in _lacking(options, folders, marks, listings).values()]
    for key, fields in end.items():
        since, until = Mark(**start.get(key, {})), Mark(**fields)
        if since == until or until.is_untouched:
            continue
        if since.is_untouched:  # use the offset in ``end``: a second look-up may find another
            since = START._replace(offset=until.since, topicId=until.topicId)
        partition = folders.get(key)
        gone += losses(key, partition, since, until)
        if partition is not None and partition.segments and not until.gone:
            left = _left(partition, until)
            if left != until:
                gone.append(_changed(key, until, left))
            found = list(_between(partition, since, left, options, listings)) if left != START else []
            notes += unknown(key, found[0].outcomes, since.offset) if found else []
            splits += found
    return splits, gone, notes


def _left(partition: Partition, until: Mark) -> Mark:
    """Return the mark up to which the log still has the planned records; START if the topic was created again."""
    here = topic_id(partition)
    if until.topicId and here and here != until.topicId:
        return START
    cut = cut_back(partition, until)
    return until if cut is None else until._replace(offset=cut, file="")


def _changed(key: str, until: Mark, left: Mark) -> str:
    planned = f"after Spark planned to read up to offset {until.offset}"
    if left == START:
        return (
            f"{key}: the topic was deleted and created again {planned}. Records that the stream has not read are gone"
        )
    return (
        f"{key}: the log was truncated to offset {left.offset} {planned}. Records that the stream has not read are "
        "gone, and new records get the same offsets"
    )


def losses(key: str, partition: Partition | None, since: Mark, until: Mark) -> Iterator[str]:
    """Yield a text for each loss between two marks: records that were deleted or truncated, or a deleted folder."""
    if until.gone:
        if since.offset is not None:
            yield f"the folder of {key} is gone after offset {since.offset} was read: later records cannot be read"
        return
    if since.offset is not None and since.topicId and until.topicId != since.topicId:
        yield (
            f"{key}: the topic was deleted and created again (its id was {since.topicId} and is {until.topicId}). The "
            f"stream had read up to offset {since.offset}; later records of the deleted topic are gone"
        )
    elif since.offset is not None and until.since is not None and until.since < since.offset:
        yield (
            f"{key}: the log was truncated to offset {until.since}, but the stream had read up to offset "
            f"{since.offset}. A broker does this under a new leader. The records read from offset "
            f"{until.since} on are no longer in the log, and new records get the same offsets"
        )
    first = until.offset if partition is None or not partition.segments else _first(partition)
    if until.since is not None and until.offset is not None and first is not None and first > until.since:
        yield f"{key}: {offsets_are(until.since, max(until.since, min(first, until.offset) - 1))} gone"


def _between(
    partition: Partition, since: Mark, until: Mark, options: SourceOptions, listings: Listings
) -> Iterator[Split]:
    fates = _outcomes(partition, options, listings)[0] if options.committed else None
    begin = since if until.topicId == since.topicId and until.since == since.offset else START
    if begin is START and since.offset is not None:
        begin = START._replace(offset=until.since)
    last = next((segment for segment in partition.segments if holds(segment, until)), None)
    span = begin.offset or 0, until.offset or 0
    for segment, position in ahead(partition, begin):
        stop = segment.size if segment is not last else until.position
        if last is None and segment.base_offset is not None and segment.base_offset >= span[1]:
            return
        taken = Taken(partition, segment, position, stop, until, _live(partition, segment, begin, until), fates)
        for split in taken.splits(options.split_bytes):
            yield replace(split, offsets=(span,))
        if segment is last:
            return


def _live(partition: Partition, segment: Segment, begin: Mark, until: Mark) -> tuple[int, int]:
    end = until.offset or 0
    following = _following(partition, segment)
    return max(begin.offset or 0, segment.base_offset or 0), end if following is None else min(end, following)
