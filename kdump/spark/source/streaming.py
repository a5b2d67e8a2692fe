"""A growing log dir as a stream: what lies between two points of each partition folder.

An offset of the stream is plain JSON: for each folder a :class:`~kdump.spark.source.marks.Mark`. The Kafka offset in it
decides, so that a segment that rolled, was renamed or compacted between two triggers is found again; the position only
spares the way to it.
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from kdump.errors import StoreError, UnreadableError
from kdump.log_dirs.finder import NO_SEGMENT, raise_it
from kdump.log_dirs.remote import is_there
from kdump.log_reader.header_scan import Stretch, survey
from kdump.log_reader.segment_choice import CheckpointMarks
from kdump.primitives.wire import INT64_END
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync
from kdump.spark.source import kafka_edges, planning
from kdump.spark.source.listings import Listings, key_of
from kdump.spark.source.marks import START, Mark, ahead, cut_back, holds, lose, topic_id
from kdump.spark.source.planning import Split
from kdump.transaction_replay.outcomes import Outcomes, together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from kdump.log_dirs.partition import Partition, Segment
    from kdump.segments.regions import Region
    from kdump.spark.source.options import SourceOptions

Looked = TypeVar("Looked")
Fail: TypeAlias = "Callable[[UnreadableError], None]"
Offsets: TypeAlias = "dict[str, dict[str, Any]]"
"""Folder -> the fields of its :class:`Mark`."""
TRIES: Final = 5
"""How often a log dir is listed when files vanish from it meanwhile."""


class TriggerLimits(NamedTuple):
    """How much one trigger takes at most; None for no limit. At least one batch is taken, so that it goes on."""

    files: int | None = None
    bytes: int | None = None
    records: int | None = None


class Damaged(NamedTuple):
    """How many ranges of bytes are damaged, and their bytes."""

    ranges: int = 0
    bytes: int = 0


def total_damage(parts: Iterable[Damaged]) -> Damaged:
    """Return the sum."""
    found = list(parts)
    return Damaged(sum(part.ranges for part in found), sum(part.bytes for part in found))


class Taken(NamedTuple):
    """What a trigger takes of a segment: the stretches, each for one task, with what their bytes are.

    ``heads`` are the first bytes of each stretch.
    """

    partition: Partition
    segment: Segment
    stretches: list[Stretch]
    heads: list[bytes]
    until: Mark
    outcomes: Outcomes | None

    @property
    def size(self) -> int:
        """Bytes taken."""
        return self.stretches[-1].end - self.stretches[0].start

    @property
    def damaged(self) -> Damaged:
        """What of them is damaged, as checksums tell."""
        return Damaged(
            sum(one.damaged_ranges + (one.trailing_bytes > 0) for one in self.stretches),
            sum(one.damaged_bytes + one.trailing_bytes for one in self.stretches),
        )


class Advance(NamedTuple):
    """How far a trigger gets, and what it takes. ``is_complete`` says whether no limit held it up."""

    offsets: Offsets
    taken: list[Taken]
    partitions: dict[str, Partition]
    is_complete: bool

    @property
    def damaged(self) -> Damaged:
        """What of it is damaged, as checksums tell."""
        return total_damage(taken.damaged for taken in self.taken)


def initial(options: SourceOptions, note: Callable[[str], None], listings: Listings | None = None) -> Offsets:
    """Return where a stream begins that is asked for as one of Kafka's source; what is not in it begins at its start.

    ``note`` is told what is not there; ``listings`` are those of the run. Raises UsageError, DataLossError and
    UnreadableError.
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
    for text in kafka_edges.hold_against(query, found, lost):
        note(text)
    listings.remember(found)
    checkpoints = CheckpointMarks(note, fail=planning.marks_unread(note))
    begin: Offsets = {}
    for partition in found:
        start, _ = kafka_edges.edges(query, partition, checkpoints.facts(partition).log_start, lost)
        if start > (_first(partition) or 0):
            begin[key_of(partition)] = START._replace(offset=start, topicId=topic_id(partition))._asdict()
    return begin


def latest(
    options: SourceOptions,
    start: Offsets,
    limits: TriggerLimits,
    target: Offsets | None = None,
    listings: Listings | None = None,
) -> Offsets:
    """Return how far a trigger that begins at ``start`` gets; see :func:`advance`."""
    return advance(options, start, limits, target, listings=listings).offsets


def advance(
    options: SourceOptions,
    start: Offsets,
    limits: TriggerLimits,
    target: Offsets | None = None,
    fail: Fail = raise_it,
    listings: Listings | None = None,
) -> Advance:
    """Return how far a trigger that begins at ``start`` gets, and not beyond ``target``.

    Only whole batches with a right checksum count as the end: what is half written at the end of the last segment waits
    for the next trigger. The folder that has waited longest comes first. ``fail`` is told what cannot be read, maybe
    more than once; its folder stops before it. By default that raises. So it is with a folder that lacks a segment
    which ``listings``, those of the run, have had: :class:`~kdump.spark.source.listings.Listings` says when. Without
    ``failOnDataLoss`` such a folder goes on with the segments that are left.
    """
    known = listings or Listings()
    return _until_still(lambda fail: _advance(options, start, limits, target, fail, known), options, fail)


def _until_still(look: Callable[[Fail], Looked], options: SourceOptions, fail: Fail = raise_it) -> Looked:
    """Look at a log dir, and again where a file vanishes meanwhile: retention deletes what has just been listed."""

    def is_gone(error: UnreadableError) -> bool:
        try:
            return not is_there(str(error.path), options.paths)
        except UnreadableError:  # a store that does not answer: nothing is known of the file
            return False

    def told(error: UnreadableError) -> None:
        if is_gone(error):
            raise error
        fail(error)

    for _ in range(TRIES - 1):
        try:
            return look(told)
        except UnreadableError as error:
            if not is_gone(error):
                raise
            time.sleep(0.05)
    return look(fail)


def _advance(
    options: SourceOptions,
    start: Offsets,
    limits: TriggerLimits,
    target: Offsets | None,
    fail: Fail,
    listings: Listings,
) -> Advance:
    meter = _Meter(limits)
    end = dict(start)
    taken: list[Taken] = []
    marks = {key: Mark(**fields) for key, fields in start.items()}
    trigger = 1 + max((mark.trigger for mark in marks.values()), default=0)
    found: dict[str, Partition] = {}
    try:
        found.update((key_of(partition), partition) for partition in partitions(options, fail=fail))
    except StoreError as error:  # the place itself could not be opened
        fail(error)
    lacking = _lacking(options, found, marks, listings)
    for missing in lacking.values() if options.fail_on_data_loss else ():
        fail(missing)
    left_out = lacking if options.fail_on_data_loss else {}
    for key, partition in sorted(found.items(), key=lambda item: marks.get(item[0], START).trigger):
        if key in left_out or (target is not None and key not in target):
            continue
        begun = marks.get(key, START)
        begin = at = begun
        here = ""
        try:
            fates, stable = _outcomes(partition, options) if options.committed else (None, None)
            if target is not None:
                bound = target[key]["offset"] or 0
                stable = bound if stable is None else min(bound, stable)
            here = topic_id(partition)
            begin = at = _restarted(partition, begun, here)
            meter.go_on(stable)
            for part in _parts_from(partition, at, meter, options.split_bytes):
                at = part.until
                taken += [part._replace(outcomes=fates)] if part.size else []
        except UnreadableError as error:  # what was taken before it stands
            fail(error)
        if at != begun:
            since = _first(partition) if begin.offset is None else begin.offset
            end[key] = at._replace(topicId=here or at.topicId, since=since, trigger=trigger)._asdict()
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
        except UnreadableError:  # nothing is known of it: listing it has failed, too
            return True

    return listings.compare(found, marks, is_there)


def partitions(
    options: SourceOptions,
    note: Callable[[str], None] = lambda _: None,
    fail: Fail = raise_it,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Partition]:
    """Return the partitions that ``options`` names. Those of a folder that holds none may still come."""

    def told(error: UnreadableError) -> None:
        if error.reason != NO_SEGMENT:
            fail(error)

    return list(planning.find(options, note, told, tell))


def _restarted(partition: Partition, mark: Mark, here: str) -> Mark:
    """Return where to go on: at ``mark``, unless the log that is here now is not the one that was read."""
    if mark.topicId and here and here != mark.topicId:
        return START
    cut = cut_back(partition, mark)
    return mark._replace(gone=False) if cut is None else START._replace(offset=cut)


def _first(partition: Partition) -> int | None:
    return partition.segments[0].base_offset if partition.segments else None


def _is_there(key: str, options: SourceOptions) -> bool:
    """Tell whether a folder exists, of which nothing is asked any more."""
    return is_there(key, (*options.paths, key))


def _outcomes(partition: Partition, options: SourceOptions) -> tuple[Outcomes, int]:
    """Return what became of transactions, and the offset up to which that is decided.

    What is appended behind the batches that were looked at may belong to a transaction that nobody has seen begin.
    """
    surveys = [survey(segment, options.split_bytes) for segment in partition.segments]
    fates = together((one.told for one in surveys), whole=partition.whole)
    lasts = [part.last_offset for one in surveys for part in one.stretches if part.last_offset is not None]
    end = max(lasts, default=-1) + 1
    return fates, end if fates.last_stable_offset is None else min(end, fates.last_stable_offset)


class _Meter:
    """Counts what a trigger takes. A partition in which something did not fit stops there: its order is kept."""

    def __init__(self, limits: TriggerLimits) -> None:
        self._limits = limits
        self._files = self._bytes = self._records = 0
        self._stable: int | None = None
        self.is_stopped = self.is_full = False
        self._before = (0, 0, False)

    def go_on(self, stable: int | None) -> None:
        """Turn to the next partition, in which nothing from the offset ``stable`` on is taken."""
        self.is_stopped = False
        self._stable = stable

    def stop(self) -> None:
        """End with this partition."""
        self.is_stopped = True

    def opens(self) -> bool:
        """Tell whether one more file is within the limit."""
        if self._limits.files is not None and self._files >= self._limits.files:
            self.is_stopped = self.is_full = True
        self._before = (self._bytes, self._records, self.is_full)
        return not self.is_stopped

    def failed(self) -> None:
        """Forget the file that was opened last: it cannot be read, and nothing of it is taken."""
        self._bytes, self._records, self.is_full = self._before

    def took(self, part: Taken) -> None:
        """Count a file of which something was taken."""
        self._files += part.size > 0

    def is_stable(self, batch: RecordBatch) -> bool:
        """Tell whether a batch may be taken at all."""
        return self._stable is None or batch.last_offset < self._stable

    def takes(self, size: int, records: int) -> bool:
        """Count what is taken, if it still fits; else end. The first thing of a trigger always fits."""
        limits = self._limits
        if self._bytes and (
            (limits.bytes is not None and self._bytes + size > limits.bytes)
            or (limits.records is not None and self._records + records > limits.records)
        ):
            self.is_stopped = self.is_full = True
            return False
        self._bytes += size
        self._records += records
        return True


def _parts_from(partition: Partition, at: Mark, meter: _Meter, split_bytes: int) -> Iterator[Taken]:
    """Yield what the trigger takes of the segments from a mark on. Raises UnreadableError."""
    for segment, position in ahead(partition, at):
        if not segment.size:  # neither has a pipe or a link to nowhere
            with segment.open():
                pass
        if position < segment.size and meter.opens():
            try:
                part = _take(partition, (segment, position), at, meter, split_bytes)
            except UnreadableError:
                meter.failed()
                raise
            at = part.until
            meter.took(part)
            yield part
        if meter.is_stopped:
            return


def _take(partition: Partition, place: tuple[Segment, int], at: Mark, meter: _Meter, split_bytes: int) -> Taken:
    """Return what the trigger takes of a segment from a position on, and where it is then.

    Damage that sound batches follow is taken with them; damage at the end of the last segment may be a batch that is
    still being written, and waits.
    """
    segment, position = place
    stretches = [Stretch(position, position)]
    waiting: list[Region] = []
    until = at
    with segment.open() as source:
        for region in resync.read(source, position, on_error="resync"):
            if not isinstance(region, RecordBatch):
                waiting.append(region)
                continue
            if not meter.is_stable(region):
                meter.stop()
                break
            if not meter.takes(region.size + sum(one.size for one in waiting), region.count or 1):
                break
            if region.position - stretches[-1].start >= split_bytes:
                stretches.append(Stretch(stretches[-1].end, stretches[-1].end))
            for one in (*waiting, region):
                stretches[-1].add(one)
            waiting.clear()
            until = until.behind(segment, region)
        else:
            size = sum(one.size for one in waiting)
            # nothing will follow in a segment that has rolled
            if waiting and segment is not partition.segments[-1] and meter.takes(size, 0):
                for one in waiting:
                    stretches[-1].add(one)
                until = until.past(segment, stretches[-1].end)
        heads = [planning.head(source, stretch.start, stretch.end) for stretch in stretches]
    return Taken(partition, segment, stretches, heads, until, None)


def between(
    options: SourceOptions,
    start: Offsets,
    end: Offsets,
    lost: Callable[[str], None],
    note: Callable[[str], None] = lambda _: None,
    listings: Listings | None = None,
) -> list[Split]:
    """Return the splits between two offsets of the stream.

    ``lost`` is told of records that ``start`` waits for and that are gone, as far as marks and the ``listings`` of the
    run show it; where it returns, what is left is read.
    ``note`` is told what a read_committed consumer cannot be given, since nothing tells what became of it.
    Each split reads by Kafka's offsets: a segment that was compacted in between gives what is left of it.
    """
    known = listings or Listings()
    splits, told, unknown = _until_still(lambda _: _planned(options, start, end, known), options)
    for text in told:
        lost(text)
    known.accept()
    for text in unknown:
        note(text)
    return splits


def unknown(key: str, outcomes: Outcomes | None, since: int | None) -> list[str]:
    """Return what to tell of transactions that reach to the offset ``since`` or further, and cannot be told."""
    text = None if outcomes is None else outcomes.among(since or 0, INT64_END).unknown
    return [] if text is None else [f"{key}: {text}"]


def _planned(
    options: SourceOptions, start: Offsets, end: Offsets, listings: Listings
) -> tuple[list[Split], list[str], list[str]]:
    splits: list[Split] = []
    notes: list[str] = []
    folders = {key_of(partition): partition for partition in partitions(options)}
    marks = {key: Mark(**fields) for key, fields in start.items()}
    told = [str(error) for error in _lacking(options, folders, marks, listings).values()]
    for key, fields in end.items():
        since, until = Mark(**start.get(key, {})), Mark(**fields)
        if since == until or until.is_untouched:
            continue
        if since.is_untouched:  # looked up again, where the log may have grown meanwhile
            since = START._replace(offset=until.since, topicId=until.topicId)
        partition = folders.get(key)
        told += losses(key, partition, since, until)
        if partition is not None and partition.segments and not until.gone:
            left = _left(partition, until)
            if left != until:
                told.append(_changed(key, until, left))
            found = list(_between(partition, since, left, options)) if left != START else []
            notes += unknown(key, found[0].outcomes, since.offset) if found else []
            splits += found
    return splits, told, notes


def _left(partition: Partition, until: Mark) -> Mark:
    """Return up to where the log still holds what was planned up to ``until``; START where it is another one.

    A driver that was killed runs its last trigger again, however long after it had planned it.
    """
    here = topic_id(partition)
    if until.topicId and here and here != until.topicId:
        return START
    cut = cut_back(partition, until)
    return until if cut is None else until._replace(offset=cut, file="")


def _changed(key: str, until: Mark, left: Mark) -> str:
    planned = f"after its records up to offset {until.offset} had been planned to be read, but maybe before they were"
    if left == START:
        return f"{key}: its topic was deleted and created again {planned}; they are gone"
    return (
        f"{key}: the log was cut back to offset {left.offset} {planned}; those from there on are no longer in the log, "
        "and other records follow under the same offsets"
    )


def losses(key: str, partition: Partition | None, since: Mark, until: Mark) -> Iterator[str]:
    """Yield what cannot be read between two marks any more, or was not there when it was looked for, as text."""
    if until.gone:
        if since.offset is not None:
            yield f"{key} is gone; it was read up to offset {since.offset}, and what came behind that cannot be read"
        return
    if since.offset is not None and since.topicId and until.topicId != since.topicId:
        yield (
            f"{key}: its topic was deleted and created again (its id was {since.topicId} and is {until.topicId}); "
            f"it was read up to offset {since.offset}, and what came behind that is gone"
        )
    elif since.offset is not None and until.since is not None and until.since < since.offset:
        yield (
            f"{key}: the log was cut back to offset {until.since} after it had been read up to {since.offset}, as a "
            "broker does under a new leader; what was read from there on is no longer in the log, and other records "
            "follow under the same offsets"
        )
    first = until.offset if partition is None or not partition.segments else _first(partition)
    if until.since is not None and until.offset is not None and first is not None and first > until.since:
        yield f"{key}: offsets from {until.since} up to {min(first, until.offset)} are gone"


def _between(partition: Partition, since: Mark, until: Mark, options: SourceOptions) -> Iterator[Split]:
    fates = _outcomes(partition, options)[0] if options.committed else None
    begin = since if until.topicId == since.topicId and until.since == since.offset else START
    if begin is START and since.offset is not None:
        begin = START._replace(offset=until.since)
    last = next((segment for segment in partition.segments if holds(segment, until)), None)
    for segment, position in ahead(partition, begin):
        stop = segment.size if segment is not last else until.position
        if last is None and segment.base_offset is not None and segment.base_offset >= (until.offset or 0):
            return
        for one, other, head in _parts(segment, position, stop, options.split_bytes):
            yield Split(
                files=segment.files,
                path=segment.path,
                topic=partition.topic,
                partition=partition.partition,
                start=one,
                end=other,
                outcomes=fates,
                offsets=((begin.offset or 0, until.offset or 0),),
                live=_live(partition, segment, begin, until),
                head=head,
            )
        if segment is last:
            return


def _parts(segment: Segment, start: int, stop: int, split_bytes: int) -> list[tuple[int, int, bytes]]:
    """Return where the splits of a part of a segment begin and end, and their first bytes."""
    if start >= stop:
        return []
    bounds = [at for at in planning.cuts(segment, split_bytes) if start < at < stop]
    with segment.open() as source:
        return [(one, other, planning.head(source, one, other)) for one, other in pairwise([start, *bounds, stop])]


def _live(partition: Partition, segment: Segment, begin: Mark, until: Mark) -> tuple[int, int]:
    """Return the offsets that are to be read from a segment, as the names of the segments tell them."""
    later = [one.base_offset or 0 for one in partition.segments if (one.base_offset or 0) > (segment.base_offset or 0)]
    end = until.offset or 0
    return max(begin.offset or 0, segment.base_offset or 0), min(end, *later) if later else end
