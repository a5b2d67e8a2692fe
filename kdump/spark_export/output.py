"""The folder that an export writes: through Spark's own file systems, so that it can be anywhere Spark can write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from kdump.errors import KdumpError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MANIFEST: Final = "_manifest.json"
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

    def check(self) -> None:
        """Raise UsageError when there is something that must not be touched."""
        if self._mode == "error" and self._files.exists(self._path(self.path)):
            raise UsageError(f"{self.path} is there already; --mode overwrite or --mode append, or another --out")
        if self._mode == "append" and self._files.exists(self._path(self.path)) and self.runs() is None:
            raise UsageError(f"{self.path} holds no {MANIFEST}: kdump appends only to what it has written itself")

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
        self._save(*self._shaped(rows, partition_by, columns))

    def _shaped(
        self, rows: DataFrame, partition_by: tuple[str, ...], columns: tuple[str, ...]
    ) -> tuple[DataFrame, str, str, tuple[str, ...]]:
        """Return the rows as they are written, where, how, and the columns that folders are made of."""
        from pyspark.sql import functions as spark_sql

        folders = {FOLDERS[name][0]: spark_sql.expr(_EXPRESSIONS[name]) for name in partition_by}
        plain = [spark_sql.col(name).alias(name) for name in columns]
        if self._format == "csv":  # it has no bytes and no lists
            plain = [_as_text(rows, name) for name in columns]
        shaped = rows.select(*plain, *(made.alias(name) for name, made in folders.items()))
        return shaped, self.path, self._format, tuple(folders)

    def follow(
        self, rows: DataFrame, damaged: DataFrame, partition_by: tuple[str, ...], columns: tuple[str, ...], pause: str
    ) -> Iterator[StreamingQuery]:
        """Start to write two streams, as :meth:`write` and :meth:`write_damaged` do, one after the other.

        ``pause`` is the time between two triggers, as Spark writes it; empty to end with what is there now. What was
        written is remembered in the folder CHECKPOINT.
        """
        shapes = {
            "records": self._shaped(rows, partition_by, columns),
            "damaged": (damaged, f"{self.path}/{DAMAGED}", "parquet", ()),
        }
        for name, (frame, path, form, folders) in shapes.items():
            place = f"{self.path}/{CHECKPOINT}/{name}"
            writer = frame.writeStream.format(form).options(**_WRITE[form], checkpointLocation=place).queryName(name)
            writer = writer.partitionBy(*folders) if folders else writer
            writer = writer.trigger(processingTime=pause) if pause else writer.trigger(availableNow=True)
            yield writer.start(path)

    def check_followed(self) -> None:
        """Raise UsageError when the folder holds something that no stream of kdump wrote."""
        there = self._files.exists(self._path(self.path))
        if there and not self._files.exists(self._path(f"{self.path}/{CHECKPOINT}")):
            raise UsageError(f"{self.path} is there already and holds no {CHECKPOINT}: choose another --out")

    def write_damaged(self, rows: DataFrame) -> None:
        """Write the damaged stretches, always as Parquet, which holds their bytes."""
        self._save(rows, f"{self.path}/{DAMAGED}", "parquet", ())

    def _save(self, rows: DataFrame, path: str, form: str, folders: tuple[str, ...]) -> None:
        writer = rows.write.format(form).options(**_WRITE[form])
        if folders:
            writer = writer.partitionBy(*folders)
        writer.mode(self._mode if self._mode != "error" or path == self.path else "errorifexists").save(path)

    def runs(self) -> list[Any] | None:
        """Return the accounts of the runs that wrote here, None when there is no manifest."""
        path = self._path(f"{self.path}/{MANIFEST}")
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            text = bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()
        try:
            runs: list[Any] = json.loads(text)["runs"]
        except (ValueError, KeyError, TypeError) as reason:
            raise KdumpError(f"{self.path}/{MANIFEST} is not one of kdump's: {reason}") from reason
        return runs

    def write_manifest(self, run: dict[str, Any], version: int) -> None:
        """Add the account of a run: whole or not at all."""
        runs = [*((self.runs() or []) if self._mode == "append" else []), run]
        text = json.dumps({"version": version, "runs": runs}, indent=1, ensure_ascii=False)
        final, new = (self._path(f"{self.path}/{name}") for name in (MANIFEST, f"{MANIFEST}.new"))
        stream = self._files.create(new, True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()
        self._files.delete(final, False)
        if not self._files.rename(new, final):
            raise KdumpError(f"{self.path}: {MANIFEST}.new cannot be renamed to {MANIFEST}")


def _as_text(rows: DataFrame, name: str) -> Any:
    from pyspark.sql import functions as spark_sql

    kind = dict(rows.dtypes)[name]
    if kind == "binary":
        return spark_sql.base64(name).alias(name)
    if kind.startswith("array"):
        return spark_sql.to_json(name).alias(name)
    return spark_sql.col(name)
