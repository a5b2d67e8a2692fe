"""A check reads the files of a log dir once; a StoreError in a dry start does not end the other parts."""

import json

import pytest

from kdump.broker_start import broker_dirs, start
from kdump.errors import StoreError
from kdump.formats import checkpoints
from kdump.log_dirs import file_names
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.local import LocalFiles
from testing import forge
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
    assert (status, said) == (1, f"error: {tmp_path}: no segment is in it or in the folders below\n")
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
