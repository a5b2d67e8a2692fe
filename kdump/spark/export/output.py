"""The folder that an export writes: through Spark's own file systems, so that it can be anywhere Spark can write."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from kdump.errors import KdumpError, UsageError
from kdump.spark.export import account
from kdump.spark.export.failures import try_to, writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

MANIFEST: Final = "_manifest.json"
NEW: Final = ".new"
"""Behind the name of a file that is being written."""
DAMAGED: Final = "_damaged"
CHECKPOINT: Final = "_checkpoint"
FORMATS: Final = ("parquet", "orc", "json", "csv")
_WRITE: Final = {
    "parquet": {"compression": "zstd"},
    "orc": {"compression": "zstd"},
    "json": {"compression": "gzip", "ignoreNullFields": "false"},
    "csv": {"compression": "gzip", "header": "true"},
}
FOLDERS: Final = {
    "topic": ("topic_name", ("topic",)),
    "partition": ("partition_number", ("partition",)),
    "date": ("date", ("timestampMs", "timestamp")),
    "hour": ("hour", ("timestampMs", "timestamp")),
}
"""What ``--partition-by`` can name: the folder's name, and the columns it is made of.

A topic's folder has another name than the column, which stays in the files: Spark reads ``topic=001`` as a number.
"""
_MS_OF_DAY: Final = 86_400_000
_EXPRESSIONS: Final = {
    "topic": "topic",
    "partition": "partition",
    # From the stored number: the session's time zone must not decide the UTC date.
    "date": f"if(timestamp is null, null, date_from_unix_date(int(floor(timestampMs / {_MS_OF_DAY}D))))",
    "hour": f"if(timestamp is null, null, int(pmod(timestampMs, {_MS_OF_DAY}) div 3600000))",
}


class Output:
    """The folder ``path``, in the terms of one session."""

    def __init__(self, spark: SparkSession, path: str, form: str, mode: str) -> None:
        self._spark, self.path, self._format, self._mode = spark, path.rstrip("/") or "/", form, mode
        hadoop = spark.sparkContext._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]  # a classic session has a JVM
        self._path = hadoop.Path
        self._files = hadoop.Path(self.path).getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        self._is_empty = False
        """Whether there was a folder without anything in it: what is left of an export that could write nothing."""
        self._has_begun = False
        """Whether Spark was told to write here."""

    def check(self) -> None:
        """Raise UsageError when there is something that must not be touched."""
        there = self.exists("")
        self._is_empty = there and not self._files.listStatusIterator(self._at("")).hasNext()
        if self._mode == "error" and there and not self._is_empty:
            raise UsageError(f"{self.path} is there already; --mode overwrite or --mode append, or another --out")
        if self._mode == "append" and there and self.runs() is None:
            raise UsageError(f"{self.path} holds no {MANIFEST}: kdump appends only to what it has written itself")
        if self._mode == "append" and self.exists(CHECKPOINT):
            raise UsageError(
                f"{self.path} was written by --incremental or --follow, which know what it holds: use them"
            )

    def count(self) -> int:
        """Return the number of rows in the folder."""
        if not self._files.exists(self._path(self.path)):
            return 0
        reader = self._spark.read.options(header="true") if self._format == "csv" else self._spark.read
        if self._format == "json":
            return reader.text(self.path).count()
        if self._format in ("parquet", "orc"):  # with a schema at hand Spark need not look for one
            reader = reader.schema("offset bigint")
        return reader.format(self._format).load(self.path).count()

    def write(self, rows: DataFrame, partition_by: tuple[str, ...], columns: tuple[str, ...]) -> None:
        """Write ``columns`` of ``rows``, in folders."""
        from pyspark.sql import functions as spark_sql

        folders = {FOLDERS[name][0]: spark_sql.expr(_EXPRESSIONS[name]) for name in partition_by}
        plain = [spark_sql.col(name).alias(name) for name in columns]
        if self._format == "csv":  # it has no bytes and no lists
            plain = [_as_text(rows, name) for name in columns]
        shaped = rows.select(*plain, *(made.alias(name) for name, made in folders.items()))
        self._save(shaped, self.path, self._format, tuple(folders))

    def write_damaged(self, rows: DataFrame) -> None:
        """Write the damaged stretches, always as Parquet, which holds their bytes."""
        self._save(rows, f"{self.path}/{DAMAGED}", "parquet", ())

    def _save(self, rows: DataFrame, path: str, form: str, folders: tuple[str, ...]) -> None:
        writer = rows.write.format(form).options(**_WRITE[form])
        if folders:
            writer = writer.partitionBy(*folders)
        into_empty = self._mode == "error" and self._is_empty and path == self.path
        self._has_begun = True
        with writing(self.path), self._not_there(path):
            writer.mode("append" if into_empty else self._mode).save(path)

    @contextmanager
    def _not_there(self, path: str) -> Iterator[None]:
        """Raise UsageError where Spark finds what :meth:`check` did not: another export has begun since."""
        from pyspark.errors import PySparkException

        try:
            yield
        except PySparkException as error:
            if "[PATH_ALREADY_EXISTS]" in str(error):
                raise UsageError(f"{path} is there now, and was not before: another export writes to it") from error
            raise

    @contextmanager
    def whole(self, note: Callable[[str], None]) -> Iterator[None]:
        """Take back what the block wrote where it fails. ``note`` is told when that fails too.

        Nothing is deleted where another export has made the folder, or finished in it, meanwhile.
        """
        before = set(self.files("")) if self.exists("") else None
        written = self._written()
        try:
            yield
        except UsageError:  # it is another's
            raise
        except BaseException:
            if self._has_begun and not try_to(lambda: self._take_back(before, written, note)):
                note(f"{self.path}: what has been written cannot be deleted: do not use it")
            raise

    def _take_back(
        self, before: set[str] | None, written: tuple[str, int, int] | None, note: Callable[[str], None]
    ) -> None:
        """Delete the files that were not there ``before``; with None, when there was no folder, all of it.

        ``written`` is the manifest that was there. Where there is another one now, it tells of the files.
        """
        if self._written() not in (written, None):  # None: Spark has deleted what it was to overwrite
            note(f"{self.path}/{MANIFEST} has been written meanwhile: nothing is deleted")
            return
        if before is None:
            self.delete("")
            return
        for name in set(self.files("")) - before:
            self.delete(name)
        if not before:  # folders, and Spark's mark of success
            for status in self._files.listStatus(self._at("")):
                self._files.delete(status.getPath(), True)

    def below(self, name: str) -> Output:
        """Return a folder in this one, which is written anew."""
        return Output(self._spark, f"{self.path}/{name}", self._format, "overwrite")

    def exists(self, name: str) -> bool:
        """Tell whether a file or folder is there; the empty name is the output's own."""
        return bool(self._files.exists(self._at(name)))

    def files(self, folder: str, *, deep: bool = True) -> list[str]:
        """Return the files in a folder, below too where ``deep``, by their paths in it. Empty where there is none."""
        if not self.exists(folder):
            return []
        root = self._files.getFileStatus(self._at(folder)).getPath().toString().rstrip("/") + "/"
        inside = self._files.listFiles(self._at(folder), deep)
        found = []
        while inside.hasNext():
            found.append(inside.next().getPath().toString().removeprefix(root))
        return sorted(name for name in found if name.rpartition("/")[2] != "_SUCCESS")

    def move(self, name: str, target: str) -> None:
        """Move a file into its place, if it was not moved before. Raises KdumpError when it cannot be."""
        if self.exists(name):
            with writing(f"{self.path}/{target}"):
                self._files.mkdirs(self._at(target).getParent())
                moved = self._files.rename(self._at(name), self._at(target))
            if not moved:
                raise KdumpError(f"{self.path}: {name} cannot be moved to {target}")
        elif not self.exists(target):
            raise KdumpError(f"{self.path}/{target} is missing, and so is {name}: the output is not whole")

    def delete(self, name: str) -> None:
        """Delete a file, or a folder with all that is in it."""
        self._files.delete(self._at(name), True)

    def read_text(self, name: str) -> str:
        """Return the content of a file."""
        stream = self._files.open(self._at(name))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write_text(self, name: str, text: str) -> None:
        """Write a file, or write it anew: whole or not at all. Where a run is killed, :data:`NEW` holds it."""
        with writing(f"{self.path}/{name}"):
            self._create(name + NEW, text)
            self._files.delete(self._at(name), False)
        if not self._files.rename(self._at(name + NEW), self._at(name)):
            raise KdumpError(f"{self.path}: {name}{NEW} cannot be renamed to {name}")

    def _create(self, name: str, text: str) -> None:
        """Write a file; where it cannot be, none is left."""
        try:
            stream = self._files.create(self._at(name), True)
            try:
                stream.write(text.encode())
            finally:
                stream.close()
        except BaseException:
            try_to(lambda: self.delete(name))
            raise

    def _at(self, name: str) -> Any:
        return self._path(f"{self.path}/{name}" if name else self.path)

    def runs(self) -> list[Any] | None:
        """Return the accounts of the runs that wrote here, None when there is no manifest."""
        told = self._manifest()
        return None if told is None else list(told["runs"])

    def steps(self) -> int:
        """Return the number of the last step of --incremental or --follow that the manifest tells of, 0 for none."""
        return int((self._manifest() or {}).get("steps", 0))

    def _written(self) -> tuple[str, int, int] | None:
        """Return name, time and size of the manifest, None when there is none."""
        name = self._manifest_name()
        if name is None:
            return None
        status = self._files.getFileStatus(self._at(name))
        return name, int(status.getModificationTime()), int(status.getLen())

    def _manifest_name(self) -> str | None:
        return next((name for name in (MANIFEST, MANIFEST + NEW) if self.exists(name)), None)

    def _manifest(self) -> dict[str, Any] | None:
        name = self._manifest_name()
        if name is None:
            return None
        try:
            told: dict[str, Any] = json.loads(self.read_text(name))
            if not isinstance(told["runs"], list):
                raise TypeError("its runs are no list")
        except (ValueError, KeyError, TypeError) as reason:
            raise KdumpError(f"{self.path}/{name} is not one of kdump's: {reason}") from reason
        return told

    def write_manifest(self, run: dict[str, Any]) -> None:
        """Add the account of a run: whole or not at all."""
        self.write_runs([*((self.runs() or []) if self._mode == "append" else []), run])

    def write_runs(self, runs: list[Any], steps: int | None = None) -> int:
        """Write the manifest of these runs, with what they are together; return its length.

        ``steps`` is the number of the last step that it tells of, None where there are no steps.
        """
        totals = account.totals(run["totals"] for run in runs)
        counted = {} if steps is None else {"steps": steps}
        text = json.dumps(
            {"version": account.VERSION, **counted, "totals": totals, "runs": runs}, indent=1, ensure_ascii=False
        )
        self.write_text(MANIFEST, text)
        return len(text)


def _as_text(rows: DataFrame, name: str) -> Any:
    from pyspark.sql import functions as spark_sql

    kind = dict(rows.dtypes)[name]
    if kind == "binary":
        return spark_sql.base64(name).alias(name)
    if kind.startswith("array"):
        return spark_sql.to_json(name).alias(name)
    return spark_sql.col(name)
