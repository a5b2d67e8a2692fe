"""The input of the views in one query. All scans of records, batches and damage read the same files, listed once.

A scan receives the columns and the condition that DuckDB pushes down. In these views the part of the condition that
kdump understands selects folders, segments, batches and records (:mod:`kdump.queries.conditions`). In all views the
complete condition is then applied to each block. An answer or a check is computed once, and whole.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kdump.arrow.columns import ROWS
from kdump.arrow.header_rows import RECORD_COLUMNS, HeaderRows, of_batches
from kdump.arrow.stream import RowStream, joined
from kdump.errors import Reporter, UnreadableError, discard
from kdump.formats.record_layout import TIMESTAMP_TYPES
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_reader import replicas
from kdump.log_reader.batch_selection import Take
from kdump.log_reader.filter import MOST_TEXTS, Filter
from kdump.log_reader.reader import PartitionReader
from kdump.primitives.terminal import path_text
from kdump.primitives.wire import INT64_END
from kdump.queries import conditions
from kdump.queries.views import BATCHES, DAMAGE, SIZES, FindingView, LineView, RowView, Views
from kdump.rows import values
from kdump.rows.columns import PAYLOADS
from kdump.rows.redaction import Secrets, bare
from kdump.rows.selection import DamagedRange, SelectedBatch, may_hold_secrets
from kdump.schemas import TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kdump.answers.collector import AnswerLine
    from kdump.api import Decoding
    from kdump.arrow.typed import Engine, TypedColumns
    from kdump.log_dirs.partition import Partition
    from kdump.queries.views import View
    from kdump.rows.redaction import Redactor
    from kdump.schemas.decoder import PayloadDecoder
    from kdump.schemas.store import SchemaStore

_ROWS: Final = 4096
"""Maximum number of rows in a block of an answer."""
_FEWEST: Final = 2
_FEW: Final = 8
"""Blocks with at most _FEWEST columns have more rows than blocks with at most _FEW (:func:`_most_rows`)."""
_STEP: Final = 1 << 20
"""Number of bytes of log after which progress is reported, and a stopped query is noticed."""
_WORDS: Final = [TIMESTAMP_TYPES[0], TIMESTAMP_TYPES[1]]


class StoppedError(Exception):
    """Raised in scans of a query that was stopped."""


class ReportedOnce:
    """Reports each message once, also if a view is scanned several times or in several threads."""

    def __init__(self, to: Reporter, lost: Callable[[DamagedRange], object] | None) -> None:
        """``lost`` receives each damaged range. If it is None, ``to`` receives a sentence on the range."""
        self._lost = lost or (lambda item: to.damage(f"{item.file.name}: byte {item.damage.position}: {item.damage}"))
        self._said, self._lock = set[object](), threading.Lock()
        self.damage, self.note, self.fail = self._once(to.damage), self._once(to.note), self._once(to.fail)
        self.has_read = self.locked(to.progress)
        self.reporter = Reporter(self.damage, self._once(to.wrong), self.note, self.fail)

    def _once(self, report: Callable[[Any], object]) -> Callable[[Any], None]:
        def once(what: object) -> None:
            with self._lock:
                if str(what) not in self._said:
                    self._said.add(str(what))
                    report(what)

        return once

    def locked(self, report: Callable[[int], object]) -> Callable[[int], None]:
        def locked(number: int) -> None:
            with self._lock:
                report(number)

        return locked

    def lost(self, item: DamagedRange) -> None:
        with self._lock:
            key = item.file.name, item.damage.position, item.damage.size, item.damage.kind
            if key not in self._said:
                self._said.add(key)
                self._lost(item)


class SqlInputs(NamedTuple):
    """The input of views: paths, and selected partitions and records. ``at`` is the time that counts as now, in ms."""

    paths: tuple[str, ...]
    wanted: Wanted
    at: int
    committed: bool = False
    every_replica: bool = False
    out_of_order: bool = False
    """Whether segments that begin after times with a start and an end are read too: they may have such records."""
    payloads: bool = True
    """Whether keys, values and headers are shown; otherwise they are null."""
    redactor: Redactor | None = None
    """Hashes keys and values of records, and values of headers."""
    decoder: PayloadDecoder | None = None
    """Decodes payloads for the column ``decoded``."""
    typed: TypedColumns | None = None

    schemas: str | None = None
    """The path of the schema registry's topic; None: it is in the paths of the query."""
    schemas_topic: str = TOPIC

    @property
    def views(self) -> Views:
        return Views(decoded=self.decoder is not None, typed=self.typed)

    def decoding(self, options: Decoding | None, engine: Engine) -> SqlInputs:
        """Return the inputs with the decoder of the options and the typed columns for ``engine``."""
        if options is None:
            return self
        decoder = options.decoder(self.paths, self.wanted)
        return self._replace(decoder=decoder, typed=options.typed(decoder, engine))


class ViewRead:
    """One scan of a view, for ``--stats``. ``pushed``: the bounds that limit the data to read."""

    def __init__(self, view: str, columns: Sequence[str], condition: str | None) -> None:
        self.view, self.columns, self.condition = view, list(columns), condition
        self.pushed: dict[str, object] = {}

    def line(self) -> dict[str, object]:
        return {"view": self.view, "columns": self.columns, "filter": self.condition, "pushed": self.pushed}


class QueryReading:
    """The input of one query's views."""

    def __init__(
        self,
        inputs: SqlInputs,
        report: Reporter,
        lost: Callable[[DamagedRange], object] | None = None,
        reads: Callable[[int], None] = discard,
        add_status: Callable[[int], None] = discard,
    ) -> None:
        """``lost``: see ReportedOnce. ``reads`` gets the bytes of logs per scan, ``add_status`` a check's status."""
        self.inputs, self.report = inputs, ReportedOnce(report, lost)
        self._reads, self._add_status = self.report.locked(reads), self.report.locked(add_status)
        self.scans: list[ViewRead] = []
        self.records_read = self.batches_read = 0
        self.stopped = threading.Event()
        self.error: BaseException | None = None
        """The error that ended a scan. DuckDB wraps it in an error of its own."""
        self._answers: dict[tuple[str, str], list[AnswerLine]] = {}
        self._found: list[dict[str, Any]] | None = None
        self._secrets = Secrets()

    @cached_property
    def partitions(self) -> list[Partition]:
        """The partitions in the paths: one replica of each, or every replica."""
        inputs = self.inputs
        finder = Finder(
            inputs.wanted.for_form("sql"), Reporter(self.report.damage, note=self.report.note, fail=self.report.fail)
        )
        found = list(finder.find(inputs.paths))
        if len(found) > 1 and not inputs.every_replica:
            found = replicas.each_once(found, self.report.note, "--every-replica")
        for text in inputs.wanted.missing(finder.found_names, inputs.paths):
            self.report.note(text)
        return found

    def blocks(self, view: View, columns: Sequence[str], expression: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a view that meet a condition (None for all rows), with exactly these columns."""
        try:
            yield from self._blocks(view, columns, expression)
        except (GeneratorExit, StoppedError):
            raise
        except BaseException as error:
            self.error = error
            raise

    def _blocks(self, view: View, columns: Sequence[str], expression: Any) -> Iterator[pa.RecordBatch]:
        kinds = {field.name: pa.types.is_binary(field.type) for field in view.schema}
        text = None if expression is None else str(expression)
        condition = conditions.read(text or "", kinds)
        scan = ViewRead(view.name, columns, text)
        self.scans.append(scan)
        names = [*columns, *(name for name in view.schema.names if name in condition.columns and name not in columns)]
        shape = pa.schema([view.schema.field(name) for name in columns])
        for block in self._rows(view, names, condition.bounds, scan):
            if self.stopped.is_set():
                raise StoppedError
            if expression is None and block.schema == shape:
                yield block
                continue
            table = pa.Table.from_batches([block])
            kept = table if expression is None else table.filter(expression)
            yield from kept.select(list(columns)).cast(shape).to_batches()

    def rows(self, view: View, names: list[str], bounds: conditions.Bounds) -> Iterator[pa.RecordBatch]:
        """Yield all rows of a view within the bounds, and maybe other rows."""
        return self._rows(view, names, bounds, ViewRead(view.name, names, None))

    def _rows(
        self, view: View, names: list[str], bounds: conditions.Bounds, scan: ViewRead
    ) -> Iterator[pa.RecordBatch]:
        if isinstance(view, LineView | FindingView):
            return self._lines(view, names)
        if any(one.none for one in bounds.values()):
            return iter(())
        if self._hides:
            bounds.pop("key", None)  # the shown key differs from the stored key
        wanted = _filter(bounds, committed=self.inputs.committed, out_of_order=self.inputs.out_of_order)
        scan.pushed = {name: _shown_values(value) for name, value in bounds.items() if name in _PUSHED}
        partitions = [one for one in self.partitions if _may_hold(one, bounds)]
        self._reads(sum(one.size for one in partitions))
        if view.name == BATCHES:
            return self._batches(partitions, wanted, names)
        if view.name == DAMAGE and isinstance(view, RowView):
            return self._damage(partitions, wanted, names, view)
        return joined(self._records(partitions, wanted, names, view), _most_rows(names))

    def _reader(self, wanted: Filter, take: Take = Take.RECORDS) -> PartitionReader:
        report = self.report.reporter._replace(progress=self._progress())
        return PartitionReader(wanted, take, report=report, decoder=self.inputs.decoder)

    def _progress(self) -> Callable[[int], None]:
        """Return a function that receives the bytes read. It raises StoppedError if the query was stopped."""
        done = 0

        def progress(size: int) -> None:
            nonlocal done
            done += size
            if done >= _STEP:  # one report for many batches
                if self.stopped.is_set():
                    raise StoppedError
                self.report.has_read(done)
                done = 0

        return progress

    @property
    def _hides(self) -> bool:
        return not self.inputs.payloads or self.inputs.redactor is not None

    def _changes(self, partition: Partition) -> bool:
        return self.inputs.redactor is not None or may_hold_secrets(partition.topic)

    def _shown(self, item: SelectedBatch) -> Iterator[SelectedBatch]:
        """Yield records without secrets, and with hashed payloads if there is a redactor."""
        for one in self._secrets.without(item):
            yield one if self.inputs.redactor is None else self.inputs.redactor(one)

    def _lost(self, item: DamagedRange) -> None:
        self.report.lost(self._bare(item))

    def _bare(self, item: DamagedRange) -> DamagedRange:
        """Return a damaged range, without values of fields if payloads are hidden or may be secret."""
        is_bare = self._hides or self._secrets.may_be_in(*item)
        return item._replace(damage=bare(item.damage)) if is_bare else item

    def _counted(self, items: Iterable[SelectedBatch | DamagedRange]) -> Iterator[SelectedBatch | DamagedRange]:
        for item in items:
            if isinstance(item, SelectedBatch):
                self.batches_read += item.batch_count
                if may_hold_secrets(item.file.topic):
                    self._secrets.mask(item)  # its records decide whether values in later damage may be shown
            yield item

    def _records(
        self, partitions: list[Partition], wanted: Filter, names: list[str], view: View
    ) -> Iterator[pa.RecordBatch]:
        hidden = frozenset() if self.inputs.payloads else PAYLOADS.intersection(names)
        sized = {SIZES[name].attribute for name in names if name in SIZES}
        shown = [name for name in names if name not in hidden and name not in SIZES]
        made = [*shown, *sorted(sized.difference(shown))] or ["topic"]
        if RECORD_COLUMNS.issuperset(made) and not wanted.looks_into_records:
            reader = self._reader(wanted, Take.HEADERS)
            reader.outcomes = "transactionState" in made
            items = (item for one in partitions for item in reader.read(one))
            blocks = HeaderRows(made, self._lost).batches(self._counted(items))
        else:
            reader = self._reader(wanted)
            reader.offer_all = True
            stream = RowStream(
                reader,
                tuple(made),
                self._lost,
                change=self._shown,
                changes=self._changes,
                typed=self.inputs.typed,
                most_rows=_most_rows(names),
            )
            blocks = self._of_stream(stream, partitions)
        shape = pa.schema([view.schema.field(name) for name in names])
        for block in blocks:
            self.records_read += block.num_rows
            yield block if block.schema == shape else _in_sql(block, shape, hidden)

    def _of_stream(self, stream: RowStream, partitions: list[Partition]) -> Iterator[pa.RecordBatch]:
        counted = 0
        for block in stream.batches(partitions):
            self.batches_read += stream.batch_count - counted
            counted = stream.batch_count
            yield block

    def _batches(self, partitions: list[Partition], wanted: Filter, names: list[str]) -> Iterator[pa.RecordBatch]:
        reader = self._reader(wanted, Take.BATCH_RUNS)
        reader.outcomes = "transactionState" in names or wanted.committed
        items = (item for one in partitions for item in reader.read(one))
        return of_batches(self._counted(items), names, self._lost)

    def _damage(
        self, partitions: list[Partition], wanted: Filter, names: list[str], view: RowView
    ) -> Iterator[pa.RecordBatch]:
        reader = self._reader(wanted, Take.COUNT)
        reader.outcomes = False
        columns = [one for name in names for one in view.columns if one.name == name]
        shape = pa.schema([view.schema.field(name) for name in names])
        for partition in partitions:
            found = []
            for item in self._counted(reader.read(partition)):
                if isinstance(item, DamagedRange):
                    self._lost(item)
                    shown = self._bare(item)
                    row = {one.name: _readable(one.type, values.value(one, shown)) for one in columns}
                    found.append(row)
            if found:
                yield pa.RecordBatch.from_pylist(found, shape)

    def _lines(self, view: LineView | FindingView, names: list[str]) -> Iterator[pa.RecordBatch]:
        from kdump.arrow import answer_lines

        shape = pa.schema([view.schema.field(name) for name in names])
        rows = []
        for row in self._findings() if isinstance(view, FindingView) else self._answer(view):
            found = {name: row.get(name) for name in names}
            if self._hides:
                found = {name: _without_clients(name, value) for name, value in found.items()}
            rows.append(found)
            if len(rows) == _ROWS:
                yield from answer_lines.rows_table(rows, shape).to_batches()
                rows = []
        yield from answer_lines.rows_table(rows, shape).to_batches()

    def _findings(self) -> list[dict[str, Any]]:
        """Return the findings of a check, without remarks, as rows; the check runs once."""
        from kdump import checking
        from kdump.arrow.answer_lines import finding_row
        from kdump.checks.whole_partition import CheckOptions
        from kdump.findings import status

        if self._found is None:
            found = list(
                checking.found(
                    self.inputs.paths,
                    self.inputs.wanted,
                    CheckOptions(at=self.inputs.at),
                    note=self.report.note,
                    fail=self.report.fail,
                    progress=self._progress(),
                )
            )
            self._add_status(status(found))
            self._found = [finding_row(one) for one in found if not one.is_remark]
        return self._found

    def _answer(self, view: LineView) -> Iterator[dict[str, Any]]:
        from kdump.answers import schemas as registry
        from kdump.answers.collector import as_json

        table, question = view.table, view.question
        lines = registry.table_lines(table, self._store) if question is None else self._asked(question, table.options)
        for line in lines:
            if isinstance(line, table.line):
                yield as_json(line)

    def _asked(self, question: str, given: Mapping[str, Any]) -> list[AnswerLine]:
        """Return the answer, computed once for each question and options. An UnreadableError ends it early."""
        options = dict(given)
        key = question, repr(options)
        if key not in self._answers:
            lines = []
            try:
                for line in self._ask(question, options):
                    if self.stopped.is_set():
                        raise StoppedError
                    lines.append(line)
            except UnreadableError as error:
                self.report.fail(error)
            self._answers[key] = lines
        return self._answers[key]

    @cached_property
    def _store(self) -> SchemaStore:
        """The schema registry at ``inputs.schemas``, else in the paths, read once."""
        from kdump.log_reader.registry_topic import no_record, read_store

        inputs = self.inputs
        where = inputs.paths if inputs.schemas is None else (inputs.schemas,)
        failed = False

        def fail(error: UnreadableError) -> None:
            nonlocal failed
            failed = True
            self.report.fail(error)

        store = read_store(
            where,
            topic=inputs.schemas_topic,
            max_batch_bytes=inputs.wanted.max_batch_bytes,
            remote=inputs.wanted.remote,
            report=Reporter(fail=fail),
            lost=self.report.lost,
        )
        if not store.history and not failed:
            self.report.fail(no_record(inputs.schemas_topic, where))
        return store

    def _ask(self, question: str, options: dict[str, Any]) -> Iterator[Any]:
        from kdump import questions

        inputs, wanted = self.inputs, self.inputs.wanted
        brokers: tuple[tuple[str, ...], ...] = ()
        if question == "diff":
            if len(inputs.paths) < 2:
                return iter(())
            brokers = tuple((path,) for path in inputs.paths)
        asked = questions.Inputs(
            inputs.paths, wanted.topics, wanted.partitions, inputs.at, wanted.max_batch_bytes, wanted.remote, brokers
        )
        return questions.ask(question, asked, self.report.reporter, **options)


def _without_clients(name: str, value: Any) -> Any:
    """Return a field of a group's line, with None for the bytes that clients chose and for the hosts of clients."""
    if name in {"metadata", "raw"}:
        return None
    return [{**one, "clientHost": None} for one in value] if name == "members" and value else value


_PUSHED: Final = frozenset(
    {
        "topic",
        "partition",
        "offset",
        "timestampMs",
        "timestamp",
        "key",
        "producerId",
        "leaderEpoch",
        "isControl",
        "isTransactional",
    }
)
"""Columns whose bounds limit the data to read."""


def _may_hold(partition: Partition, bounds: conditions.Bounds) -> bool:
    """Return whether a partition may have rows within the bounds, judged by its topic and number."""
    topic, number = bounds.get("topic"), bounds.get("partition")
    if topic is not None and topic.only is not None and partition.topic not in topic.only:
        return False
    return number is None or (partition.partition is not None and number.takes(partition.partition))


def _filter(bounds: conditions.Bounds, *, committed: bool, out_of_order: bool) -> Filter:
    """Return the filter for the reader. It selects all rows within the bounds, and maybe other rows."""
    everything = conditions.Values()
    first, last = bounds.get("offset", everything).range
    since, until = bounds.get("timestampMs", everything).range
    early, late = bounds.get("timestamp", everything).range
    if early is not None:
        since = max(early // 1000, -INT64_END + 1 if since is None else since)
    if late is not None:
        until = min(late // 1000, INT64_END - 2 if until is None else until)
    keys = bounds.get("key", everything).only or frozenset()
    control, transactional = bounds.get("isControl", everything).only, bounds.get("isTransactional", everything).only
    return Filter(
        first_offset=first,
        last_offset=last,
        since=since,
        until=None if until is None else until + 1,
        out_of_order=out_of_order
        or since is None,  # without a lower bound read all segments, as old records may be in any
        keys=keys if len(keys) <= MOST_TEXTS else frozenset(),
        producer_ids=bounds.get("producerId", everything).only or frozenset(),
        leader_epochs=bounds.get("leaderEpoch", everything).only or frozenset(),
        types=frozenset({"control"}) if control == frozenset((True,)) else frozenset(),
        transactional=next(iter(transactional)) if transactional is not None and len(transactional) == 1 else None,
        committed=committed,
    )


def _most_rows(names: Sequence[str]) -> int:
    """Return the maximum number of rows in a block; DuckDB keeps a few blocks in memory for each of its threads."""
    columns = len(names)
    return 2 * ROWS if columns <= _FEWEST else ROWS if columns <= _FEW else ROWS // 8


def _shown_values(found: conditions.Values) -> object:
    """Return the values of a column's bounds as ``--stats`` prints them."""
    if found.only is None:
        return [found.low, found.high]
    shown = [one.decode("utf-8", "backslashreplace") if isinstance(one, bytes) else one for one in found.only]
    return sorted(shown) if len(shown) > 1 or not isinstance(shown[0], int) else [shown[0], shown[0]]


def _in_sql(block: pa.RecordBatch, shape: pa.Schema, hidden: frozenset[str]) -> pa.RecordBatch:
    """Return records with the columns of the view: sizes added, timestampType as a word, hidden columns as null."""
    arrays = []
    for field in shape:
        name = field.name
        at = block.schema.get_field_index(name)
        if name in SIZES:
            sizes = pc.binary_length(block.column(SIZES[name].attribute))
            arrays.append(pc.fill_null(sizes, -1).cast(field.type))
        elif at < 0 or name in hidden:
            arrays.append(pa.nulls(block.num_rows, field.type))
        elif name == "timestampType":
            arrays.append(_words(block.column(at)))
        elif isinstance(field.type, pa.JsonType):
            arrays.append(pa.ExtensionArray.from_storage(field.type, block.column(at)))
        else:
            arrays.append(block.column(at))
    return pa.RecordBatch.from_arrays(arrays, schema=shape)


def _words(numbers: pa.Array) -> pa.Array:
    known = pc.if_else(pc.is_in(numbers, pa.array([0, 1], numbers.type)), numbers, pa.scalar(None, numbers.type))
    return pa.array(_WORDS, pa.string()).take(known)


def _readable(kind: str, value: object) -> object:
    if kind == "any" and value is not None:
        return path_text(str(value))
    return path_text(value) if isinstance(value, str) else value
