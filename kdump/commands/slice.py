"""``kdump slice``: the batches of a range of offsets as a segment of its own."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from kdump.commands import session, words
from kdump.commands.limits import CACHE, MAX_BATCH_BYTES
from kdump.errors import DamageError, UsageError
from kdump.findings import many
from kdump.log_dirs.file_names import SEGMENT_NAME
from kdump.log_dirs.finder import Finder, Wanted
from kdump.output import files
from kdump.records.record_batch import RecordBatch
from kdump.segments import read
from kdump.segments.regions import Damage


@click.command("slice")
@click.argument("path", metavar="PATH")
@click.option(
    "--offset", required=True, metavar="A..B", help="Offsets A to B, both included; A.., ..B and A alone too."
)
@click.option("--out", required=True, metavar="FILE", help="The segment to write; it must not be there yet.")
@MAX_BATCH_BYTES
@CACHE
@click.option("-q", "--quiet", is_flag=True, help="No remarks on standard error; errors and damage are told.")
def command(  # noqa: C901  it refuses much before it writes
    path: str, *, offset: str, out: str, max_batch_bytes: int, quiet: bool
) -> int:
    """Write a segment of the batches that hold offsets A to B. The input is opened read-only.

    \b
    Example:
      kdump slice /var/kafka/orders-0 --offset 1000..1999 --out cut.log

    Batches are copied whole and unchanged, so that their crc stays right: the first may begin before A, the last may
    end behind B. Damage is passed over.

    Exit status: 0 fine, 1 something cannot be read, 2 wrong usage, 3 damage was met.
    """
    first, last = words.offsets(offset)
    run = session.Session(quiet=quiet)
    partitions = list(Finder(Wanted(max_batch_bytes=max_batch_bytes), note=run.note).find([path]))
    if len(partitions) != 1:
        raise UsageError(f"{path} holds {len(partitions)} partitions: name one")
    segments = partitions[0].segments
    begins: int | None = None
    count = 0
    if out == "-":
        raise UsageError("standard output cannot be taken back where something goes wrong: name the file to write")
    files.outside([path], out)
    if SEGMENT_NAME.fullmatch(Path(out).name) and any(_beside(held.path, out) for held in segments):
        raise UsageError(f"{out} would be taken for a segment of the log that is read: name a place outside of it")
    if Path(out).is_dir():
        raise UsageError(f"{out} is a folder: name the file to write")
    with suppress(_NothingError), files.whole(out) as temporary, temporary.open("xb") as file:
        for each, following in zip(segments, [*segments[1:], None], strict=True):
            after = None if following is None else following.base_offset
            if (first is not None and after is not None and after <= first) or (
                last is not None and (each.base_offset or 0) > last
            ):
                continue
            with each.open() as source:
                for region in read.read(source, on_error="resync", first_offset=each.base_offset):
                    if isinstance(region, Damage) and _may_hold(region, first, last):
                        run.damage(f"{each.name}: byte {region.position}: {region.size} bytes: {region.reason}")
                    elif isinstance(region, RecordBatch) and _holds(region, first, last):
                        begins = _first(region) if begins is None else begins
                        count += 1
                        file.write(region.raw)
        if begins is None:
            raise _NothingError
    if begins is None and not run.met:
        raise UsageError(f"{path} holds no batch with offsets {offset}")
    if begins is None:
        run.note(f"no sound batch has offsets {offset}: nothing is written")
    else:
        told = many(count, "batch", "batches")
        run.note(f"{told} from offset {begins} on: a broker wants the name {begins:020}.log")
    return run.status


def _beside(path: str, out: str) -> bool:
    return Path(path).parent.resolve() == Path(out).parent.resolve()


class _NothingError(Exception):
    """There is nothing to write."""


def _may_hold(damage: Damage, first: int | None, last: int | None) -> bool:
    """Tell whether offsets of the range may have been in a damaged stretch."""
    missing = damage.missing
    if missing is None:
        return True
    return (first is None or missing.stop > first) and (last is None or missing.start <= last)


def _first(region: RecordBatch) -> int:
    try:
        return region.base_offset
    except DamageError:
        return region.last_offset


def _holds(region: RecordBatch, first: int | None, last: int | None) -> bool:
    if first is not None and region.last_offset < first:
        return False
    return last is None or _first(region) <= last
