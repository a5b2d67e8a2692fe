"""kdump check: damage is reported, and a healthy partition causes no finding."""

import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import tarfile
import zipfile
from collections import Counter

import pytest

from kdump.checks import log_dir, repair_commands, whole_partition
from kdump.findings.codes import Code
from kdump.formats import checkpoints, leader_epoch, offset_index, producer_snapshot, time_index
from kdump.formats.checkpoints import PartitionOffset
from kdump.log_dirs import file_names
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.partition import Partition
from kdump.recovery import log_loader
from kdump.recovery.segment_end import Cut
from testing import GOLDEN, ROOT, forge
from testing.processes import kdump
from tools.prove import check as prove_check
from tools.prove.check import Verdict

BESIDE = ("log", "index", "timeindex")


def one(offset, *, count=1, **rest):
    records = [forge.record(b"k", b"v" * 20, offset=n) for n in range(count)]
    return forge.batch(records, base_offset=offset, **rest)


def folder(tmp_path, *segments, parents=False, **files):
    """A partition folder: segments as (base offset, bytes), other files by name."""
    place = tmp_path / "orders-0"
    place.mkdir(parents=parents)
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


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        (
            forge.batch([b"no gzip"], base_offset=1, attributes=1, count=3, last_offset_delta=2),
            "the gzip stream is broken",
        ),
        (
            forge.batch([forge.record(b"k", b"v", offset=n) for n in (0, 9, 2)], base_offset=1),
            "record 2 of 3 has offset 10 instead of 2",
        ),
        (
            forge.batch([forge.record(b"k", b"v", offset=n) for n in (0, 9, 2)], base_offset=1, last_offset_delta=3),
            "offset 3 follows offset 10",
        ),
    ],
)
def test_the_advice_for_a_batch_that_was_written_broken_leads_around_it(tmp_path, batch, says):
    after = one(1 + int.from_bytes(batch[23:27], "big") + 1)
    place = folder(tmp_path, (0, one(0) + batch + after))
    (finding,) = findings(place, status=3)
    assert finding["position"] == len(one(0))
    assert says in finding["text"]
    cuts = re.findall(r"kdump (slice \S+ --offset \S+ --out) (\S+)", finding["advice"])
    assert [name for _, name in cuts] == ["before.log", "after.log"]
    for (args, name), content in zip(cuts, (one(0), after), strict=True):
        assert kdump(*args.split(), tmp_path / name).returncode == 0
        assert (tmp_path / name).read_bytes() == content
        assert kdump("check", tmp_path / name).returncode == 0
    reported = kdump("check", place).stdout.decode()
    assert f"Consumers stop in 1 partition: {place}" in reported
    assert "copies the valid batches." not in reported


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
    assert "In a compacted topic a gap is normal" in gap["advice"]  # its cleanup.policy is unknown
    (place / f"{0:020}.log").write_bytes(one(0) + one(5) + one(6, last_offset_delta=3))
    assert checks(place, status=0) == []
    (place / f"{0:020}.log").write_bytes(one(0) + one(5))
    (tmp_path / "cleaner-offset-checkpoint").write_bytes(checkpoints.encode([PartitionOffset("orders", 0, 5)]))
    assert checks(place, status=0) == []


def test_missing_offsets_are_distinguished_from_damaged_batches(tmp_path):
    place = folder(tmp_path, (0, one(0) + one(5)))
    done = kdump("check", place)
    text = done.stdout.decode()
    assert done.returncode == 3
    assert text.startswith(f"{place}: offsets are missing, but all existing batches are valid\n")
    assert f"Offsets missing: 1 partition: {place}\n" in text
    assert "a broker accepts these logs unchanged" in text
    assert not {word for word in ("salvage", "the log is damaged", "would read") if word in text}
    (place / f"{0:020}.log").write_bytes(one(0) + one(5) + one(6, crc=1))
    text = kdump("check", place).stdout.decode()
    assert text.startswith(f"{place}: the log is damaged\n")
    assert "kdump salvage" in text


def test_a_batch_whose_indexes_have_another_offset_has_a_damaged_base_offset(tmp_path):
    """The base offset has no checksum. Salvage copies the batch as it is."""
    data = one(0) + one(1)
    place = folder(tmp_path, (0, data + one((1 << 31) + 2)))
    (place / f"{0:020}.index").write_bytes(offset_index.encode([(2, len(data))], 0))
    (place / f"{0:020}.timeindex").write_bytes(time_index.encode([(1, 2)], 0))
    found = {line["check"]: line for line in findings(place, status=3)}
    assert (
        "begins at offset 2147483650, but the indexes have 2 as its last offset: " in found["offset too high"]["text"]
    )
    text = kdump("check", place).stdout.decode()
    assert text.startswith(f"{place}: the log is damaged\n")
    assert "Keep the indexes: they prove the right offset" in text
    assert not {word for word in ("kdump salvage", "rebuild") if word in text}
    swap = place / f"{0:020}.log.swap"
    swap.write_bytes((place / f"{0:020}.log").read_bytes())  # it has the same gap
    assert "offset too high" in {line["check"] for line in findings(place, status=3)}
    swap.unlink()
    (place / f"{0:020}.index").write_bytes(b"")
    assert [line["check"] for line in findings(place, status=3)] == ["gap", "offset"]


def test_the_report_says_what_a_broker_would_cut(tmp_path):
    place = folder(tmp_path, (0, one(0) + one(1, crc=1) + one(2)), (3, one(3)))
    text = kdump("check", place).stdout.decode()
    size = len(one(0))
    assert (
        f"byte {size}: a broker would truncate the log at this byte and lose offset 2, 1 record, {2 * size} bytes"
        in text
    )
    assert "offset 3, 1 record," in text
    (tmp_path / ".kafka_cleanshutdown").write_bytes(b"")
    assert checks(place) == ["crc"]  # without the marker, recovery would remove the second segment too
    done = kdump("check", place).stdout.decode()
    assert "after an unclean stop a broker would truncate the log at this byte" in done
    assert "after a clean stop (.kafka_cleanshutdown exists) a broker would read 0 bytes" in done
    for each in place.glob(f"{3:020}.*"):
        each.unlink()
    assert checks(place) == ["crc", "clean marker"]


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
    assert len(checks(place, status=3)) == 4
    (tmp_path / "recovery-point-offset-checkpoint").unlink()
    (tmp_path / "replication-offset-checkpoint").write_bytes(checkpoints.encode([PartitionOffset("orders", 0, 7)]))
    assert "high watermark" in checks(place)
    text = "the log ends at offset 1, below the high watermark 7 (this is normal in a copy of a running broker)"
    assert [one["text"] for one in findings(place, status=3) if one["check"] == "high watermark"] == [text]


SEGMENT = b"".join(one(offset) for offset in range(3))
NAME = f"{0:020}.log"


@pytest.mark.parametrize(
    ("end", "data", "commands"),
    [(".gz", gzip.compress(SEGMENT), []), (".bak", SEGMENT, ["mv"]), ("~", SEGMENT, ["mv"])],
    ids=["gz", "bak", "tilde"],
)
@pytest.mark.parametrize("mark", [None, 3])
def test_a_segment_that_a_broker_ignores_is_no_log(tmp_path, end, data, commands, mark):
    place = folder(tmp_path, **{f"{NAME}{end}": data})
    if mark:
        (tmp_path / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {mark}\n")
    found = [each for each in findings(place, status=3) if each["code"] == "segment-ignored"]
    assert [(each["loses"], [one.split()[0] for one in each["commands"]]) for each in found] == [(3, commands)]
    assert NAME in found[0]["advice"]
    assert f"kdump dump {place / NAME}{end}" in found[0]["advice"].replace("'", "")
    verdict = kdump("check", tmp_path).stdout.decode()
    assert "DO NOT START the broker yet: a start does not serve 3 records" in verdict
    assert "missing already" not in verdict
    for command in found[0]["commands"]:
        subprocess.run(command, shell=True, check=True)
        assert findings(place, status=0) == []


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (".bak", "Rename the file"),
        (".gz", "Decompress the file"),
        (".tar.gz", "The file is an archive: extract its segment"),
        (".zip", "The file is an archive: extract its segment"),
    ],
)
def test_the_advice_on_an_ignored_segment_names_the_way_to_its_bytes(tmp_path, end, words):
    packed = tmp_path / f"made{end}"
    if end == ".zip":
        with zipfile.ZipFile(packed, "w") as made:
            made.writestr(NAME, SEGMENT)
    elif end == ".tar.gz":
        (tmp_path / NAME).write_bytes(SEGMENT)
        with tarfile.open(packed, "w:gz") as made:
            made.add(tmp_path / NAME, NAME)
    else:
        packed.write_bytes(gzip.compress(SEGMENT) if end == ".gz" else SEGMENT)
    place = folder(tmp_path, **{f"{NAME}{end}": packed.read_bytes()})
    (found,) = [each for each in findings(place, status=3) if each["code"] == "segment-ignored"]
    assert found["loses"] == 3
    assert found["advice"].startswith(f"{words} to {NAME} before a broker starts. This prints its records: kdump dump ")


@pytest.mark.parametrize("end", [".gz", ".bak", ".md5", ".tmp"])
def test_a_copy_beside_its_segment_is_noted(tmp_path, end):
    data = {".gz": gzip.compress(SEGMENT), ".bak": SEGMENT[:-1]}.get(end, b"d41d8cd98f00b204e9800998ecf8427e\n")
    place = folder(tmp_path, (0, SEGMENT), **{f"{NAME}{end}": data, f"{9:020}.log{end}": data})
    lines = kdump("check", "-o", "jsonl", place).stdout.splitlines()
    texts = [each["text"] for each in map(json.loads, lines) if each.get("code") == "segment-ignored"]
    assert findings(place, status=0) == []
    assert len(texts) == 2
    assert all("a broker does not read a file of this name. If it has records, this prints" in text for text in texts)


@pytest.mark.parametrize(
    ("base", "end", "loses"),
    [(3, ".gz", 3), (3, ".bak", 3), (6, ".gz", 0), (8, ".gz", None), (9, ".gz", None)],
    ids=["packed", "plain", "copy", "above a gap", "past the end"],
)
def test_a_start_deletes_an_ignored_segment_in_the_range_of_a_swap(tmp_path, base, end, loses):
    """LogLoader.load deletes each file whose name begins with an offset of the range, except ``.swap`` files."""
    swap = SEGMENT + b"".join(one(offset) for offset in range(6, 8))
    data = b"".join(one(offset) for offset in range(base, base + (3 if base == 3 else 2)))
    names = {f"{NAME}.swap": swap, f"{base:020}.log{end}": data if end == ".bak" else gzip.compress(data)}
    place = folder(tmp_path, (0, SEGMENT), (6, swap[len(SEGMENT) :]), **names)
    lines = map(json.loads, kdump("check", "-o", "jsonl", place).stdout.splitlines())
    (found,) = [each for each in lines if each.get("file", "").endswith(f"{base:020}.log{end}")]
    is_deleted = "a start deletes this file: a .swap file replaces the segments from offset 0 to 7" in found["text"]
    assert is_deleted == (loses is not None)
    assert found["loses"] == (loses or (2 if loses is None else None))
    if loses:
        for command in found["commands"]:
            subprocess.run(command, shell=True, check=True)
        assert not (place / f"{base:020}.log{end}").exists()


@pytest.mark.parametrize("end", ["cleaned", "deleted"])
def test_a_file_that_a_start_removes_is_not_the_log(tmp_path, end):
    folder(tmp_path, **{f"{NAME}.{end}": SEGMENT})
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    (tmp_path / ".kafka_cleanshutdown").touch()
    done = kdump("check", "--json", tmp_path)
    (found,) = [each for line in done.stdout.splitlines() if (each := json.loads(line)).get("missing") is not None]
    assert (done.returncode, found["missing"], found["found"]) == (3, 3, 0)


META = b"version=1\nnode.id=1\ncluster.id=Jcp9qHk6RnaNkgBVOvaAyg\n"
QUORUM = b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("meta.properties", META, META.replace(b"version=1", b"version=7")),
        ("meta.properties", META, META.replace(b"cluster.id", b"cluster_id")),
        ("meta.properties", META, META.replace(b"node.id=1", b"node.id=one")),
        ("recovery-point-offset-checkpoint", b"0\n0\n", b"0\n1\n"),
        ("cleaner-offset-checkpoint", b"0\n0\n", b"x\n0\n"),
        (".kafka_cleanshutdown", b'{"version":0,"brokerEpoch":7}', b"[]"),
    ],
)
def test_the_files_of_a_log_dir_named_below_and_alone(tmp_path, name, good, bad):
    place = folder(tmp_path, (0, one(0)))
    (tmp_path / "meta.properties").write_bytes(META)
    (tmp_path / name).write_bytes(good)
    for path in (place, tmp_path, tmp_path / name):
        assert checks(path, status=0) == []
    (tmp_path / name).write_bytes(bad)
    offline = name.endswith("-checkpoint")  # the broker has another log dir: that of its metadata log
    for path in (place, tmp_path, tmp_path / name):
        finding, *more = findings(path, status=4 if name == ".kafka_cleanshutdown" else 3)
        assert finding["file"] == str(tmp_path / name)
        assert finding["advice"]
        assert finding["fatal"] == (name != ".kafka_cleanshutdown" and not (offline and path == tmp_path))
        assert ["starts without log dir" in one["text"] for one in more] == [True] * (offline and path == tmp_path)
    shutil.rmtree(place)
    found = checks(tmp_path, status=4 if name == ".kafka_cleanshutdown" else 3)
    assert len(found) == (2 if offline else 1)


def test_a_folder_that_keeps_a_broker_from_starting(tmp_path):
    folder(tmp_path, (0, one(0)))
    (tmp_path / "meta.properties").write_bytes(META)
    for name in ("remote-log-index-cache", "orders-0.0123456789abcdef0123456789abcdef-delete", "a-b-7"):
        (tmp_path / name).mkdir()
    assert checks(tmp_path, status=0) == []
    (tmp_path / "lost+found").mkdir()
    (finding,) = findings(tmp_path, status=3)
    assert (finding["check"], finding["found"], finding["fatal"]) == ("folder", "lost+found", True)
    first, *_, verdict, _, copy, _, command, _ = kdump("check", tmp_path).stdout.decode().splitlines()
    assert first.endswith("a file is wrong, and a broker does not start because of it")
    assert verdict.startswith(f"DO NOT START broker 1: {tmp_path / 'lost+found'}: ")
    whole = f"cp -a {tmp_path}/. {tmp_path}.copy.part && mv {tmp_path}.copy.part {tmp_path}.copy"
    assert copy == f"  [ -e {tmp_path}.copy ] || {{ {whole}; }}"
    aside = f"{tmp_path}.aside/"
    assert command == f"  mkdir -p {aside} && mv {tmp_path / 'lost+found'} {aside}"


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_foreign_folder_is_no_damaged_partition(tmp_path, jobs):
    folder(tmp_path, (0, one(0)))
    (tmp_path / "meta.properties").write_bytes(META)
    place = tmp_path / "backup-of-things"
    place.mkdir()
    (place / f"{0:020}.log").write_bytes(b"some bytes")
    done = kdump("check", tmp_path, "--jobs", jobs)
    text = done.stdout.decode()
    assert done.returncode == 3
    assert "Damaged" not in text
    assert "salvage" not in text
    assert f"{place}: nothing is wrong" not in text
    assert f"{place}\n  note    a folder that does not belong to a broker: " in text
    assert f"DO NOT START broker 1: {place}: " in text
    assert kdump("check", place).returncode == kdump("check", place / f"{0:020}.log").returncode == 3
    report = kdump("report", tmp_path)
    assert report.returncode == 3
    assert b"log is damaged" not in report.stdout


@pytest.mark.parametrize("command", ["check", "offsets", "transactions", "report"])
def test_a_zeroed_file_is_no_wall_of_zeros(tmp_path, command):
    folder(tmp_path, (0, one(0)))
    (tmp_path / "recovery-point-offset-checkpoint").write_bytes(bytes(1358))
    done = kdump(command, tmp_path)
    reported = (done.stdout + done.stderr).decode()
    assert "expected the version 0, found 1358 zero bytes" in reported
    assert "\\x00" not in reported


@pytest.mark.parametrize(
    "bad",
    [b"", b"[1]", b"{", QUORUM.replace(b":1}", b":2}"), QUORUM.replace(b'"votedId":-1,', b""), b"[" * 100_000],
)
def test_quorum_state(tmp_path, bad):
    place = folder(tmp_path, (0, one(0)), **{"quorum-state": QUORUM})
    assert checks(place, status=0) == []
    (place / "quorum-state").write_bytes(bad)
    assert len(checks(place, status=3)) == 1


def test_producer_snapshots_that_know_too_much(tmp_path):
    entry = producer_snapshot.ProducerEntry(9, 0, 0, 0, 0, 0, -1, -1)
    sound = producer_snapshot.encode([entry])
    place = folder(tmp_path, (0, one(0)), **{f"{1:020}.snapshot": sound})
    assert checks(place, status=0) == []
    (place / f"{1:020}.snapshot").write_bytes(producer_snapshot.encode([entry._replace(last_offset=1)]))
    assert checks(place, status=4) == ["offset"]
    (place / f"{1:020}.snapshot").write_bytes(producer_snapshot.encode([entry._replace(current_txn_first_offset=5)]))
    assert checks(place, status=4) == ["offset"]
    guarded = bytes(4) + sound[10:]
    data = sound[:2] + forge.crc32c(guarded).to_bytes(4, "big") + guarded
    (place / f"{1:020}.snapshot").write_bytes(data)
    assert checks(place, status=4) == ["count"]


def test_leftovers_are_remarks(tmp_path):
    names = ["leader-epoch-checkpoint.tmp", f"{7:020}-{1:010}-x.checkpoint.part", f"{7:020}.index.deleted"]
    place = folder(tmp_path, (0, one(0)), **dict.fromkeys(names, b"half"))
    (tmp_path / "meta.properties").write_bytes(META)
    (tmp_path / "meta.properties.tmp").write_bytes(b"")
    done = kdump("check", "--json", tmp_path)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    reported = {line["file"] for line in lines if line.get("check") == "leftover"}
    assert (done.returncode, reported) == (
        0,
        {*(str(place / name) for name in names), str(tmp_path / "meta.properties.tmp")},
    )


def test_a_delete_horizon_wants_a_tombstone(tmp_path):
    whole = forge.batch([forge.record(b"k", b"v"), forge.record(b"k", b"v", offset=1)], attributes=1 << 6)
    place = folder(tmp_path, (0, whole))
    assert checks(place) == ["delete horizon"]
    tombstone = forge.batch([forge.record(b"k", None), forge.record(b"k", b"v", offset=1)], attributes=1 << 6)
    thinned = forge.batch([forge.record(b"k", b"v", offset=1)], attributes=1 << 6, last_offset_delta=1)
    for data in (tombstone, thinned):
        (place / f"{0:020}.log").write_bytes(data)
        assert checks(place, status=0) == []


def test_the_type_of_timestamps_of_one_batch_is_a_remark(tmp_path):
    place = folder(tmp_path, (0, one(0) + one(1, attributes=8) + one(2)))
    done = kdump("check", "--notes", place)
    assert (done.returncode, b"changes 2 times in the partition, first to LogAppendTime" in done.stdout) == (
        0,
        True,
    )
    (place / f"{0:020}.log").write_bytes(one(0) + one(1, attributes=8) + one(2, attributes=8))
    assert b"LogAppendTime" not in kdump("check", place).stdout


@pytest.mark.parametrize(
    ("names", "missing"),
    [((f"{0:020}.log",), 89), ((f"{180:020}.log",), 43), ([f"{180:020}.{each}" for each in BESIDE], 43)],
    ids=["first", "last", "last with its indexes"],
)
def test_a_lost_segment_of_a_folder_alone_is_proved_by_its_other_files(tmp_path, names, missing):
    place = tmp_path / "c-none-0"
    shutil.copytree(GOLDEN / "brokers" / "4.2.2" / place.name, place)
    for name in names:
        (place / name).unlink()
    found = {line["code"]: line for line in findings(place, status=3)}
    assert found["records-missing"]["missing"] == missing


def test_records_of_kafkas_own_topics(tmp_path):
    place = tmp_path / "__consumer_offsets-0"
    shutil.copytree(GOLDEN / "brokers" / "4.2.2" / place.name, place)
    assert checks(place, status=0) == []
    log = place / f"{0:020}.log"
    record = forge.record(b"\0\1\0\2g1\0\1t\0\0\0\0", b"\0\3\0\0")
    newer = forge.record(b"\0\1\0\2g1\0\1t\0\0\0\0", b"\0\x63\0\0")
    log.write_bytes(forge.batch([record]))
    assert "payload" in checks(place)
    assert "payload" not in checks(place, "--headers-only", status=3)  # the other files prove that records are missing
    unknown = forge.record(b"\0\x63\0\2g1", b"\0\3\0\0")
    log.write_bytes(forge.batch([unknown]))
    found = kdump("check", "--notes", place).stdout
    assert b"a record comes from a newer release, or a byte of it has changed" in found
    log.write_bytes(forge.batch([newer]))
    assert "coordinator version" in checks(place)


@pytest.mark.parametrize("key", [b"\0\0\0\2tx", b"\0\0\0\2tx+"])
@pytest.mark.parametrize("more", [b"", b"more"])
def test_a_coordinator_ignores_bytes_after_the_fields_of_a_record(tmp_path, key, more):
    """Both coordinators of 4.3.1 loaded such keys and values."""
    place = tmp_path / "__transaction_state-0"
    place.mkdir()
    value = b"\0\0" + bytes(8) + bytes(2) + bytes(4) + b"\0" + bytes(4) + bytes(16)
    (place / f"{0:020}.log").write_bytes(forge.batch([forge.record(key, value + more)]))
    (place / f"{0:020}.index").write_bytes(b"")
    assert "payload" not in checks(place, status=0)


@pytest.mark.parametrize(
    ("version", "status", "release", "reason"),
    [
        (0, 7, "3.9.2", ""),
        (9, 1, "3.9.2", "version 9 of TransactionLogValue is unknown"),
        (9, 1, "4.2.2", "version 9 of TransactionLogValue is unknown"),
        (9, 1, "4.4.0", ""),
        (0, 99, "3.9.2", "transactionStatus 99 is unknown"),
        (0, 99, "4.4.0", "transactionStatus 99 is unknown"),
    ],
)
def test_a_transaction_coordinator_fails_at_a_value_that_it_does_not_know(tmp_path, version, status, release, reason):
    """A broker of 3.9.2 fails at both, 4.4.0 at the status alone. 4.2.2 has the class of 3.9.2, 4.3.1 that of 4.4.0."""
    place = tmp_path / "d" / "__transaction_state-0"
    place.mkdir(parents=True)
    value = struct.pack(">hqhibiqq", version, 7, 0, 60_000, status, 0, 1, 1)
    (place / f"{0:020}.log").write_bytes(forge.batch([forge.record(b"\0\0\0\1t", value)]))
    (tmp_path / "d" / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=x\n")
    done = kdump("check", tmp_path / "d", "-o", "jsonl", "--release", release)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    stops = [line["text"] for line in found if line.get("code") == "coordinator-version"]
    assert stops == ([f"the coordinator cannot load this partition: offset 0: {reason}"] if reason else [])
    assert done.returncode == (3 if reason else 0)


@pytest.mark.parametrize(("release", "loads"), [("3.3.2", False), ("3.9.2", True), ("4.4.0", True)])
def test_a_coordinator_fails_at_a_version_that_its_release_lacks(tmp_path, release, loads):
    """Brokers of 3.9.2 and 4.4.0 fail to load the partition, and ignore a record of an unknown type."""
    place = tmp_path / "d" / "__consumer_offsets-0"
    place.mkdir(parents=True)
    key, empty = b"\0\1\0\2g1\0\1t\0\0\0\0", bytes(8)
    value = b"\0\4" + empty + b"\xff\xff\xff\xff" + b"\1" + empty + b"\0"
    batch = forge.batch([forge.record(key, value), forge.record(b"\0\x63\0\2g1", b"\0\3\0\0", offset=1)])
    (place / f"{0:020}.log").write_bytes(batch)
    (tmp_path / "d" / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=x\n")
    done = kdump("check", tmp_path / "d", "-o", "jsonl", "--release", release)
    assert (b"coordinator-version" in done.stdout) != loads


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
    done = kdump("check", tmp_path / "missing")
    assert (done.returncode, b"nothing could be read" in done.stdout) == (1, True)
    place = folder(tmp_path, (0, one(0)))
    done = kdump("check", tmp_path / "missing", place)
    assert (done.returncode, b"nothing is wrong, but some files could not be read" in done.stdout) == (1, True)


@pytest.mark.parametrize("jobs", [1, 3])
def test_one_file_that_cannot_be_read_does_not_hide_the_others(tmp_path, jobs):
    place = folder(tmp_path, (0, one(0)), (1, one(1)), (2, one(2) + one(3, crc=7)))
    sound = folder(tmp_path / "more", (0, one(0)), parents=True)
    sound.rename(tmp_path / "sound-0")
    (tmp_path / "more").rmdir()
    for path in (
        place / f"{1:020}.log",
        place / f"{2:020}.timeindex",
        place / f"{2:020}.snapshot",
        place / "leader-epoch-checkpoint",
        tmp_path / "meta.properties",
    ):
        path.unlink(missing_ok=True)
        path.symlink_to("gone")
    done = kdump("check", "--jobs", jobs, tmp_path)
    reported = done.stderr.decode().splitlines()
    assert done.returncode == 1
    assert sorted(line.partition(": ")[2].removeprefix(str(tmp_path)) for line in reported) == [
        f"/meta.properties: {os.strerror(2)}",
        f"/orders-0/{1:020}.log: {os.strerror(2)}",
        f"/orders-0/{2:020}.snapshot: {os.strerror(2)}",
        f"/orders-0/{2:020}.timeindex: {os.strerror(2)}",
        f"/orders-0/leader-epoch-checkpoint: {os.strerror(2)}",
    ]
    assert done.stdout.count(b"DAMAGED") == 1  # the wrong crc: its offsets are not missing too
    assert b"the checksum is wrong" in done.stdout
    assert b"3 segments, 3 batches" in done.stdout
    index = kdump("verify-index", tmp_path)
    assert (index.returncode, b"3 segments" in index.stdout) == (1, True)


def test_a_second_cut_of_a_segment_does_not_turn_the_offsets_round(tmp_path):
    (part,) = Finder(Wanted()).find([str(folder(tmp_path, (0, one(0))))])
    cuts = tuple(
        Cut("x", 0, 9, "why", first, last, last - first + 1, Code.BAD_BATCH) for first, last in ((89, 179), (33, 88))
    )
    outcome = log_loader.dry_run(part, clean=True)._replace(cuts=cuts)
    text = next(whole_partition._outcome(part, outcome, "a broker")).text
    assert "2 segments and lose offsets 33 to 179, 147 records" in text


def test_a_bad_batch_before_many_segments_is_a_few_lines(tmp_path):
    bad = one(0, count=2, crc=7)
    later = [(first, one(first)) for first in range(3, 300)]
    place = folder(tmp_path, (0, bad + one(2)), *later)
    size = sum(path.stat().st_size for path in place.glob("*.log"))
    text = kdump("check", place).stdout.decode()
    lines = text.splitlines()
    assert len(lines) <= 20
    assert lines[0] == f"{place}: the log is damaged"
    assert lines[1].startswith("  DAMAGED 00000000000000000000.log byte 0: ")
    assert "offsets 0 to 1 are missing" in lines[1]
    assert f"would truncate or delete 298 segments and lose offsets 2 to 299, 298 records, {size} bytes in all" in text
    assert "more like it, up to 00000000000000000299.log (--verbose prints them all)" in text
    assert text.count("kdump salvage") == 2
    every = kdump("check", "--verbose", place).stdout.decode()
    assert every.count("would truncate the log at this byte") == 299  # the verdict repeats one
    assert "more like it" not in every


def test_jsonl_is_the_same_as_json_and_topics_are_chosen(tmp_path):
    place = folder(tmp_path, (0, one(0, crc=7)))
    shutil.copytree(place, tmp_path / "paid-1")
    for command in ("check", "verify-index"):
        found = kdump(command, "-o", "jsonl", tmp_path)
        assert found.stdout == kdump(command, "--json", tmp_path).stdout
        one_topic = kdump(command, "-o", "jsonl", "--topic", "paid", "--partition", "0-1", tmp_path).stdout
        files = [line["file"] for line in map(json.loads, one_topic.splitlines()) if "file" in line]
        assert files
        assert all(f"{path}/".startswith(f"{tmp_path}/paid-1/") for path in files)


def test_a_name_cannot_forge_lines(tmp_path):
    place = folder(tmp_path, (0, one(0, crc=7)))
    place = place.rename(tmp_path / os.fsdecode(b"a\nerror: all is well\xff\x1b[2J-0"))
    done = kdump("check", tmp_path)
    assert b"a\\x0aerror: all is well\\xff\\x1b[2J-0" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line.startswith((b"kdump: all", b"error: all"))]
    reported = kdump("salvage", tmp_path, "--out", tmp_path.with_suffix(".out")).stderr
    assert all(line.startswith((b"note: a\\x0a", b"error: /", b"note: 0 ")) for line in reported.splitlines())


def test_a_folder_that_is_named_twice_is_read_once(tmp_path):
    place = folder(tmp_path, (0, one(0)))
    done = kdump("check", tmp_path, place)
    assert (done.returncode, b"1 segment, 1 batch," in done.stdout) == (0, True)
    assert b"is in several of the paths" in done.stderr


def test_the_conclusion_names_what_is_damaged_and_what_to_do(tmp_path):
    place = folder(tmp_path, (0, one(0) + one(1, crc=1) + one(2)))
    text = kdump("check", place).stdout.decode()
    assert f"kdump salvage {place} --out salvaged" in text
    assert f"Damaged: 1 partition: {place}\nWith the broker stopped, kdump salvage copies the valid " in text
    (place / f"{0:020}.log").write_bytes(one(0) + one(1))
    (place / f"{0:020}.index").write_bytes(b"x")
    assert "No log is damaged" in kdump("check", place).stdout.decode()


def test_files_of_a_log_dir_are_reported_once(tmp_path):
    for number in range(2):
        folder(tmp_path, (0, one(0))).rename(tmp_path / f"t-{number}")
    (tmp_path / "meta.properties").write_bytes(b"version=9")
    (tmp_path / "lost+found").mkdir()
    for path, where in ((tmp_path, tmp_path.parent), (tmp_path.name, tmp_path.parent), (".", tmp_path)):
        for jobs in (1, 2):
            done = kdump(
                "check", "--json", "--jobs", jobs, path, cwd=where, env={**os.environ, "PYTHONPATH": str(ROOT)}
            )
            assert done.stdout.count(b'"kind":"finding"') == 2, done.stdout.decode()


@pytest.mark.parametrize("place", sorted((GOLDEN / "brokers").iterdir()), ids=lambda path: path.name)
def test_what_brokers_wrote_is_healthy(place):
    folders = [
        path
        for path in sorted(place.iterdir())
        if path.is_dir() and not path.name.startswith(("_misc", "_deleted", "_logdir"))
    ]
    done = kdump("check", "-q", *folders)
    assert (done.returncode, done.stdout) == (0, b""), done.stdout.decode()


def test_every_damage_of_the_golden_files_is_named_or_shown_to_be_harmless():
    made = prove_check.cases(GOLDEN / "damaged", GOLDEN / "brokers")
    verdicts = Counter(case.verdict for case in made)
    assert [case.name for case in made if case.verdict is Verdict.SILENT] == []
    assert verdicts[Verdict.NAMED] + verdicts[Verdict.REMARKED] > 150
    assert verdicts[Verdict.CONTENT] < 20


ONE, OTHER = "AAAAAAAAAAAAAAAAAAAAzg", "BBBBBBBBBBBBBBBBBBBBzg"
"""Directory ids that a broker takes."""


def two_log_dirs(tmp_path, *directories, broker="1", name="orders-0"):
    places = []
    for number, directory in enumerate(directories):
        place = tmp_path / f"disk{number}"
        folder(place, (0, one(0)), parents=True).rename(place / (name if number else "orders-0"))
        owner = broker if number else "1"
        lines = [
            "version=1",
            f"node.id={owner}",
            "cluster.id=abc",
            *([f"directory.id={directory}"] if directory else []),
        ]
        (place / "meta.properties").write_text("\n".join(lines) + "\n")
        places.append(place)
    return places


def test_a_right_crc_hides_no_size_without_an_end(tmp_path):
    (found,) = findings(folder(tmp_path, (0, one(0) + forge.endless(1))), status=3)
    assert "does not end" in found["text"]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_partition_in_two_log_dirs_of_a_broker_keeps_it_from_starting(tmp_path, jobs):
    one_dir, other = two_log_dirs(tmp_path, ONE, OTHER)
    done = kdump("check", "--json", "--jobs", jobs, one_dir, other)
    (found,) = [line for line in map(json.loads, done.stdout.splitlines()) if line["kind"] == "finding"]
    assert (found["check"], found["file"], done.returncode) == ("twice", str(other / "orders-0"), 3)
    assert f"{one_dir}, has orders-0 too" in found["text"]


@pytest.mark.parametrize(
    ("directories", "rest", "remarks"),
    [
        ((ONE, ONE), {}, 0),  # two copies of one
        ((None, None), {}, 1),  # before 3.7 no file has it
        ((ONE, OTHER), {"broker": "2"}, 0),  # replicas
        ((ONE, OTHER), {"name": f"orders-0.{'0' * 32}-future"}, 0),  # on its way from one disk to the other
    ],
)
def test_copies_and_replicas_are_no_partition_that_is_there_twice(tmp_path, directories, rest, remarks):
    done = kdump("check", "--json", *two_log_dirs(tmp_path, *directories, **rest))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["check"] for line in lines if line["kind"] == "finding"] == []
    assert [line["kind"] for line in lines if line.get("check") == "twice"] == ["remark"] * remarks
    assert done.returncode == 0


def test_a_checkpoint_is_read_once_for_all_partitions_of_a_log_dir(tmp_path, monkeypatch):
    for number in range(3):
        folder(tmp_path, (0, one(0))).rename(tmp_path / f"orders-{number + 1}")
    entries = [PartitionOffset("orders", number + 1, 1) for number in range(3)]
    (tmp_path / file_names.RECOVERY_POINTS).write_bytes(checkpoints.encode(entries))
    asked = []
    monkeypatch.setattr(Partition, "beside", lambda _, name: asked.append(name))
    dirs = log_dir.LogDirs()
    for part in Finder(Wanted(siblings=True)).find([str(tmp_path)]):
        dirs.facts(part)
    assert sorted(asked) == sorted(log_dir.READERS)


@pytest.mark.parametrize(
    ("data", "what"), [(b"root:x:0:0:root:/root:/bin/bash\n", "text, not a file"), (b"\x7fELF" * 9, "not a file")]
)
def test_a_file_that_is_none_of_kafkas_is_called_so_and_not_a_damaged_log(tmp_path, data, what):
    path = tmp_path / "passwd"
    path.write_bytes(data)
    done = kdump("check", path)
    assert (done.returncode, done.stdout.count(b"DAMAGED"), done.stdout.count(b"salvage")) == (1, 0, 0)
    assert f"error: {path}: it is {what} of Kafka's: byte 16 holds {data[16]}" in done.stderr.decode()
    assert b"name a segment, a partition folder or a log dir" in done.stderr
    torn = tmp_path / "customer.log"
    torn.write_bytes(data)
    status = 1 if what.startswith("text") else 3
    assert kdump("check", torn).returncode == status, "the start of a file named .log may be damaged, but not text"


@pytest.mark.parametrize(
    ("first_dirty", "segments", "lost"),
    [
        (0, {0: (0, 1, 2), 6: (6, 7)}, [(3, 6)]),
        (3, {0: (0, 1, 2), 6: (6, 7)}, [(3, 6)]),
        (4, {0: (0, 1, 2), 6: (6, 7)}, [(3, 6)]),
        (6, {0: (0, 1, 2), 6: (6, 7)}, []),
        (0, {0: (0, 2), 6: (6, 7)}, []),  # a gap within a segment: a cleaner was here
        (0, {0: (0, 1, 2), 6: (7, 8)}, []),
        (3, {0: (0, 2), 6: (6, 7)}, [(3, 6)]),  # it was here before
        (None, {0: (0, 1, 2), 6: (6, 7)}, []),
    ],
)
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_lost_segment_of_a_compacted_log_shows_past_the_cleaners_checkpoint(
    tmp_path, first_dirty, segments, lost, replicas
):
    place = folder(tmp_path, *((base, b"".join(map(one, offsets))) for base, offsets in segments.items()))
    if first_dirty is not None:
        entries = [PartitionOffset("orders", 0, first_dirty)] if first_dirty else []
        (tmp_path / "cleaner-offset-checkpoint").write_bytes(checkpoints.encode(entries) if entries else b"")
    options = whole_partition.CheckOptions(
        compacted=frozenset({"orders"}), alone=frozenset({"orders"} if replicas == 1 else ())
    )
    (part,) = Finder(Wanted(leftovers=True)).find([str(place)], None)
    checked = whole_partition.check(part, options, log_dir.LogDirs())
    found = [(each.expected, each.found) for each in checked.findings if each.code == Code.GAP]
    assert found == (lost if replicas == 1 else [])  # a follower takes the gaps of its leader


@pytest.mark.parametrize(
    ("point", "mark", "marker", "lost"),
    [(2, 2, True, 1), (2, 2, False, 0), (2, 8, True, 0), (8, 2, True, 0), (2, 3, False, 1), (2, 7, False, 0)],
)
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_gap_past_the_end_of_a_clean_stop_or_around_the_high_watermark_is_no_compaction(
    tmp_path, point, mark, marker, lost, replicas
):
    """A bit of a base offset was changed: a broker of 3.9.2 served the batch with offset 1108 instead of 108.

    A follower may have truncated its log and copied the gap of its leader, less than 5 seconds before it was killed:
    ``replica.high.watermark.checkpoint.interval.ms``.
    """
    place = folder(tmp_path, (0, one(0) + one(1) + one(7)))
    for name, offset in (("recovery-point-offset-checkpoint", point), ("replication-offset-checkpoint", mark)):
        (tmp_path / name).write_bytes(checkpoints.encode([PartitionOffset("orders", 0, offset)]))
    if marker:
        (tmp_path / ".kafka_cleanshutdown").touch()
    (part,) = Finder(Wanted(leftovers=True)).find([str(place)], None)
    options = whole_partition.CheckOptions(
        compacted=frozenset({"orders"}), alone=frozenset({"orders"} if replicas == 1 else ())
    )
    checked = whole_partition.check(part, options, log_dir.LogDirs())
    assert [each.code for each in checked.findings].count(Code.GAP) == (lost if marker or replicas == 1 else 0)


def test_the_high_watermark_in_a_gap_between_segments_is_no_loss(tmp_path):
    """The cleaner may have removed the end of the older segment after the checkpoint was written."""
    place = folder(tmp_path, (0, one(0) + one(1)), (6, one(6)))
    (tmp_path / "replication-offset-checkpoint").write_bytes(checkpoints.encode([PartitionOffset("orders", 0, 4)]))
    (part,) = Finder(Wanted(leftovers=True)).find([str(place)], None)
    options = whole_partition.CheckOptions(compacted=frozenset({"orders"}), alone=frozenset({"orders"}))
    checked = whole_partition.check(part, options, log_dir.LogDirs())
    assert Code.GAP not in [each.code for each in checked.findings]


@pytest.mark.parametrize("times", [2, 1])
def test_a_gap_that_has_an_offset_of_both_indexes_is_no_compaction(tmp_path, times):
    """A bit of a base offset was changed: a broker of 3.9.2 served the batch with an offset that is 2^31 higher."""
    log = one(0) + one(1, base_timestamp=1) + one(9, base_timestamp=2)
    place = folder(tmp_path, (0, log))
    (place / f"{0:020}.index").write_bytes(offset_index.encode([(1, len(one(0))), (2, len(one(0) + one(1)))], 0))
    (place / f"{0:020}.timeindex").write_bytes(time_index.encode([(1, 1), (2, times)], 0))
    (part,) = Finder(Wanted(leftovers=True, siblings=True)).find([str(place)], None)
    options = whole_partition.CheckOptions(compacted=frozenset({"orders"}))
    checked = whole_partition.check(part, options, log_dir.LogDirs())
    assert [each.code for each in checked.findings].count(Code.GAP) == (times == 2)


def test_gaps_of_a_topic_that_is_not_compacted_are_damage_without_a_cleaners_checkpoint(tmp_path):
    place = folder(tmp_path, (0, one(0)), (5, one(5)), (6, one(6)))
    (part,) = Finder(Wanted(leftovers=True)).find([str(place)], None)
    for ids, lost in (({}, 0), ({"orders": "A"}, 1)):
        checked = whole_partition.check(part, whole_partition.CheckOptions(ids=ids), log_dir.LogDirs())
        assert [each.code for each in checked.findings if not each.is_remark].count(Code.GAP) == lost


def test_an_index_distinguishes_lost_offsets_from_compaction(tmp_path):
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 9\n")
    for base in (0, 10):
        batch = forge.batch([forge.record(None, b"a", offset=0)], base_offset=base)
        (folder / f"{base:020}.log").write_bytes(batch)
        (folder / f"{base:020}.index").write_bytes(b"")
    assert kdump("check", str(folder)).returncode == 0  # a gap as compaction leaves it
    (folder / f"{5:020}.index").write_bytes(b"")
    assert "offsets 1 to 9 are missing" in kdump("check", str(folder)).stdout.decode()
    (folder / f"{5:020}.log").write_bytes(b"")
    assert "are missing" not in kdump("check", str(folder)).stdout.decode()
    (folder / f"{5:020}.index").write_bytes(struct.pack(">ii", 2, 300))
    assert "offsets 5 to 9 are missing" in kdump("check", str(folder)).stdout.decode()


def test_a_segment_that_repeats_the_end_of_the_one_before_is_a_remark(tmp_path):
    """Brokers of 4.3.1 and 4.4.0 served such logs: fetches from the first repeated offset on read the later one."""
    whole = one(0) + one(1) + one(2)
    place = folder(tmp_path, (0, whole), (1, one(1) + one(2)), (3, one(3)))
    assert findings(place, status=0) == []
    for other in (one(1), one(1) + one(2, crc=1), one(1) + one(2, count=2)):
        (place / f"{1:020}.log").write_bytes(other)
        assert "base-offset" in [line["code"] for line in findings(place, status=3)]


def test_damage_below_the_log_start_is_a_remark(tmp_path):
    place = folder(tmp_path, (0, one(0, crc=1) + one(1)), (2, one(2, crc=1) + one(3)))
    (tmp_path / ".kafka_cleanshutdown").touch()
    assert [line["code"] for line in findings(place, status=3)] == ["crc", "crc"]
    for start, left in ((1, 1), (2, 1), (3, 0)):
        (tmp_path / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {start}\n")
        assert len(findings(place, status=3 if left else 0)) == left


def test_consumers_do_not_stop_at_invalid_records_below_the_log_start(tmp_path):
    records = [forge.record(None, b"v"), forge.record(None, b"v")]
    place = folder(tmp_path, (0, forge.batch(records) + one(2)))
    (found,) = findings(place, status=3)
    assert (found["code"], "consumers fail at it" in found["advice"]) == ("records", True)
    (tmp_path / ".kafka_cleanshutdown").touch()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 2\n")
    assert findings(place, status=0) == []


@pytest.mark.parametrize(
    "data", [b"", one(0)[:70], one(0) + b"\1" * 90, one(0) + bytes(60), one(0, crc=1)[:20], one(0)]
)
def test_what_is_wrong_with_a_segment_below_the_log_start_is_a_remark(tmp_path, data):
    place = folder(tmp_path, (0, data), (2, one(2)))
    assert findings(place, status=3) != []
    (tmp_path / ".kafka_cleanshutdown").touch()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 2\n")
    assert findings(place, status=0) == []


def test_a_folder_with_the_name_of_a_segment_below_the_log_start_is_a_remark(tmp_path):
    place = folder(tmp_path, (0, one(0)), (1, one(1)))
    (place / f"{0:020}.log").unlink()
    (place / f"{0:020}.log").mkdir()
    (tmp_path / ".kafka_cleanshutdown").touch()
    assert ("no-file", "log") in [(line["code"], line["level"]) for line in findings(place, status=3)]
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 1\n")
    assert [line["code"] for line in findings(place, status=4)] == ["no-log"]


@pytest.mark.parametrize(("size", "base", "status"), [(1, 1, 0), (11, 1, 0), (12, 1, 3), (17, 1, 3), (5, 2, 3)])
def test_a_few_bytes_after_an_older_segment_stop_no_consumer(tmp_path, size, base, status):
    """From 12 bytes on they hold a size (ByteBufferLogInputStream). Offset 1 is lost if the next segment has base 2."""
    place = folder(tmp_path, (0, one(0) + b"\1" * size), (base, one(base)))
    (tmp_path / ".kafka_cleanshutdown").touch()
    assert (findings(place, status=status) == []) == (status == 0)


def test_a_segment_that_a_start_restores_leaves_no_gap(tmp_path):
    place = folder(tmp_path, (0, one(0)), (1, one(1)), (2, one(2)))
    (tmp_path / ".kafka_cleanshutdown").touch()
    log = place / f"{1:020}.log"
    log.rename(f"{log}.swap")
    ids = whole_partition.CheckOptions(ids={"orders": "A"})
    (part,) = Finder(Wanted(leftovers=True)).find([str(place)], None)
    assert Code.GAP not in [each.code for each in whole_partition.check(part, ids, log_dir.LogDirs()).findings]
    log.with_name(f"{log.name}.swap").rename(log)
    os.mkfifo(f"{log}.swap")  # a broker takes regular files only
    assert findings(place, status=0) == []
    log.with_name(f"{log.name}.swap").unlink()
    log.rename(f"{log}.swap")
    (place / f"{0:020}.log.cleaned").write_bytes(b"")  # a start removes the .swap
    (part,) = Finder(Wanted(leftovers=True)).find([str(place)], None)
    assert Code.GAP in [each.code for each in whole_partition.check(part, ids, log_dir.LogDirs()).findings]


@pytest.mark.parametrize(("point", "snapshot", "status"), [(2, None, 0), (1, None, 3), (2, 9, 3), (None, None, 3)])
def test_after_a_clean_stop_the_recovery_point_proves_the_log_end(tmp_path, point, snapshot, status):
    """This holds unless two other files contradict it."""
    place = folder(tmp_path, (0, one(0) + one(1)))
    (tmp_path / ".kafka_cleanshutdown").touch()
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\norders 0 7\n")
    if point is not None:
        (tmp_path / "recovery-point-offset-checkpoint").write_text(f"0\n1\norders 0 {point}\n")
    if snapshot is not None:
        (place / f"{snapshot:020}.snapshot").write_bytes(producer_snapshot.encode([]))
    assert kdump("check", tmp_path).returncode == status
    (tmp_path / ".kafka_cleanshutdown").unlink()
    assert kdump("check", tmp_path).returncode == 3


@pytest.mark.parametrize(("count", "more"), [(999, 0), (1200, 199)])
def test_many_lost_offsets_are_found_and_the_others_are_counted(tmp_path, count, more):
    place = folder(tmp_path, (0, b"".join(one(2 * n) for n in range(count))))
    done = kdump("check", "--json", "--notes", place)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (3, b"")
    assert len([line for line in lines if " missing before the batch at byte " in line.get("text", "")]) == (
        count - 1 - more
    )
    counted = [line["text"] for line in lines if " more gaps in the offsets " in line.get("text", "")]
    assert [text.partition(" in ")[0] for text in counted] == ([f"{more} more gaps"] if more else [])


def test_a_moved_file_is_never_replaced_by_another(tmp_path):
    log_dir, index = tmp_path / "d1", tmp_path / "d1" / "orders-0" / f"{0:020}.index"
    index.parent.mkdir(parents=True)
    (log_dir / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    contents = [b"one", b"two", b"three"]
    for content in contents:
        index.write_bytes(content)
        subprocess.run(repair_commands.aside(str(index)), shell=True, check=True)
        assert not index.exists()
    moved = sorted(path.read_bytes() for path in tmp_path.rglob(index.name))
    assert moved == sorted(contents)


@pytest.mark.parametrize(
    "end",
    [b"", bytes(3000), b"\1" * 3000, one(5, crc=1), one(5)[:-1], one(5, crc=1) + one(6)],
    ids=["none", "zeros", "damage", "crc", "truncated", "crc, then a valid batch"],
)
@pytest.mark.parametrize("records", [True, False])
def test_the_progress_counts_all_bytes_of_a_segment_with_a_finding(tmp_path, end, records):
    place = folder(tmp_path, (0, b"".join(map(one, range(5))) + end), (7, one(7)))
    (part,) = Finder(Wanted()).find([str(place)])
    read = []
    checked = whole_partition.check(part, whole_partition.CheckOptions(records), log_dir.LogDirs(), read.append)
    assert sum(read) == checked.size == sum(path.stat().st_size for path in place.glob("*.log"))
