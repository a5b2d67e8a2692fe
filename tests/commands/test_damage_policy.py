"""All commands treat a truncated last batch, and a broken file beside a log, in the same way."""

import fcntl
import json
import shutil

import pytest

from testing import GOLDEN
from testing.processes import kdump

BROKER = GOLDEN / "brokers" / "4.2.2"
ENDS = "the file ends inside a batch"
READERS = {
    "dump": ["dump", "d/c-none-0"],
    "dump --count": ["dump", "d", "--count"],
    "dump csv": ["dump", "d", "-o", "csv"],
    "get": ["get", "c-none-0@222", "--in", "d"],
    "sql": ["sql", "SELECT count(*) FROM records", "d"],
    "report": ["report", "d", "--json"],
    "diff": ["diff", "d", "whole"],
    "offsets": ["offsets", "d"],
    "transactions": ["transactions", "d"],
    "producers": ["producers", "d"],
    "du": ["du", "d"],
    "stats": ["stats", "d"],
    "stats --records": ["stats", "d", "--records"],
    "retention": ["retention", "d", "--at", "2026-11-22"],
    "check": ["check", "d", "--notes"],
    "check --headers-only": ["check", "d", "--headers-only", "--notes"],
    "verify-index": ["verify-index", "d", "--notes"],
    "salvage": ["salvage", "d", "--out", "out"],
}
"""Command lines that read to the end of the log ``c-none-0`` in the log dir ``d``."""


@pytest.fixture
def place(tmp_path):
    shutil.copytree(BROKER / "c-none-0", tmp_path / "d" / "c-none-0")
    shutil.copytree(BROKER / "c-none-0", tmp_path / "whole" / "c-none-0")
    (tmp_path / "d" / ".lock").touch()
    return tmp_path


def truncate(folder, number):
    segment = sorted(folder.glob("*.log"))[number]
    segment.write_bytes(segment.read_bytes()[:-30])
    for index in folder.glob(f"{segment.stem}.*index"):
        index.unlink()


@pytest.mark.parametrize("name", READERS)
def test_a_truncated_last_batch_is_damage(place, name):
    truncate(place / "d" / "c-none-0", -1)
    done = kdump(*READERS[name], cwd=place)
    assert ENDS in done.stdout.decode() + done.stderr.decode()
    assert done.returncode == 3


@pytest.mark.parametrize("name", READERS)
def test_a_batch_that_a_broker_writes_is_none(place, name):
    truncate(place / "d" / "c-none-0", -1)
    with (place / "d" / ".lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        done = kdump(*READERS[name], cwd=place)
    said = done.stdout.decode() + done.stderr.decode()
    assert done.returncode == (5 if name == "get" else 0), said  # 5: the record is not there
    if name not in {"diff", "report", "get", "salvage"}:
        assert f"{ENDS}, 403 bytes after its start: a broker is writing it" in said


@pytest.mark.parametrize("name", ["dump", "check", "verify-index", "stats", "diff", "salvage"])
@pytest.mark.parametrize("state", ["clean", "followed"])
def test_a_broker_writes_only_to_the_newest_segment_of_a_running_log_dir(place, name, state):
    truncate(place / "d" / "c-none-0", -1 if state == "clean" else 0)
    if state == "clean":
        (place / "d" / ".kafka_cleanshutdown").touch()
    with (place / "d" / ".lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        done = kdump(*READERS[name], cwd=place)
    assert ENDS in done.stdout.decode() + done.stderr.decode()
    assert done.returncode == 3


def test_damage_in_json_lines_has_the_sentence_as_its_reason(place):
    truncate(place / "d" / "c-none-0", -1)
    lines = map(json.loads, kdump("dump", "d", "-o", "jsonl", cwd=place).stdout.splitlines())
    (damage,) = [each for each in lines if each["kind"] == "damage"]
    assert (damage["damage"], damage["reason"]) == ("trailing", ENDS)


def test_a_truncated_batch_has_its_sentence_without_payloads_too(place):
    truncate(place / "d" / "c-none-0", -1)
    assert ENDS in kdump("dump", "d", "--no-payload", "-o", "jsonl", cwd=place).stdout.decode()


REFUSED = {
    "explain": ["explain", "c-none-0@3", "--in", "d"],
    "groups": ["groups", "d"],
    "dump --remote": ["dump", "d/c-none-0", "--remote", "d", "--count"],
    "get --remote": ["get", "c-none-0@3", "--in", "d", "--remote", "d"],
    "salvage": ["salvage", "d", "--out", "out"],
    "check": ["check", "d"],
    "report": ["report", "d", "--json"],
    "offsets": ["offsets", "d"],
    "diff": ["diff", "d", "whole"],
    "dump": ["dump", "d", "-o", "jsonl"],
    "stats": ["stats", "d"],
}
BROKEN = {
    "partition.metadata": (b"version: 0\ntopic_id: short", {"explain", "groups", "dump --remote", "salvage"}),
    "leader-epoch-checkpoint": (b"0\n1\nx y\n", {"offsets", "diff", "salvage"}),
    "../replication-offset-checkpoint": (b"0\n1\nc-none\n", {"explain", "offsets", "diff", "dump", "stats"}),
}
"""Files with broken content that a broker refuses, and the commands that read them besides check and report."""


@pytest.mark.parametrize("file", BROKEN)
@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_a_broker_refuses_is_damage_in_every_command_that_reads_it(place, name, file):
    content, readers = BROKEN[file]
    shutil.copytree(BROKER / "__consumer_offsets-0", place / "d" / "__consumer_offsets-0")
    (place / "d" / "c-none-0" / file).write_bytes(content)
    done = kdump(*REFUSED[name], cwd=place)
    said = done.stdout.decode() + done.stderr.decode()
    named = file.removeprefix("../") in said
    if name in readers | {"check", "report"}:
        assert named, said
    assert done.returncode == (3 if named else 0), said
    if name == "salvage" and file == "partition.metadata":
        assert not (place / "out" / "logs" / "c-none-0" / file).exists()
