"""Give every reader bytes that nobody meant for it: each must answer, or raise the errors that kdump raises on purpose.

    python -m tools.fuzz                               2,000 seeded inputs for each target
    python -m tools.fuzz kernel --count 100000 --seed 7 --jobs 2
    python -m tools.fuzz --count 10000 --report "every reader"
                                                       the figures into that section of golden/reports/fuzz.md
    python -m tools.fuzz kernel-alone --count 100000 --golden
                                                       for a kernel built with --address or --bounds
                                                       (tools.dev.build_kernel): every golden file as it is, too
    python -m tools.fuzz segment codec --coverage 600 --report "Guided by coverage"
                                                       each guided by coverage for 600 s (needs `pip install atheris`)

Inputs are mutations of golden files (tools/fuzz/mutations) and noise. An input that breaks a target is written to
tests/hostile/TARGET-DIGEST, where tests/tools/test_fuzz.py tries it again for ever. Exit status 1 when there is one.
"""

import argparse
import contextlib
import functools
import gzip
import hashlib
import io
import multiprocessing
import multiprocessing.util
import os
import shutil
import struct
import tarfile
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace

from kdump import kernel
from kdump.checks import everything as check
from kdump.checks.log_dir import LogDirs
from kdump.dump_log_segments import dialects, kernel_lines
from kdump.dump_log_segments import kernel_messages as classic_entries
from kdump.dump_log_segments.decoders import programs, switches
from kdump.dump_log_segments.decoders.texts import Parser
from kdump.dump_log_segments.dialects import payload as dialects_payload
from kdump.dump_log_segments.dispatch import dump_files
from kdump.dump_log_segments.options import Options
from kdump.dump_log_segments.run import DumpRun
from kdump.errors import DamageError, KdumpError, UnreadableError, UsageError
from kdump.formats import FORMATS, producer_snapshot
from kdump.formats.offset_index import OffsetIndex
from kdump.formats.record_layout import BatchHeader
from kdump.formats.time_index import TimeIndex
from kdump.internal_topics.decode import decode
from kdump.kernel import arrow, lines
from kdump.kernel import batches as kernel_batches
from kdump.kernel import messages as kernel_messages
from kdump.kernel.cursor import Cursor
from kdump.kernel.indexes import Held
from kdump.kernel.payloads import Payloads
from kdump.kernel.records import Records
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_reader.filter import Filter
from kdump.log_reader.reader import PartitionReader
from kdump.primitives import compression
from kdump.primitives.wire import Bytes, write_varint
from kdump.printers.jsonl import JsonLines
from kdump.records.magic_2 import Batch
from kdump.records.record_batch import RecordBatch
from kdump.rows.selection import DamagedRange, SelectedBatch
from kdump.salvage.merge import merge
from kdump.segments import batch_runs
from kdump.segments.read import read
from kdump.segments.regions import OnError
from kdump.segments.walk import walk
from testing import GOLDEN, ROOT
from tools.dev import build_kernel
from tools.fuzz import mutations
from tools.fuzz.mutations import segments, whole
from tools.fuzz.report import Figures

FOUND = ROOT / "tests" / "hostile"
BESIDE = ("index", "timeindex", "txnindex")
STEP = 1000
"""Inputs that are tried between two looks at the figures."""
PLACE = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  folders of random names go there
LIMIT = 1 << 20
SECONDS = 10
"""An input that takes longer counts as a hang."""
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
    """What a target promises does not hold."""


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
    """Every way of reading a segment, and the law that each byte belongs to one region."""
    for on_error in ON_ERROR:
        position = 0
        for region in read(Memory(data), on_error=on_error, limit=LIMIT):
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
    """Every codec on the bytes behind the first one, which chooses the magic."""
    for number in (compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD):
        with contextlib.suppress(DamageError):
            out = compression.decompress(number, data[1:], magic=data[0] % 3 if data else 2, limit=LIMIT)
            if len(out) > LIMIT:
                raise Broken(f"{compression.NAMES[number]}: {len(out)} bytes came out")


def state(data: bytes) -> None:
    """Every file beside a log."""
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
    """The readers of whole files, every one of the table."""
    names = sorted(set(FORMATS.values()) - {"record_layout", "offset_index", "time_index"})
    return [import_module(f"kdump.formats.{name}").read for name in names]


def archive(data: bytes) -> None:
    """A file that may be an archive, and every segment in it."""
    path = Path(_scratch(), "archive.tar")
    path.write_bytes(data)
    for partition in Finder(Wanted(leftovers=True, max_batch_bytes=LIMIT), fail=lambda _: None).find([str(path)]):
        for each in partition.segments:
            with each.open() as source:
                if sum(region.size for region in read(source, on_error="resync")) != source.size:
                    raise Broken(f"{each.name}: the regions lose bytes")


def partition(data: bytes) -> None:
    """A folder of a log and what stands beside it: the whole check, a dry run of a start, look-ups, a merge.

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
        merge([found])
        bare = replace(found, segments=tuple(replace(each, siblings={}) for each in found.segments))
        for taken in (Filter(first_offset=20, last_offset=40), Filter(since=1_700_000_000_000)):
            lines = [_offsets(PartitionReader(filter=taken).read(each)) for each in (found, bare)]
            if lines[0] != lines[1]:
                raise Broken(f"{taken}: with indexes {lines[0]}, without {lines[1]}")


def _offsets(items: Iterable[SelectedBatch | DamagedRange]) -> list[int]:
    return [record.offset for item in items if isinstance(item, SelectedBatch) for record in item.records]


def payload(data: bytes) -> None:
    """Every decoder of Kafka's own records, typed and in words; the first byte is the size of the key."""
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
    """Return what a decoder prints, or that it refuses."""
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
    """Return what the compiled kernel prints of ``count`` records from ``at`` on, as far as they are well-formed."""
    header = BatchHeader(0, 0, 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, count)
    if not made.begin(body, at, header, ()):
        return b""
    made.gaps.clear()
    return bytes(made.lines(None, lines.Shape([[b"", lines.slots(())["decoded"]]] * 4), 1 << 40))


@functools.cache
def _decoders() -> list[tuple[Payloads | None, Parser]]:
    """The decoder switches that some releases have, by the compiled kernel, and as they are."""
    made: list[tuple[Payloads | None, Parser]] = []
    before = programs.Before(" key: ", " payload: ", " payload: ")
    for release in ("2.8", "3.4", "4.2.2", "4.3"):
        for switch in switches.PARSERS:
            if switch in dialects.find(release).options:
                dialect = dialects_payload.find(release)
                parse = switches.PARSERS[switch](dialect)
                general = functools.partial(_decoded, parse)
                program = programs.PROGRAMS[switch](dialect, before)
                made.append((Payloads(program, general) if kernel.COMPILED else None, parse))
    return made


def in_kernel(data: bytes) -> None:
    """The lines of a segment from the active kernel, from the same source as plain Python, and from no kernel.

    Those of JSON from the compiled kernel and from none, which is what plain Python has.
    """
    with _segment_of(data) as path:
        for release in ("4.3", "2.8", "1.0"):
            results = [_printed(path, release, build) for build in (lines, _plain().lines, None)]
            if results[1:] != results[:-1]:
                raise Broken(f"{release}: the builds print differently:\n" + "\n".join(map(repr, results))[:4000])
        objects = [_objects(path, unread=unread) for unread in (kernel.COMPILED, False)]
        if objects[0] != objects[1]:
            raise Broken("JSON lines differ:\n" + "\n".join(map(repr, objects))[:4000])


def in_kernel_alone(data: bytes) -> None:
    """All that the active kernel does with a segment: for builds in which the compiler watches the memory."""
    columns = _columns()
    for region in walk(Memory(data)):
        if isinstance(region, Batch):
            with contextlib.suppress(DamageError):
                body, start = region.payload()
                cursor, objects = Cursor(), Records()
                if cursor.begin(body, start, region.header, ()):
                    cursor.sound()
                    cursor.spans()
                    cursor.facts()
                if objects.begin(body, start, region.header, ()):
                    objects.records(LIMIT)
                for made in columns:
                    _add(made, body, start, region)
                for decode_lines, _ in _decoders():
                    if decode_lines is not None:
                        _lines_of(decode_lines, body, start, region.count)
    for made in columns:
        rows = made.rows
        for name, buffers in made.take().items():
            if buffers.length != rows:
                raise Broken(f"{name}: a column of {buffers.length} values for {rows} records")
    with _segment_of(data) as path:
        for release in ("4.3", "1.0"):
            _printed(path, release, lines)
        _objects(path, unread=kernel.COMPILED)
        if kernel.COMPILED:
            _hold(path, data)


def _hold(path: Path, data: bytes) -> None:
    """Hold entries of indexes against a segment: those of its batches, and its own bytes taken for entries."""
    batches = [(region.position, region.last_offset) for region in walk(Memory(data)) if isinstance(region, Batch)]
    near = [(position, last) for position, last in batches if 0 <= last < 1 << 31]
    offsets = b"".join(struct.pack(">ii", last, position) for position, last in near)
    times = b"".join(struct.pack(">qi", last, last) for _, last in near)
    with path.open("rb") as log:
        for base in (0, 1 << 62):
            held = Held(log.fileno(), len(data), LIMIT, base)
            for entries in (offsets, data):
                held.by_offset(entries, 0, len(entries) // 8, bytearray(len(entries) // 8))
            for entries in (times, data):
                held.by_time(entries, offsets, 0, len(entries) // 12, bytearray(len(entries) // 12))
            held.by_time(times, data, 0, len(near), bytearray(len(near)))


def _columns() -> list[arrow.Columns]:
    """Columns of all fields, of all records and of some; none where the kernel is plain Python: they are not for it."""
    if not kernel.COMPILED:
        return []
    some = {"offsets": (3, 1 << 40), "times": (0, 1_700_000_000_000)}
    return [arrow.Columns(arrow.COLUMNS), arrow.Columns(arrow.COLUMNS, **some)]


def _add(made: arrow.Columns, body: Bytes, start: int, batch: Batch) -> None:
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


@functools.cache
def _plain() -> SimpleNamespace:
    return build_kernel.in_python()


def _printed(path: Path, release: str, build: ModuleType | None) -> tuple[object, ...]:
    out = io.BytesIO()
    options = Options(print_data_log=True, deep_iteration=True, max_batch_bytes=LIMIT)
    run = DumpRun(dialects.find(release), options, out)
    fast = kernel_lines.FastLines
    kept = kernel_lines.Lines, kernel_lines.Shape, fast.batch, batch_runs.run, batch_runs.batches
    old = classic_entries.Messages, classic_entries.Shape, classic_entries.EntryLines.wrapper, batch_runs.entries
    error = ""
    try:
        if build is None:
            fast.batch = lambda *_args, **_options: 0
            classic_entries.EntryLines.wrapper, batch_runs.entries = lambda *_: 0, lambda *_: None
            batch_runs.run = lambda *_: None
        else:
            kernel_lines.Lines, kernel_lines.Shape = build.Lines, build.Shape
            messages = kernel_messages if build is lines else _plain().messages
            batch_runs.batches = kernel_batches if build is lines else _plain().batches
            classic_entries.Messages, classic_entries.Shape = messages.Messages, build.Shape
        with contextlib.redirect_stderr(io.StringIO()):
            dump_files(run, [str(path)])
    except (DamageError, UnreadableError) as reason:
        error = str(reason)
    finally:
        kernel_lines.Lines, kernel_lines.Shape, fast.batch, batch_runs.run, batch_runs.batches = kept
        classic_entries.Messages, classic_entries.Shape, classic_entries.EntryLines.wrapper, batch_runs.entries = old
    return out.getvalue(), error, run.gaps


def _objects(path: Path, *, unread: bool) -> bytes:
    """The same as JSON lines, with ``unread`` through the kernel where it takes them."""
    out = io.BytesIO()
    reader = PartitionReader(unread=unread, include_damaged=True, fail=lambda _: None)
    printer = JsonLines(out)
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


def inputs(target: str, seed: int, count: int, first: int = 0) -> Iterator[bytes]:
    """Yield seeded inputs for a target."""
    for number in range(first, first + count):
        random = Random(f"{target}:{seed}:{number}")
        if random.random() < 0.05:
            yield random.randbytes(random.randrange(300))
        elif target == "state" and random.random() < 0.4:
            yield random.choice(whole.KINDS)(random, random.choice(_texts()))
        elif target == "state":
            mutant = mutations.of_state(random, number)
            yield mutant.files[mutant.target]
        elif target in {"segment", "kernel", "kernel-alone"}:
            mutant = mutations.of_segment(random, number)
            yield mutant.files[mutant.target]
        elif target == "codec":
            yield bytes([random.randrange(256)]) + random.choice(whole.KINDS)(random, random.choice(_streams()))
        elif target == "archive":
            yield random.choice(whole.KINDS)(random, random.choice(_archives()))
        elif target == "partition":
            yield _packed(
                mutations.of_state(random, number) if random.random() < 0.7 else mutations.of_segment(random, number)
            )
        else:
            key, value = random.choice(_payloads())
            key, value = key[:255], random.choice(whole.KINDS)(random, value) if value else value
            if key and random.random() < 0.3:
                key = random.choice(whole.KINDS)(random, key)[:255]
            yield bytes([len(key)]) + key + value


def _golden_files() -> Iterator[bytes]:
    """Yield what every golden file holds that is no recording."""
    for path in sorted(GOLDEN.rglob("*")):
        if path.is_file() and path.suffix not in {".jsonl", ".tsv", ".md"}:
            yield path.read_bytes()


@functools.cache
def _texts() -> list[bytes]:
    """The golden files of lines that brokers keep beside their logs."""
    found = [path for name in FORMATS if not name.startswith(".") for path in sorted(GOLDEN.rglob(name))]
    return [data for path in found if (data := path.read_bytes())]


@functools.cache
def _archives() -> list[bytes]:
    """Archives of a few golden segments: tar in its three forms with links and holes, packed and not; a packed file."""
    subjects = [data for _, data in zip(range(3), segments.segments().values(), strict=False)]
    found = [gzip.compress(subjects[0]), compression.compress(compression.ZSTD, subjects[0])]
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=form) as tar:
            for number, data in enumerate(subjects):
                info = tarfile.TarInfo(f"logs/t-{number}/00000000000000000000.log")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            for kind, target in ((tarfile.SYMTYPE, "../t-1/00000000000000000000.log"), (tarfile.LNKTYPE, info.name)):
                link = tarfile.TarInfo(f"logs/t-{kind[0]}/00000000000000000000.log")
                link.type, link.linkname = kind, target
                tar.addfile(link)
        found += [out.getvalue(), gzip.compress(out.getvalue())]
    return found


def _packed(mutant: mutations.Mutant) -> bytes:
    """Return the input of the target partition that a mutant stands for."""
    by_suffix = {name.rpartition(".")[2]: data for name, data in mutant.files.items()}
    beside = [by_suffix.get(suffix, b"")[:0xFFFF] for suffix in BESIDE]
    log = by_suffix.get("log") or _a_log(mutant.number)
    return b"".join(len(data).to_bytes(2, "big") for data in beside) + b"".join(beside) + log


def _a_log(number: int) -> bytes:
    """Return a golden segment."""
    logs = sorted(segments.segments())
    return segments.segments()[logs[number % len(logs)]]


@functools.cache
def _streams() -> list[bytes]:
    """The compressed bodies of golden batches, and those bodies in every codec."""
    found = []
    for data in segments.segments().values():
        for entry in segments.split(data):
            plain = segments.unpacked(entry)
            if plain is not None and plain[0] != compression.NONE:
                found.append(entry[segments.body_of(entry) :])
    bodies = [compression.compress(number, found[number]) for number in range(1, 5)]
    return found + bodies


@functools.cache
def _payloads() -> list[tuple[bytes, bytes]]:
    """Keys and values of Kafka's own topics."""
    found = []
    for name, data in segments.segments().items():
        if "/__" in name:
            for region in read(Memory(data)):
                if isinstance(region, RecordBatch):
                    found += [(record.key or b"", record.value or b"") for record in region.records()]
    return found


def attempt(target: str, data: bytes) -> str:
    """Try one input; return what went wrong, empty when nothing did."""
    started = time.process_time()
    try:
        TARGETS[target](data)
    except (KdumpError, Broken) as error:
        return f"{type(error).__name__}: {error}" if isinstance(error, Broken | UsageError) else ""
    except Exception:
        return traceback.format_exc()
    spent = time.process_time() - started
    return f"hang: {spent:.0f} s" if spent > SECONDS else ""


def keep(target: str, data: bytes) -> Path:
    """Write an input where the tests find it."""
    FOUND.mkdir(exist_ok=True)
    path = FOUND / f"{target}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return path


def work(job: tuple[str, int, int, int]) -> Counter[str]:
    """Try a stretch of the inputs of a target."""
    target, seed, first, count = job
    return tried(target, inputs(target, seed, count, first))


def tried(target: str, data_of: Iterable[bytes]) -> Counter[str]:
    """Try inputs on a target; those that break it are kept and told of."""
    tally: Counter[str] = Counter()
    for data in data_of:
        tally["inputs"] += 1
        tally["bytes"] += len(data)
        if wrong := attempt(target, data):
            tally["hangs" if wrong.startswith("hang") else "crashes"] += 1
            print(f"--- {target}: {keep(target, data)}\n{wrong}", flush=True)
    return tally


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000, help="inputs for each target (%(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--coverage", type=int, metavar="SECONDS", help="guided by coverage, so long for each target")
    parser.add_argument("--golden", action="store_true", help="try every file of golden/ as it is, too")
    parser.add_argument("--report", metavar="TITLE", help="write the figures to this section of golden/reports/fuzz.md")
    options = parser.parse_args()
    wanted = options.targets or [target for target in TARGETS if target != "kernel-alone"]
    if unknown := set(wanted) - set(TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    if options.coverage:
        if find_spec("atheris") is None:
            parser.error("--coverage needs atheris: pip install atheris (it has no wheel for every Python)")
        from tools.fuzz import guided  # it imports this module

        return 0 if guided.run(wanted, options.coverage, options.report) else 1
    figures = Figures(options.seed, options.report)
    for target in wanted:
        step = max(1, min(STEP, options.count // options.jobs))
        jobs = [
            (target, options.seed, first, min(step, options.first + options.count - first))
            for first in range(options.first, options.first + options.count, step)
        ]
        if options.jobs > 1:
            with multiprocessing.Pool(options.jobs) as pool:
                for part in pool.imap_unordered(work, jobs):
                    figures.add(target, part)
        else:
            for job in jobs:
                figures.add(target, work(job))
        if options.golden:
            figures.add(f"{target}, golden files", tried(target, _golden_files()))
    print(figures.text())
    return 1 if figures.failed else 0
