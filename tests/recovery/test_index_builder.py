"""New indexes, as a broker writes them."""

import gzip
import random
from pathlib import Path

import pytest

from kdump import kernel
from kdump.errors import DamageError
from kdump.formats import txn_index
from kdump.formats.offset_index import OffsetIndex
from kdump.formats.record_layout import TIMESTAMP_TYPE_FLAG
from kdump.formats.time_index import TimeIndex
from kdump.log_dirs.finder import Finder, Wanted
from kdump.primitives.wire import INT32_MAX
from kdump.records import control
from kdump.recovery.index_builder import IndexBuilder, Rebuild
from kdump.segments import resync
from kdump.segments.regions import DATA
from kdump.transaction_replay.replay import Replay
from testing import GOLDEN, forge
from tests.helpers.segments import Memory, batches, data, marker, starts

LOG = b"".join(data(10 + 2 * n, 2, timestamp=stamp) for n, stamp in enumerate([500, 700, 600, 700, 900, 100]))
SIZE = len(LOG) // 6


def in_runs(log: bytes, base: int, **choice):
    builder, replay = IndexBuilder(base, **choice), Replay()
    for region in resync.read(Memory(log), on_error="stop", runs=DATA):
        builder.add(region, replay.add(region))
    return builder.finish()


def built(log: bytes, base: int = 10, **choice):
    builder, replay = IndexBuilder(base, **choice), Replay()
    for batch in batches(log):
        builder.add(batch, replay.add(batch))
    return builder.finish()


def test_an_entry_when_more_than_the_interval_has_passed():
    one, two, three, _, five = starts(LOG)[1:]
    for interval, entries in {
        0: [(13, one), (15, two), (17, three), (19, SIZE * 4), (21, five)],
        SIZE - 1: [(13, one), (15, two), (17, three), (19, SIZE * 4), (21, five)],
        SIZE: [(15, two), (19, SIZE * 4)],
        2 * SIZE: [(17, three)],
        4096: [],
    }.items():
        made = built(LOG, interval=interval)
        assert list(OffsetIndex(made.offset_index, 10)) == entries
        assert made.txn_index == b""


def test_time_entries_follow_the_offset_entries_and_the_largest_closes_the_file():
    assert list(TimeIndex(built(LOG, interval=0).time_index, 10)) == [(700, 13), (900, 19)]
    assert list(TimeIndex(built(LOG, interval=2 * SIZE).time_index, 10)) == [(700, 13), (900, 19)]
    assert list(TimeIndex(built(LOG).time_index, 10)) == [(900, 19)]
    assert built(b"").time_index == b""
    assert built(data(10, timestamp=-1)).time_index == b""


def test_brokers_before_2_0_named_first_offsets():
    made = built(LOG, interval=SIZE, first_offsets=True)
    assert [offset for offset, _ in OffsetIndex(made.offset_index, 10)] == [14, 18]


@pytest.mark.parametrize(("second", "refuses"), [(9, True), (10, True), (11, False)])
def test_an_entry_that_does_not_rise_is_refused(second, refuses):
    builder = IndexBuilder(0, interval=0)
    for batch in batches(data(10) + data(10) + data(second)):
        builder.add(batch)
    assert builder.refuses is refuses
    assert builder.refused_at == (builder.indexed if refuses else None)


@pytest.mark.parametrize("base", [12, 10 - (1 << 31)])
@pytest.mark.parametrize("build", [built, in_runs])
def test_a_batch_that_does_not_fit_into_the_segment_is_damage(base, build):
    with pytest.raises(DamageError, match="does not fit into a segment"):
        build(LOG, base)


@pytest.mark.parametrize("first_offsets", [False, True])
@pytest.mark.parametrize("interval", [0, 300, 4096])
def test_batches_that_are_alike_make_the_same_entries_in_one_go(interval, first_offsets):
    choice = {"interval": interval, "first_offsets": first_offsets}
    for log in sorted((GOLDEN / "brokers").glob("*/*/*.log")):
        data = log.read_bytes()
        assert in_runs(data, 0, **choice) == built(data, 0, **choice), log


@pytest.mark.skipif(not kernel.COMPILED, reason="without the kernel there are no runs")
def test_the_kernel_takes_the_batches_of_a_run_that_fit(monkeypatch):
    (run,) = resync.read(Memory(data(0) + data(INT32_MAX)), on_error="stop", runs=DATA)
    with monkeypatch.context() as patch:
        patch.setattr(IndexBuilder, "_add", None)
        builder = IndexBuilder(0, interval=0)
        builder.add(run, position=1000)
    assert (list(builder.offsets), list(builder.positions)) == ([INT32_MAX], [1000 + len(data(0))])
    (run,) = resync.read(Memory(data(0) + data(INT32_MAX + 1)), on_error="stop", runs=DATA)
    with pytest.raises(DamageError, match=str(INT32_MAX + 1)) as raised:
        builder.add(run, position=1000)
    assert raised.value.position == 1000 + len(data(0))


def outcome(regions, base, **choice):
    """Return the contents of a builder after a log, and the damage that ends it."""
    builder = IndexBuilder(base, **choice)
    try:
        for region in regions:
            builder.add(region)
    except DamageError as damage:
        return vars(builder), str(damage)
    return vars(builder), None


def test_offsets_and_times_of_any_kind_make_the_same_entries_in_one_go():
    """Runs of all lengths, and intervals and base offsets beyond 64 bits."""
    rng = random.Random(5)
    seen = {"refuses": 0, "damage": 0, "neither": 0}
    for _ in range(600):
        offset, log = rng.choice([0, 5, 1 << 40]), b""
        base = rng.choice([offset, offset, offset - 3, offset + 2, 1 << 70])
        for _ in range(rng.randint(2, 30)):
            count = rng.randint(1, 4)
            when = rng.choice([-1, 0, 7, rng.randrange(1 << 40)])
            kind = rng.choice([0] * 9 + [TIMESTAMP_TYPE_FLAG])  # another one begins another run
            delta = rng.choice([count - 1] * 20 + [-1, -4])
            log += data(offset, count, timestamp=when, attributes=kind, last_offset_delta=delta)
            offset += count + rng.choice([0] * 40 + [3, -count, -7, 1 << 31])
            offset = max(0, offset)
        choice = {"interval": rng.choice([0, 100, 300, 1 << 70]), "first_offsets": rng.random() < 0.5}
        made, damage = outcome(batches(log), base, **choice)
        assert outcome(resync.read(Memory(log), on_error="stop", runs=DATA), base, **choice) == (made, damage)
        seen["damage" if damage else "refuses" if made["refuses"] else "neither"] += 1
    assert min(seen.values()) > 30, seen


@pytest.mark.parametrize("folder", sorted((GOLDEN / "brokers" / "4.2.2").glob("[!_]*-0")), ids=lambda path: path.name)
def test_a_brokers_own_files_come_back_to_the_byte(folder):
    interval = 0 if folder.name.startswith("segidx") else 300
    replay = Replay()
    for log in sorted(folder.glob("*.log")):
        builder = IndexBuilder(int(log.stem), interval=interval)
        for batch in batches(log.read_bytes()):
            builder.add(batch, replay.add(batch))
        made = builder.finish()
        assert made.offset_index == log.with_suffix(".index").read_bytes(), log.name
        assert made.time_index == log.with_suffix(".timeindex").read_bytes(), log.name
        txns = log.with_suffix(".txnindex")
        assert made.txn_index == (txns.read_bytes() if txns.exists() else b""), log.name


def test_the_aborted_transactions_of_the_golden_files_are_some():
    folder = Path(GOLDEN / "brokers" / "4.2.2" / "txn-0")
    assert sum(len(txn_index.read(path.read_bytes())) for path in folder.glob("*.txnindex")) == 20


def test_a_segment_that_is_read_twice_for_its_transactions_is_reported_once(tmp_path):
    first, second = (tmp_path / f"{base:020}.log" for base in (0, 2))
    first.write_bytes(data(0, 2, producer=7))
    second.write_bytes(marker(2, 7, control.ABORT) + bytes(500))
    (partition,) = Finder(Wanted()).find([str(second)])
    notes, sizes = [], []
    how = Rebuild(interval=4096, first_offsets=False, note=notes.append, progress=sizes.append)
    ((_, indexes),) = how.of(partition)
    assert [entry.first_offset for entry in txn_index.read(indexes.txn_index)] == [0]
    assert notes == [f"{second}: 500 bytes of zeros follow the last batch"]
    assert sum(sizes) == second.stat().st_size - 500


MANY = b"".join(forge.entry(offset, forge.message(1, b"k", b"v")) for offset in range(100))


@pytest.mark.parametrize(
    ("magic", "second"),
    [
        (2, forge.batch([forge.record(b"\0", b"")], base_offset=1, attributes=0x30, producer_id=5)),
        (1, forge.entry(1, forge.message(1, None, b"not gzip", attributes=1))),
        (1, forge.entry(1, forge.message(1, None, gzip.compress(MANY + bytes(20)), attributes=1))),
    ],
)
def test_damage_inside_a_batch_has_its_position_in_the_segment(tmp_path, magic, second):
    """A marker whose key is too short, and wrappers whose first offset cannot be read."""
    first = data(0, 1) if magic == 2 else forge.entry(0, forge.message(1, b"k", b"v"))
    log = tmp_path / "t-0" / f"{0:020}.log"
    log.parent.mkdir()
    log.write_bytes(first + second)
    (partition,) = Finder(Wanted()).find([str(log)])
    rebuild = Rebuild(interval=0, first_offsets=True, note=str, progress=str)
    ((_, damage),) = rebuild.of(partition)
    assert damage.position == len(first)
