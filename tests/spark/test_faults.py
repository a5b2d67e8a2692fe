"""``spark-export`` under every fault; tests/commands/test_faults.py tests the other commands."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
import pyarrow.dataset as dataset

from kdump.spark.export import output
from kdump.spark.source import planning
from testing import ROOT, forge
from tests.commands import test_faults as faults
from tests.commands.test_faults import FIRST, SECOND, folder, left, run
from tests.conftest import java_is_missing

__all__ = ["folder"]
WAYS = {"at once": [], "incremental": ["--incremental"]}
NUMBERS = {"vanished": errno.ENOENT, "forbidden": errno.EACCES}

every_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture
def export(spark, monkeypatch, capfd):
    """Run the command in the session of the tests; return the status and its messages."""

    def do(source, out, *more):
        status, shown, said = run(monkeypatch, capfd, ["spark-export", str(source), "--out", str(out), *more])
        assert shown == ""
        assert "Traceback" not in said
        assert "Spark failed" not in said
        return status, said

    return do


@pytest.fixture
def strike(spark, monkeypatch):
    """Make reads of a file fail inside a block, in this process and in Spark's workers."""
    reported = Path(os.environ["KDUMP_TEST_FAULTS"])

    @contextmanager
    def do(fault, path):
        if fault in NUMBERS:
            reported.write_text(json.dumps({"open": {str(path): NUMBERS[fault]}}))
        elif fault == "broken disk":
            reported.write_text(json.dumps({"disk": path.stat().st_ino}))
        with monkeypatch.context() as patch:
            faults.FAULTS[fault][0](path, patch)
            yield
        reported.unlink(missing_ok=True)

    yield do
    reported.unlink(missing_ok=True)


@pytest.fixture
def full_disk(export, spark, folder):
    """Limit the size of files that Spark's Java writes, or remove the limit."""
    java = spark.sparkContext._gateway.proc.pid
    assert (
        export(folder, folder.parent / "before")[0] == 0
    )  # its libraries are extracted to files when they are first used
    limits = resource.prlimit(java, resource.RLIMIT_FSIZE)
    yield lambda size=limits[0]: resource.prlimit(java, resource.RLIMIT_FSIZE, (size, limits[1]))
    resource.prlimit(java, resource.RLIMIT_FSIZE, limits)


def offsets(out):
    """Return the offsets of an export, as any reader of Parquet finds them."""
    files = [path for path in out.rglob("*.parquet") if not any(name[0] == "_" for name in path.relative_to(out).parts)]
    return sorted(dataset.dataset([str(path) for path in files]).to_table(["offset"])["offset"].to_pylist())


def contents(out):
    """Return the contents of the files of an output, except Spark's mark of success."""
    return {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and "_SUCCESS" not in path.name}


def unfinished(out):
    """Return temporary files of an export, which must not remain."""
    beside = list(out.parent.glob(f".{out.name}.kdump-*"))
    return beside + [path for path in out.rglob("*") if path.name in {"_temporary", "_parts"} or ".new" in path.name]


@every_way
@pytest.mark.parametrize("fault", faults.FAULTS)
def test_a_segment_that_cannot_be_read_ends_the_export_and_the_next_one_has_all(export, strike, folder, fault, way):
    out = folder.parent.with_name(f"{folder.parent.name}-out")
    other = folder.with_name("u-0")
    other.mkdir()
    (other / FIRST).write_bytes((folder / SECOND).read_bytes())
    data = (folder / SECOND).read_bytes()
    with strike(fault, folder / SECOND):
        status, said = export(folder.parent, out, *WAYS[way])
    assert status == 1
    assert f"error: {folder / SECOND}: " in said
    assert faults.FAULTS[fault][1] in said
    assert not out.exists()
    assert list(out.parent.glob(f".{out.name}.kdump-*")) == []
    (folder / SECOND).unlink(missing_ok=True)
    (folder / SECOND).write_bytes(data)
    assert export(folder.parent, out, *WAYS[way])[0] == 0
    assert offsets(out) == sorted([*range(20), *range(10, 20)])


def test_what_a_failing_disk_does_not_return_is_skipped_where_that_is_asked_for(export, strike, folder):
    out = folder.parent / "out"
    for way in (["--skip-unreadable"], ["--skip-unreadable", "--mode", "append"]):
        with strike("broken disk", folder / SECOND):
            status, said = export(folder, out, *way)
        assert status == 1
        assert f"error: {folder / SECOND}: " in said
        assert "Input/output error" in said
    assert offsets(out) == sorted([*range(10), *range(10)])
    (run, _) = json.loads((out / "_manifest.json").read_text())["runs"]
    assert run["options"]["skipUnreadable"] == "true"
    status, said = export(folder, out, "--mode", "append")
    assert status == 2
    assert "_manifest.json" in said
    assert "--mode overwrite writes the whole output again" in said
    assert export(folder, out, "--mode", "overwrite")[0] == 0
    assert offsets(out) == [*range(20)]


def test_what_could_not_be_read_is_added_when_it_can_be(export, strike, folder):
    out = folder.parent / "out"
    second = (folder / SECOND).read_bytes()
    with strike("forbidden", folder / FIRST):
        assert export(folder, out, "--incremental")[0] == 1
    assert not out.exists()
    (folder / SECOND).unlink()
    assert export(folder, out, "--incremental")[0] == 0
    (folder / SECOND).write_bytes(second)
    with strike("forbidden", folder / SECOND):
        assert export(folder, out, "--incremental")[0] == 1
    assert offsets(out) == [*range(10)]
    assert export(folder, out, "--incremental")[0] == 0
    assert offsets(out) == [*range(20)]


def test_failfast_takes_nothing_where_a_segment_cannot_be_read(export, strike, folder):
    for way in WAYS.values():
        with strike("forbidden", folder / SECOND):
            status, said = export(folder, folder.parent / "out", *way, "--read-mode", "FAILFAST")
        assert (status, said) == (1, f"error: {folder / SECOND}: Permission denied\n")
        assert left(folder) == []


def test_a_segment_that_vanishes_after_the_plan_is_named(export, folder, monkeypatch):
    plan = planning.plan

    def planned(*given):
        made = plan(*given)
        (folder / SECOND).unlink()
        return made

    monkeypatch.setattr(planning, "plan", planned)
    status, said = export(folder, folder.parent / "out")
    assert status == 1
    assert said == f"error: {folder / SECOND}: No such file or directory\n"
    assert left(folder) == []


@every_way
def test_a_path_that_is_not_there_is_named(export, folder, way):
    status, said = export(folder.with_name("u-0"), folder.parent / "out", *WAYS[way])
    assert (status, said) == (1, f"error: {folder.parent}/u-0: No such file or directory\n")
    assert left(folder) == []


@every_way
@pytest.mark.parametrize("place", ["file/out", "/proc/kdump"])
def test_an_output_that_has_no_place_is_reported(export, folder, place, way):
    (folder.parent / "file").write_bytes(b"")
    out = folder.parent / place
    status, said = export(folder, out, *WAYS[way])
    assert status == 1
    assert said.startswith(f"error: {out}")
    assert ": cannot be written: " in said
    assert said.splitlines()[1:] == ["hint: name another place"]
    assert left(folder) == ["file"]


@pytest.mark.parametrize(
    ("way", "name"),
    [
        ("at once", ""),
        ("at once", "_manifest.json"),
        ("incremental", ""),
        ("incremental", "_checkpoint/1.json"),
        ("incremental", "_manifest.json"),
    ],
)
def test_a_full_disk_leaves_no_half_written_output(export, full_disk, folder, monkeypatch, way, name):
    """The disk is full from the start, or when ``name`` is written: earlier commits of --incremental stay."""
    out = folder.parent / "out"
    real = output.Output.write_text

    def write_text(self, where, text):
        if where == name:
            full_disk(100)
        return real(self, where, text)

    if not name:
        full_disk(100)
    monkeypatch.setattr(output.Output, "write_text", write_text)
    status, said = export(folder, out, *WAYS[way])
    assert status == 1
    assert f"error: {out / name}" in said
    assert ": cannot be written: File too large\n" in said
    is_committed = way == "incremental" and name == "_manifest.json"
    files = [path for path in out.rglob("*") if path.is_file()]
    assert offsets(out) == [*range(20)] if is_committed else files == []
    assert unfinished(out) == []
    full_disk()
    monkeypatch.setattr(output.Output, "write_text", real)
    assert export(folder, out, *WAYS[way])[0] == 0
    assert offsets(out) == [*range(20)]
    assert (out / "_manifest.json").exists()


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_full_disk_leaves_nothing_beside_what_stood_there(export, full_disk, folder, mode, monkeypatch):
    out = folder.parent / "before"
    before = contents(out)
    real = output.Output.write_damaged

    def write_damaged(self, rows):
        full_disk(100)
        real(self, rows)

    monkeypatch.setattr(output.Output, "write_damaged", write_damaged)
    status, said = export(folder, out, "--mode", mode)
    assert (status, said.partition("hint: ")[0]) == (1, f"error: {out}: cannot be written: File too large\n")
    assert contents(out) == before


def command(folder, out):
    if reason := java_is_missing():
        pytest.skip(reason)
    return [sys.executable, "-m", "kdump", "spark-export", str(folder), "--out", str(out), "--master", "local[1]"]


@pytest.mark.xdist_group("spark-processes")
def test_it_needs_no_listener(folder):
    reader, writer = os.pipe()
    os.close(reader)
    out = folder.parent / "out"
    with open("/dev/full", "wb") as full:  # noqa: PTH123  a device
        done = subprocess.run(command(folder, out), cwd=ROOT, stdout=full, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == 141
    assert offsets(out) == [*range(20)]
    assert unfinished(out) == []


@pytest.mark.xdist_group("spark-processes")
@pytest.mark.parametrize(
    ("number", "to", "status", "more"),
    [
        (signal.SIGINT, os.killpg, 130, ()),
        (signal.SIGTERM, os.kill, 143, ()),
        (signal.SIGTERM, os.killpg, 143, ()),
        (signal.SIGTERM, os.kill, 143, ("--target-file-size", "1m")),
        (signal.SIGTERM, os.killpg, 143, ("--target-file-size", "1m")),
    ],
    ids=["Ctrl-C", "SIGTERM", "SIGTERM to Java too", "SIGTERM in Spark's writer", "SIGTERM to Java in Spark's writer"],
)
def test_a_signal_leaves_nothing_half_written_and_no_stacks(folder, number, to, status, more):
    out = folder.parent / "out"
    values = [forge.record(b"k", Random(number).randbytes(100_000)) for number in range(300)]
    batches = [forge.batch([value], base_offset=number) for number, value in enumerate(values)]
    (folder / FIRST).write_bytes(b"".join(batches))
    line = [*command(folder, out), *more]
    with subprocess.Popen(line, cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True) as process:
        for _ in range(6000):
            if process.poll() is not None or list(folder.parent.glob(".out.kdump-*/**/*.parquet")):
                break
            time.sleep(0.02)
        to(process.pid, number)  # a terminal and systemd send it to Java, too
        _, said = process.communicate(timeout=120)
    assert process.returncode == status, said
    assert not out.exists()
    assert unfinished(out) == [path for path in unfinished(out) if path.name.endswith("kdump-lock")]
    for word in (b"Py4J", b"ERROR:root", b"\tat "):  # a worker of PySpark's may die with a message of its own
        assert word not in said
