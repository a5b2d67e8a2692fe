"""A segment as regions: batches, and after damage the next batch that is credible."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdump.log_dirs.files import Source
    from kdump.segments.regions import OnError, Region, RunKinds


def read(
    source: Source,
    start: int = 0,
    end: int | None = None,
    *,
    on_error: OnError = "stop",
    first_offset: int | None = None,
    limit: int | None = None,
    runs: RunKinds | None = None,
) -> Iterator[Region]:
    """Yield the regions of a segment, each batch checked: magic, structure of its header, codec and crc.

    After damage the rest of the file is one Damage region ("stop"), the next region begins where the length of the bad
    batch says ("skip"), or with the next valid batch anywhere in it ("resync"). Zeros at the end are Padding.
    ``first_offset`` is the segment's base offset: offsets from there to the first batch are missing. A batch of more
    than ``limit`` bytes (by default the source's) is damage. With ``runs``, like batches come as one region (see
    :func:`kdump.segments.walk.walk`).
    """
    from kdump.segments.resync import ResyncReader  # it needs the walk

    end = source.size if end is None else min(end, source.size)
    return ResyncReader(source, start, end, on_error, first_offset, limit=limit, runs=runs).read()
