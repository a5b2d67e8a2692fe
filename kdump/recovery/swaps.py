"""Simulates how a start finishes a log cleaner's interrupted swap: ``.swap`` files replace segments, without a check.

:func:`after_swaps` also finds the lost records, :func:`only_in_removed` those of files that a start removes.
Source: Kafka's LogLoader (``removeTempFilesAndCollectSwapFiles``) and LogCleaner (``shouldRetainRecord``).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from kdump.errors import DamageError
from kdump.findings.codes import Code
from kdump.formats import txn_index
from kdump.log_dirs import file_names
from kdump.log_dirs.partition import index_swaps, least_cleaned, with_index_swaps
from kdump.records.record_batch import Batches, RecordBatch
from kdump.recovery.segment_end import Cut, base_of, lost, read_next_offset
from kdump.segments import resync, walk
from kdump.segments.regions import DATA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kdump.formats.record import Record
    from kdump.log_dirs.partition import Partition, Segment


class Swaps(NamedTuple):
    """The segments after the swaps, the bytes that they replace, and the ``.swap`` files deleted as incomplete."""

    segments: list[Segment]
    cuts: list[Cut]
    discarded: list[str]
    deletes: range = range(0)
    """The broker deletes each file whose name begins with one of these offsets, except ``.swap`` files."""

    def only_in(self, each: Segment) -> set[int]:
        """Return the offsets of the user records of a file that no segment has afterwards."""
        return _user_offsets(each) & _missing([each], self.segments)


def after_swaps(partition: Partition, searched: str) -> Swaps:
    """Return the segments and losses after a start. ``searched``: see ``LoaderRules``. Raises FailsError."""
    live: list[Segment] = []
    swaps: list[Segment] = []
    for each in sorted(partition.segments, key=base_of):
        state = each.path.rpartition(f".{file_names.LOG}")[2].removeprefix(".")
        if state == file_names.SWAP:
            swaps.append(each)
        elif not state:
            live.append(each)
    live = with_index_swaps(live, index_swaps(partition))
    least = least_cleaned(partition)
    valid = [each for each in swaps if least is None or base_of(each) < least]
    discarded = [each.name for each in swaps if each not in valid]
    if not valid:
        return Swaps(live, [], discarded)
    first, end = base_of(valid[0]), max(read_next_offset(each, searched) or base_of(each) for each in valid)
    bases = {base_of(each) for each in valid}
    gone = [each for each in live if first <= base_of(each) < end or base_of(each) in bases]
    kept = [each for each in live if each not in gone]
    overwritten = {base_of(each): each for each in gone if not first <= base_of(each) < end}
    swapped = [_with_siblings(each, overwritten.get(base_of(each))) for each in valid]
    segments = sorted(kept + swapped, key=base_of)
    cuts = _by_offset(_replaced(gone, valid), gone, segments, valid)
    return Swaps(segments, cuts, discarded, range(first, end))


def _with_siblings(swap: Segment, under: Segment | None) -> Segment:
    """Return a swapped segment with its index files. Without a time index or txnindex, it keeps that of ``under``."""
    stays = {} if under is None else {name: path for name, path in under.siblings.items() if name != file_names.INDEX}
    return swap._replace(siblings=stays | swap.siblings)


AT_ONCE: Final = 1 << 20
"""The number of bytes of two logs that are compared at a time."""


def _replaced(gone: list[Segment], swaps: list[Segment]) -> list[Cut]:
    """Return the losses: the replaced segments from the batch on that first differs from the ``.swap`` files."""
    cuts: list[Cut] = []
    left = _same_bytes(gone, swaps)
    for number, each in enumerate(gone):
        if left >= each.size:
            left -= each.size
            continue
        swap = next((swap for swap in swaps if base_of(swap) == base_of(each)), swaps[min(number, len(swaps) - 1)])
        cut = lost(each, _border(each, max(left, 0)), f"{swap.name} replaces this segment without a check")
        cuts.append(cut._replace(code=Code.SWAPPED, replaced_by=swap.name, is_replaced_by_nothing=not swap.size))
        left = 0
    return cuts


def _border(each: Segment, position: int) -> int:
    """Return the start of the valid batch that contains byte ``position``, which is lost whole; else ``position``."""
    with each.open() as source:
        for region in walk.walk(source, runs=DATA):
            if not isinstance(region, Batches):
                return position
            for batch in region.batches() if region.end > position else ():
                if batch.end > position:
                    return min(batch.position, position)
    return position


def _same_bytes(gone: list[Segment], swaps: list[Segment]) -> int:
    """Return the length in bytes of the common start of two sequences of segments."""
    same, old, new = 0, _bytes_of(gone), _bytes_of(swaps)
    one = other = b""
    while True:
        one = one or next(old, b"")
        other = other or next(new, b"")
        size = min(len(one), len(other))
        if not size:
            return same
        if one[:size] != other[:size]:
            return same + next(at for at in range(size) if one[at] != other[at])
        same, one, other = same + size, one[size:], other[size:]


def _bytes_of(segments: list[Segment]) -> Iterator[bytes]:
    for each in segments:
        with each.open() as source:
            for position in range(0, source.size, AT_ONCE):
                yield source.read(position, AT_ONCE)


MOST_KEYS: Final = 1 << 18
"""Maximum number of keys whose newer values are searched. With more keys, superseded records count as lost."""


def _by_offset(cuts: list[Cut], gone: list[Segment], left: list[Segment], swaps: list[Segment]) -> list[Cut]:
    """Return ``cuts`` with the numbers of lost user records: of ``gone``, at offsets that no segment of ``left`` has.

    An offset in two segments counts once. ``superseded``: the number that compaction may have removed. If a
    swap file is damaged or has offsets above those of ``gone``, ``cuts`` are returned unchanged.
    """
    if not any(cut.records for cut in cuts) or not _are_of(gone, swaps):
        return cuts
    missing = _missing(gone, left)
    dropped = _dropped(gone, left, missing)
    lost_in: dict[str, set[int]] = {}
    for each in gone:
        lost_in[each.name] = _user_offsets(each) & missing
        missing -= lost_in[each.name]
    found = []
    for cut in cuts:
        offsets = lost_in.get(cut.file, set())
        found.append(cut._replace(records=len(offsets), superseded=len(offsets & dropped)))
    return found


def _are_of(gone: list[Segment], swaps: list[Segment]) -> bool:
    """Return whether each swap file has only valid batches with rising offsets, none above the end of ``gone``."""
    last = max((batch.last_offset for each in gone for batch in _batches(each) if batch is not None), default=-1)
    for swap in swaps:
        after = base_of(swap)
        for batch in _batches(swap):
            if batch is None or not after <= batch.base_offset <= batch.last_offset <= last:
                return False
            after = batch.last_offset + 1
    return True


def _batches(each: Segment) -> Iterator[RecordBatch | None]:
    for region in resync.of_segment(each, DATA):
        if isinstance(region, Batches):
            yield from region.batches()
        else:
            yield None


class Removed(NamedTuple):
    """A segment that a start removes. ``records``: its lost user records, without superseded and repeated offsets."""

    segment: Segment
    records: int
    first: int
    """The lowest offset of its user records that no segment has after the start, also of a superseded one."""
    fits: bool
    """Whether its range of offsets overlaps that of no segment that remains after the broker's start."""


def only_in_removed(partition: Partition) -> Iterator[Removed]:
    """Yield each ``.deleted`` or discarded ``.swap`` segment with user records that no segment has after a start.

    Not counted: records that compaction may have removed, and ``.deleted`` segments up to the first live base offset:
    retention deleted them (``UnifiedLog.deleteSegments`` never deletes all). Raises FailsError if swaps cannot load.
    """
    suffix = f".{file_names.LOG}.{file_names.DELETED}"
    deleted = [each for each in partition.segments if each.path.endswith(suffix) and each.size]
    if not deleted and least_cleaned(partition) is None:
        return
    after = after_swaps(partition, "last_offset")
    live = after.segments
    removed = [each for each in deleted if not live or base_of(each) > base_of(live[0])]
    removed += [each for each in partition.segments if each.name in after.discarded and each.size]
    missing = _missing(removed, live) if removed else set()
    if not missing:
        return
    dropped = _dropped(removed, live, missing)
    ranges = [(base_of(each), _last(each)) for each in live]
    for each in removed:
        mine = _user_offsets(each) & missing
        missing -= mine
        if lost := mine - dropped:
            base, last = base_of(each), _last(each)
            fits = not any(base <= other_last and other_base <= last for other_base, other_last in ranges)
            yield Removed(each, len(lost), min(mine), fits)


def _last(each: Segment) -> int:
    """Return the highest offset of a segment, or the offset below its base offset if no batch is valid."""
    return max((batch.last_offset for batch in _batches(each) if batch is not None), default=base_of(each) - 1)


def _missing(gone: list[Segment], left: list[Segment]) -> set[int]:
    missing = {record.offset for _, record in _records(gone)}
    missing.difference_update(record.offset for _, record in _records(left))
    return missing


def _dropped(gone: list[Segment], left: list[Segment], missing: set[int]) -> set[int]:
    """Return offsets of user records that compaction may have removed. ``missing``: offsets that only ``gone`` has."""
    found: set[int] = set()
    wanted: dict[bytes, list[int]] = {}
    aborted: dict[int | None, list[txn_index.AbortedTxn]] = {}
    for each in (*gone, *left):  # an entry is in the segment of the transaction's end marker
        for entry in txn_index.entries(each.sibling(file_names.TXN_INDEX) or b""):
            aborted.setdefault(entry.producer_id, []).append(entry)
    for each in gone:
        for batch, record in _records([each]):
            if batch.is_control or record.offset not in missing:
                continue
            is_aborted = any(
                entry.first_offset <= record.offset <= entry.last_offset for entry in aborted.get(batch.producer_id, ())
            )
            if is_aborted or (record.key is not None and record.value is None):
                found.add(record.offset)
            elif record.key is not None:
                wanted.setdefault(bytes(record.key), []).append(record.offset)
        if len(wanted) > MOST_KEYS:
            return found
    newest: dict[bytes, int] = {}
    for _, record in _records(left):
        if record.key is not None and (key := bytes(record.key)) in wanted:
            newest[key] = max(record.offset, newest.get(key, -1))
    found.update(offset for key, newer in newest.items() for offset in wanted[key] if offset < newer)
    return found


def _user_offsets(each: Segment) -> set[int]:
    return {record.offset for batch, record in _records([each]) if not batch.is_control}


def _records(segments: Iterable[Segment]) -> Iterator[tuple[RecordBatch, Record]]:
    for each in segments:
        for batch in _batches(each):
            if batch is not None:
                with suppress(DamageError):
                    for record in batch.records():
                        yield batch, record
