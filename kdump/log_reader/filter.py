"""Which records and batches to take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from kdump.formats.record_layout import LOG_APPEND_TIME
from kdump.primitives import compression
from kdump.primitives.wire import INT64_END

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator

    from kdump.formats.record import Record
    from kdump.log_reader.payload_search import DecodedSearch
    from kdump.records.record_batch import RecordBatch
    from kdump.segments.batch_runs import Run

RecordType: TypeAlias = Literal["data", "control", "tombstone"]
RECORD_TYPES: Final[tuple[RecordType, ...]] = ("data", "control", "tombstone")
GrepPart: TypeAlias = Literal["key", "value", "headers"]
GREP_PARTS: Final[tuple[GrepPart, ...]] = ("key", "value", "headers")
"""Parts of a record that expressions are looked for in; of headers the values."""
KEY_AND_VALUE: Final[frozenset[GrepPart]] = frozenset({"key", "value"})


class Filter(NamedTuple):
    """What to take. None and empty take all; times are ms, ``since`` included and ``until`` not."""

    first_offset: int | None = None
    last_offset: int | None = None
    """Taken too."""
    since: int | None = None
    until: int | None = None
    keys: frozenset[bytes] = frozenset()
    greps: tuple[re.Pattern[bytes], ...] = ()
    """A match of any of them in key or value, or where ``grep_in`` says."""
    decoded: bool = False
    """Whether ``keys`` and ``greps`` look into decoded keys and values, too."""
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    """Each must be there; a value of None takes any."""
    producer_ids: frozenset[int] = frozenset()
    leader_epochs: frozenset[int] = frozenset()
    types: frozenset[RecordType] = frozenset()
    transactional: bool | None = None
    committed: bool = False
    """Only what a read_committed consumer is given: no markers, no aborted data, nothing from the stable offset on."""
    out_of_order: bool = False
    """Whether segments that begin at ``until`` or later are read, for records with older timestamps in them."""
    grep_in: frozenset[GrepPart] = KEY_AND_VALUE

    @property
    def is_timed(self) -> bool:
        """Whether timestamps lie in a range."""
        return self.since is not None or self.until is not None

    @property
    def looks_into_records(self) -> bool:
        """Whether headers of batches are not enough to decide."""
        return self.is_bounded or self.looks_into_fields

    @property
    def looks_into_headers(self) -> bool:
        """Whether headers of batches decide, beside offsets and timestamps; ``committed`` is no part of it."""
        return bool(self.producer_ids or self.leader_epochs or self.types or self.transactional is not None)

    @property
    def is_bounded(self) -> bool:
        """Whether offsets or timestamps lie in a range."""
        return any(bound is not None for bound in (self.first_offset, self.last_offset, self.since, self.until))

    @property
    def looks_into_fields(self) -> bool:
        """Whether more of a record than its offset and its timestamp decides."""
        return bool(self.keys or self.greps or self.headers or self.types & {"data", "tombstone"})

    @property
    def takes_runs(self) -> bool:
        """Whether all records are taken, or all that are committed."""
        return self in (Filter(), Filter(committed=True))

    def may_hold(self, batch: RecordBatch) -> bool:
        """Tell whether the batch's header lets it hold what is asked for."""
        return self._may_be_held_by(batch) and not (
            (self.first_offset is not None and batch.last_offset < self.first_offset)
            or (self.since is not None and _latest(batch) < self.since)
            or (
                self.until is not None and batch.timestamp_type == LOG_APPEND_TIME and batch.max_timestamp >= self.until
            )
            or (self.producer_ids and batch.producer_id not in self.producer_ids)
            or (self.leader_epochs and batch.partition_leader_epoch not in self.leader_epochs)
        )

    def may_hold_rows(self, run: Run) -> list[bool]:
        """Tell the same of each batch of a run."""
        first = run.first
        if not self._may_be_held_by(first):
            return [False] * run.batch_count
        decide: list[Iterable[bool]] = []
        if self.first_offset is not None:
            decide.append(map(self.first_offset.__le__, run.column("last_offset")))
        if self.since is not None:
            decide.append(map(self.since.__le__, run.column("max_timestamp")))
        if self.until is not None and first.timestamp_type == LOG_APPEND_TIME:
            decide.append(map(self.until.__gt__, run.column("max_timestamp")))
        if self.producer_ids:
            decide.append(map(self.producer_ids.__contains__, run.column("producer_id")))
        if self.leader_epochs:
            decide.append(map(self.leader_epochs.__contains__, run.column("partition_leader_epoch")))
        return list(map(all, zip(*decide, strict=True))) if decide else [True] * run.batch_count

    def _may_be_held_by(self, batch: RecordBatch) -> bool:
        """Tell whether batches with these attributes may hold what is asked for."""
        return not (
            (self.transactional is not None and batch.is_transactional != self.transactional)
            or (self.committed and batch.is_control)
            or (self.types and batch.is_control and "control" not in self.types)
            or (self.types == {"control"} and not batch.is_control)
        )

    def takes_all(self, low: int, high: int, early: int, late: int) -> bool:
        """Tell whether all records of a batch that may hold some lie within offsets and timestamps (ms)."""
        return not (
            (self.first_offset is not None and low < self.first_offset)
            or (self.last_offset is not None and high > self.last_offset)
            or (self.since is not None and early < self.since)
            or (self.until is not None and late >= self.until)
        )

    def takes(self, batch: RecordBatch, record: Record, search: DecodedSearch | None = None) -> bool:
        """Tell whether a record of a batch that may hold it is taken; ``search`` decodes it."""
        if self.first_offset is not None and record.offset < self.first_offset:
            return False
        if self.last_offset is not None and record.offset > self.last_offset:
            return False
        if self.since is not None and record.timestamp < self.since:
            return False
        if self.until is not None and record.timestamp >= self.until:
            return False
        if self.keys and record.key not in self.keys:  # noqa: SIM102  decoding is the last resort
            if search is None or self.keys.isdisjoint(search.keys(record)):
                return False
        if self.types and not batch.is_control and ("tombstone" if record.value is None else "data") not in self.types:
            return False
        if self.greps and not (
            self._is_found_in(self._searched(record))
            or (search is not None and self._is_found_in(search.texts(record, self.grep_in)))
        ):
            return False
        return all(_has_header(record, name, value) for name, value in self.headers)

    def _searched(self, record: Record) -> Iterator[bytes | None]:
        """Yield what expressions are looked for in."""
        if "key" in self.grep_in:
            yield record.key
        if "value" in self.grep_in:
            yield record.value
        if "headers" in self.grep_in:
            yield from (header.value for header in record.headers)

    def _is_found_in(self, parts: Iterable[bytes | None]) -> bool:
        from kdump.log_reader.payload_search import search  # with --grep alone

        return any(search(grep, part) for part in parts if part for grep in self.greps)


def _latest(batch: RecordBatch) -> int:
    """Return a time that no record of a batch is behind; the wrappers of old producers do not tell it."""
    if batch.magic == 1 and batch.codec != compression.NONE and batch.timestamp_type != LOG_APPEND_TIME:
        return INT64_END
    return batch.max_timestamp


def _has_header(record: Record, name: bytes, value: bytes | None) -> bool:
    return any(header.key == name and (value is None or header.value == value) for header in record.headers)
