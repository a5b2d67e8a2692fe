"""What became of the transactions of a partition, and up to where a read_committed consumer may read.

One pass over the batches of each segment, wherever that is made; what the segments tell is then put together. The
markers in the log decide. An entry of ``.txnindex`` counts where its marker cannot be read, and is wrong where another
batch stands in the marker's place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from kdump import segment
from kdump.errors import DamageError, UnreadableError
from kdump.formats import control, txn_index
from kdump.formats.txn_index import AbortedTxn
from kdump.pieces import RecordBatch
from kdump.transactions import AbortedRanges, EndedTransaction, OpenTransaction, Replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kdump.inputs import Partition, Segment

_FIRST: Final = 1 << 20
Outcome: TypeAlias = Literal["none", "committed", "aborted", "open"]


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of one partition's transactions: whatever is listed nowhere was committed.

    ``whole`` says whether the log was followed to its end. Otherwise what looks open may have ended behind it.
    """

    aborted: tuple[AbortedTxn | EndedTransaction, ...] = ()
    open: tuple[OpenTransaction, ...] = ()
    whole: bool = True

    def of(self, batch: RecordBatch) -> Outcome | None:
        """Return what became of a batch's transaction; None when its end is not among the segments that were named."""
        if not batch.is_transactional or batch.producer_id is None:
            return "none"
        if batch.is_control:
            return _of_marker(batch)
        if self._aborted.hold(batch):
            return "aborted"
        transaction = self._open.get(batch.producer_id)
        if transaction is None or batch.base_offset < transaction.first_offset:
            return "committed"
        return "open" if self.whole else None

    def among(self, first: int, last: int) -> Outcomes:
        """Return the same without what does not reach into the offsets from ``first`` to ``last``."""
        return replace(
            self,
            aborted=tuple(one for one in self.aborted if (one.first_offset or 0) <= last and one.last_offset >= first),
            open=tuple(one for one in self.open if one.first_offset <= last),
        )

    @property
    def last_stable_offset(self) -> int | None:
        """The first offset of the oldest open transaction: a read_committed consumer is given nothing from it on.

        None when none is open: then it is the end of the log.
        """
        return min((one.first_offset for one in self.open), default=None)

    @property
    def early_end(self) -> str | None:
        """What to tell somebody who reads as a read_committed consumer; None when nothing is held back."""
        if not self.open:
            return None
        ends = f"read_committed ends at the last stable offset, {self.last_stable_offset}"
        return f"{len(self.open)} transactions have not ended; {ends}"

    @cached_property
    def _aborted(self) -> AbortedRanges:
        return AbortedRanges(self.aborted)

    @cached_property
    def _open(self) -> dict[int, OpenTransaction]:
        return {one.producer_id: one for one in self.open}


class Told(NamedTuple):
    """What one segment tells: the ends of transactions in it, and those that it leaves open.

    Of those ends that change nothing for any other segment, a second commit of one producer, none is listed. ``wrong``
    says what does not fit in its ``.txnindex``.
    """

    ended: tuple[AbortedTxn | EndedTransaction, ...] = ()
    open: tuple[OpenTransaction, ...] = ()
    wrong: tuple[str, ...] = ()


class Follower:
    """Follows the transactions of one segment; :meth:`add` takes its batches in order."""

    def __init__(self, where: Segment) -> None:
        self._path = where.siblings.get("txnindex", "")
        self._replay = Replay()
        self._ended: list[AbortedTxn | EndedTransaction] = []
        self._met: set[int] = set()
        self._wrong: list[str] = []
        self._entries = self._read(where)

    def _read(self, where: Segment) -> list[AbortedTxn]:
        """Return the entries of the segment's ``.txnindex``, the last one first."""
        try:
            data = where.sibling("txnindex")
            return sorted(txn_index.read(data), key=lambda entry: -entry.last_offset) if data else []
        except DamageError as damage:
            self._wrong.append(f"{self._path}: {damage}")
        except UnreadableError as error:
            self._wrong.append(str(error))
        return []

    def add(self, batch: RecordBatch) -> None:
        """Take the next batch."""
        while self._entries and self._entries[-1].last_offset < batch.base_offset:
            self._believe(self._entries.pop())
        try:
            ended = self._replay.add(batch)
        except DamageError:  # a marker that says nothing sound: the entry for it decides
            return
        if ended is not None:
            self._end(ended)
        while self._entries and self._entries[-1].last_offset <= batch.last_offset:
            entry = self._entries.pop()
            if ended is None or not ended.aborted or ended.producer_id != entry.producer_id:
                claim = f"abort marker of producer {entry.producer_id} at offset {entry.last_offset}"
                self._wrong.append(f"{self._path}: the log has no {claim}")

    def _believe(self, entry: AbortedTxn) -> None:
        """Take an entry as the end of a transaction, where there is no batch in the place of its marker."""
        self._replay.open.pop(entry.producer_id, None)
        self._end(entry)

    def _end(self, ended: AbortedTxn | EndedTransaction) -> None:
        committed = isinstance(ended, EndedTransaction) and not ended.aborted
        if not committed or ended.producer_id not in self._met:
            self._ended.append(ended)
        self._met.add(ended.producer_id)

    def told(self) -> Told:
        """Return what the segment tells, when all its batches were added."""
        while self._entries:
            self._believe(self._entries.pop())
        return Told(tuple(self._ended), tuple(self._replay.open.values()), tuple(self._wrong))


def together(told: Iterable[Told], *, whole: bool = True) -> Outcomes:
    """Put together what the segments of a partition tell, in their order."""
    still_open: dict[int, OpenTransaction] = {}
    aborted: list[AbortedTxn | EndedTransaction] = []
    for segment_told in told:
        for end in segment_told.ended:
            begun = still_open.pop(end.producer_id, None)
            if isinstance(end, AbortedTxn):
                aborted.append(end)
            elif end.aborted:
                first = end.first_offset if begun is None else begun.first_offset
                if first is not None:
                    aborted.append(end._replace(first_offset=first))
        for opened in segment_told.open:
            still_open.setdefault(opened.producer_id, opened)
    return Outcomes(tuple(aborted), tuple(still_open.values()), whole)


def follow(
    partition: Partition, wrong_index: Callable[[str], None], fail: Callable[[UnreadableError], None]
) -> Outcomes:
    """Follow the transactions of a partition through all its segments.

    ``wrong_index`` is told of entries that do not fit the log, ``fail`` of files that cannot be read.
    """

    def tell() -> Iterator[Told]:
        for where in partition.segments:
            try:
                told = _scan(where)
            except UnreadableError as error:
                fail(error)
                continue
            for text in told.wrong:
                wrong_index(text)
            yield told

    return together(tell(), whole=partition.whole)


def _scan(where: Segment) -> Told:
    follower = Follower(where)
    with where.open() as source:
        for batch in segment.read(source, on_error="resync"):
            if isinstance(batch, RecordBatch):
                follower.add(batch)
    return follower.told()


def is_transactional(partition: Partition) -> bool:
    """Tell, by the first batch of each segment, whether transactions are likely in a partition."""
    for where in partition.segments:
        try:
            with where.open() as source:
                first = next(segment.read(source, end=_FIRST), None)
        except UnreadableError:  # whoever reads the segment says so
            continue
        if isinstance(first, RecordBatch) and first.is_transactional:
            return True
    return False


def _of_marker(batch: RecordBatch) -> Outcome | None:
    """Return the outcome that a marker writes down; None when it cannot be read, or was removed by compaction."""
    try:
        for record in batch.records():
            return {control.COMMIT: "committed", control.ABORT: "aborted"}.get(
                control.read_key(record.key).type, "none"
            )  # type: ignore[return-value]  # words of Outcome
    except DamageError:
        pass
    return None
