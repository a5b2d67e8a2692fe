"""Compare the dry run of recovery with a real broker: many damaged logs, one log dir, one unclean start.

    python -m tools.prove.recovery [--release 4.2.2] [--cases 60] [--seed 1]

For each case a partition of golden/ is copied into the log dir of a fresh broker and damaged; some have a recovery
point in their middle, some a missing index. Then the broker starts as after a crash. Prints a line per case. The exit
status is 1 if a log end offset differs from kdump's prediction.
"""

import random
import shutil
import sys
import tempfile
from pathlib import Path

from kdump.formats import checkpoints
from kdump.formats.checkpoints import PartitionOffset
from kdump.log_dirs import local
from kdump.log_dirs.finder import Finder, Wanted
from kdump.records.record_batch import RecordBatch
from kdump.recovery import log_loader
from kdump.segments import walk
from testing import GOLDEN
from testing.damages import damage
from tools import arguments
from tools.prove.broker import Broker


def sources() -> list[Path]:
    """Return the golden partitions with at least one batch, and the damaged ones that do not stop a broker for good."""
    found = []
    for folder in sorted([*(GOLDEN / "brokers").glob("*/*-*"), *(GOLDEN / "damaged").iterdir()]):
        logs = list(folder.glob("[0-9]*.log")) if folder.is_dir() else []
        if logs and not folder.name.startswith("__") and max(log.stat().st_size for log in logs) > 200:
            found.append(folder)
    return found


def starts_of(path: Path) -> list[int]:
    """Return the positions of the batches of a segment, and its end."""
    with local.LocalFile(path) as source:
        return [*(region.position for region in walk.walk(source) if isinstance(region, RecordBatch)), source.size]


def install(source: Path, target: Path, rng: random.Random) -> str:
    """Copy a partition into the broker's folder and damage it; return the change."""
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
    """Give the last batches of a segment offsets that are too high for its base offset; return the change."""
    far = rng.choice(starts[:-1])
    for start in starts[:-1]:
        if start >= far:
            data[start + 2] ^= 1
    if rng.random() < 0.3:
        data[rng.randrange(len(data))] ^= 0x10
    return f"offsets from byte {far} on are far away"


def prepare(logs: Path, names: list[str], rng: random.Random) -> dict[str, str]:
    """Install a partition under each name; return the changes."""
    ready = [source for source in sources() if source.parent.name == "damaged"]
    whole = [source for source in sources() if source.parent.name != "damaged"]
    rng.shuffle(ready)
    done = {}
    for number, name in enumerate(names):
        source = ready.pop() if number % 3 == 0 and ready else rng.choice(whole)
        done[name] = install(source, logs / name, rng)
    return done


def foretell(logs: Path, points: dict[str, int]) -> dict[str, log_loader.Outcome]:
    """Return kdump's prediction for the partitions with a recovery point in ``points``."""
    return {
        partition.name: log_loader.dry_run(partition, clean=False, recovery_point=points[partition.name])
        for partition in Finder(Wanted(leftovers=True)).find([str(logs)])
        if partition.name in points
    }


def recovered(broker: Broker, points: dict[str, int]) -> dict[str, str]:
    """Start the broker as after a crash; return the new log end offsets."""
    broker.crash()
    entries = [PartitionOffset(name[:-2], 0, point) for name, point in points.items()]
    (broker.logs / "recovery-point-offset-checkpoint").write_bytes(checkpoints.encode(entries))
    with broker:
        return broker.append(list(points))


def prove(broker: Broker, names: list[str], rng: random.Random) -> int:
    """Damage, predict, compare; return the number of log end offsets that differ."""
    with broker:
        broker.create(names)
    reported = prepare(broker.logs, names, rng)
    points = {}
    for name in names:
        bases = sorted(int(path.stem) for path in (broker.logs / name).glob("*.log"))
        points[name] = rng.choice([0, 0, 0, *bases])
    foretold = foretell(broker.logs, points)
    for name, outcome in foretold.items():
        if outcome.fails:  # it would take the whole log dir down, and all other cases with it
            print(f"left out  {name}  {reported[name]}: {outcome.fails.text}")
            for log in (broker.logs / name).glob("*.log"):
                log.write_bytes(b"")
    ends = recovered(broker, points)
    compared = [name for name in names if not foretold[name].fails]
    wrong = 0
    for name in compared:
        expected, found, cuts = str(foretold[name].log_end_offset), ends[name], len(foretold[name].cuts)
        wrong += expected != found
        verdict = "equal    " if expected == found else "DIFFERENT"
        print(f"{verdict} {name}  foretold {expected}, found {found}, {cuts} cuts  {reported[name]}")
    cut = sum(bool(foretold[name].cuts) for name in compared)
    print(f"{len(compared)} logs compared in one start of {broker.release}, {cut} of them cut: {wrong} different")
    return wrong


def main() -> int:
    options = arguments.parser(__doc__, release="4.2.2", cases=60, seed=1).parse_args()
    names = [f"case{number:03}-0" for number in range(options.cases)]
    with tempfile.TemporaryDirectory() as temporary:
        broker = Broker(options.release, Path(temporary))
        return 1 if prove(broker, names, random.Random(options.seed)) else 0


if __name__ == "__main__":
    sys.exit(main())
