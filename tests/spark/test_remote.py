"""Segments that only pyarrow.fs can open: in an S3 server on loopback, and in Arrow's in-memory file system."""

import pickle
import re
import shutil
import sys
import threading
from types import SimpleNamespace

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kdump[spark]'")
from pyarrow import fs

from kdump.cli import main
from kdump.errors import UnreadableError, UsageError
from kdump.log_dirs import remote
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.local import LOCAL
from kdump.spark.session import store_settings
from kdump.spark.source import options as words
from kdump.spark.source import planning, reading, register, streaming
from testing import GOLDEN
from tests.helpers.asking import LINES

BROKER = GOLDEN / "brokers" / "4.2.2"
FOLDERS = ("txn-0", "c-zstd-0", "multi-0", "multi-1")


def read(*paths, **given):
    options = words.SourceOptions(paths=tuple(map(str, paths)), **given)
    splits = [split for planned in planning.plan(options) for split in planned.splits]
    return [row for split in splits for batch in reading.read(split, options) for row in batch.to_pylist()]


@pytest.fixture(scope="module")
def bucket():
    """A bucket with some partition folders, as a URI with keys and address."""
    server = pytest.importorskip("moto.server", reason="moto is not installed: pip install 'moto[s3]' flask flask-cors")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    try:
        _, port = running.get_host_and_port()
        address = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
        system, _ = fs.FileSystem.from_uri(f"s3://key:secret@logs?{address}")
        system.create_dir("logs")
        for folder in FOLDERS:
            for path in (BROKER / folder).iterdir():
                with system.open_output_stream(f"logs/broker/{folder}/{path.name}") as out:
                    out.write(path.read_bytes())
        yield "s3://key:secret@logs/{}?" + address
    finally:
        running.stop()


def same(rows, local):
    assert len(rows) == len(local) > 0
    for row, other in zip(rows, local, strict=True):
        assert row.pop("file") == "s3://logs/broker/" + other.pop("file").removeprefix(f"{BROKER}/")
        assert row == other


def test_segments_of_a_bucket_are_surveyed_at_the_same_time(monkeypatch):
    system = fs.SubTreeFileSystem(str(BROKER), fs.LocalFileSystem())
    files = remote.RemoteFiles(system, "s3://")
    (partition,) = Finder().find(["txn-0"], files)
    together = threading.Barrier(len(partition.segments), timeout=60)
    real = planning.attempt

    def attempt(segment, *rest, **more):
        together.wait()
        return real(segment, *rest, **more)

    monkeypatch.setattr(planning, "attempt", attempt)
    segments = list(partition.segments)
    assert 1 < len(segments) <= planning.READERS
    assert planning.survey_here(segments, 1 << 20, False) == [real(segment, 1 << 20) for segment in segments]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_vanishes_from_a_bucket_is_looked_for_there(bucket, monkeypatch):
    options = words.SourceOptions(paths=(bucket.format("broker/txn-0"),))
    shown = "s3://logs/broker/txn-0/00000000000000000000.log"
    assert remote.is_there(shown, options.paths)
    assert not remote.is_there(shown + ".gone", options.paths)
    monkeypatch.setattr(streaming, "time", SimpleNamespace(sleep=lambda _: None))
    for missing, tries in (("", 1), (".gone", streaming.TRIES)):
        looks = []

        def look(_reported, looks=looks, missing=missing):
            looks.append(1)
            raise UnreadableError(shown + missing, "it cannot be read")

        with pytest.raises(UnreadableError):
            streaming._until_still(look, options)
        assert len(looks) == tries


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_rows_from_s3_are_those_of_the_local_files(bucket):
    names = sorted(FOLDERS)
    same(read(bucket.format("broker"), include_control=True), read(*(BROKER / n for n in names), include_control=True))
    same(read(bucket.format("broker/multi-[0-9]")), read(BROKER / "multi-0", BROKER / "multi-1"))
    same(read(bucket.format("**/00000000000000000000.log"), topic=("c-zstd",)), read(BROKER / "c-zstd-0")[:159])


def test_splits_of_a_bucket_go_to_tasks_and_no_key_is_shown(bucket, spark):
    frame = spark.read.format("kdump").load(bucket.format("broker"))
    assert frame.count() == len(read(*(BROKER / name for name in FOLDERS)))
    files = {row.file for row in frame.select("file").distinct().collect()}
    assert all(file.startswith("s3://logs/broker/") for file in files)
    with pytest.raises(UnreadableError, match=r"logs/nowhere: No such file or directory") as error:
        read(bucket.format("nowhere"))
    assert "secret" not in str(error.value)


def test_the_settings_of_the_session_open_a_bucket_and_no_key_is_shown(bucket, spark, capfd):
    address = re.search(r"endpoint_override=([\d.:]+)", bucket)[1]
    given = {"access.key": "key", "secret.key": "secret", "endpoint": f"http://{address}", "path.style.access": "true"}
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in given.items():
        hadoop.set(f"fs.s3a.{name}", value)
    try:
        assert store_settings(spark).items() >= {f"fs.s3a.{name}": value for name, value in given.items()}.items()
        register(spark)
        frame = spark.read.format("kdump").load("s3a://logs/broker")
        assert frame.count() == len(read(*(BROKER / name for name in FOLDERS)))
        frame.explain("extended")
    finally:
        for name in given:
            hadoop.unset(f"fs.s3a.{name}")
        register(spark)
    assert "fs.s3a.secret.key" not in store_settings(spark)
    assert "secret" not in "".join(capfd.readouterr())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_commands_say_of_a_bucket_what_they_say_of_the_local_files(bucket, spark, capfd, monkeypatch, tmp_path):
    def run(*args):
        monkeypatch.setattr(sys, "argv", ["kdump", *map(str, args)])
        status, (out, said) = main(), capfd.readouterr()
        return status, out.replace(f"{tmp_path}/", "s3://logs/"), said.replace(f"{tmp_path}/", "s3://logs/")

    for folder in FOLDERS:
        shutil.copytree(BROKER / folder, tmp_path / "broker" / folder)
    for line in (["check", "-o", "jsonl"], ["stats", "-o", "jsonl"], ["offsets"], ["verify-index"], ["transactions"]):
        alone = run(*line, tmp_path / "broker")
        assert run(*line, bucket.format("broker")) == alone
        assert run(*line, bucket.format("broker"), "--master", "local[2]") == alone
        assert run(*line, bucket.format("broker"), "--jobs", "2") == alone
        assert alone[1]
    record = f"{FOLDERS[0]}@0"
    for line in (["dump", "-o", "jsonl"], ["get", record, "--in"], ["metadata"], ["groups"], ["compaction"]):
        assert run(*line, bucket.format("broker")) == run(*line, tmp_path / "broker")
    for name, place in (("local", tmp_path / "broker"), ("store", bucket.format("broker"))):
        assert run("salvage", place, "--out", tmp_path / name)[0] == 0
    saved = [path for path in (tmp_path / "local" / "logs").rglob("*") if path.is_file()]
    assert len(saved) > 5
    for path in saved:
        copy = tmp_path / "store" / path.relative_to(tmp_path / "local")
        assert copy.read_bytes() == path.read_bytes()
    status, _, said = run("check", bucket.format("broker"), "--topic", "nowhere")
    assert (status, said) == (1, "error: no partition of topic 'nowhere' is in s3://logs/broker\n")


@pytest.mark.parametrize("place", ["broker", "empty"])
def test_no_command_shows_the_keys_of_a_bucket(bucket, tmp_path, place, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    uri = bucket.format(place)
    lines = [[word.format(folder=uri) for word in line] for line in LINES.values()]
    lines += [
        [*line.split(), uri] for line in ("dump --follow", "check", "verify-index", "report", "report --text", "")
    ]
    lines += [[*line.split(), uri, "--out", "o"] for line in ("salvage", "slice --offset 3", "rebuild-cluster")]
    lines += [["get", "nowhere-0@3", "--in", uri], ["rebuild-index", uri, "--out", "indexes"]]
    lines += [["sql", "select count(*) from records", uri], ["sql", "select * from findings", uri]]
    lines += [["slice", uri, uri], [uri, "--topic"], ["get", uri], ["dump", f"{uri}@5"]]
    for line in lines:
        monkeypatch.setattr(sys, "argv", ["kdump", *line])
        main()
        shown = "".join(capfd.readouterr())
        assert shown, line
        assert "secret" not in shown, line
        assert "Traceback" not in shown, line


def test_what_stands_here_is_no_uri(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="Missing bucket name"):
        remote.as_written("s3:/here")
    (tmp_path / "s3:").mkdir()
    (tmp_path / "s3:" / "here").touch()
    for path in ("s3:/here", "a:/b", "orders-0", "../x"):
        assert remote.as_written(path) == (LOCAL, path)


def test_a_scheme_that_nothing_opens_is_reported():
    with pytest.raises(UsageError, match=r"ftp://host/path: .*"):
        read("ftp://user:secret@host/path")


def test_every_command_reads_a_file_uri(capfd, monkeypatch):
    for line in (["dump", "{}", "-o", "jsonl"], ["get", "one-0@0", "--in", "{}"], ["check", "{}"]):
        results = []
        for place in (BROKER / "one-0", (BROKER / "one-0").as_uri()):
            monkeypatch.setattr(sys, "argv", ["kdump", *(word.format(place) for word in line)])
            results.append((main(), capfd.readouterr()))
        assert results[0] == results[1]
        assert results[0][0] == 0


def test_hadoop_names_and_file_uris():
    assert remote.place("file:///var/kafka%20data") == (LOCAL, "/var/kafka data")
    place, path = remote.place("s3a://bucket/logs?region=us-east-1")
    assert (place.shown(path), path) == ("s3://bucket/logs", "bucket/logs")
    assert pickle.loads(pickle.dumps(place)) == place


def test_local_paths_become_absolute_so_that_tasks_find_them(monkeypatch):
    monkeypatch.chdir(BROKER)
    assert {row["file"] for row in read("one-0")} == {str(BROKER / "one-0" / "00000000000000000000.log")}
