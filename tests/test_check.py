"""kdump check: what is wrong is named, what is healthy stays silent."""

import json

import pytest

from kdump.formats import checkpoints, leader_epoch
from kdump.formats.checkpoints import PartitionOffset
from tests import forge
from tests.support import GOLDEN, kdump


def one(offset, *, count=1, **rest):
    records = [forge.record(b"k", b"v" * 20, offset=n) for n in range(count)]
    return forge.batch(records, base_offset=offset, **rest)


def folder(tmp_path, *segments, **files):
    """A partition's folder: segments as (base offset, bytes), other files by name."""
    place = tmp_path / "orders-0"
    place.mkdir()
    for base, data in segments:
        (place / f"{base:020}.log").write_bytes(data)
        for suffix in ("index", "timeindex"):
            (place / f"{base:020}.{suffix}").write_bytes(b"")
    for name, data in files.items():
        (place / name).write_bytes(data)
    return place


def findings(place, *options, status):
    done = kdump("check", "--json", *options, place)
    assert done.returncode == status, (done.stdout, done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1]["kind"] == "summary"
    return [line for line in lines if line["kind"] == "finding"]


def checks(place, *options, status=3):
    return [finding["check"] for finding in findings(place, *options, status=status)]


def test_a_healthy_folder_is_quiet(tmp_path):
    place = folder(tmp_path, (0, one(0) + one(1)), (2, one(2)))
    done = kdump("check", "-q", place)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert b"nothing is wrong" in kdump("check", place).stdout


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        ("crc", one(1, crc=5)),
        ("magic", one(1, magic=7)),
        ("record size", one(1, size=0x7FFFFFF)),
        ("record count", one(1, count=3, last_offset_delta=0)),
        ("record count", forge.batch([forge.record(b"k", b"v")], base_offset=1, count=0, last_offset_delta=0)),
        ("last offset", forge.batch([forge.record(b"k", b"v", offset=4)], base_offset=1)),
        ("max timestamp", one(1, max_timestamp=77)),
        ("attributes", one(1, attributes=1 << 9)),
        ("producer", one(1, attributes=0x10)),
        ("producer", one(1, producer_id=-2)),
        ("control key", one(1, attributes=0x20)),
        ("offset order", one(0)),
        ("record size", forge.batch([b"\x7f" * 9], base_offset=1)),
        ("batch size", forge.entry(1, forge.message(1, None, None, timestamp=0)[:21])),
        ("key size", forge.entry(1, forge.message(0, None, None)[:6] + b"\xff\xff\xff\xfe\xff\xff\xff\xff")),
    ],
)
def test_what_is_wrong_with_a_batch_is_named(tmp_path, kind, bad):
    if kind == "key size":
        bad = forge.entry(1, forge.crc32(bad[16:]).to_bytes(4, "big") + bad[16:])
    assert kind in checks(folder(tmp_path, (0, one(0) + bad + one(2))))


def test_headers_alone_leave_records_alone(tmp_path):
    place = folder(tmp_path, (0, one(0) + one(1, max_timestamp=77)))
    assert checks(place, "--headers-only", status=0) == []
    assert checks(place) == ["max timestamp"]


def test_leader_epochs_rise_and_are_those_of_the_checkpoint(tmp_path):
    epochs = leader_epoch.encode([leader_epoch.EpochEntry(3, 0), leader_epoch.EpochEntry(5, 2)])
    data = one(0, leader_epoch=3) + one(1, leader_epoch=3) + one(2, leader_epoch=5)
    place = folder(tmp_path, (0, data), **{"leader-epoch-checkpoint": epochs})
    assert checks(place, status=0) == []
    (place / "leader-epoch-checkpoint").write_bytes(epochs.replace(b"5 2", b"5 1"))
    assert checks(place, status=4) == ["leader epoch"]
    (place / f"{0:020}.log").write_bytes(data + one(3, leader_epoch=4))
    assert checks(place, status=3) == ["leader epoch", "leader epoch"]


def test_sequence_numbers_of_a_producer(tmp_path):
    def by(offset, sequence, epoch=0):
        return one(offset, producer_id=9, producer_epoch=epoch, base_sequence=sequence)

    place = folder(tmp_path, (0, by(0, 0) + by(1, 1) + by(2, 0, 1)))
    assert checks(place, status=0) == []
    (place / f"{0:020}.log").write_bytes(by(0, 0) + by(1, 0) + by(2, 7))
    assert checks(place) == ["sequence", "sequence"]
    (place / f"{0:020}.log").write_bytes(by(0, 0, 2) + by(1, 0, 1))
    assert checks(place) == ["producer"]


def test_gaps_are_damage_but_for_compaction(tmp_path):
    place = folder(tmp_path, (0, one(0) + one(5)))
    (gap,) = findings(place, status=3)
    assert (gap["check"], gap["expected"], gap["found"]) == ("gap", 1, 5)
    (place / f"{0:020}.log").write_bytes(one(0) + one(5) + one(6, last_offset_delta=3))
    assert checks(place, status=0) == []
    (place / f"{0:020}.log").write_bytes(one(0) + one(5))
    (tmp_path / "cleaner-offset-checkpoint").write_bytes(checkpoints.encode([PartitionOffset("orders", 0, 5)]))
    assert checks(place, status=0) == []


def test_the_report_says_what_a_broker_would_cut(tmp_path):
    place = folder(tmp_path, (0, one(0) + one(1, crc=1) + one(2)), (3, one(3)))
    text = kdump("check", place).stdout.decode()
    size = len(one(0))
    assert f"byte {size}: a broker would cut it here: offsets 2 to 2, 1 records, {2 * size} bytes would go" in text
    assert "offsets 3 to 3, 1 records" in text
    (tmp_path / ".kafka_cleanshutdown").write_bytes(b"")
    assert checks(place) == ["crc"]
    done = kdump("check", place).stdout.decode()
    assert "after an unclean stop a broker would cut it here" in done
    assert "after the clean stop that .kafka_cleanshutdown tells of, a broker would read 0 bytes" in done


def test_the_files_beside_the_log(tmp_path):
    place = folder(
        tmp_path,
        (0, one(0)),
        **{
            "partition.metadata": b"version: 0\ntopic_id: short\n",
            "00000000000000000001.snapshot": b"\0\1",
            "leader-epoch-checkpoint": b"0\n2\n0 0\n",
            "core.4711": b"",
            "00000000000000000000.log.deleted": b"",
        },
    )
    (tmp_path / "recovery-point-offset-checkpoint").write_bytes(b"nonsense")
    assert len(checks(place, status=4)) == 4
    (tmp_path / "recovery-point-offset-checkpoint").unlink()
    (tmp_path / "replication-offset-checkpoint").write_bytes(checkpoints.encode([PartitionOffset("orders", 0, 7)]))
    assert "high watermark" in checks(place)


def test_an_index_that_lies_is_a_derived_file(tmp_path):
    place = folder(tmp_path, (0, one(0) + one(1)))
    (place / f"{0:020}.index").write_bytes(b"\0\0\0\1\0\0\0\7")
    assert checks(place, status=4)


def test_jobs_change_nothing(tmp_path):
    for number in range(4):
        folder(tmp_path, (0, one(0) + one(1, crc=number % 2 or None)))
        (tmp_path / "orders-0").rename(tmp_path / f"orders-{number + 1}")
    (tmp_path / "meta.properties").write_bytes(b"broken")
    alone, many = (kdump("check", "--json", "--jobs", jobs, tmp_path) for jobs in (1, 3))
    assert alone.stdout == many.stdout
    assert alone.returncode == many.returncode == 3


def test_what_cannot_be_read(tmp_path):
    assert kdump("check", tmp_path / "missing").returncode == 1


@pytest.mark.parametrize("place", sorted((GOLDEN / "brokers").iterdir()), ids=lambda path: path.name)
def test_what_brokers_wrote_is_healthy(place):
    folders = [
        path
        for path in sorted(place.iterdir())
        if path.is_dir() and not path.name.startswith(("_misc", "_deleted", "_logdir"))
    ]
    done = kdump("check", "-q", *folders)
    assert (done.returncode, done.stdout) == (0, b""), done.stdout.decode()


HARMLESS = (
    "ckpt-",  # snapshots of KRaft, not partitions
    "idx-pad", "idx-allzero", "idx-empty", "idx-last-zero", "tidx-pad", "tidx-allzero", "tidx-empty",  # a longer scan
    "zerotail", "allzero", "trunc1", "trunc5", "none-empty",  # zeros at the end; what is cut off leaves zeros too
    "rec-", "-body-flip-crcok", "-body-crcok", "-body-mid-crcok", "-body-keylen-crcok",  # other content, crc made right
    "codec0-crcok", "codec1-crcok", "attr-horizon", "attr-lat",  # what it was, or as good
    "snap-tail-crcok", "snap-count0-crcok",  # a broker reads as many entries as are announced
)  # fmt: skip


def test_every_damage_of_the_golden_files_is_named():
    folders = [path for path in sorted((GOLDEN / "damaged").iterdir()) if list(path.glob("*.*[gxt]"))]
    done = kdump("check", "--json", *folders)
    assert b"Traceback" not in done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1]["kind"] == "summary"
    named = {line["file"].partition("/damaged/")[2].partition("/")[0] for line in lines if line["kind"] == "finding"}
    assert not [
        path.name for path in folders if path.name not in named and not any(word in path.name for word in HARMLESS)
    ]
    assert len(named) > 150
