"""The output of an export: a folder of files that kdump commits, or a table that a Spark writer commits.

The account of a table (damaged ranges and manifest) is prepared, committed and locked like every output, in the folder
``OUT.kdump`` next to the table. The folder has the file :data:`WRITING` from the start of the writer to the end of the
run. If the run is killed while the writer works, only the table itself shows whether it has the rows of the run:
:data:`COMMIT_FACTS` are in the history of a table of Delta or Iceberg.
"""

from __future__ import annotations

import io
import json
import os
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from kdump import __version__
from kdump.arrow.files import ParquetFile
from kdump.arrow.schema import arrow
from kdump.errors import KdumpError, UsageError
from kdump.output import files
from kdump.primitives import signals
from kdump.spark import session
from kdump.spark.export import account
from kdump.spark.export.folder import Folder, items_of
from kdump.spark.failures import try_to, writing
from kdump.spark.source.schema import DAMAGED as DAMAGED_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

MANIFEST: Final = "_manifest.json"
DAMAGED: Final = "_damaged"
UNDECODED: Final = "_undecoded"
"""With ``--partition-by subject``: the folder of records without a subject, or whose value cannot be decoded."""
CHECKPOINT: Final = "_checkpoint"
WRITING: Final = "_writing.json"
COMMIT_FACTS: Final = {"delta": "userMetadata", "iceberg": "snapshot-property.kdump"}
"""Writer -> its option for a text that is part of the table's commit.

It is JSON: ``kdump`` is the release, ``run`` the id of the run, ``began`` its time, and ``offsets`` the first and last
offset of the exported batches of each partition, as ``{"orders-0": [0, 99]}``.
"""
FORMATS: Final = ("parquet", "orc", "json", "csv")
"""The formats that an export commits itself; others are tables (:class:`Table`). JSON and CSV rows are not counted."""
_WRITE: Final = {
    "parquet": {"compression": "zstd"},
    "orc": {"compression": "zstd"},
    "json": {"compression": "gzip", "ignoreNullFields": "false"},
    "csv": {"compression": "gzip", "header": "true"},
}
SUBJECT: Final = "subject"
FOLDERS: Final = {
    "topic": ("topic_name", ("topic",)),
    "partition": ("partition_number", ("partition",)),
    "date": ("date", ("timestampMs", "timestamp")),
    "hour": ("hour", ("timestampMs", "timestamp")),
    SUBJECT: ("subject", ()),
}
"""Values of ``--partition-by`` -> the name of the folders, and the columns from which the name is made.

The folders of a topic do not have the name of the column, because Spark reads ``topic=001`` as a number.
"""
_MS_OF_DAY: Final = 86_400_000
_EXPRESSIONS: Final = {
    "topic": "topic",
    "partition": "partition",
    # from the stored number, because the session's time zone must not change the UTC date
    "date": f"if(timestamp is null, null, date_from_unix_date(int(floor(timestampMs / {_MS_OF_DAY}D))))",
    "hour": f"if(timestamp is null, null, int(pmod(timestampMs, {_MS_OF_DAY}) div 3600000))",
}


SHUFFLED: Final = 1.5
"""The size of rows in a shuffle divided by their size in a file. Measured: 1 for random bytes, 3 for similar texts."""
FOOTERS: Final = 8


def exists(path: str) -> UsageError:
    return UsageError(f"{path} exists already: add --mode overwrite or --mode append, or choose another --out")


class Output(Folder):
    """A folder of files in the format ``form``: an output, or a folder in which an output is prepared."""

    def __init__(self, spark: SparkSession, path: str, form: str, shown: str = "") -> None:
        super().__init__(spark, path, shown)
        self._format = form
        self._kept: frozenset[str] | None = None

    def like(self, path: str, shown: str) -> Output:
        return Output(self._spark, path, self._format, shown)

    @property
    def is_parquet(self) -> bool:
        """Whether the records are Parquet files: Python workers can write these."""
        return self._format == "parquet"

    def keep(self, names: Iterable[str]) -> None:
        """Ignore all files of records except ``names``, because late attempts of tasks may add other files."""
        self._kept = frozenset(names)

    def sizes(self, folder: str = "", *, deep: bool = True) -> dict[str, int]:
        found, kept = super().sizes(folder, deep=deep), self._kept
        if kept is None or folder:
            return found
        return {name: size for name, size in found.items() if name in kept or name.startswith(_OWN)}

    def hidden(self, name: str) -> Folder:
        """Return the path of a hidden folder or lock next to this output, where readers of the output do not list it.

        It is inside an existing output that is a mount point, a bucket, or in a read-only folder.
        """
        if not self._has_place_beside:
            return self.inside(f".kdump-{name}")
        return self.beside(f".{self.path.rpartition('/')[2]}.kdump-{name}")

    def hidden_names(self) -> list[str]:
        """Return the names of existing folders of :meth:`staging`, and of old outputs (``.old``)."""
        if self._has_place_beside:
            parent, _, own = self.path.rpartition("/")
            around, before = Folder(self._spark, parent or ("/" if "/" in self.path else ".")), f".{own}.kdump-"
        else:
            around, before = self, ".kdump-"
        names = (name.removeprefix(before) for name in around.folders() if name.startswith(before))
        return [name for name in names if _MADE.fullmatch(name)]

    @cached_property
    def _has_place_beside(self) -> bool:
        parent = self._files.makeQualified(self._at("")).getParent()
        if parent is None:
            return False
        if not self.exists():
            return True
        local = self.local
        if local is not None:
            return os.access(local.parent, os.W_OK | os.X_OK) and local.stat().st_dev == local.parent.stat().st_dev
        return try_to(lambda: self._files.access(parent, self._jvm.org.apache.hadoop.fs.permission.FsAction.WRITE))

    def is_empty(self) -> bool:
        """Return whether an existing folder is empty, apart from hidden folders of exports."""
        inside = items_of(self._texts.listStatusIterator(self._at("")))
        return all(one.getPath().getName().startswith(".kdump-") for one in inside)

    @contextmanager
    def staging(self, note: Callable[[str], None]) -> Iterator[tuple[str, Output]]:
        """Yield a unique name and the folder, not created yet, for files in preparation. Delete it after a failure."""
        name = uuid.uuid4().hex[:_LENGTH]
        made = self.like(self.hidden(name).path, self.path)
        local = made.local
        try:
            with signals.cleaned_up(lambda: None):  # so that SIGTERM raises, like Ctrl-C
                yield name, made
        except BaseException:
            # Java may have ended
            if not try_to(made.delete) and (local is None or not files.delete_folder(local)):
                note(f"{made.path}: the written files cannot be deleted; the next export into {self.path} deletes them")
            raise

    def rows(self) -> dict[str, int | None]:
        """Return the number of rows in each file of records, from the footer; None if the format has no footer."""
        ends = (f".{self._format}", f".{self._format}.gz")
        names = [name for name in self.files() if name.endswith(ends) and not name.startswith(f"{DAMAGED}/")]
        count = _FOOTERS.get(self._format)
        if count is None:
            return dict.fromkeys(names)
        with ThreadPoolExecutor(FOOTERS) as pool:
            return dict(zip(names, pool.map(lambda name: count(self, name), names), strict=True))

    def _parquet_rows(self, name: str) -> int:
        parquet = self._jvm.org.apache.parquet.hadoop
        file = parquet.util.HadoopInputFile.fromPath(self._at(name), self._hadoop)
        with closing(parquet.ParquetFileReader.open(file)) as reader:
            return int(reader.getRecordCount())

    def _orc_rows(self, name: str) -> int:
        orc = self._jvm.org.apache.orc.OrcFile
        with closing(orc.createReader(self._at(name), orc.readerOptions(self._hadoop))) as reader:
            return int(reader.getNumberOfRows())

    def write(
        self,
        rows: DataFrame,
        partition_by: tuple[str, ...],
        columns: tuple[str, ...],
        *,
        target_file_size: int | None = None,
    ) -> None:
        """Write ``columns`` of ``rows`` into folders. Files of about ``target_file_size`` bytes require a shuffle."""
        from pyspark.sql import functions as spark_sql

        folders = {FOLDERS[name][0]: spark_sql.expr(_EXPRESSIONS[name]) for name in partition_by}
        plain = [spark_sql.col(name).alias(name) for name in columns]
        if self._format == "csv":  # CSV has neither bytes nor lists
            plain = [_as_text(rows, name) for name in columns]
        shaped = rows.select(*plain, *(made.alias(name) for name, made in folders.items()))
        with writing(self.shown):
            if target_file_size is None:
                self._save(shaped, tuple(folders))
                return
            with self._rebalancing(int(target_file_size * SHUFFLED)):
                by = [spark_sql.col(name) for name in folders]
                self._save(shaped.hint("rebalance", *by), tuple(folders))

    @contextmanager
    def _rebalancing(self, size: int) -> Iterator[None]:
        """In the block, Spark groups the rows by folder, in tasks that read about ``size`` bytes of a shuffle."""
        settings = {
            "spark.sql.adaptive.enabled": "true",
            "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(size),
        }
        before = {name: str(self._spark.conf.get(name)) for name in settings}
        try:
            for name, value in settings.items():
                self._spark.conf.set(name, value)
            yield
        finally:
            for name, kept in before.items():
                try_to(partial(self._spark.conf.set, name, kept))

    def will_hold(self, offsets: dict[str, tuple[int, int]]) -> None:
        """Receive the first and last offset to write of each partition. Only the commit of a table holds them."""

    def write_damaged(self, rows: DataFrame | None) -> None:
        """Write the damaged ranges as Parquet, which can store their bytes; for None a file without rows."""
        with writing(self.shown):
            if rows is not None:
                writer = rows.write.format("parquet").options(**_WRITE["parquet"]).mode("error")
                self._write_rows(writer, f"{self.path}/{DAMAGED}")
                return
            empty = io.BytesIO()
            ParquetFile(arrow(DAMAGED_FIELDS), empty).close()
            self.write_bytes(f"{DAMAGED}/part-{uuid.uuid4()}.zstd.parquet", empty.getvalue())

    def _save(self, rows: DataFrame, folders: tuple[str, ...]) -> None:
        writer = rows.write.format(self._format).options(**_WRITE[self._format]).mode("error")
        self._write_rows(writer, self.path, folders)

    def _write_rows(self, writer: DataFrameWriter, path: str, folders: tuple[str, ...] = ()) -> None:
        writer = writer.partitionBy(*folders) if folders else writer
        session.awaited(self._spark, lambda: writer.save(path))

    def check(self, mode: str, *, skip_unreadable: bool = False) -> list[Any]:
        """Return the manifest entries of earlier runs into this output.

        Raises UsageError if ``mode`` (``error``, ``append`` or ``overwrite``) does not permit a write to this output.
        Mode ``append`` is not permitted after a run that left out unreadable bytes (:func:`account.refuse_unread`).
        Raises KdumpError if kdump did not write the manifest.
        """
        if not self.exists() or (self.is_empty() and mode != "append"):
            return []
        if mode == "error":
            raise exists(self.path)
        if self.exists(CHECKPOINT):
            raise UsageError(f"{self.path} was written by --incremental or --follow: use one of these options again")
        runs = self.runs()
        if runs is None:
            raise UsageError(f"{self.path} has no {MANIFEST}: --mode {mode} changes only outputs of kdump")
        if mode == "append":
            hint = "--mode overwrite writes the whole output again"
            account.refuse_unread(runs, self.path, skip_unreadable=skip_unreadable, hint=hint)
        if mode == "overwrite" and not all("output" in run for run in runs):
            raise UsageError(
                f"{self.path}/{MANIFEST} does not list the files that kdump wrote, so they cannot be replaced: "
                "choose another --out"
            )
        return runs

    def runs(self) -> list[Any] | None:
        """Return the manifest entries of the runs that wrote here, or None if there is no manifest."""
        manifest = self._manifest()
        return None if manifest is None else list(manifest["runs"])

    def steps(self) -> int:
        """Return the number of the last step of --incremental or --follow in the manifest, or 0."""
        return int((self._manifest() or {}).get("steps", 0))

    def _manifest(self) -> dict[str, Any] | None:
        if not self.settle(MANIFEST):
            return None
        manifest = self.read_json(MANIFEST, ["runs"])
        if not isinstance(manifest["runs"], list):
            raise KdumpError(f"{self.path}/{MANIFEST} was not written by kdump: the runs in it are not a list")
        return manifest

    def write_runs(self, runs: list[Any], steps: int | None = None) -> int:
        """Write the manifest of runs, with totals and the number of the last step. Return its length in characters."""
        totals = account.totals(run["totals"] for run in runs)
        counted = {} if steps is None else {"steps": steps}
        text = json.dumps(
            {"version": account.VERSION, **counted, "totals": totals, "runs": runs}, indent=1, ensure_ascii=False
        )
        self.write_text(MANIFEST, text)
        return len(text)


_FOOTERS: Final[dict[str, Callable[[Output, str], int]]] = {"parquet": Output._parquet_rows, "orc": Output._orc_rows}
_LENGTH: Final = 12
_OWN: Final = (f"{DAMAGED}/", MANIFEST)
"""Files of an output that do not contain records."""
_MADE: Final = re.compile(rf"[0-9a-f]{{{_LENGTH}}}(\.old)?")


def _as_text(rows: DataFrame, name: str) -> Any:
    from pyspark.sql import functions as spark_sql

    kind = dict(rows.dtypes)[name]
    if kind == "binary":
        return spark_sql.base64(name).alias(name)
    if kind.startswith(("array", "map", "struct")):
        return spark_sql.to_json(name).alias(name)
    return spark_sql.col(name)


def beside(table: str) -> str:
    """Return the folder next to a table that has the manifest of the exports to the table."""
    return f"{table.rstrip('/')}.kdump"


class Table(Output):
    """A table, written by Spark's writer ``form`` with a save ``mode``. The folder :func:`beside` has its manifest."""

    def __init__(self, spark: SparkSession, table: str, form: str, mode: str) -> None:
        super().__init__(spark, beside(table), "parquet")
        self._table, self._writer, self._mode = table, form, mode
        self._account: Output = self
        self._offsets: dict[str, tuple[int, int]] = {}

    @property
    def is_parquet(self) -> bool:
        return False

    def like(self, path: str, shown: str) -> Table:
        made = Table(self._spark, self._table, self._writer, self._mode)
        Output.__init__(made, self._spark, path, "parquet", shown)
        made._account = self
        return made

    def check(self, mode: str, *, skip_unreadable: bool = False) -> list[Any]:
        """Return the manifest entries of earlier runs.

        Raises the errors of :meth:`Output.check`, and UsageError in mode ``overwrite`` without an earlier manifest.
        Raises KdumpError if a run was killed while it wrote the table, and the table may have that run's rows: its
        history has the commit of the run, or cannot be read.
        """
        if self.exists(WRITING):
            killed = self.read_json(WRITING, ["began"])
            commit = self._commit_of(killed.get("run"))
            if commit is None or commit:
                done = "did not complete. Check in the table's history if the table has its rows"
                if commit:
                    done = f"was killed after the table's commit. {commit} has its rows and says their offsets"
                raise KdumpError(
                    f"{self._table}: the export that began at {killed['began']} {done}. Then delete "
                    f"{self.path}/{WRITING}. The next export writes all records of its paths, unless "
                    "--starting-offset leaves some out"
                )
            self.delete(WRITING)
        if self.exists() and not self.is_empty():
            return super().check(mode, skip_unreadable=skip_unreadable)
        if mode == "overwrite":
            raise UsageError(f"{self.path} does not exist: --mode overwrite changes only outputs of kdump")
        return []

    def rows(self) -> dict[str, int | None]:
        """Return the table's name with None as its number of rows, because kdump cannot count them."""
        return {self._table: None}

    def will_hold(self, offsets: dict[str, tuple[int, int]]) -> None:
        self._offsets = offsets

    def _commit_of(self, run: str | None) -> str | None:
        """Return the version or snapshot of the table with the rows of a run, "" if none has. None: unknown."""
        from pyspark.errors import AnalysisException

        if run is None or self._writer not in COMMIT_FACTS:
            return None
        find = self._version_of if self._writer == "delta" else self._snapshot_of
        try:
            with session.interruptible(self._spark):
                return session.awaited(self._spark, partial(find, run))
        except AnalysisException:  # no table yet, or no history: DESCRIBE HISTORY needs the extension of Delta
            return None

    def _version_of(self, run: str) -> str:
        history = self._spark.sql(f"DESCRIBE HISTORY delta.`{self._table}`")
        found = history.where(history.userMetadata.contains(run)).select("version").head(1)
        return f"Version {found[0][0]}" if found else ""

    def _snapshot_of(self, run: str) -> str:
        snapshots = f"{self._table}{'#' if '/' in self._table else '.'}snapshots"
        held = self._spark.read.format(self._writer).load(snapshots)
        found = held.where(held["summary"]["kdump"].contains(run)).select("snapshot_id").head(1)
        return f"Snapshot {found[0][0]}" if found else ""

    def _save(self, rows: DataFrame, folders: tuple[str, ...]) -> None:
        account = self._account
        facts = {"run": uuid.uuid4().hex, "began": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}
        account.write_text(WRITING, json.dumps(facts))
        writer = rows.write.format(self._writer).mode(self._mode)
        if self._writer in COMMIT_FACTS:
            text = json.dumps({"kdump": __version__, **facts, "offsets": self._offsets})
            writer = writer.option(COMMIT_FACTS[self._writer], text)
        try:
            self._write_rows(writer, self._table, folders)
        except Exception:  # nothing is committed, except perhaps after an interrupt
            try_to(lambda: account.delete(WRITING))
            try_to(lambda: account.delete_empty() if account.is_empty() else None)
            raise
