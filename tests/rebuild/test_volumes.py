"""Log dirs in volumes: which folders are used, and their owners."""

import shlex
import shutil

import pytest

from kdump.errors import Reporter, UnreadableError, UsageError
from kdump.formats import partition_metadata
from kdump.formats.partition_metadata import PartitionMetadata
from kdump.rebuild.volumes import survey
from testing import forge

ONE, OTHER = b"1" * 16, b"2" * 16
LOG = f"{0:020}.log"


def log_dir(path, node=1, cluster="cluster"):
    path.mkdir(parents=True)
    (path / "meta.properties").write_text(f"version=1\nnode.id={node}\ncluster.id={cluster}\n")
    return path


def folder(path, topic_id=ONE, *, log=b""):
    path.mkdir(parents=True)
    (path / LOG).write_bytes(log or forge.batch([forge.record(None, b"a")]))
    if topic_id:
        (path / "partition.metadata").write_bytes(partition_metadata.encode(PartitionMetadata(0, topic_id)))
    return path


def test_a_log_dir_itself_or_a_folder_of_log_dirs(tmp_path):
    for node in (1, 2):
        folder(log_dir(tmp_path / f"node-{node}", node) / "orders-0")
    both = survey([str(tmp_path)])
    assert [(each.path, each.state.broker_id) for each in both.log_dirs] == [
        (f"{tmp_path}/node-1", "1"),
        (f"{tmp_path}/node-2", "2"),
    ]
    assert both.cluster_id == "cluster"
    one = survey([str(tmp_path / "node-2"), str(tmp_path / "node-2")])
    assert [each.state.broker_id for each in one.log_dirs] == ["2"]


def test_a_log_dir_some_folders_deep_and_one_without_meta_properties(tmp_path):
    folder(log_dir(tmp_path / "data-0" / "kafka-log0") / "orders-0")
    folder(tmp_path / "data-1" / "kafka-log1" / "orders-1")
    found = survey([str(tmp_path)])
    assert [each.path.removeprefix(f"{tmp_path}/") for each in found.log_dirs] == [
        "data-0/kafka-log0",
        "data-1/kafka-log1",
    ]
    assert [each.key for each in found.folders] == [("orders", 0), ("orders", 1)]


def test_folders_of_another_topic_id_are_distinguished(tmp_path):
    one, two = log_dir(tmp_path / "a", 1), log_dir(tmp_path / "b", 2)
    folder(one / "reborn-0", ONE)
    folder(one / f"reborn-0.{'0' * 32}-delete", OTHER)
    folder(two / "reborn-0", OTHER)
    folder(two / f"reborn-0.{'0' * 32}-stray", ONE)
    found = survey([str(tmp_path)])
    assert [each.path.removeprefix(f"{tmp_path}/") for each in found.of("reborn", ONE, 0)] == [
        "a/reborn-0",
        f"b/reborn-0.{'0' * 32}-stray",
    ]
    assert [each.state for each in found.of("reborn", OTHER, 0)] == ["", "delete"]


@pytest.mark.parametrize("has_live", [False, True])
def test_a_broker_cuts_the_name_of_a_long_topic_in_a_stray_folder(tmp_path, has_live):
    topic, end = "t" * 249, f"-0.{'a' * 32}-stray"
    stray = folder(log_dir(tmp_path / "a") / (topic[: 255 - len(end)] + end))
    if has_live:
        folder(log_dir(tmp_path / "b", 2) / f"{topic}-1")
    found = survey([str(tmp_path)])
    assert [each.path for each in found.of(topic, ONE, 0)] == [str(stray)]
    assert [each.key for each in found.of(topic, ONE, 1)] == [(topic, 1)] * has_live
    assert found.of(topic, OTHER, 0) == []


def test_a_folder_without_an_id_counts_by_its_name_where_it_is_live(tmp_path):
    where = log_dir(tmp_path / "a")
    folder(where / "orders-0", None)
    folder(where / f"orders-0.{'0' * 32}-delete", None)
    assert [each.state for each in survey([str(where)]).of("orders", ONE, 0)] == [""]


def test_a_broken_partition_metadata_is_named_and_the_folder_counts(tmp_path):
    where = log_dir(tmp_path / "a")
    (folder(where / "orders-0") / "partition.metadata").write_text("version: 0\ntopic_id: no\n")
    notes = []
    found = survey([str(where)], Reporter(notes.append))
    assert [each.topic_id for each in found.of("orders", ONE, 0)] == [None]
    assert "partition.metadata" in notes[0]
    assert "takes the topic from the folder name" in notes[0]


def test_an_empty_folder_in_a_log_dir_is_a_copy_that_lost_its_files(tmp_path):
    (log_dir(tmp_path / "a") / "orders-3").mkdir()
    (tmp_path / "b-1").mkdir()
    assert [each.key for each in survey([str(tmp_path)]).folders] == [("orders", 3)]


def test_checkpoints_belong_to_live_folders(tmp_path):
    where = log_dir(tmp_path / "a")
    folder(where / "orders-0")
    folder(where / f"orders-0.{'0' * 32}-future")
    (where / "replication-offset-checkpoint").write_text("0\n1\norders 0 7\n")
    (where / "log-start-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    live, future = survey([str(where)]).of("orders", ONE, 0)
    assert (live.high_watermark, live.log_start, live.recovery_point) == (7, 3, None)
    assert (future.high_watermark, future.log_start) == (None, None)


def test_the_metadata_log_stands_apart(tmp_path):
    where = log_dir(tmp_path / "a")
    (folder(where / "__cluster_metadata-0") / f"{5:020}-{1:010}.checkpoint").write_bytes(b"")
    found = survey([str(where)])
    (copy,) = found.metadata_copies
    assert list(found.folders) == []
    assert f"{5:020}-{1:010}.checkpoint" in [entry.name for entry in copy.others]


def test_remote_storage_and_other_folders_are_no_log_dirs(tmp_path):
    folder(log_dir(tmp_path / "a") / "orders-0")
    segment = tmp_path / "remote" / "orders-0" / f"{0:020}-{'A' * 22}.log"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(b"")
    (tmp_path / "lost+found").mkdir()
    assert [each.path for each in survey([str(tmp_path)]).log_dirs] == [f"{tmp_path}/a"]


def test_mixed_clusters_are_refused_with_both_ids(tmp_path):
    folder(log_dir(tmp_path / "a", 1, "first") / "orders-0")
    folder(log_dir(tmp_path / "b", 2, "second") / "orders-0")
    with pytest.raises(UsageError, match=r"2 clusters \(cluster.id first in .*/a; cluster.id second in .*/b\)"):
        survey([str(tmp_path)])


def test_what_is_no_volume_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError, match="no log dir found"):
        survey([str(tmp_path / "empty")])
    with pytest.raises(UsageError, match="is a file"):
        survey([str(tmp_path / "file")])
    missing = str(tmp_path / "missing")
    with pytest.raises(UnreadableError, match="No such file"):
        survey([missing])
    failed = []
    with pytest.raises(UnreadableError, match="No such file"):  # not "no log dir found"
        survey([missing], Reporter(fail=failed.append))
    assert [one.path for one in failed] == [missing]


@pytest.mark.parametrize(("suffix", "extract"), [("gztar", "tar -xf"), ("xztar", "tar -xf"), ("zip", "unzip")])
@pytest.mark.parametrize("inside", ["", ":node-1", ":nowhere"])
def test_an_archive_is_refused_with_the_command_that_extracts_it(tmp_path, suffix, extract, inside):
    folder(log_dir(tmp_path / "it's" / "node-1") / "orders-0")
    archive = shutil.make_archive(str(tmp_path / "a bundle"), suffix, tmp_path / "it's")
    with pytest.raises(UsageError, match="is an archive, but a rebuild copies from local disks") as found:
        survey([archive + inside])
    assert f"extract it ({extract} {shlex.quote(archive)})" in str(found.value)


def test_a_store_is_refused_without_its_credentials():
    with pytest.raises(UsageError, match="s3://bucket/volume is in an object store") as found:
        survey(["s3://name:secret@bucket/volume"])
    assert "secret" not in str(found.value)


def test_a_folder_that_links_to_one_above_it_ends(tmp_path):
    where = log_dir(tmp_path / "a" / "b")
    folder(where / "orders-0")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    assert len(survey([str(tmp_path)]).log_dirs) == 1
