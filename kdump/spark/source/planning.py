"""Plans a read: the driver divides the segments into splits before tasks read records.

To select offsets and times, file names and indexes are usually enough. Outcomes of transactions, and the choice of a
replica, need the headers of all batches (:mod:`kdump.log_reader.header_scan`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, pairwise, repeat
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from kdump.errors import PartlyUnreadableError, Reporter, StoreError, UnreadableError
from kdump.formats.offset_index import OffsetIndex
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.remote import RemoteFiles, places
from kdump.log_reader import replicas
from kdump.log_reader.header_scan import attempt
from kdump.log_reader.segment_choice import CheckpointOffsets, largest_timestamp
from kdump.primitives.terminal import path_text
from kdump.primitives.wire import INT64_END
from kdump.records.record_batch import RecordBatch
from kdump.rows.selection import SegmentFacts
from kdump.segments import walk as log
from kdump.spark.source import kafka_edges
from kdump.spark.source import options as words
from kdump.spark.source.marks import lose
from kdump.transaction_replay.outcomes import Outcomes, combined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kdump.log_dirs import files as log_dirs_files
    from kdump.log_dirs.files import Files
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.log_dirs.tiered_storage import RemotePartitions
    from kdump.log_reader.header_scan import ChunkSummary, Survey
    from kdump.log_reader.replicas import Ranges
    from kdump.spark.source.options import SourceOptions

READERS: Final = 16
"""The number of segments of a store whose headers are read at the same time. Most of this time is waiting."""
OPEN_COST: Final = 1 << 16
"""The cost of opening a file, expressed in bytes to read."""
TASK_COST: Final = 4 << 20
"""The cost of starting a task, expressed in bytes to read."""
HEAD: Final = 64
"""The number of bytes at the start of a batch that identify the batch, by its offset and its checksum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A part of one file for one task: byte ``start`` to byte ``end``, usually limits of batches.

    - ``high_watermark``, ``log_start``: the partition's offsets in the checkpoints of the log dir.
    - ``outcomes``: the outcomes of the transactions, or None if they were not determined.
    - ``stable``: the last stable offset if the read stops there, else None.
    - ``offsets``: the ranges to read (ends exclusive), or None for all.
    - ``summary``: the counts from the headers, if they were read; ``number``: the index of the split in an export.
    - ``live``: for a file that a broker may delete before it is read, the expected offsets (end exclusive). ``head`` is
      then the first bytes of the split, to detect that another file has replaced the file.
    """

    files: Files
    path: str
    topic: str | None
    partition: int | None
    start: int
    end: int
    high_watermark: int | None = None
    log_start: int | None = None
    outcomes: Outcomes | None = None
    stable: int | None = None
    offsets: Ranges | None = None
    summary: ChunkSummary | None = None
    number: int = 0
    live: tuple[int, int] | None = None
    head: bytes = b""

    @property
    def name(self) -> str:
        return path_text(self.files.shown(self.path))

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def file(self) -> SegmentFacts:
        topic = None if self.topic is None else path_text(self.topic)
        return SegmentFacts(self.name, topic, self.partition, self.high_watermark, self.log_start)


class Planned(NamedTuple):
    """A segment and its splits. It has none if, by names, indexes or headers, it has no selected records."""

    name: str
    topic: str | None
    partition: int | None
    size: int
    splits: tuple[Split, ...]


T = TypeVar("T")
Surveyor: TypeAlias = "Callable[[list[Segment], int, bool], list[Survey]]"
"""A function that reads batch headers, on the driver or in tasks: (segments, split size in bytes, whether to verify
every checksum) -> one survey per segment."""


def survey_here(segments: list[Segment], split_bytes: int, checked: bool) -> list[Survey]:
    """Read the headers of segments: in a store many segments at the same time, otherwise one after another."""
    remote = all(isinstance(segment.files, RemoteFiles) for segment in segments)
    with ThreadPoolExecutor(READERS if remote else 1) as pool:
        try:
            return list(pool.map(lambda segment: attempt(segment, split_bytes, checked=checked), segments))
        except BaseException:
            pool.shutdown(cancel_futures=True)  # each thread may retry for a minute
            raise


def plan(
    options: SourceOptions,
    note: Callable[[str], None] = lambda _: None,
    surveyor: Surveyor = survey_here,
    inputs: list[Partition] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Planned]:
    """Return the segments of the selected partitions, in order, with the splits to read.

    All headers are read if :func:`needs_survey` is true. ``note`` is called with sentences, such as on skipped inputs.
    ``inputs`` is an earlier result of :func:`look`. ``progress`` is called with a text before each planned partition.
    Raises UsageError, UnreadableError, and with failOnDataLoss DataLossError, if a Kafka query names missing records.
    """
    partitions = look(options, note) if inputs is None else inputs
    if options.kafka is not None:
        for text in kafka_edges.check_partitions(options.kafka, partitions, lambda text: lose(text, options, note)):
            if not options.dedupe:
                note(text)
    if options.pushed is not None:
        partitions = [partition for partition in partitions if options.pushed.takes(partition)]
    planner = _Planner(options, note)
    if not needs_survey(options):
        return [
            planned for partition in _with_progress(partitions, progress) for planned in planner.by_index(partition)
        ]
    segments = [segment for partition in partitions for segment in partition.segments]
    found = iter(surveyor(segments, options.split_bytes, options.dedupe))
    surveyed = [(partition, [next(found) for _ in partition.segments]) for partition in partitions]
    held = ([run for survey in surveys for run in survey.runs] for _, surveys in surveyed)
    offsets = replicas.choose(partitions, list(held)) if options.dedupe else repeat(None)
    return [
        planned
        for (partition, surveys), chosen in zip(_with_progress(surveyed, progress), offsets, strict=False)
        for planned in planner.by_survey(partition, surveys, chosen)
    ]


def _with_progress(partitions: Sequence[T], progress: Callable[[str], None]) -> Iterator[T]:
    for number, partition in enumerate(partitions):
        progress(f"planning: {number:,} of {len(partitions):,} partitions")
        yield partition


def group(splits: Iterable[Split], options: SourceOptions) -> list[list[Split]]:
    """Return the splits of each task, in order. Small splits share a task, because each task has a cost.

    With enough splits and bytes, there are about ``min_partitions`` tasks or more. A shared task has at most
    ``split_bytes``.
    """
    splits = list(splits)
    total = sum(split.size + OPEN_COST for split in splits)
    most = min(options.split_bytes, max(TASK_COST, total // options.min_partitions))
    groups: list[list[Split]] = []
    room = 0
    for split in splits:
        room -= split.size + OPEN_COST
        if room < 0 or not groups:
            groups.append([])
            room = most - split.size - OPEN_COST
        groups[-1].append(split)
    return groups


def needs_survey(options: SourceOptions) -> bool:
    """Return whether the headers of all batches are needed. The default columns need them, for transactionState."""
    return (
        options.dedupe
        or options.committed
        or options.surveyed
        or (options.output == words.RECORDS and (not options.columns or "transactionState" in options.columns))
    )


def find(
    options: SourceOptions, report: Reporter, progress: Callable[[str], None] = lambda _: None
) -> Iterator[Partition]:
    """Yield the partitions of the inputs, and report a text with the number of listed segments to ``progress``."""
    wanted = options.wanted(leftovers=options.leftovers)
    if options.kafka is not None:
        wanted = wanted._replace(topics=options.kafka.topics, test=options.kafka.takes)
    finder = Finder(wanted, report)
    found: Iterator[Partition] = (one for files, paths in places(options.paths) for one in finder.find(paths, files))
    if options.remote:
        remote = _remote_partitions(options, wanted, report)
        found = chain(map(remote.join, found), remote.rest())
    segments = 0
    for number, partition in enumerate(found, 1):
        segments += len(partition.segments)
        progress(f"listing: {segments:,} segments of {number:,} partitions so far")
        yield partition
    if options.kafka is None:  # a pattern of Kafka's source may match nothing yet
        for text in wanted.missing(finder.found_names, options.paths):
            report.note(text)


def _remote_partitions(options: SourceOptions, wanted: Wanted, report: Reporter) -> RemotePartitions:
    from kdump.log_dirs.tiered_storage import RemotePartitions, RemoteStorage

    storage = RemoteStorage.of(options.remote, dict(options.remote_key))
    return RemotePartitions(Finder(wanted._replace(remote=storage), report).remote(), report)


def look(
    options: SourceOptions, note: Callable[[str], None], progress: Callable[[str], None] = lambda _: None
) -> list[Partition]:
    """Return the partitions of the inputs; ``progress`` is called with texts.

    Raises UnreadableError for an unreadable input, like Spark's own file sources, because it may have records. A tiered
    segment that is partly unreadable is noted instead.
    """

    def fail(error: UnreadableError) -> None:
        if not isinstance(error, PartlyUnreadableError):
            raise error
        note(str(error))  # the reader of the segment reports the damage

    return list(find(options, Reporter(note=note, fail=fail), progress))


def marks_unread(note: Callable[[str], None]) -> Callable[[UnreadableError], None]:
    """Return the error handler for checkpoints: it raises a StoreError, and notes other unreadable files."""

    def fail(error: UnreadableError) -> None:
        if isinstance(error, StoreError):
            raise error
        note(str(error))

    return fail


def prune(segments: Iterable[Segment], options: SourceOptions) -> list[Segment]:
    """Return the segments that may have the selected offsets and times, judged by file names and time indexes."""
    known = list(segments)
    kept = []
    for segment, after in zip(known, [*known[1:], None], strict=False):  # a folder may have no segment
        base, following = segment.base_offset, None if after is None else after.base_offset
        if options.ending_offset is not None and base is not None and base >= options.ending_offset:
            continue
        if options.starting_offset is not None and following is not None and following <= options.starting_offset:
            continue
        if options.starting_timestamp is not None and after is not None and following is not None:
            largest = largest_timestamp(segment, after)
            if largest is not None and largest < options.starting_timestamp:
                continue
        kept.append(segment)
    return kept


class _Planner:
    def __init__(self, options: SourceOptions, note: Callable[[str], None]) -> None:
        self._options, self._note = options, note
        self._marks = CheckpointOffsets(Reporter(note, fail=marks_unread(note)))

    def by_index(self, partition: Partition) -> Iterator[Planned]:
        """Yield a partition's segments: pruned ones without splits, others divided by :func:`cuts`."""
        file = self._marks.facts(partition)
        options, inside = self._bounded(partition, file)
        kept = {segment.path for segment in prune(partition.segments, options)}
        for segment in partition.segments:
            bounds = [0, *self._cuts(segment), segment.size] if segment.path in kept else [0]
            splits = [
                _split(partition, segment, start, end, file, inside) for start, end in pairwise(bounds) if start < end
            ]
            if not segment.size and not _opens(segment):
                splits = [_split(partition, segment, 0, 0, file, inside)]  # the reader of the split reports the error
            yield planned(partition, segment, splits)

    def _bounded(self, partition: Partition, file: SegmentFacts) -> tuple[SourceOptions, Ranges | None]:
        options = self._options
        if options.kafka is None:
            return options, None
        start, end = kafka_edges.edges(
            options.kafka, partition, file.log_start, lambda text: lose(text, options, self._note)
        )
        first = partition.segments[0].base_offset if partition.segments else None
        if end is None and first is not None and start <= first:
            return options, None
        inside = ((start, INT64_END if end is None else end),)
        ends = [one for one in (end, options.ending_offset) if one is not None]
        first = max(start, options.starting_offset or 0)  # filters may set an offset too
        return replace(options, starting_offset=first, ending_offset=min(ends, default=None)), inside

    def _cuts(self, segment: Segment) -> list[int]:
        try:
            return cuts(segment, self._options.split_bytes)
        except UnreadableError:  # the reader of the segment reports it
            return []

    def by_survey(self, partition: Partition, surveys: list[Survey], offsets: Ranges | None) -> Iterator[Planned]:
        """Yield a partition's segments, divided and pruned by their headers."""
        file = self._marks.facts(partition)
        options, inside = self._bounded(partition, file)
        kept = {segment.path for segment in prune(partition.segments, options)}
        fates, stable = self._outcomes(partition, surveys)
        for segment, survey in zip(partition.segments, surveys, strict=True):
            splits = []
            for chunk in survey.chunks if segment.path in kept else ():
                is_there = chunk.start < chunk.end or not chunk.counts_known
                if is_there and _may_hold(chunk, options, stable, offsets):
                    split = _split(partition, segment, chunk.start, chunk.end, file, replicas.common(inside, offsets))
                    fate = fates if chunk.offsets is None else fates.among(*chunk.offsets)
                    splits.append(replace(split, outcomes=fate, stable=stable, summary=chunk))
            yield planned(partition, segment, splits)

    def _outcomes(self, partition: Partition, surveys: list[Survey]) -> tuple[Outcomes, int | None]:
        """Return the outcomes of transactions, and the last stable offset if the read stops there (None: no limit)."""
        for text in (text for one in surveys for text in one.transactions.wrong):
            self._note(f"{text}; kdump does not use this file")
        fates = combined((one.transactions for one in surveys), whole=partition.whole, unnamed=partition.unnamed)
        if not self._options.committed:
            return fates, None
        for text in fates.held_back:
            self._note(f"{partition.name}: {text}")
        return fates, fates.last_stable_offset


def _opens(segment: Segment) -> bool:
    try:
        with segment.open():
            return True
    except UnreadableError:
        return False


def _split(
    partition: Partition, segment: Segment, start: int, end: int, file: SegmentFacts, inside: Ranges | None
) -> Split:
    return Split(
        files=segment.files,
        path=segment.path,
        topic=partition.topic,
        partition=partition.partition,
        start=start,
        end=end,
        high_watermark=file.high_watermark,
        log_start=file.log_start,
        offsets=replicas.common(inside, None if segment.until is None else ((0, segment.until),)),
    )


def planned(partition: Partition, segment: Segment, splits: list[Split], size: int | None = None) -> Planned:
    topic = None if partition.topic is None else path_text(partition.topic)
    size = segment.size if size is None else size
    return Planned(path_text(segment.name), topic, partition.partition, size, tuple(splits))


def _may_hold(chunk: ChunkSummary, options: SourceOptions, stable: int | None, offsets: Ranges | None) -> bool:
    """Return whether a chunk may have selected records; always True for a damaged chunk."""
    if chunk.offsets is None or chunk.damaged_ranges or chunk.trailing_bytes:
        return True
    first, last = chunk.offsets
    end = min((limit for limit in (options.ending_offset, stable) if limit is not None), default=None)
    return not (
        (options.starting_offset is not None and last < options.starting_offset)
        or (end is not None and first >= end)
        or (options.starting_timestamp is not None and chunk.max_timestamp < options.starting_timestamp)
        or (offsets is not None and not any(start <= last for start, _ in offsets))
    )


def cuts(segment: Segment, split_bytes: int, start: int = 0, stop: int | None = None) -> list[int]:
    """Return starts of valid batches at least ``split_bytes`` apart, from a valid offset index, else from headers."""
    stop = segment.size if stop is None else stop
    if stop - start <= split_bytes:
        return []
    with segment.open() as source:
        found = _spaced(_indexed(segment), split_bytes, start, stop)
        if found and all(log.is_sound_at(source, position) for position in found):
            return found
        return _spaced(_walked(source, split_bytes, start, stop), split_bytes, start, stop)


def _indexed(segment: Segment) -> Iterator[int]:
    try:
        data = segment.sibling("index")
    except UnreadableError:  # the index only saves work
        return
    if data and segment.base_offset is not None:
        yield from (entry.position for entry in OffsetIndex(data, segment.base_offset))


def _walked(source: log_dirs_files.Source, split_bytes: int, start: int, stop: int) -> Iterator[int]:
    """Yield positions of valid batches at least ``split_bytes`` apart, up to the first invalid header."""
    last = start
    for region in log.walk(source, start, stop):
        if not isinstance(region, RecordBatch) or not 0 <= region.magic <= 2:
            return
        if region.position - last >= split_bytes and log.is_sound_at(source, region.position):
            last = region.position
            yield last


def _spaced(positions: Iterable[int], split_bytes: int, start: int, stop: int) -> list[int]:
    """Return some of ``positions``, at least ``split_bytes`` apart. The last split has at least half as many."""
    cuts: list[int] = []
    last = start
    for position in positions:
        if position - last >= split_bytes and stop - position >= split_bytes // 2:
            cuts.append(position)
            last = position
    return cuts


def head(source: log_dirs_files.Source, start: int, end: int) -> bytes:
    return bytes(source.read(start, min(HEAD, end - start)))
