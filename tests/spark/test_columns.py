"""Columns from the kernel equal those from records as objects, for any bytes."""

import random

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kdump[spark]'")

from kdump import kernel
from kdump.arrow import columns, recorded, schema
from kdump.log_dirs import local
from kdump.log_reader.batch_selection import BatchSelection
from kdump.log_reader.filter import Filter
from kdump.primitives import compression
from kdump.rows.selection import SegmentFacts
from kdump.segments import resync
from kdump.spark.source import options as words
from kdump.spark.source import planning, reading
from testing import GOLDEN, forge

compiled = pytest.mark.skipif(not kernel.COMPILED, reason="without the kernel there are no columns")
FOLDERS = sorted({path.parent for path in GOLDEN.rglob("*.log") if GOLDEN / "tiered" / "store" not in path.parents})
"""Not the store: its objects are encrypted, and a folder of them is unreadable without ``remote``."""
NAME = "00000000000000000000.log"


def table(path, **given):
    given = {"mode": "PERMISSIVE"} | given  # damaged files are read, too
    options = words.parse({"path": str(path), **{name: str(value) for name, value in given.items()}})
    splits = [split for planned in planning.plan(options) for split in planned.splits]
    shape = schema.arrow(schema.chosen(options.names))
    return pa.Table.from_batches((batch for split in splits for batch in reading.read(split, options)), shape)


def of_objects(path, **given):
    """Return the same columns by the general path only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorded, "columns", lambda *_, **__: None)
        return table(path, **given)


def same(path, **given):
    made = table(path, **given)
    made.validate(full=True)
    assert made.equals(of_objects(path, **given)), given
    return made


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_golden_segments_give_the_same_rows(folder):
    everything = same(folder, includeControl=True)
    same(folder, isolation="read_committed")
    same(folder, includeControl=True, columns="controlType,aboveHighWatermark,crcValid")
    if len(everything):
        offsets = sorted(everything.column("offset").to_pylist())
        times = sorted(everything.column("timestampMs").to_pylist())
        first, last = (offsets[len(offsets) * part // 3] for part in (1, 2))
        same(folder, startingOffset=first, endingOffset=last)
        first, last = (times[len(times) * part // 3] for part in (1, 2))
        same(folder, startingTimestamp=first, endingTimestamp=last, includeControl=True)


def any_bytes(seed, most=40):
    return None if seed.random() < 0.2 else seed.randbytes(seed.choice([0, 1, seed.randrange(most), 300]))


def any_record(seed, number):
    headers = [(any_bytes(seed, 9) or b"name", any_bytes(seed)) for _ in range(seed.choice([0, 0, 1, 3]))]
    return forge.record(
        any_bytes(seed),
        any_bytes(seed),
        offset=number + seed.randrange(2),
        timestamp=seed.choice([0, number, -number, 1 << 33, -(1 << 47)]),
        headers=headers,
        attributes=seed.choice([0, 0, 0, 5, -1]),
    )


def any_batch(seed, base, codec=compression.NONE, sequences=(-1, 0, 0x7FFFFFFF - 30)):
    count = seed.choice([0, 1, 2, 9, 70])
    body = compression.compress(codec, b"".join(any_record(seed, number) for number in range(count)))
    producer = seed.choice([-1, 7])
    return forge.batch(
        [body],
        count=count,
        last_offset_delta=count,
        base_offset=base,
        base_timestamp=seed.choice([-1, 0, 1_700_000_000_000, 253_402_300_799_990]),
        max_timestamp=seed.choice([-1, 1_700_000_000_005]),
        attributes=codec | seed.choice([0, 0x08, 0x10, 0x40]),
        leader_epoch=seed.choice([-1, 3]),
        producer_id=producer,
        producer_epoch=min(producer, 2),
        base_sequence=seed.choice(sequences),
    )


@pytest.mark.parametrize("codec", range(5), ids=compression.NAMES)
def test_any_records_give_the_same_rows(codec, tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "ROWS", 50)
    path = tmp_path / "t-0" / NAME
    path.parent.mkdir()
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nt 0 300\n")
    seed = random.Random(codec)
    for _ in range(6):
        data = [any_batch(seed, base * 80, codec) for base in range(12)]
        data.insert(5, forge.entry(400, forge.message(1, b"old", b"message", timestamp=5)))
        path.write_bytes(b"".join(data))
        rows = same(path, includeControl=True)
        assert len(rows)
        same(path, startingOffset=170, endingOffset=420)
        same(path, startingTimestamp=0, endingTimestamp=1_700_000_000_020)
        same(path, startingOffset=1 << 70)
        same(path, isolation="read_committed", columns="value,offset,headers")


def test_broken_records_give_the_same_rows(tmp_path):
    """Each byte of a small batch is changed, between two valid ones."""
    path = tmp_path / NAME
    plain = b"".join(
        forge.record(b"key", value, offset=n, headers=[(b"h", value)]) for n, value in enumerate([b"v", None])
    )
    seed = random.Random(3)
    sound = [forge.batch([forge.record(b"k", b"v")], base_offset=offset) for offset in (0, 9)]
    for at in range(len(plain)):
        broken = bytearray(plain)
        broken[at] = seed.choice([0, 1, 2, 0x7F, 0x80, 0xFF])
        for body in (bytes(broken), plain[:at], plain + b"\0"):
            path.write_bytes(sound[0] + forge.batch([body], count=2, base_offset=5) + sound[1])
            rows = same(path)
            assert rows.column("offset").to_pylist()[:1] == [0]
            assert rows.column("offset").to_pylist()[-1] == 9


@compiled
def test_the_kernel_takes_what_is_well_formed(tmp_path, monkeypatch):
    path = tmp_path / NAME
    path.write_bytes(b"".join(any_batch(random.Random(n), n * 80, sequences=(-1, 0)) for n in range(20)))
    expected = of_objects(path, startingOffset=100)
    monkeypatch.setattr(BatchSelection, "_read", None)
    assert table(path, startingOffset=100).equals(expected)


@compiled
def test_of_several_replicas_whole_batches_are_left_to_the_kernel(tmp_path, monkeypatch):
    for name, epochs in {"a": (0, 2, 2), "b": (1, 1, 1)}.items():
        path = tmp_path / name / "t-0" / NAME
        path.parent.mkdir(parents=True)
        batches = (
            forge.batch(
                [forge.record(name.encode(), b"v", offset=n) for n in range(10)],
                base_offset=10 * at,
                leader_epoch=epoch,
            )
            for at, epoch in enumerate(epochs)
        )
        path.write_bytes(b"".join(batches))
    expected = of_objects(tmp_path, dedupe=True)
    assert expected.column("key").to_pylist() == [b"a"] * 20 + [b"b"] * 10
    monkeypatch.setattr(BatchSelection, "_read", None)
    assert table(tmp_path, dedupe=True).equals(expected)


@compiled
def test_a_batch_of_too_many_records_is_left_to_the_general_path(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(forge.batch([forge.record(None, None, offset=n) for n in range(50)]))
    assert len(same(path)) == 50
    rows = columns.Rows(SegmentFacts(str(path)), ("offset",), Filter())
    with local.LocalFile(path) as source:
        (batch,) = resync.read(source)
    batch.limit = 4000
    assert not rows.read(batch, "none")
    assert not rows.take()


@compiled
def test_columns_go_back_to_where_they_were_when_a_record_is_broken():
    from kdump.formats.record_layout import BATCH_HEADER
    from kdump.kernel import arrow

    good = [
        forge.record(b"k%d" % n, b"v" * n if n % 3 else None, offset=n, headers=[(b"\xff", None)]) for n in range(11)
    ]
    batch, broken = forge.batch(good), forge.batch([*good, b"\x02\x00"])
    made, again = arrow.ArrowColumns(arrow.COLUMNS), arrow.ArrowColumns(arrow.COLUMNS)
    for number in range(4):
        assert made.add(memoryview(batch), BATCH_HEADER.size, BATCH_HEADER.read(batch))
        assert again.add(memoryview(batch), BATCH_HEADER.size, BATCH_HEADER.read(batch))
        assert not made.add(memoryview(broken), BATCH_HEADER.size, BATCH_HEADER.read(broken)), number
        assert (made.rows, made.size) == (again.rows, again.size) == (11 * (number + 1), len(batch) * (number + 1))
    assert str(made.take()) == str(again.take())
    assert made.take()["headers"].buffers == (None, bytearray(4))
