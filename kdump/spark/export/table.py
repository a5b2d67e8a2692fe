"""A table that a Spark writer writes and commits itself: ``--format`` with another name than kdump's formats.

Its account (damaged ranges and manifest) is prepared, committed and locked like every output, in the folder
``OUT.kdump`` beside it. That folder holds :data:`WRITING` while the writer works: only the table itself records whether
it has the rows of a run that was killed then.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kdump.errors import KdumpError, UsageError
from kdump.spark.export.output import WRITING, Output
from kdump.spark.failures import try_to

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def beside(table: str) -> str:
    """Return the folder of a table's account."""
    return f"{table.rstrip('/')}.kdump"


class Table(Output):
    """The account of the table ``table``, which the Spark writer ``form`` writes in a save ``mode``."""

    def __init__(self, spark: SparkSession, table: str, form: str, mode: str) -> None:
        super().__init__(spark, beside(table), "parquet")
        self._table, self._writer, self._mode = table, form, mode
        self._account: Output = self

    @property
    def is_written_by_workers(self) -> bool:
        return False

    def like(self, path: str, shown: str) -> Table:
        """Return the same table with its account prepared in ``path``."""
        made = Table(self._spark, self._table, self._writer, self._mode)
        Output.__init__(made, self._spark, path, "parquet", shown)
        made._account = self
        return made

    def check(self, mode: str, *, skip_unreadable: bool = False) -> list[Any]:
        """Return the accounts of the runs that wrote here. Raises as :meth:`Output.check`, and if a run was killed."""
        if self.exists(WRITING):
            began = json.loads(self.read_text(WRITING))["began"]
            raise KdumpError(
                f"{self._table}: an export that began to write it at {began} did not end well; the table's history "
                f"shows whether its rows are there: check it, then delete {self.path}/{WRITING}"
            )
        if self.exists() and not self.is_empty():
            return super().check(mode, skip_unreadable=skip_unreadable)
        if mode == "overwrite":
            raise UsageError(f"{self.path} is not there: --mode overwrite is for what kdump itself has written")
        return []

    def rows(self) -> dict[str, int | None]:
        """Return None for the table: only its own format counts its rows."""
        return {self._table: None}

    def _save(self, rows: DataFrame, folders: tuple[str, ...]) -> None:
        account = self._account
        account.write_text(WRITING, json.dumps({"began": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}))
        writer = rows.write.format(self._writer).mode(self._mode)
        try:
            (writer.partitionBy(*folders) if folders else writer).save(self._table)
        except Exception:  # it has not committed; after an interrupt that is unknown, and WRITING stays
            try_to(lambda: account.delete(WRITING))
            try_to(lambda: account.delete_empty() if account.is_empty() else None)
            raise
