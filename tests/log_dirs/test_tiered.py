"""Remote storage: segments transformed by Aiven's manager, and local and remote segments as one log."""

import json
from dataclasses import replace

import pytest

from kdump.errors import Reporter, UnreadableError, UsageError
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.tiered_storage import RemoteStorage
from kdump.primitives.encryption import PrivateKey
from testing import GOLDEN, forge, tiered
from testing.processes import kdump
from testing.tiered import Keys, Segment, Store

KEYS = Keys()
PRIVATE = {KEYS.name: PrivateKey(KEYS.pem(), "private.pem")}
WAYS = [(compress, keys) for compress in (False, True) for keys in (None, KEYS)]


def batches(first, end, *, epoch=0, note=b"v"):
    """Batches of one record each."""
    records = [forge.batch([forge.record(b"k", note)], base_offset=at, leader_epoch=epoch) for at in range(first, end)]
    return b"".join(records)


def of(first, end, number=1, *, epoch=0, **rest):
    """Return a segment of these offsets."""
    return Segment(first, end - 1, batches(first, end, epoch=epoch), number, epochs=((epoch, first),), **rest)


def described(segment):
    """Return the fields of a manifest that come from Kafka."""
    epochs = {str(epoch): offset for epoch, offset in segment.epochs}
    return {"remoteLogSegmentMetadata": {"endOffset": segment.end, "segmentLeaderEpochs": epochs}}


def local(log_dir, *starts, end, topic_id=tiered.TOPIC_ID):
    """A partition whose local segments begin at ``starts``."""
    folder = log_dir / "t-0"
    folder.mkdir(parents=True)
    for first, following in zip(starts, [*starts[1:], end], strict=True):
        (folder / f"{first:020}.log").write_bytes(batches(first, following))
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {tiered.uuid(topic_id)}")
    return log_dir


def found(log_dir, store, keys=PRIVATE):
    """Return the partitions of a log dir with a store, and what could not be read."""
    failed = []
    wanted = Wanted(remote=RemoteStorage((str(store),), keys))
    paths = [] if log_dir is None else [str(log_dir)]
    return list(Finder(wanted, Reporter(fail=failed.append)).find(paths)), failed


def content(segment):
    with segment.open() as source:
        return source.read(0, source.size)


def offsets(log_dir, *args, status=0):
    done = kdump("dump", log_dir, *args, "-o", "jsonl")
    assert done.returncode == status, done.stderr.decode()
    return [line["offset"] for line in map(json.loads, done.stdout.splitlines()) if line["kind"] == "record"]


@pytest.mark.parametrize(("compress", "keys"), WAYS)
def test_a_segment_and_its_indexes_are_what_they_were(tmp_path, compress, keys):
    indexes = {"offset": b"o" * 16, "timestamp": b"t" * 24, "leaderEpoch": b"0\n", "producerSnapshot": b"p" * 10}
    segment = of(0, 9, indexes=indexes)
    for chunk in (1, 7, 100, 10_000):
        root = tmp_path / str(chunk)
        Store(root, chunk, compress, keys).write(segment)
        ((partition,), failed) = found(None, root)
        assert failed == []
        assert (partition.topic, partition.partition) == ("t", 0)
        (one,) = partition.segments
        assert (one.base_offset, one.size, content(one)) == (0, len(segment.data), segment.data)
        with one.open() as source:
            for start in range(0, len(segment.data), 33):
                for size in (0, 1, 50, 5000):
                    assert source.read(start, size) == segment.data[start : start + size]
        assert set(one.siblings) == {"index", "timeindex"}
        assert (one.sibling("index"), one.sibling("timeindex")) == (b"o" * 16, b"t" * 24)


def test_an_empty_index_is_empty(tmp_path):
    Store(tmp_path, keys=KEYS).write(of(0, 2))
    (((segment,), failed),) = [(found(None, tmp_path)[0][0].segments, found(None, tmp_path)[1])]
    assert (segment.sibling("index"), failed) == (b"", [])


def test_plain_copies_of_other_managers_are_read_by_their_names(tmp_path):
    segment = of(5, 9)
    path = tmp_path / segment.folder / f"{segment.stem}.log"
    path.parent.mkdir(parents=True)
    path.write_bytes(segment.data)
    ((partition,), failed) = found(None, tmp_path)
    assert (partition.name, content(partition.segments[0]), failed) == ("t-0", segment.data, [])


@pytest.mark.parametrize(("compress", "keys"), WAYS)
def test_local_and_remote_segments_are_one_log(tmp_path, compress, keys):
    log_dir = local(tmp_path / "logs", 6, 9, end=12)
    store = Store(tmp_path / "store", 100, compress, keys)
    for number, (first, end) in enumerate(((0, 3), (3, 6), (6, 9))):
        store.write(of(first, end, number))
    key = tmp_path / "private.pem"
    key.write_bytes(KEYS.pem())
    remote = ("--remote", store.root, *(("--remote-key", f"key1={key}") if keys else ()))
    assert offsets(log_dir, "--topic", "t") == [*range(6, 12)]
    assert offsets(log_dir, "--topic", "t", *remote) == [*range(12)]
    assert offsets(log_dir, "--topic", "t", *remote, "--jobs", "2") == [*range(12)]
    assert offsets(log_dir, "--topic", "t", *remote, "--offset", "2..7") == [*range(2, 8)]
    done = kdump("get", "t-0@4", "--in", log_dir, *remote)
    assert (done.returncode, done.stdout.splitlines()[3].split()) == (0, [b"offset", b"4"])


def test_borders_of_another_leader_give_no_offset_twice(tmp_path):
    log_dir = local(tmp_path / "logs", 7, end=9)
    store = Store(tmp_path / "store")
    for number, (first, end, epoch) in enumerate(((0, 4, 0), (0, 4, 1), (2, 8, 1), (3, 5, 1), (6, 9, 1))):
        segment = of(first, end, number, epoch=epoch)
        store.write(segment, **described(segment))
    (partition,) = found(log_dir, store.root)[0]
    held = [(one.base_offset, one.until, one.files.shown(one.path).count("store")) for one in partition.segments]
    assert held == [(0, 2, 1), (2, 6, 1), (6, 7, 1), (7, None, 0)]
    assert offsets(log_dir, "--remote", store.root) == [*range(9)]


@pytest.mark.parametrize("first", [1, 2])
def test_every_replica_begins_in_remote_storage_in_any_order_of_the_paths(tmp_path, first):
    """Of the replicas, the one with the highest end offset is read: with the remote log, also if its path is last."""
    store = Store(tmp_path / "store")
    store.write(of(0, 6))
    local(tmp_path / "1", 4, end=7)
    local(tmp_path / "2", 5, end=9)
    paths = (tmp_path / str(first), tmp_path / str(3 - first))
    assert offsets(*paths, "--remote", store.root) == [*range(9)]
    assert sorted(offsets(*paths, "--remote", store.root, "--every-replica")) == sorted([*range(9), *range(7)])


def test_an_empty_path_of_remote_storage_is_not_the_working_directory(tmp_path, monkeypatch):
    log_dir = local(tmp_path / "logs", 7, end=9)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(local(tmp_path / "here" / "logs", 0, end=2))
    done = kdump("dump", log_dir, "--remote", "", "--count")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--remote" in done.stderr


def test_of_segments_with_equal_base_offsets_only_the_kept_one_ends_the_segment_before_it(tmp_path):
    store = Store(tmp_path / "store")
    for number, (first, end, epoch) in enumerate(((0, 6, 5), (3, 9, 3), (3, 5, 4), (6, 9, 6))):
        segment = of(first, end, number, epoch=epoch)
        store.write(segment, **described(segment))
    assert offsets(local(tmp_path / "logs", 9, end=10), "--remote", store.root) == [*range(10)]


def test_a_remote_segment_that_reaches_into_the_local_log_ends_where_that_begins(tmp_path):
    log_dir = local(tmp_path / "logs", 3, end=9)
    store = Store(tmp_path / "store")
    store.write(of(0, 6))  # its manifest has no end
    assert offsets(log_dir, "--remote", store.root) == [*range(9)]


def test_a_topic_that_was_created_again_is_another_one(tmp_path):
    log_dir = local(tmp_path / "logs", 3, end=4, topic_id=bytes(15) + b"\x08")
    store = Store(tmp_path / "store")
    store.write(of(0, 3))
    partitions, _ = found(log_dir, store.root)
    assert [[one.base_offset for one in partition.segments] for partition in partitions] == [[3], [0]]


@pytest.mark.parametrize(("compress", "keys"), WAYS)
def test_commands_take_both_as_one_log(tmp_path, compress, keys):
    log_dir = local(tmp_path / "logs", 6, 9, end=12)
    (log_dir / "t-0" / f"{0:020}.log.deleted").write_bytes(batches(0, 6))
    store = Store(tmp_path / "store", 100, compress, keys)
    for number, (first, end) in enumerate(((0, 3), (3, 6), (6, 9))):
        store.write(of(first, end, number))
    key = tmp_path / "private.pem"
    key.write_bytes(KEYS.pem())
    remote = ("--remote", store.root, *(("--remote-key", f"key1={key}") if keys else ()))
    for jobs in ("1", "2"):
        done = kdump("stats", log_dir, *remote, "-o", "jsonl", "--jobs", jobs, check=True)
        (line,) = (one for one in map(json.loads, done.stdout.splitlines()) if one["kind"] == "stats")
        assert (line["records"], line["batches"]) == (12, 12)
        out = tmp_path / f"out{jobs}"
        done = kdump("salvage", log_dir, *remote, "--out", out, "--jobs", jobs, check=True)
        assert offsets(out / "logs") == [*range(12)]
    done = kdump("explain", "t-0@2", "t-0@7", "--in", log_dir, *remote, "-o", "jsonl", check=True)
    first, second = (one for one in map(json.loads, done.stdout.splitlines()) if one["kind"] == "explanation")
    assert [(one["reason"], "store" in str(one["evidence"])) for one in (first, second)] == [
        ("visible", True),
        ("visible", False),
    ]


REAL = GOLDEN / "tiered"
REAL_STORE = ("--remote", REAL / "store", "--remote-key", f"key1={REAL / 'private.pem'}")


def test_records_of_the_real_manager_are_those_of_a_consumer():
    done = kdump("dump", REAL / "logs", "--topic", "orders", *REAL_STORE, "-o", "jsonl", "--encoding", "base64")
    assert (done.returncode, done.stderr) == (0, b"")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    ours = [
        [f"orders-{line['partition']}", line["offset"], line["timestampMs"], line["key"], line["value"]]
        for line in lines
        if not line["isControl"]
    ]
    theirs = [json.loads(line) for line in (REAL / "consumed.jsonl").read_text().splitlines()]
    assert len(theirs) == 132
    assert ours == theirs
    assert sum("store" in line["file"] for line in lines) > 100


def test_nothing_is_wrong_with_what_the_real_manager_wrote():
    done = kdump("check", REAL / "logs", *REAL_STORE)
    assert (done.returncode, done.stderr) == (0, b""), done.stdout
    assert b"10 segments, 59 batches" in done.stdout


def broken(tmp_path, change, *, compress=False, keys=None, given=PRIVATE, end=9):
    """Return the findings of a store after ``change(log, indexes, manifest)``."""
    store = Store(tmp_path / "store", 150, compress, keys)
    segment = of(0, end, indexes={"offset": b"o" * 16})
    store.write(segment)
    change(*store.paths(segment))
    partitions, failed = found(None, tmp_path / "store", given)
    for partition in partitions:
        for one in partition.segments:
            content(one)
            try:
                one.sibling("index")
            except UnreadableError as error:
                failed.append(error)
    return [str(error) for error in failed]


def change_json(**changes):
    def change(_log, _indexes, manifest):
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **changes}))

    return change


def flip(path, at):
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)


def test_a_manifest_that_is_cut_off_is_named(tmp_path):
    reported, _ = broken(tmp_path, lambda _, __, manifest: manifest.write_text(manifest.read_text()[:50]))
    assert "rsm-manifest: the manifest is not JSON" in reported


def test_a_manifest_of_another_version_is_named(tmp_path):
    reported, _ = broken(tmp_path, change_json(version="9"))
    assert "unknown version (expected 1, found '9')" in reported


def test_a_manifest_that_is_absent_is_named(tmp_path):
    reported, _ = broken(tmp_path, lambda _, __, manifest: manifest.unlink())
    assert ".log: it has no .rsm-manifest" in reported


def test_a_log_that_is_absent_is_named(tmp_path):
    reported = broken(tmp_path, lambda log, *_: log.unlink())
    assert "the manifest exists, but its .log is missing" in reported[0]


def test_indexes_that_are_absent_are_named(tmp_path):
    (reported,) = broken(tmp_path, lambda _, indexes, __: indexes.unlink())
    assert ".log: its .indexes is missing" in reported


def test_indexes_that_are_cut_off_are_named(tmp_path):
    (reported,) = broken(tmp_path, lambda _, indexes, __: indexes.write_bytes(b"o" * 5))
    assert ".index: offset index: the .indexes object ends before its last byte (expected 16, found 5)" in reported


def test_a_log_that_is_cut_off_is_named_with_its_chunks(tmp_path):
    size, chunk = reported = broken(tmp_path, lambda log, *_: log.write_bytes(log.read_bytes()[:-10]))
    assert len(reported) == 2
    assert "according to its manifest" in size
    assert "chunk 4, bytes 600 to" in chunk
    assert "it is truncated" in chunk


def test_a_key_that_is_not_given_is_named(tmp_path):
    reported, _ = broken(tmp_path, lambda *_: None, keys=KEYS, given={})
    assert "encrypted with the key pair 'key1', which is not given (--remote-key key1=PRIVATE.pem)" in reported


def test_a_key_that_is_another_one_is_named(tmp_path):
    other = {KEYS.name: PrivateKey(Keys().pem(), "other.pem")}
    reported, _ = broken(tmp_path, lambda *_: None, keys=KEYS, given=other)
    assert "the key pair given does not decrypt the data key" in reported


@pytest.mark.parametrize("compress", [False, True])
def test_a_chunk_with_a_changed_byte_is_named(tmp_path, compress):
    (reported,) = broken(tmp_path, lambda log, *_: flip(log, 40), compress=compress, keys=KEYS)
    assert "chunk 0, bytes 0 to" in reported
    assert "authentication tag is wrong" in reported


def test_a_chunk_that_does_not_unpack_is_named(tmp_path):
    (reported,) = broken(tmp_path, lambda log, *_: flip(log, 0), compress=True)
    assert "chunk 0, bytes 0 to" in reported
    assert "the zstd stream is broken" in reported


def test_an_index_with_a_changed_byte_is_named(tmp_path):
    (reported,) = broken(tmp_path, lambda _, indexes, __: flip(indexes, 20), keys=KEYS)
    assert ".index: its authentication tag is wrong" in reported


def test_sizes_of_chunks_that_do_not_fit_are_named(tmp_path):
    def change(_log, _indexes, manifest):
        held = json.loads(manifest.read_text())
        held["chunkIndex"]["transformedChunks"] = tiered.packed_sizes([10, 10])
        manifest.write_text(json.dumps(held))

    reported, _ = broken(tmp_path, change, compress=True)
    assert "number of chunk sizes in the manifest is wrong (expected 5, found 2)" in reported


def test_a_chunk_that_is_larger_than_the_limit_is_named(tmp_path):
    store = Store(tmp_path / "store", 1_000_000, compress=True)
    segment = of(0, 9)
    big = replace(segment, data=segment.data + bytes(900_000))
    store.write(big)
    log_dir = local(tmp_path / "logs", 9, end=10)
    done = kdump("dump", log_dir, "--remote", store.root, "--max-batch-bytes", "100000", "-o", "jsonl")
    assert done.returncode == 1
    assert b"chunk 0, bytes 0 to " in done.stderr
    assert b"it is larger than the limit (--max-batch-bytes sets it;" in done.stderr


def test_records_after_a_broken_chunk_are_read(tmp_path):
    store = Store(tmp_path / "store", 100, compress=True)
    segment = of(0, 20)
    store.write(segment)
    flip(store.paths(segment)[0], 0)
    log_dir = local(tmp_path / "logs", 20, end=22)
    done = kdump("dump", log_dir, "--remote", store.root, "-o", "jsonl")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["offset"] for line in lines if line["kind"] == "record"] == [*range(2, 22)]
    assert [line["position"] for line in lines if line["kind"] == "damage"] == [0]
    assert done.stderr.count(b"chunk 0") == 1
    assert done.returncode == 1


def test_what_is_no_private_key_is_refused(tmp_path):
    with pytest.raises(UsageError, match="does not hold a readable private key"):
        PrivateKey(b"odd", "file.pem")
    local(tmp_path / "logs", 0, end=1)
    for given, says in (
        (("--remote-key", "key1=x"), b"--remote-key needs --remote"),
        (("--remote", tmp_path, "--remote-key", "key1"), b"is not NAME=FILE"),
    ):
        done = kdump("dump", tmp_path / "logs", *given)
        assert (done.returncode, says in done.stderr) == (2, True)
    done = kdump("dump", tmp_path / "logs", "--remote", tmp_path, "--remote-key", f"key1={tmp_path / 'none'}")
    assert (done.returncode, b"No such file" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    "words",
    [
        ["dump", "--count"],
        ["dump", "-o", "jsonl"],
        ["check"],
        ["get", "t-0@9", "--in"],
        ["stats"],
        ["stats", "-o", "jsonl"],
        ["sql", "select count(*) from records"],
        ["sql", "select * from stats"],
    ],
    ids=" ".join,
)
def test_an_invalid_topic_id_is_damage_in_every_command(tmp_path, words):
    pytest.importorskip("duckdb")
    local(tmp_path / "logs", 9, end=12)
    store = tmp_path / "store"
    Store(store).write(of(0, 9))
    (tmp_path / "logs" / "t-0" / "partition.metadata").write_text("version: 9\n")
    done = kdump(*words, tmp_path / "logs", "--remote", store)
    assert done.returncode == 3
    assert b"partition.metadata" in done.stderr + done.stdout


@pytest.mark.parametrize(("compress", "keys"), WAYS)
def test_objects_of_a_store_are_no_damaged_logs_where_the_store_is_named_as_a_path(tmp_path, compress, keys):
    """Only untransformed copies are readable segments. Each other folder is one error, with the way to read it."""
    store = Store(tmp_path, 100, compress, keys)
    for number, (first, end) in enumerate(((0, 3), (3, 6))):
        store.write(of(first, end, number))
    folder = tmp_path / of(0, 3).folder
    for command in (("dump", "--count"), ("check",), ("stats",), ("du",), ("report",)):
        for path in (tmp_path, folder, folder / f"{of(0, 3, 0).stem}.log"):
            done = kdump(*command, path)
            if not (compress or keys):
                assert b"objects of remote storage" not in done.stderr
                continue
            how = "encrypted" if keys else "compressed"
            if path.is_file() and not keys:  # a file of zstd, which every command reads
                assert b"DAMAGED" not in done.stdout
                continue
            assert done.returncode == 1, command
            text = f"{folder}: this is remote storage, and a plugin has {how} its segments\nhint: name the log"
            assert done.stderr.decode().count(text) == 1
            assert done.stderr.count(b"error: ") == 1
            assert b"DAMAGED" not in done.stdout


def test_get_says_that_a_record_may_be_in_remote_storage():
    """This also holds after an error of the store, which may have the record."""
    logs, store = GOLDEN / "tiered" / "logs", GOLDEN / "tiered" / "store"
    why = b"the log begins at offset 63, and the log start offset is 0: the record may be in remote storage (--remote"
    done = kdump("get", "orders-0@5", "--in", logs)
    assert (done.returncode, done.stdout) == (5, b"")
    assert b"orders-0@5 was not found: " + why in done.stderr
    done = kdump("get", "orders-0@5", "--in", logs, "--remote", store)
    assert done.returncode == 1
    assert b"orders-0@5 was not found in the readable files: " + why in done.stderr
    assert b"remote storage" not in kdump("get", "orders-0@999", "--in", logs).stderr
