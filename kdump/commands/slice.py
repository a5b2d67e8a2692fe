"""``kdump slice``: writes the batches of a range of offsets as a new segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kdump.command_line import option_values, session
from kdump.command_line.limit_options import ANY_PATH, CACHE, MAX_BATCH_BYTES
from kdump.errors import Reporter, UsageError, many
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.remote import without_secret
from kdump.log_salvage import slice_segment
from kdump.output import files
from kdump.output.access import of_sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.log_dirs.partition import Segment
    from kdump.segments.regions import Damage


@click.command("slice")
@click.argument("path", metavar="PATH", type=ANY_PATH)
@click.option(
    "--offset", required=True, metavar="A..B", help="Offsets A to B, both included. Also: A.., ..B, or one offset A."
)
@click.option("--out", required=True, metavar="FILE", help="The segment to write; it must not exist.")
@MAX_BATCH_BYTES
@CACHE
@click.option("-q", "--quiet", is_flag=True, help="Print errors and damage only, without notes.")
def command(path: str, *, offset: str, out: str, max_batch_bytes: int, quiet: bool) -> int:
    """Write a segment of the batches that hold offsets A to B. The input is opened read-only.

    \b
    Example:
      kdump slice /var/kafka/orders-0 --offset 1000..1999 --out cut.log

    Batches are copied whole and unchanged, so that their checksums stay valid. The first may start before A, and the
    last may end after B. Damaged ranges are skipped.

    Exit status: 0 written; 1 something cannot be read; 2 wrong usage; 3 damage was found.
    """
    wanted = slice_segment.SliceRange(*option_values.offsets(offset))
    run = session.Session(quiet=quiet)
    partitions = list(Finder(Wanted(max_batch_bytes=max_batch_bytes), Reporter(note=run.note)).find([path]))
    if len(partitions) != 1:
        raise UsageError(f"{without_secret(path)} holds {len(partitions)} partitions: name the folder of one partition")
    segments = partitions[0].segments
    if out == "-":
        raise UsageError(
            "--out - is not possible, because kdump could not delete this output after an error: name a file"
        )
    files.outside([path], out, partitions)
    files.writable_file(out)

    def lost(segment: Segment, damage: Damage) -> None:
        run.damage(f"{segment.name}: byte {damage.position}: {many(damage.size, 'byte')} left out: {damage.reason}")

    written = slice_segment.write(segments, wanted, out, lost, of_sources(partitions), run.note)
    if written is not None:
        count = many(written.batches, "batch", "batches")
        begins, ends = written.first[0], written.last[1]
        run.note(f"wrote {count}, offsets {begins} to {ends}. To give the file to a broker, name it {begins:020}.log")
        for text in _beyond(written, wanted):
            run.note(text)
    elif run.statuses:
        run.note(f"nothing was written: no valid batch covers --offset {offset}")
    else:
        raise UsageError(f"{without_secret(path)} holds no batch that covers --offset {offset}")
    return run.status


def _beyond(written: slice_segment.Slice, wanted: slice_segment.SliceRange) -> Iterator[str]:
    (begins, first_ends), (last_begins, ends) = written.first, written.last
    if wanted.first is not None and begins < wanted.first:
        yield f"the first batch has offsets {begins} to {first_ends}: it starts before offset {wanted.first}"
    if wanted.last is not None and ends > wanted.last:
        yield f"the last batch has offsets {last_begins} to {ends}: it ends after offset {wanted.last}"
