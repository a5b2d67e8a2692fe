"""A segment as regions: batches, and after damage the next batch that is credible."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.log_dirs.files import Source
    from kdump.segments.regions import OnError, Region


def read(
    source: Source,
    start: int = 0,
    end: int | None = None,
    *,
    on_error: OnError = "stop",
    first_offset: int | None = None,
    limit: int | None = None,
) -> Iterator[Region]:
    """Yield the regions of a segment, each batch checked: magic, structure of its header, codec and crc.

    After damage the rest of the file is one Damage region ("stop"), the next region begins where the length of the bad
    batch says ("skip"), or with the next sound batch wherever it stands ("resync"). Zeros at the end are Padding.
    ``first_offset`` is the segment's base offset, for the account of what is missing at its beginning. A batch of more
    than ``limit`` bytes (by default the source's) is damage.
    """
    from kdump.segments.resync import ResyncReader  # it needs the walk

    end = source.size if end is None else min(end, source.size)
    return ResyncReader(source, start, end, on_error, first_offset, limit=limit).read()


def read_runs(
    source: Source,
    start: int = 0,
    end: int | None = None,
    *,
    on_error: OnError,
    first_offset: int | None = None,
    packed: bool = False,
) -> Iterator[Region]:
    """Yield what :func:`read` does, sound batches that are alike as one run; with ``packed`` no compressed ones."""
    from kdump.segments.resync import ResyncReader

    end = source.size if end is None else min(end, source.size)
    return ResyncReader(source, start, end, on_error, first_offset, limit=None, runs=True, packed=packed).read()


def walk_runs(source: Source, start: int = 0, end: int | None = None) -> Iterator[Region]:
    """Yield what :func:`kdump.segments.walk.walk` does, sound batches that are alike as one run."""
    from kdump.segments import batch_runs
    from kdump.segments.walk import Window

    end = source.size if end is None else min(end, source.size)
    return batch_runs.walk(source, start, end, Window(source, end), limit=source.limit, packed=False)
