"""Similar batches are checked together: the findings equal those of each batch alone, without the kernel."""

import random
import shutil
from itertools import count

import pytest

from kdump import kernel
from kdump.checks import partition, whole_partition
from kdump.checks.log import LogCheck
from kdump.checks.log_dir import LogDirs
from kdump.errors import DamageError
from kdump.log_dirs.finder import Finder, Wanted
from kdump.recovery.index_builder import IndexBuilder
from kdump.transaction_replay.replay import Replay
from testing import GOLDEN, damages, forge
from tests.helpers.segments import ABORT, COMMIT, TRANSACTIONAL, batches, marker

if not kernel.COMPILED:
    pytest.skip("without the kernel there are no runs", allow_module_level=True)

NOW = 1_700_000_000_000
RECORD = forge.record(b"k", b"v" * 20)
WANTED = Wanted(siblings=True, leftovers=True, log_dirs=True)
LIES = (
    {"max_timestamp": NOW + 77},
    {"max_timestamp": 3 * NOW, "base_timestamp": 3 * NOW},
    {"base_timestamp": -5, "max_timestamp": -5},
    {"leader_epoch": 0},
    {"leader_epoch": -2},
    {"count": 0},
    {"count": -1},
    {"count": 2},
    {"last_offset_delta": 2},
    {"last_offset_delta": -1},
    {"last_offset_delta": 1, "count": 2},
    {"attributes": 0x08},
    {"attributes": 0x10},
    {"attributes": 0x20},
    {"attributes": 0x40},
    {"attributes": 0x80},
    {"attributes": 1},
    {"attributes": 1, "count": 0},
    {"base_sequence": -1},
    {"base_sequence": (1 << 31) - 1},
    {"base_sequence": 5},
    {"producer_epoch": -1},
    {"producer_id": -1},
    {"producer_id": 77, "producer_epoch": 3},
    {"base_offset": 0},
    {"base_offset": 1 << 62},
    {"records": [forge.record(b"k", b"v", attributes=1)]},
    {"records": [forge.record(b"k", b"v", offset=3)]},
    {"records": [forge.record(b"k", b"v", timestamp=9)]},
    {"records": [RECORD[:-1]]},
    {"records": [RECORD + b"x"]},
    {"crc": 5},
)


def made(rng, number, base, *, lies=0.02, producers=0, transactional=False):
    """Batches of one record, most of them valid; the producers of ``producers`` alternate."""
    offset, epoch, sequences, opened = base, 3, dict.fromkeys(range(producers), 0), set()
    for _ in range(number):
        epoch += rng.random() < 0.01
        offset += rng.random() < 0.01
        fields = {"base_offset": offset, "base_timestamp": NOW + rng.randrange(50), "leader_epoch": epoch}
        if producers:
            producer = rng.randrange(producers)
            if producer in opened and rng.random() < 0.1:
                opened.discard(producer)
                yield marker(offset, producer, rng.choice([ABORT, COMMIT]), timestamp=NOW, leader_epoch=epoch)
                offset += 1
                continue
            fields.update(producer_id=producer, producer_epoch=0, base_sequence=sequences[producer])
            sequences[producer] += 1
            if transactional:
                fields["attributes"] = TRANSACTIONAL
                opened.add(producer)
        if rng.random() < lies:
            fields.update(rng.choice(LIES))
        yield forge.batch(fields.pop("records", [RECORD]), **fields)
        offset += 1


def write(rng, folder, **kind):
    """Write segments, some damaged, and their indexes, some with an error."""
    base = 0
    for _ in range(rng.randint(1, 3)):
        log = list(made(rng, rng.choice([2, 60, 300]), base, **kind))
        data = bytearray(b"".join(log))
        starts = [sum(map(len, log[:number])) for number in range(len(log) + 1)]
        for _ in range(rng.choice([0, 0, 1, 3])):
            damages.damage(data, rng, starts)
        path = folder / f"{base:020}.log"
        path.write_bytes(data)
        for suffix, content in zip(("index", "timeindex", "txnindex"), indexes(rng, data, base), strict=True):
            if content and rng.random() < 0.3:
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            path.with_suffix(f".{suffix}").write_bytes(content)
        base += len(log) + rng.choice([0, 0, 5])
    (folder / "leader-epoch-checkpoint").write_text(f"0\n2\n3 0\n4 {rng.randrange(1, base + 2)}\n")


def indexes(rng, data, base):
    builder = IndexBuilder(base, interval=rng.choice([0, 500, 2000]), first_offsets=rng.random() < 0.3)
    replay = Replay()
    for batch in batches(bytes(data)):
        try:
            builder.add(batch, replay.add(batch))
        except DamageError:
            continue
    return map(bytearray, builder.finish()[:3])


def said(place):
    """Return all findings on a folder: with records, without records, and from the pass over its indexes only."""
    for part in Finder(WANTED).find([str(place)]):
        for options in (whole_partition.CheckOptions(at=NOW + 1000), whole_partition.CheckOptions(records=False)):
            yield whole_partition.check(part, options, LogDirs())
        yield list(partition.check(part, fail=lambda _: None))


def alike(place):
    together = list(said(place))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "COMPILED", False)
        assert list(said(place)) == together


@pytest.mark.parametrize("producers", [0, 1, 4])
@pytest.mark.parametrize("lies", [0, 0.05])
@pytest.mark.parametrize("transactional", [False, True])
def test_small_batches(tmp_path, lies, producers, transactional):
    rng = random.Random(f"{lies} {producers} {transactional}")
    for number in range(3):
        place = tmp_path / str(number) / "orders-0"
        place.mkdir(parents=True)
        write(rng, place, lies=lies, producers=producers, transactional=transactional)
        alike(place)


@pytest.mark.parametrize("lie", LIES, ids=str)
@pytest.mark.parametrize("producers", [0, 1])
def test_a_batch_that_lies_among_others(tmp_path, producers, lie):
    rng = random.Random(1)
    log = list(made(rng, 40, 0, lies=0, producers=producers))
    fields = {"base_offset": 20, "base_timestamp": NOW, "leader_epoch": 3} | lie
    if producers:
        fields = {"producer_id": 0, "producer_epoch": 0, "base_sequence": 20} | fields
    log[20] = forge.batch(fields.pop("records", [RECORD]), **fields)
    place = tmp_path / "orders-0"
    place.mkdir()
    (place / f"{0:020}.log").write_bytes(b"".join(log))
    alike(place)


NO_OP = bytes((1, 20, 0, 0))
"""NoOpRecord, version 0, in its frame."""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, NO_OP),
        (b"k", NO_OP),
        (None, None),
        (None, b""),
        (None, NO_OP[:2]),
        (None, NO_OP[:3]),
        (None, NO_OP + b"x"),
        (None, b"\0" + NO_OP[1:]),
        (None, bytes((1, 99, 0, 0))),
        (None, bytes((1, 20, 77, 0))),
        (None, bytes((1, 2, 0, 9, 65))),
    ],
)
def test_a_payload_among_others_in_a_metadata_log(tmp_path, key, value):
    place = tmp_path / "__cluster_metadata-0"
    place.mkdir()
    log = [forge.batch([forge.record(None, NO_OP)], base_offset=at, base_timestamp=NOW) for at in range(40)]
    two = [forge.record(None, NO_OP), forge.record(key, value, offset=1)]
    log[20:22] = [forge.batch(two, base_offset=20, base_timestamp=NOW)]
    (place / f"{0:020}.log").write_bytes(b"".join(log))
    alike(place)
    is_sound = key is None and value == NO_OP
    kinds = [finding.kind for finding in next(iter(said(place))).findings if "payload" in finding.kind]
    assert len(kinds) == (not is_sound and value is not None)


@pytest.mark.parametrize("release", sorted((GOLDEN / "brokers").iterdir()), ids=lambda path: path.name)
def test_what_brokers_wrote(release):
    alike(release)


def test_what_brokers_wrote_with_a_damaged_byte(tmp_path):
    for number, log in enumerate(sorted((GOLDEN / "brokers").glob("[24]*/[!_]*/*.log"))):
        place = tmp_path / str(number) / log.parent.name
        shutil.copytree(log.parent, place)
        data = bytearray(log.read_bytes())
        if data:
            data[number * 97 % len(data)] ^= 0x55
            (place / log.name).write_bytes(data)
    alike(tmp_path)


@pytest.mark.parametrize("producers", [0, 1, 4])
@pytest.mark.parametrize("transactional", [False, True])
def test_few_of_many_valid_batches_are_looked_at_alone(tmp_path, monkeypatch, producers, transactional):
    place = tmp_path / "orders-0"
    place.mkdir()
    attributes = TRANSACTIONAL if transactional and producers else 0
    log = [
        forge.batch(
            [RECORD],
            base_offset=offset,
            attributes=attributes,
            producer_id=offset % producers if producers else -1,
            producer_epoch=0 if producers else -1,
            base_sequence=offset // producers if producers else -1,
        )
        for offset in range(500)
    ]
    (place / f"{0:020}.log").write_bytes(b"".join(log))
    alone, whole = count(), LogCheck._batch

    def batch(self, *taken, **rest):
        next(alone)
        whole(self, *taken, **rest)

    monkeypatch.setattr(LogCheck, "_batch", batch)
    (part,) = Finder(WANTED).find([str(place)])
    assert whole_partition.check(part, whole_partition.CheckOptions(), LogDirs()).batches == 500
    assert next(alone) <= 2 * max(1, producers)
