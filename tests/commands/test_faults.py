"""Every command under every fault of disk, files and signals: its status, its messages, and the files it leaves."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys

import pytest

from kdump import cli
from kdump.commands import root
from testing import ROOT, forge
from testing.processes import python
from tests.helpers.asking import LINES, subject
from tests.helpers.log_dirs import write

FIRST, SECOND = f"{0:020}.log", f"{10:020}.log"
READERS = {
    "files": ["--files", f"{{folder}}/{FIRST},{{folder}}/{SECOND}", "--print-data-log"],
    "dump": ["dump", "{folder}"],
    "jsonl": ["dump", "{folder}", "-o", "jsonl"],
    "json": ["dump", "{folder}", "-o", "json"],
    "csv": ["dump", "{folder}", "-o", "csv"],
    "table": ["dump", "{folder}", "-o", "table"],
    "raw": ["dump", "{folder}", "-o", "raw"],
    "format": ["dump", "{folder}", "-f", "%k\\n"],
    "batches": ["dump", "{folder}", "--batches"],
    "count": ["dump", "{folder}", "--count"],
    "jobs": ["dump", "{folder}", "--jobs", "3"],
    "get": ["get", "t-0@10", "--in", "{folder}"],
    "hexdump": ["get", "t-0@10", "--in", "{folder}", "--hexdump"],
    "check": ["check", "{folder}"],
    "check --json": ["check", "{folder}", "--json"],
    "verify-index": ["verify-index", "{folder}"],
    "report": ["report", "{folder}", "--at", "1700000000000"],
    "sql": ["sql", 'select topic, "offset", key from records', "{folder}"],
    "sql jsonl": ["sql", "select * from batches", "{folder}", "-o", "jsonl"],
    **LINES,
}
"""Commands that write only to standard output."""
WRITERS = {
    "rebuild-index": ["rebuild-index", f"{{folder}}/{SECOND}", "--out", "{out}"],
    "salvage": ["salvage", "{folder}", "--out", "{out}"],
    "slice": ["slice", "{folder}", "--offset", "0..", "--out", "{out}/slice.log"],
}
"""Commands that write files; spark-export, which needs Spark, has the same tests in tests/spark/test_faults.py.

mcp talks to a client: tests/test_mcp_server.py. rebuild-cluster reads a folder of log dirs: test_rebuild_cluster.py.
"""
TALKERS = {"help": ["--help"], "help of one": ["dump", "--help"], "version": ["--version"], "compat": ["compat"]}
TALKERS |= {"guide": ["help", "disk-full"]}
TALKERS |= {"completion": ["completion", "bash"], "coordinator": ["coordinator", "g", "--type", "group"]}
FULL = "error: standard output cannot be written: No space left on device\n"
SUMS = {"files", "get", "hexdump", "check", "check --json", "verify-index", "count", "json"}
SUMS |= {name for name, line in READERS.items() if line[0] in root.GROUPS["Answer"]}
"""Readers whose output for one segment is not the beginning of their output for both."""


@pytest.fixture
def folder(tmp_path, request):
    """Two segments, of the offsets 0 to 9 and 10 to 19, with more to index than one entry."""
    partition, record = subject(request)
    segments = {
        base: b"".join(forge.batch([record], base_offset=base + number) for number in range(10)) for base in (0, 10)
    }
    return write(tmp_path, partition, segments)


def words(name, folder, out=None):
    return [word.format(folder=folder, out=out or folder.parent / "out") for word in {**READERS, **WRITERS}[name]]


def left(folder):
    """Return the files besides the input."""
    return sorted(path.name for path in folder.parent.rglob("*") if folder not in {path, *path.parents})


def test_every_command_stands_in_a_table():
    named = {line[0] for line in [*READERS.values(), *WRITERS.values(), *TALKERS.values()] if line[0][0] != "-"}
    assert named == {*root.COMMANDS} - {"spark-export", "mcp", "rebuild-cluster"}


def run(monkeypatch, capfd, arguments):
    """Run a command line in this process; return status, standard output and standard error."""
    monkeypatch.setattr(sys, "argv", ["kdump", *arguments])
    status = cli.main()
    return status, *capfd.readouterr()


def vanish(path, monkeypatch):
    """Let ``path`` be listed, but be gone when it is opened."""
    refuse(monkeypatch, path, FileNotFoundError(2, "No such file or directory"))


def forbid(path, monkeypatch):
    refuse(monkeypatch, path, PermissionError(13, "Permission denied"))


def refuse(monkeypatch, path, error):
    opened = os.open

    def open_other(name, *arguments, **options):
        if os.fspath(name) == str(path):
            raise error
        return opened(name, *arguments, **options)

    monkeypatch.setattr(os, "open", open_other)


def break_disk(path, monkeypatch):
    """Make its bytes from 20,000 on unreadable."""
    file, read = path.stat().st_ino, os.pread

    def pread(descriptor, size, position):
        if os.fstat(descriptor).st_ino == file and position + size > 20_000:
            raise OSError(5, "Input/output error")
        return read(descriptor, size, position)

    monkeypatch.setattr(os, "pread", pread)


def to_pipe(path, _):
    path.unlink()
    os.mkfifo(path)


FAULTS = {
    "vanished": (vanish, "No such file or directory"),
    "forbidden": (forbid, "Permission denied"),
    "broken disk": (break_disk, "Input/output error"),
    "pipe": (to_pipe, "is a pipe or a device, not a file"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", [*READERS, *WRITERS])
def test_a_segment_that_cannot_be_read_is_named_and_others_are_done(folder, monkeypatch, capfd, name, fault):
    _, sound, _ = run(monkeypatch, capfd, words(name, folder / FIRST)) if name in READERS else (0, "", "")
    make, reported = FAULTS[fault]
    make(folder / SECOND, monkeypatch)
    out = folder.parent / "second"
    status, shown, said = run(monkeypatch, capfd, words(name, folder, out))
    assert status == 1
    assert any(f"{folder / SECOND}: " in line and reported in line for line in said.splitlines())
    assert "Traceback" not in said
    if name in READERS and name not in SUMS:
        assert shown.startswith(sound)
    if name in WRITERS:
        assert [path for path in out.rglob("*") if path.is_file()] == [] or name == "salvage"
        assert not list(folder.parent.rglob("*.tmp"))


@pytest.mark.parametrize("words", [("rebuild-index",), ("salvage",), ("slice", "--offset", "0..")])
def test_an_empty_name_of_an_output_is_refused(folder, tmp_path_factory, monkeypatch, capfd, words):
    here = tmp_path_factory.mktemp("here")
    monkeypatch.chdir(here)
    status, _, said = run(monkeypatch, capfd, [*words, str(folder), "--out", ""])
    assert (status, said.startswith("error: "), list(here.iterdir())) == (2, True, [])


@pytest.mark.parametrize("name", [*READERS, *WRITERS])
def test_a_path_that_is_not_there_is_named(folder, monkeypatch, capfd, name):
    status, _, said = run(monkeypatch, capfd, words(name, folder.with_name("u-0"), folder.parent / "out"))
    assert status == 1
    assert f"error: {folder.parent}/u-0" in said
    assert "No such file or directory" in said
    assert left(folder) == []


def child(arguments, shell="", **options):
    """Run a command line in a new process, after ``shell``.

    It writes no byte code, which a limit of file sizes would truncate.
    """
    command = ["sh", "-c", f'{shell} exec "$@"', "sh", sys.executable, "-m", "kdump", *map(str, arguments)]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True, check=False, **options)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    return done


@pytest.mark.parametrize("name", [*READERS, *TALKERS])
def test_a_full_disk_at_standard_output_is_reported_in_one_line(folder, name):
    arguments = TALKERS[name] if name in TALKERS else words(name, folder)
    with open("/dev/full", "wb") as full:  # noqa: PTH123  a device
        done = child(arguments, stdout=full)
    reported = [line for line in done.stderr.splitlines(keepends=True) if line.startswith("error: standard output")]
    assert (done.returncode, reported) == (1, [FULL])


@pytest.mark.parametrize("name", [*READERS, *TALKERS])
def test_a_closed_pipe_is_quiet(folder, name):
    reader, writer = os.pipe()
    os.close(reader)
    done = child(TALKERS[name] if name in TALKERS else words(name, folder), stdout=writer)
    os.close(writer)
    of_the_pipe = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    assert (done.returncode, of_the_pipe) == (141, [])


@pytest.mark.parametrize("name", WRITERS)
def test_what_writes_files_needs_no_standard_output(folder, name):
    with open("/dev/full", "wb") as full:  # noqa: PTH123  a device
        assert child(words(name, folder), stdout=full).returncode == 0
    assert left(folder) != []


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_no_half_written_output(folder, name):
    done = child(words(name, folder), shell="ulimit -f 0;", stdout=subprocess.DEVNULL)
    assert done.returncode == 1
    assert f"error: {folder.parent}/out" in done.stderr
    assert "cannot be written: File too large" in done.stderr
    assert [name for name in left(folder) if name != "out"] == []


SPARSE_OUTPUTS = {
    "parquet": ["dump", "{folder}", "-o", "parquet", "--out", "{out}"],
    "arrow": ["dump", "{folder}", "-o", "arrow", "--out", "{out}"],
    "parquet, first records": ["dump", "{folder}", "-o", "parquet", "--head", "5", "--out", "{out}"],
    "sql csv": ["sql", "select * from records", "{folder}", "-o", "csv", "--out", "{out}"],
    "sql parquet": ["sql", "select * from records", "{folder}", "--out", "{out}"],
    "rebuild-index": ["rebuild-index", "{folder}", "--out", "{out}"],
    "schemas": ["schemas", "{folder}", "--export", "{out}"],
}
"""Outputs that do not list what they lack: with only some of the inputs they would seem complete."""
REPORT = ["report", "{folder}", "--at", "1700000000000", "--out", "{out}"]


@pytest.mark.parametrize("gone", ["after", "before", "inside"])
@pytest.mark.parametrize("name", SPARSE_OUTPUTS)
def test_an_output_of_a_part_of_the_inputs_does_not_appear(folder, monkeypatch, capfd, name, gone):
    out = folder.parent / "out"
    given = [word.format(folder=folder, out=out) for word in SPARSE_OUTPUTS[name]]
    at, missing = given.index(str(folder)), str(folder.with_name("u-0"))
    if gone == "inside":
        if name == "parquet, first records":  # they are in the segment that is there
            pytest.skip("it does not read the second segment")
        missing = str(folder / SECOND)
        forbid(folder / SECOND, monkeypatch)
    else:
        given.insert(at + (gone == "after"), missing)
    status, _, said = run(monkeypatch, capfd, given)
    assert status == 1
    assert f"error: {missing}: " in said
    assert left(folder) == []
    if gone != "inside" or name in {"parquet", "arrow", "sql csv", "sql parquet", "schemas"}:
        assert f"error: {out}: this output is not written, because an input cannot be read\nhint: leave" in said


def test_salvage_lists_the_inputs_that_it_could_not_read(folder, monkeypatch, capfd):
    out, missing = folder.parent / "out", folder.with_name("u-0")
    given = ["salvage", str(folder), str(missing), "--out", str(out)]
    assert run(monkeypatch, capfd, given)[0] == 1
    listed = json.loads((out / "lost+found" / "unread.json").read_bytes())
    assert listed == [{"path": str(missing), "reason": "No such file or directory"}]
    given = ["salvage", str(folder), "--out", str(folder.parent / "whole")]
    assert run(monkeypatch, capfd, given)[0] == 0
    assert not (folder.parent / "whole" / "lost+found" / "unread.json").exists()


@pytest.mark.parametrize("out", ["/proc/kdump", "/proc/kdump/deep"])
@pytest.mark.parametrize("name", [*WRITERS, *SPARSE_OUTPUTS, "report"])
def test_an_output_where_no_file_can_be_is_named_as_given(folder, monkeypatch, capfd, name, out):
    line = {**SPARSE_OUTPUTS, **WRITERS, "report": REPORT}[name]
    status, _, said = run(monkeypatch, capfd, [word.format(folder=folder, out=out) for word in line])
    (error,) = [text for text in said.splitlines() if text.startswith("error: ")]
    if name == "schemas":  # the folder has no schemas
        assert status == 1
        return
    assert (status, error.startswith(f"error: {out}"), ".part" in said) == (1, True, False)
    assert "cannot be written: " in error
    assert "\nhint: name another place" in said


@pytest.mark.parametrize("name", [*WRITERS, *SPARSE_OUTPUTS, "report"])
def test_an_output_that_is_a_link_to_itself_is_refused(folder, monkeypatch, capfd, name):
    line = {**SPARSE_OUTPUTS, **WRITERS, "report": REPORT}[name]
    out = folder.parent / "out"
    out.symlink_to("out")
    status, _, said = run(monkeypatch, capfd, [word.format(folder=folder, out=out) for word in line])
    assert status in {1, 2}
    assert f"error: {out}" in said
    assert left(folder) == ["out"]


@pytest.mark.parametrize("line", [SPARSE_OUTPUTS["parquet"], SPARSE_OUTPUTS["sql csv"], REPORT], ids=" ".join)
def test_a_link_to_itself_is_replaced_if_asked_for(folder, monkeypatch, capfd, line):
    out = folder.parent / "out"
    out.symlink_to("out")
    given = [word.format(folder=folder, out=out) for word in [*line, "--overwrite"]]
    assert run(monkeypatch, capfd, given)[0] == 0
    assert out.is_file()
    assert not out.is_symlink()


@pytest.mark.parametrize("name", ["files", "jsonl", "check", "salvage"])
def test_a_closed_standard_input_is_named(folder, name):
    given = [word.replace(str(folder), "-") for word in words(name, folder)]
    done = child(given if name != "files" else ["dump", "-", "-o", "csv"], shell="exec <&-;", stdout=subprocess.PIPE)
    assert done.returncode == 1
    reported = "error: -: standard input is closed, or open for writing only\nhint: redirect a file or a pipe to it\n"
    assert done.stderr == reported


@pytest.mark.parametrize("name", WRITERS)
def test_an_output_that_has_no_place_is_reported(folder, name):
    (folder.parent / "file").write_bytes(b"")
    done = child(words(name, folder, folder.parent / "file" / "out"), stdout=subprocess.DEVNULL)
    assert done.returncode == 1
    assert f"error: {folder.parent}/file" in done.stderr
    assert "cannot be written" in done.stderr
    assert left(folder) == ["file"]


@pytest.mark.parametrize("name", WRITERS)
def test_a_reader_of_standard_error_that_goes_away_leaves_nothing_half_written(folder, name):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "kdump", *words(name, folder)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == 141
    assert [path for path in left(folder) if path.endswith(".tmp")] == []


@pytest.mark.parametrize("blocks", [0, 1])
def test_no_room_for_what_an_archive_holds_is_reported(folder, blocks):
    packed = folder.parent / "0.log.gz"
    packed.write_bytes(gzip.compress((folder / FIRST).read_bytes()))
    done = child(["dump", packed], shell=f"ulimit -f {blocks};", stdout=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {packed}: cannot be decompressed to ")
    assert "\nhint: set TMPDIR to a folder with more room\n" in done.stderr


SENDS = """
import os, signal
flush = os.fsync
def send(descriptor):
    os.kill(os.getpid(), signal.{number})
    flush(descriptor)
os.fsync = send
from kdump.__main__ import run
run()
"""
"""A run that gets a signal when its first file is complete but has no final name yet."""


@pytest.mark.parametrize(("number", "status"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
@pytest.mark.parametrize("name", WRITERS)
def test_a_signal_leaves_nothing_and_is_the_exit_status(folder, name, number, status):
    done = python("-c", SENDS.format(number=number), *words(name, folder))
    assert done.returncode == status
    assert all(line.startswith(b"note: t-0: 20 valid batches") for line in done.stderr.split(b"\n") if line)
    assert left(folder) == []


def test_an_ignored_signal_is_ignored(folder):
    """nohup ignores signals in this way."""
    shell = 'trap "" HUP; exec "$@"'
    done = python("-c", SENDS.format(number="SIGHUP"), *words("slice", folder), shell=shell)
    assert (done.returncode, left(folder)) == (0, ["out", "slice.log"])


def test_a_killed_run_is_named_by_the_next(folder):
    done = python("-c", SENDS.format(number="SIGKILL"), *words("slice", folder))
    (part,) = (folder.parent / "out").iterdir()
    assert done.returncode == -9
    done = child(words("slice", folder))
    assert done.returncode == 0
    assert f"note: {part}: an unfinished output of a run that was killed; to delete it: rm -r {part}\n" in done.stderr
    assert left(folder) == sorted(["out", "slice.log", part.name])
