"""A start that reuses the results of a check has the same result as a start that looks for everything itself."""

import json
import random
import shutil
import subprocess
import tarfile

import pytest

from kdump import checking
from kdump.broker_start import started
from kdump.broker_start.broker_dirs import StartOptions, brokers
from kdump.broker_start.start import dry_start
from kdump.checks import whole_partition
from kdump.checks.log_dir import LogDirs
from kdump.errors import SILENT
from kdump.formats import producer_snapshot
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.local import LOCAL, LocalFile, LocalFiles
from kdump.recovery import log_loader
from kdump.recovery.index_builder import IndexBuilder
from kdump.segments import walk
from testing import GOLDEN, forge
from tests.commands.test_faults import run
from tests.helpers import log_dirs

EVERYTHING = Wanted(siblings=True, leftovers=True, log_dirs=True)
STATES = (".swap", ".cleaned", ".deleted", ".tmp")
TIME = 1_700_000_000_000


def entry(offset, count, magic, rng):
    value = b"v" * rng.choice([5, 3000])
    if magic == 2:
        made = [forge.record(b"k", value, offset=number) for number in range(count)]
        return forge.batch(made, base_offset=offset, base_timestamp=TIME)
    message = forge.message(1, b"k", value, timestamp=TIME)
    inside = [(number, message) for number in range(count)]
    return forge.wrapper(1, offset + count - 1, inside)


def log_dir(root, rng):
    """Write three partitions of up to three segments with their indexes; the last partition may have old messages."""
    for number in range(3):
        folder = root / f"t-{number}"
        folder.mkdir(parents=True)
        at = 0
        for _ in range(rng.choice([1, 2, 3])):
            name, batches = f"{at:020}", []
            for _ in range(rng.choice([0, 1, 4, 20])):
                count = rng.choice([1, 3])
                batches.append(entry(at, count, 1 if number == 2 and rng.random() < 0.3 else 2, rng))
                at += count
            log = folder / f"{name}.log"
            log.write_bytes(b"".join(batches))
            builder = IndexBuilder(int(name), interval=rng.choice([100, 4096]))
            with LOCAL.open(str(log)) as source:
                for region in walk.walk(source):
                    builder.add(region)
            made = builder.finish()
            log.with_suffix(".index").write_bytes(made.offset_index)
            log.with_suffix(".timeindex").write_bytes(made.time_index)
            if not batches:
                break
        (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        (folder / "partition.metadata").write_text("version: 0\ntopic_id: abcdefghijklmnopqrstuA")
    (root / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=Jcp9qHk6RnaNkgBVOvaAyg\n")
    if rng.random() < 0.5:
        (root / ".kafka_cleanshutdown").touch()
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        if rng.random() < 0.5:
            lines = "".join(f"t {number} {rng.choice([0, 1, 7, 1000])}\n" for number in range(3))
            (root / name).write_text(f"0\n3\n{lines}")


def change(root, rng):
    """Damage, remove, rename or add a file of a partition, or put a folder in its place."""
    file = rng.choice(sorted(each for each in root.glob("*/*") if each.is_file()))
    data = bytearray(file.read_bytes())
    kind = rng.choice(["flip", "cut", "zeros", "gone", "state", "folder", "beside", "copy", "link"])
    if kind == "flip" and data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        file.write_bytes(data)
    elif kind == "cut":
        file.write_bytes(data[: rng.randrange(len(data) + 1)])
    elif kind == "zeros":
        file.write_bytes(data + bytes(rng.choice([1, 12, 4096])))
    elif kind == "state":
        file.rename(file.with_name(file.name + rng.choice(STATES)))
    elif kind == "beside":
        name = rng.choice(["x.log", "7.log", f"{1:020}.snapshot", "sub"])
        (file.parent / name).mkdir(exist_ok=True)
    elif kind == "copy":
        shutil.copy(file, file.with_name(f"{file.name}.swap"))
    elif kind != "flip":
        file.unlink()
        if kind == "folder":
            file.mkdir()
        elif kind == "link":
            file.symlink_to("nothing")


def both(root, *, records=True):
    """Return the result of a start with what a check found, the result without it, and what the check found."""
    paths = (str(root),)
    partitions = list(Finder(EVERYTHING, SILENT).find(paths))
    dirs, how = LogDirs(), whole_partition.CheckOptions(records=records)
    known = started.known([whole_partition.check(one, how, dirs) for one in partitions], partitions)
    made = []
    for facts in (known, {}):
        (broker,) = brokers(checking.log_dirs(paths, partitions, {}), StartOptions())
        made.append(dry_start(broker, StartOptions(), facts))
    return *made, known


@pytest.mark.parametrize("seed", range(40))
def test_a_start_with_the_facts_of_a_check_is_that_without(tmp_path, seed):
    rng = random.Random(seed)
    log_dir(tmp_path / "d", rng)
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        change(tmp_path / "d", rng)
    with_facts, without, _ = both(tmp_path / "d", records=seed % 2 == 0)
    assert with_facts == without


@pytest.mark.parametrize("name", ["partition.metadata", "leader-epoch-checkpoint"])
def test_a_folder_in_the_place_of_a_file_is_met(tmp_path, name):
    log_dir(tmp_path / "d", random.Random(0))
    (tmp_path / "d" / "t-1" / name).unlink()
    (tmp_path / "d" / "t-1" / name).mkdir()
    with_facts, without, known = both(tmp_path / "d")
    assert with_facts == without
    assert [one.log_dir for one in with_facts.offline] == [str(tmp_path / "d")]
    assert not known[str(tmp_path / "d" / "t-1")].has_sound_files


def test_a_sound_segment_without_an_index_is_recovered_once(tmp_path):
    log_dir(tmp_path / "d", random.Random(3))
    (tmp_path / "d" / ".kafka_cleanshutdown").unlink(missing_ok=True)
    for index in tmp_path.glob("d/t-0/*.index"):
        index.unlink()
    with_facts, without, _ = both(tmp_path / "d")
    assert with_facts == without
    (log,) = (one for one in with_facts.logs if one.partition == 0)
    assert len(set(log.recovered)) == len(log.recovered) > 0


def test_a_dry_start_of_sound_logs_lists_and_opens_no_partition(monkeypatch, tmp_path):
    for number in range(5):
        folder = tmp_path / "d" / f"t-{number}"
        folder.mkdir(parents=True)
        batch = forge.batch([forge.record(b"k", b"v")], base_timestamp=TIME)
        (folder / f"{0:020}.log").write_bytes(batch)
        (folder / f"{0:020}.index").touch()
        (folder / f"{1:020}.snapshot").write_bytes(producer_snapshot.encode(()))
        (folder / "partition.metadata").write_text("version: 0\ntopic_id: abcdefghijklmnopqrstuA")
    (tmp_path / "d" / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=Jcp9qHk6RnaNkgBVOvaAyg\n")
    (tmp_path / "d" / ".kafka_cleanshutdown").touch()
    with_facts, without, known = both(tmp_path / "d")
    assert with_facts == without
    monkeypatch.setattr(log_loader, "dry_run", None)  # nothing is simulated
    (broker,) = brokers([(LOCAL, str(tmp_path / "d"))], StartOptions())
    met = []
    listing, opening = LocalFiles.entries, LocalFile.__init__
    monkeypatch.setattr(LocalFiles, "entries", lambda files, path: met.append(path) or listing(files, path))
    monkeypatch.setattr(LocalFile, "__init__", lambda file, path: met.append(path) or opening(file, path))
    logs = dry_start(broker, StartOptions(), known).logs
    assert [(one.log_start_offset, one.log_end_offset, one.topic_id is None) for one in logs] == [(0, 1, False)] * 5
    assert not [path for path in met if "/t-" in path]


LOG = f"{0:020}.log"
ALONE = {
    "a copy": ("backup.log", lambda log: log, "name-no-offset", True),
    "a copy of an index": ("old.index", lambda _: b"", "name-no-offset", True),
    "a swap of zeros": (f"{LOG}.swap", lambda log: bytes(len(log)), "record-size", True),
    "an empty swap": (f"{LOG}.swap", lambda _: b"", "swapped", False),
    "a truncated swap": (f"{LOG}.swap", lambda log: log[: len(log) // 2], "swapped", False),
    "the same swap": (f"{LOG}.swap", lambda log: log, None, False),
}


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("command", ["check", "report"])
def test_a_partition_folder_alone_has_the_findings_of_its_own_files(monkeypatch, tmp_path, capfd, command, name):
    """No log dir is among the paths, so no broker gets a dry start. The printed command leaves nothing wrong."""
    file, content, code, is_fatal = ALONE[name]
    folder = tmp_path / "txn-0"
    shutil.copytree(GOLDEN / "brokers/4.2.2/txn-0", folder)
    (folder / file).write_bytes(content((folder / LOG).read_bytes()))
    at = ["--at", "1700000000000"] if command == "report" else []
    status, out, _ = run(monkeypatch, capfd, [command, str(folder), "-o", "jsonl", *at])
    lines = [json.loads(line) for line in out.splitlines()]
    found = {line["code"]: line for line in lines if line["kind"] == "finding"}
    if code is None:
        assert (status, found) == (0, {})
        return
    assert status == 3
    assert code in found
    assert bool(found[code].get("fatal")) == is_fatal
    if command == "check":
        subprocess.run(["sh", "-c", found[code]["commands"][0]], check=True, cwd=tmp_path)
        assert run(monkeypatch, capfd, [command, str(folder)])[0] == 0


def codes(monkeypatch, capfd, *words):
    """Return the codes of the findings of a check, in order."""
    _, out, _ = run(monkeypatch, capfd, ["check", *words, "-o", "jsonl"])
    return [line["code"] for line in map(json.loads, out.splitlines()) if line["kind"] == "finding"]


def spelled(root, how, monkeypatch):
    """Return the arguments of a check that names one folder with an empty ``.swap`` file."""
    folder = root / "d1/txn-0"
    shutil.copytree(GOLDEN / "brokers/4.2.2/txn-0", folder)
    (folder / f"{LOG}.swap").write_bytes(b"")
    if how != "no log dir":
        log_dirs.node(root / "d1", 1)
    (root / "link").symlink_to(root / "d1")
    with tarfile.open(root / "d1.tar", "w") as archive:
        for each in (root / "d1").iterdir():
            archive.add(each, each.name)
    monkeypatch.chdir(folder)
    ways = {"link": [str(root / "link/txn-0"), str(root / "d1")], "archive": [str(root / "d1.tar")]}
    return ways.get(how, ["."])


@pytest.mark.parametrize("how", ["no log dir", "current folder", "link", "archive"])
def test_a_folder_is_reported_once_however_its_path_is_written(tmp_path, monkeypatch, capfd, how):
    found = codes(monkeypatch, capfd, *spelled(tmp_path, how, monkeypatch))
    assert found.count("swapped") == 1


@pytest.mark.parametrize("is_log_dir", [False, True])
def test_a_folder_inside_a_partition_folder_is_not_loaded(tmp_path, monkeypatch, capfd, is_log_dir):
    for folder in (tmp_path / "txn-0", tmp_path / "txn-0/idem-0"):
        shutil.copytree(GOLDEN / "brokers/4.2.2/txn-0", folder)
    (tmp_path / "txn-0/idem-0/backup.log").write_bytes(b"")
    if is_log_dir:
        log_dirs.node(tmp_path, 1)
    path = tmp_path if is_log_dir else tmp_path / "txn-0"
    assert "name-no-offset" not in codes(monkeypatch, capfd, str(path))


@pytest.mark.parametrize("has_index", [False, True])
def test_a_folder_alone_has_the_checkpoints_of_its_log_dir(tmp_path, monkeypatch, capfd, has_index):
    """The log start offset above the log end is found even in a folder of usual files."""
    folder = tmp_path / "txn-0"
    shutil.copytree(GOLDEN / "brokers/4.2.2/txn-0", folder)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\ntxn 0 9999\n")
    for each in folder.glob("*.txnindex") if not has_index else ():
        each.unlink()
    status, out, _ = run(monkeypatch, capfd, ["check", str(folder), "-o", "jsonl"])
    found = {line["code"]: line for line in map(json.loads, out.splitlines()) if line["kind"] == "finding"}
    assert (status, found["log-start-beyond-end"]["loses"]) == (3, 135)
    assert found["log-start-beyond-end"]["file"] == str(tmp_path / "log-start-offset-checkpoint")
