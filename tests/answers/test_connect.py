import json

import pytest

from kdump.answers.connect import ConnectCluster, ConnectorLine, ConnectTaskLine, SourceOffsetLine, role_of


def replayed(*records, **options):
    cluster = ConnectCluster("connect-configs", **options)
    for number, (role, key, value) in enumerate(records):
        cluster.add(role, number, key.encode(), None if value is None else json.dumps(value).encode())
    return cluster


def connector(name="a", **config):
    return "configs", f"connector-{name}", {"properties": {"connector.class": "X", **config}}


def task(number, name="a", **config):
    return "configs", f"task-{name}-{number}", {"properties": {"number": str(number), **config}}


def commit(count, name="a"):
    return "configs", f"commit-{name}", {"tasks": count}


def lines(cluster, kind):
    return [line for line in cluster.lines() if isinstance(line, kind)]


def test_tasks_count_with_their_commit():
    before = replayed(connector(), task(0))
    assert lines(before, ConnectTaskLine) == []
    after = replayed(connector(), task(0, path="/x"), commit(1), task(0, path="/later"))
    (line,) = lines(replayed(connector(), task(0), commit(1), show_secrets=True), ConnectTaskLine)
    assert line.config == {"number": "0"}
    assert lines(after, ConnectorLine)[0].tasks == 1


def test_fewer_tasks_and_a_commit_that_is_incomplete():
    fewer = replayed(connector(), task(0), task(1), commit(2), task(0), commit(1))
    assert [line.task for line in lines(fewer, ConnectTaskLine)] == [0]
    compacted = replayed(connector(), task(1), commit(2))  # the first task's config was compacted away
    (line,) = lines(compacted, ConnectorLine)
    assert (line.inconsistent, line.tasks) == (True, 2)
    assert [line.config for line in lines(compacted, ConnectTaskLine)] == [{}, {}]
    assert not lines(replayed(connector(), task(0), task(1), task(2), commit(2)), ConnectorLine)[0].inconsistent


def test_a_commit_of_billions_of_tasks_ends_at_once():
    cluster = replayed(connector(), task(0), commit(1), commit(2**31 - 1))
    (line,) = lines(cluster, ConnectorLine)
    assert (line.inconsistent, line.tasks) == (True, 2**31 - 1)
    assert [line.task for line in lines(cluster, ConnectTaskLine)] == [0]
    assert lines(replayed(connector(), commit(2**31)), ConnectorLine)[0].tasks == 0


def test_a_deleted_connector_is_gone_and_its_offsets_stay():
    offset = ("offsets", '["a",{"file":"x"}]', {"position": 5})
    cluster = replayed(connector(), task(0), commit(1), offset, ("configs", "connector-a", None))
    assert [type(line) for line in cluster.lines()] == [SourceOffsetLine]
    again = replayed(connector(), task(0), commit(1), ("configs", "connector-a", None), connector())
    assert lines(again, ConnectorLine)[0].tasks == 0


@pytest.mark.parametrize(
    ("value", "state"),
    [
        ({"state": "PAUSED"}, "PAUSED"),
        ({"state": "PAUSED", "state.v2": "STOPPED"}, "STOPPED"),
        ({"state.v2": "STARTED"}, "STARTED"),
        (None, None),
    ],
)
def test_target_states(value, state):
    assert lines(replayed(connector(), ("configs", "target-state-a", value)), ConnectorLine)[0].target_state == state


def test_states_and_topics():
    cluster = replayed(
        connector("a-1"),
        task(0, "a-1"),
        commit(1, "a-1"),
        ("status", "status-connector-a-1", {"state": "RUNNING", "worker_id": "w:1", "trace": None, "generation": 1}),
        ("status", "status-task-a-1-0", {"state": "FAILED", "trace": "java.lang.X\n\tat", "generation": 1}),
        ("status", "status-topic-t.1:connector-a-1", {"topic": {}}),
        ("status", "status-topic-gone:connector-a-1", {"topic": {}}),
        ("status", "status-topic-gone:connector-a-1", None),
    )
    (of,) = lines(cluster, ConnectorLine)
    assert (of.state, of.worker_id, of.topics) == ("RUNNING", "w:1", ("t.1",))
    (line,) = lines(cluster, ConnectTaskLine)
    assert (line.connector, line.task, line.state, line.trace) == ("a-1", 0, "FAILED", "java.lang.X\n\tat")
    of = "status-connector-a"
    gone = replayed(connector(), ("status", of, {"state": "X", "generation": 1}), ("status", of, None))
    assert lines(gone, ConnectorLine)[0].state is None


@pytest.mark.parametrize(
    ("before", "generation", "state"),
    [("RUNNING", 1, "RUNNING"), ("RUNNING", 2, "RUNNING"), ("RUNNING", 3, "UNASSIGNED"), ("FAILED", 2, "UNASSIGNED")],
)
def test_a_late_status_of_the_worker_before_does_not_count_for_a_task(before, generation, state):
    for of in ("connector-a", "task-a-0"):
        first = ("status", f"status-{of}", {"state": before, "worker_id": "w:2", "generation": 2})
        late = ("status", f"status-{of}", {"state": "UNASSIGNED", "worker_id": "w:1", "generation": generation})
        cluster = replayed(connector(), task(0), commit(1), first, late)
        assert cluster.skipped == 0
        kind, expected = (ConnectTaskLine, state) if "task" in of else (ConnectorLine, "UNASSIGNED")
        assert lines(cluster, kind)[0].state == expected


def test_values_of_other_types_are_text_in_configs_and_no_status():
    odd = {"state": "RUNNING", "worker_id": 5, "generation": 1}
    config = connector(**{"connector.class": {"a": 1}, "tasks.max": 2})
    cluster = replayed(config, ("status", "status-connector-a", odd))
    (line,) = lines(cluster, ConnectorLine)
    assert (line.config["connector.class"], line.config["tasks.max"]) == ('{"a": 1}', "2")
    assert (line.state, line.worker_id, cluster.skipped) == (None, None, 1)


def test_source_offsets_are_the_last_of_each_partition():
    key, other = '["a",{"p":1}]', '["a",{"p":2}]'
    cluster = replayed(
        *(("offsets", key, {"o": number}) for number in range(3)),
        ("offsets", other, {"o": 9}),
        ("offsets", other, None),
    )
    assert [(line.partition, line.offset, line.timestamp_ms) for line in cluster.lines()] == [({"p": 1}, {"o": 2}, 2)]


def test_secrets_are_hidden_unless_asked_for():
    records = [connector(**{"database.password": "x", "tasks.max": "2", "unknown.option": "y"})]
    (line,) = lines(replayed(*records), ConnectorLine)
    assert line.config["tasks.max"] == "2"
    assert line.config["database.password"] == line.config["unknown.option"] == "[redacted]"
    (line,) = lines(replayed(*records, show_secrets=True), ConnectorLine)
    assert line.config["database.password"] == "x"


def test_records_that_connect_does_not_write_are_counted():
    cluster = ConnectCluster("connect-configs")
    odd = [b"connector-a", b"commit-a", b"task-a-0", b"nothing", b"status-task-a-0", b"\xff", None]
    for role in ("configs", "status", "offsets"):
        for key in odd:
            for value in (b"", b"{", b"[]", b'"x"', b"{}", b"\xff"):
                cluster.add(role, 0, key, value)
    assert cluster.skipped == 3 * len(odd) * 6
    assert list(cluster.lines()) == []


def test_an_envelope_of_the_converter_is_taken_off():
    cluster = ConnectCluster("c")
    body = {"schema": {"type": "map"}, "payload": {"properties": {"name": "x"}}}
    cluster.add("configs", 0, b"connector-a", json.dumps(body).encode())
    assert lines(cluster, ConnectorLine)[0].config == {"name": "x"}


@pytest.mark.parametrize(
    ("keys", "role"),
    [
        ([b"connector-a", b"task-a-0", b"commit-a", b"session-key", b"tasks-fencing-a"], "configs"),
        ([b"status-connector-a", b"status-task-a-0", b"status-topic-t:connector-a"], "status"),
        ([b'["a",{"f":1}]', b'["b",{}]'], "offsets"),
        ([b"connector-a", b"order 5"], None),
        ([b'["a"]'], None),
        ([None], None),
        ([b"\xff"], None),
        ([], None),
    ],
)
def test_topics_are_known_by_their_keys(keys, role):
    assert role_of(keys) == role


@pytest.mark.parametrize("number", ["9" * 5000, "x", "1_0", "𝟑"], ids=lambda one: one[:4])
@pytest.mark.parametrize("role", ["configs", "status"])
def test_a_task_has_a_number_of_java(role, number):
    key = f"task-a-{number}" if role == "configs" else f"status-task-a-{number}"
    cluster = replayed(connector(), (role, key, {"properties": {}, "state": "RUNNING", "generation": 1}), commit(0))
    assert not lines(cluster, ConnectTaskLine)
    assert lines(replayed(connector(), task("+0", path="/x"), commit(1)), ConnectTaskLine)[0].task == 0
