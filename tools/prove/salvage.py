"""Test `kdump salvage` with real programs: a broker serves all records of a salvaged log dir, and the tool reads it.

    python -m tools.prove.salvage [--release 4.2.2] [--cases 40] [--seed 1]

Partitions of golden/ are damaged and salvaged, some from two damaged copies. Each batch that is valid in an input must
be in the output, unchanged; DumpLogSegments of --release and of the release that wrote the partition must call every
batch valid and every index sane; a broker of --release, started on the salvaged log dir, must serve every record that
kdump reads there, with its headers. The exit status is 1 if one of these fails.
"""

import base64
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from kdump.formats.record import Record
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.partition import Partition
from kdump.records.record_batch import RecordBatch
from kdump.segments import resync
from testing import GOLDEN
from testing.damages import damage
from testing.processes import kdump
from tools import arguments
from tools.prove.broker import Broker
from tools.prove.recovery import starts_of
from tools.record import original
from tools.record.fetch_jars import numbers


def sources() -> list[Path]:
    """Return the golden partitions with records, of every release."""
    folders = [path for path in (GOLDEN / "brokers").glob("[0-9]*.[0-9]/*-*") if not path.name.startswith("_")]
    return [path for path in sorted(folders) if sum(log.stat().st_size for log in path.glob("[0-9]*.log")) > 500]


def damaged_copy(source: Path, target: Path, rng: random.Random) -> str:
    """Copy a partition and damage it; return the change."""
    target.mkdir(parents=True)
    for path in source.iterdir():
        if path.suffix in {".log", ".index", ".timeindex", ".txnindex"}:
            shutil.copyfile(path, target / path.name)
    log = rng.choice([path for path in sorted(target.glob("*.log")) if path.stat().st_size])
    data = bytearray(log.read_bytes())
    done = [damage(data, rng, starts_of(log)) for _ in range(rng.choice([1, 1, 3]))]
    log.write_bytes(data)
    return f"{source.parent.name}/{source.name}: {', '.join(done)}"


def batches(part: Partition) -> list[RecordBatch]:
    """Return every valid batch of a partition, in the order of the files."""
    found = []
    for each in part.segments:
        with each.open() as source:
            regions = list(resync.read(source, on_error="resync"))
        found += [region for region in regions if isinstance(region, RecordBatch)]
    return found


def line(name: str, record: Record) -> list[str]:
    """Return a record in the form of the consumer."""
    headers = ",".join(f"{text(header.key)}={text(header.value)}" for header in record.headers)
    return [name, str(record.offset), str(record.timestamp), text(record.key), text(record.value), headers]


def text(data: bytes | None) -> str:
    return "null" if data is None else base64.b64encode(data).decode() + "."


def reported(release: str, folders: list[Path], expected: int) -> list[str]:
    """Return the complaints of a release's tool on salvaged partitions with ``expected`` batches."""
    logs = [path for folder in folders for path in sorted(folder.glob("*.log"))]
    cases = {str(path): ["--files", str(path)] for path in logs}
    sane = [path for folder in folders for path in sorted(folder.glob("*.*index")) if path.suffix != ".txnindex"]
    if numbers(release) < SANITY_CHECK:
        sane = []
    elif numbers(release) < TIME_INDEX:
        sane = [path for path in sane if path.suffix == ".index"]
    cases |= {str(path): ["--index-sanity-check", "--files", str(path)] for path in sane}
    wrong, valid, passed = [], 0, 0
    for run in original.runs(release, cases, folders[0]):
        out = run.stdout.lower()
        valid += out.count(b"isvalid: true")
        is_sane = b"passed sanity check" in out or b".index is empty" in out
        passed += is_sane
        if run.name.endswith("index") and not is_sane:
            wrong.append(f"{run.name}: {out[-200:]!r}")
        bad = [word for word in (b"isvalid: false", b"invalid bytes", b"corrupt") if word in out]
        if bad or run.status:
            wrong.append(f"{run.name}: status {run.status}, {bad}")
    if valid != expected or passed != len(sane):
        wrong.append(f"{valid} of {expected} batches valid, {passed} of {len(sane)} indexes sane")
    reported = f"{len(logs)} segments, {valid} batches valid, {passed} indexes sane: {len(wrong)} bad"
    print(f"DumpLogSegments {release}: {reported}")
    return wrong


SANITY_CHECK = (0, 10)
"""The first release with --index-sanity-check."""
TIME_INDEX = (0, 10, 1)
"""The first release with time indexes."""


class Held(NamedTuple):
    """The contents of salvaged partitions: batches by partition, and records in the form of a consumer."""

    batches: dict[str, int]
    records: list[list[str]]
    strange: int
    """The number of batches that are in no input."""
    lacking: int
    """The number of valid batches of the input that are in lost+found."""


def held(inputs: list[str], logs: Path) -> Held:
    """Compare the log dir ``logs`` with the inputs that it was salvaged from."""
    found: dict[str, set[bytes]] = {}
    for part in Finder().find(inputs):
        found.setdefault(part.name, set()).update(bytes(region.raw) for region in batches(part))
    counts: dict[str, int] = {}
    records: list[list[str]] = []
    strange = lacking = 0
    for part in Finder().find([str(logs)]):
        out = batches(part)
        counts[part.name] = len(out)
        raws = {bytes(region.raw) for region in out}
        strange += len(raws - found[part.name])
        lacking += len(found[part.name] - raws)
        for region in out:
            records += [line(part.name, record) for record in region.records() if not region.is_control]
    return Held(counts, records, strange, lacking)


def served(broker: Broker, names: list[str], logs: Path) -> list[list[str]]:
    """Return the records that a broker serves from the partitions of ``logs``."""
    with broker:
        broker.create(names)
    for name in names:
        for old in (broker.logs / name).iterdir():
            if old.name != "partition.metadata":
                old.unlink()
        for path in (logs / name).iterdir():
            if path.name != "partition.metadata":
                shutil.copyfile(path, broker.logs / name / path.name)
    broker.crash()
    with broker:
        return [one for one in broker.consume(names) if one[1] != "end"]


def prove(place: Path, release: str, names: list[str], rng: random.Random) -> int:
    """Damage, salvage, compare; return the number of faults."""
    everything = sources()
    lines: dict[str, list[str]] = {release: names}
    for name in names:
        source = rng.choice(everything)
        if source.parent.name != release:
            lines.setdefault(source.parent.name, []).append(name)
        for copy in range(rng.choice([1, 1, 2])):
            damaged_copy(source, place / "in" / str(copy) / name, rng)
    inputs = [str(path) for path in sorted((place / "in").iterdir())]
    kdump("salvage", "-q", *inputs, "--out", place / "out")
    logs = place / "out" / "logs"
    salvaged = held(inputs, logs)
    wrong: list[str] = []
    for one, of_line in sorted(lines.items(), key=lambda item: numbers(item[0])):
        expected = sum(salvaged.batches.get(name, 0) for name in of_line)
        wrong += reported(one, [logs / name for name in of_line], expected)
    for text in wrong:
        print(f"WRONG     {text}")
    got = served(Broker(release, place / "broker"), names, logs)
    missing = [one for one in salvaged.records if one not in got] if got != salvaged.records else []
    print(f"{len(names)} partitions, {sum(salvaged.batches.values())} batches: {salvaged.strange} not of the input")
    print(f"{salvaged.lacking} valid batches of the input in lost+found (doubled offsets, conflicts)")
    print(f"{len(salvaged.records)} records, {len(got)} served by a broker {release}, {len(missing)} missing")
    return salvaged.strange + len(wrong) + len(missing) + (len(got) != len(salvaged.records))


def main() -> int:
    options = arguments.parser(__doc__, release="4.2.2", cases=40, seed=1).parse_args()
    names = [f"case{number:03}-0" for number in range(options.cases)]
    with tempfile.TemporaryDirectory() as temporary:
        return 1 if prove(Path(temporary), options.release, names, random.Random(options.seed)) else 0


if __name__ == "__main__":
    sys.exit(main())
