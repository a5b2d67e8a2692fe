"""Test the plans of ``kdump rebuild-cluster`` on seeded losses and damages of the copies of a partition.

    python -m tools.prove.merged_copies [--cases 500] [--seed 0]

A partition has one to three copies: segments that begin at different offsets, a copy that lags, one with a tail of an
older leader epoch. Bits flip, pages become zeros, files are truncated or go missing, checkpoints too. The merged log
must have only records of the true log, each with its offset and leader epoch. Exactly the offsets that the plan calls
lost must be missing. The exit status is 1 after a fault. Needs neither a broker nor Java.
"""

import random
import shutil
import struct
import sys
import tempfile
from pathlib import Path

from kdump.formats import partition_metadata
from kdump.formats.partition_metadata import PartitionMetadata
from kdump.rebuild import one_partition
from kdump.rebuild.one_partition import WantedPartition
from kdump.rebuild.partition_plan import PartitionPlan
from kdump.rebuild.volumes import survey
from testing import forge
from tools import arguments

TOPIC_ID = b"1" * 16
DAMAGES = ("flip", "flip", "flip", "zero", "cut", "segment", "segment and index", "small file", "header")


class Record:
    """A batch of the true log: ``count`` records from ``base`` on."""

    def __init__(self, base: int, count: int, epoch: int, rng: random.Random) -> None:
        self.base, self.count, self.epoch = base, count, epoch
        values = [rng.randbytes(rng.randrange(40)) for _ in range(count)]
        records = [forge.record(b"%d" % (base + number), value, offset=number) for number, value in enumerate(values)]
        producer = rng.choice([-1, -1, 4711])
        self.data = forge.batch(records, base_offset=base, leader_epoch=epoch, producer_id=producer)

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return self.base + self.count


def log(rng: random.Random, base: int, batches: int, epochs: list[int]) -> list[Record]:
    """Return consecutive batches with rising leader epochs."""
    made = []
    marks = sorted(rng.sample(range(batches), len(epochs) - 1)) if len(epochs) > 1 else []
    for number in range(batches):
        epoch = epochs[sum(number >= mark for mark in marks)]
        made.append(Record(base, rng.randint(1, 5), epoch, rng))
        base = made[-1].end
    return made


def starts_of(batches: list[Record]) -> dict[int, int]:
    """Return the start offset of each leader epoch."""
    found: dict[int, int] = {}
    for one in batches:
        found.setdefault(one.epoch, one.base)
    return found


def write_copy(log_dir: Path, batches: list[Record], rng: random.Random, watermark: int) -> None:
    """Write a copy of a log, cut into segments at random."""
    folder = log_dir / "orders-0"
    folder.mkdir(parents=True)
    (log_dir / "meta.properties").write_text(f"version=1\nnode.id={log_dir.name[-1]}\ncluster.id=c\n")
    (folder / "partition.metadata").write_bytes(partition_metadata.encode(PartitionMetadata(0, TOPIC_ID)))
    epochs = starts_of(batches)
    lines = "".join(f"{epoch} {start}\n" for epoch, start in epochs.items())
    (folder / "leader-epoch-checkpoint").write_text(f"0\n{len(epochs)}\n{lines}")
    (log_dir / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {watermark}\n")
    cuts = sorted({0, *rng.sample(range(len(batches)), min(len(batches), rng.randint(0, 3)))})
    for begin, end in zip(cuts, [*cuts[1:], len(batches)], strict=True):
        name = f"{batches[begin].base:020}"
        (folder / f"{name}.log").write_bytes(b"".join(one.data for one in batches[begin:end]))
        (folder / f"{name}.index").write_bytes(b"")


def damage(log_dir: Path, rng: random.Random) -> str:
    """Damage a copy; return a description of the change."""
    folder = log_dir / "orders-0"
    kind = rng.choice(DAMAGES)
    logs = sorted(folder.glob("*.log"))
    if kind == "small file":
        names = ["orders-0/leader-epoch-checkpoint", "orders-0/partition.metadata", "meta.properties"]
        name = rng.choice(names)
        (log_dir / name).unlink(missing_ok=True)
        return f"{name} removed"
    if not logs:
        return "nothing"
    path = rng.choice(logs)
    data = bytearray(path.read_bytes())
    if kind == "segment":
        path.unlink()
    elif kind == "segment and index" and path != logs[0]:
        path.unlink()
        path.with_suffix(".index").unlink()
    elif not data:
        return "nothing"
    elif kind == "flip":
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == "header":
        start = data.find(b"\x02", 16) - 16  # a magic, as a rule
        data[max(0, min(start + rng.randrange(61), len(data) - 1))] ^= 1 << rng.randrange(8)
    elif kind == "zero":
        at = rng.randrange(len(data))
        size = rng.choice([16, 64, 512])
        data[at : at + size] = bytes(len(data[at : at + size]))
    elif kind == "cut":
        del data[rng.randrange(len(data)) :]
    if path.exists():
        path.write_bytes(data)
    return f"{path.name}: {kind}"


def case(root: Path, rng: random.Random) -> tuple[list[Record], list[str], int]:
    """Write the copies of a partition and damage them; return the true log, the changes, and the high watermark."""
    epochs = sorted(rng.sample(range(6), rng.randint(1, 3)))
    true = log(rng, rng.choice([0, 0, 100]), rng.randint(3, 25), epochs)
    watermark = true[-1].end
    copies = rng.randint(1, 3)
    done = []
    for number in range(1, copies + 1):
        batches, mark = true, watermark
        if number > 1 and rng.random() < 0.3:
            batches = true[: rng.randint(1, len(true))]
            mark = batches[-1].end
            done.append(f"copy {number} lags: {mark}")
            older = [epoch for epoch in range(batches[-1].epoch, true[-1].epoch) if epoch not in epochs[1:]]
            following = next((one for one in true if one.base == mark), None)
            if older and following is not None and following.epoch > older[0] and rng.random() < 0.7:
                batches = [*batches, *log(rng, mark, rng.randint(1, 6), older[:1])]
                done.append(f"copy {number} has a tail of leader epoch {older[0]}")
        write_copy(root / f"node-{number}", batches, rng, mark)
        done += [f"copy {number}: {damage(root / f'node-{number}', rng)}" for _ in range(rng.randint(0, 4))]
    return true, done, watermark


def records(plan: PartitionPlan) -> list[tuple[int, bytes]]:
    """Return the batches in a plan: base offset, and bytes without offset and leader epoch."""
    found = []
    for segment in plan.segments:
        for piece in segment.pieces:
            data = Path(piece.path).read_bytes()[piece.position : piece.position + piece.size]
            if piece.corrected is not None:
                data = (
                    struct.pack(">q", piece.corrected[0])
                    + data[8:12]
                    + struct.pack(">i", piece.corrected[1])
                    + data[16:]
                )
            at = 0
            while at < len(data):
                base, length, epoch = struct.unpack_from(">qii", data, at)
                found.append((base, epoch, data[at + 16 : at + 12 + length]))
                at += 12 + length
    return found


def wrong(true: list[Record], plan: PartitionPlan, *, has_epochs: bool) -> list[str]:
    """Return the faults of a plan. Without a checkpoint (``has_epochs``), zeros may hide an epoch."""
    said = []
    want = {one.base: one for one in true}
    kept: set[int] = set()
    before = -1
    for base, epoch, data in records(plan):
        one = want.get(base)
        if one is None or one.data[16:] != data:
            said.append(f"the batch at offset {base} is not of the true log")
            continue
        if epoch != one.epoch and has_epochs:
            said.append(f"the batch at offset {base} has leader epoch {epoch}, not {one.epoch}")
        if base <= before:
            said.append(f"offset {base} follows {before}")
        before = one.end - 1
        kept.update(range(base, one.end))
    missing = {offset for one in true for offset in range(one.base, one.end)} - kept
    most = true[-1].end + 1
    lost = {offset for one in plan.lost for offset in range(min(one.from_offset, most), min(one.until_offset, most))}
    known = {offset for offset in missing if offset >= plan.log_start} if plan.log_start <= true[-1].end else missing
    if known != lost:
        said.append(
            f"missing but not called lost: {sorted(known - lost)}; called lost and there: {sorted(lost - known)}"
        )
    if plan.end != true[-1].end:
        said.append(f"it ends at {plan.end}, not {true[-1].end}")
    return said


def main() -> int:
    """Run the cases."""
    options = arguments.parser(__doc__, cases=500, seed=0).parse_args()
    bad = 0
    states: dict[str, int] = {}
    for number in range(options.seed, options.seed + options.cases):
        root = Path(tempfile.mkdtemp(prefix="copies-"))
        true, done, _ = case(root, random.Random(number))
        folders = tuple(survey([str(root)]).of("orders", TOPIC_ID, 0))
        plan = one_partition.plan(WantedPartition("orders", TOPIC_ID, 0, folders))
        states[plan.state] = states.get(plan.state, 0) + 1
        said = wrong(true, plan, has_epochs=any(root.glob("*/orders-0/leader-epoch-checkpoint")))
        if said:
            bad += 1
            print(f"seed {number}: {'; '.join(done)}\n  " + "\n  ".join(said))
        shutil.rmtree(root)
    print(f"{options.cases - bad} of {options.cases} hold: {states}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
