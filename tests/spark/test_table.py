"""Exports through a writer of Spark: here a test's own writer, which appends JSON files in one step."""

import json
import threading
import uuid
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
from pyspark import RDD
from pyspark.sql import DataFrameWriter
from pyspark.sql.datasource import DataSource, DataSourceWriter, WriterCommitMessage

from kdump.commands.spark_export import command
from kdump.errors import KdumpError, UsageError
from kdump.spark.export import job, output
from testing import forge

FORM = "kdump_test_rows"


class Part(WriterCommitMessage):
    def __init__(self, name):
        self.name = name


class Writer(DataSourceWriter):
    """Tasks write hidden files, and the commit renames them."""

    def __init__(self, folder, overwrite):
        self.folder, self.overwrite = Path(folder), overwrite

    def write(self, iterator):
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f".{uuid.uuid4().hex}"
        part.write_text("".join(json.dumps([row.topic, row.offset, row.value.decode()]) + "\n" for row in iterator))
        return Part(str(part))

    def commit(self, messages):
        if self.overwrite:
            for old in self.folder.glob("*.jsonl"):
                old.unlink()
        for message in messages:
            part = Path(message.name)
            part.rename(part.with_name(f"{part.name[1:]}.jsonl"))


class Rows(DataSource):
    @classmethod
    def name(cls):
        return FORM

    def writer(self, schema, overwrite):  # noqa: ARG002  Spark's signature
        return Writer(self.options["path"], overwrite)


def segment(folder, offsets):
    folder.mkdir(parents=True, exist_ok=True)
    data = b"".join(forge.batch([forge.record(b"k", b"v")], base_offset=offset) for offset in offsets)
    (folder / f"{offsets[0]:020}.log").write_bytes(data + b"\xff" * 20)
    return folder


@pytest.fixture
def export(spark, tmp_path):
    spark.dataSource.register(Rows)
    folder = segment(tmp_path / "in" / "t-0", range(5))

    def run(**given):
        asked = {"mode": "append", "format": FORM, "partition_by": (), "options": {}, **given}
        made = job.Export(paths=(str(folder),), out=str(tmp_path / "out"), conf={}, **asked)
        return job.run(made, job.Listener(lambda _: None, lambda *_: None))

    return run


def offsets(folder):
    lines = [line for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]
    return sorted(json.loads(line)[1] for line in lines)


def test_rows_are_in_the_table_and_their_account_beside_it(export, tmp_path):
    out, account = tmp_path / "out", tmp_path / "out.kdump"
    assert export()[2:5] == (5, 1, 20)
    assert offsets(out) == [0, 1, 2, 3, 4]
    reported = json.loads((account / "_manifest.json").read_text())
    (run,) = reported["runs"]
    assert (run["format"], run["rowsWritten"], run["totals"]["bytes"]["damaged"]) == (FORM, 5, 20)
    assert sum(run["totals"]["bytes"].values()) == run["totals"]["size"]
    assert {one["file"].partition("/")[0] for one in run["output"]} == {"_damaged"}
    assert export(options={"startingOffset": "3"}).rows == 2
    assert offsets(out) == [0, 1, 2, 3, 3, 4, 4]
    assert [run["rowsWritten"] for run in json.loads((account / "_manifest.json").read_text())["runs"]] == [5, 2]
    assert export(mode="overwrite").rows == 5
    assert offsets(out) == [0, 1, 2, 3, 4]
    assert {path.name for path in account.iterdir() if not path.name.startswith(".")} == {"_damaged", "_manifest.json"}
    with pytest.raises(UsageError, match=r"out\.kdump exists already"):
        export(mode="error")


def test_a_second_thread_waits_for_spark(export, monkeypatch):
    """After a signal, the main thread cancels the jobs. A call that the signal has interrupted would get the answer."""
    called = []

    def spy(real):
        def call(*given):
            called.append((real.__name__, threading.current_thread() is threading.main_thread()))
            return real(*given)

        return call

    monkeypatch.setattr(RDD, "collect", spy(RDD.collect))
    monkeypatch.setattr(DataFrameWriter, "save", spy(DataFrameWriter.save))
    export()
    assert sorted(called) == [("collect", False), ("save", False), ("save", False)]


def test_what_others_have_written_is_not_overwritten(export, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "theirs.jsonl").write_text(json.dumps(["t", 9, "v"]) + "\n")
    with pytest.raises(UsageError, match="--mode overwrite changes only outputs of kdump"):
        export(mode="overwrite")
    assert export().rows == 5
    assert offsets(tmp_path / "out") == [0, 1, 2, 3, 4, 9]


def test_a_run_that_ended_after_the_commit_of_the_table_is_not_made_twice(export, tmp_path, monkeypatch):
    def ends(*_):
        raise KdumpError("the end")

    with monkeypatch.context() as patched:
        patched.setattr(job.Work, "_check", ends)
        with pytest.raises(KdumpError, match="the end"):
            export()
    assert offsets(tmp_path / "out") == [0, 1, 2, 3, 4]
    doubt = tmp_path / "out.kdump" / "_writing.json"
    with pytest.raises(KdumpError, match=rf"did not complete. Check in the table's history .* Then delete {doubt}"):
        export()
    assert offsets(tmp_path / "out") == [0, 1, 2, 3, 4]
    doubt.unlink()
    export(options={"startingOffset": "4"})
    assert offsets(tmp_path / "out") == [0, 1, 2, 3, 4, 4]


@pytest.mark.parametrize(("commit", "rows"), [("Version 7", None), ("", [0, 1, 2, 3, 4])])
def test_the_history_of_a_table_shows_what_became_of_a_killed_run(export, tmp_path, monkeypatch, commit, rows):
    doubt = tmp_path / "out.kdump" / "_writing.json"
    doubt.parent.mkdir()
    doubt.write_text(json.dumps({"run": "a1", "began": "2026-11-30T10:00:00Z"}))
    asked = []
    monkeypatch.setattr(output.Table, "_commit_of", lambda _, run: asked.append(run) or commit)
    if rows is None:
        why = r"began at 2026-11-30T10:00:00Z was killed after the table's commit\. Version 7 has its rows"
        with pytest.raises(KdumpError, match=rf"{why} .*\. Then delete {doubt}\. The next export writes all"):
            export()
        assert doubt.exists()
    else:
        assert export().rows == 5
        assert offsets(tmp_path / "out") == rows
        assert not doubt.exists()
    assert asked == ["a1"]


def test_the_commit_of_a_table_says_which_offsets_it_has(export, monkeypatch):
    facts = []
    plain = json.dumps
    monkeypatch.setitem(output.COMMIT_FACTS, FORM, "facts")
    monkeypatch.setattr(output.json, "dumps", lambda what, **how: facts.append(what) or plain(what, **how))
    export(options={"startingOffset": "3"})
    (held,) = [one for one in facts if "offsets" in one and "run" in one]
    assert held["offsets"] == {"t-0": (0, 4)}


def test_a_writer_that_does_not_write_leaves_nothing(export, tmp_path):
    with pytest.raises(KdumpError, match=r"DATA_SOURCE_NOT_FOUND.*parket"):
        export(format="parket")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob("*out*kdump*"))
    assert export().rows == 5


def test_a_growing_table_is_left_to_streams(tmp_path):
    segment(tmp_path / "t-0", range(3))
    given = [str(tmp_path / "t-0"), "--out", str(tmp_path / "out"), "--format", "delta", "--incremental"]
    done = CliRunner().invoke(command, given, standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert "--format delta: --incremental and --follow can only write parquet, orc, json, csv;" in str(done.exception)


def test_where_the_account_is():
    assert output.beside("lake/kafka/") == "lake/kafka.kdump"
    assert job.Export(paths=(), out="lake/kafka", options={}, conf={}, format="delta").account == "lake/kafka.kdump"
    assert job.Export(paths=(), out="lake/kafka", options={}, conf={}).account == "lake/kafka"
