"""The options of ``kdump dump``, checked against each other, and the settings that follow from them."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from kdump import kernel
from kdump.command_line import option_values
from kdump.command_line import options as shared
from kdump.errors import UsageError
from kdump.log_reader.batch_selection import Take
from kdump.log_reader.filter import Filter
from kdump.log_reader.reader import ReadStart
from kdump.output.stdout import is_terminal
from kdump.parallel.costs import Effort
from kdump.primitives import compression
from kdump.printers import colours
from kdump.printers.output_formats import COLUMNAR, WHOLE, PrintOptions
from kdump.rows import columns as rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from kdump.arrow.typed import TypedColumns
    from kdump.primitives.encodings import Encoding
    from kdump.printers.colours import Paint
    from kdump.rows.columns import Column
    from kdump.rows.redaction import Redactor
    from kdump.segments.regions import OnError

COLUMN_FILES: Final = ("parquet", "arrow")
"""Formats with binary columns; they have the columns of the Arrow stream of ``kdump.open``."""
TABLE_RECORD: Final = ("topic", "partition", "offset", "timestamp", "key", "value")
TABLE_BATCH: Final = (
    "topic",
    "partition",
    "baseOffset",
    "lastOffset",
    "count",
    "maxTimestamp",
    "codec",
    "position",
    "batchSize",
    "producerId",
)
MARK: Final = "crcValid"
"""The column that marks batches with a wrong checksum."""


def _place(text: str) -> ReadStart:
    file, _, position = text.rpartition("@")
    if not (file and re.fullmatch(r"[0-9]{1,20}", position)):
        raise UsageError(f"--begin {text}: expected FILE@BYTE, such as orders-0/00000000000000000000.log@16384")
    return ReadStart(file, int(position))


def named_columns(
    fields: Sequence[str], known: Iterable[Column], hidden: Collection[str], *, decodes: bool
) -> tuple[Column, ...]:
    """Return the columns that --fields names: columns of ``known``, and fields of decoded payloads.

    Raises UsageError for unknown, ``hidden`` and unprintable names, and for fields of payloads unless ``decodes``.
    """
    names = [part.strip() for part in ",".join(fields).split(",")]
    of_payloads = [column for column in map(rows.decoded_field, names) if column is not None]
    if of_payloads and not decodes:
        raise UsageError(f"--fields {of_payloads[0].name} is a field of a decoded payload: add --decode auto")
    if rows.DECODED.name in names and not decodes:
        raise UsageError(f"--fields {rows.DECODED.name}: add --decode auto")
    for column in of_payloads:
        if not column.name.isprintable():
            raise UsageError(f"--fields {column.name!r}: the name has a character that cannot be printed")
    columns = tuple(option_values.one_of(fields, (*known, *of_payloads), lambda column: column.name, "column"))
    for column in columns:
        if column.name in hidden or (column.scope == rows.FIELD and column.name.partition(".")[0] in hidden):
            raise UsageError(f"--fields {column.name}: --keys-only and --no-payload omit this column")
    return columns


class DumpOptions:
    """The options of ``kdump dump``, checked against each other, and properties that depend on them."""

    def __init__(self, given: dict[str, Any]) -> None:
        """``given``: parsed values by parameter name; those of inputs and filters are removed. Raises KdumpError."""
        self.output: str = given["output"]
        self.wanted = shared.wanted(given).for_form(self.output)
        self.filter = shared.filter_of(given)
        self.template: str | None = given["template"]
        """The format string of -f, which replaces ``output``."""
        self.batches: bool = given["batches"]
        self.limit: int | None = given["limit"]
        self.head: int | None = given["head"]
        self.tail: int | None = given["tail"]
        self.count: bool = given["count"]
        self.encoding: Encoding = given["encoding"]
        self.subject: str | None = given["subject"]
        self.decode: str = "auto" if self.subject is not None and given["decode"] == "none" else given["decode"]
        self.delimiter: str | None = given["delimiter"]
        self.fields: tuple[str, ...] = given["fields"]
        self.keys_only: bool = given["keys_only"]
        self.color: str = given["color"]
        self.no_payload: bool = given["no_payload"]
        self.redact = bool(given["redact"])
        self.redact_fields = shared.redacted_fields(given["redact"], self.decode)
        self.redact_key: str | None = given["redact_key"]
        self.show_secrets: bool = given["show_secrets"]
        self.raw_output: bool = given["raw_output"]
        self.on_error: OnError = given["on_error"]
        self.include_damaged: bool = given["include_damaged"]
        self.jobs: int | None = given["jobs"]
        """The largest number of reading processes; None lets kdump choose."""
        self.follow: bool = given["follow"]
        self.every_replica: bool = given["every_replica"]
        self.stats: bool = given["stats"]
        self.begin = None if given["begin"] is None else _place(given["begin"])
        """The place at which to begin, for the MCP server: the end of the previous page."""
        self.header_names: bool = given["header_names"]
        """Whether --no-payload keeps the headers. The MCP server shows their names."""
        self.out: str | None = given["out"]
        self.overwrite: bool = given["overwrite"]
        self.fails_without_match: bool = given["fails_without_match"]
        if self.decode != "none" and (self.filter.keys or self.filter.greps):
            self.filter = self.filter._replace(decoded=True)
        self._refuse()

    def _refuse(self) -> None:
        plain = self.template is not None or self.output == "raw"
        if self.template is not None and (self.batches or self.output != "text"):
            raise UsageError("--format cannot be combined with -o or --batches")
        if self.batches and self.output == "raw":
            raise UsageError("-o raw cannot be combined with --batches: it prints the values of records")
        if self.count and (plain or self.output != "text"):
            raise UsageError("--count prints one number: it cannot be combined with -o or --format")
        if self.delimiter is not None and self.output != "raw":
            raise UsageError("--delimiter works only with -o raw")
        if self.head is not None and self.tail is not None:
            raise UsageError("--head cannot be combined with --tail")
        if self.include_damaged and plain:
            raise UsageError(
                "--include-damaged cannot be combined with -o raw or -f, which cannot mark damaged batches"
            )
        if self.fields and self.output in {"text", "raw"}:
            raise UsageError("--fields needs a format with columns: add -o jsonl, json, csv or table")
        if (self.no_payload or self.keys_only) and plain:
            raise UsageError("--no-payload and --keys-only cannot be combined with -o raw or -f; --redact can")
        self.columns  # noqa: B018  raises UsageError for an unknown column
        if self.jobs is not None and self.jobs > 1 and self.output in WHOLE:
            raise UsageError(f"--jobs cannot be combined with -o {self.output}: one process writes it. Try -o jsonl")
        self._refuse_proof()
        self._refuse_file()
        if self.follow and self.include_damaged:
            raise UsageError("--follow cannot be combined with --include-damaged")
        if self.follow and (self.filter.committed or self.count or self.head is not None or self.output in WHOLE):
            raise UsageError(
                "--follow never ends: it cannot be combined with --count, --head, -o json, -o table or --isolation "
                "read_committed"
            )

    def _refuse_file(self) -> None:
        if not self.is_column_file:
            if self.out is not None or self.overwrite:
                raise UsageError(
                    f"--out and --overwrite work only with -o {' and '.join(COLUMN_FILES)}: "
                    "redirect the output of other formats"
                )
            if self.subject is not None:
                raise UsageError(
                    f"--subject works only with -o {' and '.join(COLUMN_FILES)}: "
                    "other formats have the column `decoded`"
                )
            return
        unfit = {
            "--batches": self.batches,
            "--encoding": self.encoding != "auto",
            "--include-damaged": self.include_damaged,
            "--redact": self.redact and not self.redact_fields,
            "--follow": self.follow,
            "--jobs above 1": (self.jobs or 1) > 1,
        }
        for option, is_given in unfit.items():
            if is_given:
                raise UsageError(f"{option} cannot be combined with -o {self.output}")
        if self.subject is not None and self.redact_fields:
            raise UsageError(shared.TYPES_WITHOUT_HASHES)
        if self.output == "parquet" and self.out is None:
            raise UsageError("-o parquet needs a file: name it with --out FILE")
        if self.overwrite and self.out is None:
            raise UsageError("--overwrite needs --out")
        if self.out is None and is_terminal():
            raise UsageError("-o arrow is binary: name a file with --out FILE, or send it through a pipe")

    @property
    def is_column_file(self) -> bool:
        return self.template is None and self.output in COLUMN_FILES

    def arrow_names(self, typed: TypedColumns | None) -> tuple[str, ...]:
        """Return the names of the Arrow or Parquet columns. Raises UsageError for other names in --fields."""
        from kdump.arrow import stream

        if self.fields:
            chosen = [column.name for column in self.columns]
            return stream.names(chosen, decoded=self.decode != "none", typed=typed)
        known = stream.names(None, decoded=True, typed=typed)
        return tuple(column.name for column in self.columns if column.name in known)

    def _refuse_proof(self) -> None:
        if self.stats and (self.follow or (self.jobs or 1) > 1):
            raise UsageError("--stats cannot be combined with --follow or with --jobs above 1")
        if self.begin is not None and (self.tail is not None or self.follow):
            raise UsageError("--begin cannot be combined with --tail or --follow")
        if self.redact_fields and (self.jobs or 1) > 1:
            raise UsageError("--redact with fields cannot be combined with --jobs above 1")
        if self.fails_without_match and self.follow:
            raise UsageError("--fail-without-match cannot be combined with --follow")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The selected columns; with --include-damaged also :data:`MARK`."""
        columns = self._chosen()
        if not self.include_damaged or any(column.name == MARK for column in columns):
            return columns
        return (*columns, *(column for column in self._known if column.name == MARK))

    @property
    def _known(self) -> tuple[Column, ...]:
        return rows.BATCH if self.batches else rows.RECORD

    def _chosen(self) -> tuple[Column, ...]:
        known = self._known
        if self.decode != "none":
            has_columns = self.output in COLUMNAR or self.is_column_file
            is_shown = (has_columns or self.format_name == "text") and not self.count
            if self.batches or not (is_shown or self.filter.decoded):
                raise UsageError(
                    "--decode cannot be combined with --batches. With --count, -o raw or -f it needs --key or --grep, "
                    "to search decoded records"
                )
            if self.redact and not self.redact_fields:
                raise UsageError(shared.DECODE_NEEDS_FIELDS)
            known = (*known, rows.DECODED)
            if self.subject is not None:
                known = (*known, *rows.TYPED)
        hidden = shared.VALUE_COLUMNS if self.keys_only or self.no_payload else frozenset()
        if self.no_payload:
            hidden |= shared.KEY_COLUMNS
        if self.header_names:
            hidden -= {"headers"}
        if self.fields:
            return named_columns(self.fields, known, hidden, decodes=self.decode != "none")
        names = {column.name for column in known}
        if self.output == "table":
            names = set(TABLE_BATCH if self.batches else TABLE_RECORD)
            if self.decode != "none":
                known = rows.with_decoded_payloads(known)
        return tuple(column for column in known if column.name in names - hidden)

    @property
    def format_name(self) -> str:
        """The name of the output format: a key of :data:`kdump.printers.output_formats.PRINTERS`, parquet or arrow."""
        return self.output if self.template is None else "format"

    def printing(self, redactor: Redactor | None) -> PrintOptions:
        return PrintOptions(
            columns=self.columns,
            batches=self.batches,
            encoding=self.encoding,
            keys=not self.no_payload,
            values=not (self.no_payload or self.keys_only),
            template=self.template,
            delimiter="\\n" if self.delimiter is None else self.delimiter,
            redactor=redactor,
            decodes=self.decode != "none",
        )

    @property
    def paint(self) -> Paint | None:
        """The function that colours lines; None for output without colours."""
        wanted = not self.count and colours.are_wanted(self.color, terminal=is_terminal())
        searched = () if self.redact else self.filter.greps
        return colours.painter(self.format_name, searched) if wanted else None

    @property
    def stops_early(self) -> bool:
        return any(number is not None for number in (self.limit, self.head, self.tail))

    @property
    def per_partition(self) -> int | None:
        """About the number of records that are read in each partition; None for all, also if a filter reads them."""
        return None if self.filter.looks_into_records else self.tail if self.head is None else self.head

    @property
    def counting(self) -> bool:
        """Whether --count is given, without --batches, --limit, --head and --tail."""
        return self.count and not self.batches and not self.stops_early

    @property
    def may_be_parallel(self) -> bool:
        """Whether several processes may print.

        False on a terminal and with colours, because processes write bytes unchanged, with --jobs 1, and for options
        such as --limit and --follow. Without --jobs also False for a filter by offset or time.
        """
        if (
            self.stats
            or self.begin is not None
            or self.redact_fields
            or self.limit is not None
            or self.head == 0
            or self.follow
            or self.output in WHOLE
            or self.paint is not None
            or is_terminal()
        ):
            return False
        return not self.filter.is_bounded if self.jobs is None else self.jobs > 1

    @property
    def effort(self) -> Effort:
        """The amount of work for each record, which determines the number of processes."""
        if self.batches and not self.filter.looks_into_records:
            return Effort.HEADERS
        is_printed = not (self.batches or self.count)
        if is_printed and (self.redact or self.encoding == "json" or self.decode != "none"):
            return Effort.COSTLY
        has_runs = self.take is Take.UNCHECKED_RUNS and not self.include_damaged
        if is_printed and has_runs and self.wanted.max_batch_bytes >= compression.DEFAULT_LIMIT:
            return Effort.LINES
        return Effort.SOME

    @property
    def take(self) -> Take:
        if self.batches:
            return Take.BATCH_RUNS if self.limit is None and self.head is None else Take.BATCHES
        if self.counting:
            return Take.COUNT
        if self.is_column_file or not kernel.COMPILED or (self.format_name == "table" and is_terminal()):
            return Take.RECORDS
        is_left_to_printer = not (self.stops_early or self.follow or self.format_name == "table")
        return Take.UNCHECKED_RUNS if is_left_to_printer and self.filter.takes_runs else Take.RUNS

    @property
    def shows_outcomes(self) -> bool:
        return self.output in COLUMNAR and any(column.name == "transactionState" for column in self.columns)

    @property
    def excludes_records(self) -> bool:
        """Whether a filter, --topic, --partition or a limit of 0 may leave out records."""
        none = 0 in (self.limit, self.head, self.tail)
        return bool(none or self.filter != Filter() or self.wanted.topics or self.wanted.partitions)
