"""The outcomes of transactions: markers decide, and .txnindex replaces markers that cannot be read."""

import random
import shutil

import pytest

from kdump import kernel
from kdump.errors import SILENT, FailingDiskError, Reporter, UnreadableError
from kdump.formats import txn_index
from kdump.log_dirs.finder import Finder
from kdump.log_reader.header_scan import attempt
from kdump.parallel import costs
from kdump.records.record_batch import RecordBatch
from kdump.segments.resync import read
from kdump.transaction_replay import outcomes as outcomes_module
from kdump.transaction_replay.outcomes import Doubt, Outcomes, Scan, TransactionFollower, combined, follow, scan
from testing import GOLDEN, damages, forge
from tests.helpers.segments import ABORT, COMMIT, CONTROL, TRANSACTIONAL, Memory, marker


def data(offset, producer, **rest):
    record = forge.record(b"k", b"v")
    return forge.batch([record], base_offset=offset, producer_id=producer, attributes=TRANSACTIONAL, **rest)


def entry(producer, first, last):
    return txn_index.AbortedTxn(0, producer, first, last, last + 1)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "t-0"
    folder.mkdir()
    return folder


def one_by_one(where):
    """Return the facts of a segment whose batches are taken one after another."""
    follower = TransactionFollower(where)
    with where.open() as source:
        for region in read(source, on_error="resync"):
            if isinstance(region, RecordBatch):
                follower.add(region)
            else:
                follower.lose(source, region)
    return follower.result()


@pytest.fixture(params=["one thread", "two threads"])
def beside(request, monkeypatch, begun):
    """Return the threads that start if two read the headers of every segment, or None if one does."""
    if request.param == "two threads" and not kernel.COMPILED:
        pytest.skip("runs are the kernel's")
    if request.param == "one thread":
        monkeypatch.setattr(costs, "processors", lambda: 1)
        return None
    monkeypatch.setattr(costs, "processors", lambda: 2)
    for place, name, value in ((costs, "CHUNK", 300), (costs, "PACKED_CHUNK", 300), (costs, "SMALL_BATCHES", 0)):
        monkeypatch.setattr(place, name, value)
    for name in ("PRINTING", "THREAD_OF_HEADERS"):
        monkeypatch.setattr(costs, name, 1)
    return begun


@pytest.mark.parametrize("damaged", [False, True])
def test_alike_batches_in_one_call_give_the_same_as_one_by_one(tmp_path, damaged, beside):
    for log in sorted((GOLDEN / "brokers").glob("*/*/*.log")):
        place = tmp_path / log.relative_to(GOLDEN).parent
        shutil.copytree(log.parent, place, dirs_exist_ok=True)
        if damaged and log.stat().st_size:
            data = bytearray(log.read_bytes())
            data[len(data) // 2] ^= 0x55
            (place / log.name).write_bytes(data)
    for partition in Finder().find([str(tmp_path)]):
        assert list(map(scan, partition.segments)) == [Scan(one_by_one(where)) for where in partition.segments]
    assert beside is None or len(beside) > 10


def test_damage_at_random_gives_the_same(folder, beside):
    rng = random.Random(27)
    sound = []
    for base in range(0, 600, 3):
        sound += [data(base, base % 5), data(base + 1, (base + 1) % 5)]
        sound.append(marker(base + 2, base % 5, rng.choice([COMMIT, ABORT])))
    starts = [sum(map(len, sound[:number])) for number in range(len(sound) + 1)]
    path = folder / f"{0:020}.log"
    for _ in range(40):
        log = bytearray(b"".join(sound))
        for _ in range(rng.randint(0, 5)):
            damages.damage(log, rng, starts)
        path.write_bytes(log)
        ((where,),) = (partition.segments for partition in Finder().find([str(folder)]))
        assert scan(where) == Scan(one_by_one(where))
    assert beside is None or len(beside) > 10


def outcomes(folder, segments, *, entries=(), only=None):
    """Write segments (base offset -> batches); return the facts of every batch, the outcomes and the notes."""
    for base, batches in segments.items():
        (folder / f"{base:020}.log").write_bytes(b"".join(batches))
    if entries:
        base = max(segments)
        (folder / f"{base:020}.txnindex").write_bytes(txn_index.encode(entries))
    notes = []
    path = folder if only is None else folder / f"{only:020}.log"
    (partition,) = Finder().find([str(path)])

    def fail(error):
        raise error

    reported = follow(partition, Reporter(wrong=notes.append, fail=fail))
    assert list(map(scan, partition.segments)) == [Scan(one_by_one(where)) for where in partition.segments]
    found = []
    for where in partition.segments:
        with where.open() as source:
            found += [
                reported.of(region) for region in read(source, on_error="resync") if isinstance(region, RecordBatch)
            ]
    return found, reported, notes


def test_interleaved_transactions_over_two_segments(folder):
    found, reported, notes = outcomes(
        folder,
        {
            0: [data(0, 7), data(1, 8), data(2, 7)],
            3: [
                marker(3, 7, ABORT),
                data(4, 7),
                marker(5, 8, COMMIT),
                data(6, 9),
                marker(7, 7, COMMIT),
            ],
        },
    )
    assert found == ["aborted", "committed", "aborted", "aborted", "committed", "committed", "open", "committed"]
    assert (reported.last_stable_offset, len(reported.open), notes) == (6, 1, [])


def test_what_is_in_no_transaction(folder):
    found, reported, _ = outcomes(folder, {0: [forge.batch([forge.record(None, None)])]})
    assert (found, reported.last_stable_offset, reported.early_end) == (["none"], None, None)
    assert outcomes(folder, {0: []})[1].last_stable_offset is None


def test_an_end_in_a_segment_that_was_not_named_is_not_known(folder):
    segments = {0: [data(0, 7)], 1: [marker(1, 7, ABORT)]}
    assert outcomes(folder, segments, only=0)[0] == [None]
    assert outcomes(folder, segments)[0] == ["aborted", "aborted"]
    assert outcomes(folder, segments, only=1)[0] == ["aborted"]


def test_the_index_stands_in_for_a_marker_that_cannot_be_read(folder):
    lost = data(0, 7) + data(1, 8) + marker(2, 8, COMMIT) + marker(3, 7, ABORT, crc=1) + data(4, 9)
    found, reported, notes = outcomes(folder, {0: [lost]}, entries=[entry(7, 0, 3)])
    assert (found, notes) == (["aborted", "committed", "committed", "open"], [])
    assert reported.last_stable_offset == 4
    assert reported.early_end == "1 transaction is open; read_committed ends at the last stable offset, 4"


@pytest.mark.parametrize(
    ("named", "first"), [((0, 2), None), ((0, 1, 2), "aborted"), ((0, 1), "aborted"), ((0,), None)]
)
def test_a_segment_that_is_not_named_may_hold_a_marker(folder, named, first):
    held = [data(0, 7), marker(1, 7, ABORT), data(2, 7) + marker(3, 7, COMMIT)]
    paths = [folder / f"{base:020}.log" for base in range(3)]
    for path, content in zip(paths, held, strict=True):
        path.write_bytes(content)
    (found,) = Finder().find([str(paths[number]) for number in named])
    batches = [next(batch for batch in read(Memory(one), on_error="resync")) for one in (held[0], held[2])]
    outcomes = follow(found, SILENT)
    assert outcomes.of(batches[0]) == first
    assert 2 not in named or outcomes.of(batches[1]) == "committed"


def test_what_follows_a_marker_that_cannot_be_read_is_another_transaction(folder):
    lost = data(0, 7) + marker(1, 7, ABORT, crc=1) + data(2, 7)
    assert outcomes(folder, {0: [lost]}, entries=[entry(7, 0, 1)])[0] == ["aborted", "open"]
    ended = [lost, marker(3, 7, COMMIT)]
    assert outcomes(folder, {0: ended}, entries=[entry(7, 0, 1)])[0] == ["aborted", "committed", "committed"]
    segments = {0: [data(0, 7)], 1: [marker(1, 7, ABORT, crc=1), data(2, 8)]}
    found, reported, _ = outcomes(folder, segments, entries=[entry(7, 0, 1)])
    assert (found, reported.last_stable_offset) == (["aborted", "open"], 2)


def test_many_transactions_of_a_producer_keep_little(folder):
    batches = [made for n in range(0, 200, 2) for made in (data(n, 7), marker(n + 1, 7, COMMIT))]
    outcomes(folder, {0: batches})
    (partition,) = Finder().find([str(folder)])
    follower = TransactionFollower(partition.segments[0])
    with partition.segments[0].open() as source:
        for region in read(source):
            follower.add(region)
    reported = follower.result()
    assert ([end.last_offset for end in reported.ended], reported.open, reported.wrong) == ([1], (), ())


def test_an_entry_that_the_log_refutes_is_said_and_not_believed(folder):
    found, _, notes = outcomes(folder, {0: [data(0, 7), marker(1, 7, COMMIT)]}, entries=[entry(7, 0, 1)])
    assert found == ["committed", "committed"]
    assert "txnindex" in notes[0]
    assert "producer 7 at offset 1" in notes[0]


def test_a_broken_index_is_said(folder):
    (folder / f"{0:020}.txnindex").write_bytes(b"\0\1")
    found, _, notes = outcomes(folder, {0: [data(0, 7), marker(1, 7, COMMIT)]})
    assert (found, len(notes)) == (["committed", "committed"], 1)


def test_a_marker_that_compaction_emptied(folder):
    empty = forge.batch([], base_offset=1, producer_id=7, attributes=TRANSACTIONAL | CONTROL, last_offset_delta=0)
    assert outcomes(folder, {0: [data(0, 7), empty]})[0] == ["open", None]


def plain(offset, **rest):
    return forge.batch([forge.record(b"k", b"v" * 100)], base_offset=offset, **rest)


DAMAGED_MARKER = {"crc": 1}


def test_what_may_have_ended_in_damage_is_not_known(folder):
    """Either marker may be the lost one: nothing shows which transaction the valid marker ends."""
    lost = marker(2, 8, COMMIT, **DAMAGED_MARKER)
    log = [data(0, 7), data(1, 8), lost, data(3, 7), data(4, 9), marker(5, 7, ABORT), marker(6, 8, COMMIT)]
    found, reported, notes = outcomes(folder, {0: [*log, data(7, 7), marker(8, 7, COMMIT)]})
    assert found == [None, None, "aborted", "open", "aborted", "committed", "committed", "committed"]
    assert (reported.last_stable_offset, notes) == (4, [])
    assert reported.held_back[1].startswith(
        "kdump did not read the bytes that show whether transactions at offsets 0 to 1, 1 to 1 were committed"
    )


def test_an_index_gives_what_was_aborted_before_and_after_damage(folder):
    lost = [data(0, 7), data(1, 8), marker(2, 8, COMMIT, **DAMAGED_MARKER), data(3, 7)]
    found, reported, _ = outcomes(folder, {0: [*lost, marker(4, 7, ABORT)]}, entries=[entry(7, 0, 4)])
    assert found == ["aborted", None, "aborted", "aborted"]
    assert outcomes(folder, {0: lost[:3], 3: [lost[3], marker(4, 7, ABORT)]}, entries=[entry(7, 0, 4)])[0] == found
    assert [(one.producer_id, one.first_offset) for one in reported.doubts] == [(7, 0), (8, 1)]


def test_damage_that_is_a_large_batch_holds_no_marker(folder):
    log = [data(0, 7), plain(1, crc=1), plain(2, crc=1), marker(3, 7, ABORT)]
    assert outcomes(folder, {0: log})[0] == ["aborted", "aborted"]
    garbage = [data(0, 7), b"\xff" * 300, marker(3, 7, ABORT)]
    assert outcomes(folder, {0: garbage})[0] == [None, "aborted"]


def test_damage_at_the_end_of_the_log_holds_no_end_and_in_a_segment_that_has_rolled_may(folder):
    cut = marker(1, 7, COMMIT)[:-1]
    assert outcomes(folder, {0: [data(0, 7), cut]})[0] == ["open"]
    assert outcomes(folder, {0: [data(0, 7), cut], 2: [data(2, 7), marker(3, 7, COMMIT)]})[0] == [
        None,
        "committed",
        "committed",
    ]
    assert outcomes(folder, {0: [data(0, 7)], 1: [b"\xff" * 90], 2: [data(2, 8), marker(3, 8, COMMIT)]})[0] == [
        None,
        "committed",
        "committed",
    ]


def test_a_marker_of_which_nothing_sound_is_said(folder):
    record = forge.record(b"\0\0", b"")
    odd = forge.batch([record], base_offset=1, producer_id=7, attributes=TRANSACTIONAL | CONTROL)
    assert outcomes(folder, {0: [data(0, 7), odd, data(2, 7), marker(3, 7, COMMIT)]})[0] == [
        None,
        None,
        "committed",
        "committed",
    ]


@pytest.mark.parametrize("indexed", [False, True])
def test_a_segment_that_cannot_be_read_leaves_unknown_what_may_have_ended_in_it(folder, monkeypatch, indexed):
    segments = {
        0: [data(0, 7), data(1, 8), data(2, 9), marker(3, 9, COMMIT)],
        4: [marker(4, 7, ABORT), data(5, 6), marker(6, 8, COMMIT)],
        7: [data(7, 7), marker(8, 7, COMMIT), data(9, 8), data(10, 6)],
    }
    for base, batches in segments.items():
        (folder / f"{base:020}.log").write_bytes(b"".join(batches))
    if indexed:
        (folder / f"{4:020}.txnindex").write_bytes(txn_index.encode([entry(7, 0, 4)]))
    (partition,) = Finder().find([str(folder)])
    every = [region for where in partition.segments for region in regions(where)]
    lost, failed = partition.segments[1], []
    real = type(lost).open

    def opens(segment):
        if segment is lost:
            raise FailingDiskError(segment.name, "Input/output error")
        return real(segment)

    monkeypatch.setattr(type(lost), "open", opens)
    reported = follow(partition, Reporter(fail=failed.append))
    assert len(failed) == 1
    assert [reported.of(region) for region in every] == [
        "aborted" if indexed else None,
        None,
        "committed",
        "committed",
        "aborted",
        None,
        "committed",
        "committed",
        "committed",
        "open",
        "open",
    ]
    surveyed = combined((attempt(where, 1 << 20).transactions for where in partition.segments), whole=partition.whole)
    assert surveyed == reported
    assert [surveyed.among(7, 10).of(region) for region in every[7:]] == [reported.of(region) for region in every[7:]]


def regions(where):
    with where.open() as source:
        return [region for region in read(source) if isinstance(region, RecordBatch)]


def test_a_last_segment_that_cannot_be_read_may_have_ended_what_is_open(folder, monkeypatch):
    for base, batches in {0: [data(0, 7)], 1: [marker(1, 7, ABORT)]}.items():
        (folder / f"{base:020}.log").write_bytes(b"".join(batches))
    (partition,) = Finder().find([str(folder)])
    (batch,) = regions(partition.segments[0])
    monkeypatch.setattr(outcomes_module, "_scan", scan_of(partition.segments[0]))
    reported = follow(partition, SILENT)
    assert (reported.of(batch), reported.last_stable_offset) == (None, None)
    assert "offsets 0 to 0, 1 to the end were committed" in (reported.unknown or "")


def scan_of(only):
    real = outcomes_module._scan

    def scan(where):
        if where is not only:
            raise UnreadableError(where.name, "Input/output error")
        return real(where)

    return scan


def test_an_offset_that_is_damaged_and_that_no_checksum_covers_hides_no_abort(folder):
    log = [data(1 << 40, 7), data(1, 7), marker(2, 7, ABORT)]
    assert outcomes(folder, {0: log})[0][1:] == ["aborted", "aborted"]
    assert outcomes(folder, {0: log[:1], 1: log[1:2], 2: log[2:]})[0][1:] == ["aborted", "aborted"]


def test_many_doubts_are_looked_up_and_not_gone_through():
    chance = random.Random(48)
    doubts = [
        Doubt(chance.choice((None, 1, 2)), first := chance.randrange(900), first + chance.randrange(9))
        for _ in range(60)
    ]
    outcomes = Outcomes(doubts=tuple(doubts))
    for offset in range(1000):
        for producer in (1, 2, 3):
            (batch,) = read(Memory(data(offset, producer)))
            held = any(
                one.producer_id in {None, producer} and one.first_offset <= offset <= one.last_offset for one in doubts
            )
            assert (outcomes.of(batch) is None) == held
    assert sum(map(len, outcomes._doubts.values())) < len(doubts)
