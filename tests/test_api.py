"""What :func:`kdump.open` and the questions note: replicas that are left out, topics that are not there."""

import kdump
from tests.helpers.log_dirs import replica
from tests.helpers.segments import data


def _two_replicas(tmp_path):
    """The second broker has the later leader epoch."""
    replica(tmp_path / "b1", {0: data(0, 5) + data(5, 5)})
    replica(tmp_path / "b2", {0: data(0, 5) + data(5, 3, leader_epoch=1)})
    return str(tmp_path / "b1"), str(tmp_path / "b2")


def test_each_partition_is_read_once_and_a_note_names_the_other_replica(tmp_path):
    brokers = _two_replicas(tmp_path)
    log = kdump.open(brokers)
    assert [record.offset for record in log] == list(range(8))
    (note,) = log.notes
    assert f"{brokers[0]}/orders-0 (every_replica=True reads all)" in note
    every = kdump.open(brokers, every_replica=True)
    assert (len(list(every)), every.notes) == (18, [])


def test_what_are_no_replicas_is_read(tmp_path):
    """Another topic id, other offsets, and files of one folder that are named apart."""
    for broker, topic_id in (("b1", "A" * 21 + "g"), ("b2", "A" * 21 + "w")):
        replica(tmp_path / broker, {0: data(0, 2)}, name="pay-0")
        (tmp_path / broker / "pay-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    replica(tmp_path / "b1", {0: data(0, 2)})
    replica(tmp_path / "b2", {2: data(2, 2)})
    assert len(list(kdump.open([tmp_path / "b1", tmp_path / "b2"]))) == 8
    one = replica(tmp_path / "b3", {0: data(0, 2), 2: data(2, 2)})
    logs = sorted(one.glob("*.log"))
    assert len(list(kdump.open([logs[0], tmp_path / "b1" / "pay-0", logs[1]]))) == 6


def test_a_topic_that_is_not_there_is_noted_as_the_command_does(tmp_path):
    replica(tmp_path, {0: data(0)}, name="sales-0")
    said = f"no partition of topic 'salse' is in {tmp_path}; did you mean 'sales'?"
    log = kdump.open(tmp_path, topic="salse")
    assert (list(log), log.notes) == ([], [said])
    assert kdump.offsets(tmp_path, topic="salse").notes == (said,)
    assert kdump.transactions(tmp_path, topic="salse").notes == (said,)
