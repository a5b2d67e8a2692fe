"""Names in --topic and --partition that the paths lack, and logs whose folder gives no topic and partition."""

import json
import shutil

import pytest

import kdump as python_api
from testing import GOLDEN
from testing.processes import kdump, patched
from tests.helpers.segments import data

BROKER = GOLDEN / "brokers" / "4.2.2"
NO_TNX = f"no partition of topic 'tnx' is in {BROKER}; did you mean 'txn'?\n"


def said(*args):
    done = kdump(*args)
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    "command", [("check",), ("check", "-q"), ("check", "--jobs", "2"), ("verify-index",), ("report",)]
)
def test_nothing_is_sound_of_a_topic_that_is_not_there(command):
    done = kdump(*command, BROKER, "--topic", "tnx")
    assert (done.returncode, done.stderr.decode()) == (1, f"error: {NO_TNX}")
    assert b"nothing is wrong" not in done.stdout


@pytest.mark.parametrize("command", ["check", "verify-index"])
def test_nothing_is_sound_of_a_partition_that_is_not_there(command):
    assert said(command, BROKER / "txn-0", "--partition", "7") == (
        1,
        f"error: no partition with a number in --partition is in {BROKER / 'txn-0'}; found partition 0\n",
    )
    status, text = said(command, BROKER, "--topic", "txn,c-none", "--topic", "tnx")
    assert (status, text) == (1, f"error: {NO_TNX}")


@pytest.mark.parametrize(
    "command", [("du",), ("offsets",), ("retention",), ("stats",), ("producers",), ("transactions",), ("compaction",)]
)
def test_an_answer_names_the_topic_that_is_not_there(command):
    for more in ((), ("-q",)):
        status, text = said(*command, BROKER, "--topic", "tnx", "-o", "jsonl", *more)
        assert (status, text.count(f"warning: {NO_TNX}")) == (0, 1)


def test_a_dump_names_the_topic_that_is_not_there():
    status, text = said("dump", BROKER, "--topic", "tnx")
    assert (status, text.splitlines()[-1] + "\n") == (0, f"warning: {NO_TNX}")


def test_salvage_and_rebuild_index_name_the_topic_that_is_not_there(tmp_path):
    for command in ("salvage", "rebuild-index"):
        assert said(command, BROKER, "--topic", "tnx", "--out", tmp_path / "out") == (1, f"error: {NO_TNX}")
    assert not (tmp_path / "out").exists()


def test_metadata_names_the_topic_that_is_not_there():
    log = GOLDEN / "brokers" / "4.2.2" / "__cluster_metadata-0"
    for mode, what in (("--events", "no event names the topic"), ("--topics", "no topic")):
        status, text = said("metadata", log, mode, "--topic", "tnx", "-o", "jsonl")
        assert status == 0
        assert text.startswith(f"note: {what} 'tnx'")
        assert text.endswith("; did you mean 'txn'?\n")


def test_explain_says_that_there_is_no_topic_of_a_name():
    done = kdump("explain", "tnx-0@3", "--in", BROKER)
    assert done.returncode == 0
    assert b"no folder of this partition is in these paths; did you mean 'txn'?" in done.stdout


@pytest.mark.parametrize("command", [("explain", "a-0@3", "--in"), ("report",), ("check",)])
def test_a_folder_with_nothing_in_it_cannot_be_read(tmp_path, command):
    assert said(*command, tmp_path) == (1, f"error: {tmp_path}: no segment is in this folder or below it\n")


def test_a_closed_folder_is_there(tmp_path):
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(data(0))
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    # root reads everything: a folder that cannot be listed is made by taking over the listing
    patch = (
        "from kdump.log_dirs import local; real = local.listing\n"
        "def listing(path, kind):\n"
        "    if path.endswith('orders-0'): raise PermissionError(13, 'Permission denied', path)\n"
        "    return real(path, kind)\n"
        "local.listing = listing"
    )
    done = patched(patch, "explain", "orders-0@3", "--in", tmp_path)
    assert (done.returncode, done.stderr.decode()) == (1, f"error: {folder}: Permission denied\n")
    assert b"a folder that may belong to this partition cannot be read" in done.stdout
    done = patched(patch, "offsets", tmp_path, "--topic", "orders")
    assert (done.returncode, done.stderr.decode()) == (1, f"error: {folder}: Permission denied\n")


@pytest.fixture
def loose(tmp_path):
    """A segment with open transactions in a folder of another name, and a folder in a log dir."""
    folder = tmp_path / "evidence"
    folder.mkdir()
    shutil.copy(BROKER / "txn-0" / f"{0:020}.log", folder / LOG)
    return folder


LOG = f"{0:020}.log"
ASKED = {
    "stats": "records",
    "offsets": "latest",
    "transactions": "startOffset",
    "producers": "producerId",
    "retention": "bytes",
    "compaction": "firstDirtyOffset",
    "du": "segments",
}


@pytest.mark.parametrize("command", ASKED)
@pytest.mark.parametrize("named", ["folder", "file", "pattern", "archive"])
def test_answers_read_a_log_whose_folder_gives_no_topic(loose, command, named):
    segment = loose / LOG
    packed, at = shutil.make_archive(str(loose.parent / "a"), "zip", loose.parent, "evidence"), ["--at", "2026-11-26"]
    path = {
        "folder": loose,
        "file": segment,
        "pattern": loose / "*.log",
        "archive": f"{packed}:evidence/{LOG}",
    }[named]
    config = ["--config", "*:cleanup.policy=compact"] if command == "compaction" else []
    done = kdump(command, *config, path, "-o", "jsonl", *at)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    name = f"{packed}:evidence" if named == "archive" else str(loose)
    met = [
        line for line in lines if ASKED[command] in line and line.get("topic") == name and line.get("partition") == 0
    ]
    assert met, lines
    assert f"is read as {name}-0: its folder is not named TOPIC-PARTITION".encode() in done.stderr
    assert b"left out" not in done.stderr
    assert json.loads(kdump(command, *config, path, "-o", "jsonl", "-q", *at).stdout.splitlines()[0]) == lines[0]


def test_python_reads_such_a_log(loose):
    found = python_api.offsets(loose / LOG)
    assert [(line.topic, line.partition) for line in found] == [(str(loose), 0)]
    assert "is not named TOPIC-PARTITION" in found.notes[0]


def test_copies_of_such_a_log_are_compared_and_explained(loose, tmp_path):
    other = tmp_path / "other.log"
    shutil.copy(loose / LOG, other)
    done = kdump("diff", loose, other)
    assert b"1 pair of replicas: 1 same" in done.stdout
    for command in ("explain", "get"):
        done = kdump(command, "txn-0@3", "--in", other)
        assert done.returncode == 0
        assert b"no folder of this partition" not in done.stdout
    done = kdump("explain", "txn-0@3", "--in", other, "--in", BROKER / "one-0")
    assert b"no folder of this partition" in done.stdout


def test_such_a_folder_on_the_way_is_left_out(loose):
    done = kdump("stats", loose.parent, "-o", "jsonl")
    assert (done.returncode, done.stdout) == (0, b"")
    assert f"{loose} is left out: its folder is not named TOPIC-PARTITION".encode() in done.stderr
    done = kdump("stats", loose, "--topic", "*", "-o", "jsonl")
    assert done.stdout == b""


@pytest.mark.parametrize(
    ("topic", "printed"),
    [
        ("a\udcff", r"a\xff"),
        ("b\x1b[1m", r"b\x1b[1m"),
        ("c\nd", r"c\x0ad"),
        ("e\u202ef", r"e\u202ef"),
        (r"g\x41", r"g\x41"),
    ],
)
def test_a_topic_is_selected_by_the_name_that_is_printed(tmp_path, topic, printed):
    folder = tmp_path / f"{topic}-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(data(0))
    (tmp_path / "other-0").mkdir()
    (tmp_path / "other-0" / f"{0:020}.log").write_bytes(data(0))
    assert f"{printed}-0".encode() in kdump("stats", tmp_path).stdout
    done = kdump("dump", tmp_path, "--topic", printed, "--count")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"1\n", b"")
    assert b"0: visible; consumers get the record" in kdump("explain", f"{printed}-0@0", "--in", tmp_path).stdout
    due = kdump("retention", tmp_path, "--config", f"{printed}:retention.ms=1", "-o", "jsonl").stdout.splitlines()
    topics = [line for line in map(json.loads, due) if line["kind"] == "topic"]
    assert sorted(line["from"]["retention.ms"] for line in topics) == ["given", "unknown"]
    assert f"no partition of topic '{printed}y' is in {tmp_path}" in said("dump", tmp_path, "--topic", f"{printed}y")[1]
