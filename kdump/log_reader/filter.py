"""Which records and batches to take."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from kdump import kernel
from kdump.errors import DamageError
from kdump.formats.record_layout import LOG_APPEND_TIME
from kdump.primitives import compression
from kdump.primitives.wire import INT64_END

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from kdump.formats.record import Record
    from kdump.log_reader.payload_search import DecodedSearch, Expression
    from kdump.primitives.wire import Bytes
    from kdump.records.magic_2 import Batch
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
        """Return whether the batch's header lets it hold what is asked for."""
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
        """Return the same of each batch of a run."""
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
        """Return whether batches with these attributes may hold what is asked for."""
        return not (
            (self.transactional is not None and batch.is_transactional != self.transactional)
            or (self.committed and batch.is_control)
            or (self.types and batch.is_control and "control" not in self.types)
            or (self.types == {"control"} and not batch.is_control)
        )

    def takes_all(self, low: int, high: int, early: int, late: int) -> bool:
        """Return whether all records of a batch that may hold some lie within offsets and timestamps (ms)."""
        return not (
            (self.first_offset is not None and low < self.first_offset)
            or (self.last_offset is not None and high > self.last_offset)
            or (self.since is not None and early < self.since)
            or (self.until is not None and late >= self.until)
        )

    def takes(self, batch: RecordBatch, record: Record, search: DecodedSearch | None = None) -> bool:
        """Return whether a record of a batch that may hold it is taken; ``search`` decodes it."""
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
    """Return a time that no record of a batch is after; the wrappers of old producers do not show it."""
    if batch.magic == 1 and batch.codec != compression.NONE and batch.timestamp_type != LOG_APPEND_TIME:
        return INT64_END
    return batch.max_timestamp


def _has_header(record: Record, name: bytes, value: bytes | None) -> bool:
    return any(header.key == name and (value is None or header.value == value) for header in record.headers)


MOST_TEXTS: Final = 64
"""Keys, names and values of headers that the kernel compares with."""
_TOKEN: Final = re.compile(
    rb"\\(?P<escape>.)|(?P<wide>\.|\[\^\]?(?:\\.|[^\]\\])*\])|\[\]?(?:\\.|[^\]\\])*\]"
    rb"|(?P<group>\(\?(?!:|P<)|\)(?=[*+{?]))|(?P<anchor>[\^$])|(?P<repeat>(?:[*+]|\{\d*,\d*\})(?P<possessive>\+?))|.",
    re.DOTALL,
)


class Prefilter:
    """Counts the records of batches of magic 2 that a filter may take. The headers of batches are not looked at.

    Where it is ``exact``, the filter takes these records. ``looks`` says whether more than offsets decides.
    """

    def __init__(self, wanted: Filter) -> None:
        from kdump.kernel.records import Picks  # needed with such a filter alone

        values = wanted.types & {"data", "tombstone"}
        self._picks = Picks(
            first=wanted.first_offset,
            last=wanted.last_offset,
            since=wanted.since,
            until=wanted.until,
            keys=sorted(wanted.keys),
            headers=wanted.headers,
            values=None if len(values) != 1 else "data" in values,
        )
        self._greps = [(_fast(grep), literal(grep)) for grep in wanted.greps]
        self.looks = wanted.looks_into_fields or wanted.since is not None or wanted.until is not None
        self.exact = not wanted.greps

    @classmethod
    def of(cls, wanted: Filter) -> Self | None:
        """Return the prefilter of a filter, or None if it has no use for one."""
        few = len(wanted.keys) + 2 * len(wanted.headers) <= MOST_TEXTS
        takes_all = not wanted.looks_into_records and not wanted.looks_into_headers
        if not kernel.COMPILED or wanted.decoded or takes_all or not few or not all(map(is_local, wanted.greps)):
            return None
        return cls(wanted)

    def of_run(self, run: Run, end: int) -> list[int]:
        """Return how many records each batch of a run before row ``end`` may have, up to the first not well-formed."""
        from kdump.kernel.batches import WIDTH
        from kdump.kernel.records import may_hold

        self._picks.stack(run.block, run.rows, WIDTH, 0, end)
        counts = list(self._picks.of_rows())
        if not self._greps:
            return counts
        starts, ends = run.rows[::WIDTH], run.rows[1::WIDTH]
        matched = bytearray(len(counts))
        for grep, needle in self._greps:
            row = len(counts) if needle and not may_hold(run.block, needle) else 0
            while row < len(counts):
                found = grep.search(run.block, starts[row], ends[len(counts) - 1])
                if found is None:
                    break
                while ends[row] <= found.start() and row < len(counts) - 1:
                    row += 1
                matched[row] = 1
                row += 1
        return [count if match else 0 for count, match in zip(counts, matched, strict=True)]

    def of_batch(self, batch: Batch) -> int:
        """Return how many records a batch may have, -1 where the kernel does not know."""
        if batch.count <= 0:
            return -1
        try:
            data, start = batch.payload()
        except DamageError:  # reported where the records are read
            return -1
        if not self._picks.begin(data, start, batch.header, ()):
            return -1
        count = self._picks.of_batch()
        return count if count <= 0 or not self._greps or self._is_in(data, start) else 0

    def _is_in(self, data: Bytes, start: int) -> bool:
        return any(grep.search(data, start) for grep, _ in self._greps)


def _fast(grep: re.Pattern[bytes]) -> Expression:
    """Return what looks for an expression: ``re``, which starts sooner, where no repetition can run far."""
    repeats = (token["repeat"] for token in _TOKEN.finditer(grep.pattern))
    if all(_is_bounded(repeat) for repeat in repeats if repeat):
        return grep

    from kdump.log_reader.payload_search import linear  # needed with such expressions alone

    return linear(grep) or grep


def is_local(grep: re.Pattern[bytes]) -> bool:
    """Return whether an expression can be searched for in a block of many texts at once.

    Its match must not depend on the text around it, and no repetition may run far across the texts.
    """
    if grep.flags & re.VERBOSE:
        return False
    wide = False
    for token in _TOKEN.finditer(grep.pattern):
        escape = token["escape"]
        if token["group"] or token["anchor"] or token["possessive"] or escape in _PLACES:
            return False
        if token["repeat"] and wide and not _is_bounded(token["repeat"]):
            return False
        wide = token["wide"] is not None or escape in _WIDE
    return True


def literal(grep: re.Pattern[bytes]) -> bytes:
    """Return a text that stands in all that a local expression matches: the longest that is easy to find, b"" for none.

    To look for it takes a fraction of the time that the expression does.
    """
    if grep.flags & re.IGNORECASE or re.search(rb"[|(?{]|\\[0-9A-Za-z]", grep.pattern):
        return b""
    found = [b""]
    for token in _TOKEN.finditer(grep.pattern):
        if token["repeat"]:
            found[-1] = found[-1][:-1]  # what is repeated may not be there at all
            found.append(b"")
        elif token["escape"]:
            found[-1] += token["escape"]
        elif len(token[0]) == 1 and not token["wide"]:
            found[-1] += token[0]
        else:
            found.append(b"")
    return max(found, key=len)


_PLACES: Final = {b"A", b"b", b"B", b"Z"}
_WIDE: Final = {b"D", b"S", b"W"}


def _is_bounded(repeat: bytes) -> bool:
    most = repeat.strip(b"{}").rpartition(b",")[2]
    return most.isdigit() and int(most) <= 1000
