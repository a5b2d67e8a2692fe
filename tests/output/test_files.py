"""Files are complete when they appear, and existing files are replaced only if asked for."""

import os
import signal
import tempfile

import pytest

from kdump.errors import UnreadableError, UsageError
from kdump.output import files
from kdump.primitives import signals


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_files_are_written_into_a_new_folder(tmp_path):
    folder = tmp_path / "a" / "b"
    paths = files.write(folder, {"x": b"1", "y": b""})
    assert [path.read_bytes() for path in paths] == [b"1", b""]
    assert names(folder) == ["x", "y"]


def test_nothing_is_overwritten_unasked(tmp_path):
    (tmp_path / "y").write_bytes(b"old")
    with pytest.raises(UsageError, match="y exists already"):
        files.write(tmp_path, {"x": b"1", "y": b"2"})
    assert names(tmp_path) == ["y"]
    files.write(tmp_path, {"x": b"1", "y": b"2"}, force=True)
    assert (tmp_path / "y").read_bytes() == b"2"
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError):
        files.write(tmp_path, {"link": b"1"})


@pytest.mark.parametrize("form", ["file://{}", "file:{}"])
def test_an_input_given_as_a_uri_is_not_written_into(tmp_path, form):
    read = tmp_path / "in 1"
    (read / "t-0").mkdir(parents=True)
    for path in (read, read / "t-0"):
        uri = form.format(str(path).replace(" ", "%20"))
        with pytest.raises(UsageError, match=r"is in the input file:.*, which kdump does not change"):
            files.outside([uri], str(read / "t-0" / "rows.parquet"))
        files.outside([uri], str(tmp_path / "rows.parquet"))


@pytest.mark.parametrize("out", ["s3://key:secret@bucket/x", "s3:/bucket/x", "file:///tmp/x", "https://host/x"])
def test_a_uri_is_not_the_name_of_a_local_output(out):
    with pytest.raises(UsageError, match=r"is a URI\. kdump writes only to this machine") as error:
        files.outside([], out)
    assert "secret" not in str(error.value)


def test_a_name_that_is_taken_in_the_meantime_is_not_overwritten(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "must_be_free", lambda _: None)
    (tmp_path / "y").write_bytes(b"old")
    with pytest.raises(UsageError, match="y exists now"):
        files.write(tmp_path, {"x": b"1", "y": b"2"})
    assert names(tmp_path) == ["y"]
    assert (tmp_path / "y").read_bytes() == b"old"


def test_files_of_several_folders_appear_together(tmp_path):
    with files.new_files(tmp_path) as new:
        new.add("a/x", b"1", files.ANY)
        new.add("b/c/x", b"2", files.ANY)
        assert not (tmp_path / "a").exists()
    assert [(tmp_path / name).read_bytes() for name in ("a/x", "b/c/x")] == [b"1", b"2"]
    (tmp_path / "d").mkdir()

    def write_three():
        with files.new_files(tmp_path) as new:
            for name in ("d/x", "e/x", "b/c/x"):
                new.add(name, b"3", files.ANY)

    with pytest.raises(files.TakenError, match="b/c/x exists now"):
        write_three()
    assert names(tmp_path) == ["a", "b", "d"]
    assert names(tmp_path / "d") == []


@pytest.mark.parametrize("force", [True, False])
def test_a_disk_that_refuses_writes_leaves_no_files(tmp_path, monkeypatch, force):
    calls = []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(UnreadableError, match="cannot be written: No space left on device"):
        files.write(tmp_path, {"x": b"1", "y": b"2"}, force=force)
    assert names(tmp_path) == []


def test_a_file_system_without_links(tmp_path, monkeypatch):
    def link(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    files.write(tmp_path, {"x": b"1"})
    assert names(tmp_path) == ["x"]


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "f").write_bytes(b"")
    with pytest.raises(UsageError, match="f is a file: name a folder"):
        files.write(tmp_path / "f", {"x": b"1"})
    with pytest.raises(UnreadableError, match="cannot be written: Not a directory"):
        files.write(tmp_path / "f" / "below", {"x": b"1"})


def test_what_is_read_is_not_replaced(tmp_path):
    segment, archive = tmp_path / "0.log", tmp_path / "logs.tgz"
    segment.write_bytes(b"1")
    archive.write_bytes(b"2")
    link = tmp_path / "link"
    link.symlink_to(archive)
    for paths, out in (([segment], segment), ([tmp_path / "*.log"], segment), ([link], archive), ([archive], link)):
        with pytest.raises(UsageError, match="is an input"):
            files.outside(map(str, paths), str(out))
    files.outside([str(segment), str(tmp_path / "*.tgz")], str(tmp_path / "report.html"))


@pytest.mark.parametrize("name", [f"{5:020}.log", f"{0:020}.index", f"{5:020}.snapshot", "leader-epoch-checkpoint"])
def test_a_file_beside_an_input_segment_is_not_part_of_its_log(tmp_path, name):
    segment = tmp_path / f"{0:020}.log"
    segment.touch()
    with pytest.raises(UsageError, match="would become a file of the input log"):
        files.outside([str(segment)], str(tmp_path / name))
    files.outside([str(segment)], str(tmp_path / "rows.parquet"))


def test_only_a_file_is_replaced(tmp_path):
    old, pipe = tmp_path / "old", tmp_path / "pipe"
    old.write_bytes(b"1")
    os.mkfifo(pipe)
    for out, overwrite in (("", True), ("-", True), (old, False), (pipe, True), (tmp_path, True)):
        with pytest.raises(UsageError):
            files.writable_file(str(out), overwrite=overwrite)
    for overwrite in (True, False):
        with pytest.raises(UsageError, match="is a folder: name a file in it"):
            files.writable_file(str(tmp_path), overwrite=overwrite)
    files.writable_file(str(old), overwrite=True)
    files.writable_file(str(tmp_path / "new" / "folder" / "x"), overwrite=False)


def test_a_link_is_replaced_by_the_rights_of_its_own_folder(tmp_path, monkeypatch):
    """The link itself is replaced, and its target stays."""
    own = os.geteuid()
    for name, mode in (("shared", 0o1777), ("plain", 0o777)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
        (tmp_path / name / "x").touch()
    (tmp_path / "shared" / "link").symlink_to(tmp_path / "plain" / "x")
    (tmp_path / "plain" / "link").symlink_to(tmp_path / "shared" / "x")
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    files.writable_file(str(tmp_path / "plain" / "link"), overwrite=True)
    for name in ("link", "x"):
        with pytest.raises(UsageError, match="belongs to another user"):
            files.writable_file(str(tmp_path / "shared" / name), overwrite=True)


def test_a_link_in_a_log_dir_is_not_replaced(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "meta.properties").touch()
    (tmp_path / "logs" / "link").symlink_to(tmp_path / "x")
    with pytest.raises(UsageError, match="is in the log dir"):
        files.outside([], str(tmp_path / "logs" / "link"))


def test_a_folder_that_refuses_is_named_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, _: path != tmp_path)
    with pytest.raises(
        UnreadableError, match=f"^{tmp_path}/x: cannot be written: this user may not write in {tmp_path}"
    ):
        files.writable_file(str(tmp_path / "x"), overwrite=False)


def test_a_scratch_folder_that_cannot_be_made_is_named_with_a_remedy(tmp_path):
    with pytest.raises(UnreadableError) as error, files.scratch_folder(str(tmp_path / "gone")):
        pass
    assert (error.value.path, error.value.hint) == (str(tmp_path / "gone"), "name another folder")


def test_a_scratch_folder_is_private_and_goes_also_where_a_signal_comes_while_it_is_made(tmp_path, monkeypatch):
    with files.scratch_folder(str(tmp_path)) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
    make = tempfile.mkdtemp

    def interrupted(**given):
        made = make(**given)
        os.kill(os.getpid(), signal.SIGINT)
        return made

    monkeypatch.setattr(tempfile, "mkdtemp", interrupted)
    before = signal.getsignal(signal.SIGINT)
    signals.heed([signal.SIGINT])
    try:
        with pytest.raises(KeyboardInterrupt), files.scratch_folder(str(tmp_path)):
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    assert list(tmp_path.iterdir()) == []
