"""``kdump rebuild-index``: fresh .index, .timeindex and .txnindex files from a segment."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from kdump.commands import option_values, options, session
from kdump.commands.absent import absent
from kdump.commands.limit_options import index_interval
from kdump.errors import DamageError, UsageError
from kdump.findings import many
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.local import LOCAL
from kdump.output import files
from kdump.recovery.rebuild_indexes import Rebuild

if TYPE_CHECKING:
    from kdump.log_dirs.partition import Segment
    from kdump.recovery.index_builder import Indexes


@click.command("rebuild-index", short_help="Write fresh indexes of segments.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@options.add(options.PARTITIONS)
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
@options.add(options.LIMITS)
@click.option("-q", "--quiet", is_flag=True, help="No remarks on standard error.")
def command(
    paths: tuple[str, ...], *, out: str, interval: int, entry_offset: str, force: bool, quiet: bool, **given: Any
) -> int:
    """Write fresh indexes of segments, as a broker would write them. Segments are opened read-only.

    \b
    Examples:
      kdump rebuild-index orders-0/00000000000000000000.log --out fresh
      kdump rebuild-index /var/kafka --topic orders --out fresh
      kdump rebuild-index 00000000000000000064.log --out new --entry-offset first

    PATH is a segment, a partition's folder, a log dir or a glob. The new files have the segment's name; those of a
    folder stand in a folder of its name in DIR. Before they are put beside a log, the broker must be stopped. Earlier
    segments are read where transactions of a segment may have begun there. Without aborted transactions there is no
    .txnindex, as with a broker.

    Exit status: 0 fine, 1 something cannot be read or written, 2 wrong usage, 3 a log is damaged (nothing is written
    for that segment, and for later ones of its folder).
    """
    run = session.Session(quiet=quiet)
    named = [path for path in paths if PurePath(path).name.rpartition(".log")[1] and not option_values.is_folder(path)]
    wanted = options.wanted(given, leftovers=bool(named))
    finder = Finder(wanted, note=run.note, fail=run.fail)
    parts = [part for part in run.watched(finder.find(paths)) if part.segments]
    run.absent(absent(wanted, finder.met, paths))
    if not parts and not run.met:
        raise UsageError(f"{', '.join(paths)}: there is no segment")
    how = Rebuild(interval=interval, first_offsets=entry_offset == "first", note=run.note, progress=run.progress)
    for part in parts:
        single = len(parts) == len(part.segments) == len(named) == 1
        folder = out if single else str(PurePath(out) / PurePath(part.folder).name)
        for segment, made in how.of(part):
            if isinstance(made, DamageError):
                left = part.segments[part.segments.index(segment) + 1 :]
                rest = f", and not for {many(len(left), 'later segment')} of its folder" if left else ""
                advice = "kdump salvage gets back what can be read"
                run.damage(f"{segment.name}: {made}: nothing was written for it{rest} ({advice})")
            else:
                _write(segment, made, folder, run, force=force)
    run.progress.clear()
    return run.status


def _write(segment: Segment, made: Indexes, folder: str, run: session.Session, *, force: bool) -> None:
    """Write the indexes of one segment. Raises UsageError where files are there already."""
    stem, _, rest = PurePath(segment.path).name.rpartition(".log")
    if not stem or segment.base_offset is None:
        raise UsageError(f"{segment.name}: a segment's name begins with its base offset and ends in .log")
    contents = {f"{stem}.index{rest}": made.offset_index, f"{stem}.timeindex{rest}": made.time_index}
    txns = f"{stem}.txnindex{rest}"
    if made.txn_index or LOCAL.look(str(PurePath(folder) / txns)) is not None:  # an old one must not outlive the others
        contents[txns] = made.txn_index
    try:
        written = files.write(folder, contents, force=force)
    except files.TakenError as error:
        raise UsageError(f"{error} (--force overwrites it)") from None
    for path in written:
        run.note(f"{path}: {path.stat().st_size} bytes")
