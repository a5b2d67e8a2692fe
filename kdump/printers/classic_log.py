"""The lines of a segment in a dialect: batches, records, what is left at the end."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from kdump import ahead, runs
from kdump.codecs import NONE
from kdump.errors import DamageError
from kdump.formats import log
from kdump.formats.batch import HEADER, Batch
from kdump.formats.message import Message
from kdump.lines import line
from kdump.pieces import TIMESTAMP_TYPES, Damage, Record, RecordBatch, Trailing
from kdump.printers.classic_entries import EntryLines
from kdump.printers.classic_legacy import LegacyLines, RecordLines
from kdump.printers.classic_lines import FastLines
from kdump.printers.classic_names import absolute
from kdump.runs import Entries, Run
from kdump.segment import LocalFile, Window
from kdump.text import java_utf8
from kdump.wire import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from kdump.dialects import Dialect
    from kdump.kernel.lines import Lines
    from kdump.pieces import Piece
    from kdump.printers.classic import Classic, Options
    from kdump.printers.classic_decoders import Decoders
    from kdump.printers.payloads.texts import Parser, Texts
    from kdump.segment import Source
    from kdump.wire import Bytes

    Field: TypeAlias = Callable[[str], object]


def dump(run: Classic, path: str, decoders: Decoders) -> None:
    """Print the lines of one segment. Raises what ends the original, with the same lines printed before."""
    options = run.options
    deep = options.deep_iteration or (options.print_data_log and run.dialect.print_is_deep)
    with (
        LocalFile(path) as source,
        closing(_pieces(source, options, deep=deep)) as pieces,
    ):
        printer = LogPrinter(run, path, decoders)
        for piece in pieces:
            if isinstance(piece, Run):
                printer.like(piece, deep=deep)
            elif isinstance(piece, Entries):
                printer.entries.run(piece, head=not deep or run.dialect.batches_beside_records, deep=deep)
            elif isinstance(piece, RecordBatch):
                printer.batch(piece, deep=deep)
            elif isinstance(piece, Trailing) and options.max_bytes == INT32_MAX:
                if run.dialect.sizes_overflow:
                    printer.overflow(source, piece.position, deep=deep)
                run.trailing(source, piece.size)
            elif isinstance(piece, Damage):
                raise DamageError(
                    piece.kind,
                    f"{path}: {piece.reason}",
                    position=piece.at,
                    expected=piece.expected,
                    found=piece.found,
                )
        run.close(source)


def _pieces(source: Source, options: Options, *, deep: bool) -> Generator[Piece | Run | Entries, None, None]:
    end = end_of(source.size, options)
    leash = ahead.Leash(source)
    return ahead.read(
        runs.walk(leash, 0, end, Window(leash, end), limit=options.max_batch_bytes, packed=deep, old=True),
        leash,
        end,
        unpack=deep,
    )


def end_of(size: int, options: Options) -> int:
    """Return where to stop in a segment of ``size`` bytes: the greatest --max-bytes stands for no limit."""
    return size if options.max_bytes == INT32_MAX else min(size, options.max_bytes)


class LogPrinter:
    """Prints the batches of one segment and remembers the last offset."""

    def __init__(self, run: Classic, path: str, decoders: Decoders) -> None:
        dialect = run.dialect
        self.run = run
        self.path = path
        self.decoders = decoders
        self.out: BinaryIO = run.out
        self.last_offset = -1
        self.armed = dialect.gaps_before_first
        self.batch_line = [line(text) for text in dialect.batch]
        self.legacy_batch_line = [line(text) for text in dialect.legacy_batch]
        self.record_line = [line(text) for text in dialect.record]
        self.legacy_record_line = [line(text) for text in dialect.legacy_record]
        self.contents = [contents(run, bool(null & 1), bool(null & 2)) for null in range(4)]
        self.fast = FastLines(self)
        self.entries = EntryLines(self)
        self.legacy = LegacyLines(self)
        self.lines = RecordLines(self)

    def like(self, run: Run, *, deep: bool) -> None:
        """Print batches that are like each other, and their records when ``deep``."""
        head = not deep or self.run.dialect.batches_beside_records
        row = 0
        while row < run.count:
            row, done = self.fast.run(run, row, head=head, deep=deep)
            if row < run.count:
                if done:
                    self.rest(run.batch(row), done, head=head, deep=deep)
                else:
                    self.batch(run.batch(row), deep=deep)
                row += 1

    def batch(self, batch: RecordBatch, *, deep: bool) -> None:
        """Print a batch, and its records when ``deep``."""
        head = not deep or self.run.dialect.batches_beside_records
        if not head and isinstance(batch, Message) and batch.magic < 0 and batch.codec == NONE:
            batch = batch.read_as(1)  # only the line of a batch, which is not printed here, minds the magic
        done = self.fast.batch(batch, head=head, deep=deep) if isinstance(batch, Batch) else 0
        if done is not None:
            self.rest(batch, done, head=head, deep=deep)

    def rest(self, batch: RecordBatch, done: int, *, head: bool, deep: bool) -> None:
        """Print what is left of a batch when ``done`` of its records are printed, and its own line with them."""
        try:
            if head and not done:
                self.header(batch)
            if not deep:
                return
            limit = self.run.options.max_batch_bytes
            entries: Iterable[Record | Message]
            if isinstance(batch, Message):
                printed = self.entries.wrapper(batch)
                entries = () if printed is None else islice(batch.messages(limit), printed, None)
            else:
                entries = islice(batch.records(limit), done, None)
            for entry in entries:
                self.record(batch, entry)
        except DamageError as damage:
            told = damage.at(batch.position)
            told.reason = f"{self.path}: batch at {batch.position}: {damage.reason}"
            raise told from damage

    def overflow(self, source: Source, position: int, *, deep: bool) -> None:
        """Die as the original does of a batch whose end, reckoned in 32 bits, is negative: it is not behind the file's.

        The first part of its line, which needs the header alone, is printed. Does nothing where the end is no such one.
        """
        head = source.read(position, HEADER.size)
        if len(head) < log.UP_TO_MAGIC:
            return
        overhead = log.OVERHEAD.read(head)
        end = position + log.OVERHEAD.size + overhead.size
        if end <= INT32_MAX:
            return
        magic = int.from_bytes(head[log.MAGIC_POSITION : log.UP_TO_MAGIC], "big", signed=True)
        if not deep:
            batch = log.read(memoryview(head), overhead.offset, overhead.size, magic, position)
            parts = self.legacy_batch_line if isinstance(batch, Message) else self.batch_line
            self.out.write(parts[0].render(self.fields(batch)).encode())
        raise DamageError(
            "record size",
            f"{self.path}: a batch ends behind 2 GiB, which this release takes for the middle of the file",
            position=position + log.OVERHEAD.offsets["size"],
            expected=f"an end at {source.size} or before",
            found=end,
        )

    def header(self, batch: RecordBatch) -> None:
        """Print the line of a batch."""
        line = self.legacy.head(batch) if isinstance(batch, Message) else None
        if line is not None:
            self.out.write(line)
        else:
            value = self.fields(batch)
            for part in self.legacy_batch_line if isinstance(batch, Message) else self.batch_line:
                self.out.write(part.render(value).encode())
        self.out.write(b"\n")

    def record(self, batch: RecordBatch, entry: Record | Message) -> None:
        """Print one record."""
        options = self.run.options
        offset = entry.offset
        if (self.last_offset != -1 or self.armed) and offset != self.last_offset + 1:
            self.gap(self.last_offset, offset)
        self.last_offset = offset
        write = self.out.write
        if not options.skip_record_metadata:
            meta = None
            if isinstance(batch, Message) and isinstance(entry, Message):
                meta = self.legacy.meta(batch, entry)
            elif isinstance(batch, Batch) and isinstance(entry, Record):
                meta = self.lines.meta(batch, entry)
            if meta is not None:
                write(meta)
            else:
                value = self.record_fields(batch, entry)
                for part in self.legacy_record_line if isinstance(batch, Message) else self.record_line:
                    write(part.render(value).encode())
            if batch.is_control:
                from kdump.printers.payloads.control import control_text

                write(control_text(entry.key, entry.value, self.run.payloads).encode())
        if options.print_data_log and not batch.is_control:
            write(b"".join(self.content(entry)))
        write(b"\n")

    def content(self, entry: Record | Message) -> Iterator[bytes]:
        """Yield the texts of key and value. They are printed together: a value that cannot be read hides its key."""
        if self.run.parser is not None:
            yield from parsed(self.run.parser, entry).parts(*self.run.fronts)
            return
        for text, name in self.contents[(entry.key_size < 0) + 2 * (entry.value_size < 0)]:
            data = entry.key if name == "key" else entry.value
            if data is not None:
                yield text + getattr(self.decoders, name)(data)

    def lead(self, kernel: Lines) -> None:
        """Tell the kernel where it goes on."""
        kernel.last_offset, kernel.armed = self.last_offset, self.armed

    def follow(self, kernel: Lines, lines: Bytes) -> None:
        """Print lines that the kernel has made, and go on behind them."""
        self.out.write(lines)
        for last, current in kernel.gaps:
            self.gap(last, current)
        kernel.gaps.clear()
        self.last_offset = kernel.last_offset

    def gap(self, last: int, current: int) -> None:
        self.run.gaps.setdefault(absolute(self.path), []).append((last, current))

    def fields(self, batch: RecordBatch) -> Field:
        """Return what gives the fields of a batch line by name."""

        def value(name: str) -> object:
            if name == "codec":
                return codec_name(self.run.dialect, batch.codec)
            if name == "timestamp_type":
                return TIMESTAMP_TYPES[batch.timestamp_type]
            if name == "is_valid":
                return batch.crc_valid
            return getattr(batch, name)

        return value

    def record_fields(self, batch: RecordBatch, entry: Record | Message) -> Field:
        """Return what gives the fields of a record line by name: the record's own, else those of its batch."""
        of_batch = self.fields(batch)

        def value(name: str) -> object:
            if name == "header_keys":
                return ",".join(java_utf8(header.key) for header in entry.headers) if isinstance(entry, Record) else ""
            if name == "is_valid":
                return entry.crc_valid is not False
            if name in RECORD_FIELDS:
                return getattr(entry, name)
            return of_batch(name)

        return value


def parsed(parser: Parser, entry: Record | Message) -> Texts:
    """Return what a decoder switch makes of a record."""
    key = entry.key if entry.key_size >= 0 else None
    return parser(entry.offset, key, entry.value if entry.value_size >= 0 else None)


RECORD_FIELDS = frozenset({"offset", "timestamp", "key_size", "value_size", "sequence", "crc"})


def codec_name(dialect: Dialect, codec: int) -> str:
    """Return the release's name of a codec. Raises DamageError when it does not know it."""
    if codec >= len(dialect.codecs):
        raise DamageError("codec", f"this release has no compression codec {codec}", found=codec)
    return dialect.codecs[codec]


def contents(run: Classic, null_key: bool, null_value: bool) -> list[tuple[bytes, str]]:
    """Return what shows key and value: a text, and which of the two is behind it."""
    options, dialect = run.options, run.dialect
    if not options.print_data_log or (dialect.key_needs_value and null_value):
        return []
    bare = options.skip_record_metadata
    texts = []
    if not null_key:
        texts.append((b"| key: " if bare else b" key: ", "key"))
    if not null_value:
        prefix = dialect.bare_payload if bare and null_key else " "
        texts.append((f"{prefix}payload: ".encode(), "value"))
    return texts
