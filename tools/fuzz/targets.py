"""The targets of the fuzzer: functions of bytes that must return, or raise one of kdump's own errors."""

from __future__ import annotations

import contextlib
import functools
import io
import multiprocessing
import multiprocessing.util
import os
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from kdump import kernel
from kdump.checks import whole_partition as check
from kdump.checks.log_dir import LogDirs
from kdump.dump_log_segments import Options, decoders
from kdump.dump_log_segments.dialects import payload as dialects_payload
from kdump.dump_log_segments.dialects import segments as dialects
from kdump.dump_log_segments.dispatch import dump_files
from kdump.dump_log_segments.run import DumpRun
from kdump.errors import SILENT, DamageError, UnreadableError
from kdump.formats import producer_snapshot
from kdump.formats.offset_index import OffsetIndex
from kdump.formats.record_layout import BatchHeader
from kdump.formats.time_index import TimeIndex
from kdump.internal_topics.decode import decode
from kdump.log_dirs.file_names import FILES
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_reader.batch_selection import Take
from kdump.log_reader.filter import Filter
from kdump.log_reader.reader import PartitionReader
from kdump.log_salvage import merge
from kdump.log_salvage.merge import Account
from kdump.primitives import compression
from kdump.primitives.wire import Bytes, write_varint
from kdump.printers.classic_text import DumpText
from kdump.printers.output_formats import PrintOptions
from kdump.printers.record_rows import JsonLines, Plain, Separated
from kdump.records.magic_2 import Batch
from kdump.records.record_batch import RecordBatch
from kdump.rows.redaction import Redactor
from kdump.rows.selection import DamagedRange, SelectedBatch
from kdump.segments.resync import read
from kdump.segments.walk import walk

if TYPE_CHECKING:
    from kdump.dump_log_segments.decoders.texts import Parser
    from kdump.kernel.internal_topics import Payloads
    from kdump.log_dirs.partition import Partition
    from kdump.printers.output_formats import Printer
    from kdump.segments.regions import OnError

if kernel.COMPILED:
    from kdump.dump_log_segments.decoders import kernel_texts
    from kdump.kernel import arrow, lines
    from kdump.kernel.indexes import EntryCheck
    from kdump.kernel.records import Cursor, Records

BESIDE = ("index", "timeindex", "txnindex")
PLACE = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  folders of random names go there
LIMIT = 1 << 20
ON_ERROR: tuple[OnError, ...] = ("stop", "skip", "resync")
TOPICS = (
    "__consumer_offsets",
    "__transaction_state",
    "__cluster_metadata",
    "__remote_log_metadata",
    "__share_group_state",
)

Target = Callable[[bytes], None]


class Broken(Exception):  # noqa: N818  it is a finding, not an error of kdump
    """A property of a target does not hold."""


class Memory:
    """A source in memory."""

    name = "memory"

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)
        self.limit = LIMIT

    def read(self, position: int, size: int) -> bytes:
        return self._data[position : position + size]


def segment(data: bytes) -> None:
    """Read a segment in every way; each byte belongs to exactly one region."""
    for on_error in ON_ERROR:
        position = 0
        for region in read(Memory(data), on_error=on_error):
            if region.position != position or region.size <= 0:
                raise Broken(f"{on_error}: a region at {region.position}, expected at {position}: {region}")
            position += region.size
            if isinstance(region, RecordBatch):
                with contextlib.suppress(DamageError):
                    for record in region.records(LIMIT):
                        if record.size <= 0:
                            raise Broken(f"a record of {record.size} bytes")
        if position != len(data):
            raise Broken(f"{on_error}: regions of {position} bytes in {len(data)}")
    if sum(region.size for region in walk(Memory(data), limit=LIMIT)) != len(data):
        raise Broken("the walk loses bytes")


def codec(data: bytes) -> None:
    """Decompress the bytes after the first one, which selects the magic, with every codec."""
    for number in (compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD):
        with contextlib.suppress(DamageError):
            out = compression.decompress(number, data[1:], magic=data[0] % 3 if data else 2, limit=LIMIT)
            if len(out) > LIMIT:
                raise Broken(f"{compression.NAMES[number]}: {len(out)} bytes came out")


def state(data: bytes) -> None:
    """Read every kind of file beside a log."""
    for index in (OffsetIndex(data, 5), TimeIndex(data, 5)):
        entries = list(index)
        index.lookup(len(data))
        if len(entries) != index.filled:
            raise Broken(f"{len(entries)} entries of {index.filled}")
    producer_snapshot.inspect(data)
    for reader in _readers():
        with contextlib.suppress(DamageError):
            reader(data)


@functools.cache
def _readers() -> list[Callable[[bytes], object]]:
    """Return the readers of whole files in the table."""
    names = sorted({file.format for file in FILES if file.format} - {"record_layout", "offset_index", "time_index"})
    return [import_module(f"kdump.formats.{name}").read for name in [*names, "rsm_manifest"]]


def archive(data: bytes) -> None:
    """Read a file that may be an archive, and every segment in it."""
    path = Path(_scratch(), "archive.tar")
    path.write_bytes(data)
    for partition in Finder(Wanted(leftovers=True, max_batch_bytes=LIMIT), SILENT).find([str(path)]):
        for each in partition.segments:
            with each.open() as source:
                if sum(region.size for region in read(source, on_error="resync")) != source.size:
                    raise Broken(f"{each.name}: the regions lose bytes")


def partition(data: bytes) -> None:
    """Run the whole check, a dry start, look-ups and a merge on a log and the files beside it.

    Three sizes of two bytes come first, of the files beside the log.
    """
    folder = Path(_scratch(), "t-0")
    folder.mkdir(exist_ok=True)
    at = len(BESIDE) * 2
    for number, suffix in enumerate(BESIDE):
        size = int.from_bytes(data[2 * number : 2 * number + 2], "big")
        (folder / f"00000000000000000000.{suffix}").write_bytes(data[at : at + size])
        at += size
    (folder / "00000000000000000000.log").write_bytes(data[at:])
    wanted = Wanted(leftovers=True, siblings=True, max_batch_bytes=LIMIT)
    for found in Finder(wanted).find([str(folder)]):
        check.check(found, check.CheckOptions(), LogDirs())
        _salvage(found)
        bare = found._replace(segments=tuple(each._replace(siblings={}) for each in found.segments))
        for taken in (Filter(first_offset=20, last_offset=40), Filter(since=1_700_000_000_000)):
            lines = [_offsets(PartitionReader(filter=taken).read(each)) for each in (found, bare)]
            if lines[0] != lines[1]:
                raise Broken(f"{taken}: with indexes {lines[0]}, without {lines[1]}")


def _salvage(found: Partition) -> None:
    """Compare one pass over a copy with two passes."""
    placed, twice = merge.merge([found])
    content = b"".join(region.raw for region in merge.batches(placed))
    once = Account()
    with contextlib.suppress(merge.OutOfOrderError):
        if b"".join(region.raw for region in merge.in_one_pass(found, once)) != content:
            raise Broken("one pass over a copy places other batches than two")
        reported = [{**vars(account), "gaps": list(account.gaps)} for account in (once, twice)]
        if reported[0] != reported[1]:
            raise Broken(f"one pass over a copy gives {reported[0]}, two give {reported[1]}")


def _offsets(items: Iterable[SelectedBatch | DamagedRange]) -> list[int]:
    return [record.offset for item in items if isinstance(item, SelectedBatch) for record in item.records]


def payload(data: bytes) -> None:
    """Decode a record of Kafka's own topics as values and as text. The first byte is the size of the key."""
    at = 1 + (data[0] if data else 0)
    key, value = data[1:at], data[at:]
    for topic in TOPICS:
        decode(topic, key, value)
        decode(topic, None, data)
    pairs = ((key, value), (None, data), (key, None))
    body = b"".join(_record(number, *pair) for number, pair in enumerate(pairs))
    for decode_lines, parse in _decoders():
        wanted = [_decoded(parse, number, *pair) for number, pair in enumerate(pairs)]
        if decode_lines is not None and (printed := _lines_of(decode_lines, body, 0, len(pairs))) != b"".join(wanted):
            raise Broken(f"the kernel and the decoder print differently:\n{printed!r}\n{wanted!r}")


def _decoded(parse: Parser, offset: int, key: bytes | None, value: bytes | None) -> bytes:
    """Return the texts of a decoder, or that it refuses the record."""
    try:
        return b"".join(parse(offset, key, value).parts(" ", " "))
    except DamageError:
        return b"refused"


def _record(offset: int, key: bytes | None, value: bytes | None) -> bytes:
    """Return a record of magic 2 of a batch that begins at offset 0."""
    body = b"\0\0" + write_varint(offset)
    for data in (key, value):
        body += write_varint(-1) if data is None else write_varint(len(data)) + data
    return write_varint(len(body) + 1) + body + b"\0"


def _lines_of(made: Payloads, body: Bytes, at: int, count: int) -> bytes:
    """Return the lines that the kernel prints for up to ``count`` well-formed records from ``at`` on."""
    header = BatchHeader(0, 0, 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, count)
    if not made.begin(body, at, header, ()):
        return b""
    made.gaps.clear()
    return bytes(made.lines(None, lines.Shape([[b"", lines.slots(())["decoded"]]] * 4), 1 << 40))


@functools.cache
def _decoders() -> list[tuple[Payloads | None, Parser]]:
    """Return the decoder switches of some releases, with and without the kernel."""
    made: list[tuple[Payloads | None, Parser]] = []
    for release in ("2.8", "3.4", "4.2.2", "4.3"):
        for switch in decoders.PARSERS:
            if switch in dialects.find(release).options:
                dialect = dialects_payload.find(release)
                parse = decoders.PARSERS[switch](dialect)
                made.append((_payloads(parse) if kernel.COMPILED else None, parse))
    return made


def _payloads(parse: Parser) -> Payloads:
    """Return the kernel's writer for a decoder switch."""
    fronts = kernel_texts.Fronts(" key: ", " payload: ", " payload: ")
    return kernel_texts.payloads(parse, fronts, functools.partial(_decoded, parse))


def in_kernel(data: bytes) -> None:
    """Compare the lines of a segment of the kernel and of the general path, in every output format."""
    with _segment_of(data) as path:
        for release in ("4.3", "2.8", "1.0"):
            results = _both(functools.partial(_printed, path, release))
            if results[0] != results[1]:
                raise Broken(f"{release}: they print differently:\n" + "\n".join(map(repr, results))[:4000])
        for name, printer in PRINTERS_OF_ROWS.items():
            rows = _both(functools.partial(_rows, path, printer))
            if rows[0] != rows[1]:
                raise Broken(f"{name} differ:\n" + "\n".join(map(repr, rows))[:4000])


def in_kernel_alone(data: bytes) -> None:
    """Run every function of the kernel on a segment: for builds in which the compiler checks memory accesses."""
    if not kernel.COMPILED:
        raise Broken("there is no kernel to try")
    some = {"offsets": (3, 1 << 40), "times": (0, 1_700_000_000_000)}
    columns = [arrow.ArrowColumns(arrow.COLUMNS), arrow.ArrowColumns(arrow.COLUMNS, **some)]
    for region in walk(Memory(data)):
        if isinstance(region, Batch):
            with contextlib.suppress(DamageError):
                _batch_in_kernel(region, columns)
    for made in columns:
        rows = made.rows
        for name, buffers in made.take().items():
            if buffers.length != rows:
                raise Broken(f"{name}: a column of {buffers.length} values for {rows} records")
    with _segment_of(data) as path:
        for release in ("4.3", "1.0"):
            _printed(path, release)
        for printer in PRINTERS_OF_ROWS.values():
            _rows(path, printer)
        _hold(path, data)


def _batch_in_kernel(batch: Batch, columns: list[arrow.ArrowColumns]) -> None:
    """Let every part of the kernel read a batch. Raises DamageError if it cannot be decompressed."""
    body, start = batch.payload()
    cursor, objects = Cursor(), Records()
    if cursor.begin(body, start, batch.header, ()):
        cursor.sound()
        cursor.spans()
        cursor.agrees()
    if objects.begin(body, start, batch.header, ()):
        objects.records(LIMIT)
    for made in columns:
        _add(made, body, start, batch)
    for decode_lines, _ in _decoders():
        if decode_lines is not None:
            _lines_of(decode_lines, body, start, batch.count)


def _hold(path: Path, data: bytes) -> None:
    """Compare index entries with a segment: entries of its batches, and its own bytes as entries."""
    batches = [(region.position, region.last_offset) for region in walk(Memory(data)) if isinstance(region, Batch)]
    near = [(position, last) for position, last in batches if 0 <= last < 1 << 31]
    offsets = b"".join(struct.pack(">ii", last, position) for position, last in near)
    times = b"".join(struct.pack(">qi", last, last) for _, last in near)
    with path.open("rb") as log:
        for base in (0, 1 << 62):
            held = EntryCheck(log.fileno(), len(data), LIMIT, base)
            for entries in (offsets, data):
                held.by_offset(entries, 0, len(entries) // 8, bytearray(len(entries) // 8))
            for entries in (times, data):
                held.by_time(entries, offsets, 0, len(entries) // 12, bytearray(len(entries) // 12))
            held.by_time(times, data, 0, len(near), bytearray(len(near)))


def _add(made: arrow.ArrowColumns, body: Bytes, start: int, batch: Batch) -> None:
    """Add the records of a batch to columns: all of them that are wanted, or none."""
    before = made.rows
    taken = made.add(body, start, batch.header)
    if not (0 <= made.rows - before <= batch.count if taken else made.rows == before):
        raise Broken(f"{made.rows - before} rows of a batch of {batch.count}, taken: {taken}")


@contextlib.contextmanager
def _segment_of(data: bytes) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile(prefix="0", suffix=".log", dir=_scratch()) as file:
        file.write(data)
        file.flush()
        path = Path(file.name).with_name("00000000000000000007.log")
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        os.link(file.name, path)
        yield path


@functools.cache
def _scratch() -> str:
    folder = tempfile.mkdtemp(prefix="kdump-fuzz-", dir=PLACE)
    multiprocessing.util.Finalize(None, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=1)
    return folder


def _both(answer: Callable[[], object]) -> tuple[object, object]:
    """Return the result with the kernel, if it is compiled, and the result without it."""
    compiled = kernel.COMPILED
    found = answer()
    kernel.COMPILED = False  # type: ignore[misc]  # for this answer
    try:
        return found, answer()
    finally:
        kernel.COMPILED = compiled  # type: ignore[misc]  # as it was


def _printed(path: Path, release: str) -> tuple[object, ...]:
    """Return the classic lines of a segment, the error that ends them, and the gaps."""
    out = io.BytesIO()
    options = Options(print_data_log=True, deep_iteration=True, max_batch_bytes=LIMIT)
    run = DumpRun(dialects.find(release), options, out)
    error = ""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            dump_files(run, [str(path)])
    except (DamageError, UnreadableError) as reason:
        error = str(reason)
    return out.getvalue(), error, run.gaps


REDACTOR = Redactor(b"secret")
PRINTERS_OF_ROWS: dict[str, Callable[[BinaryIO], Printer]] = {
    "JSON lines": JsonLines,
    "values of JSON": lambda out: JsonLines(out, PrintOptions(encoding="json")),
    "values in hex": lambda out: JsonLines(out, PrintOptions(encoding="hex")),
    "hashes": lambda out: JsonLines(out, PrintOptions(redactor=REDACTOR)),
    "CSV": Separated,
    "CSV in base64": lambda out: Separated(out, PrintOptions(encoding="base64")),
    "lines of a format": lambda out: Plain(out, PrintOptions(template="%t %o %T %k %s %h %K %S %R\\n")),
    "texts of hashes": lambda out: DumpText(out, PrintOptions(redactor=REDACTOR)),
    "texts in hex": lambda out: DumpText(out, PrintOptions(encoding="hex")),
    "texts without values": lambda out: DumpText(out, PrintOptions(values=False)),
}


def _rows(path: Path, make: Callable[[BinaryIO], Printer]) -> bytes:
    """Return the output of a printer for a segment."""
    out = io.BytesIO()
    reader = PartitionReader(take=Take.RUNS, include_damaged=True, report=SILENT)
    printer = make(out)
    for partition in Finder(Wanted(max_batch_bytes=LIMIT)).find([str(path)]):
        for item in reader.read(partition):
            if isinstance(item, DamagedRange):
                printer.lost(item)
            else:
                printer.found(item)
    return out.getvalue()


TARGETS: dict[str, Target] = {
    "segment": segment,
    "codec": codec,
    "state": state,
    "payload": payload,
    "archive": archive,
    "partition": partition,
    "kernel": in_kernel,
    "kernel-alone": in_kernel_alone,
}
