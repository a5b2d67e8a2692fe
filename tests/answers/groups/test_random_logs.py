"""Random, damaged and compacted logs of ``__consumer_offsets``, compared with a replay that decodes every record."""

from __future__ import annotations

import json
import random
import struct

import pytest

from kdump.answers.groups.collector import TOPICS, GroupsWanted
from kdump.errors import DamageError
from kdump.internal_topics.consumer_offsets import TOPIC
from kdump.internal_topics.decode import decode
from kdump.records.record_batch import RecordBatch
from kdump.segments.regions import Damage
from kdump.segments.resync import read
from testing import GOLDEN, forge
from testing.damages import damage
from tests.helpers.group_topics import answer, commit_key, commit_value, group_key, group_value, write
from tests.helpers.segments import COMMIT, TRANSACTIONAL, Memory, marker, starts

KEYS = [commit_key(group, topic, number) for group in ("a", "bc") for topic in ("t", "tt") for number in (0, 1)]
PRODUCERS = (7, 8)
LOGS = 24
GOLDEN_LOGS = [
    path for topic in TOPICS for path in sorted((GOLDEN / "brokers").glob(f"*/{topic}-*/*.log")) if path.stat().st_size
]


def log(rng, *, transactions=True):
    """Return the (offset, producer, [(key, value)]) of batches; a marker has its type instead of records."""
    made, offset = [], 0
    for _ in range(rng.randint(5, 25)):
        producer = rng.choice(PRODUCERS) if transactions and rng.random() < 0.4 else -1
        if producer >= 0 and rng.random() < 0.4:
            made.append((offset, producer, rng.randint(0, 1)))
            offset += 1
            continue
        records = []
        for _ in range(rng.randint(1, 3)):
            value = None if rng.random() < 0.15 else commit_value(rng.randrange(100))
            records.append((rng.choice(KEYS), value))
        if producer < 0 and rng.random() < 0.2:
            records = [(group_key(rng.choice(["a", "bc"])), rng.choice([None, group_value()]))]
        made.append((offset, producer, records))
        offset += len(records)
    return made


def write_batches(made, keep=lambda _: True):
    """Return the bytes of a log with only the records whose offset ``keep`` accepts, as the cleaner leaves it."""
    out = b""
    for first, producer, records in made:
        if isinstance(records, int):
            out += marker(first, producer, records)
            continue
        kept = [
            forge.record(key, value, offset=number)
            for number, (key, value) in enumerate(records)
            if keep(first + number)
        ]
        if kept:
            out += forge.batch(
                kept,
                base_offset=first,
                base_timestamp=1000,
                producer_id=producer,
                producer_epoch=0 if producer >= 0 else -1,
                attributes=TRANSACTIONAL if producer >= 0 else 0,
                last_offset_delta=len(records) - 1,
            )
    return out


def replay(content):
    """Return the expected offsets by (group, topic, partition, producer), and the number of damaged ranges."""
    held: dict[tuple, tuple[int, int]] = {}
    lost = 0
    for region in read(Memory(content), on_error="resync", first_offset=0):
        lost += isinstance(region, Damage)
        if not isinstance(region, RecordBatch):
            continue
        producer = region.producer_id if region.is_transactional else None
        for record in region.records():
            if region.is_control:
                pending = {key: held.pop(key) for key in list(held) if key[3] == producer}
                for (*place, _), entry in pending.items():
                    newest = held.get((*place, None), (0, -1))
                    if struct.unpack(">hh", record.key)[1] == COMMIT and entry[1] > newest[1]:
                        held[*place, None] = entry
                continue
            decoded = decode(TOPIC, record.key, record.value)
            if "topic" not in decoded.key.values:
                continue
            place = tuple(decoded.key.values[name] for name in ("group", "topic", "partition"))
            if decoded.value is None:
                held = {key: entry for key, entry in held.items() if key[:3] != place}
            else:
                held[*place, producer] = decoded.value.values["offset"], record.offset
    return {key: offset for key, (offset, _) in held.items()}, lost


def counted(lines):
    return {
        (line["groupId"], line["topic"], line["partition"], line["pendingProducerId"]): line["offset"]
        for line in lines
        if line["kind"] == "offset"
    }


def test_random_logs_count_as_a_plain_replay_says(tmp_path):
    rng = random.Random(2111)
    for _ in range(LOGS):
        content = write_batches(log(rng))
        lines = answer(write(tmp_path, content), GroupsWanted(history=True))
        assert counted(lines) == counted(answer(tmp_path)) == replay(content)[0]


def test_damaged_logs_count_what_is_sound_and_say_what_is_missing(tmp_path):
    rng = random.Random(2112)
    lost = 0
    for _ in range(LOGS):
        content = bytearray(write_batches(log(rng)))
        damage(content, rng, [*starts(bytes(content)), len(content)])
        expected, ranges = replay(bytes(content))
        lines = answer(write(tmp_path, bytes(content)))
        assert counted(lines) == expected
        assert sum(line["kind"] == "missing" for line in lines) == ranges
        lost += ranges
    assert lost > LOGS // 4


def test_a_compacted_log_counts_as_the_whole_one(tmp_path):
    rng = random.Random(2113)
    removed = 0
    for _ in range(LOGS):
        made = log(rng, transactions=False)
        last = {key: first + number for first, _, records in made for number, (key, _) in enumerate(records)}
        dropped = {
            first + number
            for first, _, records in made
            for number, (key, value) in enumerate(records)
            if last[key] != first + number or (value is None and rng.random() < 0.5)
        }
        whole, compacted = write_batches(made), write_batches(made, lambda offset, gone=dropped: offset not in gone)
        assert counted(answer(write(tmp_path, whole))) == counted(answer(write(tmp_path, compacted)))
        removed += len(whole) > len(compacted)
    assert removed > LOGS // 2


@pytest.mark.parametrize("path", GOLDEN_LOGS, ids=lambda path: f"{path.parent.parent.name}-{path.parent.name}")
def test_damaged_logs_of_brokers_are_answered(tmp_path, path):
    content = path.read_bytes()
    rng = random.Random(str(path.relative_to(GOLDEN)))
    topic, _, number = path.parent.name.rpartition("-")
    for _ in range(4):
        broken = bytearray(content)
        damage(broken, rng, [*starts(content), len(content)])
        write(tmp_path, bytes(broken), topic=topic, partition=int(number))
        lines = answer(tmp_path, GroupsWanted(history=True))
        assert json.dumps(lines)
        ranges = [region for region in read(Memory(bytes(broken)), on_error="resync") if isinstance(region, Damage)]
        assert sum(line["kind"] == "missing" for line in lines) >= len(ranges)


def test_a_batch_whose_records_cannot_be_read_is_missing(tmp_path):
    good, bad = (forge.record(KEYS[0], commit_value(5)), b"\x02\x00")
    content = forge.batch([good]) + forge.batch([bad], base_offset=1) + forge.batch([good], base_offset=2)
    with pytest.raises(DamageError):
        replay(content)
    lines = answer(write(tmp_path, content))
    assert [(line["fromOffset"], line["untilOffset"]) for line in lines if line["kind"] == "missing"] == [(1, 2)]
    assert list(counted(lines).values()) == [5]
