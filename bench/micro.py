"""Seconds of each stage of a dump, measured alone on one processor."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

import kdump
from bench import segments
from kdump import kernel
from kdump.formats.record_layout import CRC_COVERS_FROM
from kdump.kernel.lines import Lines, Shape, slots
from kdump.kernel.records import Cursor
from kdump.log_dirs.local import LocalFile
from kdump.log_reader.filter import Filter
from kdump.primitives import compression
from kdump.primitives.crc import crc32c
from kdump.records.magic_2 import Batch
from kdump.rows.selection import SegmentFacts, SelectedBatch
from kdump.segments.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from kdump.kernel.lines import Part


def table(folder: Path, records: int) -> Iterator[str]:
    """Yield the lines of a table: stage, seconds, MB/s of its input."""
    yield "| Stage | CPU ms | MB/s | million records/s |"
    yield "|---|---|---|---|"
    plain = segments.make(folder, segments.SHAPES["none"], records)
    with LocalFile(plain) as source:
        batches = [region for region in walk(source) if isinstance(region, Batch)]
        size = source.size
        yield row("walk: batches found, headers read", lambda: sum(1 for _ in walk(source)), size, records)
    contents = [batch.raw[CRC_COVERS_FROM:] for batch in batches]
    yield row("crc", lambda: [crc32c(content) for content in contents], size, records)
    for codec, name in list(enumerate(compression.NAMES))[1:]:
        with LocalFile(segments.make(folder, segments.SHAPES[name], records)) as source:
            packed = [region for region in walk(source) if isinstance(region, Batch)]
            out = sum(len(batch.payload()[0]) for batch in packed)
            unpack = [batch.payload for batch in packed]
            yield row(
                f"decompress {compression.NAMES[codec]}", lambda calls=unpack: [call() for call in calls], out, records
            )
    build = kernel.build()
    yield row(f"decode (kernel: {build})", lambda: decode(batches), size, records)
    yield row(f"decode and render (kernel: {build})", lambda: render(batches), size, records)
    yield row(
        f"records as objects (kernel: {build})",
        lambda: [sum(1 for _ in batch.records()) for batch in batches],
        size,
        records,
    )
    yield row(f"loop over kdump.open (kernel: {build})", lambda: sum(1 for _ in kdump.open(plain)), size, records)
    if find_spec("pyarrow"):
        yield row(f"Arrow columns, all of them (kernel: {build})", lambda: arrow(batches, plain), size, records)
        yield row(f"file to Arrow columns, checked (kernel: {build})", lambda: arrow_of(plain), size, records)


def row(name: str, stage: Callable[[], object], size: int, records: int) -> str:
    """Run a stage three times; return its line with the best time."""
    best = min(_timed(stage) for _ in range(3))
    return f"| {name} | {best * 1e3:.1f} | {size / best / 1e6:,.0f} | {records / best / 1e6:.2f} |"


def _timed(stage: Callable[[], object]) -> float:
    start = time.process_time()
    stage()
    return time.process_time() - start


def decode(batches: list[Batch]) -> None:
    """Only read the records."""
    engine = Cursor()
    for batch in batches:
        data, start = batch.payload()
        engine.begin(data, start, batch.header, ())
        engine.sound()


def arrow(batches: list[Batch], path: Path) -> None:
    """Make all columns of the Spark source from the records."""
    from kdump.arrow import columns, schema

    rows = columns.Rows(SegmentFacts(str(path), "topic", 0), schema.RECORD_NAMES, Filter())
    for batch in batches:
        if not rows.read(batch, "none"):
            rows.add(SelectedBatch(SegmentFacts(str(path)), batch, batch.base_offset, list(batch.records())))
        if rows.is_full:
            rows.take()
    rows.take()


def arrow_of(path: Path) -> None:
    """Do the work of a task of Spark: read the file, check it, make all columns."""
    from kdump.spark.source import options, planning, reading

    wanted = options.SourceOptions(paths=(str(path),))
    for planned in planning.plan(wanted):
        for split in planned.splits:
            for _ in reading.read(split, wanted):
                pass


def render(batches: list[Batch]) -> None:
    """Write the records in the format of the newest release."""
    at = slots(())
    parts: list[Part] = [b"| offset: ", at["offset"], b" CreateTime: ", at["timestamp"], b" keySize: ", at["key_size"]]
    parts += [b" valueSize: ", at["value_size"], b" sequence: ", at["sequence"], b" headerKeys: [", at["header_keys"]]
    parts += [b"] key: ", at["key"], b" payload: ", at["value"], b"\n"]
    shape = Shape([parts] * 4)
    engine = Lines()
    for batch in batches:
        data, start = batch.payload()
        engine.begin(data, start, batch.header, ())
        engine.lines(None, shape, 1 << 40)
