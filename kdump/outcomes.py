"""What became of the transactions of a partition, and up to where a read_committed consumer may read.

One pass over the batch headers of all its segments, made when the first transactional batch asks for it. The markers
in the log decide. An entry of ``.txnindex`` counts where its marker cannot be read, and is wrong where another
batch stands in the marker's place.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from kdump import segment
from kdump.errors import DamageError, UnreadableError
from kdump.formats import control, txn_index
from kdump.pieces import RecordBatch
from kdump.transactions import AbortedRanges, EndedTransaction, Replay

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdump.formats.txn_index import AbortedTxn
    from kdump.inputs import Partition, Segment

_FIRST: Final = 1 << 20
Outcome: TypeAlias = Literal["none", "committed", "aborted", "open"]


class Outcomes:
    """The outcomes of one partition's transactions.

    ``wrong_index`` is told of entries that do not fit the log, ``fail`` of files that cannot be read.
    """

    def __init__(
        self, partition: Partition, wrong_index: Callable[[str], None], fail: Callable[[UnreadableError], None]
    ) -> None:
        self._partition = partition
        self._wrong_index = wrong_index
        self._fail = fail

    def of(self, batch: RecordBatch) -> Outcome | None:
        """Return what became of a batch's transaction; None when its end is not among the segments that were named."""
        if not batch.is_transactional or batch.producer_id is None:
            return "none"
        if batch.is_control:
            return _of_marker(batch)
        if self._aborted.hold(batch):
            return "aborted"
        transaction = self._replay.open.get(batch.producer_id)
        if transaction is None or batch.base_offset < transaction.first_offset:
            return "committed"
        return "open" if self._partition.whole else None

    @property
    def last_stable_offset(self) -> int | None:
        """The offset before which every transaction has ended; None for an empty log."""
        return self._replay.last_stable_offset

    @property
    def unended(self) -> int:
        """The number of transactions whose end was not found."""
        return len(self._replay.open)

    def follow(self) -> None:
        """Make the pass over the partition now, if it has not been made."""
        self._pass  # noqa: B018  it is cached

    @property
    def _aborted(self) -> AbortedRanges:
        return self._pass[0]

    @property
    def _replay(self) -> Replay:
        return self._pass[1]

    @cached_property
    def _pass(self) -> tuple[AbortedRanges, Replay]:
        """The pass over the partition: what was aborted, and what is open behind its last batch."""
        aborted: list[AbortedTxn | EndedTransaction] = []
        replay = Replay()
        for where in self._partition.segments:
            try:
                aborted += self._scan(where, replay)
            except UnreadableError as error:
                self._fail(error)
        return AbortedRanges(aborted), replay

    def _scan(self, where: Segment, replay: Replay) -> list[AbortedTxn | EndedTransaction]:
        """Follow the transactions of one segment; return those that were aborted in it."""
        aborted: list[AbortedTxn | EndedTransaction] = []
        entries = self._entries(where)
        with where.open() as source:
            for batch in segment.read(source, on_error="resync"):
                if not isinstance(batch, RecordBatch):
                    continue
                try:
                    ended = replay.add(batch)
                except DamageError:  # a marker that says nothing sound: the entry for it decides
                    continue
                if ended is not None and ended.aborted:
                    aborted.append(ended)
                while entries and entries[-1].last_offset <= batch.last_offset:
                    entry = entries.pop()
                    if entry.last_offset < batch.base_offset:
                        aborted.append(entry)
                    elif ended is None or not ended.aborted or ended.producer_id != entry.producer_id:
                        claim = f"an abort marker of producer {entry.producer_id} at offset {entry.last_offset}"
                        self._wrong_index(f"{where.siblings['txnindex']}: the log has no {claim[3:]}")
        return [*aborted, *entries]

    def _entries(self, where: Segment) -> list[AbortedTxn]:
        """Return the entries of a segment's ``.txnindex``, the last one first."""
        data = where.sibling("txnindex")
        if not data:
            return []
        try:
            return sorted(txn_index.read(data), key=lambda entry: -entry.last_offset)
        except DamageError as damage:
            self._wrong_index(f"{where.siblings['txnindex']}: {damage}")
            return []


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
