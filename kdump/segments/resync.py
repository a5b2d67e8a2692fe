"""Reads the regions of a segment: after damage it can continue at the next valid batch.

A batch is valid if magic, size, codec and checksum are right; after damage its offset and counts too. In magic 2 the
checksum does not cover offset, length, leader epoch and magic. With a damaged length or magic a batch is not valid.

**A batch inside a batch.** The value of a record may be a copy of a batch. So kdump does not search inside a valid
batch, and skips a damaged batch as a whole if its end is certain:

* its checksum is right for the length in its header, or for the sizes of its records; or
* its last record ends where its length says, and there the log ends or a valid batch begins with the next offset (in
  magic 0 and 1: with that offset or a later one).

Otherwise the search starts after the first byte of the batch. It may then take a copy in a record for a batch.

**Time.** The search reads each byte a limited number of times, even if size fields are wrong. The checksum of a batch
with a large size field is computed from checksums of fixed ranges (``RangeChecksum``). A budget limits the records that
are skipped to find the end of a damaged batch. A worker that reads a part of a segment guesses its first batch
(:func:`guess`); LOOKS and HASHED limit the guess.
"""

from __future__ import annotations

import re
from array import array
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from kdump import kernel
from kdump.errors import DamageError, UnreadableError
from kdump.formats import record_layout
from kdump.log_dirs.files import Source, data_end, next_data, size_of_holes
from kdump.parallel.costs import BUDGET
from kdump.primitives import compression
from kdump.primitives.crc import CRC32, CRC32C, Kind, combine
from kdump.primitives.wire import Bytes, read_varint
from kdump.records.log_entry import check
from kdump.records.record_batch import Batches, RecordBatch
from kdump.segments.regions import Damage, Padding, Region, Trailing
from kdump.segments.walk import BLOCK, Window, as_region, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.log_dirs.partition import Segment
    from kdump.parallel.costs import SegmentPart
    from kdump.segments.regions import OnError, RunKinds
if kernel.COMPILED:
    from kdump.kernel.batches import moved


CHUNK: Final = 1 << 12
"""Bytes that are searched at a time."""
AT_ONCE: Final = 1 << 13
"""Up to this size of a possible batch (bytes), the search computes its checksum without RangeChecksum."""
SUM_BYTES: Final = 1 << 12
"""Distance in bytes between the positions whose checksums RangeChecksum stores."""
KEPT: Final = 16
"""Maximum number of blocks of SUM_BYTES bytes that RangeChecksum caches."""
FORGOTTEN: Final = 1 << 16
"""RangeChecksum drops the stored checksums before the current position if there are this many."""
FRAMED: Final = 8
"""A read may skip BUDGET records in vain (over 511 bytes: they count more), and one more per FRAMED bytes read."""
NEAR: Final = 1 << 21
"""A guess first searches this many bytes of a part for batches with the leader epoch of the segment's first batch."""
LOOKS: Final = 1024
"""Maximum number of positions that a guess examines."""
HASHED: Final = 16 << 20
"""Maximum number of bytes whose checksums a guess computes."""
BEFORE_EPOCH: Final = record_layout.BATCH_HEADER.offsets["partition_leader_epoch"]
"""The position of the leader epoch in a batch; the magic follows it."""

_SIZE: Final = record_layout.LOG_OVERHEAD.offsets["size"]
_CODEC: Final = record_layout.BATCH_HEADER.spans["attributes"][1] - 1  # the lower byte of the attributes
_ZEROS: Final = bytes(CHUNK + record_layout.MAGIC_POSITION - _SIZE)
# Both patterns start at the magic and look back to the first byte: offset and size are not negative, the codec exists.
# In magic 0 and 1 the attributes follow the magic. In magic 2 the last offset delta follows them and is not negative.
_START: Final = rb"(?<=[\0-\x7f].{%d}[\0-\x7f].{%d})" % (_SIZE - 1, record_layout.MAGIC_POSITION - _SIZE)
_CODECS: Final = b"".join(b"\\x%02x-\\x%02x" % (low, low + compression.ZSTD) for low in range(0, 256, 8))
_MAGIC_2: Final = rb"(?s)\x02%b(?=.{%d}[%b][\0-\x7f])" % (_START, _CODEC - record_layout.UP_TO_MAGIC, _CODECS)
_MAGIC_0_1: Final = rb"(?s)[\0\x01](?=[\0-\x03\x08-\x0b])(?<!\0{4}.{5})%b" % _START  # the size is not zero
_LOOKAHEAD: Final = _CODEC + 2 - record_layout.MAGIC_POSITION
"""Number of bytes, from the magic on, that both patterns match or look at."""


class RangeChecksum:
    """Computes checksums of many overlapping ranges of a source, and reads each byte about once.

    The checksum of the bytes from the first position to each multiple of SUM_BYTES is stored. Checksums far before the
    current position are dropped. After a jump the sums start again, so that the bytes between are not read.
    """

    def __init__(self, source: Source, kind: Kind) -> None:
        self._source, self._kind = source, kind
        self._start = 0
        self._sums = array("I", [0])
        self._blocks: dict[int, bytes] = {}

    def of(self, position: int, end: int) -> int:
        """Return the checksum of the bytes from ``position`` to ``end``."""
        done = position // SUM_BYTES - self._start // SUM_BYTES
        if not 0 <= done < len(self._sums):
            self._start, self._sums = position // SUM_BYTES * SUM_BYTES, array("I", [0])
        elif done >= FORGOTTEN:
            self._start, self._sums = self._start + done * SUM_BYTES, self._sums[done:]
        kind, before, size = self._kind, self._up_to(position), end - position
        shifted = moved(before, size, kind.polynomial) if kernel.COMPILED else combine(kind, before, 0, size)
        return self._up_to(end) ^ shifted

    def _up_to(self, end: int) -> int:
        number, left = divmod(end - self._start, SUM_BYTES)
        while len(self._sums) <= number:
            at = self._start + (len(self._sums) - 1) * SUM_BYTES
            block = self._source.read(at, min(BLOCK, self._start + number * SUM_BYTES - at))
            before = self._sums[-1]
            for each in range(0, max(1, len(block)), SUM_BYTES):  # at least once: the file may have shrunk
                before = self._kind.of(block[each : each + SUM_BYTES], before)
                self._sums.append(before)
        return self._kind.of(self._block(end - left)[:left], self._sums[number]) if left else self._sums[number]

    def _block(self, position: int) -> bytes:
        block = self._blocks.get(position)
        if block is None:
            if len(self._blocks) == KEPT:
                del self._blocks[next(iter(self._blocks))]
            block = self._blocks[position] = self._source.read(position, SUM_BYTES)
        return block


class ResyncReader:
    """Reads one segment once: whole (:meth:`read`), a part of it (:meth:`read_part`), or to :meth:`guess` a batch."""

    def __init__(
        self,
        source: Source,
        start: int,
        end: int,
        on_error: OnError = "resync",
        first_offset: int | None = None,
        *,
        runs: RunKinds | None = None,
    ) -> None:
        self._source, self._start, self._end, self._on_error = source, start, end, on_error
        self._next_offset = first_offset
        self._window = Window(source, end)
        self._runs = runs
        self._stop: int | None = None
        self._origin = start
        self.skips_left = BUDGET
        """The unused rest of BUDGET, in records."""
        self.reached = end
        """The position of the first batch of the next part, or the end of the bytes to read."""
        self._claimed_end = start
        self._hashable: int | None = None
        """The number of bytes whose checksums may still be computed; None for no limit."""

    def read_part(self, stop: int, skips_left: int) -> Iterator[Region]:
        """Yield the regions before the first valid batch that starts at ``stop`` or later. Set :attr:`reached`."""
        self._window.narrow(self._start, stop)
        self._stop, self._origin, self.skips_left = stop, 0, skips_left
        return self.read()

    def read(self) -> Iterator[Region]:
        position, bad = self._start, None
        while position < self._end:
            fault = None
            for region in self._walk(position):
                fault = self._fault(region)
                if fault is not None or not isinstance(region, Batches):
                    break
                if bad is not None:
                    yield self._account(bad, region.first)
                    bad = None
                if self._stop is not None and region.position >= self._stop:
                    self.reached = region.position
                    return
                position = region.end
                self._next_offset = region.last_offset + 1
                yield region
            if fault is None or position >= self._zeros:
                break
            if bad is not None and isinstance(fault, Damage) and fault.kind == "limit" and self.is_credible(position):
                if self._magic(position) < record_layout.MAGIC_2:  # a wrapper stores its last offset only
                    yield self._range(bad, position, None)
                else:
                    base = record_layout.LOG_OVERHEAD.read(self._window.view(position, _SIZE + 4)).offset
                    yield self._range(bad, position, base)
                    self._next_offset = base
                bad = None
            bad = bad or fault
            position = self._resume(position)
        if bad is not None:
            yield from self._rest(bad)
        elif position < self._end:
            yield padding(self._source, position, self._end)

    def _walk(self, position: int) -> Iterator[Region]:
        return walk(self._source, position, self._end, self._window, runs=self._runs, stop=self._stop)

    def _fault(self, region: Region) -> Damage | Trailing | None:
        """Return the damage of a region; None for padding, for a valid batch and for a run that begins with one."""
        if isinstance(region, Batches):
            try:
                check(region.first)
            except DamageError as damage:
                return as_region(damage, region.position, self._end - region.position)
            return None
        return None if isinstance(region, Padding) else region

    @cached_property
    def _sums(self) -> dict[Kind, RangeChecksum]:
        return {kind: RangeChecksum(self._source, kind) for kind in (CRC32, CRC32C)}

    @cached_property
    def _zeros(self) -> int:
        return zero_tail(self._source, self._start, self._end)

    def _account(self, bad: Damage | Trailing, valid: RecordBatch) -> Damage:
        """Return the damaged range from ``bad`` to the next valid batch, ``valid``, with the missing offsets."""
        try:
            until = valid.base_offset
        except DamageError:  # a wrapper that cannot be decompressed; it stores its last offset only
            until = None
        return self._range(bad, valid.position, until)

    def _range(self, bad: Damage | Trailing, end: int, until: int | None) -> Damage:
        """Return the damaged range from ``bad`` to a valid batch at ``end`` with base offset ``until``."""
        if isinstance(bad, Trailing):
            size = bytes(self._source.read(bad.position + _SIZE, 4))
            bad = Damage(
                bad.position,
                bad.size,
                "record size",
                "the batch claims to reach beyond the end of the file",
                bad.position + _SIZE,
                f"at most {bad.size - record_layout.LOG_OVERHEAD.size}",
                int.from_bytes(size, "big", signed=True),
            )
        return bad._replace(
            size=end - bad.position,
            missing_from=self._next_offset,
            missing_until=until,
            holes=size_of_holes(self._source, bad.position, end),
        )

    def _rest(self, bad: Damage | Trailing) -> Iterator[Region]:
        """Yield the rest of the file from ``bad`` on if no valid batch follows: the damage, then zeros as padding."""
        end = max(self._zeros, self._claimed_end)
        if self._end - end < record_layout.UP_TO_MAGIC or isinstance(bad, Trailing):
            end = self._end
        bad = bad._replace(size=end - bad.position)
        if isinstance(bad, Damage):
            holes = size_of_holes(self._source, bad.position, end)
            bad = bad._replace(missing_from=self._next_offset, holes=holes)
        yield bad
        if end < self._end:
            yield padding(self._source, end, self._end)

    def _resume(self, position: int) -> int:
        """Return the position at which reading continues after the bad batch at ``position``."""
        if self._on_error == "stop":
            self._claimed_end = self._end
            return self._end
        size = record_layout.LOG_OVERHEAD.size + int.from_bytes(
            self._window.view(position + _SIZE, 4), "big", signed=True
        )
        claimed = position + size
        if size < record_layout.LOG_OVERHEAD.size + record_layout.SMALLEST_ENTRY or claimed > self._end:
            claimed = position
        self._claimed_end = claimed
        if self._on_error == "skip":
            return claimed if claimed > position else self._end
        return self._extent(position, claimed) or self._search(position + 1)

    def _extent(self, position: int, claimed: int) -> int | None:
        """Return the end of the bad batch at ``position`` if it is certain (see the module's docstring), or None."""
        head = self._window.view(position, record_layout.BATCH_HEADER.size)
        if len(head) < record_layout.BATCH_HEADER.size:
            return None
        if head[record_layout.MAGIC_POSITION] < record_layout.MAGIC_2 and self._message_fills(
            position, claimed - position
        ):
            offset = record_layout.LOG_OVERHEAD.read(head).offset
            return claimed if self._goes_on(claimed, offset + 1) else None
        header = record_layout.BATCH_HEADER.read(head)
        if claimed - position >= len(head) and self._has_crc(position, claimed):
            return claimed
        end = self._frame(position, header)
        if end is None:
            return None
        if end != claimed:
            return end if self._has_crc(position, end) else None
        return end if self._goes_on(end, header.base_offset + header.last_offset_delta + 1) else None

    def _frame(self, position: int, header: record_layout.BatchHeader) -> int | None:
        """Return the end of the claimed records by their sizes; None if invalid, compressed or beyond the budget."""
        if header.attributes & record_layout.CODEC_MASK or header.records_count < 0:
            return None
        at = position + record_layout.BATCH_HEADER.size
        budget = self.skips_left + (position - self._origin) // FRAMED
        for _ in range(header.records_count):
            try:
                size, used = read_varint(self._window.view(at, 5), 0)
            except DamageError:
                break
            budget -= 1 + size // 512
            at += used + size
            if size <= 0 or at > self._end or budget < 0:
                break
        else:
            return at
        self.skips_left = budget - (position - self._origin) // FRAMED
        return None

    def _goes_on(self, position: int, offset: int) -> bool:
        """Return whether the log ends at ``position``, or a valid batch begins there with ``offset`` (see module)."""
        if position >= self._zeros:
            return True
        head = self._window.view(position, record_layout.UP_TO_MAGIC)
        if len(head) < record_layout.UP_TO_MAGIC:
            return False
        first = record_layout.LOG_OVERHEAD.read(head).offset
        follows = first == offset if self._magic(position) == record_layout.MAGIC_2 else first >= offset
        return follows and self.is_credible(position)

    def guess(self, until: int, alike: bytes) -> int | None:
        """Return the position of a valid batch before ``until``, or None. The batch may be a copy in a record's value.

        Batches with the bytes ``alike`` (leader epoch and magic) are tried first. LOOKS and HASHED limit the search.
        """
        self._hashable = HASHED
        places = chain(self._places_alike(until, alike), self.places(self._start, until))
        for at in islice(places, LOOKS):
            if self.is_credible(at):
                return at
        return None

    def _places_alike(self, until: int, alike: bytes) -> Iterator[int]:
        """Yield the positions before ``until`` of possible headers with the leader epoch and magic ``alike``."""
        position, stop = self._start, min(until, self._start + NEAR)
        while position < stop:
            block = self._window.ahead(position, SUM_BYTES)
            for match in re.finditer(re.escape(alike), block):
                at = position + match.start() - BEFORE_EPOCH
                if self._start <= at < until:
                    yield at
            if len(block) < SUM_BYTES:  # the end of the file
                break
            position += len(block) - len(alike) + 1

    def _search(self, position: int) -> int:
        """Return the position of the next valid batch at or after ``position``, or the end of the file."""
        return next(filter(self.is_credible, self.places(position, self._zeros)), self._end)

    def places(self, position: int, until: int) -> Iterator[int]:
        """Yield the positions of possible headers from ``position`` to ``until`` (exclusive)."""
        while position < until:
            block = self._window.ahead(position, record_layout.BATCH_HEADER.size + CHUNK)
            starts = len(block)
            if position + starts < self._end:
                starts -= record_layout.BATCH_HEADER.size
            starts = min(starts, until - position)
            for at in _candidates(block, starts):
                yield position + at
            if starts <= 0:  # the file has shrunk since its size was taken
                break
            position += starts
            if not any(block[-record_layout.BATCH_HEADER.size :]):  # no batch has a size of zero: skip a hole
                position = max(position, next_data(self._source, position) - record_layout.UP_TO_MAGIC)

    def is_credible(self, position: int) -> bool:
        """Return whether a batch with consistent fields and a right checksum starts at ``position``."""
        end = self.consistent_end(position)
        if end is None:
            return False
        return self._has_crc(position, end, of_message=self._magic(position) < record_layout.MAGIC_2)

    def consistent_end(self, position: int) -> int | None:
        """Return the end of the batch that may start at ``position``, or None if its fields are not consistent."""
        head = self._window.view(position, record_layout.BATCH_HEADER.size)
        if len(head) <= record_layout.UP_TO_MAGIC:
            return None
        overhead = record_layout.LOG_OVERHEAD.read(head)
        size = record_layout.LOG_OVERHEAD.size + overhead.size
        if overhead.offset < 0 or overhead.size < record_layout.SMALLEST_ENTRY or position + size > self._end:
            return None
        if head[record_layout.MAGIC_POSITION] < record_layout.MAGIC_2:
            return position + size if self._message_fills(position, size) else None
        if head[record_layout.MAGIC_POSITION] > record_layout.MAGIC_2 or size < record_layout.BATCH_HEADER.size:
            return None
        header = record_layout.BATCH_HEADER.read(head)
        if header.attributes & record_layout.CODEC_MASK > compression.ZSTD or header.last_offset_delta < 0:
            return None
        return position + size if 0 <= header.records_count <= header.last_offset_delta + 1 else None

    def _message_fills(self, position: int, size: int) -> bool:
        at = (
            position
            + record_layout.LOG_OVERHEAD.size
            + (record_layout.MESSAGE_HEADER_1 if self._magic(position) else record_layout.MESSAGE_HEADER_0).size
        )
        for _ in range(2):
            length = int.from_bytes(self._peek(at, 4), "big", signed=True)
            if length < -1 or at + 4 + length > position + size:
                return False
            at += 4 + max(0, length)
        return at == position + size

    def _peek(self, position: int, size: int) -> Bytes:
        """Return a few bytes at any position. The window is not moved."""
        at = position - self._window.start
        if 0 <= at <= len(self._window.block) - size:
            return self._window.block[at : at + size]
        return self._source.read(position, max(0, min(size, self._end - position)))

    def _magic(self, position: int) -> int:
        return self._window.view(position, record_layout.UP_TO_MAGIC)[record_layout.MAGIC_POSITION]

    def _has_crc(self, position: int, end: int, *, of_message: bool = False) -> bool:
        """Return whether a batch that ends at ``end`` has the right checksum; False after HASHED bytes of a guess."""
        if of_message:
            kind, stands, covers = CRC32, record_layout.LOG_OVERHEAD.size, record_layout.MAGIC_POSITION
        else:
            kind, stands, covers = CRC32C, record_layout.BATCH_HEADER.offsets["crc"], record_layout.CRC_COVERS_FROM
        if self._hashable is not None:
            if end - position > self._hashable:
                return False
            self._hashable -= end - position
        crc = int.from_bytes(self._window.view(position + stands, 4), "big")
        if end - position <= AT_ONCE:
            return kind.of(self._window.view(position, end - position)[covers:]) == crc
        return self._sums[kind].of(position + covers, end) == crc


def _candidates(block: memoryview, starts: int) -> Iterator[int]:
    """Yield the positions below ``starts`` in ``block`` at which a header may begin, in order."""
    from heapq import merge

    stop = min(starts + record_layout.MAGIC_POSITION, len(block))
    for first in range(record_layout.MAGIC_POSITION, stop, CHUNK):
        last = min(first + CHUNK, stop)
        if _ZEROS.startswith(block[first - _SIZE : last]):
            continue  # no batch has a size of zero
        end = min(last + _LOOKAHEAD, len(block))
        matches = (re.compile(pattern).finditer(block, first, end) for pattern in (_MAGIC_2, _MAGIC_0_1))
        for match in merge(*matches, key=re.Match.start):  # merge() is lazy: usually the first match is a batch
            if match.start() >= last:
                break
            yield match.start() - record_layout.MAGIC_POSITION


def padding(source: Source, start: int, end: int) -> Padding:
    return Padding(start, end - start, size_of_holes(source, start, end))


def zero_tail(source: Source, start: int, end: int) -> int:
    """Return the position, at least ``start``, from which all bytes before ``end`` are zero; ``end`` without zeros."""
    while end > start:
        data = data_end(source, start, end)
        at = max(start, data - BLOCK)
        block = source.read(at, data - at)
        left = len(block.rstrip(b"\0"))
        if left or (not block and data > start):  # the file has shrunk since its size was taken
            return at + left
        end = at
    return end


def guess(source: Source, part: SegmentPart) -> int | None:
    """Return the position of a valid batch in a part, probably of its first, or None (:meth:`ResyncReader.guess`)."""
    alike = source.read(BEFORE_EPOCH, record_layout.UP_TO_MAGIC - BEFORE_EPOCH)
    return ResyncReader(source, part.start, source.size).guess(part.stop, alike)


def possible_batches(source: Source, start: int, end: int) -> Iterator[int]:
    """Yield the positions from ``start`` to ``end`` at which a batch with consistent fields and any checksum starts."""
    reader = ResyncReader(source, start, end)
    return (position for position in reader.places(start, end) if reader.consistent_end(position) is not None)


def raise_above_limit(source: Source, region: Region) -> None:
    """Raise UnreadableError if a valid batch above the limit of ``source``, which a broker reads, is at ``region``."""
    if not isinstance(region, Damage) or region.kind != "limit":
        return
    start = region.position
    if ResyncReader(source, start, source.size).is_credible(start):
        size = record_layout.LOG_OVERHEAD.read(source.read(start, record_layout.LOG_OVERHEAD.size)).size
        raise UnreadableError(
            source.name,
            f"byte {start}: a batch of {size} bytes is valid, but larger than kdump's limit of {source.limit} bytes",
            f"give --max-batch-bytes {size} or more",
        )


def read(
    source: Source,
    start: int = 0,
    end: int | None = None,
    *,
    on_error: OnError = "stop",
    first_offset: int | None = None,
    runs: RunKinds | None = None,
) -> Iterator[Region]:
    """Yield the regions of a segment. Batches are checked: magic, size, codec, checksum (of Entries only the first).

    ``on_error`` selects the end of a damaged range. "stop": the end of the file. "skip": the end of the bad batches
    by their length fields. "resync": the next valid batch. Without it, or for an impossible length, the range ends
    before the zeros at the end of the file. If damage begins at ``start``, the missing offsets begin with
    ``first_offset``. A batch above the limit of the source is damage. ``runs``: see ``walk``.
    """
    end = source.size if end is None else min(end, source.size)
    return ResyncReader(source, start, end, on_error, first_offset, runs=runs).read()


def of_segment(segment: Segment, runs: RunKinds | None = None) -> Iterator[Region]:
    """Open a segment and yield its regions; after damage continue at the next valid batch. Raises UnreadableError."""
    with segment.open() as source:
        yield from read(source, on_error="resync", first_offset=segment.base_offset, runs=runs)
