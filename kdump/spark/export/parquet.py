"""Parquet files that the Python workers write, without a copy of the rows in Java.

The files, their schema and their folders are those of Spark's own writer. Each attempt of a task writes into a folder
of its own in :data:`PARTS`. The driver moves the files of the attempts that Spark counts to their places in the output,
and deletes the rest.
"""

from __future__ import annotations

import re
import socket
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kdump.arrow import schema as arrow_schema
from kdump.arrow.files import ParquetFile
from kdump.errors import KdumpError, UnreadableError
from kdump.output import files
from kdump.output.access import ANY
from kdump.spark import session
from kdump.spark.export import counting
from kdump.spark.export.account import SplitAccount
from kdump.spark.source import planning, reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from kdump.spark.export.output import Output
    from kdump.spark.source.options import SourceOptions
    from kdump.spark.source.planning import Split

PARTS: Final = "_parts"
WRITERS: Final = 64
HELD_BYTES: Final = 32 << 20
"""The most bytes of Arrow columns that a task holds for its files."""
NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
_SUCCESS: Final = "_SUCCESS"
_DAY_US: Final = 86_400_000_000
_HOUR_US: Final = 3_600_000_000
_ESCAPED: Final = re.compile(r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
"""Characters that Spark escapes in the name of a folder (ExternalCatalogUtils.escapePathName)."""


class WrittenParts(NamedTuple):
    """The result of a task: the counts of each split, and the written files by their paths in the output."""

    counted: dict[int, counting.Counted]
    folder: str
    files: list[str]


def write(
    spark: SparkSession, splits: Sequence[Split], options: SourceOptions, output: Output, layout: FolderLayout
) -> dict[int, counting.Counted]:
    """Write the records of splits into ``output``, a folder on the driver's disks; return the counts of each split.

    Raises as the tasks do, and UnreadableError if a file cannot be written.
    """
    output.make()
    place = output.local
    if place is None:
        raise KdumpError(f"{output.shown} is not on a disk of this machine")
    groups = planning.group(splits, options) or [[]]
    task = PartsTask(options, layout, str(place), output.shown)
    tasks = spark.sparkContext.parallelize(list(enumerate(groups)), len(groups))
    found = session.collected(tasks.map(task))
    with _refused(output.shown):
        for one in found:
            for name in one.files:
                folders = name.split("/")[:-1]
                files.make_folders(place, *folders, access=ANY)
                files.take_place(place / PARTS / one.folder / name, place / name, is_durable=False)
        files.fill(place / _SUCCESS, b"", ANY)
    output.delete(PARTS)
    return {number: counted for one in found for number, counted in one.counted.items()}


@dataclass(frozen=True)
class FolderLayout:
    """The folders of an output, by the names of ``--partition-by``, and the columns of its files."""

    folders: dict[str, str]
    columns: tuple[str, ...]

    def parted(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows of each folder, in order, with the columns of the files. All rows are of one segment."""
        rows = batch.select(list(self.columns))
        if not {"date", "hour"} & self.folders.keys():
            yield self._folder(batch, None), rows
            return
        unit = _HOUR_US if "hour" in self.folders else _DAY_US
        slots = _floored(batch.column("timestamp"), unit)
        counts = slots.value_counts().to_pylist()
        if len(counts) > 1:
            import pyarrow.compute as pc

            order = pc.sort_indices(slots)  # it is stable
            rows, counts = rows.take(order), slots.take(order).value_counts().to_pylist()
        start = 0
        for one in counts:
            slot = one["values"]
            yield self._folder(batch, None if slot is None else slot * unit), rows.slice(start, one["counts"])
            start += one["counts"]

    def _folder(self, batch: pa.RecordBatch, time: int | None) -> str:
        values: dict[str, Any] = {"date": None, "hour": None}
        for name in ("topic", "partition"):
            values[name] = batch.column(name)[0].as_py() if name in self.folders else None
        if time is not None:
            values["date"] = (date(1970, 1, 1) + timedelta(days=time // _DAY_US)).isoformat()
            values["hour"] = time % _DAY_US // _HOUR_US
        return "".join(f"{folder}={_escaped(values[name])}/" for name, folder in self.folders.items())


def _floored(times: pa.Array, unit: int) -> pa.Array:
    """Return the number of whole units (microseconds) from 1970 to each time; null for a null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    micros = times.cast(pa.int64())
    whole = pc.divide(micros, unit)  # towards zero
    is_before = pc.less(pc.subtract(micros, pc.multiply(whole, unit)), 0)
    return pc.subtract(whole, is_before.cast(pa.int64()))


def _escaped(value: object) -> str:
    if value in {None, ""}:
        return NULL_FOLDER
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", str(value))


@dataclass(frozen=True)
class PartsTask:
    """A task that reads the splits of a group and writes their records."""

    options: SourceOptions
    layout: FolderLayout
    place: str
    shown: str

    def __call__(self, numbered: tuple[int, list[Split]]) -> WrittenParts:
        number, group = numbered
        attempt = uuid.uuid4().hex
        counted: dict[int, counting.Counted] = {}

        def count(split: int, tally: reading.Tally) -> None:
            counted[split] = counting.Counted(SplitAccount(*tally.counts), tally.lost)

        with PartsFiles(self, f"part-{number:05}-{attempt}", Path(self.place, PARTS, attempt)) as made:
            for split in group:
                for batch in reading.counted(split, self.options, count):
                    for folder, rows in self.layout.parted(batch) if batch.num_rows else ():
                        made.add(folder, rows)
            if not number and not self.layout.folders and not made.names:
                made.add("", None)  # a reader learns the columns from it
        return WrittenParts(counted, attempt, made.names)


class PartsFiles:
    """The files of one attempt of a task, one open file for each folder."""

    def __init__(self, task: PartsTask, stem: str, root: Path) -> None:
        self._task, self._stem, self._root = task, stem, root
        self._schema = arrow_schema.arrow(arrow_schema.chosen(task.layout.columns))
        self._open: dict[str, tuple[ParquetFile, Any]] = {}
        self.names: list[str] = []

    def add(self, folder: str, rows: pa.RecordBatch | None) -> None:
        """Add rows to the file of a folder; with None only create the file."""
        with _refused(self._task.shown):
            file = self._open.get(folder) or self._made(folder)
            self._open[folder] = self._open.pop(folder, file)  # the last one used comes last
            if rows is not None:
                file[0].add(rows)
            if sum(one.held_bytes for one, _ in self._open.values()) > HELD_BYTES:
                max((one for one, _ in self._open.values()), key=lambda one: one.held_bytes).flush()

    def _made(self, folder: str) -> tuple[ParquetFile, Any]:
        if len(self._open) >= WRITERS:
            self._close(next(iter(self._open)))
        name = f"{folder}{self._stem}.c{len(self.names):03}.zstd.parquet"
        path = self._root / name
        files.make_folders(self._root.parent, *path.relative_to(self._root.parent).parts[:-1], access=ANY)
        out = files.create(path, ANY)
        self.names.append(name)
        return ParquetFile(self._schema, out), out

    def _close(self, folder: str) -> None:
        file, out = self._open[folder]
        file.close()
        out.close()
        del self._open[folder]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Finish all files, unless the block failed."""
        try:
            with _refused(self._task.shown):
                for folder in [] if kind else list(self._open):
                    self._close(folder)
        finally:
            for file, out in self._open.values():
                file.abandon()
                with suppress(OSError):
                    out.close()


@contextmanager
def _refused(shown: str) -> Iterator[None]:
    """Raise UnreadableError of the output if its disk refuses."""
    try:
        yield
    except FileNotFoundError as reason:
        hint = f"there is no {Path(str(reason.filename)).parent} on {socket.gethostname()}"
        raise UnreadableError(
            shown, f"cannot be written: {hint}: workers and driver must have the same disk, or a store is needed"
        ) from reason
    except OSError as reason:
        raise UnreadableError(shown, f"cannot be written: {reason.strerror or reason}") from reason
