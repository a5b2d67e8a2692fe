"""``kdump rebuild-index``: fresh .index, .timeindex and .txnindex files from a segment."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import click

from kdump.commands import session
from kdump.commands.limits import CACHE, MAX_BATCH_BYTES, index_interval
from kdump.errors import DamageError, UsageError
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.local import LOCAL
from kdump.output import files
from kdump.records.record_batch import RecordBatch
from kdump.records.soundness import check
from kdump.recovery.index_builder import IndexBuilder, Indexes
from kdump.segments.regions import Trailing
from kdump.segments.resync import zero_tail
from kdump.segments.walk import walk
from kdump.transactions.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kdump.log_dirs.partition import Partition, Segment


@click.command("rebuild-index", short_help="Write fresh indexes of a segment.")
@click.argument("segment", metavar="SEGMENT")
@click.option("--out", required=True, metavar="DIR", help="The folder for the new files; it is made where missing.")
@index_interval("how much log may pass without an index entry")
@click.option(
    "--entry-offset",
    type=click.Choice(["last", "first"]),
    default="last",
    show_default=True,
    help="Which offset of its batch an entry names: the last since Kafka 2.0, the first before.",
)
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@MAX_BATCH_BYTES
@CACHE
@click.option("-q", "--quiet", is_flag=True, help="No remarks on standard error.")
def command(
    segment: str, *, out: str, interval: int, entry_offset: str, force: bool, max_batch_bytes: int, quiet: bool
) -> int:
    """Write fresh indexes of a segment, as a broker would write them. The segment is opened read-only.

    \b
    Examples:
      kdump rebuild-index orders-0/00000000000000000000.log --out fresh
      kdump rebuild-index 00000000000000000064.log --out new --entry-offset first

    The new files have the segment's name. Before they are put beside a log, the broker must be stopped. Earlier
    segments in the folder are read where transactions of this one may have begun there. Without aborted
    transactions there is no .txnindex, as with a broker.

    Exit status: 0 fine, 1 something cannot be read or written, 2 wrong usage, 3 the log is damaged (nothing is
    written).
    """
    run = session.Session(quiet=quiet)
    part, held = _find(segment, max_batch_bytes)
    run.watch(held.size)
    name = PurePath(held.path).name
    stem, _, rest = name.rpartition(".log")
    if not stem or held.base_offset is None:
        raise UsageError(f"{held.name}: a segment's name begins with its base offset and ends in .log")
    try:
        made = _build(part, held, run, interval=interval, first_offsets=entry_offset == "first")
    except DamageError as damage:
        run.damage(f"{held.name}: {damage}: nothing was written (kdump salvage gets back what can be read)")
        return run.status
    contents = {f"{stem}.index{rest}": made.offset_index, f"{stem}.timeindex{rest}": made.time_index}
    txns = f"{stem}.txnindex{rest}"
    if made.txn_index or LOCAL.look(str(PurePath(out) / txns)) is not None:  # an old one must not outlive the others
        contents[txns] = made.txn_index
    for path in files.write(out, contents, force=force):
        run.note(f"{path}: {path.stat().st_size} bytes")
    return run.status


def _find(path: str, limit: int) -> tuple[Partition, Segment]:
    """Return the one segment that ``path`` names. Raises UsageError where it names more, or none."""
    parts = list(Finder(Wanted(leftovers=True, max_batch_bytes=limit)).find([path]))
    segments = [(part, segment) for part in parts for segment in part.segments]
    if len(segments) != 1:
        raise UsageError(f"{path} holds {len(segments)} segments: name one .log file")
    return segments[0]


def _build(part: Partition, held: Segment, run: session.Session, *, interval: int, first_offsets: bool) -> Indexes:
    """Read the segment; where it ends transactions, once more behind the segments before it."""
    replay = Replay()

    def once() -> tuple[Indexes, bool]:
        builder = IndexBuilder(held.base_offset or 0, interval=interval, first_offsets=first_offsets)
        aborts = False
        for batch in _batches(held, run.note, run.progress):
            ended = replay.add(batch)
            aborts = aborts or (ended is not None and ended.aborted)
            builder.add(batch, ended)
        return builder.finish(), aborts

    made, aborts = once()
    before = _earlier(part, held) if aborts else []
    if before:
        replay = Replay()
        for segment in before:
            for batch in _batches(segment, run.note, lambda _: None):
                replay.add(batch)
        made, _ = once()
    run.progress.clear()
    return made


def _earlier(part: Partition, held: Segment) -> list[Segment]:
    """Return the segments of the folder before this one, in order."""
    finder = Finder(Wanted(max_batch_bytes=part.limit))
    here = [folder for folder in finder.find([part.folder], part.files) if folder.folder == part.folder]
    base = held.base_offset or 0
    return [one for folder in here for one in folder.segments if one.base_offset is not None and one.base_offset < base]


def _batches(segment: Segment, note: Callable[[str], None], read: Callable[[int], None]) -> Iterator[RecordBatch]:
    """Yield the batches of a segment, each checked as a broker checks it. Raises DamageError at the first bad one."""
    with segment.open() as source:
        for region in walk(source):
            if isinstance(region, RecordBatch):
                try:
                    check(region)
                except DamageError as damage:
                    raise damage.at(region.position) from None
                yield region
                read(region.size)
            elif zero_tail(source, region.position, source.size) == region.position:
                note(f"{segment.name}: {region.size} bytes of zeros follow the last batch")
            else:
                reason = "the last batch is cut off" if isinstance(region, Trailing) else getattr(region, "reason", "")
                raise DamageError("end of log", f"behind the last whole batch {reason}", position=region.position)
