"""Answers and a broker's start give the same result for many batches at once as for one batch at a time."""

import random
from pathlib import Path

import pytest

from kdump import kernel
from kdump.answers.explain import sightings
from kdump.answers.explain.evidence import PartitionEvidence, TopicHistory
from kdump.answers.groups.collector import LogEnds
from kdump.answers.log_copy import lineage
from kdump.answers.log_dir_pass import LogDirPass
from kdump.answers.offsets import Offsets
from kdump.answers.producers import Producers
from kdump.answers.transactions import Transactions, ended
from kdump.errors import SILENT, Reporter
from kdump.formats import producer_snapshot
from kdump.formats.producer_snapshot import ProducerEntry
from kdump.log_dirs.file_names import SEGMENT_NAME
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_salvage import slice_segment
from kdump.log_salvage.slice_segment import SliceRange
from kdump.recovery.index_builder import Rebuild
from kdump.recovery.log_loader import dry_run
from kdump.segments.log_end import end_of_log
from testing import GOLDEN, forge
from tests.helpers.log_dirs import write
from tests.helpers.segments import ABORT, COMMIT, TRANSACTIONAL, marker

if not kernel.COMPILED:
    pytest.skip("without the kernel there are no runs", allow_module_level=True)

AT = 1_800_000_000_000
KEYS = frozenset(b"key-%d" % number for number in range(5))


def log(choose: random.Random, kind: str, start: int, count: int = 150) -> list[bytes]:
    """Batches of one record from offset ``start`` on, with breaks of sequences and offsets, and with new epochs."""
    found, sequences, epochs, begun = [], {}, {}, set()
    offset = start
    for _ in range(count):
        producer = -1 if kind == "plain" else 7 + choose.randrange(3)
        epochs[producer] = epochs.get(producer, 0) + (choose.random() < 0.02)
        sequence = sequences.get(producer, 2**31 - 4) + choose.choice([0] * 40 + [-2, 3])
        sequences[producer] = (sequence + 1) % 2**31
        begun |= {producer} if kind == "transactional" else set()
        batch = forge.batch(
            [forge.record(b"key-%d" % choose.randrange(9), b"value")],
            base_offset=offset,
            base_timestamp=1000 + 10 * offset + choose.randrange(-90, 90),
            producer_id=producer,
            producer_epoch=-1 if producer < 0 else epochs[producer],
            base_sequence=-1 if producer < 0 else sequence % 2**31,
            attributes=TRANSACTIONAL if kind == "transactional" else 0,
            leader_epoch=offset // 60,
        )
        found.append(batch)
        offset += 1 + (choose.random() < 0.03)
        if begun and choose.random() < 0.1:
            found.append(marker(offset, begun.pop(), choose.choice([ABORT, COMMIT])))
            offset += 1
    return found


def damage(choose: random.Random, batches: list[bytes], how: int) -> bytes:
    """Batches with bytes changed, moved or missing; the CRC covers neither offset nor leader epoch."""
    place = choose.randrange(1, len(batches) - 1)
    before, one, after = b"".join(batches[:place]), batches[place], b"".join(batches[place + 1 :])
    wrong = {
        "moved": after + one,
        "cut": one[: choose.randrange(len(one))],
        "flipped": one[:30] + bytes([one[30] ^ 1]) + one[31:] + after,
        "offset": choose.choice((5, 2**31 + 300)).to_bytes(8, "big") + one[8:] + after,
        "epoch": one[:12] + b"\0\0\0\x09" + one[16:] + after,
        "twice": one + one + after,
    }
    return before + wrong[sorted(wrong)[how % len(wrong)]]


@pytest.fixture(scope="module", params=range(30))
def folder(request, tmp_path_factory) -> Path:
    """A partition of two segments, sometimes with a snapshot; all but the first three are damaged."""
    choose = random.Random(request.param)
    kind = ("plain", "idempotent", "transactional")[request.param % 3]
    segments = {start: log(choose, kind, start) for start in (0, 200)}
    content = {start: b"".join(batches) for start, batches in segments.items()}
    if request.param > 2:
        start = choose.choice((0, 200))
        content[start] = damage(choose, segments[start], request.param // 3)
    place = write(tmp_path_factory.mktemp("runs"), "orders-0", content)
    for offset in choose.sample([120, 200, 230, 340, 345], choose.randrange(4)):
        entries = [ProducerEntry(8, 0, 5, 60, 0, 50, 2, 61), ProducerEntry(40, 1, 5, 60, 0, 50, 2, -1)]
        (place / f"{offset:020}.snapshot").write_bytes(producer_snapshot.encode(entries))
    return place


def partition_in(folder):
    (found,) = Finder(Wanted()).find([str(folder)])
    return found


def collected(folder):
    said = []
    report = Reporter(*(lambda text, name=name: said.append((name, str(text))) for name in Reporter._fields[:4]))
    collectors = [
        Producers(),
        Producers(gaps=True),
        Offsets(),
        Offsets((1500, 3000, 3900, 10**6)),
        Transactions(Wanted()),
        LogEnds(stable=True),
    ]
    partitions = [partition_in(folder)]
    for collector in collectors:
        LogDirPass([collector], report).run(partitions)
    transactions, ends = collectors[4:]
    all_ended = list(ended(LogDirPass([], report), partitions, transactions.ids, AT))
    return [*(list(one.answer(AT)) for one in collectors), ends.found, all_ended, said]


def explained(folder):
    said = []
    partition = partition_in(folder)
    report = Reporter(said.append, said.append, said.append, said.append)
    place = LogDirPass([], report).place(partition)
    known = PartitionEvidence("orders", 0, place, TopicHistory(None, lambda: iter(())))
    looks = [
        sightings.look(known.segments, offsets, opened=opened, report=SILENT._replace(damage=said.append))
        for offsets in (range(1), range(40, 90), range(120, 260), range(900, 901))
        for opened in (None, known.opened)
    ]
    waiting = sightings.look(known.segments[:1], range(100))
    sightings.find_ends(waiting, known.segments)
    newest = [sightings.newest_of_keys(known.segments, since, KEYS) for since in (0, 77, 250)]
    largest = [known.largest_timestamp(segment) for segment in known.segments]
    ends = end_of_log(partition), lineage(partition, Reporter(said.append))
    return known.end, known.opened, known.doubted, looks, waiting, newest, largest, ends, said


def recovered(folder):
    partition = partition_in(folder)
    starts = [
        dry_run(partition, clean=clean, recovery_point=point, interval=interval)
        for clean, point, interval in ((True, 0, 4096), (False, 0, 4096), (False, 0, 200), (False, 250, 4096))
    ]
    rebuilt = [
        [
            (segment.name, str(made), made if isinstance(made, tuple) else None)
            for segment, made in rebuild.of(partition)
        ]
        for rebuild in (Rebuild(interval=200, first_offsets=True), Rebuild(interval=4096, first_offsets=False))
    ]
    return starts, rebuilt


def sliced(folder):
    made = []
    for wanted in (SliceRange(None, None), SliceRange(30, 230), SliceRange(None, 20), SliceRange(110, None)):
        out = folder.parent / "slice.log"
        found = slice_segment.write(partition_in(folder).segments, wanted, str(out), lambda *lost: made.append(lost[1]))
        made.append((found, out.read_bytes() if out.exists() else None))
        out.unlink(missing_ok=True)
    return made


@pytest.mark.parametrize("what", [collected, explained, recovered, sliced])
def test_alike_batches_in_one_call_give_the_same_as_one_by_one(folder, what, monkeypatch):
    in_one_go = what(folder)
    monkeypatch.setattr(kernel, "COMPILED", False)
    assert in_one_go == what(folder)


@pytest.mark.parametrize("what", [collected, recovered, sliced])
def test_so_do_those_of_brokers(tmp_path, what, monkeypatch):
    found = sorted(log.parent for log in (GOLDEN / "brokers").glob("*/*-0/*.log") if SEGMENT_NAME.fullmatch(log.name))
    folders = [tmp_path / str(number) / place.name for number, place in enumerate(dict.fromkeys(found))]
    for folder, place in zip(folders, dict.fromkeys(found), strict=True):
        write(folder.parent, place.name, {one.name: one.read_bytes() for one in place.iterdir() if one.is_file()})
    in_one_go = [what(folder) for folder in folders]
    monkeypatch.setattr(kernel, "COMPILED", False)
    assert in_one_go == [what(folder) for folder in folders]
