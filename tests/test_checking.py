"""A check reads the files of a log dir once; a StoreError in a dry start does not end the other parts."""

import errno
import json
import shutil
from itertools import combinations

import pytest

from kdump import checking
from kdump.broker_start import broker_dirs, start
from kdump.errors import StoreError, UnreadableError
from kdump.formats import checkpoints
from kdump.log_dirs import file_names
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.local import LocalFiles
from testing import GOLDEN, forge
from tests.commands.test_faults import run
from tests.helpers import log_dirs

COMMANDS = {
    "check": ["check", "-o", "jsonl"],
    "report": ["report", "-o", "jsonl", "--at", "1700000000000"],
}
CHECKPOINTS = [
    file_names.RECOVERY_POINTS,
    file_names.HIGH_WATERMARKS,
    file_names.LOG_STARTS,
    file_names.CLEANER_OFFSETS,
]


def wrong_log_dir(tmp_path):
    batch = forge.batch([forge.record(b"k", b"v")])
    log_dirs.write(tmp_path, "orders-0", {0: batch}, leader_epoch_checkpoint="0\n2\n0 0\n", partition__metadata="")
    log_dirs.node(tmp_path, 7)
    return str(tmp_path)


def fails(*_):
    raise StoreError("s3://bucket/d1/orders-0", "503 Slow Down")


@pytest.mark.parametrize("stage", [(broker_dirs, "brokers"), (start, "dry_start")])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_store_that_does_not_answer_ends_the_dry_starts_alone(tmp_path, monkeypatch, capfd, command, stage):
    path = wrong_log_dir(tmp_path)
    monkeypatch.setattr(*stage, fails)
    status, shown, said = run(monkeypatch, capfd, [*COMMANDS[command], path])
    assert said == "error: s3://bucket/d1/orders-0: 503 Slow Down\n"
    assert status == 1
    lines = [json.loads(line) for line in shown.splitlines()]
    found = {line["code"] for line in lines if line["kind"] == "finding"}
    assert found >= {"count"}, "the check of the folder is not part of the dry start"


@pytest.mark.parametrize("command", COMMANDS)
def test_paths_are_listed_by_one_finder_even_without_a_log(tmp_path, monkeypatch, capfd, command):
    (tmp_path / "notes.txt").write_text("no log")
    made, first = [], Finder.find
    monkeypatch.setattr(Finder, "find", lambda self, *given: (made.append(given), first(self, *given))[1])
    status, _, said = run(monkeypatch, capfd, [*COMMANDS[command], str(tmp_path)])
    assert (status, said) == (1, f"error: {tmp_path}: no segment is in this folder or below it\n")
    assert len(made) == 1


@pytest.mark.parametrize("more", [(), ("--config", "node.id=7")])
@pytest.mark.parametrize("end", ["/", "//", "/."])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_log_dir_is_one_however_its_path_ends(tmp_path, monkeypatch, capfd, command, end, more):
    """A shell completes the names of folders with a slash."""
    path = wrong_log_dir(tmp_path)
    log_dirs.write(tmp_path, "orders-1", {0: b""}, partition__metadata="")
    (tmp_path / file_names.BOOTSTRAP_SNAPSHOT).write_bytes(b"")
    expected = run(monkeypatch, capfd, [*COMMANDS[command], path, *more])
    status, shown, said = run(monkeypatch, capfd, [*COMMANDS[command], f"{path}{end}", *more])
    assert (status, shown.replace(f"{path}{end.rstrip('/')}", path), said) == expected


LEFTOVER = f"{file_names.RECOVERY_POINTS}.tmp"
TXN = GOLDEN / "brokers/4.2.2/txn-0"
NAMED = [chosen for count in (1, 2, 3) for chosen in combinations(range(5), count)]


@pytest.mark.parametrize("named", NAMED, ids=str)
def test_segments_that_are_not_named_are_not_missed(tmp_path, monkeypatch, capfd, named):
    """Neither as gaps, nor as markers, nor as the end of the log."""
    shutil.copytree(TXN, tmp_path / "txn-0")
    log_dirs.node(tmp_path, 7)
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\ntxn 0 135\n")
    logs = sorted((tmp_path / "txn-0").glob("*.log"))
    status, shown, _ = run(monkeypatch, capfd, [*COMMANDS["check"], *(str(logs[number]) for number in named)])
    found = [json.loads(line) for line in shown.splitlines()]
    assert (status, [line["text"] for line in found if line["kind"] == "finding"]) == (0, [])
    assert any(line.get("code") == "open-transaction" for line in found) is (max(named) == len(logs) - 1)


@pytest.mark.parametrize("first", ["d1/orders-0", "link/orders-0", f"link/orders-0/{0:020}.log", "link"])
def test_a_log_dir_is_one_by_each_of_its_paths(tmp_path, monkeypatch, capfd, first):
    path = wrong_log_dir(tmp_path / "d1")
    (tmp_path / "link").symlink_to("d1")
    (tmp_path / "d1" / file_names.BOOTSTRAP_SNAPSHOT).write_bytes(b"")
    *_, expected = findings_of(monkeypatch, capfd, path)
    *_, found = findings_of(monkeypatch, capfd, f"{tmp_path}/{first}", path)
    assert (found["findings"], found["status"]) == (expected["findings"], expected["status"])


def test_two_paths_of_a_log_dir_are_no_two_log_dirs(tmp_path, monkeypatch, capfd):
    wrong_log_dir(tmp_path / "d1")
    log_dirs.write(tmp_path / "d1", "orders-1", {0: b""}, partition__metadata="")
    with (tmp_path / "d1" / "meta.properties").open("a") as file:
        file.write("directory.id=wIeNNiNiRUKBPWdIWwhK7A\n")
    (tmp_path / "link").symlink_to("d1")
    found = findings_of(monkeypatch, capfd, f"{tmp_path}/d1/orders-0", f"{tmp_path}/link/orders-1")
    assert "directory-id" not in {line["code"] for line in found if line["kind"] == "finding"}


def test_log_dirs_of_one_name_in_two_archives_are_both_checked(tmp_path, monkeypatch, capfd):
    for broker in ("b1", "b2"):
        path = tmp_path / broker / "data"
        wrong_log_dir(path)
        (path / LEFTOVER).write_bytes(b"")
        shutil.make_archive(str(tmp_path / broker), "tar", tmp_path / broker, "data")
    found = findings_of(monkeypatch, capfd, f"{tmp_path}/b1.tar", f"{tmp_path}/b2.tar")
    left = [line["file"] for line in found if line.get("code") == "leftover"]
    assert left == [f"{tmp_path}/{broker}.tar:data/{LEFTOVER}" for broker in ("b1", "b2")]


def findings_of(monkeypatch, capfd, *paths):
    return [json.loads(line) for line in run(monkeypatch, capfd, [*COMMANDS["check"], *paths])[1].splitlines()]


def test_a_check_lists_a_log_dir_once_and_parses_each_checkpoint_once(tmp_path, monkeypatch, capfd):
    batch = forge.batch([forge.record(b"k", b"v")])
    for number in range(3):
        log_dirs.write(tmp_path, f"orders-{number}", {0: batch}, partition__metadata="")
    log_dirs.node(tmp_path, 7)
    for name in CHECKPOINTS:
        log_dirs.checkpoint(tmp_path / name, ("orders", 0, 1), ("orders", 7, 0))
    listed, read = count(monkeypatch, LocalFiles, "entries"), count(monkeypatch, checkpoints, "read")
    opened = count(monkeypatch, LocalFiles, "open")
    run(monkeypatch, capfd, ["check", str(tmp_path)])
    assert [folder for _, folder in listed].count(str(tmp_path)) == 1
    assert len(read) == len(CHECKPOINTS)
    paths = [path for _, path, *_ in opened]
    assert [paths.count(str(tmp_path / name)) for name in CHECKPOINTS] == [1] * len(CHECKPOINTS)


def count(monkeypatch, owner, name):
    """Return the list of the arguments of all calls of a function."""
    calls, called = [], getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *given, **more: (calls.append(given), called(*given, **more))[1])
    return calls


def test_log_dirs_stay_in_the_order_of_their_first_paths(tmp_path):
    for name in ("d1", "d2"):
        (tmp_path / name).mkdir()
    one, two = f"{tmp_path}/d1", f"{tmp_path}/d2"
    given = checking.log_dirs([one, two, f"{one}/"], [], {"node.id": "1"})
    assert [path for _, path in given] == [one, two]


@pytest.mark.parametrize("configs", [{}, {"node.id": "1"}])
def test_a_log_dir_in_a_closed_folder_is_not_left_out(tmp_path, monkeypatch, configs):
    closed, look = f"{tmp_path}/closed/d2", LocalFiles.look

    def denied(self, path):
        if path == closed:
            raise UnreadableError.of(path, PermissionError(errno.EACCES, "Permission denied"))
        return look(self, path)

    monkeypatch.setattr(LocalFiles, "look", denied)
    assert checking.searchable((closed,), configs) == (closed,)
    assert [path for _, path in checking.log_dirs((closed,), [], configs)] == [closed] * len(configs)


def test_a_glob_names_the_log_dirs_of_a_broker(tmp_path, monkeypatch, capfd):
    for name in ("d1", "d2"):
        log_dirs.write(tmp_path / name, f"orders-{name[1]}", {0: forge.batch([forge.record(b"k", b"v")])})
        log_dirs.node(tmp_path / name, 7)
    more = ["--config", "node.id=7"]
    expected = run(monkeypatch, capfd, ["check", "-o", "jsonl", f"{tmp_path}/d1", f"{tmp_path}/d2", *more])
    assert f"{tmp_path}/d2/orders-2" in expected[1]
    assert run(monkeypatch, capfd, ["check", "-o", "jsonl", f"{tmp_path}/d[12]", *more]) == expected
