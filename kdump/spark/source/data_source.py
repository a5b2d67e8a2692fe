"""The classes that Spark calls: the source, and its readers for batch queries and streams."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from kdump.arrow import answer_lines, header_rows
from kdump.arrow import schema as arrow_schema
from kdump.errors import KdumpError, UnreadableError, UsageError
from kdump.primitives.terminal import harmless_line, print_line
from kdump.spark.failures import Carried
from kdump.spark.source import answers, planning, reading, streaming
from kdump.spark.source import options as words
from kdump.spark.source import schema as columns
from kdump.spark.source.listings import Listings
from kdump.spark.source.marks import DataLossError, lose

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kdump.spark.source.options import SourceOptions
    from kdump.spark.source.planning import Split


class KdumpDataSource(Carried, DataSource):
    """Kafka's segments as a DataFrame: ``spark.read.format("kdump").load("/var/lib/kafka/data")``.

    Schema: the option ``columns``; by default :data:`kdump.arrow.schema.RECORDS`, with ``decode``
    :data:`~kdump.arrow.schema.DECODED`, and with ``schema`` typed columns. For the output ``batches``:
    :data:`~kdump.arrow.header_rows.HEADER_FIELDS`. For ``damaged``, ``account`` and ``findings``: DAMAGED, ACCOUNT and
    FINDINGS of :mod:`kdump.spark.source.schema`. For :data:`~kdump.spark.source.options.ANSWERS`: the fields of a line.

    Options: OPTIONS of :mod:`~kdump.spark.source.options` and :mod:`~kdump.spark.source.kafka_options`. The path is a
    segment, a partition folder, a log dir, a glob, or a URI of any of these.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = words.parse(options)

    @classmethod
    def name(cls) -> str:
        return "kdump"

    def schema(self) -> str | StructType:
        if self._options.output == words.RECORDS and self._options.schema is not None:
            with _harmless():
                self._options = columns.with_schemas(self._options)
                return columns.spark_schema(self._options)
        if self._options.output in words.ANSWERS:
            return answer_lines.ddl(answers.columns_of(self._options.output).schema)
        return columns.ddl(_FIELDS.get(self._options.output) or arrow_schema.chosen(self._options.names))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802  Spark's name
        """Return a reader for ``records`` or ``damaged``. Raises UsageError for others, and for batch-only options."""
        if self._options.dedupe or self._options.output not in (words.RECORDS, words.DAMAGED):
            raise UsageError("a stream supports only output=records and output=damaged, and not the option dedupe")
        if self._options.remote:
            raise UsageError("a stream does not support the option remote")
        options = columns.with_schemas(self._options)
        if options.kafka is not None:
            options = replace(options, kafka=options.kafka.for_stream())
        reader: DataSourceStreamReader = KdumpStreamReader(options)
        return reader

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  it is the source's own schema
        options = self._options
        if options.pushdown and not hasattr(DataSourceReader, "pushFilters"):
            print_line("this release of Spark passes no filters, so all records are read: pushdown needs 4.1 or later")
        if options.output in words.OF_WHOLE:
            return WholeReader(options)
        if options.output == words.RECORDS:
            options = columns.with_schemas(options)
        if options.kafka is not None:
            options = replace(options, kafka=options.kafka.for_batch())
        return (FilteredReader if options.pushdown else KdumpReader)(options)


_FIELDS: Final = {
    words.DAMAGED: columns.DAMAGED,
    words.ACCOUNT: columns.ACCOUNT,
    words.BATCHES: header_rows.HEADER_FIELDS,
    words.FINDINGS: columns.FINDINGS,
}


@contextmanager
def _harmless() -> Iterator[None]:
    """Escape control characters of file names in errors, because Spark prints errors unchanged."""
    try:
        yield
    except UnreadableError as error:
        shown = [harmless_line(str(part)) for part in (error.path, error.reason, error.hint)]
        raise type(error)(*shown) from None
    except (UsageError, DataLossError) as error:
        raise type(error)(harmless_line(str(error))) from None


_OF_TASKS: Final = (
    "mode {mode} leaves out damaged ranges. The log of each executor has the ranges that its tasks found, and "
    '.option("output", "damaged") with mode PERMISSIVE lists all of them'
)
"""The note on damage. It is printed before the tasks, because tasks of a Python source cannot report to the driver."""


def _say_unused(options: SourceOptions) -> None:
    """Print the names of unused options. Their values may be secret, and are not printed."""
    if options.ignored:
        print_line(f"no broker is contacted, so these options are ignored: {', '.join(options.ignored)}")
    for text in options.kafka.unused if options.kafka is not None else ():
        print_line(text)


def _say_damage(options: SourceOptions) -> None:
    if options.output == words.RECORDS and options.mode != words.FAILFAST:
        print_line(_OF_TASKS.format(mode=options.mode))


class KdumpReader(Carried, DataSourceReader):
    """Plans splits on the driver. Tasks read records, batches, damage or accounts."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    @_harmless()
    def partitions(self) -> list[InputPartition]:
        _say_unused(self._options)
        if self._options.max_records_per_trigger is not None:
            print_line("maxRecordsPerTrigger is not used: only a stream has triggers")
        _say_damage(self._options)
        splits = [split for planned in planning.plan(self._options, print_line) for split in planned.splits]
        return [InputPartition(group) for group in planning.group(splits, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with _harmless():
            # the value is None if there is nothing to read
            yield from reading.read_all(partition.value or (), self._options)


class WholeReader(KdumpReader):
    """Finds partitions on the driver; tasks check them, or answer a question about them."""

    @_harmless()
    def partitions(self) -> list[InputPartition]:
        _say_unused(self._options)
        plan = answers.plan_checks if self._options.output == words.FINDINGS else answers.plan
        return [InputPartition(task) for task in plan(self._options, print_line)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with _harmless():
            read = answers.read_checks if self._options.output == words.FINDINGS else answers.read
            yield from read(partition.value, self._options)


class FilteredReader(KdumpReader):
    """A reader that receives Spark's filters before it plans (option ``pushdown``; Spark 4.1, if enabled)."""

    def pushFilters(self, filters: list[Any]) -> list[Any]:  # noqa: N802  Spark's name
        """Use filters to read less. Return all of them, so that Spark applies them to the rows too."""
        self._options = self._options.narrowed(filters)
        return filters


try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

    _STREAMS: tuple[type, ...] = (DataSourceStreamReader, SupportsTriggerAvailableNow)
    _HAS_LIMITS = True
except ImportError:  # Spark before 4.2 passes neither limits nor the position
    _STREAMS, _HAS_LIMITS = (DataSourceStreamReader,), False


class _StreamReader(Carried):
    """The part of a stream reader that is the same for all releases of Spark."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._is_bounded = False
        self._is_reported = False
        self._initial: streaming.Offsets | None = None
        self._target: streaming.Ends | None = None
        self._at: streaming.Offsets | None = None
        self._looked_from: streaming.Offsets | None = None
        self._planned: list[Split] = []
        self._listings = Listings()
        self._limits = streaming.TriggerLimits(
            options.max_files_per_trigger, options.max_bytes_per_trigger, options.max_records_per_trigger
        )

    @_harmless()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Return the start of the stream. Every call returns the offset that the first call found."""
        if self._initial is None:
            self._initial = streaming.initial(self._options, print_line, self._listings)
        return self._initial

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        self._is_bounded = True

    @_harmless()
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802  Spark's
        """Return the end of a trigger. The options limit it, unless Spark passes no limit or ReadAllAvailable.

        Releases before 4.2 pass neither start nor limit. The start is then the end of the last planned range, or the
        initial offset. A stream that continues at ``x`` first gets a plan of the empty range from ``x`` to ``x``.
        """
        if not self._is_reported:
            self._is_reported = True
            _say_unused(self._options)
            _say_damage(self._options)
            if not _HAS_LIMITS and self._limits != streaming.TriggerLimits():
                print_line(
                    "this release of Spark reads all available data in a trigger: max...PerTrigger needs 4.2 or later"
                )
        if start is None:
            start = self._looked_from = self.initialOffset() if self._at is None else self._at
        if self._is_bounded and self._target is None:  # later triggers stop at the current ends
            self._target = streaming.ends(self._options, start, self._listings)
        everything = limit is None or type(limit).__name__ == "ReadAllAvailable"
        limits = streaming.TriggerLimits() if everything else self._limits
        return streaming.advance(self._options, start, limits, self._target, listings=self._listings).offsets

    @_harmless()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        if self._looked_from not in (None, start):
            raise KdumpError(
                "Spark asked for new data before it gave the position of the stream, so nothing was read. Unset "
                "spark.sql.streaming.triggerAvailableNowWrapper.enabled, or use Spark 4.2 or later"
            )
        self._at, self._looked_from = end, None
        options = self._options
        splits = self._planned = streaming.between(
            options, start, end, lambda text: lose(text, options, print_line), print_line, self._listings
        )
        return [InputPartition(group) for group in planning.group(splits, self._options)]

    def commit(self, end: dict[str, Any]) -> None:  # noqa: ARG002  the end of the last planned range
        """Without failOnDataLoss, report files that were deleted since the plan: tasks cannot report this."""
        self._report_vanished()

    def stop(self) -> None:
        self._report_vanished()

    def _report_vanished(self) -> None:
        splits, self._planned = self._planned, []
        if not self._options.fail_on_data_loss:
            for text in reading.vanished(splits):
                print_line(text)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with _harmless():
            for split in partition.value or ():
                yield from reading.read(split, self._options)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802  Spark's name
        """Return the limit that Spark displays. The options have the limits that apply."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

        is_unlimited = self._limits == streaming.TriggerLimits()
        return ReadAllAvailable() if is_unlimited else ReadMaxRows(self._limits.records or 1 << 62)


KdumpStreamReader = type("KdumpStreamReader", (_StreamReader, *_STREAMS), {"__module__": __name__})
