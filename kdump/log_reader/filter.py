r"""The filter of records, and its fast form for batches of magic 2 (:class:`Prefilter`).

RE2 (google-re2) searches expressions in linear time. In Python's ``re``, ``\w+@`` takes quadratic and ``(a+)+b``
exponential time. ``re`` searches what RE2 lacks or may read otherwise: for example lookaround, references to groups,
atomic groups, possessive or over 1,000 repetitions, flags except ``(?s)`` and ``(?m)``, ``\Z``, inner ``$``, sets with
``[`` or ``\S``. ``re`` also searches without RE2, and in the prefilter if no repetition is unbounded: it starts faster.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from kdump import kernel
from kdump.errors import DamageError
from kdump.formats.record import KEY_AND_VALUE, GrepPart, RecordType
from kdump.formats.record_layout import LOG_APPEND_TIME
from kdump.primitives import compression
from kdump.primitives.wire import INT64_END

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from typing import Self

    from kdump.formats.record import Record
    from kdump.primitives.wire import Bytes
    from kdump.records.magic_2 import Batch
    from kdump.records.record_batch import RecordBatch
    from kdump.schemas.decoder import PayloadDecoder
    from kdump.schemas.framing import Side
    from kdump.segments.batch_runs import Run

    class Match(Protocol):
        def start(self) -> int: ...

    class Expression(Protocol):
        def search(self, text: Bytes, pos: int = ..., endpos: int = ..., /) -> Match | None: ...


class Filter(NamedTuple):
    """The conditions that a selected record fulfils. None and empty collections mean no condition.

    ``first_offset``, ``last_offset`` and ``since`` are inclusive, ``until`` is exclusive. Times are in ms.
    """

    first_offset: int | None = None
    last_offset: int | None = None
    since: int | None = None
    until: int | None = None
    keys: frozenset[bytes] = frozenset()
    greps: tuple[re.Pattern[bytes], ...] = ()
    """At least one of these expressions must match in one of the record's parts ``grep_in``. Empty: no condition."""
    decoded: bool = False
    """Whether ``keys`` and ``greps`` also match decoded keys and values."""
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    """Pairs of key and value. The record must have all these headers; the value None means any value."""
    producer_ids: frozenset[int] = frozenset()
    leader_epochs: frozenset[int] = frozenset()
    types: frozenset[RecordType] = frozenset()
    transactional: bool | None = None
    committed: bool = False
    """Whether records are left out that a read_committed consumer does not receive: control, aborted and unstable."""
    out_of_order: bool = False
    """Whether segments that begin at ``until`` or later are read too. They may hold records with older timestamps."""
    grep_in: frozenset[GrepPart] = KEY_AND_VALUE

    @property
    def is_timed(self) -> bool:
        return self.since is not None or self.until is not None

    @property
    def looks_into_records(self) -> bool:
        """Whether a condition needs the records, and not only batch headers."""
        return self.is_bounded or self.looks_into_fields

    @property
    def looks_into_headers(self) -> bool:
        """Whether there are conditions on batch headers, except offsets, timestamps and ``committed``."""
        return bool(self.producer_ids or self.leader_epochs or self.types or self.transactional is not None)

    @property
    def is_bounded(self) -> bool:
        return self._bounds != (None, None, None, None)

    @property
    def fits_64_bits(self) -> bool:
        """Whether compiled code can compare the bounds of offsets and timestamps."""
        return all(bound is None or -INT64_END < bound < INT64_END for bound in self._bounds)

    @property
    def _bounds(self) -> tuple[int | None, ...]:
        return self.first_offset, self.last_offset, self.since, self.until

    @property
    def looks_into_fields(self) -> bool:
        """Whether there are conditions on fields of records, except offset and timestamp."""
        return bool(self.keys or self.greps or self.headers or self.types & {"data", "tombstone"})

    @property
    def takes_runs(self) -> bool:
        """Whether no field is set except ``committed`` and ``out_of_order``: all records, or all committed ones."""
        return self._replace(committed=False, out_of_order=False) == Filter()

    def may_hold(self, batch: RecordBatch) -> bool:
        """Return whether a batch may have selected records, by its header. ``last_offset`` is not compared."""
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
        return not (
            (self.transactional is not None and batch.is_transactional != self.transactional)
            or (self.committed and batch.is_control)
            or (self.types and batch.is_control and "control" not in self.types)
            or (self.types == {"control"} and not batch.is_control)
        )

    def takes_all(self, low: int, high: int, early: int, late: int) -> bool:
        """Return whether the offsets ``low`` to ``high`` and times ``early`` to ``late`` (ms) meet the bounds."""
        return not (
            (self.first_offset is not None and low < self.first_offset)
            or (self.last_offset is not None and high > self.last_offset)
            or (self.since is not None and early < self.since)
            or (self.until is not None and late >= self.until)
        )

    def takes(self, batch: RecordBatch, record: Record, search: DecodedSearch | None = None) -> bool:
        """Return whether a record is selected, except by ``committed``. :meth:`may_hold` must be true for ``batch``."""
        offset, timestamp = record.offset, record.timestamp
        if not self.takes_all(offset, offset, timestamp, timestamp):
            return False
        if self.keys and record.key not in self.keys:  # noqa: SIM102  decoding is the slowest test
            if search is None or self.keys.isdisjoint(search.keys(record)):
                return False
        if self.types and not batch.is_control and ("tombstone" if record.value is None else "data") not in self.types:
            return False
        if self.greps and not (
            self._is_found_in(self._searched(record))
            or (search is not None and self._is_found_in(search.texts(record, self.grep_in)))
        ):
            return False
        return all(
            any(header.key == name and (value is None or header.value == value) for header in record.headers)
            for name, value in self.headers
        )

    def _searched(self, record: Record) -> Iterator[bytes | None]:
        if "key" in self.grep_in:
            yield record.key
        if "value" in self.grep_in:
            yield record.value
        if "headers" in self.grep_in:
            yield from (header.value for header in record.headers)

    def _is_found_in(self, parts: Iterable[bytes | None]) -> bool:
        return any(search(grep, part) for part in parts if part is not None for grep in self.greps)


def _latest(batch: RecordBatch) -> int:
    """Return an upper limit of the timestamps in a batch (ms): INT64_END for a wrapper of magic 1 with CreateTime."""
    if batch.magic == 1 and batch.codec != compression.NONE and batch.timestamp_type != LOG_APPEND_TIME:
        return INT64_END
    return batch.max_timestamp


MOST_TEXTS: Final = 64
"""Maximum number of keys, header names and header values of a filter that compiled code applies."""
_TOKEN: Final = (
    rb"(?s)\\(?P<escape>.)|(?P<wide>\.|\[\^\]?(?:\\.|[^\]\\])*\])|\[\]?(?:\\.|[^\]\\])*\]"
    rb"|(?P<group>\(\?(?!:|P<)|\)(?=[*+{?]))|(?P<anchor>[\^$])|(?P<repeat>(?:[*+]|\{\d*,\d*\})(?P<possessive>\+?))|."
)


class Prefilter:
    """Counts, in compiled code, the records of magic 2 batches that a filter may select.

    If ``exact`` is true and the filter is not ``committed``, it selects all counted records of a batch for which its
    ``may_hold`` is true. Otherwise it may select fewer. ``looks``: it has conditions on times or on fields of records.
    """

    def __init__(self, wanted: Filter) -> None:
        from kdump.kernel.records import Picks

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
        """Return the prefilter of a filter; None if the filter ``takes_runs``, or compiled code cannot apply it."""
        takes_all = not wanted.looks_into_records and not wanted.looks_into_headers
        if not kernel.COMPILED or wanted.decoded or takes_all:
            return None
        few = len(wanted.keys) + 2 * len(wanted.headers) <= MOST_TEXTS
        return cls(wanted) if few and wanted.fits_64_bits and all(map(is_local, wanted.greps)) else None

    def of_run(self, run: Run, end: int) -> list[int]:
        """Return the count for each batch of a run, up to number ``end`` (exclusive) or the first malformed record."""
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
        """Return the count of a batch, or -1 if it is empty or compiled code cannot read all its records."""
        if batch.count <= 0:
            return -1
        try:
            data, start = batch.payload()
        except DamageError:  # the reader of the records reports it
            return -1
        if not self._picks.begin(data, start, batch.header, ()):
            return -1
        count = self._picks.of_batch()
        return count if count <= 0 or not self._greps or self._is_in(data, start) else 0

    def _is_in(self, data: Bytes, start: int) -> bool:
        return any(grep.search(data, start) for grep, _ in self._greps)


def _fast(grep: re.Pattern[bytes]) -> Expression:
    """Return the form for RE2 if ``grep`` has unbounded repetitions and RE2 can, else ``grep``: it starts faster."""
    repeats = (token["repeat"] for token in re.finditer(_TOKEN, grep.pattern))
    if all(_is_bounded(repeat) for repeat in repeats if repeat):
        return grep

    return linear(grep) or grep


def is_local(grep: re.Pattern[bytes]) -> bool:
    """Return whether an expression can be searched in a block of many texts at once.

    The match must not depend on the surrounding text, and an unbounded repetition must not match across two texts.
    """
    if grep.flags & re.VERBOSE:
        return False
    wide = False
    for token in re.finditer(_TOKEN, grep.pattern):
        escape = token["escape"]
        if token["group"] or token["anchor"] or token["possessive"] or escape in _PLACES:
            return False
        if token["repeat"] and wide and not _is_bounded(token["repeat"]):
            return False
        wide = token["wide"] is not None or escape in _WIDE
    return True


def literal(grep: re.Pattern[bytes]) -> bytes:
    """Return bytes that every match of a local expression contains, for a fast first search; b"" if none are known."""
    if grep.flags & re.IGNORECASE or re.search(rb"[|(?{]|\\[0-9A-Za-z]", grep.pattern):
        return b""
    found = [b""]
    for token in re.finditer(_TOKEN, grep.pattern):
        if token["repeat"]:
            found[-1] = found[-1][:-1]  # the repeated character may occur zero times
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


_PART: Final = (
    rb"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<group>\((?!\?)|\(\?(?::|P<\w+>))|(?P<flags>\(\?[a-zA-Z-]*\)?)"
    rb"|(?P<repeat>(?:[*+?]|\{\d*,?\d*\})(?P<more>[+?]?))|(?P<end>\$)|(?P<other>.)"
)
"""Matches a part of an expression. Compiled on demand: at import it would delay each start by a millisecond."""
_SAME_ESCAPES: Final = rb"\\(?:[dDwWbBAafnrtv]|x[0-9a-fA-F]{2}|[^a-zA-Z0-9])"
_SPACES: Final = rb"\t-\r "
"""The bytes of ``\\s``. RE2's ``\\s`` lacks the vertical tab."""


@lru_cache(maxsize=64)
def linear(pattern: re.Pattern[bytes]) -> Expression | None:
    """Return an expression compiled by RE2; None if RE2 is not installed or may match other texts than ``re``."""
    text = _translated(pattern)
    if text is None:
        return None
    try:
        import re2
    except ImportError:
        return None
    options = re2.Options()
    options.encoding, options.log_errors = re2.Options.Encoding.LATIN1, False
    try:
        made: Expression = re2.compile(text, options)
    except re2.error:
        return None
    return made


def search(pattern: re.Pattern[bytes], text: bytes) -> bool:
    """Return whether an expression matches in a text. RE2 searches it if possible."""
    return (linear(pattern) or pattern).search(text) is not None


def _translated(pattern: re.Pattern[bytes]) -> bytes | None:
    if pattern.flags & ~(re.DOTALL | re.MULTILINE):
        return None
    source, out = pattern.pattern, []
    for part in re.finditer(_PART, source, re.DOTALL):
        made: bytes | None = part[0]
        if part["escape"]:
            made = _escape(source[part.start() : part.start() + 4], part[0])
        elif part["set"]:
            made = _set(part[0])
        elif part["flags"]:
            made = part[0] if re.fullmatch(rb"\(\?[sm]+\)", part[0]) and not part.start() else None
        elif part["repeat"]:
            made = None if part["more"] == b"+" else part[0].replace(b"{,", b"{0,")  # RE2 reads {,3} literally
        elif part["end"] and not pattern.flags & re.MULTILINE:
            made = rb"\n?\z" if part.end() == len(source) else None
        if made is None:
            return None
        out.append(made)
    flags = b"".join(letter for flag, letter in ((re.DOTALL, b"s"), (re.MULTILINE, b"m")) if pattern.flags & flag)
    return (b"(?%b)" % flags if flags else b"") + b"".join(out)


def _escape(source: bytes, escape: bytes) -> bytes | None:
    if escape in {rb"\s", rb"\S"}:
        return b"[" + (b"^" if escape == rb"\S" else b"") + _SPACES + b"]"
    if escape == rb"\x":  # the two digits of \x are separate matches
        return escape if re.fullmatch(rb"\\x[0-9a-fA-F]{2}", source) else None
    return escape if re.fullmatch(_SAME_ESCAPES, escape) else None


def _set(source: bytes) -> bytes | None:
    if b"[" in source[1:] or rb"\S" in source or rb"\b" in source:  # [: is a class for RE2, \b a backspace for re
        return None
    for escape in re.findall(rb"\\x[0-9a-fA-F]{2}|\\.", source, re.DOTALL):
        if escape != rb"\s" and not re.fullmatch(_SAME_ESCAPES, escape):
            return None
    return source.replace(rb"\s", _SPACES) if rb"\\" not in source else (None if rb"\s" in source else source)


_SIDES: Final[tuple[Literal["key", "value"], ...]] = ("key", "value")


class DecodedSearch:
    """Decodes keys and values, and returns them as compact JSON. Undecodable keys and values are left out."""

    def __init__(self, decoder: PayloadDecoder, topic: str) -> None:
        self._decoder, self._topic = decoder, topic

    def keys(self, record: Record) -> frozenset[bytes]:
        """Return the values of --key that select the record: its key as JSON. A string also counts without quotes."""
        side = self._side("key", record)
        if side is None:
            return frozenset()
        found = {self._text(side)}
        if isinstance(side, str):
            found.add(side.encode("utf-8", "surrogatepass"))
        return frozenset(found)

    def texts(self, record: Record, parts: Collection[str] = ("key", "value")) -> tuple[bytes, ...]:
        """Return the JSON texts of the record's key and value, if ``parts`` names them."""
        sides = [self._side(side, record) for side in _SIDES if side in parts]
        return tuple(self._text(side) for side in sides if side is not None)

    def _side(self, side: Side, record: Record) -> object:
        payload = record.key if side == "key" else record.value
        found = self._decoder.side(self._topic, side, payload, record.headers)
        return None if found is None else found.get("data")

    @staticmethod
    def _text(data: object) -> bytes:
        import json

        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
