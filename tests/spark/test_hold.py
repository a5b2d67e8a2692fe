"""Only one export at a time writes into a folder; the lock of a killed process is ignored."""

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")

from kdump.errors import KdumpError
from kdump.spark.export import following, hold, job
from kdump.spark.export.folder import Folder
from kdump.spark.export.output import Output
from testing import forge

QUIET = job.Listener(lambda _: None, lambda *_: None)
PATIENCE = 120
"""Seconds after which a test that waits has failed."""


@pytest.fixture(params=["local", "remote"])
def output(spark, tmp_path, monkeypatch, request):
    if request.param == "remote":
        monkeypatch.setattr(Folder, "local", None)
    return Output(spark, str(tmp_path / "out"), "parquet")


def lock(output):
    return Path(output.path).with_name(".out.kdump-lock")


def leave(output, **given):
    """Leave the lock of another process."""
    lock(output).write_text(json.dumps({**hold.me()._asdict(), "token": "another", **given}))


def ended():
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_the_second_writer_reports_the_holder_of_the_lock(output):
    with hold.held(output):
        reported = json.loads(lock(output).read_text())
        with pytest.raises(KdumpError) as error, hold.held(output):
            pass
        who = f"kdump on {reported['host']}, process {os.getpid()}, since {reported['since']}"
        assert str(error.value) == f"{output.path} is locked by {who}: only one export at a time can write there"
    assert not list(lock(output).parent.iterdir())
    with hold.held(output):
        pass


def test_no_export_of_any_kind_begins_beside_another(spark, tmp_path):
    folder = tmp_path / "in" / "t-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020}.log").write_bytes(forge.batch([forge.record(b"k", b"v")]))
    out = tmp_path / "out"
    exports = {
        mode: job.Export(paths=(str(folder),), out=str(out), options={}, conf={}, mode=mode)
        for mode in ("error", "overwrite", "append")
    }
    job.run(exports["error"], QUIET)
    before = sorted(out.rglob("*"))
    with hold.held(Output(spark, str(out), "parquet")):
        for mode, export in exports.items():
            reason = "exists already" if mode == "error" else r"is locked by kdump on .*, process \d+, since 20"
            with pytest.raises(KdumpError, match=f"out {reason}"):
                job.run(export, QUIET)
        with pytest.raises(KdumpError, match="out is locked by kdump on"):
            following.Follower(exports["error"], QUIET).run(forever=True)
    assert sorted(out.rglob("*")) == before


def test_a_dead_process_of_this_machine_holds_nothing(output):
    leave(output, pid=ended())
    with hold.held(output):
        pass
    leave(output, started="1")  # the number is another process's now
    with hold.held(output):
        pass
    leave(output, pid=os.getppid(), started=hold._started(os.getppid()))
    with pytest.raises(KdumpError, match=f"process {os.getppid()}, since"), hold.held(output):
        pass


def test_a_process_elsewhere_is_dead_when_it_has_been_silent_for_long(output):
    leave(output, place="another", host="far")
    with pytest.raises(KdumpError, match="kdump on far, process"), hold.held(output):
        pass
    long_ago = time.time() - hold.SILENCE - 5
    os.utime(lock(output), (long_ago, long_ago))
    with hold.held(output):
        pass
    assert not list(lock(output).parent.iterdir())


def test_a_lock_without_words_is_of_one_that_begins_or_died_in_that_moment(output):
    lock(output).touch()
    with pytest.raises(KdumpError, match="locked by an export that is just beginning"), hold.held(output):
        pass
    os.utime(lock(output), (0, 0))
    with hold.held(output):
        pass


def test_the_living_touch_their_lock(output, monkeypatch):
    monkeypatch.setattr(hold, "BEAT", 0.02)
    with hold.held(output):
        os.utime(lock(output), (0, 0))
        for _ in range(50 * PATIENCE):
            if lock(output).stat().st_mtime > 0:
                break
            time.sleep(0.02)
        assert lock(output).stat().st_mtime > 0


def test_who_was_held_to_be_dead_ends_before_anything_is_touched(spark, tmp_path, monkeypatch):
    folder, out = tmp_path / "t-0", tmp_path / "out"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(forge.batch([forge.record(b"k", b"v")]))
    output = Output(spark, str(out), "parquet")
    real = job.Work.run

    def run(self):
        done = real(self)
        leave(output, host="far", place="another")
        return done

    monkeypatch.setattr(job.Work, "run", run)
    with pytest.raises(KdumpError, match=r"out is now locked by kdump on far, .*, which considered this export dead"):
        job.run(job.Export(paths=(str(folder),), out=str(out), options={}, conf={}), QUIET)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.kdump-lock", "t-0"]
    assert json.loads(lock(output).read_text())["host"] == "far"


@pytest.mark.parametrize("left", [False, True])
def test_of_many_at_once_one_holds_it(spark, tmp_path, left):
    """This also holds if all of them find the lock of a killed process."""
    output = Output(spark, str(tmp_path / "out"), "parquet")
    dead, inside, most, refused = ended(), 0, 0, 0
    change = threading.Condition()

    def prepare():
        nonlocal refused
        refused = 0
        if left:
            leave(output, pid=dead)

    def others_have_tried():
        return refused == 7

    begin = threading.Barrier(8, action=prepare, timeout=2 * PATIENCE)
    end = threading.Barrier(8, timeout=2 * PATIENCE)

    def one(_):
        nonlocal inside, most, refused
        for _ in range(5):
            begin.wait()
            try:
                with hold.held(output), change:
                    inside += 1
                    most = max(most, inside)
                    assert change.wait_for(others_have_tried, PATIENCE)
                    inside -= 1
            except KdumpError:
                with change:
                    refused += 1
                    change.notify_all()
            end.wait()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(8)))
    assert most == 1
