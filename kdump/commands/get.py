"""``kdump get``: one record, or its batch, field by field."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from kdump.command_line import options as shared
from kdump.command_line import session
from kdump.command_line.dump_options import TABLE_BATCH, TABLE_RECORD, named_columns
from kdump.command_line.limit_options import in_paths
from kdump.errors import SILENT, DamageError, ExitStatus, Reporter, UsageError, offsets_text
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.remote import shown_paths
from kdump.log_reader.batch_selection import Take
from kdump.log_reader.filter import Filter
from kdump.log_reader.reader import PartitionReader
from kdump.output.stdout import is_terminal, open_output
from kdump.primitives.terminal import harmless, terminal_width
from kdump.printers.output_formats import PrintOptions
from kdump.records.record_batch import misnumbered
from kdump.rows import columns as rows
from kdump.rows.redaction import Secrets, bare
from kdump.rows.selection import DamagedRange, SegmentFacts, SelectedBatch
from kdump.segments.lazy_records import ReadAgain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kdump.formats.record import Record
    from kdump.log_dirs.partition import Partition
    from kdump.records.field_map import FieldBytes
    from kdump.records.record_batch import RecordBatch
    from kdump.rows.redaction import AnyDamage, Redactor
    from kdump.segments.regions import Damage


@click.command()
@click.argument("what", metavar="[TOPIC-PARTITION]@OFFSET")
@in_paths("A log dir, folder, segment or archive.")
@shared.add([shared.LEFTOVERS])
@shared.add(shared.REMOTE)
@click.option("--batch", is_flag=True, help="Print the whole batch that holds the offset.")
@click.option("--hexdump", is_flag=True, help="Print every byte, with the name and value of its field.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(("text", "jsonl", "table")),
    default="text",
    show_default=True,
    help="A line per field, JSON lines, or a table of a few columns.",
)
@click.option(
    "--fields",
    multiple=True,
    metavar="A,B,...",
    help="Only these columns of the record, in this order.",
    shell_complete=shared.in_list(lambda _: [column.name for column in rows.RECORD]),
)
@shared.add(shared.DECODE)
@shared.add(shared.PRIVACY)
@shared.add(shared.LIMITS)
def command(
    what: str,
    paths: tuple[str, ...],
    *,
    batch: bool,
    hexdump: bool,
    output: str,
    fields: tuple[str, ...],
    decode: str,
    max_batch_bytes: int,
    **given: Any,
) -> int:
    """Show one record, or its batch, field by field.

    \b
    Examples:
      kdump get orders-0@1234 --in /var/kafka
      kdump get orders-0@1234 --in /var/kafka --hexdump
      kdump get orders-0@1234 --in bundle.tar.gz --batch -o jsonl
      kdump get __consumer_offsets-3@17 --in /var/kafka --decode auto
      kdump get orders-0@1234 --in /var/kafka --remote /var/tiered
      kdump get @1234 --in segment-of-a-customer.log

    @1234 alone selects this offset in every partition in PATH. If no PATH has the partition, kdump searches the PATHs
    that are segments, or folders of segments, without a topic in the folder's name. A wrong crc of the batch is an
    error on standard error. --batch and --hexdump show the batch of an unreadable record.

    Exit status: 0 found; 1 something cannot be read; 2 wrong usage; 3 damage was found; 4 only an index is wrong; 5 the
    files lack the record.
    """
    found = re.fullmatch(r"(?:(.+)-(\d{1,20}))?@(\d{1,20})", what, re.ASCII)
    if found is None:
        raise UsageError(f"{what!r} names no record: write it as orders-0@1234 (partition 0 of orders, offset 1234)")
    if hexdump and (output != "text" or decode != "none" or fields):
        raise UsageError("--hexdump cannot be combined with -o, --fields or --decode")
    offset = int(found[3])
    run = session.Session()
    redacted = shared.redacted_fields(given["redact"], decode)
    hide = Hide(
        no_payload=given["no_payload"],
        redactor=shared.redactor(redact=bool(given["redact"]), file=given["redact_key"], fields=redacted),
        decode=decode != "none" and (bool(redacted) or not given["redact"]),
        secrets=None if given["show_secrets"] else Secrets(),
        fields=fields,
    )
    hide.columns  # noqa: B018  raises UsageError for an unknown column
    wanted = Wanted(leftovers=given["leftovers"], max_batch_bytes=max_batch_bytes, remote=shared.remote_storage(given))
    partitions = partitions_of(found[1], found[2], paths, run, wanted)
    decoder = None
    if decode != "none":
        decoder = shared.payload_decoder({**given, "decode": decode}, paths, run, wanted)
    reader = PartitionReader(
        filter=Filter(first_offset=offset, last_offset=offset),
        take=Take.BATCHES if batch or hexdump else Take.RECORDS,
        decoder=decoder,
        include_damaged=True,
        report=Reporter(run.damage, run.wrong_index, fail=run.fail),
    )
    there = False
    with open_output() as out:
        for part in partitions:
            epochs: list[int | None] = []
            for item in reader.read(part):
                if isinstance(item, DamagedRange):
                    run.damaged_range(item.file.name, hide.damage(item.damage, item.file))
                else:
                    there = True
                    epochs.append(item.batch.partition_leader_epoch)
                    show(item, out, run, hide, offset=None if batch else offset, hexdump=hexdump, output=output)
            if len(epochs) > 1:
                run.note(_twice(part.name, offset, epochs))
        held, damage = (None, None) if there else covering(partitions, offset)
        if held is not None and damage is not None and (batch or hexdump):
            show(held, out, run, hide, offset=None, hexdump=hexdump, output=output)
    run.sum_up()
    if decoder is not None:
        shared.hint_at_schemas(decoder, run)
        shared.warn_of_absent_fields(hide.redactor, run)
    if there:
        return run.status
    if held is not None and damage is not None:
        where = f"{_offsets(held)} has a correct CRC, but a broken record"
        run.damage(f"{what} cannot be read: {where}: {hide.damage(damage, held.file).reason}")
        return run.status
    run.statuses.add(ExitStatus.ABSENT)
    removed = "does not have this record: compaction removed it"
    why = f"{_offsets(held)} {removed}" if held is not None else missing(partitions, offset)
    why += "" if held is not None else _in_remote_storage(partitions, offset)
    unread = " in the readable files" if ExitStatus.UNREADABLE in run.statuses else ""
    nothing = f"no segment of {found[1]}-{found[2]}" if found[1] else "no segment"
    nowhere = f"{nothing} is in {shown_paths(paths)}"
    run.note(f"{what} was not found{unread}: {why or nowhere}")
    return run.status


def partitions_of(
    topic: str | None, number: str | None, paths: tuple[str, ...], run: session.Session, wanted: Wanted
) -> list[Partition]:
    """Return the folders of a partition (``topic`` None: of all). If absent: those PATHs that are logs of no topic."""
    if topic is None:
        return list(Finder(wanted, run.report).find(paths))
    one = wanted._replace(topics=(topic,), partitions=frozenset({int(number or 0)}))
    partitions = list(Finder(one, run.report, brief=True).find(paths))
    if partitions:
        return partitions
    every = Finder(wanted._replace(remote=None), run.report, brief=True).find(paths)
    return [part for part in every if part.topic is None and part.is_named]


@dataclass(frozen=True)
class Hide:
    """The options that hide parts of records: payloads left out or hashed, secrets, and the selected columns."""

    no_payload: bool
    redactor: Redactor | None
    decode: bool = False
    secrets: Secrets | None = None
    """Hides passwords and credentials; None shows them."""
    fields: tuple[str, ...] = ()

    @cached_property
    def columns(self) -> tuple[rows.Column, ...]:
        """The columns of a record. Raises UsageError for unknown or hidden names in --fields."""
        left_out = shared.KEY_COLUMNS | shared.VALUE_COLUMNS if self.no_payload else frozenset()
        known = (*rows.RECORD, rows.DECODED) if self.decode else rows.RECORD
        if self.fields:
            return named_columns(self.fields, known, left_out, decodes=self.decode)
        return tuple(column for column in known if column.name not in left_out)

    def found(self, item: SelectedBatch) -> SelectedBatch:
        """Hide secrets and hash payloads. With --no-payload, :attr:`columns` lacks the columns of payloads instead."""
        if self.secrets is not None:
            (item,) = self.secrets.without(item)
        return item if self.redactor is None else self.redactor(item)

    def parts(self, item: SelectedBatch, offset: int | None) -> Iterator[FieldBytes]:
        """Return the fields of a batch header and of the record at ``offset`` (None: all), hidden as required."""
        from kdump.records import field_map

        parts = field_map.parts(item.batch, offset)
        if self.no_payload:
            return field_map.hidden(parts)
        if self.redactor is None or item.batch.is_control:
            return parts if self.secrets is None else self.secrets.parts(item, parts)
        return field_map.hidden(parts, self.redactor.hash)

    def _shows_values(self, file: SegmentFacts, damage: Damage | DamageError) -> bool:
        """Return whether an error may show the invalid value of a field, which may be a part of a payload."""
        if self.no_payload or self.redactor is not None:
            return False
        return self.secrets is None or not self.secrets.may_be_in(file, damage)

    def damage(self, damage: AnyDamage, file: SegmentFacts) -> AnyDamage:
        return damage if self._shows_values(file, damage) else bare(damage)


def show(
    item: SelectedBatch,
    out: BinaryIO,
    run: session.Session,
    hide: Hide,
    *,
    offset: int | None,
    hexdump: bool,
    output: str,
) -> None:
    """Print the record in ``item`` (``hexdump``: after the batch header), or its whole batch if ``offset`` is None."""
    if hexdump:
        out.write(f"{item.file.name}\n".encode("utf-8", "backslashreplace"))
        try:
            _write_bytes(hide.parts(item, offset), out, terminal_width() if is_terminal() else None)
        except DamageError as damage:
            run.damage(f"{item.file.name}: batch at byte {item.batch.position}: {hide.damage(damage, item.file)}")
        return
    if offset is None:
        item = item._replace(records=whole(item.batch))
    item = hide.found(item)
    if output == "table":
        _tables(item, hide, batch=offset is None)
        return
    if output == "jsonl":
        from kdump.printers.record_rows import JsonLines

        if offset is None:
            JsonLines(out, PrintOptions(rows.BATCH, batches=True)).found(item)
        JsonLines(out, PrintOptions(hide.columns)).found(item)
        return
    from kdump.printers.cells import cell, cell_in_pieces

    if offset is None:
        for column in rows.BATCH:
            text = cell(column, item, None, "auto")
            _write(out, column, None if text is None else [text])
        out.write(b"\n")
    for number, record in enumerate(item.records):
        out.write(b"\n" if number else b"")
        for column in hide.columns:
            pieces = cell_in_pieces(column, item, record, "auto")  # an escaped payload can take four times its size
            _write(out, column, None if pieces is None else map(harmless, pieces()))


def _tables(item: SelectedBatch, hide: Hide, *, batch: bool) -> None:
    from kdump.printers.table import Tables

    columns: Sequence[rows.Column] = hide.columns
    if not hide.fields:
        shown = rows.with_decoded_payloads(columns) if hide.decode else columns
        columns = [column for column in shown if column.name in TABLE_RECORD]
    if batch:
        of_batch = [column for column in rows.BATCH if column.name in TABLE_BATCH]
        header = Tables(sys.stdout, PrintOptions(of_batch, batches=True))
        header.found(item)
        header.end()
    records = Tables(sys.stdout, PrintOptions(columns))
    records.found(item)
    records.end()


def whole(batch: RecordBatch) -> Sequence[Record]:
    """Return the records of a batch up to the first unreadable one."""
    count = 0
    with suppress(DamageError):
        for _ in batch.records():
            count += 1
    return ReadAgain(batch, lambda *_: True, count)


NAME: Final = 19
ROOM: Final = 8
"""NAME is the width of the column of names, ROOM the minimum width of that of values."""


def _write(out: BinaryIO, column: rows.Column, pieces: Iterable[str] | None) -> None:
    """Print a cell in pieces. None prints null, unless the column is optional."""
    if pieces is None and column.optional:
        return
    out.write(f"{column.name:<{NAME}} ".encode())
    room = max(terminal_width() - NAME - 1, ROOM) if is_terminal() and column.name != "file" else 0
    left = room
    for text in ["null"] if pieces is None else pieces:
        for part in text if room > 0 and not text.isascii() else [text]:
            rest = part
            while room > 0 and len(rest.encode("utf-8", "replace")) > left:
                taken = left if rest.isascii() else 0  # a character outside ASCII takes up to two columns
                out.write(f"{rest[:taken]}\n{'':{NAME}} ".encode())
                rest, left = rest[taken:], room
            out.write(rest.encode())
            left -= len(rest.encode("utf-8", "replace"))
    out.write(b"\n")


def covering(partitions: list[Partition], offset: int) -> tuple[SelectedBatch | None, DamageError | None]:
    """Return the batch that covers ``offset``, or None, and the error in the batch's records, or None."""
    for item in _near(partitions, offset):
        if item.base_offset <= offset <= item.batch.last_offset:
            try:
                return item, misnumbered(item.batch, [record.offset for record in item.batch.records()])
            except DamageError as damage:
                return item, damage.with_traceback(None)  # the traceback would keep the decompressed bytes in memory
    return None, None


def missing(partitions: list[Partition], offset: int) -> str:
    """Return a text on the valid batches before and after an absent offset; empty if there is no segment."""
    found = [(part, text) for part in partitions if (text := _around(part, offset))]
    return found[0][1] if len(found) == 1 else "; ".join(f"{part.name}: {text}" for part, text in found)


def _around(part: Partition, offset: int) -> str:
    before = after = None
    for item in _near([part], offset):
        if item.batch.last_offset < offset:
            before = item.batch.last_offset
        elif after is None:
            after = item.base_offset
    if before is None and after is None:
        return "no valid batch is in its segments" if part.segments else ""
    log = "named part of the log" if part.unnamed else "log"
    if before is None:
        return f"the {log} begins at offset {after}"
    return f"the last offset of the {log} is {before}" if after is None else f"offset {after} follows offset {before}"


def _in_remote_storage(partitions: list[Partition], offset: int) -> str:
    """Return a clause if ``offset`` may be in remote storage (below the first segment, not below log start), or ""."""
    from kdump.answers.collector import Place
    from kdump.log_dirs.log_dir_state import LogDirStates

    states = LogDirStates(SILENT)
    for part in partitions:
        first = part.segments[0].base_offset if part.segments else None
        start = Place(part, states.of(part)).log_start
        if first is not None and start is not None and start <= offset < first:
            return (
                f", and the log start offset is {start}: the record may be in remote storage (--remote PATH reads it)"
            )
    return ""


def _near(partitions: list[Partition], offset: int) -> Iterator[SelectedBatch]:
    """Yield all valid batches of the segment that may hold ``offset``, and of its neighbours, for each partition."""
    reader = PartitionReader(take=Take.BATCHES, outcomes=False, report=SILENT)
    for part in partitions:
        at = max((n for n, where in enumerate(part.segments) if (where.base_offset or 0) <= offset), default=0)
        for item in reader.read(part, part.segments[max(0, at - 1) : at + 2]):
            if isinstance(item, SelectedBatch):
                yield item


def _twice(name: str | None, offset: int, epochs: list[int | None]) -> str:
    known = ", ".join(str(epoch) for epoch in epochs if epoch is not None)
    of = f" (leader epochs {known}): the batch with the highest epoch counts (KIP-101)" if known else ""
    return f"{name or 'the segment'}: {len(epochs)} batches hold offset {offset}{of}"


def _offsets(item: SelectedBatch) -> str:
    return f"the batch of {offsets_text(item.base_offset, item.batch.last_offset)}"


_WIDE, _NARROW = 16, 8
"""Number of bytes in a line: normally, and on a terminal of fewer than _ROOM columns."""
_ROOM: Final = 126
_INDENT: Final = 13


def _write_bytes(parts: Iterable[FieldBytes], out: BinaryIO, width: int | None) -> None:
    """Write position (with + in decompressed bytes), hex bytes, name and value of each field, and payloads as ASCII."""
    from kdump.records.field_map import PAYLOADS

    bytes_per_line = _WIDE if width is None or width >= _ROOM else _NARROW
    for part in parts:
        for at in range(0, max(1, len(part.data)), bytes_per_line):
            row = part.data[at : at + bytes_per_line]
            place = f"{'+' if part.unpacked else ' '}{part.position + at:08x}"
            line = f"{place}  {row.hex(' '):{3 * bytes_per_line - 1}}  {'' if at else part.name:<20}  "
            value = "" if at else str(part.value)
            if part.name in PAYLOADS and row:
                letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
                value = f"{value:<12}  |{letters}|"
            if width is not None and len(line) + len(value) > width:
                line = f"{line.rstrip()}\n{'':{_INDENT}}"
            out.write(f"{line}{value}".rstrip().encode() + b"\n")
