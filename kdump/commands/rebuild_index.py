"""``kdump rebuild-index``: fresh .index, .timeindex and .txnindex files from a segment."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import click

from kdump.commands import session
from kdump.commands.limit_options import CACHE, MAX_BATCH_BYTES, index_interval
from kdump.errors import DamageError, UsageError
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.local import LOCAL
from kdump.output import files
from kdump.recovery.rebuild_indexes import rebuild

if TYPE_CHECKING:
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
        made = rebuild(
            part,
            held,
            interval=interval,
            first_offsets=entry_offset == "first",
            note=run.note,
            progress=run.progress,
        )
    except DamageError as damage:
        run.damage(f"{held.name}: {damage}: nothing was written (kdump salvage gets back what can be read)")
        return run.status
    run.progress.clear()
    contents = {f"{stem}.index{rest}": made.offset_index, f"{stem}.timeindex{rest}": made.time_index}
    txns = f"{stem}.txnindex{rest}"
    if made.txn_index or LOCAL.look(str(PurePath(out) / txns)) is not None:  # an old one must not outlive the others
        contents[txns] = made.txn_index
    try:
        written = files.write(out, contents, force=force)
    except files.TakenError as error:
        raise UsageError(f"{error} (--force overwrites it)") from None
    for path in written:
        run.note(f"{path}: {path.stat().st_size} bytes")
    return run.status


def _find(path: str, limit: int) -> tuple[Partition, Segment]:
    """Return the one segment that ``path`` names. Raises UsageError where it names more, or none."""
    parts = list(Finder(Wanted(leftovers=True, max_batch_bytes=limit)).find([path]))
    segments = [(part, segment) for part in parts for segment in part.segments]
    if len(segments) != 1:
        raise UsageError(f"{path} holds {len(segments)} segments: name one .log file")
    return segments[0]
