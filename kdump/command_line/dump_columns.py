"""``kdump dump -o parquet`` and ``-o arrow``: records as files of binary columns, in memory that does not grow."""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, BinaryIO, Protocol

from kdump.errors import UsageError
from kdump.output import files
from kdump.output.stdout import open_output
from kdump.rows.redaction import Secrets
from kdump.rows.selection import may_hold_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from kdump.arrow.stream import RowStream
    from kdump.arrow.typed import TypedColumns
    from kdump.command_line.dump_options import DumpOptions
    from kdump.command_line.session import Session
    from kdump.log_dirs.partition import Partition
    from kdump.log_reader.reader import PartitionReader
    from kdump.rows.redaction import Redactor
    from kdump.rows.selection import DamagedRange, SelectedBatch
    from kdump.schemas.decoder import PayloadDecoder


class RecordSource(Protocol):
    """The parts of :class:`kdump.commands.dump.Dump` that return records and report skipped ones."""

    options: DumpOptions
    session: Session
    decoder: PayloadDecoder | None
    redactor: Redactor | None

    def reader(self) -> PartitionReader: ...
    def met(self, partition: Partition) -> Partition: ...
    def stream(self, reader: PartitionReader, partition: Partition) -> Iterator[SelectedBatch | DamagedRange]: ...
    def first(
        self, items: Iterator[SelectedBatch | DamagedRange], count: int | None
    ) -> Iterator[SelectedBatch | DamagedRange]: ...
    def lost(self, item: DamagedRange, printer: None) -> None: ...
    def finish(self, out: BinaryIO, counted: int, *, found: bool) -> None: ...


def write(dump: RecordSource, partitions: Iterable[Partition], paths: Sequence[str]) -> int:
    """Write the records that the options take; return how many there are.

    Raises UsageError where pyarrow is missing, or the file cannot be written there: before anything is read.
    """
    options = dump.options
    if find_spec("pyarrow") is None:
        raise UsageError(f"-o {options.output} needs pyarrow: pip install 'kdump[arrow]'")
    from kdump.arrow import files as column_files
    from kdump.arrow import stream
    from kdump.arrow.columns import schema_of

    typed = None
    if options.subject is not None and dump.decoder is not None:
        from kdump.arrow.typed import TypedColumns
        from kdump.schemas.typed import typed_sides

        typed = TypedColumns(typed_sides(dump.decoder, options.subject))
    names = options.arrow_names(typed)
    with _opened(dump, paths) as out:
        batches = stream.joined(_batches(dump, partitions, names, typed))
        rows = column_files.write(options.output, schema_of(names, typed), batches, out)
        dump.session.progress.clear()
    dump.finish(out, rows, found=bool(rows))
    return rows


@contextmanager
def _opened(dump: RecordSource, paths: Sequence[str]) -> Iterator[BinaryIO]:
    """Return the output of the columns: the named file, or standard output."""
    target = dump.options.out
    if target is None:
        with open_output(escape=False) as out:
            yield out
        return
    files.writable_file(target, overwrite=dump.options.overwrite)
    files.outside(paths, target)
    with files.new_file(target, force=dump.options.overwrite, note=dump.session.note) as part:
        yield part


def _batches(
    dump: RecordSource, partitions: Iterable[Partition], names: tuple[str, ...], typed: TypedColumns | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of partitions, without the secrets in them, and redacted where that is asked for."""
    from kdump.arrow.stream import RowStream

    reader, options, redactor = dump.reader(), dump.options, dump.redactor
    hides = not options.show_secrets
    secrets = Secrets()

    def shown(item: SelectedBatch) -> Iterator[SelectedBatch]:
        for one in secrets.without(item) if hides else [item]:
            yield one if redactor is None else redactor(one)

    rows = RowStream(
        reader,
        names,
        lambda item: dump.lost(item, None),
        change=shown if hides or redactor is not None else None,
        changes=lambda part: redactor is not None or (hides and may_hold_secrets(part.topic)),
        typed=typed,
    )
    met = map(dump.met, partitions)
    if options.stops_early:
        yield from _first(dump, rows, met)
    else:
        yield from rows.batches(met)


def _first(dump: RecordSource, rows: RowStream, partitions: Iterable[Partition]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that --limit, --head and --tail leave."""
    left = dump.options.limit
    for partition in partitions:
        if left is not None and left <= 0:
            return
        items = dump.first(dump.stream(rows.reader, partition), left)
        for batch in rows.of_items(partition, items):
            left = None if left is None else left - batch.num_rows
            yield batch
