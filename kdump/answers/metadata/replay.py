"""Applies the batches of the metadata log to an image. A record that cannot be applied becomes a :class:`Break`.

The records of a metadata transaction are applied together at its EndTransactionRecord, or not at all (KIP-868).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kdump.answers.metadata.records import Appended, MetadataRecord, PreviewRecord, ReplayError, Undecoded, appended
from kdump.errors import DamageError, LimitError
from kdump.internal_topics import cluster_metadata
from kdump.primitives.wire import INT64_END

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.metadata.records import Fields
    from kdump.records.record_batch import Batches

BEGIN, END, ABORT = "BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"
BOUNDS = frozenset((BEGIN, END, ABORT))


class BreakEffect(Enum):
    """The effect of a break on brokers and controllers.

    Sources: MetadataBatchLoader, QuorumController; RecordsIterator, which decodes the whole log when a node starts;
    KafkaMetadataLog, which requires a snapshot at the log start offset.
    """

    NOT_APPLIED = (
        "kdump skips the record; a controller of 3.3 or later stops at the record with a fatal fault, "
        "and a broker logs an error and skips the record"
    )
    NOT_DECODED = "kdump skips the records that it cannot read; no broker and no controller starts with them"
    NOT_KNOWN = "kdump skips the record; only a release that can read it starts"
    NOT_READ = "kdump skips the batch"
    GAP = "brokers and controllers do not notice the gap: they apply the later records without these changes"
    NO_BEGINNING = "a broker or controller whose log begins here does not start without a snapshot of these records"


class Break(NamedTuple):
    """A problem in a replay: a record that cannot be applied, or missing or unreadable records. Replay goes on."""

    offset: int
    timestamp: int
    """The time of the record or batch in ms."""
    record: str
    """The name of the message, or empty if it is unknown."""
    reason: str
    effect: BreakEffect

    @property
    def text(self) -> str:
        """A sentence about the break, with the effect on brokers and controllers."""
        return f"{self.cause}; {self.effect.value}"

    @property
    def cause(self) -> str:
        """Like :attr:`text`, without the effect."""
        if self.effect in {BreakEffect.GAP, BreakEffect.NO_BEGINNING}:
            return f"offset {self.offset}: {self.reason}"
        what = f" ({self.record})" if self.record else ""
        return f"offset {self.offset}{what} cannot be replayed: {self.reason}"


class Observer(Protocol):
    """The interface of an object whose methods a replay calls."""

    def before(self, record: MetadataRecord, image: ClusterImage) -> None:
        """Called before a record is applied, in a transaction at its end."""

    def applied(self) -> None:
        """Called after a record was applied. Not called after a break."""

    def broken(self, found: Break) -> None:
        """Called with each break."""

    def together(self) -> None:
        """Called after a batch if no metadata transaction is open, but not after the batch with the offset ``to``."""


class MetadataReplay:
    """Applies batches to ``image``. ``broken`` is called with each Break, ``observer`` as :class:`Observer` describes.

    The replay stops before the offset ``to``, and before the first batch appended after ``at`` (ms).
    """

    def __init__(
        self,
        image: ClusterImage,
        broken: Callable[[Break], None],
        *,
        to: int | None = None,
        at: int | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.image = image
        self._broken = broken
        self._to = INT64_END if to is None else to
        self._at = at
        self._observer = observer
        self._held: list[MetadataRecord] = []
        self._has_begun = False

    def add(self, found: Batches) -> bool:
        """Apply the records of a batch or run; return whether later batches are needed."""
        return all(map(self.append, appended(found)))

    def append(self, batch: Appended) -> bool:
        image, to, base = self.image, self._to, batch.base_offset
        if base >= to or (self._at is not None and batch.timestamp > self._at):
            return False
        if base > image.end_offset:
            self._gap(base, batch.timestamp, BreakEffect.GAP if self._has_begun else BreakEffect.NO_BEGINNING)
        self._has_begun = True
        try:
            handlers = self._direct()
            for record in batch.records:
                offset = record.offset
                if offset >= to:
                    image.cut_batch = base if offset > base else None
                    return False
                if offset != image.end_offset:
                    if offset < image.end_offset:
                        continue
                    self._gap(offset, record.timestamp)
                if type(record) is MetadataRecord and (handler := handlers.get(record.name)) is not None:
                    try:
                        handler(record.fields)
                    except ReplayError as error:
                        self._break(record, str(error))
                else:
                    self._take(record)
                    handlers = self._direct()
                image.end_offset, image.epoch, image.timestamp = offset + 1, batch.epoch, record.timestamp
            if batch.last_offset >= image.end_offset:
                self._gap(batch.last_offset + 1, batch.timestamp)
        except DamageError as damage:
            from kdump.rows.redaction import shown

            reason = f"the batch cannot be read: {shown(damage, cluster_metadata.TOPIC)}"
            effect = BreakEffect.NOT_READ if isinstance(damage, LimitError) else BreakEffect.NOT_DECODED
            self._report(Break(image.end_offset, batch.timestamp, "", reason, effect))
            image.end_offset = max(image.end_offset, batch.last_offset + 1)
        if self._observer is not None and image.open_transaction is None:
            self._observer.together()
        return True

    def _direct(self) -> Mapping[str, Callable[[Fields], None]]:
        """The image's handlers for direct calls. Empty in a transaction and with an observer, which need more steps."""
        return self.image.handlers if self._observer is None and self.image.open_transaction is None else {}

    def _gap(self, offset: int, timestamp: int, effect: BreakEffect = BreakEffect.GAP) -> None:
        reason = f"the records from offset {self.image.end_offset} up to this offset are missing"
        self._report(Break(offset, timestamp, "", reason, effect))
        self.image.end_offset = offset

    def _take(self, record: MetadataRecord | Undecoded) -> None:
        if isinstance(record, Undecoded):
            effect = BreakEffect.NOT_DECODED if record.is_known else BreakEffect.NOT_KNOWN
            self._report(Break(record.offset, record.timestamp, "", record.reason, effect))
            return
        if isinstance(record, PreviewRecord) and self.image.preview_at is None:
            self.image.preview_at = record.offset
        if record.name in BOUNDS:
            self._bound(record)
        elif self.image.open_transaction is not None:
            self._held.append(record)
        else:
            self._apply(record)

    def _bound(self, record: MetadataRecord) -> None:
        began = self.image.open_transaction
        if record.name == BEGIN:
            if began is not None:
                self._break(record, f"the earlier transaction that begins at offset {began} has no end")
            self.image.open_transaction = record.offset
        elif began is None:
            self._break(record, "the record ends a transaction, but no transaction is open")
        else:
            self.image.open_transaction = None
            for waiting in self._held if record.name == END else ():
                self._apply(waiting)
        self._held = []

    def _apply(self, record: MetadataRecord) -> None:
        observer = self._observer
        if observer is not None:
            observer.before(record, self.image)
        try:
            self.image.handlers[record.name](record.fields)
        except ReplayError as error:
            self._break(record, str(error))
            return
        if observer is not None:
            observer.applied()

    def _break(self, record: MetadataRecord, reason: str) -> None:
        self._report(Break(record.offset, record.timestamp, record.name, reason, BreakEffect.NOT_APPLIED))

    def _report(self, found: Break) -> None:
        self._broken(found)
        if self._observer is not None:
            self._observer.broken(found)
