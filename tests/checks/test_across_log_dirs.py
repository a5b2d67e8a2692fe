"""The ids of log dirs of one broker or several brokers, as ``kdump check`` compares them."""

import json

import pytest

from testing import forge
from testing.processes import kdump

IDS = "version=1\nnode.id=1\ncluster.id=c\n"
NEEDS_NO_METADATA_LOG = ("--config", "process.roles=broker")


def log_dir(folder, properties, *partitions):
    for name in partitions:
        (folder / name).mkdir(parents=True)
        (folder / name / "00000000000000000000.log").write_bytes(forge.batch([forge.record(b"k", b"v")]))
        (folder / name / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAACw\n")
    (folder / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    if properties is not None:
        (folder / "meta.properties").write_text(properties)
    return folder


def findings(*paths):
    done = kdump("check", "--json", *NEEDS_NO_METADATA_LOG, *paths)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    found = [row for row in rows if row["kind"] == "finding" and row["file"].endswith("meta.properties")]
    return done.returncode, [(row["check"], row["text"]) for row in found]


def test_sound_ids_are_no_finding(tmp_path):
    one = log_dir(tmp_path / "1", f"{IDS}directory.id=AAAAAAAAAAAAAAAAAAAAzg\n", "a-0")
    two = log_dir(tmp_path / "2", f"{IDS}directory.id=AAAAAAAAAAAAAAAAAAAAzw\n", "b-0")
    assert findings(one, two) == (0, [])


@pytest.mark.parametrize(
    ("properties", "check", "text"),
    [
        (None, "absent", "the file is missing: a KRaft broker does not start without it"),
        ("", "property", "the file cannot be read: the file holds no property"),
        (f"{IDS}directory.id=nonsense\n", "property", "the file cannot be read: directory.id is not a Uuid"),
        (f"{IDS}directory.id=\n", "property", "the file cannot be read: directory.id is not a Uuid"),
        (
            f"{IDS}directory.id=AAAAAAAAAAAAAAAAAAA*zg\n",
            "property",
            "the file cannot be read: directory.id is not a Uuid",
        ),
    ],
)
def test_ids_that_keep_a_broker_from_starting(tmp_path, properties, check, text):
    status, found = findings(log_dir(tmp_path / "1", properties, "a-0"))
    assert (status, [one[0] for one in found]) == (3, [check])
    assert found[0][1].startswith(text)


def test_a_reserved_directory_id_stops_a_broker(tmp_path):
    status, found = findings(log_dir(tmp_path / "1", f"{IDS}directory.id=AAAAAAAAAAAAAAAAAAAAAA\n", "a-0"))
    assert (status, [check for check, _ in found]) == (3, ["property", "directory id reserved"])
    assert found[1][1].startswith("a broker does not start: Invalid reserved directory ID found in")


def test_two_clusters_in_one_broker(tmp_path):
    one = log_dir(tmp_path / "1", IDS, "a-0")
    two = log_dir(tmp_path / "2", IDS.replace("cluster.id=c", "cluster.id=other"), "b-0")
    status, found = findings(one, two)
    assert (status, [check for check, _ in found]) == (3, ["cluster id"])


def test_two_brokers_of_two_clusters_are_no_finding(tmp_path):
    one = log_dir(tmp_path / "1", IDS, "a-0")
    two = log_dir(tmp_path / "2", "version=1\nnode.id=2\ncluster.id=other\n", "a-0")
    assert findings(one, two) == (0, [])


def test_a_doubled_directory_id(tmp_path):
    ids = f"{IDS}directory.id=AAAAAAAAAAAAAAAAAAAAzg\n"
    one, two = log_dir(tmp_path / "1", ids, "a-0"), log_dir(tmp_path / "2", ids, "b-0")
    status, found = findings(one, two)
    assert (status, [check for check, _ in found]) == (3, ["directory id"])
    copy = log_dir(tmp_path / "copy", ids, "a-0")
    assert findings(one, copy) == (0, [])


@pytest.mark.parametrize("command", ["check", "verify-index"])
def test_quiet_json_prints_nothing_where_all_is_well(tmp_path, command):
    place = log_dir(tmp_path / "1", IDS, "a-0")
    options = NEEDS_NO_METADATA_LOG if command == "check" else ()
    done = kdump(command, "-q", "--json", *options, place)
    assert (done.returncode, done.stdout) == (0, b"")
    assert kdump(command, "--json", *options, place).stdout != b""


def test_log_dirs_without_the_metadata_log_are_not_safe(tmp_path):
    """A start makes all logs stray, unless another log dir or a controller has the metadata log."""
    one = log_dir(tmp_path / "1", f"{IDS}directory.id=AAAAAAAAAAAAAAAAAAAAzg\n", "a-0")
    two = log_dir(tmp_path / "2", f"{IDS}directory.id=AAAAAAAAAAAAAAAAAAAAzw\n", "b-0")
    bootstrap = forge.batch([forge.record(None, b"\x01\x0c\x00\x01\x15\x00")])
    for named in (one, two):
        done = kdump("check", one, two)
        text = f"DO NOT START broker 1 yet: {named}: these log dirs have no __cluster_metadata-0: "
        assert (done.returncode, text in done.stdout.decode()) == (3, True)
        (two / "bootstrap.checkpoint").write_bytes(bootstrap)  # only the metadata log dir has it
    (two / "bootstrap.checkpoint").unlink()
    done = kdump("check", one, two, *NEEDS_NO_METADATA_LOG)
    assert (done.returncode, b"no __cluster_metadata-0" in done.stdout) == (0, False)
    for each in (one, two):
        (each / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=c\n")  # with ZooKeeper
    assert kdump("check", one, two).returncode == 0


def test_a_folder_in_a_partition_is_no_replica(tmp_path):
    """A broker does not look into folders of a partition, at any depth."""
    place = log_dir(tmp_path / "1", f"{IDS}directory.id=AAAAAAAAAAAAAAAAAAAAzg\n", "a-0")
    for inside in ("old", "old/b-1"):
        (place / "a-0" / inside).mkdir()
        (place / "a-0" / inside / "00000000000000000000.log").write_bytes(b"torn")
    done = kdump("check", place, "--notes", *NEEDS_NO_METADATA_LOG)
    assert done.returncode == 0
    assert done.stdout.count(b"a folder that does not belong to a broker") == 2
