"""A listed segment is gone when it is read: retention deleted it, or a store listed too few files."""

import json
import shutil

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")

from kdump.errors import StoreError, UnreadableError
from kdump.log_dirs import remote
from kdump.spark.export import following, job
from kdump.spark.export.following import State
from kdump.spark.source import listings, reading, streaming
from kdump.spark.source import options as words
from kdump.spark.source.data_source import KdumpStreamReader
from kdump.spark.source.listings import Listings
from kdump.spark.source.marks import START, DataLossError
from testing.stores import Clock, FlakyStore, Outage
from tests.helpers.growing import NONE, Log, Stream
from tests.spark.test_following import export, manifest, rows, run


def grown(folder, segments=4):
    """Return a folder of segments of three records each, and their paths."""
    log = Log(folder)
    paths = []
    for number in range(segments):
        log.append()
        paths.append(log.file)
        if number + 1 < segments:
            log.roll()
    return log, paths


def compared(root, known, marks=None):
    found = {listings.key_of(one): one for one in streaming.partitions(words.SourceOptions(paths=(str(root),)))}
    return known.compare(found, marks or {}, lambda _: False)


def compacts(log, paths):
    """The first two become one file, and the third is deleted: cleaned segments have the name of the first."""
    paths[1].write_bytes(paths[1].read_bytes() + paths[2].read_bytes())
    paths[2].unlink()


def truncates(log, paths):
    """A broker truncates the log at offset 6 for a new leader: later segments go, that of offset 6 becomes empty."""
    paths[2].write_bytes(b"")
    paths[3].unlink()


def retains(log, paths):
    paths[0].unlink()
    paths[1].unlink()


def retains_all(log, paths):
    log.roll()
    for path in paths:
        path.unlink()


@pytest.mark.parametrize("change", [compacts, truncates, retains, retains_all])
def test_what_a_broker_deletes_is_explained(tmp_path, change):
    log, paths = grown(tmp_path / "t-0")
    known = Listings()
    assert compared(tmp_path, known) == {}
    change(log, paths)
    assert compared(tmp_path, known) == {}
    assert compared(tmp_path, known) == {}


@pytest.mark.parametrize("gone", [[1], [2], [3], [1, 2], [2, 3], [1, 3], [0, 2], [0, 3], [0, 1, 2, 3]], ids=str)
def test_a_hole_and_a_missing_end_are_not(tmp_path, gone):
    _, paths = grown(tmp_path / "t-0")
    grown(tmp_path / "u-0")
    known = Listings()
    compared(tmp_path, known)
    held = {paths[number]: paths[number].read_bytes() for number in gone}
    for path in held:
        path.unlink()
    (error,) = compared(tmp_path, known).values()
    assert error.path in [str(path) for path in held]
    assert str(error).endswith(f"{listings.GONE} ({listings.HINT})")
    assert compared(tmp_path, known), "it stays so until the segment is there again"
    for path, data in held.items():
        path.write_bytes(data)
    assert compared(tmp_path, known) == {}


def test_what_was_read_may_go(tmp_path):
    log, paths = grown(tmp_path / "t-0")
    known, key = Listings(), str(log.folder)
    mark = START._replace(offset=9, file=str(paths[2]), position=paths[2].stat().st_size)
    compared(tmp_path, known, {key: mark})
    for path in paths[:3]:
        path.unlink()
    assert compared(tmp_path, known, {key: mark}) == {}
    whole = mark._replace(offset=12, file=str(paths[3]), position=paths[3].stat().st_size)
    paths[3].unlink()
    assert compared(tmp_path, known, {key: mark})
    assert compared(tmp_path, known, {key: whole}) == {}


def test_a_partition_that_is_gone_leaves_no_transactions(tmp_path):
    log, _ = grown(tmp_path / "t-0")
    known, key = Listings(), str(log.folder)
    (found,) = streaming.partitions(words.SourceOptions(paths=(str(tmp_path),)))
    compared(tmp_path, known)
    known.transactions(found, 1 << 20)
    whole = START._replace(offset=12, file=str(log.file), position=log.file.stat().st_size)
    shutil.rmtree(log.folder)
    assert compared(tmp_path, known, {key: whole}) == {}
    assert (known._known, known._transactions) == ({}, {})


def test_a_folder_that_cannot_be_listed_is_not_gone(tmp_path):
    grown(tmp_path / "t-0")
    known = Listings()
    compared(tmp_path, known)
    assert known.compare({}, {}, lambda _: True) == {}
    assert [error.path for error in known.compare({}, {}, lambda _: False).values()] == [
        str(tmp_path / "t-0" / f"{0:020}.log")
    ]


@pytest.mark.parametrize("lost", [1, 3])
def test_a_stream_ends_where_a_listed_segment_is_missing(tmp_path, lost):
    """It goes between the listing for a trigger's end and the one that plans it, or before the next trigger."""
    _, paths = grown(tmp_path / "t-0")
    options = words.SourceOptions(paths=(str(tmp_path),))
    reader = KdumpStreamReader(options)
    end = reader.latestOffset({}, None)
    paths[lost].unlink()
    with pytest.raises(DataLossError, match=f"{paths[lost]}: it has disappeared before it was read"):
        reader.partitions({}, end)
    with pytest.raises(UnreadableError, match=f"{paths[lost]}: it has disappeared before it was read"):
        reader.latestOffset({}, None)
    again = KdumpStreamReader(options)
    end = again.latestOffset({}, None)
    splits = [split for group in again.partitions({}, end) for split in group.value]
    found = [row["offset"] for split in splits for batch in reading.read(split, options) for row in batch.to_pylist()]
    assert found == [offset for offset in range(12) if offset // 3 != lost]


def test_a_segment_that_disappears_while_the_ends_are_read_ends_the_stream(tmp_path, monkeypatch):
    """With availableNow the first listing is that of the ends."""
    _, paths = grown(tmp_path / "t-0")
    reader = KdumpStreamReader(words.SourceOptions(paths=(str(tmp_path),)))
    reader.prepareForTriggerAvailableNow()
    end_of_log = streaming.end_of_log

    def deleted(partition):
        paths[3].unlink(missing_ok=True)
        return end_of_log(partition)

    monkeypatch.setattr(streaming, "end_of_log", deleted)
    with pytest.raises(UnreadableError, match=f"{paths[3]}: it has disappeared before it was read"):
        reader.latestOffset({}, None)


def test_a_stream_that_may_lose_data_goes_on_with_the_rest_and_says_so_once(tmp_path):
    _, paths = grown(tmp_path / "t-0")
    stream = Stream(tmp_path, fail_on_data_loss=False)
    end = streaming.advance(stream.options, {}, NONE, listings=stream.listings).offsets
    paths[1].unlink()
    assert stream.replay({}, end) == [0, 1, 2, 6, 7, 8, 9, 10, 11]
    assert [text.partition(":")[0] for text in stream.reported] == [str(paths[1])]
    stream.at = end
    assert stream.trigger() == []
    assert len(stream.reported) == 1


def incremental(monkeypatch, source, out, at, strike):
    """Run --incremental; call ``strike`` before Spark writes, or before the first listing that plans."""
    owner, name = {"write": (job.Work, "write"), "plan": (streaming, "advance")}[at]
    real = getattr(owner, name)

    def struck(*given, **more):
        strike()
        return real(*given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, struck)
        return run(source, out)


@pytest.mark.parametrize("at", ["plan", "write"])
@pytest.mark.parametrize("lost", [1, 3])
def test_an_incremental_export_publishes_nothing_where_a_listed_segment_is_missing(
    spark, tmp_path, monkeypatch, at, lost
):
    _, paths = grown(tmp_path / "in" / "t-0")
    with pytest.raises(UnreadableError, match=f"{paths[lost]}: it has disappeared before it was read"):
        incremental(monkeypatch, tmp_path / "in", tmp_path / "out", at, lambda: paths[lost].unlink(missing_ok=True))
    assert not (tmp_path / "out").exists()
    assert run(tmp_path / "in", tmp_path / "out").summary.rows == 9


def test_an_incremental_export_goes_on_where_retention_deletes(spark, tmp_path, monkeypatch):
    _, paths = grown(tmp_path / "in" / "t-0")
    out = tmp_path / "out"
    added = incremental(monkeypatch, tmp_path / "in", out, "write", lambda: paths[0].unlink(missing_ok=True))
    assert added.summary.rows == 9
    assert [row["offset"] for row in rows(out)] == [*range(3, 12)]
    assert len(manifest(out)["runs"]) == 1


def test_following_stops_before_a_hole_and_goes_on_elsewhere(tmp_path, monkeypatch):
    _, paths = grown(tmp_path / "in" / "t-0")
    other, _ = grown(tmp_path / "in" / "u-0")
    notes = []
    follower = following.Follower(export(tmp_path / "in", tmp_path / "out"), job.Listener(notes.append, print))
    follower._forever = True
    follower._listings.remember(streaming.partitions(follower._options))
    paths[1].unlink()
    for _ in range(2):
        advance = streaming.advance(follower._options, {}, NONE, fail=follower._fail, listings=follower._listings)
        assert [*json.loads(json.dumps(advance.offsets))] == [str(other.folder)]
    assert [note.partition(": ")[0] for note in notes] == [str(paths[1])]
    assert notes[0].endswith("continuing with the other folders")
    assert [error.path for error in follower.added.summary.unreadable] == [str(paths[1])]


def test_following_goes_on_after_an_outage_that_began_at_any_moment(tmp_path, monkeypatch):
    """During the outage nothing is taken as gone or as read, and the first listing after it has the rest."""
    for topic in ("t-0", "u-0"):
        grown(tmp_path / "broker" / topic)
    monkeypatch.setattr(remote, "time", Clock())
    monkeypatch.setattr(remote, "notify", lambda _: None)
    store = FlakyStore(tmp_path)

    class FileSystem:
        @staticmethod
        def from_uri(uri):
            return store, uri.partition("bucket/")[2]

    monkeypatch.setattr("pyarrow.fs.FileSystem", FileSystem)
    options = words.SourceOptions(paths=("s3://bucket/broker",))
    keys = [f"s3://broker/{topic}" for topic in ("t-0", "u-0")]

    def look(start, known, fault, errors):
        store.fault = fault
        return streaming.advance(options, start, NONE, fail=errors.append, listings=known).offsets

    met = Outage(lambda: OSError("away"), count=0)
    half = look({}, Listings(), met, [])
    assert [half[key]["offset"] for key in keys] == [12, 12]
    for first in range(met.met):
        known, errors = Listings(), []
        look({}, known, Outage(lambda: OSError("away"), count=0), errors)
        during = look({}, known, Outage(lambda: OSError("away"), first=first, count=None), errors)
        assert errors
        assert all(isinstance(error, StoreError) for error in errors)
        assert not any(mark["gone"] for mark in during.values())
        again = look(half, known, Outage(lambda: OSError("away"), first=first, count=None), errors)
        assert again == half
        errors.clear()
        after = look(during, known, Outage(lambda: OSError("away"), count=0), errors)
        assert [after[key]["offset"] for key in keys] == [12, 12]
        assert errors == []


@pytest.mark.parametrize("forever", [True, False])
def test_a_step_in_which_a_segment_cannot_be_read_ends_a_run_and_not_a_follower(tmp_path, monkeypatch, forever):
    _, paths = grown(tmp_path / "in" / "t-0")
    notes = []
    follower = following.Follower(export(tmp_path / "in", tmp_path / "out"), job.Listener(notes.append, print))
    follower._forever = forever
    start = State(0, {})

    def take(*_):
        raise UnreadableError(str(paths[1]), "could not be read: away")

    monkeypatch.setattr(follower, "_take", take)
    if forever:
        assert follower._step(None, None, start) == (start, True)
        assert notes == [f"{paths[1]}: could not be read: away; continuing with the other folders"]
    else:
        with pytest.raises(UnreadableError, match="away"):
            follower._step(None, None, start)
    assert [str(error.path) for error in follower.added.summary.unreadable] == [str(paths[1])] * forever

    def refuse(*_):
        raise UnreadableError(str(tmp_path / "out"), "cannot be written: No space left on device")

    monkeypatch.setattr(follower, "_take", refuse)
    with pytest.raises(UnreadableError, match="No space left"):
        follower._step(None, None, start)


def test_a_trigger_reads_the_headers_of_changed_segments_alone(tmp_path, monkeypatch):
    read, survey = [], listings.survey
    monkeypatch.setattr(listings, "survey", lambda segment, size: read.append(segment.path) or survey(segment, size))
    log, paths = grown(tmp_path / "t-0")
    known, options = Listings(), words.SourceOptions(paths=(str(tmp_path),), isolation="read_committed")

    def look():
        read.clear()
        (partition,) = streaming.partitions(options)
        found = known.transactions(partition, 1 << 20)
        assert found == Listings().transactions(partition, 1 << 20)
        return found, read[: -len(partition.segments)]

    found, first = look()
    assert [one.last_offset for one in found] == [2, 5, 8, 11]
    assert first == [str(path) for path in paths]
    assert look()[1] == [str(paths[3])], "a broker appends to the last one only"
    log.append()
    log.roll()
    log.append(attributes=0x10, producer_id=1, producer_epoch=0)
    assert look()[1] == [str(paths[3]), str(log.file)]
    paths[1].write_bytes(paths[1].read_bytes() * 2)
    found, changed = look()
    assert changed == [str(paths[1]), str(log.file)]
    assert [one.producer_id for one in found[-1].found.open] == [1]
    paths[0].unlink()
    assert look()[1] == [str(log.file)]
