"""``kdump rebuild-index``: new .index, .timeindex and .txnindex files from segments."""

from __future__ import annotations

import posixpath
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click

from kdump.command_line import option_values, options, session
from kdump.command_line.limit_options import PATHS, index_interval
from kdump.errors import DamageError, UsageError, many
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.local import LOCAL
from kdump.log_dirs.remote import shown_paths
from kdump.output import files
from kdump.output.access import of_sources
from kdump.recovery.index_builder import Rebuild

if TYPE_CHECKING:
    from kdump.log_dirs.partition import Partition, Segment
    from kdump.recovery.index_builder import Indexes


@click.command("rebuild-index", short_help="Write new indexes of segments.")
@PATHS
@options.add(options.PARTITIONS)
@click.option("--out", required=True, metavar="DIR", help="The folder for the new files; it is created if missing.")
@index_interval("the number of bytes of log between two index entries")
@click.option(
    "--entry-offset",
    type=click.Choice(["last", "first"]),
    default="last",
    show_default=True,
    help="The offset of a batch that an index entry has: the last offset since Kafka 2.0, the first offset before.",
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@options.add(options.LIMITS)
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
def command(
    paths: tuple[str, ...], *, out: str, interval: int, entry_offset: str, force: bool, quiet: bool, **given: Any
) -> int:
    """Write new indexes of segments, as a broker would write them. Segments are opened read-only.

    \b
    Examples:
      kdump rebuild-index orders-0/00000000000000000000.log --out fresh
      kdump rebuild-index /var/kafka --topic orders --out fresh
      kdump rebuild-index 00000000000000000064.log --out new --entry-offset first

    PATH is a segment, a partition folder, a log dir or a glob. The new indexes are named like the segment. Except for a
    single segment, they go to a folder of --out, named like the partition folder. Stop the broker before you move them
    to a log. kdump also reads earlier segments, if a transaction may have begun there. Like a broker, it writes no new
    .txnindex if no transaction was aborted. It writes nothing for a damaged segment and later ones of its folder.

    Exit status: 0 written; 1 something cannot be read or written; 2 wrong usage; 3 a log is damaged.
    """
    run = session.Session(quiet=quiet)
    named = [path for path in paths if PurePath(path).name.rpartition(".log")[1] and not option_values.is_folder(path)]
    wanted = options.wanted(given, leftovers=bool(named))
    finder = Finder(wanted, run.report)
    parts = [part for part in run.watched(finder.find(paths)) if part.segments]
    run.absent(wanted.missing(finder.found_names, paths))
    if not parts:
        if run.statuses:
            return run.status
        raise UsageError(f"{shown_paths(paths)}: there is no segment")
    how = Rebuild(interval=interval, first_offsets=entry_offset == "first", note=run.note, progress=run.progress)
    single = bool(named) and len(parts) == len(named) == 1 and len(parts[0].segments) == 1
    files.must_be_named(out)
    folders = [out] if single else _folders(parts, out)
    for part, folder in zip(parts, folders, strict=True):
        files.outside(paths, folder, [part])
        if not force:
            _refuse_to_overwrite(part, folder)
    run.must_be_whole(out)
    with files.new_files(
        out,
        force=force,
        access=of_sources(parts),
        note=run.note,
        written=lambda path: run.note(f"{path}: {path.stat().st_size} bytes"),
    ) as new:
        for part, folder in zip(parts, folders, strict=True):
            access = of_sources([part])
            for segment, made in how.of(part):
                if isinstance(made, DamageError):
                    left = [one for one in part.segments if (one.base_offset or 0) > (segment.base_offset or 0)]
                    rest = f" and {many(len(left), 'later segment')} of its folder" if left else ""
                    advice = "kdump salvage recovers the valid batches"
                    run.damage(f"{segment.name}: {made}. No index was written for this segment{rest}. {advice}")
                else:
                    for name, data in _contents(segment, made, folder).items():
                        new.add(str(PurePath(folder, name).relative_to(out)), data, access)
        run.progress.clear()
    return run.status


def _folders(parts: list[Partition], out: str) -> list[str]:
    read: dict[str, str] = {}
    for part in parts:
        folder = part.files.shown(part.folder)
        name = PurePath(posixpath.abspath(part.folder or "segment")).name or "segment"
        if name in read:
            raise UsageError(
                f"{read[name]} and {folder} would both be written to {PurePath(out) / name}: "
                "run the command for one folder at a time, each with another --out folder"
            )
        read[name] = folder
    return [str(PurePath(out) / name) for name in read]


def _refuse_to_overwrite(part: Partition, folder: str) -> None:
    for segment in part.segments:
        for name in _names(segment):
            try:
                files.must_be_free(Path(folder) / name)
            except files.TakenError:
                raise UsageError(f"{PurePath(folder) / name} exists already (--force overwrites the file)") from None


def _names(segment: Segment) -> tuple[str, str, str]:
    """Return the names of a segment's .index, .timeindex and .txnindex. Raises UsageError for an invalid file name."""
    stem, _, rest = PurePath(segment.path).name.rpartition(".log")
    if not stem or segment.base_offset is None:
        raise UsageError(f"{segment.name}: a segment's name begins with its base offset and ends in .log")
    return f"{stem}.index{rest}", f"{stem}.timeindex{rest}", f"{stem}.txnindex{rest}"


def _contents(segment: Segment, made: Indexes, folder: str) -> dict[str, bytes]:
    index, time_index, txn_index = _names(segment)
    contents = {index: made.offset_index, time_index: made.time_index}
    if made.txn_index or LOCAL.look(str(PurePath(folder) / txn_index)) is not None:  # replaces an old .txnindex
        contents[txn_index] = made.txn_index
    return contents
