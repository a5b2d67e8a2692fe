"""A log dir or partition folder of mode 000: root ignores modes, so the tests make the system calls fail."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from kdump import cli
from kdump.log_dirs import local
from testing import forge
from tests.helpers.log_dirs import write


def close(folder, monkeypatch):
    """Make this process unable to list ``folder`` or open anything in it."""
    closed = str(folder)

    def refusing(call, answer=None):
        def checked(path, *rest, **options):
            name = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
            if name.startswith(closed + os.sep) or (name == closed and call is not os.stat):
                if answer is not None:
                    return answer
                raise PermissionError(13, "Permission denied", name)
            return call(path, *rest, **options)

        return checked

    for name in ("stat", "scandir", "open"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))
    monkeypatch.setattr(local, "listing", refusing(local.listing))
    monkeypatch.setattr(os, "access", refusing(os.access, answer=False))


def run(monkeypatch, capfd, *words):
    monkeypatch.setattr(sys, "argv", ["kdump", *map(str, words)])
    status = cli.main()
    out, err = capfd.readouterr()
    assert "Traceback" not in err
    return status, out, err


@pytest.fixture
def log_dir(tmp_path):
    logs = tmp_path / "logs"
    for topic in ("orders", "payments"):
        write(logs, f"{topic}-0", {0: forge.batch([forge.record(b"k", topic.encode())])})
    return logs


COMMANDS = [
    *(["offsets"], ["check"], ["dump"], ["metadata"], ["groups"], ["du"], ["stats"], ["retention"], ["compaction"]),
    *(["report"], ["transactions"], ["producers"], ["verify-index"], ["schemas"]),
    *(
        ["salvage", "--out", "{out}"],
        ["slice", "--offset", "0..", "--out", "{out}"],
        ["rebuild-index", "--out", "{out}"],
    ),
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("inside", [(), ("orders-0",), ("orders-0", f"{0:020}.log")], ids=len)
def test_what_is_closed_cannot_be_read_and_is_no_wrong_usage(log_dir, tmp_path, monkeypatch, capfd, words, inside):
    close(log_dir, monkeypatch)
    words = [word.format(out=tmp_path / "out") for word in words]
    if words[0] == "du" and len(inside) > 1:
        pytest.skip("du takes folders")
    status, _, err = run(monkeypatch, capfd, words[0], log_dir.joinpath(*inside), *words[1:])
    assert (status, "Permission denied" in err) == (1, True), err


@pytest.mark.parametrize(
    "words",
    [
        ["get", "orders-0@0", "--in", "{dir}"],
        ["explain", "orders-0@0", "--in", "{dir}"],
        ["diff", "{dir}", "{dir}"],
        ["coordinator", "g", "--type", "group", "--in", "{dir}"],
        ["metadata", "{dir}", "--diff", "{dir}"],
    ],
    ids=lambda words: words[0],
)
def test_commands_that_name_paths_otherwise(log_dir, monkeypatch, capfd, words):
    close(log_dir, monkeypatch)
    status, _, err = run(monkeypatch, capfd, *(word.format(dir=log_dir) for word in words))
    assert (status, "Permission denied" in err) == (1, True), err


@pytest.mark.parametrize("is_log_dir", [True, False])
def test_one_closed_partition_folder_keeps_no_command_from_the_others(log_dir, monkeypatch, capfd, is_log_dir):
    """Outside a log dir, the folder might be a log dir with the wanted partition, so the status is 1."""
    if is_log_dir:
        (log_dir / "meta.properties").write_text("version=1\nnode.id=1\n")
    close(log_dir / "payments-0", monkeypatch)
    for words, answer in (
        (["get", "orders-0@0", "--in", log_dir], "orders"),
        (["explain", "orders-0@0", "--in", log_dir], "visible"),
        (["dump", log_dir, "--topic", "orders"], "orders"),
        (["offsets", log_dir, "--topic", "orders"], "orders-0"),
    ):
        status, out, err = run(monkeypatch, capfd, *words)
        assert answer in out, words
        reads_others = words[0] == "offsets" or not is_log_dir  # the metadata log and coordinators say more of a topic
        assert (status, "payments-0" in err) == ((1, True) if reads_others else (0, False)), words
    status, out, err = run(monkeypatch, capfd, "dump", log_dir)
    assert "orders" in out
    assert (status, "payments-0: Permission denied" in err) == (1, True)


def test_the_metadata_log_is_read_beside_a_closed_folder(log_dir, monkeypatch, capfd):
    from tests.helpers.metadata_records import metadata_value

    topic = metadata_value("TopicRecord", name="orders", topicId=bytes(15) + b"\1")
    write(log_dir, "__cluster_metadata-0", {0: forge.batch([forge.record(None, topic)])})
    close(log_dir / "payments-0", monkeypatch)
    status, out, _ = run(monkeypatch, capfd, "metadata", log_dir, "--topics")
    assert (status, "orders" in out) == (1, True)


@pytest.mark.parametrize("closed", ["meta.properties", "orders-0", ""])
def test_files_of_another_account_decide_nothing(log_dir, monkeypatch, capfd, closed):
    """The broker has the permission that kdump lacks: kdump gives no verdict and no command that writes."""
    (log_dir / "meta.properties").write_text("version=1\ncluster.id=nub61tcETP6KClWv92MVHg\nnode.id=1\n")
    close(log_dir / closed, monkeypatch)
    for words in (["check", log_dir], [log_dir]):
        status, out, err = run(monkeypatch, capfd, *words)
        assert status == 1
        assert "DO NOT START" not in out
        assert "nothing is lost" not in out
        assert "meta.properties\n" not in out
        assert "it is unknown what a start would lose" in out or not closed
        assert "Permission denied" in err


@pytest.mark.parametrize("configs", [(), ("--config", "node.id=1")], ids=["found", "given"])
@pytest.mark.parametrize("closed", ["", "d2"])
def test_a_closed_log_dir_does_not_end_the_check_of_another(log_dir, tmp_path, monkeypatch, capfd, closed, configs):
    meta = "version=1\ncluster.id=nub61tcETP6KClWv92MVHg\nnode.id=1\n"
    (log_dir / "meta.properties").write_text(meta)
    write(tmp_path / "mount/d2", "users-0", {0: b""})
    (tmp_path / "mount/d2/meta.properties").write_text(meta)
    close(tmp_path / "mount" / closed, monkeypatch)
    status, out, err = run(monkeypatch, capfd, "check", log_dir, tmp_path / "mount/d2", *configs)
    assert (status, "mount/d2: Permission denied" in err) == (1, True)
    assert "2 segments, 2 batches" in out
    assert "broker 1" in out.splitlines()[-1] or "DO NOT START broker 1 yet" in out


def test_an_unread_directory_id_is_not_a_wrong_one(log_dir, monkeypatch, capfd):
    (log_dir / "meta.properties").write_text("version=1\ncluster.id=nub61tcETP6KClWv92MVHg\nnode.id=1\n")
    endpoint = b"\x01" + bytes(3)
    voters = forge.record(bytes([0, 0, 0, 6]), bytes([0, 0, 2, 0, 0, 0, 1]) + b"\x11" * 16 + endpoint + b"\x01\0\0\0")
    write(log_dir, "__cluster_metadata-0", {0: forge.batch([voters], attributes=0x20)})
    close(log_dir / "meta.properties", monkeypatch)
    status, out, _ = run(monkeypatch, capfd, "check", log_dir, "--config", "node.id=1")
    assert status == 1
    assert "directory.id" not in out


def test_a_closed_folder_of_a_log_dir_without_ids_does_not_end_the_check(log_dir, monkeypatch, capfd):
    (log_dir / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    close(log_dir / "payments-0", monkeypatch)
    status, out, err = run(monkeypatch, capfd, "check", log_dir)
    assert (status, "payments-0: Permission denied" in err) == (1, True)
    assert "1 segment, 1 batch" in out


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata"])
def test_salvage_lists_a_closed_file_beside_the_log_as_unread(log_dir, tmp_path, monkeypatch, capfd, name):
    (log_dir / "orders-0" / name).write_text("0\n0\n")
    close(log_dir / "orders-0" / name, monkeypatch)
    status, _, err = run(monkeypatch, capfd, "salvage", log_dir / "orders-0", "--out", tmp_path / "out")
    assert (status, err.count(f"error: {log_dir / 'orders-0' / name}: Permission denied")) == (1, 1)
    assert (tmp_path / "out/lost+found/unread.json").is_file()


@pytest.mark.parametrize(
    "words",
    [
        *(words for words in COMMANDS if words[0] not in {"metadata", "schemas", "slice"}),
        ["rebuild-cluster", "--plan", "--release", "4.3.1", "--node", "1@k1:9092/9093"],
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("name", ["lost+found", "other"])
def test_a_closed_lost_and_found_below_a_path_is_a_note(log_dir, tmp_path, monkeypatch, capfd, words, name):
    """The root of an ext4 volume has it, and only root can list it."""
    (log_dir / "meta.properties").write_text("version=1\ncluster.id=nub61tcETP6KClWv92MVHg\nnode.id=1\n")
    volume = tmp_path / "volume"
    volume.mkdir()
    log_dir.rename(volume / "data")
    closed = volume / name
    closed.mkdir()
    close(closed, monkeypatch)
    words = [word.format(out=tmp_path / "out") for word in words]
    error, note = f"error: {closed}: Permission denied", f"note: {closed} is left out: Permission denied. fsck "
    status, _, err = run(monkeypatch, capfd, words[0], volume, *words[1:])
    if name != "lost+found":
        assert (status, error in err, note in err) == (1, True, False)
        return
    assert (status, error in err, err.count(note)) == (0, False, 1)
    assert f"(sudo ls -A {closed} lists them)" in err
    status, _, err = run(monkeypatch, capfd, words[0], closed, *words[1:])
    assert (status, error in err, note in err) == (1, True, False)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["metadata", "{dir}"], 1),
        (["schemas", "{dir}"], 1),
        (["connect", "{dir}"], 1),
        (["dump", "{dir}", "--decode", "auto"], 0),
        (["offsets", "{dir}"], 0),
        (["get", "orders-0@0", "--in", "{dir}"], 0),
        (["coordinator", "g", "--type", "group", "--in", "{dir}"], 2),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_folders_that_are_left_out_have_one_note(log_dir, tmp_path, monkeypatch, capfd, words, status):
    """The first commands find no record of their topics, coordinator finds no partition."""
    (log_dir / "meta.properties").write_text("version=1\ncluster.id=nub61tcETP6KClWv92MVHg\nnode.id=1\n")
    volume = tmp_path / "volume"
    volume.mkdir()
    log_dir.rename(volume / "data")
    shutil.copytree(volume / "data", volume / "data.copy")
    closed = volume / "lost+found"
    closed.mkdir()
    close(closed, monkeypatch)
    found, _, err = run(monkeypatch, capfd, *(word.format(dir=volume) for word in words))
    assert found == status, err
    assert err.count(f"note: {closed} is left out: Permission denied. fsck ") == 1
    assert err.count(f"note: {volume / 'data.copy'} is left out: it holds a copy of {volume / 'data'}") == 1


def test_a_closed_lost_and_found_in_a_log_dir_stops_its_broker(log_dir, monkeypatch, capfd):
    (log_dir / "meta.properties").write_text("version=1\ncluster.id=nub61tcETP6KClWv92MVHg\nnode.id=1\n")
    (log_dir / "lost+found").mkdir()
    close(log_dir / "lost+found", monkeypatch)
    status, out, _ = run(monkeypatch, capfd, "check", log_dir)
    assert (status, f"DO NOT START broker 1: {log_dir}/lost+found: " in out) == (3, True)


def test_the_command_for_the_owner_of_closed_files_is_printed_once(log_dir, monkeypatch, capfd):
    for folder in log_dir.iterdir():
        (log_dir / folder / "partition.metadata").write_text("version: 0\n")
    real = os.open

    def denied(path, *rest, **options):
        if str(path).endswith(".log"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest, **options)

    monkeypatch.setattr(os, "open", denied)
    own = run(monkeypatch, capfd, "dump", log_dir, "--count")
    assert "sudo" not in own[2]  # another account could do no more
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    owner = log_dir.owner()
    status, _, err = run(monkeypatch, capfd, "dump", log_dir, "--count")
    assert status == 1
    assert err.count("Permission denied") == 2
    assert [line for line in err.splitlines() if line.startswith("hint")] == [
        f"hint: sudo -u {owner} {Path.cwd()}/kdump dump {log_dir} --count"
    ]
