"""``kdump.open``: batches and records from Python, with the filters of ``kdump dump``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from os import PathLike, fspath
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from kdump.errors import UsageError
from kdump.formats.record_layout import TIMESTAMP_TYPES
from kdump.log_dirs.absent import absent
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_reader import replicas
from kdump.log_reader.filter import Filter, RecordType
from kdump.log_reader.reader import PartitionReader
from kdump.primitives import timestamps
from kdump.primitives.compression import DEFAULT_LIMIT
from kdump.rows import columns as rows
from kdump.rows import values
from kdump.rows.selection import SelectedBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from kdump.formats.record import Header, Record
    from kdump.log_dirs.partition import Partition
    from kdump.log_dirs.tiered_log import RemoteStorage
    from kdump.rows.selection import DamagedRange
    from kdump.segments.regions import Damage, OnError

Path: TypeAlias = str | PathLike[str]
Time: TypeAlias = int | str | datetime
SHOWN: Final = 32
"""Bytes of a key or value that the repr of a record shows."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, repr=False)
class LogBatch:
    """A batch with the records of it that were asked for."""

    found: SelectedBatch

    def __repr__(self) -> str:
        return f"<LogBatch {self.file} byte {self.position}: offsets {self.base_offset} to {self.last_offset}>"

    @property
    def count(self) -> int | None:
        """How many records its header claims; None below magic 2."""
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
        """Where the batch starts in the file, in bytes."""
        return self.found.batch.position

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self.found.batch.size

    @property
    def raw(self) -> memoryview:
        """Its bytes."""
        return self.found.batch.raw

    @property
    def records(self) -> list[LogRecord]:
        """The records that the filters took."""
        return [LogRecord(self, record) for record in self.found.records]

    def row(self) -> dict[str, object]:
        """Return all columns by the names of ``kdump dump -o jsonl --batches``; codec and times as stored numbers."""
        return {column.name: values.value(column, self.found) for column in rows.BATCH}


@dataclass(frozen=True, slots=True, repr=False)
class LogRecord:
    """One record, and the batch that holds it."""

    batch: LogBatch
    record: Record

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
    def offset(self) -> int:
        return self.record.offset

    @property
    def timestamp(self) -> int:
        """In ms since 1970; -1 for none."""
        return self.record.timestamp

    @property
    def datetime(self) -> datetime | None:
        """The timestamp in UTC; None for none, and outside the years 1 to 9999."""
        if timestamps.iso(self.timestamp) is None:
            return None
        return _EPOCH + timedelta(milliseconds=self.timestamp)

    @property
    def timestamp_type(self) -> str:
        """CreateTime, LogAppendTime, or NoTimestampType in magic 0."""
        return TIMESTAMP_TYPES[self.batch.found.batch.timestamp_type]

    @property
    def key(self) -> bytes | None:
        """None is Kafka's null, which is not the empty key."""
        return self.record.key

    @property
    def value(self) -> bytes | None:
        """None is a tombstone."""
        return self.record.value

    @property
    def headers(self) -> Sequence[Header]:
        """Pairs of key and value, in order, duplicates kept: a tuple, or with more than 256 what reads them lazily."""
        return self.record.headers

    @property
    def is_control(self) -> bool:
        """Whether it is a marker, which no consumer is given."""
        return self.batch.found.batch.is_control

    @property
    def transaction_state(self) -> str | None:
        """none, committed, aborted or open; None when it could not be told."""
        return self.batch.found.transaction

    def row(self) -> dict[str, object]:
        """Return all columns by the names of ``kdump dump -o jsonl``; bytes, codec and times as stored."""
        columns = (column for column in rows.RECORD if column.source not in _TEXT_ONLY)
        return {column.name: values.value(column, self.batch.found, self.record) for column in columns}


_TEXT_ONLY = {"state.key_encoding", "state.value_encoding"}


def _short(data: bytes | None) -> str:
    """Return bytes for a person, the beginning of long ones."""
    if data is None or len(data) <= SHOWN:
        return repr(data)
    return f"{data[:SHOWN]!r}... ({len(data)} bytes)"


class Log:
    """What :func:`open` returns: iterate it, or call :meth:`batches` or :meth:`to_arrow`, as often as you like.

    ``damage`` holds the damaged stretches that the last iteration met, ``notes`` what a person should know of it.
    """

    def __init__(
        self, paths: tuple[str, ...], wanted: Wanted, taken: Filter, on_error: OnError, *, every_replica: bool = False
    ) -> None:
        self._paths, self._wanted, self._filter, self._on_error = paths, wanted, taken, on_error
        self._every_replica = every_replica
        self.damage: list[tuple[str, Damage]] = []
        self.notes: list[str] = []

    def __iter__(self) -> Iterator[LogRecord]:
        """Yield the records in the order of partitions and offsets. Raises UnreadableError."""
        for batch in self.batches():
            for record in batch.found.records:
                yield LogRecord(batch, record)

    def batches(self) -> Iterator[LogBatch]:
        """Yield the batches that hold such records, with them. Raises UnreadableError."""
        reader = self._reader()
        for partition in self._partitions():
            for item in reader.read(partition):
                if isinstance(item, SelectedBatch):
                    yield LogBatch(item)
                else:
                    self._lost(item)

    def to_arrow(self, columns: Iterable[str] | None = None) -> pa.RecordBatchReader:
        """Return the records as a stream of Arrow record batches, with some 16,000 rows or 8 MiB each.

        ``columns`` are names of ``kdump dump -o jsonl``, by default all but ``decoded`` (a record of Kafka's own topics
        in words, as JSON text); no work is done for others. ``timestampType`` is 0 for CreateTime, 1 for LogAppendTime.
        It needs pyarrow. Raises UsageError for a name that is no column; the stream raises UnreadableError.
        """
        import pyarrow as pa

        from kdump.arrow import schema, stream

        names = stream.names(columns)
        rows = stream.RowStream(self._reader(), names, self._lost)
        return pa.RecordBatchReader.from_batches(schema.arrow(schema.chosen(names)), rows.batches(self._partitions()))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the same for any library of Arrow's PyCapsule interface, such as pandas, Polars and DuckDB."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _reader(self) -> PartitionReader:
        """Return a reader, and forget what the one before met."""
        self.damage, self.notes = [], []
        note = self.notes.append
        return PartitionReader(filter=self._filter, on_error=self._on_error, wrong_index=note, note=note)

    def _partitions(self) -> list[Partition]:
        """Return the partitions, each once; notes say which replicas are left out, and what the paths do not hold."""
        finder = Finder(self._wanted, note=self.notes.append)
        found = list(finder.find(self._paths))
        self.notes += absent(self._wanted, finder.met, self._paths)
        return found if self._every_replica else replicas.each_once(found, self.notes.append, "every_replica=True")

    def _lost(self, item: DamagedRange) -> None:
        self.damage.append((item.file.name, item.damage))


def open(  # noqa: A001, PLR0913  as in gzip.open: called as kdump.open, each option by its name
    path: Path | Iterable[Path],
    *,
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    offset: int | tuple[int | None, int | None] = (None, None),
    since: Time | None = None,
    until: Time | None = None,
    key: bytes | Iterable[bytes] | None = None,
    grep: str | bytes | re.Pattern[bytes] | None = None,
    header: Mapping[str, bytes | None] | None = None,
    producer_id: int | Iterable[int] = (),
    epoch: int | Iterable[int] = (),
    type: RecordType | Iterable[RecordType] = (),  # noqa: A002  the option's name
    transactional: bool | None = None,
    isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    out_of_order: bool = False,
    leftovers: bool = False,
    every_replica: bool = False,
    remote: Path | Iterable[Path] = (),
    remote_keys: Mapping[str, Path] | None = None,
    on_error: OnError = "resync",
    max_batch_bytes: int = DEFAULT_LIMIT,
) -> Log:
    """Return the log that ``path`` holds: a segment, glob, partition folder, log dir or archive, or several.

    Arguments are named as the options of ``kdump dump``; of those that may be given several times an iterable is
    taken. ``offset`` is one, or a pair that holds both ends. ``since`` is inclusive and ``until`` not: ms, ISO 8601
    (UTC unless it names an offset) or a datetime with a zone. Any of several keys takes a record; a header with the
    value None takes any. ``out_of_order`` reads segments that begin after ``until`` too, for older records in
    them. ``remote`` is where segments of tiered topics lie, ``remote_keys`` the files with the private keys of its key
    pairs, by name. Of several replicas of a partition the best is read: the one with the newest leader epoch, then the
    highest log end offset; with ``every_replica`` all are. A batch of more than ``max_batch_bytes``, as it is or
    unpacked, is damage. Nothing but keys is read before the log is iterated. Raises
    UsageError, and UnreadableError for a key.
    """
    first, last = (offset, offset) if isinstance(offset, int) else offset
    if isolation not in {"read_uncommitted", "read_committed"}:
        raise UsageError(f"{isolation!r} is no isolation level: read_uncommitted and read_committed are")
    if isinstance(grep, str | bytes):
        try:
            grep = re.compile(grep.encode() if isinstance(grep, str) else grep)
        except re.error as reason:
            raise UsageError(f"grep {grep!r}: {reason}") from None
    paths = (path,) if isinstance(path, str | PathLike) else tuple(path)
    return Log(
        tuple(fspath(path) for path in paths),
        Wanted(
            topics=(topic,) if isinstance(topic, str) else tuple(topic),
            partitions=numbers(partition),
            leftovers=leftovers,
            max_batch_bytes=max_batch_bytes,
            remote=_remote_storage(remote, remote_keys or {}),
        ),
        Filter(
            first_offset=first,
            last_offset=last,
            since=moment(since),
            until=moment(until),
            keys=_keys(key),
            greps=() if grep is None else (grep,),
            headers=tuple((name.encode(), value) for name, value in (header or {}).items()),
            producer_ids=numbers(producer_id),
            leader_epochs=numbers(epoch),
            types=frozenset((type,) if isinstance(type, str) else type),
            transactional=transactional,
            committed=isolation == "read_committed",
            out_of_order=out_of_order,
        ),
        on_error,
        every_replica=every_replica,
    )


def _remote_storage(remote: Path | Iterable[Path], keys: Mapping[str, Path]) -> RemoteStorage | None:
    from kdump.log_dirs.tiered_log import RemoteStorage

    paths = (remote,) if isinstance(remote, str | PathLike) else tuple(remote)
    return RemoteStorage.of(tuple(fspath(path) for path in paths), {name: fspath(file) for name, file in keys.items()})


def numbers(given: int | Iterable[int]) -> frozenset[int]:
    """Return one number, or several, as a set."""
    return frozenset((given,) if isinstance(given, int) else given)


def _keys(given: bytes | Iterable[bytes] | None) -> frozenset[bytes]:
    return frozenset() if given is None else frozenset((given,) if isinstance(given, bytes) else given)


def moment(when: Time | None) -> int | None:
    """Return a time in ms, rounded up. A text is ISO 8601, in UTC unless it names an offset. Raises UsageError."""
    if when is None or isinstance(when, int):
        return when
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when)
        except ValueError:
            raise UsageError(f"{when!r} is no time in ISO 8601, such as 2026-11-21T09:05:00Z") from None
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
    if when.tzinfo is None:
        raise UsageError(f"{when!r} names no time zone: datetime(..., tzinfo=UTC) does")
    return -((_EPOCH - when) // timedelta(milliseconds=1))
