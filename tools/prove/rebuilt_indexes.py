"""Rebuild the indexes of real segments and compare them with those of a broker.

    python -m tools.prove.rebuilt_indexes [FOLDER ...]              golden/brokers when no folder is named.
    python -m tools.prove.rebuilt_indexes --original 4.2.2 FOLDER   the real tool of that release verifies each, too

No file has the interval of a topic, so the known intervals are tried, with both conventions for the offsets of entries.
A file that differs for every choice is printed with the reason. The exit status is 1 if a rebuilt index fails the
checks, or a file differs without a reason.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from kdump.checks.indexes import IndexCheck, PartitionState, SegmentFiles
from kdump.errors import Reporter, UnreadableError
from kdump.formats.time_index import TimeIndex
from kdump.log_dirs.finder import Finder, Wanted
from kdump.records.record_batch import RecordBatch
from kdump.recovery.index_builder import IndexBuilder, Indexes
from kdump.segments.walk import walk
from kdump.transaction_replay.replay import Replay
from testing import GOLDEN
from tools import arguments
from tools.record import original

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.log_dirs.partition import Segment

INTERVALS = (4096, 300, 200, 0)


def batches(segment: Segment) -> list[RecordBatch]:
    with segment.open() as source:
        return [region for region in walk(source) if isinstance(region, RecordBatch)]


def rebuild(base_offset: int, held: list[RecordBatch], replay: Replay, **choice: object) -> Indexes:
    builder = IndexBuilder(base_offset, **choice)  # type: ignore[arg-type]  # the choices are those of the table below
    for batch in held:
        builder.add(batch, replay.add(batch))
    return builder.finish()


def reason(held: list[RecordBatch], suffix: str, there: bytes, choices: list[bytes], name: str) -> str:
    """Return why a file need not be equal: facts that are not in the log. Empty if there is no reason."""
    if any(batch.magic < 2 for batch in held):
        return "magic 0 or 1: one append may be several entries of the log"
    if suffix == "timeindex":
        entries, made = set(TimeIndex(there, 0)), [set(TimeIndex(choice, 0)) for choice in choices]
        if any({entry.timestamp for entry in entries} == {entry.timestamp for entry in choice} for choice in made):
            return "brokers 0.11 to 3.8 named the record that has the timestamp, not its batch"
        if any(choice < entries for choice in made):
            return "a restart or a close left an entry of its own"
        if any(entries < choice for choice in made) and "-live" in name:
            return "copied while the broker ran"
    gaps = any(later.base_offset != batch.last_offset + 1 for batch, later in pairwise(held))
    if gaps or any(batch.count != batch.last_offset - batch.base_offset + 1 for batch in held):
        return "compacted: brokers before 3.9 wrote whole buffers as one append"
    return ""


def check(segment: Segment, held: list[RecordBatch], made: Indexes, state: PartitionState) -> list[str]:
    """Return the findings of verify-index on rebuilt files; ``state`` is that of the partition, and is updated."""
    files = SegmentFiles(
        name=segment.name,
        base_offset=segment.base_offset or 0,
        log_size=segment.size,
        index=made.offset_index,
        timeindex=made.time_index,
        txnindex=made.txn_index,
        active=False,
    )
    checker = IndexCheck(files, state)
    for batch in held:
        checker.add(batch)
    return [f"{found.file}: {found.text}" for found in checker.finish() if not found.is_remark]


def segments(folders: list[Path]) -> Iterator[tuple[Segment, list[RecordBatch], Replay, PartitionState]]:
    """Yield every segment with a valid name, its batches, and the open transactions of the segments before it."""
    ignore = lambda _: None  # noqa: E731  a path without a segment or log does not matter here
    for partition in Finder(Wanted(), Reporter(note=ignore, fail=ignore)).find(map(str, folders)):
        replay, state = Replay(), PartitionState()
        for segment in partition.segments:
            try:
                held = batches(segment)
            except UnreadableError as error:
                print(error, file=sys.stderr)
                continue
            if held and held[0].last_offset >= (segment.base_offset or 0):
                yield segment, held, replay, state


def main() -> int:
    parser = arguments.parser(__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--original", metavar="RELEASE", help="verify with the real tool of this release too")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        cases: dict[str, list[str]] = {}
        for number, (segment, held, replay, state) in enumerate(segments(options.folders or [GOLDEN / "brokers"])):
            before = list(replay.open.values())
            made = rebuild(segment.base_offset or 0, held, replay)
            for text in check(segment, held, made, state):
                print(f"FAILS    {text}")
                wrong += 1
            choices = [
                rebuild(segment.base_offset or 0, held, Replay(before), interval=interval, first_offsets=first)
                for interval in INTERVALS
                for first in (False, True)
            ]
            wrong += compare(segment, held, choices, counts)
            if options.original:
                cases.update(place(segment, made, Path(temporary) / str(number), Path(temporary)))
        if options.original:
            wrong += ask(options.original, cases, Path(temporary))
    for text, count in sorted(counts.items()):
        print(f"{count:6} {text}")
    return 1 if wrong else 0


def compare(segment: Segment, held: list[RecordBatch], choices: list[Indexes], counts: Counter[str]) -> int:
    """Compare the broker's files with every choice; return the number that differs without a reason."""
    wrong = 0
    for suffix, field in (("index", "offset_index"), ("timeindex", "time_index"), ("txnindex", "txn_index")):
        there = segment.sibling(suffix)
        if there is None and not any(choices[0].txn_index for _ in [suffix] if suffix == "txnindex"):
            continue
        size = {"index": 8, "timeindex": 12, "txnindex": 34}[suffix]
        meant = (there or b"").rstrip(b"\0")
        whole = (there or b"")[: -(-len(meant) // size) * size]
        if any(getattr(choice, field) == whole for choice in choices):
            counts[f".{suffix} equal"] += 1
            continue
        made = [getattr(choice, field) for choice in choices]
        why = "" if suffix == "txnindex" else reason(held, suffix, whole, made, segment.name)
        counts[f".{suffix} differs: {why or 'WITHOUT A REASON'}"] += 1
        if not why:
            print(f"DIFFERS  {segment.name}: .{suffix}")
            wrong += 1
    return wrong


def place(segment: Segment, made: Indexes, folder: Path, root: Path) -> Iterator[tuple[str, list[str]]]:
    """Put a segment into two folders, with rebuilt and with original indexes; yield the cases for the real tool."""
    stem = Path(segment.path).name.removesuffix(".log")
    own = Indexes(segment.sibling("index") or b"", segment.sibling("timeindex") or b"", b"")
    for what, indexes in (("rebuilt", made), ("own", own)):
        (folder / what).mkdir(parents=True)
        shutil.copyfile(segment.path, folder / what / f"{stem}.log")
        (folder / what / f"{stem}.index").write_bytes(indexes.offset_index)
        (folder / what / f"{stem}.timeindex").write_bytes(indexes.time_index)
        for suffix in ("index", "timeindex"):
            path = (folder / what / f"{stem}.{suffix}").relative_to(root)
            yield f"{what} {segment.name}.{suffix}", ["--verify-index-only", "--files", str(path)]


def ask(release: str, cases: dict[str, list[str]], root: Path) -> int:
    """Run the real tool; return the number of rebuilt indexes that it rejects although it accepts the original ones."""
    against = {}
    for run in original.runs(release, cases, root):
        said = original.without_noise(run.stderr.decode())
        what, _, name = run.name.partition(" ")
        against[what, name] = f"exit {run.status}: {said.strip()}" if run.status or said else ""
    rebuilt = {name: text for (what, name), text in against.items() if what == "rebuilt"}
    wrong = {name: text for name, text in rebuilt.items() if text and not against["own", name]}
    for name, text in wrong.items():
        print(f"ORIGINAL {name}: {text}")
    passed = sum(not text for text in rebuilt.values())
    print(f"{passed:6} of {len(rebuilt)} rebuilt indexes pass the real {release}'s --verify-index-only")
    print(f"{len(rebuilt) - passed - len(wrong):6} do not, nor does the broker's own file (it alarms on empty batches)")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
