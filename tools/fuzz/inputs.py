"""Seeded inputs of the fuzzer's targets: mutations of golden files, and noise."""

import functools
import gzip
import io
import tarfile
from collections.abc import Callable, Iterator
from random import Random

from kdump.log_dirs.file_names import FILES
from kdump.primitives import compression
from kdump.records.record_batch import RecordBatch
from kdump.segments.resync import read
from testing import GOLDEN
from tools.fuzz import mutations
from tools.fuzz.mutations import segments, whole
from tools.fuzz.targets import BESIDE, Memory

NOISE = 0.05
"""The share of inputs that are random bytes."""


def inputs(target: str, seed: int, count: int, first: int = 0) -> Iterator[bytes]:
    for number in range(first, first + count):
        random = Random(f"{target}:{seed}:{number}")
        yield random.randbytes(random.randrange(300)) if random.random() < NOISE else SOURCES[target](random, number)


def _segment(random: Random, number: int) -> bytes:
    mutant = mutations.of_segment(random, number)
    return mutant.files[mutant.target]


def _codec(random: Random, _: int) -> bytes:
    """Return a byte that selects the magic, and a broken compressed body."""
    return bytes([random.randrange(256)]) + random.choice(whole.KINDS)(random, random.choice(_streams()))


def _state(random: Random, number: int) -> bytes:
    """Return a broken file beside a log: a text or a file of entries."""
    if random.random() < 0.4:
        return random.choice(whole.KINDS)(random, random.choice(_texts()))
    mutant = mutations.of_state(random, number)
    return mutant.files[mutant.target]


def _archive(random: Random, _: int) -> bytes:
    return random.choice(whole.KINDS)(random, random.choice(_archives()))


def _partition(random: Random, number: int) -> bytes:
    """Return a log and the files beside it, one of them broken, in the form for the target partition."""
    return _packed(
        mutations.of_state(random, number) if random.random() < 0.7 else mutations.of_segment(random, number)
    )


def _payload(random: Random, _: int) -> bytes:
    """Return the size of a key, the key and a value of a record of Kafka's own topics, one of them broken."""
    key, value = random.choice(_payloads())
    key, value = key[:255], random.choice(whole.KINDS)(random, value) if value else value
    if key and random.random() < 0.3:
        key = random.choice(whole.KINDS)(random, key)[:255]
    return bytes([len(key)]) + key + value


SOURCES: dict[str, Callable[[Random, int], bytes]] = {
    "segment": _segment,
    "codec": _codec,
    "state": _state,
    "payload": _payload,
    "archive": _archive,
    "partition": _partition,
    "kernel": _segment,
    "kernel-alone": _segment,
}
"""Target -> function that makes an input from a seeded generator and the number of the input."""


def golden_files() -> Iterator[bytes]:
    """Yield the contents of every golden file that is not a recording."""
    for path in sorted(GOLDEN.rglob("*")):
        if path.is_file() and path.suffix not in {".jsonl", ".tsv", ".md"}:
            yield path.read_bytes()


@functools.cache
def _texts() -> list[bytes]:
    """Return the golden text files that brokers write beside their logs."""
    names = [file.name for file in FILES if "*" not in file.name and file.format not in {None, "record_layout"}]
    found = [path for name in names for path in sorted(GOLDEN.rglob(name))]
    return [data for path in found if (data := path.read_bytes())]


@functools.cache
def _archives() -> list[bytes]:
    """Return archives of some golden segments: three tar formats with links and holes, compressed and not; one file."""
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
    """Return a mutant as an input of the target partition."""
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
    """Return the compressed bodies of golden batches, and those bodies in every codec."""
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
    """Return keys and values of Kafka's own topics."""
    found = []
    for name, data in segments.segments().items():
        if "/__" in name:
            for region in read(Memory(data)):
                if isinstance(region, RecordBatch):
                    found += [(record.key or b"", record.value or b"") for record in region.records()]
    return found
