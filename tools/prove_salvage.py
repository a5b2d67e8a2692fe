"""Hold `kdump salvage` against the real thing: a broker serves all records of a salvaged log dir, the tool reads it.

    python -m tools.prove_salvage [--release 4.2.2] [--cases 40] [--seed 1]

Partitions of golden/ are damaged and salvaged, some from two damaged copies. Each batch that is sound in an input must
be in the output, unchanged; DumpLogSegments of the release must call every batch valid; a broker that is started on the
salvaged log dir must serve every record that kdump reads in it to a consumer. Ends with 1 when one of these fails.
"""

import argparse
import base64
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kdump import segment
from kdump.inputs import Finder, Partition
from kdump.pieces import Record, RecordBatch
from tools import original
from tools.broker import Broker
from tools.damages import damage
from tools.prove_recovery import GOLDEN, starts_of

MAIN = [sys.executable, "-m", "kdump"]


def sources() -> list[Path]:
    """Golden partitions with records, of every release."""
    folders = [path for path in (GOLDEN / "brokers").glob("[0-9]*.[0-9]/*-*") if not path.name.startswith("_")]
    return [path for path in sorted(folders) if sum(log.stat().st_size for log in path.glob("[0-9]*.log")) > 500]


def damaged_copy(source: Path, target: Path, rng: random.Random) -> str:
    """Copy a partition and damage it; return what was done."""
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
    """Every sound batch of a partition, in the order of the files."""
    found = []
    for each in part.segments:
        with each.open() as source:
            pieces = list(segment.read(source, on_error="resync"))
        found += [piece for piece in pieces if isinstance(piece, RecordBatch)]
    return found


def line(name: str, record: Record) -> list[str]:
    """Return a record as the consumer's side writes it."""
    texts = ["null" if data is None else base64.b64encode(data).decode() + "." for data in (record.key, record.value)]
    return [name, str(record.offset), str(record.timestamp), *texts]


def unreadable(release: str, logs: Path) -> int:
    """Return how many batches the real tool does not call valid."""
    cases = {str(path): ["--files", str(path)] for path in sorted(logs.glob("*-0/*.log"))}
    bad = 0
    for run in original.runs(release, cases, logs):
        bad += run.stdout.lower().count(b"isvalid: false") + (run.status != 0) + run.stdout.count(b"invalid bytes")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="4.2.2")
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    names = [f"case{number:03}-0" for number in range(options.cases)]
    failures = 0
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        everything = sources()
        told: dict[str, str] = {}
        for name in names:
            source = rng.choice(everything)
            for copy in range(rng.choice([1, 1, 2])):
                told[name] = damaged_copy(source, place / "in" / str(copy) / name, rng)
        inputs = [str(path) for path in sorted((place / "in").iterdir())]
        subprocess.run(
            [*MAIN, "salvage", "-q", *inputs, "--out", str(place / "out")], check=False, stderr=subprocess.DEVNULL
        )
        logs = place / "out" / "logs"
        found: dict[str, set[bytes]] = {}
        for part in Finder().find(inputs):
            found.setdefault(part.name, set()).update(bytes(piece.raw) for piece in batches(part))
        expected: list[list[str]] = []
        had, lacking, strange = 0, 0, 0
        for part in Finder().find([str(logs)]):
            out = batches(part)
            had += len(out)
            raws = {bytes(piece.raw) for piece in out}
            strange += len(raws - found[part.name])
            lacking += len(found[part.name] - raws)
            for piece in out:
                expected += [line(part.name, record) for record in piece.records() if not piece.is_control]
        invalid = unreadable(options.release, logs)
        broker = Broker(options.release, place / "broker")
        with broker:
            broker.create(names)
        for name in names:
            for old in (broker.logs / name).iterdir():
                if old.name != "partition.metadata":
                    old.unlink()
            for path in (logs / name).iterdir():
                if path.name != "partition.metadata":
                    shutil.copyfile(path, broker.logs / name / path.name)
        (broker.logs / ".kafka_cleanshutdown").unlink()
        (broker.logs / "recovery-point-offset-checkpoint").unlink()
        with broker:
            served = broker.consume(names)
        served = [one for one in served if one[1] != "end"]
        missing = [one for one in expected if one not in served] if served != expected else []
        failures = strange + invalid + len(missing) + (len(served) != len(expected))
        print(f"{len(names)} partitions, {had} batches: {strange} not of the input, {invalid} not valid to the tool")
        print(f"{lacking} sound batches of the input in lost+found (doubled offsets, conflicts)")
        print(f"{len(expected)} records, {len(served)} served by a broker {options.release}, {len(missing)} missing")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
