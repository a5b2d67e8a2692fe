"""A prepared folder becomes an output, in a process killed before each file operation. No Spark job runs."""

import json
import shutil
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
import pyarrow as pa
import pyarrow.parquet as parquet
from py4j.protocol import Py4JError

from kdump.errors import KdumpError, UsageError
from kdump.log_dirs.remote import RemoteFiles
from kdump.output import files
from kdump.spark.export import commit, folder, job
from kdump.spark.export.account import NOTHING
from kdump.spark.export.folder import Folder
from kdump.spark.export.output import MANIFEST, Output
from testing.stores import FlakyStore

OLD, NEW = {0, 1}, {10, 11}
STRANGERS = {"notes.txt": "mine", "topic_name=t/of-another.txt": "too"}


class KilledError(Exception):
    """Represents the end of the process."""


class Dying:
    """A file system of Hadoop on which nothing changes from the operation ``at`` on.

    If ``life.copies``, it renames files like an object store: by copying, then by deleting.
    """

    def __init__(self, files, life):
        self._files, self._life = files, life

    def __getattr__(self, name):
        real = getattr(self._files, name)
        if name == "rename" and self._life.copies:
            return self._copy
        if name not in {"rename", "delete", "mkdirs", "create"}:
            return real

        def change(*given):
            self._life.done += 1
            if self._life.done > self._life.at:
                if name == "create" and self._life.done == self._life.at + 1:
                    real(*given).close()  # killed in the middle of it
                raise KilledError
            return real(*given)

        return change

    def _copy(self, old, new):
        self._life.lives()
        if not Path(old.toUri().getPath()).exists():
            raise Py4JError("java.io.FileNotFoundException: No such file or directory")  # as S3A does
        if Path(new.toUri().getPath()).exists():
            return False
        shutil.copyfile(old.toUri().getPath(), new.toUri().getPath())
        return self.delete(old, False)


@pytest.fixture
def life(monkeypatch):
    """``at`` is the number of file changes after which the process is killed, ``done`` counts them.

    Local renames do not use Hadoop. If ``copies``, files are those of an object store. ``lives`` counts a change.
    """
    reported = SimpleNamespace(at=1 << 30, done=0, copies=False)

    def lives():
        reported.done += 1
        if reported.done > reported.at:
            raise KilledError

    reported.lives = lives
    init = Folder.__init__

    def dying(self, *given):
        init(self, *given)
        if reported.copies:
            self._files, self._is_local = self._texts, False
        self._files, self._texts = Dying(self._files, reported), Dying(self._texts, reported)

    place = files.take_place

    def take_place(*given, **how):
        lives()
        place(*given, **how)

    monkeypatch.setattr(Folder, "__init__", dying)
    monkeypatch.setattr(files, "take_place", take_place)
    return reported


def prepare(spark, out, rows, before=()):
    """Write the files of an export beside ``out``, each row in one; return the name of the folder."""
    output = Output(spark, str(out), "parquet")
    with output.staging(pytest.fail) as (name, staging):
        folder = Path(staging.path)
        files = {f"topic_name=t/part-{row}.parquet": row for row in rows} | {f"_damaged/part-{min(rows)}.parquet": None}
        for file, row in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            parquet.write_table(pa.table({"row": [] if row is None else [row]}), folder / file)
        (folder / "_SUCCESS").touch()
        named = [{"file": file, "rows": int(row is not None), "bytes": 0} for file, row in files.items()]
        run = {"totals": {**NOTHING, "rows": len(rows)}, "output": named, "files": [], "options": {}}
        staging.write_runs([*before, run])
    return output, name, staging, run


def publish(spark, out, rows, mode):
    runs = Output(spark, str(out), "parquet").check(mode)
    output, name, staging, run = prepare(spark, out, rows, runs if mode == "append" else [])
    made = {"request": mode, "run": run, "staging": name, "replaces": mode == "overwrite"}
    made["removes"] = commit.written(runs) if mode == "overwrite" else []
    commit.publish(output, staging, made, lambda: None)


def by_glob(out):
    files = [path for path in out.rglob("*.parquet") if not path.relative_to(out).parts[0].startswith(("_", "."))]
    return sorted(row for path in files for row in parquet.read_table(path, partitioning=None)["row"].to_pylist())


def by_manifest(out):
    """Return the rows of the files that the manifest names, or None if there is no manifest."""
    if not (out / MANIFEST).exists():
        return None
    named = [file for run in json.loads((out / MANIFEST).read_text())["runs"] for file in run["output"]]
    found = [parquet.read_table(out / one["file"], partitioning=None)["row"].to_pylist() for one in named]
    assert [len(rows) for rows in found] == [one["rows"] for one in named]
    return sorted(row for rows in found for row in rows)


def finish(spark, out, rows, mode):
    """Do what the next run does."""
    if commit.recover(Output(spark, str(out), "parquet")) is None:
        publish(spark, out, rows, mode)
    job._forget(Output(spark, str(out), "parquet"))


SITUATIONS = {
    "new": ("error", []),
    "an empty folder": ("error", None),
    "append": ("append", OLD),
    "overwrite": ("overwrite", OLD),
    "overwrite beside files of others": ("overwrite", OLD),
}


@pytest.mark.parametrize("store", ["renames", "copies", "copies by a request", "inside"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_killed_anywhere_a_reader_sees_the_old_or_the_new(spark, tmp_path, monkeypatch, life, situation, store):
    """Nothing lost, doubled or misleading: also in an object store, and in a folder without a place beside it."""
    if store.startswith("copies"):
        life.copies = True
        monkeypatch.setattr(Folder, "renames_whole", property(lambda _: False))
    copied = []
    if store == "copies by a request":

        def fault(name, path):
            assert name == "copy"
            copied.append(path)
            life.lives()

        opened = RemoteFiles(FlakyStore("/", fault), "s3://")
        monkeypatch.setattr(folder, "place", lambda uri: (opened, uri.removeprefix("file:")))
    if store == "inside":
        monkeypatch.setattr(Output, "_has_place_beside", False)
    mode, before = SITUATIONS[situation]
    strangers = STRANGERS if "others" in situation else {}
    start = tmp_path / "start" / "out"
    if before:
        publish(spark, start, before, "error")
        (start / commit.COMMIT).unlink()
    elif before is None:
        start.mkdir(parents=True)
    for name, text in strangers.items():
        (start / name).write_text(text)
    olds = sorted(before or [])
    news = sorted(NEW | (OLD if mode == "append" else set()))
    killed_again = 0
    for at in count():
        place = tmp_path / str(at)
        shutil.copytree(start.parent, place) if start.parent.exists() else place.mkdir()
        out = place / "out"
        life.at, life.done = at, 0
        is_whole = False
        try:
            publish(spark, out, NEW, mode)
            is_whole = True
        except KilledError:
            pass
        look(out, olds, news, mode)
        killed_again = 0 if is_whole else (killed_again + 1) % 5
        life.at, life.done = killed_again, 0
        try:  # the next run is killed, too
            finish(spark, out, NEW, mode)
        except KilledError:
            look(out, olds, news, mode)
            life.at = 1 << 30
            finish(spark, out, NEW, mode)
        life.at = 1 << 30
        assert by_glob(out) == by_manifest(out) == news
        assert {name: (out / name).read_text() for name in strangers} == strangers
        assert not [path for path in place.rglob("*") if ".kdump-" in path.name or "_commit.json" in path.name]
        if is_whole:
            break
    assert at > 3
    assert bool(copied) == (store == "copies by a request")


def test_what_a_store_cannot_copy_is_renamed(spark, tmp_path, monkeypatch, life):
    """For example, an object above 5 GiB."""
    life.copies = True
    monkeypatch.setattr(Folder, "renames_whole", property(lambda _: False))
    tried = []

    def fault(name, path):
        tried.append(path.rpartition("/")[2])
        raise OSError("AWS Error UNKNOWN (HTTP status 400) during CopyObject operation")

    opened = RemoteFiles(FlakyStore("/", fault), "s3://")
    monkeypatch.setattr(folder, "place", lambda uri: (opened, uri.removeprefix("file:")))
    publish(spark, tmp_path / "out", NEW, "error")
    assert by_glob(tmp_path / "out") == by_manifest(tmp_path / "out") == sorted(NEW)
    assert {"part-10.parquet", "part-11.parquet"} <= {*tried}


def look(out, olds, news, mode):
    """Compare what readers see of a killed export with its old and its new state."""
    seen, reported = by_glob(out), by_manifest(out)
    assert reported in (None, olds, news)
    assert len(seen) == len(set(seen))
    assert set(seen) <= set(news) or set(seen) <= set(olds)
    if seen not in ([], olds, news):  # files that are being moved are reported, and no manifest names them
        assert (out / commit.COMMIT).exists()
        assert reported in (None, olds if mode == "append" else None)


def test_a_run_whose_commit_cannot_be_written_is_not_committed_by_the_next(spark, tmp_path, monkeypatch):
    """As in a store that fails for a moment: the text of the commit is there, and cannot be renamed."""
    out = tmp_path / "out"
    publish(spark, out, OLD, "error")
    job._forget(Output(spark, str(out), "parquet"))

    replace = Folder.take_text

    def fails(self, source, old, name):
        if name == commit.COMMIT:
            raise KdumpError("no answer")
        replace(self, source, old, name)

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "take_text", fails)
        with pytest.raises(KdumpError, match="no answer"):
            publish(spark, out, NEW, "append")
    assert commit.recover(Output(spark, str(out), "parquet")) is None
    assert by_glob(out) == by_manifest(out) == sorted(OLD)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    publish(spark, out, NEW, "append")
    assert by_glob(out) == by_manifest(out) == sorted(OLD | NEW)


def test_a_file_of_another_is_not_overwritten(spark, tmp_path):
    out = tmp_path / "out"
    publish(spark, out, OLD, "error")
    (out / commit.COMMIT).unlink()
    theirs = out / "topic_name=t" / "part-10.parquet"
    theirs.write_bytes(b"theirs")
    with pytest.raises(KdumpError, match=r"part-10\.parquet exists already, and holds other data"):
        publish(spark, out, NEW, "append")
    assert theirs.read_bytes() == b"theirs"
    theirs.unlink()
    finish(spark, out, NEW, "append")
    assert by_glob(out) == by_manifest(out) == sorted(OLD | NEW)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_what_kdump_has_not_written_is_not_touched(spark, tmp_path, mode):
    out = tmp_path / "out"
    out.mkdir()
    (out / "theirs.parquet").touch()
    with pytest.raises(UsageError, match=rf"has no _manifest\.json: --mode {mode} changes only"):
        publish(spark, out, NEW, mode)
    (out / MANIFEST).write_text(json.dumps({"runs": [{"rowsWritten": 1}]}))
    if mode == "overwrite":
        with pytest.raises(UsageError, match="does not list the files that kdump wrote"):
            publish(spark, out, NEW, mode)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_somebody_elses_folder_in_the_place_of_an_output_ends_it(spark, tmp_path, monkeypatch):
    out, real = tmp_path / "out", commit._make_place

    def make_place(output, old):
        real(output, old)
        out.mkdir()

    monkeypatch.setattr(commit, "_make_place", make_place)
    with pytest.raises(KdumpError, match="has appeared meanwhile: another program writes to it"):
        publish(spark, out, NEW, "error")
    assert [path.name for path in tmp_path.rglob("*")] == ["out"]


def test_an_output_that_somebody_made_while_it_was_replaced_is_for_people_to_judge(spark, tmp_path, life):
    out = tmp_path / "out"
    publish(spark, out, OLD, "error")
    (out / commit.COMMIT).unlink()
    life.at = 0
    while out.exists():
        life.at, life.done = life.at + 1, 0
        with pytest.raises(KilledError):
            publish(spark, out, NEW, "overwrite")
    life.at = 1 << 30
    out.mkdir()
    with pytest.raises(KdumpError, match=r"another program has created .* since then. Move it away, and export again"):
        finish(spark, out, NEW, "overwrite")
    out.rmdir()
    finish(spark, out, NEW, "overwrite")
    assert by_glob(out) == by_manifest(out) == sorted(NEW)


def test_a_commit_that_is_none_of_kdumps_is_reported(spark, tmp_path):
    out = tmp_path / "out"
    publish(spark, out, OLD, "error")
    for text in ("{}", "[]", "5", "", "[" * 100_000):
        (out / commit.COMMIT).write_text(text)
        with pytest.raises(KdumpError, match=r"_commit\.json was not written by kdump"):
            finish(spark, out, NEW, "append")


def test_what_appears_at_the_target_at_the_last_moment_is_not_replaced(spark, tmp_path, monkeypatch):
    """The new file or folder stays, the export ends with an error, and none of its files remain."""
    place = files.take_place
    for number, make in enumerate((lambda path: path.write_text("mine"), Path.mkdir)):
        out = tmp_path / str(number) / "out"

        def take_place(part, target, out=out, make=make, **how):
            if target == out:
                make(out)
            place(part, target, **how)

        with monkeypatch.context() as patched:
            patched.setattr(files, "take_place", take_place)
            with pytest.raises(KdumpError, match="out has appeared meanwhile"):
                publish(spark, out, NEW, "error")
        assert out.is_dir() or out.read_text() == "mine"
        assert [*out.parent.rglob("*.parquet")] == []
        assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_a_file_that_appears_in_an_output_is_not_replaced(spark, tmp_path, monkeypatch):
    out, place = tmp_path / "out", files.take_place
    publish(spark, out, OLD, "error")
    (out / commit.COMMIT).unlink()
    theirs = out / "topic_name=t" / "part-10.parquet"

    def take_place(part, target, **how):
        if target == theirs:
            theirs.write_text("theirs")
        place(part, target, **how)

    monkeypatch.setattr(files, "take_place", take_place)
    with pytest.raises(KdumpError, match=r"part-10\.parquet exists already, and holds other data"):
        publish(spark, out, NEW, "append")
    assert theirs.read_text() == "theirs"
    assert by_manifest(out) == sorted(OLD)


class IntoFolders:
    """A Hadoop file system that moves a folder into an existing one, like HDFS; one appears during the rename."""

    def __init__(self, files, path):
        self._files, self._path = files, path

    def __getattr__(self, name):
        return getattr(self._files, name)

    def rename(self, old, new):
        target = Path(new.toUri().getPath())
        if target == self._path and not target.exists():
            target.mkdir()
        if target.is_dir():
            Path(old.toUri().getPath()).rename(target / old.getName())
            return True
        return self._files.rename(old, new)


def test_a_folder_that_appears_in_hdfs_at_the_last_moment_keeps_its_name_and_gets_nothing(spark, tmp_path, monkeypatch):
    out = tmp_path / "out"
    init = Folder.__init__

    def remote(self, *given):
        init(self, *given)
        self._files = self._texts = IntoFolders(self._files, out)
        self._is_local = False

    monkeypatch.setattr(Folder, "__init__", remote)
    with pytest.raises(KdumpError, match="out has appeared meanwhile"):
        publish(spark, out, NEW, "error")
    assert [*out.iterdir()] == []
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
