"""Hold the dry run of a broker's recovery against a real broker: many damaged logs, one log dir, one unclean start.

    python -m tools.prove_recovery [--release 4.2.2] [--cases 60] [--seed 1]

For each case a partition of golden/ is copied into the log dir of a fresh broker and damaged; some have a recovery
point in their middle, some a missing index. Then the broker starts as after a crash. Prints a line per case, and ends
with 1 when a log end offset differs from what kdump foretold.
"""

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from kdump import recovery, segment
from kdump.formats import checkpoints
from kdump.formats.checkpoints import PartitionOffset
from kdump.inputs import Finder, Partition, Wanted
from kdump.pieces import RecordBatch
from tools.broker import Broker
from tools.damages import damage

GOLDEN = Path(__file__).parent.parent / "golden"


def sources() -> list[Path]:
    """The golden partitions that hold at least one batch, and the damaged ones that do not stop a broker for good."""
    found = []
    for folder in sorted([*(GOLDEN / "brokers").glob("*/*-*"), *(GOLDEN / "damaged").iterdir()]):
        logs = list(folder.glob("[0-9]*.log")) if folder.is_dir() else []
        if logs and not folder.name.startswith("__") and max(log.stat().st_size for log in logs) > 200:
            found.append(folder)
    return found


def starts_of(path: Path) -> list[int]:
    """Where the batches of a segment begin, and its end."""
    with segment.LocalFile(path) as source:
        return [*(piece.position for piece in segment.walk(source) if isinstance(piece, RecordBatch)), source.size]


def install(source: Path, target: Path, rng: random.Random) -> str:
    """Copy a partition into the broker's folder and damage it; return what was done."""
    for old in target.iterdir():
        if old.name not in {"partition.metadata", "leader-epoch-checkpoint"}:
            old.unlink()
    for name in sorted(source.iterdir()):
        if name.suffix in {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}:
            shutil.copyfile(name, target / name.name)
    if source.parent.name == "damaged":
        return f"as {source.name}"
    log = rng.choice([path for path in sorted(target.glob("*.log")) if path.stat().st_size])
    data = bytearray(log.read_bytes())
    if rng.random() < 0.2:
        done = [overflow(data, rng, starts_of(log))]
    else:
        done = [damage(data, rng, starts_of(log)) for _ in range(rng.choice([1, 1, 2]))]
    log.write_bytes(data)
    if rng.random() < 0.15:
        missing = rng.choice(sorted(target.glob("*.index")))
        missing.unlink()
        done.append(f"without {missing.name}")
    return f"{source.parent.name}/{source.name}, {log.name}: {', '.join(done)}"


def overflow(data: bytearray, rng: random.Random, starts: list[int]) -> str:
    """Give the last batches of a segment offsets that do not fit behind its base offset; return what was done."""
    far = rng.choice(starts[:-1])
    for start in starts[:-1]:
        if start >= far:
            data[start + 2] ^= 1
    if rng.random() < 0.3:
        data[rng.randrange(len(data))] ^= 0x10
    return f"offsets from byte {far} on are far away"


def foretell(partition: Partition, point: int) -> recovery.Outcome:
    return recovery.dry_run(partition, clean=False, recovery_point=point)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="4.2.2")
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    names = [f"case{number:03}-0" for number in range(options.cases)]
    with tempfile.TemporaryDirectory() as temporary:
        broker = Broker(options.release, Path(temporary))
        with broker:
            broker.create(names)
        told, points = {}, {}
        ready = [source for source in sources() if source.parent.name == "damaged"]
        whole = [source for source in sources() if source.parent.name != "damaged"]
        rng.shuffle(ready)
        for number, name in enumerate(names):
            source = ready.pop() if number % 3 == 0 and ready else rng.choice(whole)
            told[name] = install(source, broker.logs / name, rng)
            bases = sorted(int(path.stem) for path in (broker.logs / name).glob("*.log"))
            points[name] = rng.choice([0, 0, 0, *bases])
        foretold = {}
        for partition in Finder(Wanted(leftovers=True)).find([str(broker.logs)]):
            if partition.name in told:
                foretold[partition.name] = foretell(partition, points[partition.name])
        for name, outcome in foretold.items():
            if outcome.fails:  # it would take the whole log dir down, and all other cases with it
                print(f"left out  {name}  {told[name]}: {outcome.fails}")
                for log in (broker.logs / name).glob("*.log"):
                    log.write_bytes(b"")
        entries = [PartitionOffset(name[:-2], 0, point) for name, point in points.items()]
        (broker.logs / "recovery-point-offset-checkpoint").write_bytes(checkpoints.encode(entries))
        (broker.logs / ".kafka_cleanshutdown").unlink()
        with broker:
            ends = broker.append(names)
        compared = [name for name in names if not foretold[name].fails]
        wrong = 0
        for name in compared:
            expected, found = str(foretold[name].log_end_offset), ends[name]
            wrong += expected != found
            verdict = "equal    " if expected == found else "DIFFERENT"
            print(
                f"{verdict} {name}  foretold {expected}, found {found}, {len(foretold[name].cuts)} cuts  {told[name]}"
            )
    cut = sum(bool(foretold[name].cuts) for name in compared)
    print(f"{len(compared)} logs compared in one start of {options.release}, {cut} of them cut: {wrong} different")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
