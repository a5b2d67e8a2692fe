"""A table that a writer of Spark's own makes, with its own commit: what ``--format`` names beside kdump's formats.

The account of it (damaged stretches, manifest) is prepared, committed and held as every output is, in the folder
``OUT.kdump`` beside it. While the writer is at work :data:`WRITING` lies there: nobody but the table itself knows
whether the rows of a run that was killed then are in it.
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
    """The account of the table ``table``, which the writer ``form`` makes in a ``mode`` of Spark's."""

    def __init__(self, spark: SparkSession, table: str, form: str, mode: str) -> None:
        super().__init__(spark, beside(table), "parquet")
        self._table, self._writer, self._mode = table, form, mode
        self._account: Output = self

    @property
    def is_written_by_workers(self) -> bool:
        return False

    def like(self, path: str, shown: str) -> Table:
        """Return one of the same table, whose account is prepared in ``path``."""
        made = Table(self._spark, self._table, self._writer, self._mode)
        Output.__init__(made, self._spark, path, "parquet", shown)
        made._account = self
        return made

    def check(self, mode: str, *, skip_unreadable: bool = False) -> list[Any]:
        """Return the accounts of the runs that wrote here. Raises as :meth:`Output.check`, and for a run in doubt."""
        if self.exists(WRITING):
            began = json.loads(self.read_text(WRITING))["began"]
            raise KdumpError(
                f"{self._table}: an export that began to write it at {began} did not end well; the table's history "
                f"tells whether its rows are there: see there, then delete {self.path}/{WRITING}"
            )
        if self.exists() and not self.is_empty():
            return super().check(mode, skip_unreadable=skip_unreadable)
        if mode == "overwrite":
            raise UsageError(f"{self.path} is not there: --mode overwrite is for what kdump itself has written")
        return []

    def rows(self) -> dict[str, int | None]:
        """Return that nothing here tells how many rows the table holds."""
        return {self._table: None}

    def _save(self, rows: DataFrame, folders: tuple[str, ...]) -> None:
        account = self._account
        account.write_text(WRITING, json.dumps({"began": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}))
        writer = rows.write.format(self._writer).mode(self._mode)
        try:
            (writer.partitionBy(*folders) if folders else writer).save(self._table)
        except Exception:  # the writer has not committed; whether it had when it was interrupted, nobody knows
            try_to(lambda: account.delete(WRITING))
            try_to(lambda: account.delete_empty() if account.is_empty() else None)
            raise
