"""What one cleaning removes: the kernel and the general path give the same result for any bytes."""

import gzip
import random

import pytest

from kdump import kernel
from kdump.answers.collector import as_json
from kdump.answers.compaction import cleaning
from kdump.answers.compaction.cleaning import CleaningLimits
from kdump.answers.compaction.compacted_logs import Compaction
from kdump.answers.compaction.key_tables import KeyPart, KeySizes, OffsetMap, all_keys
from kdump.answers.log_dir_pass import LogDirPass
from kdump.answers.topic_configs import GivenConfig, TopicConfigs
from kdump.errors import Reporter
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.log_dir_state import LogDirStates
from testing import GOLDEN, forge
from tests.helpers.segments import ABORT, COMMIT, TRANSACTIONAL, marker

if not kernel.COMPILED:
    pytest.skip("there is no kernel", allow_module_level=True)
from kdump.kernel import digests as compiled

NOW = 1_700_000_000_000
COMPACTED = TopicConfigs(given=[GivenConfig("*", "cleanup.policy", "compact")])
GENERAL = KeyPart(0, 1, b"")
HORIZON, GZIP = 0x40, 1


def cleaned(folder, *, by_kernel=True, most=1000, held=1000):
    """Return the lines of the answer and the damage reports."""
    said = []
    partitions = list(Finder(Wanted(siblings=True, leftovers=True)).find([str(folder)]))
    answer = Compaction(COMPACTED, NOW, CleaningLimits(most, held), listed=True, top=4)
    with pytest.MonkeyPatch.context() as patch:
        if not by_kernel:
            patch.setattr(kernel, "COMPILED", False)
        states = LogDirStates(Reporter(said.append, fail=said.append))
        LogDirPass([answer], Reporter(damage=said.append, fail=said.append), states).run(partitions)
    return [as_json(line) for line in answer.answer(NOW)], said


def held_equal(folder, **limits):
    """Assert that the kernel and the general path agree; return the lines."""
    lines = cleaned(folder, **limits)
    assert lines == cleaned(folder, by_kernel=False, **limits)
    return lines[0]


def write(folder, *batches, active=1000):
    """A log of one closed segment and an active one."""
    log = folder / "t-0"
    log.mkdir(exist_ok=True)
    (log / f"{0:020}.log").write_bytes(b"".join(batches))
    (log / f"{active:020}.log").write_bytes(forge.batch([forge.record(b"z", b"")], base_offset=active))
    return folder


def batch(base, *pairs, **fields):
    records = [forge.record(key, value, offset=number) for number, (key, value) in enumerate(pairs)]
    return forge.batch(records, base_offset=base, base_timestamp=NOW, **fields)


LONG = b"a key of more than sixteen bytes"
PAIRS = [(b"", b""), (b"k", b"1"), (None, b"x"), (LONG, b"2"), (b"k", None), (LONG + b"!", b"3"), (b"q" * 300, b"4")]
PAYLOAD = b"".join(forge.record(key, value, offset=at) for at, (key, value) in enumerate(PAIRS))


def packed(base, payload=PAYLOAD):
    return forge.batch([], payload=gzip.compress(payload), base_offset=base, count=7, attributes=GZIP)


KINDS = {
    "plain": [batch(0, *PAIRS), batch(7, *PAIRS[:3]), batch(10, (b"k", b"9"))],
    "small batches": [batch(number, PAIRS[number % 7]) for number in range(40)],
    "compressed": [packed(0), forge.batch([], base_offset=7, count=0), batch(7, *PAIRS), packed(14)],
    "horizons": [batch(0, (b"k", None), attributes=HORIZON), batch(1, (b"j", None), attributes=HORIZON)] * 2,
    "old": [
        forge.entry(0, forge.message(1, b"k", b"v")),
        forge.entry(1, forge.message(0, b"k", None)),
        forge.entry(2, forge.message(1, None, b"v")),
        batch(3, *PAIRS),
    ],
    "transactions": [
        batch(0, *PAIRS, producer_id=7, producer_epoch=0, attributes=TRANSACTIONAL),
        batch(7, *PAIRS, producer_id=8, producer_epoch=0, attributes=TRANSACTIONAL),
        marker(14, 7, ABORT),
        marker(15, 8, COMMIT),
    ],
    "offsets that fall": [batch(9, *PAIRS), batch(0, *PAIRS), batch(4, *PAIRS)],
    "far": [batch((1 << 62) + 1, *PAIRS), batch(3, *PAIRS)],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("most", "held"), [(1000, 1000), (3, 1000), (1000, 2), (3, 2), (4, 1)])
def test_every_kind_of_batch_gives_the_same(tmp_path, kind, most, held, monkeypatch):
    lines = held_equal(write(tmp_path, *KINDS[kind]), most=most, held=held)
    assert lines[0]["records"] > 0 or kind == "far"
    monkeypatch.setattr(cleaning, "CHUNK", 2)
    assert held_equal(tmp_path, most=most, held=held) == lines


def test_records_cut_at_every_byte_and_with_garbage_after(tmp_path):
    """The checksum is right but the records are not: the records before the broken one are each counted once."""
    for cut in range(len(PAYLOAD) + 2):
        if PAYLOAD[:cut].endswith(b"q" * 9) and cut < len(PAYLOAD) - 9:
            continue  # inside the long key
        payload = PAYLOAD[:cut] + b"?" * (cut > len(PAYLOAD))
        broken = forge.batch([], payload=payload, base_offset=7, count=7)
        held_equal(write(tmp_path, batch(0, *PAIRS), broken, packed(14, payload), batch(21, *PAIRS)), most=5)


def test_a_log_cut_at_every_byte(tmp_path):
    data = b"".join(KINDS["transactions"])
    for cut in range(0, len(data), 17):
        held_equal(write(tmp_path, data[:cut], b"\0garbage" * (cut % 9)))


def test_changed_bytes_with_right_checksums(tmp_path):
    seed = random.Random(7)
    for _ in range(40):
        changed = bytearray(PAYLOAD)
        for _ in range(seed.randrange(1, 4)):
            changed[seed.randrange(len(changed))] = seed.choice((0, 1, 2, 0x7F, 0x80, 0xFF, seed.randrange(256)))
        log = write(tmp_path, *[forge.batch([], payload=bytes(changed), base_offset=at, count=7) for at in (0, 7, 14)])
        held_equal(log, most=seed.choice((2, 1000)), held=seed.choice((3, 1000)))


def test_golden_logs_give_the_same():
    done = 0
    for folder in sorted((GOLDEN / "brokers").iterdir()):
        if folder.is_dir():
            done += sum(line["kind"] == "partition" for line in held_equal(folder))
    assert done > 20


VECTORS = {
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
    8: "3b62a9ba6258f5610f83e264f31497b4",
    15: "5493e99933b0a8117e08ec0f97cfc3d9",
}
"""Of the authors of SipHash: the bytes 0, 1, 2... in a number, and their digest with 128 bits."""


def test_digests_are_siphash_of_128_bits():
    facts = compiled.FactBuffer(bytes(range(16)))
    for size in VECTORS:
        facts.add(0, 0, bytes(range(size)), True)
    assert [facts[at][2].hex() for at in range(len(facts))] == list(VECTORS.values())


@pytest.mark.parametrize("of", [1, 2, 3])
def test_tables_grow_and_hold_every_key(of):
    seed = random.Random(of)
    secret = all_keys().secret
    records = [(n, seed.randrange(9), b"%d" % seed.randrange(6000), seed.random() < 0.9) for n in range(20_000)]
    totals, sizes = [], []
    parts = [KeyPart(number, of, secret) for number in range(of)]
    for offsets in (
        [compiled.OffsetTable(5, 1 << 40, 10, part) for part in parts],
        [OffsetMap(5, 1 << 40, 10, GENERAL)],
    ):
        judged = []
        for table in offsets:
            fill(table, records)
            assert table.put(0, len(table)) == len(records) + 1
            judged.append(table.judge(discards=False, keeps=False, listed=True))
        removed = sorted(one for each in judged for one in each[4])
        totals.append((sum(table.keys for table in offsets), sum(each[0] for each in judged), removed))
    assert totals[0] == totals[1]
    for tables in ([compiled.SizeTable(10, part) for part in parts], [KeySizes(10, GENERAL)]):
        for table in tables:
            fill(table, records)
            table.measure()
        sizes.append(sorted((one for table in tables for one in table.largest(50)), reverse=True)[:50])
    assert sizes[0] == sizes[1]


def fill(table, records):
    for record in records:
        table.add(*record)
    table.end_batch(records[-1][0])


def test_a_full_map_stops_at_the_first_key_that_it_does_not_look_at():
    for table in (compiled.OffsetTable(2, 2, 2, all_keys()), OffsetMap(2, 2, 2, GENERAL)):
        for offset, key in enumerate((b"old", b"old", b"a", None, b"b")):
            table.add(offset, 1, key, True)
        table.end_batch(7)
        assert (table.put(0, 9), table.keys, table.latest) == (6, 2, 7)
        table.clear()
        table.add(8, 1, None, True)
        table.end_batch(8)
        table.add(9, 1, b"a", True)
        assert (table.put(0, 9), table.keys, table.latest) == (2, 2, 8), "a known key is too much, too"
