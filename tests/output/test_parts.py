"""Unfinished outputs: after any end of a run, an output is complete or absent, and other files are unchanged."""

import errno
import fcntl
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from kdump.errors import UnreadableError, UsageError
from kdump.output import access, files, parts
from kdump.primitives import signals

DATA = b"all of it"
KILL, INT, TERM, HUP = signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP


def write_files(out):
    files.write(out, {"x": DATA, "y": DATA})


def write_file(out):
    with files.new_file(out) as file:
        file.write(DATA)


def write_folder(out):
    with files.new_folder(out, last="x") as folder:
        files.fill(folder / "x", DATA, access.ANY)
        files.fill(files.make_folders(folder, "b", access=access.ANY) / "y", DATA, access.ANY)


def into_empty(out):
    with suppress(FileExistsError):
        out.mkdir()
    write_folder(out)


WRITERS = {
    "files": (write_files, {"x": DATA, "y": DATA}),
    "file": (write_file, {"": DATA}),
    "folder": (write_folder, {"x": DATA, "b/y": DATA}),
    "empty folder": (into_empty, {"x": DATA, "b/y": DATA}),
}
STEPS = ((os, "open"), (os, "mkdir"), (os, "fsync"), (os, "close"), (Path, "rename"), (parts, "put"), (os, "fchmod"))


def held(out):
    """Return the files of an output by their paths in it, without parts."""
    if out.is_file():
        return {"": out.read_bytes()}
    found = [path for path in out.rglob("*") if path.is_file() and not left([path])]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in found}


def left(paths):
    """Return the paths that are parts or lie in one."""
    return [path for path in paths if any(parts.NAME.fullmatch(name) for name in path.parts)]


def in_a_child(work, number, step):
    """Do ``work`` in a child that gets a signal before step ``step`` (from 1); return its status, 0 if finished."""
    child = os.fork()
    if not child:
        status = 99
        try:
            signals.heed((INT, TERM, HUP))
            count = 0

            def counted(call):
                def counting(*arguments, **options):
                    nonlocal count
                    count += 1
                    if count == step:
                        os.kill(os.getpid(), number)
                    return call(*arguments, **options)

                return counting

            for owner, name in STEPS:
                setattr(owner, name, counted(getattr(owner, name)))
            work()
            status = 0
        except KeyboardInterrupt:
            status = 130
        except signals.EndedBySignal as ended:
            status = ended.status
        finally:
            signals.clean_up()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("number", [INT, TERM, HUP, KILL], ids=lambda number: number.name)
@pytest.mark.parametrize("name", WRITERS)
def test_a_signal_at_any_step_leaves_all_or_nothing(tmp_path, name, number):
    write, whole = WRITERS[name]
    expected = -number if number == KILL else 128 + number
    status, step = expected, 0
    while status == expected:
        step += 1
        place = tmp_path / str(step)
        place.mkdir()
        out = place / "out"
        status = in_a_child(lambda out=out: write(out), number, step)
        parts_left = left(place.rglob("*"))
        if status == expected and number != KILL:
            assert parts_left == []
            assert held(out) in ({}, whole)
        for path, data in held(out).items():
            assert whole[path] == data
        tops = [path for path in parts_left if parts.NAME.fullmatch(path.name)]
        said = []
        with suppress(UsageError):
            files.write(out if out.is_dir() else place, {"next": b""}, note=said.append)
        with suppress(UsageError):
            files.write(place, {"next": b""}, note=said.append)
        assert {path for path in tops if not any(str(path) in text for text in said)} == set()
    assert status == 0
    assert step > 5


def test_a_part_of_a_run_that_lives_is_not_named(tmp_path):
    said = []
    with files.new_file(tmp_path / "a"), files.new_folder(tmp_path / "b"):
        files.write(tmp_path, {"c": b""}, note=said.append)
    assert said == []


def test_what_is_left_over_is_named_with_a_command_that_deletes_it(tmp_path):
    place = tmp_path / "it's"
    dead = place / ".kdump-0123456789abcdef.part"
    dead.mkdir(parents=True)
    said = []
    files.write(place, {"c": b""}, note=said.append)
    (text,) = said
    assert text.startswith(f"{dead}: an unfinished output of a run that was killed")
    os.system(text.partition("delete it: ")[2])
    assert not dead.exists()


@pytest.mark.parametrize("lacks", [("renameat2",), ("renameat2", "link")], ids=" ".join)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_file_system_that_lacks_calls(tmp_path, monkeypatch, lacks, kind):
    monkeypatch.setattr(parts, "_rename_without_replacing", lambda: None)
    if "link" in lacks:

        def link(*_, **__):
            raise OSError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", link)
    write, whole = WRITERS[kind]
    write(tmp_path / "out")
    assert held(tmp_path / "out") == whole
    assert left(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("lacks", [(), ("renameat2",), ("renameat2", "link")], ids=" ".join)
@pytest.mark.parametrize("found", ["file", "folder", "empty folder"])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_appears_while_a_run_works_stays(tmp_path, monkeypatch, lacks, kind, found):
    if lacks:
        monkeypatch.setattr(parts, "_rename_without_replacing", lambda: None)
    if "link" in lacks:

        def link(*_, **__):
            raise OSError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", link)
    out, before = tmp_path / "out", parts.put

    def appears(part, target):
        if found == "file":
            out.write_bytes(b"another's")
        else:
            out.mkdir()
            if found == "folder":
                (out / "z").write_bytes(b"another's")
        before(part, target)

    monkeypatch.setattr(parts, "put", appears)
    with pytest.raises(files.TakenError, match="out exists now"):
        WRITERS[kind][0](out)
    assert held(out) == {"file": {"": b"another's"}, "folder": {"z": b"another's"}, "empty folder": {}}[found]
    assert left(tmp_path.rglob("*")) == []


def test_a_name_that_appears_in_an_empty_folder_stays_and_what_was_moved_goes_back(tmp_path, monkeypatch):
    before = parts.put

    def appears(part, target):
        if target.name == "x" and part.name == "x":
            target.write_bytes(b"another's")
        before(part, target)

    monkeypatch.setattr(parts, "put", appears)
    with pytest.raises(files.TakenError, match="x exists now"):
        into_empty(tmp_path / "out")
    assert held(tmp_path / "out") == {"x": b"another's"}
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["x"]


def test_an_empty_folder_stays_the_same_folder(tmp_path):
    out = tmp_path / "out"
    out.mkdir(0o750)
    before = out.stat()
    into_empty(out)
    assert (out.stat().st_ino, out.stat().st_mode) == (before.st_ino, before.st_mode)
    with pytest.raises(files.TakenError, match=r"holds b"):
        into_empty(out)


def test_a_new_file_system_holds_nothing_but_lost_and_found(tmp_path):
    (tmp_path / "lost+found").mkdir(0o700)
    with files.new_folder(tmp_path, last="logs") as folder:
        files.fill(files.make_folders(folder, "logs", access=access.ANY) / "0", DATA, access.ANY)
        files.fill(files.make_folders(folder, "lost+found", access=access.ANY) / "1", DATA, access.ANY)
    assert held(tmp_path) == {"logs/0": DATA, "lost+found/1": DATA}


def test_a_lost_and_found_of_the_system_that_cannot_be_written_is_reported_at_once(tmp_path, monkeypatch):
    lost = tmp_path / "lost+found"
    lost.mkdir()
    monkeypatch.setattr(os, "access", lambda path, _: path != lost)
    with pytest.raises(UsageError, match=r"lost\+found cannot be written: name a folder in .*, such as .*/kdump"):
        write_folder(tmp_path)


@pytest.mark.parametrize("length", [200, 243, 244, 250, 255])
@pytest.mark.parametrize("name", WRITERS)
def test_names_may_have_255_bytes(tmp_path, name, length):
    out = tmp_path / ("n" * length)
    WRITERS[name][0](out)
    assert held(out) == WRITERS[name][1]
    with pytest.raises(UnreadableError, match=r"nnn(/x)?: cannot be written: File name too long"):
        WRITERS[name][0](tmp_path / ("n" * 256)) if name != "empty folder" else files.write(tmp_path, {"n" * 256: b""})


def test_errors_name_what_the_user_gave(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill_what_is_missing():
        with files.new_folder(tmp_path / "out") as folder:
            files.fill(folder / "deep" / "x", b"", access.ANY)

    with pytest.raises(UnreadableError, match=f"^{tmp_path}/out/deep/x: cannot be written: No such file"):
        fill_what_is_missing()
    monkeypatch.setattr(os, "fsync", refuse)
    for name in ("file", "folder"):
        with pytest.raises(UnreadableError, match=f"^{tmp_path}/out: cannot be written: No space left"):
            WRITERS[name][0](tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EROFS])
@pytest.mark.parametrize("name", WRITERS)
def test_a_part_that_cannot_be_made_is_named_as_its_output(tmp_path, monkeypatch, name, number):
    """In /proc no file can be created. The message lacks the part's random name, which the user did not choose."""
    out, opened, made = tmp_path / "out", os.open, Path.mkdir
    if name in {"files", "empty folder"}:
        out.mkdir()

    def refuse(call, path):
        if parts.NAME.fullmatch(Path(path).name):
            raise OSError(number, os.strerror(number), str(path))
        return call

    monkeypatch.setattr(os, "open", lambda path, *given, **more: refuse(opened, path)(path, *given, **more))
    monkeypatch.setattr(Path, "mkdir", lambda path, *given: refuse(made, path)(path, *given))
    with pytest.raises(UnreadableError) as caught:
        WRITERS[name][0](out)
    assert str(caught.value).startswith(f"{out}: cannot be written: {os.strerror(number)} (name ")


def test_an_error_above_the_output_names_both(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "mkdir", lambda path, *_: (_ for _ in ()).throw(OSError(2, "No such file", str(path))))
    with pytest.raises(UnreadableError, match=f"^{tmp_path}/a/out: cannot be written: {tmp_path}/a: No such file"):
        write_file(tmp_path / "a" / "out")


def test_the_file_of_several_that_has_no_room_is_named(tmp_path, monkeypatch):
    def refuse(path, data, access):
        if path.name == "y":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, data, access)

    real = files.fill
    monkeypatch.setattr(files, "fill", refuse)
    with pytest.raises(UnreadableError, match=f"^{tmp_path}/out/y: cannot be written: No space left .*free some room"):
        write_files(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_folders_that_were_made_go_and_those_of_others_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    (tmp_path / "there").mkdir()
    with pytest.raises(UnreadableError):
        write_file(tmp_path / "there" / "a" / "b" / "out")
    assert list((tmp_path / "there").iterdir()) == []


def test_two_runs_at_once_do_not_touch_each_other(tmp_path, monkeypatch):
    """Their process ids are equal, as in two containers with one volume."""
    out = tmp_path / "out"
    with files.new_file(out) as first:
        first.write(DATA)
        write_file(out)
        assert held(out) == {"": DATA}
        out.unlink()
    assert held(out) == {"": DATA}
    assert list(tmp_path.iterdir()) == [out]


def test_locks_end_with_their_runs(tmp_path):
    with files.new_folder(tmp_path / "out") as folder:
        descriptor = os.open(folder, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)


def test_a_file_in_a_closed_folder_cannot_be_deleted(tmp_path, monkeypatch):
    def refused(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    part = tmp_path / "part"
    part.write_bytes(DATA)
    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(PermissionError, match="Permission denied"):
        parts.remove(part)
