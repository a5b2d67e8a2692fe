"""``kdump metadata`` as a user runs it."""

from __future__ import annotations

import json

from kdump.primitives.timestamps import iso
from testing import GOLDEN
from testing.processes import kdump
from tests.answers.metadata.test_image import ENDS

LOG = GOLDEN / "brokers" / "4.2.2" / "__cluster_metadata-0"


def lines(*args, status=0):
    done = kdump("metadata", *args, "-o", "jsonl")
    assert done.returncode == status, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_image_as_the_records_of_a_snapshot():
    found = lines(LOG, "--offset", "77")
    assert found[0] == {
        "type": "FEATURE_LEVEL_RECORD",
        "version": 0,
        "data": {"name": "metadata.version", "featureLevel": 29},
    }
    assert {"TOPIC_RECORD", "PARTITION_RECORD", "REGISTER_BROKER_RECORD"} <= {line["type"] for line in found}


def test_one_topic_of_the_image():
    found = lines(LOG, "--topic", "compact")
    assert {line["type"] for line in found} == {"TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD"}


def test_topics_events_difference_and_tree():
    assert [line["topic"] for line in lines(LOG, "--topics", "--topic", "multi")] == ["multi"]
    assert [line["topic"] for line in lines(LOG, "--topics", "--topic", "multi,one")] == ["multi", "one"]
    assert {line["topic"] for line in lines(LOG, "--events", "--topic", "multi")} == {"multi"}
    assert {line["kind"] for line in lines(LOG, "--diff", "77..147")} <= {"added", "removed", "changed"}
    (node,) = lines(LOG, "--tree", "/topics/multi/name")
    assert node == {"kind": "node", "path": "/topics/byName/multi/name", "value": "multi"}


def test_difference_of_two_snapshots():
    names = [LOG / f"{end:020}-{1:010}.checkpoint" for end in (77, 147)]
    assert lines(names[0], "--diff", names[1]) == lines(LOG, "--diff", "77..147")


def test_a_misspelled_topic_of_a_difference_is_noted():
    done = kdump("metadata", LOG, "--diff", "77..147", "--topic", "Idem")
    assert (done.returncode, done.stdout) == (0, b"Differences: 0\n")
    assert done.stderr == b"note: neither image has a topic 'Idem'; did you mean 'idem'?\n"
    assert kdump("metadata", LOG, "--diff", "77..147", "--topic", "idem").stderr == b""


def test_all_but_the_records_of_a_snapshot_hide_secrets():
    secrets = {
        str(line["data"][name]).encode()
        for end in ENDS["4.2.2"]
        for line in lines(LOG, "--offset", str(end))
        if line["type"] == "USER_SCRAM_CREDENTIAL_RECORD"
        for name in ("salt", "storedKey", "serverKey")
    }
    assert secrets
    for asked in ((), ("--topics",), ("--events",), ("--tree", "/"), ("--diff", "1.."), ("--diff", "486..500")):
        for form in ("table", "csv", *(("jsonl",) if asked[:1] in (("--events",), ("--tree",)) else ())):
            done = kdump("metadata", LOG, *asked, *(() if form == "table" else ("-o", form)))
            assert done.returncode == 0, done.stderr
            assert not [secret for secret in secrets if secret in done.stdout], (asked, form)


def test_break_is_named_and_the_status_reports_damage(tmp_path):
    folder = tmp_path / LOG.name
    folder.mkdir()
    (folder / f"{390:020}.log").write_bytes((LOG / f"{390:020}.log").read_bytes())
    done = kdump("metadata", folder, "-o", "jsonl")
    assert done.returncode == 3
    assert b"offset 390: the records from offset 0 up to this offset are missing" in done.stderr


def test_what_is_not_there_is_said():
    done = kdump("metadata", LOG, "--topics", "--topic", "no-such")
    assert (done.returncode, b"is in this image; --events lists" in done.stderr) == (0, True)
    done = kdump("metadata", LOG, "--diff", "77..99999")
    assert (done.returncode, b"the log ends at offset 582" in done.stderr) == (0, True)


def test_a_time_before_the_log_is_distinguished_from_a_log_that_cannot_be_read():
    done = kdump("metadata", LOG, "--topics", "--at", "2001-01-01")
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: the log begins at 20")
    assert done.stderr.endswith(b"Z: there is no image at 2001-01-01T00:00:00.000Z\n")


def test_difference_between_times_is_that_between_their_offsets():
    events = [line for line in lines(LOG, "--events") if 77 < line["offset"] < 147]
    first, last = events[0], events[-1]
    by_time = lines(LOG, "--diff", f"{iso(first['timestampMs'] - 1)}..{iso(last['timestampMs'])}")
    sooner, later = (lines(LOG, "--at", str(at)) for at in (first["timestampMs"] - 1, last["timestampMs"]))
    assert by_time
    assert len([line for line in by_time if line["kind"] == "added"]) >= len(later) - len(sooner) > 0
    assert kdump("metadata", LOG, "--diff", "9am..10am").returncode == 2


def test_logs_of_two_clusters_are_not_merged(tmp_path):
    for name in "ab":
        folder = tmp_path / name / LOG.name
        folder.mkdir(parents=True)
        (folder / f"{0:020}.log").write_bytes((LOG / f"{0:020}.log").read_bytes())
        (tmp_path / name / "meta.properties").write_text(f"version=1\ncluster.id={name}\nnode.id=1\n")
    assert kdump("metadata", tmp_path / "a", tmp_path / "b").returncode == 2
    assert kdump("metadata", tmp_path / "a", "--diff", tmp_path / "b").returncode == 0


def test_a_snapshot_that_is_torn_gives_no_image(tmp_path):
    torn = tmp_path / f"{147:020}-{1:010}.checkpoint"
    torn.write_bytes((LOG / torn.name).read_bytes()[:-9])
    done = kdump("metadata", torn)
    assert done.returncode in (1, 3)
    assert b"no record of the metadata log can be read" in done.stderr


def test_what_breaks_the_replay_is_said_once(tmp_path):
    folder = tmp_path / LOG.name
    folder.mkdir()
    (folder / f"{390:020}.log").write_bytes((LOG / f"{390:020}.log").read_bytes())
    done = kdump("metadata", folder, "--diff", "400..450")
    assert done.stderr.count(b"offset 390: the records") == 1


def test_snapshot_is_written_outside_of_the_input(tmp_path):
    done = kdump("metadata", LOG, "--write-snapshot", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    (written,) = (tmp_path / "out").iterdir()
    assert lines(written) == lines(LOG)
    assert kdump("metadata", LOG, "--write-snapshot", LOG / "out").returncode == 2
    assert kdump("metadata", LOG, "--write-snapshot", "").returncode == 2
    assert kdump("metadata", LOG, "--write-snapshot", tmp_path / "out").returncode == 2


def test_definitions_are_a_script_or_resources():
    script = kdump("metadata", LOG, "--definitions").stdout
    assert b"topics --create --if-not-exists --topic multi --partitions 3" in script
    resources = kdump("metadata", LOG, "--definitions", "strimzi").stdout
    assert b"kind: KafkaTopic" in resources
    assert kdump("metadata", LOG, "--definitions", "-o", "jsonl").returncode == 2
    assert kdump("metadata", LOG, "--definitions", "sh", "--topics").returncode == 2


def test_what_cannot_be_asked():
    assert kdump("metadata", LOG, "--topics", "--events").returncode == 2
    assert kdump("metadata", LOG, "--offset", "5", "--at", "-2h").returncode == 2
    assert kdump("metadata", LOG, "--diff", "1..2", "--offset", "5").returncode == 2
    assert kdump("metadata", LOG, "--tree", "", "--topics").returncode == 2
    assert kdump("metadata", LOG, "--diff", "").returncode == 1  # no log has this path
    assert kdump("metadata", LOG, "--tree", "/", "--topic", "multi").returncode == 2
    done = kdump("metadata", GOLDEN / "brokers" / "4.2.2" / "one-0")
    assert done.returncode == 1
    assert b"no metadata log" in done.stderr
    snapshot = LOG / f"{147:020}-{1:010}.checkpoint"
    assert kdump("metadata", snapshot, "--offset", "5").returncode == 2


def metadata_dirs(tmp_path, node=1, directory="AAAAAAAAAAAAAAAAAAAAZA", epoch=7):
    """A log dir with ids and the metadata log, and a broker's copy of that log with the epoch of a failed election."""
    for name, number in (("controller", node), ("broker", 9)):
        folder = tmp_path / name / LOG.name
        folder.mkdir(parents=True)
        for file in LOG.iterdir():
            if file.suffix in {".log", ".checkpoint"}:
                (folder / file.name).write_bytes(file.read_bytes())
        ids = f"version=1\ncluster.id=c\nnode.id={number}\ndirectory.id={directory if name == 'controller' else ''}\n"
        (tmp_path / name / "meta.properties").write_text(ids)
    state = {"leaderId": -1, "leaderEpoch": epoch, "votedId": -1, "votedDirectoryId": "A", "data_version": 1}
    (tmp_path / "broker" / LOG.name / "quorum-state").write_text(json.dumps(state))
    return tmp_path / "controller", tmp_path / "broker"


def test_a_snapshot_with_other_voters_lies_beyond_all_copies(tmp_path):
    dirs = metadata_dirs(tmp_path)
    out = tmp_path / "out"
    done = kdump(
        "metadata", *dirs, "--write-snapshot", out, "--voters", "1@[::1]:9093,2@c2:9093:BBBBBBBBBBBBBBBBBBBBBA"
    )
    assert done.returncode == 0, done.stderr
    (written,) = out.iterdir()
    end, epoch = map(int, written.stem.split("-"))
    assert end > max(ENDS["4.2.2"])
    assert epoch > 7
    found = lines(written)
    assert not [line for line in found if line["type"] == "REGISTER_CONTROLLER_RECORD"]
    assert [line for line in found if line["type"] != "REGISTER_CONTROLLER_RECORD"] == [
        line for line in lines(LOG) if line["type"] != "REGISTER_CONTROLLER_RECORD"
    ]
    tree = {line["path"]: line["value"] for line in lines(written, "--tree", "/")}
    assert not [path for path in tree if "/controllers/" in path]
    done = kdump("--files", written, "--cluster-metadata-decoder")
    voters = [line for line in done.stdout.decode().splitlines() if "KRaftVoters" in line]
    assert len(voters) == 1
    for part in ("AAAAAAAAAAAAAAAAAAAAZA", "BBBBBBBBBBBBBBBBBBBBBA", '"host":"::1"', '"name":"CONTROLLER"'):
        assert part in voters[0]


def test_a_quorum_that_would_never_elect_is_refused(tmp_path):
    dirs = metadata_dirs(tmp_path)
    out = tmp_path / "out"
    for voters, reason in (
        ("2@c2:9093", b"the directory id of node 2 is unknown"),
        ("1@c1:9093:BBBBBBBBBBBBBBBBBBBBBA", b"has directory.id=AAAAAAAAAAAAAAAAAAAAZA"),
        ("1@c1:9093,1@c2:9093", b"id 1 is given twice"),
        ("c1:9093", b"is not of the form ID@HOST:PORT"),
        ("1@c1:0", b"0 is not a port"),
        (",", b"names no voter"),
    ):
        done = kdump("metadata", *dirs, "--write-snapshot", out, "--voters", voters)
        assert done.returncode == 2, voters
        assert reason in done.stderr
    assert kdump("metadata", *dirs, "--voters", "1@c1:9093").returncode == 2
    assert not out.exists()


def test_voters_need_a_log_without_breaks_but_not_sound_copies(tmp_path):
    first, second = metadata_dirs(tmp_path)
    log = first / LOG.name / f"{390:020}.log"
    data = bytearray(log.read_bytes())
    data[-5] ^= 1
    log.write_bytes(data)
    done = kdump("metadata", first, second, "--write-snapshot", tmp_path / "out", "--voters", "1@c1:9093")
    assert done.returncode == 3, done.stderr  # the other copy has what this one lacks
    assert len(list((tmp_path / "out").iterdir())) == 1
