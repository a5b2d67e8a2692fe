"""The outcomes of the transactions of a partition, and the offset up to which a read_committed consumer may read.

Each segment is read once, by any process (:func:`scan`), and :func:`combined` joins the results. The markers in the log
decide. Entries of ``.txnindex`` are used only if the log lacks the marker or the start of a transaction, as after
damage. An entry is wrong if the log has another batch at the marker's offset. If a transaction may end in a damaged
range and has no entry, its outcome is unknown.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from kdump.errors import DamageError, StoreError, UnreadableError, many, many_are
from kdump.formats import txn_index
from kdump.formats.record_layout import MAGIC_2
from kdump.formats.txn_index import AbortedTxn
from kdump.log_dirs.file_names import TXN_INDEX
from kdump.primitives.wire import INT64_END
from kdump.records import control
from kdump.records.record_batch import Batches, RecordBatch
from kdump.segments import shared_segment, walk
from kdump.segments.regions import Padding
from kdump.transaction_replay.replay import AbortedRanges, EndedTransaction, OpenTransaction, Replay

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.errors import Reporter
    from kdump.log_dirs import files
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.segments.regions import Region

MARKER_BYTES: Final = 128
"""An upper limit of the size in bytes of a marker's batch. Kafka's markers have 78 bytes."""
Outcome: TypeAlias = Literal["none", "committed", "aborted", "open"]


class DamagedGap(NamedTuple):
    """A damaged range at ``offset``, which may hold the marker of any transaction."""

    offset: int


class Doubt(NamedTuple):
    """A range of offsets (ends included) with unknown outcomes of one producer (None: of all producers)."""

    producer_id: int | None
    first_offset: int
    last_offset: int


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of a partition's transactions: aborted, open, unknown (``doubts``). Others count as committed.

    ``whole`` is true if the last segment was read too. If not, a transaction in ``open`` may end in an unread segment.
    """

    aborted: tuple[AbortedTxn | EndedTransaction, ...] = ()
    open: tuple[OpenTransaction, ...] = ()
    whole: bool = True
    doubts: tuple[Doubt, ...] = ()

    def of(self, batch: RecordBatch) -> Outcome | None:
        """Return the outcome of a batch's transaction or marker ("none" without one); None if it is unknown."""
        if not batch.is_transactional or batch.producer_id is None:
            return "none"
        if batch.is_control:
            return _of_marker(batch)
        if self._aborted.hold(batch):
            return "aborted"
        producers = (batch.producer_id, None)
        if self.doubts and any(_holds(self._doubts.get(producer, ()), batch.base_offset) for producer in producers):
            return None
        transaction = self._open.get(batch.producer_id)
        if transaction is None or batch.base_offset < transaction.first_offset:
            return "committed"
        return "open" if self.whole else None

    def among(self, first: int, last: int) -> Outcomes:
        """Return the outcomes that concern batches at the offsets ``first`` to ``last`` (inclusive)."""
        return replace(
            self,
            aborted=tuple(one for one in self.aborted if (one.first_offset or 0) <= last and one.last_offset >= first),
            open=tuple(one for one in self.open if one.first_offset <= last),
            doubts=tuple(one for one in self.doubts if one.first_offset <= last and one.last_offset >= first),
        )

    @property
    def last_stable_offset(self) -> int | None:
        """The first offset of the oldest open transaction; None if no transaction is open."""
        return min((one.first_offset for one in self.open), default=None)

    @property
    def early_end(self) -> str | None:
        """The note for a read_committed reader about open transactions; None if there are none."""
        if not self.open:
            return None
        ends = f"read_committed ends at the last stable offset, {self.last_stable_offset}"
        if not self.whole:
            return f"{many(len(self.open), 'transaction')} may end in later segments, which are not read; {ends}"
        return f"{many_are(len(self.open), 'transaction')} open; {ends}"

    @property
    def unknown(self) -> str | None:
        """The note for a read_committed reader about transactions of unknown outcome; None if there are none."""
        if not self.doubts:
            return None
        spans = [
            f"{one.first_offset} to {'the end' if one.last_offset >= INT64_END else one.last_offset}"
            for one in self.doubts
        ]
        more = f" and at {len(spans) - 3} other places" if len(spans) > 3 else ""
        return (
            f"kdump did not read the bytes that show whether transactions at offsets {', '.join(spans[:3])}{more} "
            "were committed; read_committed leaves out their records at these offsets"
        )

    @property
    def held_back(self) -> list[str]:
        """The notes for a read_committed reader about records that it does not receive."""
        return [text for text in (self.early_end, self.unknown) if text is not None]

    @cached_property
    def _doubts(self) -> dict[int | None, list[tuple[int, int]]]:
        """Producer id -> the ranges of offsets with unknown outcomes, merged and sorted; both ends are included."""
        spans: dict[int | None, list[tuple[int, int]]] = {}
        for one in sorted(self.doubts, key=lambda one: one.first_offset):
            known = spans.setdefault(one.producer_id, [])
            if known and one.first_offset <= known[-1][1]:
                known[-1] = (known[-1][0], max(known[-1][1], one.last_offset))
            else:
                known.append((one.first_offset, one.last_offset))
        return spans

    @cached_property
    def _aborted(self) -> AbortedRanges:
        return AbortedRanges(self.aborted)

    @cached_property
    def _open(self) -> dict[int, OpenTransaction]:
        return {one.producer_id: one for one in self.open}


def _holds(spans: Sequence[tuple[int, int]], offset: int) -> bool:
    at = bisect_right(spans, (offset, INT64_END)) - 1
    return at >= 0 and offset <= spans[at][1]


class SegmentOutcomes(NamedTuple):
    """The result of one segment: the ends of transactions in it, and the transactions that are open at its end.

    ``ended`` has aborts, damage and doubts, and a commit if it is the first marker of its producer, or the first after
    damage: other commits end transactions of this segment. ``wrong`` has messages on invalid data in ``.txnindex``.
    ``end`` is a damaged range after the last batch. It is ignored in the log's last segment, which may be growing.
    """

    ended: tuple[AbortedTxn | EndedTransaction | DamagedGap | Doubt, ...] = ()
    open: tuple[OpenTransaction, ...] = ()
    wrong: tuple[str, ...] = ()
    end: DamagedGap | None = None
    base: int | None = None


class TransactionFollower:
    """Follows the transactions of one segment. Call :meth:`add` and :meth:`lose` with its regions in order.

    The segment's ``.txnindex`` is read unless ``index`` is false. Raises StoreError if a store cannot deliver it.
    """

    def __init__(self, where: Segment, *, index: bool = True) -> None:
        self._path = where.siblings.get(TXN_INDEX, "")
        self._base = where.base_offset
        self._replay = Replay()
        self._ended: list[AbortedTxn | EndedTransaction | DamagedGap | Doubt] = []
        self._met: set[int] = set()
        self._wrong: list[str] = []
        self._entries = self._read(where) if index else []
        self._after_hole = self._has_hole = False

    def _read(self, where: Segment) -> list[AbortedTxn]:
        try:
            data = where.sibling(TXN_INDEX)
            return sorted(txn_index.read(data), key=lambda entry: -entry.last_offset) if data else []
        except DamageError as damage:
            self._wrong.append(f"{self._path}: {damage}")
        except StoreError:
            raise
        except UnreadableError as error:
            self._wrong.append(str(error))
        return []

    def add(self, batches: Batches) -> None:
        row = 0
        while row < batches.batch_count and (batches.first.is_control or self._entries or self._after_hole):
            self._add(batches.batch(row))
            row += 1
        self._replay.add(batches, row)

    def _add(self, batch: RecordBatch) -> None:
        while self._entries and self._entries[-1].last_offset < batch.base_offset:
            self._end_by_entry(self._entries.pop())
        if self._after_hole:
            self._doubt()
        try:
            ended = self._replay.add(batch)
        except DamageError:  # an invalid marker: the entry of .txnindex decides
            self._after_hole = True
            return
        while self._entries and self._entries[-1].last_offset <= batch.last_offset:
            entry = self._entries.pop()
            if ended is None or not ended.aborted or ended.producer_id != entry.producer_id:
                why = f"the log has no abort marker of producer {entry.producer_id} at offset {entry.last_offset}"
                self._wrong.append(f"{self._path}: an entry is wrong: {why}")
            elif ended.first_offset is None or self._has_hole:  # the entry includes batches before the hole
                first = entry.first_offset if ended.first_offset is None else ended.first_offset
                ended = ended._replace(first_offset=min(first, entry.first_offset))
        if ended is not None:
            self._end(ended)

    @property
    def has_index(self) -> bool:
        """Whether ``.txnindex`` has entries that are not compared with batches yet."""
        return bool(self._entries)

    def skip(self, end_offset: int) -> None:
        """Continue at ``end_offset``: the caller has found no transactional batch of the segment below it."""
        self._replay.end_offset = end_offset

    def lose(self, source: files.Source, region: Region) -> None:
        """Add a damaged region. Ignore padding, and a region that has only invalid batches too large for a marker."""
        if isinstance(region, Padding):
            return
        for one in walk.walk(source, region.position, region.position + region.size):
            if not isinstance(one, RecordBatch) or one.size <= MARKER_BYTES or not 0 <= one.magic <= MAGIC_2:
                self._after_hole = True
                return

    def _doubt(self) -> None:
        """Mark the outcomes of transactions that were open before a damaged range as unknown."""
        hole = self._hole()
        self._ended += (Doubt(one.producer_id, one.first_offset, hole.offset - 1) for one in self._replay.open.values())
        self._ended.append(hole)
        self._replay.open.clear()
        self._met.clear()
        self._after_hole, self._has_hole = False, True

    def _hole(self) -> DamagedGap:
        known = (self._replay.end_offset, self._base, INT64_END)
        return DamagedGap(next(offset for offset in known if offset is not None))

    def _end_by_entry(self, entry: AbortedTxn) -> None:
        """Let an entry of ``.txnindex`` end a transaction whose marker was not read."""
        self._replay.open.pop(entry.producer_id, None)
        self._end(entry)

    def _end(self, ended: AbortedTxn | EndedTransaction) -> None:
        committed = isinstance(ended, EndedTransaction) and not ended.aborted
        if not committed or ended.producer_id not in self._met:
            self._ended.append(ended)
        self._met.add(ended.producer_id)

    def result(self) -> SegmentOutcomes:
        while self._entries:
            self._end_by_entry(self._entries.pop())
        hole = self._hole() if self._after_hole else None
        return SegmentOutcomes(
            tuple(self._ended), tuple(self._replay.open.values()), tuple(self._wrong), hole, self._base
        )

    def unread(self) -> SegmentOutcomes:
        """Return the result of an unreadable segment, from its ``.txnindex`` alone. Call it before adding regions."""
        found = self.result()
        hole = self._hole()
        return found._replace(ended=(*found.ended, hole, Doubt(None, hole.offset, INT64_END)))


def combined(  # noqa: C901  a case per end
    results: Iterable[SegmentOutcomes], *, whole: bool = True, unnamed: Sequence[int] = ()
) -> Outcomes:
    """Join the results of segments in offset order. ``unnamed`` are the base offsets of segments that were not read."""
    still_open: dict[int, OpenTransaction] = {}
    aborted: list[AbortedTxn | EndedTransaction] = []
    doubts: list[Doubt] = []

    def doubt(hole: DamagedGap) -> None:
        doubts.extend(Doubt(one.producer_id, one.first_offset, hole.offset - 1) for one in still_open.values())
        still_open.clear()

    end: DamagedGap | None = None
    above: int | None = None
    for segment in results:
        if end is not None:
            doubt(end)
        base = segment.base or 0
        if above is not None and (between := [one for one in unnamed if above < one < base]):
            doubt(DamagedGap(min(between)))
        above = base
        if doubts and doubts[-1].producer_id is None and segment.base is not None:  # it ends before this segment
            doubts[-1] = doubts[-1]._replace(last_offset=min(doubts[-1].last_offset, segment.base - 1))
        for ended in segment.ended:
            if isinstance(ended, DamagedGap):
                doubt(ended)
                continue
            if isinstance(ended, Doubt):
                doubts.append(ended)
                continue
            begun = still_open.pop(ended.producer_id, None)
            if isinstance(ended, AbortedTxn):
                aborted.append(ended)
            elif ended.aborted:
                first = ended.first_offset if begun is None else begun.first_offset
                if first is not None:
                    aborted.append(ended._replace(first_offset=first))
        for opened in segment.open:
            begun = still_open.setdefault(opened.producer_id, opened)
            if opened.first_offset < begun.first_offset:
                still_open[opened.producer_id] = opened
        end = segment.end
    return Outcomes(tuple(aborted), tuple(still_open.values()), whole, tuple(doubts))


def follow(partition: Partition, report: Reporter, scans: Iterable[Scan] | None = None) -> Outcomes:
    """Return the outcomes of a partition. Report wrong entries of ``.txnindex`` and unreadable segments.

    ``scans`` are the results of :func:`scan` for the segments, if the caller has them.
    """

    def results() -> Iterator[SegmentOutcomes]:
        for found, error in map(scan, partition.segments) if scans is None else scans:
            if error is not None:
                report.fail(error)
            for text in found.wrong:
                report.wrong(text)
            yield found

    return combined(results(), whole=partition.whole, unnamed=partition.unnamed)


class Scan(NamedTuple):
    found: SegmentOutcomes
    error: UnreadableError | None = None


def scan(where: Segment) -> Scan:
    """Return the result of a segment; of an unreadable one from its ``.txnindex`` (not after StoreError)."""
    try:
        return Scan(_scan(where))
    except UnreadableError as error:
        return Scan(TransactionFollower(where, index=not isinstance(error, StoreError)).unread(), error)


def _scan(where: Segment) -> SegmentOutcomes:
    follower = TransactionFollower(where)
    with where.open() as source, closing(shared_segment.read_headers(source)) as regions:
        for region in regions:
            if isinstance(region, Batches):
                follower.add(region)
            else:
                follower.lose(source, region)
    return follower.result()


def _of_marker(batch: RecordBatch) -> Outcome | None:
    """Return the outcome in a marker; None if the marker is malformed, or compaction removed its record."""
    try:
        for record in batch.records():
            return {control.COMMIT: "committed", control.ABORT: "aborted"}.get(
                control.read_key(record.key).type, "none"
            )  # type: ignore[return-value]  # words of Outcome
    except DamageError:
        pass
    return None
