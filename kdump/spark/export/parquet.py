"""Writes Parquet files in Spark's Python workers, without copying the rows to Java.

Schema and folders are those of Spark's own writer, which has no folders of subjects. Each attempt of a task writes its
own files (:class:`LocalParts`, :class:`StoreParts`). The driver moves the files of successful attempts to their paths
in the output, and deletes the others. In a store that does not rename folders, it ignores the other files instead.
"""

from __future__ import annotations

import os
import re
import socket
import tempfile
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, TypeAlias

from kdump.arrow import typed
from kdump.arrow.files import ParquetFile
from kdump.errors import KdumpError, UnreadableError
from kdump.log_dirs.remote import RemoteFiles, place
from kdump.output import files
from kdump.output.access import ANY
from kdump.spark import session
from kdump.spark.export.output import SUBJECT, UNDECODED
from kdump.spark.source import planning, reading, schema, subject_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from kdump.spark.export.counting import Counted
    from kdump.spark.export.output import Output
    from kdump.spark.source.options import SourceOptions
    from kdump.spark.source.planning import Split

PARTS: Final = "_parts"
WRITERS: Final = 64
MOVES: Final = 8
HELD_BYTES: Final = 32 << 20
"""Above this number of bytes of Arrow columns in memory, a task writes those of the file that has most."""
NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
_SUCCESS: Final = "_SUCCESS"
_DAY_US: Final = 86_400_000_000
_HOUR_US: Final = 3_600_000_000
_ESCAPED: Final = re.compile(r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
"""The characters that Spark escapes in names of folders (ExternalCatalogUtils.escapePathName)."""


class WrittenParts(NamedTuple):
    """The result of a task: the counts of each split, and its files (path in the output -> in the prepared folder)."""

    counted: Counted
    files: dict[str, str]


@dataclass(frozen=True)
class LocalParts:
    """The files of tasks in the folder ``root``, on a disk that driver and workers share. Errors name ``shown``."""

    root: str
    shown: str

    def part(self, attempt: str, name: str) -> str:
        return f"{PARTS}/{attempt}/{name}"

    def create(self, part: str) -> BinaryIO:
        files.make_folders(Path(self.root, PARTS), *part.split("/")[1:-1], access=ANY)
        return files.create(Path(self.root, part), ANY)

    def finish(self, part: str, file: BinaryIO) -> None:  # noqa: ARG002  the file has its name already
        file.close()

    def settle(self, output: Output, written: dict[str, str]) -> None:
        """Move the ``written`` files to their paths in the output, and delete the files of other attempts."""
        with _refused(self.shown):
            for name, part in written.items():
                output.rename(part, name)
            files.fill(Path(self.root, _SUCCESS), b"", ANY)
        output.delete(PARTS)


@dataclass(frozen=True)
class StoreParts:
    """The files of tasks in the folder ``root`` of a store.

    A worker writes a temporary file on its own disk, and copies the complete file into the store. After an error the
    copy is repeated. If the store ``renames`` folders, files are copied to :data:`PARTS`, so that a late attempt writes
    nothing into the output. Otherwise they are copied to their final paths, because a move would be a second copy.
    """

    store: RemoteFiles
    root: str
    shown: str
    renames: bool

    def part(self, attempt: str, name: str) -> str:
        return f"{PARTS}/{attempt}-{uuid.uuid4().hex}" if self.renames else name

    def create(self, part: str) -> BinaryIO:  # noqa: ARG002  the file has no name yet
        folder = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
        return tempfile.TemporaryFile(dir=folder if folder and Path(folder).is_dir() else None)

    def finish(self, part: str, file: BinaryIO) -> None:
        with file:
            self.store.put(file, f"{self.root}/{part}")

    def settle(self, output: Output, written: dict[str, str]) -> None:
        if self.renames:
            with ThreadPoolExecutor(MOVES) as pool:
                list(pool.map(lambda pair: output.rename(pair[1], pair[0]), written.items()))
            output.delete(PARTS)
        else:
            output.keep(written)


Parts: TypeAlias = LocalParts | StoreParts
"""Workers name, create and finish files (``part``, ``create``, ``finish``). The driver publishes them (``settle``)."""


def parts_of(output: Output, note: Callable[[str], None]) -> Parts | None:
    """Return where the workers write the files of a new output; None for a store that Python cannot write to.

    ``note`` receives the reason for None. In a store the folder is created, and deleted if the result is None.
    """
    local = output.local
    if local is not None:
        return LocalParts(str(local), output.shown)
    reason = "PyArrow cannot open this store"
    try:
        store, root = place(output.uri)
        if isinstance(store, RemoteFiles):
            output.make()
            store.put_once(b"", f"{root}/{_SUCCESS}")
            if output.exists(_SUCCESS):  # Java and Python see the same store
                if output.renames_whole:
                    output.inside(PARTS).make()
                return StoreParts(store, root, output.shown, output.renames_whole)
            store.delete(f"{root}/{_SUCCESS}")
            reason = "PyArrow and Spark reach different stores"
    except (OSError, KdumpError) as error:  # Spark's own writer may have keys that PyArrow cannot use
        reason = str(error)
    note(f"{output.shown}: Spark's own writer writes the files, because the workers cannot: {reason}")
    output.delete()  # Spark's writer requires that the folder does not exist
    return None


def write(
    spark: SparkSession,
    splits: Sequence[Split],
    options: SourceOptions,
    output: Output,
    layout: FolderLayout,
    parts: Parts,
) -> Counted:
    """Write the records of splits into ``output``, a prepared folder; return their counts. Raises their errors."""
    output.make()
    groups = planning.group(splits, options) or [[]]
    tasks = spark.sparkContext.parallelize(list(enumerate(groups)), len(groups))
    found = session.awaited(spark, tasks.map(PartsTask(options, layout, parts)).collect)
    parts.settle(output, {name: part for one in found for name, part in one.files.items()})
    return {number: counted for one in found for number, counted in one.counted.items()}


@dataclass(frozen=True)
class FolderLayout:
    """The division of an output into folders by the names of ``--partition-by``, and the columns of its files."""

    folders: dict[str, str]
    columns: tuple[str, ...]

    def parted(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Divide a batch of one partition and subject by date or hour. Yield each folder and its rows."""
        rows = batch.select([name for name in batch.schema.names if name in self.columns or name in typed.NAMES])
        if not {"date", "hour"} & self.folders.keys():
            yield self._folder(batch, None), rows
            return
        unit = _HOUR_US if "hour" in self.folders else _DAY_US
        slots = _floored(batch.column("timestamp"), unit)
        counts = slots.value_counts().to_pylist()
        if len(counts) > 1:
            import pyarrow.compute as pc

            order = pc.sort_indices(slots)  # the sort is stable
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
        first = ""
        if SUBJECT in self.folders:
            values[SUBJECT] = subject_rows.subject_of(batch)
            first = "" if values[SUBJECT] is not None else f"{UNDECODED}/"
        named = ((name, folder) for name, folder in self.folders.items() if not first or name != SUBJECT)
        return first + "".join(f"{folder}={_escaped(values[name])}/" for name, folder in named)


def _floored(times: pa.Array, unit: int) -> pa.Array:
    """Return the number of whole units from 1970 to each time; null for null. A unit has ``unit`` microseconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    micros = times.cast(pa.int64())
    whole = pc.divide(micros, unit)  # divide() rounds towards zero
    is_before = pc.less(pc.subtract(micros, pc.multiply(whole, unit)), 0)
    return pc.subtract(whole, is_before.cast(pa.int64()))


def _escaped(value: object) -> str:
    if value in {None, ""}:
        return NULL_FOLDER
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", str(value))


@dataclass(frozen=True)
class PartsTask:
    options: SourceOptions
    layout: FolderLayout
    parts: Parts

    def __call__(self, numbered: tuple[int, list[Split]]) -> WrittenParts:
        number, group = numbered
        attempt = uuid.uuid4().hex
        counted: Counted = {}
        with PartsFiles(self, number, attempt) as made:
            for split in group:
                for batch in reading.counted(split, self.options, counted.__setitem__):
                    for folder, rows in self.layout.parted(batch) if batch.num_rows else ():
                        made.add(folder, rows)
            if not number and not self.layout.folders and not made.parts:
                made.add("", None)  # an empty file has the columns, for readers
        return WrittenParts(counted, made.parts)


class OpenPart(NamedTuple):
    """A file that a task writes. :meth:`LocalParts.finish` or :meth:`StoreParts.finish` completes it."""

    parquet: ParquetFile
    out: BinaryIO
    part: str


class PartsFiles:
    """The files of one attempt of a task: at most WRITERS open, one per folder. ``parts``: path -> part."""

    def __init__(self, task: PartsTask, number: int, attempt: str) -> None:
        self._task, self._number, self._attempt = task, number, attempt
        self._open: dict[str, OpenPart] = {}
        self.parts: dict[str, str] = {}

    def add(self, folder: str, rows: pa.RecordBatch | None) -> None:
        """Add rows to the file of a folder. If ``rows`` is None, only create the file."""
        with _refused(self._task.parts.shown):
            file = self._open.get(folder) or self._made(folder, None if rows is None else rows.schema)
            self._open[folder] = self._open.pop(folder, file)  # move it to the end: most recently used
            if rows is not None:
                file.parquet.add(rows)
            if sum(one.parquet.held_bytes for one in self._open.values()) > HELD_BYTES:
                max((one.parquet for one in self._open.values()), key=lambda one: one.held_bytes).flush()

    def _made(self, folder: str, shape: pa.Schema | None) -> OpenPart:
        if len(self._open) >= WRITERS:
            self._close(next(iter(self._open)))
        name = f"{folder}part-{self._number:05}-{self._attempt}.c{len(self.parts):03}.zstd.parquet"
        part = self._task.parts.part(self._attempt, name)
        out = self._task.parts.create(part)
        self.parts[name] = part
        if shape is None:
            shape = schema.arrow_schema(replace(self._task.options, columns=self._task.layout.columns))
        return OpenPart(ParquetFile(shape, out), out, part)

    def _close(self, folder: str) -> None:
        file = self._open[folder]
        file.parquet.close()
        self._task.parts.finish(file.part, file.out)
        del self._open[folder]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Complete all files, unless the block failed."""
        try:
            with _refused(self._task.parts.shown):
                for folder in [] if kind else list(self._open):
                    self._close(folder)
        finally:
            for file in self._open.values():
                if not file.out.closed:
                    file.parquet.abandon()
                with suppress(OSError):
                    file.out.close()


@contextmanager
def _refused(shown: str) -> Iterator[None]:
    """Raise UnreadableError for the output if the body of ``with`` raises OSError."""
    try:
        yield
    except FileNotFoundError as reason:
        hint = f"there is no {Path(str(reason.filename)).parent} on {socket.gethostname()}"
        raise UnreadableError(
            shown, f"cannot be written: {hint}: workers and driver need a shared disk, HDFS or an object store"
        ) from reason
    except OSError as reason:
        raise files.unwritable(shown, reason) from reason
