"""Files that change while they are read, full disks, closed pipes and missing permissions."""

from __future__ import annotations

import io
import os
import sys

import pytest

from kdump.dump_log_segments import Options
from kdump.dump_log_segments.dialects import segments as dialects
from kdump.dump_log_segments.dispatch import dump_files
from kdump.dump_log_segments.run import DumpRun
from kdump.errors import Reporter, UnreadableError
from kdump.log_dirs.finder import Finder, Wanted
from kdump.log_dirs.local import LocalFile
from kdump.log_reader.live import LiveReader
from kdump.log_reader.reader import PartitionReader
from kdump.output.stdout import OutputError, open_output
from kdump.records.record_batch import RecordBatch
from kdump.segments.regions import Trailing
from kdump.segments.walk import BLOCK, walk
from testing import ROOT, forge
from testing.processes import kdump, on_a_terminal

LOG = "00000000000000000000.log"
ANYWHERE = {**os.environ, "PYTHONPATH": str(ROOT)}
"""Environment with which kdump is found from another folder."""
OTHER = "00000000000000009999.log"
LARGE = forge.record(None, bytes(400_000))
BATCHES = 40
COMMANDS = [["--files"], ["dump", "-o", "jsonl"]]
"""Commands that read ahead; tests/commands/test_faults.py has all commands, with small files."""


@pytest.fixture
def segment(tmp_path):
    """Batches of 400 kB: twice the size that threads read ahead."""
    path = tmp_path / LOG
    path.write_bytes(b"".join(forge.batch([LARGE], base_offset=offset) for offset in range(BATCHES)))
    return path


@pytest.fixture
def after_two(monkeypatch):
    """Return a function that makes an output, which calls a change of the file after the second batch."""

    def prepare(change):
        original, seen = io.BytesIO.write, []

        class Out(io.BytesIO):
            def write(self, data, /):
                if bytes(data).startswith(b"baseOffset"):
                    seen.append(data)
                    if len(seen) == 2:
                        change()
                return original(self, data)

        return Out()

    return prepare


def run(path, out):
    dump_files(DumpRun(dialects.NEWEST, Options(), out), [str(path)])
    return out.getvalue().decode().splitlines()


def test_a_file_that_is_cut_while_it_is_read(segment, after_two, capsys):
    size = segment.stat().st_size
    kept = size // 2 + 1000
    lines = run(segment, after_two(lambda: os.truncate(segment, kept)))
    batches = [line for line in lines if line.startswith("baseOffset")]
    assert len(batches) == BATCHES // 2
    assert all("isvalid: true" in line for line in batches)
    assert lines[-1] == f"Found 1000 invalid bytes at the end of {LOG}"
    assert f"{LOG} became {size - kept} bytes shorter while it was read" in capsys.readouterr().err


def test_a_file_that_is_emptied_while_it_is_read(segment, after_two, capsys):
    lines = run(segment, after_two(lambda: os.truncate(segment, 0)))
    assert all("isvalid: true" in line for line in lines[2:])
    assert "bytes shorter" in capsys.readouterr().err


@pytest.mark.parametrize("change", ["rename", "unlink", "append", "replace"])
def test_a_file_that_is_renamed_deleted_rolled_or_written_to_is_read_as_it_was(segment, after_two, capsys, change):
    want = run(segment, io.BytesIO())

    def roll():
        if change == "rename":
            segment.rename(f"{segment}.deleted")
        elif change == "unlink":
            segment.unlink()
        elif change == "append":
            with segment.open("ab") as file:
                file.write(forge.batch([LARGE], base_offset=BATCHES) * 3)
        else:
            fresh = segment.with_name("fresh")
            fresh.write_bytes(b"")
            fresh.replace(segment)

    assert run(segment, after_two(roll)) == want
    assert capsys.readouterr().err == ""


def test_pieces_of_a_file_that_shrinks_are_never_half(segment):
    size = segment.stat().st_size
    for kept in (0, 16, 17, 60, 61, BLOCK, size - 1):
        segment.write_bytes(b"".join(forge.batch([LARGE], base_offset=offset) for offset in range(BATCHES)))
        with LocalFile(segment) as source:
            os.truncate(segment, kept)
            regions = list(walk(source))
            assert source.lost == size - kept
        assert isinstance(regions[-1], Trailing)
        assert all(region.crc_valid for region in regions if isinstance(region, RecordBatch))
        assert sum(region.size for region in regions) == size


def test_a_dump_says_that_a_file_became_shorter(segment, monkeypatch):
    original = LocalFile.read

    def cut_after_a_read(self, position, size):
        data = original(self, position, size)
        if position > 500_000:
            os.truncate(segment, 900_000)
        return data

    monkeypatch.setattr(LocalFile, "read", cut_after_a_read)
    from kdump.log_dirs.finder import Finder, Wanted
    from kdump.log_reader.reader import PartitionReader

    notes = []
    partitions = list(Finder(Wanted(), Reporter(note=notes.append, fail=notes.append)).find([str(segment)]))
    items = [item for part in partitions for item in PartitionReader(report=Reporter(note=notes.append)).read(part)]
    assert [type(item).__name__ for item in items] == ["SelectedBatch"] * (len(items) - 1) + ["DamagedRange"]
    assert 2 <= len(items) < 10
    assert any("bytes shorter" in str(note) for note in notes)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_full_disk_is_reported_in_one_line(segment, command):
    with open("/dev/full", "wb") as full:  # noqa: PTH123  a device
        done = kdump(*command, segment, stdout=full)
    reported = [line for line in done.stderr.decode().splitlines() if "standard output" in line]
    assert (done.returncode, reported) == (1, ["error: standard output cannot be written: No space left on device"])
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_closed_pipe_is_quiet(segment, command):
    reader, writer = os.pipe()
    os.close(reader)
    done = kdump(*command, segment, stdout=writer)
    os.close(writer)
    assert done.returncode == 141
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


@pytest.fixture
def unreadable(tmp_path):
    """Files that cannot be read, even by root, with the name of a segment."""
    os.mkfifo(tmp_path / "00000000000000000001.log")
    (tmp_path / "00000000000000000002.log").mkdir()
    (tmp_path / "00000000000000000003.log").symlink_to("/dev/zero")
    (tmp_path / "00000000000000000004.log").symlink_to("/proc/self/mem")
    (tmp_path / "00000000000000000005.log").symlink_to(tmp_path / "nowhere")
    return sorted(tmp_path.iterdir())


def test_what_is_no_file_is_reported_and_never_waited_for(unreadable):
    for path in unreadable:
        done = kdump("--files", path)
        assert done.returncode == 1 or "4.log" in path.name  # that one has a size of 0
        assert done.returncode == 0 or str(path) in done.stderr.decode()
        assert b"Traceback" not in done.stderr


def test_other_inputs_are_still_done(unreadable, segment):
    done = kdump("dump", segment, *unreadable, "-o", "jsonl", "--no-payload")
    assert done.returncode == 1
    assert done.stdout.count(b"\n") == BATCHES
    assert b"Traceback" not in done.stderr
    assert b"00000000000000000001.log" in done.stderr


def test_a_fault_of_the_disk_names_file_and_byte(segment, monkeypatch):
    def fault(_fd, _size, position):
        raise OSError(5, "Input/output error")

    with LocalFile(segment) as source:
        monkeypatch.setattr(os, "pread", fault)
        with pytest.raises(UnreadableError, match=f"{LOG}: byte 7: Input/output error"):
            source.read(7, 100)


def test_a_terminal_is_not_steered_by_what_a_file_holds(tmp_path):
    path = tmp_path / LOG
    evil = "\x1b]0;owned\x07 \x9b31m \x00\x08\x7f\r\x0b\x0c".encode()
    records = [forge.record(evil, evil, headers=[(evil, evil)])]
    path.write_bytes(forge.batch(records))
    plain = kdump("--files", path, "--print-data-log").stdout
    assert plain.count(evil) == 3
    done, seen = on_a_terminal(kdump, "--files", path, "--print-data-log")
    assert done.returncode == 0
    assert b"\\x1b]0;owned\\x07 \\x9b31m \\x00\\x08\\x7f\\x0d\\x0b\\x0c" in seen
    assert not {*seen} & ({*range(32), 0x7F} - {9, 10})
    assert b"\xc2\x9b" not in seen
    assert seen.count(b"\n") == plain.count(b"\n")


def test_a_character_across_two_writes_is_escaped_too(monkeypatch):
    monkeypatch.setattr(os, "isatty", lambda _fd: True)
    written = []
    monkeypatch.setattr(os, "write", lambda _fd, data: written.append(bytes(data)) or len(data))
    with open_output(escape=True) as out:
        for byte in "ä\x9b-é".encode():
            out.write(bytes([byte]))
            out.flush()
    assert b"".join(written) == "ä\\x9b-é".encode()


@pytest.mark.parametrize(
    "command",
    [["check"], ["dump", "-o", "table", "--include-damaged"], ["dump", "-f", "%k %h\\n"], ["get", "--hexdump"]],
    ids=" ".join,
)
def test_neither_folders_nor_records_nor_damage_steer_a_terminal(tmp_path, command):
    steer = b"\x1b]0;title\x07\xc2\x9b2J"
    record = forge.record(steer, steer, headers=[(steer, steer)])
    folder = tmp_path / "t\x1b[2J-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(forge.batch([record], crc=1) + steer * 9)
    where = ["t\x1b[2J-0@0", "--in", tmp_path] if command[0] == "get" else [tmp_path]
    plain = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "500"}  # so that no path is broken
    done, seen = on_a_terminal(kdump, command[0], *where, *command[1:], env=plain)
    assert done.returncode == 3
    assert b"\\x1b[2J-0" in seen
    assert not [raw for raw in (b"\x1b", b"\x07", b"\xc2\x9b") if raw in seen]


def test_a_file_name_does_not_steer_a_terminal_either(tmp_path):
    done = kdump("--files", tmp_path / "00000000000000000000.\x1b[2Jlog.log")
    assert done.returncode == 1
    assert b"\x1b" not in done.stderr


def test_an_error_of_standard_output_is_one_of_kdump(monkeypatch):
    def full(_fd, _data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    out = open_output()
    out.write(b"x")
    with pytest.raises(OutputError, match="No space left"):
        out.flush()
    monkeypatch.undo()
    monkeypatch.setattr(os, "write", lambda _fd, data: len(data))
    out.close()


@pytest.mark.parametrize("command", [["--files", LOG], ["dump", LOG], ["compat"], ["--help"], ["--version"]])
@pytest.mark.parametrize("closed", [(1,), (0, 1), (0, 2), (0, 1, 2)], ids=str)
def test_closed_standard_streams_are_not_taken_for_others(segment, command, closed):
    closing = " ".join(f"{descriptor}>&-" for descriptor in closed)
    done = kdump(*command, shell=f'exec {closing}; exec "$@"', cwd=segment.parent, env=ANYWHERE)
    assert done.returncode == (1 if 1 in closed else 0)
    assert bool(done.stdout) == (1 not in closed)
    reported = b"error: standard output cannot be written: Bad file descriptor\n"
    assert done.stderr == (reported if 1 in closed and 2 not in closed else b"")


def test_reports_do_not_go_to_standard_output_where_standard_error_is_closed(tmp_path):
    (tmp_path / "0.snapshot").write_bytes(b"")
    done = kdump("--files", "0.snapshot", shell='exec 2>&-; exec "$@"', cwd=tmp_path, env=ANYWHERE)
    assert (done.returncode, done.stdout) == (0, b"Dumping 0.snapshot\n")


def test_the_name_of_a_file_need_not_be_text(tmp_path):
    folder = os.fsencode(tmp_path) + b"/\xff\n"
    os.mkdir(folder)  # noqa: PTH102  pathlib takes no bytes
    path = folder + b"/0.log"
    with open(path, "wb") as file:  # noqa: PTH123  a path of bytes
        file.write(forge.batch([LARGE]) + b"rest")
    done = kdump("--files", os.fsdecode(path))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"Dumping " + path + b"\n")
    assert done.stdout.endswith(b"Found 4 invalid bytes at the end of 0.log\n")


@pytest.mark.parametrize("command", [["--compat", "0.8.0", "--files", "0.index"], ["dump", "."], ["check", "."]])
def test_the_current_folder_may_be_gone(tmp_path, command):
    done = kdump(*command, shell='rmdir "$PWD"; exec "$@"', cwd=tmp_path, env=ANYWHERE)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: the current folder was deleted")


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("x.log", "x.log: the file name has 'x' where an offset or an epoch is expected"),
        ("1" * 200 + ".log", "where an offset or an epoch is expected"),
        ("9223372036854775808.index", "where an offset or an epoch is expected"),
    ],
)
def test_a_name_without_an_offset_is_reported_with_what_to_do(tmp_path, name, reported):
    (tmp_path / name).write_bytes(b"")
    done = kdump("--files", tmp_path / name)
    assert done.returncode == 1
    assert reported in done.stderr.decode()
    assert "name it as the broker did" in done.stderr.decode()


@pytest.mark.parametrize(("terminal", "shown"), [(True, "\\x1b[2J.unknown"), (False, "\x1b[2J.unknown")])
def test_reports_on_file_names_do_not_steer_a_terminal(monkeypatch, terminal, shown):
    reported = io.StringIO()
    reported.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", reported)
    dump_files(DumpRun(dialects.NEWEST, Options(), io.BytesIO()), ["\x1b[2J.unknown"])
    assert reported.getvalue() == f"Ignoring unknown file {shown}\n"


def test_the_limit_of_a_batch_holds_in_segments_that_begin_later(tmp_path):
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / LOG).write_bytes(forge.batch([forge.record(None, b"v")]))
    (partition,) = Finder(Wanted(max_batch_bytes=200)).find([str(folder)])
    live = LiveReader(PartitionReader(), partition)
    assert [item.base_offset for item in live.poll()] == [0]
    (folder / f"{1:020}.log").write_bytes(forge.batch([forge.record(None, bytes(500))], base_offset=1))
    (lost,) = [*live.poll(), *live.poll()]  # a damaged range of the last segment is reported at the second poll
    assert "larger than the limit" in lost.damage.reason
