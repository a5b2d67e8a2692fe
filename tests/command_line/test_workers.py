"""Workers: what --jobs, --master and --conf refuse before Spark starts, and when processes share a partition."""

import os
import tarfile

import pytest

from kdump.command_line.options import WhoReads
from kdump.command_line.session import Session
from kdump.log_dirs.finder import Finder
from kdump.log_dirs.local import LOCAL
from kdump.log_dirs.partition import Segment
from kdump.log_dirs.remote import RemoteFiles
from kdump.log_dirs.tiered_storage import TieredFiles
from kdump.parallel import costs
from kdump.primitives import compression
from testing import GOLDEN, forge
from testing.processes import kdump
from testing.stores import FlakyStore

LOGS = GOLDEN / "brokers" / "4.2.2"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--master", "spark"), "--master spark: expected local[N], spark://HOST:PORT, yarn or k8s://URL"),
        (("--master", "local[2]", "--jobs", "2"), "--jobs cannot be combined with --master"),
        (
            ("--master", "local[2]", "--cache", "drop"),
            "--cache drop cannot be combined with --master: it works only on this machine",
        ),
        (("--conf", "a=b"), "--conf and --packages need --master"),
        (("--master", "local[2]", "--conf", "a"), "--conf a: expected NAME=VALUE"),
    ],
)
@pytest.mark.parametrize("command", ["stats", "check", "verify-index"])
def test_options_that_do_not_go_together_are_refused(command, options, said):
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
    done = kdump(command, LOGS, *options)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert not done.stdout


def test_an_archive_is_read_here(tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
    archive = tmp_path / "logs.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(LOGS / "one-0", "one-0")
    done = kdump("stats", archive, "--master", "local[2]")
    assert done.returncode == 2
    where = f"Spark cannot read {archive}:one-0/{0:020}.log: it is in an archive or in remote storage"
    assert done.stderr.decode() == f"error: --master: {where}\n"


@pytest.mark.parametrize(("in_store", "count"), [(False, 2), (True, None)])
def test_one_process_reads_local_partitions_with_segments_in_a_store(tmp_path, in_store, count):
    """A forked process cannot use the connections of a store."""
    place = RemoteFiles(FlakyStore(tmp_path), "s3://") if in_store else LOCAL
    store = TieredFiles(place, {}, print)
    found = [
        one._replace(segments=(one.segments[0]._replace(files=store), *one.segments[1:]))
        for one in Finder().find(map(str, (LOGS / "one-0", LOGS / "c-zstd-0")))
    ]
    workers = WhoReads(2).workers(found, 0, Session())
    assert (None if workers is None else workers.count) == count


def test_without_java_it_is_said(tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")
    done = kdump("stats", LOGS, "--master", "local[2]", env={"PATH": str(tmp_path), "JAVA_HOME": ""})
    assert done.returncode == 1
    assert "there is no Java in PATH" in done.stderr.decode()


@pytest.mark.parametrize(
    ("sizes", "jobs", "processes"),
    [
        ((), 2, 1),
        ((0,), 2, 1),
        ((10,), 1, 1),
        ((10,), 2, 2),
        ((20, 10), 2, 1),
        ((21, 10), 2, 2),
        ((53, 12, 12, 12, 12), 2, 1),
        ((5, 5), 8, 1),
        ((60, 20, 20), 8, 8),
        ((10,), None, 2),
        ((10, 1), None, 1),
    ],
)
def test_processes_share_a_partition_where_that_is_sooner_done(tmp_path, sizes, jobs, processes, monkeypatch):
    monkeypatch.setattr(costs, "free_processors", lambda: 4)
    for number, size in enumerate(sizes):
        folder = tmp_path / f"t-{number}"
        folder.mkdir()
        (folder / f"{0:020}.log").write_bytes(bytes(size))
    partitions = list(Finder().find([str(tmp_path)])) if sizes else []
    assert costs.processes_within(partitions, 1, jobs) == processes


def test_fewer_bytes_are_many_where_most_are_compressed(tmp_path):
    small = costs.READING_PACKED // 2
    for number, (codec, size) in enumerate(
        [(compression.NONE, small), (compression.ZSTD, small), (compression.ZSTD, small + 1)]
    ):
        path = tmp_path / f"t-{number}" / f"{0:020}.log"
        path.parent.mkdir()
        path.write_bytes(forge.batch([forge.record(b"k", b"v")], attributes=codec))
        os.truncate(path, size)
    plain, packed, larger = Finder().find([str(tmp_path)])
    assert costs.enough_records([plain, packed]) == costs.READING_PLAIN
    assert costs.enough_records([plain, larger]) == costs.READING_PACKED


def test_what_decides_nothing_is_not_opened(tmp_path, monkeypatch):
    path = tmp_path / "t-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(b"")
    monkeypatch.setattr(Segment, "open", None)
    for size in (1000, costs.READING_PLAIN):
        os.truncate(path, size)
        assert costs.enough_records(list(Finder().find([str(tmp_path)]))) == costs.READING_PLAIN
