"""Incremental exports: new records are written once, and all bytes read so far are accounted for."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
import pyarrow.dataset as dataset
import pyarrow.parquet as parquet

from kdump.errors import KdumpError, UsageError
from kdump.spark.export import following, job
from kdump.spark.export.folder import Folder
from kdump.spark.export.following import State
from kdump.spark.export.output import Output
from kdump.spark.source import streaming
from testing import ROOT
from tests.conftest import java_is_missing
from tests.helpers.growing import Log


def export(source, out, **given):
    options = given.pop("options", {})
    return job.Export(paths=(str(source),), out=str(out), options=options, conf={}, **given)


def run(source, out, notes=None, **given):
    """One run of --incremental."""
    said = [] if notes is None else notes
    return following.Follower(export(source, out, **given), job.Listener(said.append, lambda *_: None)).run(
        forever=False
    )


def rows(out, *columns):
    """Return the rows as any reader of Parquet finds them, without Spark's own logs."""
    files = [path for path in Path(out).rglob("*.parquet") if not {"_damaged", "_checkpoint"} & set(path.parts)]
    table = dataset.dataset([str(path) for path in files]).to_table(columns=list(columns) or None)
    return sorted(table.to_pylist(), key=lambda row: (row["partition"], row["offset"]))


def manifest(out):
    return json.loads((out / "_manifest.json").read_text())


def damaged(out):
    return parquet.read_table(out / "_damaged").to_pylist()


def broken(log):
    data = bytearray(log.batch())
    data[-1] ^= 1
    with log.file.open("ab") as file:
        file.write(data)
    return bytes(data)


def test_ten_incremental_exports_are_one_full_export(spark, tmp_path):
    source, out, full = tmp_path / "in", tmp_path / "out", tmp_path / "full"
    logs = [Log(source / "t-0"), Log(source / "t-1")]
    added = []
    for number in range(10):
        logs[number % 2].append(number % 3 + 1)
        if number % 4 == 3:
            logs[0].roll()
        if number == 6:
            broken(logs[1])
        added.append(run(source, out).summary.rows)
        assert len(rows(out)) == sum(added)
        assert added[-1] >= 3
    job.run(export(source, full), job.Listener(lambda _: None, lambda *_: None))
    assert rows(out) == rows(full)
    assert sum(added) == len(rows(full)) == manifest(out)["totals"]["rows"]
    assert [(one["file"], one["position"], one["bytes"]) for one in damaged(out)] == [
        (one["file"], one["position"], one["bytes"]) for one in damaged(full)
    ]
    assert len(damaged(out)) == 1
    assert run(source, out) == following.Added(job.Summary(0, 0, 0, 0, 0, 0, pytest.approx(0, abs=60)), 0, ())
    reported = manifest(out)
    assert len(reported["runs"]) == 10
    held = {str(log): log.stat().st_size for log in source.rglob("*.log")}
    taken = dict.fromkeys(held, 0)
    for file in [file for one in reported["runs"] for file in one["files"]]:
        assert file["start"] == taken[file["file"]], "each run begins where the one before has ended"
        assert sum(file["bytes"].values()) == file["size"] == file["end"] - file["start"]
        taken[file["file"]] = file["end"]
    assert taken == held
    assert reported["totals"]["size"] == sum(held.values())
    assert reported["totals"]["bytes"] == manifest(full)["totals"]["bytes"]
    with pytest.raises(UsageError, match="has no _checkpoint"):
        run(source, full)
    with pytest.raises(UsageError, match="written by --incremental or --follow"):
        job.run(export(source, out, mode="append"), job.Listener(lambda _: None, lambda *_: None))
    with pytest.raises(UsageError, match="was written with format parquet, not orc"):
        run(source, out, format="orc")


def test_schemas_that_a_broker_has_written_since_are_used(spark, registries, tmp_path):
    logs, source, out = registries / "confluent" / "logs", tmp_path / "in", tmp_path / "out"
    shutil.copytree(logs / "_schemas-0", source / "_schemas-0")
    log = source / "_schemas-0" / f"{0:020}.log"
    data = log.read_bytes()
    log.write_bytes(data[: len(data) // 2])
    shutil.copytree(logs / "evolve-0", source / "evolve-0")
    given = {"options": {"topic": "evolve,json-4"}, "partition_by": ("subject",)}
    run(source, out, **given)
    log.write_bytes(data)
    shutil.copytree(logs / "json-4-0", source / "json-4-0")
    run(source, out, **given)
    table = dataset.dataset(out / "subject=json-4-value").to_table(columns=["offset", "schemaId", "valueDecoded"])
    assert table.num_rows > 0
    assert None not in table.column("schemaId").to_pylist()
    with pytest.raises(UsageError, match=r"written with partitionBy \['subject'\], not \['topic', 'date'\]"):
        run(source, out, options=given["options"])


def test_a_run_of_several_steps_is_one_entry_of_the_manifest(spark, tmp_path):
    log, notes = Log(tmp_path / "t-0"), []
    log.append(6)
    added = run(tmp_path / "t-0", tmp_path / "out", notes, options={"maxRecordsPerTrigger": "6"})
    assert (added.steps, added.summary.rows, added.summary.files) == (3, 18, 1)
    (reported,) = manifest(tmp_path / "out")["runs"]
    assert (reported["rowsWritten"], reported["totals"]["batches"], len(reported["files"])) == (18, 6, 1)
    assert reported["files"][0]["end"] == log.file.stat().st_size
    assert notes == ["6 records added: 1 file, 0 damaged ranges"] * 3
    assert sorted(path.name for path in (tmp_path / "out" / "_checkpoint").iterdir() if path.suffix == ".json") == [
        "2.json",
        "3.json",
    ]


def test_what_was_deleted_before_it_was_read_is_reported_and_stands_in_the_manifest(spark, tmp_path):
    log, out, notes = Log(tmp_path / "in" / "t-0"), tmp_path / "out", []
    log.append()
    run(tmp_path / "in", out)
    log.append()
    old = log.file
    log.roll()
    log.append()
    old.unlink()
    added = run(tmp_path / "in", out, notes)
    assert [row["offset"] for row in rows(out)] == [0, 1, 2, 6, 7, 8]
    assert added.lost == (f"{log.folder}: offsets 3 to 5 are gone",)
    assert manifest(out)["runs"][1]["lost"] == list(added.lost)
    assert notes[0] == added.lost[0]


def test_a_segment_that_is_deleted_while_a_step_runs_is_planned_again_and_reported(spark, tmp_path, monkeypatch):
    log, out, notes = Log(tmp_path / "in" / "t-0"), tmp_path / "out", []
    log.append()
    run(tmp_path / "in", out)
    log.append()
    old = log.file
    log.roll()
    log.append()
    real = job.Work.write

    def write(self, **given):
        old.unlink(missing_ok=True)
        return real(self, **given)

    monkeypatch.setattr(job.Work, "write", write)
    added = run(tmp_path / "in", out, notes)
    assert "offsets 3 to 5 are gone" in notes[0]
    assert notes[0].endswith("files have changed meanwhile, trying again")
    assert added.lost == (f"{log.folder}: offsets 3 to 5 are gone",)
    assert [row["offset"] for row in rows(out)] == [0, 1, 2, 6, 7, 8]


class KilledError(Exception):
    """Represents the end of the process."""


@pytest.mark.parametrize("at", ["write_text", "take", "write_runs", "delete"])
def test_a_run_that_is_killed_anywhere_loses_and_doubles_nothing(spark, tmp_path, monkeypatch, at):
    log, out = Log(tmp_path / "in" / "t-0"), tmp_path / "out"
    log.append(2)
    broken(log)
    log.append()
    run(tmp_path / "in", out)
    log.append(2)
    broken(log)
    log.append()

    def ends(self, *_):
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(Folder, at, ends) if hasattr(Folder, at) else patched.setattr(Output, at, ends)
        with pytest.raises(KilledError):
            run(tmp_path / "in", out)
    if at == "take":  # killed on an object store, between copying and deleting, and before an unrenamed manifest
        for name in ("_checkpoint/1.json", "_checkpoint/3.json"):
            (out / f"{name}.new").write_bytes((out / "_checkpoint" / "1.json").read_bytes())
        (out / "_manifest.json").rename(out / "_manifest.json.new")
    run(tmp_path / "in", out)
    assert not list(out.rglob("*.new"))
    offsets = [*range(6), *range(9, 18), *range(21, 24)]
    assert [row["offset"] for row in rows(out)] == offsets
    assert len(damaged(out)) == 2
    reported = manifest(out)
    assert reported["totals"]["rows"] == len(offsets)
    assert reported["totals"]["size"] == log.file.stat().st_size
    assert len(reported["runs"]) == 2
    assert not list(tmp_path.glob(".out.kdump-*"))


def test_rows_that_are_missing_end_the_run_and_are_not_committed(spark, tmp_path, monkeypatch):
    log, out = Log(tmp_path / "in" / "t-0"), tmp_path / "out"
    log.append()
    real = Output.rows
    with monkeypatch.context() as patched:
        patched.setattr(Output, "rows", lambda self: {**real(self), "another": -1})
        with pytest.raises(KdumpError, match="3 rows were read, but 2 are in"):
            run(tmp_path / "in", out)
    assert not (out / "_manifest.json").exists()
    assert run(tmp_path / "in", out).summary.rows == 3


def test_read_committed_adds_what_has_been_decided(spark, tmp_path):
    log, out = Log(tmp_path / "in" / "t-0"), tmp_path / "out"
    given = {"options": {"isolation": "read_committed"}}
    log.append()
    log.append(attributes=0x10, producer_id=1, producer_epoch=0)
    log.append()
    assert run(tmp_path / "in", out, **given).summary.rows == 3
    log.end(1, 0)
    assert run(tmp_path / "in", out, **given).summary.rows == 3
    assert [row["offset"] for row in rows(out)] == [0, 1, 2, 6, 7, 8]


class Following:
    """kdump spark-export --follow on a new terminal."""

    def __init__(self, source, out):
        ours, theirs = pty.openpty()
        self._out = ours
        command = [sys.executable, "-m", "kdump", "spark-export", str(source), "--out", str(out), "--follow"]
        self.process = subprocess.Popen(
            [*command, "--master", "local[1]", "--conf", "spark.driver.memory=512m"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=theirs,
            stdout=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        os.set_blocking(ours, False)
        self.said = ""

    def until(self, text, seconds=240):
        """Read its output up to ``text``."""
        end = time.monotonic() + seconds
        while text not in self.said:
            assert time.monotonic() < end, self.said
            assert self.process.poll() is None or self._read(), self.said
            if not self._read():
                time.sleep(0.05)
        before, _, self.said = self.said.partition(text)
        return before + text

    def _read(self):
        try:
            data = os.read(self._out, 1 << 16).decode()
        except (BlockingIOError, OSError):  # nothing yet, or the process has ended
            return False
        self.said += data.replace("\r\n", "\n")
        return bool(data)

    def interrupt(self):
        """Press Ctrl-C; return the status and the output after it."""
        os.killpg(self.process.pid, signal.SIGINT)
        status = self.process.wait(60)
        while self._read():
            pass
        os.close(self._out)
        return status, self.said


@pytest.mark.xdist_group("spark-processes")
def test_follow_takes_what_comes_until_ctrl_c_and_can_be_started_again(tmp_path):
    if reason := java_is_missing():
        pytest.skip(reason)
    log, out = Log(tmp_path / "in" / "t-0"), tmp_path / "out"
    log.append()
    followed = Following(tmp_path / "in", out)
    followed.until("3 records added: 1 file, 0 damaged ranges")
    followed.until("3 records added in 1 step; waiting for more (Ctrl-C ends)")
    lost = broken(log)
    made = log.batch()
    with log.file.open("ab") as file:
        file.write(made[:-7])
    time.sleep(1)
    assert "damaged ranges" not in followed.said
    with log.file.open("ab") as file:
        file.write(made[-7:])
    followed.until("3 records added: 1 file, 1 damaged range")
    status, said = followed.interrupt()
    assert status == 130, said
    assert "6 records added in 2 steps: 1 file, 2 batches, 1 damaged range" in said
    assert "there are damaged ranges" in said
    assert "Traceback" not in said
    assert [row["offset"] for row in rows(out)] == [0, 1, 2, 6, 7, 8]
    assert [row["bytes"] for row in damaged(out)] == [lost]
    log.roll()
    log.append()
    again = Following(tmp_path / "in", out)
    again.until("3 records added: 1 file, 0 damaged ranges")
    assert again.interrupt()[0] == 130
    assert [row["offset"] for row in rows(out)] == [0, 1, 2, 6, 7, 8, 9, 10, 11]
    assert [one["rowsWritten"] for one in manifest(out)["runs"]] == [6, 3]
    assert manifest(out)["totals"]["size"] == sum(path.stat().st_size for path in log.folder.glob("*.log"))


@pytest.mark.xdist_group("spark-processes")
def test_follow_ends_when_spark_has_died_while_nothing_came(tmp_path):
    if reason := java_is_missing():
        pytest.skip(reason)
    log = Log(tmp_path / "in" / "t-0")
    log.append()
    followed = Following(tmp_path / "in", tmp_path / "out")
    for _ in range(2):  # Spark was alive when it was asked for the first time
        followed.until("waiting for more (Ctrl-C ends)")
    pid = followed.process.pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if b"SparkSubmit" in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(int(child), signal.SIGKILL)
    followed.until("Spark failed: its Java process is gone", 60)
    assert followed.process.wait(60) == 1
    assert [row["offset"] for row in rows(tmp_path / "out")] == [0, 1, 2]


def test_a_step_in_which_nothing_fits_is_not_the_end(tmp_path, monkeypatch):
    log = Log(tmp_path / "in" / "t-0")
    log.append()
    follower = following.Follower(export(tmp_path / "in", tmp_path / "out"), job.Listener(print, print))
    for is_complete in (True, False):
        advance = streaming.Advance({}, [], {}, is_complete)
        monkeypatch.setattr(streaming, "advance", lambda *_, advance=advance, **_given: advance)
        assert follower._step(None, None, State(0, {})) == (State(0, {}), is_complete)
