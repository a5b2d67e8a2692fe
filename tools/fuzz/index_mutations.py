"""Break valid index files in seeded ways, and show that verify-index finds each damage, or that the damage is harmless.

    python -m tools.fuzz.index_mutations   10,000 mutations, seed 1, of golden/brokers
    python -m tools.fuzz.index_mutations --seed 7 --count 500 FOLDER ...

A silent mutation is harmless if every look-up of a broker has the same result as with the healthy file. For .index,
each offset is found in the batch that holds it. For .timeindex, each timestamp leads to the same record, and the
segment's largest timestamp stays. For .txnindex, every read_committed fetch drops the same batches. The look-ups are
simulated on the mutated file as Kafka's LogSegment, UnifiedLog and CompletedFetch make them. The exit status is 1 if a
mutation is silent and harmful.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from kdump.checks.indexes import IndexCheck, PartitionState, SegmentFiles
from kdump.errors import Reporter
from kdump.formats import txn_index
from kdump.formats.offset_index import OffsetIndex
from kdump.formats.time_index import TimeIndex
from kdump.log_dirs.finder import Finder, Wanted
from kdump.records.record_batch import RecordBatch
from kdump.segments.walk import walk
from kdump.transaction_replay.replay import AbortedRanges, ended
from testing import GOLDEN
from tools import arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.formats.txn_index import AbortedTxn
    from kdump.log_dirs.partition import Partition
    from kdump.transaction_replay.replay import EndedTransaction

SIZES = {"index": 8, "timeindex": 12, "txnindex": 34}
FIELDS = {"index": (4, 4), "timeindex": (8, 4), "txnindex": (2, 8, 8, 8, 8)}


@dataclass
class History:
    """A partition: its segments, all batches, the offsets of ABORT markers, and which batches were aborted."""

    segments: list[Subject] = field(default_factory=list)

    @cached_property
    def batches(self) -> list[RecordBatch]:
        return [batch for held in self.segments for batch in held.batches]

    @cached_property
    def transactions(self) -> list[EndedTransaction]:
        return [done for done in ended(self.batches) if done.aborted]

    @cached_property
    def markers(self) -> set[int]:
        return {done.last_offset for done in self.transactions}

    @cached_property
    def aborted(self) -> set[int]:
        ranges = AbortedRanges(self.transactions)
        return {batch.base_offset for batch in self.batches if ranges.hold(batch)}


@dataclass
class Subject:
    """A valid segment: its files, batches and records, and the state of the partition before it."""

    files: SegmentFiles
    batches: list[RecordBatch]
    records: list[tuple[int, int, int]]
    """The offset, timestamp and batch position of each record, in order."""
    before: PartitionState
    history: History
    """The batches of the partition, including this segment."""

    def content(self, suffix: str) -> bytes:
        data: bytes | None = getattr(self.files, suffix)
        return data or b""

    def findings(self, suffix: str, data: bytes) -> int:
        """Return the number of findings with one file replaced."""
        check = IndexCheck(self.files._replace(**{suffix: data}), deepcopy(self.before))
        for batch in self.batches:
            check.add(batch)
        return sum(not finding.is_remark for finding in check.finish())


def subjects(folders: list[Path]) -> Iterator[Subject]:
    """Yield every segment with a valid name and an index with entries."""
    ignore = lambda _: None  # noqa: E731  a path without a segment does not matter here
    for held in Finder(Wanted(), Reporter(note=ignore, fail=ignore)).find(map(str, folders)):
        yield from of_partition(held)


def of_partition(held: Partition) -> Iterator[Subject]:
    state, history = PartitionState(), History()
    for number, segment in enumerate(held.segments):
        with segment.open() as source:
            batches = [region for region in walk(source) if isinstance(region, RecordBatch)]
            size = source.size
        if not batches or batches[0].last_offset < (segment.base_offset or 0):
            continue
        files = SegmentFiles(
            name=segment.name,
            base_offset=segment.base_offset or 0,
            log_size=size,
            active=number == len(held.segments) - 1,
            **{suffix: segment.sibling(suffix) for suffix in SIZES},
        )
        records = [(record.offset, record.timestamp, batch.position) for batch in batches for record in batch.records()]
        subject = Subject(files, batches, records, deepcopy(state), history)
        history.segments.append(subject)
        check = IndexCheck(files, state)
        for batch in batches:
            check.add(batch)
        if any(not finding.is_remark for finding in check.finish()):
            raise SystemExit(f"{segment.name} is not healthy")
    yield from history.segments


def mutate(random: Random, data: bytes, suffix: str) -> tuple[str, bytes]:
    """Return a description of the change, and the broken file."""
    size = SIZES[suffix]
    rows = [data[at : at + size] for at in range(0, len(data), size)]
    meant = len([row for row in rows if row.strip(b"\0")])
    slot = random.randrange(max(1, meant))
    row = rows[slot]
    kind = random.choice(
        ("off by one", "off by three", "bit", "swap", "double", "zero", "random", "drop", "drop last", "other")
    )
    if kind in ("off by one", "off by three"):
        field, at = pick(random, suffix)
        value = int.from_bytes(row[at : at + field], "big", signed=True)
        value += random.choice((1, -1)) * (1 if kind == "off by one" else 3)
        rows[slot] = put(row, at, field, value)
        kind = f"field {FIELDS[suffix].index(field)} {kind}" if suffix == "timeindex" else f"field at {at} {kind}"
    elif kind == "other":
        field, at = pick(random, suffix)
        other = random.choice(rows[:meant])
        rows[slot] = row[:at] + other[at : at + field] + row[at + field :]
        kind = "field of another entry"
    elif kind == "bit":
        at = random.randrange(size * 8)
        changed = bytearray(row)
        changed[at // 8] ^= 1 << at % 8
        rows[slot] = bytes(changed)
    elif kind == "swap" and meant > 1:
        other = random.choice([n for n in range(meant) if n != slot])
        rows[slot], rows[other] = rows[other], rows[slot]
    elif kind == "double":
        rows.insert(slot, row)
    elif kind == "zero":
        rows[slot] = bytes(size)
    elif kind == "random":
        return kind, overwrite(data, random.randrange(meant * size), random.randbytes(min(16, len(data))))
    elif kind == "drop last":
        del rows[meant - 1]
    else:
        kind = "drop"
        del rows[slot]
    return kind, b"".join(rows)


def pick(random: Random, suffix: str) -> tuple[int, int]:
    """Return the size and position of a random field of an entry."""
    number = random.randrange(len(FIELDS[suffix]))
    return FIELDS[suffix][number], sum(FIELDS[suffix][:number])


def put(row: bytes, at: int, size: int, value: int) -> bytes:
    value &= (1 << 8 * size) - 1
    return row[:at] + value.to_bytes(size, "big") + row[at + size :]


def overwrite(data: bytes, at: int, with_: bytes) -> bytes:
    return (data[:at] + with_ + data[at + len(with_) :])[: len(data)]


def harms_offsets(subject: Subject, data: bytes) -> str:
    """Return an offset that a broker no longer finds; empty if there is none."""
    index = OffsetIndex(data, subject.files.base_offset)
    for among in {index.filled, index.count}:
        for target in range(subject.files.base_offset, subject.batches[-1].last_offset + 1):
            right = next(batch.position for batch in subject.batches if batch.last_offset >= target)
            start = index.lookup(target, among).position
            if start > right or not starts_a_batch(subject, start):
                return f"offset {target}: the scan starts at byte {start}, after the batch at {right}"
    return ""


def starts_a_batch(subject: Subject, position: int) -> bool:
    return position == 0 or any(batch.position == position for batch in subject.batches)


def harms_times(subject: Subject, data: bytes) -> str:
    """Return a timestamp that now leads to another record; empty if there is none."""
    base = subject.files.base_offset
    index, healthy = TimeIndex(data, base), TimeIndex(subject.content("timeindex"), base)
    offsets = OffsetIndex(subject.content("index"), base)
    largest = index[index.filled - 1].timestamp if index.filled else None
    if largest is not None and largest != healthy[healthy.filled - 1].timestamp:
        highest = max(batch.max_timestamp for batch in subject.batches)
        live = subject.files.active and bool(index.zero_tail)
        if not live or largest > highest:
            return f"the largest timestamp became {largest}"
    stamps = {timestamp + more for _, timestamp, _ in subject.records for more in (-1, 0, 1)}
    for target in stamps:
        right = next((offset for offset, timestamp, _ in subject.records if timestamp >= target), None)
        start = offsets.lookup(max(base, index.lookup(target).offset)).position
        found = next((offset for offset, timestamp, at in subject.records if at >= start and timestamp >= target), None)
        if found != right:
            return f"timestamp {target} leads to offset {found}, not {right}"
    return ""


def harms_transactions(subject: Subject, data: bytes) -> str:
    """Return a fetch that now returns other records; empty if there is none."""
    history = subject.history
    partition = [
        (held, [*txn_index.entries(data if held is subject else held.content("txnindex"))]) for held in history.segments
    ]
    if any(entry.shown_version > txn_index.CURRENT_VERSION for _, entries in partition for entry in entries):
        return "a broker stops at the version"
    end = history.batches[-1].last_offset + 1
    for number, start in enumerate(history.batches):
        if not start.is_transactional or start.is_control:
            continue
        for upper in (start.last_offset + 1, end):
            wanted = [batch for batch in history.batches[number:] if batch.base_offset < upper]
            kept = delivered(wanted, collect(partition, start.base_offset, upper), history.markers)
            for batch in wanted:
                is_aborted = batch.base_offset in history.aborted
                if is_aborted and batch.base_offset in kept:
                    return f"the aborted batch at offset {batch.base_offset} is delivered"
                if not is_aborted and not batch.is_control and batch.base_offset not in kept:
                    return f"the batch at offset {batch.base_offset} is dropped"
    return ""


def collect(partition: list[tuple[Subject, list[AbortedTxn]]], start: int, upper: int) -> list[AbortedTxn]:
    """Return the entries that a broker sends with a fetch: segment by segment, until an entry ends the search."""
    found: list[AbortedTxn] = []
    for held, entries in partition:
        if held.batches[-1].last_offset < start:
            continue
        for entry in entries:
            if entry.last_offset >= start and entry.first_offset < upper:
                found.append(entry)
            if entry.last_stable_offset >= upper:
                return found
    return found


def delivered(batches: list[RecordBatch], aborted: list[AbortedTxn], markers: set[int]) -> set[int]:
    """Return the base offsets of the data that a read_committed consumer receives."""
    waiting = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
    producers: set[int | None] = set()
    kept = set()
    for batch in batches:
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            producers.add(waiting.pop().producer_id)
        if batch.is_control:
            if batch.base_offset in markers:
                producers.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in producers):
            kept.add(batch.base_offset)
    return kept


HARMS: dict[str, Callable[[Subject, bytes], str]] = {
    "index": harms_offsets,
    "timeindex": harms_times,
    "txnindex": harms_transactions,
}


def main() -> int:
    parser = arguments.parser(__doc__, seed=1, count=10_000)
    parser.add_argument("folders", nargs="*", type=Path)
    options = parser.parse_args()
    folders = options.folders or sorted(
        path for path in (GOLDEN / "brokers").glob("*/*") if path.name[0] != "_" or path.name[1] == "_"
    )
    held = [
        (subject, suffix)
        for subject in subjects(folders)
        for suffix, size in SIZES.items()
        if len(subject.content(suffix)) >= size and subject.content(suffix).strip(b"\0")
    ]
    by_suffix = {suffix: [subject for subject, what in held if what == suffix] for suffix in SIZES}
    print(", ".join(f"{len(found)} healthy .{suffix}" for suffix, found in by_suffix.items()))
    random, counts, harmful, began = Random(options.seed), Counter[tuple[str, str]](), 0, time.monotonic()
    for number in range(options.count):
        suffix = random.choice([suffix for suffix in SIZES if by_suffix[suffix]])
        subject = random.choice(by_suffix[suffix])
        healthy = subject.content(suffix)
        kind, data = mutate(random, healthy, suffix)
        if data == healthy:
            counts[suffix, "no change"] += 1
            continue
        harm = HARMS[suffix](subject, data)
        if subject.findings(suffix, data):
            counts[suffix, "found, harmful" if harm else "found, and would do no harm"] += 1
        elif harm:
            counts[suffix, "SILENT AND HARMFUL"] += 1
            harmful += 1
            print(f"mutation {number}: {kind} of {subject.files.beside(suffix)}: {harm}")
        else:
            counts[suffix, "silent, shown harmless"] += 1
    for (suffix, outcome), count in sorted(counts.items()):
        print(f"{count:6} .{suffix}: {outcome}")
    took = time.monotonic() - began
    print(f"{options.count} mutations, seed {options.seed}, {took:.0f} s: {harmful} silent and harmful")
    return 1 if harmful else 0


if __name__ == "__main__":
    sys.exit(main())
