"""Exports through a session: the same records as the JSON lines, every byte accounted for, no silent loss."""

import base64
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
import pyarrow.dataset as dataset
import pyarrow.parquet as parquet

import kdump as package
from kdump import spark_export
from kdump.commands import spark_export as spark_export_command
from kdump.commands.spark_export import command
from kdump.errors import KdumpError, UnreadableError, UsageError
from kdump.spark import failures, session
from kdump.spark.export import commit, job
from kdump.spark.export.folder import Folder
from kdump.spark.export.following import Follower
from kdump.spark.source import planning
from testing import GOLDEN, ROOT, forge
from testing.processes import kdump
from tools.prove import spark as prove_spark
from tools.prove import spark_cluster

BROKERS = GOLDEN / "brokers"


def export(*paths, out, notes=None, **given):
    """Export with the session of the tests."""
    options = given.pop("options", {})
    made = job.Export(paths=tuple(map(str, paths)), out=str(out), options=options, conf={}, **given)
    return job.run(made, job.Listener((notes if notes is not None else []).append, lambda *_: None))


def rows(out, *columns):
    """Return the rows of an export, read by only PyArrow."""
    files = [str(path) for path in Path(out).rglob("*.parquet") if "_damaged" not in path.parts]
    return dataset.dataset(files).to_table(columns=list(columns) or None).to_pylist()


def manifest(out, number=-1):
    return json.loads((Path(out) / "_manifest.json").read_text())["runs"][number]


@pytest.mark.parametrize(
    ("paths", "out", "reason"),
    [
        (["{in}"], "{in}/lake", r"is in the input .*in, which kdump does not change"),
        (["{in}"], "file://{in}/lake", r"is in the input .*in, which kdump does not change"),
        (["file://{in}"], "{in}/lake", r"is in the input .*in, which kdump does not change"),
        (["{in}"], "file:{in}", r"is an input, which kdump does not change: name another place$"),
        (["{in}"], "{out}", r"out exists already: add --mode overwrite or --mode append, or choose another --out$"),
        (["{in}"], "{out}/file", r"file exists already"),
        (
            ["s3://key:secret@logs/b?region=x"],
            "s3a://logs/b/lake",
            r"^s3a://logs/b/lake is in the input s3://logs/b, which",
        ),
        (
            ["s3a://logs/broker-*/"],
            "s3a://logs/broker-1",
            r"is in the input s3a://logs/broker-\*/, which kdump does not change",
        ),
        (["hdfs:/kafka/logs"], "hdfs:/kafka/logs/out", r"is in the input hdfs:/kafka/logs, which"),
        (["hdfs://nn/kafka/logs"], "hdfs:/kafka/logs/out", r"is in the input hdfs://nn/kafka/logs, which"),
        (["hdfs:/kafka/logs"], "hdfs://nn/kafka/logs/out", r"is in the input hdfs:/kafka/logs, which"),
        (["hdfs:///kafka/logs"], "hdfs:/kafka/logs/out", r"is in the input hdfs:///kafka/logs, which"),
    ],
)
def test_what_needs_no_spark_is_refused_before_it_starts(tmp_path, monkeypatch, paths, out, reason):
    for name in ("check", "check_store", "use_stores"):
        monkeypatch.setattr(session, name, lambda *_: None)
    (tmp_path / "in" / "one-0").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").touch()
    names = {"in": tmp_path / "in", "out": tmp_path / "out"}
    made = job.Export(paths=tuple(path.format(**names) for path in paths), out=out.format(**names), options={}, conf={})
    with pytest.raises(UsageError, match=reason):
        job.check(made, adds=False)


@pytest.mark.parametrize(
    "out", ["s3a://logs/c", "s3a://logs/broker-1", "s3a://other/b/lake", "gs://logs/b/lake", "hdfs:/b", "b"]
)
def test_an_output_beside_the_input_is_taken(tmp_path, monkeypatch, out):
    for name in ("check", "check_store", "use_stores"):
        monkeypatch.setattr(session, name, lambda *_: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / ".kdump-lock").touch()
    job.check(job.Export(paths=("s3://logs/b", "in"), out=out, options={}, conf={}), adds=False)


@pytest.fixture(scope="module")
def exported(spark, tmp_path_factory):
    out = tmp_path_factory.mktemp("lake") / "out"
    return out, export(BROKERS, out=out, partition_by=())


def test_rows_are_those_of_the_json_lines(exported):
    done = kdump("dump", "-o", "jsonl", "--show-secrets", "--every-replica", "--type", "data,tombstone", BROKERS)
    assert done.returncode == 0, done.stderr.decode()
    lines, found = done.stdout.splitlines(), rows(exported[0])
    assert list(prove_spark.differences(lines, found)) == []
    assert len(found) == len(lines) == exported[1].rows
    assert {row["magic"] for row in found} == {0, 1, 2}
    assert {row["codec"] for row in found} == {"none", "gzip", "snappy", "lz4", "zstd"}


def test_folders_are_topic_and_utc_date_and_the_topic_stays_in_the_files(spark, tmp_path):
    out = tmp_path / "out"
    folders = [BROKERS / "2.8.2" / "fmtmix-0", BROKERS / "4.2.2" / "nulls-0"]
    summary = export(*folders, out=out)
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    with duckdb.connect() as lake:
        found = lake.sql(f"SELECT topic, count(*) FROM '{out}/*/*/*.parquet' GROUP BY topic").fetchall()
    assert sum(count for _, count in found) == summary.rows
    assert {topic for topic, _ in found} == {"fmtmix", "nulls"}
    files = list(out.glob("topic_name=*/date=*/*.parquet"))
    for path in files:
        table = parquet.read_table(path, columns=["topic", "timestamp"], partitioning=None).to_pylist()
        topic, date = path.parent.parent.name[11:], path.parent.name[5:]
        assert {row["topic"] for row in table} == {topic}
        days = {row["timestamp"] and str(row["timestamp"].date()) for row in table}
        assert days == {None if date == "__HIVE_DEFAULT_PARTITION__" else date}
    assert {parquet.ParquetFile(path).metadata.row_group(0).column(0).compression for path in files} == {"ZSTD"}


def test_the_manifest_accounts_for_every_byte(exported):
    reported = manifest(exported[0])
    assert list(prove_spark.unaccounted(reported)) == []
    assert {file["file"] for file in reported["files"]} == {
        str(path) for path in BROKERS.rglob("*.log") if path.stem.isdecimal()
    }
    assert reported["totals"]["rows"] == reported["rowsWritten"] == exported[1].rows
    assert parquet.read_table(Path(exported[0]) / "_damaged").num_rows == 0


def test_damage_is_written_beside_and_accounted_for(spark, tmp_path):
    folders = sorted({path.parent for path in (GOLDEN / "damaged").rglob("[0-9]*.log")})
    summary = export(*folders, out=tmp_path / "out", partition_by=())
    reported = manifest(tmp_path / "out")
    assert summary.damaged_ranges > 100
    for file in reported["files"]:
        assert sum(file["bytes"].values()) == file["size"]
        assert sum(one["length"] for one in file["damaged"]) == file["bytes"]["damaged"] + file["bytes"]["trailing"]
        assert not file["bytes"]["unreadable"]
    lost = parquet.read_table(tmp_path / "out" / "_damaged").to_pylist()
    assert len(lost) == sum(len(file["damaged"]) for file in reported["files"])
    for row in lost:
        assert Path(row["file"]).read_bytes()[row["position"] : row["position"] + row["length"]] == row["bytes"]
    lines = kdump(
        "dump", "-o", "jsonl", "--show-secrets", "--every-replica", "--type", "data,tombstone", *folders
    ).stdout.splitlines()
    lines = [line for line in lines if json.loads(line)["kind"] == "record"]
    assert list(prove_spark.differences(lines, rows(tmp_path / "out"))) == []
    assert summary.rows == len(lines)


def segment(folder, offsets, value=b"v"):
    folder.mkdir(parents=True, exist_ok=True)
    data = b"".join(forge.batch([forge.record(b"k", value)], base_offset=offset) for offset in offsets)
    (folder / f"{offsets[0]:020}.log").write_bytes(data)
    return folder


def test_nothing_is_overwritten_unless_asked(spark, tmp_path):
    segment(tmp_path / "001-0", range(3))
    out = tmp_path / "out"
    export(tmp_path / "001-0", out=out)
    with pytest.raises(UsageError, match="--mode overwrite or --mode append"):
        export(tmp_path / "001-0", out=out)
    segment(tmp_path / "001-0", range(3, 5))
    assert export(tmp_path / "001-0", out=out, mode="append", options={"startingOffset": "3"}).rows == 2
    assert sorted(row["offset"] for row in rows(out, "offset")) == [0, 1, 2, 3, 4]
    assert [manifest(out, number)["rowsWritten"] for number in (0, 1)] == [3, 2]
    export(tmp_path / "001-0", out=out, mode="overwrite")
    assert len(rows(out)) == 5
    assert {row.topic for row in spark.read.parquet(str(out)).select("topic").collect()} == {"001"}
    (tmp_path / "other").mkdir()
    with pytest.raises(UsageError, match=r"has no _manifest\.json"):
        export(tmp_path / "001-0", out=tmp_path / "other", mode="append")
    assert export(tmp_path / "001-0", out=tmp_path / "other").rows == 5  # a disk that was full left nothing but this


class KilledError(Exception):
    """Represents the end of the process."""


def killed(_):
    raise KilledError


@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
def test_an_export_that_was_killed_at_its_end_is_not_made_twice(spark, tmp_path, mode):
    folder, out, notes = segment(tmp_path / "t-0", range(3)), tmp_path / "out", []
    if mode != "error":
        export(folder, out=out)
    asked = job.Export(paths=(str(folder),), out=str(out), options={}, conf={}, mode=mode)
    with pytest.raises(KilledError):
        job.run(asked, job.Listener(notes.append, lambda *_: None, killed))
    assert (out / "_commit.json").exists()
    summary = export(folder, out=out, notes=notes, mode=mode)
    assert summary.rows == 3
    assert sorted(row["offset"] for row in rows(out, "offset")) == sorted([0, 1, 2] * (1 + (mode == "append")))
    assert ["was killed after its commit, and is complete now" in note for note in notes] == [True] * (
        mode != "overwrite"
    )
    assert not (out / "_commit.json").exists()
    named = [file for run in json.loads((out / "_manifest.json").read_text())["runs"] for file in run["output"]]
    assert {one["file"] for one in named} == {
        str(path.relative_to(out)) for path in out.rglob("*.parquet") if not path.name.startswith(".")
    }
    assert sum(one["rows"] or 0 for one in named) == len(rows(out))
    if mode == "append":  # another one is another one
        assert export(folder, out=out, mode=mode).rows == 3
        assert export(folder, out=out, mode=mode, options={"startingOffset": "2"}).rows == 1
        assert len(rows(out)) == 10


def test_an_append_after_a_commit_that_was_killed_before_its_rename_adds_its_rows(spark, tmp_path, monkeypatch):
    folder, out, notes = segment(tmp_path / "t-0", range(3)), tmp_path / "out", []
    export(folder, out=out)
    (out / "theirs.txt").touch()  # so that the files are moved one by one
    replace = Folder.take_text

    def dies(self, source, old, name):
        if name == commit.COMMIT:
            raise KilledError
        replace(self, source, old, name)

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "take_text", dies)
        patched.setattr(commit, "abandon", lambda *_: None)
        with pytest.raises(KilledError):
            export(folder, out=out, mode="append")
    assert export(folder, out=out, mode="append", notes=notes).rows == 3
    assert any("was killed after its commit, and is complete now" in note for note in notes)
    assert len(rows(out)) == 6
    notes.clear()
    assert export(folder, out=out, mode="append", notes=notes).rows == 3
    assert not any("complete now" in note for note in notes)
    assert len(rows(out)) == 9
    assert not list(out.glob("_commit*"))


def test_every_reader_of_the_docs_reads_the_whole_folder(spark, tmp_path):
    duckdb, pandas, polars = map(pytest.importorskip, ("duckdb", "pandas", "polars"))
    out = tmp_path / "lake" / "kafka"
    loose = tmp_path / "loose" / f"{0:020}.log"  # of no topic: a folder of null
    loose.parent.mkdir()
    loose.write_bytes(forge.batch([forge.record(b"k", b"v")]))
    damaged = tmp_path / "in" / "t-0" / f"{0:020}.log"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"\x01" * 100 + forge.batch([forge.record(b"k", None)]))
    count = export(BROKERS / "4.2.2", loose, damaged, out=out).rows
    assert (out / "_damaged").exists()
    table = (ROOT / "docs" / "spark" / "export.md").read_text()
    calls = dict(re.findall(r"^\| (\w+) \| `(.*lake/kafka.*)` \|$", table, re.MULTILINE))
    assert list(calls) == ["DuckDB", "Polars", "pandas", "PyArrow", "Spark"]
    names = {"duckdb": duckdb, "pandas": pandas, "polars": polars, "pyarrow": __import__("pyarrow"), "spark": spark}
    found = {name: eval(call.replace("lake/kafka", str(out)), names) for name, call in calls.items()}
    assert sum(number for _, number in found["DuckDB"].fetchall()) == count
    assert found["Polars"].collect().height == count
    assert len(found["pandas"]) == count
    assert found["PyArrow"].count_rows() == count
    assert found["Spark"].count() == count


@pytest.mark.parametrize("form", ["orc", "json", "csv"])
def test_other_formats_hold_the_same_rows(spark, tmp_path, form):
    folder = BROKERS / "4.2.2" / "headers-0"
    summary = export(folder, out=tmp_path / "out", format=form, partition_by=("partition", "hour"))
    assert summary.rows == 41
    reader = spark.read.options(header="true") if form == "csv" else spark.read
    frame = reader.format(form).load(str(tmp_path / "out" / "partition_number=0"))
    lines = kdump("dump", "-o", "jsonl", "--encoding", "base64", folder).stdout.splitlines()
    expected = {row["offset"]: row["value"] for row in map(json.loads, lines)}
    found = {int(row.offset): row.value for row in frame.select("offset", "value").collect()}
    if form == "orc":
        found = {offset: None if value is None else base64.b64encode(value).decode() for offset, value in found.items()}
    assert found == expected


def test_decoded_records_are_a_column_of_the_export(spark, tmp_path):
    folder = BROKERS / "4.2.2" / "__transaction_state-0"
    summary = export(folder, out=tmp_path / "out", options={"decode": "auto"})
    found = rows(tmp_path / "out", "decoded")
    assert len(found) == summary.rows
    assert {json.loads(row["decoded"])["key"]["name"] for row in found} == {"TransactionLogKey"}


def test_a_subject_gives_the_export_typed_columns(spark, registries, tmp_path):
    logs = registries / "confluent" / "logs"
    given = {"topic": "evolve", "decode": "auto", "schema": "evolve-value"}
    expected = package.open(logs, topic="evolve", schema="evolve-value").to_arrow(["offset", "valueDecoded"]).read_all()
    values = {row["offset"]: row["valueDecoded"] for row in expected.to_pylist()}
    lines = kdump("dump", "-o", "jsonl", "--decode", "auto", "--topic", "evolve", logs).stdout.splitlines()
    decoded = {line["offset"]: line.get("decoded") for line in map(json.loads, lines)}
    for form in ("parquet", "orc"):  # written by the workers, and by Spark
        out = tmp_path / form
        export(logs, out=out, options=given, format=form)
        found = (
            spark.read.format(form).load(str(out)).select("offset", "decoded", "valueDecoded.*", "schemaId").collect()
        )
        assert len(found) == len(values) == 100
        names = next(value for value in values.values() if value).keys()
        for row in found:
            assert (row.decoded and json.loads(row.decoded)) == decoded[row.offset]
            one = values[row.offset] or dict.fromkeys(names)
            assert [row[name] for name in names if isinstance(one[name], str | int | None)] == [
                value for value in one.values() if isinstance(value, str | int | None)
            ]
    with pytest.raises(UsageError, match="no subject is called 'nothing'"):
        export(logs, out=tmp_path / "none", options={"schema": "nothing"})


def test_each_subject_has_a_table(spark, registries, tmp_path):
    logs, out = registries / "confluent" / "logs", tmp_path / "out"
    summary = export(logs, out=out, options={"topic": "evolve,mixed"}, partition_by=("subject", "date"))
    tables = {path.name: dataset.dataset(path, partitioning="hive").to_table() for path in out.glob("subject=*")}
    undecoded = dataset.dataset(out / "_undecoded", partitioning="hive").to_table()
    assert tables.keys() >= {"subject=evolve-value", "subject=mixed-value"}
    assert sum(table.num_rows for table in tables.values()) + undecoded.num_rows == summary.rows
    assert manifest(out)["rowsWritten"] == sum(file["rows"] or 0 for file in manifest(out)["output"])
    table = package.open(logs, topic="evolve", schema="evolve-value").to_arrow(["offset", "valueDecoded"]).read_all()
    expected = dict(zip(*table.to_pydict().values(), strict=True))
    found = tables["subject=evolve-value"].to_pylist()
    assert {row["offset"] for row in found} == expected.keys()
    for row in found:
        value = expected[row["offset"]]
        assert (row["valueDecoded"] is None) == (value is None)
        assert value is None or row["valueDecoded"].keys() == value.keys()
    assert {row["problem"] for row in undecoded.to_pylist()} == {"no-schema", "payload-invalid", "schema-missing"}
    assert "valueDecoded" not in undecoded.column_names
    frame = spark.read.parquet(str(out / "subject=evolve-value"))
    assert frame.count() == len(found)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"format": "orc"}, "subject cannot be combined with --format orc"),
        ({"target_file_size": 1 << 20}, "subject cannot be combined with --target-file-size"),
        ({"options": {"schema": "evolve-value"}}, "subject cannot be combined with --schema"),
        (
            {"options": {"schemasTopic": "others"}},
            "the given paths have no schema in the topic others: name the log dir of this topic",
        ),
    ],
)
def test_tables_of_subjects_that_cannot_be_written_are_refused(tmp_path, monkeypatch, given, reason):
    def start(*_):
        raise AssertionError("Spark has started")

    monkeypatch.setattr(session, "check", lambda: None)
    monkeypatch.setattr(session, "start", start)
    with pytest.raises(UsageError, match=reason):
        export(BROKERS / "4.2.2" / "txn-0", out=tmp_path / "out", partition_by=("subject",), **given)


def test_failfast_ends_the_export_and_names_file_and_byte(spark, tmp_path):
    folder = segment(tmp_path / "t-0", range(3))
    path = folder / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(failures.MalformedError) as error:
        export(folder, out=tmp_path / "out", options={"mode": "FAILFAST"})
    assert f"{path}: byte " in str(error.value)
    assert "the checksum is wrong" in str(error.value)
    assert export(folder, out=tmp_path / "out2").rows == 2


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED", "FAILFAST"])
def test_a_file_that_cannot_be_read_ends_the_export_and_nothing_is_published(spark, tmp_path, monkeypatch, mode):
    folder = tmp_path / "in"
    segment(folder / "t-0", range(3))
    vanishing = segment(folder / "t-1", range(5)) / f"{0:020}.log"
    data = vanishing.read_bytes()
    plan = job.planning.plan

    def planned(*args):
        made = plan(*args)
        vanishing.unlink()
        return made

    monkeypatch.setattr(job.planning, "plan", planned)
    out = tmp_path / "lake" / "out"
    given = {"mode": mode, "skipUnreadable": "true"}
    with pytest.raises(UnreadableError, match=f"{vanishing}: No such file or directory"):
        export(folder / "t-0", folder / "t-1", out=out, options=given)
    monkeypatch.setattr(job.planning, "plan", plan)
    with pytest.raises(UnreadableError, match="nowhere: No such file or directory"):
        export(folder, tmp_path / "nowhere", out=out, options=given)
    assert not list(tmp_path.glob("lake/*"))
    vanishing.write_bytes(data)
    assert export(folder / "t-0", folder / "t-1", out=out, options=given).rows == 8


@pytest.mark.parametrize("way", ["append", "incremental"])
def test_nothing_is_added_where_a_run_before_left_out_what_it_could_not_read(spark, tmp_path, way):
    folder = segment(tmp_path / "t-0", range(3))
    out = tmp_path / "out"
    quiet = job.Listener(lambda _: None, lambda *_: None)
    goes_on = {"incremental": True, "append": False}[way]

    def run(**options):
        made = job.Export(paths=(str(folder),), out=str(out), options=options, conf={}, mode="append")
        if goes_on:
            return Follower(replace(made, mode="error"), quiet).run(forever=False).summary.rows
        return job.run(made, quiet).rows

    assert run() == 3
    path = out / "_manifest.json"
    reported = json.loads(path.read_text())
    reported["runs"][0]["files"][0]["damaged"].append(
        {"position": 0, "length": 0, "damage": "unreadable", "reason": "Input/output error"}
    )
    path.write_text(json.dumps(reported))
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    for options in ({}, {"skipUnreadable": "true"}):
        with pytest.raises(UsageError, match=f"because {folder}/{0:020}.log could not be read .see _manifest.json."):
            run(**options)
    assert {file: file.read_bytes() for file in out.rglob("*") if file.is_file()} == before
    reported["runs"][0]["options"]["skipUnreadable"] = "true"  # then it was damage
    path.write_text(json.dumps(reported))
    assert run(skipUnreadable="true") == (0 if goes_on else 3)
    with pytest.raises(UsageError, match="could not be read"):
        run()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"mode": "Append"}, "--mode: expected error, overwrite, append; found Append"),
        ({"partition_by": ("topic", "day")}, "--partition-by: expected none, or one or more of topic, .*; found day"),
        ({"target_file_size": 0}, "--target-file-size: expected at least 1 byte, found 0"),
    ],
)
def test_an_export_in_python_refuses_what_the_command_refuses(given, says):
    with pytest.raises(UsageError, match=f"^{says}$"):
        job.Export(paths=("in",), out="out", options={}, conf={}, **given)


def test_options_of_kafkas_source_select_the_records_of_an_export(tmp_path):
    made = job.Export(paths=(str(BROKERS / "4.2.2"),), out=str(tmp_path / "out"), options={"subscribe": "txn"}, conf={})
    planned = planning.plan(job.source_options(made))
    assert {segment.topic for segment in planned if segment.splits} == {"txn"}
    with pytest.raises(UsageError, match="option subscribe cannot be combined with --incremental or --follow"):
        Follower(made, job.Listener(print, print))


@pytest.mark.parametrize(("name", "shown"), [("dedupe", "--dedupe"), ("remote", "option remote")])
def test_a_run_that_adds_records_takes_only_options_of_a_stream(name, shown):
    made = job.Export(paths=("in",), out="out", options={name: "true"}, conf={})
    with pytest.raises(UsageError, match=f"^{shown} cannot be combined with --incremental or --follow$"):
        Follower(made, job.Listener(print, print))


def test_an_export_writes_only_records():
    with pytest.raises(UsageError, match=r"^option output: an export writes records$"):
        job.source_options(job.Export(paths=("in",), out="out", options={"output": "damaged"}, conf={}))


def test_a_run_that_adds_records_has_no_mode():
    made = job.Export(paths=("in",), out="out", options={}, conf={}, mode="append")
    with pytest.raises(UsageError, match=r"^--mode append cannot be combined with --incremental or --follow$"):
        Follower(made, job.Listener(print, print))


def test_each_damaged_range_is_reported_once(spark, tmp_path, capfd):
    folder = segment(tmp_path / "t-0", range(3))
    path = folder / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    size = len(data) // 3
    data[size - 3] ^= 1
    path.write_bytes(data)
    met = []
    made = job.Export(paths=(str(folder),), out=str(tmp_path / "out"), options={}, conf={})
    job.run(made, job.Listener(lambda _: None, lambda *_: None, damage=lambda *reported: met.append(reported)))
    ((file, damage),) = met
    assert (file, damage.position, damage.size, damage.kind) == (str(path), 0, size, "crc")


def test_missing_rows_are_noticed(spark, tmp_path, monkeypatch):
    folder = segment(tmp_path / "t-0", range(3))
    real = job.Output.rows
    monkeypatch.setattr(job.Output, "rows", lambda self: {**real(self), "another": -1})
    with pytest.raises(KdumpError, match="3 rows were read, but 2 are in"):
        export(folder, out=tmp_path / "out")
    monkeypatch.setattr(job.Output, "rows", real)
    numbered = job.numbered

    def with_another(planned):
        for one in numbered(planned):
            for split in one.splits:
                split.summary.records += 1
            yield one

    monkeypatch.setattr(job, "numbered", lambda planned: list(with_another(planned)))
    with pytest.raises(KdumpError, match="hold 4 records to export, but 3 were read"):
        export(folder, out=tmp_path / "out2")


def test_what_cannot_be_found_is_reported_before_spark_starts(monkeypatch, tmp_path):
    monkeypatch.setattr(session, "start", None)
    with pytest.raises(KdumpError, match="No such file or directory"):
        export(tmp_path / "nowhere", out=tmp_path / "out")
    with pytest.raises(UsageError, match="option isolation: expected"):
        export(tmp_path, out=tmp_path / "out", options={"isolation": "dirty"})


@pytest.mark.parametrize(
    ("files", "is_free"),
    [
        ({}, True),
        ({".kdump-1": "x"}, True),
        ({"part-0.parquet": "x"}, False),
        ({"part-0.parquet": "x", "_commit.json": '{"a": 1}'}, True),
        ({"part-0.parquet": "x", "_commit.json.new": '{"a": 1}'}, True),
        ({"part-0.parquet": "x", "_commit.json.new": '{"a": '}, False),
        ({"part-0.parquet": "x", "_commit.json.new": ""}, False),
        ({"_commit.json.new": '{"a": '}, True),
    ],
)
def test_an_output_that_is_taken_is_refused_before_spark_starts(monkeypatch, tmp_path, files, is_free):
    """A text that was not completely written completes no commit."""
    monkeypatch.setattr(session, "start", None)
    folder = segment(tmp_path / "t-0", range(3))
    out = tmp_path / "out"
    out.mkdir()
    for name, text in files.items():
        (out / name).write_text(text)
    kind, says = (TypeError, "not callable") if is_free else (KdumpError, "exists")
    with pytest.raises(kind, match=says):
        export(folder, out=out)
    assert sorted(path.name for path in out.iterdir()) == sorted(files)


def test_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KdumpError, match=r"Spark runs on Java 17 or later .*apt install openjdk-17"):
        session.check()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    for home in (tmp_path / "gone", tmp_path):
        monkeypatch.setenv("SPARK_HOME", str(home))
        with pytest.raises(
            KdumpError, match=rf"^SPARK_HOME \({home}\) has no program bin/spark-submit: .* or unset it"
        ):
            session.check()
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    session.check()
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT")
    (tmp_path / "bin" / "spark-submit").touch(0o755)
    session.check()
    monkeypatch.setattr(session, "find_spec", lambda name: None if name == "pyspark" else sys)
    with pytest.raises(KdumpError, match=r"pyspark not installed: pip install 'kdump\[spark\]'"):
        session.check()


@pytest.mark.xdist_group("spark-processes")
def test_the_command_runs_with_a_bare_path(tmp_path):
    java = shutil.which("java")
    if java is None:
        pytest.skip("Java is not installed: Spark needs Java 17 or later")
    folder = segment(tmp_path / "t-0", range(3))
    data = (folder / f"{0:020}.log").read_bytes()
    (folder / f"{3:020}.log").write_bytes(data[: len(data) // 3 - 4])
    installed = Path(sys.executable).with_name("kdump")
    command = [str(installed)] if installed.exists() else [sys.executable, "-m", "kdump"]
    bare = {name: os.environ.get(name, "/") for name in ("HOME", "SPARK_SUBMIT_OPTS")}
    bare |= {"PATH": f"{Path(java).parent}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "spark-export", "t-0", "--out", "out", "--master", "local[1]", "--conf", "spark.driver.memory=512m"],
        cwd=tmp_path,
        env=bare,
        capture_output=True,
        check=False,
    )
    reported = done.stderr.decode()
    assert done.returncode == 3, reported
    assert "note: 2 files, 3 batches, 3 records, 1 damaged ranges" in reported
    assert "out/_damaged has the bytes" in reported
    assert done.stdout == b""
    assert len(rows(tmp_path / "out")) == 3


@pytest.mark.xdist_group("spark-processes")
def test_executors_whose_python_lacks_something_are_reported_by_name(tmp_path):
    if shutil.which("java") is None:
        pytest.skip("Java is not installed: Spark needs Java 17 or later")
    segment(tmp_path / "t-0", range(3))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    python = tmp_path / "bare" / "bin" / "python"
    done = subprocess.run(
        [sys.executable, "-m", "kdump", "spark-export", "t-0", "--out", "out", "--master", "local[1]"],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": str(python), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    reported = rf"error: Spark failed: {python} on \S.* has no \w+: pip install 'kdump\[spark\]' there,"
    assert re.search(reported, done.stderr), done.stderr
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_read_is_said_at_the_end_with_status_1(monkeypatch, tmp_path):
    closed = UnreadableError("/logs/t-0/00000000000000000000.log", "Permission denied")
    summary = job.Summary(2, 3, 3, 1, 10, 1000, 1.0, (closed,))
    monkeypatch.setattr(spark_export, "run", lambda _, listener: listener.done(summary))
    done = CliRunner().invoke(command, [str(tmp_path), "--out", "out"], standalone_mode=False)
    assert done.return_value == 1
    assert "error: /logs/t-0/00000000000000000000.log: Permission denied\n" in done.stderr
    assert "error: there are damaged ranges" in done.stderr


def test_damage_that_an_export_leaves_out_is_not_said_to_be_in_its_manifest(monkeypatch, tmp_path):
    summary = job.Summary(2, 3, 3, 1, 10, 1000, 1.0)
    monkeypatch.setattr(spark_export, "run", lambda _, listener: listener.done(summary))
    words = [str(tmp_path), "--out", "out", "--read-mode", "dropmalformed"]
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert done.return_value == 3
    assert "error: damaged ranges are left out (10 B): --read-mode PERMISSIVE lists them\n" in done.stderr
    assert "manifest" not in done.stderr


def test_masters_that_cannot_be_are_reported_before_spark_starts(monkeypatch):
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    for master in ("nonsense", "local[0]", "local[2,0]"):
        expected = f"--master {master}: expected local[N], spark://HOST:PORT, yarn or k8s://URL"
        with pytest.raises(UsageError, match=re.escape(expected)):
            session.check_master(master)
    with pytest.raises(KdumpError, match="HADOOP_CONF_DIR or YARN_CONF_DIR"):
        session.check_master("yarn")
    with pytest.raises(KdumpError, match=r"no Spark master answers there .*refused"):
        session.check_master(f"spark://127.0.0.1:{spark_cluster.free_port()}")
    with pytest.raises(KdumpError, match="no Spark master answers there"):
        session.check_master("spark://host-without-port")
    with pytest.raises(UsageError, match=r"--master sc://host: .* does not work with Spark Connect"):
        session.check_master("sc://host")
    with monkeypatch.context() as patched:
        patched.setenv("SPARK_REMOTE", "sc://host")
        with pytest.raises(UsageError, match=r"SPARK_REMOTE sc://host: .* does not work with Spark Connect"):
            session.check_master("local[2]")
    for master in ("local", "local[*]", "local[2]", "local[2,3]", "k8s://https://host:443"):
        session.check_master(master)


@pytest.mark.parametrize(
    ("raised", "reported"),
    [
        (
            "ModuleNotFoundError: No module named 'kdump'",
            "Spark failed: python3 on worker-7 has no kdump: pip install 'kdump[spark]' there",
        ),
        ("ModuleNotFoundError: No module named 'pyarrow'", "python3 on worker-7 has no pyarrow: pip install"),
        (
            "pyspark.errors.PySparkImportError: [PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed",
            "on worker-7 has no pyarrow: pip install",
        ),
        ("ZeroDivisionError: division by zero", "in a task: ZeroDivisionError: division by zero"),
    ],
)
def test_the_error_that_ends_a_task_is_reported_without_the_stack(monkeypatch, raised, reported):
    from py4j.protocol import Py4JError

    stack = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    code\n'
    monkeypatch.setattr(failures, "_python", lambda: "python3")
    with pytest.raises(KdumpError) as error, failures.errors():
        raise Py4JError(
            "Lost task 0.3 (TID 3) (worker-7 executor 1): An exception was thrown from the Python worker:\n"
            f"{stack}{raised}\n\n\tat org.apache.Spark"
        )
    assert reported in str(error.value)
    assert "Traceback" not in str(error.value)


def test_usage_errors_end_with_status_2(tmp_path):
    assert kdump("spark-export", tmp_path, "--out", tmp_path / "out", "--partition-by", "day").returncode == 2
    assert kdump("spark-export", tmp_path, "--out", tmp_path / "out", "--conf", "novalue").returncode == 2
    done = kdump("spark-export", tmp_path, "--out", tmp_path / "out", "--starting-offset", "x")
    assert (done.returncode, done.stderr) == (2, b"error: --starting-offset: expected a number, 0 or more, found 'x'\n")


DAY = 86_400_000
FIRST_DAY = 1_700_006_400_000
"""2023-11-15 in UTC, in ms."""


def small_partitions(folder, count=200, days=3, base=0):
    """Partitions of four topics, each with records of several days; return their rows: topic, offset, key."""
    found = []
    for number in range(count):
        topic, inside = f"t{number % 4}", folder / f"t{number % 4}-{number // 4}"
        inside.mkdir(parents=True, exist_ok=True)
        content = b""
        for day in range(days):
            offset, key = base + day * 2, b"k%d-%d" % (number, day)
            records = [forge.record(key, b"v" * 50, offset=at) for at in range(2)]
            time = FIRST_DAY + day * DAY
            content += forge.batch(records, base_offset=offset, base_timestamp=time, max_timestamp=time)
            found += [(topic, number // 4, at, key) for at in (offset, offset + 1)]
        (inside / f"{base:020}.log").write_bytes(content)
    return sorted(found)


def exported_rows(out):
    return sorted((row["topic"], row["partition"], row["offset"], row["key"]) for row in rows(out))


def data_files(out):
    return [path for path in Path(out).rglob("*.parquet") if "_damaged" not in path.parts]


def test_files_of_a_size_are_few_and_hold_the_same_rows(spark, tmp_path, monkeypatch):
    """200 small partitions have 3 dates each: otherwise a task writes a file into each folder of its records."""
    monkeypatch.setattr(planning, "TASK_COST", 1)  # as many tasks as larger partitions would have
    written = small_partitions(tmp_path / "in")
    many, few = tmp_path / "many", tmp_path / "few"
    export(tmp_path / "in", out=many, options={"minPartitions": "12"})
    before = spark.conf.get("spark.sql.adaptive.advisoryPartitionSizeInBytes")
    summary = export(tmp_path / "in", out=few, options={"minPartitions": "12"}, target_file_size=1 << 20)
    assert spark.conf.get("spark.sql.adaptive.advisoryPartitionSizeInBytes") == before
    assert exported_rows(few) == exported_rows(many) == written
    assert summary.rows == len(written)
    assert len(data_files(few)) == len({path.parent for path in data_files(few)}) == 12  # one for each topic and date
    assert len(data_files(many)) >= 36
    reported = manifest(few)
    assert {one["file"]: one["rows"] for one in reported["output"] if "_damaged" not in one["file"]} == {
        str(path.relative_to(few)): parquet.read_metadata(path).num_rows for path in data_files(few)
    }


def test_appended_files_and_those_without_folders_are_few_too(spark, tmp_path):
    written = small_partitions(tmp_path / "one", count=40)
    more = small_partitions(tmp_path / "two", count=40, base=100)
    out = tmp_path / "out"
    for folder, mode in (("one", "error"), ("two", "append")):
        export(tmp_path / folder, out=out, mode=mode, target_file_size=1 << 20)
    assert exported_rows(out) == sorted(written + more)
    assert len(data_files(out)) == 24
    flat = tmp_path / "flat"
    export(tmp_path / "one", out=flat, partition_by=(), options={"minPartitions": "40"}, target_file_size=1 << 20)
    assert exported_rows(flat) == written
    assert len(data_files(flat)) <= 2


def test_large_folders_become_several_files_of_about_the_size(spark, tmp_path):
    inside = tmp_path / "in" / "t-0"
    inside.mkdir(parents=True)
    seed = random.Random(1)
    for number in range(16):
        records = [forge.record(b"k", seed.randbytes(1000), offset=at) for at in range(1000)]
        content = forge.batch(records, base_offset=number * 1000, base_timestamp=FIRST_DAY, max_timestamp=FIRST_DAY)
        (inside / f"{number * 1000:020}.log").write_bytes(content)
    out = tmp_path / "out"
    export(tmp_path / "in", out=out, options={"minPartitions": "16"}, target_file_size=2 << 20)
    sizes = [path.stat().st_size for path in data_files(out)]
    assert len(rows(out, "offset")) == 16_000
    assert 2 <= len(sizes) <= 16
    assert max(sizes) < 6 << 20


def test_steps_write_few_files(spark, tmp_path):
    written = small_partitions(tmp_path / "in", count=40)
    made = job.Export(
        paths=(str(tmp_path / "in"),),
        out=str(tmp_path / "out"),
        options={"minPartitions": "40"},
        conf={},
        target_file_size=1 << 20,
    )
    for base in (0, 100):
        written += small_partitions(tmp_path / "in", count=40, base=base) if base else []
        added = spark_export.Follower(made, job.Listener(lambda _: None, lambda *_: None)).run(forever=False)
        assert added.summary.rows == 240
    assert exported_rows(tmp_path / "out") == sorted(written)
    assert len(data_files(tmp_path / "out")) == 24


@pytest.mark.parametrize("follows", [False, True])
def test_it_reports_how_far_listing_and_planning_are(spark, tmp_path, follows):
    small_partitions(tmp_path / "in", count=5)
    made = job.Export(paths=(str(tmp_path / "in"),), out=str(tmp_path / "out"), options={}, conf={})
    reported = []
    listener = job.Listener(lambda _: None, lambda *done: reported.append(done))
    if follows:
        spark_export.Follower(made, listener).run(forever=False)
    else:
        spark_export.run(made, listener)
    texts = [what for what, _, _ in reported]
    assert texts[:6] == [*(f"listing: {n} segments of {n} partitions so far" for n in range(1, 6)), ""]
    if not follows:
        first = texts.index("reading headers")
        assert [text for text in texts if text.startswith("planning")] == [
            f"planning: {n} of 5 partitions" for n in range(5)
        ]
        assert first < texts.index("planning: 0 of 5 partitions") < texts.index("writing")


def test_progress_is_shown_now_and_then_and_taken_away(monkeypatch):
    out, now = io.StringIO(), [100.0]
    monkeypatch.setattr(spark_export_command.time, "monotonic", lambda: now[0])
    progress = spark_export_command._Progress(out)
    for number in range(9):
        now[0] += 0.1
        progress(f"listing: {number} segments", 0, 0)
    progress("reading", 3, 8)
    progress("", 0, 0)
    shown = [text.strip() for text in out.getvalue().split("\r")]
    numbers = [int(text.split()[1]) for text in shown if text.startswith("listing")]
    assert numbers[0] == 0
    assert 2 < len(numbers) < 7
    assert "reading: 3 of 8 tasks" in shown[-3]
    assert shown[-2:] == ["", ""]
    spark_export_command._Progress(None)("listing", 0, 0)  # in a pipe
