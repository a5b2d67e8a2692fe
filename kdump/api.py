"""Functions of the Python API for logs: :func:`open`, :func:`check`, :func:`verify_index` and :func:`salvage`."""

from __future__ import annotations

import copy
import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import chain
from operator import index
from os import PathLike, fsdecode
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, Self, SupportsIndex, TypeAlias, get_args

from kdump import kernel
from kdump.arrow import files
from kdump.arrow.files import TableResult
from kdump.errors import (
    LONGEST_VALUE,
    DamageError,
    DamageWarning,
    NoteWarning,
    Reporter,
    UnreadableError,
    UsageError,
    many,
    warn,
)
from kdump.findings import status as findings_status
from kdump.formats.record import RECORD_TYPES, RecordType
from kdump.formats.record_layout import TIMESTAMP_TYPES
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.remote import shown_paths
from kdump.log_reader import replicas
from kdump.log_reader.batch_selection import Take
from kdump.log_reader.filter import Filter
from kdump.log_reader.reader import PartitionReader
from kdump.primitives import timestamps
from kdump.primitives.compression import DEFAULT_LIMIT
from kdump.rows import columns as rows
from kdump.rows import values
from kdump.rows.selection import DamagedRange, SelectedBatch
from kdump.segments.lazy_records import BatchRecords
from kdump.segments.regions import OnError
from kdump.segments.walk import in_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from kdump.arrow.typed import Engine, TypedColumns
    from kdump.findings import Finding
    from kdump.formats.record import Header, Record
    from kdump.log_dirs.partition import Partition
    from kdump.log_dirs.tiered_storage import RemoteStorage
    from kdump.log_salvage.partitions import Salvaged
    from kdump.schemas.decoder import PayloadDecoder
    from kdump.segments.regions import Damage

Path: TypeAlias = str | PathLike[str]
Time: TypeAlias = int | str | datetime
Isolation: TypeAlias = Literal["read_uncommitted", "read_committed"]
Decode: TypeAlias = Literal["none", "auto", "avro", "protobuf", "json"]
DECODES: Final = get_args(Decode)
SHOWN: Final = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

if kernel.COMPILED and not TYPE_CHECKING:
    from kdump.kernel.records import RecordOfBatch
else:

    class RecordOfBatch:
        """A record, and the batch that holds it. The compiled class of this name parses the fields on first use."""

        __slots__ = ("batch", "record")

        def __init__(self, batch: LogBatch, record: Record) -> None:
            self.batch, self.record = batch, record

        @property
        def offset(self) -> int:
            return self.record.offset

        @property
        def timestamp(self) -> int:
            return self.record.timestamp

        @property
        def key(self) -> bytes | None:
            return self.record.key

        @property
        def value(self) -> bytes | None:
            return self.record.value

        @property
        def headers(self) -> Sequence[Header]:
            return self.record.headers


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class LogBatch:
    """A batch with its selected records. Batches are equal if file, position and bytes are equal."""

    found: SelectedBatch
    lost: Callable[[DamagedRange], None] | None = None
    """The function that receives damage found by ``records``. None means that ``found`` has the records already."""

    def __repr__(self) -> str:
        return f"<LogBatch {self.file} byte {self.position}: offsets {self.base_offset} to {self.last_offset}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LogBatch):
            return NotImplemented
        where, there = (self.file, self.position), (other.file, other.position)
        return self is other or (where == there and self.raw == other.raw)

    def __hash__(self) -> int:
        return hash((self.file, self.position))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the state to pickle. A copy does not report damage to the iteration, but as its own warning."""
        return LogBatch, (self.found, None if self.lost is None else partial(_add_damage, []))

    @property
    def count(self) -> int | None:
        """The number of records in the batch header; None below magic 2."""
        return self.found.batch.count

    @property
    def base_offset(self) -> int:
        return self.found.base_offset

    @property
    def last_offset(self) -> int:
        return self.found.batch.last_offset

    @property
    def file(self) -> str:
        """The path of the segment."""
        return self.found.file.name

    @property
    def position(self) -> int:
        """The position of the batch in the file, in bytes."""
        return self.found.batch.position

    @property
    def size(self) -> int:
        """The size of the batch in bytes."""
        return self.found.batch.size

    @property
    def raw(self) -> memoryview:
        return self.found.batch.raw

    @property
    def records(self) -> list[LogRecord]:
        """The selected records. If ``lost`` is set, each access parses the batch, and reports its damage."""
        if self.lost is None:
            return list(_records_of(self))
        records: list[LogRecord] = []
        try:
            records.extend(LogRecord(self, record) for record in self.found.batch.records())
        except DamageError as error:
            self.lost(DamagedRange(self.found.file, in_batch(error, self.found.batch)))
        return records

    def row(self) -> dict[str, object]:
        """Return the columns of ``kdump dump -o jsonl --batches`` by name. Codec and times are numbers as stored."""
        return {column.name: values.against_marks(column, self.found) for column in rows.BATCH}


class LogRecord(RecordOfBatch):
    """One record, and the batch that holds it.

    - ``timestamp`` is in ms since 1970, -1 if there is none.
    - ``key`` is None for Kafka's null, which differs from an empty key.
    - ``value`` is None for a tombstone.
    - ``headers`` has pairs of key and value, with duplicates: a tuple, or a lazy sequence for more than 256 headers.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LogRecord):
            return NotImplemented
        return (self.batch, self.record) == (other.batch, other.record)

    def __hash__(self) -> int:
        return hash((self.batch, self.offset))

    def __repr__(self) -> str:
        where = f"{self.topic}-{self.partition}@{self.offset}"
        return f"<LogRecord {where} key={_short(self.key)} value={_short(self.value)}>"

    @property
    def topic(self) -> str | None:
        return self.batch.found.file.topic

    @property
    def partition(self) -> int | None:
        return self.batch.found.file.partition

    @property
    def datetime(self) -> datetime | None:
        """The timestamp in UTC; None for -1 (no timestamp), and outside the years 1 to 9999."""
        if timestamps.iso(self.timestamp) is None:
            return None
        return _EPOCH + timedelta(milliseconds=self.timestamp)

    @property
    def timestamp_type(self) -> str:
        """CreateTime, LogAppendTime, or NoTimestampType in magic 0."""
        return TIMESTAMP_TYPES[self.batch.found.batch.timestamp_type]

    @property
    def decoded(self) -> dict[str, Any] | None:
        """Decoded key and value, as in JSON lines; None without ``decode``, or if neither has a schema or layout."""
        if self.batch.found.file.decoder is None:
            return None
        found: dict[str, Any] | None = values.decoded(self.batch.found, self.record)
        return found

    @property
    def is_control(self) -> bool:
        """Whether this is a control record, which consumers do not receive."""
        return self.batch.found.batch.is_control

    @property
    def transaction_state(self) -> str | None:
        """The state of the record's transaction: ``none``, ``committed``, ``aborted``, ``open``; None if unknown."""
        return self.batch.found.transaction

    def row(self) -> dict[str, object]:
        """Return the columns of ``kdump dump -o jsonl`` by name, without encodings. Values are as stored.

        As in JSON lines, ``decoded`` is missing if there is no decoded key or value.
        """
        columns = (column for column in rows.RECORD if column.source not in rows.PAYLOAD_OF)
        row = {column.name: values.against_marks(column, self.batch.found, self.record) for column in columns}
        decoded = self.decoded
        return row if decoded is None else {**row, rows.DECODED.name: decoded}


def _records_of(batch: LogBatch) -> Iterator[LogRecord]:
    """Return the selected records of a batch. Compiled code returns records that parse their fields on first use."""
    records = batch.found.records
    if isinstance(records, BatchRecords):
        return records.of_batch(LogRecord, batch)
    return map(partial(LogRecord, batch), records)


def _plain_fields(*names: str) -> dict[str, Any]:
    """Return dataclass fields for ``names``. They let :func:`dataclasses.asdict` read properties of these names."""
    made: dict[str, Any] = vars(make_dataclass("fields", names))["__dataclass_fields__"]
    return made


LogBatch.__dataclass_fields__ = _plain_fields("file", "position", "size", "base_offset", "last_offset", "count")
LogRecord.__dataclass_fields__ = _plain_fields(
    "topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"
)


def _short(data: bytes | None) -> str:
    if data is None or len(data) <= SHOWN:
        return repr(data)
    return f"{data[:SHOWN]!r}... ({len(data)} bytes)"


def _cells(record: LogRecord) -> Iterator[str]:
    """Yield the key and the value for a table: decoded data as JSON, other bytes as in a repr, both shortened."""
    decoded = record.decoded or {}
    for side, data in (("key", record.key), ("value", record.value)):
        part = decoded.get(side)
        if isinstance(part, dict) and "data" in part:
            text = json.dumps(part["data"], ensure_ascii=False)
            yield text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."
        else:
            yield _short(data)


class Decoding(NamedTuple):
    """The options for decoding payloads. The registry's ``topic`` is in ``schemas``, by default in the log's paths."""

    decode: str
    schemas: str | None
    topic: str
    subject: str | None = None
    """The subject whose fields become typed columns."""

    @classmethod
    def of(cls, decode: str, schemas: Path | None, topic: str, subject: str | None) -> Self | None:
        """Return the options, or None if nothing is decoded. With a subject ``none`` is ``auto``. Raises UsageError."""
        if decode not in DECODES:
            raise UsageError(f"decode={decode!r} is unknown: use none, auto, avro, protobuf or json")
        for name, value in (("schemas_topic", topic), ("schema", subject)):
            if value is not None and not isinstance(value, str):
                raise UsageError(f"{name}={value!r}: expected text")
        schemas = None if schemas is None else path_text(schemas)
        if subject is not None and decode == "none":
            decode = "auto"
        return None if decode == "none" else cls(decode, schemas, topic, subject)

    def decoder(self, paths: Sequence[str], wanted: Wanted) -> PayloadDecoder:
        """Return the decoder of payloads. Raises UnreadableError."""
        from kdump.log_reader.registry_topic import payload_decoder

        where = paths if self.schemas is None else [self.schemas]
        return payload_decoder(self.decode, where, wanted, topic=self.topic)

    def typed(self, decoder: PayloadDecoder, engine: Engine = "arrow") -> TypedColumns | None:
        """Return the typed columns of the subject, or None if no subject is given. Raises UsageError."""
        if self.subject is None:
            return None
        from kdump.arrow.typed import TypedColumns

        return TypedColumns.of_subject(decoder, self.subject, engine)


class Log:
    """The result of :func:`open`: iterate it, or call :meth:`batches` or :meth:`to_arrow`, as often as you like.

    ``damage`` and ``notes`` have the damaged ranges and notes of the iteration that began last. An earlier one that
    still runs adds nothing to them. A ``with`` statement is not needed: files are open only while they are read.

    >>> import kdump
    >>> with kdump.open("golden/brokers/4.2.2", topic="one") as log:
    ...     [(record.offset, record.value) for record in log]
    [(0, b'one')]
    """

    def __init__(
        self,
        paths: tuple[str, ...],
        wanted: Wanted,
        taken: Filter,
        on_error: OnError,
        *,
        every_replica: bool = False,
        limit: int | None = None,
        decoding: Decoding | None = None,
    ) -> None:
        self._paths, self._wanted, self._filter, self._on_error = paths, wanted, taken, on_error
        self._every_replica, self._limit, self._decoding = every_replica, limit, decoding
        self.damage: list[tuple[str, Damage]] = []
        self.notes: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: no file stays open."""

    def __repr__(self) -> str:
        limits = [f"{name}={value!r}" for name, value in self._limits()]
        return f"<Log {', '.join([*map(repr, self._paths), *limits])}>"

    def _limits(self) -> Iterator[tuple[str, object]]:
        yield from (("topic", one) for one in [self._wanted.topics] if one)
        yield from (("partition", sorted(one)) for one in [self._wanted.partitions] if one)
        plain = Filter()
        for name in Filter._fields:
            value = getattr(self._filter, name)
            if value != getattr(plain, name):
                yield name, sorted(value) if isinstance(value, frozenset) else value
        if self._limit is not None:
            yield "limit", self._limit

    def _repr_html_(self) -> str:
        from kdump.printers import notebook

        names = ("topic", "partition", "offset", "timestamp", "key", "value")
        log = copy.copy(self)
        log._limit = notebook.SHOWN + 1 if self._limit is None else min(notebook.SHOWN + 1, self._limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the sentences are below the table
            cells = [[one.topic, one.partition, one.offset, one.datetime or one.timestamp, *_cells(one)] for one in log]
        damage = [f"{file}: byte {one.position}: {one}" for file, one in log.damage]
        return notebook.table(repr(self), names, cells, damage + log.notes)

    def __iter__(self) -> Iterator[LogRecord]:
        """Return the records, one partition after the other, each in log order. The iterator raises UnreadableError."""
        return chain.from_iterable(map(_records_of, self._of_records()))

    def _of_records(self) -> Iterator[LogBatch]:
        """Yield batches with their selected records, up to the limit."""
        (reader, partitions, lost), left = self._begin(Take.RUNS), self._limit
        for partition in partitions:
            if left == 0:
                return
            for item in reader.read(partition):
                if not isinstance(item, SelectedBatch):
                    lost(item)
                    continue
                for one in item.each(batches=False):
                    if left is None:
                        yield LogBatch(one)
                        continue
                    kept = one._replace(records=one.records[:left])
                    left -= len(kept.records)
                    yield LogBatch(kept)
                    if not left:
                        return

    def batches(self) -> Iterator[LogBatch]:
        """Yield the batches with selected records, and empty batches unless a filter excludes them.

        Without filters, ``limit`` and read_committed, records are parsed only by ``records``, at each use. A malformed
        record is reported only then; a batch with a wrong checksum is left out as damage. Raises UnreadableError.

        >>> import kdump
        >>> [(batch.base_offset, batch.count) for batch in kdump.open("golden/brokers/4.2.2", topic="one").batches()]
        [(0, 1)]
        """
        if not self._filter.takes_runs or self._filter.committed or self._limit is not None:
            yield from self._of_records()
            return
        reader, partitions, lost = self._begin(Take.BATCH_RUNS)
        for partition in partitions:
            for item in reader.read(partition):
                if not isinstance(item, SelectedBatch):
                    lost(item)
                else:
                    for one in item.each(batches=True):
                        yield LogBatch(one, lost)

    def to_arrow(self, columns: str | Iterable[str] | None = None) -> pa.RecordBatchReader:
        """Return a stream of Arrow record batches of up to about 16,000 rows or 2 MiB; the first ones are smaller.

        ``columns`` are names of ``kdump dump -o jsonl``, by default all, except ``kind`` and encodings. The column
        ``decoded`` (JSON text) needs ``decode``, typed columns need ``schema``. ``timestampType`` is 0 for CreateTime,
        1 for LogAppendTime, null in magic 0. Requires pyarrow. Raises UsageError for an unknown column or subject; the
        stream (and the search for schemas) raises UnreadableError.

        >>> import kdump
        >>> kdump.open("golden/brokers/4.2.2", topic="one").to_arrow(["offset", "value"]).read_all().to_pylist()
        [{'offset': 0, 'value': b'one'}]
        """
        return self._stream(columns)

    def _stream(self, columns: str | Iterable[str] | None, form: str = "arrow") -> pa.RecordBatchReader:
        """Like :meth:`to_arrow`. The limit of a batch is lower if the format ``form`` keeps several copies of it."""
        import pyarrow as pa

        from kdump.arrow import stream
        from kdump.arrow.columns import schema_of

        none = columns is not None and not (columns := tuple(several(columns)))
        typed = self._typed
        names = stream.names(("topic",) if none else columns, decoded=self._decoding is not None, typed=typed)
        reader, partitions, lost = self._begin(Take.RECORDS, form)
        rows = stream.RowStream(reader, names, lost, typed=typed)
        batches = stream.limited(stream.joined(rows.batches(partitions)), self._limit)
        if none:  # rows without columns, which only have a count
            return pa.RecordBatchReader.from_batches(pa.schema([]), (batch.select([]) for batch in batches))
        return pa.RecordBatchReader.from_batches(schema_of(names, typed), batches)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the stream for libraries with Arrow's PyCapsule interface, such as pandas, Polars and DuckDB."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Return the schema of the stream. Reads the schemas of a registry, but no other records."""
        from kdump.arrow import stream
        from kdump.arrow.columns import schema_of

        typed = self._typed
        names = stream.names(None, decoded=self._decoding is not None, typed=typed)
        return schema_of(names, typed).__arrow_c_schema__()

    def to_pandas(self, columns: str | Iterable[str] | None = None) -> Any:
        """Return the records as a pandas DataFrame, all in memory. Requires pandas.

        Integers are exact: a column of integers with nulls has a type such as ``Int64``.

        >>> import kdump
        >>> kdump.open("golden/brokers/4.2.2", topic="one").to_pandas(["offset", "value"]).shape
        (1, 2)
        """
        return files.to_pandas(self.to_arrow(columns).read_all())

    def to_polars(self, columns: str | Iterable[str] | None = None) -> Any:
        """Return the records as a Polars DataFrame, all in memory. Requires Polars; :func:`scan` is lazy.

        >>> import kdump
        >>> kdump.open("golden/brokers/4.2.2", topic="one").to_polars(["offset", "value"]).rows()
        [(0, b'one')]
        """
        return files.to_polars(self.to_arrow(columns).read_all())

    def to_duckdb(self, connection: Any = None, name: str = "log") -> Any:
        """Register the log as a view of a DuckDB connection, by default DuckDB's default connection; return the view.

        Each query reads the log again, as a stream. Requires DuckDB.

        >>> import kdump
        >>> kdump.open("golden/brokers/4.2.2", topic="one").to_duckdb(name="one").aggregate("count(*)").fetchall()
        [(1,)]
        """
        import duckdb  # type: ignore[import-not-found,unused-ignore]  # of the extra sql

        where = duckdb.default_connection() if connection is None else connection
        where.register(name, self)
        return where.table(name)

    def to_parquet(self, path: Path, columns: str | Iterable[str] | None = None, *, overwrite: bool = False) -> int:
        """Write the records to a Parquet file, which appears when it is complete; return their number.

        Requires pyarrow, and memory for one row group. Raises UsageError if ``path`` exists and ``overwrite`` is False,
        or if ``path`` is inside an input. Raises UnreadableError for an unreadable input or an error of the disk.
        """
        rows = self._stream(columns, "parquet")
        return files.to_parquet(rows, path, overwrite=overwrite, inputs=self._paths, note=self.notes.append)

    def _begin(
        self, take: Take, form: str = ""
    ) -> tuple[PartitionReader, Iterator[Partition], Callable[[DamagedRange], None]]:
        """Begin an iteration. Return the reader, the partitions, and the function that receives damaged ranges."""
        self._typed  # noqa: B018  raises UsageError for an unknown subject
        damage: list[tuple[str, Damage]] = []
        notes: list[str] = []
        self.damage, self.notes = damage, notes
        reader = PartitionReader(
            self._filter,
            take,
            on_error=self._on_error,
            report=Reporter(damage=notes.append, wrong=notes.append, note=notes.append),
            decoder=self._decoder,
        )
        return reader, self._partitions(notes, self._wanted.for_form(form)), partial(_add_damage, damage)

    @cached_property
    def _decoder(self) -> PayloadDecoder | None:
        return None if self._decoding is None else self._decoding.decoder(self._paths, self._wanted)

    @cached_property
    def _typed(self) -> TypedColumns | None:
        return None if self._decoding is None or self._decoder is None else self._decoding.typed(self._decoder)

    def _partitions(self, notes: list[str], wanted: Wanted) -> Iterator[Partition]:
        """Yield each partition once, or every replica. ``notes`` receives the skipped replicas and missing topics."""
        finder = Finder(wanted, Reporter(damage=notes.append, note=notes.append))
        found = finder.find(self._paths)
        if self._every_replica:
            yield from found
        else:
            yield from replicas.each_once_in_turn(found, self._paths, notes.append, "every_replica=True")
        for text in wanted.missing(finder.found_names, self._paths):
            notes.append(text)
            warn(text, NoteWarning)


def _add_damage(damage: list[tuple[str, Damage]], item: DamagedRange) -> None:
    damage.append((item.file.name, item.damage))
    if len(damage) == 1:
        text = f"{item.file.name}: byte {item.damage.position}: {item.damage} (Log.damage has every damaged range)"
        warn(text, DamageWarning)


@dataclass(frozen=True, repr=False)
class CheckReport(TableResult):
    """The result of a check. ``findings`` are problems; ``remarks`` do not change the status.

    ``notes`` are sentences on the search for files. ``absent`` has a sentence for each requested topic without a
    requested partition in the paths. Without topics it has one sentence if the paths have none of the partitions.
    """

    findings: tuple[Finding, ...]
    remarks: tuple[Finding, ...] = ()
    unreadable: tuple[UnreadableError, ...] = ()
    notes: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """Exit status: 1 unreadable or absent, else 3 damage, loss or failing start, else 4 derived file, else 0."""
        return 1 if self.unreadable or self.absent else findings_status(self.findings)

    def __repr__(self) -> str:
        return f"<CheckReport: {many(len(self.findings), 'finding')}, status {self.status}>"

    def rows(self) -> list[dict[str, object]]:
        """Return the findings, without remarks, as the objects that ``-o jsonl`` prints."""
        from kdump.printers.findings_report import finding_line

        return [finding_line(one) for one in self.findings]

    def to_arrow(self) -> pa.Table:
        """Return the findings, without remarks, with the columns of the SQL view of findings. Requires pyarrow.

        The values of ``expected`` and ``found`` become texts.

        >>> import kdump
        >>> kdump.check("golden/damaged/fuzz000").to_arrow().select(["check", "position"]).to_pylist()[0]
        {'check': 'crc', 'position': 798}
        """
        from kdump.arrow import answer_lines

        return answer_lines.findings_table(self.findings)

    def _repr_html_(self) -> str:
        from kdump.printers import notebook
        from kdump.printers.findings_report import finding_line

        names = ("check", "level", "file", "position", "text", "advice")
        caption = f"{many(len(self.findings), 'finding')}, status {self.status}"
        rows = [finding_line(one) for one in self.findings[: notebook.SHOWN + 1]]
        cells = [[row[name] for name in names] for row in rows]
        return notebook.table(caption, names, cells, [*map(str, self.unreadable), *self.absent, *self.notes])


def check(
    *paths: Path | Iterable[Path],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    at: Time | None = None,
    headers_only: bool = False,
) -> CheckReport:
    """Return the findings of ``kdump check``: damage, wrong indexes, and the result of a broker's start.

    ``at`` is the time that counts as now: ms, ISO 8601 or a datetime. With ``headers_only`` the check omits all records
    except control records. Raises UsageError.

    >>> import kdump
    >>> kdump.check("golden/brokers/4.2.2/one-0").status
    0
    """
    from kdump import checking
    from kdump.checks.whole_partition import CheckOptions

    unreadable: list[UnreadableError] = []
    notes: list[str] = []
    absent: list[str] = []
    when = moment(at)
    how = CheckOptions(records=not headers_only, at=timestamps.now() if when is None else when)
    wanted = Wanted(topics=topics(topic), partitions=numbers(partition))
    given = given_paths(paths)
    found = checking.found(given, wanted, how, note=notes.append, fail=unreadable.append, absent=absent.append)
    return _report(found, unreadable, notes, absent, given)


def verify_index(
    *paths: Path | Iterable[Path], topic: str | Iterable[str] = (), partition: int | Iterable[int] = ()
) -> CheckReport:
    """Return the findings of ``kdump verify-index``: indexes against the headers of their log. Raises UsageError.

    >>> import kdump
    >>> kdump.verify_index("golden/brokers/4.2.2/one-0").findings
    ()
    """
    from kdump.checks import partition as indexes

    unreadable: list[UnreadableError] = []
    notes: list[str] = []
    wanted = Wanted(topics=topics(topic), partitions=numbers(partition), siblings=True)
    finder = Finder(wanted, Reporter(note=notes.append, fail=unreadable.append))
    given = given_paths(paths)
    found = [
        finding
        for part in finder.find(given)
        for checked in indexes.check(part, fail=unreadable.append)
        for finding in checked.findings
    ]
    return _report(found, unreadable, notes, list(wanted.missing(finder.found_names, given)), given)


def _report(
    found: Iterable[Finding],
    unreadable: list[UnreadableError],
    notes: list[str],
    absent: list[str],
    paths: tuple[str, ...],
) -> CheckReport:
    all_found = list(found)
    return CheckReport(
        tuple(one for one in all_found if not one.is_remark),
        tuple(one for one in all_found if one.is_remark),
        tuple(unreadable),
        tuple(notes),
        tuple(absent),
        paths,
    )


@dataclass(frozen=True)
class SalvageReport:
    """The result of :func:`salvage`: the written partitions, and the damage."""

    partitions: tuple[Salvaged, ...]
    """For each partition its name, the written segments, and the counts of recovered and lost data."""
    damage: tuple[str, ...] = ()
    """A sentence for each damaged range of a log that is readable and not being written, and for each damaged file."""
    unreadable: tuple[UnreadableError, ...] = ()
    notes: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    """A sentence for each requested topic without a requested partition in the paths."""

    @property
    def status(self) -> int:
        """1 if a file is unreadable or a topic absent, else 3 for damage, else 0: also for malformed records."""
        return 1 if self.unreadable or self.absent else 3 if self.damage else 0


def salvage(
    *paths: Path | Iterable[Path],
    out: Path,
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    leftovers: bool = False,
    remote: Path | Iterable[Path] = (),
    remote_keys: Mapping[str, Path] | None = None,
    segment_bytes: int = 1 << 30,
    max_batch_bytes: int = DEFAULT_LIMIT,
) -> SalvageReport:
    """Write the batches with a right checksum as new segments below ``out``, like ``kdump salvage``.

    Records are not read: such a batch may have malformed ones, which :func:`check` finds. ``out`` must be a new or
    empty folder; it appears when all files are written. ``segment_bytes`` is the largest size of a written segment; a
    larger batch gets its own. Raises UsageError; UnreadableError also if there is no segment, or for a disk's error.

    >>> import kdump, tempfile
    >>> report = kdump.salvage("golden/damaged/fuzz000", out=tempfile.mkdtemp())
    >>> report.status, [one.written.records for one in report.partitions], report.damage  # doctest: +ELLIPSIS
    (3, [15], ('golden/damaged/fuzz000/00000000000000000000.log: byte 798: 843 bytes are not recovered: ...',))
    """
    from kdump.log_salvage import partitions, writer

    segment_bytes = at_least(1 << 10, segment_bytes, "segment_bytes")
    damage: list[str] = []
    unreadable: list[UnreadableError] = []
    notes: list[str] = []
    given = given_paths(paths)
    wanted = Wanted(
        topics=topics(topic),
        partitions=numbers(partition),
        leftovers=leftovers,
        siblings=True,
        max_batch_bytes=at_least(1, max_batch_bytes, "max_batch_bytes"),
        remote=_remote_storage(remote, remote_keys or {}),
    )
    report = Reporter(damage=damage.append, note=notes.append, fail=unreadable.append)
    found = partitions.find(given, wanted, report)
    if not found.replicas:
        raise unreadable[0] if unreadable else UnreadableError(shown_paths(given), "there is no segment to salvage")
    inputs = [*given, *(() if wanted.remote is None else wanted.remote.paths)]
    how = partitions.How(writer.SegmentLimits(segment_bytes))
    done = tuple(partitions.write(found, inputs, path_text(out), how, note=notes.append))
    for one in done:
        one.report(report)
    absent = tuple(wanted.missing(found.names, given))
    return SalvageReport(done, tuple(damage), tuple(unreadable), tuple(notes), absent)


def given_paths(paths: Iterable[Path | Iterable[Path]]) -> tuple[str, ...]:
    """Return all paths as one tuple. An argument is a path or several paths. Raises UsageError if there is no path."""
    found = tuple(path_text(one) for path in paths for one in several(path))
    if not found:
        raise UsageError("no path was given: pass one or more paths")
    return found


def open(  # noqa: A001, PLR0913  as in gzip.open: called as kdump.open, each option by its name
    *path: Path | Iterable[Path],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    offset: int | tuple[int | None, int | None] = (None, None),
    since: Time | None = None,
    until: Time | None = None,
    key: str | bytes | Iterable[str | bytes] | None = None,
    grep: str | bytes | re.Pattern[bytes] | None = None,
    header: Mapping[str | bytes, str | bytes | None] | None = None,
    producer_id: int | Iterable[int] = (),
    epoch: int | Iterable[int] = (),
    type: RecordType | Iterable[RecordType] = (),  # noqa: A002  the option's name
    transactional: bool | None = None,
    isolation: Isolation = "read_uncommitted",
    out_of_order: bool = False,
    limit: int | None = None,
    leftovers: bool = False,
    every_replica: bool = False,
    remote: Path | Iterable[Path] = (),
    remote_keys: Mapping[str, Path] | None = None,
    on_error: OnError = "resync",
    max_batch_bytes: int = DEFAULT_LIMIT,
    decode: Decode = "none",
    schemas: Path | None = None,
    schemas_topic: str = "_schemas",
    schema: str | None = None,
) -> Log:
    """Return the log at ``path``: a segment, glob, partition folder, log dir or archive, or several of them.

    Arguments have the names and meaning of the options of ``kdump dump``. An option that may be given several times is
    an iterable, except ``grep``, which is one expression. The record must have all headers of ``header``.

    ``offset`` is an offset, or a pair of first and last offset. The range of time includes ``since``, and ends before
    ``until``. A time is ms, ISO 8601 (UTC unless the text has a zone), an age such as ``-2h``, or a datetime with a
    zone. ``out_of_order`` also reads segments that begin after ``until``, because they may hold older records. A record
    matches ``key`` if it has one of these keys. Keys that are text are encoded as UTF-8. The header value None matches
    any value.

    ``remote`` is the remote storage of tiered topics, ``remote_keys`` maps names of key pairs to files with private
    keys. Without ``every_replica`` one replica of each log is read: the replica with the newest leader epoch, then the
    highest log end offset. Folders with different topic ids, or without common offsets, count as different logs. A
    batch of more than ``max_batch_bytes``, compressed or decompressed, counts as damage (for Parquet a third of it).

    ``decode`` decodes payloads with a schema id, and Kafka's own topics: for the attribute and column ``decoded``, and
    for the filters ``key`` and ``grep``. The schemas come from ``schemas_topic`` in ``schemas`` (default: ``path``).
    ``schema`` is a subject or a version of it (``orders-value:3``): Arrow tables and DataFrames get its typed columns,
    ``keyDecoded`` or ``valueDecoded`` or both, ``schemaId``, ``problem`` and ``why``. ``decode="none"`` is then "auto".

    This function reads only the files of ``remote_keys``; the iteration reads the log. Raises UsageError and
    UnreadableError. For an unknown subject of ``schema`` the iteration raises UsageError before the first record.

    >>> import kdump
    >>> log = kdump.open("golden/brokers/4.2.2", topic="c-none", offset=(3, 4))
    >>> [record.offset for record in log]
    [3, 4]
    """
    first, last = first_and_last(offset)
    if first is not None and last is not None and first > last:
        raise UsageError(f"offset={offset}: the range ends before it begins")
    after, before = moment(since), moment(until)
    if after is not None and before is not None and after >= before:
        raise UsageError(f"since={since!r} is not before until={until!r}")
    if isinstance(grep, str | bytes):
        try:
            grep = re.compile(_bytes(grep))
        except (re.error, OverflowError, RecursionError) as reason:
            raise UsageError(f"grep {grep!r}: {reason}") from None
    elif not isinstance(grep, re.Pattern | None):
        raise UsageError(f"grep={grep!r} is not a regular expression")
    elif isinstance(getattr(grep, "pattern", b""), str):
        raise UsageError(f"grep={grep!r} is an expression for text: records are bytes, so use re.compile(b'...')")
    if not isinstance(header, Mapping | None):
        raise UsageError(f"header={header!r}: expected a dict of keys and values")
    if transactional not in (None, True, False):
        raise UsageError(f"transactional={transactional!r}: expected True, False or None")
    if on_error not in get_args(OnError):
        raise UsageError(f"on_error={on_error!r}: expected one of {', '.join(map(repr, get_args(OnError)))}")
    decoding = Decoding.of(decode, schemas, schemas_topic, schema)
    return Log(
        given_paths(path),
        Wanted(
            topics=topics(topic),
            partitions=numbers(partition),
            leftovers=leftovers,
            max_batch_bytes=at_least(1, max_batch_bytes, "max_batch_bytes"),
            remote=_remote_storage(remote, remote_keys or {}),
        ),
        Filter(
            first_offset=first,
            last_offset=last,
            since=after,
            until=before,
            keys=_keys(key),
            greps=() if grep is None else (grep,),
            headers=tuple(
                (_bytes(name), None if value is None else _bytes(value)) for name, value in (header or {}).items()
            ),
            producer_ids=numbers(producer_id),
            leader_epochs=numbers(epoch),
            types=_types(type),
            transactional=transactional,
            committed=is_committed(isolation),
            out_of_order=out_of_order,
            decoded=decoding is not None and (key is not None or grep is not None),
        ),
        on_error,
        every_replica=every_replica,
        limit=None if limit is None else at_least(0, limit, "limit"),
        decoding=decoding,
    )


def _remote_storage(remote: Path | Iterable[Path], keys: Mapping[str, Path]) -> RemoteStorage | None:
    from kdump.log_dirs.tiered_storage import RemoteStorage

    if not isinstance(keys, Mapping):
        raise UsageError(f"remote_keys={keys!r}: expected a dict of names and files")
    paths = tuple(map(path_text, several(remote)))
    return RemoteStorage.of(paths, {name: path_text(file) for name, file in keys.items()})


def path_text(given: Path) -> str:
    """Return a path as text. Raises UsageError for anything but text, bytes or an object with a path."""
    try:
        return fsdecode(given)
    except TypeError:
        raise UsageError(f"{given!r} is not a path: use text or a pathlib.Path") from None


def topics(given: str | Iterable[str], what: str = "topic") -> tuple[str, ...]:
    """Return one or several topics, or ``what``, as a tuple. Raises UsageError for anything but text."""
    found = tuple(several(given))
    for one in found:
        if not isinstance(one, str):
            raise UsageError(f"{given!r} is not a {what}: {what}s are text")
    return found


def at_least(least: int, given: int, name: str) -> int:
    """Return the whole number ``given``. Raises UsageError if it is below ``least``, and for anything else."""
    if not isinstance(given, SupportsIndex) or index(given) < least:
        raise UsageError(f"{name}={given!r}: expected a whole number, {least} or more")
    return index(given)


def numbers(given: int | Iterable[int]) -> frozenset[int]:
    """Return one or several numbers as a set. Raises UsageError for anything but integers."""
    try:
        return frozenset(map(index, several(given)))
    except TypeError:
        raise UsageError(f"{given!r} is not a number: use an integer or several integers") from None


def is_committed(isolation: str) -> bool:
    """Return whether an isolation level is read_committed. Raises UsageError for an unknown level."""
    if isolation not in get_args(Isolation):
        raise UsageError(f"{isolation!r} is not an isolation level: use read_uncommitted or read_committed")
    return isolation == "read_committed"


def first_and_last(offset: int | tuple[int | None, int | None]) -> tuple[int | None, int | None]:
    try:
        if isinstance(offset, SupportsIndex):  # an int, or an integer of numpy
            return index(offset), index(offset)
        first, last = (None if one is None else index(one) for one in several(offset))
    except (TypeError, ValueError):
        raise UsageError(f"offset={offset!r}: expected a number, or a pair such as (3, 9)") from None
    return first, last


def _keys(given: str | bytes | Iterable[str | bytes] | None) -> frozenset[bytes]:
    return frozenset() if given is None else frozenset(map(_bytes, several(given)))


def several(given: Any) -> Iterable[Any]:
    """Return an iterable unchanged. One value, such as text, bytes or a path, becomes a tuple."""
    return given if hasattr(given, "__iter__") and not isinstance(given, str | bytes | PathLike) else (given,)


def _bytes(given: str | bytes) -> bytes:
    if not isinstance(given, str | bytes):
        raise UsageError(f"expected text or bytes, found {given!r}")
    try:
        return given.encode() if isinstance(given, str) else given
    except UnicodeEncodeError:
        raise UsageError(f"{given!r} has no UTF-8 form: use bytes") from None


def _types(given: RecordType | Iterable[RecordType]) -> frozenset[RecordType]:
    found: tuple[RecordType, ...] = tuple(several(given))
    for one in found:
        if one not in RECORD_TYPES:
            raise UsageError(f"{one!r} is not a type of records: use {', '.join(RECORD_TYPES)}")
    return frozenset(found)


def moment(when: Time | None) -> int | None:
    """Return a time in ms since 1970, rounded up; None for None. Text is as in ``--since``. Raises UsageError."""
    if when is None:
        return None
    if isinstance(when, SupportsIndex):  # an int, or an integer of numpy
        return index(when)
    if isinstance(when, str):
        return timestamps.moment(when)
    if not isinstance(when, datetime):
        raise UsageError(f"{when!r} is not a time: use ms since 1970, ISO 8601, an age (-2h) or a datetime with a zone")
    if when.tzinfo is None:
        raise UsageError(f"{when!r} has no time zone: add one, as in datetime(..., tzinfo=UTC)")
    return timestamps.rounded_up(when)
